/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads parts of files into blocks.
 *
 * The pieces of a file (file_extents.h) are added to a block in their order, each as one part or
 * several. Holes, bad ranges and inline extents are complete at once. Every other piece becomes
 * one or several jobs: a job is a part of the block together with the requests for its stored
 * bytes. When there are enough jobs, finish_jobs() sends all requests as one batch, so that the
 * layers below can join adjacent ones. Then it completes the jobs, from the last to the first,
 * because a part that is divided into several moves only the completed parts after it.
 *
 * Requests are split at multiples of 64 KiB, like the stripes of RAID profiles, and where checksums
 * end; the lowest layer joins adjacent ones again. A failed request is repeated sector by sector,
 * and only its bad sectors become bad parts. A compressed extent is bad as a whole. The one that
 * was needed only in part is kept, since the next piece is often another part of it.
 */
#include "data/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
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

/* A part of a block whose stored bytes have been requested. */
struct job {
    struct bw_data_file file;
    size_t part;                  /* index in the block */
    unsigned first, count;        /* requests; a plain job has exactly one */
    bool compressed, is_shared;   /* `is_shared`: its requests are those of an earlier job */
    struct bw_extent_piece piece; /* of a compressed job */
    const uint8_t *stored;        /* the bytes of its extent */
};

struct bw_data_reader {
    struct bw_fs *fs;
    struct bw_extent_cursor cursor;
    struct bw_data_checksums checksums;

    /* The jobs that have not been completed, and their requests. */
    struct job jobs[BW_BATCH];
    unsigned job_count;
    struct bw_request requests[BW_BATCH];
    struct bw_data_expectation expectations[BW_BATCH];
    uint8_t sums[BW_BATCH][MOST_SECTORS * BW_CSUM_SIZE];
    unsigned request_count;
    uint8_t *stored; /* bytes of compressed extents */
    size_t stored_used;

    /* Decompression, and the last extent that was needed only in part. */
    struct bw_decompressor *decompressor;
    uint8_t *decoded;      /* its bytes */
    struct bw_extent kept; /* its identity; logical 0: none */
    uint64_t kept_mirror;  /* the mirror that was read; 0: any */
    bool kept_unchecked;   /* it was not verified */
    bool kept_unverified;  /* it was accepted although its checksums are wrong or missing */

    /* The range that bw_data_next() reads. */
    struct bw_data_file file;
    uint64_t offset, end; /* the rest of it, after the block */
    struct bw_data_block block;
    size_t next_part; /* index in the block */
    struct bw_data_advisor advisor;
};

struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **result)
{
    struct bw_data_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return bw_error_no_memory();
    reader->fs = fs;
    bw_extents_init(&reader->cursor, fs);
    bw_extents_init(&reader->advisor.cursor, fs);
    bw_data_checksums_init(&reader->checksums, fs);
    reader->stored = aligned_alloc(4096, STORED);
    reader->decoded = malloc(BW_MAX_COMPRESSED_EXTENT);
    struct bw_error *error;
    if (reader->stored && reader->decoded)
        error = bw_decompressor_create(fs->superblock.sectorsize, &reader->decompressor);
    else
        error = bw_error_no_memory();
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
    bw_data_checksums_free(&reader->checksums);
    bw_decompressor_destroy(reader->decompressor);
    bw_data_block_free(&reader->block);
    free(reader->decoded);
    free(reader->stored);
    free(reader);
}

static bool ignores_checksums(const struct bw_fs *fs)
{
    return fs->ignored_checksums & BW_CHECKSUMS_DATA;
}

/* Decompression. */

/* Decompresses an extent. If the mirror that was read does not decompress, tries the others. */
static struct bw_error *decode_extent(struct bw_data_reader *reader,
                                      const struct bw_data_file *file,
                                      const struct bw_stored_extent *stored, uint8_t *output,
                                      size_t length)
{
    struct bw_probes *probes = bw_xlator_probes(reader->fs->reader.top);
    struct bw_codec_event event = {.algorithm = bw_compression_name(stored->compression),
                                   .bytes_in = stored->length,
                                   .bytes_out = length,
                                   .inode = file->inode,
                                   .tree = file->subvolume->tree.id};
    uint64_t start = BW_PROBE_START(probes, decompress__done);
    BW_PROBE(probes, decompress__start, codec_start, &event);
    struct bw_error *error =
        bw_decompress(reader->decompressor, stored->compression, !stored->logical, stored->bytes,
                      stored->length, output, length);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, decompress__done, codec_done, &event);
    if (error && stored->logical)
        error =
            bw_data_try_mirrors(reader->fs, reader->decompressor, stored, output, length, error);
    return error;
}

