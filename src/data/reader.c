/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads parts of files into blocks. The stored data becomes jobs and requests, which are sent in
 * batches so that the layers below can join adjacent ones. Bad sectors are separated from good
 * ones, checksums are verified, and compressed extents are decompressed.
 */
#include "data/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "data/fetch.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"
#include "ondisk/compression.h"
#include "xlators/classes.h"

enum {
    MOST_SECTORS = BW_DATA_REQUEST / 4096, /* per request */
    STORED = 1 << 20,                      /* buffer for compressed bytes */
    PIECE_REQUESTS = BW_MAX_COMPRESSED_EXTENT / BW_DATA_REQUEST + 1,
    SHARED_JOBS = 4, /* number of earlier jobs that a job is compared with, to share the bytes of an
                      * extent */
};

struct bw_data_decoder {
    struct bw_fs *fs;
    struct bw_decompressor *decompressor;
    uint8_t *bytes;        /* the last extent that was needed only in part, decoded */
    struct bw_extent kept; /* the identity of that extent; logical 0: none */
    uint64_t mirror;       /* the mirror that was read; 0: any */
    bool unchecked;        /* that extent was not verified */
    bool unverified;       /* it was accepted although its checksums are wrong or missing */
};

static void decoder_destroy(struct bw_data_decoder *decoder)
{
    if (!decoder)
        return;
    bw_decompressor_destroy(decoder->decompressor);
    free(decoder->bytes);
    free(decoder);
}

static struct bw_error *decoder_create(struct bw_fs *fs, struct bw_data_decoder **result)
{
    struct bw_data_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return bw_error_no_memory();
    decoder->fs = fs;
    decoder->bytes = malloc(BW_MAX_COMPRESSED_EXTENT);
    struct bw_error *error =
        decoder->bytes ? bw_decompressor_create(fs->superblock.sectorsize, &decoder->decompressor)
                       : bw_error_no_memory();
    if (error)
        decoder_destroy(decoder);
    else
        *result = decoder;
    return error;
}

/* Decompresses an extent. If the mirror that was read does not decompress, tries the others. */
static struct bw_error *decode_extent(struct bw_data_decoder *decoder,
                                      const struct bw_data_file *file,
                                      const struct bw_stored_extent *stored, uint8_t *output,
                                      size_t length)
{
    struct bw_probes *probes = bw_xlator_probes(decoder->fs->reader.top);
    struct bw_codec_event event = {.algorithm = bw_compression_name(stored->compression),
                                   .bytes_in = stored->length,
                                   .bytes_out = length,
                                   .inode = file->inode,
                                   .tree = file->subvolume->tree.id};
    uint64_t start = BW_PROBE_START(probes, decompress__done);
    BW_PROBE(probes, decompress__start, codec_start, &event);
    struct bw_error *error = bw_decompress(decoder->decompressor, stored->compression,
                                           stored->bytes, stored->length, output, length);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, decompress__done, codec_done, &event);
    if (error && stored->logical)
        error =
            bw_data_try_mirrors(decoder->fs, decoder->decompressor, stored, output, length, error);
    return error;
}

/* Copies a part of the extent that was decoded last; false if it is a different one. */
static bool copy_decoded(const struct bw_data_decoder *decoder, const struct bw_data_file *file,
                         const struct bw_extent *extent, uint8_t *output)
{
    const struct bw_extent *kept = &decoder->kept;
    if (!kept->logical || kept->logical != extent->logical || kept->stored != extent->stored ||
        kept->ram_bytes != extent->ram_bytes || kept->compression != extent->compression ||
        decoder->mirror != file->mirror || (decoder->unchecked && !file->unchecked))
        return false;
    memcpy(output, decoder->bytes + extent->extent_offset, (size_t)extent->length);
    return true;
}

/* Decodes the needed part of an extent; `stored` is the whole extent. */
static struct bw_error *data_decode(struct bw_data_decoder *decoder,
                                    const struct bw_data_file *file, const struct bw_extent *extent,
                                    const struct bw_stored_extent *stored, uint8_t *output)
{
    if (extent->extent_offset == 0 && extent->length == extent->ram_bytes)
        return decode_extent(decoder, file, stored, output, (size_t)extent->length);
    if (copy_decoded(decoder, file, extent, output))
        return NULL;
    decoder->kept.logical = 0;
    BW_TRY(decode_extent(decoder, file, stored, decoder->bytes, (size_t)extent->ram_bytes));
    decoder->kept = *extent; /* logical is 0 if it is inline */
    decoder->unchecked = file->unchecked;
    decoder->mirror = file->mirror;
    memcpy(output, decoder->bytes + extent->extent_offset, (size_t)extent->length);
    return NULL;
}

