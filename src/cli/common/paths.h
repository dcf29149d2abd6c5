/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common code of commands that print facts about paths: opens the image, looks up each path,
 * continues after a missing one, and returns the right exit status.
 */
#ifndef BW_CLI_COMMON_PATHS_H
#define BW_CLI_COMMON_PATHS_H

#include "btrfs-walk/inode.h"
#include "cli/common/output_format.h"

/** The entry for `--subvol` in the option table of a command whose state is a `type`. Every path
 * that such a command accepts or prints begins at that subvolume, as on a mount of it. */
#define CMD_SUBVOLUME_OPTION(type, member)                                                   \
    {                                                                                        \
        0, "subvol", "NAME|ID", "begin all paths at this subvolume (path, id or 'default')", \
            CMD_TEXT(type, member)                                                           \
    }

/** Help text of all these commands. */
#define CMD_PATHS_DETAILS                                                                          \
    "\nPaths begin at the top-level subvolume (id 5), or at the subvolume given with --subvol. "   \
    "Further\ndevices follow IMAGE, or are given with --device; if --graph names the images, all " \
    "operands are\npaths.\n"

/** A command that works on paths, while it runs. */
struct cmd_paths {
    struct cmd_format format;        /**< the session, the output and the status; records, if any */
    const struct bw_subvolume *from; /**< where paths begin */
    struct bw_error *broken; /**< the error of stdout, if cmd_paths_flush() could not write */
    struct bw_buffer *text;  /**< the output for the current path */
    bool gave;               /**< the beginning of this output has been written */
};

/** Opens the image and finds the subvolume (NULL: the top-level one). `plan`: the format of
 * records; NULL: the output is only text. On failure reports why and returns the exit status;
 * otherwise returns STATUS_OK, and cmd_paths_close() must be called. */
int cmd_paths_open(const struct cmd_common *common, const struct cmd_format_plan *plan,
                   const char *subvolume, struct cmd_paths *paths);

/** Appends a path that the user wrote in the form of columns and JSON: with exactly one '/' in
 * front. */
struct bw_error *cmd_paths_absolute(const char *path, struct bw_buffer *text);

/** Appends the output for a path to `text`. An error is reported and the next path follows; text
 * that has not been written yet is discarded. */
typedef struct bw_error *cmd_path_handler(void *context, struct cmd_paths *paths, const char *path,
                                          const struct bw_place *place, struct bw_buffer *text);

/** Writes and empties the text if it is long. For parts of a long output. False if writing to
 * stdout failed; the command may stop then. */
bool cmd_paths_flush(struct cmd_paths *paths, struct bw_buffer *text);

/** Opens the image, writes the output for all paths, and closes; returns the exit status.
 * `follow`: follow a symbolic link at the end of a path. `plan`: the format of the records that the
 * handlers write to paths->format; its `list` is not called. */
int cmd_paths_run(const struct cmd_common *common, const char *subvolume, bool follow,
                  const struct cmd_format_plan *plan, cmd_path_handler *handle, void *context);

/** Flushes the output and closes. Consumes the error that ended the command, which may be NULL;
 * returns the exit status. */
int cmd_paths_close(struct cmd_paths *paths, struct bw_error *error);

#endif
