/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk whose results are structures and not text: for commands that have more to do with each
 * file than to name it. The tasks of the walk write entries as records of bytes (walk/writers.h)
 * into their ordered output, and here they are read again.
 */
#ifndef BW_WALK_ENTRIES_H
#define BW_WALK_ENTRIES_H

#include "base/buffer.h"
#include "btrfs-walk/walk.h"
#include "record/file.h"

/** Receives an entry, a view that ends with the call. An error ends the walk; BW_ERROR_STOPPED says
 * that there is enough. */
typedef struct bw_error *bw_walked_visitor(void *context, const struct bw_walked_file *file);

/**
 * Visits every entry that options->types, ->selection, ->start and the others choose (of those only
 * `rows`, `long_lines`, `escape`, `terminator`, `consume` and `context` are ignored), in the order
 * of the walk unless options->order is another: a directory before what is in it. From one thread
 * at a time, while others read on.
 *
 * The path is absolute from the top-level subvolume, without a '/' at its end; that of the top
 * directory is
 * "/". The inode is NULL only if it is lost, which has been reported. A directory that
 * stands for a subvolume which a snapshot does not have is number BW_EMPTY_DIRECTORY (fs/lookup.h)
 * with an inode as a mount would make it up. The property `compression` is not told. Errors as of
 * bw_walk().
 */
struct bw_error *bw_walk_entries(struct bw_fs *fs, const struct bw_walk_options *options,
                                 bw_walked_visitor *visit, void *context,
                                 struct bw_walk_summary *summary);

/** The same without looking up inodes, unless the selection needs them: much faster. */
struct bw_error *bw_walk_names(struct bw_fs *fs, const struct bw_walk_options *options,
                               bw_walked_visitor *visit, void *context,
                               struct bw_walk_summary *summary);

#endif
