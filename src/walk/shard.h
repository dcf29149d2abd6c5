/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shards: a walk that lists only one of N disjoint parts of all entries, and reads little else.
 *
 * Small trees belong to one shard as a whole. A large tree is divided by its nodes of level 1:
 * their leaves are cut into parts, which are shared out. A shard scans its parts: it reads
 * the leaves that may contain DIR_INDEX items, and looks up the paths of these directories in the
 * inodes. In many trees, large areas contain files only. Leaves there look as if they contained
 * small directories, so a scan would have to read all of them. Therefore a node below which hardly
 * any leaf begins with an entry is sparse: it is not scanned. The entries of a directory that are
 * below a sparse node belong to the shard that lists the directory's own entry, and which finds
 * them like any other walk.
 */
#ifndef BW_WALK_SHARD_H
#define BW_WALK_SHARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/number_set.h"
#include "fs/subvolume.h"
#include "recovery/recovery.h"

/** One of `count` parts, from 1 on. `count` is 0 if nothing is divided. */
struct bw_shard {
    unsigned number, count;
};

/* Dividing subvolumes. */

/** The share of a subvolume's tree that a shard has. */
enum bw_share { BW_SHARE_NONE, BW_SHARE_WHOLE, BW_SHARE_PART };

/** A division. All subvolumes are passed to bw_division_next() in the order of the table. */
struct bw_division {
    struct bw_shard shard;
    uint64_t total, whole; /**< bytes of all trees, and of those that are not divided */
    uint64_t before;       /**< bytes of those among the latter that have been passed */
};

/** Divides all subvolumes; with `only`, just that one. */
struct bw_division bw_division_of(const struct bw_subvolume_table *table,
                                  const struct bw_subvolume *only, struct bw_shard shard);

/** The share that the shard has of the next subvolume. */
enum bw_share bw_division_next(struct bw_division *division, const struct bw_subvolume *subvolume);

/* Dividing a tree. */

/** The nodes of level 1 of a tree. Density is found out when it is needed, by any thread. */
struct bw_shard_nodes {
    const struct bw_tree_reader *reader;
    struct bw_block_pointer *pointers; /**< in the order of keys; of a leaf, if that is the root */
    size_t count, capacity;
    atomic_uchar *density;
    /** Of each node: directories without a known path, whose entries below the node were not
     * listed although they can be read. Below another node, which other paths lead to, entries of
     * the same directory may have been listed. */
    struct bw_number_set *unresolved;
    const struct bw_shard_cuts *cuts;
};

/** Where trees are cut: at the first keys of nodes, and between these. Trees that share leaves have
 * the same cuts, so only one shard reads a shared leaf. */
struct bw_shard_cuts {
    struct bw_shard shard;
    struct bw_key *keys;
    size_t count;
    uint32_t parts; /**< into which the leaves of a node are cut in addition */
    /** Some nodes are sparse, so the shards take the parts in turn, to get similar work. Otherwise
     * each takes neighbours, which have directories in common. */
    bool in_turn;
};

/** Receives an unreadable node, as bw_scan.lost. */
typedef struct bw_error *bw_lost_node(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error);

/** Finds the nodes. `lost` receives unreadable nodes above them. To be freed also after an error.
 */
struct bw_error *bw_shard_nodes_load(struct bw_shard_nodes *nodes,
                                     const struct bw_tree_reader *reader,
                                     const struct bw_tree *tree, bw_lost_node *lost, void *context);
void bw_shard_nodes_free(struct bw_shard_nodes *nodes);

/** Adds an unresolved directory of the node that begins with this key. Only one thread at a time
 * may do so for a node. False if memory runs out. */
bool bw_shard_nodes_add_unresolved(struct bw_shard_nodes *nodes, const struct bw_key *first,
                                   uint64_t directory);

/** Whether any directory is unresolved. */
bool bw_shard_nodes_have_unresolved(const struct bw_shard_nodes *nodes);

/** Makes the cuts: at the keys of nodes and between these. With `shared`, all cuts are keys, so
 * that other trees with the same leaves are cut at the same leaves. */
struct bw_error *bw_shard_cuts_make(struct bw_shard_cuts *cuts, struct bw_shard_nodes *nodes,
                                    struct bw_shard shard, bool shared);
void bw_shard_cuts_free(struct bw_shard_cuts *cuts);

