/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Historic roots of a file system, for commands that iterate over all of them. */
#ifndef BW_CLI_COMMON_GENERATIONS_H
#define BW_CLI_COMMON_GENERATIONS_H

#include "base/buffer.h"
#include "btrfs-walk/history.h"
#include "cli/command.h"
#include "cli/common/output.h"

/** The search for historic roots. It scans large images only with --scan. The session of
 * common->input.index opens and closes the file. */
struct cmd_index {
    const char *name; /**< of the file; NULL: none */
    bool no_scan;
    struct bw_buffer bytes; /**< the contents of the file when it was opened */
    struct cmd_output_file file;
};

/** The options for a struct cmd_index. */
extern const struct cmd_option cmd_index_options[];

/** For the session: opens the file, before the command's other outputs. */
struct bw_error *cmd_index_open(struct cmd_index *index, const struct cmd_common *common,
                                const struct bw_fs *planned);

void cmd_index_close(struct cmd_index *index);

/** Opens the list of historic roots. `how` has been initialized by the caller; this function adds
 * the settings of the command line. Results of a scan are written to the index. */
struct bw_error *cmd_history_open(const struct cmd_common *common, struct bw_fs *fs,
                                  struct bw_history_options *how, struct bw_history **history);

/** Historic roots that can be opened, the newest first. */
struct cmd_generations {
    struct bw_fs_options images; /**< options to open them, after `state` is set */
    struct bw_generation_choice *choices;
    size_t count;
};

/** Finds the historic roots of a command's file system. Free with cmd_generations_free(), even
 * after an error. */
struct bw_error *cmd_generations_find(const struct cmd_common *common, struct bw_fs *fs,
                                      struct cmd_generations *generations);

/** Finds a subvolume by its name, which may be followed by @GENERATION; a name that contains the
 * '@' itself is tried first. `*past` is the file system of that generation, to be closed with
 * bw_fs_close(), or NULL: the subvolume is in `fs`. */
struct bw_error *cmd_find_subvolume(const struct cmd_common *common, struct bw_fs *fs,
                                    const char *text, struct bw_fs **past,
                                    const struct bw_subvolume **subvolume);

/** The time of the last change of any subvolume, in nanoseconds since 1970; 0 if none has one.
 * Fails only if memory runs out. */
struct bw_error *cmd_last_change(struct bw_fs *fs, int64_t *time);

void cmd_generations_free(struct cmd_generations *generations);

#endif
