/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dump command: trees and blocks, with every item decoded; or the commands of send streams. The
 * library decodes and formats items; the lines of streams are made here, from rows. The session is
 * opened first, because only the images show which of both is requested.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/tree.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"

struct dump_state {
    struct bw_numbers trees, blocks;
    struct bw_dump_options dump;
    struct bw_key first, last;
    bool breadth_first;
    bool is_stream; /* the images are send streams */
};

static struct bw_error *store_tree(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    uint64_t id;
    (void)option;
    BW_TRY(bw_tree_id_parse(argument, &id));
    return bw_numbers_push(target, id);
}

static struct bw_error *store_range(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct dump_state *dump = target;
    (void)option;
    dump->dump.first = &dump->first;
    dump->dump.last = &dump->last;
    return bw_key_range_parse(argument, &dump->first, &dump->last);
}

static const struct cmd_option options[] = {
    {0, "tree", "TREE", "print this tree: its name or id (repeatable)", .store = store_tree,
     .offset = offsetof(struct dump_state, trees), .words = bw_tree_names,
     .release = cmd_release_numbers},
    {'B', "block", "LOGICAL", "print the tree block at this logical address (repeatable)",
     CMD_NUMBERS(struct dump_state, blocks, 0, UINT64_MAX,
                 "a logical address in bytes, a decimal number")},
    {0, "follow", NULL, "with --block: also print everything below it",
     CMD_FLAG(struct dump_state, dump.follow)},
    {0, "bfs", NULL, "print level by level, from the root to the leaves (default)",
     CMD_FLAG(struct dump_state, breadth_first)},
    {0, "dfs", NULL, "print the blocks below each node right after it",
     CMD_FLAG(struct dump_state, dump.depth_first)},
    {0, "key", "MIN[..MAX]", "print only items with these keys: OBJECTID[,TYPE[,OFFSET]]",
     .store = store_range},
    {0, "csum-headers", NULL, "print the checksums of tree blocks",
     CMD_FLAG(struct dump_state, dump.checksum_headers)},
    {0, "csum-items", NULL, "print the checksums of data",
     CMD_FLAG(struct dump_state, dump.checksum_items)},
    {'x', "hex", NULL,
     "print the bytes of blocks and items in hexadecimal digits, with unused space",
     CMD_FLAG(struct dump_state, dump.hex)},
    {0, "hide-names", NULL, "print no names of files, subvolumes and attributes, and no values",
     CMD_FLAG(struct dump_state, dump.hide_names)},
    {0},
};

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct dump_state *dump = context;
    struct bw_fs *fs = format->session.fs;
    bw_consumer *consume = cmd_write;
    void *target = &format->output;
    if (format->rows) {
        consume = bw_rows_take;
        target = &format->stream;
    }
    dump->dump.rows = format->rows;
    for (size_t i = 0; i < dump->blocks.count; i++)
        BW_TRY(bw_dump_block(fs, dump->blocks.items[i], &dump->dump, consume, target));
    if (!dump->trees.count && !dump->blocks.count)
        cmd_progress_expect_trees(fs, false);
    if (dump->trees.count || !dump->blocks.count)
        BW_TRY(
            bw_dump_trees(fs, dump->trees.items, dump->trees.count, &dump->dump, consume, target));
    return NULL;
}

/* The lines of 'btrfs receive --dump'. */

enum { TITLE = 16, PATH = 32 }; /* widths of the first two columns */

static bool is_command(const struct bw_commandinfo *row, const char *command)
{
    return strcmp(row->command, command) == 0;
}

static bool begins_subvolume(const struct bw_commandinfo *row)
{
    return is_command(row, "subvol") || is_command(row, "snapshot");
}

/* Appends a path below the subvolume, as the receiver has it in its current directory. */
static void add_path(struct bw_buffer *text, const struct bw_commandinfo *row,
                     const struct bw_bytes *path)
{
    bw_buffer_append(text, "./", 2);
    bw_escape_append(text, row->subvolume_path.data, row->subvolume_path.length);
    if (begins_subvolume(row))
        return;
    bw_buffer_append_byte(text, '/');
    bw_escape_append(text, path->data, path->length);
}

static void add_uuid(struct bw_buffer *text, const struct bw_bytes *uuid)
{
    char digits[36];
    bw_write_uuid(digits, uuid->data);
    bw_buffer_append(text, digits, sizeof digits);
}

static void add_time(struct bw_buffer *text, const char *name, int64_t time)
{
    const time_t seconds = bw_clock_time(time).tv_sec;
    struct tm parts;
    char written[64];
    size_t length = 0;
    if (localtime_r(&seconds, &parts))
        length = strftime(written, sizeof written, "%FT%T%z", &parts);
    written[length] = '\0';
    bw_buffer_format(text, "%s=%s", name, written);
}

