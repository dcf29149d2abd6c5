/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watching a command: the options --probe... and the consumers made from them. The session creates
 * them before it opens the file system and destroys them after it is closed.
 */
#ifndef BW_CLI_PROBES_PROBES_H
#define BW_CLI_PROBES_PROBES_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/json.h"
#include "btrfs-walk/recorder.h"

/** What the options have set; all zeros: nothing. */
struct cmd_probe_settings {
    const char **patterns; /**< of each --probe, in order; room for one an argument */
    size_t pattern_count;
    const char *filter; /**< expression; NULL: none */
    const char *output; /**< file; NULL or "-": stderr */
    const char *blackbox;
    enum { CMD_PROBES_TEXT, CMD_PROBES_JSON } format;
    enum { CMD_NO_STATS, CMD_STATS_BY_PROBE, CMD_STATS_BY_XLATOR } stats;
    bool limited;
    uint64_t maximum; /**< lines to print, if limited */
};

struct cmd_common;

/** The probes of a session with their consumers. */
struct cmd_probes;

/** Creates them. Fails because of wrong usage, or if memory runs out. */
struct bw_error *cmd_probes_create(const struct cmd_common *common, struct cmd_probes **watch);

/** The set to open a file system with. */
struct bw_probes *cmd_probes_set_of(struct cmd_probes *watch);

/** Opens the outputs, which must not be input files. For bw_fs_options.planned. */
struct bw_error *cmd_probes_open(struct cmd_probes *watch, const struct bw_fs *fs);

/** Has what is held back printed when a signal ends the program. */
void cmd_probes_start(struct cmd_probes *watch);

/** Prints the statistics and frees everything, after the file system is closed; NULL is allowed. */
struct bw_error *cmd_probes_close(struct cmd_probes *watch);

/** Writes the list of --probe-list to stdout and returns the exit status. `style` is NULL or "" for
 * the names alone, or "long", "json" or "bpftrace". */
int cmd_probe_list(const char *style);

/** Adds all probes and records to an open object of a JSON document. */
void cmd_probe_list_add(struct bw_json *json);

/* The flight recorder, whose last events are printed when the program dies. */

/** The name of a signal that makes it do so; NULL if it is another one. */
const char *cmd_recorder_signal(uint32_t number);

/** Prints the last events to stderr, for an error that ends the work. Does nothing if it was not
 * started. */
void cmd_recorder_print_last(void);

#endif
