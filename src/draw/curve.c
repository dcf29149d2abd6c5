/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Curves. The Hilbert curve is cut into quarters from the smallest square to the largest: two bits
 * of a number say which quarter, and the first and the last quarter are mirrored. */
#include "draw/curve.h"

#include <stdbool.h>

/* Turns a square of a side into the direction that it has in its quarter. */
static void turn(struct bw_point *point, uint32_t side, uint32_t right, uint32_t far)
{
    const struct bw_point was = *point;
    if (far)
        return;
    *point = right ? (struct bw_point){side - 1 - was.y, side - 1 - was.x}
                   : (struct bw_point){was.y, was.x};
}

static struct bw_point hilbert_point(unsigned order, uint32_t number)
{
    struct bw_point point = {0, 0};
    for (unsigned level = 0; level < order; level++, number /= 4) {
        const uint32_t side = UINT32_C(1) << level;
        const uint32_t right = number / 2 & 1, far = (number ^ right) & 1;
        turn(&point, side, right, far);
        point.x += right * side;
        point.y += far * side;
    }
    point.y = (UINT32_C(1) << order) - 1 - point.y;
    return point;
}

static uint32_t hilbert_number(unsigned order, struct bw_point point)
{
    uint32_t number = 0;
    point.y = (UINT32_C(1) << order) - 1 - point.y;
    for (unsigned level = order; level-- > 0;) {
        const uint32_t side = UINT32_C(1) << level;
        const uint32_t right = point.x / side, far = point.y / side;
        number = number * 4 + (3 * right ^ far);
        point.x %= side;
        point.y %= side;
        turn(&point, side, right, far);
    }
    return number;
}

struct bw_point bw_curve_point(enum bw_curve curve, unsigned order, uint32_t number)
{
    const uint32_t side = UINT32_C(1) << order;
    const struct bw_point point = {number % side, number / side};
    if (curve == BW_CURVE_HILBERT)
        return hilbert_point(order, number);
    const bool back = curve == BW_CURVE_SNAKE && point.y % 2;
    return (struct bw_point){back ? side - 1 - point.x : point.x, point.y};
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
