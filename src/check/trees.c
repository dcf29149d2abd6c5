/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass over all trees: every tree block below a root is read once, in all copies, and passed to
 * the checks of its contents. The sums of its inodes are added up towards the root.
 *
 * Each task of a thread is a node of level 1 or, in small trees, a batch of leaves. Blocks shared
 * by snapshots are met again: their sums are then already known.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/human.h"
#include "check/block_contents.h"
#include "check/blocks.h"
#include "check/device_histories.h"
#include "check/directories.h"
#include "check/incomplete_chunks.h"
#include "check/unchanged.h"
#include "data/references.h"
#include "ondisk/disk_items.h"

/* The memory of a thread. */
struct worker {
    uint8_t *node, *leaves;
    struct bw_copy_buffers copies;
    struct bw_last_inode last_inode;
    bool has_skipped; /**< the leaf before the present one is unchanged, and was skipped */
};

/* A walk over trees, and the tree where it is. */
struct walk {
    struct bw_check *check;
    struct bw_listed_tree *tree;
    struct worker *workers;
    bool in_log;
};

/* As many nodes of level 1 for each thread keep all of them busy. */
enum { PARENTS_A_THREAD = 4 };

static const struct bw_inode_sums lost_sums = {.incomplete = true};

/* Whether the extent tree lacks a block, which the pass `extents` finds: it may be shared. */
static bool has_no_item(struct bw_check *check, uint64_t bytenr)
{
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_EXTENT_TREE);
    struct bw_extent_entry extent;
    if (!tree || !check->extents_known)
        return false;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, (struct bw_key){bytenr, 0, 0},
                      (struct bw_key){bytenr, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        if (bw_extent_entry_decode(check->fs, item, &extent))
            return false;
    return true;
}

/* Whether the block is to be read; otherwise `*sums` is what it adds up to. */
static bool is_new(struct walk *walk, const struct bw_block_pointer *pointer,
                   struct bw_inode_sums *sums)
{
    *sums = lost_sums;

    /* Whether only newer blocks are checked. Those below an older one are not newer either. The
     * small trees of devices and roots are always checked as a whole. */
    if (walk->check->options->since_generation && walk->tree->root_key.type &&
        walk->tree->tree.id != BW_DEVICE_TREE && !walk->in_log &&
        pointer->expectation.generation <= walk->check->since_generation) {
        walk->check->skipped_blocks++;
        return false;
    }
    if (!bw_check_chunk(walk->check, pointer->bytenr))
        return true;
    const enum bw_visit visit = bw_visit(walk->check, pointer, sums);
    if (visit == BW_VISIT_CROSSED && !has_no_item(walk->check, pointer->bytenr)) {
        const struct bw_finding location = bw_block_location(&walk->tree->tree, pointer);
        bw_check_find(walk->check, BW_CODE_block_crossed, &location,
                      "the block is referenced twice, but cannot be shared");
    }
    return visit == BW_VISIT_FIRST;
}

/* Keeps the sums of a block if other trees may lead to it, too. Generations do not tell: balance
 * rewrites blocks that snapshots still share. */
static void keep_shared_sums(struct walk *walk, const struct bw_block_pointer *pointer,
                             const struct bw_inode_sums *sums, bool is_lost)
{
    struct bw_check *check = walk->check;
    const uint64_t id = walk->tree->tree.id;
    if ((walk->tree->is_subvolume || id == BW_TREE_RELOC || id == BW_DATA_RELOC_TREE) &&
        (!check->extents_known || bw_key_map_has(&check->shared_blocks, pointer->bytenr)))
        bw_visited_keep(check, pointer, sums, is_lost);
}

static struct bw_reached_block
reach_block(struct walk *walk, const struct bw_block_pointer *pointer, const uint8_t *block)
{
    const struct bw_disk_header *header = (const void *)block;
    const struct bw_reached_block result = {
        .check = walk->check,
        .tree = walk->tree,
        .pointer = pointer,
        .node = bw_node_view(block, walk->check->fs->reader.nodesize),
        .owner = bw_get64(header->owner),
        .generation = bw_get64(header->generation),
        .in_log = walk->in_log,
    };
    bw_check_header(&result);
    bw_check_owner(&result);
    if (walk->in_log)
        bw_log_claim_space(walk->check, pointer->bytenr, result.node.nodesize, 0, 0);
    else
        bw_simple_quota_block(walk->check, result.owner, result.generation);
    return result;
}

