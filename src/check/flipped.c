/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which flipped bit explains a contradiction in a tree block whose checksum is correct.
 *
 * Where another value determines the field, the two differ in one bit: bw_flip_to(). In a
 * tree block, there are more ways to be right than one value: a key has to lie between its
 * neighbours, a name to have its hash, an item to end where the previous one begins. So the bits of
 * all fields that take part in the contradiction are flipped, one after the other, in a copy of the
 * block, and the same checks are repeated. If exactly one bit makes the block sound, it is named.
 * If there are two, nothing says which one it was, and none is named.
 *
 * A field that differs from the parent's pointer can be right, and the pointer wrong. A third place
 * decides: the extent item of the block, or the neighbours of both keys.
 *
 * A search takes about a millisecond, so the number of searches in a check is limited: an image may
 * be crafted to have millions of faults.
 */
#include "check/flipped.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "data/references.h"
#include "fs/image.h"
#include "ondisk/disk_items.h"

enum {
    MOST_SEARCHES = 1000,
    MOST_DATA = 1024, /* bytes of an item that are searched */
    NEAR = 2,         /* slots on each side of a suspect that are checked again */
    MOST_SUSPECTS = 4,
    READS_OF_ADDRESS = 10, /* searches that the search of an address counts for */
};

/* The place of a pointer in a node. */
#define POINTER_BYTE(slot) \
    ((uint32_t)(sizeof(struct bw_disk_header) + (slot) * sizeof(struct bw_disk_key_pointer)))

/* The place of an item's key in a leaf. */
#define ITEM_BYTE(slot) \
    ((uint32_t)(sizeof(struct bw_disk_header) + (slot) * sizeof(struct bw_disk_item)))

bool bw_flip_may_search(struct bw_check *check)
{
    return atomic_fetch_add(&check->flip_searches, 1) < MOST_SEARCHES;
}

bool bw_flip_to(struct bw_flip *flip, uint64_t block, uint32_t byte, unsigned width, uint64_t have,
                uint64_t want)
{
    const uint64_t difference = have ^ want;
    *flip = (struct bw_flip){0};
    if (!difference || (difference & (difference - 1)))
        return false;
    const unsigned bit = (unsigned)__builtin_ctzll(difference);
    if (bit >= width * 8)
        return false;
    *flip = (struct bw_flip){.found = true,
                             .block = block,
                             .byte = byte + bit / 8,
                             .bit = (uint8_t)(bit % 8),
                             .value = want};
    return true;
}

struct bw_item_rules bw_item_rules_of(const struct bw_fs *fs, uint64_t owner, uint64_t generation,
                                      bool in_log)
{
    const struct bw_superblock *superblock = &fs->superblock;
    return (struct bw_item_rules){
        .sectorsize = superblock->sectorsize,
        .nodesize = superblock->nodesize,
        .checksum_size = bw_fs_checksum_size(fs),
        .generation = superblock->generation,
        .leaf_generation = generation,
        .incompat = superblock->incompat_flags,
        .in_log = in_log,
        .owner = owner,
    };
}

/* A search in one block. */
struct search {
    struct bw_check *check;
    const struct bw_tree *tree; /* only if the parent's pointer is in question, too */
    const struct bw_block_pointer *pointer;
    struct bw_item_rules rules;
    uint64_t owner; /* the block's, without a flip */
    uint8_t *block; /* a copy, in which one bit at a time is flipped; then room for another one */
    uint32_t nodesize;
    uint32_t suspects[MOST_SUSPECTS]; /* slots */
    unsigned suspect_count;
    uint32_t first_bad;  /* the first slot whose key or place is wrong; the item count: none */
    bool is_rest_bad;    /* the slots after it are wrong, too, and do not fill the leaf */
    uint32_t item_count; /* the block's, without a flip */
    unsigned found;      /* bits that make the block sound, except in the number of items */
    struct bw_flip flip;
};

/* Whether the items near a slot are in order, in their places, and without faults. Some kernels and
 * tools have left harmless faults, which do not count in the neighbours. */
static bool are_items_sound(struct search *search, const struct bw_node *leaf, uint32_t slot)
{
    uint32_t at = slot > NEAR ? slot - NEAR : 0;
    struct bw_item items[2], *before = NULL;
    struct bw_item_fault fault;
    uint32_t end = leaf->nodesize - (uint32_t)sizeof(struct bw_disk_header);
    if (at)
        end = bw_get32(bw_node_disk_item(leaf, at - 1)->offset);
    for (; at < leaf->item_count && at <= slot + NEAR; at++) {
        struct bw_item *item = &items[at % 2];
        const uint64_t offset = bw_get32(bw_node_disk_item(leaf, at)->offset);
        if (!bw_leaf_item(leaf, at, item) || offset + item->size != end ||
            (before && bw_key_compare(&before->key, &item->key) >= 0))
            return false;
        search->rules.previous = before;
        if (bw_check_item(&search->rules, item, &fault) &&
            (bw_item_fault_is_serious(fault.kind) || at + 1 == slot || at == slot))
            return false;
        before = item;
        end = (uint32_t)offset;
    }
    return true;
}

