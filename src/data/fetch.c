/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetching. Every piece becomes a job, or several: a job is one part of the block and the requests it waits
 * for. When there are enough of them all requests go down as one batch. Then the jobs are ended from the last
 * to the first, so that a part that falls into several does not move those that are still to come.
 *
 * Requests are cut at multiples of 64 KiB, as the stripes of the RAID profiles are; the bottom layer joins
 * them again where they lie behind one another.
 */
#include "data/fetch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "data/checksums.h"
#include "format/compression.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "xlators/classes.h"

enum {
    CUT = 64 << 10,
    SECTORS = CUT / 4096, /* at most, in a request */
    STORED = 1 << 20,     /* room for compressed bytes */
    PIECE_REQUESTS = BW_MAX_COMPRESSED_EXTENT / CUT + 1,
    SHARED_JOBS = 4, /* how far back a job looks for one that reads the same extent */
};

struct job {
    struct bw_data_file file;
    size_t part;           /* of the block */
    unsigned first, count; /* requests; of a plain job exactly one */
    bool compressed;
    struct bw_file_extent extent; /* of a compressed job */
    uint64_t skip;                /* bytes of the extent that are not wanted */
    const uint8_t *stored;
};

struct bw_data_fetch {
    struct bw_fs *fs;
    struct bw_data_checksums checksums;
    struct bw_decompressor *decompressor;
    struct job jobs[BW_BATCH];
    unsigned job_count;
    struct bw_request requests[BW_BATCH];
    struct bw_data_expectation expectations[BW_BATCH];
    uint8_t sums[BW_BATCH][SECTORS * BW_CSUM_SIZE];
    unsigned request_count;
    uint8_t *stored; /* bytes of compressed extents */
    size_t stored_used;
    uint8_t *decoded;                 /* the last extent of which only a part was wanted */
    struct bw_file_extent in_decoded; /* which one that is; disk_bytenr 0: none */
    bool decoded_unchecked;           /* its checksums were not looked at */
};

struct bw_error *bw_data_fetch_create(struct bw_fs *fs, struct bw_data_fetch **result)
{
    struct bw_data_fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch)
        return bw_error_no_memory();
    fetch->fs = fs;
    bw_data_checksums_init(&fetch->checksums, fs);
    fetch->stored = aligned_alloc(4096, STORED);
    fetch->decoded = malloc(BW_MAX_COMPRESSED_EXTENT);
    struct bw_error *error = fetch->stored && fetch->decoded
                                 ? bw_decompressor_create(fs->superblock.sectorsize, &fetch->decompressor)
                                 : bw_error_no_memory();
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
    bw_decompressor_destroy(fetch->decompressor);
    free(fetch->stored);
    free(fetch->decoded);
    free(fetch);
}

void bw_data_fetch_drop(struct bw_data_fetch *fetch)
{
    fetch->job_count = fetch->request_count = 0;
    fetch->stored_used = 0;
}

struct bw_error *bw_data_name_error(struct bw_error *error, const struct bw_data_file *file, uint64_t offset)
{
    return bw_error_prefix(error, "inode %" PRIu64 " of tree %" PRIu64 " at %" PRIu64, file->inode,
                           file->tree.id, offset);
}

/* Turns the part at `at` into a bad one, for the reason `error`. */
static void spoil_part(struct bw_data_block *block, size_t at, const struct bw_data_file *file,
                       struct bw_error *error)
{
    struct bw_data_part *part = &block->parts[at];
    part->error = bw_data_name_error(error, file, part->offset);
    part->kind = BW_DATA_BAD;
    part->bytes = NULL;
}

/* Plain extents. */

/* Asks for a failed request again sector by sector: the rest may be good. */
static unsigned read_sectors(struct bw_data_fetch *fetch, const struct bw_request *whole,
                             struct bw_request *sectors)
{
    uint32_t sectorsize = fetch->fs->superblock.sectorsize;
    struct bw_data_expectation expectations[SECTORS];
    unsigned count = 0;
    for (uint32_t at = 0; at < whole->length; at += sectorsize, count++) {
        sectors[count] = *whole;
        sectors[count].address += at;
        sectors[count].length = sectorsize;
        sectors[count].buffer = (uint8_t *)whole->buffer + at;
        sectors[count].error = NULL;
        if (!whole->data)
            continue;
        expectations[count] = *whole->data;
        expectations[count].checksums += (size_t)count * fetch->checksums.size;
        sectors[count].data = &expectations[count];
    }
    bw_wind(NULL, fetch->fs->reader.top, sectors, count);
    return count;
}

