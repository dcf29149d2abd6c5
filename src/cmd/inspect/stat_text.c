/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stat tells, as lines for people: a name, a colon, a value. Names from the image are escaped
 * also if no terminal shows them, so that each stays in its line. */
#include <inttypes.h>

#include "base/escape.h"
#include "base/human.h"
#include "cmd/inspect/inode_text.h"
#include "cmd/inspect/stat.h"
#include "format/compression.h"
#include "format/names.h"

static void append_bytes(const char *label, const void *bytes, size_t length,
                         struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: ", label);
    bw_escape_append(text, bytes, length);
    bw_buffer_append_byte(text, '\n');
}

static void append_number(const char *label, uint64_t number, struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: %" PRIu64 "\n", label, number);
}

static void append_time(const char *label, int64_t time, struct bw_buffer *text)
{
    char value[BW_DATE_LENGTH];
    bw_write_date(value, time, 'T');
    bw_buffer_format(text, "%s: %.*sZ\n", label, BW_DATE_LENGTH, value);
}

static void append_flags(uint64_t flags, struct bw_buffer *text)
{
    const char *separator = " (";
    bw_buffer_format(text, "Flags: 0x%" PRIx64, flags);
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(flags >> bit & 1))
            continue;
        const char *name = bw_inode_flag_name(bit);
        if (name)
            bw_buffer_format(text, "%s%s", separator, name);
        else
            bw_buffer_format(text, "%s0x%" PRIx64, separator, UINT64_C(1) << bit);
        separator = ", ";
    }
    bw_buffer_format(text, "%s\n", flags ? ")" : "");
}

static void append_xattrs(const struct cmd_stat *stat, struct bw_buffer *text)
{
    size_t position = 0, length;
    const char *name, *separator = "Attributes: ";
    while (cmd_stat_next_xattr(stat, &position, &name, &length)) {
        bw_buffer_format(text, "%s", separator);
        bw_escape_append(text, name, length);
        separator = ", ";
    }
    if (position)
        bw_buffer_append_byte(text, '\n');
}

static void append_part(const char **separator, uint64_t number, const char *what,
                        struct bw_buffer *text)
{
    if (!number)
        return;
    bw_buffer_format(text, "%s%" PRIu64 " %s", *separator, number, what);
    *separator = ", ";
}

static void append_extents(const struct bw_extent_count *extents, struct bw_buffer *text)
{
    const char *separator = " (";
    if (!extents->total)
        return;
    bw_buffer_format(text, "Extents: %" PRIu64, extents->total);
    append_part(&separator, extents->inlined, "inline", text);
    append_part(&separator, extents->regular, "regular", text);
    append_part(&separator, extents->unwritten, "preallocated", text);
    append_part(&separator, extents->holes, extents->holes == 1 ? "hole" : "holes", text);
    separator = "; ";
    for (unsigned i = BW_COMPRESS_NONE + 1; i < BW_COMPRESS_TYPES; i++)
        append_part(&separator, extents->compressions[i], bw_compression_name(i), text);
    bw_buffer_format(text, ")\n");
}

static void append_place(const struct cmd_stat *stat, struct bw_buffer *text)
{
    append_bytes("Path", stat->path, strlen(stat->path), text);
    bw_buffer_format(text, "Subvolume: %" PRIu64, stat->place.subvolume->tree.id);
    if (stat->subvolume_path.length) {
        /* Without the last '/', unless it is the only one. */
        size_t length = stat->subvolume_path.length;
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, stat->subvolume_path.data, length > 1 ? length - 1 : 1);
    }
    bw_buffer_append_byte(text, '\n');
    append_number("Inode", stat->place.inode, text);
    bw_buffer_format(text, "Type: %s\n", bw_file_type_name(bw_file_type_of_mode(stat->inode.mode)));
    if (stat->target.length)
        append_bytes("Target", stat->target.data, stat->target.length, text);
}

void cmd_stat_text(const struct cmd_stat *stat, struct bw_buffer *text)
{
    const struct bw_inode *inode = &stat->inode;
    char mode[CMD_MODE_LENGTH + 1];
    cmd_mode_text(inode->mode, mode);
    append_place(stat, text);
    bw_buffer_format(text, "Mode: %04o %s\n", inode->mode & 07777, mode);
    append_number("User", inode->uid, text);
    append_number("Group", inode->gid, text);
    append_number("Links", inode->link_count, text);
    append_number("Size", inode->size, text);
    append_number("Allocated", inode->bytes, text);
    if (cmd_mode_is_device(inode->mode))
        bw_buffer_format(text, "Device: %" PRIu32 ", %" PRIu32 "\n", bw_inode_major(inode),
                         bw_inode_minor(inode));
    append_time("Accessed", bw_time_nanoseconds(&inode->atime), text);
    append_time("Modified", bw_time_nanoseconds(&inode->mtime), text);
    append_time("Changed", bw_time_nanoseconds(&inode->ctime), text);
    append_time("Created", bw_time_nanoseconds(&inode->otime), text);
    append_number("Generation", inode->generation, text);
    append_number("Transid", inode->transid, text);
    append_number("Sequence", inode->sequence, text);
    append_flags(inode->flags, text);
    append_xattrs(stat, text);
    if (stat->has_compression)
        append_bytes("Compression", stat->compression.data, stat->compression.length, text);
    append_extents(&stat->extents, text);
}
