/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the root tree says about subvolumes: gathered once, then held against everything else. */
#ifndef BW_CHECK_ROOTS_H
#define BW_CHECK_ROOTS_H

#include "base/buffer.h"
#include "check/check.h"

/** A subvolume. */
struct bw_root_facts {
    uint64_t id;
    struct bw_key key; /**< of its ROOT_ITEM */
    uint32_t references;
    bool is_dropping; /**< part of it is gone */
    bool has_orphan;  /**< an ORPHAN_ITEM has its id */
    unsigned links;   /**< ROOT_REF items that lead to it */
    uint64_t parent;  /**< the subvolume that it lies in; 0: there is none */
    size_t climb;     /**< that came by first on the way up; see check_ways() */
    uint8_t uuid[BW_UUID_SIZE], received_uuid[BW_UUID_SIZE]; /**< zeros: it has none */
};

/** One of the two items that link a subvolume to the one it hangs in. */
struct bw_root_side {
    uint64_t parent, child;
    uint64_t directory, index;
    size_t name; /**< in the book's names */
    uint16_t name_length;
    bool is_backref;
};

/** All of it. */
struct bw_root_book {
    struct bw_check *check;
    struct bw_root_facts *roots; /**< ascending */
    size_t root_count, root_capacity;
    struct bw_root_side *sides;
    size_t side_count, side_capacity;
    struct bw_buffer names;
    uint64_t *orphans;
    size_t orphan_count, orphan_capacity;
    uint64_t default_id;  /**< 0: there is no entry for it */
    bool has_balance;     /**< one is under way */
    uint64_t relocations; /**< trees that relocation has left */
};

/** The subvolume with an id; NULL if there is none. */
struct bw_root_facts *bw_root_facts_of(const struct bw_root_book *book, uint64_t id);

/** A subject: an item of the root tree. */
struct bw_subject bw_root_subject(uint64_t objectid, uint8_t type, uint64_t offset);

/** Links, both ways, and the directory entries they name; counts root->links. */
struct bw_error *bw_check_root_links(struct bw_root_book *book);

/** The uuid tree, both ways. */
struct bw_error *bw_check_root_uuids(struct bw_root_book *book);

#endif
