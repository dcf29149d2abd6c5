/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subvolumes in the root tree: the root of each tree, and its entry in its parent. They are
 * read once, when the file system is opened.
 */
#ifndef BW_FS_SUBVOLUME_H
#define BW_FS_SUBVOLUME_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btree/block.h"

struct bw_dir_entry;
struct bw_fs;

/** A subvolume or snapshot. */
struct bw_subvolume {
    struct bw_tree tree;
    uint64_t parent;      /**< id of the subvolume that contains its entry; 0 if it has none (the
                           * top-level one, or a deleted one) */
    uint64_t directory;   /**< inode of the directory that contains the entry */
    uint64_t index;       /**< offset of the entry's DIR_INDEX key */
    uint64_t bytes;       /**< size of the tree's blocks, as its root item states */
    uint32_t name_offset; /**< The name begins here in the names of the table. */
    uint16_t name_length;
    bool deleted; /**< it is being deleted: do not enter it */
    bool is_snapshot;
};

/** All subvolumes: a vector, with their names. */
struct bw_subvolume_table {
    struct bw_subvolume *items; /**< ascending by tree.id */
    size_t count, capacity;
    struct bw_buffer names;
    uint64_t last_id; /**< of the last root item that was read */
    /** Why the key of a root item seems to be wrong, or NULL: see bw_subvolumes_report_doubt(). */
    struct bw_error *doubt;
    uint64_t references; /**< sum of hashes: 0 if all ROOT_REFs have an equal ROOT_BACKREF */
    uint64_t default_id; /**< the default subvolume; 5 unless the user has set another one */
    /** `btrfs-image -s` changes the names of entries, but not those in the root tree. */
    bool may_be_renamed;
};
BW_VECTOR_FUNCTIONS(bw_subvolume_table, struct bw_subvolume);

/** Reads all subvolumes from the root tree into fs->subvolumes; reports lost parts of that tree. */
struct bw_error *bw_subvolumes_load(struct bw_fs *fs);

/** Reports the first doubt. */
void bw_subvolumes_report_doubt(struct bw_fs *fs);

void bw_subvolumes_free(struct bw_subvolume_table *table);

/** Whether any subvolume that is not being deleted is a snapshot. */
bool bw_subvolumes_have_snapshots(const struct bw_subvolume_table *table);

/** The subvolume that an entry of directory `directory` in the subvolume `parent` leads to; NULL if
 * the root tree does not confirm the entry. In a snapshot, entries of nested subvolumes are
 * stale. */
const struct bw_subvolume *bw_subvolume_of_entry(const struct bw_subvolume_table *table,
                                                 uint64_t parent, uint64_t directory,
                                                 const struct bw_dir_entry *entry);

/** The name of a subvolume in its parent directory: name_length bytes. */
const char *bw_subvolume_name(const struct bw_subvolume_table *table,
                              const struct bw_subvolume *subvolume);

#endif
