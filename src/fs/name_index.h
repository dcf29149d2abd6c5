/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of a directory as those know them that have the names: where entries are lost,
 * INODE_REFs and the root tree tell the same. Which inodes refer to which directories is found out
 * by reading the whole tree, when it is first asked for. That takes 24 bytes a name, in arrays that
 * grow by doubling; it is kept for the trees that were asked for last, some of them.
 */
#ifndef BW_FS_NAME_INDEX_H
#define BW_FS_NAME_INDEX_H

#include "format/items.h"
#include "fs/subvolume.h"

struct bw_fs;

/** What was found out so far, of all subvolumes. Belongs to a struct bw_fs. */
struct bw_name_index;

/** Makes an empty one; NULL if memory runs out. */
struct bw_name_index *bw_name_index_create(void);
/** Frees it; NULL is allowed. */
void bw_name_index_destroy(struct bw_name_index *index);

/** Receives a name as the entry of the directory that it would be; a view that ends with the call.
 * An error ends it all. */
typedef struct bw_error *bw_name_taker(void *context, const struct bw_dir_entry *entry);

/**
 * Hands out the names of a directory, in the order of the inodes they belong to, then those of
 * subvolumes. Their type is BW_FILE_UNKNOWN if it is lost, too. What cannot be read is passed over.
 * Safe from any thread. Returns the error of `take`, or one of memory.
 */
struct bw_error *bw_names_from_below(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                     uint64_t directory, bw_name_taker *take, void *context);

#endif
