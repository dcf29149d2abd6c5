/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures of a map of space. picture.c chooses the colours of cells and makes the legend; render.c
 * writes the picture as SVG, HTML, PNG or coloured text; drawing.c does it all for a file system.
 */
#ifndef BW_DRAW_PICTURE_H
#define BW_DRAW_PICTURE_H

#include "base/buffer.h"
#include "btrfs-walk/space.h"
#include "draw/layout.h"

/** Meaning of the colours. */
enum bw_draw_by {
    BW_DRAW_TYPE,    /**< the type of the chunk; more opaque if more of it is used */
    BW_DRAW_FILL,    /**< the used share */
    BW_DRAW_AGE,     /**< the generation of the used space */
    BW_DRAW_OWNER,   /**< the tree that uses the space */
    BW_DRAW_HEATMAP, /**< type and fill of the chunk, in the colours of btrfs-heatmap */
};

struct bw_color {
    uint8_t red, green, blue;
};

enum {
    BW_PICTURE_COLORS = 16,  /**< in a legend */
    BW_PICTURE_SCALE = 10,   /**< colours of the scale of fill and age */
    BW_PICTURE_LABEL = 96,   /**< bytes of a label with its NUL */
    BW_PICTURE_MISSING = 16, /**< missing devices that are marked */
};

/** The paint of a cell. */
struct bw_paint {
    unsigned color;  /**< index in the legend */
    uint8_t opacity; /**< 0: the cell is empty */
    bool mixed;      /**< `mixture` is the exact colour of a pixel: BW_DRAW_HEATMAP */
    struct bw_color mixture;
};

/** A picture and its legend. */
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
    char scale[BW_PICTURE_LABEL]; /**< label of the first BW_PICTURE_SCALE colours, from left to
                                     right; "": they are no scale */
    uint64_t owners[BW_PICTURE_COLORS]; /**< those with a separate colour */
    size_t owner_count;
    uint64_t missing[BW_PICTURE_MISSING]; /**< ids of missing devices */
    size_t missing_count;
    char unallocated[BW_PICTURE_LABEL]; /**< label of the background; "": without */
    char unused[BW_PICTURE_LABEL]; /**< label of allocated space that is not used; "": it is not
                                      painted separately */
    struct bw_paint unused_paint;
};

/** Makes a picture of a map whose areas have 4^order cells. `fs` provides the names of owners; an
 * owner without a readable path has only its id. Fails only if memory runs out. */
struct bw_error *bw_picture_make(struct bw_fs *fs, const struct bw_space_map *map,
                                 enum bw_draw_by by, enum bw_curve curve,
                                 struct bw_picture *picture);

/** The paint of a cell. */
struct bw_paint bw_picture_paint(const struct bw_picture *picture,
                                 const struct bw_space_cell *cell);

/** A colour of some opacity on the background `ground`. */
struct bw_color bw_paint_color(uint8_t opacity, struct bw_color color, struct bw_color ground);

/** The colour of a point in an area with background colour `ground`. */
struct bw_color bw_picture_color(const struct bw_picture *picture, size_t area,
                                 struct bw_point point, struct bw_color ground);

/** Number of areas in a row. */
unsigned bw_picture_columns(const struct bw_picture *picture);

/** Whether an area is a missing device. */
bool bw_picture_is_missing(const struct bw_picture *picture, size_t area);

/** Appends the caption of an area for a terminal: "device 1, 128.00MiB, cells of 32.00KiB". */
void bw_picture_caption(struct bw_buffer *text, const struct bw_picture *picture, size_t area);

/** Appends a sentence that summarizes the picture. */
void bw_picture_summary(struct bw_buffer *text, const struct bw_picture *picture);

/** Appends the picture as an SVG document. */
void bw_picture_svg(struct bw_buffer *text, const struct bw_picture *picture);

/** Appends the picture as HTML: a drawing of each area, and a list of its colours. */
void bw_picture_html(struct bw_buffer *text, const struct bw_picture *picture);

/** Appends the picture as PNG, with areas whose width and height are at least 2^size pixels.
 * BW_ERROR_USAGE if it would be too large; BW_ERROR_UNSUPPORTED if this was built without libpng.
 */
struct bw_error *bw_picture_png(struct bw_buffer *image, const struct bw_picture *picture,
                                unsigned size);

/** The colours that a terminal supports. */
enum bw_terminal_colors {
    BW_TERMINAL_PLAIN, /**< none: cells are letters */
    BW_TERMINAL_256,
    BW_TERMINAL_TRUE, /**< 24 bits */
};

/** Appends the picture as text, with two cells per character, and the legend. */
void bw_picture_terminal(struct bw_buffer *text, const struct bw_picture *picture,
                         enum bw_terminal_colors colors);

/** Formats of drawings. */
enum bw_draw_format { BW_DRAW_AUTO /**< not chosen yet */, BW_DRAW_SVG, BW_DRAW_PNG, BW_DRAW_TEXT };

/** A request for a drawing. */
struct bw_drawing {
    unsigned format;         /**< enum bw_draw_format, except BW_DRAW_AUTO */
    unsigned by;             /**< enum bw_draw_by */
    unsigned order_of_space; /**< enum bw_space_order */
    unsigned curve;          /**< enum bw_curve */
    uint64_t devid;          /**< only this device; 0: all */
    bool has_order;
    uint64_t order; /**< with `has_order`: a square has 4^order cells; otherwise it is chosen */
    uint64_t size;  /**< PNG: as for bw_picture_png() */
    unsigned columns, lines; /**< text: the size of the window */
    enum bw_terminal_colors colors;
};

/** Draws the devices of a file system and appends the picture. Errors as of bw_space_map_open()
 * and bw_picture_png(). */
struct bw_error *bw_draw(struct bw_fs *fs, const struct bw_drawing *drawing,
                         struct bw_buffer *text);

#endif
