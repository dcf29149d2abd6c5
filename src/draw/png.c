/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pixels as PNG, by libpng. */
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
