/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options as data: tables describe them, for the parser, --help, the manual and completions. This
 * header declares the tables that all commands share, the list of a command's options, and the
 * functions that parse arguments.
 */
#ifndef BW_CLI_COMMON_OPTIONS_H
#define BW_CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/space.h"

struct cmd_common;
struct command;

/**
 * An option. A table ends with an entry that has neither a name nor a group.
 */
struct cmd_option {
    char letter;          /**< short form; 0: none */
    const char *name;     /**< long form */
    const char *argument; /**< name of the argument in the help text; NULL: the option takes none;
                           * "[=WORD]": the argument is optional and follows a '=' */
    const char *description; /**< one line */
    /** Stores the argument (NULL if it was omitted) at `target`, which is `offset` bytes into the
     * settings that the table fills. BW_ERROR_USAGE: the argument is invalid. */
    struct bw_error *(*store)(void *target, const struct cmd_option *option, const char *argument);
    size_t offset;
    const char *alias;        /**< another long form; an option of the command with this name takes
                                precedence */
    const char *const *words; /**< the words that cmd_store_word() accepts; ends with NULL */
    uint64_t least, most;     /**< the numbers that cmd_store_number() accepts */
    const char *allowed;      /**< which arguments it accepts, for the error message */
    bool is_wide;             /**< the number is stored as an uint64_t, not as an unsigned */
    size_t given; /**< offset of a bool that becomes true if the option is given; 0: none */
    /** For options like --help: writes to stdout and returns the exit status; the command does not
     * run. If the option also has `store`, this happens only if the argument is "help", and after
     * all options have been parsed. `state` is the state of the command. May be NULL. */
    int (*show)(const struct command *command, const void *state, const char *argument);
    const struct cmd_option *group; /**< includes a table that several commands share; its settings
                                     * begin at `offset` */
    const char *heading; /**< in --help and the manual, of this option and those after it in the
                          * table; NULL: unchanged */
    void (*release)(void *settings); /**< for a group: frees the allocations of its options after
                                      * the command has run; may be NULL */
};

/* The offset of a member. Compiles only if its type is `wanted`. */
#define CMD_AT(type, member, wanted) \
    (offsetof(type, member) + _Generic(((type *)0)->member, wanted : 0))
/** A bool that the option sets. */
#define CMD_FLAG(type, member) .store = cmd_store_flag, .offset = CMD_AT(type, member, bool)
/** A non-empty text. */
#define CMD_TEXT(type, member) .store = cmd_store_text, .offset = CMD_AT(type, member, const char *)
/** A number; `range` describes the valid ones in the error message. */
#define CMD_NUMBER(type, member, minimum, maximum, range)                                         \
    .store = cmd_store_number,                                                                    \
    .offset = offsetof(type, member) + _Generic(((type *)0)->member, unsigned : 0, uint64_t : 0), \
    .is_wide = _Generic(((type *)0)->member, unsigned                                             \
                        : false, uint64_t                                                         \
                        : true),                                                                  \
    .least = minimum, .most = maximum, .allowed = range
/** The same, appended to a list. */
#define CMD_NUMBERS(type, member, minimum, maximum, range)                         \
    .store = cmd_store_numbers, .offset = CMD_AT(type, member, struct bw_numbers), \
    .release = cmd_release_numbers, .least = minimum, .most = maximum, .allowed = range
/** In addition, a bool that the option sets. */
#define CMD_GIVEN(type, member) .given = CMD_AT(type, member, bool)
/** A text that is appended to a list. */
#define CMD_APPEND(type, member)                                                        \
    .store = cmd_store_append, .offset = CMD_AT(type, member, struct bw_const_strings), \
    .release = cmd_release_strings
/** A number of bytes, parsed by cmd_parse_bytes(). */
#define CMD_BYTES(type, member) .store = cmd_store_bytes, .offset = CMD_AT(type, member, uint64_t)
/** A part of several: --part I/N. */
struct cmd_part {
    unsigned number, count; /**< both 0: the option was not given */
};
#define CMD_PART(type, member) \
    .store = cmd_store_part, .offset = CMD_AT(type, member, struct cmd_part)
/** A word of a list, stored as its index: the value of an enumeration. */
#define CMD_WORD(type, member, list) \
    .store = cmd_store_word, .offset = CMD_AT(type, member, unsigned), .words = (list)
/* Options that several commands have; each is an entry of the table of a `type`. */
#define CMD_THREADS_OPTION(type, member)                                                \
    {                                                                                   \
        'j', "threads", "N",                                                            \
            "use N threads, 1 to 32 (default: one per processor, at most 8; more help " \
            "with slow storage)",                                                       \
            CMD_NUMBER(type, member, 1, 32, "1 to 32")                                  \
    }
#define CMD_FILE_OPTION(type, member)                                                \
    {                                                                                \
        'f', "file", "FILE", "write the output to this file", CMD_TEXT(type, member) \
    }
#define CMD_FOLDER_OPTION(type, member)                                \
    {                                                                  \
        'C', "directory", "DIR",                                       \
            "write into this directory; it is created if it does not " \
            "exist",                                                   \
            CMD_TEXT(type, member)                                     \
    }
