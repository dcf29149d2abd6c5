/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One task of a walk: the directories that are stored below one internal node of level 1 (or in a
 * root that is a leaf).
 *
 * The node names its leaves with their first keys, which shows which leaves contain entries of the
 * known directories; only those are read, in batches. A directory that is found there and stored
 * below the same node is walked at once; all others wait for a later wave of tasks. Files whose
 * rows need inodes are collected until their inodes have been looked up (collect.c).
 */
#ifndef BW_WALK_TASK_H
#define BW_WALK_TASK_H

#include "base/vector.h"
#include "fs/inode.h"
#include "recovery/recovery.h"
#include "walk/directory_table.h"
#include "walk/leaves.h"
#include "walk/output.h"
#include "walk/selection.h"

/** A directory that will be walked. */
struct bw_pending {
    uint64_t inode;
    uint32_t directory; /**< index in the directory table */
};

BW_VECTOR(bw_pending_list, struct bw_pending);

/** Entries of a directory have keys from its first to its last possible DIR_INDEX key. */
static inline struct bw_key bw_first_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, 0};
}
static inline struct bw_key bw_last_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, UINT64_MAX};
}

/** State shared by the tasks of one wave. It does not change while they run, except `wanting`. */
struct bw_task_scope {
    struct bw_fs *fs;
    const struct bw_tree *tree;
    const uint8_t *root_leaf; /**< the root of the tree, if it is a leaf that was read before */
    const struct bw_directory_table *directories;
    const char *prefix; /**< path of the subvolume's top directory, with a '/' at its end; raw */
    size_t prefix_length;
    const struct bw_key_map *lost_blocks; /**< addresses of blocks that were lost in earlier waves
                                           */
    uint32_t wave;                        /**< number of the wave, from 1 on */
    bool complete; /**< nothing has been lost in earlier waves: directories may be closed */
    bool silent;   /**< list no files, only find directories and subvolumes */
    struct bw_ordered_output *output;
    const struct bw_file_writer *writer; /**< what to write of files */
    const struct bw_choice *choice;      /**< which files */
    atomic_uint_fast64_t *wanting;       /**< inodes whose attributes are missing or damaged */
};

/** A subvolume that a task has found. */
struct bw_found_subvolume {
    uint64_t id;
    uint32_t parent;      /**< number of the directory that holds the entry */
    uint32_t name_offset; /**< in the result's names */
    uint16_t name_length;
};

BW_VECTOR(bw_found_subvolumes, struct bw_found_subvolume);

struct bw_task_result {
    struct bw_packed found;  /**< directories, as in directory_table.h, without those in `closed` */
    struct bw_buffer closed; /**< inodes of closed directories: varints, each the difference to the
                                previous one */
    struct bw_buffer names;  /**< names of subvolumes */
    struct bw_found_subvolumes subvolumes;
    struct bw_lost_ranges lost;
    uint64_t files;
};

/** A task. */
struct bw_task {
    struct bw_block_pointer pointer;  /**< to the node, or to the root leaf */
    const struct bw_pending *pending; /**< ascending by inode; all have entries below the node */
    size_t pending_count;
    uint32_t since; /**< pending directories that were walked before this wave are skipped */
    struct bw_task_result result;
};

BW_VECTOR(bw_tasks, struct bw_task);

/** What a worker keeps from task to task, and the state of the task that it runs. */
struct bw_task_worker;
/** Allocates it. `lists` is NULL if no leaf is shared. */
struct bw_error *bw_task_worker_create(struct bw_fs *fs, struct bw_entry_cache *lists,
                                       const struct bw_file_writer *writer,
                                       const struct bw_choice *choice,
                                       struct bw_task_worker **worker);
/** Frees it; NULL is allowed. */
void bw_task_worker_destroy(struct bw_task_worker *worker);

/** Runs task `number` of a wave. Text and errors go to the scope's output, everything else to
 * task->result. */
void bw_task_run(const struct bw_task_scope *scope, struct bw_task_worker *worker,
                 struct bw_task *task, size_t number);

/** Frees a result. */
void bw_task_result_free(struct bw_task_result *result);

/* Collecting files (collect.c): some thousand at a time, so that their inodes are looked up in the
 * order of inodes and written in the order of names. */

/** Files that wait for their inodes; each worker has one. */
struct bw_collector;

/** Something to be collected. */
struct bw_collected {
    uint64_t number; /**< its inode */
    uint8_t type;    /**< BW_FILE_* */
    bool made_up;    /**< it is a BW_EMPTY_DIRECTORY: number is the inode of its parent directory */
};

/** Creates an empty one. The selection of `choice` also chooses by inode. */
struct bw_error *bw_collector_create(struct bw_fs *fs, const struct bw_file_writer *writer,
                                     const struct bw_choice *choice,
                                     struct bw_collector **collector);
/** Frees it; NULL is allowed. */
void bw_collector_destroy(struct bw_collector *collector);

/** Enters a directory: its path (with a '/' at the end, raw bytes) goes before the names added from
 * now on. To be called again after a flush. */
struct bw_error *bw_collector_enter(struct bw_collector *collector, const char *path,
                                    size_t length);

/** Adds an entry of that directory. */
struct bw_error *bw_collector_add(struct bw_collector *collector, const struct bw_collected *what,
                                  const void *name, size_t name_length);

/** Adds an ordinary entry of that directory, which bw_leaf_file_entry() has found: BW_COPY_SLACK
 * bytes after its name can be read. False, and nothing is added, if the name is invalid or memory
 * runs out. */
bool bw_collector_add_file(struct bw_collector *collector, const struct bw_disk_dir_item *entry);

bool bw_collector_is_empty(const struct bw_collector *collector);

/** Whether to flush while the leaves with the entries are still in memory: they may contain inodes,
 * too. */
bool bw_collector_is_worth_flushing(const struct bw_collector *collector);

/** Uses these leaves to look up inodes. */
void bw_collector_use_leaves(struct bw_collector *collector, struct bw_leaves *leaves);

/** Whether it is time to flush. */
bool bw_collector_is_full(const struct bw_collector *collector);

/** Looks the inodes up and appends the files to `text`, which is offered to the output as task
 * `number`'s. Empties the collector. Adds to `*written` how many files that were. */
struct bw_error *bw_collector_flush(struct bw_collector *collector,
                                    const struct bw_task_scope *scope, size_t number,
                                    struct bw_buffer *text, uint64_t *written);

/** Reports, at the end of a subvolume, how many more inodes were damaged than those reported. */
void bw_collector_report_rest(const struct bw_task_scope *scope);

#endif
