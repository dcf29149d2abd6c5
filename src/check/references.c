/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How references are entered into the books. */
#include "check/references.h"

#include "check/leaf.h"
#include "check/ledger.h"

static void enter(struct bw_check *check, const struct bw_reference *reference, uint64_t sign)
{
    uint64_t fact =
        bw_ledger_hash(reference->kind, reference->bytenr, reference->length, reference->source);
    if (reference->kind == BW_EXTENT_DATA_REF || !reference->kind)
        fact = bw_ledger_hash(fact, reference->inode, reference->offset, 0);
    bw_ledger_enter(check->references, reference->bytenr, fact, reference->count * sign);
}

void bw_reference_promised(struct bw_check *check, const struct bw_reference *reference)
{
    enter(check, reference, 1);
}

void bw_reference_made(struct bw_check *check, const struct bw_reference *reference)
{
    enter(check, reference, UINT64_MAX);
}

void bw_check_references_of(struct bw_check *check, const struct bw_node *node, uint32_t first_slot,
                            bw_reference_taker *take, void *context)
{
    const struct bw_disk_header *header = (const void *)node->block;
    const bool by_address =
        bw_map_get(&check->full_backrefs, bw_get64(header->bytenr)) != UINT32_MAX;
    bw_references_of_block(node, first_slot, by_address, take, context);
}

static void enter_made(void *context, const struct bw_reference *reference)
{
    bw_reference_made(context, reference);
}

void bw_check_references(const struct bw_reached_block *block, uint32_t first_slot)
{
    struct bw_check *check = block->check;
    if (check->references && !block->in_log && bw_tree_has_references(block->tree->tree.id))
        bw_check_references_of(check, &block->node, first_slot, enter_made, check);
}
