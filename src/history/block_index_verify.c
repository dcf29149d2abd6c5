/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An index that comes from a file is a list of claims. Here all of its blocks are read again, and
 * those that are not what it says are dropped: what is left of a state may be told from the rest.
 */
#include "base/cleanup.h"
#include "base/pool.h"
#include "history/history.h"

/* The reading under way. A block that is not there any more gets a number that no owner has. */
enum { GONE = BW_FOUND_MOST_OWNER };

struct verifying {
    struct bw_past *past;
    unsigned batch; /* blocks that a task reads */
    atomic_bool no_memory;
};

static bool is_as_recorded(const struct bw_past *past, const struct bw_found_block *block,
                           const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const struct bw_node node = bw_node_view(bytes, past->reader.nodesize);
    const struct bw_key recorded = bw_found_first_key(block);
    const struct bw_key first = !node.item_count ? (struct bw_key){0}
                                : node.level     ? bw_node_key(&node, 0)
                                                 : bw_leaf_key(&node, 0);
    return bw_get64(header->owner) == bw_found_owner(&past->index, block) &&
           (node.item_count > 0) == block->filled && bw_key_compare(&first, &recorded) == 0;
}

static void read_batch(struct verifying *verifying, size_t begin, size_t count, uint8_t *buffer)
{
    const struct bw_past *past = verifying->past;
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    for (size_t i = 0; i < count; i++) {
        const struct bw_found_block *block = &past->index.blocks[begin + i];
        pointers[i] = bw_found_pointer(&past->index, block);
        requests[i] =
            bw_block_request(&past->reader, &pointers[i], buffer + i * past->reader.nodesize);
        requests[i].keep = false;
    }
    bw_blocks_read(&past->reader, requests, count);
    for (size_t i = 0; i < count; i++) {
        struct bw_found_block *block = &past->index.blocks[begin + i];
        if (requests[i].error || !is_as_recorded(past, block, requests[i].buffer))
            block->owner = GONE;
        bw_error_free(requests[i].error);
    }
}

static void verify_batch(void *context, unsigned worker, size_t task)
{
    struct verifying *verifying = context;
    const size_t begin = task * verifying->batch;
    const size_t left = verifying->past->index.count - begin;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&verifying->past->reader, verifying->batch);
    (void)worker;
    if (buffer)
        read_batch(verifying, begin, left < verifying->batch ? left : verifying->batch, buffer);
    else
        verifying->no_memory = true;
}

struct bw_error *bw_past_verify_index(struct bw_past *past, unsigned threads)
{
    struct bw_found_index *index = &past->index;
    struct verifying verifying = {.past = past, .batch = bw_block_batch(&past->reader)};
    struct bw_pool *pool = bw_pool_create(bw_pool_workers(threads));
    if (!pool)
        return bw_error_no_memory();
    bw_pool_run(pool, (index->count + verifying.batch - 1) / verifying.batch, verify_batch,
                &verifying);
    bw_pool_destroy(pool);
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++)
        if (index->blocks[i].owner != GONE)
            index->blocks[kept++] = index->blocks[i];
    index->count = kept;
    return verifying.no_memory ? bw_error_no_memory() : NULL;
}
