/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the partition table of a disk, by libblkid. Used by layout/partition, and by fs/ to find
 * out which partitions are worth a layer.
 */
#ifndef BW_XLATORS_LAYOUT_PARTITION_TABLE_H
#define BW_XLATORS_LAYOUT_PARTITION_TABLE_H

#include "btrfs-walk/partition.h"
#include "btrfs-walk/xlator.h"

/** Reads the table of a disk, without the path and what is in the partitions. BW_ERROR_NOT_FOUND if
 * there is none. Free with bw_partition_table_free(); after an error it is empty. */
struct bw_error *bw_partition_table_read(const struct bw_frame *frame, struct bw_xlator *disk,
                                         struct bw_partition_table *table);

void bw_partition_table_free(struct bw_partition_table *table);

/** Finds the partition of a number, an id, a name, or with a file system of that label or id; the
 * table was filled in as far as these shall count. BW_ERROR_NOT_FOUND if there is none, which says
 * what there is; BW_ERROR_USAGE if there are several. */
struct bw_error *bw_partition_find(const struct bw_partition_table *table, const char *wanted,
                                   const struct bw_partition_info **found);

/* The copy of a disk that libblkid looks at (partition_copy.c). */

struct bw_table_copy {
    const struct bw_frame *frame;
    struct bw_xlator *disk;
    uint64_t size; /**< of the disk, in bytes */
    uint32_t sector_size;
    int file; /**< sparse, in memory; -1: there is none */
    bool failed;
};

/** Makes the file; all members before it are set. Free it in any case. */
struct bw_error *bw_table_copy_make(struct bw_table_copy *copy);

/** Makes the file as long as its GPT says that the disk is; false if it does not say more than the
 * disk has. libblkid takes no GPT of a disk that was cut off. */
bool bw_table_copy_extend(struct bw_table_copy *copy);

void bw_table_copy_free(struct bw_table_copy *copy);

#endif
