/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EXTENT_DATA items: where a piece of a file is stored, or the piece itself. A piece that has
 * passed bw_file_extent_decode() needs no further checks before it is read; compression.h
 * decompresses it.
 *
 * Sources: struct btrfs_file_extent_item in the kernel's uapi/linux/btrfs_tree.h, and the "on-disk
 * format" and "Compression" chapters of the btrfs documentation.
 */
#ifndef BW_ONDISK_FILE_EXTENT_H
#define BW_ONDISK_FILE_EXTENT_H

#include "ondisk/items.h"

/**
 * A piece of a file, which starts in it at the offset of the item's key. The extent is stored in
 * `disk_num_bytes` at `disk_bytenr`; it is `ram_bytes` long when decompressed, of which the piece
 * takes `num_bytes` from `offset` on. An inline extent has its bytes, as they are stored, in the
 * item.
 */
struct bw_file_extent {
    uint64_t generation; /**< transaction that wrote it */
    uint64_t ram_bytes;  /**< may be wrong without compression: some kernels did not update it */
    uint8_t compression; /**< BW_COMPRESS_* */
    uint8_t encryption;  /**< always 0 */
    uint16_t other_encoding;    /**< always 0 */
    uint8_t type;               /**< BW_FILE_EXTENT_* */
    uint64_t disk_bytenr;       /**< logical address; 0: a hole, or inline */
    uint64_t disk_num_bytes;    /**< 0 if inline */
    uint64_t offset;            /**< 0 if inline */
    uint64_t num_bytes;         /**< never 0; ram_bytes if inline */
    const uint8_t *inline_data; /**< a view on the item; NULL if not inline */
    uint32_t inline_length;
};

/**
 * Decodes an EXTENT_DATA item. BW_ERROR_CORRUPT if a length or an address is impossible,
 * BW_ERROR_UNSUPPORTED for encryption, and for encodings and compressions that are not known.
 */
struct bw_error *bw_file_extent_decode(const struct bw_item *item, uint32_t sectorsize,
                                       struct bw_file_extent *extent);

#endif
