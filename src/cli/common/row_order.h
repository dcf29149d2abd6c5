/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorted rows: --sort and --top, for all commands that print records with cmd_format_write(). */
#ifndef BW_CLI_COMMON_ROW_ORDER_H
#define BW_CLI_COMMON_ROW_ORDER_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/record.h"
#include "cli/common/settings.h"

struct cmd_sorted_row {
    bool is_known;               /**< the column */
    uint64_t number;             /**< its value, or 0 */
    size_t added;                /**< number of the row */
    size_t key, path, text, end; /**< in the bytes, one after the other */
};

BW_VECTOR(cmd_sorted_rows, struct cmd_sorted_row);

/** Rows that wait until all are known. All zeros: rows are not sorted. */
struct cmd_row_order {
    const struct bw_record *record;
    const struct bw_member *column; /**< NULL: the order in which rows were added */
    const struct bw_member *path;   /**< its order decides where the column is equal; or NULL */
    bool is_used, is_descending;
    size_t most; /**< how many rows are wanted; 0: all */
    struct cmd_sorted_rows rows;
    struct bw_buffer bytes; /**< keys, paths and texts of the rows */
};

/** Prepares the order that the settings select. `largest`: the column by which --top selects the
 * greatest rows without --sort; NULL: the first rows. BW_ERROR_USAGE if there is no such column. */
struct bw_error *cmd_row_order_begin(struct cmd_row_order *order,
                                     const struct cmd_format_settings *settings, const char *record,
                                     const char *largest);

/** Adds a row; append its text to order->bytes, then call cmd_row_order_end_row(). */
struct bw_error *cmd_row_order_add(struct cmd_row_order *order, const void *record, size_t size,
                                   uint64_t absent);

/** The text of the row is complete. Drops rows that will not be among the first `most`. */
struct bw_error *cmd_row_order_end_row(struct cmd_row_order *order);

/** Passes on the texts of the first rows. */
struct bw_error *cmd_row_order_pass_on(struct cmd_row_order *order,
                                       struct bw_error *(*take)(void *context, const char *text,
                                                                size_t length),
                                       void *context);

void cmd_row_order_free(struct cmd_row_order *order);

#endif
