/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of directories in an archive. The walk brings each before what is in it, but those of
 * one level before what is in any of them. GNU tar, however, restores a directory's times and
 * permissions as soon as something comes that is not in it. So a directory waits until something
 * that is in it comes. Those to which the walk comes back all the same are written a second time at
 * the end, what is deepest first; until then a directory has to be as its owner needs it to put
 * something there.
 *
 * Paths are relative to the top, which is the empty path.
 */
#ifndef BW_EXPORT_DIRECTORY_ORDER_H
#define BW_EXPORT_DIRECTORY_ORDER_H

#include "export/links.h"

/** How often a directory is written. */
enum bw_directory_turn { BW_DIRECTORY_FIRST, BW_DIRECTORY_AGAIN };

/** Writes a directory; a NUL follows the path. */
typedef struct bw_error *bw_directory_writer(void *context, const char *path,
                                             const struct bw_made_directory *directory,
                                             enum bw_directory_turn turn);

/** The directories so far. Begins with all but the first two zero. */
struct bw_directory_order {
    bw_directory_writer *write;
    void *context; /**< passed to it */
    struct bw_made_directories all;
    struct bw_directory_state *states; /**< by the number of the path */
    size_t known, capacity;            /**< of these */
    struct bw_buffer open;             /**< path of the one that tar has not finished */
    struct bw_buffer path;             /**< scratch space */
};

/** Frees what it holds. */
void bw_directory_order_free(struct bw_directory_order *order);

/** Adds a directory, which is written later. */
struct bw_error *bw_directory_order_add(struct bw_directory_order *order, const char *path,
                                        size_t length, const struct bw_place *place,
                                        const struct bw_inode *inode);

/** Writes the directories on the way to an entry, before the entry is. */
struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length);

/** Writes those that are left, and those that have to come again. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order);

#endif
