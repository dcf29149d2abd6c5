/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks: which devices they take a piece of, which items say so, and where a logical address comes
 * to lie.
 *
 * With parity, the data stripes of a row come first and then P and Q, and each row starts one
 * device further than the row before. Storing computes parity from what changes: P gains old ^ new,
 * Q gains (old ^ new) times 2 to the power of the stripe's number, in the field of 256 elements
 * with polynomial 0x11d. Devices start out as zeros, whose parity is zero, so that rows nobody has
 * written to are right as well.
 */
#include <string.h>

#include "image_writer_internal.h"

/* Profiles. `stripes`: how many a chunk has; 0: as many as there are devices. */
static const struct profile {
    uint64_t flag;
    unsigned minimum_devices;
    unsigned stripes;
    unsigned copies;
    unsigned parities;
    bool on_one_device;
} profiles[] = {
    {0, 1, 1, 1, 0, false},
    {BW_GROUP_RAID0, 2, 0, 1, 0, false},
    {BW_GROUP_RAID1, 2, 2, 2, 0, false},
    {BW_GROUP_DUP, 1, 2, 2, 0, true},
    {BW_GROUP_RAID10, 4, 0, 2, 0, false},
    {BW_GROUP_RAID5, 3, 0, 1, 1, false},
    {BW_GROUP_RAID6, 4, 0, 1, 2, false},
    {BW_GROUP_RAID1C3, 3, 3, 3, 0, false},
    {BW_GROUP_RAID1C4, 4, 4, 4, 0, false},
};

static const struct profile *profile_of(uint64_t type)
{
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if ((type & BW_GROUP_PROFILE_MASK) == profiles[i].flag)
            return &profiles[i];
    iw_die("chunk type 0x%llx has no profile", (unsigned long long)type);
}

unsigned iw_minimum_devices(uint64_t profile)
{
    return profile_of(profile)->minimum_devices;
}

/* Stripes that hold different bytes. */
static unsigned data_stripes(const struct profile *profile, unsigned stripes)
{
    if (profile->parities)
        return stripes - profile->parities;
    return stripes / profile->copies;
}

/* Making chunks. */

/* A piece of a device that holds no superblock copy. */
static uint64_t take_extent(struct iw_image *image, struct iw_device *device)
{
    const uint64_t length = image->options.device_extent_length;
    if (!device->next)
        device->next = UINT64_C(1) << 20;
    for (unsigned copy = 1; copy <= BW_SUPERBLOCK_COPIES; copy++) {
        uint64_t superblock = iw_superblock_offset(copy);
        if (device->next < superblock + BW_STRIPE_LENGTH && superblock < device->next + length)
            device->next = superblock + BW_STRIPE_LENGTH;
    }
    uint64_t offset = device->next;
    device->next += length;
    device->used += length;
    if (device->size < device->next)
        device->size = device->next;
    return offset;
}

static unsigned stripes_of(const struct iw_image *image, const struct profile *profile)
{
    unsigned wanted =
        image->options.stripe_count ? image->options.stripe_count : image->device_count;
    unsigned stripes = profile->stripes ? profile->stripes : wanted;
    unsigned devices = profile->on_one_device ? 1 : stripes;
    if (profile->flag == BW_GROUP_RAID10)
        stripes &= ~1u;
    if (devices > image->device_count || stripes <= profile->parities || stripes < profile->copies)
        iw_die("%u devices do not do for profile 0x%llx", image->device_count,
               (unsigned long long)profile->flag);
    return stripes;
}

/* Every chunk starts on another device than the one before. */
static void make_chunk(struct iw_image *image, uint64_t type)
{
    const struct profile *profile = profile_of(type);
    unsigned stripes = stripes_of(image, profile);
    image->chunks = iw_grow(image->chunks, image->chunk_count, sizeof *image->chunks);
    struct iw_chunk *chunk = &image->chunks[image->chunk_count];
    *chunk = (struct iw_chunk){
        .logical = image->next_logical,
        .length = image->options.device_extent_length * data_stripes(profile, stripes),
        .type = type,
        .stripe_count = (uint16_t)stripes,
        .sub_stripes = profile->flag == BW_GROUP_RAID10 ? 2 : 1,
    };
    for (unsigned i = 0; i < stripes; i++) {
        size_t device =
            (image->chunk_count + (profile->on_one_device ? 0 : i)) % image->device_count;
        chunk->stripes[i].device = (unsigned)device;
        chunk->stripes[i].offset = take_extent(image, &image->devices[device]);
    }
    image->next_logical += chunk->length + image->options.chunk_gap;
    image->chunk_count++;
}

static void make_chunks_of(struct iw_image *image, size_t count, uint64_t type)
{
    for (size_t i = 0; i < count; i++)
        make_chunk(image, type);
}

