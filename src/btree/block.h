/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers to tree blocks: an address together with everything the parent promises about the block,
 * ready to be turned into a request to the top of the read pipeline. And the blocks that stand in
 * for what a lost node led to.
 */
#ifndef BW_BTREE_BLOCK_H
#define BW_BTREE_BLOCK_H

#include "btree/memory.h"
#include "btrfs-walk/xlator.h"
#include "ondisk/node.h"
#include "ondisk/superblock.h"

struct bw_adopter;

/** Where trees are read from. */
struct bw_tree_reader {
    struct bw_xlator *top;
    uint32_t nodesize;
    const struct bw_frame *frame;         /**< the search that reads; NULL: none */
    const struct bw_adopter *adopter;     /**< finds leaves below lost nodes; NULL: there is none */
    const struct bw_block_memory *memory; /**< blocks that are not in the image; NULL: none */
    bool keeps_leaves; /**< leaves will be requested again, like nodes: for single look-ups */
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

enum {
    /** The most children that a node can have. */
    BW_MAX_CHILDREN =
        (BW_MAX_NODESIZE - sizeof(struct bw_disk_header)) / sizeof(struct bw_disk_key_pointer)
};

/** The pointer to the root block of a tree. */
struct bw_block_pointer bw_tree_root_pointer(const struct bw_tree *tree, bool lenient);

/** The pointer in slot `slot` of an internal node that was itself reached through `parent`. */
struct bw_block_pointer bw_tree_child_pointer(const struct bw_block_pointer *parent,
                                              const struct bw_node *node, uint32_t slot);

/** The last child that begins at or before a key; 0 if there is none. */
uint32_t bw_child_slot(const struct bw_node *node, const struct bw_key *key);

/** The request that reads a block; `buffer` takes reader->nodesize bytes. `pointer` must outlive
 * the request. */
struct bw_request bw_block_request(const struct bw_tree_reader *reader,
                                   const struct bw_block_pointer *pointer, void *buffer);

/**
 * Reads blocks, as bw_wind() does. Whatever the layers of the graph are, every block that comes
 * back without an error is safe to use: it has the expected address and level, its items fit into
 * it, and the pointers of an internal node have passed bw_node_check().
 */
void bw_blocks_read(const struct bw_tree_reader *reader, struct bw_request *requests, size_t count);

/** Announces that blocks at these logical addresses will be read soon. */
void bw_blocks_advise(const struct bw_tree_reader *reader, const struct bw_range *ranges,
                      size_t count);

/** Reads one block into `buffer`. */
struct bw_error *bw_block_read(const struct bw_tree_reader *reader,
                               const struct bw_block_pointer *pointer, void *buffer);

/** Memory for `count` blocks, to be freed with free(); NULL if there is none. */
uint8_t *bw_block_buffer(const struct bw_tree_reader *reader, unsigned count);

/** How many blocks to read in one batch: as many as a layer takes at a time, in at most one MiB. */
unsigned bw_block_batch(const struct bw_tree_reader *reader);

/** The next item of a leaf from `*slot` on whose bytes lie inside the leaf; `*slot` moves past it.
 * False at the end. */
static inline bool bw_leaf_next(const struct bw_node *leaf, uint32_t *slot, struct bw_item *item)
{
    while (*slot < leaf->item_count)
        if (bw_leaf_item(leaf, (*slot)++, item))
            return true;
    return false;
}

/**
 * A leaf that was found in another way than down the tree, since a node above it is lost. The keys
 * of its pointer go from its own first one up to the next adopted leaf, or to the end of the loss.
 */
struct bw_adopted_leaf {
    struct bw_block_pointer pointer;
    struct bw_key last_key; /**< the greatest of its keys */
    uint32_t wave;          /**< as in struct bw_lost_range, if there is a walk */
};

/** The adopted leaves of a tree. All zeros is none. */
struct bw_adopted {
    struct bw_adopted_leaf *leaves; /**< ascending, not overlapping */
    size_t count, capacity;
    bool complete; /**< the list is complete: a key in none of the leaves is not in the tree */
};

/** Finds leaves below lost nodes. recovery/ provides one, readers of trees use it. */
struct bw_adopter {
    /** Gives the leaves below the lost nodes of a tree, valid as long as the reader; NULL if the
     * node at `bytenr` is not one of those. Safe from any thread. Fails only if memory runs out. */
    struct bw_error *(*find)(void *context, const struct bw_tree *tree, uint64_t bytenr,
                             const struct bw_adopted **adopted);
    void *context;
};

/** Frees the list, and leaves an empty one. */
void bw_adopted_free(struct bw_adopted *adopted);

/** How many of the leaves begin at or before a key. */
size_t bw_adopted_until(const struct bw_adopted *adopted, const struct bw_key *key);

/** The leaf that holds a key if the tree has it at all; NULL if that is not known. */
const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted *adopted,
                                                 const struct bw_key *key);

/** Whether the leaves have all keys of the tree from `first` to `last`, both included. */
bool bw_adopted_covers(const struct bw_adopted *adopted, const struct bw_key *first,
                       const struct bw_key *last);

/** Calls bw_adopter.find of a reader; NULL if it has no adopter. */
struct bw_error *bw_adopted_find(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                 uint64_t bytenr, const struct bw_adopted **adopted);

/** Reads the leaves that may hold keys from `first` to `last`, and passes them to `visit`, whose
 * error ends that. Leaves that cannot be read are passed over. */
struct bw_error *
bw_adopted_visit(const struct bw_tree_reader *reader, const struct bw_adopted *adopted,
                 const struct bw_key *first, const struct bw_key *last,
                 struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                 void *context);

#endif
