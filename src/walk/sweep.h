/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task under way, between task.c, which goes through leaves and lists all regular files, and
 * task_choose.c, which has more to ask of each entry.
 */
#ifndef BW_WALK_SWEEP_H
#define BW_WALK_SWEEP_H

#include "walk/collect.h"
#include "walk/leaves.h"
#include "walk/task.h"

/** A directory in reach of the task. */
struct bw_sweep_record {
    uint64_t inode;
    uint32_t directory; /**< index in the table, or in `found` with BW_FOUND_LOCAL */
    uint32_t next_leaf; /**< the first of its leaves that has not been gone through */
};

struct bw_task_scratch {
    struct bw_leaves leaves;
    struct bw_wanted_leaf leaf;
    struct bw_sweep_record *records;
    size_t record_count, record_capacity;
    struct bw_map by_inode;  /**< inode to record */
    struct bw_buffer prefix; /**< path of the directory being gone through, as it is printed */
    struct bw_buffer raw;    /**< the same before escaping */
    struct bw_collector *collector; /**< NULL: paths are written at once */
};

/** What becomes of the files that are found. */
enum bw_listing { BW_LIST_NOTHING, BW_LIST_PATHS, BW_LIST_ROWS };

struct bw_sweep {
    const struct bw_task_scope *scope;
    struct bw_task_scratch *scratch;
    struct bw_task *task;
    struct bw_task_result *result;
    size_t number;
    uint32_t leaf;      /**< the leaf being gone through; UINT32_MAX between leaves */
    uint32_t depth;     /**< of the directory whose prefix is set, if there is a choice */
    bool prefix_is_set; /**< the scratch's prefix is that of the directory being gone through */
    bool entered;       /**< and the collector knows it */
    enum bw_listing listing;
    bool watched; /**< somebody watches the probes of entries or of paths */
    bool special; /**< that, or there is a choice: entries cannot go the short way */
    struct bw_buffer text;
};

/** Sets the prefix to the path of a directory. */
void bw_sweep_set_prefix(struct bw_sweep *sweep, uint32_t directory);

/** Takes the entry of a directory, which will be walked; false if it is none, or known already. */
bool bw_sweep_found_directory(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                              const struct bw_dir_entry *entry);

/** Takes the entry of a subvolume. */
void bw_sweep_found_subvolume(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                              const struct bw_dir_entry *entry);

/** Adds an entry to what is written when its attributes are known. */
void bw_sweep_collect(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                      const struct bw_collected *what, const struct bw_dir_entry *entry);

/** Does with an entry what the scope's choice says. */
void bw_sweep_choose(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                     const struct bw_dir_entry *entry);

#endif
