/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the image writer share:
 *
 *   image_writer.c         options, trees and their items, the paths that a walk must find
 *   image_writer_files.c   inodes, names and subvolumes, as items
 *   image_writer_layout.c  chunks, items into blocks, blocks into levels, the extent tree
 *   image_writer_output.c  bytes of blocks and superblocks, devices, damage
 */
#ifndef BW_TESTS_IMAGE_WRITER_INTERNAL_H
#define BW_TESTS_IMAGE_WRITER_INTERNAL_H

#include "image_writer.h"

/* Numbers of the format that only the writer needs. */
enum {
    IW_BLOCK_GROUP_ITEM = 192,
    IW_FILE_XATTR = 8,
    IW_DEVICE_EXTENT = 204,
};

#define IW_DATA_RELOC_TREE ((uint64_t)-9)
#define IW_ORPHAN_OBJECTID ((uint64_t)-5)
#define IW_TIME            UINT64_C(1700000000)

struct iw_disk_block_group {
    bw_le64 used;
    bw_le64 chunk_objectid;
    bw_le64 flags;
};

struct iw_disk_device_extent {
    bw_le64 chunk_tree;
    bw_le64 chunk_objectid;
    bw_le64 chunk_offset;
    bw_le64 length;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
};

/** Followed by the bytes. */
struct iw_disk_inline_extent {
    bw_le64 generation;
    bw_le64 ram_bytes;
    uint8_t compression;
    uint8_t encryption;
    bw_le16 other_encoding;
    uint8_t type;
};

struct iw_item {
    struct bw_key key;
    uint8_t *bytes;
    size_t size;
    bool generated; /**< made by the layout, to be made again when it starts over */
};

/** Block indexes of one level of a tree, in key order. */
struct iw_level {
    size_t *blocks;
    size_t count;
};

struct iw_tree {
    uint64_t id;
    uint64_t generation;
    uint64_t origin;          /**< tree this is a snapshot of; 0: none */
    bool alias;               /**< has no blocks: points at the root of the origin */
    bool has_full_references; /**< see iw_use_full_references() */
    unsigned items_per_leaf, pointers_per_node, minimum_level;
    uint64_t next_inode;
    struct iw_item **items; /**< sorted by key */
    size_t count;

    /* Set by the layout. */
    bool laid_out;
    unsigned level;
    size_t root;
    struct iw_level levels[BW_MAX_LEVEL];
};

/** The blocks according to the extent tree. */
struct iw_account {
    struct iw_item *items;
    size_t count;
};

/** A block and its items or children. */
struct iw_block_state {
    struct iw_block block;
    const struct iw_tree *tree;
    size_t first_item; /**< of a leaf */
    size_t *children;  /**< of a node: block indexes; a leaf has none */
    uint8_t *edited;   /**< bytes, if no longer those that the items give */
};

struct iw_device {
    uint64_t devid;
    uint64_t size;
    uint64_t next; /**< first byte that no chunk has taken */
    uint64_t used; /**< by chunks */
    int fd;        /**< -1: not written, or removed */
    char *path;
    bool in_memory;
};

struct iw_image {
    struct iw_options options;
    bool written;
    unsigned device_count;
    struct iw_device devices[IW_MAX_DEVICES];
    struct iw_tree **trees; /**< sorted by id */
    size_t tree_count;
    struct iw_chunk *chunks;
    size_t chunk_count;
    uint64_t next_logical;
    struct iw_block_state *blocks;
    size_t block_count;
    size_t metadata_blocks, system_blocks; /**< handed out so far */
    struct iw_account account;
};

/** Where the bytes at a logical address lie, up to the end of a stripe. */
struct iw_place {
    unsigned device;
    uint64_t offset;
};
struct iw_mapping {
    uint64_t length;
    unsigned copies, parities;
    unsigned data_index; /**< of the stripe in its row: the power of 2 that weighs it in Q */
    struct iw_place copy[IW_MAX_DEVICES];
    struct iw_place parity[2];
};

/* image_writer.c */
void iw_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *iw_zalloc(size_t size);
/** `array` with room for one more element; capacities are powers of two. */
void *iw_grow(void *array, size_t count, size_t element_size);
enum iw_uuid {
    IW_UUID_PUBLIC = 1,
    IW_UUID_METADATA,
    IW_UUID_CHUNK_TREE,
    IW_UUID_DEVICE,
    IW_UUID_SUBVOLUME
};
void iw_uuid(const struct iw_image *image, enum iw_uuid kind, uint64_t number,
             uint8_t uuid[BW_UUID_SIZE]);
/** The id in tree blocks and device items. */
void iw_metadata_uuid(const struct iw_image *image, uint8_t uuid[BW_UUID_SIZE]);
struct bw_disk_key iw_disk_key(struct bw_key key);
struct iw_tree *iw_find_tree(const struct iw_image *image, uint64_t id);
/** Returns a tree to be changed, and creates it if necessary. Fails for an alias, or after the
 * image was written. */
struct iw_tree *iw_tree(struct iw_image *image, uint64_t id);
/** Index of the first item whose key is not less. */
size_t iw_lower_bound(const struct iw_tree *tree, struct bw_key key);
struct iw_item *iw_find_item(const struct iw_tree *tree, struct bw_key key);
void iw_put(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size);
/** Appends bytes to an item, and creates it if necessary. */
void iw_append(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size);
/** Like iw_put(), unless the test has put an item there itself. */
void iw_generate(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size);
void iw_remove_generated(struct iw_tree *tree);
size_t iw_leaf_space(const struct iw_image *image);

/* image_writer_files.c */
void iw_init_inode(const struct iw_image *image, struct bw_disk_inode_item *inode, uint8_t type);
void iw_put_root_item(struct iw_image *image, uint64_t id, uint64_t flags,
                      const struct iw_tree *source);
/** The ROOT_ITEM of a tree, with any offset; NULL if there is none. */
struct iw_item *iw_find_root_item(const struct iw_image *image, uint64_t id);

/* image_writer_layout.c */
unsigned iw_minimum_devices(uint64_t profile);
size_t iw_chunk_item(const struct iw_image *image, const struct iw_chunk *chunk, uint8_t *bytes);
void iw_fill_device_item(const struct iw_image *image, unsigned device,
                         struct bw_disk_device_item *item);
void iw_map(const struct iw_image *image, uint64_t logical, struct iw_mapping *mapping);
/** Writes a range to all its copies. `old` is what parity was computed from so far; NULL: zeros. */
void iw_store(struct iw_image *image, uint64_t logical, const uint8_t *old, const uint8_t *bytes,
              size_t length);
void iw_lay_out(struct iw_image *image);
void iw_free_layout(struct iw_image *image);

#endif
