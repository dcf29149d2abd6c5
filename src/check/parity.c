/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `parity`: the parity of RAID5 and RAID6 is computed from the data of its row and
 * compared. A row of n data stripes D has P, the sum of all D[i] in GF(2^8), and with RAID6 also Q,
 * the sum of 2^i D[i]; base/galois.h computes both.
 *
 * Some rows that follow each other are read at once, each stripe below the chunk map, from its
 * device. Where data of a column are bad and have been reported, its parity is not. Otherwise it is
 * the parity that is bad: what it protects is good now, but would be lost with its device. A crash
 * while a row was being written can leave it so (the "write hole"); Linux 6.18 also leaves stale
 * parity after the replacement of a device.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/galois.h"
#include "btree/block.h"
#include "btrfs-walk/graph.h"
#include "check/blocks.h"
#include "check/check.h"
#include "check/data.h"
#include "fs/image.h"
#include "xlators/classes.h"

/*
 * Rows of parity in use. The kernel writes parity column by column: a column is a sector of each
 * stripe of a row, and as soon as one of them is written, the column's parity covers all of them.
 * So one sector that has certainly been written proves that its column must be consistent.
 * Preallocated space proves nothing, and neither do data without checksums, which cannot be
 * distinguished from it here.
 */

/* A row, with the sectors of its stripes that are in use. */
struct bw_parity_row {
    const struct bw_checked_chunk *chunk;
    uint64_t number;
    uint32_t columns; /**< bit n: some stripe has a tree block or checksummed data in sector n */
};

enum {
    MAX_PARTS = 255,
    WINDOW = 4096,   /* rows that are checked together */
    TASK_ROWS = 64,  /* of them, by one task */
    BATCH = 1 << 20, /* bytes of rows that are read at once, if there are several */
    BATCH_ROWS = 16,
    PARITIES = 2, /* at most: P and Q */
};

/* A stripe of a row, or the part of it that is read. */
struct part {
    struct bw_xlator *storage; /* NULL: the device is missing */
    uint64_t devid, offset;
    uint8_t *bytes;
};

/* A row that is being checked, its parity last. */
struct row {
    const struct bw_checked_chunk *chunk;
    uint64_t logical;    /* of its first data */
    uint32_t columns;    /* to be compared */
    uint32_t first, end; /* the columns that are read */
    unsigned data_parts;
    struct part parts[MAX_PARTS];
};

struct parity {
    struct bw_check *check;
    uint32_t sectorsize;
    size_t room;                /* bytes of a worker for rows */
    uint8_t *bytes;             /* for each worker: the bytes of the rows of a batch */
    uint8_t *computed;          /* two stripes: P and Q */
    struct row *batch;          /* and BATCH_ROWS */
    struct bw_parity_row *rows; /* the window, ascending within a chunk */
    size_t row_count;
    atomic_uint_fast64_t unchecked; /* rows with stripes on missing devices */
};

static struct bw_xlator *storage_of(const struct bw_fs *fs, uint64_t devid)
{
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role != BW_IMAGE_UNUSED && fs->images[i].superblock.device.devid == devid)
            return fs->images[i].storage;
    return NULL;
}

/* The number of the copy that P gives: stored copies come first, one for each image of the device.
 */
static unsigned first_computed(struct bw_fs *fs, uint64_t logical)
{
    struct bw_mapping mapping = {.rebuilt = false};
    unsigned copy = 2;
    for (; fs->alternatives; copy++) {
        BW_AUTO_ERROR struct bw_error *error = bw_fs_map(fs, logical, 1, copy, &mapping);
        if (error || mapping.rebuilt)
            break;
    }
    return copy;
}

/* Finds out where the parts of a row are, and gives them memory; false if it cannot be checked,
 * because a device is missing. */
static bool begin_row(struct parity *parity, const struct bw_parity_row *wanted, uint8_t *bytes,
                      struct row *row)
{
    struct bw_fs *fs = parity->check->fs;
    const unsigned data_parts = wanted->chunk->stripes - wanted->chunk->parity;
    row->chunk = wanted->chunk;
    row->data_parts = data_parts;
    row->logical = wanted->chunk->logical + wanted->number * data_parts * BW_STRIPE_LENGTH;
    row->columns = wanted->columns;
    row->first = (uint32_t)__builtin_ctz(wanted->columns);
    row->end = 32 - (uint32_t)__builtin_clz(wanted->columns);

