/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of commands as structures: each row (btrfs-walk/record.h) is written from one.
 * docs/library.md describes how records may change.
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

/** Version 2, Evolving/Evolving/Common: a file of the listing. */
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
    uint64_t allocated; /**< bytes allocated for it, before compression */
    uint64_t nlink; /**< number of hard links */
    int64_t atime; /**< last access */
    int64_t mtime; /**< last modification of the contents */
    int64_t ctime; /**< last change of the inode */
    int64_t otime; /**< creation */
    uint64_t generation; /**< transaction that created it */
    uint64_t transid; /**< transaction that changed it last */
    uint64_t sequence; /**< counter of changes, for NFS */
    uint64_t flags; /**< BTRFS_INODE_* flags: NODATASUM, NODATACOW, NOCOMPRESS, COMPRESS, ... */
    /** property btrfs.compression; absent if it is not set, or lost */
    struct bw_bytes compression;
    /** name of the owner in the image's own /etc/passwd; absent if it has none */
    const char *user;
    /** name of the group in the image's own /etc/group; absent if it has none */
    const char *group;
    /** number of its extents, as 'du' counts them; 0 if its data are inline */
    uint64_t extent_count;
    uint64_t disk; /**< stored bytes of its extents, whole and compressed, as 'du' counts them */
    /** bytes that other files or subvolumes share, as 'du' counts them; absent if the extent
     *  tree is lost */
    uint64_t shared;
};

/** Version 2, Evolving/Evolving/Common: a device of the file system. */
struct bw_deviceinfo {
    uint64_t devid; /**< number of the device */
    const char *device_state; /**< present, stale or missing */
    uint64_t size; /**< size in bytes; absent if unknown */
    uint64_t allocated; /**< bytes allocated to chunks; absent if unknown */
    /** transaction that wrote its superblock; absent if the device is missing */
    uint64_t generation;
    struct bw_bytes uuid; /**< UUID of the device; absent if unknown */
    struct bw_bytes device; /**< path of its image, as given; absent if the device is missing */
    struct bw_bytes device_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    /** partition number of the device; absent if the image is not a partitioned disk */
    uint64_t partition;
    /** chunks in use that have a stripe on it and are not fully readable; absent unless the
     *  device is missing */
    uint64_t incomplete_chunks;
    /** what the device lies in, from outside in, such as GPT partition 3 > LUKS2; absent if its
     *  image is the device */
    const char *container;
    /** paths of further images of the device, of --alternatives; absent without */
    struct bw_names alternative_paths;
};

/** Version 1, Evolving/Evolving/Common: how space is used, on all devices. */
struct bw_usagesuminfo {
    uint64_t device_size; /**< size of all devices except seeds */
    uint64_t device_allocated; /**< allocated to chunks */
    /** not allocated; can be negative with seed devices, because their chunks count */
    int64_t device_unallocated;
    uint64_t device_missing; /**< size of the missing devices */
    uint64_t device_slack; /**< bytes of the images that the file system does not use */
    uint64_t used; /**< used, with all copies */
    /** free space for data: unused space in data chunks, and the capacity of new ones */
    uint64_t free_estimated;
    uint64_t free_min; /**< the same, with unallocated space by the worst ratio of all groups */
    uint64_t data_ratio_percent; /**< raw size of data chunks, as a percentage of their size */
    uint64_t metadata_ratio_percent; /**< the same for metadata chunks */
    uint64_t multiple_profiles; /**< whether a type of chunks has more than one profile */
    uint64_t chunks; /**< number of chunks */
    /** chunks in use that the missing devices make partly unreadable */
    uint64_t incomplete_chunks;
    /** whether all block groups are readable; otherwise `used` is a lower bound */
    uint64_t complete;
};

/** Version 1, Evolving/Evolving/Common: space of a group of chunks on a device. */
struct bw_allocationinfo {
    uint64_t devid; /**< id of the device */
    uint64_t size; /**< bytes on the device */
};

/** Version 2, Evolving/Evolving/Common: chunks of a type and profile. */
struct bw_usagegroupinfo {
    const char *chunk_type; /**< contents: data, metadata, ... */
    const char *profile; /**< RAID profile */
    uint64_t size; /**< size, counted once */
    uint64_t used; /**< how much of it is used */
    uint64_t raw_size; /**< size with all copies */
    uint64_t raw_used; /**< used, with all copies */
    uint64_t chunks; /**< number of chunks */
    /** chunks in use that the missing devices make partly unreadable */
    uint64_t incomplete_chunks;
    uint64_t complete; /**< whether all their block groups are readable */
    struct bw_records devices; /**< its space on each device */
};

/** Version 2, Evolving/Evolving/Common: a device and its use of space. */
struct bw_usagedeviceinfo {
    uint64_t devid; /**< id of the device */
    const char *device_state; /**< present, missing or stale */
    struct bw_bytes device; /**< its image; absent if it is missing */
    uint64_t seed; /**< it is a seed device */
    uint64_t size; /**< size of the device */
    uint64_t allocated; /**< allocated to chunks */
    int64_t unallocated; /**< not allocated; negative only if the file system is damaged */
    uint64_t slack; /**< bytes of its image that the file system does not use */
};

/** Version 1, Evolving/Evolving/Common: why a file system is full. */
struct bw_usagereasoninfo {
    const char *reason; /**< metadata-full, data-full, data-half-empty, snapshots or quota */
    const char *description; /**< the reason, in a sentence */
    const char *advice; /**< a command that helps */
};

/** Version 1, Evolving/Evolving/Common: how the space of a file system is used. */
struct bw_usageinfo {
    struct bw_records overall; /**< on all devices */
    struct bw_records groups; /**< by type and profile of chunks */
    struct bw_records devices; /**< by device */
    struct bw_records reasons; /**< why the file system is, or seems, full */
};