/* Checks a leaf, and fills the facts for a baseline; `known->bytenr` is 0 if it must not be
 * entered: a later check needs more than its sums. */
static struct bw_inode_sums check_leaf(struct walk *walk, struct worker *worker,
                                       const struct bw_block_pointer *pointer, const uint8_t *block,
                                       struct bw_known_leaf *known)
{
    struct bw_check *check = walk->check;
    const struct bw_reached_block leaf = reach_block(walk, pointer, block);
    bool has_more = bw_memory_block(check->fs->reader.memory, pointer->bytenr);
    struct bw_inode_sums sums = {0};
    struct bw_last_inode *last = &worker->last_inode;
    has_more |= bw_check_leaf(&leaf, last);
    *known = (struct bw_known_leaf){.generation = leaf.generation, .owner = leaf.owner};
    known->references = bw_check_references(&leaf, 0);
    known->checksum = bw_block_checksum(block);
    if (walk->tree->has_inodes) {
        if (walk->tree->is_subvolume)
            bw_incomplete_chunks_leaf(check, walk->tree->tree.id, &leaf.node);
        sums = bw_inode_sums_of_leaf(check, &leaf.node);
        if (sums.moved && !walk->in_log)
            bw_moved_directories_collect(check, &leaf.node);
        known->facts |= BW_LEAF_HAS_SUMS;
    }
    has_more |= walk->in_log || sums.moved || sums.incomplete || sums.broken || last->is_unclear;
    if (bw_key_map_has(&check->full_backrefs, pointer->bytenr))
        known->facts |= BW_LEAF_BY_ADDRESS;
    if (last->has_unsummed)
        known->facts |= BW_LEAF_UNSUMMED;
    if (last->depends)
        known->facts |= BW_LEAF_DEPENDS;
    if (last->is_first_summed)
        known->facts |= BW_LEAF_FIRST_SUMMED;
    known->sums = sums;
    known->bytenr = has_more ? 0 : pointer->bytenr;
    return sums;
}

/* Whether another pass reads the whole tree, even where it is unchanged. It has to know whether
 * parts of the tree are lost. */
static bool is_read_anyway(uint64_t tree)
{
    return tree == BW_ROOT_TREE || tree == BW_CHUNK_TREE || tree == BW_DEVICE_TREE ||
           tree == BW_UUID_TREE || tree == BW_QUOTA_TREE;
}

/* The leaf in the baseline, if the walk can skip it. */
static const struct bw_known_leaf *skip_leaf(struct walk *walk, struct worker *worker,
                                             const struct bw_block_pointer *pointer)
{
    struct bw_check *check = walk->check;
    const struct bw_known_leaf *leaf = NULL;
    if (check->skips && !walk->in_log && !is_read_anyway(walk->tree->tree.id))
        leaf = bw_unchanged_leaf(check, walk->tree, pointer);
    if (leaf && leaf->facts & BW_LEAF_DEPENDS && !worker->has_skipped &&
        !bw_check_is_summed(check, walk->tree, leaf->sums.first_inode,
                            leaf->facts & BW_LEAF_FIRST_SUMMED, &worker->last_inode))
        leaf = NULL;
    worker->has_skipped = leaf;
    return leaf;
}

