/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes of a command: the options --probe... and the consumers made from them. A session
 * creates them before it opens the file system, and destroys them after it has closed it.
 */
#ifndef BW_CLI_PROBES_PROBES_H
#define BW_CLI_PROBES_PROBES_H

#include "base/vector.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/record.h"

/** Settings of the options. All zeros: none was given. */
struct cmd_probe_settings {
    struct bw_const_strings patterns; /**< arguments of --probe, in order */
    const char *output;               /**< file; NULL or "-": stderr */
    const char *blackbox;
    enum { CMD_PROBES_TEXT, CMD_PROBES_JSON } format;
    enum { CMD_NO_STATS, CMD_STATS_BY_PROBE, CMD_STATS_BY_XLATOR } stats;
    bool limited;
    uint64_t maximum; /**< lines to print, if limited */
};

struct cmd_common;

/** The probe set of a session and its consumers. */
struct cmd_probes;

/** Creates the set and the consumers. Fails after wrong usage, or if memory runs out. */
struct bw_error *cmd_probes_create(const struct cmd_common *common, struct cmd_probes **watch);

/** The probe set, for opening a file system. */
struct bw_probes *cmd_probes_set_of(struct cmd_probes *watch);

/** Opens the outputs, which must not be input files. For bw_fs_options.planned. */
struct bw_error *cmd_probes_open(struct cmd_probes *watch, const struct bw_fs *fs);

/** From now on, buffered output is printed if a signal ends the program. */
void cmd_probes_start(struct cmd_probes *watch);

/** Prints the statistics and frees everything. Call it after the file system is closed; `watch` may
 * be NULL. */
struct bw_error *cmd_probes_close(struct cmd_probes *watch);

/** Writes the list of --probe-list to stdout and returns the exit status. `style` is "long", "json"
 * or "bpftrace"; NULL or "" for the names alone. */
int cmd_probe_list(const char *style);

/** Adds all probes and records to an open object of a JSON document. */
void cmd_probe_list_add(struct bw_json *json);

/* The flight recorder, whose last events are printed after a fatal signal. */

/** The name of a fatal signal; NULL for other signals. */
const char *cmd_recorder_signal(uint32_t number);

/** Prints the last events to stderr, for a fatal error. Does nothing without a recorder. */
void cmd_recorder_print_last(void);

#endif
