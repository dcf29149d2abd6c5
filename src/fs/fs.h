/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An open file system, as the folders above src/fs see it. */
#ifndef BW_FS_FS_H
#define BW_FS_FS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file_set.h"
#include "base/map.h"
#include "btree/block.h"
#include "btrfs-walk/fs.h"
#include "fs/adoptions.h"
#include "fs/name_index.h"
#include "fs/subvolume.h"
#include "graph/graph.h"

struct bw_image;
struct bw_stripe_tree;

/** Those with the checksums of data, by number: one, or several with the extent-tree-v2 feature,
 * which parts them by block groups. None if the root tree does not say where they are. */
struct bw_checksum_trees {
    struct bw_tree *trees;
    size_t count, capacity;
};

struct bw_fs {
    struct bw_graph *graph;
    struct bw_tree_reader reader; /**< top of the graph; reader.top is NULL until it is wired */
    struct bw_superblock superblock;
    struct bw_image *images; /**< those given, in the order of the graph (image.h) */
    size_t image_count;
    struct bw_tree chunk_tree;
    struct bw_tree root_tree;
    struct bw_tree extent_tree; /**< id 0 if the root tree does not say where it is */
    struct bw_checksum_trees checksum_trees;
    struct bw_tree stripe_tree; /**< of places of data; id 0 if the root tree does not say where it
                                   is */
    struct bw_subvolume_table subvolumes;
    struct bw_file_set inputs; /**< files that are read, also those that are not used: never written
                                  to */
    struct bw_reporter reporter; /**< the user's */
    struct bw_fs_status status;  /**< all but `damages` */
    atomic_uint_fast64_t damages;
    pthread_mutex_t lost_lock;
    struct bw_name_index *names;    /**< where entries of directories are lost */
    struct bw_adoptions *adoptions; /**< where nodes of trees are lost */
    struct bw_stripe_tree *stripes; /**< NULL without the feature */
    struct bw_map lost; /**< addresses of blocks whose loss was reported; under the lock */
    struct bw_map doubtful; /**< files of which bw_fs_first_doubt() was asked; under the lock */
};

/** Tells the user something and counts it; takes the error. Safe from any thread. */
void bw_fs_report(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error);

#endif
