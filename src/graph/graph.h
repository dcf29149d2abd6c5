/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of layers, from its description to its end.
 *
 * A layer is described once, as a struct bw_xlator of its graph. The description comes from a
 * volfile (volfile.c) or from fs/build_graph.c and may be edited (edit.c). It is then validated
 * against the types of layers (validate.c) and started (graph.c), children before parents. Every
 * word of it has a position for error messages. Used by fs/; the layers themselves include only
 * btrfs-walk/graph.h and graph/wind.h.
 */
#ifndef BW_GRAPH_GRAPH_H
#define BW_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/file_set.h"
#include "base/vector.h"
#include "btrfs-walk/graph.h"
#include "graph/lexer.h"
#include "graph/wind.h"

/* The types of layers; their other functions are public, in btrfs-walk/graph.h. */

/** Opens a registry without built-in classes; `path` as for bw_registry_open(). */
struct bw_error *bw_registry_create(const char *path, struct bw_registry **registry);

/** Adds classes, given as an array that ends with NULL. They must outlive the registry.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_registry_add(struct bw_registry *registry,
                                 const struct bw_xlator_class *const *classes);

/** The names of all types, sorted; they belong to the registry. Types may be added until the next
 * call. */
struct bw_error *bw_registry_names(struct bw_registry *registry, const struct bw_strings **names);

/* A graph and its layers, opaque to the layers themselves. */

/** A word, NUL-terminated; it can contain any other byte. */
struct bw_word {
    char *text;
    struct bw_text_place at;
};

/** An option and its value. */
struct bw_setting {
    struct bw_word name, value;
};

struct bw_child {
    struct bw_word name;
    struct bw_xlator *layer; /**< NULL until it was validated */
};

struct bw_atomic_counters {
    atomic_uint_fast64_t calls, requests, bytes, errors;
};

BW_VECTOR(bw_children, struct bw_child);

BW_VECTOR(bw_settings, struct bw_setting);

struct bw_xlator {
    struct bw_graph *graph;
    struct bw_word name;
    struct bw_word type_name; /**< text is NULL until it is set */
    struct bw_settings settings;
    struct bw_children children;

    const struct bw_xlator_class *type; /**< this and the next four: zero until validated */
    const char **values;          /**< one for each option of the class, in its order, including
                                   * defaults */
    enum bw_address_space above;  /**< never BW_ADDRESS_ANY */
    unsigned height;              /**< length of the longest path down, including this layer */
    const struct bw_xlator *user; /**< the last layer that has this one as a child */

    bool marked;     /**< temporary, while layers are selected */
    bool started;    /**< init was called */
    char title[288]; /**< as bw_xlator_title() returns it */
    uint64_t size;   /**< set by bw_xlator_set_size() */
    void *state;
    struct bw_atomic_counters counters[BW_REQUEST_KINDS];
};

BW_VECTOR(bw_xlators, struct bw_xlator *);

struct bw_graph {
    struct bw_registry *registry;
    struct bw_reporter reporter;
    struct bw_probes *probes; /**< never NULL */
    struct bw_probes silent;  /**< used unless the caller sets others */
    struct bw_graph_inputs inputs;
    pthread_mutex_t report_lock;
    struct bw_xlators layers;  /**< children before parents; the last one is the top */
    struct bw_strings sources; /**< names of sources of positions */
};

/** Limits of the number of layers in a graph and of its height: each level puts a batch of requests
 * on the stack of a reading thread. */
enum { BW_GRAPH_LAYERS = 4096, BW_GRAPH_HEIGHT = 128 };

/**
 * Creates an empty graph. It owns `registry`, whose types its layers have, even if this fails.
 * Layers report through `reporter`, whose function may be NULL.
 */
struct bw_error *bw_graph_create(struct bw_registry *registry, struct bw_reporter reporter,
                                 struct bw_graph **graph);

/** Ends all layers, parents before children, and frees the graph, which may be NULL. */
void bw_graph_destroy(struct bw_graph *graph);

/** The layer with this name, or NULL. */
struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name);

/* Describing layers. Texts are copied; the source of a position must live as long as the graph, see
 * bw_graph_source(). All functions that return an error may return BW_ERROR_NO_MEMORY. */

/** A copy of `source` that lives as long as the graph; NULL if memory runs out. */
const char *bw_graph_source(struct bw_graph *graph, const char *source);

/** Adds a layer without options and children at position `index` (at most the number of layers).
 * BW_ERROR_USAGE if there are too many. */
struct bw_error *bw_graph_add(struct bw_graph *graph, size_t index, const char *name,
                              struct bw_text_place at, struct bw_xlator **layer);

/** The index of a layer in its graph. */
size_t bw_graph_index(const struct bw_xlator *layer);

/** Removes a layer, ending it first if it was started; no layer may have it as a child. */
void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *layer);

/** Sets the type of a layer. */
struct bw_error *bw_layer_set_type(struct bw_xlator *layer, const char *type,
                                   struct bw_text_place at);
/** Adds an option, or changes its value. */
struct bw_error *bw_layer_set_option(struct bw_xlator *layer, const char *name,
                                     struct bw_text_place name_at, const char *value,
                                     struct bw_text_place value_at);
/** Removes all options. */
void bw_layer_clear_options(struct bw_xlator *layer);
/** The value of an option that was set; otherwise NULL. */
const char *bw_layer_option(const struct bw_xlator *layer, const char *name);
/** Appends a child. */
struct bw_error *bw_layer_add_child(struct bw_xlator *layer, const char *name,
                                    struct bw_text_place at);
