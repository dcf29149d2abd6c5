/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structures of btrfs as they lie on disk, and the numbers that give them meaning. Nothing here
 * converts or checks anything: superblock.h, node.h, chunk.h and items.h decode these into host
 * order at the edge.
 *
 * Source of every layout and number: the kernel's uapi/linux/btrfs_tree.h and uapi/linux/btrfs.h,
 * and the "on-disk format" chapter of the btrfs documentation.
 */
#ifndef BW_ONDISK_DISK_H
#define BW_ONDISK_DISK_H

#include <assert.h>
#include <stddef.h>

#include "base/endian.h"
#include "btrfs-walk/format.h"

enum {
    BW_CSUM_SIZE = 32,
    BW_LABEL_SIZE = 256,
    BW_SYSTEM_CHUNK_ARRAY_SIZE = 2048,
    BW_BACKUP_ROOTS = 4,
    BW_MAX_LEVEL = 8, /**< levels of a tree: 0 to 7 */
    BW_SUPERBLOCK_SIZE = 4096,
    BW_SUPERBLOCK_COPIES = 3,
    BW_MIN_SECTORSIZE = 4096,
    BW_MAX_NODESIZE = 65536,
    BW_STRIPE_LENGTH = 65536, /**< the only stripe length that was ever written */
    BW_NAME_MAX = 255,
    BW_MAX_COMPRESSED_EXTENT = 128 << 10, /**< bytes of a compressed extent, both stored and in
                                             memory */
};

/** "_BHRfS_M", read as a little-endian number. */
#define BW_SUPERBLOCK_MAGIC UINT64_C(0x4D5F53665248425F)
/** "!BHRfS_M": the superblock of a file system that is being made. */
#define BW_TEMPORARY_MAGIC UINT64_C(0x4D5F536652484221)

/* Object ids inside trees. */
/* The object id in the checksum tree; see also BW_CSUM_CHANGE. */
#define BW_EXTENT_CSUM_OBJECT   ((uint64_t)-10)
#define BW_DEVICE_ITEMS         UINT64_C(1)
#define BW_FIRST_CHUNK          UINT64_C(256)
#define BW_SUBVOLUME_ROOT_INODE UINT64_C(256) /**< inode of a subvolume's top directory */

/** Types of a directory entry (enum bw_file_type): the top bit marks an encrypted name. */
enum { BW_FILE_TYPE_MASK = 0x7f, BW_ENTRY_IS_XATTR = 8 };

/* Types of file extents (struct btrfs_file_extent_item.type). */
enum {
    BW_FILE_EXTENT_INLINE = 0,
    BW_FILE_EXTENT_REGULAR = 1,
    BW_FILE_EXTENT_PREALLOC = 2,
    BW_FILE_EXTENT_TYPES,
};

/* Superblock flags. */
#define BW_SUPER_FLAG_SEEDING             (UINT64_C(1) << 32)
#define BW_SUPER_FLAG_METADUMP            (UINT64_C(1) << 33)
#define BW_SUPER_FLAG_METADUMP_V2         (UINT64_C(1) << 34)
#define BW_SUPER_FLAG_CHANGING_FSID       (UINT64_C(1) << 35)
#define BW_SUPER_FLAG_CHANGING_FSID_V2    (UINT64_C(1) << 36) /**< not in tree blocks */
#define BW_SUPER_FLAG_CHANGING_GROUP_TREE (UINT64_C(1) << 38)
#define BW_SUPER_FLAG_CHANGING_DATA_CSUM  (UINT64_C(1) << 39)
#define BW_SUPER_FLAG_CHANGING_META_CSUM  (UINT64_C(1) << 40)

/* Extent item flags. */
#define BW_EXTENT_TREE_BLOCK   (UINT64_C(1) << 1)
#define BW_EXTENT_FULL_BACKREF (UINT64_C(1) << 8)

struct bw_disk_key {
    bw_le64 objectid;
    uint8_t type;
    bw_le64 offset;
};

struct bw_disk_timespec {
    bw_le64 seconds;
    bw_le32 nanoseconds;
};

struct bw_disk_device_item {
    bw_le64 devid;
    bw_le64 total_bytes;
    bw_le64 bytes_used;
    bw_le32 io_align;
    bw_le32 io_width;
    bw_le32 sector_size;
    bw_le64 type;
    bw_le64 generation;
    bw_le64 start_offset;
    bw_le32 device_group;
    uint8_t seek_speed;
    uint8_t bandwidth;
    uint8_t uuid[BW_UUID_SIZE];
    uint8_t fsid[BW_UUID_SIZE];
};