/** Version 2, Evolving/Evolving/Common: the chunks of a type and profile. */
struct bw_profileinfo {
    const char *chunk_type; /**< contents: data, metadata, ... */
    const char *profile; /**< RAID profile */
    uint64_t size; /**< size, counted once */
    uint64_t chunks; /**< number of chunks */
};

/** Version 1, Evolving/Evolving/Common: a message about a file system. */
struct bw_probleminfo {
    const char *severity; /**< warning or damage */
    const char *message; /**< the message */
    /** further messages that differ only in their numbers; absent if all are listed */
    uint64_t similar;
};

/** Version 2, Evolving/Evolving/Common: a partition of a disk. */
struct bw_partitioninfo {
    uint64_t partition; /**< number in the partition table */
    uint64_t offset; /**< offset on the disk */
    uint64_t size; /**< size in bytes */
    const char *partition_type; /**< type, as in the partition table */
    const char *partition_type_name; /**< name of the type */
    const char *uuid; /**< UUID of the partition */
    const char *partition_name; /**< name of the partition */
    const char *content; /**< type of its contents, such as btrfs */
    const char *label; /**< label of its contents */
    const char *content_uuid; /**< UUID of its contents */
};

/** Version 2, Evolving/Evolving/Common: a disk and its partitions. */
struct bw_diskinfo {
    const char *device; /**< its image */
    const char *partition_table; /**< kind of the partition table: gpt or dos */
    uint64_t disk_sectorsize; /**< bytes of a sector in the table */
    uint64_t size; /**< size of the disk */
    struct bw_records partitions; /**< its partitions */
};

/** Version 2, Evolving/Evolving/Common: a file system as a whole. */
struct bw_volumeinfo {
    const char *label; /**< label */
    struct bw_bytes fsid; /**< id of the file system */
    struct bw_bytes metadata_uuid; /**< UUID in its tree blocks */
    uint64_t size; /**< size of all devices */
    uint64_t used; /**< bytes in use, counted once */
    uint64_t nodesize; /**< size of a tree block in bytes */
    uint64_t sectorsize; /**< size of a sector in bytes */
    const char *checksum; /**< checksum algorithm */
    struct bw_names features; /**< names of the feature flags */
    uint64_t incompat_flags; /**< feature flags that a reader must support */
    uint64_t compat_ro_flags; /**< feature flags that a writer must support */
    struct bw_records profiles; /**< chunks by type and profile */
    uint64_t subvolume_count; /**< number of subvolumes */
    uint64_t snapshot_count; /**< number of snapshots */
    /** number of subvolumes and snapshots that are being deleted */
    uint64_t deleted_subvolume_count;
    uint64_t generation; /**< last transaction */
    int64_t changed; /**< last change in any subvolume */
    uint64_t log_tree; /**< whether there is a log tree */
    uint64_t log_replayed; /**< whether the log tree was replayed */
    struct bw_records devices; /**< the devices */
    const char *state; /**< readable, degraded, unmountable, incomplete, damaged or unreadable */
    uint64_t missing_devices; /**< number of missing devices */
    uint64_t stale_devices; /**< number of devices that have missed transactions */
    /** chunks in use that the missing devices make partly unreadable */
    uint64_t incomplete_chunks;
    uint64_t problem_count; /**< number of messages */
    struct bw_records problems; /**< the first messages */
    struct bw_records disks; /**< disks among the images */
    /** why the kernel refuses to mount, and what to do; absent: no reason was found */
    const char *mount_error;
};

/** Version 2, Evolving/Evolving/Common: how many extents of each kind a file has. */
struct bw_extentsuminfo {
    uint64_t extent_count; /**< number of extents */
    uint64_t inline_; /**< with their data in the tree */
    uint64_t regular; /**< extents with data */
    uint64_t preallocated; /**< allocated, not written */
    uint64_t holes; /**< ranges without data */
    uint64_t zlib; /**< compressed with zlib */
    uint64_t lzo; /**< compressed with LZO */
    uint64_t zstd; /**< compressed with Zstandard */
};

/** Version 2, Evolving/Evolving/Common: everything about a file or directory. */
struct bw_statinfo {
    struct bw_bytes path; /**< the given path, with a leading '/' */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    const char *type; /**< file, directory, symlink, ... */
    uint64_t mode; /**< type and permissions, as in struct stat */
    uint64_t uid; /**< owner */
    uint64_t gid; /**< group */
    uint64_t size; /**< size of the file */
    uint64_t allocated; /**< bytes allocated for it, before compression */
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
    struct bw_bytes target; /**< target of a symbolic link */
    uint64_t rdev_major; /**< of a device file: major number */
    uint64_t rdev_minor; /**< of a device file: minor number */
    struct bw_names xattrs; /**< names of the extended attributes */
    struct bw_records extent_counts; /**< how many extents of each kind */
};

/** Version 2, Evolving/Evolving/Common: where a copy of data lies. */
struct bw_copyinfo {
    uint64_t devid; /**< id of the device */
    uint64_t offset; /**< offset on the device */
    uint64_t missing; /**< the device was not given */
};

/** Version 1, Evolving/Evolving/Common: a part of an extent that is in one piece on each device
 *  that has it. */
struct bw_stripeinfo {
    uint64_t logical; /**< logical address */
    uint64_t length; /**< length in bytes */
    struct bw_records copies; /**< its copies; absent if no chunk holds the address */
    struct bw_records parity; /**< the parity of its row: P, then Q */
};

