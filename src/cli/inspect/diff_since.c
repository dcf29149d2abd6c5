/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The generation of diff --since: the committed one with that number, or the newest whose last
 * change is not after that date. If its root tree is no longer on the disk, only the generations of
 * inodes remain. For a date, the subvolumes then show which transactions were before it: each
 * records the transactions of its creation and its last change, with their times.
 */
#include "cli/inspect/diff_since.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/human.h"

static struct bw_error *store_since(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct cmd_since *since = target;
    since->given = argument;
    if (cmd_parse_number(argument, 1, UINT64_MAX, &since->generation))
        return NULL;
    since->generation = 0;
    return bw_parse_date(argument, &since->date)
               ? NULL
               : cmd_bad_argument(option, argument,
                                  "a generation, a date like '2026-11-21 07:57' in UTC, or "
                                  "@SECONDS");
}

const struct cmd_option cmd_since_options[] = {
    {0, "since", "GEN|DATE", "list what changed in all subvolumes since a transaction or a date",
     .store = store_since},
    CMD_GROUP(cmd_generations_options, struct cmd_since, scan),
    {0},
};

static int64_t nanoseconds(struct timespec time)
{
    int64_t result;
    if (__builtin_mul_overflow((int64_t)time.tv_sec, INT64_C(1000000000), &result) ||
        __builtin_add_overflow(result, (int64_t)time.tv_nsec, &result))
        return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

/* The last transaction before a date, as far as the subvolumes show. */
struct last_before {
    int64_t date;
    uint64_t generation;
};

static struct bw_error *add_subvolume(void *context, const struct bw_subvolume_info *info)
{
    struct last_before *last = context;
    const uint64_t transactions[] = {info->otransid, info->ctransid};
    const struct timespec times[] = {info->otime, info->ctime};
    for (unsigned i = 0; i < 2; i++)
        if ((times[i].tv_sec || times[i].tv_nsec) && nanoseconds(times[i]) < last->date &&
            transactions[i] > last->generation)
            last->generation = transactions[i];
    return NULL;
}

/* Finds the wanted generation; `*found` is NULL if it is not in the list. */
static struct bw_error *find_entry(const struct cmd_since *since, const struct bw_history *history,
                                   const struct bw_generation_info **found, size_t *state)
{
    uint64_t generation = since->generation, present = 0;
    const struct bw_generation_info *info = NULL;
    *found = NULL;
    for (size_t i = 0; i < bw_history_count(history); i++) {
        info = bw_history_entry(history, i);
        if (info->sources & BW_GENERATION_OF_SUPERBLOCK)
            present = info->generation;
        if (!generation && info->status != BW_GENERATION_ABANDONED && !info->superseded &&
            (info->date.tv_sec || info->date.tv_nsec) && nanoseconds(info->date) <= since->date)
            generation = info->generation;
    }
    if (present && generation > present)
        return bw_error_create(BW_ERROR_USAGE, "--since %s: the newest generation is %" PRIu64,
                               since->given, present);
    if (!generation)
        return NULL;
    struct bw_error *error = bw_history_find(history, generation, state);
    if (!error)
        *found = bw_history_entry(history, *state);
    else if (error->code != BW_ERROR_NOT_FOUND)
        return error;
    bw_error_free(error);
    return NULL;
}

/* Without the generation. */
static struct bw_error *use_inodes(const struct cmd_since *since, struct cmd_index *index,
                                   struct bw_fs *fs, struct bw_diff_options *options)
{
    struct last_before last = {.date = since->date, .generation = since->generation};
    if (!since->generation) {
        BW_TRY(bw_fs_subvolumes(fs, false, add_subvolume, &last));
        options->since_time.tv_sec = since->date / 1000000000;
        options->since_time.tv_nsec = since->date % 1000000000;
        if (options->since_time.tv_nsec < 0) {
            options->since_time.tv_sec--;
            options->since_time.tv_nsec += 1000000000;
        }
    }
    options->since = last.generation ? last.generation : 1;
    fprintf(stderr,
            "btrfs-walk: %s: the state of %s%s is no longer on the disk: inodes show what was "
            "added or modified since then; what was deleted or renamed is unknown\n",
            index->before->input.images[0], since->generation ? "generation " : "", since->given);
    return NULL;
}

struct bw_error *cmd_since_open(const struct cmd_since *since, struct cmd_index *index,
                                struct bw_fs *fs, struct bw_diff_options *options,
                                struct bw_fs **before)
{
    struct bw_history_options how = {.struct_size = sizeof how, .only_list = true};
    struct bw_fs_options images = cmd_fs_options(index->before);
    struct bw_history *history = NULL;
    const struct bw_generation_info *info = NULL;
    char date[BW_DATE_LENGTH + 16];
    size_t state;
    *before = NULL;
    /* The superblock lists the last generations, which need no scan. */
    struct cmd_generations_settings settings = since->scan;
    settings.no_scan |= since->generation && !since->scan.index;
    BW_TRY(cmd_history_open(index, fs, &settings, &how, &history));
    struct bw_error *error = find_entry(since, history, &info, &state);
    if (!error && !info && settings.no_scan != since->scan.no_scan) {
        bw_history_close(history);
        BW_TRY(cmd_history_open(index, fs, &since->scan, &how, &history));
        error = find_entry(since, history, &info, &state);
    }
    if (!error && info) {
        images.planned = NULL;
        images.log = BW_LOG_IGNORE; /* what it contains changed later */
        images.reporter = cmd_reporter(index->before);
        error = bw_history_open_state(history, state, &images, before);
        if (error && error->code != BW_ERROR_NO_MEMORY)
            bw_error_free(BW_TAKE(error));
    }
    if (!error && *before) {
        options->since = info->generation;
        *bw_write_zoned_date(date, nanoseconds(info->date), false) = '\0';
        if (!index->before->messages.quiet)
            fprintf(stderr, "btrfs-walk: compared with generation %" PRIu64 " of %s\n",
                    info->generation, date);
    } else if (!error) {
        error = use_inodes(since, index, fs, options);
    }
    bw_history_close(history);
    return error;
}

void cmd_since_print_summary(const struct bw_diff_options *options,
                             const struct bw_diff_summary *summary)
{
    fprintf(stderr,
            "btrfs-walk: since generation %" PRIu64 ": %" PRIu64 " subvolume%s compared, %" PRIu64
            " unchanged%s\n",
            options->since, summary->subvolumes, bw_plural(summary->subvolumes), summary->unchanged,
            summary->by_generation ? "; deletions are unknown" : "");
}
