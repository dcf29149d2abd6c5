/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading trees in waves. The level falls with each wave, so cycles end. */
#include "owners/waves.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "graph/wind.h"
#include "owners/references.h"

/* The memory of a thread: a batch of blocks, and a batch of leaves below one of them. */
struct bw_wave_worker {
    uint8_t *blocks, *leaves;
    bool wanted[BW_MAX_CHILDREN];
    struct bw_range ranges[BW_MAX_CHILDREN];
};

/* A level that is being read. */
struct wave {
    struct bw_waves *waves;
    unsigned level;
    size_t count, step; /* blocks: all, and those in a task */
};

struct bw_error *bw_waves_begin(struct bw_waves *waves)
{
    const struct bw_tree_reader *reader = &waves->fs->reader;
    pthread_mutex_init(&waves->lock, NULL);
    waves->workers = bw_pool_workers(waves->threads);
    waves->pool = bw_pool_create(waves->workers);
    waves->memory = calloc(waves->workers, sizeof *waves->memory);
    bool complete = waves->pool && waves->memory;
    for (unsigned i = 0; complete && i < waves->workers; i++) {
        waves->memory[i].blocks = bw_block_buffer(reader, bw_block_batch(reader));
        waves->memory[i].leaves = bw_block_buffer(reader, bw_block_batch(reader));
        complete = waves->memory[i].blocks && waves->memory[i].leaves;
    }
    return complete ? NULL : bw_error_no_memory();
}

void bw_waves_end(struct bw_waves *waves)
{
    bw_pool_destroy(waves->pool);
    for (unsigned i = 0; waves->memory && i < waves->workers; i++) {
        free(waves->memory[i].blocks);
        free(waves->memory[i].leaves);
    }
    for (unsigned i = 0; i < BW_MAX_LEVEL; i++)
        free(waves->lists[i].blocks);
    free(waves->memory);
    pthread_mutex_destroy(&waves->lock);
}

static bool add(struct bw_wave_list *list, const struct bw_wave_block *block)
{
    if (!BW_ARRAY_RESERVE(list->blocks, list->count, list->capacity))
        return false;
    list->blocks[list->count++] = *block;
    return true;
}

struct bw_error *bw_waves_add(struct bw_waves *waves, const struct bw_wave_block *block)
{
    return add(&waves->lists[block->pointer.expectation.level], block) ? NULL
                                                                       : bw_error_no_memory();
}

static struct bw_wave_block child_of(const struct bw_wave_block *parent, const struct bw_node *node,
                                     uint32_t slot)
{
    const bool cut = parent->dropped && slot == bw_tree_first_slot(parent->dropped, node);
    return (struct bw_wave_block){bw_tree_child_pointer(&parent->pointer, node, slot),
                                  parent->value, cut ? parent->dropped : NULL};
}

/* Nodes wait for their wave. */
static void add_nodes(struct bw_waves *waves, const struct bw_wave_block *parent,
                      const struct bw_node *node, const bool *wanted)
{
    pthread_mutex_lock(&waves->lock);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (!wanted[slot])
            continue;
        const struct bw_wave_block child = child_of(parent, node, slot);
        if (!add(&waves->lists[node->level - 1], &child))
            waves->no_memory = true;
    }
    pthread_mutex_unlock(&waves->lock);
}

static void read_batch(struct bw_waves *waves, unsigned worker, const struct bw_wave_block *blocks,
                       unsigned count, uint8_t *buffer);

static void announce(struct bw_waves *waves, unsigned worker, const struct bw_node *node)
{
    struct bw_wave_worker *memory = &waves->memory[worker];
    size_t count = 0;
    for (uint32_t slot = 0; slot < node->item_count; slot++)
        if (memory->wanted[slot])
            memory->ranges[count++] =
                (struct bw_range){bw_node_pointer_at(node, slot).bytenr, node->nodesize};
    bw_blocks_advise(&waves->fs->reader, memory->ranges, count);
}

