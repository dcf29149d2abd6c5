/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading trees level by level. The level falls with each step, so cycles end. */
#include "owners/level_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "graph/wind.h"
#include "owners/references.h"

/* The memory of a thread: a batch of blocks, and a batch of leaves below one of them. */
struct bw_level_reader_worker {
    uint8_t *blocks, *leaves;
    bool wanted[BW_MAX_CHILDREN];
    struct bw_range ranges[BW_MAX_CHILDREN];
};

/* A level that is being read. */
struct level_tasks {
    struct bw_level_reader *levels;
    unsigned level;
    size_t count, step; /* blocks: all, and those in a task */
};

struct bw_error *bw_level_reader_begin(struct bw_level_reader *levels)
{
    const struct bw_tree_reader *reader = &levels->fs->reader;
    pthread_mutex_init(&levels->lock, NULL);
    levels->workers = bw_pool_workers(levels->threads);
    levels->pool = bw_pool_create(levels->workers);
    levels->memory = calloc(levels->workers, sizeof *levels->memory);
    bool complete = levels->pool && levels->memory;
    for (unsigned i = 0; complete && i < levels->workers; i++) {
        levels->memory[i].blocks = bw_block_buffer(reader, bw_block_batch(reader));
        levels->memory[i].leaves = bw_block_buffer(reader, bw_block_batch(reader));
        complete = levels->memory[i].blocks && levels->memory[i].leaves;
    }
    return complete ? NULL : bw_error_no_memory();
}

void bw_level_reader_end(struct bw_level_reader *levels)
{
    bw_pool_destroy(levels->pool);
    for (unsigned i = 0; levels->memory && i < levels->workers; i++) {
        free(levels->memory[i].blocks);
        free(levels->memory[i].leaves);
    }
    for (unsigned i = 0; i < BW_MAX_LEVEL; i++)
        free(levels->lists[i].blocks);
    free(levels->memory);
    pthread_mutex_destroy(&levels->lock);
}

static bool add(struct bw_block_queue *list, const struct bw_queued_block *block)
{
    if (!BW_ARRAY_RESERVE(list->blocks, list->count, list->capacity))
        return false;
    list->blocks[list->count++] = *block;
    return true;
}

struct bw_error *bw_level_reader_add(struct bw_level_reader *levels,
                                     const struct bw_queued_block *block)
{
    return add(&levels->lists[block->pointer.expectation.level], block) ? NULL
                                                                        : bw_error_no_memory();
}

static struct bw_queued_block child_of(const struct bw_queued_block *parent,
                                       const struct bw_node *node, uint32_t slot)
{
    const bool cut = parent->dropped && slot == bw_tree_first_slot(parent->dropped, node);
    return (struct bw_queued_block){bw_tree_child_pointer(&parent->pointer, node, slot),
                                    parent->value, cut ? parent->dropped : NULL};
}

/* Nodes wait for their level. */
static void add_nodes(struct bw_level_reader *levels, const struct bw_queued_block *parent,
                      const struct bw_node *node, const bool *wanted)
{
    pthread_mutex_lock(&levels->lock);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (!wanted[slot])
            continue;
        const struct bw_queued_block child = child_of(parent, node, slot);
        if (!add(&levels->lists[node->level - 1], &child))
            levels->no_memory = true;
    }
    pthread_mutex_unlock(&levels->lock);
}

static void read_batch(struct bw_level_reader *levels, unsigned worker,
                       const struct bw_queued_block *blocks, unsigned count, uint8_t *buffer);

static void advise_leaves(struct bw_level_reader *levels, unsigned worker,
                          const struct bw_node *node)
{
    struct bw_level_reader_worker *memory = &levels->memory[worker];
    size_t count = 0;
    for (uint32_t slot = 0; slot < node->item_count; slot++)
        if (memory->wanted[slot])
            memory->ranges[count++] =
                (struct bw_range){bw_node_pointer_at(node, slot).bytenr, node->nodesize};
    bw_blocks_advise(&levels->fs->reader, memory->ranges, count);
}

