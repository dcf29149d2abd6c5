/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of text: cells in aligned columns. */
#ifndef BW_BASE_TABLE_H
#define BW_BASE_TABLE_H

#include "base/buffer.h"

/** A column. bw_table_append() measures its width, so it begins as zero. */
struct bw_table_column {
    size_t width;
    bool right; /**< align right, for numbers */
};

/** Appends lines whose cells are separated by tabs, with aligned columns two spaces apart. Cells
 * contain no line feeds. There are at least as many columns as cells in any line. */
void bw_table_append(struct bw_buffer *text, const struct bw_buffer *cells,
                     struct bw_table_column *columns);

#endif
