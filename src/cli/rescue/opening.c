/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening damaged file systems. bw_fs_open() itself uses the best superblock, backup roots and
 * rebuilt trees; what it does not do without being asked is tried here, the quick attempts first.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"
#include "cli/rescue/rescue.h"

/* Attempts, in this order. The first is what every command does. */
static const struct rescue_plan attempts[] = {
    {.superblock_copy = 0},
    {.superblock_copy = BW_SUPERBLOCK_COPY_1},
    {.superblock_copy = BW_SUPERBLOCK_COPY_2},
    {.superblock_copy = BW_SUPERBLOCK_COPY_0},
    {.ignores_log = true},
    {.scan = true},
};

enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

static struct bw_error *try_to_open(struct rescue *rescue, const struct cmd_common *common,
                                    struct bw_fs **fs)
{
    struct bw_fs_options options = cmd_fs_options(common);
    options.planned = NULL;
    options.reporter = cmd_reporter(&rescue->common);
    options.searched = cmd_progress_search;
    options.decompressed = cmd_progress_decompress;
    return bw_fs_open(&options, fs);
}

/* Whether another attempt cannot help: the images, not their contents, are the problem. */
static bool is_final(const struct bw_error *error)
{
    return error->code != BW_ERROR_CORRUPT && error->code != BW_ERROR_NOT_BTRFS &&
           error->code != BW_ERROR_MISSING_DEVICE && error->code != BW_ERROR_NOT_FOUND;
}

/* Drops the messages of a failed attempt. */
static void forget_problems(struct rescue *rescue)
{
    for (size_t i = 0; i < rescue->problem_count; i++)
        free(rescue->problems[i].message);
    rescue->problem_count = 0;
    rescue->repeats.count = 0;
}

/* Makes an attempt. On success, the rescue continues with its options. */
static struct bw_error *attempt_plan(struct rescue *rescue, const struct cmd_common *first,
                                     const struct rescue_plan *plan, struct bw_fs **fs)
{
    struct cmd_common common = *first;
    if (!rescue_apply_plan(plan, &common.input))
        return bw_error_create(BW_ERROR_STOPPED, "nothing else to try");
    forget_problems(rescue);
    BW_TRY(try_to_open(rescue, &common, fs));
    rescue->common.input = common.input;
    rescue->plan = *plan;
    return NULL;
}

/* If the root tree of an older generation replaces the current one, a search of the whole devices
 * may find the current one. */
static struct bw_error *search_for_current(struct rescue *rescue, const struct cmd_common *first)
{
    const struct rescue_plan scan = attempts[ATTEMPTS - 1], before = rescue->plan;
    const uint64_t generation = bw_fs_status(rescue->fs).generation;
    struct bw_fs *fs = NULL;
    bw_fs_superblock(rescue->fs, &rescue->super);
    if (generation >= rescue->super.generation || before.scan || first->input.state.generation)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error = attempt_plan(rescue, first, &scan, &fs);
    const bool better = !error && bw_fs_status(fs).generation > generation;
    if (better) {
        bw_fs_close(rescue->fs);
        rescue->fs = fs;
        return NULL;
    }
    bw_fs_close(fs);
    bw_fs_close(BW_TAKE(rescue->fs));
    return attempt_plan(rescue, first, &before, &rescue->fs);
}

/* If only the lost superblock copy 0 could name the log tree, a search may find the log. */
static struct bw_error *search_for_log(struct rescue *rescue, const struct cmd_common *first)
{
    const struct rescue_plan before = rescue->plan;
    struct rescue_plan scan = before;
    struct bw_fs *fs = NULL;
    scan.scan = true;
    if (!bw_fs_status(rescue->fs).log_is_unknown || before.scan)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error = attempt_plan(rescue, first, &scan, &fs);
    if (!error) {
        bw_fs_close(rescue->fs);
        rescue->fs = fs;
        return NULL;
    }
    bw_fs_close(BW_TAKE(rescue->fs));
    return attempt_plan(rescue, first, &before, &rescue->fs);
}

struct bw_error *rescue_open(struct rescue *rescue)
{
    const struct cmd_common first = rescue->common;
    struct bw_error *error = NULL, *why = NULL;
    for (size_t i = 0; i < ATTEMPTS && !rescue->fs; i++) {
        error = attempt_plan(rescue, &first, &attempts[i], &rescue->fs);
        const bool ends = error && error->code != BW_ERROR_STOPPED && is_final(error);
        why = bw_error_first(why, error);
        if (ends)
            break;
    }
    if (!rescue->fs)
        return why;
    bw_error_free(why);
    if (bw_fs_is_stream(rescue->fs))
        return bw_error_create(BW_ERROR_USAGE, "%s is a send stream; rescue is for file systems",
                               first.input.images[0]);
    cmd_progress_expect(0);
    BW_TRY(search_for_current(rescue, &first));
    BW_TRY(search_for_log(rescue, &first));
    bw_fs_superblock(rescue->fs, &rescue->super);
    cmd_monitor_watch(rescue->fs, NULL, NULL);
    return NULL;
}
