/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of historic roots, shared by the files of this folder. */
#ifndef BW_HISTORY_HISTORY_H
#define BW_HISTORY_HISTORY_H

#include "base/vector.h"
#include "btrfs-walk/history.h"
#include "history/completeness.h"

/** A historic root: the root tree and chunk tree that lead to everything else. */
struct bw_history_entry {
    struct bw_generation_info info;
    struct bw_root_pointer root, chunk_root;
    bool is_complete;      /**< superseded, although all its trees were written */
    bool has_other_chunks; /**< its own chunk tree is lost; `chunk_root` is an older one */
};

/** A root of a chunk tree; sorted by descending generation. */
struct bw_chunk_root {
    struct bw_root_pointer root;
    bool known; /**< it is in the superblock */
};

enum { BW_HISTORY_SYSTEM_CHUNKS = 16, BW_HISTORY_ITEMS = 1 << 23 };

BW_VECTOR(bw_chunk_roots, struct bw_chunk_root);

BW_VECTOR(bw_history_entries, struct bw_history_entry);

struct bw_history {
    struct bw_fs *fs;
    struct bw_tree_reader reader; /**< without replacements for lost blocks */
    struct bw_found_index index;
    struct bw_completeness *completeness; /**< NULL without a scan */
    struct bw_history_facts facts;
    bool assessed;   /**< the completeness is requested, and reliable */
    uint64_t leaves; /**< number of leaves of root trees that may still be read: a crafted image may
                      * contain any number */
    uint64_t items; /**< number of items of extent trees that may still be read to find chunk trees;
                     * limited for the same reason */
    struct bw_range system[BW_HISTORY_SYSTEM_CHUNKS]; /**< system chunks; usually one or two */
    unsigned system_count;
    struct bw_history_entries states;
    struct bw_chunk_roots chunk_roots;
};

/** Whether the transaction of this root was committed. */
enum bw_generation_status bw_generation_status(const struct bw_history *history,
                                               const struct bw_history_entry *state);

/** Reads a file written by bw_history_write_index(). Returns false, and adds nothing, if the file
 * belongs to another file system or superblock, or is damaged. */
bool bw_history_read_index(struct bw_history *history, const void *bytes, size_t size);

/** Reads all blocks of an index from a file, and drops those that no longer exist. */
struct bw_error *bw_history_verify_index(struct bw_history *history, unsigned threads);

/** Sets fs->choice.tree_root for fs->choice.generation, which is not in the superblock, and
 * fs->choice.chunk_root if that differs from the current one. The chunk map is the current one. */
struct bw_error *bw_history_find_generation(struct bw_fs *fs);

/** Sets fs->choice.chunk_root to the chunk tree that belongs to this root tree, if it is known and
 * differs from the current one. */
struct bw_error *bw_history_find_chunk_root(struct bw_fs *fs, const struct bw_root_pointer *root);

/** If no superblock that was read can name the log tree, searches for it, and sets
 * fs->superblock.log_root. Reports that a log was found, or may be missing. Large file systems are
 * searched only with fs->scan. */
struct bw_error *bw_history_find_log(struct bw_fs *fs);

#endif
