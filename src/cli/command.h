/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands: their names, options and operands. All follow one grammar: btrfs-walk [COMMAND]
 * [OPTIONS] IMAGE [OPERANDS].
 */
#ifndef BW_CLI_COMMAND_H
#define BW_CLI_COMMAND_H

#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"

struct command {
    const char *name;
    const char *topic;                /**< one of cmd_topic_... */
    const char *operands;             /**< operands in the usage line */
    const char *summary;              /**< one line */
    const char *details;              /**< text of --help between usage and options; may be empty */
    const char *examples;             /**< lines of --help after the options */
    const struct cmd_option *options; /**< the command's own options, which set its state */
    const char *record; /**< the record that it prints, with cmd_format_options; may be
                         * NULL */
    /** How it prints records: always in the same way, or with this state; see cmd_plan_of(). Both
     * NULL: `run` decides. */
    const struct cmd_format_plan *plan;
    struct cmd_format_plan (*plan_of)(const void *state);
    bool sorts_rows; /**< with `record`: it has cmd_order_options, which cmd_format_write() obeys */
    /** Finds options that exclude each other, before it runs; NULL if there are none. */
    const char *(*find_mistake)(const struct cmd_common *common, const void *state);
    /** Runs the command; returns the exit status. NULL: it writes the records of the plan. */
    int (*run)(const struct cmd_common *common, void *state);
    size_t state_size;    /**< size of the state, which the options set and `run` reads */
    const void *defaults; /**< the state before any option is parsed; NULL: zeros */
    bool needs_no_image;  /**< its operands are not images, although cmd_input.images contains them
                           */
    /** Its first operand is an image, unless --graph names the images. Operands that follow and are
     * images of the same file system are its other devices; the rest are in cmd_common.paths. */
    bool takes_paths;
    bool takes_list;     /**< with `takes_paths`: it has cmd_list_options, such as --files-from */
    const char *missing; /**< the error message if no path is given; NULL: it needs none */
    /** With `missing`: whether the options replace paths. NULL: they never do. */
    bool (*needs_no_path)(const void *state);
    /** The exit status for STATUS_OK, STATUS_PARTIAL, ..., which `run` has returned, or for wrong
     * usage; NULL: it is the same. */
    int (*exit_status)(const void *state, int status);
    const struct cmd_status *meanings; /**< NULL: cmd_statuses */
};

/** Headings in the list of commands. */
extern const char cmd_topic_files[], cmd_topic_export[], cmd_topic_history[], cmd_topic_health[],
    cmd_topic_space[], cmd_topic_subvolumes[], cmd_topic_structures[], cmd_topic_program[],
    cmd_topic_developers[];

extern const struct command cmd_info, cmd_super, cmd_show;
extern const struct command cmd_walk, cmd_graph, cmd_xlators, cmd_blackbox, cmd_help;
extern const struct command cmd_cat, cmd_extents, cmd_dump;
extern const struct command cmd_ls, cmd_stat, cmd_xattr;
extern const struct command cmd_devices, cmd_subvolumes, cmd_qgroups, cmd_tree_stats, cmd_log;
extern const struct command cmd_space, cmd_free;
extern const struct command cmd_chunks, cmd_map, cmd_usage, cmd_check, cmd_owner, cmd_du,
    cmd_compression;
extern const struct command cmd_diff, cmd_deleted, cmd_versions, cmd_roots;

extern const struct command cmd_picture, cmd_report, cmd_rescue, cmd_repair;
extern const struct command cmd_metadump, cmd_send, cmd_sum, cmd_tar, cmd_extract, cmd_bodyfile,
    cmd_mount, cmd_copy;

/** All commands, grouped by topic; ends with NULL. The first is the default. */
extern const struct command *const cmd_table[];

/** The command with a name; NULL if it does not exist. */
const struct command *cmd_find(const char *name);

/** Parses the arguments of a command and runs it; returns the exit status. argv[0] is ignored. */
int cmd_run(const struct command *command, int argc, char **argv);

/** The same as a step of another command: with its keys, which may have come from stdin, its limit
 * of searches, and with paths in its folder (common->writing.base). */
int cmd_run_step(const struct cmd_input *input, const struct cmd_folder *base,
                 const struct command *command, int argc, char **argv);

/** Prints the completions of the last word of a command line for the scripts in completions/;
 * `words` follow the name of the program. Returns the exit status. */
int cmd_complete(char **words, size_t count);
/** The same for a command line of bash up to the cursor; `breaks` is COMP_WORDBREAKS. */
int cmd_complete_bash(const char *breaks, const char *line);

/** Writes all tables of the program as one JSON document, from which scripts/make-docs generates
 * the manual and the pages in docs. Returns the exit status. */
int cmd_dump_tables(void);

#endif
