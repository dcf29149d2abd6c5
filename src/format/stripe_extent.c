/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding of RAID_STRIPE items. */
#include "format/stripe_extent.h"

#include <inttypes.h>

/* Kernels before 6.11 wrote this many bytes, of no use now, before the places. */
enum { OLD_HEAD = 8 };

bool bw_chunk_in_stripe_tree(uint64_t type)
{
    const uint64_t types = BW_GROUP_DATA | BW_GROUP_METADATA | BW_GROUP_SYSTEM;
    const uint64_t profiles = BW_GROUP_DUP | BW_GROUP_RAID0 | BW_GROUP_RAID1 | BW_GROUP_RAID1C3 |
                              BW_GROUP_RAID1C4 | BW_GROUP_RAID10;
    return (type & types) == BW_GROUP_DATA && (type & profiles);
}

static struct bw_error *corrupt(const struct bw_item *item, const char *what, uint64_t value)
{
    return bw_error_create(BW_ERROR_CORRUPT, "raid stripe extent %" PRIu64 ": invalid %s %" PRIu64,
                           item->key.objectid, what, value);
}

struct bw_error *bw_stripe_extent_decode(const struct bw_item *item,
                                         struct bw_stripe_extent *extent)
{
    const struct bw_disk_raid_stride *strides = (const void *)item->data;
    size_t head = item->size % sizeof *strides, count = item->size / sizeof *strides;
    uint64_t logical = item->key.objectid, length = item->key.offset;
    if (head == OLD_HEAD)
        strides = (const void *)(item->data + OLD_HEAD);
    if ((head && head != OLD_HEAD) || count == 0 || count > BW_STRIPE_PLACES)
        return corrupt(item, "size", item->size);
    if (length == 0 || logical + length < logical)
        return corrupt(item, "length", length);
    struct bw_stripe_extent decoded = {
        .logical = logical, .length = length, .count = (uint16_t)count};
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = bw_get64(strides[i].physical);
        if (offset + length < offset)
            return corrupt(item, "place", offset);
        decoded.places[i].devid = bw_get64(strides[i].devid);
        decoded.places[i].offset = offset;
    }
    *extent = decoded;
    return NULL;
}
