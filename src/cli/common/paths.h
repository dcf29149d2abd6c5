/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common code of commands that print facts about paths: opens the image, looks up each path,
 * continues after a missing one, and returns the right exit status.
 */
#ifndef BW_CMD_PATHS_H
#define BW_CMD_PATHS_H

#include "btrfs-walk/inode.h"
#include "cli/common/answer.h"

/** The line of `--subvol` in the table of a command whose state is a `type`. Every path that such a
 * command accepts or prints begins at that subvolume, as on a mount of it. */
#define CMD_SUBVOLUME_OPTION(type, member)                                                   \
    {                                                                                        \
        0, "subvol", "NAME|ID", "begin all paths at this subvolume (path, id or 'default')", \
            CMD_TEXT(type, member)                                                           \
    }

/** Help text that all these commands share. */
#define CMD_PATHS_DETAILS                                                                          \
    "\nPaths begin at the top-level subvolume (id 5), or at the subvolume given with --subvol. "   \
    "Further\ndevices follow IMAGE, or are given with --device; if --graph names the images, all " \
    "operands are\npaths.\n"

/** Work on paths under way. */
struct cmd_paths {
    const struct cmd_common *common;
    struct cmd_session session;
    const struct bw_subvolume *from; /**< where paths begin */
    struct cmd_output output;
    bool terminal;            /**< stdout is one: names are escaped */
    int status;               /**< so far */
    struct bw_error *broken;  /**< why stdout takes no more, if cmd_paths_give() found that out */
    struct cmd_answer answer; /**< of a command that prints records */
    struct bw_buffer *text;   /**< the answer for the path at hand */
    bool gave;                /**< the beginning of it is written */
};

/** Opens the image and finds the subvolume (NULL: the top-level one). On failure reports why and
 * returns the exit status; otherwise returns STATUS_OK, and cmd_paths_close() must be called. */
int cmd_paths_open(const struct cmd_common *common, const char *subvolume, struct cmd_paths *paths);

/** Reports why an answer, or part of it, is missing; takes the error. The exit status will be
 * STATUS_PARTIAL, or STATUS_UNSUPPORTED. */
void cmd_paths_miss(struct cmd_paths *paths, struct bw_error *error);

/** Appends the bytes of a name or a path, escaped if stdout is a terminal. */
void cmd_paths_append_name(const struct cmd_paths *paths, const void *name, size_t length,
                           struct bw_buffer *text);

/** Appends a path that the user wrote as columns and JSON have it, with one '/' in front. */
struct bw_error *cmd_paths_absolute(const char *path, struct bw_buffer *text);

/** Appends the answer for a path. An error is reported and does not end the work; what was appended
 * before it is not written. */
typedef struct bw_error *cmd_path_answer(void *context, struct cmd_paths *paths, const char *path,
                                         const struct bw_place *place, struct bw_buffer *text);

/** Writes and empties the text of a long answer, once it is long enough. False if stdout takes no
 * more: the answer may end. */
bool cmd_paths_give(struct cmd_paths *paths, struct bw_buffer *text);

/** Opens, writes the answers for all paths, and closes; returns the exit status. `follow`: symbolic
 * links at the end of a path are followed. `plan` says how the records are printed that the answers
 * write to paths->answer; it lists nothing. NULL: there are only texts. */
int cmd_paths_run(const struct cmd_common *common, const char *subvolume, bool follow,
                  const struct cmd_answer_plan *plan, cmd_path_answer *answer, void *context);

/** Writes what is left and closes. Takes the error that ended the work, or NULL; returns the exit
 * status. */
int cmd_paths_close(struct cmd_paths *paths, struct bw_error *error);

#endif