/* Whether memory was short for one of the sectors: then nobody can say which of them are bad, and the errors
 * of all are freed. */
static bool lacked_memory(struct bw_request *sectors, unsigned count)
{
    bool lacked = false;
    for (unsigned i = 0; i < count; i++)
        lacked |= sectors[i].error && sectors[i].error->code == BW_ERROR_NO_MEMORY;
    for (unsigned i = 0; lacked && i < count; i++)
        bw_error_free(sectors[i].error);
    return lacked;
}

/* Puts parts for single sectors in the place of the one that failed as a whole. */
static struct bw_error *divide_part(struct bw_data_fetch *fetch, const struct job *job,
                                    struct bw_data_block *block)
{
    struct bw_request sectors[SECTORS];
    struct bw_data_part parts[SECTORS];
    unsigned count = read_sectors(fetch, &fetch->requests[job->first], sectors);
    if (lacked_memory(sectors, count))
        return bw_error_no_memory();
    const struct bw_data_part whole = block->parts[job->part];
    for (unsigned i = 0; i < count; i++) {
        uint32_t at = i * fetch->fs->superblock.sectorsize;
        parts[i] = whole;
        parts[i].offset += at;
        parts[i].length = sectors[i].length;
        parts[i].bytes += at;
        if (!sectors[i].error)
            continue;
        parts[i].kind = BW_DATA_BAD;
        parts[i].bytes = NULL;
        parts[i].error = bw_data_name_error(sectors[i].error, &job->file, parts[i].offset);
    }
    block->parts[job->part] = parts[0];
    return count > 1 ? bw_data_block_insert(block, job->part + 1, parts + 1, count - 1) : NULL;
}

static struct bw_error *end_plain(struct bw_data_fetch *fetch, const struct job *job,
                                  struct bw_data_block *block)
{
    struct bw_request *request = &fetch->requests[job->first];
    struct bw_error *error = BW_TAKE(request->error);
    if (!error)
        return NULL;
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    /* No sector of it is there. */
    if (error->code == BW_ERROR_MISSING_DEVICE || request->length <= fetch->fs->superblock.sectorsize) {
        spoil_part(block, job->part, &job->file, error);
        return NULL;
    }
    bw_error_free(error);
    return divide_part(fetch, job, block);
}

static struct bw_error *no_checksum(uint64_t logical, const struct bw_checksum_run *run)
{
    if (run->lost)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "data at %" PRIu64 ": tree block %" PRIu64
                               " of the checksum tree, which would tell of them, is lost; they can only be "
                               "read without checksums",
                               logical, run->lost);
    return bw_error_create(BW_ERROR_CORRUPT, "data at %" PRIu64 ": the checksum tree has no checksum of them",
                           logical);
}

