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
#include "btrfs-walk/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times have 64 bits. On 32-bit machines, build programs with -D_FILE_OFFSET_BITS=64 and
 * -D_TIME_BITS=64; pkg-config prints these flags. */
typedef char bw_times_have_64_bits[sizeof(time_t) == 8 ? 1 : -1];

struct bw_fs;

/** A subvolume or snapshot. */
struct bw_subvolume;

/** Facts about a subvolume. Source: struct btrfs_root_item and btrfs_root_ref in the kernel's
 * uapi/linux/btrfs_tree.h. */
struct bw_subvolume_info {
    uint64_t id;
    uint64_t parent;    /**< id of the subvolume that contains its entry; 0: no entry, as for the
                           top-level one and deleted ones */
    uint64_t directory; /**< inode of the directory of that entry */
    const char *name;   /**< name of that entry, raw bytes, not terminated */
    size_t name_length;
    uint64_t generation;                 /**< transaction that changed it last */
    uint64_t flags;                      /**< BW_ROOT_READ_ONLY, BW_ROOT_DEAD */
    uint64_t bytes_used;                 /**< bytes of its tree blocks */
    uint64_t last_snapshot;              /**< generation of the newest snapshot of it */
    uint64_t ctransid, otransid;         /**< transactions of the last change, of creation */
    uint64_t stransid, rtransid;         /**< transactions of send and of receive */
    struct timespec ctime, otime;        /**< times of the last change, of creation */
    struct timespec stime, rtime;        /**< times of send and of receive */
    uint8_t uuid[BW_UUID_SIZE];          /**< all zeros if it has none */
    uint8_t parent_uuid[BW_UUID_SIZE];   /**< UUID of the subvolume that it is a snapshot of; zeros:
                                            not a snapshot */
    uint8_t received_uuid[BW_UUID_SIZE]; /**< UUID of the subvolume that it was received from;
                                            zeros: not received */
    uint64_t root; /**< logical address of its root block; 0: made by log replay */
    uint8_t level; /**< of its root block */
    bool read_only, is_snapshot, is_deleted; /**< deleted ones may be incomplete */
    bool is_default;                         /**< it is mounted by default */
    const char *path;   /**< as from bw_subvolume_path(), not terminated; NULL if it has none; only
                           set by bw_subvolume_infos_next() */
    size_t path_length; /**< bytes of `path` */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/** Iterates over subvolumes by ascending id, including those that are being deleted. Returns the
 * first one for NULL, and NULL after the last. */
const struct bw_subvolume *bw_subvolume_next(const struct bw_fs *fs,
                                             const struct bw_subvolume *previous);

/** The id of a subvolume. */
uint64_t bw_subvolume_id(const struct bw_subvolume *subvolume);

/** The subvolume with an id; NULL if it does not exist. */
const struct bw_subvolume *bw_subvolume_by_id(const struct bw_fs *fs, uint64_t id);

/** The subvolume that `text` names: an id, a path from the top-level subvolume, or "default" for
 * the default subvolume. BW_ERROR_NOT_FOUND if it does not exist. */
struct bw_error *bw_subvolume_by_name(struct bw_fs *fs, const char *text,
                                      const struct bw_subvolume **subvolume);

/** The subvolume with a UUID. BW_ERROR_NOT_FOUND if it does not exist; other errors if the root
 * tree cannot be read. */
struct bw_error *bw_subvolume_by_uuid(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **subvolume);

/** Reads the facts about a subvolume. `info->name` belongs to the file system. Fails if its root
 * item cannot be read; members that are in memory are set even then. */
struct bw_error *bw_subvolume_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_subvolume_info *info);

/**
 * Whether a subvolume was changed after it was received. It still has the received UUID, but other
 * contents than the subvolume of that UUID at the sender, so incremental streams that are based on
 * it do not fit other copies of that subvolume. The transaction of the last change is not enough to
 * detect this: the kernel writes the data of received files when the subvolume is already complete.
 * So the inodes that were written later are examined: a change sets the time of change of at least
 * one of them to a time after receiving. Blocks that cannot be read are ignored. `info` is from
 * bw_subvolume_get(). Fails only if memory runs out.
 */
struct bw_error *bw_subvolume_is_changed(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                         const struct bw_subvolume_info *info, bool *is_changed);

/** The facts about all subvolumes. One thread at a time may use it. */
struct bw_subvolume_infos;

/** Starts reading them. With `paths`, the directories above subvolumes are read as well. The caller
 * owns `*infos`, which the file system must outlive; it is NULL after an error. Fails only if
 * memory runs out. */
struct bw_error *bw_subvolume_infos_open(struct bw_fs *fs, bool paths,
                                         struct bw_subvolume_infos **infos);

/** The next subvolume, by ascending id, including those that are being deleted; NULL after the last
 * one. Valid until the next call. Losses are reported; if the path of a subvolume cannot be found,
 * it is NULL. */
const struct bw_subvolume_info *bw_subvolume_infos_next(struct bw_subvolume_infos *infos);

/** Ends reading; NULL is allowed. Returns the error that ended it before the last subvolume:
 * BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_subvolume_infos_close(struct bw_subvolume_infos *infos);

/**
 * The absolute path of its top directory from the top-level subvolume. Only "/" itself ends with a
 * '/'. `*path` ends with a NUL that `*length` does not count, and is freed by the caller with
 * free(); `length` may be NULL. BW_ERROR_NOT_FOUND if the subvolume has no path, BW_ERROR_CORRUPT
 * if a directory above it cannot be read.
 */
struct bw_error *bw_subvolume_path(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   char **path, size_t *length);