/* Up to a batch of leaves below a node. */
static void check_leaves(struct walk *walk, struct worker *worker, struct bw_checked_block *leaves,
                         unsigned count, struct bw_inode_sums *sums)
{
    struct bw_check *check = walk->check;
    struct bw_inode_sums known[BW_BATCH];
    const struct bw_known_leaf *unchanged[BW_BATCH] = {NULL};
    const uint_fast64_t found = check->found;
    for (unsigned i = 0; i < count; i++) {
        leaves[i].skipped = !is_new(walk, &leaves[i].pointer, &known[i]);
        if (leaves[i].skipped)
            worker->has_skipped = false;
        else
            unchanged[i] = skip_leaf(walk, worker, &leaves[i].pointer);
        leaves[i].skipped |= unchanged[i] != NULL;
    }
    bw_check_blocks(check, &worker->copies, &walk->tree->tree, leaves, count);
    for (unsigned i = 0; i < count; i++) {
        const struct bw_checked_block *leaf = &leaves[i];
        struct bw_known_leaf facts = {0};
        if (leaf->good) {
            known[i] = check_leaf(walk, worker, &leaf->pointer, leaf->buffer, &facts);
            bw_unchanged_compare(check, &leaf->pointer, leaf->buffer);
        }
        if (unchanged[i]) {
            known[i] = unchanged[i]->sums;
            facts = *unchanged[i];
            check->carried -= facts.references;
            check->skipped_blocks++;
        }
        if (!leaf->skipped || unchanged[i])
            keep_shared_sums(walk, &leaf->pointer, &known[i], !leaf->good && !unchanged[i]);
        if (check->save && facts.bytenr && (unchanged[i] || check->found == found) &&
            !walk->in_log) {
            BW_AUTO_ERROR struct bw_error *error = bw_baseline_add_leaf(check->save, &facts);
            if (error)
                check->no_memory = true;
        }
        bw_inode_sums_append(sums, &known[i]);
    }
}

/* Reads a node and checks its own contents. False: it is lost, or was visited before. */
static bool read_node(struct walk *walk, struct worker *worker,
                      const struct bw_block_pointer *pointer, uint8_t *buffer,
                      struct bw_inode_sums *sums)
{
    struct bw_checked_block block = {.pointer = *pointer, .buffer = buffer};
    if (!is_new(walk, pointer, sums))
        return false;
    bw_check_blocks(walk->check, &worker->copies, &walk->tree->tree, &block, 1);
    if (!block.good)
        keep_shared_sums(walk, pointer, sums, true);
    return block.good;
}

/* The sum of blocks that follow each other. */
static struct bw_inode_sums sum_up(const struct bw_inode_sums *each, uint32_t count)
{
    struct bw_inode_sums sums = {0};
    for (uint32_t i = 0; i < count; i++)
        bw_inode_sums_append(&sums, &each[i]);
    return sums;
}

/* The tasks below a node, which add up their part of it. */
struct children {
    struct walk *walk;
    const struct bw_block_pointer *pointer;
    const struct bw_node *node;
    uint32_t first;
    struct bw_inode_sums *sums;
};

/* A batch of leaves below a node of level 1. */
static void run_leaves(void *context, unsigned number, size_t task)
{
    const struct children *parent = context;
    const struct bw_node *node = parent->node;
    struct worker *worker = &parent->walk->workers[number];
    const unsigned batch = bw_block_batch(&parent->walk->check->fs->reader);
    const uint32_t first = parent->first + (uint32_t)task * batch;
    struct bw_checked_block leaves[BW_BATCH];
    unsigned count = 0;
    parent->sums[task] = lost_sums;
    if (!bw_check_should_continue(parent->walk->check, number))
        return;
    for (; count < batch && first + count < node->item_count; count++)
        leaves[count] = (struct bw_checked_block){
            .pointer = bw_tree_child_pointer(parent->pointer, node, first + count),
            .buffer = worker->leaves + (size_t)count * node->nodesize};
    parent->sums[task] = (struct bw_inode_sums){0};
    worker->has_skipped = false;
    check_leaves(parent->walk, worker, leaves, count, &parent->sums[task]);
}

