/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trees as they are on disk: the items of any tree in a range of keys, and single tree blocks. What
 * an item holds are the bytes of the format, little-endian and packed, as struct btrfs_*_item in
 * the kernel's uapi/linux/btrfs_tree.h describes them; every one of them is hostile.
 */
#ifndef BTRFS_WALK_TREE_H
#define BTRFS_WALK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/key.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

/** Ids of trees. Subvolumes have the ids 5 and 256 to 2^64-257. */
enum bw_tree_id {
    BW_TREE_ROOT = 1,
    BW_TREE_EXTENT = 2,
    BW_TREE_CHUNK = 3,
    BW_TREE_DEVICE = 4,
    BW_TREE_CHECKSUM = 7,
    BW_TREE_QUOTA = 8,
    BW_TREE_UUID = 9,
    BW_TREE_FREE_SPACE = 10,
    BW_TREE_BLOCK_GROUP = 11,
    BW_TREE_RAID_STRIPE = 12,
    BW_TREE_REMAP = 13,
};

/** The names of trees, for bw_tree_id_parse(); ends with NULL. */
extern const char *const bw_tree_names[];

/**
 * The id of a tree from its name (as btrfs-progs know them: "fs", "FS_TREE", "free-space") or its
 * number, which may be negative. Whether the file system has it is not checked. BW_ERROR_USAGE,
 * listing the names, if it is neither.
 */
struct bw_error *bw_tree_id_parse(const char *text, uint64_t *id);

/** Bytes of the longest text of the next two functions, with its NUL. */
enum { BW_KEY_TEXT = 112 };

/** The name of a tree as btrfs-progs write it: "FS_TREE"; its number if it has none, as most
 * subvolumes. Returns `text`. */
const char *bw_tree_id_text(uint64_t id, char text[BW_KEY_TEXT]);

/** A key as btrfs-progs write it: "(257 INODE_ITEM 0)". Returns `text`. */
const char *bw_key_text(const struct bw_key *key, char text[BW_KEY_TEXT]);

/** Name of the type of a key ("INODE_ITEM"); "UNKNOWN" for a number that has no meaning. */
const char *bw_key_type_name(uint8_t type);

/** An item of a leaf. */
struct bw_item {
    struct bw_key key;
    const uint8_t *data; /**< `size` bytes; a view on the leaf */
    uint32_t size;
};

/** Where an item is stored. */
struct bw_item_location {
    uint64_t bytenr;     /**< logical address of the leaf */
    uint64_t generation; /**< transaction that wrote the leaf */
    uint64_t owner;      /**< tree that the leaf was written for */
    uint32_t slot;       /**< number of the item in it, from 0 on */
};

/** The items of a tree in a range of keys. One thread at a time may use it. */
struct bw_items;

/**
 * Starts reading the items of the tree `tree_id` with keys from `*first` to `*last`, both included;
 * NULL stands for the least or the greatest key. The caller owns `*items`, which the file system
 * must outlive. BW_ERROR_NOT_FOUND if there is no such tree.
 */
struct bw_error *bw_items_open(struct bw_fs *fs, uint64_t tree_id, const struct bw_key *first,
                               const struct bw_key *last, struct bw_items **items);

/**
 * The next item, in key order; `*item` is NULL after the last. It and `*location` (which may be
 * NULL) are valid until the next call. A range of keys that cannot be read is an error, and the
 * call after it goes on with the first key after that range.
 */
struct bw_error *bw_items_next(struct bw_items *items, const struct bw_item **item,
                               struct bw_item_location *location);

/** Ends reading; NULL is allowed. */
void bw_items_close(struct bw_items *items);

/** A tree block. */
struct bw_tree_block;

/** The header of a tree block. Source: struct btrfs_header in the kernel's uapi/linux/btrfs_tree.h.
 */
struct bw_tree_block_header {
    uint64_t bytenr; /**< its logical address */
    uint64_t flags;
    uint64_t generation;
    uint64_t owner;
    uint32_t item_count; /**< items of a leaf, pointers of an internal node */
    uint8_t level;       /**< 0 for a leaf */
};

/** A pointer of an internal node. */
struct bw_block_key_pointer {
    struct bw_key key; /**< the first key below it */
    uint64_t bytenr;   /**< logical address of the child */
    uint64_t generation;
};

/**
 * Reads the tree block at a logical address, whatever tree it belongs to. Its checksum and the id
 * of the file system are verified, and all copies are tried. The caller owns `*block`.
 * BW_ERROR_NOT_FOUND if no chunk holds the address, BW_ERROR_CORRUPT if there is no good copy.
 */
struct bw_error *bw_tree_block_read(struct bw_fs *fs, uint64_t bytenr,
                                    struct bw_tree_block **block);

/** Frees a block; NULL is allowed. */
void bw_tree_block_free(struct bw_tree_block *block);

/** Its header. */
struct bw_tree_block_header bw_tree_block_header(const struct bw_tree_block *block);

/** An item of a leaf; false if `slot` is not below the item count, the block is no leaf, or the
 * bytes of the item lie outside of it. */
bool bw_tree_block_item(const struct bw_tree_block *block, uint32_t slot, struct bw_item *item);

/** A pointer of an internal node; false if `slot` is not below the item count, or the block is a
 * leaf.
 */
bool bw_tree_block_pointer(const struct bw_tree_block *block, uint32_t slot,
                           struct bw_block_key_pointer *pointer);

#ifdef __cplusplus
}
#endif
#endif
