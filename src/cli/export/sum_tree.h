/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sum --tree: one hash of a directory tree. */
#ifndef BW_CLI_EXPORT_SUM_TREE_H
#define BW_CLI_EXPORT_SUM_TREE_H

#include "cli/export/export.h"

/** Settings of the options. */
struct cmd_sum_tree {
    bool wanted;
    unsigned ignored; /**< bits of enum bw_tree_hash_parts */
};

/** The options for a struct cmd_sum_tree. */
extern const struct cmd_option cmd_sum_tree_options[];

/** Hashes the tree below the PATH, or below the top; returns the exit status.
 * `record`: the record of the rows. */
int cmd_sum_tree(const struct cmd_common *common, const struct cmd_sum_tree *wanted,
                 struct cmd_export_settings *settings, const char *record);

#endif
