/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explaining the messages of a kernel log: the affected files of a file system, whether a good copy
 * exists, and what to do. For `rescue --dmesg`. */
#ifndef BW_CLI_RESCUE_DMESG_H
#define BW_CLI_RESCUE_DMESG_H

#include "cli/command.h"

/** Reads a log ("-": stdin), opens the file system, and writes a row of the record
 * `kernelmessageinfo` for each message. Returns the exit status. */
int dmesg_run(const struct cmd_common *common, const char *file);

#endif