/* Copies a part of the kept extent; false if the part is of another one. */
static bool copy_kept(const struct bw_data_reader *reader, const struct bw_data_file *file,
                      const struct bw_extent *extent, uint8_t *output)
{
    const struct bw_extent *kept = &reader->kept;
    if (!kept->logical || kept->logical != extent->logical || kept->stored != extent->stored ||
        kept->ram_bytes != extent->ram_bytes || kept->compression != extent->compression ||
        reader->kept_mirror != file->mirror || (reader->kept_unchecked && !file->unchecked))
        return false;
    memcpy(output, reader->decoded + extent->extent_offset, (size_t)extent->length);
    return true;
}

/* Decodes the needed part of an extent; `stored` is the whole extent. */
static struct bw_error *decode_part(struct bw_data_reader *reader, const struct bw_data_file *file,
                                    const struct bw_extent *extent,
                                    const struct bw_stored_extent *stored, uint8_t *output)
{
    if (extent->extent_offset == 0 && extent->length == extent->ram_bytes)
        return decode_extent(reader, file, stored, output, (size_t)extent->length);
    if (copy_kept(reader, file, extent, output))
        return NULL;
    reader->kept.logical = 0;
    BW_TRY(decode_extent(reader, file, stored, reader->decoded, (size_t)extent->ram_bytes));
    reader->kept = *extent;
    reader->kept_unchecked = file->unchecked;
    reader->kept_mirror = file->mirror;
    memcpy(output, reader->decoded + extent->extent_offset, (size_t)extent->length);
    return NULL;
}

/* The results of requests. */

