/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A graph of layers: made child first, checked as it grows, taken down top first. Owns its layers.
 * Used by graph/build and fs/wire; the layers themselves only see include/btrfs-walk/xlator.h.
 */
#ifndef BW_GRAPH_GRAPH_H
#define BW_GRAPH_GRAPH_H

#include "btrfs-walk/xlator.h"
#include "graph/registry.h"
#include "graph/wind.h"

/** An option as given by the user or by the default graph. */
struct bw_option_value {
    const char *name;
    const char *value;
};

/**
 * Makes an empty graph that knows the layer types of `registry`, and takes it over. Layers report
 * through `reporter`, which may have a NULL function. A failure frees the registry.
 */
struct bw_error *bw_graph_create(struct bw_registry *registry, struct bw_reporter reporter,
                                 struct bw_graph **graph);

/** Sets the probes that its layers fire, before there are any; until then nobody watches them. */
void bw_graph_set_probes(struct bw_graph *graph, struct bw_probes *probes);

/** Its probes; never NULL. */
struct bw_probes *bw_graph_probes(struct bw_graph *graph);

/** The registry of its types. */
struct bw_registry *bw_graph_registry(const struct bw_graph *graph);

/** Takes down all layers, newest first, and frees the graph; NULL is allowed. */
void bw_graph_destroy(struct bw_graph *graph);

/** Where a layer stands in its graph. */
struct bw_standing {
    enum bw_address_space above; /**< never BW_ADDRESS_ANY: what it means here */
    unsigned height;             /**< layers on the longest way down, itself included */
};

/** What a layer is made of. */
struct bw_layer {
    const char *type;                      /**< "category/name" */
    const char *name;                      /**< unique in the graph */
    const struct bw_option_value *options; /**< ends with a NULL name; NULL: defaults only */
    struct bw_xlator *const *children;
    size_t child_count;
};

/**
 * Adds a layer and runs its init. Refused (BW_ERROR_USAGE, naming the layer): an unknown type or
 * option, a bad value, a wrong number of children, a child whose address space does not fit, a name
 * that is taken.
 */
struct bw_error *bw_graph_add(struct bw_graph *graph, const struct bw_layer *layer,
                              struct bw_xlator **xlator);

/** Takes one layer out of the graph; it must be nobody's child. */
void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *xlator);

/** Number of layers, and the layers in the order they were added (children before parents). */
size_t bw_graph_size(const struct bw_graph *graph);
struct bw_xlator *bw_graph_layer(const struct bw_graph *graph, size_t index);

/** The layer of that name; NULL if there is none. */
struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name);

/** The file a layer reads: its first option of type BW_OPTION_PATH. NULL if it has none. */
const char *bw_graph_path(const struct bw_xlator *xlator);

/** Where a layer stands. */
struct bw_standing bw_graph_standing(const struct bw_xlator *xlator);

/** Gives a message to every layer that takes its kind, in the order of the layers, until one
 * returns an error. */
struct bw_error *bw_graph_control(const struct bw_graph *graph, const struct bw_control *control);

/** Adds to an open array of a statedump: each layer with its options, state and counters. */
void bw_graph_dump(const struct bw_graph *graph, struct bw_json *json);

/** Delivers a message to the graph's reporter, one at a time; takes the error. */
void bw_graph_report(struct bw_graph *graph, enum bw_severity severity, struct bw_error *error);

#endif
