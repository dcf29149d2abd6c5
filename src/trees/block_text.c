/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks as the lines of btrfs-progs, or a row for each item or pointer; superblocks. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/decimal.h"
#include "base/hex_dump.h"
#include "base/human.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"
#include "trees/dump.h"

static uint32_t entry_size(uint8_t level)
{
    return level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
}

struct bw_node bw_block_view(const uint8_t *block, uint32_t nodesize)
{
    struct bw_node node = bw_node_view(block, nodesize);
    uint32_t most = (nodesize - (uint32_t)sizeof(struct bw_disk_header)) / entry_size(node.level);
    node.item_count = node.item_count < most ? node.item_count : most;
    return node;
}

/* Free space: bytes between the items of a leaf and their data; pointers that still fit in a node.
 * */
static int64_t free_space(const struct bw_node *node)
{
    const uint32_t space = node->nodesize - (uint32_t)sizeof(struct bw_disk_header);
    if (node->level)
        return space / entry_size(1) - node->item_count;
    if (!node->item_count)
        return space;
    const struct bw_disk_item *first = bw_node_disk_item(node, 0),
                              *last = bw_node_disk_item(node, node->item_count - 1);
    int64_t used = (int64_t)bw_get32(first->offset) + bw_get32(first->size) -
                   bw_get32(last->offset) + (int64_t)node->item_count * entry_size(0);
    return (int32_t)(space - used);
}

static void append_word(struct bw_buffer *text, const char *word)
{
    bw_buffer_append(text, word, strlen(word));
}

static void print_uuid(struct bw_buffer *text, const char *name, const uint8_t *uuid)
{
    char words[BW_UUID_LENGTH];
    bw_write_uuid(words, uuid);
    append_word(text, name);
    bw_buffer_append(text, words, sizeof words);
    bw_buffer_append_byte(text, '\n');
}

void bw_block_print_header(const struct bw_block_print *block)
{
    struct bw_buffer *text = &block->printer->text;
    const struct bw_disk_header *header = (const void *)block->node.block;
    const char *kind = header->level ? "node" : "leaf";
    const uint64_t bytenr = bw_get64(header->bytenr), flags = bw_get64(header->flags);
    const uint64_t mask = (UINT64_C(1) << BW_BACKREF_REVISION_SHIFT) - 1;
    if (block->rows)
        return;
    bw_buffer_format(text, "%s %" PRIu64, kind, header->level ? block->bytenr : bytenr);
    if (header->level)
        bw_buffer_format(text, " level %u", header->level);
    bw_buffer_format(
        text, " items %" PRIu32 " free space %" PRId64 " generation %" PRIu64 " owner ",
        bw_get32(header->item_count), free_space(&block->node), bw_get64(header->generation));
    bw_print_objectid(text, bw_get64(header->owner), 0);
    bw_buffer_format(text, "\n%s %" PRIu64 " flags 0x%" PRIx64 "(", kind, bytenr, flags & mask);
    append_word(text, flags & 1 ? "WRITTEN" : "");
    append_word(text, (flags & 3) == 3 ? "|" : "");
    append_word(text, flags & 2 ? "RELOC" : "");
    bw_buffer_format(text, ") backref revision %u", (unsigned)(flags >> BW_BACKREF_REVISION_SHIFT));
    if (block->checksum_header) {
        bw_buffer_append(text, " csum 0x", 8);
        bw_buffer_append_hex(text, header->csum, block->printer->part.checksum_size);
    }
    bw_buffer_append_byte(text, '\n');
    print_uuid(text, "fs uuid ", header->fsid);
    print_uuid(text, "chunk uuid ", header->chunk_tree_uuid);
}

/* Rows. */

#define BIT(member) (UINT64_C(1) << BW_iteminfo_##member)

static struct bw_iteminfo row_of(const struct bw_block_print *block, uint32_t slot,
                                 const struct bw_key *key)
{
    return (struct bw_iteminfo){.tree = block->tree,
                                .logical = block->bytenr,
                                .level = block->node.level,
                                .slot = slot,
                                .damaged = true,
                                .key = *key,
                                .key_objectid = key->objectid,
                                .key_type_name = bw_key_type_name(key->type),
                                .key_offset = key->offset};
}

static void append_row(const struct bw_block_print *block, const struct bw_iteminfo *row,
                       uint64_t absent)
{
    bw_rows_append_record(block->rows, row, ~(absent | (block->damaged ? 0 : BIT(damaged))),
                          &block->printer->text);
}

static const struct bw_rows *item_rows(const struct bw_block_print *block,
                                       const struct bw_item *item)
{
    return block->items[bw_structure_number(&item->key)];
}

/* An item, and where it is printed. */
struct item_value {
    const struct bw_block_print *block;
    const struct bw_item *item;
};

static void write_item(void *context, struct bw_json *json)
{
    const struct item_value *value = context;
    (void)json; /* writes to the text of the printer */
    bw_item_print(value->block->printer, item_rows(value->block, value->item), value->item);
}

static void append_item_row(const struct bw_block_print *block, uint32_t slot,
                            const struct bw_item *item, bool inside)
{
    struct item_value value = {block, item};
    struct bw_iteminfo row = row_of(block, slot, &item->key);
    row.size = item->size;
    if (inside) {
        row.item = (struct bw_json_value){write_item, &value};
        if (!block->printer->hide_names)
            row.hex = (struct bw_bytes){(const char *)item->data, item->size};
    }
    append_row(block, &row, BIT(child_logical) | BIT(generation));
}

