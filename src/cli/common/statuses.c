/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exit statuses: which status an error leads to, what each status means, and which one counts.
 *
 * Whoever prints an error gets its status from cmd_status_of(), through cmd_fail(), cmd_miss() or
 * cmd_fail_output(). The status of a command is the worst (cmd_worse_status()) of those of its
 * errors and of what cmd_end() finds when it closes the file system. Last, cmd_run() translates it
 * for a command with statuses of its own, which is `check`.
 *
 * --help, the manual and the tables in README.md and docs/check.md are made from this table and
 * from the tables of the commands that differ (`meanings` in struct command).
 * tests/command/statuses.sh brings each command into situations that lead to its statuses.
 */
#include "cli/common/output.h"

const struct cmd_status cmd_statuses[] = {
    {STATUS_OK, "The output is complete, even if the file system is degraded or has bad mirrors "
                "that good ones replaced."},
    {STATUS_PARTIAL, "Part of the output is missing: lost blocks, an image that was not used, a "
                     "path that does not exist, a full disk."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {0},
};

int cmd_status_of(enum bw_error_code code, enum cmd_loss loss)
{
    if (code == BW_ERROR_UNSUPPORTED)
        return STATUS_UNSUPPORTED;
    if (loss == CMD_LOST_PART || code == BW_ERROR_NO_MEMORY)
        return STATUS_PARTIAL;
    /* The command line names something that does not exist, or contradicts itself. */
    if (code == BW_ERROR_NOT_FOUND || code == BW_ERROR_USAGE || loss == CMD_LOST_ALL)
        return STATUS_CANNOT;
    return STATUS_PARTIAL;
}

int cmd_worse_status(int status, int other)
{
    return status > other ? status : other;
}
