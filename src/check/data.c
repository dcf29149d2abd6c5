/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `data`: the checksum trees are read in the order of addresses, and every stored copy of
 * every sector they know is read and compared. Copies are read below features/verify, which would
 * hide a bad one behind a good one.
 *
 * A window of ranges is cut into pieces, which are read with one request each, and the pieces of
 * each copy into tasks. Two copies on one device are read one after the other, so that its head
 * stays where it is; otherwise the devices are read side by side.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"
#include "btree/block.h"
#include "btree/scan.h"
#include "check/data.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"

/* Reading the checksum trees for the data they describe. Faults in these trees are reported
 * elsewhere. */

/* Parts: each gets ranges of 1 GiB in turn. A row with parity is never divided. Returns the end of
 * the range in which an address is. */
static uint64_t end_of_part(const struct bw_check *check, const struct bw_checked_chunk *chunk,
                            uint64_t logical, bool *is_ours)
{
    const uint64_t gib = UINT64_C(1) << 30, end = chunk->logical + chunk->length;
    const unsigned columns = chunk->parity ? (unsigned)chunk->stripes - chunk->parity : 1;
    const uint64_t row = (uint64_t)columns * BW_STRIPE_LENGTH, range = gib / row * row;
    const uint64_t number = (logical - chunk->logical) / range;
    const uint64_t left = end - chunk->logical - number * range;
    *is_ours = !check->options->parts ||
               (chunk->logical / gib + number) % check->options->parts + 1 == check->options->part;
    return check->options->parts && left > range ? chunk->logical + (number + 1) * range : end;
}

struct bw_error *bw_summed_item(const struct bw_check *check, const struct bw_item *item,
                                uint64_t *done, bw_summed_visitor *visit, void *context)
{
    const uint32_t sectorsize = check->fs->superblock.sectorsize;
    const size_t size = bw_checksum_size(bw_fs_data_checksum(check->fs));
    const uint64_t length = item->size / size * sectorsize, from = item->key.offset;
    const uint64_t end = from + length;
    if (!bw_fs_is_data_checksum(check->fs, &item->key) || from % sectorsize ||
        from > UINT64_MAX - length || end <= *done)
        return NULL;
    uint64_t next = from > *done ? from : *done;
    *done = end;
    while (next < end) {
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, next);
        if (!chunk) {
            next += sectorsize;
            continue;
        }
        bool is_ours;
        uint64_t until = end_of_part(check, chunk, next, &is_ours);
        if (check->selects_data)
            is_ours = bw_range_set_has(&check->new_data, next, &until);
        const struct bw_data_range range = {chunk, next, (end < until ? end : until) - next,
                                            item->data + (next - from) / sectorsize * size};
        if (is_ours)
            BW_TRY(visit(context, &range));
        next += range.length;
    }
    return NULL;
}

/* Whether checksums below a pointer may be of data in the part. */
static bool may_be_ours(const struct bw_check *check,
                        const struct bw_tree_block_expectation *expectation)
{
    const struct bw_key *first = &expectation->first_key, *end = &expectation->end_key;
    const bool has_only_checksums =
        first->objectid == BW_EXTENT_CSUM_OBJECT && end->objectid == BW_EXTENT_CSUM_OBJECT;
    if (check->selects_data && has_only_checksums && first->offset < end->offset &&
        !bw_range_set_overlap(&check->new_data, first->offset, end->offset))
        return false;
    bool is_ours = !check->options->parts || !has_only_checksums;
    for (uint64_t next = first->offset; next < end->offset && !is_ours;) {
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, next);
        is_ours = !chunk;
        if (chunk)
            next = end_of_part(check, chunk, next, &is_ours);
    }
    return is_ours;
}

struct bw_error *bw_summed_scan(struct bw_check *check, bw_summed_visitor *visit, void *context)
{
    const struct bw_checksum_trees *trees = &check->fs->checksum_trees;
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .announce = true, .pointers = true};
    for (size_t i = 0; i < trees->count; i++) {
        uint64_t done = 0;
        struct bw_item item;
        bw_block_scan_begin(&scan, &check->fs->reader, &trees->items[i]);
        while (bw_block_scan_next(&scan)) {
            const struct bw_key *end = &scan.pointer.expectation.end_key;
            if (scan.step == BW_SCAN_POINTER)
                scan.selected = (end->objectid != BW_EXTENT_CSUM_OBJECT || end->offset > done) &&
                                may_be_ours(check, &scan.pointer.expectation);
            else
                for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);)
                    BW_TRY(bw_summed_item(check, &item, &done, visit, context));
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    return NULL;
}

