/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files with fs-verity: a descriptor with a hash, which is the root of a Merkle tree of the hashes
 * of all blocks of the file. Both are items of the inode. Source: Documentation/filesystems/
 * fsverity.rst and fs/btrfs/verity.c of the kernel.
 */
#ifndef BW_CHECK_VERITY_H
#define BW_CHECK_VERITY_H

#include "btrfs-walk/file.h"
#include "check/check.h"

enum { BW_VERITY_DIGEST = 64 }; /* bytes of the longest hash */

/** The facts in a descriptor. */
struct bw_verity {
    int algorithm;                     /* libgcrypt's */
    unsigned digest_size;              /* bytes of a hash */
    unsigned salt_size;                /* bytes before each block: 0, or filled with zeros */
    uint32_t block_size;               /* of data, and of the tree */
    uint64_t data_blocks;              /* of the file */
    unsigned levels;                   /* of the tree, from hashes of data on */
    uint64_t starts[BW_VERITY_DIGEST]; /* of each level, in blocks; the last one begins at 0 */
    uint64_t counts[BW_VERITY_DIGEST]; /* blocks of each level */
    uint8_t salt[2 * BW_VERITY_DIGEST];
    uint8_t root[BW_VERITY_DIGEST];
};

/** Notes the files with fs-verity in a leaf, once for all subvolumes that share it, and sets
 * `*found` if there are any. False if memory runs out. Safe from any thread. */
bool bw_verity_collect(struct bw_check *check, uint64_t tree, const struct bw_node *leaf,
                       bool *found);

/** Frees the collected facts; NULL is allowed. */
struct bw_verity_files;
void bw_verity_files_free(struct bw_verity_files *files);

#endif
