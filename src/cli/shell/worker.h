/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker of the shell: a confined process that opens the file system and runs commands on it,
 * one after the other. */
#ifndef BW_CLI_SHELL_WORKER_H
#define BW_CLI_SHELL_WORKER_H

#include "cli/command.h"

/** Opens the file system and sends a reply with the status; then answers requests until the channel
 * is closed. Returns the exit status of the process. */
int shell_work(const struct cmd_common *settings, int channel);

#endif
