/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands: what each is called, which options it takes, and what it needs to run. One grammar for
 * all: btrfs-walk [COMMAND] [OPTIONS] IMAGE [OPERANDS].
 */
#ifndef BW_CLI_COMMAND_H
#define BW_CLI_COMMAND_H

#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"

/** Meaning of an exit status; a table ends with an entry without a meaning. */
struct cmd_status {
    int status;
    const char *meaning;
};

/** Of all commands that have no others. */
extern const struct cmd_status cmd_statuses[];

struct command {
    const char *name;
    const char *topic;                /**< one of cmd_topic_... */
    const char *operands;             /**< operands in the usage line */
    const char *summary;              /**< one line */
    const char *details;              /**< text of --help between usage and options; may be empty */
    const char *examples;             /**< lines of --help after the options */
    const struct cmd_option *options; /**< of its own, for its state */
    const char *record;               /**< that it prints: it has cmd_answer_options; may be NULL */
    const char *other_record;         /**< of its rows, if its flag at `other` is set; NULL: none */
    size_t other;                     /**< CMD_AT(state, flag, bool) */
    /** Does the work; returns the exit status. */
    int (*run)(const struct cmd_common *common, void *state);
    size_t state_size;    /**< bytes of the state: what the options set, for `run` */
    const void *defaults; /**< state before any option; NULL: zeros */
    bool needs_no_image;  /**< its operands are not images; they are in cmd_input.images anyway */
    /** Its first operand is an image, or none if --graph names the images. Images of the same file
     * system that follow are its other devices; the rest are in cmd_common.paths. */
    bool takes_paths;
    bool takes_list;     /**< the same of any number of paths: it has cmd_list_options */
    const char *missing; /**< the message if it got no such operand; NULL: it needs none */
    /** Its own exit statuses in place of STATUS_OK, STATUS_PARTIAL, ...; NULL: those. `run` returns
     * its own anyway. */
    const unsigned char *statuses;
    const struct cmd_status *meanings; /**< NULL: cmd_statuses */
};

/** Headings in the list of commands. */
extern const char cmd_topic_files[], cmd_topic_export[], cmd_topic_volume[], cmd_topic_structures[],
    cmd_topic_program[];

extern const struct command cmd_info, cmd_super;
extern const struct command cmd_walk, cmd_graph, cmd_xlators, cmd_blackbox, cmd_help;
extern const struct command cmd_cat, cmd_extents, cmd_dump;
extern const struct command cmd_ls, cmd_stat, cmd_readlink, cmd_xattr;
extern const struct command cmd_devices, cmd_subvolumes, cmd_qgroups, cmd_tree_stats, cmd_log;
extern const struct command cmd_space;
extern const struct command cmd_chunks, cmd_map, cmd_usage, cmd_check, cmd_owner, cmd_du,
    cmd_compression;
extern const struct command cmd_diff, cmd_deleted, cmd_versions, cmd_roots;

extern const struct command cmd_picture, cmd_report;
extern const struct command cmd_sum, cmd_tar, cmd_extract, cmd_bodyfile, cmd_mount;

/** The record of the rows that a command writes. */
const char *cmd_record_of(const struct command *command, const void *state);

/** All commands, grouped by topic; ends with NULL. The first is the default. */
extern const struct command *const cmd_table[];

/** Parses the arguments of a command and runs it; returns the exit status. argv[0] is skipped. */
int cmd_run(const struct command *command, int argc, char **argv);

/** Writes all tables of the program as one JSON document, from which scripts/make-docs makes the
 * manual and the pages in docs. Returns the exit status. */
int cmd_dump_tables(void);

#endif
