/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One task of a walk: the directories that lie below one internal node of level 1 (or in a root
 * that is a leaf).
 *
 * The node names its leaves with their first keys, so the known directories tell which leaves hold
 * entries; only those are read, in batches. A directory that turns up on the way and lies below the
 * same node is walked at once; all others are left to a later wave of tasks.
 */
#ifndef BW_WALK_TASK_H
#define BW_WALK_TASK_H

#include "base/map.h"
#include "btree/block.h"
#include "recovery/recovery.h"
#include "fs/subvolume.h"
#include "select/choice.h"
#include "walk/digest.h"
#include "walk/directory_table.h"
#include "walk/ordered_output.h"
#include "walk/writers.h"

/** A directory that is to be walked. */
struct bw_pending {
    uint64_t inode;
    uint32_t directory; /**< index in the directory table */
};

/** Entries of a directory lie from its first to its last possible DIR_INDEX key. */
static inline struct bw_key bw_first_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, 0};
}
static inline struct bw_key bw_last_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, UINT64_MAX};
}

/** What the tasks of one wave share. Nobody changes it while they run, but for `wanting`. */
struct bw_task_scope {
    struct bw_fs *fs;
    const struct bw_tree *tree;
    const struct bw_directory_table *directories;
    const char *prefix; /**< path of the subvolume's top directory, a '/' at its end; raw bytes */
    size_t prefix_length;
    const struct bw_map *lost_blocks; /**< addresses of blocks that could not be read in earlier
                                         waves */
    uint32_t wave;                    /**< number of the wave, from 1 on */
    bool silent; /**< do not list files, only look for directories and subvolumes */
    bool escape;
    char terminator;
    struct bw_ordered_output *output;
    const struct bw_file_writer *writer; /**< what to write of files; NULL: paths, as below */
    const struct bw_choice *choice;      /**< what to list, with a writer; NULL: regular files */
    atomic_uint_fast64_t *wanting;       /**< inodes whose attributes are missing or cut off, with a
                                            writer */
};

/** Set in the `parent` of a found directory or subvolume: an index in the task's own `found`, not
 * in the table. */
#define BW_FOUND_LOCAL (UINT32_C(1) << 31)

struct bw_found_directory {
    uint64_t inode;
    uint32_t parent;
    uint32_t name_offset; /**< in the result's names */
    uint16_t name_length;
    bool walked; /**< its entries were in reach of the task and have been walked */
};

struct bw_found_subvolume {
    uint64_t id;
    uint64_t directory; /**< inode of the directory that holds the entry */
    uint32_t parent;
    uint32_t name_offset;
    uint16_t name_length;
};

struct bw_task_result {
    struct bw_buffer names;
    struct bw_found_directory *found;
    size_t found_count, found_capacity;
    struct bw_found_subvolume *subvolumes;
    size_t subvolume_count, subvolume_capacity;
    struct bw_lost_ranges lost;
    uint64_t files;
};

/** A task. */
struct bw_task {
    struct bw_block_pointer pointer;  /**< of the node, or of the root leaf */
    const struct bw_pending *pending; /**< ascending by inode; all have entries below the node */
    size_t pending_count;
    uint32_t since; /**< pending directories that were walked before this wave are left out */
    struct bw_task_result result;
};

/** Buffers that a worker keeps from task to task. */
struct bw_task_scratch;
/** Allocates them; all but the reader may be NULL. NULL if memory runs out. */
struct bw_task_scratch *bw_task_scratch_create(struct bw_fs *fs, struct bw_digest_cache *digests,
                                               const struct bw_file_writer *writer,
                                               const struct bw_selection *selection);
/** Frees them; NULL is allowed. */
void bw_task_scratch_destroy(struct bw_task_scratch *scratch);

/** Runs task `number` of a wave. Paths go to the scope's output, all else to task->result. */
void bw_task_run(const struct bw_task_scope *scope, struct bw_task_scratch *scratch,
                 struct bw_task *task, size_t number);

/** Frees a result. */
void bw_task_result_free(struct bw_task_result *result);

#endif
