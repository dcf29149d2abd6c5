/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older states of a file system, for commands that go through all of them. */
#ifndef BW_CMD_STATES_H
#define BW_CMD_STATES_H

#include "cmd/command.h"

/** How they are looked for: with --scan of all commands, wherever that takes long. */
struct cmd_states_settings {
    bool no_scan;
};

/** The options for that. */
extern const struct cmd_option cmd_states_options[];

/** Those that may be opened, the newest first. */
struct cmd_states {
    struct bw_fs_options images; /**< how to open them: set `state`, too */
    struct bw_state_choice *choices;
    size_t count;
};

/** Finds those of the file system of a command. To be freed with cmd_states_free(), whatever it
 * returns. */
struct bw_error *cmd_states_find(const struct cmd_common *common, struct bw_fs *fs,
                                 const struct cmd_states_settings *settings,
                                 struct cmd_states *states);

/** Opens a state of the file system of the command; to be closed with bw_fs_close(). */
struct bw_error *cmd_open_state(const struct cmd_common *common, struct bw_state_choice state,
                                struct bw_fs **fs);

/** Frees what it holds. */
void cmd_states_free(struct cmd_states *states);

#endif
