/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adopts the leaves below lost nodes. The extent tree records for each tree block the tree that it
 * belongs to or, if it is shared, the node above that refers to it. This is how the blocks below a
 * lost node are found: they belong to the same tree; or to the tree that owns the lost node, since
 * a snapshot may share a whole node of another tree; or a node that was found below the lost one
 * refers to them. Such another tree has other blocks, too, also in ranges of other lost nodes: its
 * leaves count only in the range of the node that it shares. The extent tree is read once for each
 * level, from the top down, and then the nodes that were found: if a snapshot shares a node, the
 * extent tree gives the blocks below it to the other tree only. A leaf is adopted if its first key
 * was lost.
 *
 * Readers of files, of checksums and of places of data ask for the adopted leaves of a tree when
 * they meet its first lost node. Then all nodes of the tree are read before the extent tree, so
 * that this happens once for each tree, however many of its nodes are lost.
 */
#include "recovery/recovery.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btree/scan.h"

/* Another tree, and the range of keys in which its leaves count as leaves of this one. */
struct claim {
    uint64_t tree;
    struct bw_lost_range range;
    uint32_t next; /* of the same tree; UINT32_MAX: none */
};

enum {
    NO_CLAIM = UINT32_MAX - 1,
    MOST_REFERENCES = 16, /* to a block, that are examined */
};

/* A block below a lost node. */
struct found_block {
    struct bw_block_pointer pointer;
    uint32_t claim; /* by which it was found, or NO_CLAIM */
};

BW_VECTOR(found_blocks, struct found_block);

BW_VECTOR(claims, struct claim);

struct adoption {
    const struct bw_fs *fs;
    const struct bw_tree *tree;
    const struct bw_lost_ranges *ranges;
    struct bw_adopted *result;
    struct bw_lost_list lost;     /* ranges of lost nodes; those of leaves are not in it */
    uint64_t newest;              /* no block below a lost node is newer */
    uint8_t level;                /* of the blocks that this pass looks for */
    uint8_t lowest;               /* of the blocks that are adopted */
    struct bw_key_map lost_nodes; /* addresses of lost nodes, to their index in `ranges` */
    size_t known;                 /* how many of them the extent tree has */
    struct bw_key_map claim_of;   /* addresses of blocks found below them, to the claim, or NO_CLAIM
                                   */
    struct claims claims;
    struct bw_key_map claimants; /* ids of trees, to the first of their claims */
    struct bw_tree_extent block; /* the block of the last extent item; bytenr 0 if it is of no
                                    interest */
    unsigned references;         /* to the block, by which it was added */
    struct found_blocks unread;  /* blocks of this level */
    struct found_blocks below;   /* their children */
    unsigned batch;              /* blocks that are read at a time */
    uint8_t *buffers;
};

/* Whether a tree has a claim to a key. */
static bool is_claimed(const struct adoption *adoption, uint64_t tree, const struct bw_key *key)
{
    uint32_t number = bw_key_map_get(&adoption->claimants, tree, UINT32_MAX);
    while (number != UINT32_MAX) {
        const struct claim *claim = &adoption->claims.items[number];
        if (bw_key_compare(key, &claim->range.low) >= 0 &&
            bw_key_compare(key, &claim->range.high) < 0)
            return true;
        number = claim->next;
    }
    return false;
}

/* Adopts a block whose first key was lost. It may hold keys up to the end of that loss. */
static struct bw_error *adopt_block(struct adoption *adoption, const struct found_block *found,
                                    const struct bw_node *node)
{
    const struct bw_lost_list *lost = &adoption->lost;
    if (!node->item_count)
        return NULL;
    const struct bw_key first = bw_first_key(node);
    const struct bw_lost_range *range = bw_lost_list_find(lost, &first);
    if (!range || (found->claim != NO_CLAIM &&
                   !is_claimed(adoption, adoption->claims.items[found->claim].tree, &first)))
        return NULL;
    const uint32_t last = node->item_count - 1;
    struct bw_adopted_leaf adopted = {
        found->pointer, node->level ? bw_node_key(node, last) : bw_leaf_key(node, last),
        range->wave};
    adopted.pointer.expectation.first_key = first;
    adopted.pointer.expectation.has_first_key = true;
    /* Pieces that touch were lost in different waves. */
    while (range < lost->items + lost->count - 1 &&
           bw_key_compare(&range->high, &range[1].low) == 0)
        range++;
    adopted.pointer.expectation.end_key = range->high;
    return bw_adopted_leaves_push(&adoption->result->leaves, adopted);
}