/* Makes a part a bad one; consumes the error. */
static void spoil_part(struct bw_data_part *part, struct bw_error *error)
{
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

/* Returns whether a successful request has bytes that were accepted although their checksums are
 * wrong or missing. `counts`: adds them to the status of the file system. */
static bool check_unverified(struct bw_fs *fs, const struct bw_data_file *file,
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

/*
 * Handles the failed request for part `at` of a block, which belongs to `file`: reads it again
 * sector by sector, if that may help, and replaces the part with one per sector. Consumes the
 * request's error. Fails only if memory runs out.
 */
static struct bw_error *divide_part(struct bw_fs *fs, struct bw_request *failed,
                                    struct bw_data_block *block, size_t at,
                                    const struct bw_data_file *file)
{
    const uint32_t sectorsize = fs->superblock.sectorsize;
    struct bw_data_expectation expectations[MOST_SECTORS];
    struct bw_request sectors[MOST_SECTORS];
    struct bw_data_part parts[MOST_SECTORS];
    unsigned count = 0;
    struct bw_error *error = BW_TAKE(failed->error);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    /* none of its sectors can be read */
    if (error->code == BW_ERROR_MISSING_DEVICE || failed->length <= sectorsize) {
        spoil_part(&block->parts.items[at], error);
        return NULL;
    }
    bw_error_free(error);

    for (uint32_t skip = 0; skip < failed->length; skip += sectorsize, count++) {
        struct bw_request *sector = &sectors[count];
        *sector = *failed;
        sector->address += skip;
        sector->length = (uint32_t)bw_min(sectorsize, failed->length - skip);
        sector->buffer = (uint8_t *)failed->buffer + skip;
        sector->rebuilt = sector->corrected = sector->unverified = false;
        if (!failed->data)
            continue;
        expectations[count] = *failed->data;
        expectations[count].checksums += (size_t)count * bw_checksum_size(bw_fs_data_checksum(fs));
        sector->data = &expectations[count];
    }
    bw_wind(NULL, fs->reader.top, sectors, count);

    /* If memory ran out, it is unknown which of them are bad. */
    bool lacked_memory = false;
    for (unsigned i = 0; i < count; i++)
        lacked_memory |= sectors[i].error && sectors[i].error->code == BW_ERROR_NO_MEMORY;
    for (unsigned i = 0; lacked_memory && i < count; i++)
        bw_error_free(sectors[i].error);
    if (lacked_memory)
        return bw_error_no_memory();

    for (unsigned i = 0; i < count; i++) {
        parts[i] = block->parts.items[at];
        parts[i].offset += i * sectorsize;
        parts[i].length = sectors[i].length;
        parts[i].bytes += i * sectorsize;
        parts[i].corrected = sectors[i].corrected;
        check_rebuilt(fs, file, &sectors[i]);
        parts[i].unverified = check_unverified(fs, file, &sectors[i], true);
        if (sectors[i].error)
            spoil_part(&parts[i], sectors[i].error);
    }
    block->parts.items[at] = parts[0];
    return count > 1 ? bw_data_block_insert(block, at + 1, parts + 1, count - 1) : NULL;
}

/* Completes a compressed job, whose requests have been sent. Several jobs may share requests, so
 * errors stay in the requests. */
static struct bw_error *finish_compressed(struct bw_data_reader *reader, const struct job *job,
                                          struct bw_data_part *part)
{
    const struct bw_extent *extent = &job->piece.extent;
    struct bw_request *requests = &reader->requests[job->first];
    const struct bw_stored_extent stored = {.logical = extent->logical,
                                            .bytes = job->stored,
                                            .length = (size_t)extent->stored,
                                            .compression = extent->compression,
                                            .requests = requests,
                                            .request_count = job->count};
    struct bw_error *error = NULL;
    for (unsigned i = 0; i < job->count && !error; i++)
        if (requests[i].error)
            error = bw_error_copy(requests[i].error);
    if (!error)
        error = decode_part(reader, &job->file, extent, &stored, (uint8_t *)(uintptr_t)part->bytes);
    for (unsigned i = 0; i < job->count; i++) {
        check_rebuilt(reader->fs, &job->file, &requests[i]);
        part->corrected |= requests[i].corrected;
        part->unverified |= check_unverified(reader->fs, &job->file, &requests[i], !job->is_shared);
    }
    if (reader->kept.logical == extent->logical)
        reader->kept_unverified = part->unverified;
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        spoil_part(part, error);
    return NULL;
}

static void drop_jobs(struct bw_data_reader *reader)
{
    reader->job_count = reader->request_count = 0;
    reader->stored_used = 0;
}

/* Sends the requests and completes the jobs. Fails only if memory runs out. */
static struct bw_error *finish_jobs(struct bw_data_reader *reader, struct bw_data_block *block)
{
    struct bw_error *error = NULL;
    bw_wind(NULL, reader->fs->reader.top, reader->requests, reader->request_count);
    for (unsigned i = reader->job_count; i-- > 0 && !error;) {
        const struct job *job = &reader->jobs[i];
        struct bw_request *request = &reader->requests[job->first];
        struct bw_data_part *part = &block->parts.items[job->part];
        if (job->compressed) {
            error = finish_compressed(reader, job, part);
            continue;
        }
        check_rebuilt(reader->fs, &job->file, request);
        part->unverified = check_unverified(reader->fs, &job->file, request, true);
        part->corrected = request->corrected;
        if (request->error)
            error = divide_part(reader->fs, request, block, job->part, &job->file);
    }
    for (unsigned i = 0; i < reader->request_count; i++)
        bw_error_free(reader->requests[i].error);
    drop_jobs(reader);
    return error;
}

/* Requests. */

static struct bw_error *no_checksum(uint64_t logical, const struct bw_checksum_run *run)
{
    struct bw_error *error;
    if (run->lost)
        error = bw_error_create(BW_ERROR_NO_CHECKSUM,
                                "data at %" PRIu64
                                ": their checksums are lost with tree block %" PRIu64,
                                logical, run->lost);
    else
        error = bw_error_create(BW_ERROR_NO_CHECKSUM, "data at %" PRIu64 ": no checksum", logical);
    return bw_error_advise(error, "`ignore_checksums data` reads them without");
}

/* Gets the checksums for the next request. Without checksums to verify, all are known. */
static struct bw_error *get_checksums(struct bw_data_reader *reader,
                                      const struct bw_data_file *file, uint64_t logical,
                                      uint64_t length, struct bw_checksum_run *run)
{
    *run = (struct bw_checksum_run){.length = length, .known = true};
    if (file->unchecked)
        return NULL;
    return bw_data_checksums_get(&reader->checksums, logical, length,
                                 reader->sums[reader->request_count], run);
}

/* Adds a request for data of a file. `known`: get_checksums() has found their checksums. The layer
 * that verifies accepts ignored ones only after all mirrors were tried, so not if one is chosen. */
static void add_request(struct bw_data_reader *reader, const struct bw_data_file *file,
                        uint64_t logical, uint64_t length, uint8_t *buffer, bool known)
{
    const bool is_checked =
        known && !file->unchecked && !(file->mirror && ignores_checksums(reader->fs));
    unsigned at = reader->request_count++;
    reader->expectations[at] = (struct bw_data_expectation){
        reader->sums[at], reader->checksums.sectorsize, reader->fs->data_checksum};
    reader->requests[at] =
        (struct bw_request){.kind = BW_REQUEST_DATA,
                            .mirror = (uint8_t)file->mirror,
                            .length = (uint32_t)length,
                            .address = logical,
                            .buffer = buffer,
                            .data = is_checked ? &reader->expectations[at] : NULL};
}

static struct bw_error *add_plain(struct bw_data_reader *reader, const struct bw_data_file *file,
                                  const struct bw_extent *extent, struct bw_data_block *block)
{
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)extent->length);
    struct bw_checksum_run run;
    for (uint64_t done = 0; done < extent->length; done += run.length) {
        const uint64_t logical = extent->used_logical + done, offset = extent->offset + done;
        const uint64_t room = BW_DATA_REQUEST - logical % BW_DATA_REQUEST;
        if (reader->request_count == BW_BATCH || reader->job_count == BW_BATCH)
            BW_TRY(finish_jobs(reader, block));
        BW_TRY(get_checksums(reader, file, logical, bw_min(extent->length - done, room), &run));
        const bool may_lack = !run.lost && file->may_lack_checksums;
        if (!run.known && !may_lack && !ignores_checksums(reader->fs)) {
            BW_TRY(bw_data_block_add_bad(block, offset, run.length, no_checksum(logical, &run)));
            continue;
        }
        reader->jobs[reader->job_count++] = (struct job){
            .file = *file, .part = block->parts.count, .first = reader->request_count, .count = 1};
        add_request(reader, file, logical, run.length, bytes + done, run.known);
        BW_TRY(bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_BYTES,
                                                              .offset = offset,
                                                              .length = run.length,
                                                              .bytes = bytes + done}));
    }
    return NULL;
}

