/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leaves an image with a file besides its data and its inode: extended attributes, access
 * control lists among them, and times that the inode cannot hold. Inodes that are asked for in
 * ascending order cost no search each.
 */
#ifndef BW_EXPORT_DETAILS_H
#define BW_EXPORT_DETAILS_H

#include "base/buffer.h"
#include "btree/find_leaf.h"
#include "format/items.h"

struct bw_fs;

/** An error of reading the image, such that its errno is not taken for one of writing. NULL stays
 * NULL. */
static inline struct bw_error *bw_image_error(struct bw_error *error)
{
    if (error && error->code == BW_ERROR_SYSTEM) {
        error->code = BW_ERROR_CORRUPT;
        error->system = 0;
    }
    return error;
}

/** The attributes of one inode, and the place in the tree. One thread at a time may use it. */
struct bw_details {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    uint64_t inode;          /**< whose they are */
    struct bw_xattr *xattrs; /**< views that end with the next read; a NUL is behind each name */
    size_t count, capacity;
    struct bw_buffer bytes; /**< for its own use */
};

/** Starts; nothing is read yet. */
void bw_details_init(struct bw_details *details, struct bw_fs *fs);
/** Frees what it holds. */
void bw_details_free(struct bw_details *details);

/** Reads the attributes of an inode. What is lost is reported and costs itself, and so does one
 * whose name has a NUL byte, which nobody could name. Fails only for want of memory. */
struct bw_error *bw_details_read(struct bw_details *details, const struct bw_tree *tree,
                                 uint64_t inode);

#endif