    const unsigned computed = first_computed(fs, row->logical);
    bool complete = true;
    for (unsigned i = 0; i < row->chunk->stripes; i++) {
        const bool is_parity = i >= data_parts;
        const uint64_t logical = row->logical + (is_parity ? 0 : i * (uint64_t)BW_STRIPE_LENGTH);
        struct bw_mapping mapping = {0};
        BW_AUTO_ERROR struct bw_error *error =
            bw_fs_map(fs, logical, 1, is_parity ? computed + i - data_parts : 1, &mapping);
        row->parts[i].bytes = bytes + (size_t)i * BW_STRIPE_LENGTH;
        row->parts[i].devid = mapping.devid;
        row->parts[i].offset = mapping.offset;
        row->parts[i].storage = mapping.present ? storage_of(fs, mapping.devid) : NULL;
        if (error || mapping.rebuilt != is_parity || !row->parts[i].storage)
            complete = false;
    }
    parity->unchecked += !complete;
    return complete;
}

static struct bw_request request_of(const struct parity *parity, const struct row *row,
                                    unsigned part, uint32_t first, uint32_t end)
{
    return (struct bw_request){
        .kind = BW_REQUEST_RAW,
        .length = (end - first) * parity->sectorsize,
        .address = row->parts[part].offset + (uint64_t)first * parity->sectorsize,
        .buffer = row->parts[part].bytes + (size_t)first * parity->sectorsize};
}

static void report_parity(struct parity *parity, const struct row *row, unsigned part,
                          uint32_t first, uint32_t count, enum bw_code_number code, bool repairable)
{
    const uint64_t offset = row->parts[part].offset + (uint64_t)first * parity->sectorsize;
    const struct bw_finding location =
        BW_FINDING(row->chunk->type & BW_GROUP_DATA ? BW_TOUCHES_DATA : BW_TOUCHES_NOTHING,
                   .repairable = repairable, .logical = row->logical,
                   .length = (uint64_t)row->data_parts * BW_STRIPE_LENGTH,
                   .devid = row->parts[part].devid, .offset = offset);
    const char *problem = "cannot be read";
    if (code == BW_CODE_parity_mismatch)
        problem = "do not match the data of the row";
    bw_check_find(parity->check, code, &location, "%" PRIu32 " bytes of %s %s",
                  count * parity->sectorsize, part == row->data_parts ? "P" : "Q", problem);
}

/* A part could not be read as a whole: which columns can be? Data have been reported already. */
static void read_again(struct parity *parity, struct row *row, unsigned part)
{
    for (uint32_t i = row->first; i < row->end; i++) {
        struct bw_request request = request_of(parity, row, part, i, i + 1);
        if (!(row->columns >> i & 1))
            continue;
        bw_wind(NULL, row->parts[part].storage, &request, 1);
        if (!request.error)
            continue;
        bw_error_free(request.error);
        row->columns &= ~(UINT32_C(1) << i);
        if (part >= row->data_parts)
            report_parity(parity, row, part, i, 1, BW_CODE_parity_unreadable, true);
    }
}

/* Reads rows of one chunk, device by device. Stripes of successive rows follow each other there. */
static void read_rows(struct parity *parity, struct row *rows, size_t count)
{
    for (unsigned k = 0; k < rows[0].chunk->stripes; k++) {
        struct bw_xlator *storage = rows[0].parts[k].storage;
        struct bw_request requests[BATCH_ROWS];
        unsigned parts[BATCH_ROWS];
        for (size_t i = 0; i < count; i++) {
            for (parts[i] = 0; rows[i].parts[parts[i]].storage != storage;)
                parts[i]++;
            requests[i] = request_of(parity, &rows[i], parts[i], rows[i].first, rows[i].end);
        }
        bw_wind(NULL, storage, requests, count);
        for (size_t i = 0; i < count; i++) {
            if (requests[i].error)
                read_again(parity, &rows[i], parts[i]);
            bw_error_free(requests[i].error);
        }
    }
}

/* Whether data of a column are bad, which has been reported. */
static bool has_bad_data(const struct parity *parity, const struct row *row, uint32_t column)
{
    for (unsigned i = 0; i < row->data_parts; i++)
        if (bw_check_has_bad(parity->check,
                             row->logical + i * (uint64_t)BW_STRIPE_LENGTH +
                                 (uint64_t)column * parity->sectorsize,
                             parity->sectorsize))
            return true;
    return false;
}

