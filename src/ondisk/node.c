/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The check that every tree block passes once, right after its checksum. */
#include "ondisk/node.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/disk_items.h"

static const struct bw_disk_header *header_of(const uint8_t *block)
{
    return (const struct bw_disk_header *)block;
}

struct bw_node bw_node_view(const uint8_t *block, uint32_t nodesize)
{
    const struct bw_disk_header *header = header_of(block);
    const size_t entry =
        header->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    const uint32_t most = (nodesize - (uint32_t)sizeof *header) / (uint32_t)entry;
    const uint32_t count = bw_get32(header->item_count);
    return (struct bw_node){block, nodesize, count < most ? count : most, header->level};
}

/* Whether blocks of an owner may be part of subvolume trees. */
static bool is_subvolume(uint64_t owner)
{
    return bw_is_subvolume_id(owner) || owner == BW_TREE_RELOC;
}

bool bw_node_may_belong(uint64_t tree, uint64_t owner)
{
    if (owner == tree)
        return true;
    /* Kernels before 5.9 relocated the tree of relocated data as they do subvolumes. */
    if (tree == BW_DATA_RELOC_TREE || owner == BW_DATA_RELOC_TREE)
        return tree == BW_TREE_RELOC || owner == BW_TREE_RELOC;
    return is_subvolume(tree) && is_subvolume(owner);
}

static struct bw_error *field_mismatch(const char *field, uint64_t want, uint64_t have)
{
    return bw_error_create(BW_ERROR_CORRUPT, "%s mismatch, want %" PRIu64 " have %" PRIu64, field,
                           want, have);
}

static struct bw_error *check_header(const struct bw_disk_header *header, uint32_t nodesize,
                                     uint64_t bytenr,
                                     const struct bw_tree_block_expectation *expectation)
{
    if (bw_get64(header->bytenr) != bytenr)
        return field_mismatch("bytenr", bytenr, bw_get64(header->bytenr));
    if (header->level != expectation->level)
        return field_mismatch("level", expectation->level, header->level);
    if (bw_get64(header->generation) != expectation->generation)
        return field_mismatch("generation", expectation->generation, bw_get64(header->generation));
    uint64_t owner = bw_get64(header->owner);
    if (!bw_node_may_belong(expectation->owner, owner))
        return field_mismatch("owner", expectation->owner, owner);
    size_t entry = header->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    uint32_t count = bw_get32(header->item_count);
    if (count > (nodesize - sizeof *header) / entry)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid item count %" PRIu32, count);
    if (count == 0 && (header->level || expectation->has_first_key))
        return bw_error_create(BW_ERROR_CORRUPT, "no items in a block that its parent points to");
    return NULL;
}

static struct bw_error *bad_key(const char *problem, uint32_t slot, const struct bw_key *key)
{
    return bw_error_create(BW_ERROR_CORRUPT,
                           "%s, slot %" PRIu32 " key (%" PRIu64 " %u %" PRIu64 ")", problem, slot,
                           key->objectid, key->type, key->offset);
}

/* The first key must be the parent's, and the last one must not reach into the range of the next
 * block. */
static struct bw_error *check_key_range(const struct bw_node *node,
                                        const struct bw_tree_block_expectation *expectation)
{
    static const struct bw_key no_limit;
    if (!node->item_count)
        return NULL;
    uint32_t slot = node->item_count - 1;
    struct bw_key first = bw_first_key(node);
    struct bw_key last = node->level ? bw_node_key(node, slot) : bw_leaf_key(node, slot);
    if (expectation->has_first_key && bw_key_compare(&first, &expectation->first_key) != 0)
        return bad_key("first key mismatch", 0, &first);
    if (bw_key_compare(&expectation->end_key, &no_limit) != 0 &&
        bw_key_compare(&last, &expectation->end_key) >= 0)
        return bad_key("key outside of the range in the parent", slot, &last);
    return NULL;
}

/* Whether the pointers of a node are in order and aligned. */
static bool are_valid(const struct bw_node *node)
{
    const struct bw_disk_key_pointer *pointers =
        (const void *)(node->block + sizeof(struct bw_disk_header));
    uint64_t addresses = bw_get64(pointers[0].bytenr),
             previous = bw_get64(pointers[0].key.objectid);
    for (uint32_t slot = 1; slot < node->item_count; slot++) {
        const uint64_t inode = bw_get64(pointers[slot].key.objectid);
        addresses |= bw_get64(pointers[slot].bytenr);
        if (inode <= previous) {
            const struct bw_key before = bw_node_key(node, slot - 1), key = bw_node_key(node, slot);
            if (bw_key_compare(&before, &key) >= 0)
                return false;
        }
        previous = inode;
    }
    return addresses % BW_MIN_SECTORSIZE == 0;
}

struct bw_error *bw_node_check(const uint8_t *block, uint32_t nodesize, uint64_t bytenr,
                               const struct bw_tree_block_expectation *expectation)
{
    BW_TRY(check_header(header_of(block), nodesize, bytenr, expectation));
    if (expectation->lenient)
        return NULL;
    struct bw_node node = bw_node_view(block, nodesize);
    BW_TRY(check_key_range(&node, expectation));
    if (!node.level || are_valid(&node))
        return NULL;

    /* The error names the first invalid pointer. */
    struct bw_key previous = {0};
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        struct bw_node_pointer pointer = bw_node_pointer_at(&node, slot);
        if (pointer.bytenr % BW_MIN_SECTORSIZE)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "unaligned pointer, slot %" PRIu32 " bytenr %" PRIu64, slot,
                                   pointer.bytenr);
        if (slot && bw_key_compare(&previous, &pointer.key) >= 0)
            return bad_key("keys out of order", slot, &pointer.key);
        previous = pointer.key;
    }
    return NULL;
}

bool bw_node_meets_expectation(const uint8_t *block, uint32_t nodesize, uint64_t bytenr,
                               const struct bw_tree_block_expectation *expectation)
{
    struct bw_node node = bw_node_view(block, nodesize);
    BW_AUTO_ERROR struct bw_error *header =
        check_header(header_of(block), nodesize, bytenr, expectation);
    if (header)
        return false;
    BW_AUTO_ERROR struct bw_error *key_range = check_key_range(&node, expectation);
    return !key_range;
}

uint32_t bw_leaf_count_below(const struct bw_node *leaf, const struct bw_key *end)
{
    for (uint32_t left = leaf->item_count; left; left--) {
        const struct bw_key last = bw_leaf_key(leaf, left - 1);
        if (bw_key_compare(&last, end) < 0)
            return left;
    }
    return leaf->item_count;
}

bool bw_leaf_is_packed(const struct bw_node *leaf)
{
    uint32_t end = leaf->nodesize - (uint32_t)sizeof(struct bw_disk_header);
    struct bw_key previous = {0};
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        struct bw_item item;
        if (!bw_leaf_item(leaf, slot, &item) || bw_get32(disk->offset) + item.size != end ||
            (slot && bw_key_compare(&previous, &item.key) >= 0))
            return false;
        end = bw_get32(disk->offset);
        previous = item.key;
    }
    return true;
}

static inline bool is_greater(const void *disk, const struct bw_key *key)
{
    const struct bw_key at = bw_key_decode(disk);
    return bw_key_compare(&at, key) > 0;
}

uint32_t bw_node_count_until(const struct bw_node *node, const struct bw_key *key)
{
    const uint8_t *keys = node->block + sizeof(struct bw_disk_header); /* at the begin of each entry
                                                                        */
    size_t step = node->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    return (uint32_t)BW_FIRST_INDEX(i, node->item_count, is_greater(keys + i * step, key));
}
