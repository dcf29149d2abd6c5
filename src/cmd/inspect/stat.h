/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the stat command knows of a file, and the two ways to write it. */
#ifndef BW_CMD_STAT_H
#define BW_CMD_STAT_H

#include "cmd/common/paths.h"
#include "fs/inode.h"

/** All of it. */
struct cmd_stat {
    const char *path; /**< as the user wrote it */
    struct bw_place place;
    struct bw_inode inode;
    struct bw_buffer absolute;       /**< the path from the top-level subvolume on */
    struct bw_buffer subvolume_path; /**< with '/' at both ends; empty if it hangs nowhere */
    struct bw_buffer target;         /**< of a symbolic link */
    struct bw_buffer xattrs;         /**< their names, each behind its length in two bytes */
    struct bw_buffer compression;    /**< value of BW_COMPRESSION_PROPERTY */
    bool has_compression;            /**< whether it has one, which may be empty */
    struct bw_extent_count extents;
};

/** A position in the names of attributes; begin with a position of 0. False at the end. */
bool cmd_stat_next_xattr(const struct cmd_stat *stat, size_t *position, const char **name,
                         size_t *length);

/** Append what is known, as lines of "Name: value" or as one line of JSON. */
void cmd_stat_text(const struct cmd_stat *stat, struct bw_buffer *text);
struct bw_error *cmd_stat_json(const struct cmd_paths *paths, const struct cmd_stat *stat,
                               struct bw_buffer *text);

#endif