/* Whether checksums confirm all data of a column, or the data are unused. */
static bool is_confirmed(const struct parity *parity, const struct row *row, uint32_t column)
{
    const struct bw_check *check = parity->check;
    if (!(row->chunk->type & BW_GROUP_DATA))
        return true;
    if (!check->options->data || !check->references)
        return false;
    for (unsigned i = 0; i < row->data_parts; i++) {
        const uint64_t start =
            row->logical + i * (uint64_t)BW_STRIPE_LENGTH + (uint64_t)column * parity->sectorsize;
        if (bw_range_set_overlap(&check->unsummed, start, start + parity->sectorsize))
            return false;
    }
    return true;
}

/* Compares one kind of parity; columns that differ and follow each other are one finding. */
static void compare_parity(struct parity *parity, const struct row *row, unsigned part,
                           const uint8_t *computed)
{
    uint32_t run = 0;
    bool repairable = true;
    for (uint32_t i = row->first; i <= row->end; i++) {
        const size_t at = (size_t)i * parity->sectorsize;
        const bool differs =
            i < row->end && row->columns >> i & 1 &&
            memcmp(row->parts[part].bytes + at, computed + at, parity->sectorsize) != 0 &&
            !has_bad_data(parity, row, i);
        if (differs) {
            run++;
            repairable = repairable && is_confirmed(parity, row, i);
        } else if (run) {
            report_parity(parity, row, part, i - run, run, BW_CODE_parity_mismatch, repairable);
            run = 0;
            repairable = true;
        }
    }
}

/* Whether two rows lie on the same devices, in any order. */
static bool same_devices(const struct row *a, const struct row *b)
{
    for (unsigned i = 0; i < a->chunk->stripes; i++) {
        unsigned k = 0;
        while (k < b->chunk->stripes && b->parts[k].storage != a->parts[i].storage)
            k++;
        if (k == b->chunk->stripes)
            return false;
    }
    return true;
}

/* Checks some rows of the window: as many at a time as fit into memory and are of one chunk. */
static void run_task(void *context, unsigned number, size_t task)
{
    struct parity *parity = context;
    uint8_t *bytes = parity->bytes + number * parity->room;
    uint8_t *computed = parity->computed + (size_t)number * PARITIES * BW_STRIPE_LENGTH;
    struct row *rows = &parity->batch[number * BATCH_ROWS];
    const size_t first = task * TASK_ROWS, rest = parity->row_count - first;
    const size_t end = first + (rest < TASK_ROWS ? rest : TASK_ROWS);
    for (size_t next = first; next < end && bw_check_should_continue(parity->check, number);) {
        const struct bw_checked_chunk *chunk = parity->rows[next].chunk;
        const size_t size = (size_t)chunk->stripes * BW_STRIPE_LENGTH;
        size_t count = 0;
        for (; next < end && count < BATCH_ROWS && (count + 1) * size <= parity->room &&
               parity->rows[next].chunk == chunk;
             next++) {
            const bool begun =
                begin_row(parity, &parity->rows[next], bytes + count * size, &rows[count]);
            if (begun && !same_devices(&rows[0], &rows[count]))
                break; /* only in a chunk that was moved */
            count += begun;
        }
        if (count)
            read_rows(parity, rows, count);
        for (size_t i = 0; i < count; i++) {
            const struct row *row = &rows[i];
            if (!row->columns)
                continue;
            const size_t at = (size_t)row->first * parity->sectorsize;
            const size_t length = (size_t)(row->end - row->first) * parity->sectorsize;
            void *vectors[MAX_PARTS];
            for (unsigned k = 0; k < row->data_parts; k++)
                vectors[k] = row->parts[k].bytes + at;
            for (unsigned k = 0; k < chunk->parity; k++)
                vectors[row->data_parts + k] = computed + (size_t)k * BW_STRIPE_LENGTH + at;
            if (row->data_parts > 1)
                bw_field_parity(row->data_parts, chunk->parity, length, vectors);
            for (unsigned k = 0; row->data_parts == 1 && k < chunk->parity; k++)
                memcpy(vectors[1 + k], vectors[0], length);
            for (unsigned k = 0; k < chunk->parity; k++)
                compare_parity(parity, row, row->data_parts + k,
                               computed + (size_t)k * BW_STRIPE_LENGTH);
        }
    }
}

/* Ranges that relocation moved out of a chunk are no longer protected by its rows. */
static bool has_rows(const struct bw_checked_chunk *chunk)
{
    return chunk->parity && !(chunk->type & BW_GROUP_REMAPPED);
}

