/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of commands that write rows of a record: columns or JSON. */
#ifndef BW_CMD_ROWS_H
#define BW_CMD_ROWS_H

#include <stdbool.h>

#include "btrfs-walk/rows.h"
#include "cli/command.h"

/** What the options have set; all zeros: no rows, but what the command writes by default. */
struct cmd_rows_settings {
    const char *columns;   /**< as given; NULL: all, if it is JSON */
    const char *separator; /**< as given; NULL: a tab */
    enum bw_rows_style style;
    bool json_header, header;
    bool iec, si, raw;
    unsigned times; /**< enum bw_rows_times */
    bool times_given;
};

/** The options, for a struct cmd_rows_settings. A command that has them names its record. */
extern const struct cmd_option cmd_rows_options[];

/** Makes rows of a record (usually command->record) as the settings say; NULL if no rows are
 * wanted. `terminator` follows each row; `terminal`: they are written to one. BW_ERROR_USAGE if the
 * settings contradict each other. */
struct bw_error *cmd_rows_create(const struct cmd_rows_settings *settings, const char *record,
                                 char terminator, bool terminal, struct bw_rows **rows);

#endif
