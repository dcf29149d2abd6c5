/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registry: a list of what is built in or was loaded. Shared objects are the business of
 * graph/plugin.c.
 */
#include "graph/registry.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "graph/plugin.h"

#ifndef BW_XLATOR_DIRECTORY
#define BW_XLATOR_DIRECTORY "/usr/local/lib/btrfs-walk/xlator"
#endif

struct bw_registry {
    const struct bw_xlator_class *const *builtin;
    char *path;
    struct bw_plugin *plugins;
    size_t count, capacity;
};

struct bw_error *bw_registry_create(const struct bw_xlator_class *const *builtin, const char *path,
                                    struct bw_registry **registry)
{
    struct bw_registry *made = calloc(1, sizeof *made);
    char *copy = strdup(path ? path : "");
    if (!made || !copy) {
        free(made);
        free(copy);
        return bw_error_no_memory();
    }
    made->builtin = builtin;
    made->path = copy;
    *registry = made;
    return NULL;
}

void bw_registry_destroy(struct bw_registry *registry)
{
    if (!registry)
        return;
    while (registry->count)
        bw_plugin_unload(&registry->plugins[--registry->count]);
    free(registry->plugins);
    free(registry->path);
    free(registry);
}

char *bw_registry_default_path(void)
{
    const char *given = secure_getenv("BTRFS_WALK_XLATOR_PATH");
    char *path = NULL;
    return asprintf(&path, "%s%s%s", given ? given : "", given && *given ? ":" : "",
                    BW_XLATOR_DIRECTORY) < 0
               ? NULL
               : path;
}

static const struct bw_xlator_class *find_known(const struct bw_registry *registry,
                                                const char *type)
{
    for (const struct bw_xlator_class *const *known = registry->builtin; *known; known++)
        if (strcmp((*known)->type, type) == 0)
            return *known;
    for (size_t i = 0; i < registry->count; i++)
        if (strcmp(registry->plugins[i].xlator->type, type) == 0)
            return registry->plugins[i].xlator;
    return NULL;
}

struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **class_found)
{
    *class_found = find_known(registry, type);
    if (*class_found)
        return NULL;
    if (!BW_ARRAY_RESERVE(registry->plugins, registry->count, registry->capacity))
        return bw_error_no_memory();
    struct bw_plugin *plugin = &registry->plugins[registry->count];
    BW_TRY(bw_plugin_load(registry->path, type, plugin));
    registry->count++;
    *class_found = plugin->xlator;
    return NULL;
}

/* A search for names: it goes on when memory runs out, which is told at its end. */
struct name_search {
    struct bw_type_names *names;
    bool no_memory;
};

static void add_name(void *context, const char *type)
{
    struct name_search *search = context;
    struct bw_type_names *names = search->names;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], type) == 0)
            return;
    char *copy = strdup(type);
    if (copy && BW_ARRAY_RESERVE(names->names, names->count, names->capacity)) {
        names->names[names->count++] = copy;
        return;
    }
    free(copy);
    search->no_memory = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct bw_error *bw_registry_names(const struct bw_registry *registry, struct bw_type_names *names)
{
    struct name_search search = {.names = names};
    for (const struct bw_xlator_class *const *known = registry->builtin; *known; known++)
        add_name(&search, (*known)->type);
    bw_plugin_search(registry->path, add_name, &search);
    if (names->count)
        qsort(names->names, names->count, sizeof *names->names, by_name);
    return search.no_memory ? bw_error_no_memory() : NULL;
}

void bw_type_names_free(struct bw_type_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct bw_type_names){0};
}