/* Whether an item is in order, apart from its offset or its size. Then the leaf has it: the number
 * of items is not wrong. Behind the last item are zeros, or the rests of deleted items. A leaf with
 * an item is never called empty. */
static bool is_displaced(struct search *search, const struct bw_node *leaf, uint32_t slot)
{
    const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
    const uint32_t offset = bw_get32(disk->offset), size = bw_get32(disk->size);
    const struct bw_key key = bw_key_decode(&disk->key);
    const struct bw_key before = slot ? bw_leaf_key(leaf, slot - 1) : (struct bw_key){0};
    if (!slot || bw_key_compare(&before, &key) >= 0)
        return bw_key_compare(&before, &key) < 0;
    const uint32_t end = bw_get32(bw_node_disk_item(leaf, slot - 1)->offset);
    const uint32_t places[][2] = {{end - size, size}, {offset, end - offset}};
    search->rules.previous = NULL;
    for (unsigned i = 0; i < 2; i++) {
        const struct bw_item item = {.key = key,
                                     .data =
                                         leaf->block + sizeof(struct bw_disk_header) + places[i][0],
                                     .size = places[i][1]};
        struct bw_item_fault fault;
        if (places[i][0] <= end && places[i][1] <= end &&
            !bw_check_item(&search->rules, &item, &fault))
            return true;
    }
    return false;
}

static bool is_block_sound(struct search *search)
{
    const uint64_t bytenr = search->pointer->bytenr;
    BW_AUTO_ERROR struct bw_error *error =
        bw_node_check(search->block, search->nodesize, bytenr, &search->pointer->expectation);
    if (error)
        return false;
    /* All subvolumes may share blocks, but the owner has to exist. */
    const uint64_t owner =
        bw_get64(((const struct bw_disk_header *)(const void *)search->block)->owner);
    if (owner != search->owner && owner != search->pointer->expectation.owner &&
        !bw_tree_list_find(&search->check->trees, owner))
        return false;
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    /* Without its last items, a block is often sound. So they have to be wrong. */
    if (node.item_count < search->item_count &&
        (!search->is_rest_bad || node.item_count != search->first_bad))
        return false;
    if (node.level)
        return true;
    if (node.item_count + 1 == search->item_count && is_displaced(search, &node, node.item_count))
        return false;
    for (unsigned i = 0; i < search->suspect_count; i++)
        if (!are_items_sound(search, &node, search->suspects[i]))
            return false;
    return bw_leaf_is_packed(&node);
}

static uint64_t number_at(const uint8_t *bytes, unsigned width)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < width; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

/* Finds the item with a key; false if it does not exist, or too many have been searched. The caller
 * frees the finder, which keeps the leaf. */
static bool find_item(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                      struct bw_leaf_finder *finder, uint32_t *slot, struct bw_item *item)
{
    const struct bw_listed_tree *listed = bw_tree_list_find(&check->trees, tree);
    const struct bw_tree none = {0};
    bw_leaf_finder_init(finder, &check->fs->reader, listed ? &listed->tree : &none);
    if (!listed || !bw_flip_may_search(check))
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_find_leaf(finder, key);
    bw_check_lacks_memory(check, error);
    const int64_t at = error || finder->lost ? -1 : bw_leaf_last_until(finder, key);
    *slot = (uint32_t)at;
    return at >= 0 && bw_leaf_is_packed(&finder->leaf) &&
           bw_leaf_item(&finder->leaf, *slot, item) && bw_key_compare(&item->key, key) == 0;
}

/* Finds a field of an item: sets the block, the byte in it, and the value of the field. False if
 * the item has no such field, or too many have been searched. */
static bool find_field(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                       uint32_t offset, unsigned width, struct bw_flip *place)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot;
    if (!find_item(check, tree, key, &finder, &slot, &item) || item.size < width ||
        offset > item.size - width)
        return false;
    *place = (struct bw_flip){.block = finder.bytenr,
                              .byte = (uint32_t)(item.data - finder.leaf.block) + offset,
                              .value = number_at(item.data + offset, width)};
    return true;
}