/*
 * Quotas: the space that subvolumes and groups of them use, and its limits. Full quotas count the
 * space that each group reaches; simple quotas count the space that the subvolumes of a group have
 * allocated. Everything comes from the quota tree. Source: struct btrfs_qgroup_*_item in the
 * kernel's uapi/linux/btrfs_tree.h.
 */

/** Limits that are set: bits of bw_qgroup_info.limits. */
enum {
    BW_QGROUP_LIMITS_REFERENCED = 1,
    BW_QGROUP_LIMITS_EXCLUSIVE = 2,
};

/** The two parts of the id of a group, which is written LEVEL/NUMBER. Groups of level 0 have the
 * numbers of the subvolumes that they count. */
#define BW_QGROUP_LEVEL(id)  ((uint64_t)(id) >> 48)
#define BW_QGROUP_NUMBER(id) ((uint64_t)(id) & ((UINT64_C(1) << 48) - 1))

/** The state of quotas as a whole. All zeros if the file system has none. */
struct bw_quota_status {
    bool exists;                /**< there is a quota tree */
    bool is_known;              /**< its status could be read: the next members are valid */
    bool enabled;               /**< the kernel keeps the numbers up to date */
    bool simple;                /**< simple quotas */
    bool rescanning;            /**< a rescan is recounting all numbers */
    bool inconsistent;          /**< the numbers are wrong until the next rescan */
    uint64_t version;           /**< of the format */
    uint64_t generation;        /**< transaction that wrote the status */
    uint64_t flags;             /**< BW_QGROUP_STATUS_* */
    uint64_t rescan;            /**< logical address that a rescan has reached */
    uint64_t enable_generation; /**< simple quotas: older extents are not counted; 0: unknown */
    uint64_t reserved[4];       /**< zeros: room for more members */
};

/** A group. All numbers are in bytes. Level and number of an id are those of "LEVEL/NUMBER"; the
 * groups of level 0 have the numbers of the subvolumes that they count. */
struct bw_qgroup_info {
    uint64_t id;     /**< as stored: the level in the upper 16 bits, the number below them */
    unsigned level;  /**< 0 to 65535 */
    uint64_t number; /**< below 2^48 */
    const struct bw_subvolume *subvolume; /**< NULL: a group of a higher level, or the subvolume no
                                             longer exists */
    bool is_counted;                      /**< the next five members are known */
    uint64_t generation;                  /**< transaction in which they were counted */
    uint64_t referenced, referenced_compressed; /**< space that the group reaches */
    uint64_t exclusive, exclusive_compressed;   /**< space that only the group reaches */
    uint64_t limits;                            /**< BW_QGROUP_LIMITS_*, of the kernel's flags */
    uint64_t max_referenced, max_exclusive;     /**< valid if `limits` has their bits */
    uint64_t reserved_referenced, reserved_exclusive;
    const uint64_t *members; /**< ids of its child groups, ascending */
    size_t member_count;
    const uint64_t *parents; /**< ids of its parent groups, ascending */
    size_t parent_count;
    const char *path; /**< path of the subvolume, as from bw_subvolume_path(), not terminated; NULL
                         if it has none, or paths were not requested */
    size_t path_length;   /**< bytes of `path` */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Reads the state of quotas. Losses are reported. Fails only if memory runs out. */
struct bw_error *bw_fs_quota_status(struct bw_fs *fs, struct bw_quota_status *status);

/** All groups. One thread at a time may use it. */
struct bw_qgroups;

/** Reads the quota tree; without one, there are no groups. Losses are reported. `paths`: with the
 * paths of subvolumes. The caller owns `*qgroups`, which the file system must outlive; it is NULL
 * after an error. Fails only if memory runs out. */
struct bw_error *bw_qgroups_open(struct bw_fs *fs, bool paths, struct bw_qgroups **qgroups);

/** The next group, by ascending id; NULL after the last one. Valid until the next call. */
const struct bw_qgroup_info *bw_qgroups_next(struct bw_qgroups *qgroups);

/** Frees them; NULL is allowed. Returns the error that ended the iteration before the last group:
 * BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_qgroups_close(struct bw_qgroups *qgroups);

/*
 * User and group names from the image's own /etc/passwd and /etc/group. The files of this machine
 * are never used.
 */

/** Names and numbers. They never change, so several threads may use them. */
struct bw_user_names;

/**
 * Reads the names from the first subvolume with an /etc/passwd: `from` (may be NULL), the default
 * subvolume, the top-level one, and then all others except snapshots, by id. So the names in "@"
 * are found for "@home", too. A file system without any /etc/passwd is no error: all names are
 * unknown.
 *
 * At most 8 MiB of each file are read. Malformed lines are skipped, and so are names longer than
 * 255 bytes or with spaces, control characters or invalid UTF-8. If several lines have the same
 * name or number, the first counts. The caller owns `*user_names`. BW_ERROR_NO_MEMORY; unreadable
 * files are an error, too.
 */
struct bw_error *bw_user_names_open(struct bw_fs *fs, const struct bw_subvolume *from,
                                    struct bw_user_names **user_names);

/** Frees them; NULL is allowed. */
void bw_user_names_close(struct bw_user_names *user_names);

/** The path of the subvolume with /etc/passwd, as a prefix of paths ("" for the top-level one). */
const char *bw_user_names_place(const struct bw_user_names *user_names);

/** The name of a user or a group; NULL if it has none, or `user_names` is NULL. */
const char *bw_user_names_user(const struct bw_user_names *user_names, uint32_t number);
const char *bw_user_names_group(const struct bw_user_names *user_names, uint32_t number);

/** The number of a name; false if the name is unknown. */
bool bw_user_names_find_user(const struct bw_user_names *user_names, const char *name,
                             uint32_t *number);
bool bw_user_names_find_group(const struct bw_user_names *user_names, const char *name,
                              uint32_t *number);

#ifdef __cplusplus
}
#endif
#endif
