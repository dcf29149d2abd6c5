/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether compressed data can be decompressed. Checksums are of the stored bytes: they match even
 * if those are no valid stream, or of another algorithm than in the file extent.
 *
 * The file extents of all subvolumes are gathered in a window, which the threads check in the
 * order of addresses. They read one copy, without its checksums: most streams are good. A stream
 * that is not is read again, verified; if that fails, the data are damaged, as the pass has
 * reported already. The finding is repairable if another mirror can be decompressed.
 *
 * A table of fixed size remembers streams that are good, for snapshots and clones. If it forgets
 * one, that costs time.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "btree/scan.h"
#include "btrfs-walk/graph.h"
#include "check/baseline.h"
#include "check/data.h"
#include "data/fetch.h"
#include "ondisk/compression.h"

enum {
    WINDOW = 1 << 14,       /* streams */
    INLINE_BYTES = 4 << 20, /* and bytes of those that lie in leaves */
    BATCH = 1 << 20,        /* bytes that a task reads at once */
    BATCH_STREAMS = 64,     /* and streams */
    REQUESTS = BW_MAX_COMPRESSED_EXTENT / BW_DATA_REQUEST + 1, /* of a stream at most */
    SMALLEST_TABLE = 1 << 10,
    LARGEST_TABLE = 1 << 22, /* of 8 bytes */
};

/* A compressed extent. */
struct stream {
    const struct bw_listed_tree *tree; /* in which it was found */
    struct bw_key key;
    uint64_t logical;        /* 0: it is inline */
    size_t bytes;            /* of an inline one: where they are in the window */
    uint64_t shown;          /* bytes of the file */
    uint32_t stored, length; /* bytes, compressed and not */
    uint8_t compression;
};

struct worker {
    struct bw_decompressor *decompressor;
    struct bw_data_checksums checksums;
    uint8_t *input;  /* BATCH bytes */
    uint8_t *output; /* BW_MAX_COMPRESSED_EXTENT bytes */
};

struct compressed_check {
    struct bw_check *check;
    const struct bw_listed_tree *tree; /* that is being read */
    struct bw_key_map blocks;          /* that several trees share, and that have been read */
    struct stream *streams;
    size_t count;
    uint8_t *inline_bytes;
    size_t inline_used;
    size_t *tasks;          /* the first stream of each, and at the end their number */
    _Atomic uint64_t *good; /* the table; hashes */
    size_t good_mask;
    struct worker *workers;
};

/* Streams that are good. */

static uint64_t hash_of(const struct compressed_check *self, const struct stream *stream)
{
    const uint64_t *numbers = self->check->secrets.number;
    const uint64_t lengths = (uint64_t)stream->stored << 32 | stream->length;
    return bw_fact_mix(stream->logical * numbers[0] + lengths * numbers[1] +
                       stream->compression * numbers[2]);
}

/* Reading. */

static struct bw_error *decompress_stream(const struct worker *worker, const struct stream *stream,
                                          const uint8_t *input)
{
    return bw_decompress(worker->decompressor, stream->compression, !stream->logical, input,
                         stream->stored, worker->output, stream->length);
}

/* Makes the requests for a stream; returns how many those are. */
static unsigned make_requests(const struct stream *stream, uint8_t *buffer,
                              struct bw_request *requests)
{
    unsigned count = 0;
    for (uint32_t done = 0, length; done < stream->stored; done += length) {
        const uint64_t logical = stream->logical + done;
        const uint32_t room = BW_DATA_REQUEST - (uint32_t)(logical % BW_DATA_REQUEST);
        length = stream->stored - done < room ? stream->stored - done : room;
        requests[count++] = (struct bw_request){
            .kind = BW_REQUEST_DATA, .length = length, .address = logical, .buffer = buffer + done};
    }
    return count;
}

