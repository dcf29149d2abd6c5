/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures as SVG, as pixels and PNG (by libpng), and as coloured text.
 *
 * An area of an SVG is a square of cells, one unit each, scaled to a fixed size. Cells of the same
 * colour and opacity are one path of horizontal lines, because an element for each cell would make
 * files of several MiB.
 */
#include "draw/picture.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "draw/markup.h"

enum {
    LEVELS = 16, /* of opacity */
    SIDE = 384,  /* of an area */
    MARGIN = 24,
    LINE = 22, /* height of a line of the legend */
    SWATCH = 14,
    ABOVE = 4,
};

/* The gap between areas, which contains a caption. It grows with the number of areas, because the
 * whole drawing is scaled to fit. */
static unsigned gap_of(const struct bw_picture *picture)
{
    return 12 + 12 * bw_picture_columns(picture);
}

static void append_hex(struct bw_buffer *text, struct bw_color color)
{
    bw_buffer_format(text, "#%02x%02x%02x", color.red, color.green, color.blue);
}

/* Appends all horizontal lines of cells with this key. */
static void append_path(struct bw_buffer *text, const struct bw_picture *picture,
                        const uint8_t *keys, uint8_t key)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    bw_buffer_format(text, "<path stroke=\"");
    append_hex(text, picture->colors[key / LEVELS]);
    if (key % LEVELS < LEVELS - 1)
        bw_buffer_format(text, "\" opacity=\".%03u", key % LEVELS * 1000u / (LEVELS - 1));
    bw_buffer_format(text, "\" d=\"");
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side;) {
            uint32_t end = x;
            while (end < side && keys[y * side + end] == key)
                end++;
            if (end > x)
                bw_buffer_format(text, "M%u %uh%u", x, y, end - x);
            x = end + (end == x);
        }
    bw_buffer_format(text, "\"/>\n");
}

/* Appends the cells of an area. A cell's key combines its colour and its opacity; opacity 0 is an
 * empty cell. */
static void append_cells(struct bw_buffer *text, const struct bw_picture *picture, size_t area)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    BW_AUTO_FREE uint8_t *keys = calloc(side, side);
    bool present[256] = {false};
    if (!keys) {
        text->failed = true;
        return;
    }
    for (uint32_t i = 0; i < side * side; i++) {
        const struct bw_point point = {i % side, i / side};
        const struct bw_space_cell cell = bw_space_map_cell(
            picture->map, area, bw_curve_number(picture->curve, picture->order, point));
        const struct bw_paint paint = bw_picture_paint(picture, &cell);
        unsigned level = (paint.opacity + 8u) / 17;
        if (!level && paint.opacity)
            level = 1;
        keys[i] = (uint8_t)(paint.color * LEVELS + level);
        present[keys[i]] = true;
    }
    for (unsigned key = 0; key < sizeof present; key++)
        if (present[key] && key % LEVELS)
            append_path(text, picture, keys, (uint8_t)key);
}

static void append_area(struct bw_buffer *text, const struct bw_picture *picture, size_t area,
                        unsigned left, unsigned top)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    bw_buffer_format(text,
                     "<g transform=\"translate(%u %u)\"><rect class=\"ground\" width=\"%d\" "
                     "height=\"%d\"%s/>\n<g transform=\"scale(%.7g) translate(0 .5)\" "
                     "stroke-width=\"1\" shape-rendering=\"crispEdges\">\n",
                     left, top, SIDE, SIDE,
                     picture->by == BW_DRAW_HEATMAP ? " style=\"fill:#000\"" : "",
                     (double)SIDE / side);
    append_cells(text, picture, area);
    bw_buffer_format(text, "</g>");
    if (bw_picture_is_missing(picture, area)) { /* diagonal lines */
        const unsigned lines = 16;
        bw_buffer_format(text, "<path fill=\"none\" stroke=\"#8a8f98\" stroke-width=\"%.3g\" d=\"",
                         SIDE / (lines * 4.0));
        for (unsigned i = 1; i < 2 * lines; i++) {
            const unsigned at = i * SIDE / lines;
            const unsigned from = at > SIDE ? at - SIDE : 0;
            const unsigned to = at < SIDE ? at : SIDE;
            bw_buffer_format(text, "M%u %uL%u %u", from, to, to, from);
        }
        bw_buffer_format(text, "\"/>\n");
    }

    /* The caption has letters small enough that it is not wider than the area. A letter is about
     * 0.6 of its height wide. */
    struct bw_buffer BW_AUTO_BUFFER caption = {0};
    bw_picture_caption(&caption, picture, area);
    text->failed |= caption.failed;
    const unsigned gap = gap_of(picture), length = (unsigned)caption.length + 1;
    const unsigned widest = SIDE * 10 / (6 * length);
    bw_buffer_format(text, "<text y=\"%u\" font-size=\"%u\">", SIDE + gap * 2 / 3,
                     gap / 2 < widest ? gap / 2 : widest);
    bw_buffer_append(text, caption.data, caption.length);
    bw_buffer_format(text, "</text></g>\n");
}

