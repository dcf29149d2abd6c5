/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stat tells, as JSON: the row of the record fileinfo that a walk would write, and more
 * members. */
#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/inspect/inode_text.h"
#include "cmd/inspect/stat.h"
#include "format/compression.h"
#include "format/names.h"
#include "record/file.h"
#include "record/rows.h"

static void add_flags(struct bw_json *json, uint64_t flags)
{
    bw_json_begin_array(json, "flag_names");
    for (unsigned bit = 0; bit < 64; bit++)
        if (flags >> bit & 1 && bw_inode_flag_name(bit))
            bw_json_text(json, NULL, bw_inode_flag_name(bit));
    bw_json_end(json);
}

static void add_xattrs(struct bw_json *json, const struct cmd_stat *stat)
{
    size_t position = 0, length;
    const char *name;
    bw_json_begin_array(json, "xattrs");
    while (cmd_stat_next_xattr(stat, &position, &name, &length))
        bw_json_bytes(json, NULL, name, length);
    bw_json_end(json);
}

static void add_extents(struct bw_json *json, const struct bw_extent_count *extents)
{
    bw_json_begin_object(json, "extents");
    bw_json_number(json, "total", extents->total);
    bw_json_number(json, "inline", extents->inlined);
    bw_json_number(json, "regular", extents->regular);
    bw_json_number(json, "preallocated", extents->unwritten);
    bw_json_number(json, "holes", extents->holes);
    for (unsigned i = BW_COMPRESS_NONE + 1; i < BW_COMPRESS_TYPES; i++)
        bw_json_number(json, bw_compression_name(i), extents->compressions[i]);
    bw_json_end(json);
}

/* The members that fileinfo does not have, as an object. */
static void append_more(const struct cmd_stat *stat, struct bw_buffer *text)
{
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    if (stat->subvolume_path.length)
        bw_json_bytes(&json, "subvolume_path", stat->subvolume_path.data,
                      stat->subvolume_path.length > 1 ? stat->subvolume_path.length - 1 : 1);
    if (stat->target.length)
        bw_json_bytes(&json, "target", stat->target.data, stat->target.length);
    if (cmd_mode_is_device(stat->inode.mode)) {
        bw_json_number(&json, "device_major", bw_inode_major(&stat->inode));
        bw_json_number(&json, "device_minor", bw_inode_minor(&stat->inode));
    }
    add_flags(&json, stat->inode.flags);
    add_xattrs(&json, stat);
    add_extents(&json, &stat->extents);
    bw_json_end(&json);
}

struct bw_error *cmd_stat_json(const struct cmd_paths *paths, const struct cmd_stat *stat,
                               struct bw_buffer *text)
{
    const struct bw_rows_options options = {
        .style = BW_ROWS_JSON_LINES, .terminator = '\n', .escape = paths->terminal};
    const char *compression = stat->compression.length ? stat->compression.data
                              : stat->has_compression  ? ""
                                                       : NULL;
    const struct bw_walked_file file = {.path = stat->absolute.data,
                                        .path_length = stat->absolute.length,
                                        .subvolume = stat->place.subvolume->tree.id,
                                        .number = stat->place.inode,
                                        .type = bw_file_type_of_mode(stat->inode.mode),
                                        .inode = &stat->inode,
                                        .compression = compression,
                                        .compression_length = stat->compression.length};
    struct bw_rows *rows;
    BW_TRY(bw_rows_create("fileinfo", &options, &rows));
    bw_rows_append_file(rows, &file, text);
    bw_rows_destroy(rows);
    if (text->failed || text->length < 2)
        return bw_error_no_memory();
    /* One object of two: the end of the first and the begin of the second become a comma. */
    text->length -= 2;
    size_t seam = text->length;
    append_more(stat, text);
    if (!text->failed)
        text->data[seam] = ',';
    bw_buffer_append_byte(text, '\n');
    return NULL;
}