void bw_flip_in_item(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                     uint32_t offset, unsigned width, uint64_t have, uint64_t want,
                     struct bw_flip *flip)
{
    struct bw_flip place;
    if (bw_flip_to(flip, 0, 0, width, have, want) &&
        find_field(check, tree, key, offset, width, &place) && place.value == have)
        bw_flip_to(flip, place.block, place.byte, width, have, want);
    else
        *flip = (struct bw_flip){0};
}

void bw_flip_bit_of_item(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                         uint32_t offset, unsigned bit, struct bw_flip *flip)
{
    *flip = (struct bw_flip){0};
    if (!find_field(check, tree, key, offset, 1, flip))
        return;
    flip->found = true;
    flip->bit = (uint8_t)bit;
    flip->value ^= UINT64_C(1) << bit;
}

void bw_flip_in_bytes(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                      uint32_t offset, const void *have, const void *want, size_t length,
                      struct bw_flip *flip)
{
    const uint8_t *a = have, *b = want;
    size_t at = 0;
    while (at < length && a[at] == b[at])
        at++;
    if (at < length && memcmp(a + at + 1, b + at + 1, length - at - 1) == 0)
        bw_flip_in_item(check, tree, key, offset + (uint32_t)at, 1, a[at], b[at], flip);
}

/* The bit that makes one key the other; at the key at `byte` of a block. */
static bool flip_key(struct bw_flip *flip, uint64_t block, uint32_t byte, const struct bw_key *have,
                     const struct bw_key *want)
{
    const bool objectid = have->objectid != want->objectid, offset = have->offset != want->offset;
    const bool type = have->type != want->type;
    if ((objectid && (type || offset)) || (type && offset))
        return false;
    return bw_flip_to(flip, block, byte, 8, have->objectid, want->objectid) ||
           bw_flip_to(flip, block, byte + 8, 1, have->type, want->type) ||
           bw_flip_to(flip, block, byte + 9, 8, have->offset, want->offset);
}

void bw_flip_in_key(struct bw_check *check, uint64_t tree, const struct bw_key *have,
                    const struct bw_key *want, struct bw_flip *flip)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot;
    *flip = (struct bw_flip){0};
    if (find_item(check, tree, have, &finder, &slot, &item))
        flip_key(flip, finder.bytenr, ITEM_BYTE(slot), have, want);
}

bool bw_key_may_be(struct bw_check *check, uint64_t tree, const struct bw_key *have,
                   const struct bw_key *other)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot;
    if (!find_item(check, tree, have, &finder, &slot, &item))
        return true;
    const struct bw_key before = slot ? bw_leaf_key(&finder.leaf, slot - 1) : (struct bw_key){0};
    const struct bw_key after =
        slot + 1 < finder.leaf.item_count ? bw_leaf_key(&finder.leaf, slot + 1) : BW_KEY_MAX;
    return bw_key_compare(&before, other) < 0 && bw_key_compare(other, &after) < 0;
}

bool bw_is_owned(struct bw_check *check, const struct bw_tree *tree)
{
    const struct bw_tree_reader *reader = &check->fs->reader;
    const struct bw_block_pointer root = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    if (!buffer)
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &root, buffer);
    const struct bw_disk_header *header = (const void *)buffer;
    return !bw_check_lacks_memory(check, error) && !error && bw_get64(header->owner) == tree->id;
}

bool bw_may_lack_items(struct bw_check *check, uint64_t tree, const struct bw_key *key)
{
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot;
    return !find_item(check, tree, key, &finder, &slot, &item) ||
           bw_leaf_key(&finder.leaf, finder.leaf.item_count - 1).objectid == key->objectid;
}

static void try_field(struct search *search, uint32_t byte, unsigned width)
{
    for (unsigned bit = 0; bit < width * 8; bit++) {
        uint8_t *place = search->block + byte + bit / 8;
        *place ^= (uint8_t)(1u << bit % 8);
        if (is_block_sound(search) && !search->found++)
            search->flip = (struct bw_flip){.found = true,
                                            .block = search->pointer->bytenr,
                                            .byte = byte + bit / 8,
                                            .bit = (uint8_t)(bit % 8),
                                            .value = number_at(search->block + byte, width)};
        *place ^= (uint8_t)(1u << bit % 8);
    }
}

