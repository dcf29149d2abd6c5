/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replaying the log: the changes that were fsynced after the last commit are applied to copies of
 * tree blocks in memory (btree/edit.h), as the kernel applies them to the trees of the disk when
 * the file system is mounted. Everything that reads trees sees the result.
 *
 * The log of a subvolume is gone through three times: for inodes (inode.c), for the entries of
 * directories (entries.c), and for the names of inodes, attributes and extents (links.c,
 * extents.c). All logs are through one pass before the next one begins. Then the inodes that have
 * gained or lost names get their number of links (orphans.c). Source: fs/btrfs/tree-log.c of the
 * kernel, from btrfs_recover_log_trees() on; the functions there are named where they are followed.
 */
#ifndef BW_REPLAY_REPLAY_H
#define BW_REPLAY_REPLAY_H

#include "base/buffer.h"
#include "btree/edit.h"
#include "replay/log.h"

/** The replay of one log tree. */
struct bw_replay {
    struct bw_fs *fs;
    uint64_t subvolume;
    struct bw_log log;
    struct bw_tree_editor tree;       /**< of the subvolume */
    struct bw_tree_editor *checksums; /**< the checksum tree; NULL: there is none */
    /** Inodes whose names are to be counted. */
    uint64_t *recount;
    size_t recount_count, recount_capacity;
    struct bw_map awaiting;   /**< 1: the inode is in `recount` */
    struct bw_buffer scratch; /**< bytes of an item that is being made */
    uint64_t reported;        /**< inode of the last message */
};

/** A name in a directory. */
struct bw_link {
    uint64_t directory, inode, index;
    const uint8_t *name;
    uint16_t length;
};

/** Replays all logs, unless they are to be ignored: fs->subvolumes and fs->checksum_trees lead to
 * the changed trees after that. What cannot be applied is reported as damage, and left out. Fails
 * only if memory runs out. */
struct bw_error *bw_replay(struct bw_fs *fs);

/* Items of the subvolume (replay.c). */

/** Reads an inode; false if the subvolume does not have it. */
struct bw_error *bw_replay_inode(struct bw_replay *replay, uint64_t inode,
                                 struct bw_disk_inode_item *item, bool *exists);

/** Writes an inode back. */
struct bw_error *bw_replay_set_inode(struct bw_replay *replay, uint64_t inode,
                                     const struct bw_disk_inode_item *item);

/** Takes bytes out of an item, which goes if none are left. */
struct bw_error *bw_replay_cut(struct bw_replay *replay, const struct bw_item *item,
                               const uint8_t *start, const uint8_t *end);

/** Adds bytes to the end of an item, which may be a new one. `more` must not be in it. */
struct bw_error *bw_replay_append(struct bw_replay *replay, const struct bw_key *key,
                                  const void *more, size_t length);

/** Counts the names of an inode at the end (link_to_fixup_dir). */
struct bw_error *bw_replay_recount(struct bw_replay *replay, uint64_t inode);

/** Reports why something of an item cannot be applied, once an inode, and takes the error; unless
 * memory has run out. `error` may be NULL. */
struct bw_error *bw_replay_try(struct bw_replay *replay, const struct bw_key *key,
                               struct bw_error *error);

/* Names (names.c). */

/** Finds a name in an item that packs entries of directories, or attributes; `bytes` gets what it
 * takes up. */
bool bw_find_entry(const struct bw_item *item, const uint8_t *name, uint16_t length,
                   struct bw_dir_entry *entry, struct bw_item *bytes);

/** Finds a name of an inode in an INODE_REF or INODE_EXTREF. */
bool bw_find_ref(const struct bw_item *item, uint64_t directory, const uint8_t *name,
                 uint16_t length, struct bw_inode_ref *ref, struct bw_item *bytes);

/** Key of the INODE_EXTREF of a name. */
struct bw_key bw_extref_key(const struct bw_link *link);

/** Adds a name to a directory (btrfs_add_link) and, if `backwards`, to the inode. */
struct bw_error *bw_replay_link(struct bw_replay *replay, const struct bw_link *link,
                                bool backwards);

/** Removes a name from a directory and from the inode (btrfs_unlink_inode). */
struct bw_error *bw_replay_unlink(struct bw_replay *replay, const struct bw_link *link);

/** Removes whatever the directory has under the name or the index of a link (drop_one_dir_item).
 */
struct bw_error *bw_replay_drop(struct bw_replay *replay, const struct bw_link *link, bool by_name);

/** What a directory has under the name or the index of a link; `found->name` is NULL if nothing.
 */
struct bw_error *bw_replay_entry(struct bw_replay *replay, const struct bw_link *link, bool by_name,
                                 struct bw_dir_entry *found);

/* Items of the log, each in its pass. */

/** INODE_ITEM, in the first pass. */
struct bw_error *bw_replay_inode_item(struct bw_replay *replay, const struct bw_item *item);
/** DIR_INDEX, in the second pass. */
struct bw_error *bw_replay_dir_index(struct bw_replay *replay, const struct bw_item *item);
/** INODE_REF and INODE_EXTREF, in the third pass. */
struct bw_error *bw_replay_refs(struct bw_replay *replay, const struct bw_item *item);
/** EXTENT_DATA, in the third pass. */
struct bw_error *bw_replay_extent(struct bw_replay *replay, const struct bw_item *item);

/** Drops what a file has from `start` up to `end`; `dropped` gets how many bytes were allocated
 * there. */
struct bw_error *bw_replay_drop_extents(struct bw_replay *replay, uint64_t inode, uint64_t start,
                                        uint64_t end, uint64_t *dropped);

/** Removes entries of a directory: all of them, or those that its log says are gone
 * (replay_dir_deletes). */
struct bw_error *bw_replay_dir_deletes(struct bw_replay *replay, uint64_t directory, bool all);

/** Sets the number of links of all inodes that await it (fixup_inode_link_counts). */
struct bw_error *bw_replay_link_counts(struct bw_replay *replay);

#endif