/* Appends the arguments of a command other than its path. */
static void add_arguments(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    /* Commands that begin a subvolume, or change names. */
    if (begins_subvolume(row)) {
        bw_buffer_append(text, "uuid=", 5);
        add_uuid(text, &row->uuid);
        bw_buffer_format(text, " transid=%" PRIu64, row->ctransid);
        if (is_command(row, "subvol"))
            return;
        bw_buffer_append(text, " parent_uuid=", 13);
        add_uuid(text, &row->clone_uuid);
        bw_buffer_format(text, " parent_transid=%" PRIu64, row->clone_ctransid);
    } else if (is_command(row, "rename")) {
        bw_buffer_append(text, "dest=", 5);
        add_path(text, row, &row->new_path);
    } else if (row->target.data) {
        bw_buffer_append(text, "dest=", 5);
        bw_escape_append(text, row->target.data, row->target.length);

        /* Commands that change attributes of an inode. */
    } else if (is_command(row, "mknod")) {
        const uint64_t device = (row->rdev_minor & 0xff) | row->rdev_major << 8 |
                                (row->rdev_minor & ~UINT64_C(0xff)) << 12;
        bw_buffer_format(text, "mode=%" PRIo64 " dev=0x%" PRIx64, row->mode, device);
    } else if (is_command(row, "chmod")) {
        bw_buffer_format(text, "mode=%" PRIo64, row->mode);
    } else if (is_command(row, "chown")) {
        bw_buffer_format(text, "gid=%" PRIu64 " uid=%" PRIu64, row->gid, row->uid);
    } else if (is_command(row, "utimes")) {
        add_time(text, "atime", row->atime);
        add_time(text, " mtime", row->mtime);
        add_time(text, " ctime", row->ctime);
    } else if (is_command(row, "fileattr")) {
        bw_buffer_format(text, "fileattr=0x%" PRIx64, row->flags);
    } else if (row->xattr.data) {
        bw_buffer_append(text, "name=", 5);
        bw_escape_append(text, row->xattr.data, row->xattr.length);
        if (!row->value.data)
            return;
        bw_buffer_append(text, " data=", 6);
        bw_escape_append(text, row->value.data, row->value.length);
        bw_buffer_format(text, " len=%zu", row->value.length);

        /* Commands that change the contents of a file. */
    } else if (is_command(row, "truncate")) {
        bw_buffer_format(text, "size=%" PRIu64, row->size);
    } else if (is_command(row, "fallocate")) {
        bw_buffer_format(text, "mode=%" PRIu64 " offset=%" PRIu64 " len=%" PRIu64,
                         row->fallocate_mode, row->file_offset, row->size);
    } else if (is_command(row, "write")) {
        bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64, row->file_offset,
                         row->data_length);
    } else if (is_command(row, "encoded_write")) {
        bw_buffer_format(text,
                         "offset=%" PRIu64 " len=%" PRIu64 ", unencoded_file_len=%" PRIu64
                         ", unencoded_len=%" PRIu64 ", unencoded_offset=%" PRIu64
                         ", compression=%" PRIu64 ", encryption=%" PRIu64,
                         row->file_offset, row->data_length, row->unencoded_file_length,
                         row->unencoded_length, row->unencoded_offset, row->encoding,
                         row->encryption);
    } else if (is_command(row, "update_extent")) {
        bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64, row->file_offset, row->size);
    } else if (is_command(row, "enable_verity")) {
        bw_buffer_format(text,
                         " (algorithm %" PRIu64 ", block size %" PRIu64 ", salt len %" PRIu64
                         ", sig len %" PRIu64 ")",
                         row->verity_algorithm, row->verity_block_size, row->verity_salt_length,
                         row->verity_signature_length);
    } else if (is_command(row, "clone")) {
        bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64 " from=", row->file_offset,
                         row->clone_length);
        add_path(text, row, &row->clone_path);
        bw_buffer_format(text, " clone_offset=%" PRIu64, row->clone_file_offset);
    }
}

/* Prints the line of a command as 'btrfs receive --dump' does, but with all names and values
 * escaped. There is no line for END and for unknown commands. */
static struct bw_error *print_command(struct cmd_format *format, const void *command)
{
    struct bw_commandinfo known;
    const struct bw_commandinfo *row = &known;
    struct bw_buffer *text = &format->text;
    BW_AUTO_BUFFER struct bw_buffer rest = {0};
    /* Numbers that the command lacks become 0, as receive prints them. */
    const struct bw_record *structure = bw_record_find("commandinfo");
    known = *(const struct bw_commandinfo *)command;
    for (unsigned i = 0; i < structure->member_count; i++) {
        uint64_t *number = (void *)((char *)&known + structure->members[i].offset);
        if (structure->members[i].type <= BW_TYPE_I64 && *number == BW_ABSENT)
            *number = 0;
    }
    if (!row->command || is_command(row, "end"))
        return NULL;
    bw_buffer_format(text, "%-*s", TITLE, row->command);
    const size_t start = text->length;
    add_path(text, row, &row->path);
    add_arguments(&rest, row);
    if (rest.length)
        do
            bw_buffer_append_byte(text, ' ');
        while (text->length - start < PATH && !text->failed);
    bw_buffer_append(text, rest.data, rest.length);
    bw_buffer_append_byte(text, '\n');
    text->failed |= rest.failed;
    return NULL;
}