/** Version 2, Evolving/Evolving/Common: an extent of a file. */
struct bw_extentinfo {
    uint64_t file_offset; /**< offset in the file */
    uint64_t length; /**< bytes of the file */
    const char *extent_kind; /**< data, inline, unwritten, hole or bad */
    const char *compression; /**< how it is compressed */
    uint64_t generation; /**< transaction that wrote it */
    uint64_t extent_logical; /**< logical address of the extent in the extent tree */
    uint64_t extent_stored; /**< bytes stored for that extent */
    uint64_t extent_length; /**< its length, decompressed */
    uint64_t extent_offset; /**< offset of the file's bytes in the decompressed extent */
    struct bw_records places; /**< where the stored bytes are on the devices */
};

/** Version 2, Evolving/Evolving/Common: a file and where its contents lie. */
struct bw_contentinfo {
    struct bw_bytes path; /**< the given path */
    uint64_t inode; /**< inode number, unique in its subvolume */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t size; /**< size of the file */
    uint64_t checksums; /**< its data have checksums */
    struct bw_records extents; /**< its extents, by their offset */
};

/** Version 2, Evolving/Evolving/Common: an extended attribute of a file. */
struct bw_xattrinfo {
    struct bw_bytes path; /**< path of the file, with a leading '/' */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    struct bw_bytes xattr; /**< name of the attribute */
    struct bw_bytes value; /**< its value */
    struct bw_bytes acl; /**< an access control list, in the format of getfacl */
};

/** Version 2, Evolving/Evolving/Common: a subvolume or snapshot. */
struct bw_subvolinfo {
    uint64_t subvolume; /**< id of the subvolume and of its tree */
    uint64_t generation; /**< transaction that changed its tree last */
    uint64_t parent_subvolume; /**< id of the subvolume that contains it */
    /** absolute path, starting at the top-level subvolume; absent if it has none */
    struct bw_bytes subvolume_path;
    /** the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes subvolume_path_bytes;
    const char *attributes; /**< attributes: default, ro, snapshot, received, deleted */
    uint64_t ro; /**< whether it is read-only */
    uint64_t snapshot; /**< whether it is a snapshot */
    uint64_t is_default; /**< whether it is mounted by default */
    uint64_t deleted; /**< whether it is being deleted */
    struct bw_bytes uuid; /**< its own id */
    struct bw_bytes parent_uuid; /**< UUID of the subvolume that it is a snapshot of */
    struct bw_bytes received_uuid; /**< UUID of the subvolume that it was received from */
    int64_t otime; /**< creation */
    int64_t ctime; /**< last change */
    int64_t stime; /**< when it was sent, at its sender */
    int64_t rtime; /**< when it was received */
    uint64_t otransid; /**< transaction of its creation */
    uint64_t ctransid; /**< transaction of its last change */
    uint64_t stransid; /**< transaction on the sender's side when it was sent */
    uint64_t rtransid; /**< transaction in which it was received */
    uint64_t flags; /**< BTRFS_ROOT_SUBVOL_* flags */
    uint64_t bytes_used; /**< size of its tree blocks, including shared ones */
    uint64_t level; /**< level of its root block */
    uint64_t root; /**< logical address of its root block; 0: made by log replay */
    uint64_t last_snapshot; /**< transaction of the newest snapshot of it */
    uint64_t parent_inode; /**< inode of its directory in the parent subvolume */
};

/** Version 2, Evolving/Evolving/Common: a quota group. */
struct bw_qgroupinfo {
    const char *qgroup; /**< LEVEL/NUMBER; at level 0 the number is the id of a subvolume */
    /** bytes that the group reaches; with simple quotas, bytes that it has allocated */
    uint64_t referenced;
    /** bytes that nothing else reaches; with simple quotas the same as referenced */
    uint64_t exclusive;
    uint64_t max_referenced; /**< limit of `referenced`; absent without a limit */
    uint64_t max_exclusive; /**< limit of `exclusive`; absent without a limit */
    const char *parent_qgroups; /**< its parent groups */
    const char *child_qgroups; /**< its child groups */
    struct bw_bytes subvolume_path; /**< path of the subvolume; absent if it was deleted */
    /** the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes subvolume_path_bytes;
    uint64_t qgroup_level; /**< 0 for subvolumes, more for groups of groups */
    uint64_t qgroup_number; /**< number in that level */
    uint64_t generation; /**< transaction in which it was counted */
    /** as stored, after compression; current kernels write the same number */
    uint64_t referenced_compressed;
    uint64_t exclusive_compressed; /**< the same for the exclusive bytes */
    uint64_t limit_flags; /**< BTRFS_QGROUP_LIMIT_* flags */
};

/** Version 2, Evolving/Evolving/Common: a change of a file by log replay. */
struct bw_logchange {
    const char *change; /**< added, deleted, renamed, linked, unlinked, data or attribute */
    const char *type; /**< file, directory, symlink, ... */
    struct bw_bytes path; /**< path after the change; if deleted or unlinked, the old path */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t file_offset; /**< data: where the changed range begins in the file */
    uint64_t length; /**< data: length of the range in bytes; added, deleted: size of the file */
    /** size, mode, uid, gid, device, flags, atime, mtime, ctime, otime, or the name of an
     *  extended attribute */
    struct bw_bytes attribute;
    /** old value of the attribute, or old path of a renamed file; absent if new */
    struct bw_bytes before;
    struct bw_bytes before_bytes; /**< the same in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes after; /**< value of the attribute; absent if it is removed */
    struct bw_bytes after_bytes; /**< the same in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume */
    uint64_t inode; /**< inode number */
};

