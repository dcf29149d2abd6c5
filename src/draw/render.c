/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures as SVG, as pixels and PNG (by libpng), and as coloured text.
 *
 * An area of an SVG is a square of cells, one unit each, scaled to its size. Cells of the same
 * colour and opacity are one path of horizontal lines, because an element for each cell would make
 * files of several MiB.
 *
 * Viewers scale a document to their width. So all documents are equally wide, and the areas of many
 * devices are small: then letters have the same size for one device and for many. In a page, each
 * area is a separate drawing, and the page adds its caption.
 */
#include "draw/picture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "draw/markup.h"

enum {
    LEVELS = 16, /* of opacity */
    WIDTH = 720, /* of the areas of a row and their gaps */
    GAP = 16,    /* between areas */
    MARGIN = 24,
    LINE = 22, /* height of a line of the legend */
    SWATCH = 14,
    FONT = 13,
    LETTER = 7, /* approximate width of a letter */
    CAPTION_LINE = 17,
    CAPTION_LINES = 3,
};

static void append_hex(struct bw_buffer *text, struct bw_color color)
{
    bw_buffer_format(text, "#%02x%02x%02x", color.red, color.green, color.blue);
}

/* Appends an area; its sides are as long as the number of its cells. A cell's key combines its
 * colour and its opacity; opacity 0 is an empty cell. */
static void append_area(struct bw_buffer *text, const struct bw_picture *picture, size_t area)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    BW_AUTO_FREE uint8_t *keys = calloc(side, side);
    bool present[256] = {false};
    if (!keys) {
        text->failed = true;
        return;
    }
    bw_buffer_format(text,
                     "<rect class=\"ground\" width=\"%u\" height=\"%u\"%s/>\n"
                     "<g transform=\"translate(0 .5)\" stroke-width=\"1\" "
                     "shape-rendering=\"crispEdges\">\n",
                     side, side, picture->by == BW_DRAW_HEATMAP ? " style=\"fill:#000\"" : "");
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

    /* A path for each colour and opacity, with the runs of cells that have them. */
    for (unsigned key = 0; key < sizeof present; key++) {
        if (!present[key] || !(key % LEVELS))
            continue;
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
    bw_buffer_format(text, "</g>");
    if (!bw_picture_is_missing(picture, area))
        return;
    const unsigned lines = 16; /* diagonal */
    const double step = (double)side / lines;
    bw_buffer_format(text, "<path fill=\"none\" stroke=\"#8a8f98\" stroke-width=\"%.4g\" d=\"",
                     step / 4);
    for (unsigned i = 1; i < 2 * lines; i++) {
        const double at = i * step;
        const double from = at > side ? at - side : 0;
        const double to = at < side ? at : side;
        bw_buffer_format(text, "M%.4g %.4gL%.4g %.4g", from, to, to, from);
    }
    bw_buffer_format(text, "\"/>\n");
}

/* Captions, a line for each part: "device 1", its size, "missing". Parts that fit into `letters`
 * share a line. Returns the number of lines. If memory runs out, `text` has failed. */
static unsigned make_caption(struct bw_buffer *text, const struct bw_picture *picture,
                             size_t number, size_t letters, struct bw_buffer lines[CAPTION_LINES])
{
    const struct bw_space_area *area = &picture->info->areas[number];
    struct bw_buffer BW_AUTO_BUFFER part = {0};
    char size[BW_SIZE_ROOM];
    unsigned used = 0;
    for (unsigned i = 0; i < CAPTION_LINES; i++) {
        part.length = 0;
        if (i == 0 && area->devid)
            bw_buffer_format(&part, "device %" PRIu64, area->devid);
        else if (i == 0)
            bw_buffer_format(&part, "all devices");
        else if (i == 1)
            bw_buffer_append(&part, size, (size_t)(bw_write_size(size, area->bytes, false) - size));
        else if (bw_picture_is_missing(picture, number))
            bw_buffer_format(&part, "missing");
        struct bw_buffer *line = used ? &lines[used - 1] : NULL;
        if (!part.length)
            continue;
        if (line && line->length + strlen(", ") + part.length <= letters)
            bw_buffer_format(line, ", ");
        else
            line = &lines[used++];
        bw_buffer_append(line, part.data, part.length);
    }
    text->failed |= part.failed;
    for (unsigned i = 0; i < CAPTION_LINES; i++)
        text->failed |= lines[i].failed;
    return used;
}

