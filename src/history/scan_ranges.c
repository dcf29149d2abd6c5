/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of the metadata chunks is stored: files of images have holes where nothing was written. */
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "ondisk/chunk.h"
#include "fs/image.h"
#include "history/scan.h"

/* Where a row of pieces lies that a chunk puts on its devices side by side. */
struct rows {
    const struct bw_fs *fs;
    const struct bw_chunk_info *chunk;
    uint64_t bytes; /* logical bytes of a row */
};

static uint64_t row_bytes(const struct bw_chunk_info *chunk)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    if (!profile || !profile->striped)
        return BW_STRIPE_LENGTH;
    const unsigned copies = profile->copies ? profile->copies : 1;
    return (chunk->stripe_count - profile->parity_stripes) / copies * (uint64_t)BW_STRIPE_LENGTH;
}

/* The first byte from `offset` of a stripe on that is stored; UINT64_MAX: none, or its device is
 * missing. */
static uint64_t next_in_stripe(const struct rows *rows, const struct bw_stripe_info *stripe,
                               uint64_t offset)
{
    const struct bw_image *image = bw_image_of_device(rows->fs, stripe->devid, stripe->device_uuid);
    const uint64_t begin = rows->fs->is_dump ? rows->chunk->logical : stripe->offset;
    if (!image || !image->storage || offset > UINT64_MAX - begin)
        return UINT64_MAX;
    const uint64_t next = bw_xlator_next_stored(image->storage, begin + offset);
    return next == UINT64_MAX ? next : next - begin;
}

/* Where in the chunk the first row at or after a position begins of which anything is stored. */
static uint64_t next_stored(const struct rows *rows, uint64_t position)
{
    const uint64_t row = position / rows->bytes;
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < rows->chunk->stripe_count; i++) {
        const uint64_t here =
            next_in_stripe(rows, &rows->chunk->stripes[i], row * BW_STRIPE_LENGTH);
        next = here < next ? here : next;
    }
    next /= BW_STRIPE_LENGTH;
    if (next == row)
        return position;
    return next > UINT64_MAX / rows->bytes ? UINT64_MAX : next * rows->bytes;
}

static uint64_t bytes_of_devices(const struct bw_fs *fs)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role != BW_IMAGE_UNUSED && fs->images[i].storage)
            bytes += bw_xlator_size(fs->images[i].storage);
    return bytes;
}

static struct bw_error *add(struct bw_scan_ranges *ranges, const struct bw_scan_range *range)
{
    if (!BW_ARRAY_RESERVE(ranges->ranges, ranges->count, ranges->capacity))
        return bw_error_no_memory();
    ranges->ranges[ranges->count++] = *range;
    ranges->bytes += range->length;
    return NULL;
}

struct bw_error *bw_scan_add_chunk(const struct bw_fs *fs, const struct bw_chunk_info *chunk,
                                   struct bw_scan_ranges *ranges)
{
    const struct rows rows = {fs, chunk, row_bytes(chunk)};
    const uint64_t nodesize = fs->superblock.nodesize, limit = bytes_of_devices(fs);
    const uint64_t end = chunk->length - chunk->length % nodesize;
    if (!(chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)) || !rows.bytes)
        return NULL;
    for (uint64_t at = next_stored(&rows, 0); at < end; at = next_stored(&rows, at)) {
        const uint64_t left = end - at;
        const struct bw_scan_range range = {
            .logical = chunk->logical + at,
            .length = left < BW_SCAN_PIECE ? (uint32_t)left : BW_SCAN_PIECE,
            .mixed = chunk->type & BW_GROUP_DATA,
        };
        /* Chunks that lie in the same place may claim any amount. */
        if (ranges->bytes >= limit) {
            ranges->left_out++;
            return NULL;
        }
        BW_TRY(add(ranges, &range));
        at += range.length;
    }
    return NULL;
}

/* The chunks under way. */
struct chunks {
    const struct bw_fs *fs;
    struct bw_scan_ranges *ranges;
};

static struct bw_error *take_chunk(void *context, const struct bw_chunk_info *chunk)
{
    const struct chunks *chunks = context;
    return bw_scan_add_chunk(chunks->fs, chunk, chunks->ranges);
}

struct bw_error *bw_scan_add_chunks(struct bw_fs *fs, struct bw_scan_ranges *ranges)
{
    struct chunks chunks = {fs, ranges};
    BW_TRY(bw_fs_chunks(fs, take_chunk, &chunks));
    if (ranges->left_out)
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "chunks claim more metadata than the devices have: %zu of "
                                     "them are not searched for tree blocks, or only in part",
                                     ranges->left_out));
    return NULL;
}