static struct bw_request *add_request(struct bw_data_fetch *fetch, uint64_t logical, uint32_t length,
                                      void *buffer, bool checked)
{
    unsigned at = fetch->request_count++;
    fetch->expectations[at] = (struct bw_data_expectation){fetch->sums[at], fetch->checksums.sectorsize};
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

/* The next request of a plain piece, `length` bytes of which are left; or a bad part, if it has no checksums.
 * `step` gets how far that goes. */
static struct bw_error *add_plain_step(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                       uint64_t logical, uint64_t offset, uint64_t length, uint8_t *bytes,
                                       struct bw_data_block *block, uint64_t *step)
{
    struct bw_checksum_run run = {.length = least(length, CUT - logical % CUT), .known = true};
    if (!file->unchecked)
        BW_TRY(bw_data_checksums_get(&fetch->checksums, logical, run.length,
                                     fetch->sums[fetch->request_count], &run));
    *step = run.length;
    struct bw_data_part part = {
        .kind = BW_DATA_BYTES, .offset = offset, .length = run.length, .bytes = bytes};
    if (!run.known) {
        part.kind = BW_DATA_BAD;
        part.bytes = NULL;
        part.error = bw_data_name_error(no_checksum(logical, &run), file, offset);
        return bw_data_block_add(block, part);
    }
    fetch->jobs[fetch->job_count++] =
        (struct job){.file = *file, .part = block->count, .first = fetch->request_count, .count = 1};
    add_request(fetch, logical, (uint32_t)run.length, bytes, !file->unchecked);
    return bw_data_block_add(block, part);
}

static struct bw_error *add_plain(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                  const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    uint64_t logical = bw_extent_stored(piece).address;
    uint8_t *bytes = bw_data_block_take(block, piece->length);
    for (uint64_t done = 0, step; done < piece->length; done += step) {
        if (fetch->request_count == BW_BATCH || fetch->job_count == BW_BATCH)
            BW_TRY(bw_data_fetch_finish(fetch, block));
        BW_TRY(add_plain_step(fetch, file, logical + done, piece->offset + done, piece->length - done,
                              bytes + done, block, &step));
    }
    return NULL;
}

/* Compressed extents. */

static struct bw_error *decode(struct bw_data_fetch *fetch, const struct job *job, uint8_t *output,
                               size_t length)
{
    struct bw_probes *probes = bw_xlator_probes(fetch->fs->reader.top);
    const struct bw_file_extent *extent = &job->extent;
    size_t stored = extent->inline_data ? extent->inline_length : extent->disk_num_bytes;
    struct bw_codec_event event = {.algorithm = bw_compression_name(extent->compression),
                                   .bytes_in = stored,
                                   .bytes_out = length,
                                   .inode = job->file.inode,
                                   .tree = job->file.tree.id};
    uint64_t start = BW_PROBE_START(probes, decompress__done);
    BW_PROBE(probes, decompress__start, codec_start, &event);
    struct bw_error *error =
        bw_decompress(fetch->decompressor, extent->compression, job->stored, stored, output, length);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, decompress__done, codec_done, &event);
    return error;
}

static bool is_decoded(const struct bw_data_fetch *fetch, const struct bw_data_file *file,
                       const struct bw_file_extent *extent)
{
    const struct bw_file_extent *in = &fetch->in_decoded;
    return in->disk_bytenr && in->disk_bytenr == extent->disk_bytenr &&
           in->disk_num_bytes == extent->disk_num_bytes && in->ram_bytes == extent->ram_bytes &&
           in->compression == extent->compression && (!fetch->decoded_unchecked || file->unchecked);
}

/* Decodes all of an extent beside the block, where the next piece of it may find it. */
static struct bw_error *decode_beside(struct bw_data_fetch *fetch, const struct job *job)
{
    if (is_decoded(fetch, &job->file, &job->extent))
        return NULL;
    fetch->in_decoded.disk_bytenr = 0;
    BW_TRY(decode(fetch, job, fetch->decoded, job->extent.ram_bytes));
    fetch->in_decoded = job->extent;
    fetch->decoded_unchecked = job->file.unchecked;
    return NULL;
}

/* What a job wants of an extent, to where it belongs. */
static struct bw_error *decode_part(struct bw_data_fetch *fetch, const struct job *job,
                                    const struct bw_data_part *part)
{
    uint8_t *output = (uint8_t *)(uintptr_t)part->bytes;
    if (job->skip == 0 && part->length == job->extent.ram_bytes)
        return decode(fetch, job, output, part->length);
    BW_TRY(decode_beside(fetch, job));
    memcpy(output, fetch->decoded + job->skip, part->length);
    return NULL;
}

/* Names the extent, and its copy if there is but one: of several, nobody has said which it was. */
static struct bw_error *name_copy(struct bw_data_fetch *fetch, const struct job *job, struct bw_error *error)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *unknown = bw_wind_map(NULL, fetch->fs->reader.top, job->extent.disk_bytenr,
                                                         (uint32_t)job->extent.disk_num_bytes, 1, &reply);
    if (unknown || reply.copies > 1)
        return bw_error_prefix(error, "extent at %" PRIu64, job->extent.disk_bytenr);
    return bw_error_prefix(error, "extent at %" PRIu64 " (copy 1 on device %" PRIu64 " at %" PRIu64 ")",
                           job->extent.disk_bytenr, reply.location.devid, reply.location.offset);
}

/* Several jobs may wait for the same requests: the error stays with the request. */
static const struct bw_error *failed_request(const struct bw_data_fetch *fetch, const struct job *job)
{
    for (unsigned i = job->first; i < job->first + job->count; i++)
        if (fetch->requests[i].error)
            return fetch->requests[i].error;
    return NULL;
}

