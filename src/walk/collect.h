/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collecting files whose rows are to be written: some thousand at a time, so that their attributes
 * are looked up in the order of inodes and written in the order of names. A task of walk/task.h has
 * one beside its text.
 */
#ifndef BW_WALK_COLLECT_H
#define BW_WALK_COLLECT_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "btree/block.h"
#include "select/selection.h"
#include "walk/writers.h"

struct bw_fs;
struct bw_task_scope;

/** Files that wait for their attributes; of one worker. */
struct bw_collector;

/** Something to be collected. */
struct bw_collected {
    uint64_t number; /**< of its inode */
    uint8_t type;    /**< BW_FILE_* */
    bool made_up;    /**< stands for a subvolume that is not there: number is that of the directory
                        around */
};

/** Makes an empty one; of what is added, `selection` (NULL: none) chooses by inode. NULL if memory
 * runs out.
 */
struct bw_collector *bw_collector_create(struct bw_fs *fs, const struct bw_file_writer *writer,
                                         const struct bw_selection *selection);
/** Frees it; NULL is allowed. */
void bw_collector_destroy(struct bw_collector *collector);

/** Enters a directory: its path ('/' at the end, raw bytes) goes before the names added from now
 * on. To be called anew after a flush. */
void bw_collector_enter(struct bw_collector *collector, const char *path, size_t length);

/** Adds an entry of that directory. */
void bw_collector_add(struct bw_collector *collector, const struct bw_collected *what,
                      const void *name, size_t name_length);

/** Whether it is time to flush. */
bool bw_collector_is_full(const struct bw_collector *collector);

/** Looks up the attributes and appends the rows to `text`, which is offered to the output as task
 * `number`'s. Nothing is left in the collector. Returns how many rows that were. */
size_t bw_collector_flush(struct bw_collector *collector, const struct bw_task_scope *scope,
                          size_t number, struct bw_buffer *text);

/** Reports, at the end of a subvolume, how many inodes were found wanting beyond those reported
 * singly. */
void bw_collector_report_rest(const struct bw_task_scope *scope);

#endif