static struct bw_error *add_block(struct adoption *adoption, struct found_blocks *blocks,
                                  const struct bw_block_pointer *pointer, uint32_t claim)
{
    BW_TRY(found_blocks_reserve(blocks, 1));
    BW_TRY(bw_key_map_put(&adoption->claim_of, pointer->bytenr, claim));
    blocks->items[blocks->count++] = (struct found_block){*pointer, claim};
    return NULL;
}

/* Reads the blocks of this level that were found, in batches: adds the children of nodes, or adopts
 * the blocks if the level is the lowest. A hostile node may have the same child as many others:
 * each is added at most twice. */
static struct bw_error *read_found(struct adoption *adoption)
{
    const struct bw_tree_reader *reader = &adoption->fs->reader;
    struct found_blocks *unread = &adoption->unread;
    const bool is_above = adoption->level > adoption->lowest; /* of those that are adopted */
    struct bw_request requests[BW_BATCH];
    struct bw_error *failure = NULL;
    for (size_t i = 0; i < unread->count && !failure; i += adoption->batch) {
        const struct found_block *blocks = &unread->items[i];
        const size_t left = unread->count - i;
        const unsigned count = left < adoption->batch ? (unsigned)left : adoption->batch;
        for (unsigned k = 0; k < count; k++)
            requests[k] = bw_block_request(reader, &blocks[k].pointer,
                                           adoption->buffers + (size_t)k * reader->nodesize);
        bw_blocks_read(reader, requests, count);
        for (unsigned k = 0; k < count; k++) {
            const struct bw_node node = bw_node_view(requests[k].buffer, reader->nodesize);
            const uint64_t generation = blocks[k].pointer.expectation.generation;
            const bool is_good = !requests[k].error;
            bw_error_free(requests[k].error);
            /* References lead to all blocks below an unreadable node that no snapshot shares. */
            if (!is_good)
                adoption->result->complete &= is_above && generation > adoption->tree->shared_until;
            else if (!failure && !is_above)
                failure = adopt_block(adoption, &blocks[k], &node);
            for (uint32_t slot = 0; is_good && is_above && slot < node.item_count && !failure;
                 slot++) {
                const struct bw_block_pointer child =
                    bw_tree_child_pointer(&blocks[k].pointer, &node, slot);
                const uint32_t known =
                    bw_key_map_get(&adoption->claim_of, child.bytenr, UINT32_MAX);
                if (known == UINT32_MAX || (known != NO_CLAIM && blocks[k].claim == NO_CLAIM))
                    failure = add_block(adoption, &adoption->below, &child, blocks[k].claim);
            }
        }
    }
    if (!failure)
        unread->count = 0;
    return failure;
}

/* A reference to the block of the last extent item. */
static struct bw_error *follow_reference(struct adoption *adoption,
                                         const struct bw_extent_reference *reference)
{
    const struct bw_tree_extent *block = &adoption->block;
    const uint64_t referrer = reference->referrer; /* a node if the block is shared, or a tree */
    if (!block->bytenr)
        return NULL;

    /* Leaves of the tree that a lost node belongs to count as well, in the range of that node. */
    const uint32_t lost = bw_key_map_get(&adoption->lost_nodes, block->bytenr, UINT32_MAX);
    if (lost != UINT32_MAX && reference->shared)
        return NULL;
    if (lost != UINT32_MAX) {
        const uint32_t next = bw_key_map_get(&adoption->claimants, referrer, UINT32_MAX);
        const uint32_t number = (uint32_t)adoption->claims.count;
        BW_TRY(claims_push(&adoption->claims,
                           (struct claim){referrer, adoption->ranges->items[lost], next}));
        return bw_key_map_put(&adoption->claimants, referrer, number);
    }

    /* Whether the reference shows that the block may be below a lost node: the claim that this
     * depends on, NO_CLAIM if it is certain, or UINT32_MAX if it does not. A reference without a
     * claim is certain, so the others to the same block do not matter. */
    uint32_t claim = NO_CLAIM;
    if (reference->shared && !bw_key_map_has(&adoption->lost_nodes, referrer))
        claim = bw_key_map_get(&adoption->claim_of, referrer, UINT32_MAX);
    else if (!reference->shared && referrer != adoption->tree->id)
        claim = bw_key_map_get(&adoption->claimants, referrer, UINT32_MAX);
    if (claim == UINT32_MAX || adoption->references >= MOST_REFERENCES)
        return NULL;
    adoption->references = claim == NO_CLAIM ? MOST_REFERENCES : adoption->references + 1;
    const uint32_t known = bw_key_map_get(&adoption->claim_of, block->bytenr, UINT32_MAX);
    if (known == claim || known == NO_CLAIM)
        return NULL;
    const struct bw_block_pointer pointer = {
        block->bytenr,
        {.owner = adoption->tree->id, .generation = block->generation, .level = adoption->level}};
    BW_TRY(add_block(adoption, &adoption->unread, &pointer, claim));

    /* Blocks are adopted at once, so that only a batch of them waits. */
    if (adoption->level > adoption->lowest || adoption->unread.count < adoption->batch)
        return NULL;
    return read_found(adoption);
}

