/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compression command: the table of compsize(8), or rows. */
#include "btrfs-walk/compression.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/scale.h"
#include "btrfs-walk/records.h"
#include "cli/common/listing.h"
#include "cli/common/paths.h"
#include "cli/common/progress.h"
#include "cli/common/selection.h"

struct compression_state {
    struct cmd_rows_settings rows;
    struct cmd_selection selection;
    const char *subvolume;
    unsigned nested; /* enum bw_nested */
    int status;      /* so far */
};

static const struct cmd_option options[] = {
    CMD_GROUP(cmd_rows_options, struct compression_state, rows),
    CMD_SELECTION(struct compression_state, selection),
    CMD_SUBVOLUME_OPTION(struct compression_state, subvolume),
    CMD_NESTED_OPTION(struct compression_state, nested),
    {0},
};

static uint64_t percent_of(const struct bw_compression_sizes *sizes)
{
    return sizes->uncompressed ? bw_scale(sizes->disk, 100, sizes->uncompressed) : 0;
}

/* Text. */

static void append_line(struct bw_buffer *text, const struct compression_state *state,
                        const char *type, const struct bw_compression_sizes *sizes)
{
    const uint64_t numbers[] = {sizes->disk, sizes->uncompressed, sizes->referenced};
    char number[BW_SIZE_ROOM];
    bw_buffer_format(text, "%-10s %3" PRIu64 "%%     ", type, percent_of(sizes));
    for (unsigned i = 0; i < 3; i++) {
        if (state->rows.raw)
            snprintf(number, sizeof number, "%" PRIu64, numbers[i]);
        else
            *bw_write_size(number, numbers[i], state->rows.si) = '\0';
        bw_buffer_format(text, "%-12s%c", number, i < 2 ? ' ' : '\n');
    }
}

static struct bw_error *write_text(struct cmd_listing *listing,
                                   const struct compression_state *state,
                                   const struct bw_compression_info *info)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_format(&text,
                     "Processed %" PRIu64 " file%s, %" PRIu64 " regular extents (%" PRIu64
                     " refs), %" PRIu64 " inline.\n",
                     info->files, bw_plural(info->files), info->extents, info->references,
                     info->inlined);
    bw_buffer_format(&text, "%-10s %-8s %-12s %-12s %-12s\n", "Type", "Perc", "Disk Usage",
                     "Uncompressed", "Referenced");
    append_line(&text, state, "TOTAL", &info->total);
    for (unsigned type = 0; type < BW_COMPRESSION_KINDS; type++)
        if (info->types[type].uncompressed)
            append_line(&text, state, bw_compression_kind_name(type), &info->types[type]);
    return text.failed ? bw_error_no_memory() : cmd_write(&listing->output, text.data, text.length);
}

/* Rows. */

static struct bw_error *write_row(struct cmd_listing *listing, const char *type,
                                  const struct bw_compression_sizes *sizes,
                                  const struct bw_compression_info *total)
{
    struct bw_compressioninfo row = {.type = type,
                                     .percent = percent_of(sizes),
                                     .disk = sizes->disk,
                                     .uncompressed = sizes->uncompressed,
                                     .referenced = sizes->referenced};
    uint64_t absent = BW_MEMBER(compressioninfo, files) | BW_MEMBER(compressioninfo, extents) |
                      BW_MEMBER(compressioninfo, references) | BW_MEMBER(compressioninfo, inlined);
    if (total) {
        row.files = total->files;
        row.extents = total->extents;
        row.references = total->references;
        row.inlined = total->inlined;
        absent = 0;
    }
    if (!sizes->uncompressed)
        absent |= BW_MEMBER(compressioninfo, percent);
    return cmd_listing_write(listing, &row, sizeof row, absent);
}

