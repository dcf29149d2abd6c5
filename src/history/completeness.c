/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Assesses the completeness of trees, from the leaves up: how many blocks below each node are
 * missing. Most blocks are in the index of the scan, so a node has to be read only for the pointers
 * in it, and its loss is the sum of the losses of its children. The levels follow one another, and
 * the nodes of a level are read in batches by several threads.
 *
 * A block that the index lacks may have another mirror than the scanned one, so it is read. These
 * reads are limited, because most of the blocks were overwritten.
 */
#include "history/history.h"

#include <stdlib.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/pool.h"
#include "base/search.h"
#include "base/zeros.h"

/* A block that is not in the index, because another mirror was scanned, or because it is lost. */
struct absent_block {
    struct bw_loss loss;
    bool found;
};

BW_VECTOR(absent_blocks, struct absent_block);

struct bw_completeness {
    struct bw_fs *fs;
    const struct bw_found_index *index;
    struct bw_tree_reader reader;   /* without replacements for lost blocks */
    uint32_t *nodes;                /* indices of internal nodes in the index, level by level */
    struct bw_loss *losses;         /* of each of these nodes */
    size_t first[BW_MAX_LEVEL + 1]; /* index in `nodes` of the first node of each level, except
                                     * level 0 */
    unsigned level;                 /* that is being assessed */
    atomic_uchar *children;         /* a bit for each block: it is a child of another one */

    pthread_mutex_t lock;
    struct bw_key_map absent; /* from a hash of their parents' pointers to their indices in
                               * absent_blocks */
    struct absent_blocks absent_blocks;
    size_t tries; /* number of reads that may still fail */
    atomic_bool no_memory;
};

enum {
    TRIES = 1 << 14,           /* number of blocks that may be searched in vain */
    TRIES_PER_SUCCESS = 1 << 8 /* added for each block that is found */
};

static const struct bw_loss lost = {1, 0}, trimmed = {1, 1};

static uint32_t add_up(uint32_t a, uint32_t b)
{
    return b > UINT32_MAX - a ? UINT32_MAX : a + b;
}

/* The stored loss of an internal node. */
static struct bw_loss *loss_of(struct bw_completeness *completeness,
                               const struct bw_found_block *block)
{
    const size_t place = (size_t)(block - completeness->index->blocks.items);
    const size_t first = completeness->first[block->level];
    const size_t count = completeness->first[block->level + 1] - first;
    return &completeness
                ->losses[first + BW_FIRST_INDEX(i, count, completeness->nodes[first + i] >= place)];
}

/* Blocks that are not in the index. */

static struct bw_loss assess_node(struct bw_completeness *completeness,
                                  const struct bw_block_pointer *parent, const uint8_t *bytes);

/* The loss of a block that the index lacks: tries to read all its mirrors, unless that was tried
 * before, or too many of these reads have failed. */
static struct absent_block assess_absent(struct bw_completeness *completeness,
                                         const struct bw_block_pointer *pointer)
{
    const struct bw_tree_reader *reader = &completeness->reader;
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    const uint64_t words[] = {pointer->bytenr,
                              expectation->generation,
                              expectation->owner,
                              expectation->first_key.objectid,
                              expectation->first_key.offset,
                              expectation->first_key.type | (uint64_t)expectation->level << 8};
    const uint64_t hash = XXH64(words, sizeof words, completeness->fs->seed);
    struct absent_block block = {lost, false};
    pthread_mutex_lock(&completeness->lock);
    const uint32_t known = bw_key_map_get(&completeness->absent, hash, UINT32_MAX);
    if (known != UINT32_MAX)
        block = completeness->absent_blocks.items[known];
    const bool tries = known == UINT32_MAX && completeness->tries;
    completeness->tries -= tries;
    pthread_mutex_unlock(&completeness->lock);
    if (!tries)
        return block;

    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    BW_AUTO_ERROR struct bw_error *error =
        buffer ? bw_block_read(reader, pointer, buffer) : bw_error_no_memory();
    block.found = !error;
    if (block.found) {
        block.loss = (struct bw_loss){0};
        if (expectation->level)
            block.loss = assess_node(completeness, pointer, buffer);
    } else if (buffer) {
        const struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(reader->top));
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = reader->nodesize,
                                     .address = pointer->bytenr,
                                     .buffer = buffer};
        bw_wind(&frame, reader->top, &request, 1);
        BW_AUTO_ERROR struct bw_error *unreadable = request.error;
        if (!unreadable && bw_is_zeros(buffer, reader->nodesize))
            block.loss = trimmed;
    }

    pthread_mutex_lock(&completeness->lock);
    struct absent_blocks *blocks = &completeness->absent_blocks;
    completeness->tries += block.found ? TRIES_PER_SUCCESS : 0;
    if (buffer && !absent_blocks_reserve(blocks, 1) && blocks->count < UINT32_MAX &&
        !bw_key_map_put(&completeness->absent, hash, (uint32_t)blocks->count))
        blocks->items[blocks->count++] = block;
    else
        completeness->no_memory = true;
    pthread_mutex_unlock(&completeness->lock);
    return block;
}

