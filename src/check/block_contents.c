/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contents of single tree blocks: header, owner and items; and their contribution to the
 * reference counts, and to the data that need checksums.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "check/block_contents.h"
#include "check/blocks.h"
#include "check/flipped.h"
#include "check/reference_counts.h"
#include "ondisk/disk_items.h"
#include "ondisk/item_rules.h"
#include "ondisk/items.h"

/*
 * The owner in the header of a tree block that subvolumes share. The kernel decides by it whose
 * reference is dropped when the block is copied or its subvolume is deleted, unless the references
 * of the block are counted by its address. It is the subvolume that wrote the block, and that still
 * contains it: when it lets go of the block, the kernel goes over to counting by address.
 *
 * Trees are walked by ascending ids, and snapshots have higher ids than their source, so that
 * nearly all blocks are reached through their owner first. Only for others is it searched.
 */

/* Follows a key from the root of a tree down to a level, and sets the address of the block there.
 * False if the tree has no such block; an error if a block could not be read. */
static struct bw_error *find_block(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                   const struct bw_key *key, uint8_t level, uint64_t *bytenr)
{
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    *bytenr = 0;
    while (pointer.expectation.level > level) {
        BW_TRY(bw_block_read(reader, &pointer, buffer));
        const struct bw_node node = bw_node_view(buffer, reader->nodesize);
        if (!node.item_count)
            return NULL;
        pointer = bw_tree_child_pointer(&pointer, &node, bw_child_slot(&node, key));
    }
    if (pointer.expectation.level == level)
        *bytenr = pointer.bytenr;
    return NULL;
}

static bool is_in_owner(const struct bw_reached_block *block)
{
    const struct bw_check *check = block->check;
    const struct bw_listed_tree *owner = bw_tree_list_find(&check->trees, block->owner);
    struct bw_item first;
    uint64_t bytenr;
    if (!owner)
        return false;
    if (!block->node.item_count)
        return true;
    if (block->node.level)
        first.key = bw_node_key(&block->node, 0);
    else if (!bw_leaf_item(&block->node, 0, &first))
        return true;
    BW_AUTO_ERROR struct bw_error *error =
        find_block(&check->fs->reader, &owner->tree, &first.key, block->node.level, &bytenr);
    return bw_check_lacks_memory(block->check, error) || error || bytenr == block->pointer->bytenr;
}

/* The flipped bit in an owner that does not exist: only one subvolume has a similar number. */
static void find_flip_in_owner(const struct bw_reached_block *block, struct bw_flip *flip)
{
    const struct bw_tree_list *trees = &block->check->trees;
    const uint32_t byte = offsetof(struct bw_disk_header, owner);
    unsigned found = 0;
    if (bw_tree_list_find(trees, block->owner) || !bw_flip_may_search(block->check))
        return;
    for (size_t i = 0; i < trees->entries.count; i++) {
        const struct bw_listed_tree *tree = &trees->entries.items[i];
        struct bw_flip one;
        if (!tree->is_subvolume ||
            !bw_flip_to(&one, block->pointer->bytenr, byte, 8, block->owner, tree->tree.id) ||
            !bw_is_owned(block->check, &tree->tree))
            continue;
        *flip = one;
        found++;
    }
    flip->found = found == 1;
}

void bw_check_owner(const struct bw_reached_block *block)
{
    const struct bw_check *check = block->check;
    const uint64_t tree = block->tree->tree.id;
    if (block->in_log || !check->extents_known || !block->tree->is_subvolume ||
        block->owner == tree || bw_key_map_has(&check->full_backrefs, block->pointer->bytenr) ||
        is_in_owner(block))
        return;
    struct bw_finding location = bw_block_location(&block->tree->tree, block->pointer);
    location.row.length = block->node.nodesize;
    find_flip_in_owner(block, &location.flip);
    bw_check_find(block->check, BW_CODE_block_owner, &location,
                  "the owner is tree %" PRIu64 ", which does not contain the block", block->owner);
}

/*
 * Checksums of data: missing ones, and ones that exist although the inode has NODATASUM. In an
 * uncompressed extent, only the referenced part needs them: preallocated space has no checksums
 * until it is written. Extents still marked as preallocated are skipped.
 */

