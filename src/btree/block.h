/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers to tree blocks: an address together with everything that the parent promises about the
 * block, from which a request to the top layer can be made. Also the adopted leaves, which replace
 * the leaves below a lost node.
 */
#ifndef BW_BTREE_BLOCK_H
#define BW_BTREE_BLOCK_H

#include "btree/memory.h"
#include "btrfs-walk/graph.h"
#include "ondisk/node.h"
#include "ondisk/superblock.h"

struct bw_adopter;

/** The source of tree blocks. */
struct bw_tree_reader {
    struct bw_xlator *top;
    uint32_t nodesize;
    const struct bw_frame *frame;         /**< frame of the current search; may be NULL */
    const struct bw_adopter *adopter;     /**< finds leaves below lost nodes; may be NULL */
    const struct bw_block_memory *memory; /**< blocks that are not in the image; may be NULL */
    bool keeps_leaves; /**< leaves will be requested again, like nodes; for single lookups */
};

/** A tree of the file system. */
struct bw_tree {
    uint64_t id;
    struct bw_root_pointer root;
    uint64_t shared_until; /**< blocks up to this generation may also be part of other trees */
};

/** A pointer to a block. The keys below it are at least expectation.first_key and less than
 * expectation.end_key. */
struct bw_block_pointer {
    uint64_t bytenr;
    struct bw_tree_block_expectation expectation;
};

enum {
    /** The maximum number of children of a node. */
    BW_MAX_CHILDREN =
        (BW_MAX_NODESIZE - sizeof(struct bw_disk_header)) / sizeof(struct bw_disk_key_pointer)
};

/** The pointer to the root block of a tree. */
struct bw_block_pointer bw_tree_root_pointer(const struct bw_tree *tree, bool lenient);

/** The pointer in slot `slot` of an internal node, which was reached through `parent`. */
struct bw_block_pointer bw_tree_child_pointer(const struct bw_block_pointer *parent,
                                              const struct bw_node *node, uint32_t slot);

/** The slot of the last child that begins at or before a key; 0 if none exists. */
uint32_t bw_child_slot(const struct bw_node *node, const struct bw_key *key);

/** A request for a block; `buffer` needs reader->nodesize bytes. `pointer` must outlive the
 * request. */
struct bw_request bw_block_request(const struct bw_tree_reader *reader,
                                   const struct bw_block_pointer *pointer, void *buffer);

/**
 * Reads blocks like bw_wind(). Every block that is returned without an error is safe to use, even
 * if the graph lacks the verifying layers: it has the expected address and level, its items are
 * within the block, and the pointers of an internal node have passed bw_node_check().
 */
void bw_blocks_read(const struct bw_tree_reader *reader, struct bw_request *requests, size_t count);

/** Announces that blocks at these logical addresses will be read soon. */
void bw_blocks_advise(const struct bw_tree_reader *reader, const struct bw_range *ranges,
                      size_t count);

/** Reads one block into `buffer`. */
struct bw_error *bw_block_read(const struct bw_tree_reader *reader,
                               const struct bw_block_pointer *pointer, void *buffer);

/** Memory for `count` blocks, to be freed with free(); NULL if memory runs out. */
uint8_t *bw_block_buffer(const struct bw_tree_reader *reader, unsigned count);

/** The number of blocks in a batch: as many as layers process at a time, in at most one MiB. */
unsigned bw_block_batch(const struct bw_tree_reader *reader);

/** Gets the next item at or after `*slot` whose bytes are within the leaf; advances `*slot` beyond
 * it. False at the end. */
static inline bool bw_leaf_next(const struct bw_node *leaf, uint32_t *slot, struct bw_item *item)
{
    while (*slot < leaf->item_count)
        if (bw_leaf_item(leaf, (*slot)++, item))
            return true;
    return false;
}

/**
 * A leaf, or a node, below a lost node that was found without the tree. Its pointer's key range
 * begins at its own first key, and ends at the next adopted block or at the end of the loss.
 */
struct bw_adopted_leaf {
    struct bw_block_pointer pointer;
    struct bw_key last_key; /**< its greatest key */
    uint32_t wave;          /**< as in struct bw_lost_range, if there is a walk */
};

BW_VECTOR(bw_adopted_leaves, struct bw_adopted_leaf);

/** The adopted leaves of a tree. All zeros is an empty list. */
struct bw_adopted {
    struct bw_adopted_leaves leaves; /**< ascending, without overlap */
    bool complete;                   /**< a key that is in none of the leaves is not in the tree */
};

/** Finds leaves below lost nodes. Implemented in recovery/, used by readers of trees. */
struct bw_adopter {
    /** Gets the leaves below the lost nodes of a tree, valid as long as the reader. NULL if the
     * node at `bytenr` is not one of them. Callable from any thread. Fails only if memory runs out.
     */
    struct bw_error *(*find)(void *context, const struct bw_tree *tree, uint64_t bytenr,
                             const struct bw_adopted **adopted);
    void *context;
};

/** Frees the list and empties it. */
void bw_adopted_free(struct bw_adopted *adopted);

/** The number of leaves that begin at or before a key. */
size_t bw_adopted_until(const struct bw_adopted *adopted, const struct bw_key *key);

/** The leaf that contains a key if the tree does; NULL if that is unknown. */
const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted *adopted,
                                                 const struct bw_key *key);

/** Whether the leaves contain all keys of the tree from `first` to `last`, inclusive. */
bool bw_adopted_covers(const struct bw_adopted *adopted, const struct bw_key *first,
                       const struct bw_key *last);

/** Calls the adopter of a reader; sets NULL if it has none. */
struct bw_error *bw_adopted_find(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                 uint64_t bytenr, const struct bw_adopted **adopted);

/** Reads the leaves that may contain keys from `first` to `last`, and passes them to `visit`.
 * Returns the first error of `visit`. Skips leaves that cannot be read. */
struct bw_error *
bw_adopted_visit(const struct bw_tree_reader *reader, const struct bw_adopted *adopted,
                 const struct bw_key *first, const struct bw_key *last,
                 struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                 void *context);

#endif
