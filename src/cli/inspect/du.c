/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The du command: the space that files use, as the lines of `btrfs filesystem du`, as rows, or as a
 * file for ncdu; du_sums.c has its sums of owners, suffixes and ages, du_shared.c the files that
 * share data.
 *
 * bw_du() passes on each file, and each directory after its contents. For ncdu, directories come
 * before their contents: when the first file in one arrives, switch_directory() writes the
 * directories on its path that are not open yet.
 */
#include <time.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/monitor.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/inspect/du.h"

static const char *const by_words[] = {
    [DU_BY_NONE] = "",     [DU_BY_USER] = "user", [DU_BY_GROUP] = "group",
    [DU_BY_TYPE] = "type", [DU_BY_AGE] = "age",   NULL};

static const struct cmd_option options[] = {
    {'s', "summarize", NULL, "only a total for each PATH", CMD_FLAG(struct du, summarize)},
    {0, "ncdu", NULL, "write a file for 'ncdu -f', with shared data as hard links",
     CMD_FLAG(struct du, ncdu)},
    {0, "by", "WORD", "print sums of files: by user, group, type (suffix) or age",
     CMD_WORD(struct du, by, by_words)},
    {0, "shared-with", NULL, "list groups of files that have extents in common",
     CMD_FLAG(struct du, shared_with)},
    CMD_TREE(struct du, selection),
    {0},
};

/*
 * Sizes of files for ncdu. A directory is an array of objects and arrays; its first object is the
 * directory itself. Source: https://dev.yorhel.nl/ncdu/jsonfmt (version 1.2).
 *
 * ncdu counts hard links once in each directory above them, and shows what directories share. So
 * the shared data of a file becomes a hard link: files with the same shared data have the same
 * inode number, which is the hash of the addresses. A file that also has exclusive data becomes
 * two entries.
 *
 * bw_du() passes a directory on after its contents; here it comes before them, when its first file
 * does. Directories may be deeper than base/json can nest, so their brackets are written here.
 */

/* Appends an entry of the file. `inode`: of a hard link; otherwise 0. */
static void append_item(struct du *du, const char *name, size_t length, const char *suffix,
                        uint64_t size, uint64_t inode)
{
    BW_AUTO_BUFFER struct bw_buffer whole = {0};
    struct bw_json json = bw_json_start(&du->text, false);
    bw_buffer_append(&whole, name, length);
    bw_buffer_append(&whole, suffix, strlen(suffix));
    du->text.failed |= whole.failed;
    bw_json_begin_object(&json, NULL);
    bw_json_raw_bytes(&json, "name", whole.data ? whole.data : "", whole.length);
    if (size) {
        bw_json_number(&json, "asize", size);
        bw_json_number(&json, "dsize", size);
    }
    if (inode) {
        bw_json_number(&json, "ino", inode);
        bw_json_bool(&json, "hlnkc", true);
    }
    bw_json_end(&json);
}

static void append_json(struct du *du, const char *text)
{
    bw_buffer_append(&du->text, text, strlen(text));
}

static void begin_file(struct du *du)
{
    struct bw_json json = bw_json_start(&du->text, false);
    append_json(du, "[1,2,");
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "progname", "btrfs-walk");
    bw_json_text(&json, "progver", BW_VERSION);
    bw_json_number(&json, "timestamp", (uint64_t)time(NULL));
    bw_json_end(&json);
    append_json(du, ",\n[");
    append_item(du, du->title, strlen(du->title), "", 0, 0);
    du->begun = true;
}

/* Closes and opens directories until the one with this path, whose names each end with a '/', is
 * open. */
static void switch_directory(struct du *du, const char *path, size_t length)
{
    const struct bw_buffer *folder = &du->folder;
    size_t common = 0; /* bytes that both paths begin with, in whole names */
    for (size_t i = 0; i < folder->length && i < length && folder->data[i] == path[i]; i++)
        if (path[i] == '/')
            common = i + 1;
    for (size_t i = common; i < folder->length; i++)
        if (folder->data[i] == '/')
            append_json(du, "]");
    du->folder.length = common;
    for (size_t at = common; at < length;) {
        const size_t name = (size_t)((const char *)memchr(path + at, '/', length - at) - path) - at;
        append_json(du, ",\n[");
        append_item(du, path + at, name, "", 0, 0);
        at += name + 1;
    }
    bw_buffer_append(&du->folder, path + common, length - common);
}