/** Appends a validated layer to the children of a validated layer. */
struct bw_error *bw_layer_attach(struct bw_xlator *layer, struct bw_xlator *child);
/** Removes a child from the list of a layer. */
void bw_layer_remove_child(struct bw_xlator *layer, size_t index);

/** Inserts a layer without options above layer `index`: it replaces this layer in all its parents.
 * Its name is "trace@verify", or "trace@verify-2" if that exists. */
struct bw_error *bw_graph_insert_above(struct bw_graph *graph, size_t index, const char *type,
                                       struct bw_text_place at, struct bw_xlator **inserted);

/**
 * "NAME.KEY=VALUE": sets an option. NAME is a layer, a type ("storage/file": all layers of this
 * type), or a shell pattern for names (all that match). BW_ERROR_USAGE if the syntax is wrong or
 * nothing matches.
 */
struct bw_error *bw_graph_edit_option(struct bw_graph *graph, const char *text);

/**
 * "TYPE@NAME[,KEY=VALUE...]": inserts a layer above each one that matches NAME, as above. A
 * backslash escapes a comma or backslash in a value. BW_ERROR_USAGE as above.
 */
struct bw_error *bw_graph_edit_insert(struct bw_graph *graph, const char *text);

/** Maximum size of a volfile, in bytes. */
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
 * White space separates words and means nothing else. A word in double quotes (graph/lexer.h) can
 * hold any byte but NUL, and is never a keyword. Children come before parents; the last volume is
 * the top. BW_ERROR_SYSTEM if the file cannot be read, BW_ERROR_USAGE with the place
 * ("graph.vol:3:12: ...") if it is no volfile; the graph cannot be used then.
 */
struct bw_error *bw_volfile_read(struct bw_graph *graph, const char *path);

/** Parses a volfile in memory; `source` is its name in positions. */
struct bw_error *bw_volfile_parse(struct bw_graph *graph, const char *source, const char *text,
                                  size_t length);

/* Validating and starting. */

/**
 * Validates all layers in one pass: unique names, types, children that precede their parents,
 * options, address spaces, and that all layers but the last are used. BW_ERROR_USAGE with the
 * position of the word. Adds the files that layers read to `inputs`; no option may write to one of
 * these.
 */
struct bw_error *bw_graph_check(struct bw_graph *graph, struct bw_file_set *inputs);

/** A file in an option of a layer; all zeros before the first one. */
struct bw_graph_file {
    const struct bw_xlator *layer;
    const struct bw_option *option;
    const char *path;
    size_t next_layer, next_option; /**< for bw_graph_next_file() */
};

/** Moves to the next file in an option of this type in validated layers: BW_OPTION_PATH, or
 * BW_OPTION_OUTPUT, except stderr. False after the last one. */
bool bw_graph_next_file(const struct bw_graph *graph, enum bw_option_type wanted,
                        struct bw_graph_file *file);

/** Validates a single layer, whose children have been validated, except for the files that it would
 * write. */
struct bw_error *bw_graph_check_layer(struct bw_xlator *layer);

/** Starts (calls `init` of) the layers below a layer, or all layers if `above` is NULL, children
 * first, unless they have been started. They must have been validated. */
struct bw_error *bw_graph_start(struct bw_graph *graph, const struct bw_xlator *above);

/** Starts one layer, whose children have been started, unless it has been started itself. */
struct bw_error *bw_layer_start(struct bw_xlator *layer);

/** Removes the layers that are no longer below the last one. */
void bw_graph_prune(struct bw_graph *graph);

/** The file that a layer reads: its first option of type BW_OPTION_PATH; may be NULL. */
const char *bw_graph_path(const struct bw_xlator *layer);

/** Sends a message to every layer that handles its kind, in the order of the layers, until one
 * returns an error. */
struct bw_error *bw_graph_control(const struct bw_graph *graph, const struct bw_control *control);

/** Passes a message to the graph's reporter, one at a time; consumes the error. */
void bw_graph_report(struct bw_graph *graph, enum bw_severity severity, struct bw_error *error);

/* A graph as text. If memory runs out, the buffer's `failed` is set. */

/** Appends an equivalent volfile: children first, with the values of all options. */
void bw_graph_print(const struct bw_graph *graph, struct bw_buffer *text);

/** Appends a picture in the language of Graphviz: parents above children, with the options that
 * differ from their defaults. */
void bw_graph_print_dot(const struct bw_graph *graph, struct bw_buffer *text);

/** Adds each layer to an open array of a statedump, with its options, state and counters. */
void bw_graph_dump(const struct bw_graph *graph, struct bw_json *json);

/** Writes a row of the record layerinfo for each layer. */
struct bw_error *bw_graph_write_rows(const struct bw_graph *graph, struct bw_rows_stream *stream);

/* Shared by the files of src/graph. */

/** The setting of an option, or NULL. */
struct bw_setting *bw_layer_setting(const struct bw_xlator *layer, const char *name);

/* Options. Values are text, parsed according to the table of the class. */

/** The option with this name, or NULL. */
const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name);

/** BW_ERROR_USAGE if a value is invalid: "option size: '2P' is not a size from 0 to 1T". */
struct bw_error *bw_option_check(const struct bw_option *option, const char *text);

/** Whether a word without quotes would be a keyword of volfiles. */
bool bw_volfile_is_keyword(const char *word);

#endif
