/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contents of a range of a file, in file order and without gaps: pieces of extents, holes
 * (recorded in the file system or not), and ranges that are unknown because an item or a part of
 * the tree is damaged. The pieces after an offset depend only on that offset, not on where reading
 * began.
 */
#ifndef BW_DATA_FILE_EXTENTS_H
#define BW_DATA_FILE_EXTENTS_H

#include "btree/find_leaf.h"
#include "btrfs-walk/file.h"
#include "fs/subvolume.h"
#include "ondisk/items.h"

struct bw_fs;

/** A piece of a file. */
struct bw_extent_piece {
    struct bw_extent extent; /**< the caller owns its error */
    /** For BW_EXTENT_INLINE: all its stored bytes, valid until the next piece is requested. */
    const uint8_t *inline_data;
    uint32_t inline_length;
};

/** Whether a piece has bytes to read, unlike holes, bad pieces, and preallocated space. */
static inline bool bw_extent_is_data(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_REGULAR || extent->kind == BW_EXTENT_INLINE;
}

/** A position in a file. Only one thread at a time may use it. */
struct bw_extent_cursor {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    struct bw_data_file file;
    uint64_t offset; /**< the beginning of the next piece */
    uint64_t end;    /**< the end of the last piece */
};

/** Initializes a cursor without a file. */
void bw_extents_init(struct bw_extent_cursor *cursor, struct bw_fs *fs);

void bw_extents_free(struct bw_extent_cursor *cursor);

/** Moves to a range of a file, which may exceed the file's size to include preallocated extents. */
void bw_extents_seek(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                     uint64_t offset, uint64_t end);

/** Moves to the sectors of a range of a file, which is cut at the file's size. A reader needs
 * whole sectors. */
void bw_extents_seek_whole(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end);

/**
 * Gets the next piece; `*got` is false at the end of the range. Pieces are cut at both ends of the
 * range. Fails only if memory runs out: damage is a piece. A bad piece ends where the next item
 * begins, or at the end of the file if no further item is known.
 */
struct bw_error *bw_extents_next(struct bw_extent_cursor *cursor, struct bw_extent_piece *piece,
                                 bool *got);

/** Like bw_extents_next(), for reading: data at addresses without a chunk is a bad piece, up to the
 * next chunk. */
struct bw_error *bw_extents_next_readable(struct bw_extent_cursor *cursor,
                                          struct bw_extent_piece *piece, bool *got);

/** Adds the stored ranges of the next pieces to an array of `most` ranges, until it is full or
 * thousands of pieces were examined. Adjacent ranges are joined. Fails only if memory runs out. */
struct bw_error *bw_extents_ranges(struct bw_extent_cursor *cursor, struct bw_range *ranges,
                                   size_t most, size_t *count);

/** A position in a file, ahead of its reader. */
struct bw_data_advisor {
    struct bw_extent_cursor cursor;
    uint64_t done; /**< in the cursor's file: read-ahead was requested up to here */
};

/** Announces to the layers below that a file will be read from `offset` to `end` soon, so that a
 * cold disk has the data ready. Skips ranges that were announced before, unless the caller has
 * changed to another file. Fails only if memory runs out. */
struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end);

#endif
