/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `quota`: what each group reaches, and what nothing but the group reaches, is counted
 * anew. The set of subvolumes that reach a tree block is that of the blocks above it; so sets go
 * down the trees, and each block is read once, however many snapshots share it. A block with one
 * reference takes the set of its parent at once; one with several waits until all blocks of higher
 * levels are done, and so do data with several references until the end.
 *
 * Memory grows with what is shared: some 150 bytes for a tree block, and 40 for an extent of data.
 */
#include "check/quota.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/block.h"
#include "check/references.h"
#include "owners/root_sets.h"
#include "graph/wind.h"

/* A block that several others refer to, or a root. */
struct waiting {
    struct bw_block_pointer pointer;
    uint32_t set;
};

struct level {
    struct waiting *blocks;
    size_t count, capacity;
    struct bw_map numbers; /* by address */
};

/* Data with several references. */
struct shared_data {
    uint64_t length;
    uint32_t set;
};

struct group {
    uint64_t id, referenced, exclusive;
    uint64_t *members;
    size_t member_count;
    bool is_counted;
};

struct quota {
    struct bw_check *check;
    uint64_t *subvolumes; /* ids, ascending; their index is their number in sets */
    size_t subvolume_count;
    struct bw_root_sets sets;
    struct level levels[BW_MAX_LEVEL];
    struct shared_data *data;
    size_t data_count, data_capacity;
    struct bw_map data_numbers; /* by address */
    uint8_t *nodes[BW_MAX_LEVEL];
    uint8_t *leaves; /* a batch */
    struct group *groups;
    size_t group_count, group_capacity;
    uint32_t set;   /* of the leaf that is being read */
    bool lost;      /* something could not be read */
    bool no_memory; /* for the taker of references */
};

/* Data. */

static struct bw_error *take_extent(void *context, const struct bw_item *item)
{
    struct quota *quota = context;
    struct bw_extent_entry extent;
    if (!bw_extent_entry_decode(quota->check->fs, item, &extent) || extent.is_block ||
        extent.references < 2)
        return NULL;
    if (!BW_ARRAY_RESERVE(quota->data, quota->data_count, quota->data_capacity) ||
        !bw_map_put(&quota->data_numbers, extent.bytenr, (uint32_t)quota->data_count))
        return bw_error_no_memory();
    quota->data[quota->data_count++] = (struct shared_data){extent.length, 0};
    return NULL;
}

static void take_reference(void *context, const struct bw_reference *reference)
{
    struct quota *quota = context;
    if (!reference->kind || !reference->length)
        return;
    const uint32_t number = bw_map_get(&quota->data_numbers, reference->bytenr);
    if (number == UINT32_MAX) {
        quota->sets.sets[quota->set].bytes += reference->length;
        return;
    }
    struct shared_data *data = &quota->data[number];
    const uint32_t both = bw_root_set_union(&quota->sets, data->set, quota->set);
    quota->no_memory |= both == UINT32_MAX;
    data->set = both == UINT32_MAX ? data->set : both;
}

/* Tree blocks. */

/* Lets a block wait until all that may refer to it are known. */
static bool wait_for(struct quota *quota, const struct bw_block_pointer *pointer, uint32_t set)
{
    struct level *level = &quota->levels[pointer->expectation.level];
    const uint32_t number = bw_map_get(&level->numbers, pointer->bytenr);
    if (number != UINT32_MAX) {
        const uint32_t both = bw_root_set_union(&quota->sets, level->blocks[number].set, set);
        if (both != UINT32_MAX)
            level->blocks[number].set = both;
        return both != UINT32_MAX;
    }
    if (!BW_ARRAY_RESERVE(level->blocks, level->count, level->capacity) ||
        !bw_map_put(&level->numbers, pointer->bytenr, (uint32_t)level->count))
        return false;
    level->blocks[level->count++] = (struct waiting){*pointer, set};
    return true;
}

static void take_block(struct quota *quota, uint32_t set)
{
    quota->set = set;
    quota->sets.sets[set].bytes += quota->check->fs->reader.nodesize;
}

static struct bw_error *read_leaves(struct quota *quota, const struct bw_block_pointer *pointers,
                                    unsigned count, uint32_t set)
{
    const struct bw_tree_reader *reader = &quota->check->fs->reader;
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < count; i++)
        requests[i] =
            bw_block_request(reader, &pointers[i], quota->leaves + (size_t)i * reader->nodesize);
    bw_blocks_read(reader, requests, count);
    for (unsigned i = 0; i < count; i++) {
        quota->lost |= requests[i].error != NULL;
        if (!requests[i].error) {
            const struct bw_node leaf = bw_node_view(requests[i].buffer, reader->nodesize);
            take_block(quota, set);
            bw_check_references_of(quota->check, &leaf, 0, take_reference, quota);
        }
        bw_error_free(requests[i].error);
    }
    return quota->no_memory ? bw_error_no_memory() : NULL;
}

