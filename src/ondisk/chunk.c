/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunk items, the table of RAID profiles, and items of the raid stripe tree. */
#include "ondisk/chunk.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "ondisk/disk_items.h"

/* Parity is computed in a field of 256 elements: no more stripes than that can share a row. */
static const struct bw_raid_profile profiles[] = {
    {"single", 0, 1, 1, 1, 0, false},
    {"RAID0", BW_GROUP_RAID0, 1, UINT16_MAX, 1, 0, true},
    {"RAID1", BW_GROUP_RAID1, 2, 2, 0, 0, false},
    {"DUP", BW_GROUP_DUP, 2, 2, 0, 0, false},
    {"RAID10", BW_GROUP_RAID10, 2, UINT16_MAX, 2, 0, true},
    {"RAID5", BW_GROUP_RAID5, 2, 255, 1, 1, true},
    {"RAID6", BW_GROUP_RAID6, 3, 255, 1, 2, true},
    {"RAID1C3", BW_GROUP_RAID1C3, 3, 3, 0, 0, false},
    {"RAID1C4", BW_GROUP_RAID1C4, 4, 4, 0, 0, false},
};

const struct bw_raid_profile *bw_raid_profile_of(uint64_t flags)
{
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if ((flags & BW_GROUP_PROFILE_MASK) == profiles[i].flag)
            return &profiles[i];
    return NULL;
}

static struct bw_error *corrupt_chunk(uint64_t logical, const char *member, uint64_t value)
{
    return bw_error_create(BW_ERROR_CORRUPT, "chunk %" PRIu64 ": invalid %s %" PRIu64, logical,
                           member, value);
}

/* Stripes of one row must lie on different devices, or parity protects nothing. */
static bool has_device_twice(const struct bw_chunk *chunk)
{
    for (unsigned i = 0; i < chunk->stripe_count; i++)
        for (unsigned j = 0; j < i; j++)
            if (bw_get64(chunk->stripes[i].devid) == bw_get64(chunk->stripes[j].devid))
                return true;
    return false;
}

size_t bw_chunk_item_size(const uint8_t *data, size_t size)
{
    const struct bw_disk_chunk *disk = (const void *)data;
    if (size < sizeof *disk)
        return 0;
    size_t wanted = sizeof *disk + bw_get16(disk->stripe_count) * sizeof(struct bw_disk_stripe);
    return wanted <= size ? wanted : 0;
}

bool bw_system_chunk_item(const uint8_t *list, size_t size, size_t *at, struct bw_item *item)
{
    const struct bw_disk_key *key = (const void *)(list + *at);
    const size_t left = size - *at;
    item->size = 0;
    if (left >= sizeof *key)
        item->size = (uint32_t)bw_chunk_item_size(list + *at + sizeof *key, left - sizeof *key);
    if (!item->size)
        return false;
    item->key = bw_key_decode(key);
    item->data = list + *at + sizeof *key;
    *at += sizeof *key + item->size;
    return true;
}

bool bw_system_chunk_append(uint8_t *list, uint32_t *size, const struct bw_item *item)
{
    const struct bw_disk_key key = bw_key_encode(&item->key);
    if (sizeof key + item->size > BW_SYSTEM_CHUNK_ARRAY_SIZE - *size)
        return false;
    memcpy(list + *size, &key, sizeof key);
    memcpy(list + *size + sizeof key, item->data, item->size);
    *size += (uint32_t)(sizeof key + item->size);
    return true;
}

bool bw_chunk_is_remapped_away(const uint8_t *data, size_t size)
{
    const struct bw_disk_chunk *disk = (const void *)data;
    return size >= sizeof *disk && (bw_get64(disk->type) & BW_GROUP_REMAPPED) &&
           bw_get16(disk->stripe_count) == 0;
}

