/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of everything that a metadump contains: tree blocks, and the space cache. */
#ifndef BW_TREES_DUMPED_BLOCKS_H
#define BW_TREES_DUMPED_BLOCKS_H

#include "base/vector.h"
#include "owners/tree_list.h"

/** The owner of blocks that only the extent tree contains. */
enum { BW_DUMPED_UNKNOWN_TREE = UINT32_MAX };

/** A tree block, or a piece of the space cache. */
struct bw_dumped_block {
    uint64_t bytenr;
    uint64_t generation; /**< of a tree block, according to its parent */
    uint32_t length;     /**< bytes */
    uint32_t tree;       /**< number of a tree in the list from which it was reached */
    uint8_t level;       /**< of a tree block */
    bool is_data;        /**< part of the space cache */
};

BW_VECTOR(bw_dumped_block_list, struct bw_dumped_block);

/** All zeros is an empty list. */
struct bw_dumped_blocks {
    struct bw_tree_list trees;
    struct bw_dumped_block_list blocks; /**< by ascending address; they do not overlap */
    uint64_t bytes;
};

/**
 * Fills an empty list, to be freed even after an error: the blocks of all trees, log trees
 * included, each once, and the space cache. Reads internal nodes. If one is lost, the extent tree
 * shows which blocks are below it. Blocks that overlap others are reported and left out.
 */
struct bw_error *bw_dumped_blocks_find(struct bw_dumped_blocks *list, struct bw_fs *fs);

void bw_dumped_blocks_free(struct bw_dumped_blocks *list);

#endif
