/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Known files: inodes that the entries of a shard's leaves show to be no directories. Leaves in
 * which all inodes are known files have no entries, so the shard need not read them.
 */
#ifndef BW_WALK_KNOWN_FILES_H
#define BW_WALK_KNOWN_FILES_H

#include "btree/block.h"
#include "walk/leaves.h"

/** Inodes known to be no directories, near a first one. */
struct bw_known_files {
    uint64_t first, count; /**< inodes for which there are bits */
    uint64_t *bits;
    size_t capacity;             /**< of `bits` */
    uint64_t run_first, run_end; /**< consecutive inodes that were added last, without bits yet */
};

void bw_known_files_free(struct bw_known_files *known);

/** Empties the set for the inodes below a node, whose last leaf begins with the inode `last`. */
struct bw_error *bw_known_files_reset(struct bw_known_files *known,
                                      const struct bw_block_pointer *pointer, uint64_t last);

/** Adds a file that does not follow the last one. */
void bw_known_files_begin_run(struct bw_known_files *known, uint64_t inode);

/** Adds a file. Files of the same directory often have consecutive inodes. */
static inline void bw_known_files_add(struct bw_known_files *known, uint64_t inode)
{
    if (inode == known->run_end)
        known->run_end++;
    else
        bw_known_files_begin_run(known, inode);
}

/** Adds the files of the items from `slot` up to `end`, for which bw_leaf_file_entry() has found
 * entries. */
void bw_known_files_add_items(struct bw_known_files *known, const struct bw_node *leaf,
                              uint32_t slot, uint32_t end);

/** Adds the files of consecutive entries in a numbered list. */
void bw_known_files_add_listed(struct bw_known_files *known, struct bw_entry_list_cursor files);

/** Adds all files that the entries of a leaf refer to. */
void bw_known_files_add_leaf(struct bw_known_files *known, const struct bw_node *leaf);

/** Whether the set contains all inodes that may have entries in a leaf, judged by its first key and
 * the first key of the next leaf. */
bool bw_known_files_fill(struct bw_known_files *known, const struct bw_key *first,
                         const struct bw_key *end);

#endif