/* Bad parts. A request is for up to 64 KiB, but only its bad sectors are reported as bad. */

/* Makes part `at` of a block a bad part; consumes the error. */
static void spoil_part(struct bw_data_block *block, size_t at, struct bw_error *error)
{
    struct bw_data_part *part = &block->parts.items[at];
    part->error = error;
    part->kind = BW_DATA_BAD;
    part->bytes = NULL;
    part->unverified = false;
}

/*
 * Must be called after every request for data of `file`. Warns, once per file, about bytes that
 * were computed from parity without a checksum to verify them. They are wrong if the parity is
 * wrong, for example after a crash, or after a device was replaced.
 */
static void check_rebuilt(struct bw_fs *fs, const struct bw_data_file *file,
                          const struct bw_request *request)
{
    if (!request->rebuilt || request->error || request->data ||
        !bw_fs_is_first_warning(fs, file->subvolume->tree.id, file->inode))
        return;
    struct bw_error *warning =
        bw_error_create(BW_ERROR_CORRUPT,
                        "inode %" PRIu64 " of subvolume %" PRIu64
                        ": data are computed from parity, and there is no checksum to verify them",
                        file->inode, file->subvolume->tree.id);
    const struct bw_place place = {file->subvolume, file->inode, BW_FILE_REGULAR, 0};
    BW_AUTO_FREE char *path = NULL;
    BW_AUTO_ERROR struct bw_error *nameless = bw_inode_path(fs, &place, &path, NULL);
    if (!nameless)
        warning = bw_error_prefix(warning, "%s", path);
    bw_fs_report(fs, BW_WARNING, warning);
}

static bool ignores_checksums(const struct bw_fs *fs)
{
    return fs->ignored_checksums & BW_CHECKSUMS_DATA;
}

/* Whether a successful request has bytes that were accepted although their checksums are wrong or
 * missing. `counts`: adds them to the status of the file system. */
