/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of a command in one list: for parsing them, for --help and for completions. */
#ifndef BW_CMD_OPTIONS_H
#define BW_CMD_OPTIONS_H

#include "cli/command.h"

/** All options of a command in the order of its help: its own, then those it shares with others. */
enum { CMD_MAX_OPTIONS = 192 };
struct cmd_option_list {
    size_t count;
    struct {
        const struct cmd_option *option;
        char *settings;      /**< what the table of the option is for */
        const char *heading; /**< NULL: it is one of the command's own */
        bool rare;           /**< only --help=all shows it */
    } items[CMD_MAX_OPTIONS];
};

/** The options of a command; `common` and `state` may be NULL if nothing is stored. */
struct cmd_option_list cmd_options_of(const struct command *command, struct cmd_common *common,
                                      void *state);

/** The option of a letter, or the count: a command's own goes before the same one of all commands,
 * as -h of ls does. */
size_t cmd_find_letter(const struct cmd_option_list *list, int letter);

/** Writes the help of a command to stdout, with rare options if `all`. */
void cmd_print_help(const struct command *command, bool all);

/** Flushes what was written to stdout through stdio; returns the exit status. */
int cmd_flush_stdout(const struct cmd_common *common);

#endif
