/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a dump of btrfs-image holds, and where. The dump is a row of clusters. Each begins with a
 * block of 1024 bytes: a header, and an entry for each piece that follows. The pieces are ranges of
 * logical addresses, compressed or not, one directly after the other; the next cluster begins at
 * the next multiple of 1024 bytes. The superblock is the piece at its own offset, 64 KiB.
 *
 * Source: the header image/metadump.h of btrfs-progs, and dumps.
 */
#ifndef BW_XLATORS_LAYOUT_METADUMP_INDEX_H
#define BW_XLATORS_LAYOUT_METADUMP_INDEX_H

#include "graph/wind.h"

/** A piece of the file system. */
struct bw_metadump_piece {
    uint64_t logical; /**< its first address */
    uint64_t offset;  /**< of its bytes in the dump */
    uint32_t stored;  /**< bytes there */
    bool compressed;  /**< by zlib; how long it is then, only decompressing tells */
};

struct bw_metadump_index {
    struct bw_metadump_piece *pieces; /**< ascending by address */
    size_t count, capacity;
};

/** Whether a device begins as a dump does. */
bool bw_is_metadump(const struct bw_frame *frame, struct bw_xlator *device);

/**
 * Reads the index of a dump; free it with bw_metadump_index_free(). A dump that is cut off, or goes
 * on with something else, has an index up to there, and `*cut` is the error that says so; NULL: it
 * is whole.
 */
struct bw_error *bw_metadump_index_read(const struct bw_frame *frame, struct bw_xlator *device,
                                        struct bw_metadump_index *index, struct bw_error **cut);
void bw_metadump_index_free(struct bw_metadump_index *index);

/** The last piece that begins at an address or before it; NULL if there is none. */
const struct bw_metadump_piece *bw_metadump_find(const struct bw_metadump_index *index,
                                                 uint64_t logical);

/** The bytes a piece can have: those up to the next one, at most BW_METADUMP_PIECE. */
uint32_t bw_metadump_room(const struct bw_metadump_index *index,
                          const struct bw_metadump_piece *piece);

/** The longest piece that is decompressed. btrfs-image makes them 256 KiB long, but does not cut
 * what is longer. */
#define BW_METADUMP_PIECE (UINT32_C(4) << 20)

#endif
