/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dump command: trees and blocks, with every item decoded. */
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/tree.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/inspect/stream_text.h"

BW_VECTOR(numbers, uint64_t);

struct dump_state {
    struct numbers trees, blocks;
    struct bw_dump_options dump;
    struct bw_key first, last;
    bool breadth_first, has_range;
    bool is_stream; /* the images are send streams */
};

static struct bw_error *add_number(struct numbers *numbers, uint64_t value)
{
    return numbers_push(numbers, value);
}

static struct bw_error *store_tree(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    uint64_t id;
    (void)option;
    BW_TRY(bw_tree_id_parse(argument, &id));
    return add_number(target, id);
}

static struct bw_error *store_block(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    const char *end = argument;
    uint64_t bytenr;
    if (!bw_parse_digits(&end, 10, &bytenr) || *end)
        return cmd_bad_argument(option, argument, "a logical address in bytes, a decimal number");
    return add_number(target, bytenr);
}

static struct bw_error *store_range(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct dump_state *dump = target;
    (void)option;
    dump->has_range = true;
    return bw_key_range_parse(argument, &dump->first, &dump->last);
}

static void release_numbers(void *numbers)
{
    free(((struct numbers *)numbers)->items);
}

static const struct cmd_option options[] = {
    {0, "tree", "TREE", "print this tree: its name or id (repeatable)", .store = store_tree,
     .offset = offsetof(struct dump_state, trees), .words = bw_tree_names,
     .release = release_numbers},
    {'B', "block", "LOGICAL", "print the tree block at this logical address (repeatable)",
     .store = store_block, .offset = offsetof(struct dump_state, blocks),
     .release = release_numbers},
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

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct dump_state *dump = context;
    struct bw_fs *fs = answer->session.fs;
    bw_consumer *consume = answer->rows ? bw_rows_take : cmd_write;
    void *target = answer->rows ? (void *)&answer->stream : &answer->output;
    dump->dump.rows = answer->rows;
    for (size_t i = 0; i < dump->blocks.count; i++)
        BW_TRY(bw_dump_block(fs, dump->blocks.items[i], &dump->dump, consume, target));
    if (!dump->trees.count && !dump->blocks.count)
        cmd_progress_expect_trees(fs, false);
    if (dump->trees.count || !dump->blocks.count)
        BW_TRY(
            bw_dump_trees(fs, dump->trees.items, dump->trees.count, &dump->dump, consume, target));
    return NULL;
}

/* Send streams. */

static struct bw_error *write_command(void *context, const struct bw_commandinfo *command,
                                      uint64_t absent)
{
    return cmd_answer_write(context, command, sizeof *command, absent);
}

static struct bw_error *list_stream(struct cmd_answer *answer, void *context)
{
    (void)context;
    return bw_stream_commands(answer->session.fs, write_command, answer);
}

static struct bw_error *print_command(struct cmd_answer *answer, const void *command,
                                      uint64_t absent)
{
    (void)absent;
    cmd_append_stream_command(&answer->text, command);
    return NULL;
}

/* The options that select trees, blocks and keys do not apply to streams. */
static struct bw_error *check_stream_options(const struct dump_state *dump)
{
    const bool selects =
        dump->trees.count || dump->blocks.count || dump->has_range || dump->dump.hex;
    return selects ? bw_error_create(BW_ERROR_USAGE, "send streams have no trees: --tree, --block, "
                                                     "--key and --hex are for images")
                   : NULL;
}

static int dump_streams(const struct cmd_common *common, struct cmd_session *session,
                        struct dump_state *dump)
{
    dump->is_stream = true;
    const struct cmd_answer_plan plan = {.record = cmd_record_of(&cmd_dump, dump),
                                         .print = print_command,
                                         .list = list_stream,
                                         .context = dump};
    struct bw_error *error = check_stream_options(dump);
    if (!error)
        return cmd_answer_run_in(common, &plan, session);
    return cmd_end(common, session, NULL, cmd_fail(common, error));
}

static struct bw_error *check_hex(const struct cmd_common *common, const struct dump_state *dump)
{
    if (!dump->dump.hex)
        return NULL;
    if (dump->dump.hide_names)
        return bw_error_create(BW_ERROR_USAGE, "--hex excludes --hide-names");
    return cmd_answer_is_for_people(common)
               ? NULL
               : bw_error_create(BW_ERROR_USAGE,
                                 "--hex is for text; for -o and --json there is the column hex");
}

static int run(const struct cmd_common *common, void *state)
{
    struct dump_state *dump = state;
    struct cmd_common own = *common;
    struct cmd_session session;
    own.input.streams_as_is = true;
    const int status = cmd_open(&own, &session);
    if (status)
        return status;
    if (bw_fs_is_stream(session.fs))
        return dump_streams(&own, &session, dump);
    const struct cmd_answer_plan plan = {.record = cmd_dump.record, .list = list, .context = dump};
    struct bw_error *error = check_hex(common, dump);
    if (error)
        return cmd_end(&own, &session, NULL, cmd_fail(common, error));
    dump->dump.struct_size = sizeof dump->dump;
    dump->dump.depth_first &= !dump->breadth_first;
    dump->dump.replayed = common->input.log_given && common->input.log == BW_LOG_REPLAY;
    if (dump->has_range) {
        dump->dump.first = &dump->first;
        dump->dump.last = &dump->last;
    }
    return cmd_answer_run_in(&own, &plan, &session);
}

static const char *record_of(const void *state)
{
    const struct dump_state *settings = state;
    return settings->is_stream ? "commandinfo" : cmd_dump.record;
}

const struct command cmd_dump = {
    .name = "dump",
    .topic = cmd_topic_structures,
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
    .record_of = record_of,
    .run = run,
    .state_size = sizeof(struct dump_state),
};