/** Version 2, Evolving/Evolving/Common: the state of quotas. */
struct bw_quotainfo {
    const char *quota_mode; /**< none, off, full or simple */
    const char *quota_state; /**< consistent, rescanning, inconsistent, or unknown */
    uint64_t generation; /**< transaction that wrote the status */
    uint64_t enable_generation; /**< generation from which on simple quotas count extents */
    uint64_t rescan_logical; /**< logical address that a rescan has reached */
    uint64_t flags; /**< BTRFS_QGROUP_STATUS_FLAG_* flags */
    uint64_t format_version; /**< version of the format */
};

/** Version 2, Evolving/Evolving/Common: a chunk and its used space, or one of its stripes, or a
 *  gap between stripes. */
struct bw_spaceinfo {
    uint64_t logical; /**< first logical address of the chunk */
    uint64_t length; /**< length of the chunk in bytes */
    /** Data, Metadata, System, ...; of a device also unallocated, and reserved: its first MiB */
    const char *chunk_type;
    const char *profile; /**< RAID profile */
    uint64_t used; /**< used bytes of the chunk, from its block group; absent if that is lost */
    struct bw_stripes stripes; /**< device and offset of each stripe; absent with --by device */
    /** bytes of each stripe, or of a gap between stripes, on the device */
    uint64_t stripe_length;
    uint64_t flags; /**< BTRFS_BLOCK_GROUP_* flags */
    uint64_t devid; /**< number of the device; only with --by device */
    uint64_t offset; /**< offset on the device; only with --by device */
    uint64_t stripe; /**< which stripe of the chunk it is, counted from 0; only with --by device */
};

/** Version 2, Evolving/Evolving/Common: a subvolume, and how much it shares with others. */
struct bw_shareinfo {
    uint64_t subvolume; /**< id of the subvolume */
    /** bytes that it reaches: whole data extents at their stored size, and tree blocks */
    uint64_t referenced;
    uint64_t exclusive; /**< bytes that no other subvolume reaches; deleting it frees them */
    uint64_t shared; /**< bytes that others reach, too */
    /** absolute path, starting at the top-level subvolume; absent if it has none */
    struct bw_bytes subvolume_path;
    /** the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes subvolume_path_bytes;
    /** whether it is being deleted; then only space that no remaining subvolume shares is
     *  counted */
    uint64_t deleted;
    uint64_t lost_blocks; /**< its unreadable tree blocks; if not 0, all sizes are lower bounds */
};

/** Version 1, Evolving/Evolving/Common: subvolumes, and the space that deleting them would free. */
struct bw_freeinfo {
    const char *subvolumes; /**< ids of the subvolumes */
    uint64_t referenced; /**< bytes that at least one of them reaches */
    uint64_t freed; /**< bytes that no other subvolume reaches: deleting all of them frees these */
    /** their unreadable tree blocks; if not 0, all sizes are lower bounds */
    uint64_t lost_blocks;
    struct bw_names paths; /**< their paths */
};

/** Version 1, Evolving/Evolving/Common: a range whose contents no file shows. */
struct bw_freerangeinfo {
    uint64_t stream_offset; /**< where it begins in the stream of --extract, in bytes */
    uint64_t length; /**< bytes of the range */
    /** free: without an extent; unused: of a chunk without extents; hidden: of an extent, but
     *  shown by no file; preallocated: of an extent, and read as zeros; unallocated: of
     *  a device */
    const char *kind;
    uint64_t logical; /**< logical address; absent for unallocated ranges */
    uint64_t devid; /**< number of the device; only of unallocated ranges */
    uint64_t offset; /**< offset on that device; only of unallocated ranges */
};

/** Version 1, Evolving/Evolving/Common: ranges of similar lengths whose contents no file shows. */
struct bw_freesizeinfo {
    const char *kind; /**< as freerangeinfo.kind */
    const char *chunk_type; /**< Data, Metadata, System, ...; absent for unallocated ranges */
    uint64_t length; /**< the ranges have at least this length, and less than twice the length */
    uint64_t ranges; /**< number of ranges */
    uint64_t bytes; /**< bytes of all these ranges */
};

/** Version 2, Evolving/Evolving/Common: subvolumes, and the space that exactly these share. */
struct bw_sharedinfo {
    uint64_t shared; /**< bytes that each of them reaches, and no other subvolume does */
    uint64_t subvolume_count; /**< number of subvolumes */
    const char *subvolumes; /**< their ids; FIRST-LAST: all existing ids in this range */
    uint64_t deleted; /**< whether they are being deleted */
    struct bw_names paths; /**< their paths; at most 100 */
};

/** Version 2, Evolving/Evolving/Common: a range of a device, and its contents. */
struct bw_placeinfo {
    /** logical address; for P and Q, found by device, the lowest address they protect; absent
     *  without one */
    uint64_t logical;
    uint64_t length; /**< contiguous bytes from there on */
    /** copy; P, Q: parity; unused: in a chunk, without data; superblock, reserved, unallocated,
     *  outside */
    const char *kind;
    uint64_t mirror; /**< number of the copy, counted from 1; absent for other ranges */
    uint64_t devid; /**< number of the device; absent if no chunk holds the address */
    uint64_t offset; /**< offset on the device */
    struct bw_bytes device; /**< image of the device; absent if it is missing */
    struct bw_bytes device_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
};

/** Version 2, Evolving/Evolving/Common: a range of a device, with the members of qemu-img map. */
struct bw_usedinfo {
    uint64_t start; /**< offset on the device */
    uint64_t length; /**< bytes from there on */
    uint64_t depth; /**< always 0: there is no backing file */
    uint64_t present; /**< the same as data */
    uint64_t zero; /**< the range may be read as zeros, because its contents do not matter */
    uint64_t data; /**< the range is in use: a copy needs it */
    uint64_t offset; /**< the same as start */
    /** superblock, reserved, system, metadata, data, log, parity, free or unallocated */
    const char *kind;
    uint64_t devid; /**< number of the device */
    struct bw_bytes device; /**< image of the device */
    struct bw_bytes device_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
};

