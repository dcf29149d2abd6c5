/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing a directory, entry by entry, in the order in which a mount lists it. A listing can be
 * continued later from a position, also by another handle.
 */
#ifndef BTRFS_WALK_DIRECTORY_H
#define BTRFS_WALK_DIRECTORY_H

#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A directory that is being listed. One thread at a time may use it. */
struct bw_directory;

/** An entry. "." and ".." are not among them. */
struct bw_directory_entry {
    const char *name; /**< raw bytes, not terminated; valid until the next call */
    size_t name_length;
    struct bw_place place; /**< what it names */
    uint64_t position;     /**< where to continue after this entry */
};

/** Position of the first entry. */
enum { BW_DIRECTORY_START = 0 };

/**
 * Opens a directory for listing from `position` on: BW_DIRECTORY_START or that of an entry. The
 * caller owns `*directory`, which the file system must outlive. BW_ERROR_USAGE if `place` is no
 * directory by its type.
 */
struct bw_error *bw_directory_open(struct bw_fs *fs, const struct bw_place *place,
                                   uint64_t position, struct bw_directory **directory);

/**
 * Continues with another directory of the same file system, or elsewhere in the same one. Of
 * directories that lie close together, this reads each tree block once. On errors, which are those
 * of bw_directory_open(), the handle can only be closed or reopened.
 */
struct bw_error *bw_directory_reopen(struct bw_directory *directory, const struct bw_place *place,
                                     uint64_t position);

/**
 * The next entry, which belongs to the handle and is valid until the next call; `*entry` is NULL
 * after the last. Entries that cannot be read are reported to the reporter of the file system; the
 * listing then goes on with what other parts of the tree know of the names. Fails only if memory
 * runs out.
 */
struct bw_error *bw_directory_next(struct bw_directory *directory,
                                   const struct bw_directory_entry **entry);

/** After the last entry: whether that were all of them. False if there may be entries whose names
 * are lost, or which lead nowhere. */
bool bw_directory_is_complete(const struct bw_directory *directory);

/** Closes it; NULL is allowed. */
void bw_directory_close(struct bw_directory *directory);

#ifdef __cplusplus
}
#endif
#endif