/* Ranges of data that are bad in a copy: sorted by their place, joined, reported. */

void bw_bad_ranges_add(struct bw_check *check, struct bw_bad_ranges *bad,
                       const struct bw_bad_range *range)
{
    struct bw_bad_range placed = *range;
    struct bw_finding finding = BW_FINDING(BW_TOUCHES_NOTHING, .repairable = false);
    bw_check_locate_copy(check, range->logical, range->copy, &finding.row);
    placed.devid = finding.row.devid;
    placed.offset = finding.row.offset;
    bw_check_note_bad(check, range->logical, range->length);
    pthread_mutex_lock(&check->lock);
    if (bw_bad_ranges_push(bad, placed))
        check->no_memory = true;
    pthread_mutex_unlock(&check->lock);
}

static int by_place(const void *first, const void *second)
{
    const struct bw_bad_range *a = first, *b = second;
    const uint64_t left[] = {a->code, a->copy, a->repairable, a->devid, a->offset, a->logical};
    const uint64_t right[] = {b->code, b->copy, b->repairable, b->devid, b->offset, b->logical};
    return BW_COMPARE_ALL(left, right);
}

void bw_bad_ranges_report(struct bw_check *check, struct bw_bad_ranges *bad, uint64_t open)
{
    struct bw_bad_range *ranges = bad->items;
    size_t count = 0, kept = 0;
    if (bad->count)
        qsort(ranges, bad->count, sizeof *ranges, by_place);
    for (size_t i = 0; i < bad->count; i++) {
        struct bw_bad_range *a = count ? &ranges[count - 1] : NULL, *b = &ranges[i];
        if (a && a->code == b->code && a->message == b->message && a->copy == b->copy &&
            a->repairable == b->repairable && a->logical + a->length == b->logical &&
            a->devid == b->devid && (a->offset == BW_ABSENT || a->offset + a->length == b->offset))
            a->length += b->length;
        else
            ranges[count++] = *b;
    }
    for (size_t i = 0; i < count; i++) {
        const struct bw_bad_range *range = &ranges[i];
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_EACH, .repairable = range->repairable, .logical = range->logical,
                       .length = range->length, .mirror = range->copy, .devid = range->devid,
                       .offset = range->offset);
        if (range->logical + range->length == open)
            ranges[kept++] = *range;
        else
            bw_check_find(check, range->code, &location, "%s", range->message);
    }
    bad->count = kept;
}

enum {
    PIECE = 256 << 10,       /* bytes of a request at most */
    PIECE_SECTORS = 64,      /* and sectors: bits of a mask */
    BATCH = 512 << 10,       /* bytes read at once: they are still in the cache when compared */
    TASK = 4 << 20,          /* bytes of a task */
    TASKS_AHEAD = 2,         /* of each worker: announced */
    WINDOW = 1 << 30,        /* bytes of a window */
    WINDOW_PIECES = 1 << 16, /* and pieces: data may lie scattered */
};

/* Data that are read with one request. */
struct piece {
    const struct bw_checked_chunk *chunk;
    uint64_t logical;
    uint32_t length;
    size_t checksums; /* where they begin in the window */
};

/* Some pieces, in one copy. */
struct task {
    size_t first, count;
    unsigned copy;
    bool same_device; /* the other copies are on the same device as this one */
};

BW_VECTOR(pieces, struct piece);

BW_VECTOR(tasks, struct task);
BW_VECTOR(sums, uint8_t);

struct bw_data_check {
    struct bw_check *check;
    uint32_t sectorsize;
    size_t checksum_size;
    struct pieces pieces;
    struct sums checksums;
    uint64_t bytes; /* of all pieces */
    struct tasks tasks;
    uint8_t *buffers; /* a batch of each worker */
    struct bw_bad_ranges bad;
};

