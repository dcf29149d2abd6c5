/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line of progress: bytes, files, rate, time left. */
#include "cmd/common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/human.h"

#define SECOND   INT64_C(1000000000)
#define INTERVAL (SECOND / 5)

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

void cmd_progress_start(struct cmd_progress *progress, bool quiet)
{
    progress->shown = !quiet && isatty(STDERR_FILENO);
    progress->started = progress->last = now();
}

static void print_time_left(const struct cmd_progress *progress, int64_t elapsed)
{
    if (!progress->bytes || progress->bytes >= progress->total_bytes || elapsed < SECOND)
        return;
    double rest = (double)(progress->total_bytes - progress->bytes) / (double)progress->bytes;
    unsigned long left = (unsigned long)(rest * (double)elapsed / (double)SECOND);
    if (left >= 3600)
        fprintf(stderr, ", %lu:%02lu:%02lu left", left / 3600, left / 60 % 60, left % 60);
    else
        fprintf(stderr, ", %lu:%02lu left", left / 60, left % 60);
}

bool cmd_progress_is_due(const struct cmd_progress *progress)
{
    return progress->shown && now() - progress->last >= INTERVAL;
}

static void print_size(const char *before, uint64_t size, const char *after)
{
    char text[BW_SIZE_ROOM];
    *bw_write_short_size(text, size) = '\0';
    fprintf(stderr, "%s%s%s", before, text, after);
}

void cmd_progress_show(struct cmd_progress *progress)
{
    if (!cmd_progress_is_due(progress))
        return;
    progress->last = now();
    int64_t elapsed = progress->last - progress->started;
    double per_second = (double)progress->bytes * (double)SECOND / (double)elapsed;
    print_size("\r\033[K", progress->bytes, "");
    if (progress->total_bytes)
        print_size(" of ", progress->total_bytes, "");
    if (progress->details)
        fprintf(stderr, ", %s", progress->details);
    else
        fprintf(stderr, ", %" PRIu64 " of %" PRIu64 " files", progress->files,
                progress->total_files);
    print_size(", ", (uint64_t)per_second, "/s");
    print_time_left(progress, elapsed);
    fflush(stderr);
}

void cmd_progress_clear(const struct cmd_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

bool cmd_progress_scan(void *context, uint64_t done, uint64_t total)
{
    struct cmd_progress *progress = context;
    progress->bytes = done;
    progress->total_bytes = total;
    progress->details = "metadata";
    cmd_progress_show(progress);
    return true;
}

void cmd_progress_end(struct cmd_progress *progress)
{
    cmd_progress_clear(progress);
    progress->shown = false;
}
