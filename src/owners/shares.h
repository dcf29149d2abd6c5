/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What subvolumes share, inside: count.c counts it, shares.c answers for it. */
#ifndef BW_OWNERS_SHARES_H
#define BW_OWNERS_SHARES_H

#include "btrfs-walk/shares.h"
#include "owners/root_sets.h"
#include "owners/tree_list.h"

/** A set of subvolumes, and what exactly these share. */
struct bw_shares_account {
    uint32_t set;
    uint32_t first; /**< index of the first subvolume; set when all is counted */
    uint64_t bytes;
    uint64_t lost_blocks;
};

/** A subvolume by its number in sets. */
struct bw_shares_number {
    uint32_t index; /**< of the subvolume */
    uint32_t end;   /**< up to this number, without it, indices are consecutive */
};

struct bw_shares {
    struct bw_subvolume_space *subvolumes; /**< first those that stay, then those that are being
                                              deleted; both by ascending id */
    uint32_t count, staying;
    struct bw_shares_number *numbers; /**< the same two groups, both in the order in which they
                                         changed last: what a subvolume has shared with its
                                         snapshots for a while is a single run of them */
    struct bw_root_sets sets;
    struct bw_shares_account *accounts; /**< one for a set */
    size_t account_count, account_capacity;
    struct bw_map accounts_by_set;
    struct bw_shares_info info;
    const struct bw_listed_tree **trees; /**< of the subvolumes, by index, while counting */
};

/** Adds to the account of a set; false if memory runs out. */
bool bw_shares_enter(struct bw_shares *shares, uint32_t set, uint64_t bytes, uint64_t lost_blocks);

/** Counts all that the subvolumes share: fills the accounts (count.c). `list` has all trees. */
struct bw_error *bw_shares_count(struct bw_shares *shares, struct bw_fs *fs,
                                 const struct bw_tree_list *list,
                                 const struct bw_shares_options *options);

#endif
