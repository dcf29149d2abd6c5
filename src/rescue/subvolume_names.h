/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where subvolumes have their names, without a root tree: the directory entries that lead to them.
 * A scan collects entries of all generations; those that the present trees have count. An entry is
 * written by the tree that it belongs to. A snapshot inherits those of its origin, which lead
 * nowhere: they are older than the snapshot.
 */
#ifndef BW_RESCUE_SUBVOLUME_NAMES_H
#define BW_RESCUE_SUBVOLUME_NAMES_H

#include <pthread.h>

#include "base/buffer.h"
#include "rescue/tree_roots.h"

/** A directory entry that leads to a subvolume. */
struct bw_subvolume_name {
    uint64_t subvolume;  /**< to which it leads */
    uint64_t parent;     /**< tree of the leaf in which it was found */
    uint64_t directory;  /**< inode there */
    uint64_t index;      /**< offset of its DIR_INDEX key */
    uint64_t generation; /**< transaction that made the entry */
    size_t at;           /**< of its name, in `bytes` */
    uint16_t length;     /**< of its name */
};

/** Entries. To be started with bw_subvolume_names_init(). */
struct bw_subvolume_names {
    struct bw_subvolume_name *items;
    size_t count, capacity;
    struct bw_buffer bytes;
    pthread_mutex_t lock;
};

void bw_subvolume_names_init(struct bw_subvolume_names *names);
void bw_subvolume_names_free(struct bw_subvolume_names *names);

/** Adds the entries of a leaf of a subvolume. Safe from any thread. False if memory ran out. */
bool bw_subvolume_names_add(struct bw_subvolume_names *names, uint64_t tree,
                            const struct bw_node *leaf);

/** When a tree was made, if it is a snapshot; 0: it is none, or that is not known. */
typedef uint64_t bw_snapshot_time(void *context, uint64_t tree);

/** Keeps one entry for each subvolume, ascending: that which the present trees have, and which is
 * not inherited. `*lost` is set if some of them cannot be read. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_subvolume_names_settle(const struct bw_fs *fs,
                                           const struct bw_tree_roots *roots,
                                           bw_snapshot_time *time, void *context,
                                           struct bw_subvolume_names *names, bool *lost);

/** The name of a subvolume; NULL if it has none. Once settled. */
const struct bw_subvolume_name *bw_subvolume_name_of(const struct bw_subvolume_names *names,
                                                     uint64_t subvolume);

#endif