static bool is_unverified(struct bw_fs *fs, const struct bw_data_file *file,
                          const struct bw_request *request, bool counts)
{
    const bool is_missing = !request->data && !file->unchecked && ignores_checksums(fs);
    if (request->error || !(is_missing || request->unverified))
        return false;
    if (counts && is_missing)
        fs->unverified += request->length;
    else if (counts)
        bw_data_count_unverified(fs, request);
    return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Repeats a failed request sector by sector, because some sectors may be good. */
static unsigned read_sectors(const struct bw_fs *fs, const struct bw_request *whole,
                             struct bw_request *sectors)
{
    uint32_t sectorsize = fs->superblock.sectorsize;
    struct bw_data_expectation expectations[MOST_SECTORS];
    unsigned count = 0;
    for (uint32_t at = 0; at < whole->length; at += sectorsize, count++) {
        sectors[count] = *whole;
        sectors[count].address += at;
        sectors[count].length = (uint32_t)least(sectorsize, whole->length - at);
        sectors[count].buffer = (uint8_t *)whole->buffer + at;
        sectors[count].error = NULL;
        sectors[count].rebuilt = sectors[count].corrected = sectors[count].unverified = false;
        if (!whole->data)
            continue;
        expectations[count] = *whole->data;
        expectations[count].checksums +=
            (size_t)count * bw_checksum_size(fs->superblock.checksum_type);
        sectors[count].data = &expectations[count];
    }
    bw_wind(NULL, fs->reader.top, sectors, count);
    return count;
}

/* Whether memory ran out while reading the sectors. Then it is unknown which of them are bad, and
 * all errors are freed. */
static bool ran_out_of_memory(struct bw_request *sectors, unsigned count)
{
    bool lacked = false;
    for (unsigned i = 0; i < count; i++)
        lacked |= sectors[i].error && sectors[i].error->code == BW_ERROR_NO_MEMORY;
    for (unsigned i = 0; lacked && i < count; i++)
        bw_error_free(sectors[i].error);
    return lacked;
}

/* Replaces the failed part with one part per sector. */
static struct bw_error *split_by_sector(struct bw_fs *fs, const struct bw_request *failed,
                                        struct bw_data_block *block, size_t at,
                                        const struct bw_data_file *file)
{
    struct bw_request sectors[MOST_SECTORS];
    struct bw_data_part parts[MOST_SECTORS];
    unsigned count = read_sectors(fs, failed, sectors);
    if (ran_out_of_memory(sectors, count))
        return bw_error_no_memory();
    const struct bw_data_part whole = block->parts.items[at];
    for (unsigned i = 0; i < count; i++) {
        uint32_t skip = i * fs->superblock.sectorsize;
        parts[i] = whole;
        parts[i].offset += skip;
        parts[i].length = sectors[i].length;
        parts[i].bytes += skip;
        parts[i].corrected = sectors[i].corrected;
        check_rebuilt(fs, file, &sectors[i]);
        parts[i].unverified = is_unverified(fs, file, &sectors[i], true);
        if (!sectors[i].error)
            continue;
        parts[i].kind = BW_DATA_BAD;
        parts[i].bytes = NULL;
        parts[i].error = sectors[i].error;
    }
    block->parts.items[at] = parts[0];
    return count > 1 ? bw_data_block_insert(block, at + 1, parts + 1, count - 1) : NULL;
}

/*
 * Handles the failed request for part `at` of a block, which belongs to `file`: reads it again
 * sector by sector, if that may help, and replaces the part with one per sector. Consumes the
 * request's error. Fails only if memory runs out.
 */
static struct bw_error *divide_part(struct bw_fs *fs, struct bw_request *failed,
                                    struct bw_data_block *block, size_t at,
                                    const struct bw_data_file *file)
{
    struct bw_error *error = BW_TAKE(failed->error);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    /* none of its sectors can be read */
    if (error->code == BW_ERROR_MISSING_DEVICE || failed->length <= fs->superblock.sectorsize) {
        spoil_part(block, at, error);
        return NULL;
    }
    bw_error_free(error);
    return split_by_sector(fs, failed, block, at, file);
}

/*
 * Fetching. Every piece becomes one or several jobs: a job is a part of the block together with its
 * requests. When there are enough jobs, all requests are sent as one batch. Then the jobs are
 * completed, from the last to the first, because a part that is divided into several moves only the
 * completed parts after it.
 *
 * Requests are split at multiples of 64 KiB, like the stripes of RAID profiles; the lowest layer
 * joins adjacent ones again.
 */

struct job {
    struct bw_data_file file;
    size_t part;                  /* index in the block */
    unsigned first, count;        /* requests; a plain job has exactly one */
    bool compressed, is_shared;   /* `is_shared`: its requests are those of an earlier job */
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
    uint8_t sums[BW_BATCH][MOST_SECTORS * BW_CSUM_SIZE];
    unsigned request_count;
    uint8_t *stored; /* bytes of compressed extents */
    size_t stored_used;
};

static void fetch_destroy(struct bw_data_fetch *fetch)
{
    if (!fetch)
        return;
    bw_data_checksums_free(&fetch->checksums);
    decoder_destroy(fetch->decoder);
    free(fetch->stored);
    free(fetch);
}

static struct bw_error *fetch_create(struct bw_fs *fs, struct bw_data_fetch **result)
{
    struct bw_data_fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch)
        return bw_error_no_memory();
    fetch->fs = fs;
    bw_data_checksums_init(&fetch->checksums, fs);
    fetch->stored = aligned_alloc(4096, STORED);
    struct bw_error *error =
        fetch->stored ? decoder_create(fs, &fetch->decoder) : bw_error_no_memory();
    if (error)
        fetch_destroy(fetch);
    else
        *result = fetch;
    return error;
}

/* Removes all jobs. */
static void fetch_drop(struct bw_data_fetch *fetch)
{
    fetch->job_count = fetch->request_count = 0;
    fetch->stored_used = 0;
}

/* Uncompressed extents. */

static struct bw_error *no_checksum(uint64_t logical, const struct bw_checksum_run *run)
{
    if (run->lost)
        return bw_error_create(BW_ERROR_NO_CHECKSUM,
                               "data at %" PRIu64
                               ": their checksums are lost with tree block %" PRIu64
                               " (--ignore-checksums data reads them without)",
                               logical, run->lost);
    return bw_error_create(
        BW_ERROR_NO_CHECKSUM,
        "data at %" PRIu64 ": no checksum (--ignore-checksums data reads them without)", logical);
}

