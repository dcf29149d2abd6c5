/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The logical scan: collects the ranges to scan, which exclude holes in image files, and scans
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/vector.h"
#include "fs/image.h"
#include "history/scan.h"
#include "ondisk/chunk.h"

/* The position in the chunk of the first row at or after `position` in which anything is stored. */
static uint64_t next_stored(const struct bw_fs *fs, const struct bw_chunk_info *chunk,
                            uint64_t row_length, uint64_t position)
{
    const uint64_t row = position / row_length, offset = row * BW_STRIPE_LENGTH;
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        const struct bw_stripe_info *stripe = &chunk->stripes[i];
        const struct bw_image *image = bw_image_of_device(fs, stripe->devid, stripe->device_uuid);
        const uint64_t begin = fs->is_dump ? chunk->logical : stripe->offset;
        if (!image || !image->storage || offset > UINT64_MAX - begin)
            continue;
        const uint64_t here = bw_xlator_next_stored(image->storage, begin + offset);
        if (here != UINT64_MAX && here - begin < next)
            next = here - begin;
    }
    next /= BW_STRIPE_LENGTH;
    if (next == row)
        return position;
    return next > UINT64_MAX / row_length ? UINT64_MAX : next * row_length;
}

struct bw_error *bw_scan_add_chunk(const struct bw_fs *fs, const struct bw_chunk_info *chunk,
                                   struct bw_scan_ranges *ranges)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    uint64_t row_length = BW_STRIPE_LENGTH; /* logical bytes of a row of stripes, one per device */
    if (profile && profile->striped)
        row_length *= (chunk->stripe_count - profile->parity_stripes) /
                      (profile->copies ? profile->copies : 1u);
    const uint64_t end = chunk->length - chunk->length % fs->superblock.nodesize;
    const uint64_t mirrored =
        BW_GROUP_RAID1 | BW_GROUP_RAID1C3 | BW_GROUP_RAID1C4 | BW_GROUP_RAID10;
    if (!(chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)) || !row_length)
        return NULL;

    /* Whether a device of the chunk missed the last transactions. */
    bool differs = false;
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        const struct bw_stripe_info *stripe = &chunk->stripes[i];
        const struct bw_image *image = bw_image_of_device(fs, stripe->devid, stripe->device_uuid);
        differs |= image && bw_image_is_stale(fs, image);
    }

    /* In a crafted image, chunks that overlap may claim any amount. */
    uint64_t limit = 0;
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role != BW_IMAGE_UNUSED && fs->images[i].storage)
            limit += bw_xlator_size(fs->images[i].storage);
    for (uint64_t at = 0; (at = next_stored(fs, chunk, row_length, at)) < end;) {
        const uint64_t left = end - at;
        const struct bw_scan_range range = {
            .logical = chunk->logical + at,
            .length = left < BW_SCAN_PIECE ? (uint32_t)left : BW_SCAN_PIECE,
            .mixed = chunk->type & BW_GROUP_DATA,
            .differs = differs,
            .discards = chunk->type & mirrored,
        };
        if (ranges->bytes >= limit) {
            ranges->left_out++;
            return NULL;
        }
        BW_TRY(bw_scan_range_list_push(&ranges->ranges, range));
        ranges->bytes += range.length;
        at += range.length;
    }
    return NULL;
}

struct bw_error *bw_scan_add_chunks(struct bw_fs *fs, struct bw_scan_ranges *ranges)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++)
        BW_TRY(bw_scan_add_chunk(fs, &chunks.items[i], ranges));
    if (ranges->left_out)
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "chunks claim more metadata than the devices have: %zu of them are not "
                          "searched, or only in part",
                          ranges->left_out);
    return NULL;
}

/*
 * Scanning. A thread reads some MiB at a time, below the layer that verifies, and examines every
 * possible position of a block. Other mirrors are read where the first one is damaged, or where
 * they may have older blocks: a device discards what another one keeps, and a stale device has
 * missed that blocks were overwritten.
 */

enum {
    READ = BW_STRIPE_LENGTH, /* bytes per request, so that requests fit into a stripe */
    READS = BW_SCAN_PIECE / READ,
    SLOTS = BW_SCAN_PIECE / BW_MIN_SECTORSIZE, /* maximum number of blocks in a piece */
    KEPT = 64 << 20, /* if there are more bytes, servers do not keep them: they would displace other
                      * blocks */
    AHEAD = 8,       /* pieces that are requested ahead */
};