/* Legends. */

enum swatch { SWATCH_COLOR, SWATCH_UNUSED, SWATCH_GROUND, SWATCH_MISSING };

struct legend_item {
    enum swatch swatch;
    struct bw_color color; /* of SWATCH_COLOR */
    const char *label;
};

/* The next item of the legend, at or after `*position`, which begins with 0; false after the last.
 */
static bool next_item(const struct bw_picture *picture, size_t *position, struct legend_item *item)
{
    const char *const missing = picture->missing_count ? "crossed out: a missing device" : "";
    const struct legend_item others[] = {{SWATCH_UNUSED, {0}, picture->unused},
                                         {SWATCH_GROUND, {0}, picture->unallocated},
                                         {SWATCH_MISSING, {0}, missing}};
    const size_t colors = picture->color_count, end = colors + sizeof others / sizeof *others;
    while (*position < end) {
        const size_t i = (*position)++;
        if (i < colors && picture->in_legend[i]) {
            *item = (struct legend_item){SWATCH_COLOR, picture->colors[i], picture->labels[i]};
            return true;
        }
        if (i >= colors && *others[i - colors].label) {
            *item = others[i - colors];
            return true;
        }
    }
    return false;
}

static void append_swatch(struct bw_buffer *text, const struct bw_picture *picture,
                          const struct legend_item *item, unsigned top)
{
    if (item->swatch == SWATCH_COLOR) {
        bw_buffer_format(text, "<rect y=\"%u\" width=\"%d\" height=\"%d\" rx=\"2\" fill=\"", top,
                         SWATCH, SWATCH);
        append_hex(text, item->color);
        bw_buffer_format(text, "\" stroke=\"#8a8f98\" stroke-width=\".5\"/>");
        return;
    }
    bw_buffer_format(text,
                     "<rect class=\"ground\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"2\" "
                     "stroke=\"#8a8f98\" stroke-width=\".5\"/>",
                     top, SWATCH, SWATCH);
    if (item->swatch == SWATCH_UNUSED) {
        bw_buffer_format(text,
                         "<rect y=\"%u\" width=\"%d\" height=\"%d\" rx=\"2\" "
                         "opacity=\".%03u\" fill=\"",
                         top, SWATCH, SWATCH, picture->unused_paint.opacity * 1000u / 255);
        append_hex(text, picture->colors[picture->unused_paint.color]);
        bw_buffer_format(text, "\"/>");
    } else if (item->swatch == SWATCH_MISSING) {
        bw_buffer_format(text, "<path stroke=\"#8a8f98\" d=\"M0 %uL%d %uM0 %uL%d %u\"/>",
                         top + SWATCH / 2, SWATCH / 2, top, top + SWATCH, SWATCH, top);
    }
}

static void append_head(struct bw_buffer *text, const struct bw_picture *picture, bool standalone,
                        const char *name)
{
    static const char *const titles[] = {
        [BW_DRAW_TYPE] = "Space by type and fill",
        [BW_DRAW_FILL] = "Space by fill",
        [BW_DRAW_AGE] = "Space by age",
        [BW_DRAW_OWNER] = "Space by subvolume",
        [BW_DRAW_HEATMAP] = "Chunks by type and fill",
    };
    const unsigned columns = bw_picture_columns(picture);
    const unsigned rows = ((unsigned)picture->info->area_count + columns - 1) / columns;
    const unsigned margin = standalone ? MARGIN : 0, gap = gap_of(picture);
    const unsigned width = columns * (SIDE + gap) - gap;
    unsigned height = ABOVE + rows * (SIDE + gap);
    struct legend_item item;
    for (size_t position = 0; standalone && next_item(picture, &position, &item);)
        height += LINE;
    bw_buffer_format(text,
                     "<svg%s viewBox=\"%d %d %u %u\" role=\"img\" "
                     "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">%s"
                     "</title>\n<desc id=\"%s-desc\">",
                     standalone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "", -(int)margin,
                     -(int)margin, width + 2 * margin, height + 2 * margin, name, name, name,
                     titles[picture->by], name);
    struct bw_buffer BW_AUTO_BUFFER summary = {0};
    bw_picture_summary(&summary, picture);
    bw_markup_text(text, summary.data, summary.length);
    bw_buffer_format(text, "</desc>\n");
}

