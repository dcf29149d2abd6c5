/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories of a subvolume that the walk has found: the only thing that it must remember. A
 * path is built by following parents. A parent is always added before its children, so there are no
 * cycles.
 *
 * There may be millions of directories. A directory is closed when its entries, and the entries of
 * all directories below it, have been listed: the walk no longer needs its path, and keeps one bit
 * to detect a second entry. Every other directory is a packed record of some twenty bytes.
 */
#ifndef BW_WALK_DIRECTORY_TABLE_H
#define BW_WALK_DIRECTORY_TABLE_H

#include "base/buffer.h"
#include "base/number_set.h"
#include "base/packed.h"
#include "btrfs-walk/error.h"

enum { BW_NO_DIRECTORY = BW_NO_RECORD };
enum { BW_LAST_WAVE = UINT16_MAX };

/** Directories with longer paths are not entered: sixteen times what a system call takes. */
enum { BW_LONGEST_PATH = 64 << 10 };

/** The facts about a directory. */
struct bw_directory {
    uint64_t inode;
    uint32_t parent; /**< its number; the top directory is its own parent */
    uint32_t wave;   /**< in which it was walked, or is to be; that and all later ones: BW_LAST_WAVE
                      */
    const char *name; /**< in the table */
    uint8_t name_length;
    size_t size; /**< of the record */
};

/** The top directory, without a name, has the number 0; later ones have greater numbers. */
struct bw_directory_table {
    struct bw_packed records;
    struct bw_number_set closed; /**< inodes */
    size_t count;                /**< closed directories included */
};

/** Empties the table (keeping its memory) but for a top directory of inode `top`. */
struct bw_error *bw_directories_reset(struct bw_directory_table *table, uint64_t top);

/** Frees the memory. */
void bw_directories_free(struct bw_directory_table *table);

/** Adds a directory that is not in the table yet; `*number` is its number. `wave` is cut to
 * BW_LAST_WAVE. */
struct bw_error *bw_directories_add(struct bw_directory_table *table, uint64_t inode,
                                    uint32_t parent, const void *name, size_t name_length,
                                    uint32_t wave, uint32_t *number);

/** Closes a directory that is not in the table; `*is_new` is false if it was closed before. */
struct bw_error *bw_directories_close(struct bw_directory_table *table, uint64_t inode,
                                      bool *is_new);

/** Puts a closed directory into the table, with wave 0; it remains closed. */
struct bw_error *bw_directories_reopen(struct bw_directory_table *table, uint64_t inode,
                                       uint32_t parent, const void *name, size_t name_length,
                                       uint32_t *number);

/** Whether a directory is closed. */
bool bw_directories_is_closed(const struct bw_directory_table *table, uint64_t inode);

/** Number of an inode's directory, or BW_NO_DIRECTORY. */
uint32_t bw_directories_find(const struct bw_directory_table *table, uint64_t inode);

/** A directory. */
struct bw_directory bw_directories_get(const struct bw_directory_table *table, uint32_t number);

/** The number after that of `directory`, or BW_NO_DIRECTORY after the last. */
uint32_t bw_directories_next(const struct bw_directory_table *table, uint32_t number,
                             const struct bw_directory *directory);

/** Whether a directory is in `parent` under this name. */
bool bw_directories_matches(const struct bw_directory_table *table, uint32_t number,
                            uint32_t parent, const void *name, size_t name_length);

/** Appends the path of a directory from the top one, a '/' after each name: "" for the top, "a/b/"
 * below it.
 */
void bw_directories_path(const struct bw_directory_table *table, uint32_t number,
                         struct bw_buffer *path);

/* Directories that a task has found, which are not in the table yet. */

/** Set in the number of a directory that is the task's own. */
#define BW_FOUND_LOCAL (UINT32_C(1) << 31)

/** One of them. */
struct bw_found_directory {
    uint64_t inode;
    uint32_t parent; /**< number of the directory that holds the entry */
    bool walked;     /**< its entries were in reach of the task and have been walked */
    const char *name;
    uint8_t name_length;
    size_t size; /**< of the record */
};

/** Adds a directory. Returns its number, with BW_FOUND_LOCAL; BW_NO_DIRECTORY if memory runs out.
 */
uint32_t bw_found_directory_add(struct bw_packed *found,
                                const struct bw_found_directory *directory);

/** A directory; `number` is without BW_FOUND_LOCAL. */
struct bw_found_directory bw_found_directory_get(const struct bw_packed *found, uint32_t number);

/** Appends the path of a directory, which may be one that was found, from the top one. */
void bw_found_directory_path(const struct bw_directory_table *table, const struct bw_packed *found,
                             uint32_t number, struct bw_buffer *path);

/** Stores, or returns, the number in the table of a directory that was found. */
void bw_found_directory_set_place(const struct bw_packed *found, uint32_t number, uint32_t place);
uint32_t bw_found_directory_place(const struct bw_packed *found, uint32_t number);

#endif
