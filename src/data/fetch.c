/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetching. Every piece becomes one job or several: a job is a part of the block and the requests
 * that it needs. When there are enough of them, all requests go down as one batch. Then the jobs
 * are ended, from the last to the first: a part that is divided into several moves only parts that
 * are done.
 *
 * Requests are cut at multiples of 64 KiB, as the stripes of the RAID profiles are; the bottom
 * layer joins them again where they are adjacent.
 */
#include "data/fetch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/compression.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "xlators/classes.h"

enum {
    SECTORS = BW_DATA_REQUEST / 4096, /* at most, in a request */
    STORED = 1 << 20,                 /* room for compressed bytes */
    PIECE_REQUESTS = BW_MAX_COMPRESSED_EXTENT / BW_DATA_REQUEST + 1,
    SHARED_JOBS = 4, /* how far back a job looks for one that reads the same extent */
};

struct job {
    struct bw_data_file file;
    size_t part;           /* of the block */
    unsigned first, count; /* requests; of a plain job exactly one */
    bool compressed;
    struct bw_extent_piece piece; /* of a compressed job */
    const uint8_t *stored;        /* the bytes of its extent */
};

struct bw_data_fetch {
    struct bw_fs *fs;
    struct bw_data_checksums checksums;
    struct bw_data_decoder *decoder;
    struct job jobs[BW_BATCH];
    unsigned job_count;
    struct bw_request requests[BW_BATCH];
    struct bw_data_expectation expectations[BW_BATCH];
    uint8_t sums[BW_BATCH][SECTORS * BW_CSUM_SIZE];
    unsigned request_count;
    uint8_t *stored; /* bytes of compressed extents */
    size_t stored_used;
};

struct bw_error *bw_data_fetch_create(struct bw_fs *fs, struct bw_data_fetch **result)
{
    struct bw_data_fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch)
        return bw_error_no_memory();
    fetch->fs = fs;
    bw_data_checksums_init(&fetch->checksums, fs);
    fetch->stored = aligned_alloc(4096, STORED);
    struct bw_error *error =
        fetch->stored ? bw_data_decoder_create(fs, &fetch->decoder) : bw_error_no_memory();
    if (error)
        bw_data_fetch_destroy(fetch);
    else
        *result = fetch;
    return error;
}

void bw_data_fetch_destroy(struct bw_data_fetch *fetch)
{
    if (!fetch)
        return;
    bw_data_checksums_free(&fetch->checksums);
    bw_data_decoder_destroy(fetch->decoder);
    free(fetch->stored);
    free(fetch);
}

void bw_data_fetch_drop(struct bw_data_fetch *fetch)
{
    fetch->job_count = fetch->request_count = 0;
    fetch->stored_used = 0;
}

/* Plain extents. */

static struct bw_error *end_plain(struct bw_data_fetch *fetch, const struct job *job,
                                  struct bw_data_block *block)
{
    struct bw_request *request = &fetch->requests[job->first];
    bw_data_check_rebuilt(fetch->fs, &job->file, request);
    return request->error ? bw_data_divide_part(fetch->fs, request, block, job->part, &job->file)
                          : NULL;
}

static struct bw_error *no_checksum(uint64_t logical, const struct bw_checksum_run *run)
{
    if (run->lost)
        return bw_error_create(
            BW_ERROR_CORRUPT,
            "data at %" PRIu64 ": tree block %" PRIu64
            " of the checksum tree, which has their checksums, is lost; they can only be "
            "read without checksums",
            logical, run->lost);
    return bw_error_create(BW_ERROR_CORRUPT,
                           "data at %" PRIu64 ": the checksum tree has no checksum of them",
                           logical);
}

