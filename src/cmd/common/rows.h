/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of `walk` that say what to write of each file: columns or JSON instead of paths. */
#ifndef BW_CMD_ROWS_H
#define BW_CMD_ROWS_H

#include <stdbool.h>

#include "btrfs-walk/rows.h"
#include "cmd/command.h"

/** What the options have set; all zeros: paths. */
struct cmd_rows_settings {
    const char *columns;   /**< as given; NULL: all, if it is JSON */
    const char *separator; /**< as given; NULL: a tab */
    enum bw_rows_style style;
    bool json_header, header;
    bool iec, si, raw;
};

/** The options, for a struct cmd_rows_settings. */
extern const struct cmd_option cmd_rows_options[];

/** Makes of the settings what a walk needs; NULL if they say that it writes paths. `terminator`
 * stands behind each row, `terminal`: somebody reads them on one. BW_ERROR_USAGE if the settings
 * contradict each other. */
struct bw_error *cmd_rows_create(const struct cmd_rows_settings *settings, char terminator,
                                 bool terminal, struct bw_rows **rows);

#endif