/* A thread, and the piece that it scans. */
struct worker {
    struct scanner *scanner;
    const struct bw_scan_range *range;
    uint32_t slots;
    uint64_t unread; /* bytes that the mirror read last could not provide */
    uint8_t *buffer;
    bool open[SLOTS];  /* positions to read from the next mirror */
    bool known[SLOTS]; /* positions of which a mirror had a block, or something that is no loss */
    struct bw_found_block found[SLOTS];
};

/* A running scan. */
struct scanner {
    struct bw_history_scan *scan;
    struct bw_found_identity identity;
    struct worker **workers;
    unsigned worker_count;
    atomic_uint_fast64_t done; /* bytes */
    atomic_bool stopped;
};

static bool has_open(const struct worker *worker, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count && i < worker->slots; i++)
        if (worker->open[i])
            return true;
    return false;
}

static struct bw_frame frame_of_scan(const struct bw_history_scan *scan)
{
    struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(scan->fs->reader.top));
    frame.reread = scan->ranges->bytes <= KEPT;
    return frame;
}

static void read_requests(const struct worker *worker, struct bw_request *requests, size_t count)
{
    const struct bw_tree_reader *reader = &worker->scanner->scan->fs->reader;
    const struct bw_frame frame = frame_of_scan(worker->scanner->scan);
    bw_wind(&frame, reader->top, requests, count);
}

/* Classifies a position. It stays open if another mirror may be better. In mixed chunks, data is
 * likely, so other mirrors are read only if it looks like a damaged block. Chunks contain the
 * places of superblocks, which are never blocks. */
static void assess_slot(struct worker *worker, uint32_t slot, bool is_first)
{
    struct bw_history_scan *scan = worker->scanner->scan;
    const uint32_t nodesize = worker->scanner->identity.nodesize;
    const uint64_t offset = (uint64_t)slot * nodesize;
    const uint8_t *bytes = worker->buffer + offset;
    const enum bw_found_kind kind =
        bw_found_recognise(&worker->scanner->identity, scan->index, bytes,
                           worker->range->logical + offset, &worker->found[slot]);
    const struct bw_disk_superblock *super = (const void *)bytes;
    const bool is_super = kind == BW_FOUND_NOTHING && nodesize >= sizeof *super &&
                          bw_get64(super->magic) == BW_SUPERBLOCK_MAGIC;
    const struct bw_node block = bw_node_view(bytes, nodesize);
    if (kind == BW_FOUND_BLOCK && scan->visit && !scan->visit(scan->context, &block))
        scan->index->no_memory = true;
    scan->zeros += kind == BW_FOUND_ZEROS && is_first;
    worker->known[slot] |=
        is_super || kind == BW_FOUND_BLOCK || (kind == BW_FOUND_ZEROS && !scan->doubts_zeros);
    worker->open[slot] =
        kind == BW_FOUND_DAMAGED || (kind == BW_FOUND_NOTHING && !worker->range->mixed) ||
        (kind == BW_FOUND_ZEROS && (scan->doubts_zeros || worker->range->discards));
}

/* Reads the open positions of a piece from a mirror (0: the first), and classifies them. After a
 * bad sector made a larger read fail, each position is read alone. */
static void read_mirror(struct worker *worker, unsigned copy)
{
    const uint32_t nodesize = worker->scanner->identity.nodesize;
    const uint64_t logical = worker->range->logical;
    struct bw_request requests[READS];
    size_t count = 0;
    for (uint32_t at = 0; at < worker->range->length; at += READ) {
        const uint32_t left = worker->range->length - at;
        if (has_open(worker, at / nodesize, READ / nodesize))
            requests[count++] = (struct bw_request){.kind = BW_REQUEST_RAW,
                                                    .mirror = (uint8_t)copy,
                                                    .length = left < READ ? left : READ,
                                                    .address = logical + at,
                                                    .buffer = worker->buffer + at};
    }
    read_requests(worker, requests, count);

    worker->unread = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t first = (requests[i].address - logical) / nodesize;
        for (uint64_t slot = first; slot < first + requests[i].length / nodesize; slot++) {
            if (!worker->open[slot])
                continue;
            bool is_read = !requests[i].error;
            if (!is_read) {
                struct bw_request one = {.kind = BW_REQUEST_RAW,
                                         .mirror = (uint8_t)copy,
                                         .length = nodesize,
                                         .address = logical + slot * nodesize,
                                         .buffer = worker->buffer + slot * nodesize};
                read_requests(worker, &one, 1);
                is_read = !one.error;
                bw_error_free(one.error);
            }
            if (is_read)
                assess_slot(worker, (uint32_t)slot, !copy);
            else if (!worker->known[slot])
                worker->unread += nodesize;
        }
        bw_error_free(requests[i].error);
    }
}

