/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new extent tree, if a node of it is lost: only this tree says where its other blocks are. All
 * its items follow from the other trees (extent_items.c). The root keeps its address, level and
 * generation, so the root tree does not change. The other blocks get free places in the block
 * groups of metadata, first where the lost tree was; each needs an item in the tree, too.
 *
 * The blocks of the lost tree become free space. Space caches are no longer valid then; the next
 * rounds correct the free space tree and the bytes in use.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/range_set.h"
#include "btree/scan.h"
#include "check/free_space.h"
#include "data/references.h"
#include "owners/used_space.h"
#include "repair/repair.h"

/* A block of the new tree. */
struct new_block {
    size_t first, end; /* its items, or its children among the blocks */
    struct bw_key key; /* the first one */
    uint8_t level;
};

BW_VECTOR(new_blocks, struct new_block);

BW_VECTOR(entries, const struct bw_repair_extent_item *);

struct extent_tree {
    struct bw_repair *repair;
    struct bw_tree tree;
    struct bw_repair_extent_items others, own; /* items; `own` is about the blocks of the tree */
    struct entries entries;                    /* all of them, by key */
    struct new_blocks blocks; /* leaves, then the nodes of each level, then the root */
    struct bw_numbers places; /* of the blocks, from the last one on */
};

static void extent_tree_free(struct extent_tree *self)
{
    bw_repair_drop_extent_items(&self->others);
    bw_repair_drop_extent_items(&self->own);
    entries_free(&self->entries);
    new_blocks_free(&self->blocks);
    bw_numbers_free(&self->places);
}

/* Free places. */

/* Adds the blocks of log trees, and the extents that only these refer to: none of them has an item.
 */
static struct bw_error *add_logged(struct bw_repair *repair, struct bw_range_set *used)
{
    BW_SCOPED(bw_tree_list) struct bw_tree_list list = {0};
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .nodes = true, .pointers = true};
    BW_TRY(bw_tree_list_load_log(repair->fs, &list));
    for (size_t i = 0; i < list.entries.count; i++) {
        const struct bw_tree *tree = &list.entries.items[i].tree;
        bw_block_scan_begin(&scan, &repair->fs->reader, tree);
        while (bw_block_scan_next(&scan)) {
            const uint64_t bytenr = scan.pointer.bytenr;
            scan.selected = true;
            BW_TRY(bw_range_set_insert(used, bytenr, bytenr + repair->fs->superblock.nodesize));
            if (scan.step != BW_SCAN_LEAF)
                continue;
            struct bw_block_references extents = bw_block_references_open(&scan.node, 0, false);
            struct bw_reference extent;
            while (bw_block_references_next(&extents, &extent))
                if (extent.length <= UINT64_MAX - extent.bytenr)
                    BW_TRY(bw_range_set_insert(used, extent.bytenr, extent.bytenr + extent.length));
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    return NULL;
}

/* Adds the free places in a chunk: with `is_reserved`, those that the free space tree calls used,
 * like the blocks of the lost tree; otherwise the others. */
static struct bw_error *add_places(struct extent_tree *self, const struct bw_chunk_info *chunk,
                                   const struct bw_range_set *used, const struct bw_used_map *map,
                                   bool is_reserved)
{
    const uint32_t nodesize = self->repair->fs->superblock.nodesize;
    const uint64_t chunk_end = chunk->logical + chunk->length;
    uint64_t place = chunk->logical;
    while (self->places.count < self->others.count && place < chunk_end &&
           nodesize <= chunk_end - place) {
        uint64_t end = chunk_end; /* of the range with the same use */
        const bool fits = !bw_range_set_has(used, place, &end) &&
                          (bw_used_kind_at(map, place, &end) == BW_USED_FREE) != is_reserved &&
                          nodesize <= end - place;
        if (fits)
            BW_TRY(bw_numbers_push(&self->places, place));
        place += fits ? nodesize : (end - place + nodesize - 1) / nodesize * nodesize;
    }
    return NULL;
}

/* Adds the place of the root, and the first free ones in the block groups of metadata: at most as
 * many as there are items. Places that the free space tree calls free come last, because this tree
 * would have to change, too. With a block group tree, they are not used: no mount would build the
 * free space tree again. */
static struct bw_error *find_places(struct extent_tree *self)
{
    struct bw_fs *fs = self->repair->fs;
    const uint32_t nodesize = fs->superblock.nodesize;
    const struct bw_used_options quiet = {.struct_size = sizeof quiet, .is_quiet = true};
    BW_SCOPED(bw_range_set) struct bw_range_set used = {0};
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    struct bw_used_map *map;
    BW_TRY(bw_fs_chunks(fs, &chunks));
    BW_TRY(bw_superblock_stripes(fs, &used));
    BW_TRY(add_logged(self->repair, &used));
    BW_TRY(bw_range_set_insert(&used, self->tree.root.bytenr, self->tree.root.bytenr + nodesize));
    for (size_t i = 0; i < self->others.count; i++) {
        const struct bw_key *key = &self->others.items[i].key;
        const uint64_t length = key->type == BW_METADATA_ITEM ? nodesize : key->offset;
        if (key->type == BW_METADATA_ITEM || key->type == BW_EXTENT_ITEM)
            BW_TRY(bw_range_set_insert(&used, key->objectid, key->objectid + length));
    }
    bw_range_set_join(&used);
    BW_TRY(bw_numbers_push(&self->places, self->tree.root.bytenr));
    BW_TRY(bw_used_map_open(fs, &quiet, &map));
    struct bw_error *error = NULL;
    const unsigned passes = fs->block_group_tree.id ? 1 : 2;
    for (size_t i = 0; i < passes * chunks.count && !error; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i % chunks.count];
        if (chunk->type & BW_GROUP_METADATA)
            error = add_places(self, chunk, &used, map, i < chunks.count);
    }
    bw_used_map_close(map);
    return error;
}

