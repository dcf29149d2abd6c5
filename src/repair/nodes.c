/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nodes of which no copy is good. A node contains only the first key, address and generation of
 * each child. The extent tree has a reference from each child to the tree of the node, or to the
 * node, so all children are known (recovery/adopted_leaves.c). Their headers contain the rest.
 *
 * The check of the trial proves that no child is missing or superfluous: the references in the
 * extent tree must agree with the pointers of all nodes.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "btree/find_leaf.h"
#include "btree/memory.h"
#include "data/references.h"
#include "ondisk/disk.h"
#include "owners/tree_list.h"
#include "recovery/recovery.h"
#include "repair/repair.h"

/* A lost node. */
struct lost_node {
    struct bw_repair_finding *finding;
    struct bw_block_pointer pointer;
};

BW_VECTOR(lost_nodes, struct lost_node);

/* The references to a block, according to the extent tree. */
struct owners {
    struct bw_numbers trees; /* that refer to it themselves */
    bool counts_by_address;  /* its children refer to it, not to its owner */
};

static void owners_free(struct owners *owners)
{
    bw_numbers_free(&owners->trees);
}

static struct bw_error *read_owners(struct bw_repair *repair, uint64_t bytenr,
                                    struct owners *owners)
{
    struct bw_extent_entry extent = {0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, &repair->fs->extent_tree,
                      (struct bw_key){bytenr, BW_EXTENT_ITEM, 0},
                      (struct bw_key){bytenr, BW_TREE_BLOCK_REF, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_reference reference;
        if (bw_extent_entry_decode(repair->fs, item, &extent)) {
            owners->counts_by_address = extent.shared_children;
            while (bw_extent_reference_step(&extent, &reference))
                if (reference.kind == BW_TREE_BLOCK_REF)
                    BW_TRY(bw_numbers_push(&owners->trees, reference.source));
        } else if (bw_extent_keyed(&extent, item, &reference) &&
                   reference.kind == BW_TREE_BLOCK_REF) {
            BW_TRY(bw_numbers_push(&owners->trees, reference.source));
        }
    }
    return bw_fs_items_error(&items);
}

/* Whether a tree contains the node, and had no snapshot since then. */
static struct bw_error *is_newer(struct bw_repair *repair, const struct bw_tree_list *trees,
                                 const struct bw_block_pointer *node, bool *result)
{
    struct bw_block_pointer pointer;
    *result = false;
    for (size_t i = 0; i < trees->entries.count && !*result; i++) {
        const struct bw_tree *tree = &trees->entries.items[i].tree;
        if (bw_is_subvolume_id(tree->id) && node->expectation.generation > tree->shared_until)
            BW_TRY(bw_repair_find_pointer(&repair->fs->reader, tree, node->bytenr,
                                          &node->expectation.first_key, &pointer, result));
    }
    return NULL;
}

/* Sets the owner and the flags in the header of the node, which begins as a copy of its child's. If
 * several trees share the node, its children refer only to its owner. If they refer to its address,
 * the owner no longer matters. */
static struct bw_error *set_owner(struct bw_repair *repair, const struct bw_tree_list *trees,
                                  const struct bw_block_pointer *node, uint64_t child,
                                  struct bw_disk_header *header)
{
    BW_SCOPED(owners) struct owners of_node = {.counts_by_address = false}, of_child = of_node;
    bool is_relocated = false;
    BW_TRY(read_owners(repair, node->bytenr, &of_node));
    BW_TRY(read_owners(repair, child, &of_child));
    for (size_t i = 0; i < of_node.trees.count && !of_node.counts_by_address; i++)
        for (size_t k = 0; k < of_child.trees.count; k++)
            if (of_node.trees.items[i] == of_child.trees.items[k])
                header->owner = bw_put64(of_node.trees.items[i]);

