/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Positions of the cells of a map, and of the boxes of a treemap. */
#ifndef BW_DRAW_LAYOUT_H
#define BW_DRAW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
    BW_CURVE_MOST = 11, /**< highest order; a square has 2^order cells per side */
};

enum bw_curve {
    BW_CURVE_HILBERT, /**< neighbours stay close; from the lower left to the lower right */
    BW_CURVE_LINEAR,  /**< rows from left to right */
    BW_CURVE_SNAKE,   /**< rows, alternating between left to right and right to left */
};

struct bw_point {
    uint32_t x, y; /**< from the upper left corner */
};

/** The number of the cell at a position. */
uint32_t bw_curve_number(enum bw_curve curve, unsigned order, struct bw_point point);

/** The lowest order, at most `highest`, whose square has a cell for each `bytes` of `total`. */
unsigned bw_curve_order(uint64_t total, uint64_t bytes, unsigned highest);

/* Treemaps: the area of a box is proportional to its value. */

struct bw_box {
    double x, y, width, height;
};

/**
 * Divides a box into boxes whose areas are proportional to the sizes. If the sizes descend, the
 * boxes are nearly square. Sizes that are not positive get empty boxes. This is the method of
 * Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000: boxes are added to a row along the
 * shorter side as long as this improves the worst aspect ratio.
 */
void bw_treemap_layout(const double *sizes, size_t count, struct bw_box box, struct bw_box *boxes);

#endif