void iw_make_chunks(struct iw_image *image, size_t system_chunks, size_t metadata_chunks)
{
    const struct iw_options *options = &image->options;
    const uint64_t mixed = options->mixed_groups ? BW_GROUP_DATA : 0;
    image->chunk_count = 0;
    image->next_logical = options->logical_base;
    for (unsigned i = 0; i < image->device_count; i++) {
        image->devices[i].next = image->devices[i].used = 0;
        image->devices[i].size = options->device_size;
    }
    make_chunks_of(image, options->data_chunks, BW_GROUP_DATA | options->data_profile);
    make_chunks_of(image, system_chunks, BW_GROUP_SYSTEM | options->system_profile);
    make_chunks_of(image, metadata_chunks, BW_GROUP_METADATA | mixed | options->profile);
}

size_t iw_chunk_count(const struct iw_image *image)
{
    return image->chunk_count;
}

const struct iw_chunk *iw_chunk(const struct iw_image *image, size_t index)
{
    return index < image->chunk_count ? &image->chunks[index] : NULL;
}

/* Describing chunks. */

void iw_fill_device_item(const struct iw_image *image, unsigned device,
                         struct bw_disk_device_item *item)
{
    const struct iw_device *from = &image->devices[device];
    *item = (struct bw_disk_device_item){
        .devid = bw_put64(from->devid),
        .total_bytes = bw_put64(from->size),
        .bytes_used = bw_put64(from->used),
        .io_align = bw_put32(image->options.sectorsize),
        .io_width = bw_put32(image->options.sectorsize),
        .sector_size = bw_put32(image->options.sectorsize),
    };
    iw_uuid(image, IW_UUID_DEVICE, from->devid, item->uuid);
    iw_metadata_uuid(image, item->fsid);
}

size_t iw_chunk_item(const struct iw_image *image, const struct iw_chunk *chunk, uint8_t *bytes)
{
    struct bw_disk_chunk *item = (void *)bytes;
    struct bw_disk_stripe *stripes = (void *)(item + 1);
    *item = (struct bw_disk_chunk){
        .length = bw_put64(chunk->length),
        .owner = bw_put64(BW_EXTENT_TREE),
        .stripe_length = bw_put64(BW_STRIPE_LENGTH),
        .type = bw_put64(chunk->type),
        .io_align = bw_put32(BW_STRIPE_LENGTH),
        .io_width = bw_put32(BW_STRIPE_LENGTH),
        .sector_size = bw_put32(image->options.sectorsize),
        .stripe_count = bw_put16(chunk->stripe_count),
        .sub_stripes = bw_put16(chunk->sub_stripes),
    };
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        uint64_t devid = image->devices[chunk->stripes[i].device].devid;
        stripes[i] =
            (struct bw_disk_stripe){bw_put64(devid), bw_put64(chunk->stripes[i].offset), {0}};
        iw_uuid(image, IW_UUID_DEVICE, devid, stripes[i].device_uuid);
    }
    return sizeof *item + chunk->stripe_count * sizeof *stripes;
}

static void describe_device_extents(struct iw_image *image, const struct iw_chunk *chunk)
{
    struct iw_disk_device_extent extent = {
        .chunk_tree = bw_put64(BW_CHUNK_TREE),
        .chunk_objectid = bw_put64(BW_FIRST_CHUNK),
        .chunk_offset = bw_put64(chunk->logical),
        .length = bw_put64(image->options.device_extent_length),
    };
    iw_uuid(image, IW_UUID_CHUNK_TREE, 0, extent.chunk_tree_uuid);
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        uint64_t devid = image->devices[chunk->stripes[i].device].devid;
        struct bw_key key = {devid, IW_DEVICE_EXTENT, chunk->stripes[i].offset};
        iw_generate(iw_find_tree(image, BW_DEVICE_TREE), key, &extent, sizeof extent);
    }
}

static void describe_chunk(struct iw_image *image, const struct iw_chunk *chunk)
{
    uint8_t bytes[sizeof(struct bw_disk_chunk) + IW_MAX_DEVICES * sizeof(struct bw_disk_stripe)];
    struct iw_disk_block_group group = {bw_put64(chunk->used), bw_put64(BW_FIRST_CHUNK),
                                        bw_put64(chunk->type)};
    size_t size = iw_chunk_item(image, chunk, bytes);
    iw_generate(iw_find_tree(image, BW_CHUNK_TREE),
                (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical}, bytes, size);
    iw_generate(iw_find_tree(image, BW_EXTENT_TREE),
                (struct bw_key){chunk->logical, IW_BLOCK_GROUP_ITEM, chunk->length}, &group,
                sizeof group);
    describe_device_extents(image, chunk);
}

