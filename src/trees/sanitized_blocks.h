/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks of sanitized metadumps, without contents and names. */
#ifndef BW_TREES_SANITIZED_BLOCKS_H
#define BW_TREES_SANITIZED_BLOCKS_H

#include "trees/dumped_items.h"

/** Copies the known bytes of a block, without the checksum, to `target`, which are zeros. */
void bw_sanitized_block_copy(const struct bw_dump_rules *rules, const struct bw_node *node,
                             uint8_t *target);

/** Copies the known bytes of a superblock; not the checksum. */
void bw_sanitized_superblock_copy(const struct bw_dump_rules *rules,
                                  const struct bw_disk_superblock *source,
                                  struct bw_disk_superblock *target);

#endif
