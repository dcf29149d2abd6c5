/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers to tree blocks: an address together with everything the parent promises about the block,
 * ready to be turned into a request to the top of the read pipeline.
 */
#ifndef BW_BTREE_BLOCK_H
#define BW_BTREE_BLOCK_H

#include "btrfs-walk/xlator.h"
#include "format/node.h"
#include "format/superblock.h"

struct bw_adopter;

/** Where trees are read from. */
struct bw_tree_reader {
    struct bw_xlator *top;
    uint32_t nodesize;
    const struct bw_frame *frame;     /**< of the search that reads; NULL: of none */
    const struct bw_adopter *adopter; /**< who knows leaves below lost nodes (adopted.h); NULL:
                                         nobody */
};

/** A tree of the file system. */
struct bw_tree {
    uint64_t id;
    struct bw_root_pointer root;
    uint64_t shared_until; /**< blocks up to this generation may be part of other trees, too */
};

/** A pointer to a block. The keys below it are at least expectation.first_key and less than
 * expectation.end_key. */
struct bw_block_pointer {
    uint64_t bytenr;
    struct bw_tree_block_expectation expectation;
};

/** The pointer to a tree's root block. */
struct bw_block_pointer bw_tree_root_pointer(const struct bw_tree *tree, bool lenient);

/** The pointer in slot `slot` of an internal node that was itself reached through `parent`. */
struct bw_block_pointer bw_tree_child_pointer(const struct bw_block_pointer *parent,
                                              const struct bw_node *node, uint32_t slot);

/** The request that reads a block; `buffer` takes reader->nodesize bytes. `pointer` must outlive
 * the request.
 */
struct bw_request bw_block_request(const struct bw_tree_reader *reader,
                                   const struct bw_block_pointer *pointer, void *buffer);

/**
 * Reads blocks, as bw_wind() does, and makes sure that whatever the graph is, nothing comes out of
 * it that this folder and those above could not handle: the address and the level are the ones
 * expected, the items fit the block, and what internal nodes say about their children passed
 * bw_node_check().
 */
void bw_blocks_read(const struct bw_tree_reader *reader, struct bw_request *requests, size_t count);

/** Says that blocks at these logical addresses will be read soon. */
void bw_blocks_advise(const struct bw_tree_reader *reader, const struct bw_range *ranges,
                      size_t count);

/** Reads one block into `buffer`. */
struct bw_error *bw_block_read(const struct bw_tree_reader *reader,
                               const struct bw_block_pointer *pointer, void *buffer);

/** Memory for `count` blocks, to be freed with free(); NULL if there is none. */
uint8_t *bw_block_buffer(const struct bw_tree_reader *reader, unsigned count);

/** How many blocks to read in one batch: as many as a layer takes at a time, in at most one MiB. */
unsigned bw_block_batch(const struct bw_tree_reader *reader);

#endif
