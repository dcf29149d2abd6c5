/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What subvolumes share: how many bytes each of them reaches, how many nothing else reaches, and
 * what deleting some of them together would free. Counted are whole extents of data, as they are
 * stored, and tree blocks, each once, as quota groups count them; without quotas, from the trees
 * themselves. All numbers are in bytes.
 */
#ifndef BTRFS_WALK_SHARES_H
#define BTRFS_WALK_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

/** The subvolumes of a file system, with what they share. It does not change: any number of threads
 * may use it. */
struct bw_shares;

/** Options of bw_shares_open(). Begins with its size, so that it can grow. */
struct bw_shares_options {
    size_t struct_size; /**< sizeof(struct bw_shares_options), set by the caller */
    unsigned threads;   /**< that read; 0: one for each processor, at most 8 */
    /** Called now and then in the thread of the caller; false ends the work with
     * BW_ERROR_STOPPED. NULL: nothing. */
    bool (*progress)(void *context);
    void *context; /**< of `progress` */
};

/** How the numbers came about. */
struct bw_shares_info {
    uint64_t blocks;      /**< tree blocks of subvolumes that were read, each once */
    uint64_t lost_blocks; /**< tree blocks that could not be read: with them, what is below them is
                               missing, and all numbers are lower bounds */
    uint64_t sets;        /**< different sets of subvolumes that share something */
    bool by_extent_tree;  /**< the extent tree told what is shared; false: it is not whole */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A subvolume. */
struct bw_subvolume_space {
    uint64_t id;
    bool is_deleted;      /**< it is being deleted; others do not share with it any more */
    uint64_t referenced;  /**< what it reaches; of one that is being deleted, what no other
                               subvolume that stays reaches */
    uint64_t exclusive;   /**< what only it reaches */
    uint64_t lost_blocks; /**< tree blocks that it reaches and that cannot be read */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Several subvolumes together. */
struct bw_shares_sum {
    uint64_t referenced;  /**< what at least one of them reaches */
    uint64_t exclusive;   /**< what nothing but them reaches: deleting them all frees that */
    uint64_t lost_blocks; /**< tree blocks that at least one of them reaches and that cannot be
                               read */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Subvolumes with ids from `first` to `last`: all that there are, those that are being deleted
 * only if `are_deleted`. */
struct bw_subvolume_range {
    uint64_t first, last;
};

/** What exactly these subvolumes share: each of them reaches it, and no other one does. */
struct bw_shared_set {
    uint64_t bytes;
    uint64_t subvolume_count;
    const struct bw_subvolume_range *ranges; /**< the subvolumes, ascending */
    size_t range_count;
    bool are_deleted;     /**< all of them are being deleted */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/**
 * Reads the extent tree and the trees of all subvolumes, each block once however many snapshots
 * share it. It takes some 36 bytes of memory for an extent or tree block with several references,
 * or 76 if the extent tree is not whole, and little for all others. What cannot be read is
 * reported, at the end also how much of which subvolumes. The caller owns `*shares`, which does
 * not need the file system any more. Fails if memory runs out, or with BW_ERROR_STOPPED.
 */
struct bw_error *bw_shares_open(struct bw_fs *fs, const struct bw_shares_options *options,
                                struct bw_shares **shares);

/** Frees it; NULL is allowed. */
void bw_shares_close(struct bw_shares *shares);

/** How the numbers came about. */
void bw_shares_get(const struct bw_shares *shares, struct bw_shares_info *info);

/** The subvolume with an id; NULL if there is none. It belongs to `shares`. */
const struct bw_subvolume_space *bw_shares_subvolume(const struct bw_shares *shares, uint64_t id);

/** Adds up subvolumes; an id may be given twice. BW_ERROR_NOT_FOUND if there is no subvolume with
 * one of the ids. */
struct bw_error *bw_shares_of(const struct bw_shares *shares, const uint64_t *ids, size_t count,
                              struct bw_shares_sum *sum);

/** Receives a set; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_shared_set_taker(void *context, const struct bw_shared_set *set);

/** Hands out all sets, those with the most bytes first, and of those with as many the ones with the
 * lowest id. Subvolumes that share nothing with others are sets as well. */
struct bw_error *bw_shares_sets(const struct bw_shares *shares, bw_shared_set_taker *take,
                                void *context);

#ifdef __cplusplus
}
#endif
#endif
