/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of layers there are: those built in, and those in shared objects, which are loaded when
 * they are first asked for and stay loaded as long as the registry.
 */
#ifndef BW_GRAPH_REGISTRY_H
#define BW_GRAPH_REGISTRY_H

#include "btrfs-walk/xlator.h"

struct bw_registry;

/**
 * Makes a registry of the classes of `builtin` (an array that ends with NULL and outlives the
 * registry) and of the shared objects below the directories of `path`, separated by colons; NULL:
 * none. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_registry_create(const struct bw_xlator_class *const *builtin, const char *path,
                                    struct bw_registry **registry);

/** Unloads and frees; nothing made of its classes may be left. NULL is allowed. */
void bw_registry_destroy(struct bw_registry *registry);

/** BTRFS_WALK_XLATOR_PATH and the library's own directory, in one; freed by the caller. NULL: no
 * memory. */
char *bw_registry_default_path(void);

/**
 * Finds a type, loading it if need be. BW_ERROR_USAGE if there is none of that name, or a shared
 * object that cannot be used: it has another ABI, another name, or a class that breaks the rules.
 */
struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **class_found);

/** Names of types. All zeros is none. */
struct bw_type_names {
    char **names;
    size_t count, capacity;
};

/** Every type there is, sorted by name, each once. Shared objects are found, not loaded: some may
 * turn out to be of no use. Free the names also after a failure (BW_ERROR_NO_MEMORY). */
struct bw_error *bw_registry_names(const struct bw_registry *registry, struct bw_type_names *names);

/** Frees the names and leaves none. */
void bw_type_names_free(struct bw_type_names *names);

#endif
