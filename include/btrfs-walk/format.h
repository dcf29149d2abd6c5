/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys, and the numbers of the format: key types, tree ids, flags, types of files. They are the
 * kernel's, mostly from uapi/linux/btrfs_tree.h, and do not change.
 */
#ifndef BTRFS_WALK_FORMAT_H
#define BTRFS_WALK_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/** The key of an item, in host byte order. Every tree is sorted by (objectid, type, offset); the
 * type decides what the other two members mean. An image may contain any value. */
struct bw_key {
    uint64_t objectid;
    uint8_t type; /**< enum bw_key_type, or another number */
    uint64_t offset;
};

/** The greatest key there is. */
#define BW_KEY_MAX ((struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX})

/** Order of two keys: negative, zero or positive, as for memcmp(). */
static inline int bw_key_compare(const struct bw_key *a, const struct bw_key *b)
{
    if (a->objectid != b->objectid)
        return a->objectid < b->objectid ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return 0;
}

/** Key types. */
enum bw_key_type {
    BW_UNTYPED = 0,
    BW_INODE_ITEM = 1,
    BW_INODE_REF = 12,
    BW_INODE_EXTREF = 13,
    BW_XATTR_ITEM = 24,
    BW_VERITY_DESC_ITEM = 36,
    BW_VERITY_MERKLE_ITEM = 37,
    BW_ORPHAN_ITEM = 48,
    BW_DIR_LOG_ITEM = 60,
    BW_DIR_LOG_INDEX = 72,
    BW_DIR_ITEM = 84,
    BW_DIR_INDEX = 96,
    BW_EXTENT_DATA = 108,
    BW_CSUM_ITEM = 120,
    BW_EXTENT_CSUM = 128,
    BW_ROOT_ITEM = 132,
    BW_ROOT_BACKREF = 144,
    BW_ROOT_REF = 156,
    BW_EXTENT_ITEM = 168,
    BW_METADATA_ITEM = 169,
    BW_EXTENT_OWNER_REF = 172,
    BW_TREE_BLOCK_REF = 176,
    BW_EXTENT_DATA_REF = 178,
    BW_EXTENT_REF_V0 = 180,
    BW_SHARED_BLOCK_REF = 182,
    BW_SHARED_DATA_REF = 184,
    BW_BLOCK_GROUP_ITEM = 192,
    BW_FREE_SPACE_INFO = 198,
    BW_FREE_SPACE_EXTENT = 199,
    BW_FREE_SPACE_BITMAP = 200,
    BW_DEVICE_EXTENT = 204,
    BW_DEVICE_ITEM = 216,
    BW_CHUNK_ITEM = 228,
    BW_RAID_STRIPE = 230,
    BW_IDENTITY_REMAP = 234,
    BW_REMAP = 235,
    BW_REMAP_BACKREF = 236,
    BW_QGROUP_STATUS = 240,
    BW_QGROUP_INFO = 242,
    BW_QGROUP_LIMIT = 244,
    BW_QGROUP_RELATION = 246,
    BW_TEMPORARY_ITEM = 248,
    BW_PERSISTENT_ITEM = 249,
    BW_DEVICE_REPLACE = 250,
    BW_UUID_SUBVOLUME = 251,
    BW_UUID_RECEIVED = 252,
    BW_STRING_ITEM = 253,
};

/* Ids of trees. A subvolume other than the top-level one has an id from BW_FIRST_SUBVOLUME to
 * BW_LAST_SUBVOLUME; ids above that, negative if signed, are special trees. */
#define BW_ROOT_TREE        UINT64_C(1)
#define BW_EXTENT_TREE      UINT64_C(2)
#define BW_CHUNK_TREE       UINT64_C(3)
#define BW_DEVICE_TREE      UINT64_C(4)
#define BW_TOP_SUBVOLUME    UINT64_C(5) /* which every file system has */
#define BW_ROOT_TREE_DIR    UINT64_C(6)
#define BW_CSUM_TREE        UINT64_C(7)
#define BW_QUOTA_TREE       UINT64_C(8)
#define BW_UUID_TREE        UINT64_C(9)
#define BW_FREE_SPACE_TREE  UINT64_C(10)
#define BW_BLOCK_GROUP_TREE UINT64_C(11)
#define BW_RAID_STRIPE_TREE UINT64_C(12)
#define BW_REMAP_TREE       UINT64_C(13)
#define BW_FIRST_SUBVOLUME  UINT64_C(256)
#define BW_LAST_SUBVOLUME   ((uint64_t)-256)
#define BW_TREE_LOG         ((uint64_t)-6)
#define BW_TREE_RELOC       ((uint64_t)-8)
#define BW_DATA_RELOC_TREE  ((uint64_t)-9)

