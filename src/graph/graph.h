/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of layers, from the first word about it to its end.
 *
 * A layer is described once, as a struct bw_xlator of its graph. The description comes from a
 * volfile (volfile.c) or from fs/wire.c and may be edited (edit.c). It is then checked against the
 * types of layers (check.c) and started (graph.c), children before parents. Every word of it knows
 * where it was written, so that a refusal can say so. Used by fs/; the layers themselves see
 * btrfs-walk/xlator.h only.
 */
#ifndef BW_GRAPH_GRAPH_H
#define BW_GRAPH_GRAPH_H

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

/* A graph. */

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

/** Sets the probes that its layers fire; before any layer is started. */
void bw_graph_set_probes(struct bw_graph *graph, struct bw_probes *probes);

/** Its probes; never NULL. */
struct bw_probes *bw_graph_probes(struct bw_graph *graph);

/** Number of layers, and the layers in their order: children before parents. */
size_t bw_graph_size(const struct bw_graph *graph);
struct bw_xlator *bw_graph_layer(const struct bw_graph *graph, size_t index);

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

/** Removes a layer, ending it first if it was started; no layer may have it as a child. */
void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *layer);

/** Sets the type of a layer. */
struct bw_error *bw_layer_set_type(struct bw_xlator *layer, const char *type,
                                   struct bw_text_place at);
/** Adds an option, or changes the value of the one of that name. */
struct bw_error *bw_layer_set_option(struct bw_xlator *layer, const char *name,
                                     struct bw_text_place name_at, const char *value,
                                     struct bw_text_place value_at);
/** The value of an option if it was given; otherwise NULL. */
const char *bw_layer_option(const struct bw_xlator *layer, const char *name);
/** Adds a child after those there are. */
struct bw_error *bw_layer_add_child(struct bw_xlator *layer, const char *name,
                                    struct bw_text_place at);
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

/** Checks a single layer, whose children were checked, but for files it would write to. */
struct bw_error *bw_graph_check_layer(struct bw_xlator *layer);

/** Starts (runs `init` of) the layers below a layer, or of the whole graph if that is NULL,
 * children first, unless they run already. They must have been checked. */
struct bw_error *bw_graph_start(struct bw_graph *graph, const struct bw_xlator *above);

/** Removes the layers that are not below the last one any more. */
void bw_graph_prune(struct bw_graph *graph);

/* Checked layers. */

/** The class of a layer. */
const struct bw_xlator_class *bw_layer_class(const struct bw_xlator *layer);

/** What the addresses above a layer mean; never BW_ADDRESS_ANY. */
enum bw_address_space bw_layer_space(const struct bw_xlator *layer);

/** Where its name was written. */
struct bw_text_place bw_layer_place(const struct bw_xlator *layer);

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

#endif