void bw_picture_svg(struct bw_buffer *text, const struct bw_picture *picture, bool standalone,
                    const char *name)
{
    const unsigned columns = bw_picture_columns(picture);
    const unsigned count = (unsigned)picture->info->area_count;
    const unsigned gap = gap_of(picture);
    append_head(text, picture, standalone, name);
    if (standalone) /* a page has one style for all pictures */
        bw_buffer_format(
            text, "<style>svg{background:#fff;color:#1f2328}text{font-family:system-ui,sans-serif;"
                  "fill:currentColor}.ground{fill:#e8ebef}@media(prefers-color-scheme:dark){"
                  "svg{background:#0d1117;color:#e6edf3}.ground{fill:#1c2128}}</style>\n");
    for (unsigned area = 0; area < count; area++)
        append_area(text, picture, area, area % columns * (SIDE + gap),
                    area / columns * (SIDE + gap));

    /* The legend: of a standalone document below the areas; in a page next to the picture or below
     * it, depending on the width. */
    struct legend_item item;
    if (standalone) {
        unsigned top = ABOVE + (count + columns - 1) / columns * (SIDE + gap);
        for (size_t position = 0; next_item(picture, &position, &item); top += LINE) {
            append_swatch(text, picture, &item, top);
            bw_buffer_format(text, "<text x=\"%d\" y=\"%u\" font-size=\"13\">", SWATCH + 8,
                             top + SWATCH - 2);
            bw_markup_text(text, item.label, strlen(item.label));
            bw_buffer_format(text, "</text>\n");
        }
        bw_buffer_format(text, "</svg>\n");
        return;
    }
    bw_buffer_format(text, "</svg>\n<ul class=\"legend\">\n");
    for (size_t position = 0; next_item(picture, &position, &item);) {
        bw_buffer_format(text, "<li><svg viewBox=\"0 0 %d %d\" aria-hidden=\"true\">", SWATCH,
                         SWATCH);
        append_swatch(text, picture, &item, 0);
        bw_buffer_format(text, "</svg>");
        bw_markup_text(text, item.label, strlen(item.label));
        bw_buffer_format(text, "</li>\n");
    }
    bw_buffer_format(text, "</ul>\n");
}

/* Pictures as pixels, and as PNG files, written by libpng. */

#ifdef BW_PNG
#include <png.h>

struct bw_error *bw_raster_png(struct bw_buffer *image, const struct bw_raster *raster)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = raster->width,
                     .height = raster->height,
                     .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    if (!bw_buffer_reserve(image, size))
        return bw_error_no_memory();
    if (!png_image_write_to_memory(&png, image->data + image->length, &size, 0, raster->pixels, 0,
                                   NULL))
        return bw_error_create(BW_ERROR_SYSTEM, "cannot make a PNG: %s", png.message);
    image->length += size;
    return NULL;
}
#else
struct bw_error *bw_raster_png(struct bw_buffer *image, const struct bw_raster *raster)
{
    (void)image;
    (void)raster;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "this was built without libpng; pictures can be written as SVG");
}
#endif

/* The pixels of a picture: areas next to each other, with gaps between them. */

enum { MOST_PIXELS = 1 << 26, GAP_SHIFT = 5 };

static const struct bw_color dark = {0x16, 0x1b, 0x22}, page = {0x0d, 0x11, 0x17};

static void set_pixel(const struct bw_raster *raster, uint32_t x, uint32_t y, struct bw_color color)
{
    uint8_t *pixel = raster->pixels + 3 * ((size_t)y * raster->width + x);
    pixel[0] = color.red;
    pixel[1] = color.green;
    pixel[2] = color.blue;
}

