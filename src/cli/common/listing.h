/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands have in common that list records of a file system, and whose operands are all
 * images: opening them, writing each record, and ending with the right status. Without -o and
 * --json the records are a table for people: aligned columns below their names, with units and
 * dates, and with names escaped as `ls -b` does.
 */
#ifndef BW_CMD_LISTING_H
#define BW_CMD_LISTING_H

#include "cli/command.h"
#include "cli/common/rows.h"

/** The end of the help of all of them. */
#define CMD_LISTING_DETAILS                                                                        \
    "\nNumbers are exact with --raw, -o and --json. A value that is not known is '-' in a column," \
    " and\nleft out in JSON.\n"

/** A listing under way. */
struct cmd_listing {
    const struct cmd_common *common;
    struct cmd_session session;
    struct cmd_output output;     /**< stdout, for text that the command writes by itself */
    struct bw_rows_stream stream; /**< `rows` is NULL if the command writes text by itself */
    struct bw_buffer table;       /**< rows that wait to be aligned */
    int status;                   /**< of what the command met by itself */
};

/** What a command lists, and how. */
struct cmd_listing_plan {
    const char *record;  /**< usually command->record */
    const char *columns; /**< of the table, as for -o; NULL: without -o and --json the command
                            writes text by itself */
    /** Writes all records. BW_ERROR_USAGE ends with STATUS_CANNOT, and so does nothing else. */
    struct bw_error *(*list)(struct cmd_listing *listing, void *context);
    void *context;
    bool null_terminated; /**< rows that are no table end with NUL */
};

/** Opens the images, lists, and closes; returns the exit status. */
int cmd_listing_run(const struct cmd_common *common, const struct cmd_rows_settings *settings,
                    const struct cmd_listing_plan *plan);

/** Lists into `table` what the command prints for people, with the names of the columns in the
 * first line, and tabs between columns. The session stays open. */
struct bw_error *cmd_listing_gather(const struct cmd_common *common,
                                    const struct cmd_session *session,
                                    const struct cmd_listing_plan *plan, struct bw_buffer *table);

/** Writes a record, as bw_rows_write() does. */
static inline struct bw_error *cmd_listing_write(struct cmd_listing *listing, const void *record,
                                                 size_t size, uint64_t absent)
{
    return bw_rows_write(&listing->stream, record, size, absent);
}

#endif