/* Adds the found blocks to the index. The same block of another mirror is dropped there. */
static void keep_found(struct worker *worker)
{
    size_t count = 0;
    for (uint32_t slot = 0; slot < worker->slots; slot++)
        if (worker->found[slot].bytenr)
            worker->found[count++] = worker->found[slot];
    bw_found_add(worker->scanner->scan->index, worker->found, count);
    memset(worker->found, 0, worker->slots * sizeof *worker->found);
}

static void scan_piece(void *context, unsigned number, size_t task)
{
    struct scanner *scanner = context;
    struct bw_history_scan *scan = scanner->scan;
    const struct bw_scan_range *range = &scan->ranges->ranges.items[task];
    struct worker *worker = scanner->workers[number];
    worker->range = range;
    worker->slots = range->length / scanner->identity.nodesize;
    if (!number && scan->progress &&
        !scan->progress(scan->context, scanner->done, scan->ranges->bytes))
        scanner->stopped = true;
    if (scanner->stopped || scan->index->no_memory)
        return;

    /* The first piece requests several ones ahead, and each of the others another one. */
    const struct bw_frame frame = frame_of_scan(scan);
    const size_t pieces = scan->ranges->ranges.count;
    for (size_t i = task ? task + AHEAD - 1 : 0; i < task + AHEAD && i < pieces; i++) {
        const struct bw_scan_range *ahead = &scan->ranges->ranges.items[i];
        const struct bw_range bytes = {ahead->logical, ahead->length};
        bw_wind_advise(&frame, scan->fs->reader.top, &bytes, 1, 0);
    }

    memset(worker->open, true, worker->slots);
    memset(worker->known, false, worker->slots);
    memset(worker->found, 0, worker->slots * sizeof *worker->found);
    read_mirror(worker, 0);

    /* Other mirrors, as far as they may have something else. */
    struct bw_map_reply reply = {0};
    if (range->differs || has_open(worker, 0, worker->slots)) {
        BW_AUTO_ERROR struct bw_error *error =
            bw_wind_map(&frame, scan->fs->reader.top, range->logical, 1, 1, &reply);
        if (error)
            reply.copies = 0;
    }
    for (unsigned copy = 1; reply.copies > 1 && copy <= reply.copies; copy++) {
        if (range->differs) {
            keep_found(worker);
            memset(worker->open, true, worker->slots);
        }
        if (!has_open(worker, 0, worker->slots))
            break;
        read_mirror(worker, copy);
    }
    keep_found(worker);
    scan->unread += worker->unread;
    scanner->done += range->length;
}

static void scanner_free(struct scanner *scanner)
{
    for (unsigned i = 0; scanner->workers && i < scanner->worker_count; i++) {
        if (scanner->workers[i])
            free(scanner->workers[i]->buffer);
        free(scanner->workers[i]);
    }
    free(scanner->workers);
    free(scanner->identity.ids);
}

struct bw_error *bw_history_scan(struct bw_history_scan *scan)
{
    BW_SCOPED(scanner)
    struct scanner scanner = {.scan = scan, .worker_count = bw_pool_workers(scan->threads)};
    BW_TRY(bw_found_identity_of(scan->fs, &scanner.identity));
    scanner.workers = calloc(scanner.worker_count, sizeof *scanner.workers);
    bool complete = scanner.workers;
    for (unsigned i = 0; complete && i < scanner.worker_count; i++) {
        struct worker *worker = scanner.workers[i] = calloc(1, sizeof *worker);
        if (!worker)
            return bw_error_no_memory();
        worker->scanner = &scanner;
        worker->buffer = aligned_alloc(BW_MIN_SECTORSIZE, BW_SCAN_PIECE);
        complete = worker->buffer;
    }
    struct bw_pool *pool = complete ? bw_pool_create(scanner.worker_count) : NULL;
    if (!pool)
        return bw_error_no_memory();
    bw_pool_run(pool, scan->ranges->ranges.count, scan_piece, &scanner);
    bw_pool_destroy(pool);
    bw_found_sort(scan->index);
    if (scan->index->no_memory)
        return bw_error_no_memory();
    return scanner.stopped ? bw_error_create(BW_ERROR_STOPPED, "stopped") : NULL;
}
