/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Quotas: how much subvolumes and groups of them use, and how much they may. Full quotas count what
 * each group reaches; simple ones count what the subvolumes of a group have allocated. All of it is
 * read from the quota tree. Source: struct btrfs_qgroup_*_item in the kernel's
 * uapi/linux/btrfs_tree.h.
 */
#ifndef BTRFS_WALK_QUOTA_H
#define BTRFS_WALK_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_subvolume;

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
    bool is_known;              /**< its status could be read: the next members mean something */
    bool enabled;               /**< the kernel keeps the numbers up to date */
    bool simple;                /**< simple quotas */
    bool rescanning;            /**< all numbers are being counted anew */
    bool inconsistent;          /**< the numbers are wrong until the next rescan */
    uint64_t version;           /**< of the format */
    uint64_t generation;        /**< transaction that wrote the status */
    uint64_t flags;             /**< BTRFS_QGROUP_STATUS_FLAG_* */
    uint64_t rescan;            /**< logical address that a rescan has reached */
    uint64_t enable_generation; /**< simple quotas: older extents are not counted; 0: not known */
    uint64_t reserved[4];       /**< zeros: room for more members */
};

/** A group. All numbers are in bytes. Level and number of an id are those of "LEVEL/NUMBER"; the
 * groups of level 0 have the numbers of the subvolumes that they count. */
struct bw_qgroup_info {
    uint64_t id;     /**< as stored: the level in the upper 16 bits, the number below them */
    unsigned level;  /**< 0 to 65535 */
    uint64_t number; /**< below 2^48 */
    const struct bw_subvolume *subvolume; /**< NULL: a higher level, or the subvolume is gone */
    bool is_counted;                      /**< the next five members are known */
    uint64_t generation;                  /**< transaction in which they were counted */
    uint64_t referenced, referenced_compressed; /**< what the group reaches */
    uint64_t exclusive, exclusive_compressed;   /**< what nothing but the group reaches */
    uint64_t limits;                            /**< BW_QGROUP_LIMITS_*, of the kernel's flags */
    uint64_t max_referenced, max_exclusive;     /**< meaningful if `limits` has their bits */
    uint64_t reserved_referenced, reserved_exclusive;
    const uint64_t *members; /**< ids of the groups in it, ascending */
    size_t member_count;
    const uint64_t *parents; /**< ids of the groups that it is in, ascending */
    size_t parent_count;
    const char *path;     /**< of the subvolume, as bw_subvolume_path() gives it, not terminated;
                               NULL if there is none, or paths are not wanted */
    size_t path_length;   /**< bytes of `path` */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Reads the state of quotas. What cannot be read is reported. Fails only if memory runs out. */
struct bw_error *bw_fs_quota_status(struct bw_fs *fs, struct bw_quota_status *status);

/** Receives a group; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_qgroup_taker(void *context, const struct bw_qgroup_info *qgroup);

/** Hands out all groups, by ascending id; none if there is no quota tree. `paths`: with the paths
 * of subvolumes, as bw_fs_subvolumes(). What cannot be read is reported. */
struct bw_error *bw_fs_qgroups(struct bw_fs *fs, bool paths, bw_qgroup_taker *take, void *context);

#ifdef __cplusplus
}
#endif
#endif
