/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options --since and --save: a baseline is read before the process confines itself, and
 * written at the end of a check that was finished. Until then, the file keeps its contents, so both
 * options can name the same file.
 */
#include "cli/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/human.h"

struct bw_error *check_read_baseline(struct check_run *check)
{
    const struct check_arguments *settings = check->settings;
    const char *since = settings->since;
    if (since && *since && strspn(since, "0123456789") == strlen(since)) {
        char *end;
        check->since_generation = strtoull(since, &end, 10);
        if (!check->since_generation)
            return bw_error_create(BW_ERROR_USAGE, "--since: there is no generation 0");
        if (settings->save)
            return bw_error_create(BW_ERROR_USAGE, "--save needs a whole check, or --since FILE");
    } else if (since) {
        BW_AUTO_BUFFER struct bw_buffer bytes = {0};
        BW_TRY(bw_buffer_read_file(&bytes, since));
        struct bw_error *error = bw_baseline_parse(bytes.data, bytes.length, &check->since);
        if (error)
            return bw_error_prefix(error, "%s", since);
    }
    return settings->save ? bw_baseline_create(&check->save) : NULL;
}

struct bw_error *check_open_outputs(void *context, const struct bw_fs *planned)
{
    struct check_run *check = context;
    BW_TRY(check_report_open(check, planned));
    if (!check->settings->save)
        return NULL;
    check->saved = cmd_output_file(check->common, check->settings->save);
    return cmd_output_file_open(&check->saved, planned);
}

bool check_close_baseline(struct check_run *check, bool finished)
{
    if (!check->save)
        return true;
    struct bw_error *error = NULL;
    if (finished) {
        error = cmd_output_file_start(&check->saved);
        if (!error)
            error = bw_baseline_write(check->save, cmd_write, &check->saved.output);
    }
    error = cmd_output_file_close(&check->saved, error);
    if (!finished && !check->common->messages.quiet)
        fprintf(stderr, "btrfs-walk: %s: not written, because the check is not finished\n",
                check->settings->save);
    if (!error)
        return true;
    cmd_fail(check->common, error);
    return false;
}

void check_print_skipped(const struct check_run *check)
{
    const struct bw_check_summary *summary = check->summary;
    if (!summary || (!check->since && !check->since_generation))
        return;
    char time[sizeof "2026-11-29 15:00"] = "";
    if (check->since) {
        const struct bw_baseline_info info = bw_baseline_info(check->since);
        const time_t seconds = (time_t)info.time;
        struct tm broken;
        strftime(time, sizeof time, "%Y-%m-%d %H:%M", localtime_r(&seconds, &broken));
        fprintf(stderr,
                "btrfs-walk: since generation %" PRIu64 " (%s): %" PRIu64 " new finding%s, %" PRIu64
                " gone\n",
                info.generation, time, summary->new_findings, bw_plural(summary->new_findings),
                summary->gone_findings);
        if (!summary->skipped_blocks && !summary->skipped_data)
            return;
        fprintf(stderr, "btrfs-walk: not read: %" PRIu64 " unchanged tree block%s",
                summary->skipped_blocks, bw_plural(summary->skipped_blocks));
        if (check->settings->data)
            fprintf(stderr, " and %s of unchanged data",
                    cmd_size(NULL, summary->skipped_data).text);
    } else {
        fprintf(stderr,
                "btrfs-walk: not read: tree blocks%s of generation %" PRIu64
                " and before; not compared: space, references, inodes, quotas",
                check->settings->data ? " and data" : "", check->since_generation);
    }
    fprintf(stderr, "; later damage to their storage is not found\n");
}
