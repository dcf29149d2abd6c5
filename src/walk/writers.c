/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writers: text for people and programs, and records in memory, so in the machine's own byte
 * order. */
#include "walk/output.h"

#include "base/escape.h"
#include "record/long_line.h"
#include "record/rows.h"

static void append_row(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                       struct bw_buffer *text)
{
    bw_rows_append_file(writer->options->rows, file, text);
}

static void append_path(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                        struct bw_buffer *text)
{
    if (writer->options->escape)
        bw_escape_append(text, file->path, file->path_length);
    else
        bw_buffer_append(text, file->path, file->path_length);
    bw_buffer_append_byte(text, writer->options->terminator);
}

static void append_long(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                        struct bw_buffer *text)
{
    bw_long_line_append(file, writer->times, text);
    append_path(writer, file, text);
}

struct bw_file_writer bw_text_file_writer(const struct bw_walk_options *options)
{
    struct bw_file_writer writer = {.append = append_path, .is_path = true, .options = options};
    if (options->rows) {
        writer.append = append_row;
        writer.is_path = false;
        writer.needs = bw_rows_needs(options->rows);
    } else if (options->long_lines) {
        writer.append = append_long;
        writer.is_path = false;
        writer.needs = BW_FILE_NEEDS_INODE | (options->names ? BW_FILE_NEEDS_PEOPLE : 0);
    }
    return writer;
}

/* Comes before the path. */
struct entry_header {
    uint64_t subvolume, number;
    uint32_t path_length;
    uint8_t type;
    bool has_inode; /* it follows the header */
};

static void append_entry(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                         struct bw_buffer *text)
{
    const struct entry_header header = {file->subvolume, file->number, (uint32_t)file->path_length,
                                        file->type, file->inode != NULL};
    (void)writer;
    /* A record is written completely or not at all: the reader does not check where it ends. */
    if (!bw_buffer_reserve(text, sizeof header + sizeof *file->inode + file->path_length))
        return;
    bw_buffer_append(text, &header, sizeof header);
    if (file->inode)
        bw_buffer_append(text, file->inode, sizeof *file->inode);
    bw_buffer_append(text, file->path, file->path_length);
}

struct bw_file_writer bw_entry_file_writer(unsigned needs)
{
    return (struct bw_file_writer){.append = append_entry, .needs = needs};
}

void bw_entry_read(const char **bytes, struct bw_walked_file *file, struct bw_inode *inode)
{
    struct entry_header header;
    memcpy(&header, *bytes, sizeof header);
    *bytes += sizeof header;
    if (header.has_inode) {
        memcpy(inode, *bytes, sizeof *inode);
        *bytes += sizeof *inode;
    }
    *file = (struct bw_walked_file){.path = *bytes,
                                    .path_length = header.path_length,
                                    .subvolume = header.subvolume,
                                    .number = header.number,
                                    .type = header.type,
                                    .inode = header.has_inode ? inode : NULL};
    *bytes += header.path_length;
}
