/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The waves of a subvolume's walk: the directories known so far make the tasks of a wave, in key
 * order; the directories that these find make the next wave.
 */
#ifndef BW_WALK_WAVES_H
#define BW_WALK_WAVES_H

#include "walk/subvolume_walk.h"

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

/** Reports a lost node and notes it: bw_scan.lost, `context` is the walk. */
struct bw_error *bw_waves_lose_node(void *context, const struct bw_block_pointer *pointer,
                                    struct bw_error *error);

/** Runs the tasks in walk->tasks as a wave, and merges their results. */
struct bw_error *bw_waves_run_tasks(struct bw_subvolume_walk *walk);

/** Runs waves until no directory is pending. */
struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk);

/** Walks all directories known so far through the adopted leaves alone. */
struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk);

/** Adds an entry whose path was appended to `paths`, from an offset to the end. */
struct bw_error *bw_subvolume_entries_add(struct bw_subvolume_entries *entries, uint64_t id,
                                          size_t path_offset);
void bw_subvolume_entries_free(struct bw_subvolume_entries *entries);

#endif
