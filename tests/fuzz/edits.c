/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Doing the edits: blocks in memory, superblocks and single copies on the devices. */
#include "fuzz/edits.h"

#include <string.h>

/* Blocks. */

static struct bw_disk_header *header_of(uint8_t *block)
{
    return (struct bw_disk_header *)block;
}

static size_t entry_size(uint8_t *block)
{
    return header_of(block)->level ? sizeof(struct bw_disk_key_pointer)
                                   : sizeof(struct bw_disk_item);
}

/* How many slots a block has, as far as they fit. */
static size_t slot_count(const struct base_image *base, uint8_t *block)
{
    size_t fit = (base->nodesize - sizeof(struct bw_disk_header)) / entry_size(block);
    size_t count = bw_get32(header_of(block)->item_count);
    return count < fit ? count : fit;
}

/* The slot of an edit; NULL if the block has none. */
static uint8_t *slot_at(const struct base_image *base, uint8_t *block, unsigned slot)
{
    size_t count = slot_count(base, block);
    return count ? block + sizeof(struct bw_disk_header) + slot % count * entry_size(block) : NULL;
}

/* The bytes of an item inside the block; NULL if there are none. */
static uint8_t *item_at(const struct base_image *base, uint8_t *block, unsigned slot, size_t *size,
                        uint8_t *type)
{
    const struct bw_disk_item *item = (const void *)slot_at(base, block, slot);
    if (!item || header_of(block)->level)
        return NULL;
    uint32_t space = base->nodesize - (uint32_t)sizeof(struct bw_disk_header),
             start = bw_get32(item->offset);
    if (start >= space)
        return NULL;
    *size = bw_get32(item->size) < space - start ? bw_get32(item->size) : space - start;
    *type = item->key.type;
    return *size ? block + sizeof(struct bw_disk_header) + start : NULL;
}

static void set_number(const struct base_image *base, const struct edit *edit, uint8_t *at,
                       size_t width)
{
    put_number(at, width, edit_value(base, edit, get_number(at, width)));
}

static void edit_header(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    struct field field = pick_field(header_fields, edit->field);
    set_number(base, edit, block + field.offset, field.size);
}

static void edit_slot(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    uint8_t *slot = slot_at(base, block, edit->slot);
    struct field field =
        pick_field(header_of(block)->level ? pointer_fields : slot_fields, edit->field);
    if (slot)
        set_number(base, edit, slot + field.offset, field.size);
}

static void edit_item_field(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    size_t size;
    uint8_t type, *item = item_at(base, block, edit->slot, &size, &type);
    if (!item)
        return;
    struct field field = pick_field(fields_of_type(type), edit->field);
    if ((size_t)field.offset + field.size <= size)
        set_number(base, edit, item + field.offset, field.size);
}

static void edit_item_bytes(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    size_t size, width = edit->width % 8 + 1u;
    uint8_t type, *item = item_at(base, block, edit->slot, &size, &type);
    size_t offset = item ? (size_t)get_number(edit->offset, 2) % size : 0;
    if (item)
        set_number(base, edit, item + offset, width < size - offset ? width : size - offset);
}

static void edit_raw(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    size_t offset = (size_t)get_number(edit->offset, 2) % base->nodesize,
           width = edit->width % 8 + 1u;
    set_number(base, edit, block + offset,
               width < base->nodesize - offset ? width : base->nodesize - offset);
}

/* Points a slot of a node to any other block, with a key and generation that match. */
static void link_block(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    struct bw_disk_key_pointer *pointer = (void *)slot_at(base, block, edit->slot);
    size_t other = (size_t)get_number(edit->value, 2) % base->block_count;
    uint8_t *child = base_block(base, other), *first = slot_at(base, child, 0);
    if (!pointer || !header_of(block)->level)
        return;
    pointer->bytenr = header_of(child)->bytenr;
    pointer->generation = header_of(child)->generation;
    if (first && edit->field % 2)
        memcpy(&pointer->key, first, sizeof pointer->key);
    if (edit->field % 4 < 2)
        header_of(child)->level = (uint8_t)(header_of(block)->level - 1);
}

/* Fills a node with pointers to one block, under ascending keys. */
static void fan_out(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    uint8_t *child = base_block(base, (size_t)get_number(edit->value, 2) % base->block_count);
    struct bw_disk_key_pointer *pointers = (void *)slot_at(base, block, 0);
    if (!pointers || !header_of(block)->level)
        return;
    size_t fit = (base->nodesize - sizeof(struct bw_disk_header)) / sizeof *pointers;
    size_t count = 1 + (size_t)get_number(edit->offset, 2) % fit;
    for (size_t i = 1; i < count; i++) {
        pointers[i] = pointers[0];
        pointers[i].key.offset = bw_put64(bw_get64(pointers[0].key.offset) + i * (edit->field % 4));
        pointers[i].bytenr =
            bw_put64(bw_get64(header_of(child)->bytenr) + i * 4096u * (edit->width % 2));
        pointers[i].generation = header_of(child)->generation;
    }
    header_of(block)->item_count = bw_put32((uint32_t)count);
}

/* Makes a block what another one is, but for its address. */
static void clone_block(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    uint8_t *other = base_block(base, (size_t)get_number(edit->value, 2) % base->block_count);
    bw_le64 bytenr = header_of(block)->bytenr;
    if (other != block)
        memcpy(block, other, base->nodesize);
    header_of(block)->bytenr = bytenr;
}

