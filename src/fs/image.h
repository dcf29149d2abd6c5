/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The images on the command line, each with its best superblock, and which of them are devices of
 * the file system. This is the first step of opening; no tree has been read yet.
 */
#ifndef BW_FS_IMAGE_H
#define BW_FS_IMAGE_H

#include "fs/fs.h"

/** The role of an image. */
enum bw_image_role {
    BW_IMAGE_UNUSED, /**< no superblock, another file system, or a duplicate of a device, which may
                        be read through another image (`alternative`) */
    BW_IMAGE_DEVICE, /**< a device of the file system */
    BW_IMAGE_SEED,   /**< a seed device, which has another fsid, but may be part of this file system
                      */
};

struct bw_disk;
struct bw_disk_superblock;

struct bw_image {
    char *path;      /**< The file, or its first part. */
    char *name;      /**< Messages call it by its path and container. */
    char *container; /**< what the device lies in, from outside in; NULL: the image is the device */
    char *content;   /**< contents other than a btrfs, if they are recognized; NULL: unknown */
    bool is_empty;   /**< zeros at the beginning and the end, or no bytes at all */
    unsigned partition;              /**< 0: not a partition, or not yet selected */
    uint64_t offset;                 /**< The partition begins at this byte of its disk. */
    struct bw_disk *disk;            /**< if it has a partition table that is used */
    struct bw_xlator *storage;       /**< the top of its layers */
    struct bw_superblock superblock; /**< valid unless `bad` is set */
    unsigned copy;                   /**< number of the superblock copy used */
    bool is_rebuilt;                 /**< the superblock was made from tree blocks */
    struct bw_error *bad;            /**< why there is no superblock; NULL: the image has one */
    enum bw_image_role role;
    bool has_failed;   /**< `bad` is the reason why the contents cannot be read */
    bool is_foreign;   /**< it is certainly not a device of a btrfs */
    bool is_known;     /**< the chunk tree contains this device */
    bool is_unclaimed; /**< `bad`, but its tree blocks may show which device it is */
    bool is_claimed;   /**< its tree blocks have shown which device it is; without a superblock, its
                        * generation is unknown */
    struct bw_xlator *top; /**< the child of the chunk map; not `storage` if that is one of several
                            * images of the device */
    unsigned alternative;  /**< number of this image of the device, the preferred one
                            * first; 0: it is the only one */
    unsigned alternatives_as_new; /**< if it is the first: how many of them are not older */
    bool is_clone; /**< a disk of which nothing is read, because copies of its devices are read */
    bool is_announced;  /**< the chunk map has received its devid */
    bool is_other_side; /**< unused: it does not agree with the device of bw_fs_options.side */
    bool is_stream;     /**< a send stream */
    bool has_mbr;       /**< its first sector ends with the signature of a partition table */
    bool is_dump; /**< a metadump of btrfs-image: tree blocks only, each at its logical address */
    size_t index; /**< index on the command line */
};

struct bw_image_set {
    struct bw_image *images;
    size_t count;
};

/** Reads the superblock of every child of the chunk map; the children have been started. If an
 * image is a disk, it is replaced by its selected partitions. Free with bw_images_free(). */
struct bw_error *bw_images_open(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_image_set *set);

/** Reads the BW_SUPERBLOCK_SIZE bytes of a superblock at an offset of a device. */
struct bw_error *bw_read_super(const struct bw_frame *frame, struct bw_xlator *storage,
                               uint64_t offset, void *block);

/** The same for a superblock that need not be there: false if the device ends before the end of it,
 * or cannot be read there. */
bool bw_try_read_super(struct bw_xlator *storage, uint64_t offset, void *block);

/** Reads the first copy of the superblock; false if the magic number is not there. Other parts of
 * the superblock may be damaged. */
bool bw_has_superblock(struct bw_xlator *storage, struct bw_disk_superblock *block);

/** How many bytes before its place a bad copy of the superblock is; 0 if it is not there. dd with
 * conv=noerror, but without sync, leaves out unreadable blocks. */
uint32_t bw_image_find_shift(const struct bw_image *image, uint64_t offset);
/** The end of a message about it. */
#define BW_IMAGE_SHIFTED \
    "; it is %" PRIu32 " bytes before its place: the image lacks bytes in front of it"

/** The path of the first file below a layer, or the name of its layer if it has none; freed by the
 * caller. NULL: out of memory. */
char *bw_image_path(const struct bw_xlator *layer);

/** Reads superblock copy 0, 1 or 2 of an image, and returns its offset. BW_ERROR_NOT_FOUND if the
 * image is too small for it, or not used. */
struct bw_error *bw_image_read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                    unsigned copy, struct bw_superblock *superblock,
                                    uint64_t *offset);

/** Reads the bytes of a copy, even if they are invalid. */
struct bw_error *bw_image_copy_bytes(const struct bw_image *image, unsigned copy,
                                     uint8_t bytes[BW_SUPERBLOCK_SIZE], uint64_t *offset);

/** Frees the set, but not the layers. */
void bw_images_free(struct bw_image_set *set);

/** Selects the file system of the first image with a superblock, or the file system that sprouted
 * from it. Sets the role of every image, and fs->superblock. Reports images that are foreign,
 * duplicate or stale. */
struct bw_error *bw_images_match(struct bw_fs *fs, struct bw_image_set *set);

/** Reports images whose superblock copy 0 still exists, but which begin with another file system:
 * it was made over the btrfs. Opening reports those whose copy 0 is lost. */
struct bw_error *bw_images_report_overwritten(struct bw_fs *fs, const struct bw_image_set *set);

/** Compares the histories of the devices of a matched set. If some have diverged, returns
 * BW_ERROR_DIVERGED or, with fs->side, leaves out the devices that do not agree with that one, and
 * sets fs->superblock. (sides.c) */
struct bw_error *bw_sides_choose(struct bw_fs *fs, struct bw_image_set *set);

/** The first generation known to differ between two devices of a file system that have diverged; 0
 * if their superblocks do not show that they have. */
uint64_t bw_superblocks_diverged(const struct bw_superblock *a, const struct bw_superblock *b);

/** Reports that the images that are still unclaimed are not used. */
void bw_images_refuse(struct bw_fs *fs);

/** Whether two superblocks are of devices of the same file system. */
bool bw_same_file_system(const struct bw_superblock *a, const struct bw_superblock *b);

/** Whether the superblock belongs to the file system of bw_fs_options.fsid; true if none was given.
 */
bool bw_is_wanted(const struct bw_fs *fs, const struct bw_superblock *superblock);

/** Whether the superblock is of a seed device. */
bool bw_is_seed(const struct bw_superblock *superblock);

/** Whether the uuid in the superblock of an image is exactly this one. */
bool bw_image_has_uuid(const struct bw_image *image, const uint8_t uuid[BW_UUID_SIZE]);

/** The image of the device with this id and uuid, or the metadump of all devices; NULL if it is
 * missing. Uuids are random: one that differs in a single bit, there or here, is the same. */
struct bw_image *bw_image_of_device(const struct bw_fs *fs, uint64_t devid,
                                    const uint8_t uuid[BW_UUID_SIZE]);

/** Whether a device of a matched set missed writes that others have. */
bool bw_image_is_stale(const struct bw_fs *fs, const struct bw_image *image);

#endif
