/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options as data: parsing, --help, the manual and completions are made from tables. This header
 * has the tables that all commands share, the list of a command's options, and the functions that
 * parse arguments.
 */
#ifndef BW_CLI_COMMON_OPTIONS_H
#define BW_CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"

struct cmd_common;
struct command;

/**
 * An option as data: parsing, --help, the manual and the completions are made from it. A table ends
 * with an entry that has neither a name nor a group.
 */
struct cmd_option {
    char letter;             /**< short form; 0: none */
    const char *name;        /**< long form */
    const char *argument;    /**< name of its argument in the help text; NULL: it takes none;
                                "[=WORD]": it is optional, and then follows a '=' */
    const char *description; /**< one line */
    /** Stores the argument (NULL if there is none) at `target`, which is `offset` bytes into the
     * settings that the table is for. BW_ERROR_USAGE: the argument is invalid. */
    struct bw_error *(*take)(void *target, const struct cmd_option *option, const char *argument);
    size_t offset;
    const char *also; /**< another long form, unless an option of the command is called that */
    const char *const *words; /**< of cmd_take_word(): what may be given; ends with NULL */
    /** For options like --help: writes something to stdout and returns the exit status, so that the
     * command is not run. An option with `take` shows only if its argument is "help", and then when
     * all options are known. `state` is that of the command. May be NULL. */
    int (*show)(const struct command *command, const void *state, const char *argument);
    const struct cmd_option *group; /**< this entry stands for a table that several commands
                                       share; its settings begin at `offset` */
    const char *heading; /**< in --help and the manual: of this option and those behind it, to the
                            end of the table; NULL: as before */
    bool rare;           /**< likewise: only --help=all shows them */
    void (*release)(void *settings); /**< of a group: frees what its options have allocated, after
                                        the command; NULL: nothing */
};

/* The end of a table entry: where its argument is stored. The type of the member is checked. */
#define CMD_AT(type, member, wanted) \
    (offsetof(type, member) + _Generic(((type *)0)->member, wanted : 0))
/** A bool that becomes true. */
#define CMD_FLAG(type, member) .take = cmd_take_flag, .offset = CMD_AT(type, member, bool)
/** A text that must not be empty. */
#define CMD_TEXT(type, member) .take = cmd_take_text, .offset = CMD_AT(type, member, const char *)
/** A number of threads. */
#define CMD_THREADS(type, member) .take = cmd_take_threads, .offset = CMD_AT(type, member, unsigned)
/** Bytes, as cmd_parse_bytes() reads them. */
#define CMD_BYTES(type, member) .take = cmd_take_bytes, .offset = CMD_AT(type, member, uint64_t)
/** An enumeration: one of several words, in the order of its values. */
#define CMD_WORD(type, member, list) \
    .take = cmd_take_word, .offset = CMD_AT(type, member, unsigned), .words = (list)
/** A whole entry: the options of a table that is shared. */
#define CMD_GROUP(table, type, member)                     \
    {                                                      \
        .group = (table), .offset = offsetof(type, member) \
    }

struct bw_error *cmd_take_flag(void *flag, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_text(void *text, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_threads(void *threads, const struct cmd_option *option,
                                  const char *argument);
struct bw_error *cmd_take_bytes(void *bytes, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_word(void *value, const struct cmd_option *option, const char *argument);

/** The error of a `take` function for an invalid argument; `allowed` names the valid ones. */
struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed);

/** Parses a decimal number from `minimum` to `maximum`; false if `text` is anything else. */
bool cmd_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number);

/** Parses a size or an address: decimal digits with an optional unit (bw_parse_size()), or 0x and
 * hexadecimal digits. Moves on to what follows; false if there is none. */
bool cmd_parse_bytes(const char **text, uint64_t *bytes);

/** Parses ADDRESS[+LENGTH] with an end below 16E; without a length it is 0. BW_ERROR_USAGE. */
struct bw_error *cmd_parse_range(const char *text, uint64_t *address, uint64_t *length);

/** Options that several commands have: all that open a file system (the first), and all (the
 * second). */
extern const struct cmd_option cmd_image_options[], cmd_common_options[];
/** Among the first: the options for a struct cmd_probe_settings, and for a struct bw_state_choice.
 */
extern const struct cmd_option cmd_probe_options[], cmd_state_options[];

/** For a command without options. */
extern const struct cmd_option cmd_no_options[];
/** The options of a command that prints records, for a struct cmd_answer_settings. */
extern const struct cmd_option cmd_answer_options[];

/** The options of a command with takes_list, for a struct cmd_common. */
extern const struct cmd_option cmd_list_options[];

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

/** Whether there is an option of that name. */
bool cmd_has_option(const struct cmd_option_list *list, const char *name);

/** The option of a letter, or the count: a command's own goes before the same one of all commands,
 * as -h of ls does. */
size_t cmd_find_letter(const struct cmd_option_list *list, int letter);

/** The exit status of a command for one of all commands. */
int cmd_exit_status(const struct command *command, int status);

/** Prints the error in a command line; returns the exit status. `argument` may be NULL. */
int cmd_usage_error(const struct command *command, const char *reason, const char *argument);

/** Words that may be meant by a misspelt one, appended to a message as "; did you mean 'x' or 'y'".
 * All that is not named here begins as zeros. */
struct cmd_suggestion {
    struct bw_buffer *message;
    const char *word;   /**< what was written */
    const char *prefix; /**< of each word in the message: "" or "--" */
    unsigned count;     /**< of those appended */
};

/** Appends a word if it is similar to what was written. */
void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate);

/** Prints `word`, the reason why it is wrong, and the commands that may be meant to stderr. */
void cmd_print_unknown_command(const char *word, const char *reason);

#endif
