/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The map of bad ranges: one line each, with the reason of the first piece in it. */
#include "cli/common/bad_ranges.h"

#include <inttypes.h>

const char *const cmd_on_error_words[] = {
    [CMD_ON_ERROR_FAIL] = "fail", [CMD_ON_ERROR_ZERO] = "zero", [CMD_ON_ERROR_SKIP] = "skip", NULL};

void cmd_bad_flush(struct cmd_bad_ranges *bad)
{
    if (!bad->error)
        return;
    const char *what = bad->on_error == CMD_ON_ERROR_ZERO   ? ", zeros in their place"
                       : bad->on_error == CMD_ON_ERROR_SKIP ? ", left out"
                                                            : "";
    bw_fs_report(bad->fs, BW_DAMAGE,
                 bw_error_prefix(bad->error,
                                 "%s: bytes %" PRIu64 " to %" PRIu64 " cannot be read%s", bad->path,
                                 bad->offset, bad->offset + bad->length - 1, what));
    bad->error = NULL;
}

void cmd_bad_add(struct cmd_bad_ranges *bad, const char *path, const struct bw_data_part *part)
{
    if (bad->error && bad->path == path && bad->offset + bad->length == part->offset) {
        bad->length += part->length;
        return;
    }
    cmd_bad_flush(bad);
    bad->path = path;
    bad->offset = part->offset;
    bad->length = part->length;
    bad->error = bw_error_create(part->error->code, "%s", part->error->message);
}

struct bw_error *cmd_bad_error(const char *path, const struct bw_data_part *part)
{
    return bw_error_create(part->error->code,
                           "%s: bytes %" PRIu64 " to %" PRIu64 " cannot be read: %s", path,
                           part->offset, part->offset + part->length - 1, part->error->message);
}