/* The mirror of data that is read; 0: any good one. */
#define CMD_MIRROR_OPTION(type, member)                                                          \
    {                                                                                            \
        0, "mirror", "N", "read only this mirror of the data, counted from 1",                   \
            CMD_NUMBER(type, member, 1, UINT8_MAX, "a mirror, counted from 1; 'map' lists them") \
    }
#define CMD_FOLLOW_OPTION(type, member)                                                           \
    {                                                                                             \
        'L', "dereference", NULL, "follow a PATH that is a symbolic link", CMD_FLAG(type, member) \
    }

/** An entry that includes the options of a shared table. */
#define CMD_GROUP(table, type, member)                     \
    {                                                      \
        .group = (table), .offset = offsetof(type, member) \
    }

struct bw_error *cmd_store_flag(void *flag, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_store_text(void *text, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_store_number(void *number, const struct cmd_option *option,
                                  const char *argument);
struct bw_error *cmd_store_numbers(void *numbers, const struct cmd_option *option,
                                   const char *argument);
struct bw_error *cmd_store_append(void *strings, const struct cmd_option *option,
                                  const char *argument);
void cmd_release_strings(void *strings);
void cmd_release_numbers(void *numbers);
struct bw_error *cmd_store_part(void *part, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_store_bytes(void *bytes, const struct cmd_option *option,
                                 const char *argument);
struct bw_error *cmd_store_word(void *value, const struct cmd_option *option, const char *argument);

/** The error of a `store` function for an invalid argument; `allowed` names the valid ones. */
struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed);

/** Parses a decimal number from `minimum` to `maximum`; false if `text` is anything else. */
bool cmd_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number);

/** Parses a size or an address: decimal digits with an optional unit (bw_parse_size()), or 0x and
 * hexadecimal digits. Advances `text` past the number; false if there is no number. */
bool cmd_parse_bytes(const char **text, uint64_t *bytes);

/** Parses ADDRESS[+LENGTH] with an end below 16E; without a length it is 0. BW_ERROR_USAGE. */
struct bw_error *cmd_parse_range(const char *text, struct bw_address_range *range);

/** Options of all commands that open a file system, and options of all commands. */
extern const struct cmd_option cmd_image_options[], cmd_common_options[];
/** Groups in cmd_image_options: the options for a struct cmd_probe_settings, and for a struct
 * bw_generation_choice. */
extern const struct cmd_option cmd_probe_options[], cmd_generation_options[];

/** For a command without options. */
extern const struct cmd_option cmd_no_options[];
/** The options of a command that prints records, for a struct cmd_format_settings. */
extern const struct cmd_option cmd_format_options[];
/** The options of a command with sorts_rows, for a struct cmd_format_settings. */
extern const struct cmd_option cmd_order_options[];

/** The options of a command with takes_list, for a struct cmd_common. */
extern const struct cmd_option cmd_list_options[];

/** All options of a command in the order of its help: its own first, then the shared ones. */
enum { CMD_MAX_OPTIONS = 192 };
struct cmd_option_list {
    size_t count;
    struct {
        const struct cmd_option *option;
        char *settings;      /**< the structure that the option's table fills */
        const char *heading; /**< NULL: an option of the command itself */
    } items[CMD_MAX_OPTIONS];
};

/** The options of a command; `common` and `state` may be NULL if nothing is stored. */
struct cmd_option_list cmd_options_of(const struct command *command, struct cmd_common *common,
                                      void *state);

/** Whether there is an option of that name. */
bool cmd_has_option(const struct cmd_option_list *list, const char *name);

/** The index of the option with this letter, or the count if none exists. The command's own
 * options take precedence over shared ones, as -h of ls does. */
size_t cmd_find_letter(const struct cmd_option_list *list, int letter);

/** Prints the help of a command, or about a topic; `show` of --help. */
int cmd_show_help(const struct command *command, const void *state, const char *argument);

/** A topic of --help and its summary: topic `number`, from 0; NULL after the last one. */
const char *cmd_help_topic(size_t number, const char **summary);

/** The words that `help` accepts in addition to commands, for completions: word `number`, from 0,
 * and what it is about; NULL after the last one. */
const char *cmd_help_word(size_t number, const char **about);

/** Prints an error in the command line; returns STATUS_CANNOT. `argument` may be NULL. */
int cmd_usage_error(const struct command *command, const char *reason, const char *argument);

/** Words similar to a misspelt one, appended to a message as "; did you mean 'x' or 'y'". Begins
 * with `count` 0. */
struct cmd_suggestion {
    struct bw_buffer *message;
    const char *word;   /**< the misspelt word */
    const char *prefix; /**< printed before each suggestion: "" or "--" */
    unsigned count;     /**< words appended so far */
};

/** Appends a word if it is similar to the misspelt one. */
void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate);

/** Prints `word`, the reason why it is wrong, and similar command names to stderr; with `for_help`,
 * also the words that only `help` accepts. */
void cmd_print_unknown_command(const char *word, const char *reason, bool for_help);

/** Advice for a removed option of a command, given without dashes; NULL if no earlier version
 * had it. */
const char *cmd_instead_of_option(const char *command, const char *option);

/** The same for a command. */
const char *cmd_instead_of_command(const char *word);

#endif