/** Version 2, Evolving/Evolving/Common: the use of a range of addresses. */
struct bw_ownerinfo {
    /** data: of a file; metadata: a tree block that a file depends on; block: a tree block;
     *  hidden: of an extent, but shown by no file; free, unused, outside; on a device
     *  also superblock, reserved, unallocated, parity */
    const char *kind;
    uint64_t logical; /**< logical address; absent without one */
    uint64_t length; /**< bytes from there on */
    uint64_t extent_logical; /**< address of the extent or tree block that this is part of */
    uint64_t tree; /**< id of the tree that uses it: a subvolume or another tree */
    uint64_t inode; /**< number of the file in the tree */
    /** offset in the file; for compressed data, offset of the compressed extent's range */
    uint64_t file_offset;
    uint64_t file_length; /**< bytes of the file from that offset on */
    struct bw_bytes path; /**< one of the paths of the file; absent if it has none */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t level; /**< level of the tree block; 0 is a leaf */
    struct bw_key key; /**< first key of the tree block: (257 INODE_ITEM 0) */
    uint64_t devid; /**< id of the device, for ranges without a logical address */
    uint64_t offset; /**< offset on that device */
    /** for bad sectors: 1 if another copy, or parity, is good; absent without a list of them */
    uint64_t repairable;
    uint64_t subvolume; /**< id of the subvolume; absent if the tree is not a subvolume */
};

/** Version 2, Evolving/Evolving/Common: a tree: its size, and the location of its blocks. */
struct bw_treeinfo {
    uint64_t tree; /**< id of the tree */
    const char *tree_name; /**< its name, as requested */
    uint64_t levels; /**< number of levels; 1: the root is a leaf */
    uint64_t blocks; /**< blocks read */
    uint64_t leaves; /**< leaves among the blocks read */
    const char *on_levels; /**< blocks on each level, leaves first */
    uint64_t lost_blocks; /**< unreadable blocks; blocks below them are not counted */
    uint64_t bytes; /**< size of the blocks read */
    uint64_t inline_bytes; /**< contents of files in it, as stored */
    uint64_t items; /**< items in its leaves */
    uint64_t used; /**< bytes of its leaves occupied by items and their keys */
    uint64_t fill_percent; /**< the same as a percentage of its leaves */
    uint64_t seeks; /**< blocks that do not directly follow the previous child of the same node */
    uint64_t forward_seeks; /**< seeks to a higher address */
    uint64_t backward_seeks; /**< seeks to a lower address */
    uint64_t average_seek; /**< average distance of seeks */
    uint64_t longest_seek; /**< greatest distance of a seek */
    uint64_t clusters; /**< ranges of several blocks that end with a seek */
    uint64_t average_cluster; /**< average size of clusters */
    uint64_t smallest_cluster; /**< size of the smallest cluster */
    uint64_t largest_cluster; /**< size of the largest cluster */
    uint64_t spread; /**< distance between the outermost blocks */
    uint64_t read_ns; /**< estimated time in which a hard disk reads it in key order */
};

/** Version 2, Evolving/Evolving/Common: the items of one type in a tree. */
struct bw_itemsinfo {
    uint64_t tree; /**< id of the tree */
    const char *key_type_name; /**< name of the type of their keys */
    uint64_t key_type; /**< number of that type */
    uint64_t items; /**< number of items */
    uint64_t bytes; /**< size of all items, without their keys */
};

/** Version 1, Evolving/Evolving/Common: an item of a leaf, or a pointer of a node. */
struct bw_iteminfo {
    uint64_t tree; /**< id of the tree */
    uint64_t logical; /**< logical address of the tree block */
    uint64_t level; /**< level of the block; 0: a leaf */
    uint64_t slot; /**< position in the block, counted from 0 */
    uint64_t damaged; /**< true if the block is damaged; otherwise absent */
    struct bw_key key; /**< key of the item, or the pointer's first key */
    uint64_t size; /**< bytes of an item */
    /** members of an item, as in docs/items.md; absent if it lies outside of the leaf */
    struct bw_json_value item;
    uint64_t child_logical; /**< logical address of the block that a pointer points to */
    uint64_t generation; /**< transaction that wrote that block, according to the pointer */
    uint64_t key_objectid; /**< objectid of the key */
    const char *key_type_name; /**< name of the key's type */
    uint64_t key_offset; /**< offset of the key */
    struct bw_bytes hex; /**< bytes of an item in hexadecimal digits */
};

/** Version 2, Stable/Stable/Common: a finding of a check. */
struct bw_findinginfo {
    const char *severity; /**< error, warning or note */
    const char *code; /**< code of the finding; docs/check.md lists all codes */
    const char *pass; /**< pass of the check that found it */
    uint64_t tree; /**< id of the tree it is in */
    const char *tree_name; /**< name of that tree, such as FS_TREE; for a subvolume, its id */
    /** key of the item, or the first one of the tree block: (257 INODE_ITEM 0) */
    struct bw_key key;
    uint64_t logical; /**< logical address of the tree block or of the data */
    uint64_t length; /**< number of affected bytes */
    uint64_t devid; /**< number of the device it lies on */
    uint64_t offset; /**< offset on that device */
    uint64_t mirror; /**< copy of the block or the data, counted from 1 */
    uint64_t inode; /**< number of the file in the tree */
    uint64_t file_offset; /**< offset in the file */
    uint64_t repairable; /**< 1 if another copy, or parity, is good */
    struct bw_names paths; /**< paths of the affected files, with all hard links */
    uint64_t more_paths; /**< number of further paths; absent: none */
    /** number of further subvolumes that share it, without paths here; absent: none */
    uint64_t more_subvolumes;
    const char *message; /**< description of the problem */
    uint64_t file_length; /**< bytes of the file from there on */
    /** image with the bad copy; absent unless the device has several (--alternatives) */
    struct bw_bytes device;
};

