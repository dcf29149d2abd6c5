/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of states; shared by the files of this folder. */
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
    struct bw_tree_reader reader; /**< without replacements for lost blocks */
    struct bw_found_index index;
    struct bw_completeness *completeness; /**< NULL: there was no scan */
    struct bw_past_facts facts;
    bool judged;     /**< the completeness of states is requested, and reliable */
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

/** Whether a transaction was committed with this root of a root tree. */
enum bw_state_standing bw_state_standing(const struct bw_past *past,
                                         const struct bw_past_state *state);

/** Reads a file written by bw_past_write_index(). Returns false, and adds nothing, if the file
 * belongs to another file system or superblock, or is damaged. */
bool bw_past_read_index(struct bw_past *past, const void *bytes, size_t size);

/** Reads all blocks of such an index, and drops blocks that no longer exist. */
struct bw_error *bw_past_verify_index(struct bw_past *past, unsigned threads);

/** Sets fs->choice.tree_root for fs->choice.generation, which the superblock does not name, and
 * fs->choice.chunk_root if that differs. The chunk map is the present one. */
struct bw_error *bw_history_find_generation(struct bw_fs *fs);

/** Sets fs->choice.chunk_root to the chunk tree of the generation with this root tree, if it is
 * known and differs from the present one. */
struct bw_error *bw_history_find_chunk_root(struct bw_fs *fs, const struct bw_root_pointer *root);

#endif
