/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page of a layer on a terminal, made from its class: description, prose, place in the graph
 * and options. For `btrfs-walk xlators TYPE`; scripts/make-docs makes the pages in docs/xlators and
 * in the manual.
 */
#ifndef BW_CLI_GRAPH_PAGE_H
#define BW_CLI_GRAPH_PAGE_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/graph.h"

/** Appends the page of a layer. */
void page_append(struct bw_buffer *text, const struct bw_xlator_class *type);

/** Appends sentences about where in a graph the layer can be. */
void page_append_place(struct bw_buffer *text, const struct bw_xlator_class *type);

/** Appends words, wrapped to lines of at most `width` columns. The first line begins at column
 * `indent`; the others are indented by `indent` spaces. The last line has no newline. */
void page_append_words(struct bw_buffer *text, const char *words, size_t length, size_t indent,
                       size_t width);

/** The names of all types of layers, sorted, which are valid until the registry is closed. */
struct bw_error *page_types(struct bw_registry *registry, struct bw_const_strings *names);

#endif
