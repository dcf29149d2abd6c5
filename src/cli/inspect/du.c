/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The du command: the lines of `btrfs filesystem du`, or rows. */
#include "btrfs-walk/space.h"

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"
#include "cli/inspect/du_ncdu.h"

struct du_state {
    struct cmd_selection selection;
    bool summarize, ncdu;
};

/* A running du command. */
struct du {
    struct du_state *state;
    struct cmd_answer *answer;
    struct du_ncdu ncdu;
};

static const struct cmd_option options[] = {
    {'s', "summarize", NULL, "only a total for each PATH", CMD_FLAG(struct du_state, summarize)},
    {0, "ncdu", NULL, "write a file for 'ncdu -f', with shared data as hard links",
     CMD_FLAG(struct du_state, ncdu)},
    CMD_TREE(struct du_state, selection),
    {0},
};

static struct bw_error *write_row(void *context, const struct bw_du_entry *entry)
{
    struct du *du = context;
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
                                  .set_shared = entry->set_shared,
                                  .extent_count = entry->extent_count,
                                  .disk = entry->disk};
    const uint64_t unknown =
        BW_MEMBER(duinfo, exclusive) | BW_MEMBER(duinfo, shared) | BW_MEMBER(duinfo, set_shared);
    return cmd_answer_write(du->answer, &row, sizeof row,
                            !entry->sharing_known ? unknown
                            : entry->depth        ? BW_MEMBER(duinfo, set_shared)
                                                  : 0);
}

/* Right-aligned in 10 columns, as in btrfs-progs. */
static void append_size(const struct cmd_answer_settings *settings, struct bw_buffer *line,
                        bool known, uint64_t size)
{
    static const char padding[] = "          ";
    char number[BW_SIZE_ROOM] = "-", *end = number + 1;
    if (known)
        end = settings->raw ? bw_decimal(number, size) : bw_write_size(number, size, settings->si);
    const size_t length = (size_t)(end - number), width = sizeof padding - 1;
    bw_buffer_append(line, padding, length < width ? width - length : 0);
    bw_buffer_append(line, number, length);
    bw_buffer_append(line, padding, 2);
}

static struct bw_error *print_line(struct cmd_answer *answer, const void *record, uint64_t absent)
{
    const struct bw_duinfo *row = record;
    const struct cmd_answer_settings *settings = &answer->settings;
    struct bw_buffer *line = &answer->text;
    append_size(settings, line, true, row->total);
    append_size(settings, line, !(absent & BW_MEMBER(duinfo, exclusive)), row->exclusive);
    append_size(settings, line, !(absent & BW_MEMBER(duinfo, set_shared)), row->set_shared);
    (answer->output.at_once ? bw_escape_append : bw_buffer_append)(line, row->path.data,
                                                                   row->path.length);
    bw_buffer_append_byte(line, '\n');
    return NULL;
}

static struct bw_error *write_entry(void *context, const struct bw_du_entry *entry)
{
    struct du *du = context;
    const unsigned types = du->state->selection.types;
    if (types && !(types & 1u << entry->place.type))
        return NULL;
    return du->state->ncdu ? du_ncdu_write(&du->ncdu, entry) : write_row(du, entry);
}

static struct bw_error *list_path(struct du *du, const char *path)
{
    const struct cmd_selection *selection = &du->state->selection;
    const struct bw_du_options wanted = {
        .struct_size = sizeof wanted,
        .subvolume = selection->subvolume,
        .start = path,
        .nested = selection->nested,
        .selection = selection->selection,
        .has_maxdepth = du->state->summarize || selection->has_maxdepth,
        .maxdepth = du->state->summarize ? 0 : selection->maxdepth,
        .visit = write_entry,
        .context = du,
        .mindepth = du->state->summarize ? 0 : selection->mindepth,
    };
    cmd_progress_expect_trees(du->answer->session.fs, true);
    struct bw_error *error = bw_du(du->answer->session.fs, &wanted);
    if (!error || error->code != BW_ERROR_NOT_FOUND)
        return error;
    du->answer->status = cmd_miss(du->answer->common, error);
    return NULL;
}

static struct bw_error *list_paths(struct du *du)
{
    const struct cmd_common *common = du->answer->common;
    struct bw_error *error = common->path_count ? NULL : list_path(du, NULL);
    for (size_t i = 0; !error && i < common->path_count; i++)
        error = list_path(du, common->paths[i]);
    return error;
}