/* The first slot from `begin` on whose key or place is wrong; `count` if none exists. */
static uint32_t first_bad_slot(const struct bw_node *node, uint32_t begin, uint32_t count)
{
    uint32_t end = node->nodesize - (uint32_t)sizeof(struct bw_disk_header);
    struct bw_key before = {0};
    if (begin && !node->level)
        end = bw_get32(bw_node_disk_item(node, begin - 1)->offset);
    for (uint32_t slot = begin; slot < count; slot++) {
        const struct bw_key key = node->level ? bw_node_key(node, slot) : bw_leaf_key(node, slot);
        struct bw_item item;
        if (slot > begin && bw_key_compare(&before, &key) >= 0)
            return slot;
        before = key;
        if (node->level && bw_node_pointer_at(node, slot).bytenr % BW_MIN_SECTORSIZE)
            return slot;
        if (node->level)
            continue;
        const uint32_t offset = bw_get32(bw_node_disk_item(node, slot)->offset);
        if (!bw_leaf_item(node, slot, &item) || (uint64_t)offset + item.size != end)
            return slot;
        end = offset;
    }
    return count;
}

/* Whether the places of the items from `begin` on, in any order, fill the space up to the item
 * before them. Then the leaf has these items: behind the last one are zeros, or old items. */
static bool fill_space(const struct bw_node *node, uint32_t begin, uint32_t count)
{
    uint64_t end = node->nodesize - sizeof(struct bw_disk_header), sum = 0;
    if (node->level)
        return false;
    if (begin)
        end = bw_get32(bw_node_disk_item(node, begin - 1)->offset);
    uint64_t lowest = end;
    for (uint32_t slot = begin; slot < count; slot++) {
        const struct bw_disk_item *item = bw_node_disk_item(node, slot);
        const uint64_t offset = bw_get32(item->offset), size = bw_get32(item->size);
        if (offset + size > end)
            return false;
        sum += size;
        lowest = offset < lowest ? offset : lowest;
    }
    return sum == end - lowest;
}

static void add_suspect(struct search *search, uint32_t slot)
{
    for (unsigned i = 0; i < search->suspect_count; i++)
        if (search->suspects[i] == slot)
            return;
    if (search->suspect_count < MOST_SUSPECTS)
        search->suspects[search->suspect_count++] = slot;
}

/* Begins a search, with a mirror of the block; false if there were too many, or memory runs out. */
static bool begin_search(struct search *search, struct bw_check *check,
                         const struct bw_block_pointer *pointer, const uint8_t *block)
{
    if (!bw_flip_may_search(check))
        return false;
    *search =
        (struct search){.check = check, .pointer = pointer, .nodesize = check->fs->reader.nodesize};
    search->block = malloc((size_t)search->nodesize * 2);
    if (search->block)
        memcpy(search->block, block, search->nodesize);
    if (!search->block)
        return false;
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    const size_t entry =
        node.level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    const size_t most = (search->nodesize - sizeof(struct bw_disk_header)) / entry;
    search->owner = bw_get64(((const struct bw_disk_header *)(const void *)block)->owner);
    search->item_count = node.item_count > most ? 0 : node.item_count;
    search->first_bad = first_bad_slot(&node, 0, search->item_count);
    const uint32_t next = search->first_bad + 1;
    search->is_rest_bad = next >= search->item_count ||
                          first_bad_slot(&node, next, search->item_count) < search->item_count;
    search->is_rest_bad &= !fill_space(&node, search->first_bad, search->item_count);
    return true;
}

/* Whether two neighbours in a leaf make it sound if they exchange their keys, or their keys and
 * places, or if the later item, with its data, comes first. */
static bool are_exchanged(struct search *search, uint32_t slot)
{
    const uint32_t header = sizeof(struct bw_disk_header), nodesize = search->nodesize;
    const struct bw_node node = bw_node_view(search->block, nodesize);
    struct bw_disk_item *items = (void *)(search->block + header);
    if (node.level || slot + 1 >= search->item_count)
        return false;
    uint8_t *backup = search->block + nodesize;
    memcpy(backup, search->block, nodesize);
    struct bw_disk_item *first = &items[slot], *second = &items[slot + 1];
    const struct bw_disk_item was_first = *first, was_second = *second;

    first->key = was_second.key;
    second->key = was_first.key;
    bool is_sound = is_block_sound(search);
    *first = was_second;
    *second = was_first;
    is_sound = is_sound || is_block_sound(search);

    const uint64_t size = bw_get32(first->size), moved = bw_get32(second->size);
    const uint64_t start = bw_get32(first->offset), end = start + size + moved;
    if (bw_get32(second->offset) == start + size && header + end <= nodesize) {
        first->offset = bw_put32((uint32_t)(start + moved));
        second->offset = bw_put32((uint32_t)start);
        memcpy(search->block + header + start + moved, backup + header + start, size);
        memcpy(search->block + header + start, backup + header + start + size, moved);
        is_sound = is_sound || is_block_sound(search);
    }
    memcpy(search->block, backup, nodesize);
    return is_sound;
}