/** Version 1, Evolving/Evolving/Common: the space of the data of a file, or of all files in a
 *  directory. */
struct bw_duinfo {
    struct bw_bytes path; /**< absolute path, starting at the top-level subvolume */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    const char *type; /**< file or directory */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number */
    uint64_t depth; /**< depth below PATH; 0: PATH itself */
    uint64_t files; /**< number of files counted in it; 1 for a file */
    uint64_t total; /**< bytes of files in extents */
    uint64_t exclusive; /**< bytes of the total that are not shared */
    uint64_t shared; /**< bytes of the total that are shared, with any other file or reference */
    uint64_t set_shared; /**< for PATH: the same, with each byte on disk counted once */
    /** pieces of files on the disk, as filefrag(8) counts them by logical address */
    uint64_t extent_count;
    uint64_t disk; /**< stored bytes of the extents, whole and compressed, each once for a file */
};

/** Version 2, Evolving/Evolving/Common: the extents of files with one type of compression. */
struct bw_compressioninfo {
    const char *compression; /**< none, zlib, lzo, zstd or prealloc; total: all of them */
    uint64_t percent; /**< disk as a percentage of uncompressed, rounded down */
    uint64_t disk; /**< stored bytes, each extent counted once */
    uint64_t uncompressed; /**< bytes of the same extents, decompressed */
    uint64_t referenced; /**< bytes of files in these extents */
    uint64_t files; /**< for the total: names of files */
    uint64_t extent_count; /**< for the total: extents outside the tree */
    uint64_t references; /**< for the total: references to these extents */
    uint64_t inline_; /**< for the total: extents inside the tree */
};

/** Version 2, Evolving/Evolving/Common: a difference between two subvolumes. */
struct bw_diffinfo {
    const char *change; /**< added, deleted, modified, renamed, type (another type), or unknown */
    const char *type; /**< file, directory, symlink, ... */
    struct bw_bytes path; /**< path in the subvolume; if renamed, the new one */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes old_path; /**< path before; absent unless renamed */
    struct bw_bytes old_path_bytes; /**< the old path in base64; in JSON only if it is not UTF-8 */
    struct bw_names changes; /**< differences: content size mode owner times xattrs links */
    struct bw_names unknown; /**< attributes that could not be compared */
    uint64_t changed_bytes; /**< bytes of content that differ, or were added or deleted */
    uint64_t old_size; /**< size before; absent for directories */
    uint64_t size; /**< size after; absent for directories */
    const char *old_type; /**< type before; absent unless it changed */
    uint64_t old_inode; /**< number of the inode before, if any */
    uint64_t inode; /**< number of the inode after, if any */
    uint64_t old_subvolume; /**< id of the subvolume before */
    uint64_t subvolume; /**< id of the subvolume after */
};

/** Version 2, Evolving/Evolving/Common: a file, directory or subvolume that was deleted. */
struct bw_deletedinfo {
    /** recoverable contents: verified, unverified, partly or lost; absent if data were not read */
    const char *recoverable;
    uint64_t generation; /**< last generation that contains it */
    uint64_t tree_root; /**< logical address of the root tree of that generation */
    int64_t changed; /**< last change in that generation */
    const char *type; /**< file, directory, subvolume, symlink, ... */
    struct bw_bytes path; /**< path in that generation */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t size; /**< size; absent for directories */
    int64_t mtime; /**< last modification of the contents */
    uint64_t subvolume; /**< id of the subvolume it was in */
    uint64_t inode; /**< inode number in that subvolume */
    uint64_t bad_bytes; /**< number of lost bytes */
    struct bw_names bad; /**< the first lost ranges, as OFFSET+LENGTH */
    /** path of the file in the newest snapshot that still has it; absent if none has */
    struct bw_bytes snapshot_path;
    int64_t snapshot_time; /**< when that snapshot was created */
};

/** Version 1, Evolving/Evolving/Common: a file in the manifest of an extraction. */
struct bw_savedinfo {
    /** verified, unverified (it has no checksums), partly (zeros replace lost parts), or linked
     *  (another name of an extracted file); incomplete, without other members, in the
     *  last row if the extraction did not end */
    const char *saved;
    struct bw_bytes path; /**< path in the file system */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes name; /**< path in the target directory */
    uint64_t size; /**< size */
    uint64_t bad_bytes; /**< number of lost bytes */
    const char *algorithm; /**< hash algorithm: sha256 */
    /** hash of the extracted contents; only for regular files, without holes of more than 16 TiB */
    const char *hash;
    uint64_t subvolume; /**< id of the subvolume */
    uint64_t inode; /**< inode number in that subvolume */
    uint64_t generation; /**< generation that was read */
};

/** Version 1, Evolving/Evolving/Common: a file, and how much of it can be read. */
struct bw_rescuefileinfo {
    const char *recoverable; /**< verified, unverified (it has no checksums), partly or lost */
    const char *type; /**< file, symlink, ... */
    struct bw_bytes path; /**< path */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t size; /**< size; absent if the inode is lost */
    uint64_t bad_bytes; /**< number of lost bytes */
    struct bw_names bad; /**< the first lost ranges, as OFFSET+LENGTH */
    uint64_t subvolume; /**< id of the subvolume */
    uint64_t inode; /**< inode number in that subvolume */
};

/** Version 1, Evolving/Evolving/Common: how many files of a subvolume can be read; everything
 *  but directories is a file. */
