/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tree blocks: header, and bounds-checked access to their contents in place. bw_node_check() checks
 * a block once, when it is read. After that, the accessors here need no further checks, with one
 * exception: bw_leaf_item() checks for each item whether its bytes are inside the leaf, so that a
 * bad item does not cost the whole leaf.
 */
#ifndef BW_ONDISK_NODE_H
#define BW_ONDISK_NODE_H

#include <stdbool.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk.h"

/** A tree block: a view on its bytes. */
struct bw_node {
    const uint8_t *block;
    uint32_t nodesize;
    uint32_t item_count; /**< as many items or key pointers as fit the block, or fewer */
    uint8_t level;
};

/** A pointer of an internal node. */
struct bw_node_pointer {
    struct bw_key key;
    uint64_t bytenr;
    uint64_t generation;
};

/** The view of a block, which need not have been checked: it has as many items as fit, at most. */
struct bw_node bw_node_view(const uint8_t *block, uint32_t nodesize);

/**
 * Checks a block against its address and what its parent promised: own address, level, owner,
 * generation, item count, range of keys; in internal nodes also that keys ascend and addresses are
 * aligned. Does not look at the checksum or the file system's id. BW_ERROR_CORRUPT with the reason
 * ("generation mismatch, want 7 have 5").
 */
struct bw_error *bw_node_check(const uint8_t *block, uint32_t nodesize, uint64_t bytenr,
                               const struct bw_tree_block_expectation *expectation);

/** Whether a block that was written for the tree `owner` may be part of another one: subvolumes
 * share their blocks with each other. */
bool bw_node_may_belong(uint64_t tree, uint64_t owner);

/** The part of bw_node_check() that depends on the request: header and first key. For blocks
 * checked before.
 */
bool bw_node_meets_expectation(const uint8_t *block, uint32_t nodesize, uint64_t bytenr,
                               const struct bw_tree_block_expectation *expectation);

static inline struct bw_key bw_key_decode(const struct bw_disk_key *disk)
{
    return (struct bw_key){bw_get64(disk->objectid), disk->type, bw_get64(disk->offset)};
}

static inline struct bw_disk_key bw_key_encode(const struct bw_key *key)
{
    return (struct bw_disk_key){bw_put64(key->objectid), key->type, bw_put64(key->offset)};
}

static inline const struct bw_disk_item *bw_node_disk_item(const struct bw_node *leaf,
                                                           uint32_t slot)
{
    return (const struct bw_disk_item *)(leaf->block + sizeof(struct bw_disk_header)) + slot;
}

/** Key of a slot, for leaves. */
static inline struct bw_key bw_leaf_key(const struct bw_node *leaf, uint32_t slot)
{
    return bw_key_decode(&bw_node_disk_item(leaf, slot)->key);
}

/** Whether the key of an item is greater than that of the one before it, and that one's greater
 * than the key before, as far as there are such. */
static inline bool bw_leaf_is_ordered_at(const struct bw_node *leaf, uint32_t slot)
{
    struct bw_key key = bw_leaf_key(leaf, slot);
    for (uint32_t earlier = slot; earlier && slot - earlier < 2; earlier--) {
        const struct bw_key before = bw_leaf_key(leaf, earlier - 1);
        if (bw_key_compare(&before, &key) >= 0)
            return false;
        key = before;
    }
    return true;
}

/** Reads an item; false if its bytes are not inside the leaf and after the item table. */
static inline bool bw_leaf_item(const struct bw_node *leaf, uint32_t slot, struct bw_item *item)
{
    const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
    uint32_t space = leaf->nodesize - (uint32_t)sizeof(struct bw_disk_header);
    uint32_t offset = bw_get32(disk->offset), size = bw_get32(disk->size);
    item->key = bw_key_decode(&disk->key);
    item->data = leaf->block + sizeof(struct bw_disk_header) + offset;
    item->size = size;
    return offset <= space && size <= space - offset && offset >= leaf->item_count * sizeof *disk;
}

/** The number of items of a leaf without the last ones whose keys are not below `end`. They are
 * lost, and later leaves may have the same keys. All items if no key is below it. */
uint32_t bw_leaf_count_below(const struct bw_node *leaf, const struct bw_key *end);

/** Whether the keys of a leaf ascend, and the bytes of its items follow each other from the end of
 * the leaf without gaps, as the kernel requires of every leaf. */
bool bw_leaf_is_packed(const struct bw_node *leaf);

/** A pointer of an internal node. */
static inline struct bw_node_pointer bw_node_pointer_at(const struct bw_node *node, uint32_t slot)
{
    const struct bw_disk_key_pointer *disk =
        (const struct bw_disk_key_pointer *)(node->block + sizeof(struct bw_disk_header)) + slot;
    return (struct bw_node_pointer){bw_key_decode(&disk->key), bw_get64(disk->bytenr),
                                    bw_get64(disk->generation)};
}

/** Key of a pointer of an internal node. */
static inline struct bw_key bw_node_key(const struct bw_node *node, uint32_t slot)
{
    return bw_node_pointer_at(node, slot).key;
}

/** The first key of a block, which is not empty. */
static inline struct bw_key bw_first_key(const struct bw_node *node)
{
    return node->level ? bw_node_key(node, 0) : bw_leaf_key(node, 0);
}

/** How many items of a leaf, or pointers of an internal node, begin at or before a key; they
 * ascend. */
uint32_t bw_node_count_until(const struct bw_node *node, const struct bw_key *key);

#endif
