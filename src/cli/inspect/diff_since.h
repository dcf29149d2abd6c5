/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generation of diff --since. */
#ifndef BW_CLI_INSPECT_DIFF_SINCE_H
#define BW_CLI_INSPECT_DIFF_SINCE_H

#include "cli/common/generations.h"

/** The arguments of --since and the options for its scan. */
struct cmd_since {
    const char *given; /**< NULL: the option was not given */
    uint64_t generation;
    int64_t date; /**< nanoseconds since 1970, if `generation` is 0 */
    struct cmd_generations_settings scan;
};

/** The options of a struct cmd_since. */
extern const struct cmd_option cmd_since_options[];

/** Finds the generation, and sets options->since and since_time. `*before` is the generation, which
 * the caller closes; NULL if it is no longer on the disk, which is reported. */
struct bw_error *cmd_since_open(const struct cmd_since *since, struct cmd_index *index,
                                struct bw_fs *fs, struct bw_diff_options *options,
                                struct bw_fs **before);

/** Reports how much was compared. */
void cmd_since_print_summary(const struct bw_diff_options *options,
                             const struct bw_diff_summary *summary);

#endif
