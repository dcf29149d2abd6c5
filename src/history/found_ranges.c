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

/* Reads the blocks of the batch, and visits what they refer to; the roots in leaves of root trees,
 * too. Blocks that cannot be read have been overwritten since the scan. */
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
        const bool is_lost = requests[i].error;
        bw_error_free(requests[i].error);
        if (is_lost || error)
            continue;
        struct bw_block_references references = bw_block_references_open(&node, 0, false);
        struct bw_reference reference;
        struct bw_listed_tree tree;
        struct bw_item item;
        while (!error && bw_block_references_next(&references, &reference))
            error = batch->visit(batch->context, reference.bytenr,
                                 reference.length ? reference.length : reader->nodesize);
        for (uint32_t slot = 0; !error && !node.level && bw_leaf_next(&node, &slot, &item);)
            if (item.key.type == BW_ROOT_ITEM && bw_tree_list_decode(&item, &tree))
                error = batch->visit(batch->context, tree.tree.root.bytenr, reader->nodesize);
    }
    batch->count = 0;
    return error;
}

struct bw_error *bw_history_ranges(const struct bw_history *history,
                                   bw_history_range_visitor *visit, void *context)
{
    const struct bw_found_index *index = &history->index;
    struct found_batch batch = {.history = history,
                                .visit = visit,
                                .context = context,
                                .limit = bw_block_batch(&history->reader)};
    batch.buffer = bw_block_buffer(&history->reader, batch.limit);
    struct bw_error *error = batch.buffer ? NULL : bw_error_no_memory();
    for (size_t i = 0; !error && i < index->blocks.count; i++) {
        const struct bw_found_block *block = &index->blocks.items[i];
        const uint64_t owner = bw_found_owner(index, block);
        const bool has_files = bw_is_subvolume_id(owner) || owner == BW_ROOT_TREE;
        error = visit(context, block->bytenr, history->reader.nodesize);
        if (error || (!block->level && !has_files))
            continue;
        batch.pointers[batch.count++] = bw_found_pointer(index, block);
        if (batch.count == batch.limit)
            error = read_batch(&batch);
    }
    if (!error)
        error = read_batch(&batch);
    free(batch.buffer);
    return error;
}
