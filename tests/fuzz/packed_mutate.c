/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mutations of packed images. They find superblocks, tree blocks and items, and mostly change
 * single members. Usually, all copies of a tree block are changed; otherwise, the good copy would
 * be read.
 */
#include "fuzz/edits.h"
#include "fuzz/packed.h"

/* The mutator of libFuzzer, which uses the values that the program compares its input with. Other
 * fuzzers may lack it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room) __attribute__((weak));

enum { BLOCKS = 4096 };

struct mutation {
    struct packed_image *image;
    uint64_t random;
    uint32_t nodesize;
    const struct packed_place *blocks[BLOCKS];
    size_t block_count;
};

/* splitmix64 */
static uint64_t next(struct mutation *mutation)
{
    uint64_t z = (mutation->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static size_t below(struct mutation *mutation, size_t limit)
{
    return (size_t)(next(mutation) % limit);
}

static void find_blocks(struct mutation *mutation)
{
    const struct packed_image *image = mutation->image;
    mutation->nodesize = packed_nodesize(image);
    for (size_t i = 0; i < image->page_count && mutation->block_count < BLOCKS; i++)
        if (packed_block(image, &image->pages[i]))
            mutation->blocks[mutation->block_count++] = &image->pages[i];
}

/* Stays a block also when a change has taken the UUID by which it was found. */
static uint8_t *block_number(const struct mutation *mutation, size_t number)
{
    const struct packed_place *place = mutation->blocks[number];
    return mutation->image->devices[place->device].bytes + place->offset;
}

static uint8_t *any_block(struct mutation *mutation)
{
    return block_number(mutation, below(mutation, mutation->block_count));
}

static size_t entry_size(const struct bw_disk_header *header)
{
    return header->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
}

/* Any slot of a block that fits; NULL if it has none. */
static uint8_t *any_slot(struct mutation *mutation, uint8_t *block)
{
    const struct bw_disk_header *header = (const void *)block;
    size_t fit = (mutation->nodesize - sizeof *header) / entry_size(header);
    size_t count = bw_get32(header->item_count);
    count = count < fit ? count : fit;
    return count ? block + sizeof *header + below(mutation, count) * entry_size(header) : NULL;
}

/* The bytes of a random item of a leaf; NULL if there are none. */
static uint8_t *any_item(struct mutation *mutation, uint8_t *block, size_t *size, uint8_t *type)
{
    const struct bw_disk_item *item = (const void *)any_slot(mutation, block);
    const size_t head = sizeof(struct bw_disk_header), space = mutation->nodesize - head;
    if (!item || ((const struct bw_disk_header *)block)->level)
        return NULL;
    size_t start = bw_get32(item->offset);
    if (start >= space || !bw_get32(item->size))
        return NULL;
    *size = bw_get32(item->size) < space - start ? bw_get32(item->size) : space - start;
    *type = item->key.type;
    return block + head + start;
}

/* Numbers. */

static uint64_t new_value(struct mutation *mutation, uint64_t old)
{
    const struct bw_disk_header *other;
    const struct bw_disk_key *key;
    if (!mutation->block_count)
        return interesting_value(next(mutation));
    switch (below(mutation, 8)) {
    case 0:
        return next(mutation);
    case 1:
    case 2:
        return interesting_value(next(mutation));
    case 3:
        other = (const void *)any_block(mutation);
        return bw_get64(other->bytenr);
    case 4:
        return old + below(mutation, 256) - 128;
    case 5:
        return old ^ UINT64_C(1) << below(mutation, 64);
    case 6:
        return below(mutation, 1024);
    default:
        key = (const void *)any_slot(mutation, any_block(mutation));
        return key ? bw_get64(below(mutation, 2) ? key->objectid : key->offset) : 0;
    }
}

static void change_number(struct mutation *mutation, uint8_t *at, size_t width)
{
    put_number(at, width, new_value(mutation, get_number(at, width)));
}

static void change_field(struct mutation *mutation, uint8_t *structure, const struct field *table)
{
    struct field field = pick_field(table, (unsigned)below(mutation, 64));
    change_number(mutation, structure + field.offset, field.size);
}

/* Changes of a block. */

static void change_header(struct mutation *mutation, uint8_t *block)
{
    change_field(mutation, block, header_fields);
}

static void change_slot(struct mutation *mutation, uint8_t *block)
{
    uint8_t *slot = any_slot(mutation, block);
    if (slot)
        change_field(mutation, slot,
                     ((const struct bw_disk_header *)block)->level ? pointer_fields : slot_fields);
}

static void change_item(struct mutation *mutation, uint8_t *block)
{
    static const uint8_t widths[] = {1, 2, 4, 8};
    size_t size;
    uint8_t type, *item = any_item(mutation, block, &size, &type);
    if (!item)
        return;
    struct field field = pick_field(fields_of_type(type), (unsigned)below(mutation, 64));
    if (below(mutation, 3) == 0 || (size_t)field.offset + field.size > size) {
        field.size = widths[below(mutation, 4)];
        field.offset = (uint16_t)(below(mutation, size) & ~(field.size - 1u));
    }
    if ((size_t)field.offset + field.size <= size)
        change_number(mutation, item + field.offset, field.size);
}

static void change_bytes(struct mutation *mutation, uint8_t *block)
{
    size_t size;
    uint8_t type, *item = any_item(mutation, block, &size, &type);
    if (!item)
        return;
    size_t start = below(mutation, size), length = 1 + below(mutation, 32);
    length = length < size - start ? length : size - start;
    if (LLVMFuzzerMutate)
        LLVMFuzzerMutate(item + start, length, length);
    else
        item[start] = (uint8_t)next(mutation);
}

/* Overwrites an item with the bytes of another one, of any leaf. */
static void copy_item(struct mutation *mutation, uint8_t *block)
{
    size_t size, other_size;
    uint8_t type, *item = any_item(mutation, block, &size, &type);
    uint8_t *other =
        any_item(mutation, below(mutation, 2) ? block : any_block(mutation), &other_size, &type);
    if (item && other)
        memmove(item, other, size < other_size ? size : other_size);
}

static void copy_slot(struct mutation *mutation, uint8_t *block)
{
    uint8_t *to = any_slot(mutation, block), *from = any_slot(mutation, block);
    if (to)
        memmove(to, from, entry_size((const void *)block));
}

/* One item or pointer less: the following move up, so that the order of keys is kept. */
static void remove_slot(struct mutation *mutation, uint8_t *block)
{
    struct bw_disk_header *header = (void *)block;
    uint8_t *slot = any_slot(mutation, block);
    size_t entry = entry_size(header), count = bw_get32(header->item_count);
    if (!slot || count > (mutation->nodesize - sizeof *header) / entry)
        return;
    uint8_t *end = block + sizeof *header + count * entry;
    memmove(slot, slot + entry, (size_t)(end - slot) - entry);
    header->item_count = bw_put32((uint32_t)count - 1);
}

/* Another child, or for a root in the root tree another tree. */
static void link_block(struct mutation *mutation, uint8_t *block)
{
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_key_pointer *pointer = (void *)any_slot(mutation, block);
    struct bw_disk_header *child = (void *)any_block(mutation);
    const struct bw_disk_key *first = (const void *)(child + 1);
    if (!pointer || !header->level)
        return;
    pointer->bytenr = child->bytenr;
    pointer->generation = child->generation;
    if (below(mutation, 2))
        pointer->key = *first;
}

static void change_raw(struct mutation *mutation, uint8_t *block)
{
    change_number(mutation, block + below(mutation, mutation->nodesize - 8),
                  1 + below(mutation, 8));
}

typedef void block_change(struct mutation *mutation, uint8_t *block);

static block_change *const block_changes[] = {
    change_item,  change_item, change_item, change_slot, change_slot, change_header, change_bytes,
    change_bytes, copy_item,   copy_slot,   remove_slot, link_block,  change_raw,
};

/* All other copies of a block become what it is now. Its address may have changed. */
static void copy_to_mirrors(struct mutation *mutation, const uint8_t *block, bw_le64 bytenr)
{
    for (size_t i = 0; i < mutation->block_count; i++) {
        uint8_t *other = block_number(mutation, i);
        if (other != block &&
            memcmp(&((struct bw_disk_header *)other)->bytenr, &bytenr, sizeof bytenr) == 0)
            memcpy(other, block, mutation->nodesize);
    }
}

/* The bytes that were zero may lie in pages that had none. */
static void add_block(struct mutation *mutation, const struct packed_place *place)
{
    struct packed_place start = *place;
    for (uint32_t at = 0; at < mutation->nodesize; at += PACKED_PAGE)
        packed_add_page(mutation->image, start.device, start.offset + at);
}

static void change_block(struct mutation *mutation)
{
    size_t number = below(mutation, mutation->block_count);
    uint8_t *block = block_number(mutation, number);
    bw_le64 bytenr = ((struct bw_disk_header *)block)->bytenr;
    block_changes[below(mutation, sizeof block_changes / sizeof *block_changes)](mutation, block);
    if (below(mutation, 8))
        copy_to_mirrors(mutation, block, bytenr);
    add_block(mutation, mutation->blocks[number]);
}

static void change_superblocks(struct mutation *mutation)
{
    struct packed_image *image = mutation->image;
    const uint64_t seed = next(mutation);
    const bool all = below(mutation, 4);
    for (size_t i = 0; i < image->page_count; i++) {
        struct bw_disk_superblock *superblock = packed_superblock(image, &image->pages[i]);
        uint8_t *chunks = superblock ? superblock->system_chunk_array : NULL;
        if (!superblock || (!all && below(mutation, 2)))
            continue;
        mutation->random = seed; /* all copies alike */
        if (below(mutation, 3))
            change_field(mutation, (uint8_t *)superblock, superblock_fields);
        else
            change_number(mutation, chunks + below(mutation, 300), 1 + below(mutation, 8));
    }
}

/* Changes a number outside of superblocks and tree blocks, for example in the pieces of a dump or
 * in a partition table. */
static void change_page(struct mutation *mutation)
{
    struct packed_image *image = mutation->image;
    if (!image->page_count)
        return;
    const struct packed_place *page = &image->pages[below(mutation, image->page_count)];
    change_number(mutation,
                  image->devices[page->device].bytes + page->offset +
                      below(mutation, PACKED_PAGE - 8),
                  1 + below(mutation, 8));
}

size_t packed_mutate(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutation mutation = {.image = packed_image(), .random = seed};
    if (!packed_unpack(mutation.image, data, size))
        return 0;
    find_blocks(&mutation);
    if (below(&mutation, 4) == 0)
        mutation.image->command = (uint8_t)next(&mutation);
    for (size_t left = 1 + below(&mutation, 4); left > 0; left--) {
        if (mutation.block_count && below(&mutation, 40))
            change_block(&mutation);
        else if (!mutation.block_count || below(&mutation, 4) == 0)
            change_page(&mutation);
        else
            change_superblocks(&mutation);
    }
    packed_sort(mutation.image);
    return packed_pack(mutation.image, data, room);
}