/* Tries all bits. The view shows the copy, with the item count of the damaged block. A leaf is also
 * sound without its last items; but if another bit makes all of them sound, that is no chance. */
static void try_all(struct search *search)
{
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    try_field(search, offsetof(struct bw_disk_header, item_count), 4);
    const struct bw_flip in_count = search->flip;
    const unsigned counts = search->found;
    search->found = 0;
    try_field(search, offsetof(struct bw_disk_header, bytenr), 8);
    try_field(search, offsetof(struct bw_disk_header, generation), 8);
    try_field(search, offsetof(struct bw_disk_header, owner), 8);
    try_field(search, offsetof(struct bw_disk_header, level), 1);
    const uint32_t size =
        node.level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    for (unsigned i = 0; i < search->suspect_count; i++) {
        /* The fields of an item, or of a pointer; and the bytes of the item. */
        const uint32_t slot = search->suspects[i];
        const uint32_t byte = (uint32_t)sizeof(struct bw_disk_header) + slot * size;
        struct bw_item item;
        try_field(search, byte + offsetof(struct bw_disk_key, objectid), 8);
        try_field(search, byte + offsetof(struct bw_disk_key, type), 1);
        try_field(search, byte + offsetof(struct bw_disk_key, offset), 8);
        if (node.level) {
            try_field(search, byte + offsetof(struct bw_disk_key_pointer, bytenr), 8);
            continue;
        }
        try_field(search, byte + offsetof(struct bw_disk_item, offset), 4);
        try_field(search, byte + offsetof(struct bw_disk_item, size), 4);
        if (!bw_leaf_item(&node, slot, &item))
            continue;
        const uint32_t data = (uint32_t)(item.data - node.block);
        for (uint32_t k = 0; k < item.size && k < MOST_DATA; k++)
            try_field(search, data + k, 1);
    }
    if (!search->found && counts == 1)
        search->flip = in_count;
    else if (search->found != 1)
        search->flip = (struct bw_flip){0};
    const uint32_t bad = search->first_bad;
    if (search->flip.found &&
        (are_exchanged(search, bad) || (bad && are_exchanged(search, bad - 1))))
        search->flip = (struct bw_flip){0};
}

void bw_flip_find_in_leaf(const struct bw_reached_block *leaf, const struct bw_item_rules *rules,
                          uint32_t slot, struct bw_flip *flip)
{
    struct search search;
    *flip = (struct bw_flip){0};
    /* If a disk has lost writes of the superblock, all new items look too new. */
    if (leaf->generation > leaf->check->fs->superblock.generation + 1 ||
        !begin_search(&search, leaf->check, leaf->pointer, leaf->node.block))
        return;
    search.rules = *rules;
    if (slot)
        add_suspect(&search, slot - 1);
    add_suspect(&search, slot);
    try_all(&search);
    *flip = search.flip;
    free(search.block);
}

/* The generation of a tree block in its extent item; 0: it is not known. */
static uint64_t generation_in_extent_tree(const struct search *search)
{
    struct bw_check *check = search->check;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_EXTENT_TREE);
    const struct bw_key key = {search->pointer->bytenr, BW_METADATA_ITEM, UINT64_MAX};
    struct bw_extent_entry extent;
    struct bw_item item;
    if (!tree)
        return 0;
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &check->fs->reader, &tree->tree);
    BW_AUTO_ERROR struct bw_error *error = bw_find_leaf(&finder, &key);
    bw_check_lacks_memory(check, error);
    const int64_t slot = error || finder.lost ? -1 : bw_leaf_last_until(&finder, &key);
    if (slot >= 0 && bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) &&
        item.key.objectid == search->pointer->bytenr &&
        bw_extent_entry_decode(check->fs, &item, &extent) && extent.is_block)
        return extent.generation;
    return 0;
}

/* Whether a generation in an item is later than a transaction. */
static bool is_item_newer(const struct search *search, const struct bw_item *item,
                          uint64_t generation)
{
    struct bw_item_rules rules = search->rules;
    struct bw_item_fault fault;
    rules.leaf_generation = generation;
    rules.previous = NULL;
    if (item->key.type == BW_ROOT_ITEM) {
        const struct bw_disk_root_item *root = (const void *)item->data;
        return item->size > offsetof(struct bw_disk_root_item, generation) + 8 &&
               bw_get64(root->generation) > generation;
    }
    return bw_check_item(&rules, item, &fault) &&
           (fault.kind == BW_FAULT_inode_generation || fault.kind == BW_FAULT_entry_transid ||
            fault.kind == BW_FAULT_extent_generation);
}

