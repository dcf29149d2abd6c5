/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths of all subvolumes at once. Each directory in any of these paths is looked up only once,
 * and no chain of parents is followed twice, even if it is long or chains cross. */
#ifndef BW_FS_SUBVOLUME_PATHS_H
#define BW_FS_SUBVOLUME_PATHS_H

#include "base/buffer.h"
#include "base/vector.h"
#include "fs/subvolume.h"

struct bw_fs;

struct bw_path_part {
    size_t name; /**< It begins here in paths->names. */
    uint16_t name_length;
    enum bw_part_state {
        BW_PART_UNMEASURED,
        BW_PART_MEASURED,
        BW_PART_WITHOUT_PATH,
        BW_PART_TOO_LONG, /**< its path would be longer than 16 KiB */
    } state;
    uint32_t above;  /**< index of the parent part, or UINT32_MAX */
    uint32_t length; /**< length of the path, with a '/' before each name; valid if measured */
};

BW_VECTOR(bw_path_parts, struct bw_path_part);

/** All zeros is an empty set. */
struct bw_subvolume_paths {
    struct bw_path_parts parts; /**< first the subvolumes, in the order of their table, then
                                 * directories */
    struct bw_buffer names;
};

/** Finds the directories in the paths of all subvolumes. Reports those that cannot be read. Fails
 * only if memory runs out. */
struct bw_error *bw_subvolume_paths_load(struct bw_subvolume_paths *paths, struct bw_fs *fs);

/** Replaces the contents of `path` with the path of a subvolume, as from bw_subvolume_path(). If it
 * has none, `path` becomes empty, and this is reported unless the subvolume is being deleted. Fails
 * only if memory runs out. */
struct bw_error *bw_subvolume_paths_get(struct bw_subvolume_paths *paths, struct bw_fs *fs,
                                        const struct bw_subvolume *subvolume,
                                        struct bw_buffer *path);

void bw_subvolume_paths_free(struct bw_subvolume_paths *paths);

#endif