struct bw_rescuesubvolumeinfo {
    uint64_t subvolume; /**< id of the subvolume */
    struct bw_bytes subvolume_path; /**< its path; absent if it has none */
    /** the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes subvolume_path_bytes;
    uint64_t complete; /**< whether its top directory can be read */
    uint64_t verified_files; /**< files whose contents match their checksums */
    uint64_t verified_bytes; /**< their sizes */
    /** files that can be read completely, but not verified: their checksums are lost, or never
     *  existed */
    uint64_t unverified_files;
    uint64_t unverified_bytes; /**< their sizes */
    uint64_t partly_files; /**< files with unreadable parts */
    uint64_t partly_bytes; /**< their sizes */
    uint64_t bad_bytes; /**< their unreadable bytes */
    uint64_t lost_files; /**< files that are lost except for their names */
    uint64_t lost_bytes; /**< their sizes, if known */
};

/** Version 1, Evolving/Evolving/Common: an older generation with files that cannot be read in
 *  the current one. */
struct bw_rescuegenerationinfo {
    uint64_t generation; /**< transaction that committed it */
    int64_t changed; /**< time of the last change in its subvolumes; absent if unknown */
    /** files that can be read in it, and neither in the current nor in a newer generation */
    uint64_t files;
    uint64_t bytes; /**< their sizes */
};

/** Version 1, Evolving/Evolving/Common: a command that saves files. */
struct bw_rescuestepinfo {
    /** what it saves: whole, unverified, older, partly, lost or deleted files */
    const char *step;
    const char *shell_command; /**< the command, for a shell */
};

/** Version 1, Evolving/Evolving/Common: the readable files of a damaged file system, and how to
 *  save them. */
struct bw_rescueinfo {
    const char *label; /**< label */
    struct bw_bytes fsid; /**< UUID of the file system */
    uint64_t size; /**< size of the file system */
    uint64_t used; /**< used bytes */
    uint64_t device_count; /**< number of its devices */
    uint64_t missing_devices; /**< devices without an image */
    uint64_t generation; /**< generation that was read */
    uint64_t newest_generation; /**< generation in the superblock */
    /** healthy; degraded, if only copies are lost; or damaged, if files are lost */
    const char *state;
    struct bw_names open_options; /**< options that were needed to open it */
    uint64_t problem_count; /**< number of problems */
    struct bw_records problems; /**< the problems found */
    struct bw_records by_subvolume; /**< files by subvolume */
    /** older generations with whole versions of files that cannot be read */
    struct bw_records generations;
    uint64_t hidden_files; /**< files in lost tree blocks, of which only older generations know */
    uint64_t deleted_files; /**< deleted files that older generations contain */
    struct bw_records steps; /**< commands that save files, in order */
};

/** Version 1, Evolving/Evolving/Common: a message of the kernel about the file system, and what
 *  it means. */
struct bw_kernelmessageinfo {
    /** kind of the message: csum-failed, transid-failed, ... (docs/kernel-messages.md) */
    const char *kernel_message;
    const char *severity; /**< warning or error */
    uint64_t occurrences; /**< lines with this message */
    uint64_t line; /**< number of the first line */
    const char *message; /**< the first line */
    uint64_t logical; /**< logical address */
    uint64_t mirror; /**< bad mirror */
    uint64_t devid; /**< id of the device */
    uint64_t offset; /**< offset on that device */
    uint64_t subvolume; /**< id of the subvolume */
    uint64_t inode; /**< inode number in it */
    uint64_t file_offset; /**< offset in that file */
    /** whether these images have a good copy; absent if the message names no block */
    uint64_t readable;
    struct bw_names paths; /**< affected files, the first of them */
    uint64_t more_paths; /**< number of further files */
    const char *description; /**< the meaning of the message */
    const char *advice; /**< what to do */
};

/** Version 2, Evolving/Evolving/Common: a version of a file. */
struct bw_versioninfo {
    uint64_t generation; /**< newest generation that contains it */
    uint64_t first_generation; /**< oldest generation that contains it */
    uint64_t tree_root; /**< logical address of the root tree of the newest generation */
    int64_t changed; /**< last change in the newest generation */
    /** recoverable contents: verified, unverified, partly or lost; absent if data were not read */
    const char *recoverable;
    const char *type; /**< file, directory, symlink, ... */
    uint64_t size; /**< size */
    int64_t mtime; /**< last modification of the contents */
    /** differences from the previous version, as in diffinfo, or renamed; absent for the oldest */
    struct bw_names changes;
    struct bw_names unknown; /**< attributes that could not be compared */
    uint64_t replaced; /**< whether the previous version was another file of that name */
    struct bw_bytes path; /**< path in the newest generation */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number in that subvolume */
    /** snapshot with this version: its name in Snapper, btrbk or Timeshift, otherwise its path;
     *  absent for generations */
    const char *snapshot_name;
};

/** Version 2, Evolving/Evolving/Common: a current or older generation of the file system. */
struct bw_stateinfo {
    uint64_t generation; /**< transaction that wrote it */
    int64_t changed; /**< time of the last change in its subvolumes; absent if unknown */
    struct bw_names found; /**< where it was found: superblock, backup-0 to backup-3, scan */
    const char *status; /**< committed, abandoned (by its own transaction), or unverified */
    /** whole, partly or lost; without a scan, absent, like the numbers of missing blocks */
    const char *recoverable;
    uint64_t lost_blocks; /**< lost tree blocks; blocks below them are not counted */
    uint64_t trimmed; /**< lost blocks that now contain zeros */
    uint64_t overwritten; /**< lost blocks that now contain other data */
    uint64_t trees; /**< number of its known trees */
    uint64_t trees_damaged; /**< number of its trees with missing blocks */
    uint64_t subvolume_count; /**< subvolumes and snapshots among the trees */
    uint64_t readable_subvolumes; /**< number of its subvolumes whose root block is readable */
    uint64_t tree_root; /**< logical address of the root of its root tree, for --tree-root */
    uint64_t chunk_root; /**< logical address of its chunk tree; absent if it is the current one */
};