static struct bw_error *write_command(void *context, const struct bw_commandinfo *command)
{
    return cmd_format_write(context, command, sizeof *command);
}

static struct bw_error *list_stream(struct cmd_format *format, void *context)
{
    (void)context;
    return bw_stream_commands(format->session.fs, write_command, format);
}

/* Send streams have other rows than images. */
static struct cmd_format_plan plan_of(const void *state)
{
    const struct dump_state *dump = state;
    if (dump->is_stream)
        return (struct cmd_format_plan){
            .record = "commandinfo", .print = print_command, .list = list_stream};
    return (struct cmd_format_plan){.list = list};
}

static int run(const struct cmd_common *common, void *state)
{
    struct dump_state *dump = state;
    struct bw_dump_options *how = &dump->dump;
    const bool selects = dump->trees.count || dump->blocks.count || how->first;
    struct cmd_common own = *common;
    struct cmd_session session;
    own.input.fs.streams_as_is = true;
    const int status = cmd_open(&own, &session);
    if (status)
        return status;
    dump->is_stream = bw_fs_is_stream(session.fs);
    const char *wrong = NULL;
    if (dump->is_stream && (selects || how->hex))
        wrong = "send streams have no trees: --tree, --block, --key and --hex are for images";
    else if (how->hex && how->hide_names)
        wrong = "--hex excludes --hide-names";
    else if (how->hex && !cmd_format_is_for_people(common))
        wrong = "--hex is for text; for -o and --json there is the column hex";
    if (wrong)
        return cmd_end(&own, &session, NULL, cmd_refuse(common, wrong));

    how->struct_size = sizeof *how;
    how->depth_first &= !dump->breadth_first;
    how->replayed = common->input.log_given && common->input.fs.log == BW_LOG_REPLAY;
    const struct cmd_format_plan plan = cmd_plan_of(&cmd_dump, dump);
    return cmd_format_run_in(&own, &plan, &session);
}

const struct command cmd_dump = {
    .name = "dump",
    .topic = cmd_topic_developers,
    .operands = "IMAGE...",
    .summary = "Prints trees, tree blocks or send streams, decoded.",
    .details =
        "\n"
        "The output has the lines, labels and order of 'btrfs inspect-internal dump-tree'.\n"
        "Without --tree and --block all trees are printed. TREE is a name (root, chunk, extent, "
        "dev, fs,\n"
        "csum, quota, uuid, free-space, block-group, raid-stripe, remap, log, reloc,\n"
        "data-reloc), also as FS_TREE, or an id.\n\n"
        "With --key, only leaves that contain matching keys are read. Omitted parts of a key\n"
        "match all values: --key 256 prints everything about inode 256, --key 256,DIR_INDEX its\n"
        "directory index. MIN.. has no upper limit, ..MAX no lower limit.\n\n"
        "Names and values are escaped as by 'ls -b', except for spaces. Times are in the time\n"
        "zone TZ. If a block is damaged, the items that can be decoded are printed, and a\n"
        "message follows on stderr.\n\n"
        "--hex prints the bytes of each block in their order, below the lines of its header:\n"
        "header, entries of items, unused space, data of items. With --key, it prints only the\n"
        "data of these items. The offsets are those in the block. A \"*\" replaces lines that\n"
        "are equal to the line before. In -o and --json, the column hex has the bytes of an "
        "item.\n\n"
        "-o and --json print a row for each item of a leaf and each pointer of a node. In\n"
        "--json, names that are not UTF-8 are in base64, in name_bytes.\n\n"
        "Trees are printed as stored on disk, and the log as a separate tree. Only with\n"
        "--log=replay are subvolumes and checksums printed with the log replayed; blocks\n"
        "changed by the replay have addresses from 9223372036854775808 on, outside of all\n"
        "devices.\n\n"
        "For a file of 'btrfs send', prints all commands as 'btrfs receive --dump' does; -o and\n"
        "--json print a row for each, with the columns of the record commandinfo. Neither its\n"
        "parent nor other streams are needed.\n",
    .examples = "  btrfs-walk dump disk.img                       all trees\n"
                "  btrfs-walk dump --tree fs --key 257 disk.img   everything about an inode\n"
                "  btrfs-walk dump --tree chunk --json disk.img   for programs\n"
                "  btrfs-walk dump --tree fs -o key,size disk.img columns\n"
                "  btrfs-walk dump -B 30408704 --follow disk.img  a block and all below it\n"
                "  btrfs-walk dump -B 30408704 --hex disk.img     its bytes\n"
                "  btrfs-walk dump backup.send                    the commands of a send stream\n",
    .options = options,
    .record = "iteminfo",
    .plan_of = plan_of,
    .run = run,
    .state_size = sizeof(struct dump_state),
};
