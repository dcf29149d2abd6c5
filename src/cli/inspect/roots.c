/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The roots command: the historic roots of a file system, and how much of each can be read.
 * cmd_history_open() finds them, in the superblocks, in an index or by a scan; each is a row, or
 * with
 * --trees, each of its trees.
 */
#include "btrfs-walk/history.h"

#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/tree.h"
#include "cli/common/generations.h"
#include "cli/common/output_format.h"

/* A running listing. */
struct roots {
    /* The options. */
    struct cmd_index index;
    unsigned threads;
    bool trees;

    /* While it runs. */
    struct cmd_format *format;
    struct bw_history *history;
    const struct bw_generation_info *info; /* the historic root whose trees are listed */
};

static const struct cmd_option options[] = {
    CMD_GROUP(cmd_index_options, struct roots, index),
    {0, "trees", NULL, "list the trees of each root", CMD_FLAG(struct roots, trees)},
    CMD_THREADS_OPTION(struct roots, threads),
    {0},
};

/* Output as rows. */

/* How much is recoverable, as a word; NULL if unknown. */
static const char *recoverable_word(bool verified, bool readable, uint64_t missing)
{
    if (!verified)
        return NULL;
    if (!readable)
        return "lost";
    return missing ? "partly" : "whole";
}

static struct bw_error *write_root(struct roots *roots, const struct bw_generation_info *info)
{
    static const char *const backups[] = {"", "backup-0", "backup-1", "backup-2", "backup-3"};
    const struct {
        unsigned source;
        const char *word;
    } sources[] = {{BW_GENERATION_OF_SUPERBLOCK, "superblock"},
                   {BW_GENERATION_OF_BACKUP, backups[info->backup]},
                   {BW_GENERATION_OF_SCAN, "scan"}};
    struct bw_bytes words[sizeof sources / sizeof *sources];
    struct bw_names found = {NULL, 0}; /* where the root was found */
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (info->sources & sources[i].source)
            words[found.length++] = (struct bw_bytes){sources[i].word, strlen(sources[i].word)};
    if (found.length)
        found.data = words;

    const int64_t date = bw_time_nanoseconds(&info->date);
    const struct bw_stateinfo row = {
        .generation = info->generation,
        .changed = date ? date : BW_ABSENT_SIGNED,
        .found = found,
        .status = bw_generation_status_name(info->status),
        .recoverable = recoverable_word(info->assessed, info->readable, info->missing),
        .lost_blocks = cmd_if_known(info->assessed, info->missing),
        .trimmed = cmd_if_known(info->assessed, info->trimmed),
        .overwritten = cmd_if_known(info->assessed, info->missing - info->trimmed),
        .trees = info->trees,
        .trees_damaged = cmd_if_known(info->assessed, info->trees_damaged),
        .subvolume_count = info->subvolumes,
        .readable_subvolumes = cmd_if_known(info->assessed, info->subvolumes_readable),
        .tree_root = info->tree_root,
        .chunk_root = cmd_if_known(info->chunk_root, info->chunk_root),
    };
    return cmd_format_write(roots->format, &row, sizeof row);
}

static struct bw_error *write_tree(void *context, const struct bw_generation_tree *tree)
{
    struct roots *roots = context;
    char name[BW_KEY_TEXT];
    const struct bw_statetreeinfo row = {
        .generation = roots->info->generation,
        .tree_root = roots->info->tree_root,
        .tree = tree->id,
        .tree_name = bw_tree_id_text(tree->id, name),
        .root = tree->root,
        .tree_generation = tree->generation,
        .level = tree->level,
        .recoverable = recoverable_word(tree->assessed, tree->readable, tree->missing),
        .lost_blocks = cmd_if_known(tree->assessed, tree->missing),
        .trimmed = cmd_if_known(tree->assessed, tree->trimmed),
        .overwritten = cmd_if_known(tree->assessed, tree->missing - tree->trimmed),
        .deleted = tree->is_deleted,
    };
    return cmd_format_write(roots->format, &row, sizeof row);
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct roots *roots = context;
    roots->format = format;
    struct bw_history_options how = {.struct_size = sizeof how, .threads = roots->threads};
    struct bw_error *error =
        cmd_history_open(format->common, format->session.fs, &how, &roots->history);
    for (size_t i = 0; !error && i < bw_history_count(roots->history); i++) {
        roots->info = bw_history_entry(roots->history, i);
        if (roots->trees)
            error = bw_history_trees(roots->history, i, write_tree, roots);
        else
            error = write_root(roots, roots->info);
    }
    bw_history_close(roots->history);
    return error;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct roots *roots = state;
    struct cmd_format_plan plan = {
        .columns = "generation,changed,found,status,recoverable,lost_blocks,trimmed,"
                   "readable_subvolumes,subvolume_count,tree_root",
        .list = list};
    if (roots->trees) {
        plan.record = "statetreeinfo";
        plan.columns = "generation,tree_root,tree_name,root,tree_generation,recoverable,"
                       "lost_blocks,trimmed";
    }
    return plan;
}

static int run(const struct cmd_common *common, void *state)
{
    struct roots *roots = state;
    struct cmd_common own = *common;
    own.input.index = &roots->index;
    return cmd_run_plan(&own, &cmd_roots, state);
}

const struct command cmd_roots = {
    .name = "roots",
    .topic = cmd_topic_history,
    .operands = "IMAGE...",
    .summary = "Lists older generations whose roots are still on the disk.",
    .details =
        "\n"
        "The root tree of a transaction stays on the disk until other data overwrite it. The\n"
        "superblock contains the addresses of the last four; a scan of all metadata chunks\n"
        "finds the others. The scan runs if there are at most 64 GiB of metadata chunks, or\n"
        "with --scan. Each line is a historic root: its generation; the newest time in its list\n"
        "of subvolumes; where it was found; whether its transaction was committed; and whether\n"
        "its tree blocks are complete, or how many are missing. Missing blocks that contain\n"
        "zeros were trimmed. A subvolume is readable if its root block is intact.\n\n"
        "With --generation N, or --tree-root ADDRESS@N, other commands read that generation. A\n"
        "transaction may write several root trees and abandon all but the last; they have the\n"
        "same generation.\n",
    .examples = "  btrfs-walk roots disk.img                   list historic roots\n"
                "  btrfs-walk roots --trees disk.img           and their trees\n"
                "  btrfs-walk roots --index disk.idx disk.img  the next time without a scan\n"
                "  btrfs-walk ls --generation 17 disk.img /    one of them\n",
    .options = options,
    .record = "stateinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .run = run,
    .state_size = sizeof(struct roots),
};