    /* The flag tells the kernel to look for references even if no snapshot is that new. */
    uint64_t flags = bw_get64(header->flags) & ~(uint64_t)BW_HEADER_RELOCATED;
    if (of_node.counts_by_address)
        BW_TRY(is_newer(repair, trees, node, &is_relocated));
    if (is_relocated)
        flags |= BW_HEADER_RELOCATED;
    header->flags = bw_put64(flags);
    return NULL;
}

/* The number of blocks whose keys are before a key. */
static size_t count_before(const struct bw_adopted_leaves *blocks, const struct bw_key *key)
{
    return BW_FIRST_INDEX(i, blocks->count,
                          bw_key_compare(&blocks->items[i].pointer.expectation.first_key, key) >=
                              0);
}

/* Plans a node with the blocks whose first keys are in its range. */
static struct bw_error *plan_node(struct bw_repair *repair, const struct bw_tree_list *trees,
                                  const struct bw_tree *tree, const struct lost_node *lost,
                                  const struct bw_adopted_leaves *blocks)
{
    const uint32_t nodesize = repair->fs->superblock.nodesize;
    const struct bw_tree_block_expectation *expectation = &lost->pointer.expectation;
    const size_t first = count_before(blocks, &expectation->first_key);
    const size_t count = count_before(blocks, &expectation->end_key) - first;
    const size_t room =
        (nodesize - sizeof(struct bw_disk_header)) / sizeof(struct bw_disk_key_pointer);
    const struct bw_adopted_leaf *children = &blocks->items[first];
    if (!count || count > room ||
        (expectation->has_first_key &&
         bw_key_compare(&children->pointer.expectation.first_key, &expectation->first_key) != 0))
        return NULL;

    const uint8_t *child;
    BW_AUTO_FREE uint8_t *block = calloc(1, nodesize);
    struct bw_disk_header *header = (void *)block;
    if (!block)
        return bw_error_no_memory();
    BW_TRY(bw_repair_block_contents(repair, children->pointer.bytenr, &child));
    if (!child)
        return NULL;
    memcpy(header, child, sizeof *header);
    BW_TRY(set_owner(repair, trees, &lost->pointer, children->pointer.bytenr, header));
    header->bytenr = bw_put64(lost->pointer.bytenr);
    header->generation = bw_put64(expectation->generation);
    header->item_count = bw_put32((uint32_t)count);
    header->level = expectation->level;
    struct bw_disk_key_pointer *pointers = (void *)(block + sizeof *header);
    for (size_t i = 0; i < count; i++) {
        const struct bw_block_pointer *pointer = &children[i].pointer;
        pointers[i] = (struct bw_disk_key_pointer){bw_key_encode(&pointer->expectation.first_key),
                                                   bw_put64(pointer->bytenr),
                                                   bw_put64(pointer->expectation.generation)};
    }
    BW_AUTO_FREE char *why = bw_repair_text("no copy of it is good, tree %" PRIu64, tree->id);
    BW_AUTO_FREE char *proof = bw_repair_text(
        "the references of the extent tree from %zu blocks to this node or its tree", count);
    return bw_repair_edit_contents(
        repair, lost->finding, lost->pointer.bytenr, block,
        (struct bw_repair_edit){
            .what = "tree node", .why = why, .proof = proof, .is_made = true, .reveals = true});
}

/* Plans the lost nodes of a tree, level by level. */
static struct bw_error *plan_tree(struct bw_repair *repair, const struct bw_tree_list *trees,
                                  const struct bw_tree *tree)
{
    BW_SCOPED(lost_nodes) struct lost_nodes nodes = {0};
    BW_SCOPED(bw_adopted) struct bw_adopted blocks = {0};
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct lost_node node = {.finding = &repair->findings.items[i]};
        const bool is_lost =
            bw_repair_is_about_lost(node.finding) || bw_repair_is(node.finding, "root-lost");
        bool found = false;
        if (is_lost && node.finding->tree == tree->id && !node.finding->planned &&
            node.finding->flipped_block == BW_ABSENT)
            BW_TRY(bw_repair_find_pointer(&repair->fs->reader, tree, node.finding->logical,
                                          &node.finding->key, &node.pointer, &found));
        if (found && node.pointer.expectation.level)
            BW_TRY(lost_nodes_push(&nodes, node));
    }
    for (uint8_t level = tree->root.level; nodes.count && level; level--) {
        BW_SCOPED(bw_lost_ranges) struct bw_lost_ranges ranges = {0};
        for (size_t i = 0; i < nodes.count; i++)
            if (nodes.items[i].pointer.expectation.level == level)
                BW_TRY(bw_lost_ranges_push(&ranges, bw_lost_range_of(&nodes.items[i].pointer, 0)));
        if (ranges.count)
            BW_TRY(bw_adopt_blocks(repair->fs, tree, &ranges, (uint8_t)(level - 1), &blocks));
        for (size_t i = 0; i < nodes.count && ranges.count && blocks.complete; i++)
            if (nodes.items[i].pointer.expectation.level == level)
                BW_TRY(plan_node(repair, trees, tree, &nodes.items[i], &blocks.leaves));
    }
    return NULL;
}

struct bw_error *bw_repair_plan_nodes(struct bw_repair *repair)
{
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    bool is_needed = false;
    for (size_t i = 0; i < repair->findings.count; i++)
        is_needed |= bw_repair_is_about_lost(&repair->findings.items[i]) ||
                     bw_repair_is(&repair->findings.items[i], "root-lost");
    if (!is_needed || repair->is_made)
        return NULL;
    BW_TRY(bw_tree_list_load(repair->fs, &trees));
    for (size_t i = 0; i < trees.entries.count; i++) {
        const struct bw_listed_tree *listed = &trees.entries.items[i];
        struct bw_tree tree = listed->tree;
        if (tree.id == BW_CHUNK_TREE) /* not one that was rebuilt in memory */
            tree.root = repair->fs->superblock.chunk_root;
        if (tree.id == BW_ROOT_TREE && tree.root.bytenr >= BW_MEMORY_START)
            tree.root = repair->fs->superblock.root;
        if (tree.id == BW_EXTENT_TREE || tree.id == BW_TREE_RELOC ||
            (!listed->references && listed->drop_progress.objectid))
            continue;
        BW_TRY(plan_tree(repair, &trees, &tree));
    }
    return NULL;
}
