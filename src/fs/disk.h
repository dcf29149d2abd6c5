/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images of whole disks: the contents of their partitions, and the selection of partitions that are
 * devices of the file system. Only images without a superblock at its usual offset are examined. */
#ifndef BW_FS_DISK_H
#define BW_FS_DISK_H

#include "btrfs-walk/image.h"
#include "fs/image.h"

/** The contents of a partition. */
struct bw_partition_content {
    bool good;        /**< it contains a btrfs with this superblock */
    bool may_be_lost; /**< once identified: it may contain a btrfs without a superblock */
    struct bw_superblock superblock;
};

/** A disk with a partition table. */
struct bw_disk {
    struct bw_xlator *storage; /**< the top of the disk's layers */
    struct bw_partition_table table;
    struct bw_partition_content *contents; /**< one for each partition */
    bool has_btrfs;
};

/** Reads the partition table of an image and the superblocks in its partitions; NULL if it has no
 * table. Fails if memory runs out, or no file in memory can be made. Free with bw_disk_free(). */
struct bw_error *bw_disk_open(const struct bw_image *image, struct bw_disk **disk);

void bw_disk_free(struct bw_disk *disk);

/** Whether a partition has a superblock of the file system of bw_fs_options.fsid. */
bool bw_disk_has_wanted(const struct bw_fs *fs, const struct bw_disk *disk);

/** The first partition with a good superblock of a btrfs; NULL if none has one, or `disk` is NULL.
 */
const struct bw_partition_info *bw_disk_find_btrfs(const struct bw_disk *disk);

/** Identifies the contents of the partitions without a superblock of a btrfs. */
void bw_disk_identify(struct bw_disk *disk);

/** The error for a disk without a btrfs. It lists the contents of the partitions. */
struct bw_error *bw_disk_refuse(const struct bw_disk *disk);

/** Chooses the partition that the user selected (NULL: the partitions of the only file system), and
 * the partitions of the other devices of its file system. Puts a layer for one partition above each
 * disk, and adds a child to `map` for each further partition. Images of partitions have `partition`
 * set, and have to be read again. BW_ERROR_AMBIGUOUS if there are several file systems and the user
 * selected none, or if several partitions are the same device and nothing distinguishes them. */
struct bw_error *bw_disks_use(struct bw_fs *fs, struct bw_xlator *map, struct bw_image_set *set,
                              const char *wanted);

#endif