/* Adds requests for a whole compressed extent. Sets `missing` to an error if a part of it has no
 * checksum. */
static struct bw_error *request_extent(struct bw_data_reader *reader,
                                       const struct bw_data_file *file, uint64_t begin,
                                       uint64_t length, struct bw_error **missing)
{
    for (uint64_t done = 0; done < length;) {
        const uint64_t logical = begin + done;
        const uint64_t part = bw_min(length - done, BW_DATA_REQUEST - logical % BW_DATA_REQUEST);
        struct bw_checksum_run run;
        BW_TRY(get_checksums(reader, file, logical, part, &run));
        const bool has_all = run.known && run.length >= part;
        if (!has_all && !ignores_checksums(reader->fs)) {
            *missing = no_checksum(run.known ? logical + run.length : logical, &run);
            return NULL;
        }
        add_request(reader, file, logical, part, reader->stored + reader->stored_used, has_all);
        reader->stored_used += (size_t)part;
        done += part;
    }
    return NULL;
}

static struct bw_error *add_compressed(struct bw_data_reader *reader,
                                       const struct bw_data_file *file,
                                       const struct bw_extent_piece *piece,
                                       struct bw_data_block *block)
{
    const struct bw_extent *extent = &piece->extent;
    struct job job = {.file = *file, .compressed = true, .piece = *piece};
    struct bw_data_part part = {
        .kind = BW_DATA_BYTES, .offset = extent->offset, .length = extent->length};
    struct bw_error *missing = NULL;
    if (reader->job_count == BW_BATCH || reader->request_count + PIECE_REQUESTS > BW_BATCH ||
        reader->stored_used + BW_MAX_COMPRESSED_EXTENT > STORED)
        BW_TRY(finish_jobs(reader, block));
    job.part = block->parts.count;
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)part.length);
    part.bytes = bytes;
    if (copy_kept(reader, file, extent, bytes)) {
        part.unverified = reader->kept_unverified && !file->unchecked;
        return bw_data_block_add(block, part);
    }

    /* A recent job of this batch may be for the same extent. */
    const struct job *shared = NULL;
    for (unsigned back = 1; back <= SHARED_JOBS && back <= reader->job_count && !shared; back++) {
        const struct job *other = &reader->jobs[reader->job_count - back];
        if (other->compressed && other->piece.extent.logical == extent->logical &&
            other->piece.extent.stored == extent->stored &&
            other->file.unchecked == file->unchecked && other->file.mirror == file->mirror)
            shared = other;
    }
    if (shared) {
        job.is_shared = true;
        job.first = shared->first;
        job.count = shared->count;
        job.stored = shared->stored;
    } else {
        job.first = reader->request_count;
        job.stored = reader->stored + reader->stored_used;
        BW_TRY(request_extent(reader, file, extent->logical, extent->stored, &missing));
        job.count = reader->request_count - job.first;
    }
    if (missing) {
        reader->request_count = job.first;
        return bw_data_block_add_bad(block, part.offset, part.length, missing);
    }
    BW_TRY(bw_data_block_add(block, part));
    reader->jobs[reader->job_count++] = job;
    return NULL;
}

