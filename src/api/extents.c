/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extents of files: the pieces of data/extents.h, with neighbouring holes joined. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btrfs-walk/stream.h"
#include "data/extents.h"

struct bw_extent_reader {
    struct bw_extent_cursor cursor;
    struct bw_extent ahead; /* the extent after a hole, which showed where the hole ends */
    bool has_ahead;
    struct bw_error *error; /* of the extent that was handed out last */
};

struct bw_error *bw_extent_reader_create(struct bw_fs *fs, struct bw_extent_reader **reader)
{
    *reader = calloc(1, sizeof **reader);
    if (!*reader)
        return bw_error_no_memory();
    bw_extents_init(&(*reader)->cursor, fs);
    return NULL;
}

static void forget(struct bw_extent_reader *reader)
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
    forget(reader);
    bw_extents_free(&reader->cursor);
    free(reader);
}

void bw_extent_reader_seek(struct bw_extent_reader *reader, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end)
{
    forget(reader);
    bw_extents_seek(&reader->cursor, file, offset, end);
}

/* The next extent, of which a hole may be only a part. */
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

/* Lengthens a hole by those that follow it. */
static struct bw_error *join_holes(struct bw_extent_reader *reader, struct bw_extent *hole)
{
    bool got;
    for (;;) {
        BW_TRY(read_next(reader, &reader->ahead, &got));
        reader->has_ahead = got && reader->ahead.kind != BW_EXTENT_HOLE;
        if (!got || reader->has_ahead)
            return NULL;
        hole->length = reader->ahead.offset + reader->ahead.length - hole->offset;
    }
}

/* A file has no holes after its end, only extents that were allocated in advance. */
static void cut_hole(const struct bw_extent_reader *reader, struct bw_extent *hole)
{
    const uint64_t size = reader->cursor.file.size;
    if (hole->offset + hole->length > size)
        hole->length = hole->offset < size ? size - hole->offset : 0;
}

struct bw_error *bw_extent_reader_next(struct bw_extent_reader *reader, struct bw_extent *extent,
                                       bool *got)
{
    bw_error_free(BW_TAKE(reader->error));
    do {
        BW_TRY(read_next(reader, extent, got));
        if (!*got)
            return NULL;
        if (extent->kind == BW_EXTENT_HOLE) {
            BW_TRY(join_holes(reader, extent));
            cut_hole(reader, extent);
        }
    } while (!extent->length);
    reader->error = extent->error;
    return NULL;
}