/* Division. */

static int compare_entries(const void *first, const void *second)
{
    const struct bw_repair_extent_item *const *a = first, *const *b = second;
    return bw_key_compare(&(*a)->key, &(*b)->key);
}

/* Divides the items among leaves, and these among nodes, up to the root. */
static struct bw_error *divide(struct extent_tree *self)
{
    const size_t room = self->repair->fs->superblock.nodesize - sizeof(struct bw_disk_header);
    const size_t pointers = room / sizeof(struct bw_disk_key_pointer);
    struct new_blocks *blocks = &self->blocks;
    size_t left = 0;
    self->entries.count = blocks->count = 0;
    for (size_t i = 0; i < self->others.count; i++)
        BW_TRY(entries_push(&self->entries, &self->others.items[i]));
    for (size_t i = 0; i < self->own.count; i++)
        BW_TRY(entries_push(&self->entries, &self->own.items[i]));
    entries_sort(&self->entries, compare_entries);
    for (size_t i = 0; i < self->entries.count; i++) {
        const struct bw_repair_extent_item *item = self->entries.items[i];
        const size_t size = sizeof(struct bw_disk_item) + item->data.length;
        if (size > left) {
            BW_TRY(new_blocks_push(blocks, (struct new_block){.first = i, .key = item->key}));
            left = room;
        }
        left -= bw_min(size, left);
        blocks->items[blocks->count - 1].end = i + 1;
    }
    for (size_t first = 0, end; first < blocks->count; first = end) {
        const uint8_t level = (uint8_t)(blocks->items[first].level + 1);
        end = blocks->count;
        for (size_t i = first; i < end && level <= self->tree.root.level; i += pointers)
            BW_TRY(new_blocks_push(blocks, (struct new_block){.first = i,
                                                              .end = bw_min(i + pointers, end),
                                                              .key = blocks->items[i].key,
                                                              .level = level}));
    }
    return NULL;
}

static uint64_t place_of(const struct extent_tree *self, size_t block)
{
    return self->places.items[self->blocks.count - 1 - block];
}

/* Makes the items of the tree's own blocks, and divides all items again. */
static struct bw_error *make_own_items(struct extent_tree *self)
{
    const struct new_blocks *blocks = &self->blocks;
    bw_repair_drop_extent_items(&self->own);
    for (size_t i = 0; i < blocks->count && blocks->count <= self->places.count; i++)
        BW_TRY(bw_repair_push_block_item(self->repair, place_of(self, i),
                                         self->tree.root.generation, blocks->items[i].level,
                                         &blocks->items[i].key, &self->own));
    return divide(self);
}

/* Adds the items of the tree's own blocks. They may need more blocks, which need items, too. The
 * last ones are for blocks whose number, and so their keys and levels, no longer change. */
static struct bw_error *add_own_items(struct extent_tree *self, bool *is_possible)
{
    enum { MOST_ROUNDS = 20 };
    const struct new_blocks *blocks = &self->blocks;
    size_t count = 0;
    BW_TRY(divide(self));
    for (unsigned round = 0; count != blocks->count && round < MOST_ROUNDS; round++) {
        count = blocks->count;
        BW_TRY(make_own_items(self));
    }
    *is_possible = count == blocks->count && count <= self->places.count && count > 1 &&
                   blocks->items[count - 1].level == self->tree.root.level &&
                   blocks->items[count - 2].level < self->tree.root.level;
    return *is_possible ? make_own_items(self) : NULL;
}

/* The blocks. */

/* The block groups also contain the blocks of this tree. */
static void count_own_blocks(struct extent_tree *self)
{
    const uint32_t nodesize = self->repair->fs->superblock.nodesize;
    for (size_t i = 0; i < self->others.count; i++) {
        const struct bw_repair_extent_item *item = &self->others.items[i];
        if (item->key.type != BW_BLOCK_GROUP_ITEM)
            continue;
        struct bw_disk_block_group *group = (void *)item->data.data;
        uint64_t used = bw_get64(group->used);
        for (size_t k = 0; k < self->own.count; k++)
            if (self->own.items[k].key.objectid - item->key.objectid < item->key.offset)
                used += nodesize;
        group->used = bw_put64(used);
    }
}