/* Puts the bytes of another item, of any leaf, over those of this one. */
static void copy_item(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    size_t size, other_size;
    uint8_t type, *item = item_at(base, block, edit->slot, &size, &type);
    uint8_t *from = base_block(base, edit->value[0] % base->block_count);
    uint8_t *other = item_at(base, from, edit->value[1], &other_size, &type);
    if (item && other)
        memmove(item, other, size < other_size ? size : other_size);
}

/* Copies one slot over another: double keys, items that share their bytes. */
static void copy_slot(const struct base_image *base, const struct edit *edit, uint8_t *block)
{
    uint8_t *to = slot_at(base, block, edit->slot), *from = slot_at(base, block, edit->value[0]);
    if (to && to != from)
        memcpy(to, from, entry_size(block));
}

typedef void block_edit(const struct base_image *base, const struct edit *edit, uint8_t *block);

static block_edit *const block_edits[] = {
    edit_header, edit_slot,   edit_item_field, edit_item_bytes, edit_raw,        link_block,
    fan_out,     clone_block, copy_item,       copy_slot,       edit_item_field, edit_slot,
};

enum {
    BLOCK_EDITS = sizeof block_edits / sizeof *block_edits,
    EDIT_SUPERBLOCK_FIELD = BLOCK_EDITS,
    EDIT_SUPERBLOCK_BYTES,
    DAMAGE_COPY,
    AGE_COPY,
    OPERATIONS,
};

/* Superblocks. */

struct superblock_edit {
    const struct base_image *base;
    const struct edit *edit;
};

static void edit_superblock(struct bw_disk_superblock *superblock, void *closure)
{
    const struct superblock_edit *context = closure;
    const struct edit *edit = context->edit;
    uint8_t *bytes = (uint8_t *)superblock;
    if (edit->operation % OPERATIONS == EDIT_SUPERBLOCK_FIELD) {
        struct field field = pick_field(superblock_fields, edit->field);
        set_number(context->base, edit, bytes + field.offset, field.size);
    } else {
        size_t start = edit->slot % 2 ? offsetof(struct bw_disk_superblock, system_chunk_array) : 0;
        size_t range = edit->slot % 2 ? 300 : sizeof *superblock - 8;
        set_number(context->base, edit, bytes + start + (size_t)get_number(edit->offset, 2) % range,
                   edit->width % 8 + 1u);
    }
}

/* Changes of the devices themselves. */
static void edit_devices(struct base_image *base, const struct edit *edit)
{
    struct superblock_edit context = {base, edit};
    uint64_t logical = iw_block(base->image, edit->block % base->block_count)->logical;
    unsigned copy = 1 + edit->field % iw_copies(base->image, logical);
    switch (edit->operation % OPERATIONS) {
    case EDIT_SUPERBLOCK_FIELD:
    case EDIT_SUPERBLOCK_BYTES:
        iw_superblock_edit(base->image, edit->block % 4 ? IW_ALL_DEVICES : 0, edit->width % 3,
                           edit_superblock, &context, edit->value_kind < 250);
        break;
    case DAMAGE_COPY:
        iw_corrupt(base->image, logical, edit->width % 2 ? copy : IW_ALL_COPIES, 0, 64, IW_FLIP);
        break;
    case AGE_COPY:
        iw_stale_block(base->image, logical, edit->width % 2 ? copy : IW_ALL_COPIES);
        break;
    default:
        break;
    }
}

/* Writing. */

static uint8_t *find_block(const struct base_image *base, bw_le64 bytenr)
{
    for (size_t i = 0; i < base->block_count; i++)
        if (iw_block(base->image, i)->logical == bw_get64(bytenr))
            return base_block(base, i);
    return NULL;
}

/* Whatever else is wrong, parents and children shall agree. */
static void repair_pointers(struct base_image *base, size_t index)
{
    uint8_t *block = base_block(base, index);
    for (size_t slot = 0; slot < slot_count(base, block); slot++) {
        struct bw_disk_key_pointer *pointer = (void *)slot_at(base, block, (unsigned)slot);
        uint8_t *child = find_block(base, pointer->bytenr),
                *first = child ? slot_at(base, child, 0) : NULL;
        if (!first)
            continue;
        memmove(&pointer->key, first, sizeof pointer->key);
        pointer->generation = header_of(child)->generation;
    }
}

static void copy_over(uint8_t *block, uint32_t nodesize, void *closure)
{
    memcpy(block, closure, nodesize);
}

static void write_changed(struct base_image *base)
{
    for (size_t i = 0; i < base->block_count; i++) {
        uint8_t *block = base_block(base, i);
        base->changed[i] = memcmp(block, base->pristine + i * base->nodesize, base->nodesize) != 0;
        if (base->changed[i])
            iw_rewrite_block(base->image, iw_block(base->image, i)->logical, copy_over, block,
                             true);
    }
}

void edits_apply(struct base_image *base, const struct edit *edits, size_t count, bool repair)
{
    for (size_t i = 0; i < count; i++)
        if (edits[i].operation % OPERATIONS < BLOCK_EDITS)
            block_edits[edits[i].operation % OPERATIONS](
                base, &edits[i], base_block(base, edits[i].block % base->block_count));
    for (unsigned level = 1; repair && level < BW_MAX_LEVEL; level++)
        for (size_t i = 0; i < base->block_count; i++)
            if (header_of(base_block(base, i))->level == level)
                repair_pointers(base, i);
    write_changed(base);
    for (size_t i = 0; i < count; i++)
        edit_devices(base, &edits[i]);
}
