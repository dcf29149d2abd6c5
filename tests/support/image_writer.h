/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Synthesises btrfs images byte by byte, so that every profile, tree level, node size, checksum and
 * kind of damage can be tried without mkfs, root or a kernel.
 *
 * The way of an image: iw_create() with options; describe the content (subvolumes, directories,
 * files, raw items), which is kept in memory as items sorted by key; iw_write_memory() or
 * iw_write_files() lays the items out in tree blocks, the blocks in chunks and the chunks on
 * devices; after that look blocks up and damage them.
 *
 * The writer shares the structures of ondisk/disk.h, the checksums and the name hash with the
 * library under test, and nothing else. Whatever goes wrong in here is a mistake of the test: it is
 * reported and the program aborts.
 */
#ifndef BW_TESTS_IMAGE_WRITER_H
#define BW_TESTS_IMAGE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "btrfs-walk/format.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"

struct iw_image;

enum {
    IW_MAX_DEVICES = 32,
    IW_ALL_COPIES = 0, /**< mirrors of blocks and superblocks are counted from 1 */
};

/** All devices, in place of a device index. Indexes start at 0; devids are different numbers. */
#define IW_ALL_DEVICES UINT32_MAX

/** The parameters of an image. All zeros: one device with single chunks, 16 KiB nodes and crc32c.
 */
struct iw_options {
    uint32_t nodesize;                   /**< 0: 16 KiB */
    uint32_t sectorsize;                 /**< 0: 4 KiB */
    enum bw_checksum_type checksum_type; /**< of superblocks and tree blocks */
    uint64_t generation;                 /**< of the superblock and every block; 0: 10 */
    uint64_t incompat_flags;     /**< added to those that the rest of the options calls for */
    bool separate_metadata_uuid; /**< tree blocks carry another id than the public one */
    uint32_t identity; /**< goes into all uuids: images of two numbers are two file systems */
    const char *label; /**< NULL: none */

    uint64_t profile;        /**< BW_GROUP_* profile bit of metadata chunks; 0: single */
    bool has_system_profile; /**< whether system_profile counts; otherwise system chunks are as
                                metadata chunks */
    uint64_t system_profile; /**< of system chunks */
    uint64_t data_profile;   /**< of the (empty) data chunks */
    bool mixed_groups;       /**< metadata chunks are for data as well */

    unsigned device_count;  /**< 0: as few as the profiles take */
    const uint64_t *devids; /**< device_count of them; NULL: 1, 2, 3, ... */
    uint64_t device_size;   /**< 0: 32 MiB; grows if the chunks need more */
    unsigned stripe_count;  /**< stripes of striped chunks; 0: as many as there are devices */
    uint64_t device_extent_length; /**< what a chunk takes of each device; multiple of 64 KiB; 0: 4
                                      MiB */
    unsigned data_chunks;          /**< chunks without content, to make the chunk tree larger */
    uint64_t logical_base;         /**< logical address of the first chunk; 0: 22020096 */
    uint64_t chunk_gap;            /**< logical addresses between two chunks that belong to none */
    unsigned block_step; /**< use every nth place for a block only, to touch more stripes; 0: 1 */

    unsigned items_per_leaf;    /**< 0: as many as fit */
    unsigned pointers_per_node; /**< 0: as many as fit; else at least 2 */
};

/* Life of an image. */

struct iw_image *iw_create(const struct iw_options *options);
/** Frees everything, NULL allowed. Files stay, memory devices go. */
void iw_destroy(struct iw_image *image);
/** Lays the image out on memory devices; iw_path() names them for this process and its children. */
void iw_write_memory(struct iw_image *image);
/** Lays the image out on new sparse files DIRECTORY/dev<devid>.img. */
void iw_write_files(struct iw_image *image, const char *directory);

/* Items of trees: before writing. Trees 1 to 5, 7 and -9 exist from the start; others come with a
 * first item.
 */

/** Adds an item to a tree, or replaces it. CHUNK_ITEM, DEV_ITEM, ... that are added here win over
 * generated ones. */
void iw_item(struct iw_image *image, uint64_t tree, struct bw_key key, const void *bytes,
             size_t size);
void iw_remove_item(struct iw_image *image, uint64_t tree, struct bw_key key);
/** The bytes of an item, which may be changed; NULL if there is none. `size` may be NULL. */
void *iw_item_bytes(struct iw_image *image, uint64_t tree, struct bw_key key, size_t *size);
/** Shape of one tree; 0 for the number of the options. A tree gets at least `minimum_level`, if
 * need be by nodes that have one child. */
void iw_shape(struct iw_image *image, uint64_t tree, unsigned items_per_leaf,
              unsigned pointers_per_node, unsigned minimum_level);
/** The blocks below the nodes of one tree, except for the root, refer to these nodes
 * (SHARED_BLOCK_REF) rather than to the tree, as in the kernel if the tree that they belong to has
 * changed and only snapshots use them. */