/* Writes a block; false if the header of another one, with which it begins, cannot be read. */
static bool write_block(const struct extent_tree *self, size_t number, const uint8_t *header,
                        uint8_t *bytes)
{
    const struct new_block *block = &self->blocks.items[number];
    struct bw_repair_leaf leaf =
        bw_repair_leaf_begin(bytes, self->repair->fs->superblock.nodesize, header);
    struct bw_disk_header *own = (void *)bytes;
    struct bw_disk_key_pointer *pointers = (void *)(bytes + sizeof *own);
    bool fits = true;
    own->bytenr = bw_put64(place_of(self, number));
    own->generation = bw_put64(self->tree.root.generation);
    own->owner = bw_put64(BW_EXTENT_TREE);
    own->level = block->level;
    for (size_t i = block->first; i < block->end && !block->level; i++) {
        const struct bw_repair_extent_item *item = self->entries.items[i];
        fits &= bw_repair_leaf_add(&leaf, &item->key, item->data.data, (uint32_t)item->data.length);
    }
    for (size_t i = block->first; i < block->end && block->level; i++)
        *pointers++ = (struct bw_disk_key_pointer){bw_key_encode(&self->blocks.items[i].key),
                                                   bw_put64(place_of(self, i)), own->generation};
    if (block->level)
        own->item_count = bw_put32((uint32_t)(block->end - block->first));
    return fits;
}

static struct bw_error *plan_blocks(struct extent_tree *self, struct bw_repair_finding *finding)
{
    struct bw_repair *repair = self->repair;
    const unsigned group = ++repair->groups;
    const uint8_t *header;
    BW_AUTO_FREE uint8_t *bytes = malloc(repair->fs->superblock.nodesize);
    if (!bytes)
        return bw_error_no_memory();
    BW_TRY(bw_repair_block_contents(repair, bw_fs_root_tree(repair->fs)->root.bytenr, &header));
    for (size_t i = self->blocks.count; header && i--;)
        if (write_block(self, i, header, bytes))
            BW_TRY(bw_repair_edit_contents(
                repair, finding, place_of(self, i), bytes,
                (struct bw_repair_edit){.what = "block of a new extent tree",
                                        .plural = "blocks of a new extent tree",
                                        .why = "a node of the tree is lost",
                                        .proof = "the references to extents in all other trees, "
                                                 "and all chunks",
                                        .group = group,
                                        .is_made = true,
                                        .edit = bw_repair_invalidate_space_cache,
                                        .reveals = true}));
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *other = &repair->findings.items[i];
        if (other->tree != BW_EXTENT_TREE || !bw_repair_is_about_lost(other))
            continue;
        other->planned = finding->planned;
        other->block_edit = finding->block_edit;
    }
    return NULL;
}

/* Finds a lost node of the tree, or NULL. */
static struct bw_error *find_lost(struct bw_repair *repair, const struct bw_tree *tree,
                                  struct bw_repair_finding **lost)
{
    *lost = NULL;
    for (size_t i = 0; i < repair->findings.count && !*lost; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        struct bw_block_pointer pointer;
        bool found;
        if (finding->tree != BW_EXTENT_TREE || finding->planned ||
            !bw_repair_is_about_lost(finding) || finding->flipped_block != BW_ABSENT)
            continue;
        BW_TRY(bw_repair_find_pointer(&repair->fs->reader, tree, finding->logical, &finding->key,
                                      &pointer, &found));
        if (found && pointer.expectation.level)
            *lost = finding;
    }
    return NULL;
}

struct bw_error *bw_repair_plan_extent_tree(struct bw_repair *repair)
{
    BW_SCOPED(extent_tree)
    struct extent_tree self = {.repair = repair, .tree = repair->fs->extent_tree};
    BW_AUTO_EXTENTS struct bw_repair_extents *extents = NULL;
    struct bw_repair_finding *lost;
    const struct bw_key first = {0, 0, 0};
    bool is_possible = false, has_groups = repair->fs->block_group_tree.id;
    if (!self.tree.id || repair->is_made || bw_fs_status(repair->fs).missing_devices)
        return NULL;
    BW_TRY(find_lost(repair, &self.tree, &lost));
    if (!lost)
        return NULL;
    BW_TRY(bw_repair_extents_open(repair, true, &extents));
    BW_TRY(bw_repair_items_of_extents(extents, &first, &BW_KEY_MAX, &self.others));
    for (size_t i = 0; i < self.others.count; i++)
        has_groups |= self.others.items[i].key.type == BW_BLOCK_GROUP_ITEM;
    if (!self.others.count || !has_groups)
        return NULL;
    BW_TRY(find_places(&self));
    BW_TRY(add_own_items(&self, &is_possible));
    if (!is_possible)
        return NULL;
    count_own_blocks(&self);
    return plan_blocks(&self, lost);
}