/* Follows the references to tree blocks in a leaf of the extent tree: those in extent items, and
 * items of references, which come after the extent item of their block. */
static struct bw_error *follow_leaf(struct adoption *adoption, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_tree_extent extent;
        struct bw_extent_reference reference;
        if (!bw_tree_extent_decode(&item, &extent)) {
            if (item.key.objectid == adoption->block.bytenr &&
                bw_extent_reference_of_key(&item.key, &reference))
                BW_TRY(follow_reference(adoption, &reference));
            continue;
        }
        adoption->block = extent;
        adoption->references = 0;
        if (extent.level != adoption->level || extent.generation > adoption->newest)
            adoption->block.bytenr = 0;
        else
            adoption->known += bw_key_map_has(&adoption->lost_nodes, extent.bytenr);
        while (bw_extent_reference_next(&extent.references, &reference))
            BW_TRY(follow_reference(adoption, &reference));
    }
    return NULL;
}

static int by_first_key(const void *a, const void *b)
{
    const struct bw_adopted_leaf *left = a, *right = b;
    return bw_key_compare(&left->pointer.expectation.first_key,
                          &right->pointer.expectation.first_key);
}

/* Searches level by level. The children of the blocks of one level, and the blocks that references
 * lead to, are the blocks of the next. */
static struct bw_error *find_blocks(struct adoption *adoption)
{
    const struct bw_fs *fs = adoption->fs;
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};

    /* The search begins at the highest level that was lost. */
    uint8_t highest = 0;
    for (size_t i = 0; i < adoption->ranges->count && i < UINT32_MAX; i++) {
        const struct bw_lost_range *range = &adoption->ranges->items[i];
        if (range->level <= adoption->lowest)
            continue;
        BW_TRY(bw_key_map_put(&adoption->lost_nodes, range->bytenr, (uint32_t)i));
        highest = range->level > highest ? range->level : highest;
        if (range->generation > adoption->newest)
            adoption->newest = range->generation;
    }
    if (!highest || !fs->extent_tree.id)
        return NULL;

    BW_TRY(bw_lost_list_make(adoption->ranges, adoption->lowest + 1, &adoption->lost));
    adoption->batch = bw_block_batch(&fs->reader);
    adoption->buffers = bw_block_buffer(&fs->reader, adoption->batch);
    if (!adoption->buffers)
        return bw_error_no_memory();
    adoption->result->complete = true;
    for (unsigned level = highest + 1u; level-- > adoption->lowest;) {
        const struct found_blocks above = adoption->unread;
        adoption->unread = adoption->below;
        adoption->below = above; /* all of them are read: empty */
        adoption->level = (uint8_t)level;
        adoption->block.bytenr = 0;
        bw_block_scan_begin(&scan, &fs->reader, &fs->extent_tree);
        while (bw_block_scan_next(&scan)) {
            adoption->result->complete &= !scan.error;
            BW_TRY(follow_leaf(adoption, &scan.node));
        }
        BW_TRY(bw_block_scan_end(&scan));
        BW_TRY(read_found(adoption));
    }

    /* Sorts the leaves. Each ends where the next begins. If two overlap, which a sound tree never
     * has, only one stays; a leaf that several references led to stays once. */
    struct bw_adopted *adopted = adoption->result;
    size_t kept = 0;
    bw_adopted_leaves_sort(&adopted->leaves, by_first_key);
    for (size_t i = 0; i < adopted->leaves.count; i++) {
        struct bw_adopted_leaf *leaf = &adopted->leaves.items[i];
        struct bw_adopted_leaf *before = kept ? &adopted->leaves.items[kept - 1] : NULL;
        const struct bw_key *first = &leaf->pointer.expectation.first_key;
        if (before && bw_key_compare(first, &before->last_key) <= 0) {
            adopted->complete &= leaf->pointer.bytenr == before->pointer.bytenr;
            continue;
        }
        if (before && bw_key_compare(first, &before->pointer.expectation.end_key) < 0)
            before->pointer.expectation.end_key = *first;
        adopted->leaves.items[kept++] = *leaf;
    }
    adopted->leaves.count = kept;
    adopted->complete &= adoption->known == adoption->lost_nodes.count;
    return NULL;
}

