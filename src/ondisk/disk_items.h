/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rest of disk.h: the items that describe space, devices, quotas and running operations. They
 * are shown, but no file is found or read through them. Sources as in disk.h.
 */
#ifndef BW_ONDISK_DISK_ITEMS_H
#define BW_ONDISK_DISK_ITEMS_H

#include "ondisk/disk.h"

/* Object ids. */
#define BW_DEVICE_STATS      UINT64_C(0)
#define BW_BALANCE           ((uint64_t)-4)
#define BW_ORPHAN            ((uint64_t)-5)
#define BW_TREE_LOG_FIXUP    ((uint64_t)-7)
#define BW_FREE_SPACE_OBJECT ((uint64_t)-11)
#define BW_FREE_INODE        ((uint64_t)-12)
#define BW_CSUM_CHANGE       ((uint64_t)-13)
#define BW_MULTIPLE_OBJECTS  ((uint64_t)-255)

/** A qgroup's id has its level in the upper 16 bits. */
enum { BW_QGROUP_LEVEL_SHIFT = 48 };

/* Ids of trees that only kernels of Synology have, with quotas and caches. Source: fs/btrfs/ctree.h
 * in its published kernel. */
enum { BW_SYNOLOGY_FIRST_TREE = 200, BW_SYNOLOGY_LAST_TREE = 206 };

#define BW_QGROUP_SIMPLE_MODE (UINT64_C(1) << 3)

/** Flags of a tree block. The upper 8 bits have the revision of back references. Source:
 * BTRFS_HEADER_FLAG_* in the kernel's uapi/linux/btrfs_tree.h. */
enum { BW_HEADER_WRITTEN = 1 << 0, BW_HEADER_RELOCATED = 1 << 1, BW_BACKREF_REVISION_SHIFT = 56 };

/** DIR_LOG_ITEM and DIR_LOG_INDEX. */
struct bw_disk_dir_log {
    bw_le64 end;
};

/** VERITY_DESC_ITEM of offset 0. */
struct bw_disk_verity_descriptor {
    bw_le64 size;
    bw_le64 reserved[2];
    uint8_t encryption;
};

/** The descriptor that fs-verity stores in the following items; a signature may follow it. Source:
 * struct fsverity_descriptor in the kernel's include/uapi/linux/fsverity.h. */
struct bw_disk_fsverity {
    uint8_t version, algorithm, log_block_size, salt_size;
    bw_le32 signature_size;
    bw_le64 data_size;
    uint8_t root[64];
    uint8_t salt[32];
    uint8_t reserved[144];
};

struct bw_disk_extent_data_ref {
    bw_le64 root;
    bw_le64 objectid;
    bw_le64 offset;
    bw_le32 count;
};

struct bw_disk_shared_data_ref {
    bw_le32 count;
};

/** In an extent item, all references begin with the type. */
struct bw_disk_inline_data_ref {
    uint8_t type;
    struct bw_disk_extent_data_ref reference;
};

struct bw_disk_inline_shared_data_ref {
    uint8_t type;
    bw_le64 parent;
    bw_le32 count;
};

struct bw_disk_block_group {
    bw_le64 used;
    bw_le64 chunk_objectid;
    bw_le64 flags;
};

/** BLOCK_GROUP_ITEM with the remap-tree feature. */
struct bw_disk_block_group_v2 {
    bw_le64 used;
    bw_le64 chunk_objectid;
    bw_le64 flags;
    bw_le64 remap_bytes;
    bw_le32 identity_remap_count;
};

struct bw_disk_free_space_info {
    bw_le32 extent_count;
    bw_le32 flags;
};

/** The untyped item of the free space cache, version 1. */
struct bw_disk_free_space_header {
    struct bw_disk_key location;
    bw_le64 generation;
    bw_le64 entries;
    bw_le64 bitmaps;
};

/** An entry in the file of that cache. */
struct bw_disk_free_space_entry {
    bw_le64 offset;
    bw_le64 bytes;
    uint8_t type;
};

struct bw_disk_device_extent {
    bw_le64 chunk_tree;
    bw_le64 chunk_objectid;
    bw_le64 chunk_offset;
    bw_le64 length;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
};

/** PERSISTENT_ITEM of object id 0. */
struct bw_disk_device_stats {
    bw_le64 write_errors;
    bw_le64 read_errors;
    bw_le64 flush_errors;
    bw_le64 corruption_errors;
    bw_le64 generation_errors;
};

struct bw_disk_device_replace {
    bw_le64 source_devid;
    bw_le64 cursor_left;
    bw_le64 cursor_right;
    bw_le64 reading_mode;
    bw_le64 state;
    bw_le64 time_started;
    bw_le64 time_stopped;
    bw_le64 write_errors;
    bw_le64 uncorrectable_read_errors;
};

struct bw_disk_balance_args {
    bw_le64 profiles;
    bw_le32 usage_min, usage_max;
    bw_le64 devid;
    bw_le64 pstart, pend;
    bw_le64 vstart, vend;
    bw_le64 target;
    bw_le64 flags;
    bw_le32 limit_min, limit_max;
    bw_le32 stripes_min, stripes_max;
    bw_le64 unused[6];
};

/** TEMPORARY_ITEM of object id -4. */
struct bw_disk_balance {
    bw_le64 flags;
    struct bw_disk_balance_args data, metadata, system;
    bw_le64 unused[4];
};

struct bw_disk_qgroup_status {
    bw_le64 version;
    bw_le64 generation;
    bw_le64 flags;
    bw_le64 rescan;
    bw_le64 enable_generation;
};

struct bw_disk_qgroup_info {
    bw_le64 generation;
    bw_le64 referenced;
    bw_le64 referenced_compressed;
    bw_le64 exclusive;
    bw_le64 exclusive_compressed;
};

struct bw_disk_qgroup_limit {
    bw_le64 flags;
    bw_le64 max_referenced;
    bw_le64 max_exclusive;
    bw_le64 reserved_referenced;
    bw_le64 reserved_exclusive;
};

struct bw_disk_uuid_entry {
    bw_le64 subvolume;
};

struct bw_disk_remap {
    bw_le64 address;
};

static_assert(sizeof(struct bw_disk_verity_descriptor) == 25, "verity descriptor");
static_assert(sizeof(struct bw_disk_fsverity) == 256, "fs-verity descriptor");
static_assert(sizeof(struct bw_disk_extent_data_ref) == 28, "extent data ref");
static_assert(sizeof(struct bw_disk_inline_shared_data_ref) == 13, "shared data ref");
static_assert(sizeof(struct bw_disk_block_group) == 24, "block group");
static_assert(sizeof(struct bw_disk_block_group_v2) == 36, "block group v2");
static_assert(sizeof(struct bw_disk_free_space_header) == 41, "free space header");
static_assert(sizeof(struct bw_disk_free_space_entry) == 17, "free space entry");
static_assert(sizeof(struct bw_disk_device_extent) == 48, "device extent");
static_assert(sizeof(struct bw_disk_device_replace) == 72, "device replace");
static_assert(sizeof(struct bw_disk_balance_args) == 136, "balance arguments");
static_assert(sizeof(struct bw_disk_balance) == 448, "balance");
static_assert(sizeof(struct bw_disk_qgroup_status) == 40, "qgroup status");

#endif
