/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks in memory. They have addresses that no chunk has, so pointers can lead from one to
 * another and to blocks of the image, and readers need no special case. edit.h creates them. */
#ifndef BW_BTREE_MEMORY_H
#define BW_BTREE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* NULL: a block that was never found. */
BW_VECTOR(bw_memory_blocks, uint8_t *);

/** The blocks. Any thread may read them while no thread adds one. Set `nodesize`; the rest begins
 * as zeros. */
struct bw_block_memory {
    uint32_t nodesize;
    struct bw_memory_blocks blocks;
};

/** The first address: above those that the kernel gives to chunks. */
#define BW_MEMORY_START (UINT64_C(1) << 63)

/** Whether a block has an address, found or not. `memory` may be NULL. */
static inline bool bw_memory_has(const struct bw_block_memory *memory, uint64_t address)
{
    return memory && address >= BW_MEMORY_START &&
           (address - BW_MEMORY_START) % memory->nodesize == 0 &&
           (address - BW_MEMORY_START) / memory->nodesize < memory->blocks.count;
}

/** The block at an address, or NULL. `memory` may be NULL. */
static inline uint8_t *bw_memory_block(const struct bw_block_memory *memory, uint64_t address)
{
    return bw_memory_has(memory, address)
               ? memory->blocks.items[(address - BW_MEMORY_START) / memory->nodesize]
               : NULL;
}

/** Removes the blocks after the first `count`. */
void bw_memory_cut(struct bw_block_memory *memory, size_t count);

void bw_memory_free(struct bw_block_memory *memory);

#endif
