/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of layers, from the first word about it to its end.
 *
 * A layer is described once, as a struct bw_xlator of its graph. The description comes from a
 * volfile (volfile.c) or from fs/wire.c and may be edited (edit.c). It is then checked against the
 * types of layers (check.c) and started (graph.c), children before parents. Every word of it knows
 * where it was written, so that a refusal can say so. Used by fs/; the layers themselves see
 * btrfs-walk/xlator.h and graph/wind.h only.
 */
#ifndef BW_GRAPH_GRAPH_H
#define BW_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/file_set.h"
#include "base/lexer.h"
#include "btrfs-walk/graph.h"
#include "graph/wind.h"

/* The types of layers; the rest of their functions is public, in btrfs-walk/graph.h. */

/** Opens a registry without any built-in classes; `path` as for bw_registry_open(). */
struct bw_error *bw_registry_create(const char *path, struct bw_registry **registry);

/** Adds classes, given as an array that ends with NULL. They must outlive the registry.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_registry_add(struct bw_registry *registry,
                                 const struct bw_xlator_class *const *classes);

/* A graph and its layers, whose insides the layers themselves do not see. */

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
    struct bw_probes *probes;   /**< never NULL */
    struct bw_probes silent;    /**< those, unless others are given */
    struct bw_servers *servers; /**< of images; NULL: there are none */
    pthread_mutex_t report_lock;
    struct bw_xlator **layers; /**< children before parents; the last one is the top */
    size_t size, capacity;
    char **sources; /**< of places */
    size_t source_count, source_capacity;
};

/** How many layers a graph may have, and how many of them one above the other: every layer puts a
 * batch of requests on the stack of the thread that reads. */
enum { BW_GRAPH_LAYERS = 4096, BW_GRAPH_HEIGHT = 128 };

/**
 * Makes an empty graph with the layer types of `registry`, and takes that over, even if it fails.
 * Layers report through `reporter`, which may have a NULL function.
 */
struct bw_error *bw_graph_create(struct bw_registry *registry, struct bw_reporter reporter,
                                 struct bw_graph **graph);

/** Ends all layers, parents before children, and frees the graph; NULL is allowed. */
void bw_graph_destroy(struct bw_graph *graph);

/** The layer of that name; NULL if there is none. */
struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name);

/* Describing layers. Texts are copied; the source of a place must live as long as the graph, see
 * bw_graph_source(). All functions that return an error return BW_ERROR_NO_MEMORY at times. */

/** A copy of `source` that lives as long as the graph; NULL if memory runs out. */
const char *bw_graph_source(struct bw_graph *graph, const char *source);

/** Adds a layer without options and children at position `index` (at most the number of layers).
 * BW_ERROR_USAGE if there are too many. */
struct bw_error *bw_graph_add(struct bw_graph *graph, size_t index, const char *name,
                              struct bw_text_place at, struct bw_xlator **layer);

/** The place of a layer in its graph. */
size_t bw_graph_index(const struct bw_xlator *layer);

/** Removes a layer, ending it first if it was started; no layer may have it as a child. */
void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *layer);

/** Sets the type of a layer. */
struct bw_error *bw_layer_set_type(struct bw_xlator *layer, const char *type,
                                   struct bw_text_place at);
/** Adds an option, or changes the value of the one of that name. */
struct bw_error *bw_layer_set_option(struct bw_xlator *layer, const char *name,
                                     struct bw_text_place name_at, const char *value,
                                     struct bw_text_place value_at);
/** Forgets all options that were given. */
void bw_layer_clear_options(struct bw_xlator *layer);
/** The value of an option if it was given; otherwise NULL. */
const char *bw_layer_option(const struct bw_xlator *layer, const char *name);
/** Adds a child after those there are. */
struct bw_error *bw_layer_add_child(struct bw_xlator *layer, const char *name,
                                    struct bw_text_place at);
/** Adds a checked layer to the children of a checked layer. */
struct bw_error *bw_layer_attach(struct bw_xlator *layer, struct bw_xlator *child);
/** Removes a child from the list of a layer. */
void bw_layer_remove_child(struct bw_xlator *layer, size_t index);

/** Puts a layer without options above layer `index`, in whose place all its parents have the new
 * one: "trace@verify", or "trace@verify-2" if that name is taken. */
struct bw_error *bw_graph_insert_above(struct bw_graph *graph, size_t index, const char *type,
                                       struct bw_text_place at, struct bw_xlator **inserted);

