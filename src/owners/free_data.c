/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contents of free ranges, which nothing verifies. A range is read in batches of requests through
 * all layers or, if no chunk has it, from its device. Where a request fails, its sectors are read
 * one by one, so that an unreadable sector costs only itself. Holes of the image files and the part
 * of a crafted chunk beyond the end of all devices are delivered without reading.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "btrfs-walk/space.h"
#include "fs/fs.h"
#include "fs/image.h"
#include "graph/wind.h"
#include "ondisk/chunk.h"

enum {
    REQUEST = 64 << 10, /* bytes; no request crosses a multiple of it */
    REQUESTS = 16,      /* of a batch */
};

/* A range that is being read. */
struct free_read {
    struct bw_fs *fs;
    struct bw_xlator *layer; /* the top of all layers, or of a device */
    bool is_device;
    uint64_t address; /* of the range, in the address space of the layer */
    bw_data_visitor *visit;
    void *context;
};

static struct bw_xlator *find_device(const struct bw_fs *fs, uint64_t devid)
{
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role != BW_IMAGE_UNUSED && fs->images[i].superblock.device.devid == devid)
            return fs->images[i].top;
    return NULL;
}

/* Delivers `length` bytes at an offset of the range; `error` is consumed. */
static struct bw_error *deliver_part(const struct free_read *read, uint64_t offset, uint64_t length,
                                     const uint8_t *bytes, struct bw_error *error)
{
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    struct bw_data_part part = {
        .kind = BW_DATA_BAD, .offset = offset, .length = length, .error = error};
    if (!error) {
        part.kind = bytes ? BW_DATA_BYTES : BW_DATA_HOLE;
        part.bytes = bytes;
    }
    struct bw_error *failure = read->visit(read->context, &part);
    bw_error_free(error);
    return failure;
}

static struct bw_request request_at(const struct free_read *read, uint64_t offset, uint64_t length,
                                    uint8_t *bytes)
{
    const uint64_t address = read->address + offset;
    const uint64_t room = REQUEST - address % REQUEST;
    return (struct bw_request){.kind = read->is_device ? BW_REQUEST_RAW : BW_REQUEST_DATA,
                               .length = (uint32_t)bw_min(length, room),
                               .address = address,
                               .buffer = bytes};
}

/* A range of bytes that could not be read as a whole: the good sectors of it are read alone. */
static struct bw_error *read_sectors(const struct free_read *read, struct bw_request failed)
{
    const uint32_t sectorsize = read->fs->superblock.sectorsize;
    const uint64_t begin = failed.address - read->address;
    bw_error_free(failed.error);
    for (uint32_t at = 0; at < failed.length; at += sectorsize) {
        const uint32_t rest = failed.length - at;
        struct bw_request request =
            request_at(read, begin + at, rest < sectorsize ? rest : sectorsize, failed.buffer);
        bw_wind(NULL, read->layer, &request, 1);
        BW_TRY(deliver_part(read, begin + at, request.length, failed.buffer, request.error));
    }
    return NULL;
}

/* A crafted chunk may be much larger than all devices: the rest is not read piece by piece. Sets
 * the length of the part that may be readable. Trees may move data elsewhere. */
static struct bw_error *cut_to_devices(const struct free_read *read, uint64_t *length)
{
    const struct bw_fs *fs = read->fs;
    uint64_t size = 0; /* of all images */
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].top)
            size += bw_xlator_size(fs->images[i].top);
    if (read->is_device || fs->stripes || fs->superblock.remap_root.bytenr || *length <= size)
        return NULL;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(read->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        uint64_t longest = 0, end; /* of the stripes, as far as their devices have them */
        if (read->address - chunk->logical >= chunk->length)
            continue;
        for (unsigned k = 0; k < chunk->stripe_count; k++) {
            const struct bw_stripe_info *stripe = &chunk->stripes[k];
            struct bw_xlator *device = find_device(fs, stripe->devid);
            const uint64_t device_size = device ? bw_xlator_size(device) : 0;
            if (device_size > stripe->offset && device_size - stripe->offset > longest)
                longest = device_size - stripe->offset;
        }
        const uint64_t rows = longest / BW_STRIPE_LENGTH + (longest % BW_STRIPE_LENGTH != 0),
                       row_length = BW_STRIPE_LENGTH * bw_chunk_different_stripes(chunk);
        if (__builtin_mul_overflow(rows, row_length, &end) || end >= chunk->length)
            continue;
        end += chunk->logical;
        const uint64_t room = end > read->address ? end - read->address : 0;
        *length = *length < room ? *length : room;
    }
    return NULL;
}

struct bw_error *bw_free_read(struct bw_fs *fs, const struct bw_free_range *range,
                              bw_data_visitor *visit, void *context)
{
    const bool is_device = range->kind == BW_FREE_UNALLOCATED;
    const uint64_t touched = range->length / REQUEST + 2;
    struct free_read read = {.fs = fs,
                             .layer = is_device ? find_device(fs, range->devid) : fs->reader.top,
                             .is_device = is_device,
                             .address = is_device ? range->offset : range->logical,
                             .visit = visit,
                             .context = context};
    if (!read.layer)
        return deliver_part(&read, 0, range->length, NULL,
                            bw_error_create(BW_ERROR_MISSING_DEVICE,
                                            "device %" PRIu64 " is missing", range->devid));
    BW_AUTO_FREE uint8_t *bytes =
        malloc((size_t)(touched < REQUESTS ? touched : REQUESTS) * REQUEST);
    if (!bytes)
        return bw_error_no_memory();

    uint64_t readable = range->length, offset = 0;
    BW_TRY(cut_to_devices(&read, &readable));
    while (offset < readable) {
        /* The image file of a device may have holes. */
        if (is_device) {
            const uint64_t stored =
                bw_xlator_next_stored(read.layer, read.address + offset) - read.address;
            const uint64_t next = stored < readable ? stored : readable;
            if (next > offset)
                BW_TRY(deliver_part(&read, offset, next - offset, NULL, NULL));
            offset = next;
        }

        struct bw_request requests[REQUESTS];
        struct bw_error *error = NULL;
        unsigned count = 0;
        for (; count < REQUESTS && offset < readable; offset += requests[count++].length)
            requests[count] =
                request_at(&read, offset, readable - offset, bytes + (size_t)count * REQUEST);
        if (count)
            bw_wind(NULL, read.layer, requests, count);
        for (unsigned i = 0; i < count; i++) {
            if (error)
                bw_error_free(requests[i].error);
            else if (requests[i].error)
                error = read_sectors(&read, requests[i]);
            else
                error = deliver_part(&read, requests[i].address - read.address, requests[i].length,
                                     requests[i].buffer, NULL);
        }
        BW_TRY(error);
    }
    if (readable == range->length)
        return NULL;
    return deliver_part(
        &read, readable, range->length - readable, NULL,
        bw_error_create(BW_ERROR_CORRUPT, "the devices of its chunk end before it"));
}