/* Whether something in the block was written after a transaction: an item, or a child. */
static bool has_newer(const struct search *search, const struct bw_node *node, uint64_t generation)
{
    for (uint32_t slot = 0; slot < search->item_count; slot++) {
        struct bw_item item;
        if (node->level
                ? bw_node_pointer_at(node, slot).generation > generation
                : bw_leaf_item(node, slot, &item) && is_item_newer(search, &item, generation))
            return true;
    }
    return false;
}

/* Whether the block's own generation can be wrong. Without a newer item in it, a block that is
 * older than its parent expects is rather an earlier version: a disk has lost a write. With a newer
 * one, a later block may have replaced the expected one. The first transaction is 1. */
static bool may_have_wrong_generation(const struct search *search, const struct bw_node *node,
                                      uint64_t have, uint64_t want)
{
    return have < want ? !have || has_newer(search, node, have) : !has_newer(search, node, want);
}

/* Whether the last key reaches into the range of the next block. */
static bool is_beyond(const struct bw_node *node, const struct bw_key *end_key)
{
    if (!node->item_count || (!end_key->objectid && !end_key->type && !end_key->offset))
        return false;
    const uint32_t slot = node->item_count - 1;
    const struct bw_key key = node->level ? bw_node_key(node, slot) : bw_leaf_key(node, slot);
    return bw_key_compare(&key, end_key) >= 0;
}

/* The parent's node and the slot of the pointer to the block; false if it is not found. */
static bool find_parent(const struct search *search, struct bw_block_pointer *parent,
                        uint8_t *buffer, uint32_t *slot)
{
    const struct bw_tree_block_expectation *expectation = &search->pointer->expectation;
    struct bw_block_pointer at = bw_tree_root_pointer(search->tree, false);
    if (!expectation->has_first_key)
        return false;
    while (at.expectation.level > expectation->level) {
        BW_AUTO_ERROR struct bw_error *error =
            bw_block_read(&search->check->fs->reader, &at, buffer);
        const struct bw_node node = bw_node_view(buffer, search->nodesize);
        if (bw_check_lacks_memory(search->check, error) || error || !node.item_count)
            return false;
        *slot = bw_child_slot(&node, &expectation->first_key);
        *parent = at;
        at = bw_tree_child_pointer(&at, &node, *slot);
    }
    return at.bytenr == search->pointer->bytenr;
}

/* The first or the last key of another child of the parent; false if it cannot be read. */
static bool key_of_sibling(const struct search *search, const struct bw_block_pointer *parent,
                           const struct bw_node *node, uint32_t slot, bool last, struct bw_key *key)
{
    const struct bw_tree_reader *reader = &search->check->fs->reader;
    struct bw_block_pointer pointer = bw_tree_child_pointer(parent, node, slot);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    if (!buffer)
        return false;
    pointer.expectation.has_first_key = false;
    pointer.expectation.end_key = (struct bw_key){0};
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &pointer, buffer);
    const struct bw_node child = bw_node_view(buffer, search->nodesize);
    if (bw_check_lacks_memory(search->check, error) || error || !child.item_count)
        return false;
    const uint32_t at = last ? child.item_count - 1 : 0;
    *key = child.level ? bw_node_key(&child, at) : bw_leaf_key(&child, at);
    return true;
}

/* Whether the flipped bit of a node explains more than the order of its keys: the pointer that it
 * changes gets the first key of its block; or, in the item count, no two keys were exchanged. */
static bool confirm_in_node(struct search *search)
{
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    const uint32_t header = sizeof(struct bw_disk_header);
    struct bw_disk_key_pointer *pointers = (void *)(search->block + header);
    if (!node.level)
        return true;
    if (search->flip.byte >= header) {
        const uint32_t slot = (search->flip.byte - header) / (uint32_t)sizeof *pointers;
        uint8_t *byte = search->block + search->flip.byte;
        struct bw_key first;
        *byte ^= (uint8_t)(1u << search->flip.bit);
        const bool is_known = key_of_sibling(search, search->pointer, &node, slot, false, &first);
        const struct bw_key key = bw_node_key(&node, slot);
        *byte ^= (uint8_t)(1u << search->flip.bit);
        return !is_known || bw_key_compare(&key, &first) == 0;
    }
    const uint32_t bad = search->first_bad;
    bool is_sound = false;
    for (uint32_t slot = bad; bad && slot < search->item_count && !is_sound; slot++) {
        const struct bw_disk_key first = pointers[bad - 1].key, second = pointers[slot].key;
        pointers[bad - 1].key = second;
        pointers[slot].key = first;
        is_sound = is_block_sound(search);
        pointers[bad - 1].key = first;
        pointers[slot].key = second;
    }
    return !is_sound;
}

