/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening damaged file systems. bw_fs_open() itself uses the best superblock, backup roots and
 * rebuilt trees; what it does only on request is tried here, the quick attempts first.
 */
#include "cli/rescue/rescue.h"

#include "base/cleanup.h"
#include "cli/common/monitor.h"

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

/* Makes an attempt, without the messages of those before. On success, the rescue continues with its
 * options. */
static struct bw_error *attempt_plan(struct rescue *rescue, const struct cmd_common *first,
                                     const struct rescue_plan *plan, struct bw_fs **fs)
{
    struct cmd_common common = *first;
    if (!rescue_apply_plan(plan, &common.input))
        return bw_error_create(BW_ERROR_STOPPED, "nothing else to try");
    for (size_t i = 0; i < rescue->problem_count; i++)
        free(rescue->problems[i].message);
    rescue->problem_count = 0;
    rescue->is_damaged = false;
    rescue->repeats.count = 0;
    struct bw_fs_options options = cmd_fs_options(&common);
    options.planned = NULL;
    options.correct_bits = true;
    options.search_seconds = CMD_SEARCH_SECONDS;
    options.reporter = cmd_reporter(&rescue->common);
    options.searched = cmd_progress_search;
    options.decompressed = cmd_progress_decompress;
    BW_TRY(bw_fs_open(&options, fs));
    rescue->common.input = common.input;
    rescue->plan = *plan;
    return NULL;
}

/* Opens the file system again with a search of the whole devices. What it opens is kept if its
 * generation is at least `least`; otherwise, opens the file system as before. */
static struct bw_error *search_devices(struct rescue *rescue, const struct cmd_common *first,
                                       const struct rescue_plan *scan, uint64_t least)
{
    const struct rescue_plan before = rescue->plan;
    struct bw_fs *fs = NULL;
    BW_AUTO_ERROR struct bw_error *error = attempt_plan(rescue, first, scan, &fs);
    if (!error && bw_fs_status(fs).generation >= least) {
        bw_fs_close(rescue->fs);
        rescue->fs = fs;
        return NULL;
    }
    bw_fs_close(fs);
    bw_fs_close(BW_TAKE(rescue->fs));
    return attempt_plan(rescue, first, &before, &rescue->fs);
}

/* The damage was reported when the file system was opened without wrong checksums. A flipped bit
 * that only a search finds is not searched again: the block is accepted as it is. */
struct bw_error *rescue_open_unverified(struct rescue *rescue, struct bw_fs **fs)
{
    struct bw_fs_options options = cmd_fs_options(&rescue->common);
    options.planned = NULL;
    options.correct_bits = true;
    options.ignore_checksums = BW_CHECKSUMS_METADATA;
    options.reporter.report = NULL;
    return bw_fs_open(&options, fs);
}

struct bw_error *rescue_open(struct rescue *rescue)
{
    rescue->common.input.fs.ignore_checksums = 0; /* unverified files are searched separately */
    const struct cmd_common first = rescue->common;
    struct bw_error *why = NULL;
    for (size_t i = 0; i < ATTEMPTS && !rescue->fs; i++) {
        struct bw_error *error = attempt_plan(rescue, &first, &attempts[i], &rescue->fs);
        const enum bw_error_code code = error ? error->code : BW_ERROR_STOPPED;
        if (code == BW_ERROR_AMBIGUOUS) /* what a search has found explains more */
            why = bw_error_first(error, why);
        else
            why = bw_error_first(why, error);
        /* After other errors, another attempt cannot help: the images, not their contents, are the
         * problem. */
        if (code != BW_ERROR_STOPPED && code != BW_ERROR_CORRUPT && code != BW_ERROR_NOT_BTRFS &&
            code != BW_ERROR_MISSING_DEVICE && code != BW_ERROR_NOT_FOUND)
            break;
    }
    if (!rescue->fs)
        return why;
    bw_error_free(why);
    if (bw_fs_is_stream(rescue->fs))
        return bw_error_create(BW_ERROR_USAGE, "%s is a send stream; rescue is for file systems",
                               first.input.images[0]);
    cmd_progress_expect(0);

    /* If the root tree of an older generation replaces the current one, a search may find the
     * current one. */
    const uint64_t generation = bw_fs_status(rescue->fs).generation;
    bw_fs_superblock(rescue->fs, &rescue->super);
    if (generation < rescue->super.generation && !rescue->plan.scan &&
        !first.input.fs.state.generation)
        BW_TRY(search_devices(rescue, &first, &attempts[ATTEMPTS - 1], generation + 1));

    /* If only the lost superblock copy 0 could name the log tree, a search may find the log. */
    if (bw_fs_status(rescue->fs).log_is_unknown && !rescue->plan.scan) {
        struct rescue_plan scan = rescue->plan;
        scan.scan = true;
        BW_TRY(search_devices(rescue, &first, &scan, 0));
    }
    bw_fs_superblock(rescue->fs, &rescue->super);
    cmd_monitor_watch(rescue->fs, NULL, NULL);
    return NULL;
}
