/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pictures as pixels, and PNG files, written by libpng. */
#include <stdlib.h>

#include "draw/picture.h"

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

/* Pixels of a picture: areas side by side, with a gap between them. */

enum { MOST_PIXELS = 1 << 26, GAP_SHIFT = 5 };

static const struct bw_color dark = {0x16, 0x1b, 0x22}, page = {0x0d, 0x11, 0x17};

static void set_pixel(const struct bw_raster *raster, uint32_t x, uint32_t y, struct bw_color color)
{
    uint8_t *pixel = raster->pixels + 3 * ((size_t)y * raster->width + x);
    pixel[0] = color.red;
    pixel[1] = color.green;
    pixel[2] = color.blue;
}

/* A cell as a square of pixels. */
static void set_square(const struct bw_raster *raster, uint32_t left, uint32_t top, uint32_t side,
                       struct bw_color color)
{
    for (uint32_t y = top; y < top + side; y++)
        for (uint32_t x = left; x < left + side; x++)
            set_pixel(raster, x, y, color);
}

static void draw_area(const struct bw_picture *picture, const struct bw_raster *raster, size_t area,
                      uint32_t left, uint32_t top, uint32_t scale)
{
    const uint32_t side = UINT32_C(1) << picture->order;
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++)
            set_square(raster, left + x * scale, top + y * scale, scale,
                       bw_picture_color(picture, area, (struct bw_point){x, y}, dark));
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
    for (size_t area = 0; area < count; area++)
        draw_area(picture, raster, area, (uint32_t)(area % columns) * (side + gap),
                  (uint32_t)(area / columns) * (side + gap), side >> picture->order);
    return NULL;
}
