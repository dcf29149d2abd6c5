/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/remap: the second level of logical addresses of file systems with the remap-tree feature.
 * Relocation keeps the old addresses of extents and records the new ones in the remap tree; this
 * layer looks it up. Only in the graph when the superblock has the feature.
 */
#include <inttypes.h>

#include "base/search.h"
#include "base/vector.h"
#include "xlators/classes.h"

BW_VECTOR(moved_ranges, struct bw_moved_range);

struct remap {
    struct moved_ranges ranges; /* ascending */
};

static void fini(struct bw_xlator *xlator)
{
    struct remap *remap = bw_xlator_private(xlator);
    moved_ranges_free(&remap->ranges);
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct remap *remap = bw_xlator_private(xlator);
    const struct bw_moved_range *new = control->moved;
    const struct bw_moved_range *last = NULL;
    if (remap->ranges.count)
        last = &remap->ranges.items[remap->ranges.count - 1];
    if (new->length == 0 || new->from + new->length < new->from ||
        new->to + new->length < new->to || (last && new->from - last->from < last->length) ||
        (last && new->from < last->from))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "remap of %" PRIu64 " bytes at %" PRIu64 ": invalid range",
                               new->length, new->from);
    return moved_ranges_push(&remap->ranges, *new);
}

/* The current location of an address; `length` is cut to the contiguous part. */
static uint64_t translate_address(const struct remap *remap, uint64_t address, uint32_t *length)
{
    const struct bw_moved_range *ranges = remap->ranges.items;
    const size_t count = remap->ranges.count;
    const size_t next = BW_FIRST_INDEX(i, count, ranges[i].from > address);
    uint64_t limit = next < count ? ranges[next].from - address : UINT64_MAX;
    const struct bw_moved_range *range = next ? &ranges[next - 1] : NULL;
    bool moved = range && address - range->from < range->length;
    if (moved)
        limit = range->length - (address - range->from);
    if (*length > limit)
        *length = (uint32_t)limit;
    if (moved)
        address = range->to + (address - range->from);
    return address;
}

/* A request in one range is passed on; others are read part by part. */
static bool move_request(const struct bw_frame *frame, struct bw_xlator *xlator,
                         struct bw_request *request, struct bw_request *copy)
{
    uint32_t length = request->length;
    copy->address = translate_address(bw_xlator_private(xlator), request->address, &length);
    if (length == request->length)
        return true;
    for (uint32_t done = 0; done < request->length && !request->error; done += length) {
        struct bw_request part = *request;
        length = request->length - done;
        part.address =
            translate_address(bw_xlator_private(xlator), request->address + done, &length);
        part.length = length;
        part.buffer = (uint8_t *)request->buffer + done;
        part.kind = BW_REQUEST_RAW; /* a piece of a block is no block */
        part.keep = false;
        part.expectation = NULL;
        part.data = NULL;
        bw_wind(frame, bw_xlator_child(xlator, 0), &part, 1);
        request->error = part.error;
        request->rebuilt |= part.rebuilt;
    }
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind_copies(frame, xlator, requests, count, move_request);
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    address = translate_address(bw_xlator_private(xlator), address, &length);
    return bw_wind_map(frame, bw_xlator_child(xlator, 0), address, length, copy, reply);
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t length = ranges[i].length > UINT32_MAX ? UINT32_MAX : (uint32_t)ranges[i].length;
        struct bw_range below = {
            .address = translate_address(bw_xlator_private(xlator), ranges[i].address, &length)};
        below.length = length;
        bw_wind_advise(frame, bw_xlator_child(xlator, 0), &below, 1, copy);
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct remap *remap = bw_xlator_private(xlator);
    bw_json_number(json, "ranges", remap->ranges.count);
}

const struct bw_xlator_class bw_cluster_remap_class = {
    .type = "cluster/remap",
    .description = "finds extents that relocation has moved (remap-tree feature)",
    .page =
        "On a file system with the remap-tree feature, a balance moves data without changing "
        "the addresses that point at it. The remap tree records the new location of each range. "
        "This layer reads each range from its current location.\n\n"
        "The default graph contains it above cluster/chunk-map if the image has the feature.",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .private_size = sizeof(struct remap),
    .takes = BW_TAKES(BW_CONTROL_MOVED_RANGE),
    .operations = {.fini = fini,
                   .control = control,
                   .read = read_requests,
                   .map = map,
                   .advise = advise,
                   .dump = dump},
};
