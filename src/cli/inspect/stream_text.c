/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dump of send streams: the lines of 'btrfs receive --dump'. */
#include "cli/inspect/stream_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"

enum { TITLE = 16, PATH = 32 }; /* widths of the first two columns */

#define STREAM_NANOSECONDS INT64_C(1000000000)

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
    const int64_t under = time % STREAM_NANOSECONDS < 0;
    const time_t seconds = (time_t)(time / STREAM_NANOSECONDS - under);
    struct tm parts;
    char written[64];
    const bool known = localtime_r(&seconds, &parts);
    written[known ? strftime(written, sizeof written, "%FT%T%z", &parts) : 0] = '\0';
    bw_buffer_format(text, "%s=%s", name, written);
}

static void add_times(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    add_time(text, "atime", row->atime);
    add_time(text, " mtime", row->mtime);
    add_time(text, " ctime", row->ctime);
}

/* Commands that begin a subvolume, or change names. */
static bool add_of_names(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    if (begins_subvolume(row)) {
        bw_buffer_append(text, "uuid=", 5);
        add_uuid(text, &row->uuid);
        bw_buffer_format(text, " transid=%" PRIu64, row->ctransid);
        if (is_command(row, "subvol"))
            return true;
        bw_buffer_append(text, " parent_uuid=", 13);
        add_uuid(text, &row->clone_uuid);
        bw_buffer_format(text, " parent_transid=%" PRIu64, row->clone_ctransid);
    } else if (is_command(row, "rename")) {
        bw_buffer_append(text, "dest=", 5);
        add_path(text, row, &row->new_path);
    } else if (row->target.data) {
        bw_buffer_append(text, "dest=", 5);
        bw_escape_append(text, row->target.data, row->target.length);
    } else {
        return false;
    }
    return true;
}

/* Commands that change attributes of an inode. */
static bool add_of_inode(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    if (is_command(row, "mknod")) {
        const uint64_t device = (row->rdev_minor & 0xff) | row->rdev_major << 8 |
                                (row->rdev_minor & ~UINT64_C(0xff)) << 12;
        bw_buffer_format(text, "mode=%" PRIo64 " dev=0x%" PRIx64, row->mode, device);
    } else if (is_command(row, "chmod")) {
        bw_buffer_format(text, "mode=%" PRIo64, row->mode);
    } else if (is_command(row, "chown")) {
        bw_buffer_format(text, "gid=%" PRIu64 " uid=%" PRIu64, row->gid, row->uid);
    } else if (is_command(row, "utimes")) {
        add_times(text, row);
    } else if (is_command(row, "fileattr")) {
        bw_buffer_format(text, "fileattr=0x%" PRIx64, row->flags);
    } else if (row->xattr.data) {
        bw_buffer_append(text, "name=", 5);
        bw_escape_append(text, row->xattr.data, row->xattr.length);
        if (!row->value.data)
            return true;
        bw_buffer_append(text, " data=", 6);
        bw_escape_append(text, row->value.data, row->value.length);
        bw_buffer_format(text, " len=%zu", row->value.length);
    } else {
        return false;
    }
    return true;
}

/* Commands that change the contents of a file. */
static void add_of_data(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    if (is_command(row, "truncate"))
        bw_buffer_format(text, "size=%" PRIu64, row->size);
    else if (is_command(row, "fallocate"))
        bw_buffer_format(text, "mode=%" PRIu64 " offset=%" PRIu64 " len=%" PRIu64,
                         row->fallocate_mode, row->file_offset, row->size);
    else if (is_command(row, "write") || is_command(row, "encoded_write"))
        bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64, row->file_offset,
                         row->data_length);
    else if (is_command(row, "update_extent"))
        bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64, row->file_offset, row->size);
    if (is_command(row, "encoded_write"))
        bw_buffer_format(text,
                         ", unencoded_file_len=%" PRIu64 ", unencoded_len=%" PRIu64
                         ", unencoded_offset=%" PRIu64 ", compression=%" PRIu64
                         ", encryption=%" PRIu64,
                         row->unencoded_file_length, row->unencoded_length, row->unencoded_offset,
                         row->encoding, row->encryption);
    if (is_command(row, "enable_verity"))
        bw_buffer_format(text,
                         " (algorithm %" PRIu64 ", block size %" PRIu64 ", salt len %" PRIu64
                         ", sig len %" PRIu64 ")",
                         row->verity_algorithm, row->verity_block_size, row->verity_salt_length,
                         row->verity_signature_length);
    if (!is_command(row, "clone"))
        return;
    bw_buffer_format(text, "offset=%" PRIu64 " len=%" PRIu64 " from=", row->file_offset,
                     row->clone_length);
    add_path(text, row, &row->clone_path);
    bw_buffer_format(text, " clone_offset=%" PRIu64, row->clone_file_offset);
}

void cmd_append_stream_command(struct bw_buffer *text, const struct bw_commandinfo *row)
{
    struct bw_buffer rest = {0};
    if (!row->command || is_command(row, "end"))
        return;
    bw_buffer_format(text, "%-*s", TITLE, row->command);
    const size_t start = text->length;
    add_path(text, row, &row->path);
    if (!add_of_names(&rest, row) && !add_of_inode(&rest, row))
        add_of_data(&rest, row);
    if (rest.length)
        do
            bw_buffer_append_byte(text, ' ');
        while (text->length - start < PATH && !text->failed);
    bw_buffer_append(text, rest.data, rest.length);
    bw_buffer_append_byte(text, '\n');
    text->failed |= rest.failed;
    bw_buffer_free(&rest);
}
