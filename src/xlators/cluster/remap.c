/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/remap: the second level of logical addresses of file systems with the remap-tree feature.
 * Relocation keeps the old addresses of extents and records the new ones in the remap tree; this
 * layer looks it up. Only in the graph when the superblock has the feature.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "xlators/classes.h"
#include "xlators/pieces.h"

BW_VECTOR(moved_ranges, struct bw_moved_range);

struct remap {
    const struct bw_piece_map *pieces; /* the first member, for bw_pieces_*() */
    struct moved_ranges ranges;        /* ascending */
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

/* The current location of an address. */
static struct bw_error *locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint64_t wanted, struct bw_below *below)
{
    const struct remap *remap = bw_xlator_private(xlator);
    const struct bw_moved_range *ranges = remap->ranges.items;
    const size_t count = remap->ranges.count;
    const size_t next = BW_FIRST_INDEX(i, count, ranges[i].from > address);
    const struct bw_moved_range *range = next ? &ranges[next - 1] : NULL;
    (void)frame, (void)wanted;
    *below = (struct bw_below){.layer = bw_xlator_child(xlator, 0),
                               .offset = address,
                               .length = next < count ? ranges[next].from - address : UINT64_MAX};
    if (range && address - range->from < range->length) {
        below->offset = range->to + (address - range->from);
        below->length = range->length - (address - range->from);
    }
    return NULL;
}

static const struct bw_piece_map pieces = {.locate = locate};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct remap *remap = bw_xlator_private(xlator);
    remap->pieces = &pieces;
    return NULL;
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    struct bw_below below;
    BW_TRY(locate(frame, xlator, address, length, &below));
    return bw_wind_map(frame, below.layer, below.offset, (uint32_t)bw_min(length, below.length),
                       copy, reply);
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
    .operations = {.init = init,
                   .fini = fini,
                   .control = control,
                   .read = bw_pieces_read,
                   .map = map,
                   .advise = bw_pieces_advise,
                   .dump = dump},
};
