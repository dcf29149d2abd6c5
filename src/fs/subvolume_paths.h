/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths of all subvolumes at once. Each directory in any of these paths is looked up once. No
 * chain of parents is followed twice, however long it is or however often chains cross. */
#ifndef BW_FS_SUBVOLUME_PATHS_H
#define BW_FS_SUBVOLUME_PATHS_H

#include "base/buffer.h"
#include "fs/subvolume.h"

struct bw_fs;
struct bw_path_part;

/** All zeros is empty. */
struct bw_subvolume_paths {
    struct bw_path_part *parts; /**< first the subvolumes, as in their table, then directories */
    size_t count, capacity;
    struct bw_buffer names;
};

/** Finds the directories in the paths of all subvolumes. Reports those that cannot be read; fails
 * only if memory runs out. */
struct bw_error *bw_subvolume_paths_load(struct bw_subvolume_paths *paths, struct bw_fs *fs);

/** Puts the path of a subvolume, as bw_subvolume_path() gives it, in place of what `path` holds:
 * nothing if it has none, which is reported unless it is being deleted. Fails only if memory runs
 * out. */
struct bw_error *bw_subvolume_paths_get(struct bw_subvolume_paths *paths, struct bw_fs *fs,
                                        const struct bw_subvolume *subvolume,
                                        struct bw_buffer *path);

/** Frees the memory. */
void bw_subvolume_paths_free(struct bw_subvolume_paths *paths);

#endif
