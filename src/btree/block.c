/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pointers to tree blocks, and the requests made from them. */
#include "btree/block.h"

#include "xlators/classes.h"

struct bw_block_pointer bw_tree_root_pointer(const struct bw_tree *tree, bool lenient)
{
    return (struct bw_block_pointer){
        .bytenr = tree->root.bytenr,
        .expectation = {.owner = tree->id,
                        .generation = tree->root.generation,
                        .level = tree->root.level,
                        .lenient = lenient},
        .high = BW_KEY_MAX,
    };
}

struct bw_block_pointer bw_tree_child_pointer(const struct bw_block_pointer *parent,
                                              const struct bw_node *node, uint32_t slot)
{
    struct bw_node_pointer entry = bw_node_pointer_at(node, slot);
    struct bw_block_pointer child = {
        .bytenr = entry.bytenr,
        .expectation = {.owner = parent->expectation.owner,
                        .generation = entry.generation,
                        .first_key = entry.key,
                        .level = (uint8_t)(node->level - 1),
                        .has_first_key = true,
                        .lenient = parent->expectation.lenient},
        .low = entry.key,
        .high = parent->high,
    };
    if (slot + 1 < node->item_count) {
        struct bw_key next = bw_node_key(node, slot + 1);
        if (bw_key_compare(&next, &child.high) < 0)
            child.high = next;
    }
    return child;
}

struct bw_request bw_block_request(const struct bw_tree_reader *reader,
                                   const struct bw_block_pointer *pointer, void *buffer)
{
    return (struct bw_request){
        .kind = BW_REQUEST_TREE_BLOCK,
        .keep = pointer->expectation.level > 0,
        .length = reader->nodesize,
        .address = pointer->bytenr,
        .buffer = buffer,
        .expectation = &pointer->expectation,
    };
}

struct bw_error *bw_block_read(const struct bw_tree_reader *reader, const struct bw_block_pointer *pointer,
                               void *buffer)
{
    struct bw_request request = bw_block_request(reader, pointer, buffer);
    bw_wind(NULL, reader->top, &request, 1);
    return request.error;
}

unsigned bw_block_batch(const struct bw_tree_reader *reader)
{
    unsigned batch = (1u << 20) / reader->nodesize;
    return batch < BW_BATCH ? batch : BW_BATCH;
}