/** Whether the tree with this id is a subvolume. */
static inline bool bw_is_subvolume_id(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

/* Flags of block groups and chunks: contents and profile. Without a profile: single. */
#define BW_GROUP_DATA           (UINT64_C(1) << 0)
#define BW_GROUP_SYSTEM         (UINT64_C(1) << 1)
#define BW_GROUP_METADATA       (UINT64_C(1) << 2)
#define BW_GROUP_RAID0          (UINT64_C(1) << 3)
#define BW_GROUP_RAID1          (UINT64_C(1) << 4)
#define BW_GROUP_DUP            (UINT64_C(1) << 5)
#define BW_GROUP_RAID10         (UINT64_C(1) << 6)
#define BW_GROUP_RAID5          (UINT64_C(1) << 7)
#define BW_GROUP_RAID6          (UINT64_C(1) << 8)
#define BW_GROUP_RAID1C3        (UINT64_C(1) << 9)
#define BW_GROUP_RAID1C4        (UINT64_C(1) << 10)
#define BW_GROUP_REMAPPED       (UINT64_C(1) << 11)
#define BW_GROUP_METADATA_REMAP (UINT64_C(1) << 12)
#define BW_GROUP_PROFILE_MASK                                                            \
    (BW_GROUP_RAID0 | BW_GROUP_RAID1 | BW_GROUP_DUP | BW_GROUP_RAID10 | BW_GROUP_RAID5 | \
     BW_GROUP_RAID6 | BW_GROUP_RAID1C3 | BW_GROUP_RAID1C4)

/* Flags of subvolumes: bw_subvolume_info.flags. */
#define BW_ROOT_READ_ONLY (UINT64_C(1) << 0)
#define BW_ROOT_DEAD      (UINT64_C(1) << 48)
/* Bits of Synology's kernels: hidden subvolumes, and the state of their quotas. */
#define BW_ROOT_SYNOLOGY (UINT64_C(15) << 32)

/* Flags of quotas as a whole: bw_quota_status.flags. */
#define BW_QGROUP_STATUS_ON           (UINT64_C(1) << 0)
#define BW_QGROUP_STATUS_RESCAN       (UINT64_C(1) << 1)
#define BW_QGROUP_STATUS_INCONSISTENT (UINT64_C(1) << 2)
#define BW_QGROUP_STATUS_SIMPLE       (UINT64_C(1) << 3)

/** Bytes of a UUID. */
enum { BW_UUID_SIZE = 16 };

/** Types of files, as directory entries store them. Source: BTRFS_FT_* in the kernel's
 * uapi/linux/btrfs_tree.h. */
enum bw_file_type {
    BW_FILE_UNKNOWN = 0,
    BW_FILE_REGULAR = 1,
    BW_FILE_DIRECTORY = 2,
    BW_FILE_CHARACTER_DEVICE = 3,
    BW_FILE_BLOCK_DEVICE = 4,
    BW_FILE_FIFO = 5,
    BW_FILE_SOCKET = 6,
    BW_FILE_SYMLINK = 7,
};

/** Compressions of extents. Source: BTRFS_COMPRESS_* in the kernel's fs/btrfs/compression.h. */
enum bw_compression {
    BW_COMPRESS_NONE = 0,
    BW_COMPRESS_ZLIB = 1,
    BW_COMPRESS_LZO = 2,
    BW_COMPRESS_ZSTD = 3,
    BW_COMPRESS_TYPES,
};

#ifdef __cplusplus
extern "C" {
#endif

/** Name of a compression ("zstd"; "none"); NULL for a number that is unknown. */
const char *bw_compression_name(unsigned compression);

#ifdef __cplusplus
}
#endif

#endif
