/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pictures as text: the upper half of a block has the colour of one cell, and what is behind it
 * that of the cell below. Without colours, a letter stands for a type, and the other scales are
 * digits. */
#include "draw/picture.h"

static const struct bw_color ground = {0x1c, 0x21, 0x28};

/* The nearest colour of the cube of 256 colours. */
static unsigned cube_color(struct bw_color color)
{
    return 16 + 36 * ((color.red * 5u + 127) / 255) + 6 * ((color.green * 5u + 127) / 255) +
           (color.blue * 5u + 127) / 255;
}

/* 38: of the letter, 48: behind it. */
static void append_color(struct bw_buffer *text, enum bw_terminal_colors colors, unsigned what,
                         struct bw_color color)
{
    if (colors == BW_TERMINAL_TRUE)
        bw_buffer_format(text, "\033[%u;2;%u;%u;%um", what, color.red, color.green, color.blue);
    else
        bw_buffer_format(text, "\033[%u;5;%um", what, cube_color(color));
}

static bool same(struct bw_color a, struct bw_color b)
{
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

static void append_colored(struct bw_buffer *text, const struct bw_picture *picture, size_t area,
                           enum bw_terminal_colors colors)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    for (uint32_t y = 0; y < side; y += 2) {
        struct bw_color above = {0}, below = {0};
        for (uint32_t x = 0; x < side; x++) {
            const struct bw_color first =
                bw_picture_color(picture, area, (struct bw_point){x, y}, ground);
            const struct bw_color second =
                y + 1 < side ? bw_picture_color(picture, area, (struct bw_point){x, y + 1}, ground)
                             : first;
            if (!x || !same(first, above))
                append_color(text, colors, 38, first);
            if (!x || !same(second, below))
                append_color(text, colors, 48, second);
            bw_buffer_format(text, "\u2580");
            above = first;
            below = second;
        }
        bw_buffer_format(text, "\033[0m\n");
    }
}

static bool shows_types(const struct bw_picture *picture)
{
    return picture->by == BW_DRAW_TYPE || picture->by == BW_DRAW_HEATMAP;
}

/* D and d: data, of which half is used, or less. */
static char letter_of(const struct bw_picture *picture, struct bw_point point, size_t area)
{
    static const char full[] = "DMSX", part[] = "dmsx", scale[] = "0123456789abcdef";
    const struct bw_space_cell cell = bw_space_map_cell(
        picture->map, area, bw_curve_number(picture->curve, picture->order, point));
    const struct bw_paint paint = bw_picture_paint(picture, &cell);
    if (!paint.opacity)
        return '.';
    if (!shows_types(picture))
        return scale[paint.color];
    return (cell.used > cell.allocated[paint.color] / 2 ? full : part)[paint.color];
}

static void append_plain(struct bw_buffer *text, const struct bw_picture *picture, size_t area)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++)
            bw_buffer_append_byte(text, letter_of(picture, (struct bw_point){x, y}, area));
        bw_buffer_append_byte(text, '\n');
    }
}

static void append_legend(struct bw_buffer *text, const struct bw_picture *picture,
                          enum bw_terminal_colors colors)
{
    for (unsigned i = 0; i < picture->color_count; i++) {
        if (!picture->in_legend[i])
            continue;
        if (colors == BW_TERMINAL_PLAIN) {
            bw_buffer_append_byte(text, (shows_types(picture) ? "DMSX" : "0123456789abcdef")[i]);
        } else {
            append_color(text, colors, 38, picture->colors[i]);
            bw_buffer_format(text, "\u2588\u2588\033[0m");
        }
        bw_buffer_format(text, " %s\n", picture->labels[i]);
    }
}

void bw_picture_terminal(struct bw_buffer *text, const struct bw_picture *picture,
                         enum bw_terminal_colors colors)
{
    for (size_t area = 0; area < picture->info->area_count; area++) {
        bw_picture_caption(text, picture, area);
        bw_buffer_append_byte(text, '\n');
        if (colors == BW_TERMINAL_PLAIN)
            append_plain(text, picture, area);
        else
            append_colored(text, picture, area, colors);
    }
    append_legend(text, picture, colors);
}