/* Adds a request for data of a file. `known`: fetch->sums has their checksums. The layer that
 * verifies accepts ignored ones only after all mirrors were tried, so not if one is chosen. */
static struct bw_request *add_request(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                      uint64_t logical, uint32_t length, void *buffer, bool known)
{
    const bool is_checked =
        known && !file->unchecked && !(file->mirror && ignores_checksums(fetch->fs));
    unsigned at = fetch->request_count++;
    fetch->expectations[at] =
        (struct bw_data_expectation){fetch->sums[at], fetch->checksums.sectorsize};
    fetch->requests[at] = (struct bw_request){.kind = BW_REQUEST_DATA,
                                              .copy = (uint8_t)file->mirror,
                                              .length = length,
                                              .address = logical,
                                              .buffer = buffer,
                                              .data = is_checked ? &fetch->expectations[at] : NULL};
    return &fetch->requests[at];
}

/* Adds the next request of an uncompressed piece, of which `length` bytes remain; or a bad part, if
 * checksums are missing. `*step` is set to the number of bytes handled. */
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
    if (!run.known && (run.lost || !file->may_lack_checksums) && !ignores_checksums(fetch->fs))
        return bw_data_block_add_bad(block, offset, run.length, no_checksum(logical, &run));
    fetch->jobs[fetch->job_count++] = (struct job){
        .file = *file, .part = block->parts.count, .first = fetch->request_count, .count = 1};
    add_request(fetch, file, logical, (uint32_t)run.length, bytes, run.known);
    return bw_data_block_add(
        block, (struct bw_data_part){
                   .kind = BW_DATA_BYTES, .offset = offset, .length = run.length, .bytes = bytes});
}

static struct bw_error *fetch_finish(struct bw_data_fetch *fetch, struct bw_data_block *block);

static struct bw_error *add_plain(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                  const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    const struct bw_extent *extent = &piece->extent;
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)extent->length);
    for (uint64_t done = 0, step; done < extent->length; done += step) {
        if (fetch->request_count == BW_BATCH || fetch->job_count == BW_BATCH)
            BW_TRY(fetch_finish(fetch, block));
        BW_TRY(add_plain_step(fetch, file, extent->used_logical + done, extent->offset + done,
                              extent->length - done, bytes + done, block, &step));
    }
    return NULL;
}

/* Compressed extents. */

static struct bw_error *end_compressed(struct bw_data_fetch *fetch, const struct job *job,
                                       struct bw_data_block *block)
{
    struct bw_data_part *part = &block->parts.items[job->part];
    const struct bw_extent *extent = &job->piece.extent;
    struct bw_data_decoder *decoder = fetch->decoder;
    const struct bw_stored_extent stored = {.logical = extent->logical,
                                            .bytes = job->stored,
                                            .length = (size_t)extent->stored,
                                            .compression = extent->compression,
                                            .requests = &fetch->requests[job->first],
                                            .request_count = job->count};
    struct bw_error *error = NULL;
    for (unsigned i = job->first; i < job->first + job->count; i++) {
        /* Several jobs may share requests, so the error stays in the request. */
        if (!error && fetch->requests[i].error)
            error = bw_error_copy(fetch->requests[i].error);
    }
    if (!error)
        error =
            data_decode(decoder, &job->file, extent, &stored, (uint8_t *)(uintptr_t)part->bytes);
    for (unsigned i = job->first; i < job->first + job->count; i++) {
        check_rebuilt(fetch->fs, &job->file, &fetch->requests[i]);
        part->corrected |= fetch->requests[i].corrected;
        part->unverified |=
            is_unverified(fetch->fs, &job->file, &fetch->requests[i], !job->is_shared);
    }
    if (decoder->kept.logical == extent->logical)
        decoder->unverified = part->unverified;
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        spoil_part(block, job->part, error);
    return NULL;
}