/* Sends requests down; false if one failed. */
static bool read_all(struct compressed_check *self, struct bw_request *requests, unsigned count)
{
    struct bw_xlator *top = self->check->fs->reader.top;
    bool complete = true;
    bw_wind(NULL, top, requests, count);
    for (unsigned i = 0; i < count; i++) {
        if (!requests[i].error)
            continue;
        complete = false;
        if (requests[i].error->code == BW_ERROR_NO_MEMORY)
            self->check->no_memory = true;
        bw_error_free(requests[i].error);
    }
    return complete;
}

static void report_stream(const struct compressed_check *self, const struct stream *stream,
                          const struct bw_error *error, bool repairable)
{
    struct bw_finding location =
        BW_FINDING(BW_TOUCHES_INODE, .repairable = repairable, .tree = stream->tree->tree.id,
                   .key = stream->key, .inode = stream->key.objectid,
                   .file_offset = stream->key.offset, .file_length = stream->shown);
    if (stream->logical) {
        location.row.logical = stream->logical;
        location.row.length = stream->stored;
    }
    bw_check_find(self->check, BW_CODE_data_compressed, &location, "%s", error->message);
}

/*
 * Handles an extent that cannot be decompressed: reads it again, verifying the checksums that
 * exist. If that fails, the data are damaged or incomplete, which another part of the pass reports.
 * Otherwise the other mirrors are tried, as for any reader.
 */
static struct bw_error *check_again(struct compressed_check *self, struct worker *worker,
                                    const struct stream *stream)
{
    enum { SECTORS = BW_DATA_REQUEST / BW_MIN_SECTORSIZE };
    uint8_t sums[REQUESTS][SECTORS * BW_CSUM_SIZE];
    struct bw_data_expectation expectations[REQUESTS];
    struct bw_request requests[REQUESTS];
    const unsigned count = make_requests(stream, worker->input, requests);
    for (unsigned i = 0; i < count; i++) {
        struct bw_checksum_run run = {0};
        BW_TRY(bw_data_checksums_get(&worker->checksums, requests[i].address, requests[i].length,
                                     sums[i], &run));
        expectations[i] = (struct bw_data_expectation){sums[i], worker->checksums.sectorsize,
                                                       worker->checksums.fs->data_checksum};
        if (run.known && run.length == requests[i].length)
            requests[i].data = &expectations[i];
    }
    if (!read_all(self, requests, count))
        return NULL;

    BW_AUTO_ERROR struct bw_error *error = decompress_stream(worker, stream, worker->input);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    const struct bw_stored_extent extent = {.logical = stream->logical,
                                            .bytes = worker->input,
                                            .length = stream->stored,
                                            .compression = stream->compression,
                                            .requests = requests,
                                            .request_count = count};
    BW_AUTO_ERROR struct bw_error *lost =
        bw_data_try_mirrors(self->check->fs, worker->decompressor, &extent, worker->output,
                            stream->length, bw_error_copy(error));
    if (lost && lost->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(lost);
    report_stream(self, stream, error, !lost);
    return NULL;
}

/* Checks some streams of the window, which all lie in leaves, or all in extents. */
static void run_task(void *context, unsigned number, size_t index)
{
    struct compressed_check *self = context;
    const struct stream *streams = &self->streams[self->tasks[index]];
    const size_t count = self->tasks[index + 1] - self->tasks[index];
    struct worker *worker = &self->workers[number];
    if (!bw_check_should_continue(self->check, number))
        return;
    for (size_t i = 0; i < count && !streams[i].logical; i++) {
        BW_AUTO_ERROR struct bw_error *error =
            decompress_stream(worker, &streams[i], self->inline_bytes + streams[i].bytes);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            self->check->no_memory = true;
        else if (error)
            report_stream(self, &streams[i], error, false);
    }
    if (!streams[0].logical)
        return;

    /* Extents are read in one batch. A copy that cannot be read has been reported. */
    struct bw_request requests[BATCH_STREAMS * REQUESTS];
    bool bad[BATCH_STREAMS] = {false};
    unsigned made = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; used += streams[i++].stored)
        made += make_requests(&streams[i], worker->input + used, requests + made);
    const bool complete = read_all(self, requests, made);
    used = 0;
    for (size_t i = 0; i < count; used += streams[i++].stored) {
        BW_AUTO_ERROR struct bw_error *error =
            decompress_stream(worker, &streams[i], worker->input + used);
        const uint64_t hash = hash_of(self, &streams[i]);
        bad[i] = error;
        if (!error && complete)
            self->good[hash & self->good_mask] = hash;
    }
    for (size_t i = 0; i < count; i++) {
        if (!bad[i])
            continue;
        BW_AUTO_ERROR struct bw_error *failure = check_again(self, worker, &streams[i]);
        if (failure)
            self->check->no_memory = true;
    }
}

