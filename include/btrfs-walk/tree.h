/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trees on disk: the items of any tree in a range of keys, and single tree blocks; dumps and
 * statistics of trees. Items contain the bytes of the format, little-endian and packed, as struct
 * btrfs_*_item in the kernel's uapi/linux/btrfs_tree.h describes them. Each of these bytes may be
 * hostile.
 */
#ifndef BTRFS_WALK_TREE_H
#define BTRFS_WALK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/record.h"

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

/** The id of a tree from its name (as in btrfs-progs: "fs", "FS_TREE", "free-space") or its number,
 * which may be negative. The tree need not exist. BW_ERROR_USAGE, with a list of the names, for
 * anything else. */
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
    uint64_t bytenr;      /**< logical address of the leaf */
    uint64_t generation;  /**< transaction that wrote the leaf */
    uint64_t owner;       /**< tree that the leaf was written for */
    uint32_t slot;        /**< number of the item in it, from 0 on */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** The items of a tree in a range of keys. One thread at a time may use it. */
struct bw_items;

/** Starts reading the items of the tree `tree_id` with keys from `*first` to `*last`, both
 * included; NULL: the lowest or the highest key. The caller owns `*items`, which the file system
 * must outlive. BW_ERROR_NOT_FOUND if the tree does not exist. */
struct bw_error *bw_items_open(struct bw_fs *fs, uint64_t tree_id, const struct bw_key *first,
                               const struct bw_key *last, struct bw_items **items);

/** Returns the next item, in key order; `*item` is NULL after the last one. The item and
 * `*location` (which may be NULL) are valid until the next call. An unreadable range of keys is an
 * error; the next call continues after that range. */
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
    uint32_t item_count;  /**< items of a leaf, pointers of an internal node */
    uint8_t level;        /**< 0 for a leaf */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** A pointer of an internal node. */
struct bw_block_key_pointer {
    struct bw_key key; /**< the first key below it */
    uint64_t bytenr;   /**< logical address of the child */
    uint64_t generation;
};

/** Reads the tree block at a logical address, of any tree. Its checksum and fsid are verified, and
 * all copies are tried. The caller owns `*block`. BW_ERROR_NOT_FOUND if no chunk contains the
 * address, BW_ERROR_CORRUPT if all mirrors are bad. */
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

/*
 * Trees, blocks and items as text or JSON. The text is that of `btrfs inspect-internal dump-tree`:
 * the same lines with the same labels in the same order. JSON is an object a line, for each item
 * of a leaf and each pointer of an internal node; docs/items.md describes the members.
 *
 * Text never contains control bytes of the image: they are escaped as `ls -b` does. Times are in
 * the zone of the process (TZ).
 */

/** How to print. All zeros but the size: whole trees, as text, level by level. */
struct bw_dump_options {
    size_t struct_size; /**< sizeof(struct bw_dump_options) */
    bool json;          /**< JSON instead of text */
    bool depth_first;   /**< each node is followed by everything below it; otherwise by the nodes of
                           its level */
    bool follow;        /**< of a block: also everything below it */
    bool checksum_headers; /**< the checksums of blocks, in text */
    bool checksum_items;   /**< the checksums of data */
    bool hide_names;       /**< names and values of attributes are replaced by HIDDEN, and left out
                              of JSON */
    /** Only items with keys from `first` to `last`; both may be NULL. If one is set, internal nodes
     * are not printed, and only the necessary blocks are read. */
    const struct bw_key *first, *last;
    /** If the log was replayed (struct bw_fs_status): show the trees of subvolumes and the checksum
     * tree with its changes. Changed blocks exist only in memory; their addresses begin at 1 << 63,
     * and their checksums and UUIDs are zeros. Otherwise the trees on disk are shown. */
    bool replayed;
    /** Rows of the record iteminfo (record.h): writes one for each item and pointer. Pass
     * bw_rows_take() as the consumer, and the stream as its context. NULL: text, or with `json`
     * all members. */
    const struct bw_rows *rows;
    /** In text: the bytes of items and pointers instead of their meaning, with their offsets in the
     * block. Whole blocks are printed with their header and unused space, in the order of the
     * bytes. Not with `json`, `rows` or `hide_names`. */
    bool hex;
};

/**
 * Prints trees, in the given order; all of them if `count` is 0: the root tree, the chunk tree, the
 * log, and the trees in the root tree. An id that several trees share, such as the id of relocation
 * trees, selects all of them. Text is passed to `consume` in pieces of any size; its error ends the
 * printing and is returned.
 *
 * Unreadable blocks are reported and skipped; of a damaged block, the decodable items are printed.
 * BW_ERROR_NOT_FOUND, before anything is printed, if a tree does not exist; BW_ERROR_USAGE if the
 * options are wrong.
 */
struct bw_error *bw_dump_trees(struct bw_fs *fs, const uint64_t *ids, size_t count,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context);

/** Prints the tree block at a logical address, and with options->follow everything below it. The
 * decodable items of a damaged block are printed, and its error is reported. BW_ERROR_NOT_FOUND if
 * no chunk contains the address. */
struct bw_error *bw_dump_block(struct bw_fs *fs, uint64_t bytenr,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context);

/**
 * The data of an item: in text, lines that begin with two tabs; in JSON, an object. The caller
 * frees `*text`, which ends with a NUL; `length`, without it, may be NULL. BW_ERROR_CORRUPT if the
 * item is cut off.
 */
