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

void cmd_progress_show(struct cmd_progress *progress)
{
    int64_t time = progress->shown ? now() : 0;
    if (!progress->shown || time - progress->last < INTERVAL)
        return;
    progress->last = time;
    int64_t elapsed = time - progress->started;
    double per_second = (double)progress->bytes * (double)SECOND / (double)elapsed;
    char done[BW_SIZE_ROOM], total[BW_SIZE_ROOM], rate[BW_SIZE_ROOM];
    *bw_write_short_size(done, progress->bytes) = '\0';
    *bw_write_short_size(total, progress->total_bytes) = '\0';
    *bw_write_short_size(rate, (uint64_t)per_second) = '\0';
    fprintf(stderr, "\r\033[K%s of %s, %" PRIu64 " of %" PRIu64 " files, %s/s", done, total,
            progress->files, progress->total_files, rate);
    print_time_left(progress, elapsed);
    fflush(stderr);
}

void cmd_progress_end(struct cmd_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
