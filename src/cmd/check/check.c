/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The check command: what is wrong with a file system, a line a finding. */
#include "btrfs-walk/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "cmd/command.h"

/* The exit statuses of fsck(8). */
enum { CHECK_ERRORS = 4, CHECK_UNFINISHED = 8, CHECK_USAGE = 16 };

struct check_state {
    bool quick, data, all;
    unsigned threads;
};

static const struct cmd_option options[] = {
    {0, "quick", NULL, "superblocks, chunk and root tree only, one copy of each block",
     CMD_FLAG(struct check_state, quick)},
    {0, "data", NULL, "also read all data that have checksums", CMD_FLAG(struct check_state, data)},
    {0, "all", NULL, "print every finding, not only 20 of a kind",
     CMD_FLAG(struct check_state, all)},
    {0, "threads", "N", "number of threads", CMD_THREADS(struct check_state, threads)},
    {0},
};

static struct bw_error *print_finding(void *context, const struct bw_finding *finding)
{
    (void)context;
    printf("%s %s", bw_finding_severity_name(finding->code->severity), finding->code->word);
    if (finding->known & BW_KNOWN_TREE)
        printf(" tree %" PRId64, (int64_t)finding->tree);
    if (finding->known & BW_KNOWN_KEY)
        printf(" key (%" PRIu64 " %s %" PRIu64 ")", finding->key.objectid,
               bw_key_type_name(finding->key.type), finding->key.offset);
    if (finding->known & BW_KNOWN_LOGICAL)
        printf(" logical %" PRIu64, finding->logical);
    if (finding->known & BW_KNOWN_COPY)
        printf(" copy %u", finding->copy);
    if (finding->known & BW_KNOWN_DEVICE)
        printf(" device %" PRIu64 " offset %" PRIu64, finding->devid, finding->offset);
    printf(": %s%s", finding->message, finding->mendable ? " (mendable)" : "");
    for (size_t i = 0; i < finding->path_count; i++)
        printf(" %.*s", (int)finding->paths[i].length, finding->paths[i].data);
    printf("\n");
    return NULL;
}

static void ignore(void *context, enum bw_severity severity, const struct bw_error *error)
{
    (void)context;
    (void)severity;
    (void)error;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct check_state *settings = state;
    struct bw_fs_options open = cmd_fs_options(common);
    struct bw_fs *fs = NULL;
    struct bw_check_summary *summary = NULL;
    open.log = BW_LOG_IGNORE;
    open.reporter = (struct bw_reporter){ignore, NULL};
    struct bw_check_options check = {.struct_size = sizeof check,
                                     .quick = settings->quick,
                                     .data = settings->data,
                                     .all = settings->all,
                                     .threads = settings->threads,
                                     .take = print_finding};
    BW_AUTO_ERROR struct bw_error *why = bw_fs_open(&open, &fs);
    if (why)
        return fprintf(stderr, "btrfs-walk: %s\n", why->message), CHECK_UNFINISHED;
    BW_AUTO_ERROR struct bw_error *error = bw_check(fs, &check, &summary);
    if (error)
        fprintf(stderr, "btrfs-walk: %s\n", error->message);
    for (size_t i = 0; summary && i < summary->count; i++)
        printf("%s: %" PRIu64 "\n", summary->counts[i].code->word, summary->counts[i].count);
    int status = !summary || !summary->finished ? CHECK_UNFINISHED : 0;
    if (summary && summary->totals[BW_FINDING_ERROR])
        status |= CHECK_ERRORS;
    bw_check_summary_free(summary);
    bw_fs_close(fs);
    return status;
}

const struct command cmd_check = {
    .name = "check",
    .topic = cmd_topic_volume,
    .operands = "IMAGE...",
    .summary = "check a file system and all its copies",
    .details = "",
    .examples = "  btrfs-walk check disk.img\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct check_state),
};
