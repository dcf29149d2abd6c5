/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: memory for parts of files, and the list of these parts.
 *
 * Bytes are allocated one after the other and never freed singly, so the parts of several files can
 * share a block, which is then emptied as a whole. It has room for more than BW_DATA_BLOCK, because
 * whole sectors are read where a range begins or ends within one; bw_data_block_trim() cuts the
 * parts to the range afterwards.
 */
#include "data/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "ondisk/disk.h"

/* The first and the last sector of a range may be needed only in part. */
enum { ALIGNMENT = 4096, SLACK = 256 << 10 };

static_assert(SLACK >= 2 * BW_MAX_NODESIZE + ALIGNMENT, "a sector is no larger than a node");

static const size_t capacity = BW_DATA_BLOCK + SLACK;

void bw_data_block_clear(struct bw_data_block *block)
{
    for (size_t i = 0; i < block->parts.count; i++)
        bw_error_free(block->parts.items[i].error);
    block->parts.count = 0;
    block->used = 0;
}

void bw_data_block_free(struct bw_data_block *block)
{
    bw_data_block_clear(block);
    bw_data_parts_free(&block->parts);
    free(block->bytes);
    *block = (struct bw_data_block){0};
}

bool bw_data_block_reserve(struct bw_data_block *block)
{
    if (!block->bytes)
        block->bytes = aligned_alloc(ALIGNMENT, capacity);
    return block->bytes;
}

size_t bw_data_block_room(const struct bw_data_block *block)
{
    return capacity - block->used;
}

uint8_t *bw_data_block_allocate(struct bw_data_block *block, size_t length)
{
    uint8_t *bytes = block->bytes + block->used;
    const size_t taken = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    block->used = (size_t)bw_min(block->used + taken, capacity);
    return bytes;
}

struct bw_error *bw_data_block_add(struct bw_data_block *block, struct bw_data_part part)
{
    return bw_data_block_insert(block, block->parts.count, &part, 1);
}

struct bw_error *bw_data_block_add_bad(struct bw_data_block *block, uint64_t offset,
                                       uint64_t length, struct bw_error *error)
{
    return bw_data_block_add(
        block, (struct bw_data_part){
                   .kind = BW_DATA_BAD, .offset = offset, .length = length, .error = error});
}

struct bw_error *bw_data_block_insert(struct bw_data_block *block, size_t at,
                                      const struct bw_data_part *parts, size_t count)
{
    struct bw_error *error = bw_data_parts_reserve(&block->parts, count);
    if (error) {
        for (size_t i = 0; i < count; i++)
            bw_error_free(parts[i].error);
        return error;
    }
    struct bw_data_part *place = block->parts.items + at;
    memmove(place + count, place, (block->parts.count - at) * sizeof *place);
    memcpy(place, parts, count * sizeof *place);
    block->parts.count += count;
    return NULL;
}

static bool is_followed_by(const struct bw_data_part *part, const struct bw_data_part *next)
{
    return part->kind == next->kind && part->in_tree == next->in_tree &&
           part->unverified == next->unverified && part->corrected == next->corrected &&
           part->offset + part->length == next->offset &&
           (part->kind != BW_DATA_BYTES || part->bytes + part->length == next->bytes);
}

void bw_data_block_join(struct bw_data_block *block, size_t first)
{
    size_t last = first;
    for (size_t i = first + 1; i < block->parts.count; i++) {
        struct bw_data_part *part = &block->parts.items[last], *next = &block->parts.items[i];
        if (is_followed_by(part, next)) {
            part->length += next->length;
            bw_error_free(next->error);
        } else {
            block->parts.items[++last] = *next;
        }
    }
    if (first < block->parts.count)
        block->parts.count = last + 1;
}

void bw_data_block_trim(struct bw_data_block *block, size_t first, uint64_t start, uint64_t end)
{
    size_t kept = first;
    for (size_t i = first; i < block->parts.count; i++) {
        struct bw_data_part part = block->parts.items[i];
        uint64_t skip = part.offset < start ? start - part.offset : 0;
        if (skip >= part.length || part.offset >= end) {
            bw_error_free(part.error);
            continue;
        }
        part.offset += skip;
        part.length -= skip;
        part.bytes = part.bytes ? part.bytes + skip : NULL;
        part.length = bw_min(part.length, end - part.offset);
        block->parts.items[kept++] = part;
    }
    block->parts.count = kept;
}
