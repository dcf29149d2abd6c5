/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page of a layer as a terminal shows it, made from the layer's class: description, prose,
 * place in the graph and options. Used by `btrfs-walk xlators TYPE`. The pages in docs/xlators and
 * in the manual are made by scripts/make-docs.
 */
#ifndef BW_CMD_PAGE_H
#define BW_CMD_PAGE_H

#include "base/buffer.h"
#include "btrfs-walk/xlator.h"

/** Appends the page of a layer. */
void page_append(struct bw_buffer *text, const struct bw_xlator_class *type);

/** Appends one sentence or more that say where in a graph the layer can stand. */
void page_append_place(struct bw_buffer *text, const struct bw_xlator_class *type);

/** Appends words, wrapped to lines of at most `width` columns. The first line continues at column
 * `indent`; the others are indented by as many spaces. No newline at the end. */
void page_append_words(struct bw_buffer *text, const char *words, size_t length, size_t indent,
                       size_t width);

#endif