/* Sends the requests and completes the jobs. Fails only if memory runs out. */
static struct bw_error *fetch_finish(struct bw_data_fetch *fetch, struct bw_data_block *block)
{
    struct bw_error *error = NULL;
    bw_wind(NULL, fetch->fs->reader.top, fetch->requests, fetch->request_count);
    for (unsigned i = fetch->job_count; i-- > 0 && !error;) {
        const struct job *job = &fetch->jobs[i];
        struct bw_request *request = &fetch->requests[job->first];
        if (job->compressed) {
            error = end_compressed(fetch, job, block);
            continue;
        }
        check_rebuilt(fetch->fs, &job->file, request);
        block->parts.items[job->part].unverified =
            is_unverified(fetch->fs, &job->file, request, true);
        block->parts.items[job->part].corrected = request->corrected;
        if (request->error)
            error = divide_part(fetch->fs, request, block, job->part, &job->file);
    }
    for (unsigned i = 0; i < fetch->request_count; i++)
        bw_error_free(fetch->requests[i].error);
    fetch_drop(fetch);
    return error;
}

/* A recent job in this batch for the same extent, or NULL. */
static const struct job *find_shared(const struct bw_data_fetch *fetch, const struct job *wanted)
{
    const struct bw_extent *extent = &wanted->piece.extent;
    for (unsigned back = 1; back <= SHARED_JOBS && back <= fetch->job_count; back++) {
        const struct job *job = &fetch->jobs[fetch->job_count - back];
        if (job->compressed && job->piece.extent.logical == extent->logical &&
            job->piece.extent.stored == extent->stored &&
            job->file.unchecked == wanted->file.unchecked &&
            job->file.mirror == wanted->file.mirror)
            return job;
    }
    return NULL;
}

/* Adds requests for a whole compressed extent. Sets `missing` to an error if a part of it has no
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
        const bool has_all = run.known && run.length >= length;
        if (!has_all && !ignores_checksums(fetch->fs)) {
            *missing = no_checksum(run.known ? logical + run.length : logical, &run);
            return NULL;
        }
        add_request(fetch, &job->file, logical, (uint32_t)length,
                    fetch->stored + fetch->stored_used, has_all);
        fetch->stored_used += (size_t)length;
        done += length;
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
    if (fetch->job_count == BW_BATCH || fetch->request_count + PIECE_REQUESTS > BW_BATCH ||
        fetch->stored_used + BW_MAX_COMPRESSED_EXTENT > STORED)
        BW_TRY(fetch_finish(fetch, block));
    job.part = block->parts.count;
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)part.length);
    part.bytes = bytes;
    if (copy_decoded(fetch->decoder, file, &piece->extent, bytes)) {
        part.unverified = fetch->decoder->unverified && !file->unchecked;
        return bw_data_block_add(block, part);
    }

    const struct job *shared = find_shared(fetch, &job);
    if (shared) {
        job.is_shared = true;
        job.first = shared->first;
        job.count = shared->count;
        job.stored = shared->stored;
    } else {
        job.first = fetch->request_count;
        job.stored = fetch->stored + fetch->stored_used;
        BW_TRY(request_extent(fetch, &job, &missing));
        job.count = fetch->request_count - job.first;
    }
    if (missing) {
        fetch->request_count = job.first;
        return bw_data_block_add_bad(block, part.offset, part.length, missing);
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
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)extent->length);
    struct bw_error *error = NULL;
    if (fetch->fs->no_data)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "a metadump of btrfs-image has no data");
    else if (extent->compression == BW_COMPRESS_NONE)
        memcpy(bytes, piece->inline_data + extent->extent_offset, (size_t)extent->length);
    else
        error = data_decode(fetch->decoder, file, extent,
                            &(struct bw_stored_extent){.bytes = piece->inline_data,
                                                       .length = piece->inline_length,
                                                       .compression = extent->compression},
                            bytes);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    BW_TRY(bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_BYTES,
                                                          .offset = extent->offset,
                                                          .length = extent->length,
                                                          .bytes = bytes,
                                                          .in_tree = true}));
    if (error)
        spoil_part(block, block->parts.count - 1, bw_error_prefix(error, "inline extent"));
    return NULL;
}

/*
 * Filling a block with the pieces of a file. Data becomes requests, which are sent in batches so
 * that the layers below can join adjacent ones. Holes and bad ranges need no requests.
 */

/* The distance of read-ahead. */
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
    struct bw_error *error = fetch_create(fs, &reader->fetch);
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
    fetch_destroy(reader->fetch);
    bw_data_block_free(&reader->block);
    free(reader);
}

/* Adds pieces up to the end of the cursor's range, or to the first one that does not fit into the
 * block as a whole; `*end` is set to the offset reached, and must be the cursor's. */
