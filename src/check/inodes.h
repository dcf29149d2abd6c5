/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The second look at a subvolume whose inodes do not add up to zero. All its items are read in the
 * order of keys. What the items of one inode must be is decided as they come (inode_run.c). What
 * directories and inodes say of each other goes into accounts by inode; those that do not balance
 * are collected in another reading, and judged name by name (inode_names.c).
 */
#ifndef BW_CHECK_INODES_H
#define BW_CHECK_INODES_H

#include "check/inode_facts.h"
#include "recovery/recovery.h"

/** The inode whose items are being read (inode_run.c). */
struct bw_inode_run {
    uint64_t number; /**< 0: none yet */
    struct bw_inode inode;
    bool has_item;   /**< `inode` is known */
    bool incomplete; /**< some of its items are lost */
    bool has_top_reference;
    bool overlaps;                    /**< that was reported */
    uint64_t extents, entries;        /**< how many items it has of these */
    uint64_t item_names, index_names; /**< bytes of the names in it, as a directory */
    uint64_t bytes, end, gap;         /**< of its extents; no gap: UINT64_MAX */
    uint64_t stored;                  /**< in them; see struct bw_extent_fact */
    uint64_t nul;                     /**< where the first NUL in what is stored is */
};

/** What an item says of an inode, kept until all that is said of it is known. */
struct bw_name_record {
    uint64_t inode;
    uint64_t directory; /**< of a name */
    uint64_t name;      /**< its hash; 0: this is about the inode itself */
    uint64_t value;     /**< index of the name; links of the inode */
    uint32_t name_hash; /**< as in the key of a DIR_ITEM */
    uint8_t kind;       /**< enum bw_record_kind */
    uint8_t type;       /**< of the file */
    bool is_subvolume;  /**< the entry leads to one: `inode` is its id */
};

enum bw_record_kind {
    BW_RECORD_INODE,     /**< INODE_ITEM */
    BW_RECORD_HEADLESS,  /**< it has items, but no INODE_ITEM */
    BW_RECORD_ORPHAN,    /**< ORPHAN_ITEM */
    BW_RECORD_ITEM,      /**< DIR_ITEM */
    BW_RECORD_INDEX,     /**< DIR_INDEX */
    BW_RECORD_REFERENCE, /**< INODE_REF or INODE_EXTREF */
};

/** A subvolume that is being looked at. */
struct bw_examination {
    struct bw_check *check;
    const struct bw_listed_tree *tree;
    uint64_t more_subvolumes; /**< with the same rest */
    struct bw_fact_secrets secrets;
    struct bw_lost_ranges lost;    /**< keys that could not be read */
    struct bw_lost_list lost_list; /**< the same, once all are known */
    struct bw_key lost_end;        /**< the greatest of them so far, exclusive */
    struct bw_inode_run run;
    bool collecting;                     /**< this is not the first reading */
    uint64_t *rests;                     /**< of the accounts */
    uint32_t *counts;                    /**< records in each account */
    uint32_t first_account, end_account; /**< that are being collected */
    struct bw_name_record *records;
    size_t count, capacity;
};

/** A subject of a finding about an inode of the tree, and an item of it. */
struct bw_subject bw_examination_subject(const struct bw_examination *examination, uint64_t inode,
                                         struct bw_key key);

/** Notes that an item cannot be read: nothing may follow from what it is missing. */
struct bw_error *bw_examination_lose_item(struct bw_examination *examination,
                                          const struct bw_key *key);

/* inode_run.c */

/** Begins with the next inode if the key belongs to another one than the last item. */
struct bw_error *bw_inode_run_enter(struct bw_examination *examination, const struct bw_key *key);
/** The next item of the tree. */
struct bw_error *bw_inode_run_take(struct bw_examination *examination, const struct bw_item *item);
/** Ends the present inode: reports what is wrong with it, on the first reading. */
struct bw_error *bw_inode_run_end(struct bw_examination *examination);

/* inode_names.c */

/** Enters the names that an item tells, or that an inode exists or is an orphan. */
struct bw_error *bw_names_take(struct bw_examination *examination, const struct bw_item *item);
/** Reports what is wrong in what was collected. */
void bw_names_judge(struct bw_examination *examination);

/* inodes.c */

/** Counts what is said of an inode, or collects it if its account is one of those that are looked
 * at. `fact` is what it adds to the account. */
struct bw_error *bw_examination_enter(struct bw_examination *examination,
                                      const struct bw_name_record *record, uint64_t fact);
/** Whether any key in a range, both ends included, is lost. */
bool bw_examination_lost(const struct bw_examination *examination, struct bw_key first,
                         struct bw_key last);

#endif
