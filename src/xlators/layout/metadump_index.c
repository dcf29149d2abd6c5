/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the index of a dump of btrfs-image; see metadump_index.h for the format. */
#include "xlators/layout/metadump_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/endian.h"
#include "base/search.h"

enum { BLOCK = 1024 };
#define MAGIC UINT64_C(0xbd5c25e27295668b)

struct disk_header {
    bw_le64 magic;
    bw_le64 offset; /* of this cluster in the dump */
    bw_le32 count;  /* of entries */
    uint8_t compression;
} __attribute__((packed));

enum { COMPRESS_NONE, COMPRESS_ZLIB };

struct disk_entry {
    bw_le64 logical;
    bw_le32 stored;
} __attribute__((packed));

enum { ENTRIES = (BLOCK - sizeof(struct disk_header)) / sizeof(struct disk_entry) };

/* The first block of a cluster. */
union block {
    uint8_t bytes[BLOCK];
    struct {
        struct disk_header header;
        struct disk_entry entries[ENTRIES];
    } __attribute__((packed)) cluster;
};

static struct bw_error *read_block(const struct bw_frame *frame, struct bw_xlator *device,
                                   uint64_t offset, union block *block)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = BLOCK, .address = offset, .buffer = block};
    bw_wind(frame, device, &request, 1);
    return request.error;
}

bool bw_is_metadump(const struct bw_frame *frame, struct bw_xlator *device)
{
    union block block;
    if (bw_xlator_size(device) < BLOCK)
        return false;
    struct bw_error *error = read_block(frame, device, 0, &block);
    bw_error_free(error);
    return !error && bw_get64(block.cluster.header.magic) == MAGIC &&
           !bw_get64(block.cluster.header.offset);
}

static struct bw_error *check_header(const struct disk_header *header, uint64_t offset)
{
    if (bw_get64(header->magic) != MAGIC || bw_get64(header->offset) != offset)
        return bw_error_create(BW_ERROR_CORRUPT, "no cluster of the dump begins at %" PRIu64,
                               offset);
    if (bw_get32(header->count) > ENTRIES)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the cluster at %" PRIu64 " of the dump has %" PRIu32 " pieces",
                               offset, bw_get32(header->count));
    if (header->compression > COMPRESS_ZLIB)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the cluster at %" PRIu64 " of the dump has compression %u", offset,
                               header->compression);
    return NULL;
}

static bool add_piece(struct bw_metadump_index *index, const struct bw_metadump_piece *piece)
{
    if (!BW_ARRAY_RESERVE(index->pieces, index->count, index->capacity))
        return false;
    index->pieces[index->count++] = *piece;
    return true;
}

/* Takes the pieces of a cluster, and goes on to the next one. */
static struct bw_error *take_cluster(struct bw_metadump_index *index, const union block *block,
                                     uint64_t size, uint64_t *offset)
{
    const struct disk_header *header = &block->cluster.header;
    const bool compressed = header->compression == COMPRESS_ZLIB;
    uint64_t at = *offset + BLOCK;
    for (uint32_t i = 0; i < bw_get32(header->count); i++) {
        const struct disk_entry *entry = &block->cluster.entries[i];
        const uint64_t room = at < size ? size - at : 0;
        const bool cut = bw_get32(entry->stored) > room;
        const uint32_t stored = cut ? (uint32_t)room : bw_get32(entry->stored);
        if ((!cut || !compressed) &&
            !add_piece(index, &(struct bw_metadump_piece){bw_get64(entry->logical), at, stored,
                                                          compressed}))
            return bw_error_no_memory();
        if (cut)
            return bw_error_create(
                BW_ERROR_CORRUPT,
                "the dump is cut off: it ends at %" PRIu64 ", in the piece at %" PRIu64, size, at);
        at += stored;
    }
    *offset = (at + BLOCK - 1) / BLOCK * BLOCK;
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const struct bw_metadump_piece *first = a, *second = b;
    return first->logical != second->logical
               ? (first->logical < second->logical ? -1 : 1)
               : (first->offset > second->offset) - (first->offset < second->offset);
}

struct bw_error *bw_metadump_index_read(const struct bw_frame *frame, struct bw_xlator *device,
                                        struct bw_metadump_index *index, struct bw_error **cut)
{
    const uint64_t size = bw_xlator_size(device);
    struct bw_error *error = NULL;
    for (uint64_t offset = 0; !error && offset < size && size - offset >= BLOCK;) {
        union block block;
        error = read_block(frame, device, offset, &block);
        if (!error)
            error = check_header(&block.cluster.header, offset);
        if (!error)
            error = take_cluster(index, &block, size, &offset);
    }
    if (index->count)
        qsort(index->pieces, index->count, sizeof *index->pieces, compare);
    const bool fatal =
        error && (error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_UNSUPPORTED);
    *cut = fatal ? NULL : error;
    return fatal ? error : NULL;
}

void bw_metadump_index_free(struct bw_metadump_index *index)
{
    free(index->pieces);
    *index = (struct bw_metadump_index){0};
}

const struct bw_metadump_piece *bw_metadump_find(const struct bw_metadump_index *index,
                                                 uint64_t logical)
{
    const size_t next = BW_FIRST_INDEX(i, index->count, index->pieces[i].logical > logical);
    return next ? &index->pieces[next - 1] : NULL;
}

uint32_t bw_metadump_room(const struct bw_metadump_index *index,
                          const struct bw_metadump_piece *piece)
{
    const struct bw_metadump_piece *end = index->pieces + index->count;
    const uint64_t room = piece + 1 < end ? piece[1].logical - piece->logical : BW_METADUMP_PIECE;
    return room < BW_METADUMP_PIECE ? (uint32_t)room : BW_METADUMP_PIECE;
}