static void note_inode(const struct bw_listed_tree *tree, const struct bw_item *item,
                       struct bw_last_inode *last)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    last->tree = tree;
    last->number = item->key.objectid;
    last->known = item->size >= sizeof *inode;
    last->flags = last->known ? bw_get64(inode->flags) : 0;
}

/* Finds an inode whose item is in an earlier leaf. */
static void find_inode(struct bw_check *check, const struct bw_listed_tree *tree, uint64_t number,
                       struct bw_last_inode *last)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_item item;
    bw_leaf_finder_init(&finder, &check->fs->reader, &tree->tree);
    BW_AUTO_ERROR struct bw_error *error = bw_find_leaf(&finder, &key);
    bw_check_lacks_memory(check, error);
    const int64_t slot = error || finder.lost ? -1 : bw_leaf_last_until(&finder, &key);
    last->tree = tree;
    last->number = number;
    last->known = last->in_leaf = false;
    if (slot >= 0 && bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) &&
        bw_key_compare(&item.key, &key) == 0)
        note_inode(tree, &item, last);
}

bool bw_check_is_summed(struct bw_check *check, const struct bw_listed_tree *tree, uint64_t inode,
                        bool summed, struct bw_last_inode *last)
{
    if (last->tree != tree || last->number != inode)
        find_inode(check, tree, inode, last);
    return last->known && summed == !(last->flags & BW_INODE_NODATASUM);
}

static void check_extent(const struct bw_reached_block *leaf, const struct bw_item *item,
                         struct bw_last_inode *last)
{
    struct bw_check *check = leaf->check;
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size < sizeof *disk || disk->type != BW_FILE_EXTENT_REGULAR)
        return;
    struct bw_file_extent extent;
    BW_AUTO_ERROR struct bw_error *bad =
        bw_file_extent_decode(item, check->fs->superblock.sectorsize, &extent);
    if (bad || !extent.disk_bytenr)
        return;
    if (last->tree != leaf->tree || last->number != item->key.objectid)
        find_inode(check, leaf->tree, item->key.objectid, last);
    last->is_unclear |= !last->known;
    if (!last->known)
        return;
    const bool summed = !(last->flags & BW_INODE_NODATASUM);
    last->has_unsummed |= !summed;
    if (!last->in_leaf) {
        last->depends = true;
        last->is_first_summed = summed;
    }

    /* The bytes that must have checksums, or none. */
    const uint64_t start = extent.disk_bytenr + (extent.compression ? 0 : extent.offset);
    const uint64_t length = extent.compression ? extent.disk_num_bytes : extent.num_bytes;
    const uint64_t missing = bw_range_set_overlap(&check->unsummed, start, start + length);
    const bool is_missing = summed && missing;
    const bool is_unwanted = !summed && missing != length && check->checksums_known;
    const bool is_compressed = !summed && extent.compression;
    if (!is_missing && !is_unwanted && !is_compressed)
        return;

    /* Kernels before 5.3 wrote compressed extents without checksums, and all read them. */
    struct bw_finding location = BW_FINDING(
        BW_TOUCHES_INODE, .tree = leaf->tree->tree.id, .key = item->key,
        .logical = extent.disk_bytenr, .length = extent.disk_num_bytes, .inode = item->key.objectid,
        .file_offset = item->key.offset, .file_length = extent.num_bytes);
    if (is_compressed)
        bw_check_find(check, BW_CODE_compressed_unsummed, &location,
                      "compressed, although the inode has NODATASUM");
    location.row.logical = start;
    location.row.length = length;
    if (is_missing)
        bw_check_find(check, BW_CODE_checksum_missing, &location,
                      "%" PRIu64 " of %" PRIu64 " bytes have no checksums", missing, length);
    else if (is_unwanted)
        bw_check_find(check, BW_CODE_checksum_unwanted, &location,
                      "%" PRIu64 " of %" PRIu64
                      " bytes have checksums, though the file should have none",
                      length - missing, length);
}

