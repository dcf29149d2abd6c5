/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Curves that fill a square: where the cells of a map lie in a picture. */
#ifndef BW_DRAW_CURVE_H
#define BW_DRAW_CURVE_H

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

#endif