struct bw_error *bw_chunk_decode(uint64_t logical, const uint8_t *data, size_t size,
                                 struct bw_chunk *chunk)
{
    const struct bw_disk_chunk *disk = (const void *)data;
    if (!bw_chunk_item_size(data, size))
        return corrupt_chunk(logical, "item size", size);
    *chunk = (struct bw_chunk){
        .logical = logical,
        .length = bw_get64(disk->length),
        .type = bw_get64(disk->type),
        .profile = bw_raid_profile_of(bw_get64(disk->type)),
        .stripe_count = bw_get16(disk->stripe_count),
        .stripes = (const void *)(disk + 1),
    };
    const struct bw_raid_profile *profile = chunk->profile;
    if (chunk->length == 0 || chunk->length % BW_MIN_SECTORSIZE ||
        logical + chunk->length < logical)
        return corrupt_chunk(logical, "length", chunk->length);
    if (bw_get64(disk->stripe_length) != BW_STRIPE_LENGTH)
        return corrupt_chunk(logical, "stripe length", bw_get64(disk->stripe_length));
    if (!profile)
        return corrupt_chunk(logical, "profile bits", chunk->type & BW_GROUP_PROFILE_MASK);
    if (chunk->stripe_count < profile->minimum_stripes ||
        chunk->stripe_count > profile->maximum_stripes)
        return corrupt_chunk(logical, "stripe count", chunk->stripe_count);
    if (profile->parity_stripes && has_device_twice(chunk))
        return corrupt_chunk(logical, "stripes: one device twice in a row of", chunk->stripe_count);
    if (profile->flag == BW_GROUP_RAID10 &&
        (chunk->stripe_count % 2 || bw_get16(disk->sub_stripes) != 2))
        return corrupt_chunk(logical, "sub stripes", bw_get16(disk->sub_stripes));
    return NULL;
}

/* Kernels before 6.11 wrote this many bytes, of no use now, before the places. */
enum { OLD_HEAD = 8 };

bool bw_chunk_in_stripe_tree(uint64_t type)
{
    const uint64_t types = BW_GROUP_DATA | BW_GROUP_METADATA | BW_GROUP_SYSTEM;
    const uint64_t striped = BW_GROUP_DUP | BW_GROUP_RAID0 | BW_GROUP_RAID1 | BW_GROUP_RAID1C3 |
                             BW_GROUP_RAID1C4 | BW_GROUP_RAID10;
    return (type & types) == BW_GROUP_DATA && (type & striped);
}

static struct bw_error *corrupt_stripe(const struct bw_item *item, const char *member,
                                       uint64_t value)
{
    return bw_error_create(BW_ERROR_CORRUPT, "raid stripe extent %" PRIu64 ": invalid %s %" PRIu64,
                           item->key.objectid, member, value);
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
        return corrupt_stripe(item, "size", item->size);
    if (length == 0 || logical + length < logical)
        return corrupt_stripe(item, "length", length);
    struct bw_stripe_extent decoded = {
        .logical = logical, .length = length, .count = (uint16_t)count};
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = bw_get64(strides[i].physical);
        if (offset + length < offset)
            return corrupt_stripe(item, "place", offset);
        decoded.places[i].devid = bw_get64(strides[i].devid);
        decoded.places[i].offset = offset;
    }
    *extent = decoded;
    return NULL;
}

struct bw_error *bw_moved_range_decode(const struct bw_item *item, struct bw_moved_range *range)
{
    const struct bw_disk_remap *disk = (const void *)item->data;
    const uint64_t from = item->key.objectid, length = item->key.offset;
    if (item->size < sizeof *disk)
        return bw_error_create(BW_ERROR_CORRUPT, "remap of %" PRIu64 ": the item is cut off", from);
    const uint64_t to = bw_get64(disk->address);
    if (length == 0 || from + length < from || to + length < to)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "remap of %" PRIu64 " bytes at %" PRIu64 ": invalid range", length,
                               from);
    *range = (struct bw_moved_range){from, length, to};
    return NULL;
}

static unsigned rank_of(uint64_t type)
{
    if (type & BW_GROUP_DATA)
        return 0;
    if (type & BW_GROUP_METADATA)
        return 1;
    return type & BW_GROUP_SYSTEM ? 2 : 3;
}

int bw_group_type_compare(uint64_t left, uint64_t right)
{
    if (rank_of(left) != rank_of(right))
        return rank_of(left) < rank_of(right) ? -1 : 1;
    return (left > right) - (left < right);
}
