/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the cells of a map and the boxes of a treemap lie in a picture. */
#ifndef BW_DRAW_LAYOUT_H
#define BW_DRAW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
    BW_CURVE_MOST = 11, /**< highest order: the square has a side of 2^order cells */
};

enum bw_curve {
    BW_CURVE_HILBERT, /**< neighbours stay together; from the lower left to the lower right */
    BW_CURVE_LINEAR,  /**< rows from left to right */
    BW_CURVE_SNAKE,   /**< rows, from left to right and back */
};

struct bw_point {
    uint32_t x, y; /**< from the upper left */
};

/** Where the cell with a number below 4^order lies. */
struct bw_point bw_curve_point(enum bw_curve curve, unsigned order, uint32_t number);

/** Its inverse. */
uint32_t bw_curve_number(enum bw_curve curve, unsigned order, struct bw_point point);

/** The lowest order, up to `highest`, whose square has a cell for each `bytes` of `total`. */
unsigned bw_curve_order(uint64_t total, uint64_t bytes, unsigned highest);

/* Treemaps: the area of a box is proportional to its value. */

struct bw_box {
    double x, y, width, height;
};

/**
 * Cuts a box into as many as there are sizes, each with its share of the area, and as square as can
 * be where the sizes descend. Sizes that are not above 0 get empty boxes. The method is that of
 * Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000: boxes go into a row along the shorter
 * side for as long as that makes the worst of them more square.
 */
void bw_treemap_layout(const double *sizes, size_t count, struct bw_box box, struct bw_box *boxes);

#endif
