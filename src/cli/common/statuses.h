/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exit statuses of commands. */
#ifndef BW_CLI_COMMON_STATUSES_H
#define BW_CLI_COMMON_STATUSES_H

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

/** What an error did to the output of a command. */
enum cmd_loss {
    CMD_LOST_ALL,  /**< the command ended before its output began */
    CMD_LOST_REST, /**< it ended the output, which may have begun */
    CMD_LOST_PART, /**< a part of the output is missing; the command continues */
};

/** The status for an error. cmd_end() in session.h combines the statuses of a command. */
int cmd_status_of(enum bw_error_code code, enum cmd_loss loss);

#endif