/* Nodes. */

/* The block with the address and generation of a pointer; NULL if the index does not contain it. */
static const struct bw_found_block *find_referenced(const struct bw_completeness *completeness,
                                                    const struct bw_block_pointer *pointer)
{
    return bw_found_find(completeness->index, pointer->bytenr, pointer->expectation.generation);
}

static struct bw_loss assess_pointer(struct bw_completeness *completeness,
                                     const struct bw_block_pointer *pointer,
                                     const struct bw_found_block *block, bool *readable)
{
    if (!block) {
        const struct absent_block absent = assess_absent(completeness, pointer);
        *readable = absent.found;
        return absent.loss;
    }
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    const struct bw_key first = bw_found_first_key(block);
    *readable =
        block->level == expectation->level &&
        bw_node_may_belong(expectation->owner, bw_found_owner(completeness->index, block)) &&
        (!expectation->has_first_key ||
         (block->filled && bw_key_compare(&first, &expectation->first_key) == 0));
    if (!*readable)
        return lost;
    return block->level ? *loss_of(completeness, block) : (struct bw_loss){0};
}

static struct bw_loss assess_node(struct bw_completeness *completeness,
                                  const struct bw_block_pointer *parent, const uint8_t *bytes)
{
    const struct bw_node node = bw_node_view(bytes, completeness->reader.nodesize);
    struct bw_loss sum = {0};
    bool readable;
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(parent, &node, slot);
        const struct bw_found_block *block = find_referenced(completeness, &child);
        const struct bw_loss loss = assess_pointer(completeness, &child, block, &readable);
        sum.missing = add_up(sum.missing, loss.missing);
        sum.trimmed = add_up(sum.trimmed, loss.trimmed);
        if (!block || !readable)
            continue;
        const size_t place = (size_t)(block - completeness->index->blocks.items);
        atomic_fetch_or_explicit(&completeness->children[place / 8],
                                 (unsigned char)(1 << place % 8), memory_order_relaxed);
    }
    return sum;
}

/* Announces all copies of the blocks that the nodes of a batch refer to and the index lacks, in
 * ascending order. Most were overwritten, so every copy is tried. */
static void announce_absent(const struct bw_completeness *completeness,
                            const struct bw_block_pointer *pointers,
                            const struct bw_request *requests, size_t count)
{
    enum { COPIES = 2 };
    const struct bw_frame frame =
        bw_frame_above_blocks(NULL, bw_xlator_probes(completeness->reader.top));
    const uint32_t length = completeness->reader.nodesize;
    BW_AUTO_FREE struct bw_range *ranges = calloc(count * BW_MAX_CHILDREN + 1, sizeof *ranges);
    size_t listed = 0, kept = 0;
    for (size_t i = 0; ranges && i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, length);
        for (uint32_t slot = 0; !requests[i].error && slot < node.item_count; slot++) {
            const struct bw_block_pointer child = bw_tree_child_pointer(&pointers[i], &node, slot);
            if (!find_referenced(completeness, &child))
                ranges[listed++] = (struct bw_range){child.bytenr, length};
        }
    }
    if (!listed)
        return;
    qsort(ranges, listed, sizeof *ranges, bw_compare_first);
    for (size_t i = 0; i < listed; i++)
        if (!kept || ranges[kept - 1].address != ranges[i].address)
            ranges[kept++] = ranges[i];
    for (unsigned copy = 1; copy <= COPIES; copy++)
        bw_wind_advise(&frame, completeness->reader.top, ranges, kept, copy);
}