static struct bw_error *add_inline(struct bw_data_reader *reader, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece, struct bw_data_block *block)
{
    const struct bw_extent *extent = &piece->extent;
    const struct bw_stored_extent stored = {.bytes = piece->inline_data,
                                            .length = piece->inline_length,
                                            .compression = extent->compression};
    uint8_t *bytes = bw_data_block_allocate(block, (size_t)extent->length);
    struct bw_error *error = NULL;
    if (reader->fs->no_data) {
        error = bw_error_create(BW_ERROR_NOT_FOUND, "a metadump of btrfs-image has no data");
    } else if (extent->compression == BW_COMPRESS_NONE) {
        memcpy(bytes, piece->inline_data + extent->extent_offset, (size_t)extent->length);
    } else {
        /* Compressed inline data must reach the end of the file, but no further. */
        const uint64_t begin = extent->offset - extent->extent_offset;
        const size_t shown = (size_t)bw_min(extent->ram_bytes, file->size - begin);
        reader->kept.logical = 0;
        error = decode_extent(reader, file, &stored, reader->decoded, shown);
        if (!error) {
            memset(reader->decoded + shown, 0, (size_t)extent->ram_bytes - shown);
            memcpy(bytes, reader->decoded + extent->extent_offset, (size_t)extent->length);
        }
    }
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    struct bw_data_part part = {.kind = BW_DATA_BYTES,
                                .offset = extent->offset,
                                .length = extent->length,
                                .bytes = bytes,
                                .in_tree = true};
    if (error)
        spoil_part(&part, bw_error_prefix(error, "inline extent"));
    return bw_data_block_add(block, part);
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
            BW_TRY(add_inline(reader, file, &piece, block));
        else if (extent->compression == BW_COMPRESS_NONE)
            BW_TRY(add_plain(reader, file, extent, block));
        else
            BW_TRY(add_compressed(reader, file, &piece, block));
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
    const uint64_t last = offset + bw_min(length, file->size - offset);
    bw_extents_seek_whole(&reader->cursor, file, offset, last);
    uint64_t reached = reader->cursor.offset;
    struct bw_error *error = add_pieces(reader, block, &reached);
    if (error) {
        drop_jobs(reader);
        return error;
    }
    BW_TRY(finish_jobs(reader, block));
    if (reached > offset)
        *end = bw_min(reached, last);
    bw_data_block_join(block, first);
    bw_data_block_trim(block, first, offset, *end);
    return NULL;
}