/** Version 2, Evolving/Evolving/Common: a tree of a generation. */
struct bw_statetreeinfo {
    uint64_t generation; /**< generation of its root tree */
    uint64_t tree_root; /**< logical address of the root of its root tree */
    uint64_t tree; /**< id of the tree */
    const char *tree_name; /**< its name, or the id again */
    uint64_t root; /**< logical address of its root block */
    uint64_t tree_generation; /**< transaction that wrote that block */
    uint64_t level; /**< level of that block */
    const char *recoverable; /**< whole, partly or lost */
    uint64_t lost_blocks; /**< lost tree blocks of the tree */
    uint64_t trimmed; /**< lost blocks that now contain zeros */
    uint64_t overwritten; /**< lost blocks that now contain other data */
    uint64_t deleted; /**< whether it was being deleted; then it may be incomplete */
};

/** Version 1, Evolving/Evolving/Common: the hash of a file. */
struct bw_suminfo {
    const char *hash; /**< the hash, in hexadecimal */
    const char *algorithm; /**< hash algorithm, as for --algorithm */
    struct bw_bytes path; /**< path, as in the lines of text */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t size; /**< size of the file */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
};

/** Version 1, Evolving/Evolving/Common: a layer of the graph. */
struct bw_layerinfo {
    const char *layer; /**< name of the layer */
    const char *layer_type; /**< type of the layer */
    struct bw_json_value option_values; /**< all options and their values */
    struct bw_names child_layers; /**< names of the layers it reads from */
};

/** Version 1, Evolving/Evolving/Common: an option of a type of layers. */
struct bw_layeroptioninfo {
    const char *option; /**< name of the option */
    const char *option_type; /**< type of its value */
    const char *range; /**< allowed values; empty: any */
    const char *default_value; /**< value if it is not given; absent if it must be given */
    const char *description; /**< what it does */
};

/** Version 1, Evolving/Evolving/Common: a type of layers. */
struct bw_layertypeinfo {
    const char *layer_type; /**< category and name */
    const char *description; /**< what layers of the type do */
    struct bw_records options; /**< their options */
};

/** Version 1, Evolving/Evolving/Common: a command of a send stream. */
struct bw_commandinfo {
    const char *device; /**< file of the stream */
    uint64_t offset; /**< offset of the command in it */
    uint64_t length; /**< bytes of its attributes */
    uint64_t format_version; /**< version of the protocol */
    const char *command; /**< name of the command, as in the output of 'btrfs receive --dump' */
    struct bw_bytes subvolume_path; /**< name of the subvolume that is being sent */
    struct bw_bytes path; /**< path in the subvolume; empty: its top directory */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes new_path; /**< new path of a renamed file */
    /** target of a symbolic link; for a hard link, an existing path of the file */
    struct bw_bytes target;
    struct bw_bytes uuid; /**< UUID of the subvolume that begins */
    uint64_t ctransid; /**< transaction that last changed that subvolume */
    uint64_t inode; /**< inode number at the sender */
    uint64_t size; /**< size of the file, or of a range of it */
    uint64_t mode; /**< permissions, or type and permissions */
    uint64_t uid; /**< id of the owner */
    uint64_t gid; /**< id of the group */
    uint64_t rdev_major; /**< major number of a device file */
    uint64_t rdev_minor; /**< minor number of a device file */
    int64_t atime; /**< time of the last access */
    int64_t mtime; /**< time of the last change of the contents */
    int64_t ctime; /**< time of the last change of the inode */
    int64_t otime; /**< time of creation */
    struct bw_bytes xattr; /**< name of an extended attribute */
    struct bw_bytes value; /**< value of the extended attribute */
    uint64_t file_offset; /**< offset in the file */
    uint64_t data_length; /**< bytes of data in the command */
    /** UUID of the parent, or of the subvolume that the data are cloned from */
    struct bw_bytes clone_uuid;
    uint64_t clone_ctransid; /**< transaction that last changed that subvolume */
    struct bw_bytes clone_path; /**< path of the file that the data are cloned from */
    uint64_t clone_file_offset; /**< offset in that file */
    uint64_t clone_length; /**< cloned bytes */
    uint64_t fallocate_mode; /**< mode of fallocate(2) */
    uint64_t flags; /**< flags of the inode */
    uint64_t unencoded_file_length; /**< bytes of the file that encoded data are for */
    uint64_t unencoded_length; /**< bytes of encoded data after decoding */
    uint64_t unencoded_offset; /**< offset of the file's bytes in the decoded data */
    /** compression: 0 none, 1 zlib, 2 zstd, 3 to 7 LZO with sectors of 4 to 64 KiB */
    uint64_t encoding;
    uint64_t encryption; /**< encryption: always 0 */
    uint64_t verity_algorithm; /**< hash algorithm of fs-verity */
    uint64_t verity_block_size; /**< block size of fs-verity */
    uint64_t verity_salt_length; /**< bytes of the salt */
    uint64_t verity_signature_length; /**< bytes of the signature */
};

/** Version 1, Evolving/Evolving/Common: a kind of information that readers of a metadump can get
 *  from it, or cannot. */
struct bw_disclosureinfo {
    const char *information; /**< the kind: names, contents, times, ... */
    const char *treatment; /**< kept, replaced, removed, or lost if it cannot be read */
    uint64_t occurrences; /**< how often it occurs */
    const char *details; /**< a remark, in which names are escaped as by ls -b; may be absent */
};

/** Version 1, Evolving/Evolving/Common: the record that --json --header writes first. */
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