/* A member of the pointer: in the parent's node, or in the root item. */
static void flip_in_pointer(const struct search *search, uint32_t in_node, uint32_t in_root,
                            unsigned width, uint64_t have, uint64_t want, struct bw_flip *flip)
{
    const struct bw_tree_list *trees = &search->check->trees;
    const struct bw_listed_tree *tree = bw_tree_list_find(trees, search->tree->id);
    const struct bw_listed_tree *roots = bw_tree_list_find(trees, BW_ROOT_TREE);
    struct bw_block_pointer parent;
    uint32_t slot;
    if (!search->pointer->expectation.has_first_key) {
        if (tree && roots && tree->root_key.type)
            bw_flip_in_item(search->check, BW_ROOT_TREE, &tree->root_key, in_root, width, have,
                            want, flip);
        return;
    }
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->check->fs->reader, 1);
    if (buffer && find_parent(search, &parent, buffer, &slot))
        bw_flip_to(flip, parent.bytenr, POINTER_BYTE(slot) + in_node, width, have, want);
}

/* Whether the block is sound if its parent has another expectation. */
static bool is_sound_with(struct search *search, const struct bw_tree_block_expectation *expected)
{
    const struct bw_block_pointer *pointer = search->pointer;
    const struct bw_block_pointer other = {pointer->bytenr, *expected};
    search->pointer = &other;
    const bool sound = is_block_sound(search);
    search->pointer = pointer;
    return sound;
}

/* The first key differs from the one in the parent. The last key of the previous block decides
 * which is wrong, or the grandparent, which has the same key. */
static void decide_first_key(struct search *search, struct bw_flip *flip)
{
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    const struct bw_key have = bw_first_key(&node);
    struct bw_tree_block_expectation other = search->pointer->expectation;
    const struct bw_key want = other.first_key;
    struct bw_block_pointer parent;
    struct bw_key last;
    uint32_t slot;
    bool own = search->flip.found;
    other.first_key = have;
    if (!is_sound_with(search, &other)) {
        *flip = search->flip;
        return;
    }
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->check->fs->reader, 1);
    if (!buffer || !find_parent(search, &parent, buffer, &slot))
        return;
    const struct bw_node above = bw_node_view(buffer, search->nodesize);
    bool parents = true;
    if (!slot && parent.expectation.has_first_key) {
        parents = false;
    } else if (slot && key_of_sibling(search, &parent, &above, slot - 1, true, &last)) {
        own = own && bw_key_compare(&last, &want) < 0;
        parents = bw_key_compare(&last, &have) < 0;
    }
    if (own && !parents)
        *flip = search->flip;
    if (!own && parents)
        flip_key(flip, parent.bytenr, POINTER_BYTE(slot), &want, &have);
}

/* The last key is not less than the next key in the parent. The next block, which begins with this
 * key, decides which is wrong. */
static void decide_last_key(struct search *search, struct bw_flip *flip)
{
    const struct bw_key want = search->pointer->expectation.end_key;
    struct bw_tree_block_expectation other = search->pointer->expectation;
    struct bw_block_pointer parent;
    struct bw_key next;
    uint32_t slot;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->check->fs->reader, 1);
    if (!buffer || !find_parent(search, &parent, buffer, &slot))
        return;
    const struct bw_node above = bw_node_view(buffer, search->nodesize);
    if (slot + 1 >= above.item_count ||
        !key_of_sibling(search, &parent, &above, slot + 1, false, &next))
        return;
    other.end_key = next;
    if (bw_key_compare(&next, &want) == 0)
        *flip = search->flip;
    else if (is_sound_with(search, &other))
        flip_key(flip, parent.bytenr, POINTER_BYTE(slot + 1), &want, &next);
}

/* A field of the block contradicts the parent's pointer: names the bit in the wrong one of the two,
 * if that is known. */
