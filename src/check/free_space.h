/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The free space tree, held against what is free: block group by block group, in ascending order.
 * Superblocks lie in block groups as well; whether they are free is left open. */
#ifndef BW_CHECK_FREE_SPACE_H
#define BW_CHECK_FREE_SPACE_H

#include "check/check.h"
#include "owners/item_stream.h"

/** A range of logical addresses. */
struct bw_run {
    uint64_t start, end;
};

struct bw_free_space {
    struct bw_check *check;
    struct bw_item_stream stream;
    bool is_used;               /**< there is a tree, and it is valid */
    struct bw_run *superblocks; /**< ascending: stripes in which they lie */
    size_t superblock_count, superblock_capacity;
    size_t extra_count; /**< block groups that do not exist */
    struct bw_key first_extra;

    /* Of the present block group. */
    const struct bw_checked_group *group;
    bool known;              /* the tree has it, and what it has can be read */
    bool has_run, ended;     /* of `run`; and whether there are more */
    struct bw_run run, next; /* of the tree, joined; and the one after it */
    bool has_next;
    uint32_t bit;                 /* of the bitmap that is the present item */
    uint64_t run_count, promised; /* of runs */
    uint32_t flags;
    bool differs;
    struct bw_run wanted, found; /* the first difference; empty: none */
};

/** Begins. To be ended, whatever is returned. */
struct bw_error *bw_free_space_begin(struct bw_free_space *self, struct bw_check *check);

/** Goes on to the next block group. */
void bw_free_space_enter(struct bw_free_space *self, const struct bw_checked_group *group);

/** A range of the block group is free; they come in ascending order and do not touch. */
void bw_free_space_expect(struct bw_free_space *self, uint64_t start, uint64_t end);

/** Ends a block group. What was found is reported, unless `unsure`: what is free is not known. */
void bw_free_space_leave(struct bw_free_space *self, bool unsure);

/** Ends; returns `error`, or one of memory. */
struct bw_error *bw_free_space_end(struct bw_free_space *self, struct bw_error *error);

#endif
