/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The superblock: decoding, validation, and where its copies lie. First thing read of every device.
 */
#ifndef BW_ONDISK_SUPERBLOCK_H
#define BW_ONDISK_SUPERBLOCK_H

#include "btrfs-walk/error.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"

/** A root that the superblock points to. */
struct bw_root_pointer {
    uint64_t bytenr;     /**< logical address; 0: no such tree */
    uint64_t generation; /**< transaction that wrote it */
    uint8_t level;       /**< 0 to 7 */
};

/** The device of the superblock, as the superblock describes it. */
struct bw_device_identity {
    uint64_t devid;
    uint64_t total_bytes;
    uint64_t bytes_used; /**< allocated to chunks */
    uint8_t uuid[BW_UUID_SIZE];
    uint8_t fsid[BW_UUID_SIZE];
};

/** Roots of one of the last four transactions. */
struct bw_backup_root {
    struct bw_root_pointer tree_root;
    struct bw_root_pointer chunk_root;
    struct bw_root_pointer extent_root, fs_root, device_root, csum_root;
};

/** A validated superblock in host byte order. Sizes are in bytes. */
struct bw_superblock {
    uint8_t fsid[BW_UUID_SIZE];          /**< the file system's public id */
    uint8_t metadata_uuid[BW_UUID_SIZE]; /**< the id that tree blocks carry; equals fsid unless it
                                            was changed */
    uint64_t flags;
    uint64_t generation;
    struct bw_root_pointer root;
    struct bw_root_pointer chunk_root;
    struct bw_root_pointer remap_root;
    uint64_t log_root; /**< logical address of the log tree's root; 0: no log tree */
    uint8_t log_root_level;
    uint64_t total_bytes;
    uint64_t bytes_used;
    uint64_t device_count;
    uint64_t uuid_tree_generation; /**< the uuid tree is current if it equals generation */
    uint64_t cache_generation;     /**< space caches are current if it equals generation */
    uint32_t sectorsize;           /**< power of two, 4 KiB to 64 KiB */
    uint32_t nodesize;             /**< power of two, sectorsize to 64 KiB */
    uint64_t compat_flags, compat_ro_flags;
    uint64_t incompat_flags;
    enum bw_checksum_type checksum_type;
    struct bw_device_identity device;
    char label[BW_LABEL_SIZE + 1];
    uint32_t system_chunk_array_size; /**< at most BW_SYSTEM_CHUNK_ARRAY_SIZE */
    uint8_t system_chunk_array[BW_SYSTEM_CHUNK_ARRAY_SIZE];
    struct bw_backup_root backup_roots[BW_BACKUP_ROOTS];
};

/** Device offset of superblock copy 0, 1 or 2: 64 KiB, 64 MiB, 256 GiB. */
uint64_t bw_superblock_offset(unsigned copy);

/**
 * Validates the 4096 bytes read at `offset` (magic, own address, checksum, sane sizes and levels)
 * and decodes them. BW_ERROR_NOT_BTRFS if the magic is absent, BW_ERROR_UNSUPPORTED for a checksum
 * type unknown here, else BW_ERROR_CORRUPT. Feature bits are not judged; see features.c.
 */
struct bw_error *bw_superblock_decode(const void *bytes, uint64_t offset,
                                      struct bw_superblock *superblock);

struct bw_bit_flip;

/** Corrects the 4096 bytes at `offset` and decodes them, if one flipped bit is all that is wrong
 * with them: the corrected ones pass bw_superblock_decode(). Otherwise returns false, and the bytes
 * stay as they are. Takes up to a second if the checksum does not name the bit. */
bool bw_superblock_correct(uint8_t bytes[BW_SUPERBLOCK_SIZE], uint64_t offset,
                           struct bw_superblock *superblock, struct bw_bit_flip *flip);

/** Sets the ids that its tree blocks carry, and returns how many. While btrfstune changes the id of
 * all blocks, there are two: the device still has the old one. */
unsigned bw_superblock_block_ids(const struct bw_superblock *superblock,
                                 uint8_t ids[2][BW_UUID_SIZE]);

/** Whether its tree blocks may carry an id. */
bool bw_superblock_has_block_id(const struct bw_superblock *superblock, const uint8_t *id);

/** Encodes copy 0 of a superblock whose bytes are lost. The checksum and the backup roots become
 * zeros. */
void bw_superblock_encode(const struct bw_superblock *superblock, struct bw_disk_superblock *disk);

/* Incompatible features. Source: BTRFS_FEATURE_INCOMPAT_* in the kernel's uapi/linux/btrfs.h. */
#define BW_INCOMPAT_MIXED_GROUPS     (UINT64_C(1) << 2)
#define BW_INCOMPAT_EXTENDED_IREF    (UINT64_C(1) << 6)
#define BW_INCOMPAT_SKINNY_METADATA  (UINT64_C(1) << 8)
#define BW_INCOMPAT_NO_HOLES         (UINT64_C(1) << 9)
#define BW_INCOMPAT_METADATA_UUID    (UINT64_C(1) << 10)
#define BW_INCOMPAT_ZONED            (UINT64_C(1) << 12)
#define BW_INCOMPAT_EXTENT_TREE_V2   (UINT64_C(1) << 13)
#define BW_INCOMPAT_RAID_STRIPE_TREE (UINT64_C(1) << 14)
#define BW_INCOMPAT_SIMPLE_QUOTA     (UINT64_C(1) << 16)
#define BW_INCOMPAT_REMAP_TREE       (UINT64_C(1) << 17)

/* Features that only a writer must know. Source: BTRFS_FEATURE_COMPAT_RO_*, likewise. */
#define BW_COMPAT_RO_FREE_SPACE_TREE       (UINT64_C(1) << 0)
#define BW_COMPAT_RO_FREE_SPACE_TREE_VALID (UINT64_C(1) << 1)
#define BW_COMPAT_RO_VERITY                (UINT64_C(1) << 2)
#define BW_COMPAT_RO_BLOCK_GROUP_TREE      (UINT64_C(1) << 3)

/* Features of Synology's kernels only. Source: fs/btrfs of the kernel that Synology has published.
 */
#define BW_COMPAT_SYNOLOGY    (UINT64_C(7) << 61)
#define BW_COMPAT_RO_SYNOLOGY (UINT64_C(1) << 59)

/** BW_ERROR_UNSUPPORTED, naming every bit by number (and name, if it has one), unless all bits can
 * be read.
 */
struct bw_error *bw_features_check(uint64_t incompat_flags);

/** Text form of a uuid, 36 characters and a NUL. */
void bw_uuid_text(const uint8_t uuid[BW_UUID_SIZE], char text[37]);

#endif
