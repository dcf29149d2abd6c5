/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images given, each with its best superblock, and which of them are devices of the one file
 * system that is opened. First step of opening; no tree has been read yet.
 */
#ifndef BW_FS_IMAGE_H
#define BW_FS_IMAGE_H

#include "fs/fs.h"

/** The role of an image. */
enum bw_image_role {
    BW_IMAGE_UNUSED, /**< no superblock, another file system, a second copy of a device */
    BW_IMAGE_DEVICE, /**< a device of the file system */
    BW_IMAGE_SEED,   /**< a seed device: another fsid, but perhaps part of this file system */
};

struct bw_disk;

struct bw_image {
    char *path;                      /**< of the file, or its first part; owned */
    char *name;                      /**< for messages: the path, and which partition; owned */
    unsigned partition;              /**< 0: it is not one, or not yet known which one */
    uint64_t offset;                 /**< of the partition on its disk, in bytes */
    struct bw_disk *disk;            /**< if it has a partition table that matters; owned */
    struct bw_xlator *storage;       /**< the top of the layers on it */
    struct bw_superblock superblock; /**< valid unless `bad` is set */
    unsigned copy;                   /**< which of its copies that is */
    struct bw_error *bad;            /**< why there is no superblock; owned */
    enum bw_image_role role;
    bool is_foreign;   /**< it is certainly no device of a btrfs */
    bool is_known;     /**< the chunk tree has this device */
    bool is_unclaimed; /**< `bad`, but its contents may prove which device it is */
    bool is_claimed;   /**< its contents have proven it; without a superblock its generation is
                            unknown */
    bool is_clone;     /**< a disk of which nothing is read, since copies of its devices are */
    bool is_told;      /**< the chunk map has its device id */
    bool is_dump;      /**< made by btrfs-image: tree blocks only, each at its logical address */
    size_t index;      /**< its place among those given */
};

struct bw_image_set {
    struct bw_image *images;
    size_t count;
};

/** Reads the superblock of every child of the chunk map, all of which are started. A child that is
 * a disk is replaced by its selected partitions. Free with bw_images_free(). */
struct bw_error *bw_images_open(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_image_set *set);

/** The path of the first file below a layer, or the name of the layer there if it has none; freed
 * by the caller. NULL: memory ran out. */
char *bw_image_path(struct bw_xlator *layer);

/** Reads superblock copy 0, 1 or 2 of an image, and returns its offset. BW_ERROR_NOT_FOUND if the
 * image is too small for it, or not used. */
struct bw_error *bw_image_read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                    unsigned copy, struct bw_superblock *superblock,
                                    uint64_t *offset);

/** Reads the same copy as it lies there, good or not. */
struct bw_error *bw_image_copy_bytes(const struct bw_fs *fs, const struct bw_image *image,
                                     unsigned copy, uint8_t bytes[BW_SUPERBLOCK_SIZE],
                                     uint64_t *offset);

/** Frees the set; the layers stay with the graph. */
void bw_images_free(struct bw_image_set *set);

/** Chooses the file system to open (the file system of the first image with a superblock, or the
 * file system that sprouted from it), sets every image's role and fs->superblock, and reports
 * images that are foreign, duplicate or stale. */
struct bw_error *bw_images_match(struct bw_fs *fs, struct bw_image_set *set);

/** Reports the images that are still unclaimed as not used. */
void bw_images_refuse(struct bw_fs *fs);

/** Whether two superblocks are of devices of the same file system. */
bool bw_same_file_system(const struct bw_superblock *a, const struct bw_superblock *b);

/** Whether it is of a seed device. */
bool bw_is_seed(const struct bw_superblock *superblock);

/** The image of the device with this id and uuid, or a dump of all devices; NULL if it is missing.
 */
struct bw_image *bw_image_of_device(const struct bw_fs *fs, uint64_t devid,
                                    const uint8_t uuid[BW_UUID_SIZE]);

/** Whether a device of a matched set missed writes that others have. */
bool bw_image_is_stale(const struct bw_fs *fs, const struct bw_image *image);

#endif
