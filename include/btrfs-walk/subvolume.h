/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subvolumes and snapshots. Their list is read once, when the file system is opened; the handles
 * belong to the file system and stay valid until it is closed. All functions may be called by
 * several threads at once.
 */
#ifndef BTRFS_WALK_SUBVOLUME_H
#define BTRFS_WALK_SUBVOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times have 64 bits. On machines of 32 bits, programs are built with -D_FILE_OFFSET_BITS=64 and
 * -D_TIME_BITS=64, as pkg-config tells. */
typedef char bw_times_have_64_bits[sizeof(time_t) == 8 ? 1 : -1];

struct bw_fs;

/** A subvolume or snapshot. */
struct bw_subvolume;

/** Id of the top-level subvolume, which every file system has. */
#define BW_TOP_SUBVOLUME UINT64_C(5)

/** Bytes of a UUID. */
enum { BW_UUID_SIZE = 16 };

/** What is known of a subvolume. Source: struct btrfs_root_item and btrfs_root_ref in the kernel's
 * uapi/linux/btrfs_tree.h. */
struct bw_subvolume_info {
    uint64_t id;
    uint64_t parent;    /**< id of the subvolume that contains its entry; 0: it has no entry, as the
                             top-level one and deleted ones */
    uint64_t directory; /**< inode of the directory of that entry */
    const char *name;   /**< name of that entry, raw bytes, not terminated */
    size_t name_length;
    uint64_t generation;                     /**< transaction that changed it last */
    uint64_t flags;                          /**< BTRFS_ROOT_SUBVOL_*; bit 0: read-only */
    uint64_t bytes_used;                     /**< bytes of its tree blocks */
    uint64_t last_snapshot;                  /**< generation of the newest snapshot of it */
    uint64_t ctransid, otransid;             /**< transactions of the last change, of creation */
    uint64_t stransid, rtransid;             /**< transactions of send and of receive */
    struct timespec ctime, otime;            /**< times of the last change, of creation */
    struct timespec stime, rtime;            /**< times of send and of receive */
    uint8_t uuid[BW_UUID_SIZE];              /**< all zeros if it has none */
    uint8_t parent_uuid[BW_UUID_SIZE];       /**< of what it is a snapshot of; zeros: of nothing */
    uint8_t received_uuid[BW_UUID_SIZE];     /**< of what it was received from; zeros: of nothing */
    uint64_t root;                           /**< logical address of its root block; 0: replaying
                                                  the log has made it */
    uint8_t level;                           /**< of its root block */
    bool read_only, is_snapshot, is_deleted; /**< deleted ones may be gone in part */
    bool is_default;                         /**< the one that is mounted by default */
    const char *path;     /**< as bw_subvolume_path() gives it, not terminated; NULL if it has none;
                               set by bw_fs_subvolumes() alone */
    size_t path_length;   /**< bytes of `path` */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/** Iterates: the subvolume with the next higher id, the first one after NULL; NULL after the last.
 * Subvolumes that are being deleted are among them. */
const struct bw_subvolume *bw_subvolume_next(const struct bw_fs *fs,
                                             const struct bw_subvolume *previous);

/** The id of a subvolume. */
uint64_t bw_subvolume_id(const struct bw_subvolume *subvolume);

/** The subvolume with an id; NULL if there is none. */
const struct bw_subvolume *bw_subvolume_by_id(const struct bw_fs *fs, uint64_t id);

/** The subvolume that `text` names: an id, a path from the top-level subvolume, or "default" for
 * the one that is mounted by default. BW_ERROR_NOT_FOUND if there is none. */
struct bw_error *bw_subvolume_by_name(struct bw_fs *fs, const char *text,
                                      const struct bw_subvolume **subvolume);

/** The subvolume with a UUID. BW_ERROR_NOT_FOUND if there is none; other errors if the root tree
 * cannot be read. */
struct bw_error *bw_subvolume_by_uuid(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **subvolume);

/** Reads what is known of a subvolume. `info->name` belongs to the file system. Errors if its root
 * item cannot be read; the members that the file system remembers are set even then. */
struct bw_error *bw_subvolume_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_subvolume_info *info);

/** Receives a subvolume; the view ends with the call. An error ends the iteration and is returned.
 */
typedef struct bw_error *bw_subvolume_taker(void *context, const struct bw_subvolume_info *info);

/**
 * Hands out what is known of all subvolumes, by ascending id, those that are being deleted among
 * them. That takes one pass over the root tree and, if `paths` is set, one step for each directory
 * on the way to a subvolume. What cannot be read is reported: a path that cannot be found is NULL.
 */
struct bw_error *bw_fs_subvolumes(struct bw_fs *fs, bool paths, bw_subvolume_taker *take,
                                  void *context);

/**
 * The absolute path of its top directory from the top-level subvolume, without a '/' at its end but
 * for "/" itself. `*path` ends with a NUL that `*length` does not count, and is freed by the caller
 * with free(); `length` may be NULL. BW_ERROR_NOT_FOUND if the subvolume has no path,
 * BW_ERROR_CORRUPT if a directory on the way cannot be read.
 */
struct bw_error *bw_subvolume_path(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   char **path, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
