/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judging trees from the leaves up. */
#include "history/completeness.h"

#include <stdlib.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/search.h"
#include "xlators/classes.h"

struct bw_judge {
    struct bw_fs *fs;
    const struct bw_found_index *index;
    struct bw_tree_reader reader;   /* without what stands in for lost blocks */
    uint32_t *nodes;                /* places of internal nodes in the index, level by level */
    struct bw_loss *losses;         /* of each */
    size_t first[BW_MAX_LEVEL + 1]; /* where the nodes of a level begin; level 0 has none */
    atomic_uchar *children;         /* a bit for each block: another one points to it */

    /* Blocks that are not in the index, since the copy that was scanned is another one. */
    pthread_mutex_t lock;
    struct bw_map absent; /* from a hash of what their parents promise to their loss */
    struct bw_loss *absent_losses;
    size_t absent_count, absent_capacity;
    size_t tries; /* that are left */
    atomic_bool no_memory;
};

enum {
    TRIES = 1 << 14,          /* that many blocks are looked for in vain */
    TRIES_FOR_A_FIND = 1 << 8 /* and after each that is found, so many more */
};

static const struct bw_loss lost = {1, 0}, trimmed = {1, 1};

static void add(struct bw_loss *sum, struct bw_loss loss)
{
    sum->missing =
        loss.missing > UINT32_MAX - sum->missing ? UINT32_MAX : sum->missing + loss.missing;
    sum->trimmed =
        loss.trimmed > UINT32_MAX - sum->trimmed ? UINT32_MAX : sum->trimmed + loss.trimmed;
}

/* Where the loss of an internal node is kept. */
static struct bw_loss *loss_of(struct bw_judge *judge, const struct bw_found_block *block)
{
    const size_t place = (size_t)(block - judge->index->blocks);
    const size_t first = judge->first[block->level];
    const size_t count = judge->first[block->level + 1] - first;
    return &judge->losses[first + BW_FIRST_INDEX(i, count, judge->nodes[first + i] >= place)];
}

/* Whether a block that was found is what its parent promises. */
static bool agrees(const struct bw_judge *judge, const struct bw_found_block *block,
                   const struct bw_tree_block_expectation *expectation)
{
    const struct bw_key first = bw_found_first_key(block);
    return block->level == expectation->level &&
           bw_node_may_belong(expectation->owner, bw_found_owner(judge->index, block)) &&
           (!expectation->has_first_key ||
            (block->filled && bw_key_compare(&first, &expectation->first_key) == 0));
}

/* Blocks that are not in the index. */

static uint64_t hash_of(const struct bw_judge *judge, const struct bw_block_pointer *pointer)
{
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    const uint64_t words[] = {pointer->bytenr,
                              expectation->generation,
                              expectation->owner,
                              expectation->first_key.objectid,
                              expectation->first_key.offset,
                              expectation->first_key.type | (uint64_t)expectation->level << 8};
    return XXH64(words, sizeof words, judge->fs->seed);
}

static bool are_zeros_at(const struct bw_judge *judge, uint64_t bytenr, uint8_t *buffer)
{
    struct bw_frame frame = bw_frame_above(NULL, bw_xlator_probes(judge->reader.top));
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .length = judge->reader.nodesize,
                                 .address = bytenr,
                                 .buffer = buffer};
    frame.metadata = true;
    bw_wind(&frame, judge->reader.top, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error && bw_found_is_zero(buffer, judge->reader.nodesize);
}

static struct bw_loss judge_node(struct bw_judge *judge, const struct bw_block_pointer *parent,
                                 const uint8_t *bytes);

/* Tries to read a block in all its copies. */
static struct bw_loss try_absent(struct bw_judge *judge, const struct bw_block_pointer *pointer,
                                 bool *found)
{
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&judge->reader, 1);
    if (!buffer)
        return lost;
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&judge->reader, pointer, buffer);
    *found = !error;
    if (error)
        return are_zeros_at(judge, pointer->bytenr, buffer) ? trimmed : lost;
    return pointer->expectation.level ? judge_node(judge, pointer, buffer) : (struct bw_loss){0};
}

static void keep_absent(struct bw_judge *judge, uint64_t hash, struct bw_loss loss, bool found)
{
    pthread_mutex_lock(&judge->lock);
    judge->tries += found ? TRIES_FOR_A_FIND : 0;
    if (BW_ARRAY_RESERVE(judge->absent_losses, judge->absent_count, judge->absent_capacity) &&
        judge->absent_count < UINT32_MAX &&
        bw_map_put(&judge->absent, hash, (uint32_t)judge->absent_count))
        judge->absent_losses[judge->absent_count++] = loss;
    else
        judge->no_memory = true;
    pthread_mutex_unlock(&judge->lock);
}

static struct bw_loss judge_absent(struct bw_judge *judge, const struct bw_block_pointer *pointer,
                                   bool *found)
{
    struct bw_loss loss = lost;
    const uint64_t hash = hash_of(judge, pointer);
    pthread_mutex_lock(&judge->lock);
    const uint32_t known = bw_map_get(&judge->absent, hash);
    if (known != UINT32_MAX)
        loss = judge->absent_losses[known];
    const bool tries = known == UINT32_MAX && judge->tries;
    judge->tries -= tries;
    pthread_mutex_unlock(&judge->lock);
    if (!tries)
        return loss;
    loss = try_absent(judge, pointer, found);
    keep_absent(judge, hash, loss, *found);
    return loss;
}

/* Nodes. */

/* What an address and a generation promise; NULL if it is not in the index. */
static const struct bw_found_block *promised(const struct bw_judge *judge,
                                             const struct bw_block_pointer *pointer)
{
    return bw_found_find(judge->index, pointer->bytenr, pointer->expectation.generation);
}

