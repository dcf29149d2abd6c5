/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of metadumps, version 0, as btrfs-image writes it.
 *
 * A metadump is a sequence of clusters. Each begins with a block of 1024 bytes: a header, and an
 * entry for each piece that follows. The pieces are ranges of logical addresses, compressed or not,
 * one directly after the other; the next cluster begins at the next multiple of 1024 bytes. The
 * superblock is the piece at its own offset, 64 KiB.
 *
 * Source: the header image/metadump.h of btrfs-progs, and dumps.
 */
#ifndef BW_ONDISK_METADUMP_H
#define BW_ONDISK_METADUMP_H

#include "base/endian.h"

enum {
    BW_METADUMP_BLOCK = 1024,
    /** The longest piece of btrfs-image, which restores no longer ones. */
    BW_METADUMP_PIECE = 256 << 10,
};

#define BW_METADUMP_MAGIC UINT64_C(0xbd5c25e27295668b)

struct bw_metadump_header {
    bw_le64 magic;
    bw_le64 offset; /**< of this cluster in the metadump */
    bw_le32 count;  /**< of entries */
    uint8_t compression;
} __attribute__((packed));

enum { BW_METADUMP_PLAIN, BW_METADUMP_ZLIB };

struct bw_metadump_entry {
    bw_le64 logical;
    bw_le32 stored; /**< bytes; the length of a compressed piece is not recorded */
} __attribute__((packed));

enum {
    BW_METADUMP_ENTRIES =
        (BW_METADUMP_BLOCK - sizeof(struct bw_metadump_header)) / sizeof(struct bw_metadump_entry)
};

/** The first block of a cluster. */
union bw_metadump_index {
    uint8_t bytes[BW_METADUMP_BLOCK];
    struct {
        struct bw_metadump_header header;
        struct bw_metadump_entry entries[BW_METADUMP_ENTRIES];
    } __attribute__((packed)) cluster;
};

#endif