struct bw_disk_backup_root {
    bw_le64 tree_root;
    bw_le64 tree_root_generation;
    bw_le64 chunk_root;
    bw_le64 chunk_root_generation;
    bw_le64 extent_root;
    bw_le64 extent_root_generation;
    bw_le64 fs_root;
    bw_le64 fs_root_generation;
    bw_le64 device_root;
    bw_le64 device_root_generation;
    bw_le64 csum_root;
    bw_le64 csum_root_generation;
    bw_le64 total_bytes;
    bw_le64 bytes_used;
    bw_le64 device_count;
    bw_le64 unused_64[4];
    uint8_t tree_root_level;
    uint8_t chunk_root_level;
    uint8_t extent_root_level;
    uint8_t fs_root_level;
    uint8_t device_root_level;
    uint8_t csum_root_level;
    uint8_t unused_8[10];
};

struct bw_disk_superblock {
    uint8_t csum[BW_CSUM_SIZE];
    uint8_t fsid[BW_UUID_SIZE];
    bw_le64 bytenr;
    bw_le64 flags;
    bw_le64 magic;
    bw_le64 generation;
    bw_le64 root;
    bw_le64 chunk_root;
    bw_le64 log_root;
    bw_le64 log_root_transid;
    bw_le64 total_bytes;
    bw_le64 bytes_used;
    bw_le64 root_dir_objectid;
    bw_le64 device_count;
    bw_le32 sectorsize;
    bw_le32 nodesize;
    bw_le32 leafsize;
    bw_le32 stripesize;
    bw_le32 system_chunk_array_size;
    bw_le64 chunk_root_generation;
    bw_le64 compat_flags;
    bw_le64 compat_ro_flags;
    bw_le64 incompat_flags;
    bw_le16 csum_type;
    uint8_t root_level;
    uint8_t chunk_root_level;
    uint8_t log_root_level;
    struct bw_disk_device_item device;
    char label[BW_LABEL_SIZE];
    bw_le64 cache_generation;
    bw_le64 uuid_tree_generation;
    uint8_t metadata_uuid[BW_UUID_SIZE];
    bw_le64 global_root_count;
    bw_le64 remap_root;
    bw_le64 remap_root_generation;
    uint8_t remap_root_level;
    uint8_t reserved[199];
    uint8_t system_chunk_array[BW_SYSTEM_CHUNK_ARRAY_SIZE];
    struct bw_disk_backup_root backup_roots[BW_BACKUP_ROOTS];
    uint8_t padding[565];
};

struct bw_disk_header {
    uint8_t csum[BW_CSUM_SIZE];
    uint8_t fsid[BW_UUID_SIZE];
    bw_le64 bytenr;
    bw_le64 flags;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
    bw_le64 generation;
    bw_le64 owner;
    bw_le32 item_count;
    uint8_t level;
};

/** One entry of a leaf (level 0); `offset` counts from the end of the header. */
struct bw_disk_item {
    struct bw_disk_key key;
    bw_le32 offset;
    bw_le32 size;
};

/** One entry of an internal node (level 1 and up). */
struct bw_disk_key_pointer {
    struct bw_disk_key key;
    bw_le64 bytenr;
    bw_le64 generation;
};

struct bw_disk_stripe {
    bw_le64 devid;
    bw_le64 offset;
    uint8_t device_uuid[BW_UUID_SIZE];
};

/** An element of a RAID_STRIPE item. */
struct bw_disk_raid_stride {
    bw_le64 devid;
    bw_le64 physical;
};

/** Followed by stripe_count struct bw_disk_stripe. */
struct bw_disk_chunk {
    bw_le64 length;
    bw_le64 owner;
    bw_le64 stripe_length;
    bw_le64 type;
    bw_le32 io_align;
    bw_le32 io_width;
    bw_le32 sector_size;
    bw_le16 stripe_count;
    bw_le16 sub_stripes;
};

struct bw_disk_inode_item {
    bw_le64 generation;
    bw_le64 transid;
    bw_le64 size;
    bw_le64 bytes;
    bw_le64 block_group;
    bw_le32 link_count;
    bw_le32 uid;
    bw_le32 gid;
    bw_le32 mode;
    bw_le64 device;
    bw_le64 flags;
    bw_le64 sequence;
    bw_le64 reserved[4];
    struct bw_disk_timespec atime;
    struct bw_disk_timespec ctime;
    struct bw_disk_timespec mtime;
    struct bw_disk_timespec otime;
};

