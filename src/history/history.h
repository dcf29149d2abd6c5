/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of states, as the files of this folder see it. */
#ifndef BW_HISTORY_HISTORY_H
#define BW_HISTORY_HISTORY_H

#include "btrfs-walk/past.h"
#include "history/completeness.h"

/** A state, with the roots that lead to everything else. */
struct bw_past_state {
    struct bw_state_info info;
    struct bw_root_pointer root, chunk_root;
    bool is_complete;      /**< superseded, but all its trees had been written as well */
    bool has_other_chunks; /**< its own chunk tree is lost; this is an older one */
};

/** A root of a chunk tree; with the newest generation first. */
struct bw_chunk_root {
    struct bw_root_pointer root;
    bool known; /**< the superblock names it */
};

enum { BW_PAST_SYSTEM_CHUNKS = 16, BW_PAST_ITEMS = 1 << 23 };

struct bw_past {
    struct bw_fs *fs;
    struct bw_tree_reader reader; /**< without what stands in for lost blocks */
    struct bw_found_index index;
    struct bw_judge *judge; /**< NULL: there was no scan */
    struct bw_past_facts facts;
    bool judged;     /**< what the judge says of states is wanted, and true */
    uint64_t leaves; /**< of root trees that may still be read: a crafted image has any number */
    uint64_t items;  /**< of extent trees that may still be read in search of chunk trees, likewise
                      */
    struct bw_range system[BW_PAST_SYSTEM_CHUNKS]; /**< system chunks: one or two */
    unsigned system_count;
    struct bw_past_state *states;
    size_t count, capacity;
    struct bw_chunk_root *chunk_roots;
    size_t chunk_root_count, chunk_root_capacity;
};

/** Fills the list of states, from the superblock and, if there is a judge, the index. (states.c) */
struct bw_error *bw_past_list(struct bw_past *past);

/** Whether a block that was found is the root of a whole root tree, and not a part of one whose
 * root is lost. (state_trees.c) */
bool bw_state_is_root(const struct bw_past *past, const struct bw_root_pointer *root);

/** Finds the system chunks, which bw_state_chunk_root() needs. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_past_find_system_chunks(struct bw_past *past);

/** Finds the root of the chunk tree of a state in its extent tree; `chunk_root->bytenr` is 0 if
 * that does not tell. */
void bw_state_chunk_root(struct bw_past *past, const struct bw_root_pointer *root,
                         struct bw_root_pointer *chunk_root);

/** Whether the root of a tree can be read. */
bool bw_state_has_root(const struct bw_past *past, uint64_t tree,
                       const struct bw_root_pointer *root);

/** Whether a transaction was committed with this root of a root tree. */
enum bw_state_standing bw_state_standing(const struct bw_past *past,
                                         const struct bw_past_state *state);

/** Hands out the trees of a state, as bw_past_trees(); `newest` (may be NULL) is set to the newest
 * time of a change in its subvolumes. */
struct bw_error *bw_state_trees(struct bw_past *past, const struct bw_past_state *state,
                                bw_state_tree_taker *take, void *context, struct timespec *newest);

/** Reads what bw_past_write_index() has written; false if that is of another file system or
 * superblock, or damaged. Nothing is added then. (index_file.c) */
bool bw_past_read_index(struct bw_past *past, const void *bytes, size_t size);

/** Reads all blocks of such an index, and drops those that are not there. (index_verify.c) */
struct bw_error *bw_past_verify_index(struct bw_past *past, unsigned threads);

/** Sets fs->choice.tree_root for fs->choice.generation, which the superblock does not name, and
 * fs->choice.chunk_root if that differs. The chunk map is the present one. */
struct bw_error *bw_history_find_generation(struct bw_fs *fs);

/** Sets fs->choice.chunk_root to the chunk tree of the generation with this root tree, if it is
 * known and differs from the present one. */
struct bw_error *bw_history_find_chunk_root(struct bw_fs *fs, const struct bw_root_pointer *root);

#endif