/* The window. */

static int by_address(const void *first, const void *second)
{
    const struct stream *a = first, *b = second;
    const int order = bw_compare(a->logical, b->logical);
    return order ? order : bw_key_compare(&a->key, &b->key);
}

/* Checks the streams of the window, and empties it. A task has only inline streams, or none. */
static void check_window(struct compressed_check *self)
{
    if (self->count)
        qsort(self->streams, self->count, sizeof *self->streams, by_address);
    size_t task_count = 0;
    for (size_t first = 0; first < self->count;) {
        const struct stream *streams = &self->streams[first];
        size_t count = 0, bytes = 0;
        while (first + count < self->count && count < BATCH_STREAMS &&
               !streams[count].logical == !streams[0].logical &&
               bytes + streams[count].stored <= BATCH)
            bytes += streams[count++].stored;
        self->tasks[task_count++] = first;
        first += count;
    }
    self->tasks[task_count] = self->count;
    bw_pool_run(self->check->pool, task_count, run_task, self);
    self->count = self->inline_used = 0;
}

static void add_stream(struct compressed_check *self, const struct bw_item *item,
                       const struct bw_file_extent *extent)
{
    struct stream stream = {.tree = self->tree,
                            .key = item->key,
                            .logical = extent->disk_bytenr,
                            .shown = extent->num_bytes,
                            .stored = (uint32_t)extent->disk_num_bytes,
                            .length = (uint32_t)extent->ram_bytes,
                            .compression = extent->compression};
    if (stream.logical) {
        /* Several files may have one stream. */
        const struct stream *last = self->count ? &self->streams[self->count - 1] : NULL;
        const uint64_t hash = hash_of(self, &stream);
        if (self->good[hash & self->good_mask] == hash ||
            (last && last->logical == stream.logical && last->stored == stream.stored &&
             last->length == stream.length && last->compression == stream.compression))
            return;
    }
    if (self->count == WINDOW || self->inline_used + extent->inline_length > INLINE_BYTES)
        check_window(self);
    if (!stream.logical) {
        stream.stored = extent->inline_length;
        stream.bytes = self->inline_used;
        memcpy(self->inline_bytes + stream.bytes, extent->inline_data, stream.stored);
        self->inline_used += stream.stored;
    }
    self->streams[self->count++] = stream;
}

/* The trees. */

/* Whether several trees may lead to a block. */
static bool may_be_shared(const struct bw_check *check, uint64_t bytenr)
{
    return !check->extents_known || bw_key_map_has(&check->shared_blocks, bytenr);
}

