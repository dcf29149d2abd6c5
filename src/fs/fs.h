/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An open file system, as this folder and those above it see it; and the messages about it. */
#ifndef BW_FS_FS_H
#define BW_FS_FS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file_set.h"
#include "base/map.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/log.h"
#include "btrfs-walk/partition.h"
#include "fs/subvolume.h"
#include "graph/graph.h"

struct bw_image;
struct bw_stripe_tree;

struct bw_dir_entry;

/** Receives a name in the form of a directory entry, valid until the call returns. An error ends
 * the reading. */
typedef struct bw_error *bw_name_taker(void *context, const struct bw_dir_entry *entry);

/** Replacements for lost blocks, provided by recovery/. All zeros: no recovery. */
struct bw_recovery {
    struct bw_adopter adopter; /**< of leaves below lost nodes */
    /** Passes the names of a directory that other items than its own contain to `take`: names of
     * inodes in the order of the inodes, then names of subvolumes. The type is BW_FILE_UNKNOWN if
     * it is lost, too. Unreadable items are skipped. Safe from any thread, but `take` must not call
     * it again. Returns the error of `take`, or BW_ERROR_NO_MEMORY. */
    struct bw_error *(*names)(void *context, const struct bw_subvolume *subvolume,
                              uint64_t directory, bw_name_taker *take, void *taker);
    void (*destroy)(struct bw_recovery *recovery);
    void *context; /**< of `names` */
};

/** The trees with the checksums of data, by number: one, or several with the extent-tree-v2
 * feature, which divides them by block groups. None if the root tree does not have their
 * addresses. */
struct bw_checksum_trees {
    struct bw_tree *trees;
    size_t count, capacity;
};

/** Set by callers that need the partition tables instead of a file system. */
struct bw_table_visit {
    bw_table_taker *take;
    void *context;
};

struct bw_fs {
    struct bw_graph *graph;
    struct bw_servers *own_servers; /**< the servers of the graph, if the user gave none */
    /** Opens a file system the same way as this one, to read other generations of it; NULL if only
     * its images or its graph were opened. */
    struct bw_error *(*reopen)(const struct bw_fs_options *options, struct bw_fs **fs);
    const struct bw_table_visit *tables; /**< NULL: a file system is to be opened */
    struct bw_tree_reader reader;  /**< top of the graph; reader.top is NULL until it is wired */
    struct bw_block_memory memory; /**< tree blocks that replaying the log has changed */
    struct bw_log_inode *logged;   /**< inodes that it has changed, in order */
    size_t logged_count, logged_capacity;
    struct bw_superblock superblock;
    struct bw_image *images; /**< those given, in the order of the graph (image.h) */
    size_t image_count;
    struct bw_tree chunk_tree;
    struct bw_tree root_tree;
    struct bw_tree extent_tree;      /**< id 0 if the root tree does not say where it is */
    struct bw_tree block_group_tree; /**< likewise; without it the extent tree has block groups */
    struct bw_checksum_trees checksum_trees;
    struct bw_tree stripe_tree; /**< of places of data; id 0 if the root tree does not say where it
                                   is */
    struct bw_subvolume_table subvolumes;
    struct bw_file_set inputs; /**< files that are read, also those that are not used: never written
                                  to */
    struct bw_reporter reporter;                                    /**< the user's */
    struct bw_fs_status status;                                     /**< all but `damages` */
    bool ignores_log;                                               /**< bw_fs_options.log */
    bool scan;                                                      /**< bw_fs_options.scan */
    void (*searched)(void *context, uint64_t done, uint64_t total); /**< that of bw_fs_options */
    void *searched_context;
    struct bw_state_choice choice; /**< which state is opened */
    bool is_past;                  /**< it is not the present one */
    bool is_remade; /**< the root tree was rebuilt, and leads to the trees of the last commit */
    bool is_dump;   /**< it is read from a dump of btrfs-image: see bw_image.is_dump */
    bool no_data;   /**< that, or it was restored from one: inline data were overwritten, too */
    atomic_uint_fast64_t damages;
    pthread_mutex_t lost_lock;
    struct bw_recovery recovery;
    uint64_t seed; /**< of hashes of names: random, so images cannot contain names that collide
                        on purpose */
    struct bw_stripe_tree *stripes; /**< NULL without the feature */
    struct bw_map lost;     /**< addresses of blocks whose loss was reported; under the lock */
    struct bw_map reported; /**< hashes of other messages that are reported once, and of
                                 arguments of bw_fs_first_doubt(); under the lock */
};

/** Reports the loss of the block at `bytenr` once, even if several trees or searches meet it.
 * Consumes the error. Safe from any thread. */
void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error);

/** Whether this is the first call for a file, or with inode 0 for a subvolume, so that a message is
 * given once for each. Safe from any thread. */
bool bw_fs_first_doubt(struct bw_fs *fs, uint64_t tree, uint64_t inode);

/** Reports damage once that several walks of a tree meet, such as the walks of an extraction;
 * messages are compared. Consumes the error. Safe from any thread. */
void bw_fs_report_once(struct bw_fs *fs, struct bw_error *error);

/** Reports what an item range found to be lost, and takes its error. */
void bw_fs_report_range(struct bw_fs *fs, struct bw_item_range *range);

/** A hash of a name in a directory, good enough to tell names apart. */
uint64_t bw_fs_name_hash(const struct bw_fs *fs, uint64_t directory, const void *name,
                         size_t length);

/** The reader of the file system for look-ups that come back to the same leaves: those of names. */
static inline struct bw_tree_reader bw_fs_name_reader(const struct bw_fs *fs)
{
    struct bw_tree_reader reader = fs->reader;
    reader.keeps_leaves = true;
    return reader;
}

/** Receives an item, a view that ends with the call. */
typedef struct bw_error *bw_item_taker(void *context, const struct bw_item *item);

/** Passes the items in a range of keys, both ends included, to `take`. Lost items are reported and
 * skipped. Returns the error of `take`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_fs_items(struct bw_fs *fs, const struct bw_tree *tree, struct bw_key first,
                             struct bw_key last, bw_item_taker *take, void *context);

/** Passes all items of a tree to `take`, reading many leaves at once. Reports lost blocks, and
 * errors of `take`, and continues. `name` is the name of the tree in messages. Fails only if memory
 * runs out. */
struct bw_error *bw_fs_scan(struct bw_fs *fs, const struct bw_tree *tree, const char *name,
                            bw_item_taker *take, void *context);

/** Calls bw_find_leaf(), and reports lost blocks. */
struct bw_error *bw_fs_find_leaf(struct bw_fs *fs, struct bw_leaf_finder *finder,
                                 const struct bw_key *key);

/** Records this folder as the origin of an error, unless a layer created it. Returns the error. */
struct bw_error *bw_fs_sign(struct bw_error *error);

#endif