/* A node of level 1, with its leaves, which all threads check if they have nothing else to do. */
static struct bw_inode_sums check_parent(struct walk *walk, unsigned number, bool with_all,
                                         const struct bw_block_pointer *pointer)
{
    struct worker *worker = &walk->workers[number];
    struct bw_inode_sums sums;
    if (!read_node(walk, worker, pointer, worker->node, &sums))
        return sums;
    const struct bw_reached_block reached = reach_block(walk, pointer, worker->node);
    const struct bw_node *node = &reached.node;
    const uint32_t first = bw_tree_first_slot(walk->tree, node);
    bw_check_references(&reached, first);

    /* Announces the leaves that will be read, then checks them batch by batch. */
    const struct bw_tree_reader *reader = &walk->check->fs->reader;
    struct bw_range ranges[BW_MAX_CHILDREN];
    uint32_t range_count = 0;
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        const struct bw_node_pointer child = bw_node_pointer_at(node, slot);
        if (!walk->check->skips ||
            !bw_baseline_leaf(walk->check->since, child.bytenr, child.generation))
            ranges[range_count++] = (struct bw_range){child.bytenr, node->nodesize};
    }
    bw_blocks_advise(reader, ranges, range_count);
    const uint32_t batch = bw_block_batch(reader);
    const uint32_t count = (node->item_count - first + batch - 1) / batch;
    struct bw_inode_sums each[BW_MAX_CHILDREN / 16 + 1]; /* a batch has 16 leaves or more */
    struct children leaves = {walk, pointer, node, first, each};
    if (with_all)
        bw_pool_run(walk->check->pool, count, run_leaves, &leaves);
    else
        for (uint32_t i = 0; i < count; i++)
            run_leaves(&leaves, number, i);
    sums = sum_up(each, count);
    keep_shared_sums(walk, pointer, &sums, false);
    return sums;
}

static void run_parent(void *context, unsigned worker, size_t task)
{
    const struct children *parents = context;
    const struct bw_block_pointer pointer =
        bw_tree_child_pointer(parents->pointer, parents->node, parents->first + (uint32_t)task);
    parents->sums[task] = check_parent(parents->walk, worker, false, &pointer);
}

/* A node with all blocks below it. The threads share the nodes of level 1 below one of level 2 or,
 * if these are few, the leaves of each of them. */
static struct bw_inode_sums check_node(struct walk *walk, const struct bw_block_pointer *pointer)
{
    struct bw_inode_sums sums;
    if (pointer->expectation.level == 1)
        return check_parent(walk, 0, true, pointer);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&walk->check->fs->reader, 1);
    if (!buffer) {
        walk->check->no_memory = true;
        return lost_sums;
    }
    if (!read_node(walk, &walk->workers[0], pointer, buffer, &sums))
        return sums;
    const struct bw_reached_block node = reach_block(walk, pointer, buffer);
    const uint32_t first = bw_tree_first_slot(walk->tree, &node.node);
    const uint32_t count = node.node.item_count - first;
    bw_check_references(&node, first);
    BW_AUTO_FREE struct bw_inode_sums *each = calloc(count + 1, sizeof *each);
    if (!each) {
        walk->check->no_memory = true;
        return lost_sums;
    }
    if (node.node.level == 2 && count >= PARENTS_A_THREAD * walk->check->workers) {
        struct children parents = {walk, pointer, &node.node, first, each};
        bw_pool_run(walk->check->pool, count, run_parent, &parents);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            const struct bw_block_pointer child =
                bw_tree_child_pointer(pointer, &node.node, first + i);
            each[i] = check_node(walk, &child);
        }
    }
    sums = sum_up(each, count);
    keep_shared_sums(walk, pointer, &sums, false);
    return sums;
}

static void walk_free(struct walk *walk)
{
    for (unsigned i = 0; walk->workers && i < walk->check->workers; i++) {
        free(walk->workers[i].node);
        free(walk->workers[i].leaves);
        free(walk->workers[i].copies.copies);
    }
    free(walk->workers);
}