void iw_describe_chunks(struct iw_image *image)
{
    struct iw_tree *chunk_tree = iw_find_tree(image, BW_CHUNK_TREE);
    iw_remove_generated(chunk_tree);
    iw_remove_generated(iw_find_tree(image, BW_DEVICE_TREE));
    iw_remove_generated(iw_find_tree(image, BW_EXTENT_TREE));
    for (unsigned i = 0; i < image->device_count; i++) {
        struct bw_disk_device_item item;
        iw_fill_device_item(image, i, &item);
        iw_generate(chunk_tree,
                    (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, image->devices[i].devid},
                    &item, sizeof item);
    }
    for (size_t i = 0; i < image->chunk_count; i++)
        describe_chunk(image, &image->chunks[i]);
}

/* From logical addresses to devices. */

const struct iw_chunk *iw_find_chunk(const struct iw_image *image, uint64_t logical)
{
    for (size_t i = 0; i < image->chunk_count; i++)
        if (logical >= image->chunks[i].logical &&
            logical - image->chunks[i].logical < image->chunks[i].length)
            return &image->chunks[i];
    iw_die("no chunk holds logical address %llu", (unsigned long long)logical);
}

static struct iw_place place(const struct iw_chunk *chunk, uint64_t stripe, uint64_t offset)
{
    return (struct iw_place){chunk->stripes[stripe].device, chunk->stripes[stripe].offset + offset};
}

/* Profiles whose stripes are all the same. */
static void map_mirrored(const struct iw_chunk *chunk, uint64_t offset, struct iw_mapping *mapping)
{
    mapping->copies = chunk->stripe_count;
    mapping->length = chunk->length - offset;
    for (unsigned i = 0; i < mapping->copies; i++)
        mapping->copy[i] = place(chunk, i, offset);
}

static void map_striped(const struct iw_chunk *chunk, const struct profile *profile,
                        uint64_t offset, struct iw_mapping *mapping)
{
    const unsigned stripes = chunk->stripe_count, data = data_stripes(profile, stripes);
    const uint64_t number = offset / BW_STRIPE_LENGTH, inside = offset % BW_STRIPE_LENGTH;
    const uint64_t row = number / data, index = number % data,
                   below = row * BW_STRIPE_LENGTH + inside;
    mapping->length = BW_STRIPE_LENGTH - inside;
    mapping->copies = profile->copies;
    mapping->parities = profile->parities;
    mapping->data_index = (unsigned)index;
    if (!profile->parities) {
        for (unsigned i = 0; i < profile->copies; i++)
            mapping->copy[i] = place(chunk, index * profile->copies + i, below);
        return;
    }
    mapping->copy[0] = place(chunk, (index + row) % stripes, below);
    for (unsigned i = 0; i < profile->parities; i++)
        mapping->parity[i] = place(chunk, (data + i + row) % stripes, below);
}

void iw_map(const struct iw_image *image, uint64_t logical, struct iw_mapping *mapping)
{
    const struct iw_chunk *chunk = iw_find_chunk(image, logical);
    const struct profile *profile = profile_of(chunk->type);
    *mapping = (struct iw_mapping){0};
    if (profile->stripes)
        map_mirrored(chunk, logical - chunk->logical, mapping);
    else
        map_striped(chunk, profile, logical - chunk->logical, mapping);
}

/* Storing. */

static void multiply_by_power_of_two(uint8_t *bytes, size_t length, unsigned power)
{
    for (size_t i = 0; i < length; i++)
        for (unsigned n = 0; n < power; n++)
            bytes[i] = (uint8_t)(bytes[i] << 1 ^ (bytes[i] & 0x80 ? 0x1d : 0));
}

static void update_parity(struct iw_image *image, const struct iw_mapping *mapping,
                          const uint8_t *old, const uint8_t *bytes, size_t length)
{
    uint8_t change[BW_STRIPE_LENGTH], parity[BW_STRIPE_LENGTH];
    for (size_t i = 0; i < length; i++)
        change[i] = bytes[i] ^ (old ? old[i] : 0);
    for (unsigned which = 0; which < mapping->parities; which++) {
        const struct iw_place *at = &mapping->parity[which];
        if (which == 1)
            multiply_by_power_of_two(change, length, mapping->data_index);
        iw_device_read(image, at->device, at->offset, parity, length);
        for (size_t i = 0; i < length; i++)
            parity[i] ^= change[i];
        iw_device_write(image, at->device, at->offset, parity, length);
    }
}

void iw_store(struct iw_image *image, uint64_t logical, const uint8_t *old, const uint8_t *bytes,
              size_t length)
{
    while (length) {
        struct iw_mapping mapping;
        iw_map(image, logical, &mapping);
        size_t piece = mapping.length < length ? (size_t)mapping.length : length;
        for (unsigned i = 0; i < mapping.copies; i++)
            iw_device_write(image, mapping.copy[i].device, mapping.copy[i].offset, bytes, piece);
        if (mapping.parities)
            update_parity(image, &mapping, old, bytes, piece);
        logical += piece;
        bytes += piece;
        old = old ? old + piece : NULL;
        length -= piece;
    }
}
