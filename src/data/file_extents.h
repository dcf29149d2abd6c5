/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file consists of, from one offset to another, in file order and without a gap: pieces of
 * extents, holes (whether the file system records them or not), and ranges that are unknown because
 * an item or a part of the tree is damaged. What follows an offset depends on that offset alone,
 * not on where the reading began.
 */
#ifndef BW_DATA_FILE_EXTENTS_H
#define BW_DATA_FILE_EXTENTS_H

#include "btree/find_leaf.h"
#include "btrfs-walk/stream.h"
#include "fs/subvolume.h"
#include "ondisk/items.h"

struct bw_fs;

/** A piece of a file. */
struct bw_extent_piece {
    struct bw_extent extent; /**< its error is owned by the caller */
    /** For BW_EXTENT_INLINE: all its bytes as stored, valid until the next call for a piece. */
    const uint8_t *inline_data;
    uint32_t inline_length;
};

/** Whether a piece has bytes to be read: not so holes, bad pieces, and space that was never
 * written. */
static inline bool bw_extent_is_data(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_REGULAR || extent->kind == BW_EXTENT_INLINE;
}

/** A place in a file. One thread at a time may use it. */
struct bw_extent_cursor {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    struct bw_data_file file;
    uint64_t offset; /**< where the next piece begins */
    uint64_t end;    /**< where the last one ends */
};

/** Starts, with no file. */
void bw_extents_init(struct bw_extent_cursor *cursor, struct bw_fs *fs);

/** Frees what it holds. */
void bw_extents_free(struct bw_extent_cursor *cursor);

/** Goes to a range of a file. It may pass the file's size, for what is allocated after it. */
void bw_extents_seek(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                     uint64_t offset, uint64_t end);

/**
 * The next piece; `*got` is false at the end of the range. Pieces are cut at both ends of it. Fails
 * only if memory runs out: damage is a piece. A bad piece ends where the next item begins, or with
 * the file if no item is known to follow.
 */
struct bw_error *bw_extents_next(struct bw_extent_cursor *cursor, struct bw_extent_piece *piece,
                                 bool *got);

/** The same for reading: data at addresses that no chunk holds are a bad piece, up to the next
 * chunk. */
struct bw_error *bw_extents_next_readable(struct bw_extent_cursor *cursor,
                                          struct bw_extent_piece *piece, bool *got);

/** A place in a file, ahead of its reader. */
struct bw_data_advisor {
    struct bw_extent_cursor cursor;
    uint64_t done; /**< in the cursor's file: read-ahead was requested up to here */
};

/** Tells the layers below that a file will be read from `offset` to `end` soon, so that a cold disk
 * has the data ready. Ranges that were announced before are skipped, unless the caller has changed
 * to another file. Fails only if memory runs out. */
struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end);

#endif
