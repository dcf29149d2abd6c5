/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compression command: the table of compsize(8), or rows. */
#include "btrfs-walk/space.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/scale.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"

struct compression_state {
    struct cmd_selection selection;
};

static const struct cmd_option options[] = {
    CMD_TREE(struct compression_state, selection),
    {0},
};

static struct bw_error *print_line(struct cmd_format *format, const void *record)
{
    const struct bw_compressioninfo *row = record;
    const struct cmd_format_settings *settings = &format->settings;
    struct bw_buffer *text = &format->text;
    const bool is_total = row->files != BW_ABSENT;
    if (is_total) {
        /* The first line is about all types together. */
        bw_buffer_format(text,
                         "Processed %" PRIu64 " file%s, %" PRIu64 " regular extents (%" PRIu64
                         " refs), %" PRIu64 " inline.\n",
                         row->files, bw_plural(row->files), row->extent_count, row->references,
                         row->inline_);
        bw_buffer_format(text, "%-10s %-8s %-12s %-12s %-12s\n", "Type", "Perc", "Disk Usage",
                         "Uncompressed", "Referenced");
    }
    /* Without any data, there is no percentage. */
    const uint64_t percent = row->percent == BW_ABSENT ? 0 : row->percent;
    bw_buffer_format(text, "%-10s %3" PRIu64 "%%     ", is_total ? "TOTAL" : row->compression,
                     percent);
    bw_buffer_format(text, "%-12s %-12s %-12s\n", cmd_size(settings, row->disk).text,
                     cmd_size(settings, row->uncompressed).text,
                     cmd_size(settings, row->referenced).text);
    return NULL;
}

/* Rows. */

static struct bw_error *write_row(struct cmd_format *format, const char *type,
                                  const struct bw_compression_sizes *sizes,
                                  const struct bw_compression_info *info)
{
    const bool is_total = sizes == &info->total;
    struct bw_compressioninfo row = {.compression = type,
                                     .disk = sizes->disk,
                                     .uncompressed = sizes->uncompressed,
                                     .referenced = sizes->referenced,
                                     .percent = BW_ABSENT,
                                     .files = cmd_if_known(is_total, info->files),
                                     .extent_count = cmd_if_known(is_total, info->extents),
                                     .references = cmd_if_known(is_total, info->references),
                                     .inline_ = cmd_if_known(is_total, info->inlined)};
    if (sizes->uncompressed)
        row.percent = bw_scale(sizes->disk, 100, sizes->uncompressed);
    return cmd_format_write(format, &row, sizeof row);
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct compression_state *state = context;
    const struct bw_compression_options wanted = {
        .struct_size = sizeof wanted,
        .selection = state->selection.selection,
        .has_maxdepth = state->selection.has_maxdepth,
        .maxdepth = state->selection.maxdepth,
        .mindepth = state->selection.mindepth,
        .nested = state->selection.nested,
        .no_snapshots = state->selection.no_snapshots,
    };
    struct bw_compression_info info = {0};
    struct bw_compression_count *count;
    BW_TRY(cmd_selection_prepare(&state->selection, format->session.fs));
    cmd_progress_expect_trees(format->session.fs, true);
    BW_TRY(bw_compression_open(format->session.fs, &wanted, &count));
    struct bw_error *error = NULL;
    const struct cmd_common *common = format->common;
    const unsigned types = state->selection.types;
    const bool wants_files = !types || types & BW_WALK_FILES;
    for (size_t i = 0; wants_files && !error && (i < common->path_count || !i); i++) {
        const char *path = common->path_count ? common->paths[i] : NULL; /* NULL: all files */
        error = bw_compression_add(count, state->selection.subvolume, path);
        if (error && error->code == BW_ERROR_NOT_FOUND)
            cmd_format_miss(format, BW_TAKE(error));
    }
    if (!error)
        error = bw_compression_sum(count, &info);
    bw_compression_close(count);
    if (error)
        return error;
    BW_TRY(write_row(format, "total", &info.total, &info));
    for (unsigned type = 0; type < BW_COMPRESSION_KINDS; type++)
        if (info.types[type].uncompressed)
            BW_TRY(write_row(format, bw_compression_kind_name(type), &info.types[type], &info));
    return NULL;
}

static const struct cmd_format_plan plan = {.print = print_line, .has_units = true, .list = list};

const struct command cmd_compression = {
    .name = "compression",
    .topic = cmd_topic_space,
    .operands = "IMAGE [PATH]...",
    .summary = "Prints the compression ratio of files by type.",
    .details =
        "\n"
        "The table has the format of compsize(8); --raw prints exact numbers. For all files,\n"
        "or those below each PATH, it shows the size of their extents on disk, their size\n"
        "without compression, and the bytes that files refer to. Each extent is counted once\n"
        "and as a whole, even if many files share it or a file uses only a part of it.\n"
        "References, and inline data, are counted for each name of a file. If fewer bytes are\n"
        "referenced than stored, extents have been partly overwritten; if more, they are\n"
        "shared. Subvolumes are entered. Copies, parity and metadata are not counted.\n\n"
        "With filters, only files that meet them are counted.\n",
    .examples = "  btrfs-walk compression disk.img                         all files\n"
                "  btrfs-walk compression --raw disk.img /var              exact numbers\n"
                "  btrfs-walk compression --name '*.log' disk.img          some files\n"
                "  btrfs-walk compression -o compression,percent disk.img  columns\n"
                "  btrfs-walk compression --json disk.img | jq .disk       for programs\n",
    .options = options,
    .record = "compressioninfo",
    .sorts_rows = true,
    .plan = &plan,
    .state_size = sizeof(struct compression_state),
    .takes_paths = true,
    .takes_list = true,
};
