/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists that a command writes entry by entry while it works, and from which a user or another
 * command continues. An incomplete list is marked: until it is closed as complete, its last entry
 * is a mark. Each write contains new entries and the mark, so this also holds if the process is
 * killed. Space for the next entries is allocated in advance, because lists are needed most when
 * the disk is full.
 */
#ifndef BW_CLI_COMMON_LIST_FILE_H
#define BW_CLI_COMMON_LIST_FILE_H

#include "base/buffer.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/record.h"
#include "cli/common/settings.h"

/** The mark of a list of paths, each of which ends with NUL. */
extern const struct bw_bytes cmd_incomplete_paths;

/** Removes the mark from the bytes of a list of paths; false if they do not end with it. */
bool cmd_list_file_take_mark(struct bw_buffer *list);

/** A list that is being written. All zeros: none. */
struct cmd_list_file {
    const char *name; /**< its name in messages; NULL: there is no list */
    struct bw_bytes mark;
    int descriptor;
    bool is_regular;    /**< others, such as pipes, get the mark only at the end */
    uint64_t end;       /**< where the entries in the file end; the mark follows */
    uint64_t allocated; /**< space is allocated up to this offset */
    struct bw_buffer gathered;
    bool has_failed; /**< entries are missing because a write failed */
};

/** Begins to write at offset `end` of a file, and removes the rest. Closes the descriptor
 * if that fails. */
struct bw_error *cmd_list_file_open(struct cmd_list_file *list, int descriptor, const char *name,
                                    const struct bw_bytes *mark, uint64_t end);

/** Adds bytes, which begin or continue an entry; `list` is a struct cmd_list_file. */
struct bw_error *cmd_list_file_add(void *list, const char *bytes, size_t length);

/** Closes a list, which may be all zeros. If it is `complete` and everything could be written, the
 * mark is removed. */
struct bw_error *cmd_list_file_close(const struct cmd_common *common, struct cmd_list_file *list,
                                     bool complete);

#endif
