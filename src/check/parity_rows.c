/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which rows of parity are in use. The kernel writes parity column by column: a column is a sector
 * of each stripe of a row, and as soon as one of them is written, the parity of the column is that
 * of all of them. So a single sector that certainly has been written tells that its column must be
 * consistent. Preallocated space does not, and neither do data without checksums, which cannot be
 * told from it here.
 */
#include "base/array.h"
#include "base/cleanup.h"
#include "btree/block.h"
#include "check/blocks.h"
#include "check/parity.h"
#include "check/summed.h"

enum { WINDOW = 4096 /* rows that are handed out together */ };

struct gathering {
    struct bw_check *check;
    bw_parity_taker *take;
    void *context;
    struct bw_parity_row rows[WINDOW];
    size_t count;
};

/* What relocation has moved out of a chunk is no longer protected by its rows. */
static bool has_rows(const struct bw_checked_chunk *chunk)
{
    return chunk->parity && !(chunk->type & BW_GROUP_REMAPPED);
}

static struct bw_error *hand_out(struct gathering *gathering)
{
    const size_t count = gathering->count;
    gathering->count = 0;
    if (!bw_check_goes_on(gathering->check, 0))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    return count ? gathering->take(gathering->context, gathering->rows, count) : NULL;
}

/* Adds columns of a row. Those of one row come one after the other. */
static struct bw_error *add_columns(struct gathering *gathering,
                                    const struct bw_checked_chunk *chunk, uint64_t number,
                                    uint32_t columns)
{
    const size_t count = gathering->count;
    struct bw_parity_row *last = count ? &gathering->rows[count - 1] : NULL;
    if (last && last->chunk == chunk && last->number == number) {
        last->columns |= columns;
        return NULL;
    }
    if (count == WINDOW)
        BW_TRY(hand_out(gathering));
    gathering->rows[gathering->count++] = (struct bw_parity_row){chunk, number, columns};
    return NULL;
}

/* Adds a range that is in use, in a chunk with parity. */
static struct bw_error *add_range(struct gathering *gathering, const struct bw_checked_chunk *chunk,
                                  uint64_t logical, uint64_t length)
{
    const uint32_t sectorsize = gathering->check->fs->superblock.sectorsize;
    const unsigned data_stripes = chunk->stripes - chunk->parity;
    const uint64_t end = logical + length - chunk->logical;
    for (uint64_t at = logical - chunk->logical; at < end && at < chunk->length;) {
        const uint64_t piece = at / BW_STRIPE_LENGTH, within = at % BW_STRIPE_LENGTH;
        uint64_t stop = (piece + 1) * BW_STRIPE_LENGTH;
        stop = stop < end ? stop : end;
        const unsigned first = (unsigned)(within / sectorsize);
        const unsigned behind = (unsigned)((within + (stop - at) + sectorsize - 1) / sectorsize);
        const uint64_t bits = (UINT64_C(1) << behind) - (UINT64_C(1) << first);
        BW_TRY(add_columns(gathering, chunk, piece / data_stripes, (uint32_t)bits));
        at = stop;
    }
    return NULL;
}

static struct bw_error *take_summed(void *context, const struct bw_summed *range)
{
    struct gathering *gathering = context;
    return has_rows(range->chunk)
               ? add_range(gathering, range->chunk, range->logical, range->length)
               : NULL;
}

static struct bw_error *add_blocks(struct gathering *gathering,
                                   const struct bw_checked_chunk *chunk)
{
    const struct bw_check *check = gathering->check;
    struct bw_visited_list list = {0};
    struct bw_error *error = NULL;
    if (!bw_visited_in(check->visited, chunk->logical, chunk->logical + chunk->length, &list))
        error = bw_error_no_memory();
    for (size_t i = 0; !error && i < list.count; i++)
        error = add_range(gathering, chunk, list.addresses[i], check->fs->reader.nodesize);
    free(list.addresses);
    return error;
}

static struct bw_error *gather(struct gathering *gathering)
{
    const struct bw_check *check = gathering->check;
    for (size_t i = 0; i < check->chunk_count; i++)
        if (has_rows(&check->chunks[i]) &&
            check->chunks[i].type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM))
            BW_TRY(add_blocks(gathering, &check->chunks[i]));
    if (check->options->data)
        BW_TRY(bw_summed_scan(gathering->check, take_summed, gathering));
    return hand_out(gathering);
}

static bool has_parity(const struct bw_check *check)
{
    for (size_t i = 0; i < check->chunk_count; i++)
        if (has_rows(&check->chunks[i]))
            return true;
    return false;
}

struct bw_error *bw_parity_rows(struct bw_check *check, bw_parity_taker *take, void *context)
{
    if (!has_parity(check))
        return NULL;
    BW_AUTO_FREE struct gathering *gathering = malloc(sizeof *gathering);
    if (!gathering)
        return bw_error_no_memory();
    gathering->check = check;
    gathering->take = take;
    gathering->context = context;
    gathering->count = 0;
    return gather(gathering);
}