void iw_use_full_references(struct iw_image *image, uint64_t tree);
/** Generation of the blocks of one tree and of its ROOT_ITEM. */
void iw_set_generation(struct iw_image *image, uint64_t tree, uint64_t generation);

/* File trees: before writing. Every subvolume has the top directory 256 (BW_SUBVOLUME_ROOT_INODE).
 */

/** A new, empty subvolume, entered as `name` in directory `directory` of subvolume `parent`; with
 * parent 0, nowhere. */
void iw_subvolume(struct iw_image *image, uint64_t id, uint64_t parent, uint64_t directory,
                  const char *name, uint64_t flags);
/** Enters a subvolume that is nowhere yet in a directory of another one. */
void iw_attach(struct iw_image *image, uint64_t id, uint64_t parent, uint64_t directory,
               const char *name);
/** Makes a snapshot: a copy of the current `source`. Later changes to either do not affect the
 * other; unchanged blocks are shared. The root block is never shared, as in the kernel. */
void iw_snapshot(struct iw_image *image, uint64_t id, uint64_t source, uint64_t parent,
                 uint64_t directory, const char *name, uint64_t flags);
/** A subvolume whose ROOT_ITEM points at the root block of `source`; it can not be changed. */
void iw_alias(struct iw_image *image, uint64_t id, uint64_t source, uint64_t parent,
              uint64_t directory, const char *name);
/** Deletes a subvolume as far as the kernel does before the cleaner has come: ROOT_ITEM with no
 * references, an ORPHAN_ITEM, no ROOT_REF, no directory entry. */
void iw_delete_subvolume(struct iw_image *image, uint64_t id);

/** Sets the inode number of the next file in a subvolume; later ones get the numbers after it. */
void iw_next_inode(struct iw_image *image, uint64_t subvolume, uint64_t inode);
/** Makes an inode of type BW_FILE_* and its first name; the answer is its number. */
uint64_t iw_make(struct iw_image *image, uint64_t subvolume, uint64_t directory, const char *name,
                 uint8_t type);
uint64_t iw_file(struct iw_image *image, uint64_t subvolume, uint64_t directory, const char *name);
uint64_t iw_directory(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                      const char *name);
uint64_t iw_symlink(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                    const char *name, const char *target);
/** One more name of an inode: INODE_REF, packed with others of that directory; INODE_EXTREF when
 * that is full. */
void iw_link(struct iw_image *image, uint64_t subvolume, uint64_t inode, uint64_t directory,
             const char *name);
/** The same with an INODE_EXTREF in any case. */
void iw_link_extended(struct iw_image *image, uint64_t subvolume, uint64_t inode,
                      uint64_t directory, const char *name);
/** Moves a directory or file from one directory to another (its only name there is `name`). */
void iw_move(struct iw_image *image, uint64_t subvolume, uint64_t inode, uint64_t from,
             const char *name, uint64_t to, const char *new_name);
/** Content of a file as an uncompressed inline extent; sets its size. */
void iw_inline_data(struct iw_image *image, uint64_t subvolume, uint64_t inode, const void *bytes,
                    size_t size);

/** A property of an inode, or any extended attribute: XATTR_ITEM. */
void iw_property(struct iw_image *image, uint64_t subvolume, uint64_t inode, const char *name,
                 const char *value);

/** A directory entry without an inode: for stale, dangling and unusual entries. */
struct iw_entry {
    uint64_t directory;
    const void *name;   /**< any bytes */
    size_t name_length; /**< 0: strlen(name) */
    uint8_t type;       /**< BW_FILE_* */
    struct bw_key location;
    uint64_t index;     /**< offset of the DIR_INDEX key; 0: next one */
    bool without_item;  /**< no DIR_ITEM */
    bool without_index; /**< no DIR_INDEX */
};

/** Adds an entry; the answer is the index it got. */
uint64_t iw_entry(struct iw_image *image, uint64_t subvolume, const struct iw_entry *entry);
/** Removes DIR_ITEM and DIR_INDEX of a name. The inode and what refers back from it stay. */
void iw_remove_entry(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                     const char *name);

/* The expected paths of a walk. */

/** Paths, sorted by byte value. */
struct iw_paths {
    char **paths;
    size_t count;
};

/**
 * The paths of all regular files reachable from subvolume 5, as the DIR_INDEX items that were added
 * tell: hard links once per name, subvolumes if their ROOT_REF agrees with the entry and they are
 * not being deleted.
 */
struct iw_paths iw_expected_paths(const struct iw_image *image);
void iw_paths_free(struct iw_paths *paths);

/* Devices: after writing. */