static struct bw_request *add_request(struct bw_data_fetch *fetch, uint64_t logical,
                                      uint32_t length, void *buffer, bool checked)
{
    unsigned at = fetch->request_count++;
    fetch->expectations[at] =
        (struct bw_data_expectation){fetch->sums[at], fetch->checksums.sectorsize};
    fetch->requests[at] = (struct bw_request){.kind = BW_REQUEST_DATA,
                                              .length = length,
                                              .address = logical,
                                              .buffer = buffer,
                                              .data = checked ? &fetch->expectations[at] : NULL};
    return &fetch->requests[at];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The next request of a plain piece, `length` bytes of which are left; or a bad part, if it has no
 * checksums. `step` is set to the bytes that this covers. */
static struct bw_error *add_plain_step(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                       uint64_t logical, uint64_t offset, uint64_t length,
                                       uint8_t *bytes, struct bw_data_block *block, uint64_t *step)
{
    struct bw_checksum_run run = {
        .length = least(length, BW_DATA_REQUEST - logical % BW_DATA_REQUEST), .known = true};
    if (!file->unchecked)
        BW_TRY(bw_data_checksums_get(&fetch->checksums, logical, run.length,
                                     fetch->sums[fetch->request_count], &run));
    *step = run.length;
    bool checked = !file->unchecked && run.known;
    if (!run.known && (run.lost || !file->may_lack_checksums))
        return bw_data_block_add_bad(block, offset, run.length,
                                     bw_data_name_error(no_checksum(logical, &run), file, offset));
    fetch->jobs[fetch->job_count++] = (struct job){
        .file = *file, .part = block->count, .first = fetch->request_count, .count = 1};
    add_request(fetch, logical, (uint32_t)run.length, bytes, checked);
    return bw_data_block_add(
        block, (struct bw_data_part){
                   .kind = BW_DATA_BYTES, .offset = offset, .length = run.length, .bytes = bytes});
}

static struct bw_error *add_plain(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                  const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    const struct bw_extent *extent = &piece->extent;
    uint8_t *bytes = bw_data_block_take(block, (size_t)extent->length);
    for (uint64_t done = 0, step; done < extent->length; done += step) {
        if (fetch->request_count == BW_BATCH || fetch->job_count == BW_BATCH)
            BW_TRY(bw_data_fetch_finish(fetch, block));
        BW_TRY(add_plain_step(fetch, file, extent->used_logical + done, extent->offset + done,
                              extent->length - done, bytes + done, block, &step));
    }
    return NULL;
}

/* Compressed extents. */

/* Names the extent, and its copy if there is only one: of several, it is not known which it was. */
static struct bw_error *name_copy(struct bw_data_fetch *fetch, const struct bw_extent *extent,
                                  struct bw_error *error)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *unknown = bw_wind_map(
        NULL, fetch->fs->reader.top, extent->logical, (uint32_t)extent->stored, 1, &reply);
    if (unknown || reply.copies > 1)
        return bw_error_prefix(error, "extent at %" PRIu64, extent->logical);
    return bw_error_prefix(error,
                           "extent at %" PRIu64 " (copy 1 on device %" PRIu64 " at %" PRIu64 ")",
                           extent->logical, reply.location.devid, reply.location.offset);
}

/* Several jobs may share requests: the error stays with the request. */
static const struct bw_error *failed_request(const struct bw_data_fetch *fetch,
                                             const struct job *job)
{
    for (unsigned i = job->first; i < job->first + job->count; i++)
        if (fetch->requests[i].error)
            return fetch->requests[i].error;
    return NULL;
}

static struct bw_error *end_compressed(struct bw_data_fetch *fetch, const struct job *job,
                                       struct bw_data_block *block)
{
    const struct bw_data_part *part = &block->parts[job->part];
    const struct bw_error *failed = failed_request(fetch, job);
    struct bw_error *error = NULL;
    for (unsigned i = job->first; i < job->first + job->count; i++)
        bw_data_check_rebuilt(fetch->fs, &job->file, &fetch->requests[i]);
    if (failed)
        error = bw_error_create(failed->code, "%s", failed->message);
    else if ((error = bw_data_decode(fetch->decoder, &job->file, &job->piece, job->stored,
                                     (uint8_t *)(uintptr_t)part->bytes)))
        error = name_copy(fetch, &job->piece.extent, error);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        bw_data_spoil_part(block, job->part, &job->file, error);
    return NULL;
}

/* A job of this batch that reads the same extent; NULL if there is none. */
static const struct job *find_shared(const struct bw_data_fetch *fetch, const struct job *wanted)
{
    const struct bw_extent *extent = &wanted->piece.extent;
    for (unsigned back = 1; back <= SHARED_JOBS && back <= fetch->job_count; back++) {
        const struct job *job = &fetch->jobs[fetch->job_count - back];
        if (job->compressed && job->piece.extent.logical == extent->logical &&
            job->piece.extent.stored == extent->stored &&
            job->file.unchecked == wanted->file.unchecked)
            return job;
    }
    return NULL;
}

/* Requests for all of a compressed extent. `missing` is set to an error if a part of it has no
 * checksum. */
