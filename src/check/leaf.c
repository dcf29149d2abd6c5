/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of a leaf: their keys ascend, their bytes fill the leaf from its end without a gap, and
 * what is in each is judged by items.c. */
#include "check/leaf.h"

#include <inttypes.h>

#include "check/blocks.h"
#include "check/items.h"
#include "ondisk/disk_items.h"

static struct bw_subject subject_of(const struct bw_reached_block *leaf, const struct bw_key *key)
{
    struct bw_subject subject = bw_block_subject(&leaf->tree->tree, leaf->pointer);
    subject.finding.length = leaf->node.nodesize;
    subject.finding.key = *key;
    subject.finding.known |= BW_KNOWN_KEY;
    return subject;
}

/* The subject of a finding about an item: it touches the inode that the item belongs to. */
static struct bw_subject subject_of_item(const struct bw_reached_block *leaf,
                                         const struct bw_key *key)
{
    struct bw_subject subject = subject_of(leaf, key);
    subject.touches = leaf->tree->is_subvolume ? BW_TOUCHES_INODE : BW_TOUCHES_NOTHING;
    subject.finding.inode = key->objectid;
    subject.finding.known |= leaf->tree->is_subvolume ? BW_KNOWN_INODE : 0;
    return subject;
}

static bool has_right_place(const struct bw_reached_block *leaf, uint32_t slot, uint32_t *end)
{
    const struct bw_disk_item *disk = bw_node_disk_item(&leaf->node, slot);
    const uint64_t offset = bw_get32(disk->offset), size = bw_get32(disk->size);
    const bool right = offset + size == *end;
    *end = (uint32_t)offset;
    return right;
}

/* Whether the key and the bytes of an item are where they should be. */
static bool is_in_place(const struct bw_reached_block *leaf, uint32_t slot,
                        const struct bw_item *item, const struct bw_item *before, bool inside,
                        uint32_t *end)
{
    const bool follows = has_right_place(leaf, slot, end);
    const bool ascends = !before || bw_key_compare(&before->key, &item->key) < 0;
    if (follows && ascends && inside)
        return true;
    const struct bw_subject subject = subject_of(leaf, &item->key);
    if (!ascends)
        bw_check_find(leaf->check, BW_CODE_block_keys, &subject, "keys out of order, slot %" PRIu32,
                      slot);
    if (!follows)
        bw_check_find(leaf->check, BW_CODE_block_layout, &subject,
                      "slot %" PRIu32 " does not end where the one before it begins", slot);
    else if (!inside)
        bw_check_find(leaf->check, BW_CODE_block_layout, &subject,
                      "slot %" PRIu32 " reaches into the table of items", slot);
    return false;
}

/* The transaction that wrote a leaf last: nothing in it is later. A log tree has items of the
 * transaction under way, and leaves in memory have the header of the leaf they stand for. */
static uint64_t generation_of(const struct bw_reached_block *leaf)
{
    const struct bw_block_memory *memory = leaf->check->fs->reader.memory;
    const bool unknown = leaf->in_log || bw_memory_block(memory, leaf->pointer->bytenr);
    return unknown ? UINT64_MAX : leaf->generation;
}

static struct bw_item_rules rules_of(const struct bw_reached_block *leaf)
{
    const struct bw_superblock *superblock = &leaf->check->fs->superblock;
    return (struct bw_item_rules){
        .sectorsize = superblock->sectorsize,
        .nodesize = superblock->nodesize,
        .checksum_size = (uint32_t)bw_checksum_size(superblock->checksum_type),
        .generation = superblock->generation,
        .leaf_generation = generation_of(leaf),
        .incompat = superblock->incompat_flags,
        .in_log = leaf->in_log,
        .owner = leaf->owner,
    };
}

static void judge(const struct bw_reached_block *leaf, const struct bw_item_rules *rules,
                  const struct bw_item *item)
{
    struct bw_item_fault fault;
    if (!bw_item_judge(rules, item, &fault))
        return;
    const struct bw_subject subject = subject_of_item(leaf, &item->key);
    bw_check_find(leaf->check, fault.code, &subject, "%s", fault.message);
}

/* The last byte is the revision of back references, 0 or 1. Source: BTRFS_HEADER_FLAG_* in the
 * kernel's uapi/linux/btrfs_tree.h; the tree-checker wants WRITTEN. */
enum { WRITTEN = 1 << 0, RELOCATED = 1 << 1, REVISION_SHIFT = 56 };

void bw_check_header(const struct bw_reached_block *block)
{
    const struct bw_disk_header *header = (const void *)block->node.block;
    const uint64_t flags = bw_get64(header->flags);
    const uint64_t unknown = flags & ~(WRITTEN | RELOCATED | UINT64_C(1) << REVISION_SHIFT);
    struct bw_subject subject = bw_block_subject(&block->tree->tree, block->pointer);
    subject.finding.length = block->node.nodesize;
    if (unknown)
        bw_check_find(block->check, BW_CODE_block_header, &subject,
                      "flags 0x%" PRIx64 " are not known", unknown);
    else if (!(flags & WRITTEN))
        bw_check_find(block->check, BW_CODE_block_header, &subject,
                      "the flag that it was written is missing");
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

void bw_check_leaf(const struct bw_reached_block *leaf)
{
    const struct bw_subject subject = bw_block_subject(&leaf->tree->tree, leaf->pointer);
    if (!leaf->node.item_count && !may_be_empty(leaf))
        bw_check_find(leaf->check, BW_CODE_block_empty, &subject, "a leaf without items");
    uint32_t end = leaf->node.nodesize - (uint32_t)sizeof(struct bw_disk_header);
    struct bw_item_rules rules = rules_of(leaf);
    struct bw_item items[2], *before = NULL;
    for (uint32_t slot = 0; slot < leaf->node.item_count; slot++) {
        struct bw_item *item = &items[slot % 2];
        const bool inside = bw_leaf_item(&leaf->node, slot, item);
        const bool in_place = is_in_place(leaf, slot, item, before, inside, &end);
        if (!in_place)
            rules.previous = NULL;
        if (inside)
            judge(leaf, &rules, item);
        rules.previous = in_place ? item : NULL;
        before = item;
    }
}