struct bw_error *bw_adopt_blocks(const struct bw_fs *fs, const struct bw_tree *tree,
                                 const struct bw_lost_ranges *lost, uint8_t level,
                                 struct bw_adopted *result)
{
    struct adoption adoption = {
        .fs = fs, .tree = tree, .ranges = lost, .lowest = level, .result = result};
    result->leaves.count = 0;
    result->complete = false;
    struct bw_error *error = find_blocks(&adoption);
    bw_lost_list_free(&adoption.lost);
    bw_key_map_free(&adoption.lost_nodes);
    bw_key_map_free(&adoption.claim_of);
    bw_key_map_free(&adoption.claimants);
    found_blocks_free(&adoption.unread);
    found_blocks_free(&adoption.below);
    claims_free(&adoption.claims);
    free(adoption.buffers);
    return error;
}

/* Does not change any more once it is among the adoptions. */
struct adopted_tree {
    uint64_t id;
    struct bw_lost_ranges lost; /* nodes */
    struct bw_adopted adopted;
};

BW_VECTOR(adopted_trees, struct adopted_tree *);

struct bw_adoptions {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct adopted_trees trees;
};

static void free_tree(struct adopted_tree *tree)
{
    if (!tree)
        return;
    free(tree->lost.items);
    bw_adopted_free(&tree->adopted);
    free(tree);
}

/* A node right above leaves is read here, because the scan does not need its children. */
struct bw_error *bw_find_lost_nodes(struct bw_fs *fs, const struct bw_tree *tree, uint32_t wave,
                                    struct bw_lost_ranges *lost)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    bw_block_scan_begin(&scan, &fs->reader, tree);
    while (bw_block_scan_next(&scan)) {
        const uint8_t level = scan.pointer.expectation.level;
        struct bw_error *error = BW_TAKE(scan.error);
        scan.selected = level > 1;
        if (scan.step == BW_SCAN_POINTER && level == 1)
            error = bw_block_read(&fs->reader, &scan.pointer, block);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (!error)
            continue;
        bw_fs_report_lost(fs, scan.pointer.bytenr, error);
        BW_TRY(bw_lost_ranges_push(lost, bw_lost_range_of(&scan.pointer, wave)));
    }
    return bw_block_scan_end(&scan);
}

struct bw_error *bw_adoptions_find(void *context, const struct bw_tree *of, uint64_t bytenr,
                                   const struct bw_adopted **adopted)
{
    struct bw_adoptions *adoptions = context;
    const struct bw_fs *fs = adoptions->fs;
    struct adopted_trees *trees = &adoptions->trees;
    struct adopted_tree *tree = NULL;
    const bool checksums = of->id == BW_CSUM_TREE;
    /* With several checksum trees, the id does not tell which one is meant. */
    if (checksums && fs->checksum_trees.count != 1)
        return NULL;
    if (!checksums && of->id != fs->stripe_tree.id && !bw_subvolume_by_id(fs, of->id))
        return NULL;

    /* The tree, with its adopted leaves; if it is not known yet, they are adopted now. */
    pthread_mutex_lock(&adoptions->lock);
    for (size_t i = 0; i < trees->count && !tree; i++)
        if (trees->items[i]->id == of->id)
            tree = trees->items[i];
    struct bw_error *error = NULL;
    if (!tree) {
        tree = calloc(1, sizeof *tree);
        error = tree ? adopted_trees_reserve(trees, 1) : bw_error_no_memory();
        if (!error)
            error = bw_find_lost_nodes(adoptions->fs, of, 0, &tree->lost);
        if (!error)
            error = bw_adopt_blocks(adoptions->fs, of, &tree->lost, 0, &tree->adopted);
        if (error) {
            free_tree(tree);
        } else {
            tree->id = of->id;
            trees->items[trees->count++] = tree;
        }
    }
    pthread_mutex_unlock(&adoptions->lock);

    for (size_t i = 0; !error && i < tree->lost.count; i++)
        if (tree->lost.items[i].bytenr == bytenr)
            *adopted = &tree->adopted;
    return error;
}

struct bw_error *bw_adoptions_create(struct bw_fs *fs, struct bw_adoptions **result)
{
    struct bw_adoptions *adoptions = calloc(1, sizeof *adoptions);
    if (!adoptions)
        return bw_error_no_memory();
    adoptions->fs = fs;
    pthread_mutex_init(&adoptions->lock, NULL);
    *result = adoptions;
    return NULL;
}

void bw_adoptions_destroy(struct bw_adoptions *adoptions)
{
    if (!adoptions)
        return;
    for (size_t i = 0; i < adoptions->trees.count; i++)
        free_tree(adoptions->trees.items[i]);
    adopted_trees_free(&adoptions->trees);
    pthread_mutex_destroy(&adoptions->lock);
    free(adoptions);
}