/* Text. */

static void append_item_text(const struct bw_block_print *block, uint32_t slot,
                             const struct bw_item *item, bool inside)
{
    const struct bw_disk_item *disk = bw_node_disk_item(&block->node, slot);
    struct bw_buffer *text = &block->printer->text;
    if (!bw_buffer_reserve(text, BW_KEY_ROOM + 64 + 3 * BW_DECIMAL_ROOM))
        return;
    char *at = bw_decimal(stpcpy(text->data + text->length, "\titem "), slot);
    at = bw_write_key(stpcpy(at, " key "), &item->key);
    at = bw_decimal(stpcpy(at, " itemoff "), bw_get32(disk->offset));
    at = bw_decimal(stpcpy(at, " itemsize "), item->size);
    text->length = (size_t)(at - text->data);
    if (inside && !block->hex)
        bw_item_print(block->printer, item_rows(block, item), item);
    bw_buffer_append_byte(text, '\n');
}

/* Bytes of a block, which begin at `bytes`. */
static void append_bytes(const struct bw_block_print *block, const uint8_t *bytes, size_t length)
{
    bw_hex_dump(&block->printer->text, "\t\t", (uint64_t)(bytes - block->node.block), bytes,
                length);
}

bool bw_block_print_item(const struct bw_block_print *block, uint32_t slot)
{
    struct bw_item item;
    bool inside = bw_leaf_item(&block->node, slot, &item);
    (block->rows ? append_item_row : append_item_text)(block, slot, &item, inside);
    if (block->hex && inside)
        append_bytes(block, item.data, item.size);
    return inside;
}

void bw_block_print_pointer(const struct bw_block_print *block, uint32_t slot)
{
    const struct bw_node_pointer pointer = bw_node_pointer_at(&block->node, slot);
    struct bw_buffer *text = &block->printer->text;
    if (block->rows) {
        struct bw_iteminfo row = row_of(block, slot, &pointer.key);
        row.child_logical = pointer.bytenr;
        row.generation = pointer.generation;
        append_row(block, &row, BIT(size));
        return;
    }
    bw_buffer_append(text, "\tkey ", 5);
    bw_print_key(text, &pointer.key);
    bw_buffer_format(text, " block %" PRIu64 " gen %" PRIu64 "\n", pointer.bytenr,
                     pointer.generation);
}

/* All bytes of a block. */

/* The data of an item. */
struct data_range {
    uint32_t offset, size, slot;
};

static int compare_ranges(const void *left, const void *right)
{
    const struct data_range *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->offset, a->slot}), ((uint64_t[]){b->offset, b->slot}));
}

static void append_unused(const struct bw_block_print *block, uint32_t begin, uint32_t end)
{
    if (begin >= end)
        return;
    bw_buffer_format(&block->printer->text, "\tunused space %" PRIu32 " bytes\n", end - begin);
    append_bytes(block, block->node.block + begin, end - begin);
}

void bw_block_print_bytes(const struct bw_block_print *block)
{
    const struct bw_node *node = &block->node;
    BW_AUTO_FREE struct data_range *ranges = calloc((size_t)node->item_count + 1, sizeof *ranges);
    block->printer->text.failed |= !ranges;
    if (!ranges)
        return;
    bw_buffer_format(&block->printer->text, "\theader\n");
    append_bytes(block, node->block, sizeof(struct bw_disk_header));
    /* The table after the header: items without their data, or pointers. */
    const uint32_t size = entry_size(node->level);
    uint32_t at = sizeof(struct bw_disk_header);
    for (uint32_t slot = 0; slot < node->item_count; slot++, at += size) {
        struct bw_item item;
        if (node->level)
            bw_block_print_pointer(block, slot);
        else
            append_item_text(block, slot, &item, bw_leaf_item(node, slot, &item));
        append_bytes(block, node->block + at, size);
    }

    /* The items whose bytes lie inside of the leaf, ascending by offset. */
    uint32_t count = 0;
    for (uint32_t slot = 0; !node->level && slot < node->item_count; slot++) {
        struct bw_item item;
        if (bw_leaf_item(node, slot, &item) && item.size)
            ranges[count++] =
                (struct data_range){(uint32_t)(item.data - node->block), item.size, slot};
    }
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    for (uint32_t i = 0; i < count; i++) {
        const struct data_range *range = &ranges[i];
        append_unused(block, at, range->offset);
        bw_buffer_format(&block->printer->text, "\tdata of item %" PRIu32 "\n", range->slot);
        append_bytes(block, node->block + range->offset, range->size);
        at = range->offset + range->size > at ? range->offset + range->size : at;
    }
    append_unused(block, at, node->nodesize);
}

struct bw_error *bw_superblock_print(const uint8_t *bytes, bw_consumer *consume, void *context)
{
    struct bw_printer printer = {0};
    struct bw_rows *rows;
    BW_TRY(bw_rows_of_structure(&bw_structure_superblockinfo, false, NULL, &rows));
    bw_structure_print(&printer, rows, bytes);
    bw_rows_destroy(rows);
    struct bw_error *error = printer.text.failed
                                 ? bw_error_no_memory()
                                 : consume(context, printer.text.data, printer.text.length);
    bw_buffer_free(&printer.text);
    return error;
}