static struct bw_error *read_node(struct quota *quota, const struct bw_block_pointer *pointer,
                                  uint32_t set);

/* The children that have no other parent; the others wait. */
static struct bw_error *read_children(struct quota *quota, const struct bw_block_pointer *parent,
                                      const struct bw_node *node, uint32_t set)
{
    struct bw_block_pointer leaves[BW_BATCH];
    const unsigned batch = bw_block_batch(&quota->check->fs->reader);
    unsigned count = 0;
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(parent, node, slot);
        if (bw_map_get(&quota->check->shared_blocks, child.bytenr) != UINT32_MAX) {
            if (!wait_for(quota, &child, set))
                return bw_error_no_memory();
        } else if (node->level > 1) {
            BW_TRY(read_node(quota, &child, set));
        } else {
            leaves[count++] = child;
        }
        if (count == batch || slot + 1 == node->item_count) {
            BW_TRY(read_leaves(quota, leaves, count, set));
            count = 0;
        }
    }
    return NULL;
}

static struct bw_error *read_node(struct quota *quota, const struct bw_block_pointer *pointer,
                                  uint32_t set)
{
    const struct bw_tree_reader *reader = &quota->check->fs->reader;
    uint8_t **buffer = &quota->nodes[pointer->expectation.level];
    if (!pointer->expectation.level)
        return read_leaves(quota, pointer, 1, set);
    if (!*buffer && !(*buffer = bw_block_buffer(reader, 1)))
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *bad = bw_block_read(reader, pointer, *buffer);
    quota->lost |= bad != NULL;
    if (bad)
        return NULL;
    const struct bw_node node = bw_node_view(*buffer, reader->nodesize);
    take_block(quota, set);
    return read_children(quota, pointer, &node, set);
}

static struct bw_error *add_roots(struct quota *quota)
{
    const struct bw_check *check = quota->check;
    quota->subvolumes = calloc(check->trees.count + 1, sizeof *quota->subvolumes);
    if (!quota->subvolumes)
        return bw_error_no_memory();
    for (size_t i = 0; i < check->trees.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries[i];
        if (!tree->is_subvolume)
            continue;
        const struct bw_block_pointer root = bw_tree_root_pointer(&tree->tree, false);
        const uint32_t set = bw_root_set_of(&quota->sets, (uint32_t)quota->subvolume_count);
        quota->subvolumes[quota->subvolume_count++] = tree->tree.id;
        if (set == UINT32_MAX || !wait_for(quota, &root, set))
            return bw_error_no_memory();
    }
    return NULL;
}

/* Counts what each set of subvolumes shares. */
static struct bw_error *count(struct quota *quota)
{
    struct bw_fs *fs = quota->check->fs;
    quota->leaves = bw_block_buffer(&fs->reader, bw_block_batch(&fs->reader));
    if (!quota->leaves || !bw_root_sets_init(&quota->sets))
        return bw_error_no_memory();
    BW_TRY(bw_fs_scan(fs, &fs->extent_tree, "extent tree", take_extent, quota));
    BW_TRY(add_roots(quota));
    for (unsigned i = BW_MAX_LEVEL; i-- > 0;)
        for (size_t k = 0; k < quota->levels[i].count; k++) {
            const struct waiting block = quota->levels[i].blocks[k];
            if (!bw_check_goes_on(quota->check, 0))
                return NULL;
            BW_TRY(read_node(quota, &block.pointer, block.set));
        }
    for (size_t i = 0; i < quota->data_count; i++)
        quota->sets.sets[quota->data[i].set].bytes += quota->data[i].length;
    return NULL;
}

/* Groups. */

static struct bw_error *take_group(void *context, const struct bw_qgroup_info *info)
{
    struct quota *quota = context;
    uint64_t *members = malloc((info->member_count + 1) * sizeof *members);
    if (!members || !BW_ARRAY_RESERVE(quota->groups, quota->group_count, quota->group_capacity)) {
        free(members);
        return bw_error_no_memory();
    }
    if (info->member_count)
        memcpy(members, info->members, info->member_count * sizeof *members);
    quota->groups[quota->group_count++] = (struct group){
        info->id, info->referenced, info->exclusive, members, info->member_count, info->is_counted};
    return NULL;
}

/* Marks the subvolumes of a group; false if one of them is gone, and what it still counts with it.
 */
