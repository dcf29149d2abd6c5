/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers to tree blocks, and requests for them. A pointer contains what the parent says about the
 * block: its address, owner, level, generation and range of keys. The request has this as its
 * expectation, and features/verify compares it with the block. check_block() compares it again
 * after the read, because a graph of the user need not contain that layer.
 */
#include "btree/block.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/wind.h"
#include "ondisk/tree_title.h"

enum { BUFFER_ALIGNMENT = 4096 };

struct bw_block_pointer bw_tree_root_pointer(const struct bw_tree *tree, bool lenient)
{
    return (struct bw_block_pointer){
        .bytenr = tree->root.bytenr,
        .expectation = {.owner = tree->id,
                        .generation = tree->root.generation,
                        .end_key = BW_KEY_MAX,
                        .level = tree->root.level,
                        .lenient = lenient},
    };
}

struct bw_block_pointer bw_tree_child_pointer(const struct bw_block_pointer *parent,
                                              const struct bw_node *node, uint32_t slot)
{
    const struct bw_tree_block_expectation *above = &parent->expectation;
    const struct bw_node_pointer entry = bw_node_pointer_at(node, slot);
    const bool is_last = slot + 1 >= node->item_count;
    struct bw_block_pointer child = {
        .bytenr = entry.bytenr,
        .expectation = {.owner = above->owner,
                        .generation = entry.generation,
                        .first_key = entry.key,
                        .end_key = is_last ? above->end_key : bw_node_key(node, slot + 1),
                        .level = (uint8_t)(node->level - 1),
                        .has_first_key = true,
                        .lenient = above->lenient},
    };
    /* In a lenient scan, keys may be out of order: the child's range is limited to its parent's. */
    if (above->lenient && bw_key_compare(&child.expectation.first_key, &above->first_key) < 0)
        child.expectation.first_key = above->first_key;
    if (above->lenient && bw_key_compare(&child.expectation.end_key, &above->end_key) > 0)
        child.expectation.end_key = above->end_key;
    return child;
}

uint32_t bw_child_slot(const struct bw_node *node, const struct bw_key *key)
{
    uint32_t until = bw_node_count_until(node, key);
    return until ? until - 1 : 0;
}

struct bw_request bw_block_request(const struct bw_tree_reader *reader,
                                   const struct bw_block_pointer *pointer, void *buffer)
{
    return (struct bw_request){
        .kind = BW_REQUEST_TREE_BLOCK,
        .keep = pointer->expectation.level > 0 || reader->keeps_leaves,
        .length = reader->nodesize,
        .address = pointer->bytenr,
        .buffer = buffer,
        .expectation = &pointer->expectation,
    };
}

/* features/verify has checked this, but a graph may lack that layer. For a leaf, three comparisons
 * are enough; internal nodes are few. That layer may have accepted another generation. */
static struct bw_error *check_block(const struct bw_request *request)
{
    const struct bw_tree_block_expectation *expectation = request->expectation;
    const struct bw_disk_header *header = request->buffer;
    if (expectation->level) {
        struct bw_tree_block_expectation wanted = *expectation;
        wanted.generation = bw_get64(header->generation);
        struct bw_error *error =
            bw_node_check(request->buffer, request->length, request->address, &wanted);
        if (error)
            error = bw_error_prefix(error, "tree block %" PRIu64 " of %s", request->address,
                                    bw_tree_title(expectation->owner).text);
        return error;
    }
    const struct bw_node leaf = bw_node_view(request->buffer, request->length);
    const uint32_t room = (request->length - (uint32_t)sizeof(struct bw_disk_header)) /
                          (uint32_t)sizeof(struct bw_disk_item);
    if (bw_get64(header->bytenr) == request->address && leaf.level == 0 && leaf.item_count <= room)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 ": wrong block returned",
                           request->address);
}

static struct bw_frame frame_of_blocks(const struct bw_tree_reader *reader)
{
    return bw_frame_above_blocks(reader->frame, bw_xlator_probes(reader->top));
}

void bw_blocks_advise(const struct bw_tree_reader *reader, const struct bw_range *ranges,
                      size_t count)
{
    const struct bw_frame frame = frame_of_blocks(reader);
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && !bw_memory_has(reader->memory, ranges[end].address); end++)
            continue;
        if (end > i)
            bw_wind_advise(&frame, reader->top, ranges + i, end - i, 0);
    }
}

/* Blocks that were never found are below a node that bw_edit_surround() has made. */
static void copy_block(const struct bw_block_memory *memory, struct bw_request *request)
{
    const uint8_t *block = bw_memory_block(memory, request->address);
    if (block)
        memcpy(request->buffer, block, memory->nodesize);
    else
        request->error =
            bw_error_create(BW_ERROR_CORRUPT,
                            "the root of %s was not found: items before or behind those of "
                            "tree blocks that were found may be lost",
                            bw_tree_title(request->expectation->owner).text);
}

void bw_blocks_read(const struct bw_tree_reader *reader, struct bw_request *requests, size_t count)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    const struct bw_frame frame = frame_of_blocks(reader);
    const uint64_t start = BW_PROBE_START(probes, block__read__done);
    for (size_t i = 0; BW_PROBE_ON(probes, block__read__start) && i < count; i++)
        BW_PROBE(probes, block__read__start, block_start,
                 &(struct bw_block_event){{.call = frame.call}, &requests[i], requests[i].mirror});

    /* Blocks in memory are copied, and the ranges between them requested from the layers. */
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && !bw_memory_has(reader->memory, requests[end].address); end++)
            continue;
        if (end > i)
            bw_wind(&frame, reader->top, requests + i, end - i);
        if (end < count)
            copy_block(reader->memory, &requests[end]);
    }
    for (size_t i = 0; i < count; i++)
        if (!requests[i].error)
            requests[i].error = check_block(&requests[i]);

    if (!BW_PROBE_ON(probes, block__read__done))
        return;
    const uint64_t ns = start ? bw_probes_now(probes) - start : 0;
    for (size_t i = 0; i < count; i++)
        BW_PROBE(probes, block__read__done, block_done,
                 &(struct bw_block_event){
                     {frame.call, ns, requests[i].error}, &requests[i], requests[i].mirror});
}

struct bw_error *bw_block_read(const struct bw_tree_reader *reader,
                               const struct bw_block_pointer *pointer, void *buffer)
{
    struct bw_request request = bw_block_request(reader, pointer, buffer);
    bw_blocks_read(reader, &request, 1);
    return request.error;
}

uint8_t *bw_block_buffer(const struct bw_tree_reader *reader, unsigned count)
{
    /* the kernel copies to a page-aligned buffer a quarter faster than to one from malloc() */
    return aligned_alloc(BUFFER_ALIGNMENT, (size_t)reader->nodesize * count);
}

unsigned bw_block_batch(const struct bw_tree_reader *reader)
{
    unsigned batch = (1u << 20) / reader->nodesize;
    return batch < BW_BATCH ? batch : BW_BATCH;
}
