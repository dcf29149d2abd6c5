/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partition tables as text for people, and as records. */
#ifndef BW_CLI_COMMON_PARTITIONS_H
#define BW_CLI_COMMON_PARTITIONS_H

#include "base/buffer.h"
#include "btrfs-walk/image.h"
#include "btrfs-walk/record.h"

/** Appends a table: a line that identifies it, then a line for each partition, with its number,
 * start, size, type, name and contents. */
void cmd_append_partitions(struct bw_buffer *text, const struct bw_partition_table *table);

/** Writes a disk and its partitions to `sink`, as a struct bw_diskinfo. */
struct bw_error *cmd_write_disk(struct bw_record_sink *sink,
                                const struct bw_partition_table *table);

#endif