uint64_t bw_check_references(const struct bw_reached_block *block, uint32_t first_slot)
{
    struct bw_check *check = block->check;
    if (!check->references || block->in_log || !bw_tree_has_references(block->tree->tree.id))
        return 0;
    struct bw_reference reference = bw_block_as_reference(&block->node);
    uint64_t sum = bw_count_reference(check, &reference);
    struct bw_block_references references =
        bw_check_references_open(check, &block->node, first_slot);
    while (bw_block_references_next(&references, &reference))
        sum += bw_count_reference(check, &reference);
    return sum;
}

/* The items of a leaf: their keys ascend, and their bytes fill the leaf from its end without a gap.
 * item_rules.h checks their contents. */

static struct bw_finding location_of(const struct bw_reached_block *leaf, const struct bw_key *key)
{
    struct bw_finding location = bw_block_location(&leaf->tree->tree, leaf->pointer);
    location.row.length = leaf->node.nodesize;
    location.row.key = *key;
    return location;
}

/* Whether the key and the bytes of an item are where they should be. */
static inline bool is_in_place(const struct bw_reached_block *leaf, uint32_t slot,
                               const struct bw_item_rules *rules, const struct bw_item *item,
                               const struct bw_item *before, bool inside, uint32_t *end)
{
    const uint32_t offset = bw_get32(bw_node_disk_item(&leaf->node, slot)->offset);
    const bool follows = (uint64_t)offset + item->size == *end;
    *end = offset;
    const bool ascends = !before || bw_key_compare(&before->key, &item->key) < 0;
    if (follows && ascends && inside)
        return true;
    struct bw_finding location = location_of(leaf, &item->key);
    bw_flip_find_in_leaf(leaf, rules, slot, &location.flip);
    if (!ascends)
        bw_check_find(leaf->check, BW_CODE_block_keys, &location,
                      "keys out of order, slot %" PRIu32, slot);
    if (!follows)
        bw_check_find(leaf->check, BW_CODE_block_layout, &location,
                      "slot %" PRIu32 " does not end where the previous item begins", slot);
    else if (!inside)
        bw_check_find(leaf->check, BW_CODE_block_layout, &location,
                      "slot %" PRIu32 " reaches into the table of items", slot);
    return false;
}

/* The findings of faults of items, which have the same names. */
static const enum bw_code_number code_of_fault[BW_FAULTS] = {
#define FAULT(name) [BW_FAULT_##name] = BW_CODE_##name,
    BW_ITEM_FAULTS(FAULT, FAULT)
#undef FAULT
        [BW_FAULT_no_memory] = BW_CODE_unfinished,
};

/* The revision of back references is 0 or 1. The kernel's tree-checker wants WRITTEN. */
void bw_check_header(const struct bw_reached_block *block)
{
    const struct bw_disk_header *header = (const void *)block->node.block;
    const uint64_t flags = bw_get64(header->flags);
    const uint64_t unknown = flags & ~(BW_HEADER_WRITTEN | BW_HEADER_RELOCATED |
                                       UINT64_C(1) << BW_BACKREF_REVISION_SHIFT);
    if (!unknown && flags & BW_HEADER_WRITTEN)
        return;
    struct bw_finding location = bw_block_location(&block->tree->tree, block->pointer);
    location.row.length = block->node.nodesize;
    if (bw_get64(header->generation) > 1) /* mkfs.btrfs begins with blocks without the flag */
        bw_flip_to(&location.flip, block->pointer->bytenr, offsetof(struct bw_disk_header, flags),
                   8, flags, (flags & ~unknown) | BW_HEADER_WRITTEN);
    if (unknown)
        bw_check_find(block->check, BW_CODE_block_header, &location, "unknown flags 0x%" PRIx64,
                      unknown);
    else
        bw_check_find(block->check, BW_CODE_block_header, &location, "the flag WRITTEN is missing");
}

/* Whether a leaf may have no items: the root of a tree that may be empty. Source: the kernel's
 * check_leaf() in fs/btrfs/tree-checker.c; and a subvolume has at least its top directory. */
