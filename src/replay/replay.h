/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replaying the log: changes that were fsynced after the last commit are applied to copies of tree
 * blocks in memory (btree/edit.h), as the kernel applies them to the trees on disk during a mount.
 * All readers of trees see the result.
 *
 * The log of a subvolume is applied in three passes (apply.c): inodes; directory entries; and names
 * of inodes, attributes and extents. All logs complete a pass before the next one begins. At the
 * end, inodes that have gained or lost names get their link counts. Source: fs/btrfs/tree-log.c of
 * the kernel, from btrfs_recover_log_trees() on; comments contain the names of the corresponding
 * functions.
 */
#ifndef BW_REPLAY_REPLAY_H
#define BW_REPLAY_REPLAY_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btree/edit_names.h"
#include "fs/fs.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/*
 * Log trees (log_tree.c). They are small and all their items are used, so they are read into memory
 * completely. There is one for each subvolume in which something was fsynced since the last commit,
 * and one that lists these.
 */

/** A range of keys: at least `first` and less than `end`. */
struct bw_log_loss {
    struct bw_key first, end;
};

BW_VECTOR(bw_leaf_copies, uint8_t *);

BW_VECTOR(bw_log_items, struct bw_item);

BW_VECTOR(bw_log_losses, struct bw_log_loss);

/** The items of a log tree. All zeros is empty. */
struct bw_log {
    struct bw_log_items items;    /**< ascending */
    struct bw_leaf_copies leaves; /**< leaves that contain the items */
    struct bw_log_losses losses;  /**< ranges of keys whose items cannot be read */
};

/** Reads a log tree. Unreadable parts are reported with the prefix `name`, and omitted. Fails only
 * if memory runs out. */
struct bw_error *bw_log_load(struct bw_fs *fs, const struct bw_root_pointer *root, const char *name,
                             struct bw_log *log);

void bw_log_free(struct bw_log *log);

/** The index of the first item whose key is at least `key`. */
size_t bw_log_first(const struct bw_log *log, const struct bw_key *key);

/** The item with a key, or NULL. */
const struct bw_item *bw_log_find(const struct bw_log *log, const struct bw_key *key);

/** Whether an item with this key may be missing because a part of the log is lost. */
bool bw_log_is_lost(const struct bw_log *log, const struct bw_key *key);

/** Receives a directory to which the kernel's replay would give several names, after which the
 * mount fails; `names` is a list of them. */
typedef struct bw_error *bw_refused_visitor(void *context, uint64_t subvolume, uint64_t inode,
                                            const char *names);

/** A rehearsal: the replay has no effect and reports nothing else. */
struct bw_rehearsal {
    bw_refused_visitor *visit;
    void *context;
};

/** The replay of one log tree. */
struct bw_replay {
    struct bw_fs *fs;
    const struct bw_rehearsal *rehearsal; /**< NULL: it is none */
    uint64_t subvolume;
    struct bw_log log;
    struct bw_tree_editor tree;       /**< of the subvolume */
    struct bw_tree_editor *checksums; /**< the checksum tree; may be NULL */
    /** Inodes whose names must be counted. */
    struct bw_numbers recount;
    struct bw_key_map awaiting; /**< set of the inodes in `recount` */
    struct bw_buffer scratch;   /**< bytes of an item that is being made */
    uint64_t reported;          /**< inode of the last message */
};

/** Replays all logs, unless the caller ignores them. Afterwards, fs->subvolumes and
 * fs->checksum_trees contain the roots of the changed trees. Items that cannot be applied are
 * reported as damage, and skipped. Fails only if memory runs out. */
struct bw_error *bw_replay(struct bw_fs *fs);

/** Finds out what the kernel cannot replay. Only for file systems that ignore the log. */
struct bw_error *bw_replay_rehearse(struct bw_fs *fs, const struct bw_rehearsal *rehearsal);

/* Applying the items of a log, each in its pass (apply.c). */

/** Reports why an item cannot be applied, once per inode, and consumes the error; but returns it if
 * memory has run out. `error` may be NULL. */
struct bw_error *bw_replay_report(struct bw_replay *replay, const struct bw_key *key,
                                  struct bw_error *error);

/** INODE_ITEM, in the first pass. */
struct bw_error *bw_replay_inode_item(struct bw_replay *replay, const struct bw_item *item);
/** DIR_INDEX, in the second pass. */
struct bw_error *bw_replay_dir_index(struct bw_replay *replay, const struct bw_item *item);
/** INODE_REF and INODE_EXTREF, in the third pass. */
struct bw_error *bw_replay_refs(struct bw_replay *replay, const struct bw_item *item);
/** EXTENT_DATA, in the third pass. */
struct bw_error *bw_replay_extent(struct bw_replay *replay, const struct bw_item *item);

/** Sets the link counts of all inodes in `recount` (fixup_inode_link_counts). */
struct bw_error *bw_replay_link_counts(struct bw_replay *replay);

#endif
