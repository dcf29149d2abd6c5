/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images of whole disks: their partition tables, and what is in the partitions. Which partitions
 * are read is decided when a file system is opened; see bw_fs_options.partition.
 */
#ifndef BTRFS_WALK_PARTITION_H
#define BTRFS_WALK_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs_options;

/** How many partitions of a table are read, as Linux does. */
enum { BW_PARTITIONS = 256 };

/** A partition. Texts are UTF-8 as far as the disk holds valid text, end with NUL, and may hold
 * control characters; "" is none. Ids are in lower case. */
struct bw_partition_info {
    unsigned number;       /**< as Linux counts them; logical ones begin with 5 */
    bool extended;         /**< holds the logical partitions, and nothing else */
    uint64_t offset;       /**< on the disk, in bytes */
    uint64_t length;       /**< as the table says, in bytes */
    uint64_t room;         /**< how much of that the image has: less if it was cut off */
    char type[40];         /**< GUID, or "0x83" in a table of kind "dos" */
    const char *type_name; /**< what that means: "Linux filesystem"; "" if it is not known */
    char uuid[40];         /**< of the partition; "SERIAL-NN" in a table of kind "dos" */
    char name[128];        /**< of the partition; only in a table of kind "gpt" */
    bool btrfs;            /**< a btrfs file system is in it, or one of its devices */
    char content[128];     /**< what is in it: "btrfs", "ext4, label root"; "" if that is not
                                known */
    char label[257];       /**< of a btrfs */
    char content_uuid[37]; /**< of a btrfs: its fsid */
    uint64_t reserved[4];  /**< zeros: room for more members */
};

/** The table of a disk. */
struct bw_partition_table {
    const char *path;                           /**< of the image, or its first part */
    char kind[8];                               /**< "gpt" or "dos", which is an MBR */
    uint32_t sector_size;                       /**< that the table counts in, in bytes */
    uint64_t size;                              /**< of the disk, in bytes */
    size_t count;                               /**< of partitions, at most BW_PARTITIONS */
    const struct bw_partition_info *partitions; /**< by ascending number */
    uint64_t reserved[4];                       /**< zeros: room for more members */
};

/** Receives a table; the view ends with the call. An error ends the search and is returned. */
typedef struct bw_error *bw_table_taker(void *context, const struct bw_partition_table *table);

/**
 * Hands out the partition table of each image that has one, in the order of the images. Images are
 * read as bw_fs_open() would read them with the same options, but none of them needs to hold a
 * file system, and which partition is wanted does not matter. An image with the primary
 * superblock of a btrfs has no table, since it is that file system. Errors as for bw_fs_open().
 */
struct bw_error *bw_partition_tables(const struct bw_fs_options *options, bw_table_taker *take,
                                     void *context);

#ifdef __cplusplus
}
#endif
#endif