/* Legends. */

enum swatch { SWATCH_COLOR, SWATCH_SCALE, SWATCH_UNUSED, SWATCH_GROUND, SWATCH_MISSING };

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
    const struct legend_item others[] = {{SWATCH_SCALE, {0}, picture->scale},
                                         {SWATCH_UNUSED, {0}, picture->unused},
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

static unsigned swatch_width(const struct legend_item *item)
{
    return item->swatch == SWATCH_SCALE ? BW_PICTURE_SCALE * SWATCH : SWATCH;
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
    if (item->swatch == SWATCH_SCALE) {
        for (unsigned i = 0; i < BW_PICTURE_SCALE; i++) {
            bw_buffer_format(text, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"",
                             i * SWATCH, top, SWATCH, SWATCH);
            append_hex(text, picture->colors[i]);
            bw_buffer_format(text, "\"/>");
        }
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

/* The sizes of cells, which are equal unless devices have different sizes. */
static void append_cell_sizes(struct bw_buffer *text, const struct bw_picture *picture)
{
    const struct bw_space_map_info *info = picture->info;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < info->area_count; i++) {
        const uint64_t bytes = info->areas[i].bytes / info->areas[i].cell_count;
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    char size[BW_SIZE_ROOM];
    bw_buffer_format(text, "Each cell is ");
    bw_buffer_append(text, size, (size_t)(bw_write_size(size, least, false) - size));
    if (most > least) {
        bw_buffer_format(text, " to ");
        bw_buffer_append(text, size, (size_t)(bw_write_size(size, most, false) - size));
    }
    bw_buffer_format(text, ".");
}

static const char *const titles[] = {
    [BW_DRAW_TYPE] = "Space by type and fill",
    [BW_DRAW_FILL] = "Space by fill",
    [BW_DRAW_AGE] = "Space by age",
    [BW_DRAW_OWNER] = "Space by subvolume",
    [BW_DRAW_HEATMAP] = "Chunks by type and fill",
};

void bw_picture_svg(struct bw_buffer *text, const struct bw_picture *picture)
{
    const unsigned columns = bw_picture_columns(picture);
    const unsigned count = (unsigned)picture->info->area_count;
    const unsigned rows = (count + columns - 1) / columns;
    const unsigned side = (WIDTH - (columns - 1) * GAP) / columns;
    unsigned caption_lines = 1;
    for (unsigned area = 0; area < count; area++) {
        struct bw_buffer lines[CAPTION_LINES] = {{0}};
        const unsigned used = make_caption(text, picture, area, side / LETTER, lines);
        caption_lines = used > caption_lines ? used : caption_lines;
        for (unsigned i = 0; i < CAPTION_LINES; i++)
            bw_buffer_free(&lines[i]);
    }
    const unsigned step = side + GAP + caption_lines * CAPTION_LINE;
    unsigned height = rows * step + LINE;
    struct legend_item item;
    for (size_t position = 0; next_item(picture, &position, &item);)
        height += LINE;

    bw_buffer_format(text,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-%d -%d %d %u\" "
                     "role=\"img\" aria-labelledby=\"map-title map-desc\">\n"
                     "<title id=\"map-title\">%s</title>\n<desc id=\"map-desc\">",
                     MARGIN, MARGIN, WIDTH + 2 * MARGIN, height + 2 * MARGIN, titles[picture->by]);
    struct bw_buffer BW_AUTO_BUFFER summary = {0};
    bw_picture_summary(&summary, picture);
    text->failed |= summary.failed;
    bw_markup_text(text, summary.data, summary.length);
    bw_buffer_format(
        text, "</desc>\n<style>svg{background:#fff;color:#1f2328}text{font-family:system-ui,"
              "sans-serif;fill:currentColor}.ground{fill:#e8ebef}@media(prefers-color-scheme:dark)"
              "{svg{background:#0d1117;color:#e6edf3}.ground{fill:#1c2128}}</style>\n");

    for (unsigned area = 0; area < count; area++) {
        const unsigned left = area % columns * (side + GAP), top = area / columns * step;
        bw_buffer_format(text, "<g transform=\"translate(%u %u) scale(%.7g)\">", left, top,
                         (double)side / (1u << picture->order));
        append_area(text, picture, area);
        bw_buffer_format(text, "</g>\n");
        struct bw_buffer lines[CAPTION_LINES] = {{0}};
        const unsigned used = make_caption(text, picture, area, side / LETTER, lines);
        for (unsigned i = 0; i < used; i++) {
            bw_buffer_format(text, "<text x=\"%u\" y=\"%u\" font-size=\"%d\"", left,
                             top + side + (i + 1) * CAPTION_LINE, FONT);
            if (lines[i].length > side / LETTER) /* the number of a device may have 20 digits */
                bw_buffer_format(text, " textLength=\"%u\" lengthAdjust=\"spacingAndGlyphs\"",
                                 side);
            bw_buffer_format(text, ">");
            bw_buffer_append(text, lines[i].data, lines[i].length);
            bw_buffer_format(text, "</text>\n");
            text->failed |= lines[i].failed;
        }
        for (unsigned i = 0; i < CAPTION_LINES; i++)
            bw_buffer_free(&lines[i]);
    }

    unsigned top = rows * step;
    for (size_t position = 0; next_item(picture, &position, &item); top += LINE) {
        append_swatch(text, picture, &item, top);
        bw_buffer_format(text, "<text x=\"%u\" y=\"%u\" font-size=\"%d\">", swatch_width(&item) + 8,
                         top + SWATCH - 2, FONT);
        bw_markup_text(text, item.label, strlen(item.label));
        bw_buffer_format(text, "</text>\n");
    }
    bw_buffer_format(text, "<text y=\"%u\" font-size=\"%d\">", top + SWATCH - 2, FONT);
    append_cell_sizes(text, picture);
    bw_buffer_format(text, "</text>\n</svg>\n");
}

void bw_picture_html(struct bw_buffer *text, const struct bw_picture *picture)
{
    enum { MOST_COLUMNS = 4 }; /* the style of the page has classes for these */
    const unsigned columns = bw_picture_columns(picture), side = 1u << picture->order;
    struct bw_buffer BW_AUTO_BUFFER summary = {0};
    bw_picture_summary(&summary, picture);
    text->failed |= summary.failed;
    bw_buffer_format(text, "<div class=\"maps columns-%u\" role=\"group\" aria-label=\"%s. ",
                     columns < MOST_COLUMNS ? columns : MOST_COLUMNS, titles[picture->by]);
    bw_markup_text(text, summary.data, summary.length);
    bw_buffer_format(text, "\">\n");
    for (size_t area = 0; area < picture->info->area_count; area++) {
        bw_buffer_format(text, "<figure><svg viewBox=\"0 0 %u %u\" aria-hidden=\"true\">", side,
                         side);
        append_area(text, picture, area);
        bw_buffer_format(text, "</svg><figcaption>");
        struct bw_buffer lines[CAPTION_LINES] = {{0}};
        make_caption(text, picture, area, SIZE_MAX, lines);
        bw_buffer_append(text, lines[0].data, lines[0].length);
        bw_buffer_free(&lines[0]);
        bw_buffer_format(text, "</figcaption></figure>\n");
    }
    bw_buffer_format(text, "</div>\n<ul class=\"legend\">\n");
    struct legend_item item;
    for (size_t position = 0; next_item(picture, &position, &item);) {
        bw_buffer_format(text, "<li><svg%s viewBox=\"0 0 %u %d\" aria-hidden=\"true\">",
                         item.swatch == SWATCH_SCALE ? " class=\"scale\"" : "", swatch_width(&item),
                         SWATCH);
        append_swatch(text, picture, &item, 0);
        bw_buffer_format(text, "</svg><span>");
        bw_markup_text(text, item.label, strlen(item.label));
        bw_buffer_format(text, "</span></li>\n");
    }
    bw_buffer_format(text, "<li>");
    append_cell_sizes(text, picture);
    bw_buffer_format(text, "</li>\n</ul>\n");
}

/* Pictures as PNG files, written by libpng. */

#ifdef BW_PNG
#include <png.h>

static struct bw_error *write_png(struct bw_buffer *image, const uint8_t *pixels, uint32_t width,
                                  uint32_t height)
{
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    if (!bw_buffer_reserve(image, size))
        return bw_error_no_memory();
    if (!png_image_write_to_memory(&png, image->data + image->length, &size, 0, pixels, 0, NULL))
        return bw_error_create(BW_ERROR_SYSTEM, "cannot make a PNG: %s", png.message);
    image->length += size;
    return NULL;
}
#else
static struct bw_error *write_png(struct bw_buffer *image, const uint8_t *pixels, uint32_t width,
                                  uint32_t height)
{
    (void)image;
    (void)pixels, (void)width, (void)height;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "this was built without libpng; pictures can be written as SVG");
}
#endif

/* The pixels of a picture: areas next to each other, with gaps between them. */

enum { MOST_PIXELS = 1 << 26, GAP_SHIFT = 5 };

static const struct bw_color dark = {0x16, 0x1b, 0x22}, page = {0x0d, 0x11, 0x17};

static void set_pixel(uint8_t *pixel, struct bw_color color)
{
    pixel[0] = color.red;
    pixel[1] = color.green;
    pixel[2] = color.blue;
}

struct bw_error *bw_picture_png(struct bw_buffer *image, const struct bw_picture *picture,
                                unsigned size)
{
    const size_t count = picture->info->area_count;
    const unsigned columns = bw_picture_columns(picture);
    const size_t rows = (count + columns - 1) / columns;
    const unsigned wide = size > picture->order ? size : picture->order;
    const uint32_t side = UINT32_C(1) << wide, gap = side >> GAP_SHIFT;
    const uint32_t width = columns * (side + gap) - gap;
    if (rows * (side + gap) > MOST_PIXELS / width)
        return bw_error_create(BW_ERROR_USAGE, "the picture would have more than %d pixels",
                               MOST_PIXELS);
    const uint32_t height = (uint32_t)(rows * (side + gap) - gap);
    BW_AUTO_FREE uint8_t *pixels = malloc((size_t)3 * width * height); /* row by row */
    if (!pixels)
        return bw_error_no_memory();
    for (size_t i = 0; i < (size_t)width * height; i++)
        set_pixel(pixels + 3 * i, page);

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
                    set_pixel(pixels + 3 * ((size_t)row * width + column), color);
        }
    }
    return write_png(image, pixels, width, height);
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

/* The letters of the colours. */
static const char types[] = "DMSX", digits[] = "0123456789abcdef";

static bool shows_types(const struct bw_picture *picture)
{
    return picture->by == BW_DRAW_TYPE || picture->by == BW_DRAW_HEATMAP;
}

void bw_picture_terminal(struct bw_buffer *text, const struct bw_picture *picture,
                         enum bw_terminal_colors colors)
{
    for (size_t area = 0; area < picture->info->area_count; area++) {
        bw_picture_caption(text, picture, area);
        bw_buffer_append_byte(text, '\n');
        if (colors == BW_TERMINAL_PLAIN) {
            /* A cell is upper case if more than half of it is used. */
            const uint32_t side = UINT32_C(1) << picture->order;
            for (uint32_t y = 0; y < side; y++) {
                for (uint32_t x = 0; x < side; x++) {
                    const uint32_t number =
                        bw_curve_number(picture->curve, picture->order, (struct bw_point){x, y});
                    const struct bw_space_cell cell = bw_space_map_cell(picture->map, area, number);
                    const struct bw_paint paint = bw_picture_paint(picture, &cell);
                    const char *letters = "dmsx";
                    if (!shows_types(picture))
                        letters = digits;
                    else if (cell.used > cell.allocated[paint.color] / 2)
                        letters = types;
                    bw_buffer_append_byte(text, paint.opacity ? letters[paint.color] : '.');
                }
                bw_buffer_append_byte(text, '\n');
            }
        } else {
            append_colored(text, picture, area, colors);
        }
    }

    /* The legend. */
    for (unsigned i = 0; i < picture->color_count; i++) {
        if (!picture->in_legend[i])
            continue;
        if (colors == BW_TERMINAL_PLAIN) {
            bw_buffer_append_byte(text, (shows_types(picture) ? types : digits)[i]);
        } else {
            append_color(text, colors, 38, picture->colors[i]);
            bw_buffer_format(text, "\u2588\u2588\033[0m");
        }
        bw_buffer_format(text, " %s\n", picture->labels[i]);
    }
    for (unsigned i = 0; *picture->scale && i < BW_PICTURE_SCALE; i++) {
        if (colors == BW_TERMINAL_PLAIN) {
            bw_buffer_format(text, "%u", i);
        } else {
            append_color(text, colors, 38, picture->colors[i]);
            bw_buffer_format(text, "\u2588%s", i == BW_PICTURE_SCALE - 1 ? "\033[0m" : "");
        }
    }
    if (*picture->scale)
        bw_buffer_format(text, " %s\n", picture->scale);
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