/** The first 239 bytes are all there is on file systems of before 2012. */
struct bw_disk_root_item {
    struct bw_disk_inode_item inode;
    bw_le64 generation;
    bw_le64 root_directory;
    bw_le64 bytenr;
    bw_le64 byte_limit;
    bw_le64 bytes_used;
    bw_le64 last_snapshot;
    bw_le64 flags;
    bw_le32 reference_count;
    struct bw_disk_key drop_progress;
    uint8_t drop_level;
    uint8_t level;
    bw_le64 generation_v2;
    uint8_t uuid[BW_UUID_SIZE];
    uint8_t parent_uuid[BW_UUID_SIZE];
    uint8_t received_uuid[BW_UUID_SIZE];
    bw_le64 change_transid;
    bw_le64 origin_transid;
    bw_le64 send_transid;
    bw_le64 receive_transid;
    struct bw_disk_timespec ctime;
    struct bw_disk_timespec otime;
    struct bw_disk_timespec stime;
    struct bw_disk_timespec rtime;
    bw_le64 reserved[8];
};

/** ROOT_REF and ROOT_BACKREF; followed by the name. */
struct bw_disk_root_ref {
    bw_le64 directory;
    bw_le64 sequence;
    bw_le16 name_length;
};

/** DIR_ITEM, DIR_INDEX and XATTR_ITEM; followed by the name, then the data. */
struct bw_disk_dir_item {
    struct bw_disk_key location;
    bw_le64 transid;
    bw_le16 data_length;
    bw_le16 name_length;
    uint8_t type;
};

/** INODE_REF; followed by the name. Several may be packed in one item. */
struct bw_disk_inode_ref {
    bw_le64 index;
    bw_le16 name_length;
};

/** INODE_EXTREF; followed by the name. Several may be packed in one item. */
struct bw_disk_inode_extref {
    bw_le64 parent;
    bw_le64 index;
    bw_le16 name_length;
};

/** EXTENT_DATA. In an inline extent, the data take the place of everything after `type`. */
struct bw_disk_file_extent {
    bw_le64 generation;
    bw_le64 ram_bytes;
    uint8_t compression;
    uint8_t encryption;
    bw_le16 other_encoding;
    uint8_t type;
    bw_le64 disk_bytenr;
    bw_le64 disk_num_bytes;
    bw_le64 offset;
    bw_le64 num_bytes;
};

/** EXTENT_ITEM and METADATA_ITEM. In an EXTENT_ITEM of a tree block, struct bw_disk_tree_block_info
 * follows. */
struct bw_disk_extent_item {
    bw_le64 references;
    bw_le64 generation;
    bw_le64 flags;
};

struct bw_disk_tree_block_info {
    struct bw_disk_key key;
    uint8_t level;
};

/** A reference inside an extent item, for tree blocks. */
struct bw_disk_inline_reference {
    uint8_t type;
    bw_le64 offset;
};

static_assert(sizeof(struct bw_disk_key) == 17, "key");
static_assert(sizeof(struct bw_disk_extent_item) == 24, "extent item");
static_assert(sizeof(struct bw_disk_tree_block_info) == 18, "tree block info");
static_assert(sizeof(struct bw_disk_inline_reference) == 9, "inline reference");
static_assert(sizeof(struct bw_disk_device_item) == 98, "device item");
static_assert(sizeof(struct bw_disk_backup_root) == 168, "backup root");
static_assert(offsetof(struct bw_disk_superblock, csum_type) == 196, "superblock csum type");
static_assert(offsetof(struct bw_disk_superblock, device) == 201, "superblock device item");
static_assert(offsetof(struct bw_disk_superblock, metadata_uuid) == 571,
              "superblock metadata uuid");
static_assert(offsetof(struct bw_disk_superblock, system_chunk_array) == 811,
              "superblock chunk array");
static_assert(offsetof(struct bw_disk_superblock, backup_roots) == 2859, "superblock backup roots");
static_assert(sizeof(struct bw_disk_superblock) == BW_SUPERBLOCK_SIZE, "superblock");
static_assert(sizeof(struct bw_disk_header) == 101, "header");
static_assert(sizeof(struct bw_disk_item) == 25, "item");
static_assert(sizeof(struct bw_disk_key_pointer) == 33, "key pointer");
static_assert(sizeof(struct bw_disk_stripe) == 32, "stripe");
static_assert(sizeof(struct bw_disk_raid_stride) == 16, "raid stride");
static_assert(sizeof(struct bw_disk_chunk) == 48, "chunk");
static_assert(sizeof(struct bw_disk_inode_item) == 160, "inode item");
static_assert(offsetof(struct bw_disk_root_item, generation_v2) == 239, "root item of old");
static_assert(sizeof(struct bw_disk_root_item) == 439, "root item");
static_assert(sizeof(struct bw_disk_root_ref) == 18, "root ref");
static_assert(sizeof(struct bw_disk_dir_item) == 30, "dir item");
static_assert(sizeof(struct bw_disk_inode_ref) == 10, "inode ref");
static_assert(sizeof(struct bw_disk_inode_extref) == 18, "inode extref");
static_assert(offsetof(struct bw_disk_file_extent, disk_bytenr) == 21, "inline file extent");
static_assert(sizeof(struct bw_disk_file_extent) == 53, "file extent");

#endif