static bool mark(const struct quota *quota, uint64_t id, bool *marked)
{
    if (!BW_QGROUP_LEVEL(id)) {
        const size_t i = BW_FIRST_INDEX(k, quota->subvolume_count, quota->subvolumes[k] >= id);
        if (i == quota->subvolume_count || quota->subvolumes[i] != id)
            return false;
        marked[i] = true;
        return true;
    }
    const size_t i = BW_FIRST_INDEX(k, quota->group_count, quota->groups[k].id >= id);
    const struct group *group = i < quota->group_count ? &quota->groups[i] : NULL;
    bool complete = group && group->id == id;
    for (size_t k = 0; complete && k < group->member_count; k++)
        complete = BW_QGROUP_LEVEL(group->members[k]) < BW_QGROUP_LEVEL(id) &&
                   mark(quota, group->members[k], marked);
    return complete;
}

void bw_quota_compare(struct bw_check *check, uint64_t group, struct bw_quota_numbers has,
                      struct bw_quota_numbers counted)
{
    const struct bw_subject subject = {.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY,
                                                   .tree = BW_QUOTA_TREE,
                                                   .key = {0, BW_QGROUP_INFO, group}}};
    if (has.referenced != counted.referenced || has.exclusive != counted.exclusive)
        bw_check_find(check, BW_CODE_qgroup_count, &subject,
                      "group %" PRIu64 "/%" PRIu64 " has %" PRIu64 " bytes, %" PRIu64
                      " exclusive; there are %" PRIu64 " and %" PRIu64,
                      BW_QGROUP_LEVEL(group), BW_QGROUP_NUMBER(group), has.referenced,
                      has.exclusive, counted.referenced, counted.exclusive);
}

static void compare(const struct quota *quota, const struct group *group, const bool *marked)
{
    uint64_t referenced = 0, exclusive = 0;
    for (size_t i = 0; i < quota->sets.count; i++) {
        const struct bw_root_set *set = &quota->sets.sets[i];
        uint32_t inside = 0;
        for (uint32_t k = 0; k < set->count; k++)
            inside += marked[set->roots[k]];
        referenced += inside ? set->bytes : 0;
        exclusive += inside == set->count ? set->bytes : 0;
    }
    bw_quota_compare(quota->check, group->id,
                     (struct bw_quota_numbers){group->referenced, group->exclusive},
                     (struct bw_quota_numbers){referenced, exclusive});
}

static struct bw_error *compare_groups(struct quota *quota)
{
    BW_AUTO_FREE bool *marked = malloc(quota->subvolume_count + 1);
    if (!marked)
        return bw_error_no_memory();
    for (size_t i = 0; i < quota->group_count && bw_check_goes_on(quota->check, 0); i++) {
        memset(marked, 0, quota->subvolume_count + 1);
        if (quota->groups[i].is_counted && mark(quota, quota->groups[i].id, marked))
            compare(quota, &quota->groups[i], marked);
    }
    return NULL;
}

static void release(struct quota *quota)
{
    for (unsigned i = 0; i < BW_MAX_LEVEL; i++) {
        free(quota->levels[i].blocks);
        bw_map_free(&quota->levels[i].numbers);
        free(quota->nodes[i]);
    }
    for (size_t i = 0; i < quota->group_count; i++)
        free(quota->groups[i].members);
    free(quota->groups);
    free(quota->subvolumes);
    free(quota->data);
    free(quota->leaves);
    bw_map_free(&quota->data_numbers);
    bw_root_sets_free(&quota->sets);
}

/* Why the numbers are not to be trusted, or cannot be counted; NULL: they can. */
static const char *excuse(const struct bw_check *check, const struct bw_quota_status *status)
{
    if (status->inconsistent || status->rescanning)
        return "the numbers are marked as inconsistent, or are being counted anew";
    if (status->generation != check->fs->superblock.generation)
        return "the numbers are not those of the last transaction";
    if (!check->extents_known || !check->fs->extent_tree.id)
        return "the extent tree is not known as a whole";
    for (size_t i = 0; i < check->trees.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries[i];
        if (tree->tree.id == BW_TREE_RELOC)
            return "a balance was interrupted";
        if (tree->is_subvolume && !tree->references && !status->simple)
            return "a subvolume is being deleted";
        if (tree->is_subvolume && tree->incomplete)
            return "part of a subvolume is lost";
    }
    return NULL;
}

struct bw_error *bw_pass_quota(struct bw_check *check)
{
    struct bw_quota_status status;
    struct quota quota = {.check = check};
    BW_TRY(bw_fs_quota_status(check->fs, &status));
    if (!status.is_known || !status.enabled)
        return NULL;
    const char *reason = excuse(check, &status);
    if (reason) {
        bw_check_find(check, BW_CODE_qgroup_unchecked, &(struct bw_subject){0}, "%s", reason);
        return NULL;
    }
    if (status.simple)
        return bw_simple_quota_check(check);
    struct bw_error *error = count(&quota);
    if (!error)
        error = bw_fs_qgroups(check->fs, false, take_group, &quota);
    if (!error && !quota.lost)
        error = compare_groups(&quota);
    release(&quota);
    return error;
}
