/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories of a subvolume that the walk has found: the only thing that it must remember. A
 * path is built by following parents. A parent is always added before its children, so there are no
 * cycles.
 */
#ifndef BW_WALK_DIRECTORY_TABLE_H
#define BW_WALK_DIRECTORY_TABLE_H

#include "base/buffer.h"
#include "base/map.h"
#include "btrfs-walk/error.h"

enum { BW_NO_DIRECTORY = UINT32_MAX };
enum { BW_LAST_WAVE = UINT16_MAX };

/** Directories with longer paths are not entered: sixteen times what a system call takes. */
enum { BW_LONGEST_PATH = 64 << 10 };

struct bw_directory {
    uint64_t inode;
    uint32_t parent;      /**< index of its parent; that of the top directory is itself */
    uint32_t name_offset; /**< in the table's names */
    uint16_t name_length;
    uint16_t wave; /**< in which it was walked, or is to be; that and all later ones: BW_LAST_WAVE
                    */
};

/** Entry 0 is the top directory, without a name. */
struct bw_directory_table {
    struct bw_directory *items;
    size_t count, capacity;
    struct bw_buffer names;
    struct bw_map by_inode;
};

/** Empties the table (keeping its memory) but for a top directory of inode `top`. */
struct bw_error *bw_directories_reset(struct bw_directory_table *table, uint64_t top);

/** Frees the memory. */
void bw_directories_free(struct bw_directory_table *table);

/** Adds a directory that is not in the table yet, at `*index`. `wave` is cut to BW_LAST_WAVE. */
struct bw_error *bw_directories_add(struct bw_directory_table *table, uint64_t inode,
                                    uint32_t parent, const void *name, size_t name_length,
                                    uint32_t wave, uint32_t *index);

/** Index of an inode's directory, or BW_NO_DIRECTORY. */
uint32_t bw_directories_find(const struct bw_directory_table *table, uint64_t inode);

/** Whether directory `index` is in `parent` under this name. */
bool bw_directories_is(const struct bw_directory_table *table, uint32_t index, uint32_t parent,
                       const void *name, size_t name_length);

/** Appends the path of a directory from the top one, a '/' after each name: "" for the top, "a/b/"
 * below it.
 */
void bw_directories_path(const struct bw_directory_table *table, uint32_t index,
                         struct bw_buffer *path);

#endif
