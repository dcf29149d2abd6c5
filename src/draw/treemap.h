/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Treemaps: boxes with the area of what they stand for. */
#ifndef BW_DRAW_TREEMAP_H
#define BW_DRAW_TREEMAP_H

#include <stddef.h>

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
