/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The layout of treemaps. */
#include "draw/treemap.h"

#include <stdbool.h>

/* A row that is being filled: areas along a side. */
struct row {
    double sum, least, most;
};

static struct row with(struct row row, double area)
{
    return (struct row){row.sum + area, area < row.least ? area : row.least,
                        area > row.most ? area : row.most};
}

/* The longer side of the least square box by its shorter one. */
static double worst(const struct row *row, double side)
{
    const double wide = side * side * row->most / (row->sum * row->sum);
    const double narrow = row->sum * row->sum / (side * side * row->least);
    return wide > narrow ? wide : narrow;
}

/* Lays a row along the shorter side, and takes it off the box. */
static void place(const double *sizes, size_t count, double scale, const struct row *row,
                  struct bw_box *left, struct bw_box *boxes)
{
    const bool upright = left->width >= left->height;
    const double side = upright ? left->height : left->width;
    const double depth = side > 0 ? row->sum / side : 0;
    double at = upright ? left->y : left->x;
    for (size_t i = 0; i < count; i++) {
        const double length = depth > 0 ? sizes[i] * scale / depth : 0;
        boxes[i] = upright ? (struct bw_box){left->x, at, depth, length}
                           : (struct bw_box){at, left->y, length, depth};
        at += length;
    }
    if (upright) {
        left->x += depth;
        left->width = left->width > depth ? left->width - depth : 0;
    } else {
        left->y += depth;
        left->height = left->height > depth ? left->height - depth : 0;
    }
}

void bw_treemap_layout(const double *sizes, size_t count, struct bw_box box, struct bw_box *boxes)
{
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        total += sizes[i] > 0 ? sizes[i] : 0;
        boxes[i] = (struct bw_box){box.x, box.y, 0, 0};
    }
    const double scale = total > 0 ? box.width * box.height / total : 0;
    for (size_t first = 0; first < count && scale > 0;) {
        const double area = sizes[first] * scale;
        struct row row = {area, area, area};
        size_t end = first + 1;
        if (sizes[first] <= 0) {
            first = end;
            continue;
        }
        const double side = box.width < box.height ? box.width : box.height;
        for (; end < count && sizes[end] > 0; end++) {
            const struct row next = with(row, sizes[end] * scale);
            if (worst(&next, side) > worst(&row, side))
                break;
            row = next;
        }
        place(sizes + first, end - first, scale, &row, &box, boxes + first);
        first = end;
    }
}