static bool may_be_empty(const struct bw_reached_block *leaf)
{
    const struct bw_listed_tree *tree = leaf->tree;
    const uint64_t incompat = leaf->check->fs->superblock.incompat_flags;
    if (leaf->in_log || leaf->pointer->expectation.has_first_key)
        return leaf->in_log;
    switch (tree->tree.id) {
    case BW_ROOT_TREE:
    case BW_CHUNK_TREE:
    case BW_DEVICE_TREE:
    case BW_DATA_RELOC_TREE:
        return false;
    case BW_EXTENT_TREE:
        return incompat & BW_INCOMPAT_EXTENT_TREE_V2;
    default:
        return !tree->is_subvolume || !tree->references;
    }
}

/* Whether a subvolume has an entry in the item: the links between subvolumes are compared with it.
 */
static bool names_subvolume(const struct bw_item *item)
{
    if (item->key.type != BW_DIR_ITEM && item->key.type != BW_DIR_INDEX)
        return false;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    bool found = false;
    while (!found && bw_dir_entry_next(&cursor, &entry))
        found = entry.location.type == BW_ROOT_ITEM;
    return found;
}

bool bw_check_leaf(const struct bw_reached_block *leaf, struct bw_last_inode *last)
{
    const bool needs_checksums = leaf->check->references && leaf->check->extents_known &&
                                 leaf->tree->is_subvolume && !leaf->in_log;
    const bool is_for_baseline = leaf->check->save && leaf->tree->is_subvolume;
    last->in_leaf = last->depends = last->has_unsummed = last->is_unclear = false;
    if (!leaf->node.item_count && !may_be_empty(leaf)) {
        const struct bw_finding location = bw_block_location(&leaf->tree->tree, leaf->pointer);
        bw_check_find(leaf->check, BW_CODE_block_empty, &location, "a leaf without items");
    }

    /* No item is later than the transaction that last wrote the leaf. A log tree has items of the
     * running transaction, and leaves in memory have the header of the leaf that they replace. */
    const struct bw_block_memory *memory = leaf->check->fs->reader.memory;
    const bool is_unknown = leaf->in_log || bw_memory_block(memory, leaf->pointer->bytenr);
    struct bw_item_rules rules = bw_item_rules_of(
        leaf->check->fs, leaf->owner, is_unknown ? UINT64_MAX : leaf->generation, leaf->in_log);
    uint32_t end = leaf->node.nodesize - (uint32_t)sizeof(struct bw_disk_header);
    struct bw_item items[2], *before = NULL;
    bool has_noted = false;
    const struct bw_node node = leaf->node;
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        struct bw_item *item = before == items ? &items[1] : items;
        const bool inside = bw_leaf_item(&node, slot, item);
        const bool in_place = is_in_place(leaf, slot, &rules, item, before, inside, &end);
        before = item;
        if (!in_place)
            rules.previous = NULL;
        struct bw_item_fault fault;
        if (inside && bw_check_item(&rules, item, &fault)) {
            struct bw_finding at = location_of(leaf, &item->key);
            if (leaf->tree->is_subvolume) {
                at.touches = BW_TOUCHES_INODE;
                at.row.inode = item->key.objectid;
            }
            /* Most faults that are not serious are habits of some kernel, and no flipped bits. */
            if (bw_item_fault_is_serious(fault.kind) || fault.kind == BW_FAULT_item_type ||
                fault.kind == BW_FAULT_inode_generation)
                bw_flip_find_in_leaf(leaf, &rules, slot, &at.flip);
            bw_check_find(leaf->check, code_of_fault[fault.kind], &at, "%s", fault.message);
        }
        rules.previous = in_place ? item : NULL;
        if (!inside)
            continue;
        if (item->key.type == BW_INODE_ITEM) {
            note_inode(leaf->tree, item, last);
            last->in_leaf = true;
            if (bw_has_synology_flag(item)) {
                leaf->check->synology_inodes++;
                has_noted = true;
            }
            if (last->flags & BW_INODE_VERITY && leaf->tree->is_subvolume)
                has_noted |= bw_verity_note(leaf->check, leaf->tree->tree.id, item);
        } else if (item->key.type == BW_EXTENT_DATA && needs_checksums) {
            check_extent(leaf, item, last);
        }
        if (is_for_baseline)
            has_noted |= names_subvolume(item);
    }
    return has_noted;
}