static void assess_batch(void *context, unsigned worker, size_t task)
{
    enum { BATCHES_AHEAD = 16 };
    struct bw_completeness *completeness = context;
    const unsigned batch = bw_block_batch(&completeness->reader);
    const size_t end = completeness->first[completeness->level + 1];
    const size_t begin = completeness->first[completeness->level] + task * batch;
    const size_t count = end - begin < batch ? end - begin : batch;
    const struct bw_found_block *blocks = completeness->index->blocks.items;

    /* Requests the nodes of a later batch; in the first one, of all up to there. */
    for (size_t i = task ? BATCHES_AHEAD : 0; i <= BATCHES_AHEAD; i++) {
        struct bw_range ranges[BW_BATCH];
        size_t ahead = 0;
        for (size_t at = begin + i * batch; at < end && ahead < batch; at++)
            ranges[ahead++] = (struct bw_range){blocks[completeness->nodes[at]].bytenr,
                                                completeness->reader.nodesize};
        if (ahead)
            bw_blocks_advise(&completeness->reader, ranges, ahead);
    }

    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&completeness->reader, batch);
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    (void)worker;
    if (!buffer)
        completeness->no_memory = true;
    for (size_t i = 0; buffer && i < count; i++) {
        pointers[i] =
            bw_found_pointer(completeness->index, &blocks[completeness->nodes[begin + i]]);
        requests[i] = bw_block_request(&completeness->reader, &pointers[i],
                                       buffer + i * completeness->reader.nodesize);
        requests[i].keep = false;
    }
    if (buffer) {
        bw_blocks_read(&completeness->reader, requests, count);
        announce_absent(completeness, pointers, requests, count);
    }
    for (size_t i = 0; buffer && i < count; i++) {
        completeness->losses[begin + i] =
            requests[i].error ? lost : assess_node(completeness, &pointers[i], requests[i].buffer);
        bw_error_free(requests[i].error);
    }
}

/* Lists the internal nodes by level, in the order of the index within each, and assesses them level
 * by level. */
struct bw_error *bw_completeness_create(struct bw_fs *fs, const struct bw_found_index *index,
                                        unsigned threads, struct bw_completeness **result)
{
    struct bw_completeness *completeness = *result = calloc(1, sizeof *completeness);
    if (!completeness)
        return bw_error_no_memory();
    *completeness =
        (struct bw_completeness){.fs = fs,
                                 .index = index,
                                 .reader = {.top = fs->reader.top, .nodesize = fs->reader.nodesize},
                                 .tries = TRIES};
    pthread_mutex_init(&completeness->lock, NULL);
    size_t *first = completeness->first, next[BW_MAX_LEVEL + 1] = {0};
    for (size_t i = 0; i < index->blocks.count; i++)
        if (index->blocks.items[i].level)
            first[index->blocks.items[i].level + 1]++;
    for (unsigned level = 1; level <= BW_MAX_LEVEL; level++)
        next[level] = first[level] += first[level - 1];
    const size_t count = first[BW_MAX_LEVEL];
    completeness->nodes = calloc(count + 1, sizeof *completeness->nodes);
    completeness->losses = calloc(count + 1, sizeof *completeness->losses);
    completeness->children = calloc(index->blocks.count / 8 + 1, 1);
    if (!completeness->nodes || !completeness->losses || !completeness->children ||
        index->blocks.count > UINT32_MAX)
        return bw_error_no_memory();
    for (size_t i = 0; i < index->blocks.count; i++)
        if (index->blocks.items[i].level)
            completeness->nodes[next[index->blocks.items[i].level]++] = (uint32_t)i;

    struct bw_pool *pool = bw_pool_create(bw_pool_workers(threads));
    if (!pool)
        return bw_error_no_memory();
    const size_t batch = bw_block_batch(&completeness->reader);
    for (unsigned i = 1; i < BW_MAX_LEVEL; i++) {
        completeness->level = i;
        bw_pool_run(pool, (first[i + 1] - first[i] + batch - 1) / batch, assess_batch,
                    completeness);
    }
    bw_pool_destroy(pool);
    return completeness->no_memory ? bw_error_no_memory() : NULL;
}

void bw_completeness_destroy(struct bw_completeness *completeness)
{
    if (!completeness)
        return;
    free(completeness->nodes);
    free(completeness->losses);
    free(completeness->children);
    absent_blocks_free(&completeness->absent_blocks);
    bw_key_map_free(&completeness->absent);
    pthread_mutex_destroy(&completeness->lock);
    free(completeness);
}

struct bw_error *bw_completeness_of_tree(struct bw_completeness *completeness,
                                         const struct bw_tree *tree, struct bw_loss *loss,
                                         bool *readable)
{
    const struct bw_block_pointer root = bw_tree_root_pointer(tree, false);
    *loss = assess_pointer(completeness, &root, find_referenced(completeness, &root), readable);
    return completeness->no_memory ? bw_error_no_memory() : NULL;
}

bool bw_completeness_is_child(const struct bw_completeness *completeness,
                              const struct bw_found_block *block)
{
    const size_t place = (size_t)(block - completeness->index->blocks.items);
    return completeness->children[place / 8] >> place % 8 & 1;
}
