/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads ranges of logical addresses: tree blocks and stored data, verified like any other read.
 *
 * In chunks of metadata, tree blocks follow each other. In chunks of data, sectors do, each with a
 * checksum or without. In mixed chunks, every address is first read as a tree block, and as data if
 * it is none. Data are read with one request for as many sectors as have checksums, or have none,
 * up to a limit; if it fails, sector by sector, so that only bad sectors are delivered as bad.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "btrfs-walk/format.h"
#include "data/fetch.h"
#include "fs/fs.h"
#include "fs/tree_items.h"
#include "graph/wind.h"

/* A running read. */
struct logical_read {
    struct bw_fs *fs;
    struct bw_logical_options options;
    struct bw_chunk_list chunks;
    struct bw_data_checksums checksums;
    uint8_t *expected; /* checksums of a request */
    uint8_t *bytes;    /* of a request or tree block */
    uint64_t unverified;
    bw_data_visitor *visit;
    void *context;
};

/* The chunk at an address, or NULL. */
static const struct bw_chunk_info *find_chunk(const struct bw_chunk_list *chunks, uint64_t logical)
{
    for (size_t i = 0; i < chunks->count; i++)
        if (logical - chunks->items[i].logical < chunks->items[i].length)
            return &chunks->items[i];
    return NULL;
}

/* Delivers the bytes that were read, or a bad part if there is an error, which is freed. Memory
 * that runs out is no damage. */
static struct bw_error *deliver(const struct logical_read *read, uint64_t logical, uint64_t length,
                                struct bw_error *error)
{
    struct bw_data_part part = {
        .kind = BW_DATA_BYTES, .offset = logical, .length = length, .bytes = read->bytes};
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error) {
        part.kind = BW_DATA_BAD;
        part.bytes = NULL;
        part.error = error;
    }
    struct bw_error *failure = read->visit(read->context, &part);
    bw_error_free(error);
    return failure;
}

/* Reads data up to the first sector that has no checksum while others have, or the reverse. Sets
 * `*length`, the most to read, to the length that was, and `*known`: they have checksums. */
static struct bw_error *read_range(struct logical_read *read, uint64_t logical, uint32_t *length,
                                   bool *known)
{
    *known = false;
    if (!read->options.unchecked) {
        struct bw_checksum_run run;
        BW_TRY(bw_data_checksums_get(&read->checksums, logical, *length, read->expected, &run));
        *known = run.known;
        *length = (uint32_t)run.length;
        if (!run.known && run.lost && !(read->fs->ignored_checksums & BW_CHECKSUMS_DATA))
            return bw_error_create(BW_ERROR_NO_CHECKSUM,
                                   "data at %" PRIu64 "+%" PRIu32
                                   ": the checksums were in the lost block %" PRIu64,
                                   logical, *length, run.lost);
        read->unverified += run.known ? 0 : *length;
    }
    const struct bw_data_expectation expectation = {read->expected, read->checksums.sectorsize,
                                                    read->fs->data_checksum};
    struct bw_request request = {.kind = BW_REQUEST_DATA,
                                 .mirror = (uint8_t)read->options.mirror,
                                 .length = *length,
                                 .address = logical,
                                 .buffer = read->bytes,
                                 .data = *known ? &expectation : NULL};
    bw_wind(NULL, read->fs->reader.top, &request, 1);
    bw_data_count_unverified(read->fs, &request);
    return request.error;
}

/* Delivers data from a sector on; sets `*length`, the most to read, to the length that was. If it
 * cannot be read as a whole, it is read sector by sector. */
static struct bw_error *read_data(struct logical_read *read, uint64_t logical, uint64_t *length)
{
    const uint32_t room = BW_DATA_REQUEST - (uint32_t)(logical % BW_DATA_REQUEST);
    const uint32_t sectorsize = read->checksums.sectorsize;
    const uint64_t unverified = read->unverified;
    uint32_t size = *length < room ? (uint32_t)*length : room;
    bool known;
    struct bw_error *error = read_range(read, logical, &size, &known);
    *length = size;
    if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_NO_CHECKSUM ||
        size == sectorsize)
        return deliver(read, logical, size, error);
    bw_error_free(error);
    read->unverified = unverified;
    for (uint32_t at = 0; at < size; at += sectorsize) {
        uint32_t one = sectorsize;
        error = read_range(read, logical + at, &one, &known);
        BW_TRY(deliver(read, logical + at, one, error));
    }
    return NULL;
}

/* Delivers what begins at an address: a tree block, or data. In chunks of both kinds, only an
 * attempt shows which it is. */
