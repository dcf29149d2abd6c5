/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of one subvolume, in waves: the directories known so far make the tasks of a wave, in
 * key order; the directories that these find make the next wave. Top directories, a start that is
 * no directory, and recovered entries are listed outside of tasks.
 */
#ifndef BW_WALK_SUBVOLUME_WALK_H
#define BW_WALK_SUBVOLUME_WALK_H

#include "base/pool.h"
#include "btrfs-walk/walk.h"
#include "fs/subvolume.h"
#include "walk/task.h"

/** Where the walk of a subvolume begins. */
struct bw_walk_top {
    const struct bw_subvolume *subvolume;
    uint64_t inode;     /**< of a directory there */
    const char *prefix; /**< its absolute path, '/' at both ends */
    size_t prefix_length;
    const uint8_t *root_leaf; /**< as in struct bw_task_scope */
    bool silent;              /**< nothing in it is listed */
    bool shallow;             /**< list it, but not its contents */
};

/** A directory entry that leads into another subvolume. */
struct bw_subvolume_entry {
    uint64_t id;
    size_t path_offset, path_length; /**< absolute path, '/' at both ends, in `paths` */
};

/** Some of them, in the order in which they were found. All zeros is empty. */
struct bw_subvolume_entries {
    struct bw_subvolume_entry *items;
    size_t count, capacity;
    struct bw_buffer paths;
};

/** State of a walk; reused from subvolume to subvolume. */
struct bw_subvolume_walk {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    unsigned threads;
    struct bw_walk_summary *summary;
    const struct bw_subvolume_walk *outer; /**< that owns `scratch` and `lists`; or NULL */
    const struct bw_file_writer *writer;
    struct bw_choice choice; /**< the files to list */
    struct bw_ordered_output output;
    struct bw_pool *pool;
    struct bw_task_scratch **scratch; /**< one for each worker, created when first needed */
    struct bw_entry_cache *lists;     /**< NULL if there are no snapshots */

    /* Of the subvolume being walked. */
    struct bw_task_scope scope;
    struct bw_directory_table directories;
    struct bw_pending *pending; /**< directories of the next wave */
    size_t pending_count, pending_capacity;
    uint32_t wave; /**< the wave under way; between waves, the next; never more than BW_LAST_WAVE */
    struct bw_task *tasks;
    size_t task_count, task_capacity;
    struct bw_lost_ranges lost;
    struct bw_map lost_blocks;    /**< addresses of those of `lost` that are blocks */
    struct bw_adopted adopted;    /**< leaves below lost nodes */
    struct bw_collector *listed;  /**< files listed outside of tasks */
    atomic_uint_fast64_t wanting; /**< inodes whose attributes are missing or damaged */

    struct bw_subvolume_entries found; /**< to be walked later */
};

/** Prepares a walk. To be destroyed also after an error. */
struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_file_writer *writer,
                                        struct bw_walk_summary *summary);

/** Prepares a walk for worker `worker` of another one, of which it uses the memory, and into whose
 * output it writes; see bw_output_enter(). To be destroyed before it. */
struct bw_error *bw_subvolume_walk_init_inner(struct bw_subvolume_walk *walk,
                                              const struct bw_subvolume_walk *outer,
                                              unsigned worker);

/** Releases everything; returns the error that ended the output, if one did. */
struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk);

/** Walks a subvolume, or everything below a directory of it, and its recoverable lost entries. */
struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top);

/** Lists a single entry with the name in the directory `top`. */
struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length);

/** Whether entries of a type are listed at all. */
bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type);

#endif
