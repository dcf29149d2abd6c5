/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hash tree of dm-verity. Each data block has a hash. Blocks of hashes have hashes, too, up to
 * a single block, whose hash is the root hash. The tree follows a superblock with its parameters.
 */
#ifndef BW_XLATORS_LAYOUT_VERITY_TREE_H
#define BW_XLATORS_LAYOUT_VERITY_TREE_H

#include <pthread.h>

#include "graph/wind.h"

enum {
    BW_VERITY_DIGEST = 64, /**< bytes of the longest hash */
    BW_VERITY_SALT = 256,
    BW_VERITY_LEVELS = 64, /**< more than there can be */
};

/** A tree that is read from a device. */
struct bw_verity_tree {
    struct bw_xlator *device;
    uint8_t uuid[16];
    char algorithm_name[33];
    int algorithm;   /**< of libgcrypt */
    bool is_old;     /**< hash type 0, of Chrome OS: the salt follows the block, and hashes are not
                        padded */
    uint32_t digest; /**< bytes of a hash */
    uint32_t data_block, hash_block;
    uint64_t data_blocks;
    uint32_t salt_length;
    uint8_t salt[BW_VERITY_SALT];
    unsigned shift; /**< a hash block contains 1 << shift hashes */
    unsigned levels;
    uint64_t begin[BW_VERITY_LEVELS]; /**< first hash block of each level, on the device; level 0
                                         has the hashes of the data */
    uint8_t root[BW_VERITY_DIGEST];
    pthread_mutex_t lock; /**< of the slots */
    uint64_t *slots;      /**< numbers of the hash blocks that were verified, of which none is 0;
                             NULL: nothing is verified */
    uint8_t *slot_bytes;
    size_t slot_count;
};

/** Whether a device has a superblock of dm-verity at an offset. */
bool bw_verity_has_superblock(const struct bw_frame *frame, struct bw_xlator *device,
                              uint64_t offset);

/** Finds the superblock after a btrfs on the same device. */
bool bw_verity_find_after_data(const struct bw_frame *frame, struct bw_xlator *device,
                               uint64_t *offset);

/** Reads the superblock at an offset. BW_ERROR_NOT_FOUND if there is none. */
struct bw_error *bw_verity_open(const struct bw_frame *frame, struct bw_xlator *device,
                                uint64_t offset, struct bw_verity_tree *tree);

/** Sets the root hash, in hexadecimal digits, from which on data can be verified. BW_ERROR_CORRUPT
 * if the tree has another one. */
struct bw_error *bw_verity_set_root(const struct bw_frame *frame, struct bw_verity_tree *tree,
                                    const char *digits);

/** Compares data blocks with the tree. Safe from any thread. */
struct bw_error *bw_verity_check(const struct bw_frame *frame, struct bw_verity_tree *tree,
                                 uint64_t first, const uint8_t *blocks, uint64_t count);

/** Whether the tree belongs to the data of a device, at least to some of them. */
bool bw_verity_fits(const struct bw_frame *frame, const struct bw_verity_tree *tree,
                    struct bw_xlator *data);

void bw_verity_close(struct bw_verity_tree *tree);

#endif
