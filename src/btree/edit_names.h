/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inodes and names in a tree that is changed in memory. A name of an inode is stored in three
 * items: in the directory by hash (DIR_ITEM) and by index (DIR_INDEX), and at the inode (INODE_REF
 * or INODE_EXTREF). */
#ifndef BW_BTREE_EDIT_NAMES_H
#define BW_BTREE_EDIT_NAMES_H

#include "btree/edit.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/** A name in a directory. */
struct bw_link {
    uint64_t directory, inode, index;
    const uint8_t *name;
    uint16_t length;
};

/** Reads an inode; sets `*exists`. */
struct bw_error *bw_edit_inode(struct bw_tree_editor *editor, uint64_t inode,
                               struct bw_disk_inode_item *item, bool *exists);

/** Writes an inode back. */
struct bw_error *bw_edit_set_inode(struct bw_tree_editor *editor, uint64_t inode,
                                   const struct bw_disk_inode_item *item);

/** Removes bytes from an item; removes the item if none are left. */
struct bw_error *bw_edit_cut(struct bw_tree_editor *editor, const struct bw_item *item,
                             const uint8_t *start, const uint8_t *end);

/** Appends bytes to an item, or creates it. `more` must not be part of the item. */
struct bw_error *bw_edit_append(struct bw_tree_editor *editor, const struct bw_key *key,
                                const void *more, size_t length);

/** Finds a name in an item with directory entries or attributes; `bytes` is set to the bytes of the
 * entry. */
bool bw_find_entry(const struct bw_item *item, const uint8_t *name, uint16_t length,
                   struct bw_dir_entry *entry, struct bw_item *bytes);

/** Finds a name of an inode in an INODE_REF or INODE_EXTREF. */
bool bw_find_ref(const struct bw_item *item, uint64_t directory, const uint8_t *name,
                 uint16_t length, struct bw_inode_ref *ref, struct bw_item *bytes);

/** The key of a name's INODE_EXTREF. */
struct bw_key bw_extref_key(const struct bw_link *link);

/** Adds a name to a directory (btrfs_add_link) and, if `backwards`, to the inode. */
struct bw_error *bw_edit_link(struct bw_tree_editor *editor, const struct bw_link *link,
                              bool backwards);

/** Removes a name from a directory and from the inode (btrfs_unlink_inode). The link may be a view
 * on the tree. */
struct bw_error *bw_edit_unlink(struct bw_tree_editor *editor, const struct bw_link *link);

/** Finds the directory entry with the name or the index of a link; `found->name` is NULL if there
 * is none. */
struct bw_error *bw_edit_entry(struct bw_tree_editor *editor, const struct bw_link *link,
                               bool by_name, struct bw_dir_entry *found);

#endif
