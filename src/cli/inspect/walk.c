/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk command: the paths of all regular files, or rows about them. The default command. */
#include "btrfs-walk/walk.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/command.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"

struct walk_state {
    struct bw_walk_options options;
    struct cmd_selection selection;
    bool summary;
};

static const char *const orders[] = {
    [BW_WALK_UNSORTED] = "none",  [BW_WALK_BY_PATH] = "path",   [BW_WALK_BY_SIZE] = "size",
    [BW_WALK_BY_MTIME] = "mtime", [BW_WALK_BY_INODE] = "inode", NULL};

/* A '-' before the word reverses the order. */
static struct bw_error *store_order(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct walk_state *walk = target;
    unsigned order;
    walk->options.reverse = *argument == '-';
    BW_TRY(cmd_store_word(&order, option, argument + walk->options.reverse));
    walk->options.order = order;
    return NULL;
}

static const struct cmd_option options[] = {
    {0, "sort", "WORD",
     "sort in memory by path, size, mtime or inode, or -size: largest first; none: in the order of "
     "the walk (default)",
     .store = store_order, .words = orders},
    CMD_TREE(struct walk_state, selection),
    CMD_PART_OPTION(struct walk_state, selection),
    CMD_THREADS_OPTION(struct walk_state, options.threads),
    {0, "summary", NULL, "print counts, bytes of metadata read, round trips and seconds to stderr",
     CMD_FLAG(struct walk_state, summary)},
    {0},
};

/* Rows as -o and --json select them, or else paths. */
static int run(const struct cmd_common *common, void *state)
{
    struct walk_state *walk = state;
    struct bw_rows *rows = NULL;
    const bool terminal = !common->format.null && isatty(STDOUT_FILENO);
    const struct bw_rows_options paths = {
        .struct_size = sizeof paths,
        .style = BW_ROWS_PATHS,
        .terminator = common->format.null ? '\0' : '\n',
        .escape = terminal,
    };
    struct bw_error *error =
        cmd_format_rows(&common->format, cmd_walk.record, true, terminal, &rows);
    if (!error && !rows)
        error = bw_rows_create(cmd_walk.record, &paths, &rows);
    walk->options.struct_size = sizeof walk->options;
    walk->options.rows = rows;
    cmd_selection_apply(&walk->selection, &walk->options);
    struct cmd_session session;
    const int64_t start = bw_clock(CLOCK_MONOTONIC);
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_open(common, &session);
    if (status) {
        bw_rows_destroy(rows);
        return status;
    }

    struct bw_walk_summary summary = {0};
    struct cmd_output output = {.at_once = isatty(STDOUT_FILENO)};
    struct bw_rows_stream stream = {.rows = rows, .consume = cmd_write, .context = &output};
    walk->options.consume = bw_rows_take;
    walk->options.context = &stream;
    error = cmd_selection_prepare(&walk->selection, session.fs);
    cmd_progress_expect_trees(session.fs, true);
    for (size_t i = 0; !error && i < (common->path_count ? common->path_count : 1); i++) {
        struct bw_walk_summary part = {0};
        walk->options.start = common->path_count ? common->paths[i] : NULL;
        error = bw_walk(session.fs, &walk->options, &part);
        summary.files += part.files;
        summary.directories += part.directories;
        summary.subvolumes += part.subvolumes;
        summary.lost_blocks += part.lost_blocks;
        if (error && error->code == BW_ERROR_NOT_FOUND && common->path_count)
            status = cmd_worse_status(status, cmd_miss(common, BW_TAKE(error)));
    }
    /* A wrong --subvol is detected only in the image; then there are no rows to end. */
    if (!error || (error->code != BW_ERROR_NOT_FOUND && error->code != BW_ERROR_USAGE))
        error = bw_error_first(error, bw_rows_end(&stream));
    error = bw_error_first(error, cmd_flush(&output));
    if (!error && !summary.files)
        cmd_report_nested(common, session.fs, &walk->selection);
    if (walk->summary) {
        const double seconds = (double)(bw_clock(CLOCK_MONOTONIC) - start) / BW_SECOND;
        fprintf(stderr,
                "%" PRIu64 " file%s, %" PRIu64 " director%s, %" PRIu64 " subvolume%s, %" PRIu64
                " lost block%s, %" PRIu64 " bytes of metadata read, %" PRIu64
                " round trip%s, %.3f seconds\n",
                summary.files, bw_plural(summary.files), summary.directories,
                summary.directories == 1 ? "y" : "ies", summary.subvolumes,
                bw_plural(summary.subvolumes), summary.lost_blocks, bw_plural(summary.lost_blocks),
                bw_fs_bytes_read(session.fs), bw_fs_round_trips(session.fs),
                bw_plural(bw_fs_round_trips(session.fs)), seconds);
    }
    bw_rows_destroy(rows);
    return cmd_end(common, &session, error, status);
}

const struct command cmd_walk = {
    .name = "walk",
    .topic = cmd_topic_files,
    .operands = "IMAGE... [PATH]...",
    .summary = "Prints the path of every regular file of a file system.",
    .details =
        "\n"
        "Paths begin at the top-level subvolume (id 5) and include all subvolumes and\n"
        "snapshots. With --subvol, paths begin at that subvolume, and nested subvolumes are\n"
        "excluded. A PATH lists only that directory with everything below it. Only regular\n"
        "files are listed, unless --type is given. -o and --json print more than the path of\n"
        "each file.\n",
    .examples = "  btrfs-walk disk.img                          list all files\n"
                "  btrfs-walk -0 disk.img | xargs -0 -n1 echo   for names with any bytes\n"
                "  btrfs-walk --subvol @home /dev/sdb1          one subvolume\n"
                "  btrfs-walk disk.img /@home/joe               one directory\n"
                "  btrfs-walk --summary a.img b.img c.img       three devices of one RAID5\n"
                "  btrfs-walk -o size,mtime,path disk.img       columns\n"
                "  btrfs-walk disk.img -name '*.jpg' -size +1M  with find's options\n"
                "  btrfs-walk --json disk.img | jq .size        all details of each file\n",
    .options = options,
    .record = "fileinfo",
    .run = run,
    .state_size = sizeof(struct walk_state),
    .takes_paths = true,
    .takes_list = true,
};
