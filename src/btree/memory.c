/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making tree blocks in memory. */
#include "btree/memory.h"

#include "base/array.h"

uint8_t *bw_memory_add(struct bw_block_memory *memory, uint64_t *address)
{
    uint8_t *block = BW_ARRAY_RESERVE(memory->blocks, memory->count, memory->capacity)
                         ? malloc(memory->nodesize)
                         : NULL;
    *address = BW_MEMORY_START + (uint64_t)memory->count * memory->nodesize;
    if (block)
        memory->blocks[memory->count++] = block;
    return block;
}

void bw_memory_free(struct bw_block_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        free(memory->blocks[i]);
    free(memory->blocks);
    *memory = (struct bw_block_memory){.nodesize = memory->nodesize};
}
