/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of layers; what is public of it is in btrfs-walk/graph.h. */
#ifndef BW_GRAPH_REGISTRY_H
#define BW_GRAPH_REGISTRY_H

#include "btrfs-walk/graph.h"

/** Opens a registry without any built-in classes; `path` as for bw_registry_open(). */
struct bw_error *bw_registry_create(const char *path, struct bw_registry **registry);

/** Adds classes, given as an array that ends with NULL. They must outlive the registry.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_registry_add(struct bw_registry *registry,
                                 const struct bw_xlator_class *const *classes);

#endif