static struct bw_error *add_pieces(struct bw_data_reader *reader, struct bw_data_block *block,
                                   uint64_t *end)
{
    struct bw_extent_piece piece;
    struct bw_extent *extent = &piece.extent;
    const struct bw_data_file *file = &reader->cursor.file;
    do {
        bool got;
        BW_TRY(bw_extents_next_readable(&reader->cursor, &piece, &got));
        if (!got)
            return NULL;
        if (bw_extent_is_data(extent)) {
            const size_t room = bw_data_block_room(block);
            if (extent->length > room)
                extent->length = room - room % reader->fs->superblock.sectorsize;
            if (!extent->length)
                return NULL;
        }
        const uint64_t next = extent->offset + extent->length;
        if (extent->kind == BW_EXTENT_BAD)
            BW_TRY(bw_data_block_add_bad(block, extent->offset, extent->length, extent->error));
        else if (!bw_extent_is_data(extent))
            BW_TRY(bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_HOLE,
                                                                  .offset = extent->offset,
                                                                  .length = extent->length}));
        else if (extent->kind == BW_EXTENT_INLINE)
            BW_TRY(add_inline(reader->fetch, file, &piece, block));
        else if (extent->compression == BW_COMPRESS_NONE)
            BW_TRY(add_plain(reader->fetch, file, &piece, block));
        else
            BW_TRY(add_compressed(reader->fetch, file, &piece, block));
        *end = next;
    } while (*end >= reader->cursor.offset);
    return NULL;
}

struct bw_error *bw_data_fill(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, struct bw_data_block *block,
                              uint64_t *end)
{
    size_t first = block->parts.count;
    *end = offset;
    if (!bw_data_block_reserve(block))
        return bw_error_no_memory();
    if (offset >= file->size)
        return NULL;
    const uint64_t last = offset + least(length, file->size - offset);
    bw_extents_seek_whole(&reader->cursor, file, offset, last);
    uint64_t reached = reader->cursor.offset;
    struct bw_error *error = add_pieces(reader, block, &reached);
    if (error) {
        fetch_drop(reader->fetch);
        return error;
    }
    BW_TRY(fetch_finish(reader->fetch, block));
    if (reached > offset)
        *end = least(reached, last);
    bw_data_block_join(block, first);
    bw_data_block_trim(block, first, offset, *end);
    return NULL;
}

struct bw_error *bw_data_read(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, bw_data_visitor *visit,
                              void *context)
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
        for (size_t i = 0; !error && i < reader->block.parts.count; i++)
            error = visit(context, &reader->block.parts.items[i]);
        if (!error)
            offset = reached;
    }
    bw_data_block_clear(&reader->block);
    return error;
}

struct bw_error *bw_data_read_stored(struct bw_data_reader *reader, const struct bw_data_file *file,
                                     const struct bw_file_extent *extent, uint8_t *bytes)
{
    struct bw_data_fetch *fetch = reader->fetch;
    const size_t length = (size_t)extent->disk_num_bytes;
    struct job job = {.file = *file,
                      .piece.extent = {.logical = extent->disk_bytenr, .stored = length},
                      .stored = fetch->stored};
    struct bw_error *missing = NULL;
    if (length > BW_MAX_COMPRESSED_EXTENT)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "a compressed extent of %zu bytes", length);
    struct bw_error *error = request_extent(fetch, &job, &missing);
    error = bw_error_first(error, missing);
    if (!error)
        bw_wind(NULL, fetch->fs->reader.top, fetch->requests, fetch->request_count);
    for (unsigned i = 0; !error && i < fetch->request_count; i++)
        error = BW_TAKE(fetch->requests[i].error);
    for (unsigned i = 0; i < fetch->request_count; i++)
        bw_error_free(BW_TAKE(fetch->requests[i].error));

    /* Without checksums, only decompression shows whether a mirror is good. */
    if (!error && file->unchecked) {
        const struct bw_stored_extent stored = {.logical = extent->disk_bytenr,
                                                .bytes = job.stored,
                                                .length = length,
                                                .compression = extent->compression,
                                                .requests = fetch->requests,
                                                .request_count = fetch->request_count};
        fetch->decoder->kept.logical = 0;
        error = decode_extent(fetch->decoder, file, &stored, fetch->decoder->bytes,
                              (size_t)extent->ram_bytes);
    }
    if (!error)
        memcpy(bytes, job.stored, length);
    fetch_drop(fetch);
    return error;
}
