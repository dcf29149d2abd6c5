/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of single entries. A walk writes those of many at once, and looks up their inodes together.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btrfs-walk/people.h"
#include "btrfs-walk/walk.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "record/rows.h"

/* The property of the file, if rows want it. Its value lies in the query. */
static struct bw_error *find_compression(struct bw_inode_query *query, const struct bw_entry *entry,
                                         struct bw_walked_file *file)
{
    struct bw_inode_attributes attributes = {.number = entry->place.inode};
    query->compression = true;
    BW_TRY(bw_inode_query_run(query, &entry->place.subvolume->tree, &attributes, 1));
    if (attributes.compression_state != BW_ITEM_FOUND)
        return NULL;
    file->compression = query->values.length ? query->values.data + attributes.compression : "";
    file->compression_length = attributes.compression_length;
    return NULL;
}

static struct bw_error *write_row(struct bw_rows_stream *stream, const struct bw_walked_file *file)
{
    struct bw_buffer row = {.data = stream->row, .capacity = stream->row_capacity};
    bw_rows_append_file(stream->rows, file, &row);
    stream->row = row.data;
    stream->row_capacity = row.capacity;
    return row.failed ? bw_error_no_memory() : bw_rows_take(stream, row.data, row.length);
}

struct bw_error *bw_rows_write_entry(struct bw_rows_stream *stream, struct bw_fs *fs,
                                     const struct bw_entry *entry, const struct bw_people *people)
{
    struct bw_inode_query query = {.fs = fs};
    struct bw_walked_file file = {.path = entry->path,
                                  .path_length = entry->path_length,
                                  .subvolume = bw_subvolume_id(entry->place.subvolume),
                                  .number = entry->place.inode,
                                  .type = entry->place.type,
                                  .inode = entry->inode};
    struct bw_error *error = NULL;
    if (bw_rows_record(stream->rows) != &bw_fileinfo_record)
        return bw_error_create(BW_ERROR_USAGE, "rows of entries are of the record fileinfo");
    if (file.inode) {
        file.user = bw_people_user(people, file.inode->uid);
        file.group = bw_people_group(people, file.inode->gid);
    }
    if (bw_rows_needs(stream->rows) & BW_FILE_NEEDS_COMPRESSION && !entry->no_compression &&
        file.number != BW_EMPTY_DIRECTORY)
        error = find_compression(&query, entry, &file);
    if (!error)
        error = write_row(stream, &file);
    bw_inode_query_free(&query);
    return error;
}
