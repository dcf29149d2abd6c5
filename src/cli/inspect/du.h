/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the du command: its options, and its views that are not a list of files. */
#ifndef BW_CLI_INSPECT_DU_H
#define BW_CLI_INSPECT_DU_H

#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"
#include "cli/common/selection.h"

/** Words of --by. */
enum du_by { DU_BY_NONE, DU_BY_USER, DU_BY_GROUP, DU_BY_TYPE, DU_BY_AGE };

/** A du command. */
struct du {
    /* The options. */
    struct cmd_selection selection;
    bool summarize, ncdu, shared_with;
    unsigned by; /**< enum du_by */

    /* While it runs. */
    struct cmd_format *format;

    /* The file for ncdu while it is being written. */
    const char *title;       /**< name of the top directory */
    struct bw_buffer folder; /**< path of the open directory below the top */
    struct bw_buffer text;   /**< the current piece of the output */
    bool begun;
};

/** Visits the files below all paths, as the options of the command select them; `how` has the
 * visitor. Reports paths that do not exist. */
struct bw_error *du_visit(struct cmd_format *format, const struct du *du, struct bw_du_options how);

/** --by: writes the sums of all files below the paths (du_sums.c). */
struct bw_error *du_write_sums(struct cmd_format *format, void *du);

/** --shared-with: writes the groups of files that have extents in common (du_shared.c). */
struct bw_error *du_write_shared(struct cmd_format *format, void *du);

/** The columns of the table of --by. */
const char *du_sum_columns(const struct du *du);

#endif
