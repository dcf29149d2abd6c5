/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filling a block with the pieces of a file. What has to be read becomes requests, which go down in
 * batches so that the layers below can join neighbours (fetch.c). Holes and bad ranges need no
 * request.
 */
#include "data/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "data/fetch.h"
#include "fs/fs.h"

/* How far ahead of the reading the layers below are advised. */
enum { ADVISE_BYTES = 16 << 20 };

struct bw_data_reader {
    struct bw_fs *fs;
    struct bw_extent_cursor cursor;
    struct bw_data_fetch *fetch;
    struct bw_data_advisor advisor;
    struct bw_data_block block; /* of bw_data_read() */
};

struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **result)
{
    struct bw_data_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return bw_error_no_memory();
    reader->fs = fs;
    bw_extents_init(&reader->cursor, fs);
    bw_extents_init(&reader->advisor.cursor, fs);
    struct bw_error *error = bw_data_fetch_create(fs, &reader->fetch);
    if (error)
        bw_data_reader_destroy(reader);
    else
        *result = reader;
    return error;
}

void bw_data_reader_destroy(struct bw_data_reader *reader)
{
    if (!reader)
        return;
    bw_extents_free(&reader->cursor);
    bw_extents_free(&reader->advisor.cursor);
    bw_data_fetch_destroy(reader->fetch);
    bw_data_block_free(&reader->block);
    free(reader);
}

/* Cuts a piece to what there is room for; false if there is none. */
static bool cut_to_room(const struct bw_data_reader *reader, const struct bw_data_block *block,
                        struct bw_extent *extent)
{
    size_t room = bw_data_block_room(block);
    if (extent->length > room)
        extent->length = room - room % reader->fs->superblock.sectorsize;
    return extent->length > 0;
}

/* Adds what needs no reading. */
static struct bw_error *add_empty(const struct bw_data_reader *reader,
                                  const struct bw_extent *extent, struct bw_data_block *block)
{
    if (extent->kind == BW_EXTENT_BAD)
        return bw_data_block_add_bad(
            block, extent->offset, extent->length,
            bw_data_name_error(extent->error, &reader->cursor.file, extent->offset));
    return bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_HOLE,
                                                          .offset = extent->offset,
                                                          .length = extent->length});
}

/* Adds pieces up to the end of the cursor's range or of the block; `end` is set to where it
 * stopped. */
static struct bw_error *add_pieces(struct bw_data_reader *reader, struct bw_data_block *block,
                                   uint64_t *end)
{
    struct bw_extent_piece piece;
    bool got;
    *end = reader->cursor.offset;
    for (;;) {
        BW_TRY(bw_extents_next_readable(&reader->cursor, &piece, &got));
        if (!got)
            return NULL;
        bool is_data = bw_extent_is_data(&piece.extent);
        if (is_data && !cut_to_room(reader, block, &piece.extent))
            return NULL;
        uint64_t next = piece.extent.offset + piece.extent.length;
        BW_TRY(is_data ? bw_data_fetch_add(reader->fetch, &reader->cursor.file, &piece, block)
                       : add_empty(reader, &piece.extent, block));
        bool cut = next < reader->cursor.offset;
        *end = next;
        if (cut)
            return NULL;
    }
}

struct bw_error *bw_data_fill(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, struct bw_data_block *block,
                              uint64_t *end)
{
    uint32_t sectorsize = reader->fs->superblock.sectorsize;
    size_t first = block->count;
    *end = offset;
    if (!bw_data_block_reserve(block))
        return bw_error_no_memory();
    if (offset >= file->size)
        return NULL;
    uint64_t last = length < file->size - offset ? offset + length : file->size;
    uint64_t rounded = (last + sectorsize - 1) / sectorsize * sectorsize, reached;
    bw_extents_seek(&reader->cursor, file, offset - offset % sectorsize, rounded);
    struct bw_error *error = add_pieces(reader, block, &reached);
    if (!error)
        error = bw_data_fetch_finish(reader->fetch, block);
    else
        bw_data_fetch_drop(reader->fetch);
    if (error)
        return error;
    *end = reached < offset ? offset : reached < last ? reached : last;
    bw_data_block_join(block, first);
    bw_data_block_trim(block, first, offset, *end);
    return NULL;
}

static struct bw_error *take_parts(const struct bw_data_block *block, bw_data_taker *take,
                                   void *context)
{
    for (size_t i = 0; i < block->count; i++)
        BW_TRY(take(context, &block->parts[i]));
    return NULL;
}

struct bw_error *bw_data_read(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, bw_data_taker *take, void *context)
{
    struct bw_error *error = NULL;
    uint64_t end =
        offset < file->size && length < file->size - offset ? offset + length : file->size;
    while (!error && offset < end) {
        uint64_t left = end - offset, reached;
        if (left > BW_DATA_BLOCK)
            error = bw_data_advise(&reader->advisor, file, offset,
                                   left < ADVISE_BYTES ? end : offset + ADVISE_BYTES);
        bw_data_block_clear(&reader->block);
        if (!error)
            error = bw_data_fill(reader, file, offset, left, &reader->block, &reached);
        if (!error)
            error = take_parts(&reader->block, take, context);
        if (!error)
            offset = reached;
    }
    bw_data_block_clear(&reader->block);
    return error;
}
