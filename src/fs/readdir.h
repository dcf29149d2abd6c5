/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entries of one directory. */
#ifndef BW_FS_READDIR_H
#define BW_FS_READDIR_H

#include "fs/lookup.h"

/** An entry. Its name is a view that ends with the call it is passed to. */
struct bw_listed {
    const char *name; /**< raw bytes, not terminated; never "." or ".." */
    size_t name_length;
    struct bw_place place; /**< where it leads, as bw_lookup() would tell */
    uint64_t position;     /**< where to continue after it */
};

/** Set in positions of entries that have no DIR_INDEX, and were found in another way. Offsets of
 * DIR_INDEX keys never come so far. */
#define BW_RECOVERED_POSITION (UINT64_C(1) << 63)

/** Receives an entry. An error ends the reading. */
typedef struct bw_error *bw_listed_taker(void *context, const struct bw_listed *entry);

/**
 * Hands out all entries of a directory in the order a mount lists them in: that of the DIR_INDEX
 * keys. If some of those are lost, what the DIR_ITEMs tell beyond them follows, then, if need be,
 * what the inodes tell. What is lost is reported. Returns the error of `take`, or one of memory.
 */
struct bw_error *bw_directory_read(struct bw_fs *fs, const struct bw_place *directory,
                                   bw_listed_taker *take, void *context);

/** A listing that is read bit by bit. */
struct bw_listing {
    uint64_t position; /**< where to continue: 0, or that of an entry */
    bool knows_start;  /**< `lost` tells of all entries before the position */
    bool lost;         /**< some of those read so far cannot be read */
};

/** Reads on from listing->position, which stays as it is; otherwise as bw_directory_read(). */
struct bw_error *bw_directory_continue(struct bw_fs *fs, const struct bw_place *directory,
                                       struct bw_listing *listing, bw_listed_taker *take,
                                       void *context);

#endif