static struct bw_error *read_piece(struct logical_read *read, const struct bw_chunk_info *chunk,
                                   uint64_t logical, uint64_t *length)
{
    const uint64_t in_chunk = chunk->length - (logical - chunk->logical);
    const uint64_t nodesize = read->fs->reader.nodesize;
    const bool blocks_only = !(chunk->type & BW_GROUP_DATA);
    const bool may_be_block = blocks_only || (chunk->type & BW_GROUP_METADATA);
    *length = bw_min(*length, in_chunk);
    if (read->options.unchecked || !may_be_block)
        return read_data(read, logical, length);
    struct bw_error *error =
        bw_block_copy_read(read->fs, logical, read->options.mirror, read->bytes);
    if (error && (!blocks_only || read->fs->ignored_checksums & BW_CHECKSUMS_METADATA)) {
        bw_error_free(error);
        return read_data(read, logical, length);
    }
    *length = bw_min(*length, nodesize);
    return deliver(read, logical, *length, error);
}

/* Whether a range can be read: it consists of sectors, is in chunks, and has the mirror. */
static struct bw_error *check_range(const struct logical_read *read, uint64_t logical,
                                    uint64_t length)
{
    const uint64_t sectorsize = read->checksums.sectorsize;
    struct bw_mapping mapping;
    if (logical % sectorsize || length % sectorsize || !length || length > UINT64_MAX - logical)
        return bw_error_create(BW_ERROR_USAGE,
                               "%" PRIu64 "+%" PRIu64 ": address and length must be multiples of "
                               "the sector size, %" PRIu64,
                               logical, length, sectorsize);
    for (uint64_t at = logical; at - logical < length;) {
        const struct bw_chunk_info *chunk = find_chunk(&read->chunks, at);
        if (!chunk)
            return bw_error_create(BW_ERROR_NOT_FOUND, "no chunk holds logical address %" PRIu64,
                                   at);
        at = chunk->logical + chunk->length;
    }
    struct bw_error *error = bw_fs_map(read->fs, logical, length,
                                       read->options.mirror ? read->options.mirror : 1, &mapping);
    if (error && error->code == BW_ERROR_NOT_FOUND && mapping.copies) {
        bw_error_free(error);
        return bw_error_create(BW_ERROR_USAGE, "there is no mirror %u of %" PRIu64 ", only %u",
                               read->options.mirror, logical, mapping.copies);
    }
    return error;
}

/* Reads the range; with a length of 0, the tree block or sector at the address. */
static struct bw_error *read_all(struct logical_read *read, uint64_t logical, uint64_t length)
{
    BW_TRY(bw_fs_chunks(read->fs, &read->chunks));
    if (!length) {
        const struct bw_chunk_info *chunk = find_chunk(&read->chunks, logical);
        const bool is_block = chunk && !(chunk->type & BW_GROUP_DATA);
        length = is_block ? read->fs->reader.nodesize : read->checksums.sectorsize;
    }
    BW_TRY(check_range(read, logical, length));
    while (length) {
        uint64_t done = length;
        BW_TRY(read_piece(read, find_chunk(&read->chunks, logical), logical, &done));
        logical += done;
        length -= done;
    }
    if (read->unverified)
        bw_fs_report_text(read->fs, BW_NOTE, BW_ERROR_NO_CHECKSUM,
                          "%" PRIu64 " bytes have no checksums and were not verified",
                          read->unverified);
    return NULL;
}

struct bw_error *bw_logical_read(struct bw_fs *fs, uint64_t logical, uint64_t length,
                                 const struct bw_logical_options *options, bw_data_visitor *visit,
                                 void *context)
{
    struct logical_read read = {.fs = fs, .visit = visit, .context = context};
    BW_TRY(BW_TAKE_OPTIONS(&read.options, options));
    if (read.options.mirror > UINT8_MAX)
        return bw_error_create(BW_ERROR_USAGE, "there is no mirror %u", read.options.mirror);
    bw_data_checksums_init(&read.checksums, fs);
    const size_t nodesize = fs->reader.nodesize;
    read.bytes = malloc(nodesize > BW_DATA_REQUEST ? nodesize : BW_DATA_REQUEST);
    read.expected =
        malloc((size_t)BW_DATA_REQUEST / read.checksums.sectorsize * read.checksums.size +
               read.checksums.size);
    struct bw_error *error =
        read.bytes && read.expected ? read_all(&read, logical, length) : bw_error_no_memory();
    bw_data_checksums_free(&read.checksums);
    bw_chunk_list_free(&read.chunks);
    free(read.expected);
    free(read.bytes);
    return error;
}