/**
 * "NAME.KEY=VALUE": sets an option. NAME is a layer, a type ("storage/file": all of that type), or
 * a pattern for names as in the shell (all that match). BW_ERROR_USAGE if the text does not have
 * that form or nothing matches.
 */
struct bw_error *bw_graph_edit_option(struct bw_graph *graph, const char *text);

/**
 * "TYPE@NAME[,KEY=VALUE...]": inserts a layer above each one that NAME, as above, matches. A
 * backslash makes a following comma or backslash part of a value. BW_ERROR_USAGE as above.
 */
struct bw_error *bw_graph_edit_insert(struct bw_graph *graph, const char *text);

/** How large a volfile may be, in bytes. */
#define BW_VOLFILE_SIZE ((size_t)1 << 20)

/**
 * Reads a volfile, or stdin if `path` is "-", into an empty graph:
 *
 *     # comment
 *     volume device-1
 *         type storage/file
 *         option path "my disk.img"
 *     end-volume
 *
 *     volume chunk-map
 *         type cluster/chunk-map
 *         subvolumes device-1
 *     end-volume
 *
 * White space separates words and means nothing else. A word in double quotes (base/lexer.h) can
 * hold any byte but NUL, and is never a keyword. Children come before parents; the last volume is
 * the top. BW_ERROR_SYSTEM if the file cannot be read, BW_ERROR_USAGE with the place
 * ("graph.vol:3:12: ...") if it is no volfile; the graph cannot be used then.
 */
struct bw_error *bw_volfile_read(struct bw_graph *graph, const char *path);

/** The same from memory; `source` is what the places name. */
struct bw_error *bw_volfile_parse(struct bw_graph *graph, const char *source, const char *text,
                                  size_t length);

/* Checking and starting. */

/**
 * Checks all layers, in one pass: names that are unique, types, children that come before their
 * parents, options, address spaces, and that all layers but the last are used. BW_ERROR_USAGE with
 * the place of the word. The files that are read are added to `inputs`; no option may write to one
 * of these.
 */
struct bw_error *bw_graph_check(struct bw_graph *graph, struct bw_file_set *inputs);

typedef struct bw_error *bw_graph_file_taker(void *context, const struct bw_xlator *layer,
                                             const struct bw_option *option, const char *path);

/** Calls for each file that checked layers name in an option of this type: BW_OPTION_PATH, or
 * BW_OPTION_OUTPUT, and then not for stderr. An error of `take` ends it. */
struct bw_error *bw_graph_files(const struct bw_graph *graph, enum bw_option_type wanted,
                                bw_graph_file_taker *take, void *context);

/** Checks a single layer, whose children were checked, but for files it would write to. */
struct bw_error *bw_graph_check_layer(struct bw_xlator *layer);

/** Starts (runs `init` of) the layers below a layer, or of the whole graph if that is NULL,
 * children first, unless they run already. They must have been checked. */
struct bw_error *bw_graph_start(struct bw_graph *graph, const struct bw_xlator *above);

/** Removes the layers that are not below the last one any more. */
void bw_graph_prune(struct bw_graph *graph);

/** The file a layer reads: its first option of type BW_OPTION_PATH. NULL if it has none. */
const char *bw_graph_path(const struct bw_xlator *layer);

/** Gives a message to every layer that takes its kind, in the order of the layers, until one
 * returns an error. */
struct bw_error *bw_graph_control(const struct bw_graph *graph, const struct bw_control *control);

/** Delivers a message to the graph's reporter, one at a time; takes the error. */
void bw_graph_report(struct bw_graph *graph, enum bw_severity severity, struct bw_error *error);

/* A graph as text. Memory that runs out shows in the buffer's `failed`. */

/** Appends a volfile that makes the same graph: children first, with all options in force. */
void bw_graph_print(const struct bw_graph *graph, struct bw_buffer *text);

/** Appends a picture in the language of Graphviz: parents above children, with the options that
 * differ from their defaults. */
void bw_graph_print_dot(const struct bw_graph *graph, struct bw_buffer *text);

/** Adds to an open array of a statedump: each layer with its options, state and counters. */
void bw_graph_dump(const struct bw_graph *graph, struct bw_json *json);

/* Shared by the files of src/graph. */

/** The setting of that name; NULL if the option was not given. */
struct bw_setting *bw_layer_setting(const struct bw_xlator *layer, const char *name);

/* Options, as data: values are text, which the table of the class says how to read. */

/** The option of that name; NULL if the class has none. */
const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name);

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

#endif