static struct bw_error *write_rows(struct cmd_listing *listing,
                                   const struct bw_compression_info *info)
{
    BW_TRY(write_row(listing, "total", &info->total, info));
    for (unsigned type = 0; type < BW_COMPRESSION_KINDS; type++)
        if (info->types[type].uncompressed)
            BW_TRY(write_row(listing, bw_compression_kind_name(type), &info->types[type], NULL));
    return NULL;
}

/* Both. */

static struct bw_error *add(const struct cmd_common *common, struct compression_state *state,
                            struct bw_compression_count *count, const char *path)
{
    struct bw_error *error = bw_compression_add(count, state->subvolume, path);
    if (!error || error->code != BW_ERROR_NOT_FOUND)
        return error;
    cmd_fail(common, error);
    state->status = STATUS_PARTIAL;
    return NULL;
}

static struct bw_error *add_all(const struct cmd_common *common, struct compression_state *state,
                                struct bw_compression_count *count)
{
    const unsigned types = state->selection.types;
    if (types && !(types & BW_WALK_FILES))
        return NULL;
    if (!common->path_count)
        return add(common, state, count, NULL);
    for (size_t i = 0; i < common->path_count; i++)
        BW_TRY(add(common, state, count, common->paths[i]));
    return NULL;
}

static struct bw_error *list(struct cmd_listing *listing, void *context)
{
    struct compression_state *state = context;
    const struct bw_compression_options wanted = {
        .struct_size = sizeof wanted,
        .selection = state->selection.selection,
        .has_maxdepth = state->selection.has_maxdepth,
        .maxdepth = state->selection.maxdepth,
        .mindepth = state->selection.mindepth,
        .nested = state->nested,
    };
    struct bw_compression_info info = {0};
    struct bw_compression_count *count;
    BW_TRY(cmd_selection_prepare(&state->selection, listing->session.fs, state->subvolume));
    cmd_progress_expect_trees(listing->session.fs, true);
    BW_TRY(bw_compression_begin(listing->session.fs, &wanted, &count));
    struct bw_error *error = add_all(listing->common, state, count);
    if (!error)
        error = bw_compression_sum(count, &info);
    bw_compression_end(count);
    if (error)
        return error;
    return listing->stream.rows ? write_rows(listing, &info) : write_text(listing, state, &info);
}

static int run(const struct cmd_common *common, void *context)
{
    struct compression_state *state = context;
    struct cmd_rows_settings rows = state->rows;
    const struct cmd_listing_plan plan = {
        .record = cmd_compression.record, .list = list, .context = state};
    if (!rows.columns && rows.style == BW_ROWS_TEXT) /* the lines have units, too */
        rows.iec = rows.si = false;
    const int status = cmd_listing_run(common, &rows, &plan);
    return status > state->status ? status : state->status;
}

const struct command cmd_compression = {
    .name = "compression",
    .topic = cmd_topic_files,
    .operands = "IMAGE [PATH]...",
    .summary = "Prints how well files are compressed, by type of compression.",
    .details =
        "\n"
        "The table is that of compsize(8), exact with --raw, for all files below each PATH, or\n"
        "for all files: what their extents take on disk, what they would take without\n"
        "compression, and what files use of them. An extent is counted once, as a whole, however\n"
        "many files use however little of it; references, and data that lie inside the tree, are\n"
        "counted for each name of a file. Where less is referenced than there is, extents have\n"
        "been overwritten in part; where more is, they are shared. Subvolumes are entered.\n"
        "Copies, parity and metadata are not counted.\n"
        "\n"
        "With filters, only files that meet them are counted.\n",
    .examples = "  btrfs-walk compression disk.img             all files\n"
                "  btrfs-walk compression --raw disk.img /var  exact numbers\n"
                "  btrfs-walk compression --name '*.log' disk.img      some files\n"
                "  btrfs-walk compression -o type,percent disk.img     columns\n"
                "  btrfs-walk compression --json disk.img | jq .disk   for programs\n",
    .options = options,
    .record = "compressioninfo",
    .run = run,
    .state_size = sizeof(struct compression_state),
    .takes_paths = true,
    .takes_list = true,
};
