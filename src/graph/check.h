/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What makes sense in a graph: one layer against its class and its children, and a whole plan.
 * Nothing is made here; graph/build.c and bw_graph_add() make only what has passed.
 */
#ifndef BW_GRAPH_CHECK_H
#define BW_GRAPH_CHECK_H

#include "base/file_set.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "graph/registry.h"

/** Which word of a layer a refusal is about. */
struct bw_fault {
    enum { BW_FAULT_NAME, BW_FAULT_TYPE, BW_FAULT_OPTION, BW_FAULT_VALUE, BW_FAULT_CHILD } word;
    size_t index; /**< of the option or the child */
};

/** Every layer puts a batch on the stack of the thread that reads. */
enum { BW_GRAPH_HEIGHT = 128 };

/** A child as its parent sees it. */
struct bw_child {
    const char *name;
    struct bw_standing standing;
};

/**
 * Checks options, number of children and address spaces. BW_ERROR_USAGE, naming the layer; `fault`
 * (may be NULL) then tells the word. On success `*standing` is where the layer stands.
 */
struct bw_error *bw_check_layer(const struct bw_xlator_class *type, const struct bw_layer *layer,
                                const struct bw_child *children, struct bw_standing *standing,
                                struct bw_fault *fault);

/**
 * Checks a whole plan, layer by layer: types, options, children that are defined before they are
 * used, no cycle, names that are unique, volumes that are all used but the last. Every refusal says
 * where the word stands. The files that are read are added to `inputs`; no option may write to one
 * that is in there.
 */
struct bw_error *bw_check_plan(const struct bw_plan *plan, struct bw_registry *registry,
                               struct bw_file_set *inputs);

#endif