static struct bw_error *end_compressed(struct bw_data_fetch *fetch, const struct job *job,
                                       struct bw_data_block *block)
{
    const struct bw_error *failed = failed_request(fetch, job);
    struct bw_error *error = NULL;
    if (failed)
        error = bw_error_create(failed->code, "%s", failed->message);
    else if ((error = decode_part(fetch, job, &block->parts[job->part])))
        error = name_copy(fetch, job, error);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        spoil_part(block, job->part, &job->file, error);
    return NULL;
}

/* A job of this batch that reads the same extent; NULL if there is none. */
static const struct job *find_shared(const struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                     const struct bw_file_extent *extent)
{
    for (unsigned back = 1; back <= SHARED_JOBS && back <= fetch->job_count; back++) {
        const struct job *job = &fetch->jobs[fetch->job_count - back];
        if (job->compressed && job->extent.disk_bytenr == extent->disk_bytenr &&
            job->extent.disk_num_bytes == extent->disk_num_bytes && job->file.unchecked == file->unchecked)
            return job;
    }
    return NULL;
}

/* Requests for all of a compressed extent. `missing` gets the error if a part of it has no checksum. */
static struct bw_error *request_extent(struct bw_data_fetch *fetch, const struct job *job,
                                       struct bw_error **missing)
{
    const struct bw_file_extent *extent = &job->extent;
    for (uint64_t done = 0; done < extent->disk_num_bytes;) {
        uint64_t logical = extent->disk_bytenr + done;
        uint64_t length = least(extent->disk_num_bytes - done, CUT - logical % CUT);
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
        fetch->stored_used += length;
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
    const struct job *shared = find_shared(fetch, &job->file, &job->extent);
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
                                       const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    struct job job = {.file = *file,
                      .compressed = true,
                      .extent = piece->extent,
                      .skip = piece->extent.offset + (piece->offset - piece->extent_start)};
    struct bw_data_part part = {.kind = BW_DATA_BYTES, .offset = piece->offset, .length = piece->length};
    struct bw_error *missing = NULL;
    if (!has_room(fetch))
        BW_TRY(bw_data_fetch_finish(fetch, block));
    job.part = block->count;
    part.bytes = bw_data_block_take(block, piece->length);
    if (is_decoded(fetch, file, &job.extent)) {
        memcpy((uint8_t *)(uintptr_t)part.bytes, fetch->decoded + job.skip, piece->length);
        return bw_data_block_add(block, part);
    }
    unsigned requests = fetch->request_count;
    BW_TRY(start_compressed(fetch, &job, &missing));
    if (missing) {
        fetch->request_count = requests;
        part.kind = BW_DATA_BAD;
        part.bytes = NULL;
        part.error = bw_data_name_error(missing, file, part.offset);
        return bw_data_block_add(block, part);
    }
    BW_TRY(bw_data_block_add(block, part));
    fetch->jobs[fetch->job_count++] = job;
    return NULL;
}

/* Inline extents. */

static struct bw_error *add_inline(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    const struct job job = {.file = *file, .extent = piece->extent, .stored = piece->extent.inline_data};
    uint64_t skip = piece->offset - piece->extent_start;
    struct bw_data_part part = {.kind = BW_DATA_BYTES, .offset = piece->offset, .length = piece->length};
    uint8_t *bytes = bw_data_block_take(block, piece->length);
    const uint8_t *from = piece->extent.inline_data;
    struct bw_error *error = NULL;
    if (piece->extent.compression != BW_COMPRESS_NONE) {
        fetch->in_decoded.disk_bytenr = 0;
        error = decode(fetch, &job, fetch->decoded, piece->extent.ram_bytes);
        from = fetch->decoded;
    }
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (!error)
        memcpy(bytes, from + skip, piece->length);
    part.bytes = bytes;
    BW_TRY(bw_data_block_add(block, part));
    if (error)
        spoil_part(block, block->count - 1, file, bw_error_prefix(error, "inline extent"));
    return NULL;
}

/* All of them. */

struct bw_error *bw_data_fetch_add(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    if (piece->extent.type == BW_FILE_EXTENT_INLINE)
        return add_inline(fetch, file, piece, block);
    return piece->extent.compression == BW_COMPRESS_NONE ? add_plain(fetch, file, piece, block)
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
