/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An open file: its inode, and a reader of its data and one of its extents, which are created on
 * first use. The extents are the pieces of data/file_extents.h, with adjacent holes joined. The end
 * of a hole is known only when the next extent that is no hole has been read; that one is kept as
 * `ahead` and returned next.
 */
#include "btrfs-walk/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "data/file_extents.h"
#include "data/reader.h"

struct bw_file {
    struct bw_fs *fs;
    struct bw_inode inode;
    struct bw_data_file data;
    struct bw_data_reader *reader;
    struct bw_extent_reader *extents;
    uint64_t next_extent; /* where `extents` continues */
};

struct bw_error *bw_file_open(struct bw_fs *fs, const struct bw_place *place,
                              const struct bw_file_options *given, struct bw_file **file)
{
    struct bw_file_options options = {.struct_size = sizeof options};
    struct bw_inode inode;
    if (given)
        BW_TRY(BW_TAKE_OPTIONS(&options, given));
    BW_TRY(bw_inode_get(fs, place, &inode));
    if (!S_ISREG(inode.mode) && !S_ISLNK(inode.mode))
        return bw_error_create(BW_ERROR_USAGE, "not a regular file");
    struct bw_file *result = calloc(1, sizeof *result);
    if (!result)
        return bw_error_no_memory();
    *result = (struct bw_file){.fs = fs, .inode = inode, .data = bw_data_file_of(place, &inode)};
    result->data.unchecked |= options.unchecked;
    *file = result;
    return NULL;
}

void bw_file_close(struct bw_file *file)
{
    if (!file)
        return;
    bw_data_reader_destroy(file->reader);
    bw_extent_reader_destroy(file->extents);
    free(file);
}

const struct bw_inode *bw_file_inode(const struct bw_file *file)
{
    return &file->inode;
}

struct bw_error *bw_file_begin_parts(struct bw_file *file, uint64_t offset, uint64_t length)
{
    if (!file->reader)
        BW_TRY(bw_data_reader_create(file->fs, &file->reader));
    bw_data_begin(file->reader, &file->data, offset, length);
    return NULL;
}

struct bw_error *bw_file_next_part(struct bw_file *file, const struct bw_data_part **part)
{
    *part = NULL;
    return file->reader ? bw_data_next(file->reader, part) : NULL;
}

struct bw_error *bw_file_read(struct bw_file *file, uint64_t offset, void *buffer, size_t length,
                              size_t *got)
{
    *got = 0;
    BW_TRY(bw_file_begin_parts(file, offset, length));
    for (const struct bw_data_part *part;;) {
        BW_TRY(bw_data_next(file->reader, &part));
        if (!part)
            return NULL;
        /* A bad part is an error only if nothing comes before it. */
        if (part->kind == BW_DATA_BAD)
            return *got ? NULL : bw_error_copy(part->error);
        uint8_t *to = (uint8_t *)buffer + (part->offset - offset);
        if (part->kind == BW_DATA_HOLE)
            memset(to, 0, (size_t)part->length);
        else
            memcpy(to, part->bytes, (size_t)part->length);
        *got += (size_t)part->length;
    }
}

void bw_file_seek_extent(struct bw_file *file, uint64_t offset)
{
    file->next_extent = offset;
    if (file->extents)
        bw_extent_reader_seek(file->extents, &file->data, offset, INT64_MAX);
}

struct bw_error *bw_file_next_extent(struct bw_file *file, const struct bw_extent **extent)
{
    if (!file->extents) {
        BW_TRY(bw_extent_reader_create(file->fs, &file->extents));
        bw_file_seek_extent(file, file->next_extent);
    }
    return bw_extent_reader_next(file->extents, extent);
}

/* Extents. */

struct bw_extent_reader {
    struct bw_extent now; /* the last one that was returned */
    struct bw_extent_cursor cursor;
    struct bw_extent ahead; /* the extent after a hole, read to find the end of the hole */
    bool has_ahead;
    struct bw_error *error; /* of the extent returned last */
};

struct bw_error *bw_extent_reader_create(struct bw_fs *fs, struct bw_extent_reader **reader)
{
    *reader = calloc(1, sizeof **reader);
    if (!*reader)
        return bw_error_no_memory();
    bw_extents_init(&(*reader)->cursor, fs);
    return NULL;
}

static void reset_reader(struct bw_extent_reader *reader)
{
    bw_error_free(BW_TAKE(reader->error));
    if (reader->has_ahead)
        bw_error_free(reader->ahead.error);
    reader->has_ahead = false;
}

void bw_extent_reader_destroy(struct bw_extent_reader *reader)
{
    if (!reader)
        return;
    reset_reader(reader);
    bw_extents_free(&reader->cursor);
    free(reader);
}

void bw_extent_reader_seek(struct bw_extent_reader *reader, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end)
{
    reset_reader(reader);
    bw_extents_seek(&reader->cursor, file, offset, end);
}

/* Gets the next extent; a hole may be only a part of a larger one. */
static struct bw_error *read_next(struct bw_extent_reader *reader, struct bw_extent *extent,
                                  bool *got)
{
    struct bw_extent_piece piece;
    if (reader->has_ahead) {
        *extent = reader->ahead;
        reader->has_ahead = false;
        *got = true;
        return NULL;
    }
    BW_TRY(bw_extents_next(&reader->cursor, &piece, got));
    if (*got)
        *extent = piece.extent;
    return NULL;
}

struct bw_error *bw_extent_reader_next(struct bw_extent_reader *reader,
                                       const struct bw_extent **extent)
{
    const uint64_t size = reader->cursor.file.size;
    struct bw_extent *now = &reader->now, *ahead = &reader->ahead;
    bool got;
    *extent = NULL;
    bw_error_free(BW_TAKE(reader->error));
    do {
        BW_TRY(read_next(reader, now, &got));
        if (!got)
            return NULL;
        if (now->kind != BW_EXTENT_HOLE)
            continue;
        /* Join the holes after it. The end of the file is followed only by preallocated
         * extents. */
        do {
            BW_TRY(read_next(reader, ahead, &got));
            reader->has_ahead = got && ahead->kind != BW_EXTENT_HOLE;
            if (got && !reader->has_ahead)
                now->length = ahead->offset + ahead->length - now->offset;
        } while (got && !reader->has_ahead);
        now->length = now->offset < size ? bw_min(now->length, size - now->offset) : 0;
    } while (!now->length);
    reader->error = now->error;
    *extent = now;
    return NULL;
}