static struct bw_error *export_ncdu(struct du *du)
{
    const struct cmd_common *common = du->answer->common;
    BW_AUTO_BUFFER struct bw_buffer title = {0};
    bw_buffer_format(&title, "%s", common->input.images[0]);
    if (common->path_count)
        bw_buffer_format(&title, ":%s", common->paths[0]);
    if (title.failed)
        return bw_error_no_memory();
    du->ncdu = (struct du_ncdu){.output = &du->answer->output, .title = title.data};
    struct bw_error *error = list_paths(du);
    error = bw_error_first(error, du_ncdu_end(&du->ncdu));
    du_ncdu_free(&du->ncdu);
    return error;
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    static const char heading[] = "     Total   Exclusive  Set shared  Filename\n";
    struct du du = {.state = context, .answer = answer};
    BW_TRY(cmd_selection_prepare(&du.state->selection, answer->session.fs));
    if (du.state->ncdu)
        return export_ncdu(&du);
    if (!answer->stream.rows)
        BW_TRY(cmd_write(&answer->output, heading, sizeof heading - 1));
    return list_paths(&du);
}

/* The reason why the options contradict each other; NULL if they do not. */
static const char *find_contradiction(const struct cmd_common *common, const struct du_state *du)
{
    const struct cmd_selection *selection = &du->selection;
    if (!du->ncdu)
        return NULL;
    if (common->path_count > 1)
        return "--ncdu shows one PATH";
    if (!cmd_answer_is_for_people(common) || common->answer.iec || common->answer.si)
        return "--ncdu has its own format: it excludes -o, --json, --iec and --si";
    if (du->summarize || common->answer.sort || common->answer.top || selection->has_maxdepth ||
        selection->mindepth || selection->types)
        return "--ncdu needs all files: it excludes -s, --sort, --top, --type, --mindepth and "
               "--maxdepth";
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct du_state *du = state;
    const struct cmd_answer_plan plan = {.record = cmd_du.record,
                                         .print = print_line,
                                         .has_units = true,
                                         .list = list,
                                         .context = du,
                                         .largest = "total"};
    const char *reason = find_contradiction(common, du);
    if (reason)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "%s", reason));
    return cmd_answer_run(common, &plan);
}

const struct command cmd_du = {
    .name = "du",
    .topic = cmd_topic_space,
    .operands = "IMAGE [PATH]...",
    .summary = "Prints the space that files use, and how much is shared.",
    .details =
        "\n"
        "The output has the format of 'btrfs filesystem du'; --raw prints exact numbers. For\n"
        "each file and directory below each PATH (default: the top directory), it shows the\n"
        "bytes in extents and how many of them are exclusive. For PATH itself, it also shows\n"
        "the shared bytes, counting each byte on disk once. An extent is shared if it has\n"
        "several references, from any file, or if it is below a tree block that a snapshot\n"
        "shares. Subvolumes are entered unless --subvol or --nested=no is given. A file with\n"
        "several names is listed under the first of them.\n\n"
        "With filters, only files that meet them are counted, and directories without such\n"
        "files are omitted. --type and --maxdepth choose the lines to print; files that are\n"
        "not printed still count.\n\n"
        "Only data are counted, not metadata, and sizes are those before compression. With\n"
        "-o, disk is the stored size, and extent_count shows fragmented files. 'compression'\n"
        "shows stored sizes by type, 'qgroups' the numbers of quotas.\n\n"
        "With --ncdu, files with the same shared data are hard links of one inode, so that\n"
        "ncdu counts these data once in each directory. A file that also has exclusive data\n"
        "is shown as two entries: NAME and 'NAME (shared)'. --top alone means the lines with\n"
        "the largest total.\n",
    .examples =
        "  btrfs-walk du disk.img /home               a directory\n"
        "  btrfs-walk du -s disk.img /snap/1 /snap/2  a line each\n"
        "  btrfs-walk du --raw --maxdepth 1 disk.img  exact numbers of the top directory\n"
        "  btrfs-walk du --name '*.iso' disk.img      only some files\n"
        "  btrfs-walk du --sort -exclusive --top 20 --type f disk.img  what to delete first\n"
        "  btrfs-walk du --ncdu disk.img | ncdu -f-   browse the sizes\n",
    .options = options,
    .record = "duinfo",
    .sorts_rows = true,
    .run = run,
    .state_size = sizeof(struct du_state),
    .takes_paths = true,
    .takes_list = true,
};
