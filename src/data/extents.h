/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file consists of, from one offset to another, in file order and without a gap: pieces of
 * extents, holes (whether the file system records them or not), and ranges that are unknown because
 * an item or a part of the tree is damaged. What follows an offset depends on that offset alone,
 * not on where the reading began.
 */
#ifndef BW_DATA_EXTENTS_H
#define BW_DATA_EXTENTS_H

#include "btree/find_leaf.h"
#include "btrfs-walk/stream.h"
#include "fs/subvolume.h"
#include "format/file_extent.h"

struct bw_fs;
struct bw_range;

enum bw_piece_kind {
    BW_PIECE_HOLE,   /**< zeros; nothing is allocated */
    BW_PIECE_STORED, /**< a piece of an extent, or a part of an inline one: see `extent` */
    BW_PIECE_BAD,    /**< unknown: see `error` */
};

/** A piece of a file. */
struct bw_extent_piece {
    enum bw_piece_kind kind;
    uint64_t offset;              /**< in the file */
    uint64_t length;              /**< bytes; never 0 */
    struct bw_file_extent extent; /**< for STORED; inline_data is valid until the next piece is
                                     asked for */
    uint64_t extent_start;  /**< where in the file its item begins; may be less than `offset` */
    struct bw_error *error; /**< for BAD; owned by the caller */
};

/** Whether a piece has bytes to be read: not so holes, bad pieces, and space that was never
 * written. */
static inline bool bw_extent_is_data(const struct bw_extent_piece *piece)
{
    return piece->kind == BW_PIECE_STORED && piece->extent.type != BW_FILE_EXTENT_PREALLOC;
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

/**
 * The logical addresses at which a piece is stored: its own bytes or, if it is compressed, those of
 * its whole extent. Length 0 if nothing is stored there: holes, bad pieces, inline extents. Those
 * that are allocated and were never written (BW_FILE_EXTENT_PREALLOC) have a range like others.
 */
struct bw_range bw_extent_stored(const struct bw_extent_piece *piece);

/** A place in a file, ahead of its reader. */
struct bw_data_advisor {
    struct bw_extent_cursor cursor;
    uint64_t done; /**< in the cursor's file: what is before it has been advised */
};

/**
 * Tells the layers below that a file will be read from `offset` to `end` soon, so that a cold disk
 * has the data ready. What was advised before is left out, as long as one goes on in the same file.
 * Fails only if memory runs out.
 */
struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end);

#endif
