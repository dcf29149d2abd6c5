/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partition tables as text for people, and as JSON. */
#ifndef BW_CMD_PARTITIONS_H
#define BW_CMD_PARTITIONS_H

#include "base/buffer.h"
#include "btrfs-walk/partition.h"
#include "cli/common/sheet.h"

/** Appends a table: a line that says what it is, then a line for each partition, with its number,
 * start, size, type, name, and what is in it. */
void cmd_append_partitions(struct bw_buffer *text, const struct bw_partition_table *table);

/** Adds a table to a sheet: as above after an empty line, or as an object of an open array. */
void cmd_put_partitions(struct sheet *sheet, const struct bw_partition_table *table);

#endif
