/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a layer and of a graph; private to src/graph. */
#ifndef BW_GRAPH_INSTANCE_H
#define BW_GRAPH_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/graph.h"

struct bw_atomic_counters {
    atomic_uint_fast64_t calls, requests, bytes, errors;
};

struct bw_xlator {
    const struct bw_xlator_class *type;
    struct bw_standing standing;
    struct bw_graph *graph;
    char *name;
    char **values; /**< one per option of the class, in its order */
    struct bw_xlator **children;
    size_t child_count;
    void *state;
    struct bw_atomic_counters counters[BW_REQUEST_KINDS];
};

struct bw_graph {
    struct bw_registry *registry;
    struct bw_reporter reporter;
    struct bw_probes *probes; /* never NULL */
    struct bw_probes silent;  /* those, unless others are given */
    pthread_mutex_t report_lock;
    struct bw_xlator **layers;
    size_t size;
};

/** Fills `xlator->values` with what is given (and was checked), and the defaults. */
struct bw_error *bw_options_apply(struct bw_xlator *xlator, const struct bw_option_value *given);
/** Frees `xlator->values`. */
void bw_options_free(struct bw_xlator *xlator);

#endif
