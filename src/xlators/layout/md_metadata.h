/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metadata of Linux software RAID (MD): superblocks of the versions 0.90 and 1.0 to 1.2, lists of
 * bad blocks, and journals of RAID4, 5 and 6. Sources: the headers in linux/raid of the kernel, and
 * drivers/md with raid5-cache.c.
 */
#ifndef BW_XLATORS_LAYOUT_MD_METADATA_H
#define BW_XLATORS_LAYOUT_MD_METADATA_H

#include "base/vector.h"
#include "graph/wind.h"

/** Levels that are not numbers of RAID levels. */
enum { BW_MD_LINEAR = -1 };

enum {
    BW_MD_DEVICES = 1024, /**< the most devices of an array */
    BW_MD_NUMBERS = 1920, /**< the most devices that a superblock lists */
    BW_MD_BAD = 512,      /**< the most ranges of bad blocks of a device: 4 KiB */
};

/** No role: a spare, a journal, or a device that has failed. */
#define BW_MD_NO_ROLE UINT32_MAX

/** A device of an array. Sizes and offsets are in bytes. */
struct bw_md_superblock {
    const char *version;   /**< "0.90", "1.0", "1.1" or "1.2" */
    uint64_t offset;       /**< where the superblock is on the device */
    uint8_t id[16];        /**< id of the array */
    char name[33];         /**< name of the array; "" if it has none */
    int level;             /**< 0, 1, 4, 5, 6, 10 or BW_MD_LINEAR */
    uint32_t layout;       /**< depends on the level */
    uint64_t chunk;        /**< 0 if the level has none */
    uint32_t device_count; /**< devices of the whole array, without spares */
    uint32_t role;         /**< the role of this device, or BW_MD_NO_ROLE */
    uint64_t data_offset;  /**< where its data begin */
    uint64_t data_size;    /**< room for data; 0: unknown */
    uint64_t used_size;    /**< bytes of each device that the array uses; 0 for linear and RAID0 */
    uint64_t recovered;    /**< the data before this are current; UINT64_MAX: all */
    uint64_t events;       /**< counts changes of the array */
    uint32_t number;       /**< the index of this device in lists of devices */
    bool is_reshaping;
    bool has_layout;               /**< RAID0: `layout` is set */
    bool is_replacement;           /**< it gets the data of another device with the same role */
    bool has_journal;              /**< the array has a journal */
    bool is_journal;               /**< this device is the journal */
    uint64_t journal_tail;         /**< where a journal begins, behind `data_offset` */
    uint64_t bad_blocks;           /**< where the list of bad blocks is */
    uint32_t bad_size;             /**< bytes of that list, or 0 */
    unsigned bad_shift;            /**< the unit of that list */
    uint16_t roles[BW_MD_NUMBERS]; /**< role of each device, by its number; UINT16_MAX: none */
};

/** A device that may belong to an array: a range of a layer. */
struct bw_md_device {
    struct bw_xlator *layer;
    uint64_t begin, size;
};

/** Reads the superblock of a device; false without a valid one. */
bool bw_md_superblock_read(const struct bw_md_device *device, struct bw_md_superblock *superblock);

/** Reads the ranges in which a device lacks the data of the array; at most BW_MD_BAD. Offsets count
 * from the beginning of its data. */
struct bw_error *bw_md_bad_blocks_read(const struct bw_md_device *device,
                                       const struct bw_md_superblock *superblock,
                                       struct bw_range *ranges, size_t *count);

/** The same, but false if the device contains a newer btrfs instead. */
bool bw_md_is_member(const struct bw_md_device *device, struct bw_md_superblock *superblock);

/** A block of a journal, or a row of blocks on the other devices that needs it no longer. */
struct bw_md_logged {
    uint64_t place; /**< of data: on the array; otherwise: in the data of each device */
    uint64_t at;    /**< where the block is on the device with the journal */
    uint64_t order; /**< its number in the journal */
    uint32_t role;  /**< of the device with the block; the caller sets it */
    enum { BW_MD_LOG_DATA, BW_MD_LOG_P, BW_MD_LOG_FLUSH, BW_MD_LOG_Q } kind;
};

enum { BW_MD_LOG_BLOCK = 4096 /**< bytes of a block in a journal */ };

BW_VECTOR(bw_md_log, struct bw_md_logged);

/** Reads the part of a journal that the kernel would use before it starts the array. `journal`: the
 * superblock of the device. `parity`: blocks of parity in a row. */
struct bw_error *bw_md_journal_read(const struct bw_md_device *device,
                                    const struct bw_md_superblock *journal, unsigned parity,
                                    struct bw_md_log *log);

#endif
