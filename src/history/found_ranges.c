/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space that older generations need: the blocks of the index, and the blocks and data that they
 * refer to. A scan overlooks blocks of which another mirror has older contents. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "data/references.h"
#include "graph/wind.h"
#include "history/history.h"
#include "owners/tree_list.h"

/* Blocks that are read together. */
struct found_batch {
    const struct bw_history *history;
    bw_history_range_visitor *visit;
    void *context;
    struct bw_block_pointer pointers[BW_BATCH];
    unsigned count, limit;
    uint8_t *buffer;
};

/* Adds what a block refers to and, if it is a leaf, the roots of trees in it. */
static struct bw_error *add_block(const struct found_batch *batch, const struct bw_node *node)
{
    const uint64_t nodesize = batch->history->reader.nodesize;
    struct bw_block_references references = bw_block_references_open(node, 0, false);
    struct bw_reference reference;
    struct bw_listed_tree tree;
    struct bw_item item;
    while (bw_block_references_next(&references, &reference))
        BW_TRY(batch->visit(batch->context, reference.bytenr,
                            reference.length ? reference.length : nodesize));
    for (uint32_t slot = 0; !node->level && bw_leaf_next(node, &slot, &item);)
        if (item.key.type == BW_ROOT_ITEM && bw_tree_list_decode(&item, &tree))
            BW_TRY(batch->visit(batch->context, tree.tree.root.bytenr, nodesize));
    return NULL;
}

/* Blocks that cannot be read have been overwritten since the scan. */
static struct bw_error *read_batch(struct found_batch *batch)
{
    const struct bw_tree_reader *reader = &batch->history->reader;
    struct bw_request requests[BW_BATCH];
    struct bw_error *error = NULL;
    for (unsigned i = 0; i < batch->count; i++)
        requests[i] = bw_block_request(reader, &batch->pointers[i],
                                       batch->buffer + (size_t)i * reader->nodesize);
    bw_blocks_read(reader, requests, batch->count);
    for (unsigned i = 0; i < batch->count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (!requests[i].error && !error)
            error = add_block(batch, &node);
        bw_error_free(requests[i].error);
    }
    batch->count = 0;
    return error;
}

static struct bw_error *add_blocks(struct found_batch *batch)
{
    const struct bw_found_index *index = &batch->history->index;
    for (size_t i = 0; i < index->blocks.count; i++) {
        const struct bw_found_block *block = &index->blocks.items[i];
        const uint64_t owner = bw_found_owner(index, block);
        const bool has_files = bw_is_subvolume_id(owner) || owner == BW_ROOT_TREE;
        BW_TRY(batch->visit(batch->context, block->bytenr, batch->history->reader.nodesize));
        if (!block->level && !has_files)
            continue;
        batch->pointers[batch->count++] = bw_found_pointer(index, block);
        if (batch->count == batch->limit)
            BW_TRY(read_batch(batch));
    }
    return read_batch(batch);
}

struct bw_error *bw_history_ranges(const struct bw_history *history,
                                   bw_history_range_visitor *visit, void *context)
{
    struct found_batch batch = {.history = history,
                                .visit = visit,
                                .context = context,
                                .limit = bw_block_batch(&history->reader)};
    batch.buffer = bw_block_buffer(&history->reader, batch.limit);
    struct bw_error *error = batch.buffer ? add_blocks(&batch) : bw_error_no_memory();
    free(batch.buffer);
    return error;
}
