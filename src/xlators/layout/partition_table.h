/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the partition table of a disk with libblkid. Used by layout/partition, and by fs/ to find
 * out which partitions need a layer.
 */
#ifndef BW_XLATORS_LAYOUT_PARTITION_TABLE_H
#define BW_XLATORS_LAYOUT_PARTITION_TABLE_H

#include "btrfs-walk/graph.h"
#include "btrfs-walk/image.h"

/** Reads the table of a disk, without the path and the contents of the partitions.
 * BW_ERROR_NOT_FOUND without a table. Free with bw_partition_table_free(); after an error it is
 * empty. */
struct bw_error *bw_partition_table_read(struct bw_xlator *disk, struct bw_partition_table *table);

void bw_partition_table_free(struct bw_partition_table *table);

/** Finds a partition by its number, id or name, or by the label or id of its file system; the table
 * must contain the corresponding members. BW_ERROR_NOT_FOUND, with a message that lists the
 * partitions, if none matches; BW_ERROR_USAGE if several do. */
struct bw_error *bw_partition_find(const struct bw_partition_table *table, const char *wanted,
                                   const struct bw_partition_info **found);

#endif
