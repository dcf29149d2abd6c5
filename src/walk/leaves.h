/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaves below one internal node of level 1 (or one leaf that is a whole tree): which of them
 * are wanted, and a window of those that have been read. The wanted leaf with the lowest number
 * always comes next, so a leaf may be wanted again at any time; what the window still holds is not
 * read twice.
 */
#ifndef BW_WALK_LEAVES_H
#define BW_WALK_LEAVES_H

#include "base/map.h"
#include "btree/block.h"
#include "walk/digest.h"

enum {
    BW_WANTED_WORDS = BW_MAX_CHILDREN / 64 + 1,
    BW_NO_SLOT = UINT8_MAX,
    BW_LOST_SLOT = UINT8_MAX - 1, /**< could not be read once, and is not asked for again */
};

struct bw_leaves {
    const struct bw_tree_reader *reader;
    struct bw_digest_cache *digests; /**< NULL: no leaf is shared */
    bool numbered;                   /**< digests tell the inodes of files */
    const struct bw_tree *tree;
    struct bw_block_pointer pointer; /**< of the node */
    struct bw_node node;             /**< no items if the block of `pointer` is itself a leaf */
    uint32_t count;                  /**< leaves below the node */
    unsigned batch;                  /**< leaves the window holds */
    uint8_t *node_block;
    uint8_t *blocks;                      /**< the window's buffers */
    uint32_t *slot_leaf;                  /**< leaf a slot of the window holds, or UINT32_MAX */
    uint8_t slot_of[BW_MAX_CHILDREN + 1]; /**< slot of a leaf, or BW_NO_SLOT, or BW_LOST_SLOT */
    uint64_t wanted[BW_WANTED_WORDS];     /**< a bit per leaf */
    struct bw_range ranges[BW_MAX_CHILDREN + 1];
};

/** Allocates the buffers; false if memory runs out. `digests` may be NULL; `numbered` is for all in
 * the cache alike. */
bool bw_leaves_create(struct bw_leaves *leaves, const struct bw_tree_reader *reader,
                      struct bw_digest_cache *digests, bool numbered);
/** Frees the buffers. */
void bw_leaves_destroy(struct bw_leaves *leaves);

/**
 * Begins with another node: reads it, wants nothing yet. Leaves whose addresses are in `lost` are
 * never read: what is in them is recovered in another way, and if they could be read now it would
 * be listed twice.
 */
struct bw_error *bw_leaves_open(struct bw_leaves *leaves, const struct bw_tree *tree,
                                const struct bw_block_pointer *pointer, const struct bw_map *lost);

/** The last leaf whose first key is at most `key`; 0 if there is none. */
uint32_t bw_leaves_find(const struct bw_leaves *leaves, const struct bw_key *key);

/** The pointer to a leaf. */
struct bw_block_pointer bw_leaves_pointer(const struct bw_leaves *leaves, uint32_t leaf);

static inline void bw_leaves_want(struct bw_leaves *leaves, uint32_t leaf)
{
    leaves->wanted[leaf / 64] |= (uint64_t)(leaves->slot_of[leaf] != BW_LOST_SLOT) << leaf % 64;
}

/** Tells the read-ahead which leaves are wanted now. */
void bw_leaves_advise(struct bw_leaves *leaves);

/** Receives a leaf that cannot be read, and takes the error. */
typedef void bw_leaf_lost(void *context, const struct bw_block_pointer *pointer,
                          struct bw_error *error);

/** The lowest wanted leaf, which is wanted no more. */
struct bw_wanted_leaf {
    uint32_t number;
    struct bw_node view;     /**< valid until the next call; no block if there is a digest */
    struct bw_buffer digest; /**< of a shared leaf; owned by whoever owns the structure, reused from
                                call to call */
    bool has_digest;
};

/** Moves on to the lowest wanted leaf; false when none is wanted. */
bool bw_leaves_next(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf, bw_leaf_lost *lost,
                    void *context);

#endif
