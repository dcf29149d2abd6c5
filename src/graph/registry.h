/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of layers there are: those built in, and those in shared objects, which are loaded when they are
 * first asked for and stay loaded as long as the registry.
 */
#ifndef BW_GRAPH_REGISTRY_H
#define BW_GRAPH_REGISTRY_H

#include "btrfs-walk/xlator.h"

struct bw_registry;

/**
 * Makes a registry of the classes of `builtin` (an array that ends with NULL and outlives the registry) and
 * of the shared objects below the directories of `path`, separated by colons; NULL: none. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_registry_create(const struct bw_xlator_class *const *builtin, const char *path,
                                    struct bw_registry **registry);

/** Unloads and frees; nothing made of its classes may be left. NULL is allowed. */
void bw_registry_destroy(struct bw_registry *registry);

/** BTRFS_WALK_XLATOR_PATH and the library's own directory, in one; freed by the caller. NULL: no memory. */
char *bw_registry_default_path(void);

/**
 * Finds a type, loading it if need be. BW_ERROR_USAGE if there is none of that name, or a shared object that
 * cannot be used: it has another ABI, another name, or a class that breaks the rules.
 */
struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **class_found);

/** Tells every type there is, sorted by name. What is in a shared object that cannot be used comes with
 * `error` (owned by the callee) instead of `class_found`. */
void bw_registry_list(struct bw_registry *registry,
                      void (*tell)(void *context, const char *type, const struct bw_xlator_class *class_found,
                                   struct bw_error *error),
                      void *context);

#endif
