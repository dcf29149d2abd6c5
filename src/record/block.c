/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks as the lines of btrfs-progs, or an object for each item or pointer. */
#include "record/block.h"

#include <inttypes.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "format/disk_items.h"

static const struct bw_value_names header_flags = {
    (const struct bw_value_name[]){
        {1 << 0, "WRITTEN", false}, {1 << 1, "RELOC", false}, {0, NULL, false}},
    NULL, ""};

static const struct bw_disk_header *header_of(const struct bw_block_print *block)
{
    return (const void *)block->node.block;
}

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

/* Of a leaf in bytes, between the items and their data; of a node in pointers. */
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

static void print_uuid(struct bw_buffer *text, const char *name, const uint8_t *uuid)
{
    char words[UUID_STR_LEN];
    uuid_unparse_lower(uuid, words);
    bw_buffer_format(text, "%s uuid %s\n", name, words);
}

void bw_block_print_header(const struct bw_block_print *block)
{
    struct bw_buffer *text = block->printer->text;
    const struct bw_disk_header *header = header_of(block);
    const char *kind = header->level ? "node" : "leaf";
    const uint64_t bytenr = bw_get64(header->bytenr), flags = bw_get64(header->flags);
    const uint64_t mask = (UINT64_C(1) << BW_BACKREF_REVISION_SHIFT) - 1;
    if (block->printer->json)
        return;
    bw_buffer_format(text, "%s %" PRIu64, kind, header->level ? block->bytenr : bytenr);
    if (header->level)
        bw_buffer_format(text, " level %u", header->level);
    bw_buffer_format(
        text, " items %" PRIu32 " free space %" PRId64 " generation %" PRIu64 " owner ",
        bw_get32(header->item_count), free_space(&block->node), bw_get64(header->generation));
    bw_print_objectid(text, bw_get64(header->owner), 0);
    bw_buffer_format(text, "\n%s %" PRIu64 " flags 0x%" PRIx64 "(", kind, bytenr, flags & mask);
    bw_print_flags(text, &header_flags, flags & mask);
    bw_buffer_format(text, ") backref revision %u", (unsigned)(flags >> BW_BACKREF_REVISION_SHIFT));
    if (block->checksum_header) {
        bw_buffer_append(text, " csum 0x", 8);
        bw_buffer_append_hex(text, header->csum, block->printer->checksum_size);
    }
    bw_buffer_append_byte(text, '\n');
    print_uuid(text, "fs", header->fsid);
    print_uuid(text, "chunk", header->chunk_tree_uuid);
}

/* The members that all objects begin with. */
static void begin_object(const struct bw_block_print *block, uint32_t slot,
                         const struct bw_key *key)
{
    struct bw_json *json = block->printer->json;
    bw_json_begin_object(json, NULL);
    BW_JSON_NAME(json, "tree");
    bw_json_number(json, NULL, block->tree);
    BW_JSON_NAME(json, "block");
    bw_json_number(json, NULL, block->bytenr);
    BW_JSON_NAME(json, "level");
    bw_json_number(json, NULL, block->node.level);
    BW_JSON_NAME(json, "slot");
    bw_json_number(json, NULL, slot);
    if (block->damaged)
        bw_json_bool(json, "damaged", true);
    BW_JSON_NAME(json, "key");
    bw_json_key(json, key);
}

static void end_line(const struct bw_block_print *block)
{
    if (block->printer->json)
        bw_json_end(block->printer->json);
    bw_buffer_append_byte(block->printer->text, '\n');
}

static void begin_item(const struct bw_block_print *block, uint32_t slot,
                       const struct bw_item *item)
{
    const struct bw_disk_item *disk = bw_node_disk_item(&block->node, slot);
    struct bw_buffer *text = block->printer->text;
    if (block->printer->json) {
        begin_object(block, slot, &item->key);
        BW_JSON_NAME(block->printer->json, "size");
        bw_json_number(block->printer->json, NULL, item->size);
        return;
    }
    bw_buffer_append(text, "\titem ", 6);
    bw_decimal_append(text, slot);
    bw_buffer_append_byte(text, ' ');
    bw_print_key(text, &item->key);
    bw_buffer_append(text, " itemoff ", 9);
    bw_decimal_append(text, bw_get32(disk->offset));
    bw_buffer_append(text, " itemsize ", 10);
    bw_decimal_append(text, item->size);
}

bool bw_block_print_item(const struct bw_block_print *block, uint32_t slot)
{
    struct bw_item item;
    bool inside = bw_leaf_item(&block->node, slot, &item);
    struct bw_json *json = block->printer->json;
    begin_item(block, slot, &item);
    if (inside && json) {
        BW_JSON_NAME(json, "item");
        bw_json_begin_object(json, NULL);
        bw_item_print(block->printer, &item);
        bw_json_end(json);
    } else if (inside) {
        bw_item_print(block->printer, &item);
    }
    end_line(block);
    return inside;
}

void bw_block_print_pointer(const struct bw_block_print *block, uint32_t slot)
{
    const struct bw_node_pointer pointer = bw_node_pointer_at(&block->node, slot);
    struct bw_buffer *text = block->printer->text;
    struct bw_json *json = block->printer->json;
    if (json) {
        begin_object(block, slot, &pointer.key);
        BW_JSON_NAME(json, "child");
        bw_json_number(json, NULL, pointer.bytenr);
        BW_JSON_NAME(json, "generation");
        bw_json_number(json, NULL, pointer.generation);
    } else {
        bw_buffer_append_byte(text, '\t');
        bw_print_key(text, &pointer.key);
        bw_buffer_format(text, " block %" PRIu64 " gen %" PRIu64, pointer.bytenr,
                         pointer.generation);
    }
    end_line(block);
}