void bw_data_begin(struct bw_data_reader *reader, const struct bw_data_file *file, uint64_t offset,
                   uint64_t length)
{
    bw_data_block_clear(&reader->block);
    reader->file = *file;
    reader->next_part = 0;
    reader->offset = bw_min(offset, file->size);
    reader->end = reader->offset + bw_min(length, file->size - reader->offset);
}

struct bw_error *bw_data_next(struct bw_data_reader *reader, const struct bw_data_part **part)
{
    enum { ADVISE_BYTES = 16 << 20 }; /* the distance of read-ahead */
    *part = NULL;
    while (reader->next_part == reader->block.parts.count && reader->offset < reader->end) {
        const uint64_t left = reader->end - reader->offset;
        bw_data_block_clear(&reader->block);
        reader->next_part = 0;
        if (left > BW_DATA_BLOCK)
            BW_TRY(bw_data_advise(&reader->advisor, &reader->file, reader->offset,
                                  reader->offset + bw_min(left, ADVISE_BYTES)));
        BW_TRY(bw_data_fill(reader, &reader->file, reader->offset, left, &reader->block,
                            &reader->offset));
    }
    if (reader->next_part < reader->block.parts.count)
        *part = &reader->block.parts.items[reader->next_part++];
    return NULL;
}

struct bw_error *bw_data_read_stored(struct bw_data_reader *reader, const struct bw_data_file *file,
                                     const struct bw_file_extent *extent, uint8_t *bytes)
{
    const size_t length = (size_t)extent->disk_num_bytes;
    struct bw_error *missing = NULL;
    if (length > BW_MAX_COMPRESSED_EXTENT)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "a compressed extent of %zu bytes", length);
    struct bw_error *error = request_extent(reader, file, extent->disk_bytenr, length, &missing);
    error = bw_error_first(error, missing);
    if (!error)
        bw_wind(NULL, reader->fs->reader.top, reader->requests, reader->request_count);
    for (unsigned i = 0; !error && i < reader->request_count; i++)
        error = BW_TAKE(reader->requests[i].error);
    for (unsigned i = 0; i < reader->request_count; i++)
        bw_error_free(BW_TAKE(reader->requests[i].error));

    /* Without checksums, only decompression shows whether a mirror is good. */
    if (!error && file->unchecked) {
        const struct bw_stored_extent stored = {.logical = extent->disk_bytenr,
                                                .bytes = reader->stored,
                                                .length = length,
                                                .compression = extent->compression,
                                                .requests = reader->requests,
                                                .request_count = reader->request_count};
        reader->kept.logical = 0;
        error = decode_extent(reader, file, &stored, reader->decoded, (size_t)extent->ram_bytes);
    }
    if (!error)
        memcpy(bytes, reader->stored, length);
    drop_jobs(reader);
    return error;
}

struct bw_error *bw_data_read_text(struct bw_fs *fs, const struct bw_place *place, uint64_t most,
                                   struct bw_buffer *text)
{
    struct bw_inode inode;
    BW_TRY(bw_inode_get(fs, place, &inode));
    if (bw_file_type_of_mode(inode.mode) != BW_FILE_REGULAR)
        return NULL;
    const struct bw_data_file file = bw_data_file_of(place, &inode);
    const struct bw_data_part *part = NULL;
    struct bw_data_reader *reader;
    BW_TRY(bw_data_reader_create(fs, &reader));
    bw_data_begin(reader, &file, 0, most);
    struct bw_error *error;
    do {
        error = bw_data_next(reader, &part);
        if (!error && part && part->kind == BW_DATA_BAD)
            error = bw_error_brief(part->error);
        else if (!error && part && part->kind == BW_DATA_BYTES)
            bw_buffer_append(text, part->bytes, (size_t)part->length);
    } while (part && !error);
    bw_data_reader_destroy(reader);
    return error;
}
