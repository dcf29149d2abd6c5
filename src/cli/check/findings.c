/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings as lines and as rows. A line is
 *
 *     SEVERITY CODE TREE KEY PATH...: MESSAGE [ADDRESSES]
 *
 * in which what is not known is left out. Names are escaped as `ls -b` does, so that ": " ends
 * what they are in.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/tree.h"
#include "cli/check/check.h"

static bool knows(const struct bw_finding *finding, unsigned bits)
{
    return (finding->known & bits) == bits;
}

static void append_paths(struct bw_buffer *text, const struct bw_finding *finding)
{
    for (size_t i = 0; i < finding->path_count; i++) {
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, finding->paths[i].data, finding->paths[i].length);
    }
    if (finding->path_count && knows(finding, BW_KNOWN_FILE_OFFSET))
        bw_buffer_format(text, " offset %" PRIu64, finding->file_offset);
    if (finding->path_count && knows(finding, BW_KNOWN_FILE_LENGTH))
        bw_buffer_format(text, " length %" PRIu64, finding->file_length);
    if (finding->more_paths)
        bw_buffer_format(text, " and %" PRIu64 " more", finding->more_paths);
    if (finding->more_subvolumes)
        bw_buffer_format(text, " and in %" PRIu64 " more subvolume%s", finding->more_subvolumes,
                         finding->more_subvolumes > 1 ? "s" : "");
}

static void append_place(struct bw_buffer *text, const struct bw_finding *finding)
{
    char name[BW_KEY_TEXT];
    if (knows(finding, BW_KNOWN_TREE))
        bw_buffer_format(text, " %s", bw_tree_id_text(finding->tree, name));
    if (knows(finding, BW_KNOWN_KEY))
        bw_buffer_format(text, " %s", bw_key_text(&finding->key, name));
    if (knows(finding, BW_KNOWN_INODE) && !finding->path_count && !knows(finding, BW_KNOWN_KEY))
        bw_buffer_format(text, " inode %" PRIu64, finding->inode);
    append_paths(text, finding);
}

/* [logical 30408704, device 1 offset 38797312, copy 2, mendable] */
static void append_addresses(struct bw_buffer *text, const struct bw_finding *finding)
{
    const char *before = " [";
    if (knows(finding, BW_KNOWN_LOGICAL)) {
        bw_buffer_format(text, "%slogical %" PRIu64, before, finding->logical);
        before = ", ";
    }
    if (knows(finding, BW_KNOWN_DEVICE)) {
        bw_buffer_format(text, "%sdevice %" PRIu64, before, finding->devid);
        if (knows(finding, BW_KNOWN_OFFSET))
            bw_buffer_format(text, " offset %" PRIu64, finding->offset);
        before = ", ";
    }
    if (knows(finding, BW_KNOWN_COPY)) {
        bw_buffer_format(text, "%scopy %u", before, finding->copy);
        before = ", ";
    }
    if (finding->mendable) {
        bw_buffer_format(text, "%smendable", before);
        before = ", ";
    }
    if (*before == ',')
        bw_buffer_append_byte(text, ']');
}

void check_append_message(struct bw_buffer *text, const struct bw_finding *finding)
{
    bw_escape_words(text, finding->message);
    append_addresses(text, finding);
}

void check_append_line(struct bw_buffer *text, const struct bw_finding *finding)
{
    bw_buffer_format(text, "%s %s", bw_finding_severity_name(finding->code->severity),
                     finding->code->word);
    append_place(text, finding);
    bw_buffer_format(text, ": ");
    check_append_message(text, finding);
    bw_buffer_append_byte(text, '\n');
}

/* The members of a row that are not known. */
static uint64_t absent_members(const struct bw_finding *finding)
{
    const struct {
        unsigned known;
        uint64_t members;
    } groups[] = {
        {BW_KNOWN_TREE, BW_MEMBER(findinginfo, tree)},
        {BW_KNOWN_KEY, BW_MEMBER(findinginfo, key_objectid) | BW_MEMBER(findinginfo, key_type) |
                           BW_MEMBER(findinginfo, key_offset)},
        {BW_KNOWN_LOGICAL, BW_MEMBER(findinginfo, logical)},
        {BW_KNOWN_LENGTH, BW_MEMBER(findinginfo, length)},
        {BW_KNOWN_DEVICE, BW_MEMBER(findinginfo, devid)},
        {BW_KNOWN_OFFSET, BW_MEMBER(findinginfo, offset)},
        {BW_KNOWN_COPY, BW_MEMBER(findinginfo, copy)},
        {BW_KNOWN_INODE, BW_MEMBER(findinginfo, inode)},
        {BW_KNOWN_FILE_OFFSET, BW_MEMBER(findinginfo, file_offset)},
        {BW_KNOWN_FILE_LENGTH, BW_MEMBER(findinginfo, file_length)},
    };
    uint64_t absent = (finding->more_paths ? 0 : BW_MEMBER(findinginfo, more_paths)) |
                      (finding->more_subvolumes ? 0 : BW_MEMBER(findinginfo, more_subvolumes));
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        absent |= knows(finding, groups[i].known) ? 0 : groups[i].members;
    return absent;
}

static struct bw_error *write_row(struct check *check, const struct bw_finding *finding)
{
    char tree[BW_KEY_TEXT], key[BW_KEY_TEXT];
    check->message.length = 0;
    bw_escape_words(&check->message, finding->message);
    bw_buffer_append_byte(&check->message, '\0');
    if (check->message.failed)
        return bw_error_no_memory();
    const struct bw_findinginfo row = {
        .severity = bw_finding_severity_name(finding->code->severity),
        .code = finding->code->word,
        .pass = finding->code->pass,
        .tree = finding->tree,
        .tree_name = knows(finding, BW_KNOWN_TREE) ? bw_tree_id_text(finding->tree, tree) : NULL,
        .key = knows(finding, BW_KNOWN_KEY) ? bw_key_text(&finding->key, key) : NULL,
        .key_objectid = finding->key.objectid,
        .key_type = finding->key.type,
        .key_offset = finding->key.offset,
        .logical = finding->logical,
        .length = finding->length,
        .devid = finding->devid,
        .offset = finding->offset,
        .copy = finding->copy,
        .inode = finding->inode,
        .file_offset = finding->file_offset,
        .mendable = finding->mendable,
        .paths = {finding->paths, finding->path_count},
        .more_paths = finding->more_paths,
        .more_subvolumes = finding->more_subvolumes,
        .message = check->message.data,
        .file_length = finding->file_length,
    };
    return bw_rows_write(&check->stream, &row, sizeof row, absent_members(finding));
}

static struct bw_error *write_line(struct check *check, const struct bw_finding *finding)
{
    check->line.length = 0;
    check_append_line(&check->line, finding);
    return check->line.failed ? bw_error_no_memory()
                              : cmd_write(&check->output, check->line.data, check->line.length);
}

struct bw_error *check_take(void *context, const struct bw_finding *finding)
{
    struct check *check = context;
    check_reports_add(check, finding);
    return check->stream.rows ? write_row(check, finding) : write_line(check, finding);
}