struct bw_error *bw_walk_trees(struct bw_check *check, struct bw_listed_tree *trees, size_t count,
                               bool in_log)
{
    const struct bw_tree_reader *reader = &check->fs->reader;
    struct worker *workers = calloc(check->workers, sizeof *workers);
    BW_SCOPED(walk) struct walk walk = {.check = check, .workers = workers, .in_log = in_log};
    bool complete = workers;
    for (unsigned i = 0; complete && i < check->workers; i++) {
        workers[i].node = bw_block_buffer(reader, 1);
        workers[i].leaves = bw_block_buffer(reader, bw_block_batch(reader));
        complete = workers[i].node && workers[i].leaves;
    }
    if (!complete)
        return bw_error_no_memory();
    for (size_t i = 0; i < count && !check->no_memory; i++) {
        struct bw_listed_tree *tree = walk.tree = &trees[i];
        if (check->options->quick && tree->root_key.type)
            continue;
        if (!bw_check_should_continue(check, 0))
            break;
        const struct bw_block_pointer root = bw_tree_root_pointer(&tree->tree, false);
        struct bw_inode_sums sums = {0};
        if (root.expectation.level) {
            sums = check_node(&walk, &root);
        } else {
            struct bw_checked_block leaf = {.pointer = root, .buffer = workers[0].leaves};
            workers[0].has_skipped = false;
            check_leaves(&walk, &workers[0], &leaf, 1, &sums);
        }
        tree->incomplete = sums.incomplete;
        tree->total = bw_inode_sums_total(&sums);
        tree->parents = sums.parents;
        tree->has_moved_directories = sums.moved;
    }
    return check->no_memory ? bw_error_no_memory() : NULL;
}

/* Trees that every file system has, or that its features need, and that the root tree does not
 * name; nothing follows if part of the root tree is lost. And trees whose feature has no bit,
 * except while a file system is converted. Without its bit, the kernel ignores a tree: it lets the
 * free space tree get out of date and fails to create one, and the first change of a block group in
 * the block group tree aborts the transaction. */
static void compare_features(struct bw_check *check)
{
    static const struct {
        uint64_t id, incompat, compat_ro; /* the feature bits, one of them; none: always needed */
    } needed[] = {
        {BW_EXTENT_TREE, 0, 0},
        {BW_DEVICE_TREE, 0, 0},
        {BW_TOP_SUBVOLUME, 0, 0},
        {BW_CSUM_TREE, 0, 0},
        {BW_FREE_SPACE_TREE, 0, BW_COMPAT_RO_FREE_SPACE_TREE},
        {BW_BLOCK_GROUP_TREE, 0, BW_COMPAT_RO_BLOCK_GROUP_TREE},
        {BW_RAID_STRIPE_TREE, BW_INCOMPAT_RAID_STRIPE_TREE, 0},
    };
    const struct bw_superblock *superblock = &check->fs->superblock;
    const bool is_converted = superblock->flags & BW_SUPER_FLAG_CHANGING_GROUP_TREE;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .tree = needed[i].id);
        const bool exists = bw_tree_list_find(&check->trees, needed[i].id);
        const bool is_needed = (!needed[i].incompat && !needed[i].compat_ro) ||
                               superblock->incompat_flags & needed[i].incompat ||
                               superblock->compat_ro_flags & needed[i].compat_ro;
        if (is_needed && !exists && !check->trees.entries.items[0].incomplete)
            bw_check_find(check, BW_CODE_tree_missing, &location,
                          "the root tree has no root item of this tree");
        if (!is_needed && exists && !is_converted)
            bw_check_find(check, BW_CODE_feature_missing, &location,
                          "the superblock lacks the bit of the feature of this tree");
    }
}

struct bw_error *bw_pass_trees(struct bw_check *check)
{
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    BW_TRY(bw_simple_quota_begin(check));
    BW_TRY(bw_device_histories_begin(check));
    BW_TRY(bw_walk_trees(check, check->trees.entries.items, check->trees.entries.count, false));
    if (check->stopped)
        return NULL;
    bw_device_histories_report(check);
    bw_incomplete_chunks_report(check);
    if (check->synology_inodes)
        bw_check_find(check, BW_CODE_synology_inodes, NULL,
                      "%" PRIuFAST64 " inode%s with flag 0x%x of Synology's kernels: other kernels "
                      "refuse to read the leaves with them",
                      check->synology_inodes, bw_plural(check->synology_inodes), BW_INODE_SYNOLOGY);
    compare_features(check);
    return NULL;
}
