/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk, as its parts share it:
 *
 *     walk.c: which subvolumes --> subvolume_walk.c: one of them --> waves.c --> task.c:
 * directories |                        |                                        | | +-->
 * lost_entries.c: what lost blocks held
 *                +--> small_subvolumes.c: many at once                             |
 *                                                                                  v
 *     caller <-- output.c: in order, as text or records <-- collect.c: inodes of files
 *
 * A subvolume is walked in waves. The directories known so far make the tasks of a wave, in key
 * order, which worker threads run; the directories that these find make the next wave. Top
 * directories, a start that is no directory, and recovered entries are listed outside of tasks.
 */
#ifndef BW_WALK_WALK_H
#define BW_WALK_WALK_H

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

BW_VECTOR(bw_subvolume_entry_list, struct bw_subvolume_entry);

/** Some of them, in the order in which they were found. All zeros is empty. */
struct bw_subvolume_entries {
    struct bw_subvolume_entry_list list;
    struct bw_buffer paths;
};

/** Adds an entry whose path was appended to `paths`, from an offset to the end. Fails only if
 * memory runs out. */
struct bw_error *bw_subvolume_entries_add(struct bw_subvolume_entries *entries, uint64_t id,
                                          size_t path_offset);

/** Frees them, and leaves none. */
void bw_subvolume_entries_free(struct bw_subvolume_entries *entries);

/** State of a walk; reused from subvolume to subvolume. */
struct bw_subvolume_walk {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    unsigned threads;
    struct bw_walk_summary *summary;
    const struct bw_subvolume_walk *outer; /**< that owns `workers` and `lists`; or NULL */
    const struct bw_file_writer *writer;
    struct bw_choice choice; /**< the files to list */
    struct bw_ordered_output output;
    struct bw_pool *pool;
    struct bw_task_worker **workers; /**< one for each thread, created when first needed */
    struct bw_entry_cache *lists;    /**< NULL if there are no snapshots */

    /* Of the subvolume being walked. */
    struct bw_task_scope scope;
    struct bw_directory_table directories;
    struct bw_pending_list pending; /**< directories of the next wave */
    uint32_t wave; /**< the wave under way; between waves, the next; never more than BW_LAST_WAVE */
    struct bw_tasks tasks;
    struct bw_lost_ranges lost;
    struct bw_key_map lost_blocks; /**< addresses of those of `lost` that are blocks */
    struct bw_adopted adopted;     /**< leaves below lost nodes */
    struct bw_collector *listed;   /**< files listed outside of tasks */
    atomic_uint_fast64_t wanting;  /**< inodes whose attributes are missing or damaged */

    struct bw_subvolume_entries found; /**< to be walked later */
};

/* One subvolume (subvolume_walk.c). */

/** Prepares a walk whose output goes to a receiver. To be destroyed also after an error. */
struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_receiver *receiver,
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

/** Whether directories in a directory (index in the table) are entered, and not too deep. */
bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory);

/** Lists an entry of a directory (index in the table) outside of tasks, if it is one of those
 * listed. `*included`: whether it, and what may be below it, is not excluded. */
struct bw_error *bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *included);

/** Writes the entries listed outside of tasks; no task may be running. */
struct bw_error *bw_subvolume_walk_flush(struct bw_subvolume_walk *walk);

/* Waves (waves.c). */

/** Adds a directory, at `index` in the table, to the next wave. */
struct bw_error *bw_waves_add_pending(struct bw_subvolume_walk *walk, uint64_t inode,
                                      uint32_t index);

/** Adds a directory to the table, at `*index`, and to the next wave. */
struct bw_error *bw_waves_add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                        uint32_t parent, const void *name, size_t name_length,
                                        uint32_t *index);

/** Notes that a subvolume has the entry `name` in directory `directory` (index in the table). */
struct bw_error *bw_waves_add_subvolume(struct bw_subvolume_walk *walk, uint64_t id,
                                        uint32_t directory, const char *name, size_t name_length);

/** Notes that a block is lost, and which keys with it. */
struct bw_error *bw_waves_lose(struct bw_subvolume_walk *walk, const struct bw_lost_range *range);

/** Runs waves until no directory is pending. */
struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk);

/** Walks all directories known so far through the adopted leaves alone. */
struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk);

/* Lost entries (lost_entries.c). */

/** Lists the entries of blocks that the walk has lost, as far as the rest of the tree has them, and
 * walks the directories among them. Costs nothing if no block was lost. */
struct bw_error *bw_lost_entries_list(struct bw_subvolume_walk *walk);

/*
 * Small subvolumes (small_subvolumes.c): the tree of each has at most one node, so its waves have
 * one task. Many of them are walked at once, each by one worker, and a worker reads the roots of
 * several with one batch. They are listed in their order, as by separate walks one after the other.
 */

/** The walkers of small subvolumes. */
struct bw_small_subvolumes;

/** The greatest number of subvolumes to walk at once. */
enum { BW_MOST_SMALL_SUBVOLUMES = 1024 };

/** Whether a subvolume is small. */
static inline bool bw_subvolume_is_small(const struct bw_subvolume *subvolume)
{
    return subvolume->tree.root.level <= 1;
}

/** Makes walkers for the workers of a walk, which must outlive them. */
struct bw_error *bw_small_subvolumes_create(struct bw_subvolume_walk *walk,
                                            struct bw_small_subvolumes **small);
/** Frees them; NULL is allowed. */
void bw_small_subvolumes_destroy(struct bw_small_subvolumes *small);

/** Walks subvolumes, adds the subvolumes found in them to walk->found, and counts them in its
 * summary. Their prefixes may be views of walk->found.paths. */
struct bw_error *bw_small_subvolumes_run(struct bw_small_subvolumes *small,
                                         struct bw_walk_top *tops, size_t count);

#endif
