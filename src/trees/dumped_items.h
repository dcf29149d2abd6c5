/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prepares tree blocks for a metadump: removes contents of files, and names if requested. */
#ifndef BW_TREES_DUMPED_ITEMS_H
#define BW_TREES_DUMPED_ITEMS_H

#include "ondisk/items.h"
#include "trees/pseudonyms.h"

/** The information to keep. */
struct bw_dump_rules {
    enum bw_checksum_type checksum_type;
    const uint8_t *fsid; /**< of all blocks: those of seed devices get it, too, because a metadump
                              has a single superblock */
    bool checksums;      /**< keep the checksums of data, and fs-verity's */
    const struct bw_pseudonyms *names; /**< replaces names, and only known bytes are kept; NULL: all
                                            bytes of items but contents are kept */
    /* If there are names: */
    uint64_t generation; /**< the latest one that is possible */
    uint32_t sectorsize, checksum_size;
    const uint8_t (*uuids)[BW_UUID_SIZE]; /**< of the file system and its devices */
    size_t uuid_count;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
};

/** Removes from a block, which the verifying layers have accepted, everything that the rules do not
 * keep, and all bytes outside of items; sets its checksum. `scratch` has room for a block. */
void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch);

#endif
