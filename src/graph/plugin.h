/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layers from shared objects: finding CATEGORY/NAME.so, loading it, and refusing what was not built
 * for this library. Used by graph/registry.c only.
 */
#ifndef BW_GRAPH_PLUGIN_H
#define BW_GRAPH_PLUGIN_H

#include "btrfs-walk/graph.h"

/** A loaded shared object. */
struct bw_plugin {
    void *handle;
    const struct bw_xlator_class *xlator;
};

/**
 * Loads the type from the first directory of `path` that has a file of its name. BW_ERROR_USAGE:
 * there is none, it cannot be loaded, it exports no bw_xlator_api, its ABI differs, or its class
 * breaks the rules.
 */
struct bw_error *bw_plugin_load(const char *path, const char *type, struct bw_plugin *plugin);

/** Unloads it. */
void bw_plugin_unload(struct bw_plugin *plugin);

/** Calls `visit` for every file below `path` whose name is that of a type; each type may come
 * several times. An error of `visit` ends the search and is returned. */
struct bw_error *bw_plugin_search(const char *path, bw_type_visitor *visit, void *context);

#endif
