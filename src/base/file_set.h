/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of files, identified as files and not by name. Links and other nodes of one device are the
 * same file. A loop device equals the file below it, a partition its disk, and a mapped device the
 * devices it consists of. Used to keep output away from input.
 */
#ifndef BW_BASE_FILE_SET_H
#define BW_BASE_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/vector.h"

/** A file, by its numbers. */
struct bw_file_identity {
    bool is_block_device;
    dev_t device;
    ino_t inode; /**< 0 for a block device */
    bool below;  /**< not in the set itself: a device of the set gets its bytes from it */
    char *path;  /**< NULL if it is below */
};

BW_VECTOR(bw_file_identities, struct bw_file_identity);

/** All zeros is an empty set. */
struct bw_file_set {
    struct bw_file_identities files;
};

/** Adds the file with a name, if it exists. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_file_set_insert(struct bw_file_set *set, const char *path)
    __attribute__((warn_unused_result));
/** The name that a file was added with, by its number in the set; NULL if it has none, because it
 * lies below another one. */
const char *bw_file_set_path(const struct bw_file_set *set, size_t number);
/** Whether writing to a file, as stat() describes it, could change one of the set. */
bool bw_file_set_holds(const struct bw_file_set *set, const struct stat *status);
/** Frees the memory and leaves an empty set. */
void bw_file_set_free(struct bw_file_set *set);

#endif