/* The part of the path below the start: its last `depth` names, and where the name begins. */
static const char *below_start(const struct bw_du_entry *entry, const char **name)
{
    const char *at = entry->path + entry->path_length;
    uint64_t names = entry->depth ? entry->depth : 1;
    for (*name = NULL; at > entry->path; at--)
        if (at[-1] == '/') {
            *name = *name ? *name : at;
            if (!--names)
                break;
        }
    *name = *name ? *name : at;
    return at;
}

/* Writes an entry. The entries come in the order of bw_du(). */
static struct bw_error *write_for_ncdu(struct du *du, const struct bw_du_entry *entry)
{
    const char *name, *path = below_start(entry, &name);
    const char *end = entry->path + entry->path_length;
    du->text.length = 0;
    if (!du->begun)
        begin_file(du);
    if (entry->place.type != BW_FILE_DIRECTORY) {
        const uint64_t shared = entry->sharing_known ? entry->shared : 0;
        const uint64_t own = entry->total - shared;
        const uint64_t inode = entry->shared_id >> 1 | 1; /* fits a signed number, and is not 0 */
        const bool is_split = own || !shared;
        switch_directory(du, path, (size_t)(name - path));
        if (is_split) {
            append_json(du, ",\n");
            append_item(du, name, (size_t)(end - name), "", own, 0);
        }
        if (shared) {
            append_json(du, ",\n");
            append_item(du, name, (size_t)(end - name), is_split ? " (shared)" : "", shared, inode);
        }
    } else if (entry->depth) {
        BW_AUTO_BUFFER struct bw_buffer folder = {0};
        bw_buffer_append(&folder, path, (size_t)(end - path));
        bw_buffer_append_byte(&folder, '/');
        BW_TRY(bw_buffer_error(&folder));
        switch_directory(du, folder.data, folder.length);
    }
    if (du->text.failed || du->folder.failed)
        return bw_error_no_memory();
    return cmd_write(&du->format->output, du->text.data, du->text.length);
}

static struct bw_error *print_line(struct cmd_format *format, const void *record)
{
    const struct bw_duinfo *row = record;
    const struct cmd_format_settings *settings = &format->settings;
    struct bw_buffer *line = &format->text;
    const uint64_t sizes[] = {row->total, row->exclusive, row->set_shared};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        /* Right-aligned in 10 columns, as in btrfs-progs; not by printf(), which takes longer. */
        static const char padding[] = "          ";
        const struct cmd_size size = cmd_size(settings, sizes[i]);
        const size_t length = strlen(size.text), width = sizeof padding - 1;
        bw_buffer_append(line, padding, length < width ? width - length : 0);
        bw_buffer_append(line, size.text, length);
        bw_buffer_append(line, padding, 2);
    }
    cmd_format_append_name(format, row->path.data, row->path.length, line);
    bw_buffer_append_byte(line, '\n');
    return NULL;
}

static struct bw_error *write_entry(void *context, const struct bw_du_entry *entry)
{
    struct du *du = context;
    const unsigned types = du->selection.types;
    if (types && !(types & 1u << entry->place.type))
        return NULL;
    if (du->ncdu)
        return write_for_ncdu(du, entry);
    const struct bw_bytes path = {entry->path, entry->path_length};
    const bool is_start = !entry->depth;
    const struct bw_duinfo row = {
        .path = path,
        .path_bytes = path,
        .type = bw_file_type_name(entry->place.type),
        .subvolume = bw_subvolume_id(entry->place.subvolume),
        .inode = entry->place.inode,
        .depth = entry->depth,
        .files = entry->files,
        .total = entry->total,
        .exclusive = cmd_if_known(entry->sharing_known, entry->exclusive),
        .shared = cmd_if_known(entry->sharing_known, entry->shared),
        .set_shared = cmd_if_known(entry->sharing_known && is_start, entry->set_shared),
        .extent_count = entry->extent_count,
        .disk = entry->disk};
    return cmd_format_write(du->format, &row, sizeof row);
}

