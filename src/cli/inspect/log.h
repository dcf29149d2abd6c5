/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing a file system with its log replayed and without it: shared by the files of the log
 * command. */
#ifndef BW_CLI_INSPECT_LOG_H
#define BW_CLI_INSPECT_LOG_H

#include "btrfs-walk/file.h"
#include "cli/common/listing.h"

/** The inode at hand, without the log or with it. */
struct side {
    struct bw_fs *fs;
    struct bw_xattr_reader *xattrs;
    bool exists;
    struct bw_place place;
    struct bw_inode inode;
    struct bw_buffer *names; /**< its paths, sorted */
    size_t count, capacity;
};

/** The listing under way. */
struct changes {
    struct cmd_listing *listing;
    struct side before, after;
};

/** Lists the ranges of a file whose contents differ (log_data.c). */
struct bw_error *log_compare_data(struct changes *changes);

/** Lists one. */
struct bw_error *log_write_range(struct changes *changes, uint64_t offset, uint64_t length);

#endif