static void read_leaves(struct bw_level_reader *levels, unsigned worker,
                        const struct bw_queued_block *parent, const struct bw_node *node)
{
    const struct bw_level_reader_worker *memory = &levels->memory[worker];
    const unsigned batch = bw_block_batch(&levels->fs->reader);
    struct bw_queued_block leaves[BW_BATCH];
    unsigned count = 0;
    advise_leaves(levels, worker, node);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (memory->wanted[slot])
            leaves[count++] = child_of(parent, node, slot);
        if (count == batch || slot + 1 == node->item_count) {
            read_batch(levels, worker, leaves, count, memory->leaves);
            count = 0;
        }
    }
}

static void handle_block(struct bw_level_reader *levels, unsigned worker,
                         const struct bw_queued_block *block, const struct bw_node *node)
{
    bool *wanted = levels->memory[worker].wanted;
    if (!node->level) {
        levels->leaf(levels->context, worker, block, node);
        return;
    }
    memset(wanted, 0, node->item_count * sizeof *wanted);
    levels->node(levels->context, worker, block, node, wanted);
    if (node->level > 1)
        add_nodes(levels, block, node, wanted);
    else
        read_leaves(levels, worker, block, node);
}

static void read_batch(struct bw_level_reader *levels, unsigned worker,
                       const struct bw_queued_block *blocks, unsigned count, uint8_t *buffer)
{
    const struct bw_tree_reader *reader = &levels->fs->reader;
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < count; i++)
        requests[i] =
            bw_block_request(reader, &blocks[i].pointer, buffer + (size_t)i * reader->nodesize);
    bw_blocks_read(reader, requests, count);
    levels->blocks += count;
    for (unsigned i = 0; i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (requests[i].error && requests[i].error->code == BW_ERROR_NO_MEMORY)
            levels->no_memory = true;
        else if (requests[i].error)
            levels->lost(levels->context, &blocks[i], requests[i].error);
        else
            handle_block(levels, worker, &blocks[i], &node);
    }
}

static bool should_continue(struct bw_level_reader *levels, unsigned worker)
{
    if (!worker && levels->should_continue && !levels->should_continue(levels->context))
        levels->stopped = true;
    return !levels->stopped && !levels->no_memory;
}

static void pick(const struct level_tasks *level_tasks, size_t first, unsigned count,
                 struct bw_queued_block *blocks)
{
    const struct bw_level_reader *levels = level_tasks->levels;
    if (levels->order)
        levels->pick(levels->context, level_tasks->level, first, count, blocks);
    else
        memcpy(blocks, &levels->lists[level_tasks->level].blocks[first], count * sizeof *blocks);
}

static void run_task(void *context, unsigned worker, size_t task)
{
    const struct level_tasks *level_tasks = context;
    struct bw_level_reader *levels = level_tasks->levels;
    const size_t batch = bw_block_batch(&levels->fs->reader), first = task * level_tasks->step,
                 left = level_tasks->count - first,
                 end = first + (left < level_tasks->step ? left : level_tasks->step);
    struct bw_queued_block blocks[BW_BATCH];
    for (size_t at = first; at < end && should_continue(levels, worker); at += batch) {
        const unsigned count = (unsigned)(end - at < batch ? end - at : batch);
        pick(level_tasks, at, count, blocks);
        read_batch(levels, worker, blocks, count, levels->memory[worker].blocks);
    }
    if (levels->row)
        levels->row(levels->context, worker);
}

static void read_level(struct bw_level_reader *levels, unsigned level)
{
    const size_t tasks_a_worker = 8;
    struct bw_block_queue *list = &levels->lists[level];
    struct level_tasks level_tasks = {levels, level, list->count, 0};
    if (levels->order)
        level_tasks.count = levels->order(levels->context, level, list);
    level_tasks.step = level_tasks.count / (levels->workers * tasks_a_worker) + 1;
    bw_pool_run(levels->pool, (level_tasks.count + level_tasks.step - 1) / level_tasks.step,
                run_task, &level_tasks);
    free(list->blocks);
    *list = (struct bw_block_queue){0};
}

struct bw_error *bw_level_reader_run(struct bw_level_reader *levels)
{
    for (unsigned level = BW_MAX_LEVEL; level-- > 0;)
        read_level(levels, level);
    if (levels->no_memory)
        return bw_error_no_memory();
    return levels->stopped ? bw_error_create(BW_ERROR_STOPPED, "stopped") : NULL;
}