struct bw_error *du_visit(struct cmd_format *format, const struct du *du, struct bw_du_options how)
{
    const struct cmd_common *common = format->common;
    const struct cmd_selection *selection = &du->selection;
    struct bw_error *error = NULL;
    how.struct_size = sizeof how;
    how.subvolume = selection->subvolume;
    how.nested = selection->nested;
    how.no_snapshots = selection->no_snapshots;
    how.selection = selection->selection;
    how.has_maxdepth = selection->has_maxdepth || du->summarize;
    how.maxdepth = du->summarize ? 0 : selection->maxdepth;
    how.mindepth = du->summarize ? 0 : selection->mindepth;
    for (size_t i = 0; !error && (i < common->path_count || !i); i++) {
        how.start = common->path_count ? common->paths[i] : NULL;
        cmd_progress_expect_trees(format->session.fs, true);
        error = bw_du(format->session.fs, &how);
        if (error && error->code == BW_ERROR_NOT_FOUND)
            cmd_format_miss(format, BW_TAKE(error));
    }
    return error;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    static const char heading[] = "     Total   Exclusive  Set shared  Filename\n";
    const struct cmd_common *common = format->common;
    struct du *du = context;
    BW_AUTO_BUFFER struct bw_buffer title = {0};
    du->format = format;
    BW_TRY(cmd_selection_prepare(&du->selection, format->session.fs));
    if (!du->ncdu && !format->stream.rows)
        BW_TRY(cmd_write(&format->output, heading, sizeof heading - 1));
    bw_buffer_format(&title, "%s", common->input.images[0]);
    if (common->path_count)
        bw_buffer_format(&title, ":%s", common->paths[0]);
    BW_TRY(bw_buffer_terminate(&title));
    du->title = title.data;

    const struct bw_du_options how = {.visit = write_entry, .context = du};
    struct bw_error *error = du_visit(format, du, how);

    /* The end of the file for ncdu closes all directories, also after an error. */
    if (du->ncdu) {
        du->text.length = 0;
        if (!du->begun)
            begin_file(du);
        switch_directory(du, "", 0);
        append_json(du, "]]\n");
        if (du->text.failed)
            error = bw_error_first(error, bw_error_no_memory());
        else
            error = bw_error_first(error,
                                   cmd_write(&du->format->output, du->text.data, du->text.length));
    }
    bw_buffer_free(&du->text);
    bw_buffer_free(&du->folder);
    return error;
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct du *du = state;
    const struct cmd_selection *selection = &du->selection;
    if (du->shared_with && (du->by || du->summarize || du->ncdu || selection->has_maxdepth ||
                            selection->mindepth || selection->types))
        return "--shared-with compares all files: it excludes -s, --by, --ncdu, --type, --mindepth "
               "and --maxdepth";
    if (du->by && (du->summarize || du->ncdu || selection->has_maxdepth || selection->mindepth ||
                   selection->types))
        return "--by adds up all files: it excludes -s, --ncdu, --type, --mindepth and --maxdepth";
    if (!du->ncdu)
        return NULL;
    if (common->path_count > 1)
        return "--ncdu shows one PATH";
    if (!cmd_format_is_for_people(common) || common->format.iec || common->format.si)
        return "--ncdu has its own format: it excludes -o, --json, --iec and --si";
    if (du->summarize || common->format.sort || common->format.top || selection->has_maxdepth ||
        selection->mindepth || selection->types)
        return "--ncdu needs all files: it excludes -s, --sort, --top, --type, --mindepth and "
               "--maxdepth";
    return NULL;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct du *du = state;
    if (du->shared_with)
        return (struct cmd_format_plan){.record = "sharedfileinfo",
                                        .columns = "group_number,files,shared,path",
                                        .list = du_write_shared,
                                        .largest = "shared"};
    if (du->by)
        return (struct cmd_format_plan){.record = "filesuminfo",
                                        .columns = du_sum_columns(du),
                                        .list = du_write_sums,
                                        .largest = "total"};
    return (struct cmd_format_plan){
        .print = print_line, .has_units = true, .list = list, .largest = "total"};
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
        "--by adds up the files with the same owner, group, suffix or age. An age is the time\n"
        "from the last modification of the file to the last change of the file system.\n\n"
        "--shared-with lists the files that use the same extents: copies made by cp --reflink,\n"
        "deduplicated files, and with snapshots, the same file in each of them. Files in a\n"
        "group need not all share with each other, if others connect them.\n\n"
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
        "  btrfs-walk du --by user --no-snapshots disk.img  space of each owner\n"
        "  btrfs-walk du --shared-with --no-snapshots disk.img   copies that share data\n"
        "  btrfs-walk du --ncdu disk.img | ncdu -f-   browse the sizes\n",
    .options = options,
    .record = "duinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .find_mistake = find_mistake,
    .state_size = sizeof(struct du),
    .takes_paths = true,
    .takes_list = true,
};
