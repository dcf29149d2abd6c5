/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of historic roots, shared by the files of this folder. */
#ifndef BW_HISTORY_HISTORY_H
#define BW_HISTORY_HISTORY_H

#include "base/vector.h"
#include "btrfs-walk/history.h"
#include "data/file_extents.h"
#include "fs/fs.h"
#include "history/block_index.h"

/* Completeness of the trees whose blocks a scan has found. One pass assesses all trees of all
 * generations, from the leaves up: it reads every node once, and adds up the losses of its
 * children. A child counts only if it matches the pointer in its parent. */

/** The losses of a tree or a part of it. Blocks below a lost node are not counted. */
struct bw_loss {
    uint32_t missing; /**< number of blocks; UINT32_MAX means that many or more */
    uint32_t trimmed; /**< how many of these were overwritten with zeros */
};

struct bw_completeness;

/** Assesses all blocks of a sorted index. The index and the file system must outlive the result.
 * Uses `threads` threads; 0: one per processor, at most 8. Must be destroyed, even after an error.
 */
struct bw_error *bw_completeness_create(struct bw_fs *fs, const struct bw_found_index *index,
                                        unsigned threads, struct bw_completeness **result);
/** `completeness` may be NULL. */
void bw_completeness_destroy(struct bw_completeness *completeness);

/** Sets the losses of a tree. `*readable`: its root block was found. */
struct bw_error *bw_completeness_of_tree(struct bw_completeness *completeness,
                                         const struct bw_tree *tree, struct bw_loss *loss,
                                         bool *readable);

/** Whether a block of the index is a child of another one of the same tree, and therefore not a
 * root. */
bool bw_completeness_is_child(const struct bw_completeness *completeness,
                              const struct bw_found_block *block);

/* Requests the data of files in several generations together, so that servers see few round trips,
 * and few requests: neighbours become one. */

/** Ranges that were not requested yet. All zeros is empty. */
struct bw_data_requests {
    struct bw_fs *fs; /**< which locates the ranges; NULL before the first */
    struct bw_range *ranges;
    size_t count;
};

/** Adds the data of a file in a generation of `present`: at most the first `most` bytes, and only
 * the beginning of a fragmented file. Adds the number of stored bytes to `*bytes`. Fails only if
 * memory runs out. */
struct bw_error *bw_data_requests_add(struct bw_data_requests *requests, struct bw_fs *present,
                                      struct bw_extent_cursor *cursor,
                                      const struct bw_data_file *file, uint64_t most,
                                      uint64_t *bytes);

/** Requests the ranges, and removes them. */
void bw_data_requests_send(struct bw_data_requests *requests);

void bw_data_requests_free(struct bw_data_requests *requests);

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
    bool assessed;     /**< the completeness is requested, and reliable */
    bool lacks_memory; /**< a search of a historic root has failed for lack of memory */
    uint64_t leaves; /**< number of leaves of root trees that may still be read: a crafted image may
                      * contain any number */
    uint64_t items; /**< number of items of extent trees that may still be read to find chunk trees;
                     * limited for the same reason */
    struct bw_range system[BW_HISTORY_SYSTEM_CHUNKS]; /**< system chunks; usually one or two */
    unsigned system_count;
    struct bw_history_entries states;
    struct bw_chunk_roots chunk_roots;
};

/** The options that open a historic root. */
static inline struct bw_generation_choice
bw_generation_choice_of(const struct bw_generation_info *info)
{
    return (struct bw_generation_choice){.tree_root = info->tree_root,
                                         .tree_root_generation = info->generation,
                                         .chunk_root = info->chunk_root,
                                         .knows_chunk_root = true};
}

/** Whether the transaction of this root was committed. */
enum bw_generation_status bw_generation_status(struct bw_history *history,
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