/* Checks the rows of the window, which is empty afterwards. */
static struct bw_error *check_window(struct parity *parity)
{
    if (!bw_check_should_continue(parity->check, 0))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    bw_pool_run(parity->check->pool, (parity->row_count + TASK_ROWS - 1) / TASK_ROWS, run_task,
                parity);
    parity->row_count = 0;
    return NULL;
}

/* Adds a range that is in use, in a chunk with parity, to the rows of the window. The ranges of one
 * row come one after the other. */
static struct bw_error *add_range(struct parity *parity, const struct bw_checked_chunk *chunk,
                                  uint64_t logical, uint64_t length)
{
    const unsigned data_stripes = chunk->stripes - chunk->parity;
    const uint64_t end = logical + length - chunk->logical;
    for (uint64_t at = logical - chunk->logical; at < end && at < chunk->length;) {
        const uint64_t piece = at / BW_STRIPE_LENGTH, within = at % BW_STRIPE_LENGTH;
        const uint64_t number = piece / data_stripes;
        uint64_t stop = (piece + 1) * BW_STRIPE_LENGTH;
        stop = stop < end ? stop : end;
        const unsigned first = (unsigned)(within / parity->sectorsize);
        const unsigned behind =
            (unsigned)((within + (stop - at) + parity->sectorsize - 1) / parity->sectorsize);
        const uint32_t columns = (uint32_t)((UINT64_C(1) << behind) - (UINT64_C(1) << first));
        struct bw_parity_row *last =
            parity->row_count ? &parity->rows[parity->row_count - 1] : NULL;
        if (last && last->chunk == chunk && last->number == number) {
            last->columns |= columns;
        } else {
            if (parity->row_count == WINDOW)
                BW_TRY(check_window(parity));
            parity->rows[parity->row_count++] = (struct bw_parity_row){chunk, number, columns};
        }
        at = stop;
    }
    return NULL;
}

static struct bw_error *on_summed(void *context, const struct bw_data_range *range)
{
    if (!has_rows(range->chunk))
        return NULL;
    return add_range(context, range->chunk, range->logical, range->length);
}

static void parity_free(struct parity *parity)
{
    free(parity->bytes);
    free(parity->computed);
    free(parity->batch);
    free(parity->rows);
}

struct bw_error *bw_pass_parity(struct bw_check *check)
{
    BW_SCOPED(parity)
    struct parity parity = {.check = check, .sectorsize = check->fs->superblock.sectorsize};
    uint64_t most = 0; /* stripes of a row */
    for (size_t i = 0; i < check->chunks.count; i++)
        if (has_rows(&check->chunks.items[i]))
            most = bw_max(most, check->chunks.items[i].stripes);
    if (!most)
        return NULL;

    /* Memory for the threads, at multiples of 32 bytes for bw_field_parity(). */
    parity.room = bw_max(most * BW_STRIPE_LENGTH, BATCH);
    parity.rows = malloc(WINDOW * sizeof *parity.rows);
    parity.bytes = aligned_alloc(4096, check->workers * parity.room);
    parity.computed = aligned_alloc(4096, (size_t)check->workers * PARITIES * BW_STRIPE_LENGTH);
    parity.batch = malloc((size_t)check->workers * BATCH_ROWS * sizeof *parity.batch);
    if (!parity.rows || !parity.bytes || !parity.computed || !parity.batch)
        return bw_error_no_memory();

    /* The rows that hold tree blocks or, if data are checked, data with checksums. Columns that
     * hold neither may never have been written, and then their parity means nothing. */
    for (size_t i = 0; i < check->chunks.count; i++) {
        const struct bw_checked_chunk *chunk = &check->chunks.items[i];
        BW_SCOPED(bw_numbers) struct bw_numbers list = {0};
        if (!has_rows(chunk) || !(chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
            continue;
        BW_TRY(bw_visited_in(check, chunk->logical, chunk->logical + chunk->length, &list));
        for (size_t k = 0; k < list.count; k++)
            BW_TRY(add_range(&parity, chunk, list.items[k], check->fs->reader.nodesize));
    }
    if (check->options->data)
        BW_TRY(bw_summed_scan(check, on_summed, &parity));
    BW_TRY(check_window(&parity));
    if (parity.unchecked)
        bw_check_find(check, BW_CODE_parity_unchecked, NULL,
                      "%" PRIu64 " row%s stripes on missing devices", (uint64_t)parity.unchecked,
                      parity.unchecked == 1 ? " has" : "s have");
    return NULL;
}
