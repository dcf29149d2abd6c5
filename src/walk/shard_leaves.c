/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses leaves by their first keys and by the files known so far. */
#include "walk/shard_leaves.h"

/* The entries in a leaf, judged by its first key and the first key of the next leaf. */
enum leaf_entries { HAS_NO_ENTRIES, BEGINS_WITH_ENTRIES, MAY_HAVE_ENTRIES };

static enum leaf_entries leaf_entries_of(const struct bw_key *first, const struct bw_key *end)
{
    const struct bw_key entries = {first->objectid, BW_DIR_INDEX, 0};
    if (first->type == BW_DIR_INDEX)
        return BEGINS_WITH_ENTRIES;
    if (first->type == BW_DIR_ITEM && end->objectid == first->objectid)
        return bw_key_compare(end, &entries) > 0 ? BEGINS_WITH_ENTRIES : HAS_NO_ENTRIES;
    if (first->type == BW_DIR_ITEM)
        return BEGINS_WITH_ENTRIES;
    const bool within = end->objectid == first->objectid;
    return within && (first->type > BW_DIR_INDEX || bw_key_compare(end, &entries) <= 0)
               ? HAS_NO_ENTRIES
               : MAY_HAVE_ENTRIES;
}

void bw_shard_leaves_free(struct bw_shard_leaves *part)
{
    bw_known_files_free(&part->known);
    bw_buffer_free(&part->numbers);
}

bool bw_shard_leaves_has(struct bw_shard_leaves *part, uint32_t leaf)
{
    if (part->owns_all)
        return true;
    const struct bw_key first = bw_leaves_key(part->leaves, leaf);
    return bw_shard_has(part->nodes, &first, leaf, part->leaves->count, &part->cut);
}

/* Wants a leaf if it begins with entries; if it may have some, it becomes a hidden one. */
static void want_entries(struct bw_shard_leaves *part, uint32_t leaf)
{
    const struct bw_key first = bw_leaves_key(part->leaves, leaf);
    const struct bw_key end = bw_leaves_key(part->leaves, leaf + 1);
    const enum leaf_entries entries = leaf_entries_of(&first, &end);
    const bool may_have = entries == MAY_HAVE_ENTRIES && !bw_leaves_is_empty(part->leaves, leaf);
    if (entries == BEGINS_WITH_ENTRIES || (may_have && part->needs_inodes))
        bw_leaves_want(part->leaves, leaf);
    else if (may_have)
        part->hidden[part->hidden_count++] = (uint16_t)leaf;
}

/* The same for all leaves of the shard. */
static void want_all_entries(struct bw_shard_leaves *part)
{
    const struct bw_leaves *leaves = part->leaves;
    for (uint32_t leaf = 0, end; leaf < leaves->count; leaf = end) {
        const bool is_own = bw_shard_leaves_has(part, leaf);
        end = part->owns_all ? leaves->count
                             : bw_shard_range_end(part->nodes, &leaves->node, leaf, part->cut);
        for (uint32_t own = leaf; is_own && own < end; own++)
            want_entries(part, own);
    }
}

struct bw_error *bw_shard_leaves_begin(struct bw_shard_leaves *part,
                                       const struct bw_shard_nodes *nodes, struct bw_leaves *leaves,
                                       bool needs_inodes)
{
    const struct bw_tree_block_expectation *keys = &leaves->pointer.expectation;
    part->nodes = nodes;
    part->leaves = leaves;
    part->needs_inodes = needs_inodes;
    part->owns_all = bw_shard_has_all(nodes, &keys->first_key, &keys->end_key);
    part->cut = part->round = part->hidden_count = 0;
    part->recalled = bw_leaves_recall(leaves, &part->numbers);
    if (!part->recalled) {
        part->numbers.length = 0;
        if (!bw_shard_is_sparse(&leaves->node))
            want_all_entries(part);
    }
    part->notes = part->hidden_count;
    return part->notes ? bw_known_files_reset(&part->known, &leaves->pointer,
                                              bw_leaves_key(leaves, leaves->count - 1).objectid)
                       : NULL;
}

void bw_shard_leaves_add(struct bw_shard_leaves *part, const struct bw_wanted_leaf *leaf)
{
    const uint16_t number = (uint16_t)leaf->number;
    if (!part->recalled && (!leaf->has_list || leaf->list.length))
        bw_buffer_append(&part->numbers, &number, sizeof number);
}

/* A leaf often shows that its neighbours contain only files, so of neighbouring leaves the first is
 * examined before the second; but not all of many neighbours wait. */
bool bw_shard_leaves_want_more(struct bw_shard_leaves *part)
{
    enum { PATIENT_ROUNDS = 8, MOST_WAITING = 16 };
    const uint32_t count = part->hidden_count;
    const bool is_patient = part->round++ < PATIENT_ROUNDS;
    uint32_t last = UINT32_MAX / 2, wanted = last;
    part->hidden_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t leaf = part->hidden[i];
        const struct bw_key first = bw_leaves_key(part->leaves, leaf);
        const struct bw_key end = bw_leaves_key(part->leaves, leaf + 1);
        if (bw_known_files_fill(&part->known, &first, &end)) {
            bw_leaves_set_empty(part->leaves, leaf);
            continue;
        }
        if (is_patient && leaf - last == 1 && leaf - wanted <= MOST_WAITING) {
            part->hidden[part->hidden_count++] = (uint16_t)leaf;
        } else {
            bw_leaves_want(part->leaves, leaf);
            wanted = leaf;
        }
        last = leaf;
    }
    return count;
}

void bw_shard_leaves_remember(const struct bw_shard_leaves *part)
{
    if (!part->recalled)
        bw_leaves_remember(part->leaves, &part->numbers);
}
