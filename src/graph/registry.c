/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registry: a list of what is built in or was loaded. Shared objects are the business of
 * graph/plugin.c.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "graph/graph.h"

#ifndef BW_XLATOR_DIRECTORY
#define BW_XLATOR_DIRECTORY "/usr/local/lib/btrfs-walk/xlator"
#endif

struct bw_registry {
    char *path;
    struct bw_plugin *types; /* those built in have no handle */
    size_t count, capacity;
    char **names; /* of all types, sorted; found when they are first asked for */
    size_t name_count, name_capacity;
};

/* BTRFS_WALK_XLATOR_PATH and the library's own directory, in one. NULL: no memory. */
static char *default_path(void)
{
    const char *given = secure_getenv("BTRFS_WALK_XLATOR_PATH");
    char *path = NULL;
    return asprintf(&path, "%s%s%s", given ? given : "", given && *given ? ":" : "",
                    BW_XLATOR_DIRECTORY) < 0
               ? NULL
               : path;
}

struct bw_error *bw_registry_create(const char *path, struct bw_registry **registry)
{
    struct bw_registry *made = calloc(1, sizeof *made);
    if (made)
        made->path = path ? strdup(path) : default_path();
    if (!made || !made->path) {
        free(made);
        return bw_error_no_memory();
    }
    *registry = made;
    return NULL;
}

struct bw_error *bw_registry_add(struct bw_registry *registry,
                                 const struct bw_xlator_class *const *classes)
{
    for (; *classes; classes++) {
        if (!BW_ARRAY_RESERVE(registry->types, registry->count, registry->capacity))
            return bw_error_no_memory();
        registry->types[registry->count++] = (struct bw_plugin){NULL, *classes};
    }
    return NULL;
}

void bw_registry_close(struct bw_registry *registry)
{
    if (!registry)
        return;
    while (registry->count)
        bw_plugin_unload(&registry->types[--registry->count]);
    while (registry->name_count)
        free(registry->names[--registry->name_count]);
    free(registry->names);
    free(registry->types);
    free(registry->path);
    free(registry);
}

struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **found)
{
    for (size_t i = 0; i < registry->count; i++) {
        *found = registry->types[i].xlator;
        if (strcmp((*found)->type, type) == 0)
            return NULL;
    }
    *found = NULL;
    if (!BW_ARRAY_RESERVE(registry->types, registry->count, registry->capacity))
        return bw_error_no_memory();
    struct bw_plugin *plugin = &registry->types[registry->count];
    BW_TRY(bw_plugin_load(registry->path, type, plugin));
    registry->count++;
    *found = plugin->xlator;
    return NULL;
}

static struct bw_error *add_name(void *context, const char *type)
{
    struct bw_registry *registry = context;
    for (size_t i = 0; i < registry->name_count; i++)
        if (strcmp(registry->names[i], type) == 0)
            return NULL;
    char *copy = strdup(type);
    if (!copy ||
        !BW_ARRAY_RESERVE(registry->names, registry->name_count, registry->name_capacity)) {
        free(copy);
        return bw_error_no_memory();
    }
    registry->names[registry->name_count++] = copy;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds names that are not there yet: after a failure, or of types that were added meanwhile. */
static struct bw_error *find_names(struct bw_registry *registry)
{
    for (size_t i = 0; i < registry->count; i++)
        BW_TRY(add_name(registry, registry->types[i].xlator->type));
    BW_TRY(bw_plugin_search(registry->path, add_name, registry));
    if (registry->name_count)
        qsort(registry->names, registry->name_count, sizeof *registry->names, by_name);
    return NULL;
}

struct bw_error *bw_registry_each(struct bw_registry *registry, bw_type_visitor *visit,
                                  void *context)
{
    BW_TRY(find_names(registry));
    for (size_t i = 0; i < registry->name_count; i++)
        BW_TRY(visit(context, registry->names[i]));
    return NULL;
}