static void decide(struct search *search, struct bw_flip *flip)
{
    const struct bw_tree_block_expectation *expectation = &search->pointer->expectation;
    const struct bw_disk_header *header = (const void *)search->block;
    const struct bw_node node = bw_node_view(search->block, search->nodesize);
    const uint64_t owner = bw_get64(header->owner), generation = bw_get64(header->generation);
    struct bw_tree_block_expectation other = *expectation;
    struct bw_key first = {0};
    if (search->item_count)
        first = bw_first_key(&node);
    if (header->level != expectation->level) {
        /* The root item has the level of a root; that of other blocks follows from the parent. */
        other.level = header->level;
        if (expectation->has_first_key || !is_sound_with(search, &other))
            *flip = search->flip;
        else if (!search->flip.found)
            flip_in_pointer(search, 0, offsetof(struct bw_disk_root_item, level), 1,
                            expectation->level, header->level, flip);
    } else if (generation != expectation->generation) {
        /* The extent item of the block has its generation, too. */
        const uint64_t want = expectation->generation, third = generation_in_extent_tree(search);
        other.generation = search->rules.leaf_generation = generation;
        const bool is_own =
            third == want || generation > search->check->fs->superblock.generation + 1;
        if (is_own && may_have_wrong_generation(search, &node, generation, want))
            *flip = search->flip;
        else if (!is_own && third == generation && is_sound_with(search, &other))
            flip_in_pointer(search, offsetof(struct bw_disk_key_pointer, generation),
                            offsetof(struct bw_disk_root_item, generation), 8, want, generation,
                            flip);
    } else if (!bw_node_may_belong(expectation->owner, owner) && !expectation->has_first_key &&
               !bw_tree_list_find(&search->check->trees, owner) &&
               (owner <= BW_REMAP_TREE || owner == BW_DATA_RELOC_TREE)) {
        return; /* the root item of another tree */
    } else if (search->item_count && expectation->has_first_key &&
               bw_key_compare(&first, &expectation->first_key) != 0) {
        decide_first_key(search, flip);
    } else if (search->item_count && search->first_bad == search->item_count &&
               is_beyond(&node, &expectation->end_key)) {
        decide_last_key(search, flip);
    } else {
        *flip = search->flip;
    }
}

/* Reads the block at each address that differs in one bit from the one in the pointer. A block of
 * another tree may be alike, and an older version of the right one, which is free space. */
void bw_flip_find_in_address(struct bw_check *check, const struct bw_tree *tree,
                             const struct bw_block_pointer *pointer, struct bw_flip *flip)
{
    const struct bw_tree_reader *reader = &check->fs->reader;
    struct search search = {.check = check, .tree = tree, .nodesize = reader->nodesize};
    uint64_t want = 0;
    unsigned found = 0;
    *flip = (struct bw_flip){0};
    if (atomic_fetch_add(&check->flip_searches, READS_OF_ADDRESS) >= MOST_SEARCHES)
        return;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    for (unsigned bit = 0; buffer && bit < 64; bit++) {
        const uint64_t bytenr = pointer->bytenr ^ UINT64_C(1) << bit;
        const struct bw_block_pointer there = {bytenr, pointer->expectation};
        if (bytenr % check->fs->superblock.sectorsize || !bw_check_chunk(check, bytenr))
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_block_read(reader, &there, buffer);
        if (!error)
            error = bw_node_check(buffer, reader->nodesize, bytenr, &there.expectation);
        search.pointer = &there;
        const struct bw_disk_header *header = (const void *)buffer;
        if (bw_check_lacks_memory(check, error) || error ||
            bw_get64(header->owner) != there.expectation.owner ||
            generation_in_extent_tree(&search) != there.expectation.generation)
            continue;
        want = bytenr;
        found++;
    }
    search.pointer = pointer;
    if (found == 1)
        flip_in_pointer(&search, offsetof(struct bw_disk_key_pointer, bytenr),
                        offsetof(struct bw_disk_root_item, bytenr), 8, pointer->bytenr, want, flip);
}

void bw_flip_find_in_block(struct bw_check *check, const struct bw_tree *tree,
                           const struct bw_block_pointer *pointer, const uint8_t *block,
                           struct bw_flip *flip)
{
    struct search search;
    *flip = (struct bw_flip){0};
    if (!begin_search(&search, check, pointer, block))
        return;
    search.rules = bw_item_rules_of(check->fs, pointer->expectation.owner,
                                    pointer->expectation.generation, tree->id == BW_TREE_LOG);
    /* The parent's pointer limits the first and the last key. Within a node, keys ascend. */
    if (search.item_count) {
        add_suspect(&search, 0);
        add_suspect(&search, search.item_count - 1);
    }
    if (search.first_bad < search.item_count)
        add_suspect(&search, search.first_bad);
    if (search.first_bad && search.first_bad < search.item_count)
        add_suspect(&search, search.first_bad - 1);
    try_all(&search);
    if (search.flip.found && !confirm_in_node(&search))
        search.flip = (struct bw_flip){0};
    search.tree = tree;
    decide(&search, flip);
    free(search.block);
}
