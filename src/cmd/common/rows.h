/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of `walk` that say what to write of each file: columns or JSON instead of paths. */
#ifndef BW_CMD_ROWS_H
#define BW_CMD_ROWS_H

#include <stdbool.h>

#include "btrfs-walk/rows.h"

struct cmd_option;

/** What the options have set; all zeros: paths. */
struct cmd_rows_settings {
    const char *columns;   /**< as given; NULL: all, if it is JSON */
    const char *separator; /**< as given; NULL: a tab */
    enum bw_rows_style style;
    bool json_header, header;
    bool iec, si, raw;
};

/** Letters of the options. */
enum cmd_rows_option {
    CMD_OPTION_OUTPUT = 'o',
    CMD_OPTION_JSON = 300,
    CMD_OPTION_JSON_HEADER,
    CMD_OPTION_HEADER,
    CMD_OPTION_SEPARATOR,
    CMD_OPTION_IEC,
    CMD_OPTION_SI,
    CMD_OPTION_RAW,
};

/** Takes one of them; false if its argument makes no sense, or if it is none of them. */
bool cmd_rows_set(struct cmd_rows_settings *settings, int letter, const char *argument);

/** Whether the list of columns is asked for, and nothing else. */
bool cmd_rows_ask_columns(const struct cmd_rows_settings *settings);

/** Writes that list to stdout. */
struct bw_error *cmd_rows_list_columns(void);

/** Makes of the settings what a walk needs; NULL if they say that it writes paths. `terminator`
 * stands behind each row, `terminal`: somebody reads them on one. BW_ERROR_USAGE if the settings
 * contradict each other. */
struct bw_error *cmd_rows_create(const struct cmd_rows_settings *settings, char terminator,
                                 bool terminal, struct bw_rows **rows);

#endif