static uint64_t sectors_of(const struct bw_data_check *data, const struct piece *piece)
{
    const uint32_t count = piece->length / data->sectorsize;
    return count == PIECE_SECTORS ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* The sectors in `wanted` that match their checksums. `bytes` begin with sector `first`. */
static uint64_t matching_sectors(const struct bw_data_check *data, const struct piece *piece,
                                 uint64_t wanted, unsigned first, const uint8_t *bytes)
{
    const uint8_t *expected = data->checksums.items + piece->checksums;
    const enum bw_checksum_type type = bw_fs_data_checksum(data->check->fs);
    uint8_t found[32];
    uint64_t good = 0;
    for (unsigned i = first; i < PIECE_SECTORS && wanted >> i; i++) {
        if (!(wanted >> i & 1))
            continue;
        bw_checksum_compute(type, bytes + (size_t)(i - first) * data->sectorsize, data->sectorsize,
                            found);
        if (memcmp(found, expected + i * data->checksum_size, data->checksum_size) == 0)
            good |= UINT64_C(1) << i;
    }
    return good;
}

static struct bw_request request_of(const struct piece *piece, unsigned copy, uint8_t *bytes)
{
    return (struct bw_request){.kind = BW_REQUEST_RAW,
                               .mirror = (uint8_t)copy,
                               .length = piece->length,
                               .address = piece->logical,
                               .buffer = bytes};
}

/* Reads a run of sectors; if that fails, one by one. Returns those that are good. */
static uint64_t read_run(struct bw_data_check *data, uint8_t *buffer, const struct piece *piece,
                         unsigned copy, unsigned first, unsigned count, uint64_t *unreadable)
{
    const struct bw_tree_reader *reader = &data->check->fs->reader;
    const uint64_t mask = (count == PIECE_SECTORS ? UINT64_MAX : (UINT64_C(1) << count) - 1)
                          << first;
    struct bw_request request = request_of(piece, copy, buffer);
    uint64_t good = 0;
    request.address += (uint64_t)first * data->sectorsize;
    request.length = count * data->sectorsize;
    bw_wind(NULL, reader->top, &request, 1);
    if (!request.error)
        return matching_sectors(data, piece, mask, first, buffer);
    const bool divide = count > 1 && request.error->code != BW_ERROR_MISSING_DEVICE;
    const bool unknown = !divide && bw_check_lacks_memory(data->check, request.error);
    bw_error_free(request.error);
    if (unknown)
        return mask;
    if (!divide)
        *unreadable |= mask;
    for (unsigned i = 0; divide && i < count; i++)
        good |= read_run(data, buffer, piece, copy, first + i, 1, unreadable);
    return good;
}

/* The sectors in `wanted` that are good in a copy. */
static uint64_t good_in_copy(struct bw_data_check *data, uint8_t *buffer, const struct piece *piece,
                             unsigned copy, uint64_t wanted, uint64_t *unreadable)
{
    uint64_t good = 0;
    for (unsigned i = 0, count; i < PIECE_SECTORS; i += count) {
        const bool is_wanted = wanted >> i & 1;
        for (count = 1; i + count < PIECE_SECTORS && (wanted >> (i + count) & 1) == is_wanted;)
            count++;
        if (is_wanted)
            good |= read_run(data, buffer, piece, copy, i, count, unreadable);
    }
    return good;
}

/* Adds ranges of sectors, to be reported at the end of the window. */
static void add_bad(struct bw_data_check *data, const struct piece *piece,
                    const struct bw_bad_range *like, uint64_t sectors)
{
    for (unsigned i = 0; i < PIECE_SECTORS && sectors >> i; i++) {
        if (!(sectors >> i & 1))
            continue;
        struct bw_bad_range range = *like;
        range.logical = piece->logical + (uint64_t)i * data->sectorsize;
        range.length = data->sectorsize;
        bw_bad_ranges_add(data->check, &data->bad, &range);
    }
}

/* Adds bad sectors of a copy: unrepairable ones, and those that are good in another copy. */
static void add_copy(struct bw_data_check *data, uint8_t *buffer, const struct piece *piece,
                     struct bw_bad_range like, uint64_t bad)
{
    uint64_t good = 0, unreadable = 0;
    for (unsigned other = 1; other <= piece->chunk->all_copies && bad & ~good; other++)
        if (other != like.copy)
            good |= good_in_copy(data, buffer, piece, other, bad & ~good, &unreadable);
    add_bad(data, piece, &like, bad & ~good);
    like.repairable = true;
    add_bad(data, piece, &like, good);
}

/* A copy is on a missing device. That is bad only if no other one is stored and parity does not
 * give the data, and is found out with the first copy. */
static void add_missing(struct bw_data_check *data, uint8_t *buffer, const struct piece *piece,
                        unsigned copy)
{
    uint64_t good = 0, unreadable = 0;
    for (unsigned other = 1; other <= piece->chunk->copies; other++) {
        struct bw_mapping mapping = {0};
        BW_AUTO_ERROR struct bw_error *error =
            bw_fs_map(data->check->fs, piece->logical, piece->length, other, &mapping);
        if (copy > 1 || (!error && mapping.present))
            return;
    }
    const uint64_t all = sectors_of(data, piece);
    for (unsigned other = piece->chunk->copies + 1; other <= piece->chunk->all_copies; other++)
        good |= good_in_copy(data, buffer, piece, other, all & ~good, &unreadable);
    const struct bw_bad_range like = {BW_CODE_data_unreadable, .copy = copy,
                                      .message =
                                          "on missing devices, without another mirror or parity"};
    add_bad(data, piece, &like, all & ~good);
}

/* Checks a piece that was read. Once it is compared, the other copies are read into its buffer. */
static void check_reply(struct bw_data_check *data, const struct piece *piece,
                        const struct bw_request *request)
{
    uint8_t *buffer = request->buffer;
    const uint64_t all = sectors_of(data, piece);
    BW_AUTO_ERROR struct bw_error *error = request->error;
    uint64_t unreadable = 0, good;
    if (error && error->code == BW_ERROR_MISSING_DEVICE) {
        add_missing(data, buffer, piece, request->mirror);
        return;
    }
    data->check->data_bytes += piece->length;
    good = error ? good_in_copy(data, buffer, piece, request->mirror, all, &unreadable)
                 : matching_sectors(data, piece, all, 0, request->buffer);
    const struct bw_bad_range like = {BW_CODE_data_checksum, .copy = request->mirror,
                                      .message = "checksum mismatch"};
    const struct bw_bad_range unread = {BW_CODE_data_unreadable, .copy = request->mirror,
                                        .message = "cannot be read"};
    add_copy(data, buffer, piece, like, all & ~good & ~unreadable);
    add_copy(data, buffer, piece, unread, unreadable);
}

/* Tells the layers what a task is going to read, so that the devices have work while the tasks
 * before it compare. */
static void advise_task(const struct bw_data_check *data, size_t index)
{
    const struct task *task = &data->tasks.items[index];
    struct bw_xlator *top = data->check->fs->reader.top;
    struct bw_range ranges[BW_BATCH];
    size_t count = 0;
    for (size_t i = 0; i < task->count; i++) {
        const struct piece *piece = &data->pieces.items[task->first + i];
        if (i && piece[-1].logical + piece[-1].length == piece->logical) {
            ranges[count - 1].length += piece->length;
            continue;
        }
        if (count == BW_BATCH) {
            bw_wind_advise(NULL, top, ranges, count, task->copy);
            count = 0;
        }
        ranges[count++] = (struct bw_range){piece->logical, piece->length};
    }
    bw_wind_advise(NULL, top, ranges, count, task->copy);
}

/* Reads the pieces of a task in its copy, as many at a time as fit, and checks them. */
static void run_task(void *context, unsigned number, size_t index)
{
    struct bw_data_check *data = context;
    uint8_t *bytes = data->buffers + (size_t)number * BATCH;
    const struct task *task = &data->tasks.items[index];
    const struct piece *pieces = &data->pieces.items[task->first];
    const struct bw_tree_reader *reader = &data->check->fs->reader;
    const size_t ahead = index + (size_t)TASKS_AHEAD * data->check->workers;
    if (ahead < data->tasks.count)
        advise_task(data, ahead);
    for (size_t done = 0; done < task->count && bw_check_should_continue(data->check, number);) {
        struct bw_request requests[BW_BATCH];
        size_t used = 0, count = 0;
        for (; done + count < task->count && count < BW_BATCH; count++) {
            const struct piece *piece = &pieces[done + count];
            if (used + piece->length > BATCH)
                break;
            requests[count] = request_of(piece, task->copy, bytes + used);
            used += piece->length;
        }
        bw_wind(NULL, reader->top, requests, count);
        for (size_t i = 0; i < count; i++)
            check_reply(data, &pieces[done + i], &requests[i]);
        done += count;
    }
}

static int by_round(const void *first, const void *second)
{
    const struct task *a = first, *b = second;
    const uint64_t left[] = {a->same_device ? a->copy : 1, a->first, a->copy};
    const uint64_t right[] = {b->same_device ? b->copy : 1, b->first, b->copy};
    return BW_COMPARE_ALL(left, right);
}

/* Checks the pieces of the window, and empties it. A task has pieces of one chunk. */
static struct bw_error *check_window(struct bw_data_check *data)
{
    const struct piece *pieces = data->pieces.items;
    const size_t count = data->pieces.count;
    data->tasks.count = 0;
    for (size_t first = 0, next; first < count; first = next) {
        const struct bw_checked_chunk *chunk = pieces[first].chunk;
        uint64_t bytes = 0;
        for (next = first; next < count && bytes < TASK && pieces[next].chunk == chunk; next++)
            bytes += pieces[next].length;
        for (unsigned copy = 1; copy <= chunk->copies; copy++) {
            const struct task task = {first, next - first, copy, chunk->type & BW_GROUP_DUP};
            BW_TRY(tasks_push(&data->tasks, task));
        }
    }
    tasks_sort(&data->tasks, by_round);
    bw_pool_run(data->check->pool, data->tasks.count, run_task, data);
    if (!data->check->stopped)
        bw_bad_ranges_report(data->check, &data->bad,
                             count ? pieces[count - 1].logical + pieces[count - 1].length : 0);
    data->pieces.count = data->checksums.count = 0;
    data->bytes = 0;
    return data->check->no_memory ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_data_check_add(void *context, const struct bw_data_range *range)
{
    struct bw_data_check *data = context;
    const uint64_t whole = (uint64_t)PIECE_SECTORS * data->sectorsize;
    const uint64_t most = range->chunk->striped ? BW_STRIPE_LENGTH : PIECE;
    const uint64_t unit = whole < most ? whole : most;
    const uint64_t end = range->logical + range->length;
    const uint8_t *checksums = range->checksums;
    for (uint64_t next = range->logical; next < end;) {
        const uint64_t left = unit - (next - range->chunk->logical) % unit;
        const uint32_t length = (uint32_t)(end - next < left ? end - next : left);
        const size_t size = length / data->sectorsize * data->checksum_size;
        const struct piece piece = {range->chunk, next, length, data->checksums.count};
        BW_TRY(sums_append(&data->checksums, checksums, size));
        BW_TRY(pieces_push(&data->pieces, piece));
        data->bytes += length;
        checksums += size;
        next += length;
        if (data->bytes >= WINDOW || data->pieces.count >= WINDOW_PIECES)
            BW_TRY(check_window(data));
    }
    return bw_check_should_continue(data->check, 0)
               ? NULL
               : bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
}

static void free_data_check(struct bw_data_check *data)
{
    free(data->buffers);
    pieces_free(&data->pieces);
    sums_free(&data->checksums);
    tasks_free(&data->tasks);
    bw_bad_ranges_free(&data->bad);
    free(data);
}

struct bw_data_check *bw_data_check_begin(struct bw_check *check)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    struct bw_data_check *data = calloc(1, sizeof *data);
    if (!data)
        return NULL;
    *data =
        (struct bw_data_check){.check = check,
                               .sectorsize = superblock->sectorsize,
                               .checksum_size = bw_checksum_size(bw_fs_data_checksum(check->fs)),
                               .buffers = malloc((size_t)check->workers * BATCH)};
    if (data->buffers)
        return data;
    free_data_check(data);
    return NULL;
}

struct bw_error *bw_data_check_end(struct bw_data_check *data, struct bw_error *error)
{
    if (!data)
        return error;
    if (!error)
        error = check_window(data);
    bw_bad_ranges_report(data->check, &data->bad, 0);
    free_data_check(data);
    return error;
}

struct bw_error *bw_pass_data(struct bw_check *check)
{
    if (check->fs->no_data) {
        bw_check_find(check, BW_CODE_data_absent, NULL,
                      "the image is a metadata dump, or was restored from one");
        return NULL;
    }
    struct bw_data_check *data = bw_data_check_begin(check);
    if (!data)
        return bw_error_no_memory();
    BW_TRY(bw_data_check_end(data, bw_summed_scan(check, bw_data_check_add, data)));
    BW_TRY(bw_check_mirrors(check));
    return bw_check_compressed(check);
}