struct bw_error *bw_item_format(const struct bw_fs *fs, const struct bw_item *item,
                                const struct bw_dump_options *options, char **text, size_t *length);

/** Writes a superblock of BW_SUPERBLOCK_BYTES, good or not, as lines of `btrfs inspect-internal
 * dump-super`; a line feed comes before the first. bw_rows_write_superblock() writes a row. */
struct bw_error *bw_superblock_print(const uint8_t *bytes, bw_consumer *consume, void *context);

/** Parses a range of keys: KEY, or MIN..MAX of which one may be empty. A key is
 * OBJECTID[,TYPE[,OFFSET]] with numbers or the printed names; omitted parts match everything.
 * BW_ERROR_USAGE if it is malformed. */
struct bw_error *bw_key_range_parse(const char *text, struct bw_key *first, struct bw_key *last);

/** Describes all types of items: adds an array of objects to a writer. */
void bw_item_types_describe(struct bw_json *json, const char *name);

/*
 * Metadumps: the tree blocks of a file system without the contents of files, in the format of
 * btrfs-image (version 0), to examine a damaged file system. `btrfs-image -r`
 * restores them, and bw_fs_open() reads them like images.
 */

/** How to write a metadump. All zeros but the size: not compressed, with all names. */
struct bw_metadump_options {
    size_t struct_size;   /**< sizeof(struct bw_metadump_options) */
    unsigned compression; /**< level of zlib, 1 to 9; 0: none */
    bool checksums;       /**< keep the checksums of data and the hashes of fs-verity, with which
                               guessed contents can be confirmed */
    /** Write only the bytes of known numbers, and replace the names of files and subvolumes and of
     * the attributes of users by others of the same length and with the same hash. All other bytes
     * become zeros: values of attributes, the label, the space cache of version 1, reserved and
     * unused bytes, items of unknown types or with impossible contents. Names of up to 4 bytes are
     * kept, because their hash determines them. The replacements depend on a random key, which is
     * stored nowhere. */
    bool sanitize;
    /** Called between writes; `done` and `total` are bytes of tree blocks. May be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

/**
 * Writes a metadump: passes its bytes on in order. Includes the superblock of the device with the
 * lowest id, all trees, log trees, and the space cache of version 1. Blocks are in the order of
 * their addresses, so two metadumps of the same file system are equal, unless they are sanitized.
 *
 * Unreadable blocks are reported and left out. A block that is older than its parent expects is
 * reported, but included. Blocks below a lost node are found by the extent tree.
 *
 * BW_ERROR_USAGE if the options are wrong; BW_ERROR_UNSUPPORTED if the images are send streams.
 */
struct bw_error *bw_metadump_write(struct bw_fs *fs, const struct bw_metadump_options *options,
                                   bw_consumer *consume, void *context);

/*
 * Statistics of trees: their size, the places of their blocks, and their items. Distances are
 * between logical addresses, as in `btrfs inspect-internal tree-stats`.
 */

enum {
    BW_TREE_LEVELS = 8,   /**< the most levels that a tree can have */
    BW_SEEK_BUCKETS = 65, /**< of bw_tree_stats.seek_lengths */
    BW_KEY_TYPES = 256,   /**< types that a key can have */
};

/** Items of a type. */
struct bw_item_type_stats {
    uint64_t count;
    uint64_t bytes;       /**< of the items, without their keys */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** The statistics of a tree. */
struct bw_tree_stats {
    uint64_t id;
    unsigned levels;                 /**< 1: the root is a leaf */
    uint64_t blocks[BW_TREE_LEVELS]; /**< blocks read on each level; level 0: leaves */
    uint64_t block_count;            /**< on all levels */
    uint64_t lost_blocks;            /**< unreadable blocks; everything below them is not counted */
    uint64_t bytes;                  /**< of all blocks read */
    uint64_t items;                  /**< in the leaves */
    uint64_t used_bytes;             /**< bytes of the leaves that hold items and their keys */
    uint64_t capacity_bytes;         /**< bytes of the leaves that could */
    uint64_t inline_bytes;           /**< contents of files among the items, as stored */

    /**
     * A seek is needed where a child of a node does not lie right behind the child before it, or
     * the first one not right behind the node. Children that do form a cluster; a cluster counts
     * if it holds more than one block and a seek ends it.
     */
    uint64_t seeks, forward_seeks, backward_seeks;
    uint64_t seek_bytes;                    /**< sum of their lengths; UINT64_MAX: that, or more */
    uint64_t longest_seek;                  /**< in bytes */
    uint64_t seek_lengths[BW_SEEK_BUCKETS]; /**< number of seeks with a length of n bits: from
                                               2^(n-1) bytes up to, but not including, 2^n */
    uint64_t clusters, cluster_bytes;       /**< number of clusters, and the sum of their sizes */
    uint64_t smallest_cluster, largest_cluster; /**< in bytes; 0 without clusters */
    uint64_t lowest, highest;                   /**< logical addresses of the outermost blocks */

    struct bw_item_type_stats types[BW_KEY_TYPES]; /**< items by the type of their key */
    uint64_t reserved[8];                          /**< zeros: room for more members */
};

/** Reads a whole tree, in batches and with constant memory. Unreadable blocks are counted and
 * reported. BW_ERROR_NOT_FOUND if the tree does not exist; other errors if its entry in the root
 * tree cannot be read, or if memory runs out. */
struct bw_error *bw_tree_stats_read(struct bw_fs *fs, uint64_t tree_id,
                                    struct bw_tree_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
