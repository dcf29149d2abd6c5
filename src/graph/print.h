/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A graph as text: as a volfile, which graph/volfile.c reads again, and as a picture for Graphviz.
 * Both end with a newline. Memory that runs out is told by the buffer's `failed`.
 */
#ifndef BW_GRAPH_PRINT_H
#define BW_GRAPH_PRINT_H

#include "base/buffer.h"
#include "graph/graph.h"

/** Appends a volfile that makes the same graph: children first, with all options in force. */
void bw_graph_print(const struct bw_graph *graph, struct bw_buffer *text);

/** Appends a picture in the language of Graphviz: parents above children, with what was set by the
 * user. */
void bw_graph_print_dot(const struct bw_graph *graph, struct bw_buffer *text);

#endif