static struct bw_error *on_leaf(struct compressed_check *self, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_file_extent extent;
        if (bw_node_disk_item(leaf, slot)->key.type != BW_EXTENT_DATA ||
            !bw_leaf_item(leaf, slot, &item) || !bw_is_inode_number(item.key.objectid))
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_file_extent_decode(&item, self->check->fs->superblock.sectorsize, &extent);
        uint64_t end = UINT64_MAX;
        const bool is_verified =
            self->check->selects_data && extent.disk_bytenr &&
            !bw_range_set_has(&self->check->new_data, extent.disk_bytenr, &end);
        if (!bad && !is_verified && extent.compression && extent.type != BW_FILE_EXTENT_PREALLOC &&
            (extent.inline_data || extent.disk_bytenr))
            add_stream(self, &item, &extent);
    }
    return bw_check_should_continue(self->check, 0)
               ? NULL
               : bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
}

static void compressed_check_free(struct compressed_check *self)
{
    for (unsigned i = 0; self->workers && i < self->check->workers; i++) {
        bw_decompressor_destroy(self->workers[i].decompressor);
        bw_data_checksums_free(&self->workers[i].checksums);
        free(self->workers[i].input);
        free(self->workers[i].output);
    }
    free(self->workers);
    free(self->streams);
    free(self->tasks);
    free(self->inline_bytes);
    free(self->good);
    bw_key_map_free(&self->blocks);
}

struct bw_error *bw_check_compressed(struct bw_check *check)
{
    BW_SCOPED(compressed_check)
    struct compressed_check self = {.check = check};
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .announce = true, .pointers = true};
    /* If the baseline has no bad data, only new extents are read. */
    const bool only_new =
        check->selects_data && !(check->since && check->since->bad_data.ranges.count);

    /* The window, the memory of the threads, and the table, with twice as many places as there can
     * be extents of the greatest size. */
    uint64_t data_bytes = 0;
    size_t size = SMALLEST_TABLE;
    for (size_t i = 0; i < check->chunks.count; i++)
        if (check->chunks.items[i].type & BW_GROUP_DATA)
            data_bytes += check->chunks.items[i].length;
    while (size < LARGEST_TABLE && size < data_bytes / BW_MAX_COMPRESSED_EXTENT * 2)
        size *= 2;
    self.good = calloc(size, sizeof *self.good);
    self.good_mask = size - 1;
    self.streams = malloc(WINDOW * sizeof *self.streams);
    self.tasks = malloc((WINDOW + 1) * sizeof *self.tasks);
    self.inline_bytes = malloc(INLINE_BYTES);
    self.workers = calloc(check->workers, sizeof *self.workers);
    bool complete = self.good && self.streams && self.tasks && self.inline_bytes && self.workers;
    for (unsigned i = 0; self.workers && i < check->workers; i++) {
        bw_data_checksums_init(&self.workers[i].checksums, check->fs);
        self.workers[i].input = calloc(1, BATCH);
        self.workers[i].output = malloc(BW_MAX_COMPRESSED_EXTENT);
        complete &= self.workers[i].input && self.workers[i].output;
    }
    if (!complete)
        return bw_error_no_memory();
    for (unsigned i = 0; i < check->workers; i++)
        BW_TRY(bw_decompressor_create(check->fs->superblock.sectorsize,
                                      &self.workers[i].decompressor));

    /* The compressed extents of all subvolumes. */
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i];
        self.tree = tree;
        if (!tree->is_subvolume || !tree->references)
            continue;
        bw_block_scan_begin(&scan, &check->fs->reader, &tree->tree);
        while (bw_block_scan_next(&scan)) {
            const uint64_t bytenr = scan.pointer.bytenr;
            if (scan.step == BW_SCAN_LEAF)
                BW_TRY(on_leaf(&self, &scan.node));
            if (scan.step != BW_SCAN_POINTER ||
                (only_new && scan.pointer.expectation.generation <= check->since_generation))
                continue;

            /* Tree blocks that snapshots share are read once. */
            scan.selected = !bw_key_map_has(&self.blocks, bytenr);
            if (scan.selected && may_be_shared(check, bytenr))
                BW_TRY(bw_key_map_put(&self.blocks, bytenr, 1));
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    check_window(&self);
    return check->no_memory ? bw_error_no_memory() : NULL;
}
