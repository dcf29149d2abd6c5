/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the partition table of a disk, by libblkid. Used by layout/partition, and by fs/ to find
 * out which partitions are worth a layer.
 */
#ifndef BW_XLATORS_LAYOUT_PARTITION_TABLE_H
#define BW_XLATORS_LAYOUT_PARTITION_TABLE_H

#include "btrfs-walk/image.h"
#include "btrfs-walk/graph.h"

/** Reads the table of a disk, without the path and the contents of the partitions.
 * BW_ERROR_NOT_FOUND without a table. Free with bw_partition_table_free(); after an error it is
 * empty. */
struct bw_error *bw_partition_table_read(const struct bw_frame *frame, struct bw_xlator *disk,
                                         struct bw_partition_table *table);

void bw_partition_table_free(struct bw_partition_table *table);

/** Finds the partition of a number, an id, a name, or with a file system of that label or id; the
 * table must contain the members to search by. BW_ERROR_NOT_FOUND if none matches, with a message
 * that lists the partitions; BW_ERROR_USAGE if there are several. */
struct bw_error *bw_partition_find(const struct bw_partition_table *table, const char *wanted,
                                   const struct bw_partition_info **found);

#endif
