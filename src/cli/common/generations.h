/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The historic roots of a file system, for commands that iterate over all of them. */
#ifndef BW_CLI_COMMON_GENERATIONS_H
#define BW_CLI_COMMON_GENERATIONS_H

#include "base/buffer.h"
#include "btrfs-walk/past.h"
#include "cli/command.h"
#include "cli/common/output.h"

/** How they are looked for: with --scan of all commands, wherever that takes long. */
struct cmd_states_settings {
    const char *index; /**< file; NULL: none */
    bool no_scan;
};

/** The options for that. */
extern const struct cmd_option cmd_states_options[];

/** The file of --index. It is opened before the sandbox is entered. */
struct cmd_index {
    const struct cmd_common *before; /**< what the command was called with */
    struct bw_buffer bytes;          /**< what the file held */
    struct cmd_output_file file;
};

/** Starts with the settings of a command, which goes on with the result: the file will be opened
 * with its other outputs. BW_ERROR_USAGE if the settings exclude each other. To be ended with
 * cmd_index_end(), whatever it returns. */
struct bw_error *cmd_index_begin(struct cmd_index *index, const struct cmd_common *common,
                                 const struct cmd_states_settings *settings,
                                 struct cmd_common *result);

void cmd_index_end(struct cmd_index *index);

/** Opens the list of states; how the options of the program want it goes into `how`, which the
 * caller has begun. What the scan finds is kept in the index. */
struct bw_error *cmd_past_open(struct cmd_index *index, struct bw_fs *fs,
                               const struct cmd_states_settings *settings,
                               struct bw_past_options *how, struct bw_past **past);

/** The roots that can be opened, the newest first. */
struct cmd_states {
    struct bw_fs_options images; /**< how to open them: set `state`, too */
    struct bw_state_choice *choices;
    size_t count;
};

/** Finds the historic roots of a command's file system. Free with cmd_states_free(), even after an
 * error. */
struct bw_error *cmd_states_find(struct cmd_index *index, struct bw_fs *fs,
                                 const struct cmd_states_settings *settings,
                                 struct cmd_states *states);

/** Opens a state of the file system of the command; to be closed with bw_fs_close(). */
struct bw_error *cmd_open_state(const struct cmd_common *common, struct bw_state_choice state,
                                struct bw_fs **fs);

/** Frees what it holds. */
void cmd_states_free(struct cmd_states *states);

#endif