static struct bw_error *request_extent(struct bw_data_fetch *fetch, const struct job *job,
                                       struct bw_error **missing)
{
    const struct bw_extent *extent = &job->piece.extent;
    for (uint64_t done = 0; done < extent->stored;) {
        uint64_t logical = extent->logical + done;
        uint64_t length = least(extent->stored - done, BW_DATA_REQUEST - logical % BW_DATA_REQUEST);
        struct bw_checksum_run run = {.length = length, .known = true};
        if (!job->file.unchecked)
            BW_TRY(bw_data_checksums_get(&fetch->checksums, logical, length,
                                         fetch->sums[fetch->request_count], &run));
        if (!run.known || run.length < length) {
            *missing = no_checksum(run.known ? logical + run.length : logical, &run);
            return NULL;
        }
        add_request(fetch, logical, (uint32_t)length, fetch->stored + fetch->stored_used,
                    !job->file.unchecked);
        fetch->stored_used += (size_t)length;
        done += length;
    }
    return NULL;
}

static bool has_room(const struct bw_data_fetch *fetch)
{
    return fetch->job_count < BW_BATCH && fetch->request_count + PIECE_REQUESTS <= BW_BATCH &&
           fetch->stored_used + BW_MAX_COMPRESSED_EXTENT <= STORED;
}

static struct bw_error *start_compressed(struct bw_data_fetch *fetch, struct job *job,
                                         struct bw_error **missing)
{
    const struct job *shared = find_shared(fetch, job);
    job->first = fetch->request_count;
    job->stored = fetch->stored + fetch->stored_used;
    if (shared) {
        job->first = shared->first;
        job->count = shared->count;
        job->stored = shared->stored;
    } else {
        BW_TRY(request_extent(fetch, job, missing));
        job->count = fetch->request_count - job->first;
    }
    return NULL;
}

static struct bw_error *add_compressed(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                       const struct bw_extent_piece *piece,
                                       struct bw_data_block *block)
{
    struct job job = {.file = *file, .compressed = true, .piece = *piece};
    struct bw_data_part part = {
        .kind = BW_DATA_BYTES, .offset = piece->extent.offset, .length = piece->extent.length};
    struct bw_error *missing = NULL;
    if (!has_room(fetch))
        BW_TRY(bw_data_fetch_finish(fetch, block));
    job.part = block->count;
    uint8_t *bytes = bw_data_block_take(block, (size_t)part.length);
    part.bytes = bytes;
    if (bw_data_decoded(fetch->decoder, file, &piece->extent, bytes))
        return bw_data_block_add(block, part);
    unsigned requests = fetch->request_count;
    BW_TRY(start_compressed(fetch, &job, &missing));
    if (missing) {
        fetch->request_count = requests;
        return bw_data_block_add_bad(block, part.offset, part.length,
                                     bw_data_name_error(missing, file, part.offset));
    }
    BW_TRY(bw_data_block_add(block, part));
    fetch->jobs[fetch->job_count++] = job;
    return NULL;
}

/* Inline extents. */

static struct bw_error *add_inline(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    const struct bw_extent *extent = &piece->extent;
    uint8_t *bytes = bw_data_block_take(block, (size_t)extent->length);
    struct bw_error *error = NULL;
    if (fetch->fs->no_data)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "a dump of btrfs-image has no data");
    else if (extent->compression == BW_COMPRESS_NONE)
        memcpy(bytes, piece->inline_data + extent->extent_offset, (size_t)extent->length);
    else
        error = bw_data_decode(fetch->decoder, file, piece, piece->inline_data, bytes);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    BW_TRY(bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_BYTES,
                                                          .offset = extent->offset,
                                                          .length = extent->length,
                                                          .bytes = bytes,
                                                          .in_tree = true}));
    if (error)
        bw_data_spoil_part(block, block->count - 1, file, bw_error_prefix(error, "inline extent"));
    return NULL;
}

/* All of them. */

struct bw_error *bw_data_fetch_add(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    if (piece->extent.kind == BW_EXTENT_INLINE)
        return add_inline(fetch, file, piece, block);
    return piece->extent.compression == BW_COMPRESS_NONE
               ? add_plain(fetch, file, piece, block)
               : add_compressed(fetch, file, piece, block);
}

struct bw_error *bw_data_fetch_finish(struct bw_data_fetch *fetch, struct bw_data_block *block)
{
    struct bw_error *error = NULL;
    bw_wind(NULL, fetch->fs->reader.top, fetch->requests, fetch->request_count);
    for (unsigned i = fetch->job_count; i-- > 0 && !error;)
        error = fetch->jobs[i].compressed ? end_compressed(fetch, &fetch->jobs[i], block)
                                          : end_plain(fetch, &fetch->jobs[i], block);
    for (unsigned i = 0; i < fetch->request_count; i++)
        bw_error_free(fetch->requests[i].error);
    bw_data_fetch_drop(fetch);
    return error;
}
