/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The du command: the lines of `btrfs filesystem du`, or rows. */
#include "btrfs-walk/du.h"

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "cli/common/listing.h"
#include "cli/common/paths.h"
#include "cli/common/progress.h"
#include "cli/common/selection.h"

struct du_state {
    struct cmd_rows_settings rows;
    struct cmd_selection selection;
    const char *subvolume;
    unsigned nested; /* enum bw_nested */
    bool summarize;
    int status; /* so far */
};

/* The work under way. */
struct du {
    struct du_state *state;
    struct cmd_listing *listing;
    struct bw_buffer line;
};

static const struct cmd_option options[] = {
    {'s', "summarize", NULL, "only a total for each PATH", CMD_FLAG(struct du_state, summarize)},
    CMD_GROUP(cmd_rows_options, struct du_state, rows),
    CMD_SELECTION(struct du_state, selection),
    CMD_SUBVOLUME_OPTION(struct du_state, subvolume),
    CMD_NESTED_OPTION(struct du_state, nested),
    {0},
};

static struct bw_error *write_row(struct du *du, const struct bw_du_entry *entry)
{
    const struct bw_bytes path = {entry->path, entry->path_length};
    const struct bw_duinfo row = {.path = path,
                                  .path_bytes = path,
                                  .type = bw_file_type_name(entry->place.type),
                                  .subvolume = bw_subvolume_id(entry->place.subvolume),
                                  .inode = entry->place.inode,
                                  .depth = entry->depth,
                                  .files = entry->files,
                                  .total = entry->total,
                                  .exclusive = entry->exclusive,
                                  .shared = entry->shared,
                                  .set_shared = entry->set_shared};
    const uint64_t unknown =
        BW_MEMBER(duinfo, exclusive) | BW_MEMBER(duinfo, shared) | BW_MEMBER(duinfo, set_shared);
    return cmd_listing_write(du->listing, &row, sizeof row,
                             !entry->sharing_known ? unknown
                             : entry->depth        ? BW_MEMBER(duinfo, set_shared)
                                                   : 0);
}

/* A column of 10, as btrfs-progs have it. */
static void append_size(const struct du *du, struct bw_buffer *line, bool known, uint64_t size)
{
    static const char padding[] = "          ";
    const struct cmd_rows_settings *rows = &du->state->rows;
    char number[BW_SIZE_ROOM] = "-", *end = number + 1;
    if (known)
        end = rows->raw ? bw_decimal(number, size) : bw_write_size(number, size, rows->si);
    const size_t length = (size_t)(end - number), width = sizeof padding - 1;
    bw_buffer_append(line, padding, length < width ? width - length : 0);
    bw_buffer_append(line, number, length);
    bw_buffer_append(line, padding, 2);
}

static struct bw_error *write_line(struct du *du, const struct bw_du_entry *entry)
{
    struct bw_buffer *line = &du->line;
    struct cmd_output *output = &du->listing->output;
    line->length = 0;
    append_size(du, line, true, entry->total);
    append_size(du, line, entry->sharing_known, entry->exclusive);
    append_size(du, line, entry->sharing_known && !entry->depth, entry->set_shared);
    (output->at_once ? bw_escape_append : bw_buffer_append)(line, entry->path, entry->path_length);
    bw_buffer_append_byte(line, '\n');
    return line->failed ? bw_error_no_memory() : cmd_write(output, line->data, line->length);
}

static struct bw_error *take(void *context, const struct bw_du_entry *entry)
{
    struct du *du = context;
    const unsigned types = du->state->selection.types;
    if (types && !(types & 1u << entry->place.type))
        return NULL;
    return (du->listing->stream.rows ? write_row : write_line)(du, entry);
}

static struct bw_error *list_path(struct du *du, const char *path)
{
    const struct cmd_selection *selection = &du->state->selection;
    const struct bw_du_options wanted = {
        .struct_size = sizeof wanted,
        .subvolume = du->state->subvolume,
        .start = path,
        .nested = du->state->nested,
        .selection = selection->selection,
        .has_maxdepth = du->state->summarize || selection->has_maxdepth,
        .maxdepth = du->state->summarize ? 0 : selection->maxdepth,
        .take = take,
        .context = du,
        .mindepth = du->state->summarize ? 0 : selection->mindepth,
    };
    cmd_progress_expect_trees(du->listing->session.fs, true);
    struct bw_error *error = bw_du(du->listing->session.fs, &wanted);
    if (!error || error->code != BW_ERROR_NOT_FOUND)
        return error;
    cmd_fail(du->listing->common, error);
    du->state->status = STATUS_PARTIAL;
    return NULL;
}

static struct bw_error *list(struct cmd_listing *listing, void *context)
{
    static const char heading[] = "     Total   Exclusive  Set shared  Filename\n";
    const struct cmd_common *common = listing->common;
    struct du du = {.state = context, .listing = listing};
    BW_TRY(cmd_selection_prepare(&du.state->selection, listing->session.fs, du.state->subvolume));
    struct bw_error *error =
        listing->stream.rows ? NULL : cmd_write(&listing->output, heading, sizeof heading - 1);
    if (!error && !common->path_count)
        error = list_path(&du, NULL);
    for (size_t i = 0; !error && i < common->path_count; i++)
        error = list_path(&du, common->paths[i]);
    bw_buffer_free(&du.line);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct du_state *du = state;
    struct cmd_rows_settings rows = du->rows;
    const struct cmd_listing_plan plan = {.record = cmd_du.record, .list = list, .context = du};
    if (!rows.columns && rows.style == BW_ROWS_TEXT) /* the lines have units, too */
        rows.iec = rows.si = false;
    const int status = cmd_listing_run(common, &rows, &plan);
    return status > du->status ? status : du->status;
}

const struct command cmd_du = {
    .name = "du",
    .topic = cmd_topic_files,
    .operands = "IMAGE [PATH]...",
    .summary = "Prints the space that data of files take, and how much of it is shared.",
    .details =
        "\n"
        "The lines are those of 'btrfs filesystem du', exact with --raw: for each file and\n"
        "directory below each PATH, or below the top directory, the bytes of files that lie in\n"
        "extents, those of them that are not shared, and of the PATH itself those that are, each\n"
        "byte on disk counted once. Shared are extents with several references, from whatever\n"
        "file, and all data below tree blocks that are shared with a snapshot. Subvolumes are\n"
        "entered unless --subvol or --nested=no is given. A file with several names is listed by "
        "the first of them.\n"
        "\n"
        "With filters, only files that meet them are counted, and a directory without such files\n"
        "is left out. --type and --maxdepth choose lines: what is not printed is counted, too.\n"
        "\n"
        "Data are counted, not metadata, and neither is compression: see 'compression' for what "
        "is\n"
        "stored, and 'qgroups' for the numbers of quotas.\n",
    .examples = "  btrfs-walk du disk.img /home              all below a directory\n"
                "  btrfs-walk du -s disk.img /snap/1 /snap/2  a line each\n"
                "  btrfs-walk du --raw --maxdepth 1 disk.img  exact; the top directory and what is "
                "in it\n"
                "  btrfs-walk du --name '*.iso' disk.img      of some files only\n"
                "  btrfs-walk du -o exclusive,path --type f disk.img | sort -n    what to delete "
                "first\n",
    .options = options,
    .record = "duinfo",
    .run = run,
    .state_size = sizeof(struct du_state),
    .takes_paths = true,
    .takes_list = true,
};