static void read_leaves(struct bw_waves *waves, unsigned worker, const struct bw_wave_block *parent,
                        const struct bw_node *node)
{
    const struct bw_wave_worker *memory = &waves->memory[worker];
    const unsigned batch = bw_block_batch(&waves->fs->reader);
    struct bw_wave_block leaves[BW_BATCH];
    unsigned count = 0;
    announce(waves, worker, node);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (memory->wanted[slot])
            leaves[count++] = child_of(parent, node, slot);
        if (count == batch || slot + 1 == node->item_count) {
            read_batch(waves, worker, leaves, count, memory->leaves);
            count = 0;
        }
    }
}

static void take_block(struct bw_waves *waves, unsigned worker, const struct bw_wave_block *block,
                       const struct bw_node *node)
{
    bool *wanted = waves->memory[worker].wanted;
    if (!node->level) {
        waves->leaf(waves->context, worker, block, node);
        return;
    }
    memset(wanted, 0, node->item_count * sizeof *wanted);
    waves->node(waves->context, worker, block, node, wanted);
    if (node->level > 1)
        add_nodes(waves, block, node, wanted);
    else
        read_leaves(waves, worker, block, node);
}

static void read_batch(struct bw_waves *waves, unsigned worker, const struct bw_wave_block *blocks,
                       unsigned count, uint8_t *buffer)
{
    const struct bw_tree_reader *reader = &waves->fs->reader;
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < count; i++)
        requests[i] =
            bw_block_request(reader, &blocks[i].pointer, buffer + (size_t)i * reader->nodesize);
    bw_blocks_read(reader, requests, count);
    waves->blocks += count;
    for (unsigned i = 0; i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (requests[i].error && requests[i].error->code == BW_ERROR_NO_MEMORY)
            waves->no_memory = true;
        else if (requests[i].error)
            waves->lost(waves->context, &blocks[i], requests[i].error);
        else
            take_block(waves, worker, &blocks[i], &node);
    }
}

static bool goes_on(struct bw_waves *waves, unsigned worker)
{
    if (!worker && waves->goes_on && !waves->goes_on(waves->context))
        waves->stopped = true;
    return !waves->stopped && !waves->no_memory;
}

static void pick(const struct wave *wave, size_t first, unsigned count,
                 struct bw_wave_block *blocks)
{
    const struct bw_waves *waves = wave->waves;
    if (waves->order)
        waves->pick(waves->context, wave->level, first, count, blocks);
    else
        memcpy(blocks, &waves->lists[wave->level].blocks[first], count * sizeof *blocks);
}

static void run_task(void *context, unsigned worker, size_t task)
{
    const struct wave *wave = context;
    struct bw_waves *waves = wave->waves;
    const size_t batch = bw_block_batch(&waves->fs->reader), first = task * wave->step,
                 left = wave->count - first, end = first + (left < wave->step ? left : wave->step);
    struct bw_wave_block blocks[BW_BATCH];
    for (size_t at = first; at < end && goes_on(waves, worker); at += batch) {
        const unsigned count = (unsigned)(end - at < batch ? end - at : batch);
        pick(wave, at, count, blocks);
        read_batch(waves, worker, blocks, count, waves->memory[worker].blocks);
    }
    if (waves->row)
        waves->row(waves->context, worker);
}

static void run_wave(struct bw_waves *waves, unsigned level)
{
    const size_t tasks_a_worker = 8;
    struct bw_wave_list *list = &waves->lists[level];
    struct wave wave = {waves, level, list->count, 0};
    if (waves->order)
        wave.count = waves->order(waves->context, level, list);
    wave.step = wave.count / (waves->workers * tasks_a_worker) + 1;
    bw_pool_run(waves->pool, (wave.count + wave.step - 1) / wave.step, run_task, &wave);
    free(list->blocks);
    *list = (struct bw_wave_list){0};
}

struct bw_error *bw_waves_run(struct bw_waves *waves)
{
    for (unsigned level = BW_MAX_LEVEL; level-- > 0;)
        run_wave(waves, level);
    if (waves->no_memory)
        return bw_error_no_memory();
    return waves->stopped ? bw_error_create(BW_ERROR_STOPPED, "stopped") : NULL;
}
