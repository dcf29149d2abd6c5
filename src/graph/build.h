/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a plan that was checked to layers. It goes in two steps, since fs/wire.c has to look at the
 * devices before it knows which of them belong together.
 */
#ifndef BW_GRAPH_BUILD_H
#define BW_GRAPH_BUILD_H

#include "graph/graph.h"
#include "graph/plan.h"

/** Makes the volumes below volume `index`, children first; those that are there already stay. */
struct bw_error *bw_graph_build_below(struct bw_graph *graph, const struct bw_plan *plan,
                                      size_t index);

/** Makes all volumes that are not there yet. */
struct bw_error *bw_graph_build(struct bw_graph *graph, const struct bw_plan *plan);

/** Takes out, from plan and graph, every volume before `index` that no other volume uses. */
void bw_graph_prune(struct bw_graph *graph, struct bw_plan *plan, size_t index);

#endif
