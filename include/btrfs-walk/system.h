/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The installed systems of a file system: subvolumes with an os-release(5), which of them is in
 * use, which are snapshots of it, and which belong to containers. Everything comes from files in
 * the image: os-release, fstab(5), and the records of Snapper, Timeshift, Docker and Podman.
 */
#ifndef BTRFS_WALK_SYSTEM_H
#define BTRFS_WALK_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The use of a system. */
enum bw_system_kind {
    BW_SYSTEM_ROOT,      /**< an installed system */
    BW_SYSTEM_SNAPSHOT,  /**< an older or other version of an installed system */
    BW_SYSTEM_CONTAINER, /**< the files of a container */
    BW_SYSTEM_IMAGE,     /**< an image that containers are made from */
};

/** "system", "snapshot", "container" or "image". */
const char *bw_system_kind_name(enum bw_system_kind kind);

/** Why a system counts as the current one: the first of these that holds for any. */
enum bw_system_reason {
    BW_SYSTEM_NOT_CURRENT,
    BW_SYSTEM_IS_DEFAULT, /**< it is the default subvolume */
    BW_SYSTEM_IN_FSTAB,   /**< an fstab mounts it at /; of several such systems, it is the newest */
    BW_SYSTEM_IS_ONLY,    /**< it is the only system that is not a snapshot */
    BW_SYSTEM_IS_NEWEST,  /**< it was changed last */
};

/** "default", "fstab", "only" or "newest"; NULL for BW_SYSTEM_NOT_CURRENT. */
const char *bw_system_reason_name(enum bw_system_reason reason);

/** A line of an fstab that mounts a subvolume of this file system, or probably does: a line with
 * the name of a device counts, too. */
struct bw_system_mount {
    const char *mount_point;              /**< raw bytes, ends with NUL */
    const char *subvolume_path;           /**< as in the fstab; NULL: the default subvolume */
    const struct bw_subvolume *subvolume; /**< NULL if it does not exist */
    uint64_t reserved[2];                 /**< zeros: room for more members */
};

/** A system. Texts are raw bytes and end with NUL; those from files of the image have at most 255
 * bytes. */
struct bw_system_info {
    const struct bw_subvolume *subvolume;
    const char *path; /**< of the subvolume; NULL if it has none */
    const char *name; /**< PRETTY_NAME: "Debian GNU/Linux 12 (bookworm)"; if there is none, NAME
                         or ID; NULL: unknown */
    const char *os;   /**< ID: "debian"; NULL: unknown */
    const char *os_version; /**< VERSION_ID: "12"; NULL: unknown */
    enum bw_system_kind kind;
    enum bw_system_reason current;
    bool is_default;
    bool is_snapshot; /**< the subvolume was made as a snapshot, perhaps to be used */
    bool read_only;
    const char *tool;  /**< what made the snapshot or container: "snapper", "timeshift", "btrbk",
                          "docker", "podman", "machined", "lxd", "incus"; NULL: unknown */
    const char *title; /**< description of a snapshot, or name of a container; NULL: none */
    const struct bw_subvolume *system;    /**< the installed system of which it is a version; an
                                             installed system itself; NULL for containers */
    uint64_t generation;                  /**< transaction that changed it last */
    struct timespec ctime, otime;         /**< times of the last change, of creation */
    const struct bw_system_mount *mounts; /**< from its fstab, in the order of the lines; only of
                                             writable ones, unless all are read-only */
    size_t mount_count;
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/** All systems. One thread at a time may use it. */
struct bw_systems;

/**
 * Finds the systems. At most 10000 subvolumes are examined, and of every file only its beginning.
 * Files that cannot be read are reported as warnings; the systems are listed without the facts in
 * these files. The caller owns `*systems`, which the file system must outlive. Fails only if memory
 * runs out.
 */
struct bw_error *bw_systems_open(struct bw_fs *fs, struct bw_systems **systems);

/** The next system, by ascending id of its subvolume; NULL after the last one. Valid until
 * bw_systems_close(). */
const struct bw_system_info *bw_systems_next(struct bw_systems *systems);

/** Begins again with the first system. */
void bw_systems_rewind(struct bw_systems *systems);

/** The current system; NULL if no system was found. */
const struct bw_system_info *bw_systems_current(const struct bw_systems *systems);

/** Frees them; NULL is allowed. */
void bw_systems_close(struct bw_systems *systems);

#ifdef __cplusplus
}
#endif
#endif
