/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a layer and of a graph, and what the files of src/graph share; private to them. */
#ifndef BW_GRAPH_INSTANCE_H
#define BW_GRAPH_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/graph.h"

/** A word, NUL-terminated; it can hold any other byte. */
struct bw_word {
    char *text;
    struct bw_text_place at;
};

/** An option as it was given. */
struct bw_setting {
    struct bw_word name, value;
};

struct bw_child {
    struct bw_word name;
    struct bw_xlator *layer; /**< NULL until it was checked */
};

struct bw_atomic_counters {
    atomic_uint_fast64_t calls, requests, bytes, errors;
};

struct bw_xlator {
    struct bw_graph *graph;
    struct bw_word name;
    struct bw_word type_name; /**< text NULL until it is set */
    struct bw_setting *settings;
    size_t setting_count, setting_capacity;
    struct bw_child *children;
    size_t child_count, child_capacity;

    const struct bw_xlator_class *type; /**< NULL until it was checked; so are the next four */
    const char **values;                /**< in force: one per option of the class, in its order */
    enum bw_address_space above;        /**< never BW_ADDRESS_ANY */
    unsigned height;                    /**< layers on the longest way down, itself included */
    const struct bw_xlator *user;       /**< the last layer that has it as a child */

    bool marked;  /**< while layers are chosen */
    bool started; /**< init was called */
    void *state;
    struct bw_atomic_counters counters[BW_REQUEST_KINDS];
};

struct bw_graph {
    struct bw_registry *registry;
    struct bw_reporter reporter;
    struct bw_probes *probes; /**< never NULL */
    struct bw_probes silent;  /**< those, unless others are given */
    pthread_mutex_t report_lock;
    struct bw_xlator **layers; /**< children before parents; the last one is the top */
    size_t size, capacity;
    char **sources; /**< of places */
    size_t source_count, source_capacity;
};

/** The setting of that name; NULL if the option was not given. */
struct bw_setting *bw_layer_setting(const struct bw_xlator *layer, const char *name);

/* Options, as data: values are text, which the table of the class says how to read. */

/** The option of that name; NULL if the class has none. */
const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name);

/** Reads a value; false if it is not of the option's type and range. Types without numbers give 0.
 */
bool bw_option_parse(const struct bw_option *option, const char *text, uint64_t *number);

/** BW_ERROR_USAGE if a value is not allowed: "option size: '2P' is not a size from 0 to 1T". */
struct bw_error *bw_option_check(const struct bw_option *option, const char *text);

/** Whether a word would be a keyword of volfiles without quotes. */
bool bw_volfile_is_keyword(const char *word);

/* Layers from shared objects. */

/** A type of layer. */
struct bw_plugin {
    void *handle; /**< of its shared object; NULL if it is built in */
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
