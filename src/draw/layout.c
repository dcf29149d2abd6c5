/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Space-filling curves, and the layout of treemaps. */
#include "draw/layout.h"

#include <stdbool.h>

/* The Hilbert curve is computed by quarters, from the largest square to the smallest: two bits of
 * the number select the quarter, and in the first and the last quarter the point is mirrored. */
static uint32_t hilbert_number(unsigned order, struct bw_point point)
{
    uint32_t number = 0;
    point.y = (UINT32_C(1) << order) - 1 - point.y;
    for (unsigned level = order; level-- > 0;) {
        const uint32_t side = UINT32_C(1) << level;
        const uint32_t right = point.x / side, far = point.y / side;
        const uint32_t x = point.x % side, y = point.y % side;
        number = number * 4 + (3 * right ^ far);
        if (far)
            point = (struct bw_point){x, y};
        else if (right)
            point = (struct bw_point){side - 1 - y, side - 1 - x};
        else
            point = (struct bw_point){y, x};
    }
    return number;
}

uint32_t bw_curve_number(enum bw_curve curve, unsigned order, struct bw_point point)
{
    const uint32_t side = UINT32_C(1) << order;
    if (curve == BW_CURVE_HILBERT)
        return hilbert_number(order, point);
    const bool back = curve == BW_CURVE_SNAKE && point.y % 2;
    return point.y * side + (back ? side - 1 - point.x : point.x);
}

unsigned bw_curve_order(uint64_t total, uint64_t bytes, unsigned highest)
{
    unsigned order = 0;
    while (order < highest && total / bytes + (total % bytes != 0) > UINT64_C(1) << 2 * order)
        order++;
    return order;
}

/* The layout of treemaps. */

/* The worst aspect of the boxes in a row along a side, from their total, least and largest area. */
static double worst_aspect(double sum, double least, double most, double side)
{
    const double wide = side * side * most / (sum * sum);
    const double narrow = sum * sum / (side * side * least);
    return wide > narrow ? wide : narrow;
}

void bw_treemap_layout(const double *sizes, size_t count, struct bw_box box, struct bw_box *boxes)
{
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] > 0)
            total += sizes[i];
        boxes[i] = (struct bw_box){box.x, box.y, 0, 0};
    }
    const double scale = total > 0 ? box.width * box.height / total : 0;
    for (size_t first = 0; first < count && scale > 0;) {
        double sum = sizes[first] * scale, least = sum, most = sum;
        size_t end = first + 1;
        if (sizes[first] <= 0) {
            first = end;
            continue;
        }
        const double side = box.width < box.height ? box.width : box.height;
        for (; end < count && sizes[end] > 0; end++) {
            const double more = sizes[end] * scale;
            const double lower = more < least ? more : least;
            const double higher = more > most ? more : most;
            if (worst_aspect(sum + more, lower, higher, side) >
                worst_aspect(sum, least, most, side))
                break;
            sum += more;
            least = lower;
            most = higher;
        }

        /* Place the row along the shorter side of the remaining box, and remove it from the box. */
        const bool upright = box.width >= box.height;
        const double depth = side > 0 ? sum / side : 0;
        double at = upright ? box.y : box.x;
        for (; first < end; first++) {
            const double length = depth > 0 ? sizes[first] * scale / depth : 0;
            if (upright)
                boxes[first] = (struct bw_box){box.x, at, depth, length};
            else
                boxes[first] = (struct bw_box){at, box.y, length, depth};
            at += length;
        }
        double *const begin = upright ? &box.x : &box.y;
        double *const rest = upright ? &box.width : &box.height;
        *begin += depth;
        *rest = *rest > depth ? *rest - depth : 0;
    }
}
