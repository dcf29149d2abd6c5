/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms as a picture: a row of bars each, one below the other. */
#ifndef BW_DRAW_HISTOGRAM_H
#define BW_DRAW_HISTOGRAM_H

#include "base/buffer.h"

enum { BW_HISTOGRAM_LABEL = 64 /**< bytes of a label with its NUL */ };

/** A bar. Labels are plain text, safe to print. */
struct bw_bar {
    char name[BW_HISTOGRAM_LABEL], text[BW_HISTOGRAM_LABEL]; /**< before it; after it */
    uint64_t value;                                          /**< its length, in any unit */
};

struct bw_histogram {
    const char *title;
    const struct bw_bar *bars; /**< from top to bottom */
    size_t count;
};

/** Appends an SVG document with histograms; the longest bar of each is as long as the others'. */
void bw_histograms_svg(struct bw_buffer *text, const char *title,
                       const struct bw_histogram *histograms, size_t count);

#endif
