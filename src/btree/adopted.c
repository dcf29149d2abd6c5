/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches keys in adopted leaves: a binary search, since the leaves are in order and do not
 * overlap. */
#include "btree/block.h"

#include "base/cleanup.h"
#include "base/search.h"

void bw_adopted_free(struct bw_adopted *adopted)
{
    bw_adopted_leaves_free(&adopted->leaves);
    *adopted = (struct bw_adopted){0};
}

size_t bw_adopted_until(const struct bw_adopted *adopted, const struct bw_key *key)
{
    return BW_FIRST_INDEX(
        i, adopted->leaves.count,
        bw_key_compare(&adopted->leaves.items[i].pointer.expectation.first_key, key) > 0);
}

const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted *adopted,
                                                 const struct bw_key *key)
{
    size_t until = bw_adopted_until(adopted, key);
    const struct bw_adopted_leaf *leaf = until ? &adopted->leaves.items[until - 1] : NULL;
    return leaf && bw_key_compare(key, &leaf->last_key) <= 0 ? leaf : NULL;
}

bool bw_adopted_covers(const struct bw_adopted *adopted, const struct bw_key *first,
                       const struct bw_key *last)
{
    const struct bw_adopted_leaf *leaf = bw_adopted_leaf_of(adopted, first);
    return adopted->complete || (leaf && bw_key_compare(last, &leaf->last_key) <= 0);
}

struct bw_error *bw_adopted_find(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                 uint64_t bytenr, const struct bw_adopted **adopted)
{
    *adopted = NULL;
    if (!reader->adopter)
        return NULL;
    return reader->adopter->find(reader->adopter->context, tree, bytenr, adopted);
}

struct bw_error *
bw_adopted_visit(const struct bw_tree_reader *reader, const struct bw_adopted *adopted,
                 const struct bw_key *first, const struct bw_key *last,
                 struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                 void *context)
{
    size_t begin = bw_adopted_until(adopted, first), end = bw_adopted_until(adopted, last);
    BW_AUTO_FREE uint8_t *block = end ? bw_block_buffer(reader, 1) : NULL;
    for (size_t i = begin ? begin - 1 : 0; i < end; i++) {
        if (!block)
            return bw_error_no_memory();
        BW_AUTO_ERROR struct bw_error *error =
            bw_block_read(reader, &adopted->leaves.items[i].pointer, block);
        struct bw_node leaf = bw_node_view(block, reader->nodesize);
        if (!error)
            BW_TRY(visit(context, &leaf));
    }
    return NULL;
}
