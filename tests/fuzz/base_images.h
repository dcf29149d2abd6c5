/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images that fuzz_image starts from: small ones, of different profiles and shapes. They are
 * made when first needed and kept in memory; every run begins and ends with an unchanged one.
 */
#ifndef BW_TESTS_FUZZ_BASE_IMAGES_H
#define BW_TESTS_FUZZ_BASE_IMAGES_H

#include "support/image_writer.h"

/** A run of bytes of a device that are not a hole. */
struct base_extent {
    unsigned device;
    uint64_t offset;
    size_t length;
    uint8_t *bytes; /**< what it holds as long as nothing is edited */
};

struct base_image {
    struct iw_image *image;
    uint32_t nodesize;
    size_t block_count;
    uint8_t *pristine; /**< all blocks, one behind the other, in the order of iw_block() */
    uint8_t *work;     /**< the same after the edits of this run */
    bool *changed;     /**< per block */
    struct base_extent *extents;
    size_t extent_count;
};

/** One of the images; any number will do. */
struct base_image *base_image(unsigned number);
/** The bytes of a block in `work`. */
uint8_t *base_block(const struct base_image *base, size_t index);
/** Puts every byte of the devices, and the image writer's memory of them, back. */
void base_restore(struct base_image *base);
/** A sum over all bytes of the devices that are not holes. */
uint64_t base_sum(const struct base_image *base);
/** Frees all images. */
void base_images_free(void);

#endif
