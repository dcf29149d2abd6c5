/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Items of an inode of a tree, found by its number: the INODE_ITEM, extended attributes, the target
 * of a symbolic link. */
#ifndef BW_FS_INODE_H
#define BW_FS_INODE_H

#include "base/buffer.h"
#include "base/hash_table.h"
#include "btree/scan.h"
#include "btrfs-walk/inode.h"
#include "ondisk/items.h"

struct bw_fs;

/** Reads the INODE_ITEM of an inode. BW_ERROR_NOT_FOUND if the tree has none; BW_ERROR_CORRUPT if
 * it is cut off; other errors if the block that would contain it cannot be read. */
struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode);

/* Reading many inodes at once (inode.c). */

/** The state of an item. */
enum bw_item_state {
    BW_ITEM_MISSING, /**< the tree has none */
    BW_ITEM_FOUND,
    BW_ITEM_CUT_OFF, /**< the item exists, but cannot be read */
    BW_ITEM_INVALID, /**< the item exists, but is invalid */
    BW_ITEM_LOST,    /**< the block that may contain it cannot be read */
};

/** The attributes of one inode. Loops over thousands of inodes use the members before the last,
 * which share a cache line. */
struct bw_inode_attributes {
    uint64_t number;      /**< set by the caller */
    uint32_t compression; /**< offset of the compression property in query->values */
    uint16_t compression_length;
    uint8_t inode_state, compression_state; /**< enum bw_item_state */
    bool has_acl;
    struct bw_inode inode; /**< valid if inode_state is BW_ITEM_FOUND */
};

/** Reads the attributes of inodes repeatedly, and reuses its memory. Set the first members; the
 * rest begins as zeros. Only one thread at a time may use it. */
struct bw_inode_query {
    struct bw_fs *fs;
    bool acls, compression;               /**< attributes to read in addition to the INODE_ITEM */
    const struct bw_key_map *lost_blocks; /**< addresses of leaves that count as lost and are not
                                           * read; may be NULL */
    /** Returns a verified leaf that the caller has in memory; NULL: it must be read. May be NULL.
     */
    const uint8_t *(*known)(void *context, const struct bw_block_pointer *pointer);
    void *context;           /**< `known` receives it. */
    struct bw_buffer values; /**< result: values of the properties found by the last run */
    size_t leaves;           /**< result: leaves that the last run has read */

    /* Private. */
    struct bw_block_scan scan;
    struct bw_key keys[4]; /* Each inode has these; they ascend, and objectid is filled in. */
    unsigned key_count;
    struct bw_inode_attributes *attributes;
    size_t count;
    size_t at;   /* the inode found last */
    size_t near; /* the inode that the last search led to */
};

/** Fills in attributes, which are in ascending order of unique numbers. Reports lost blocks. Fails
 * only if memory runs out. */
struct bw_error *bw_inode_query_run(struct bw_inode_query *query, const struct bw_tree *tree,
                                    struct bw_inode_attributes *attributes, size_t count);

/** Frees the memory of a query. */
void bw_inode_query_free(struct bw_inode_query *query);

/** Appends the target of a symbolic link without a NUL, as a mount shows it: up to the first NUL.
 * BW_ERROR_NOT_FOUND if the inode has no target, BW_ERROR_CORRUPT if the target is invalid or too
 * long. */
struct bw_error *bw_symlink_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                 struct bw_buffer *target);

#endif
