/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file is made of, from one offset to another, in file order and without a gap: pieces of
 * extents, holes (whether the file system writes them down or not), and ranges of which nobody can
 * tell because an item or a part of the tree is damaged. What comes behind an offset depends on
 * that offset alone, not on where one came from.
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
    BW_PIECE_BAD,    /**< nobody knows: see `error` */
};

/** A piece of a file. */
struct bw_extent_piece {
    enum bw_piece_kind kind;
    uint64_t offset;              /**< in the file */
    uint64_t length;              /**< bytes; never 0 */
    struct bw_file_extent extent; /**< for STORED; inline_data is valid until the next piece is
                                     asked for */
    uint64_t extent_start;  /**< where in the file its item begins; may be less than `offset` */
    struct bw_error *error; /**< for BAD; whoever gets the piece owns it */
};

/** Whether there are bytes to be read of a piece: none are in holes, in what was never written, in
 * what is bad. */
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

/** Goes to a range of a file. It may pass the file's size, for what is allocated behind it. */
void bw_extents_seek(struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                     uint64_t offset, uint64_t end);

/**
 * The next piece; false at the end of the range. Pieces are cut at both ends of it. Fails only for
 * want of memory: damage is a piece. Where a bad one ends that nothing is known to follow, it ends
 * with the file.
 */
struct bw_error *bw_extents_next(struct bw_extent_cursor *cursor, struct bw_extent_piece *piece,
                                 bool *got);

/** The same for who wants to read: data that should lie where there is no chunk are a bad piece, up
 * to the next chunk. */
struct bw_error *bw_extents_next_readable(struct bw_extent_cursor *cursor,
                                          struct bw_extent_piece *piece, bool *got);

/**
 * The logical addresses at which a piece is stored: its own bytes or, if it is compressed, those of
 * its whole extent. Length 0 if nothing is stored there: holes, bad pieces, inline extents. Those
 * allocated and never written (BW_FILE_EXTENT_PREALLOC) have a range like others.
 */
struct bw_range bw_extent_stored(const struct bw_extent_piece *piece);

#endif
