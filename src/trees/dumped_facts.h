/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the information in a metadump. */
#ifndef BW_TREES_DUMPED_FACTS_H
#define BW_TREES_DUMPED_FACTS_H

#include "btrfs-walk/tree.h"
#include "trees/dumped_blocks.h"
#include "trees/dumped_items.h"

/** Facts about a dump that are not in its items. All zeros: it is empty. */
struct bw_dump_summary {
    uint64_t block_bytes, cache_bytes; /**< written, before compression */
    uint64_t lost_blocks;              /**< not readable, and left out */
    uint64_t stale_blocks;             /**< older than their parents expect, but included */
    uint64_t superblock_devid;         /**< device of the superblock */
};

/** Passes all facts to options->visit. */
struct bw_error *bw_dumped_facts_list(struct bw_fs *fs, const struct bw_metadump_options *options,
                                      const struct bw_dumped_facts *facts,
                                      const struct bw_dump_summary *summary);

#endif
