/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorded free space, compared with the actual free space: block group by block group, in
 * ascending order. A file system uses one of two sources: the free space tree, or the space caches
 * of version 1. Superblocks lie in block groups as well; either answer is accepted for them.
 */
#ifndef BW_CHECK_FREE_SPACE_H
#define BW_CHECK_FREE_SPACE_H

#include "check/check.h"
#include "owners/tree_list.h"

struct bw_free_space;
struct bw_space_cache;

/** Where runs come from. */
struct bw_free_space_source {
    const char *name; /**< in messages */
    enum bw_code_number differs;
    /** A location about the present block group. */
    struct bw_finding (*location)(const struct bw_free_space *self);
    /** Goes on to the present block group, and sets `known`. Fails only if memory runs out. */
    struct bw_error *(*enter)(struct bw_free_space *self);
    /** The next run of the block group; they ascend, and may touch. False at the end. */
    bool (*next)(struct bw_free_space *self, struct bw_span *run);
    /** The flipped bit that explains the difference. NULL: it is not known. */
    void (*find_flip)(const struct bw_free_space *self, struct bw_flip *flip);
    /** Ends a block group once it is complete. NULL: nothing to do. */
    void (*leave)(const struct bw_free_space *self);
    struct bw_error *(*end)(struct bw_free_space *self, struct bw_error *error);
};

struct bw_free_space {
    struct bw_check *check;
    const struct bw_free_space_source *source; /**< NULL: nothing can be compared */
    struct bw_range_set superblocks;           /**< stripes in which they lie */
    struct bw_error *failure;                  /**< memory ran out */

    /* Of the present block group. */
    const struct bw_checked_group *group;
    bool known;               /**< by the source: what it has can be read, and is in use */
    bool has_run, has_next;   /* of `run` and `next` */
    struct bw_span run, next; /* current range of the source, joined; and the next one */
    uint64_t run_count;       /**< runs so far, joined */
    bool differs;
    struct bw_span wanted, found; /* the first difference; empty: none */
    uint64_t edges;               /**< a hash of the ends that only one side has */

    /* Of the free space tree. */
    struct bw_item_stream stream;
    size_t leftover_count; /* block groups before the first existing one, left by mkfs.btrfs */
    size_t extra_count;    /* other block groups that do not exist */
    struct bw_key first_extra;
    struct bw_key extra;     /* the last one: everything before its end belongs to it */
    uint32_t extra_promised; /* number of records according to its information item */
    bool extra_is_free;      /* one record marks the whole range as free */
    size_t stray_count;      /* records of no block group, and none that mkfs.btrfs leaves */
    struct bw_key first_stray;
    size_t ahead_count; /* those behind all block groups */
    struct bw_key first_ahead;
    uint32_t bit;      /* of the bitmap that is the present item */
    uint64_t promised; /* runs */
    uint32_t flags;

    struct bw_space_cache *cache;
};

/** Begins. Must be ended, even after an error. */
struct bw_error *bw_free_space_begin(struct bw_free_space *self, struct bw_check *check);

/** Goes on to the next block group. */
void bw_free_space_enter(struct bw_free_space *self, const struct bw_checked_group *group);

/** Whether block groups can be skipped: not with space caches. */
bool bw_free_space_can_skip(const struct bw_free_space *self);

/** Goes on to the next block group, which is unchanged, and passes over it. */
void bw_free_space_skip(struct bw_free_space *self, const struct bw_checked_group *group);

/** A range of the block group is free; they come in ascending order and do not touch. */
void bw_free_space_expect(struct bw_free_space *self, uint64_t start, uint64_t end);

/** Ends a block group and reports its faults, unless `unsure`: the actual free space is unknown. */
void bw_free_space_leave(struct bw_free_space *self, bool unsure);

/** Ends; returns `error`, or one of memory. */
struct bw_error *bw_free_space_end(struct bw_free_space *self, struct bw_error *error);

/** Lists the stripes of all chunks in which superblocks lie, as the kernel sets them apart, as
 * ranges of logical addresses. Source: btrfs_rmap_block() and exclude_super_stripes() in
 * fs/btrfs/block-group.c. */
struct bw_error *bw_superblock_stripes(struct bw_fs *fs, struct bw_range_set *stripes);

#endif
