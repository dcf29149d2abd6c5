/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of commands as structures: what rows are made of (btrfs-walk/rows.h), one each.
 * btrfs-walk/records.h tells how records may change.
 *
 * Made by scripts/make-docs. Change src/record/records.def.
 */
#ifndef BTRFS_WALK_ROW_RECORDS_H
#define BTRFS_WALK_ROW_RECORDS_H

#include "btrfs-walk/record.h"

/* clang-format off */

#ifdef __cplusplus
extern "C" {
#endif

/** Version 1, Evolving/Evolving/Common: a file of the listing. */
struct bw_fileinfo {
    struct bw_bytes path; /**< absolute path, starting at the top-level subvolume */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    const char *type; /**< file, directory, symlink, ... */
    uint64_t mode; /**< type and permissions, as in struct stat */
    uint64_t uid; /**< owner */
    uint64_t gid; /**< group */
    uint64_t size; /**< size of the file */
    uint64_t bytes; /**< bytes allocated for it, before compression */
    uint64_t nlink; /**< number of hard links */
    int64_t atime; /**< last access */
    int64_t mtime; /**< last modification of the contents */
    int64_t ctime; /**< last change of the inode */
    int64_t otime; /**< creation */
    uint64_t generation; /**< transaction that created it */
    uint64_t transid; /**< transaction that changed it last */
    uint64_t sequence; /**< counter of changes, for NFS */
    /** BTRFS_INODE_* flags: 1 NODATASUM, 2 NODATACOW, 8 NOCOMPRESS, 800 COMPRESS, ... */
    uint64_t flags;
    /** property btrfs.compression; absent if it is not set, or lost */
    struct bw_bytes compression;
    /** name of the owner in the image's own /etc/passwd; absent if it has none */
    const char *user;
    /** name of the group in the image's own /etc/group; absent if it has none */
    const char *group;
};

/** Version 1, Evolving/Evolving/Common: a device of the file system. */
struct bw_deviceinfo {
    uint64_t id; /**< number of the device */
    const char *state; /**< present, stale or missing */
    uint64_t size; /**< its size in bytes; absent if nothing tells it */
    uint64_t allocated; /**< bytes allocated to chunks; absent if nothing tells it */
    uint64_t generation; /**< transaction that wrote its superblock; absent if it is missing */
    struct bw_bytes uuid; /**< id of the device; absent if nothing tells it */
    struct bw_bytes path; /**< its image, as it was given; absent if it is missing */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t partition; /**< number of the partition that it is; absent if the image is no disk */
    /** chunks in use that have a stripe on it and cannot be read as a whole; absent unless it is
     *  missing */
    uint64_t incomplete_chunks;
};

/** Version 1, Evolving/Evolving/Common: how space is used, on all devices. */
struct bw_usagesuminfo {
    uint64_t device_size; /**< size of all devices but seeds */
    uint64_t device_allocated; /**< allocated to chunks */
    /** not allocated; negative with seeds, the chunks of which count */
    int64_t device_unallocated;
    uint64_t device_missing; /**< size of the missing devices */
    uint64_t device_slack; /**< bytes of the images that the file system does not use */
    uint64_t used; /**< used, with all copies */
    /** room for data: unused in its chunks, and unallocated space by the present ratio */
    uint64_t free_estimated;
    uint64_t free_min; /**< the same, unallocated space by the worst ratio of all groups */
    uint64_t data_ratio_percent; /**< raw size of data chunks, in percent of their size */
    uint64_t metadata_ratio_percent; /**< likewise of metadata chunks */
    uint64_t multiple_profiles; /**< one kind of chunks has more than one profile */
    uint64_t chunks; /**< number of chunks */
    uint64_t incomplete_chunks; /**< those in use of which the missing devices leave only a part */
    /** all block groups could be read; otherwise what is used is a lower bound */
    uint64_t complete;
};

/** Version 1, Evolving/Evolving/Common: what a group of chunks has on a device. */
struct bw_allocationinfo {
    uint64_t devid; /**< id of the device */
    uint64_t size; /**< bytes on it */
};

/** Version 1, Evolving/Evolving/Common: chunks of a type and profile. */
struct bw_usagegroupinfo {
    const char *type; /**< what they are for */
    const char *profile; /**< RAID profile */
    uint64_t size; /**< size, counted once */
    uint64_t used; /**< how much of it is used */
    uint64_t raw_size; /**< size with all copies */
    uint64_t raw_used; /**< used, with all copies */
    uint64_t chunks; /**< number of chunks */
    uint64_t incomplete_chunks; /**< those in use of which the missing devices leave only a part */
    uint64_t complete; /**< the block groups of all could be read */
    struct bw_records devices; /**< what it has on each device */
};

/** Version 1, Evolving/Evolving/Common: a device, and how it is used. */
struct bw_usagedeviceinfo {
    uint64_t id; /**< id of the device */
    const char *state; /**< present, missing or stale */
    struct bw_bytes path; /**< its image; absent if it is missing */
    uint64_t seed; /**< it is a seed device */
    uint64_t size; /**< size of the device */
    uint64_t allocated; /**< allocated to chunks */
    int64_t unallocated; /**< not allocated; negative only if the file system is damaged */
    uint64_t slack; /**< bytes of its image that the file system does not use */
};

/** Version 1, Evolving/Evolving/Common: how the space of a file system is used. */
struct bw_usageinfo {
    struct bw_records overall; /**< on all devices */
    struct bw_records groups; /**< by type and profile of chunks */
    struct bw_records devices; /**< by device */
};

/** Version 1, Evolving/Evolving/Common: the chunks of a type and profile. */
struct bw_profileinfo {
    const char *type; /**< what they are for */
    const char *profile; /**< RAID profile */
    uint64_t size; /**< size, counted once */
    uint64_t chunks; /**< number of chunks */
};

/** Version 1, Evolving/Evolving/Common: a message about a file system. */
struct bw_probleminfo {
    const char *severity; /**< warning or damage */
    const char *message; /**< the message */
};

/** Version 1, Evolving/Evolving/Common: a partition of a disk. */
struct bw_partitioninfo {
    uint64_t number; /**< number in the partition table */
    uint64_t start; /**< offset on the disk */
    uint64_t size; /**< size in bytes */
    const char *type; /**< type, as it is in the table */
    const char *type_name; /**< name of the type */
    const char *uuid; /**< UUID of the partition */
    const char *name; /**< name of the partition */
    const char *content; /**< what is in it, such as btrfs */
    const char *label; /**< label of what is in it */
    const char *content_uuid; /**< UUID of what is in it */
};

/** Version 1, Evolving/Evolving/Common: a disk and its partitions. */
struct bw_diskinfo {
    const char *path; /**< its image */
    const char *table; /**< kind of the partition table: gpt or dos */
    uint64_t sector_size; /**< bytes of a sector in the table */
    uint64_t size; /**< size of the disk */
    struct bw_records partitions; /**< its partitions */
};

/** Version 1, Evolving/Evolving/Common: a file system as a whole. */
struct bw_volumeinfo {
    const char *label; /**< label */
    struct bw_bytes uuid; /**< id of the file system */
    struct bw_bytes metadata_uuid; /**< id that is in its tree blocks */
    uint64_t size; /**< size of all devices */
    uint64_t used; /**< bytes in use, counted once */
    uint64_t nodesize; /**< size of a tree block in bytes */
    uint64_t sectorsize; /**< size of a sector in bytes */
    const char *checksum; /**< checksum algorithm */
    struct bw_names features; /**< names of the feature flags */
    uint64_t incompat_flags; /**< feature flags that a reader must support */
    uint64_t compat_ro_flags; /**< feature flags that a writer must support */
    struct bw_records profiles; /**< chunks by type and profile */
    uint64_t subvolumes; /**< number of subvolumes */
    uint64_t snapshots; /**< number of snapshots */
    uint64_t deleted_subvolumes; /**< number of subvolumes and snapshots that are being deleted */
    uint64_t generation; /**< last transaction */
    int64_t changed; /**< last change in any subvolume */
    uint64_t log_tree; /**< there is a log tree */
    uint64_t log_replayed; /**< and it was replayed */
    struct bw_records devices; /**< the devices */
    const char *state; /**< healthy, degraded, incomplete, damaged or unreadable */
    uint64_t missing_devices; /**< number of missing devices */
    uint64_t stale_devices; /**< number of devices that have missed transactions */
    /** chunks in use of which the missing devices leave only a part */
    uint64_t incomplete_chunks;
    uint64_t problem_count; /**< number of messages */
    struct bw_records problems; /**< the first messages */
    struct bw_records disks; /**< disks among the images */
};

/** Version 1, Evolving/Evolving/Common: how many extents of each kind a file has. */
struct bw_extentsuminfo {
    uint64_t total; /**< number of extents */
    uint64_t inline_; /**< with their data in the tree */
    uint64_t regular; /**< extents with data */
    uint64_t preallocated; /**< allocated, not written */
    uint64_t holes; /**< ranges without anything */
    uint64_t zlib; /**< compressed with zlib */
    uint64_t lzo; /**< compressed with LZO */
    uint64_t zstd; /**< compressed with Zstandard */
};

/** Version 1, Evolving/Evolving/Common: everything about a file or directory. */
struct bw_statinfo {
    struct bw_bytes path; /**< the path that was given, with a '/' in front */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    const char *type; /**< file, directory, symlink, ... */
    uint64_t mode; /**< type and permissions, as in struct stat */
    uint64_t uid; /**< owner */
    uint64_t gid; /**< group */
    uint64_t size; /**< size of the file */
    uint64_t bytes; /**< bytes allocated for it, before compression */
    uint64_t nlink; /**< number of hard links */
    int64_t atime; /**< last access */
    int64_t mtime; /**< last modification of the contents */
    int64_t ctime; /**< last change of the inode */
    int64_t otime; /**< creation */
    uint64_t generation; /**< transaction that created it */
    uint64_t transid; /**< transaction that changed it last */
    uint64_t sequence; /**< counter of changes, for NFS */
    uint64_t flags; /**< BTRFS_INODE_* flags */
    struct bw_bytes compression; /**< property btrfs.compression */
    const char *subvolume_path; /**< path of the subvolume; absent if it has none */
    struct bw_bytes target; /**< of a symbolic link: where it leads to */
    uint64_t device_major; /**< of a device file: major number */
    uint64_t device_minor; /**< of a device file: minor number */
    struct bw_names flag_names; /**< names of the flags */
    struct bw_names xattrs; /**< names of the extended attributes */
    struct bw_records extents; /**< how many extents of each kind */
};

/** Version 1, Evolving/Evolving/Common: where a copy of data lies. */
struct bw_copyinfo {
    uint64_t device; /**< id of the device */
    uint64_t offset; /**< offset on the device */
    uint64_t present; /**< the device was given */
};

/** Version 1, Evolving/Evolving/Common: a part of an extent that is in one piece on each device
 *  that has it. */
struct bw_stripeinfo {
    uint64_t logical; /**< logical address */
    uint64_t length; /**< length in bytes */
    struct bw_records copies; /**< its copies; absent if no chunk holds the address */
    struct bw_records parity; /**< the parity of its row: P, then Q */
};

/** Version 1, Evolving/Evolving/Common: an extent of a file. */
struct bw_extentinfo {
    uint64_t offset; /**< offset in the file */
    uint64_t length; /**< bytes of the file */
    const char *kind; /**< data, inline, unwritten, hole or bad */
    const char *compression; /**< how it is compressed */
    uint64_t generation; /**< transaction that wrote it */
    uint64_t extent_logical; /**< logical address of the extent in the extent tree */
    uint64_t extent_stored; /**< bytes stored for that extent */
    uint64_t extent_length; /**< its length, decompressed */
    uint64_t extent_offset; /**< where in it the bytes of the file begin */
    struct bw_records places; /**< where the bytes lie that are stored */
};

/** Version 1, Evolving/Evolving/Common: a file and where its contents lie. */
struct bw_contentinfo {
    struct bw_bytes path; /**< the path that was given */
    uint64_t inode; /**< inode number, unique in its subvolume */
    uint64_t tree; /**< id of the subvolume it is in */
    uint64_t size; /**< size of the file */
    uint64_t checksums; /**< its data have checksums */
    struct bw_records extents; /**< its extents, by their offset */
};

/** Version 1, Evolving/Evolving/Common: an extended attribute of a file. */
struct bw_xattrinfo {
    struct bw_bytes path; /**< path of the file, with a '/' in front */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    struct bw_bytes name; /**< name of the attribute */
    struct bw_bytes value; /**< its value */
    struct bw_bytes acl; /**< an access control list as getfacl shows it */
};

/** Version 1, Evolving/Evolving/Common: a subvolume or snapshot. */
struct bw_subvolinfo {
    uint64_t id; /**< id of the subvolume, which is that of its tree */
    uint64_t generation; /**< transaction that changed its tree last */
    uint64_t parent; /**< id of the subvolume that it is in */
    uint64_t top_level; /**< the same, under its name in `btrfs subvolume list` */
    /** absolute path, starting at the top-level subvolume; absent if it has none */
    struct bw_bytes path;
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    /** of default, ro, snapshot, received and deleted those that apply, with commas */
    const char *attributes;
    uint64_t ro; /**< whether it is read-only */
    uint64_t snapshot; /**< whether it is a snapshot */
    uint64_t is_default; /**< whether it is the one that is mounted by default */
    uint64_t deleted; /**< whether it is being deleted */
    struct bw_bytes uuid; /**< its own id */
    struct bw_bytes parent_uuid; /**< id of what it is a snapshot of */
    struct bw_bytes received_uuid; /**< id of what it was received from */
    int64_t otime; /**< creation */
    int64_t ctime; /**< last change */
    int64_t stime; /**< when it was sent, at its sender */
    int64_t rtime; /**< when it was received */
    uint64_t otransid; /**< transaction of its creation */
    uint64_t ctransid; /**< transaction of its last change */
    uint64_t stransid; /**< transaction at its sender when it was sent */
    uint64_t rtransid; /**< transaction in which it was received */
    uint64_t flags; /**< BTRFS_ROOT_SUBVOL_* flags */
    uint64_t bytes_used; /**< size of its tree blocks, those it shares included */
    uint64_t level; /**< level of its root block */
    uint64_t root; /**< logical address of its root block; 0: made by log replay */
    uint64_t last_snapshot; /**< transaction of the newest snapshot of it */
    uint64_t directory; /**< inode of the directory in its parent that it is in */
};

/** Version 1, Evolving/Evolving/Common: a quota group. */
struct bw_qgroupinfo {
    const char *id; /**< LEVEL/NUMBER; at level 0 the number is that of a subvolume */
    /** bytes that the group reaches; with simple quotas, those it has allocated */
    uint64_t referenced;
    uint64_t exclusive; /**< bytes that nothing else reaches; with simple quotas as referenced */
    uint64_t max_referenced; /**< limit of the first; absent if there is none */
    uint64_t max_exclusive; /**< limit of the second; absent if there is none */
    const char *parents; /**< groups that it is in, with commas */
    const char *children; /**< groups that are in it, with commas */
    struct bw_bytes path; /**< of the subvolume; absent if that is gone */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t level; /**< 0 for subvolumes, more for groups of groups */
    uint64_t number; /**< number in that level */
    uint64_t generation; /**< transaction in which it was counted */
    /** as stored, after compression; kernels do not tell them apart yet */
    uint64_t referenced_compressed;
    uint64_t exclusive_compressed; /**< the same of the exclusive bytes */
    uint64_t limit_flags; /**< BTRFS_QGROUP_LIMIT_* flags */
};

/** Version 1, Evolving/Evolving/Common: what replaying the log changes of a file. */
struct bw_logchange {
    const char *change; /**< added, removed, renamed, linked, unlinked, data or attribute */
    const char *type; /**< file, directory, symlink, ... */
    struct bw_bytes path; /**< after the change; the old one of what is removed or unlinked */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t offset; /**< data: where the changed range begins in the file */
    /** data: its length in bytes; of a file that is added or removed, its size */
    uint64_t length;
    /** size, mode, uid, gid, device, flags, atime, mtime, ctime, otime, or the name of an
     *  extended attribute */
    struct bw_bytes attribute;
    /** value of the attribute, or path of what is renamed; absent if there was none */
    struct bw_bytes before;
    struct bw_bytes before_bytes; /**< the same in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes after; /**< value of the attribute; absent if it is removed */
    struct bw_bytes after_bytes; /**< the same in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume */
    uint64_t inode; /**< inode number */
};

/** Version 1, Evolving/Evolving/Common: the state of quotas. */
struct bw_quotainfo {
    const char *mode; /**< none, off, full or simple */
    const char *state; /**< consistent, rescanning, inconsistent, or unknown */
    uint64_t generation; /**< transaction that wrote the state */
    uint64_t enable_generation; /**< simple quotas count what is as new as this */
    uint64_t rescan; /**< logical address that a rescan has reached */
    uint64_t flags; /**< BTRFS_QGROUP_STATUS_FLAG_* flags */
    uint64_t version; /**< of the format */
};

/** Version 1, Evolving/Evolving/Common: a chunk and how much of it is used, or one of its
 *  stripes, or what lies between stripes. */
struct bw_spaceinfo {
    uint64_t logical; /**< first logical address of the chunk */
    uint64_t length; /**< length of the chunk in bytes */
    /** Data, Metadata, System, ...; of a device also unallocated, and reserved: its first MiB */
    const char *type;
    const char *profile; /**< RAID profile */
    /** bytes of the chunk in use, as its block group says; absent if that is lost */
    uint64_t used;
    struct bw_stripes stripes; /**< device and offset of each stripe; absent with --by device */
    /** bytes that each stripe, or what lies between stripes, takes of its device */
    uint64_t stripe_length;
    uint64_t flags; /**< BTRFS_BLOCK_GROUP_* flags */
    uint64_t devid; /**< number of the device; only with --by device */
    uint64_t offset; /**< offset on the device; only with --by device */
    uint64_t stripe; /**< which stripe of the chunk it is, counted from 0; only with --by device */
};

/** Version 1, Evolving/Evolving/Common: a subvolume, and how much it shares with others. */
struct bw_shareinfo {
    uint64_t id; /**< id of the subvolume */
    /** bytes that it reaches: whole extents of data as they are stored, and tree blocks */
    uint64_t referenced;
    /** bytes of them that no other subvolume reaches; deleting it frees these */
    uint64_t exclusive;
    uint64_t shared; /**< bytes of them that others reach, too */
    /** absolute path, starting at the top-level subvolume; absent if there is none */
    struct bw_bytes path;
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    /** whether it is being deleted; then only what it does not share with those that stay is
     *  counted */
    uint64_t deleted;
    /** tree blocks of it that cannot be read; if there are any, all sizes are lower bounds */
    uint64_t lost_blocks;
};

/** Version 1, Evolving/Evolving/Common: subvolumes, and what deleting them would free. */
struct bw_freeinfo {
    const char *subvolumes; /**< ids of the subvolumes, with commas */
    uint64_t referenced; /**< bytes that at least one of them reaches */
    uint64_t freed; /**< bytes that nothing but them reaches: deleting all of them frees these */
    /** tree blocks of them that cannot be read; if there are any, all sizes are lower bounds */
    uint64_t lost_blocks;
};

/** Version 1, Evolving/Evolving/Common: subvolumes, and what exactly these share. */
struct bw_sharedinfo {
    uint64_t bytes; /**< bytes that each of them reaches, and no other subvolume does */
    uint64_t count; /**< how many subvolumes they are */
    /** their ids, with commas; FIRST-LAST: all that there are from one to the other */
    const char *subvolumes;
    uint64_t deleted; /**< whether they are being deleted */
};

/** Version 1, Evolving/Evolving/Common: a range of a device, and what lies there. */
struct bw_placeinfo {
    /** logical address; of P and Q, found by device, the lowest one of the bytes they protect;
     *  absent if there is none */
    uint64_t logical;
    uint64_t length; /**< bytes from there on that lie in one piece */
    /** copy; P, Q: parity; unused: of a chunk, but no data; superblock, reserved, unallocated,
     *  outside */
    const char *kind;
    uint64_t copy; /**< number of the copy, counted from 1; absent if it is none */
    uint64_t devid; /**< number of the device; absent if no chunk holds the address */
    uint64_t offset; /**< offset on the device */
    struct bw_bytes path; /**< image of the device; absent if it is missing */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
};

/** Version 1, Evolving/Evolving/Common: what a range of addresses belongs to. */
struct bw_ownerinfo {
    /** data: of a file; metadata: a tree block that a file depends on; block: a tree block;
     *  hidden: of an extent, but shown by no file; free, unused, outside; on a device
     *  also superblock, reserved, unallocated, parity */
    const char *kind;
    uint64_t logical; /**< logical address; absent if there is none */
    uint64_t length; /**< bytes from there on */
    uint64_t extent; /**< address of the extent or tree block that this is part of */
    uint64_t tree; /**< id of the subvolume or other tree */
    uint64_t inode; /**< number of the file in the tree */
    /** offset in the file; of compressed data, of all that is compressed together */
    uint64_t offset;
    uint64_t file_length; /**< bytes of the file from that offset on */
    struct bw_bytes path; /**< one of the paths of the file; absent if it has none */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t level; /**< level of the tree block; 0 is a leaf */
    const char *key; /**< first key of the tree block: (257 INODE_ITEM 0) */
    uint64_t key_objectid; /**< objectid of that key */
    uint64_t key_type; /**< type of that key */
    uint64_t key_offset; /**< offset of that key */
    uint64_t devid; /**< number of the device, of ranges that have no logical address */
    uint64_t device_offset; /**< offset on that device */
    /** of bad sectors: 1 if another copy, or parity, is not bad; absent if none are asked for */
    uint64_t mendable;
};

/** Version 1, Evolving/Evolving/Common: a tree: how large it is, and how its blocks lie. */
struct bw_treeinfo {
    uint64_t tree; /**< id of the tree */
    const char *name; /**< its name, as it was asked for */
    uint64_t levels; /**< 1: the root is a leaf */
    uint64_t blocks; /**< blocks read */
    uint64_t leaves; /**< those that are leaves */
    const char *on_levels; /**< blocks on each level, leaves first, with commas */
    uint64_t lost; /**< blocks that cannot be read; what is below them is not counted */
    uint64_t bytes; /**< size of the blocks read */
    uint64_t inline_bytes; /**< contents of files in it, as stored */
    uint64_t items; /**< items in its leaves */
    uint64_t used_bytes; /**< bytes of its leaves that hold items and their keys */
    uint64_t fill; /**< how much of its leaves that is, in percent */
    uint64_t seeks; /**< children of nodes that do not lie behind the block before them */
    uint64_t forward_seeks; /**< those to a higher address */
    uint64_t backward_seeks; /**< those to a lower one */
    uint64_t average_seek; /**< average distance of seeks */
    uint64_t longest_seek; /**< greatest distance of a seek */
    uint64_t clusters; /**< runs of several blocks that a seek ends */
    uint64_t average_cluster; /**< average size of clusters */
    uint64_t smallest_cluster; /**< size of the smallest cluster */
    uint64_t largest_cluster; /**< size of the largest cluster */
    uint64_t spread; /**< distance between the outermost blocks */
    uint64_t read_ns; /**< estimate of how long a hard disk takes to read it in key order */
};

/** Version 1, Evolving/Evolving/Common: the items of one type in a tree. */
struct bw_itemsinfo {
    uint64_t tree; /**< id of the tree */
    const char *type; /**< name of the type of their keys */
    uint64_t number; /**< number of that type */
    uint64_t items; /**< how many there are */
    uint64_t bytes; /**< size of all of them, without their keys */
};

/** Version 1, Stable/Stable/Common: something that a check has found. */
struct bw_findinginfo {
    const char *severity; /**< error, warning or note */
    const char *code; /**< word for what is wrong; docs/check.md has all of them */
    const char *pass; /**< pass of the check that has found it */
    uint64_t tree; /**< id of the tree it is in */
    const char *tree_name; /**< name of that tree: FS_TREE; of a subvolume, its id */
    /** key of the item, or the first one of the tree block: (257 INODE_ITEM 0) */
    const char *key;
    uint64_t key_objectid; /**< objectid of that key */
    uint64_t key_type; /**< type of that key */
    uint64_t key_offset; /**< offset of that key */
    uint64_t logical; /**< logical address of the tree block or of the data */
    uint64_t length; /**< bytes that are concerned */
    uint64_t devid; /**< number of the device it lies on */
    uint64_t offset; /**< offset on that device */
    uint64_t copy; /**< copy of the block or the data, counted from 1 */
    uint64_t inode; /**< number of the file in the tree */
    uint64_t file_offset; /**< where in the file it begins */
    uint64_t mendable; /**< 1 if another copy, or parity, is good */
    struct bw_names paths; /**< paths of the files that it touches, all hard links */
    uint64_t more_paths; /**< how many paths there are beyond those; absent: none */
    /** how many subvolumes beyond those of the paths share it; absent: none */
    uint64_t more_subvolumes;
    const char *message; /**< what is wrong, in words */
    uint64_t file_length; /**< bytes of the file from there on */
};

/** Version 1, Evolving/Evolving/Common: the space of the data of a file, or of all files in a
 *  directory. */
struct bw_duinfo {
    struct bw_bytes path; /**< absolute path, starting at the top-level subvolume */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    const char *type; /**< file or directory */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number */
    uint64_t depth; /**< how many directories below PATH it is; 0: it is PATH */
    uint64_t files; /**< files that are counted in it; 1 for a file */
    uint64_t total; /**< bytes of files that lie in extents */
    uint64_t exclusive; /**< bytes of those that are not shared */
    uint64_t shared; /**< bytes of those that are shared, with whatever it may be */
    uint64_t set_shared; /**< of PATH: the same, each byte on disk counted once */
};

/** Version 1, Evolving/Evolving/Common: the extents of files with one type of compression. */
struct bw_compressioninfo {
    const char *type; /**< none, zlib, lzo, zstd or prealloc; total: all of them */
    uint64_t percent; /**< disk as a percentage of uncompressed, rounded down */
    uint64_t disk; /**< bytes that are stored, of each extent once */
    uint64_t uncompressed; /**< bytes of the same extents, decompressed */
    uint64_t referenced; /**< bytes of files that lie in them */
    uint64_t files; /**< of the total: names of files */
    uint64_t extents; /**< of the total: extents that lie outside the tree */
    uint64_t references; /**< of the total: references to those */
    uint64_t inlined; /**< of the total: extents that lie inside the tree */
};

/** Version 1, Evolving/Evolving/Common: a difference between two subvolumes. */
struct bw_diffinfo {
    const char *status; /**< Added, Deleted, Modified, Renamed, another Type, or ?: not known */
    const char *type; /**< file, directory, symlink, ... */
    struct bw_bytes path; /**< path in the subvolume; if renamed, the new one */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes old_path; /**< path before; absent unless renamed */
    struct bw_bytes old_path_bytes; /**< that one in base64; in JSON only if it is not UTF-8 */
    struct bw_names changes; /**< what differs: content size mode owner times xattrs links */
    struct bw_names unknown; /**< what of that could not be compared */
    uint64_t bytes; /**< bytes of content that differ, or were added or deleted */
    uint64_t old_size; /**< size before; absent for directories */
    uint64_t size; /**< size after; likewise */
    const char *old_type; /**< type before; absent unless it changed */
    uint64_t old_inode; /**< number of the inode before, if any */
    uint64_t inode; /**< number of the inode after, if any */
};

/** Version 1, Evolving/Evolving/Common: a file, directory or subvolume that was deleted. */
struct bw_deletedinfo {
    /** what is left: proven, unproven, partly or lost; absent if data were not read */
    const char *left;
    uint64_t generation; /**< the last state that held it */
    uint64_t tree_root; /**< logical address of the root tree of that state */
    int64_t date; /**< last change in that state */
    const char *type; /**< file, directory, subvolume, symlink, ... */
    struct bw_bytes path; /**< path in that state */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t size; /**< size; absent for directories */
    int64_t mtime; /**< last modification of the contents */
    uint64_t subvolume; /**< id of the subvolume it was in */
    uint64_t inode; /**< inode number in that subvolume */
    uint64_t bad_bytes; /**< bytes that are lost */
    struct bw_names bad; /**< the first ranges that are lost, as OFFSET+LENGTH */
};

/** Version 1, Evolving/Evolving/Common: a version of a file. */
struct bw_versioninfo {
    uint64_t generation; /**< the newest state that has it */
    uint64_t first; /**< the oldest state that has it */
    uint64_t tree_root; /**< logical address of the root tree of the newest */
    int64_t date; /**< last change in the newest */
    /** what is left: proven, unproven, partly or lost; absent if data were not read */
    const char *left;
    const char *type; /**< file, directory, symlink, ... */
    uint64_t size; /**< size */
    int64_t mtime; /**< last modification of the contents */
    /** what differs from the version before, as in diffinfo, or renamed; absent for the oldest */
    struct bw_names changes;
    struct bw_names unknown; /**< what of that could not be compared */
    uint64_t replaced; /**< whether the version before was another file of that name */
    struct bw_bytes path; /**< path in the newest state */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number in that subvolume */
};

/** Version 1, Evolving/Evolving/Common: a state of the file system, present or older. */
struct bw_stateinfo {
    uint64_t generation; /**< transaction that wrote it */
    int64_t date; /**< newest time of a change in its subvolumes; absent if not known */
    struct bw_names found; /**< where it was found: superblock, backup-0 to backup-3, scan */
    const char *standing; /**< committed, abandoned (by its own transaction), or unproven */
    /** whole, part, or nothing; absent, as the numbers of what is missing, without a scan */
    const char *left;
    uint64_t missing; /**< tree blocks that are lost; what was below them is not counted */
    uint64_t trimmed; /**< of these, blocks with zeros in their place */
    uint64_t overwritten; /**< and blocks with something else */
    uint64_t trees; /**< trees that are known of it */
    uint64_t trees_damaged; /**< of these, trees of which blocks are missing */
    uint64_t subvolumes; /**< subvolumes and snapshots among the trees */
    uint64_t readable; /**< of these, subvolumes whose root block is left */
    uint64_t tree_root; /**< logical address of the root of its root tree, for --tree-root */
    uint64_t chunk_root; /**< and of its chunk tree; absent if it is the present one */
};

/** Version 1, Evolving/Evolving/Common: a tree of a state. */
struct bw_statetreeinfo {
    uint64_t generation; /**< transaction that wrote the state */
    uint64_t tree_root; /**< logical address of the root of its root tree */
    uint64_t tree; /**< id of the tree */
    const char *name; /**< its name, or the id again */
    uint64_t root; /**< logical address of its root block */
    uint64_t tree_generation; /**< transaction that wrote that block */
    uint64_t level; /**< level of that block */
    const char *left; /**< as that of the state */
    uint64_t missing; /**< likewise */
    uint64_t trimmed; /**< likewise */
    uint64_t overwritten; /**< likewise */
    uint64_t deleted; /**< whether it was being deleted: then it need not be whole */
};

/** Version 1, Evolving/Evolving/Common: the record that --json-header writes first. */
struct bw_headerinfo {
    const char *record; /**< always "header" */
    const char *tool; /**< name of the program */
    const char *version; /**< version of the program */
    uint64_t schema; /**< version of all records as a whole */
    const char *of; /**< name of the record that follows */
    uint64_t of_version; /**< version of that record */
};

#ifdef __cplusplus
}
#endif
#endif