static struct bw_loss judge_pointer(struct bw_judge *judge, const struct bw_block_pointer *pointer,
                                    const struct bw_found_block *block, bool *readable)
{
    *readable = block && agrees(judge, block, &pointer->expectation);
    if (!*readable)
        return block ? lost : judge_absent(judge, pointer, readable);
    return block->level ? *loss_of(judge, block) : (struct bw_loss){0};
}

static void mark_child(struct bw_judge *judge, const struct bw_found_block *block)
{
    const size_t place = (size_t)(block - judge->index->blocks);
    atomic_fetch_or_explicit(&judge->children[place / 8], (unsigned char)(1 << place % 8),
                             memory_order_relaxed);
}

static struct bw_loss judge_node(struct bw_judge *judge, const struct bw_block_pointer *parent,
                                 const uint8_t *bytes)
{
    const struct bw_node node = bw_node_view(bytes, judge->reader.nodesize);
    struct bw_loss sum = {0};
    bool readable;
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(parent, &node, slot);
        const struct bw_found_block *block = promised(judge, &child);
        add(&sum, judge_pointer(judge, &child, block, &readable));
        if (block && readable)
            mark_child(judge, block);
    }
    return sum;
}

/* A level under way. */
struct level {
    struct bw_judge *judge;
    size_t begin, end; /* of its nodes */
};

static void judge_batch(void *context, unsigned worker, size_t task)
{
    const struct level *level = context;
    struct bw_judge *judge = level->judge;
    const unsigned batch = bw_block_batch(&judge->reader);
    const size_t begin = level->begin + task * batch;
    const size_t count = level->end - begin < batch ? level->end - begin : batch;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&judge->reader, batch);
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    (void)worker;
    if (!buffer)
        judge->no_memory = true;
    for (size_t i = 0; buffer && i < count; i++) {
        pointers[i] =
            bw_found_pointer(judge->index, &judge->index->blocks[judge->nodes[begin + i]]);
        requests[i] =
            bw_block_request(&judge->reader, &pointers[i], buffer + i * judge->reader.nodesize);
        requests[i].keep = false;
    }
    if (buffer)
        bw_blocks_read(&judge->reader, requests, count);
    for (size_t i = 0; buffer && i < count; i++) {
        judge->losses[begin + i] =
            requests[i].error ? lost : judge_node(judge, &pointers[i], requests[i].buffer);
        bw_error_free(requests[i].error);
    }
}

/* Sorts the internal nodes by level: they keep their order within it. */
static bool list_nodes(struct bw_judge *judge)
{
    const struct bw_found_index *index = judge->index;
    size_t next[BW_MAX_LEVEL + 1] = {0};
    for (size_t i = 0; i < index->count; i++)
        if (index->blocks[i].level)
            judge->first[index->blocks[i].level + 1]++;
    for (unsigned level = 1; level <= BW_MAX_LEVEL; level++)
        next[level] = judge->first[level] += judge->first[level - 1];
    const size_t count = judge->first[BW_MAX_LEVEL];
    judge->nodes = calloc(count + 1, sizeof *judge->nodes);
    judge->losses = calloc(count + 1, sizeof *judge->losses);
    judge->children = calloc(index->count / 8 + 1, 1);
    if (!judge->nodes || !judge->losses || !judge->children || index->count > UINT32_MAX)
        return false;
    for (size_t i = 0; i < index->count; i++)
        if (index->blocks[i].level)
            judge->nodes[next[index->blocks[i].level]++] = (uint32_t)i;
    return true;
}

static struct bw_error *judge_all(struct bw_judge *judge, unsigned threads)
{
    const size_t batch = bw_block_batch(&judge->reader);
    struct bw_pool *pool = list_nodes(judge) ? bw_pool_create(bw_pool_workers(threads)) : NULL;
    for (unsigned i = 1; pool && i < BW_MAX_LEVEL; i++) {
        struct level level = {judge, judge->first[i], judge->first[i + 1]};
        bw_pool_run(pool, (level.end - level.begin + batch - 1) / batch, judge_batch, &level);
    }
    if (!pool)
        judge->no_memory = true;
    bw_pool_destroy(pool);
    return judge->no_memory ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_judge_create(struct bw_fs *fs, const struct bw_found_index *index,
                                 unsigned threads, struct bw_judge **judge)
{
    struct bw_judge *made = calloc(1, sizeof *made);
    if (!made)
        return bw_error_no_memory();
    *made = (struct bw_judge){.fs = fs,
                              .index = index,
                              .reader = {.top = fs->reader.top, .nodesize = fs->reader.nodesize},
                              .tries = TRIES};
    pthread_mutex_init(&made->lock, NULL);
    struct bw_error *error = judge_all(made, threads);
    if (error)
        bw_judge_destroy(made);
    else
        *judge = made;
    return error;
}

void bw_judge_destroy(struct bw_judge *judge)
{
    if (!judge)
        return;
    free(judge->nodes);
    free(judge->losses);
    free(judge->children);
    free(judge->absent_losses);
    bw_map_free(&judge->absent);
    pthread_mutex_destroy(&judge->lock);
    free(judge);
}

struct bw_loss bw_judge_tree(struct bw_judge *judge, const struct bw_tree *tree, bool *readable)
{
    const struct bw_block_pointer root = bw_tree_root_pointer(tree, false);
    return judge_pointer(judge, &root, promised(judge, &root), readable);
}

bool bw_judge_is_child(const struct bw_judge *judge, const struct bw_found_block *block)
{
    const size_t place = (size_t)(block - judge->index->blocks);
    return judge->children[place / 8] >> place % 8 & 1;
}