struct bw_error *bw_picture_raster(const struct bw_picture *picture, unsigned size,
                                   struct bw_raster *raster)
{
    const size_t count = picture->info->area_count;
    const unsigned columns = bw_picture_columns(picture);
    const size_t rows = (count + columns - 1) / columns;
    const unsigned wide = size > picture->order ? size : picture->order;
    const uint32_t side = UINT32_C(1) << wide, gap = side >> GAP_SHIFT;
    *raster = (struct bw_raster){.width = columns * (side + gap) - gap};
    if (rows * (side + gap) > MOST_PIXELS / raster->width)
        return bw_error_create(BW_ERROR_USAGE, "the picture would have more than %d pixels",
                               MOST_PIXELS);
    raster->height = (uint32_t)(rows * (side + gap) - gap);
    raster->pixels = malloc((size_t)3 * raster->width * raster->height);
    if (!raster->pixels)
        return bw_error_no_memory();
    for (uint32_t y = 0; y < raster->height; y++)
        for (uint32_t x = 0; x < raster->width; x++)
            set_pixel(raster, x, y, page);

    /* A cell is a square of pixels. */
    const uint32_t cells = UINT32_C(1) << picture->order, scale = side >> picture->order;
    for (size_t area = 0; area < count; area++) {
        const uint32_t left = (uint32_t)(area % columns) * (side + gap);
        const uint32_t top = (uint32_t)(area / columns) * (side + gap);
        for (uint32_t i = 0; i < cells * cells; i++) {
            const struct bw_point cell = {i % cells, i / cells};
            const struct bw_color color = bw_picture_color(picture, area, cell, dark);
            const uint32_t x = left + cell.x * scale, y = top + cell.y * scale;
            for (uint32_t row = y; row < y + scale; row++)
                for (uint32_t column = x; column < x + scale; column++)
                    set_pixel(raster, column, row, color);
        }
    }
    return NULL;
}

/* Pictures as text: a half block is drawn in the colour of one cell, on a background in the colour
 * of the cell below. Without colours, types are letters, and other values are digits. */

static const struct bw_color ground = {0x1c, 0x21, 0x28};

/* Sets a colour; `attribute` is 38 for the foreground, 48 for the background. */
static void append_color(struct bw_buffer *text, enum bw_terminal_colors colors, unsigned attribute,
                         struct bw_color color)
{
    if (colors == BW_TERMINAL_TRUE) {
        bw_buffer_format(text, "\033[%u;2;%u;%u;%um", attribute, color.red, color.green,
                         color.blue);
        return;
    }
    /* the nearest colour of the 256-colour palette's cube */
    const unsigned red = (color.red * 5u + 127) / 255, green = (color.green * 5u + 127) / 255,
                   blue = (color.blue * 5u + 127) / 255;
    bw_buffer_format(text, "\033[%u;5;%um", attribute, 16 + 36 * red + 6 * green + blue);
}

static bool is_same_color(struct bw_color a, struct bw_color b)
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
            struct bw_color second = first;
            if (y + 1 < side)
                second = bw_picture_color(picture, area, (struct bw_point){x, y + 1}, ground);
            if (!x || !is_same_color(first, above))
                append_color(text, colors, 38, first);
            if (!x || !is_same_color(second, below))
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

/* A cell is upper case if more than half of it is used. */
static void append_plain(struct bw_buffer *text, const struct bw_picture *picture, size_t area)
{
    static const char full[] = "DMSX", part[] = "dmsx", scale[] = "0123456789abcdef";
    const uint32_t side = UINT32_C(1) << picture->order;
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++) {
            const uint32_t number =
                bw_curve_number(picture->curve, picture->order, (struct bw_point){x, y});
            const struct bw_space_cell cell = bw_space_map_cell(picture->map, area, number);
            const struct bw_paint paint = bw_picture_paint(picture, &cell);
            const char *letters = part;
            if (!shows_types(picture))
                letters = scale;
            else if (cell.used > cell.allocated[paint.color] / 2)
                letters = full;
            bw_buffer_append_byte(text, paint.opacity ? letters[paint.color] : '.');
        }
        bw_buffer_append_byte(text, '\n');
    }
}

static void append_terminal_legend(struct bw_buffer *text, const struct bw_picture *picture,
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
    if (*picture->unused && colors != BW_TERMINAL_PLAIN) {
        const struct bw_paint paint = picture->unused_paint;
        append_color(text, colors, 38,
                     bw_paint_color(paint.opacity, picture->colors[paint.color], ground));
        bw_buffer_format(text, "\u2588\u2588\033[0m %s\n", picture->unused);
    }
    if (*picture->unallocated)
        bw_buffer_format(text, "%s %s\n", colors == BW_TERMINAL_PLAIN ? "." : "  ",
                         picture->unallocated);
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
    append_terminal_legend(text, picture, colors);
}
