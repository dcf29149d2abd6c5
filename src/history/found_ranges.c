/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space that older generations need: the blocks of the index, and the blocks and data that they
 * refer to. A scan overlooks blocks of which another mirror has older contents. */

#include "base/cleanup.h"
#include "data/references.h"
#include "graph/wind.h"
#include "history/history.h"
#include "owners/tree_list.h"

/* Visits what a block refers to; the roots in leaves of root trees, too. */
static struct bw_error *visit_references(const struct bw_node *node,
                                         bw_history_range_visitor *visit, void *context)
{
    struct bw_block_references references = bw_block_references_open(node, 0, false);
    struct bw_reference reference;
    struct bw_listed_tree tree;
    struct bw_item item;
    while (bw_block_references_next(&references, &reference))
        BW_TRY(
            visit(context, reference.bytenr, reference.length ? reference.length : node->nodesize));
    for (uint32_t slot = 0; !node->level && bw_leaf_next(node, &slot, &item);)
        if (item.key.type == BW_ROOT_ITEM && bw_tree_list_decode(&item, &tree))
            BW_TRY(visit(context, tree.tree.root.bytenr, node->nodesize));
    return NULL;
}

struct bw_error *bw_history_ranges(const struct bw_history *history,
                                   bw_history_range_visitor *visit, void *context)
{
    const struct bw_found_index *index = &history->index;
    const struct bw_tree_reader *reader = &history->reader;
    const unsigned batch = bw_block_batch(reader);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, batch);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t next = 0; next < index->blocks.count;) {
        /* Some blocks that are read together, and any others between them. */
        struct bw_block_pointer pointers[BW_BATCH];
        struct bw_request requests[BW_BATCH];
        unsigned count = 0;
        for (; count < batch && next < index->blocks.count; next++) {
            const struct bw_found_block *block = &index->blocks.items[next];
            const uint64_t owner = bw_found_owner(index, block);
            BW_TRY(visit(context, block->bytenr, reader->nodesize));
            if (!block->level && !bw_is_subvolume_id(owner) && owner != BW_ROOT_TREE)
                continue;
            pointers[count] = bw_found_pointer(index, block);
            requests[count] = bw_block_request(reader, &pointers[count],
                                               buffer + (size_t)count * reader->nodesize);
            count++;
        }

        /* Blocks that cannot be read have been overwritten since the scan. */
        struct bw_error *error = NULL;
        bw_blocks_read(reader, requests, count);
        for (unsigned i = 0; i < count; i++) {
            const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
            if (!requests[i].error && !error)
                error = visit_references(&node, visit, context);
            bw_error_free(requests[i].error);
        }
        BW_TRY(error);
    }
    return NULL;
}
