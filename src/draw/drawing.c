/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a file system to a picture in some format. A map of the space has as many cells as the
 * picture; they are arranged along a curve and coloured.
 */
#include "base/cleanup.h"
#include "base/generated.h"
#include "draw/picture.h"

/* The number of cells is 4^order. */
static unsigned choose_order(const struct bw_drawing *drawing, uint64_t bytes)
{
    enum { SMALL = 16 << 10, HEATMAP = 32 << 20, HEATMAP_MOST = 10, SVG_ORDER = 6, PNG_ORDER = 8 };
    if (drawing->has_order)
        return (unsigned)drawing->order;
    if (drawing->by == BW_DRAW_HEATMAP)
        return bw_curve_order(
            bytes, HEATMAP, drawing->size < HEATMAP_MOST ? (unsigned)drawing->size : HEATMAP_MOST);
    if (drawing->format != BW_DRAW_TEXT)
        return bw_curve_order(bytes, SMALL, drawing->format == BW_DRAW_SVG ? SVG_ORDER : PNG_ORDER);

    /* The largest order that fits into the window together with the legend. */
    enum { LEGEND = 7, SHORT_LEGEND = 5, MOST = 8 };
    const bool is_small = drawing->columns < 8 || drawing->lines < 4 + SHORT_LEGEND;
    unsigned order = is_small ? 2 : 3;
    while (order < MOST && 2u << order <= drawing->columns &&
           (1u << order) + LEGEND <= drawing->lines)
        order++;
    return order;
}

struct bw_error *bw_draw(struct bw_fs *fs, const struct bw_drawing *drawing, struct bw_buffer *text)
{
    enum { MOST_DEVICES = 64 };
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    uint64_t total = 0, largest = 0; /* sizes of devices */
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const uint64_t size = devices.items[i].total_bytes;
        total += size;
        largest = size > largest ? size : largest;
    }

    /* Devices are separate squares, unless there are very many of them. */
    const bool is_heatmap = drawing->by == BW_DRAW_HEATMAP;
    const bool together =
        is_heatmap || drawing->order_of_space == BW_SPACE_LOGICAL || devices.count > MOST_DEVICES;
    const bool apart = drawing->devid || !together;
    const unsigned order = choose_order(drawing, apart ? largest : total);
    const struct bw_space_map_options wanted = {
        .struct_size = sizeof wanted,
        .order = drawing->order_of_space,
        .detail = is_heatmap ? BW_SPACE_CHUNKS : BW_SPACE_EXTENTS,
        .cells = (size_t)1 << 2 * order,
        .by_device = apart,
        .devid = drawing->devid,
    };
    struct bw_space_map *map;
    struct bw_picture picture;
    BW_TRY(bw_space_map_open(fs, &wanted, &map));
    struct bw_error *error =
        bw_picture_make(fs, map, drawing->by, (enum bw_curve)drawing->curve, &picture);
    if (!error && drawing->format == BW_DRAW_SVG)
        bw_picture_svg(text, &picture);
    else if (!error && drawing->format == BW_DRAW_TEXT)
        bw_picture_terminal(text, &picture, drawing->colors);
    else if (!error)
        error = bw_picture_png(text, &picture, (unsigned)drawing->size);
    bw_space_map_close(map);
    return error;
}