unsigned iw_device_count(const struct iw_image *image);
uint64_t iw_devid(const struct iw_image *image, unsigned device);
/** Path of a device; NULL if it was removed. */
const char *iw_path(const struct iw_image *image, unsigned device);
/** Fills in the paths of the devices that were not removed; the answer is how many. */
unsigned iw_paths_of(const struct iw_image *image, const char *paths[static IW_MAX_DEVICES]);
uint64_t iw_device_size(const struct iw_image *image, unsigned device);
/** Bytes of a device; after its end, they are zeros. */
void iw_device_read(const struct iw_image *image, unsigned device, uint64_t offset, void *bytes,
                    size_t length);
void iw_device_write(struct iw_image *image, unsigned device, uint64_t offset, const void *bytes,
                     size_t length);
void iw_truncate_device(struct iw_image *image, unsigned device, uint64_t size);
void iw_remove_device(struct iw_image *image, unsigned device);

/* Blocks: after writing. */

struct iw_block {
    uint64_t tree; /**< that owns it; snapshots point to blocks of others */
    unsigned level;
    uint64_t logical;
    uint64_t generation;
    uint32_t item_count;
    struct bw_key first_key, last_key;
};

size_t iw_block_count(const struct iw_image *image);
const struct iw_block *iw_block(const struct iw_image *image, size_t index);
/** The nth block (from 0) of a tree on a level, in key order and with shared ones; NULL if there is
 * none. */
const struct iw_block *iw_block_find(const struct iw_image *image, uint64_t tree, unsigned level,
                                     size_t nth);
/** The leaf that contains a key; NULL if there is no such item. */
const struct iw_block *iw_block_of_key(const struct iw_image *image, uint64_t tree,
                                       struct bw_key key);
const struct iw_block *iw_root_block(const struct iw_image *image, uint64_t tree);
/** The last valid bytes of a block: changes by iw_rewrite_block() count, damage does not. */
void iw_block_bytes(const struct iw_image *image, uint64_t logical, uint8_t *bytes);

/** Stored copies of a logical address: 1, or more for mirrored profiles. Parity is none. */
unsigned iw_copies(const struct iw_image *image, uint64_t logical);
/** Where a copy lies; false if there are fewer. */
bool iw_locate(const struct iw_image *image, uint64_t logical, unsigned copy, unsigned *device,
               uint64_t *offset);
/** Where parity (0: P, 1: Q) of a logical address lies; false if the profile has none. */
bool iw_locate_parity(const struct iw_image *image, uint64_t logical, unsigned parity,
                      unsigned *device, uint64_t *offset);

/** The layout of a chunk. */
struct iw_chunk {
    uint64_t logical, length;
    uint64_t type;
    uint64_t used; /**< bytes of blocks in it */
    uint16_t stripe_count, sub_stripes;
    struct {
        unsigned device;
        uint64_t offset;
    } stripes[IW_MAX_DEVICES];
};

size_t iw_chunk_count(const struct iw_image *image);
const struct iw_chunk *iw_chunk(const struct iw_image *image, size_t index);

/* Damage: after writing. */

enum iw_damage {
    IW_ZERO,
    IW_FLIP, /**< every bit of the range */
};

/** Damages a range of one stored copy, or of all, without updating parity. */
void iw_corrupt(struct iw_image *image, uint64_t logical, unsigned copy, uint32_t offset,
                uint32_t length, enum iw_damage damage);
/** Damages a range of the parity of a block. */
void iw_corrupt_parity(struct iw_image *image, uint64_t logical, unsigned parity, uint32_t offset,
                       uint32_t length, enum iw_damage damage);

/** Changes a block of `nodesize` bytes. */
typedef void iw_block_editor(uint8_t *block, uint32_t nodesize, void *closure);

/** Writes a changed block to all copies and updates parity, and the checksum if `fix_checksum` is
 * set. */
void iw_rewrite_block(struct iw_image *image, uint64_t logical, iw_block_editor *edit,
                      void *closure, bool fix_checksum);
/** Changes one stored copy, or each separately, without updating parity. */
void iw_edit_copy(struct iw_image *image, uint64_t logical, unsigned copy, iw_block_editor *edit,
                  void *closure, bool fix_checksum);
/** Makes a copy what a lost write leaves: the same block, one generation older, with a right
 * checksum. */
void iw_stale_block(struct iw_image *image, uint64_t logical, unsigned copy);

typedef void iw_superblock_editor(struct bw_disk_superblock *superblock, void *closure);

/** Changes superblock copies (1: 64 KiB, 2: 64 MiB if the device is that long) of one device or all
 * of them.
 */
void iw_superblock_edit(struct iw_image *image, unsigned device, unsigned copy,
                        iw_superblock_editor *edit, void *closure, bool fix_checksum);
/** Stores the root of the tree BW_REMAP_TREE in the superblock; the feature bit is an option. */
void iw_use_remap_tree(struct iw_image *image);
/** Device offset of a superblock copy, counted from 1. */
uint64_t iw_superblock_offset(unsigned copy);

#endif
