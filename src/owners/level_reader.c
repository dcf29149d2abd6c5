/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading trees level by level. The level falls with each step, so cycles end. */
#include "owners/level_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "data/references.h"
#include "graph/wind.h"

enum { ANNOUNCED = 4096 /* blocks, at a time */ };

/* The memory of a thread: a batch of blocks, and leaves below them that are to be read. */
struct bw_level_reader_worker {
    uint8_t *blocks, *leaves;
    bool wanted[BW_MAX_CHILDREN];
    struct bw_block_queue below;
    struct bw_range ranges[ANNOUNCED];
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
        free(levels->memory[i].below.items);
    }
    for (unsigned i = 0; i < BW_MAX_LEVEL; i++)
        free(levels->lists[i].items);
    free(levels->memory);
    pthread_mutex_destroy(&levels->lock);
}

struct bw_error *bw_level_reader_add(struct bw_level_reader *levels,
                                     const struct bw_queued_block *block)
{
    return bw_block_queue_push(&levels->lists[block->pointer.expectation.level], *block);
}

static void read_batch(struct bw_level_reader *levels, unsigned worker,
                       const struct bw_queued_block *blocks, unsigned count, uint8_t *buffer);

/* Reads the leaves that were chosen so far. */
static void read_leaves(struct bw_level_reader *levels, unsigned worker)
{
    struct bw_level_reader_worker *memory = &levels->memory[worker];
    const size_t batch = bw_block_batch(&levels->fs->reader), count = memory->below.count;
    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        memory->ranges[i] =
            (struct bw_range){memory->below.items[i].pointer.bytenr, levels->fs->reader.nodesize};
    bw_blocks_advise(&levels->fs->reader, memory->ranges, count);
    for (size_t at = 0; at < count; at += batch)
        read_batch(levels, worker, &memory->below.items[at],
                   (unsigned)(count - at < batch ? count - at : batch), memory->leaves);
    memory->below.count = 0;
}

/* Asks which children of a node are wanted. Nodes wait for their level. Leaves are read when the
 * batch of their nodes ends, or when there are many. */
static void visit_node(struct bw_level_reader *levels, unsigned worker,
                       const struct bw_queued_block *block, const struct bw_node *node)
{
    struct bw_level_reader_worker *memory = &levels->memory[worker];
    bool *wanted = memory->wanted;
    memset(wanted, !levels->node, node->item_count * sizeof *wanted);
    if (levels->node)
        levels->node(levels->context, worker, block, node, wanted);
    const bool has_leaves = node->level == 1;
    struct bw_block_queue *list = &levels->lists[node->level - 1];
    if (has_leaves) {
        if (memory->below.count + node->item_count > ANNOUNCED)
            read_leaves(levels, worker);
        list = &memory->below;
    } else {
        pthread_mutex_lock(&levels->lock);
    }
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (!wanted[slot])
            continue;
        const bool cut = block->dropped && slot == bw_tree_first_slot(block->dropped, node);
        const struct bw_queued_block child = {bw_tree_child_pointer(&block->pointer, node, slot),
                                              block->value, cut ? block->dropped : NULL};
        if (bw_block_queue_push(list, child))
            levels->no_memory = true;
    }
    if (!has_leaves)
        pthread_mutex_unlock(&levels->lock);
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
        struct bw_error *error = requests[i].error;
        levels->has_losses |= error != NULL;
        if (error && error->code == BW_ERROR_NO_MEMORY)
            levels->no_memory = true;
        else if (error && levels->lost)
            levels->lost(levels->context, &blocks[i], error);
        else if (error)
            bw_fs_report_lost(levels->fs, blocks[i].pointer.bytenr, error);
        else if (node.level)
            visit_node(levels, worker, &blocks[i], &node);
        else if (levels->leaf)
            levels->leaf(levels->context, worker, &blocks[i], &node);
    }
}

static void pick_blocks(const struct level_tasks *level_tasks, size_t first, unsigned count,
                        struct bw_queued_block *blocks)
{
    const struct bw_level_reader *levels = level_tasks->levels;
    if (levels->order)
        levels->pick(levels->context, level_tasks->level, first, count, blocks);
    else
        memcpy(blocks, &levels->lists[level_tasks->level].items[first], count * sizeof *blocks);
}

/* Announces blocks of a level, in the order in which they will be read. */
static void advise_level(const struct level_tasks *level_tasks, unsigned worker, size_t first,
                         size_t end)
{
    const struct bw_level_reader *levels = level_tasks->levels;
    struct bw_range *ranges = levels->memory[worker].ranges;
    struct bw_queued_block blocks[BW_BATCH];
    size_t ranged = 0;
    for (size_t at = first; at < end; at += BW_BATCH) {
        const unsigned count = (unsigned)bw_next_batch(end - at);
        pick_blocks(level_tasks, at, count, blocks);
        for (unsigned i = 0; i < count; i++)
            ranges[ranged++] =
                (struct bw_range){blocks[i].pointer.bytenr, levels->fs->reader.nodesize};
    }
    bw_blocks_advise(&levels->fs->reader, ranges, ranged);
}

static void run_task(void *context, unsigned worker, size_t task)
{
    const struct level_tasks *level_tasks = context;
    struct bw_level_reader *levels = level_tasks->levels;
    const size_t batch = bw_block_batch(&levels->fs->reader), first = task * level_tasks->step,
                 left = level_tasks->count - first,
                 end = first + (left < level_tasks->step ? left : level_tasks->step);
    struct bw_queued_block blocks[BW_BATCH];
    for (size_t at = first; at < end; at += batch) {
        if (!worker && levels->progress && !levels->progress(levels->progress_context))
            levels->stopped = true;
        if (levels->stopped || levels->no_memory)
            break;
        const unsigned count = (unsigned)(end - at < batch ? end - at : batch);
        if (at >= ANNOUNCED && (at - first) % ANNOUNCED < batch)
            advise_level(level_tasks, worker, at, end - at < ANNOUNCED ? end : at + ANNOUNCED);
        pick_blocks(level_tasks, at, count, blocks);
        read_batch(levels, worker, blocks, count, levels->memory[worker].blocks);
        read_leaves(levels, worker);
    }
    if (levels->row)
        levels->row(levels->context, worker);
}

struct bw_error *bw_level_reader_run(struct bw_level_reader *levels)
{
    const size_t tasks_a_worker = 8;
    for (unsigned level = BW_MAX_LEVEL; level-- > 0;) {
        struct bw_block_queue *list = &levels->lists[level];
        struct level_tasks tasks = {levels, level, list->count, 0};
        if (levels->order)
            tasks.count = levels->order(levels->context, level, list);
        tasks.step = tasks.count / (levels->workers * tasks_a_worker) + 1;
        advise_level(&tasks, 0, 0, tasks.count < ANNOUNCED ? tasks.count : ANNOUNCED);
        bw_pool_run(levels->pool, (tasks.count + tasks.step - 1) / tasks.step, run_task, &tasks);
        free(list->items);
        *list = (struct bw_block_queue){0};
    }
    if (levels->no_memory)
        return bw_error_no_memory();
    return levels->stopped ? bw_error_create(BW_ERROR_STOPPED, "stopped") : NULL;
}
