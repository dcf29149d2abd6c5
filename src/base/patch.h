/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changed ranges of an image, in memory: an overlay of sectors. The image is not written to; its
 * readers replace these bytes in the ranges that they read.
 */
#ifndef BW_BASE_PATCH_H
#define BW_BASE_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "btrfs-walk/error.h"

enum {
    BW_PATCH_SECTOR = 512, /**< the unit of changes, in bytes */
    BW_PATCH_PAGE = 4096,  /**< the unit of memory, in bytes */
};

/** The changed sectors of a page. */
struct bw_patch_page {
    uint64_t number; /**< offset of the page, in pages */
    uint8_t *bytes;  /**< BW_PATCH_PAGE */
    uint8_t changed; /**< bit n: sector n is changed */
};

BW_VECTOR(bw_patch_pages, struct bw_patch_page);

/** All zeros: nothing is changed. Reading is safe from any thread while no thread writes. */
struct bw_patch {
    struct bw_patch_pages pages; /**< ascending */
    const char *layer;           /**< with bw_fs_options.patches: the name of the layer above which
                                      layout/patch changes the device; not owned */
};

/** Changes a range, whose offset and length are multiples of BW_PATCH_SECTOR. BW_ERROR_NO_MEMORY;
 * then part of the range may be changed. */
struct bw_error *bw_patch_write(struct bw_patch *patch, uint64_t offset, const void *bytes,
                                size_t length);

/** Replaces the changed bytes in a range that was read from the image. */
void bw_patch_apply(const struct bw_patch *patch, uint64_t offset, void *bytes, size_t length);

/** Whether all bytes of a range are changed, so that the image need not be read. */
bool bw_patch_covers(const struct bw_patch *patch, uint64_t offset, size_t length);

/** The first changed byte from `offset` on, or UINT64_MAX. */
uint64_t bw_patch_next(const struct bw_patch *patch, uint64_t offset);

/** Frees the memory, and leaves an empty patch. */
void bw_patch_free(struct bw_patch *patch);

#endif
