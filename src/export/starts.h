/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the walks of a feed start: the paths that somebody has named, without those that lead to
 * what others of them have anyway, under whatever name. So nothing comes twice.
 */
#ifndef BW_EXPORT_STARTS_H
#define BW_EXPORT_STARTS_H

#include "base/buffer.h"
#include "btrfs-walk/walk.h"

struct bw_fs;

/** Starts, in the order in which they were named. */
struct bw_starts {
    const char **paths; /**< views */
    /** For each: entries of which the absolute path has fewer names come with another start. Not 0
     * only if the depth of walks is limited. */
    size_t *least_names;
    size_t count;
};

/** Finds them among `paths`, which the walks will take with these options. A path that leads
 * nowhere stays, so that the walk can tell. Fails only for want of memory. */
struct bw_error *bw_starts_find(struct bw_fs *fs, const struct bw_walk_options *options,
                                const char *const *paths, size_t count, struct bw_starts *starts);

/** Frees what it holds. */
void bw_starts_free(struct bw_starts *starts);

/** How many names an absolute path has; that of the top has none. */
size_t bw_starts_names(const char *path, size_t length);

#endif
