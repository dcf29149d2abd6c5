/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exit statuses: which status an error leads to, and what each status means. --help, the manual
 * and the tables in README.md and docs/check.md are made from this table and from the tables of the
 * commands that differ (`meanings` in struct command). tests/command/statuses.sh brings each
 * command into situations that lead to its statuses.
 */
#include "cli/common/statuses.h"

#include <stddef.h>

const struct cmd_status cmd_statuses[] = {
    {STATUS_OK, "The output is complete, even if the file system is degraded or has bad copies "
                "that good ones replaced."},
    {STATUS_PARTIAL, "Part of the output is missing: lost blocks, an image that was not used, a "
                     "path that does not exist, a full disk."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {0},
};

/* The errors that do not lead to STATUS_CANNOT before the output begins, and to STATUS_PARTIAL
 * after that. */
static const struct {
    enum bw_error_code code;
    int before, after;
} exceptions[] = {
    {BW_ERROR_UNSUPPORTED, STATUS_UNSUPPORTED, STATUS_UNSUPPORTED},
    {BW_ERROR_NOT_FOUND, STATUS_CANNOT, STATUS_CANNOT},
    {BW_ERROR_USAGE, STATUS_CANNOT, STATUS_CANNOT},
};

int cmd_status_of(enum bw_error_code code, bool has_begun)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (exceptions[i].code == code)
            return has_begun ? exceptions[i].after : exceptions[i].before;
    return has_begun ? STATUS_PARTIAL : STATUS_CANNOT;
}
