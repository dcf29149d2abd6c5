/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exit statuses of commands. */
#ifndef BW_CLI_COMMON_STATUSES_H
#define BW_CLI_COMMON_STATUSES_H

#include <stdbool.h>

#include "btrfs-walk/error.h"

/** Exit statuses. `check` has its own instead: see cli/check/check.h. */
enum {
    STATUS_OK = 0,
    STATUS_PARTIAL = 1,     /**< the output is incomplete */
    STATUS_DIFFERENT = 1,   /**< diff --exit-code: there are differences */
    STATUS_CANNOT = 2,      /**< wrong usage, or the file system cannot be opened */
    STATUS_UNSUPPORTED = 3, /**< the image needs a feature that is not supported */
};

/** An exit status and its meaning. In the last entry of a table, the meaning is NULL. */
struct cmd_status {
    int status;
    const char *meaning;
};

/** The exit statuses of commands whose `meanings` is NULL. */
extern const struct cmd_status cmd_statuses[];

/** The status for an error that ends a command. `has_begun`: the file system was opened, so part of
 * the output may exist. */
int cmd_status_of(enum bw_error_code code, bool has_begun);

#endif
