/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bodyfile command: a line for each file in the format of The Sleuth Kit's body file, for
 * timelines. */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/utf8.h"
#include "cli/export/export.h"

struct bodyfile_state {
    struct cmd_export_settings export;
};

/* A running bodyfile command. */
struct bodyfile {
    struct cmd_export export;
    struct cmd_output output;
    struct bw_buffer line, target;
};

static const struct cmd_option options[] = {
    CMD_GROUP(cmd_export_options, struct bodyfile_state, export),
    {0},
};

/* Appends a name. Bytes that would end a field or a line, and control characters, become \ooo; also
 * the control characters U+0080 to U+009F, in UTF-8 or as single bytes. */
static void append_name(struct bw_buffer *line, const char *bytes, size_t length)
{
    const uint8_t *next = (const uint8_t *)bytes;
    for (size_t step; length; next += step, length -= step) {
        bool plain;
        step = bw_utf8_length(next, length);
        if (step > 1) {
            plain = *next != 0xc2 || next[1] >= 0xa0;
        } else {
            step = 1;
            plain =
                *next >= ' ' && (*next < 0x7f || *next >= 0xa0) && *next != '|' && *next != '\\';
        }
        if (plain)
            bw_buffer_append(line, next, step);
        for (size_t i = 0; i < step && !plain; i++)
            bw_buffer_format(line, "\\%03o", next[i]);
    }
}

static struct bw_error *write_line(struct bodyfile *bodyfile, struct bw_export_entry *item)
{
    struct bw_buffer *line = &bodyfile->line;
    const struct bw_inode *inode = &item->inode;
    line->length = 0;
    bw_buffer_format(line, "0|");
    append_name(line, item->path.data, item->path.length);
    if (item->type == S_IFLNK && item->has_inode) {
        bodyfile->target.length = 0;
        struct bw_error *error = cmd_export_read_link(&bodyfile->export, item, &bodyfile->target);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_buffer_format(line, " -> ");
        append_name(line, bodyfile->target.data, bodyfile->target.length);
        if (error)
            cmd_export_miss(&bodyfile->export, bw_error_prefix(error, "%s", item->path.data));
    }

    /* The type is a letter as in the mode, but 'r' for a file, and '-' if it is unknown. */
    char type[BW_MODE_LENGTH], mode[BW_MODE_LENGTH + 1];
    bw_write_mode(type, item->type);
    *bw_write_mode(mode, inode->mode) = '\0';
    char letter = *type;
    if (item->type == S_IFREG)
        letter = 'r';
    else if (letter == '?')
        letter = '-';
    bw_buffer_format(line, "|%" PRIu64 "-%" PRIu64 "|%c/%c%s",
                     bw_subvolume_id(item->place.subvolume), item->place.inode, letter,
                     item->has_inode ? letter : '-', mode + 1);
    bw_buffer_format(line, "|%" PRIu32 "|%" PRIu32 "|%" PRIu64, inode->uid, inode->gid,
                     inode->size);
    bw_buffer_format(line, "|%jd|%jd|%jd|%jd\n", (intmax_t)inode->atime.tv_sec,
                     (intmax_t)inode->mtime.tv_sec, (intmax_t)inode->ctime.tv_sec,
                     (intmax_t)inode->otime.tv_sec);
    if (!item->has_inode)
        cmd_export_miss_item(&bodyfile->export, item);
    if (line->failed)
        return bw_error_no_memory();
    return cmd_write(&bodyfile->output, line->data, line->length);
}

static int run(const struct cmd_common *common, void *state)
{
    struct bodyfile_state *settings = state;
    struct bodyfile bodyfile = {0};
    int status = cmd_export_open(common, &settings->export, &bodyfile.export);
    if (status)
        return status;
    struct bw_export_entry *item = NULL;
    struct bw_error *error = cmd_export_start(&bodyfile.export, BW_WALK_ALL, 0);
    while (!error && !(error = cmd_export_next_item(&bodyfile.export, &item)) && item) {
        error = write_line(&bodyfile, item);
        bw_entry_queue_release(bodyfile.export.queue, item);
    }
    status = cmd_export_close(&bodyfile.export, bw_error_first(error, cmd_flush(&bodyfile.output)));
    bw_buffer_free(&bodyfile.line);
    bw_buffer_free(&bodyfile.target);
    return status;
}

const struct command cmd_bodyfile = {
    .name = "bodyfile",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Writes the times of all files for The Sleuth Kit.",
    .details =
        "\n"
        "Lines are MD5|name|inode|mode|UID|GID|size|atime|mtime|ctime|crtime, as mactime(1)\n"
        "reads them. The MD5 is always 0. The inode number is preceded by the id of the\n"
        "subvolume: 257-1234. In names, control characters and bytes that would end a field\n"
        "are written as \\ooo.\n",
    .examples = "  btrfs-walk bodyfile disk.img > body                   everything\n"
                "  btrfs-walk bodyfile disk.img /home | mactime -b - -d  a timeline\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct bodyfile_state),
    .takes_paths = true,
    .takes_list = true,
};
