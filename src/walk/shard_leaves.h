/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaves of a node that a shard reads: the leaves of its part that may have entries. First come
 * the leaves that begin with entries. They show the inodes of files, so many of the hidden leaves,
 * which may have entries after other items, turn out to have none. Which leaves have entries is
 * remembered for other trees that share the node.
 */
#ifndef BW_WALK_SHARD_LEAVES_H
#define BW_WALK_SHARD_LEAVES_H

#include "walk/known_files.h"
#include "walk/leaves.h"
#include "walk/shard.h"

/** All zeros before the first use; of one worker. */
struct bw_shard_leaves {
    const struct bw_shard_nodes *nodes;
    struct bw_leaves *leaves;    /**< of the node */
    struct bw_known_files known; /**< files that entries refer to */
    bool notes; /**< there are hidden leaves: the caller adds files to `known`, whether or not it
                 * lists them */

    /* Private. */
    bool owns_all; /* all leaves belong to the shard */
    bool needs_inodes;
    bool recalled; /* another tree has shown which leaves have entries */
    size_t cut;    /* for bw_shard_has() */
    unsigned round;
    uint32_t hidden_count;
    uint16_t hidden[BW_MAX_CHILDREN + 1];
    struct bw_buffer numbers; /* of leaves that have entries */
};

void bw_shard_leaves_free(struct bw_shard_leaves *part);

/** Begins with the node that is open in `leaves`, and wants the first leaves; with `needs_inodes`
 * all of them: a leaf without entries has the inodes of files, which are looked up while it is in
 * memory. */
struct bw_error *bw_shard_leaves_begin(struct bw_shard_leaves *part,
                                       const struct bw_shard_nodes *nodes, struct bw_leaves *leaves,
                                       bool needs_inodes);

/** Whether a leaf belongs to the shard. */
bool bw_shard_leaves_has(struct bw_shard_leaves *part, uint32_t leaf);

/** Tells that a wanted leaf was listed. */
void bw_shard_leaves_add(struct bw_shard_leaves *part, const struct bw_wanted_leaf *leaf);

/** Wants further leaves, when those wanted before have been listed; false if there are none. */
bool bw_shard_leaves_want_more(struct bw_shard_leaves *part);

/** Remembers which leaves have entries. All wanted ones must have been listed. */
void bw_shard_leaves_remember(const struct bw_shard_leaves *part);

#endif
