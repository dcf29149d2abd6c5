/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks as the lines of btrfs-progs, or a JSON object for each item or pointer. */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "ondisk/block_text.h"
#include "ondisk/disk_items.h"
#include "ondisk/structure.h"

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

/* What stands before the printed structure, at most: names, numbers, a key. */
enum { LINE_ROOM = 256 + BW_KEY_ROOM };

/* The members that all lines of JSON begin with. */
static char *begin_object(const struct bw_block_print *block, char *at, uint32_t slot,
                          const struct bw_key *key)
{
    at = bw_decimal(stpcpy(at, "{\"tree\":"), block->tree);
    at = bw_decimal(stpcpy(at, ",\"block\":"), block->bytenr);
    at = bw_decimal(stpcpy(at, ",\"level\":"), block->node.level);
    at = bw_decimal(stpcpy(at, ",\"slot\":"), slot);
    if (block->damaged)
        at = stpcpy(at, ",\"damaged\":true");
    return bw_json_key(stpcpy(at, ",\"key\":"), key);
}

/* The structure is an object of its own inside of the line. */
static void print_item_json(const struct bw_block_print *block, uint32_t slot,
                            const struct bw_item *item, bool inside)
{
    struct bw_buffer *text = block->printer->text;
    if (!bw_buffer_reserve(text, LINE_ROOM))
        return;
    char *at = begin_object(block, text->data + text->length, slot, &item->key);
    at = bw_decimal(stpcpy(at, ",\"size\":"), item->size);
    if (inside)
        at = stpcpy(at, ",\"item\":");
    text->length = (size_t)(at - text->data);
    if (inside) {
        bw_json_begin_object(block->printer->json, NULL);
        bw_item_print(block->printer, item);
        bw_json_end(block->printer->json);
    }
    bw_buffer_append(text, "}\n", 2);
}

static void print_item_text(const struct bw_block_print *block, uint32_t slot,
                            const struct bw_item *item, bool inside)
{
    const struct bw_disk_item *disk = bw_node_disk_item(&block->node, slot);
    struct bw_buffer *text = block->printer->text;
    if (!bw_buffer_reserve(text, LINE_ROOM))
        return;
    char *at = bw_decimal(stpcpy(text->data + text->length, "\titem "), slot);
    *at++ = ' ';
    at = bw_write_key(at, &item->key);
    at = bw_decimal(stpcpy(at, " itemoff "), bw_get32(disk->offset));
    at = bw_decimal(stpcpy(at, " itemsize "), item->size);
    text->length = (size_t)(at - text->data);
    if (inside)
        bw_item_print(block->printer, item);
    bw_buffer_append_byte(text, '\n');
}

bool bw_block_print_item(const struct bw_block_print *block, uint32_t slot)
{
    struct bw_item item;
    bool inside = bw_leaf_item(&block->node, slot, &item);
    if (block->printer->json)
        print_item_json(block, slot, &item, inside);
    else
        print_item_text(block, slot, &item, inside);
    return inside;
}

void bw_block_print_pointer(const struct bw_block_print *block, uint32_t slot)
{
    const struct bw_node_pointer pointer = bw_node_pointer_at(&block->node, slot);
    struct bw_buffer *text = block->printer->text;
    if (!bw_buffer_reserve(text, LINE_ROOM))
        return;
    if (block->printer->json) {
        char *end = begin_object(block, text->data + text->length, slot, &pointer.key);
        text->length = (size_t)(end - text->data);
        bw_buffer_format(text, ",\"child\":%" PRIu64 ",\"generation\":%" PRIu64 "}\n",
                         pointer.bytenr, pointer.generation);
    } else {
        bw_buffer_append_byte(text, '\t');
        bw_print_key(text, &pointer.key);
        bw_buffer_format(text, " block %" PRIu64 " gen %" PRIu64 "\n", pointer.bytenr,
                         pointer.generation);
    }
}