/** Whether a leaf belongs to the shard: the one with the first key `first`, and with this number of
 * the `count` leaves below its node. An unreadable node belongs to it with the number 0. `*cut` is
 * 0, or as another call left it. */
bool bw_shard_has(const struct bw_shard_nodes *nodes, const struct bw_key *first, uint32_t number,
                  uint32_t count, size_t *cut);

/** The first of the leaves after `leaf`, below `node`, that may belong to another shard than
 * `leaf`, for which `cut` is as bw_shard_has() left it. */
uint32_t bw_shard_range_end(const struct bw_shard_nodes *nodes, const struct bw_node *node,
                            uint32_t leaf, size_t cut);

/** Whether leaves of a node with keys from `first` up to `end` may belong to the shard. */
bool bw_shard_has_any(const struct bw_shard_nodes *nodes, const struct bw_key *first,
                      const struct bw_key *end);

/** Whether all leaves of such a node belong to the shard, if that is easily seen. */
bool bw_shard_has_all(const struct bw_shard_nodes *nodes, const struct bw_key *first,
                      const struct bw_key *end);

/** Trees that share leaves, and are alike. All shards add them in the same order. */
struct bw_shard_twins {
    struct bw_map nodes; /**< addresses of their nodes */
    bool are_dense;      /**< most of these nodes */
};

/** Adds a tree. If it shares at least half of its nodes with the others, it counts as equally
 * dense; otherwise, it is examined. */
struct bw_error *bw_shard_twins_add(struct bw_shard_twins *twins, struct bw_shard_nodes *nodes);

/** Whether it is worthwhile to divide a tree of `bytes`. Otherwise, because it is small or because
 * names are only a small part of it, each shard reads all names, and takes some inodes. `twins` is
 * NULL for a tree that shares no leaves, which otherwise becomes one of them. */
struct bw_error *bw_shard_divides(struct bw_shard_nodes *nodes, uint64_t bytes,
                                  struct bw_shard shard, struct bw_shard_twins *twins,
                                  bool *divides);

/** The subvolume whose nodes are the cuts of all trees that share leaves; NULL if none does. */
const struct bw_subvolume *bw_shard_model(const struct bw_subvolume_table *table);

/** Whether the tree of a subvolume may share leaves with others. */
static inline bool bw_shard_shares(const struct bw_subvolume *subvolume)
{
    return subvolume->is_snapshot || subvolume->tree.shared_until;
}

/** Whether a node that was read is sparse. */
bool bw_shard_is_sparse(const struct bw_node *node);

/** Whether the node that contains this key is sparse. An unreadable one is not. */
bool bw_shard_is_sparse_at(struct bw_shard_nodes *nodes, const struct bw_key *key);

/** Whether all entries of a directory are below nodes that are scanned. */
bool bw_shard_scans_directory(struct bw_shard_nodes *nodes, uint64_t inode);

/* Damage. If a path or a leaf cannot be read, the shard also walks the whole subvolume, which
 * recovers lost names, and lists the missing entries. */

/** The entries that a shard could not list. */
struct bw_missing {
    struct bw_shard_nodes *nodes;
    struct bw_lost_list lost;      /**< ranges of keys in blocks of the shard */
    struct bw_number_set queued;   /**< directories the shard has walked below sparse nodes */
    struct bw_number_set followed; /**< directories whose entry was missing: see above */
    pthread_mutex_t lock;          /**< of `followed` */
};

/** Whether an entry of a directory is missing: in a leaf below the node `pointer`, see
 * bw_shard_has(), or in the adopted leaf `pointer`. */
bool bw_missing_has(struct bw_missing *missing, uint64_t directory,
                    const struct bw_block_pointer *pointer, const struct bw_key *first,
                    uint32_t number, uint32_t count);

/** Whether a name that was recovered is missing. `lost` is all that the walk could not read. If the
 * index of the name is unknown, it counts as lost with the first lost entries of its directory. An
 * entry that can be read is found by its name, too, if its directory was not known before. */
bool bw_missing_has_name(struct bw_missing *missing, const struct bw_lost_list *lost,
                         const struct bw_lost_name *name);

/** Notes that a missing entry leads to a directory. False if memory runs out. */
bool bw_missing_follow(struct bw_missing *missing, uint64_t directory);

#endif
