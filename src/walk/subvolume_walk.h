/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of one subvolume, in waves: all directories known so far make the tasks of a wave, in
 * key order; what they find makes the next wave. When blocks were lost, recover.h goes on from
 * here.
 */
#ifndef BW_WALK_SUBVOLUME_WALK_H
#define BW_WALK_SUBVOLUME_WALK_H

#include "btrfs-walk/walk.h"
#include "btree/block.h"
#include "fs/subvolume.h"
#include "walk/collect.h"
#include "base/pool.h"
#include "walk/task.h"

/** Where the walk of a subvolume begins. */
struct bw_walk_top {
    const struct bw_subvolume *subvolume;
    uint64_t inode;     /**< of a directory there */
    const char *prefix; /**< its absolute path, '/' at both ends */
    size_t prefix_length;
    bool silent;  /**< nothing in it is listed */
    bool shallow; /**< nothing in it is looked at */
};

/** A directory entry that leads into another subvolume. */
struct bw_subvolume_entry {
    uint64_t id;
    size_t path_offset, path_length; /**< absolute path, '/' at both ends, in the walk's paths */
};

/** State of a walk; reused from subvolume to subvolume. */
struct bw_subvolume_walk {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    struct bw_walk_summary *summary;
    const struct bw_file_writer *writer; /**< NULL: paths of regular files */
    struct bw_choice choice;             /**< what is listed */
    bool is_plain;                       /**< which is all regular files */
    struct bw_ordered_output output;
    struct bw_pool *pool;
    struct bw_task_scratch **scratch; /**< one a worker, made when first needed */
    struct bw_digest_cache *digests;  /**< NULL if there are no snapshots */

    /* Of the subvolume being walked. */
    struct bw_task_scope scope;
    struct bw_directory_table directories;
    struct bw_pending *pending; /**< directories of the next wave */
    size_t pending_count, pending_capacity;
    uint32_t wave; /**< the wave under way; between waves, the next; never more than BW_LAST_WAVE */
    struct bw_task *tasks;
    size_t task_count, task_capacity;
    struct bw_lost_ranges lost;
    struct bw_map lost_blocks; /**< addresses of those of `lost` that are blocks */
    struct bw_adopted adopted; /**< leaves whose way down is lost */
    bool memory_short;
    struct bw_collector *listed;  /**< files listed outside of tasks; made when first needed, with a
                                     writer */
    atomic_uint_fast64_t wanting; /**< inodes whose attributes are missing or cut off */

    /* What was found on the way: subvolumes to walk later. */
    struct bw_subvolume_entry *entries;
    size_t entry_count, entry_capacity;
    struct bw_buffer paths;
};

/** Prepares a walk, whose `writer` may be NULL only if it lists all regular files, by their paths;
 * false if memory runs out. */
bool bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                            const struct bw_walk_options *options,
                            const struct bw_file_writer *writer, struct bw_walk_summary *summary);

/** Releases everything; returns the error that ended the output, if one did. */
struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk);

/** Walks a subvolume, or what is below a directory of it. */
struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top);

/** Lists a single entry with the name in the directory `top`. */
struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length);

/** Walks all directories known so far through the adopted leaves alone. */
struct bw_error *bw_subvolume_walk_adopted(struct bw_subvolume_walk *walk);

/** Runs waves until no directory is pending. Also used by recovery, for the directories it brings
 * back. */
struct bw_error *bw_subvolume_walk_waves(struct bw_subvolume_walk *walk);

/** Adds a directory to the table and to the next wave; its index, or BW_NO_DIRECTORY if memory runs
 * out. */
uint32_t bw_subvolume_walk_add(struct bw_subvolume_walk *walk, uint64_t inode, uint32_t parent,
                               const void *name, size_t name_length);

/** Notes that a block is lost, and which keys with it. */
void bw_subvolume_walk_lose(struct bw_subvolume_walk *walk, const struct bw_lost_range *range);

/** Notes that a subvolume hangs in directory `directory` (index in the table) under `name`. */
void bw_subvolume_walk_add_entry(struct bw_subvolume_walk *walk, uint64_t id, uint32_t directory,
                                 const char *name, size_t name_length);

/** Whether entries of a type are listed at all. */
bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type);

/** Whether directories in a directory (index in the table) are entered, and do not lie too deep. */
bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory);

/** Lists an entry of a directory (index in the table), outside of any task, if it is of those that
 * are listed. False if it, and what may be below it, is left out. For recovery. */
bool bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                            const struct bw_collected *what, const void *name, size_t name_length);

/** Lists the directory that the walk of a subvolume begins at. False if it is left out, with all in
 * it. */
bool bw_subvolume_walk_list_top(struct bw_subvolume_walk *walk, uint64_t inode);

/** Writes what was listed outside of tasks; none may be under way. */
void bw_subvolume_walk_flush(struct bw_subvolume_walk *walk);

/** Ends the walk of a subvolume: nothing that was listed is held back. */
void bw_subvolume_walk_end(struct bw_subvolume_walk *walk);

#endif
