/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures of a map of space: the colour of each cell, and the legend (picture.c), and the picture
 * as SVG, pixels, PNG or coloured text (render.c).
 */
#ifndef BW_DRAW_PICTURE_H
#define BW_DRAW_PICTURE_H

#include "base/buffer.h"
#include "btrfs-walk/space_map.h"
#include "draw/layout.h"

/** Meaning of the colours. */
enum bw_draw_by {
    BW_DRAW_TYPE,    /**< the type of the chunk; the stronger, the more of it is used */
    BW_DRAW_FILL,    /**< how much is used */
    BW_DRAW_AGE,     /**< the generation of what is used */
    BW_DRAW_OWNER,   /**< the tree that it belongs to */
    BW_DRAW_HEATMAP, /**< type and fill of the chunk, in the colours of btrfs-heatmap */
};

struct bw_color {
    uint8_t red, green, blue;
};

enum {
    BW_PICTURE_COLORS = 16, /**< in a legend */
    BW_PICTURE_LABEL = 96,  /**< bytes of a label with its NUL */
};

/** How a cell is drawn. */
struct bw_paint {
    unsigned color;  /**< in the legend */
    uint8_t opacity; /**< 0: nothing is there */
    bool mixed;      /**< `mixture` is the exact colour of a pixel: BW_DRAW_HEATMAP */
    struct bw_color mixture;
};

/** A picture, and its legend. */
struct bw_picture {
    const struct bw_space_map *map;
    const struct bw_space_map_info *info;
    enum bw_draw_by by;
    enum bw_curve curve;
    unsigned order;
    size_t color_count;
    struct bw_color colors[BW_PICTURE_COLORS];
    bool in_legend[BW_PICTURE_COLORS];                /**< the colour has a label */
    char labels[BW_PICTURE_COLORS][BW_PICTURE_LABEL]; /**< plain text, safe to print */
    uint64_t owners[BW_PICTURE_COLORS];               /**< with a colour of their own */
    size_t owner_count;
};

/** Makes a picture of a map whose areas have a power of 4 of cells. `fs` names the owners. */
struct bw_picture bw_picture_make(struct bw_fs *fs, const struct bw_space_map *map,
                                  enum bw_draw_by by, enum bw_curve curve);

/** How a cell is drawn. */
struct bw_paint bw_picture_paint(const struct bw_picture *picture,
                                 const struct bw_space_cell *cell);

/** The colour of a cell at a place of an area with the background colour `ground`. */
struct bw_color bw_picture_color(const struct bw_picture *picture, size_t area,
                                 struct bw_point point, struct bw_color ground);

/** How many areas stand side by side. */
unsigned bw_picture_columns(const struct bw_picture *picture);

/** Appends what an area is: "device 1, 128.00MiB, cells of 32.00KiB". */
void bw_picture_caption(struct bw_buffer *text, const struct bw_picture *picture, size_t area);

/** Appends a sentence that summarizes the picture. */
void bw_picture_summary(struct bw_buffer *text, const struct bw_picture *picture);

/** Appends the picture as SVG; `standalone`: as a document of its own; otherwise as an element of
 * HTML, and a list of its colours. `name` begins the ids in it. */
void bw_picture_svg(struct bw_buffer *text, const struct bw_picture *picture, bool standalone,
                    const char *name);

/** Pixels, 3 bytes each, row by row. */
struct bw_raster {
    uint32_t width, height;
    uint8_t *pixels;
};

/** Draws the picture with areas of at least 2^size pixels in width and height; the caller frees
 * `pixels`. BW_ERROR_USAGE if it would be too large. */
struct bw_error *bw_picture_raster(const struct bw_picture *picture, unsigned size,
                                   struct bw_raster *raster);

/** Appends pixels as PNG. BW_ERROR_UNSUPPORTED if this was built without libpng. */
struct bw_error *bw_raster_png(struct bw_buffer *image, const struct bw_raster *raster);

/** How a terminal shows colours. */
enum bw_terminal_colors {
    BW_TERMINAL_PLAIN, /**< not at all: letters in their place */
    BW_TERMINAL_256,
    BW_TERMINAL_TRUE, /**< 24 bits */
};

/** Appends the picture as blocks of text, two cells to a character, and the legend. */
void bw_picture_terminal(struct bw_buffer *text, const struct bw_picture *picture,
                         enum bw_terminal_colors colors);

#endif
