/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way down. What is looked for are keys in ascending order, so each node shares them out among
 * its children, and no block is read twice in a run; the last leaf of a run is often the first of
 * the next. Below a node that is lost, leaves that were adopted stand in.
 */
#include "walk/attributes.h"

#include <stdlib.h>

#include "btree/adopted.h"
#include "format/checksum.h"
#include "fs/damage.h"
#include "fs/fs.h"
#include "record/file.h"
#include "walk/leaves.h"
#include "walk/task.h"
#include "xlators/classes.h"

/* A block that was read, and the pointer it was read and checked with. */
struct held_block {
    struct bw_block_pointer pointer; /* bytenr BW_NO_BLOCK: none */
    uint8_t *block;
};

/* A child of a node, and which of the keys are in its range. */
struct share {
    uint32_t slot;
    uint32_t first, end;
};

/* Keys are counted: 2n is the INODE_ITEM of attributes[n], 2n + 1 its property. */
struct bw_lookup {
    const struct bw_tree_reader *reader;
    uint32_t step; /* 1 if properties are looked for, 2 if not */
    uint32_t property_hash;
    unsigned batch;
    uint8_t *leaves;             /* buffers of a batch */
    struct held_block last_leaf; /* in one of them */
    struct held_block nodes[BW_MAX_LEVEL];
    struct share wanted[BW_MAX_LEAVES];
    struct bw_range ranges[BW_MAX_LEAVES];
    struct bw_buffer values;

    /* Of the run under way. */
    const struct bw_task_scope *scope;
    struct bw_inode_attributes *attributes;
};

static const char property[] = BW_COMPRESSION_PROPERTY;

struct bw_lookup *bw_lookup_create(const struct bw_tree_reader *reader, unsigned needs)
{
    struct bw_lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup)
        return NULL;
    lookup->reader = reader;
    lookup->step = needs & BW_FILE_NEEDS_COMPRESSION ? 1 : 2;
    lookup->property_hash = bw_name_hash(property, sizeof property - 1);
    lookup->batch = bw_block_batch(reader);
    lookup->leaves = bw_block_buffer(reader, lookup->batch);
    lookup->last_leaf.pointer.bytenr = BW_NO_BLOCK;
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        lookup->nodes[level].pointer.bytenr = BW_NO_BLOCK;
    if (lookup->leaves)
        return lookup;
    bw_lookup_destroy(lookup);
    return NULL;
}

void bw_lookup_destroy(struct bw_lookup *lookup)
{
    if (!lookup)
        return;
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(lookup->nodes[level].block);
    free(lookup->leaves);
    bw_buffer_free(&lookup->values);
    free(lookup);
}

const struct bw_buffer *bw_lookup_values(const struct bw_lookup *lookup)
{
    return &lookup->values;
}

static inline struct bw_key key_at(const struct bw_lookup *lookup, uint32_t index)
{
    uint64_t number = lookup->attributes[index / 2].number;
    return index % 2 ? (struct bw_key){number, BW_XATTR_ITEM, lookup->property_hash}
                     : (struct bw_key){number, BW_INODE_ITEM, 0};
}

/* The first index behind `first` whose key does not lie before `limit`. */
static uint32_t reach(const struct bw_lookup *lookup, uint32_t first, uint32_t end,
                      const struct bw_key *limit)
{
    for (first += lookup->step; first < end; first += lookup->step) {
        struct bw_key key = key_at(lookup, first);
        if (bw_key_compare(&key, limit) >= 0)
            break;
    }
    return first;
}

static void mark_lost(struct bw_lookup *lookup, uint32_t first, uint32_t end)
{
    for (; first < end; first += lookup->step) {
        struct bw_inode_attributes *attributes = &lookup->attributes[first / 2];
        if (first % 2)
            attributes->compression_state = BW_ATTRIBUTE_LOST;
        else
            attributes->inode_state = BW_ATTRIBUTE_LOST;
    }
}

static bool is_lost(const struct bw_lookup *lookup, const struct bw_block_pointer *pointer)
{
    const struct bw_map *lost = lookup->scope->lost_blocks;
    return lost->count && bw_map_get(lost, pointer->bytenr) != UINT32_MAX;
}

/* Whether a block that is held was checked against the same promises, apart from the tree it is
 * read for. */
static bool holds(const struct held_block *held, const struct bw_block_pointer *pointer)
{
    const struct bw_tree_block_expectation *have = &held->pointer.expectation,
                                           *want = &pointer->expectation;
    return held->pointer.bytenr == pointer->bytenr && have->generation == want->generation &&
           have->level == want->level && have->has_first_key == want->has_first_key &&
           bw_key_compare(&have->first_key, &want->first_key) == 0 &&
           bw_key_compare(&have->end_key, &want->end_key) == 0;
}

/* Items. */

/* Several names of properties may have the same hash. */
static void take_property(struct bw_lookup *lookup, struct bw_inode_attributes *attributes,
                          const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        const uint8_t *value = entry.name + entry.name_length;
        if (entry.name_length != sizeof property - 1 ||
            memcmp(entry.name, property, entry.name_length) != 0)
            continue;
        attributes->compression = (uint32_t)lookup->values.length;
        attributes->compression_length = (uint16_t)(cursor.next - value);
        attributes->compression_state = BW_ATTRIBUTE_FOUND;
        bw_buffer_append(&lookup->values, value, attributes->compression_length);
        return;
    }
    if (bw_cursor_bad(&cursor))
        attributes->compression_state = BW_ATTRIBUTE_CUT_OFF;
}

static void take_item(struct bw_lookup *lookup, uint32_t index, const struct bw_node *leaf,
                      uint32_t slot)
{
    struct bw_inode_attributes *attributes = &lookup->attributes[index / 2];
    struct bw_item item;
    bool inside = bw_leaf_item(leaf, slot, &item);
    if (index % 2 == 0)
        attributes->inode_state =
            !inside || item.size < sizeof(struct bw_disk_inode_item) ? BW_ATTRIBUTE_CUT_OFF
            : bw_inode_decode(&item, &attributes->inode)             ? BW_ATTRIBUTE_FOUND
                                                                     : BW_ATTRIBUTE_INVALID;
    else if (inside)
        take_property(lookup, attributes, &item);
    else
        attributes->compression_state = BW_ATTRIBUTE_CUT_OFF;
}

static inline bool lies_before(const struct bw_node *leaf, uint32_t slot, const struct bw_key *key)
{
    struct bw_key at = bw_leaf_key(leaf, slot);
    return bw_key_compare(&at, key) < 0;
}

/* The first slot from `slot` on whose key is not less: most often one of the next few. */
static uint32_t find_slot(const struct bw_node *leaf, uint32_t slot, const struct bw_key *key)
{
    uint32_t low = slot, width = 4;
    while (low + width < leaf->item_count && lies_before(leaf, low + width, key)) {
        low += width + 1;
        width *= 2;
    }
    uint32_t high = low + width < leaf->item_count ? low + width : leaf->item_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (lies_before(leaf, middle, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_leaf(struct bw_lookup *lookup, const uint8_t *block, uint32_t first, uint32_t end)
{
    const struct bw_node leaf = bw_node_view(block, lookup->reader->nodesize);
    uint32_t slot = 0;
    for (uint32_t index = first; index < end; index += lookup->step) {
        struct bw_key key = key_at(lookup, index);
        slot = find_slot(&leaf, slot, &key);
        if (slot == leaf.item_count)
            return;
        struct bw_key found = bw_leaf_key(&leaf, slot);
        if (bw_key_compare(&found, &key) == 0)
            take_item(lookup, index, &leaf, slot);
    }
}

/* Leaves. */

static void lose(struct bw_lookup *lookup, const struct bw_block_pointer *pointer,
                 struct bw_error *error)
{
    bw_fs_report_lost(lookup->scope->fs, pointer->bytenr, error);
}

/* Reads leaves, at most a batch, and takes what is wanted of them. */
static void read_leaves(struct bw_lookup *lookup, const struct bw_block_pointer *pointers,
                        const struct share *const *wanted, unsigned count)
{
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < count; i++)
        requests[i] = bw_block_request(lookup->reader, &pointers[i],
                                       lookup->leaves + (size_t)i * lookup->reader->nodesize);
    lookup->last_leaf.pointer.bytenr = BW_NO_BLOCK;
    bw_blocks_read(lookup->reader, requests, count);
    for (unsigned i = 0; i < count; i++) {
        if (requests[i].error) {
            lose(lookup, &pointers[i], requests[i].error);
            mark_lost(lookup, wanted[i]->first, wanted[i]->end);
            continue;
        }
        lookup->last_leaf = (struct held_block){pointers[i], requests[i].buffer};
        take_leaf(lookup, requests[i].buffer, wanted[i]->first, wanted[i]->end);
    }
}

/* A leaf that need not be read: it is at hand, or known to be lost. */
static bool settle(struct bw_lookup *lookup, const struct bw_block_pointer *pointer, uint32_t first,
                   uint32_t end)
{
    if (holds(&lookup->last_leaf, pointer))
        take_leaf(lookup, lookup->last_leaf.block, first, end);
    else if (is_lost(lookup, pointer))
        mark_lost(lookup, first, end);
    else
        return false;
    return true;
}

static void look_in_leaf(struct bw_lookup *lookup, const struct bw_block_pointer *pointer,
                         uint32_t first, uint32_t end)
{
    const struct share wanted = {0, first, end}, *only = &wanted;
    if (!settle(lookup, pointer, first, end))
        read_leaves(lookup, pointer, &only, 1);
}

static struct bw_range range_of(const struct bw_lookup *lookup, const struct bw_node *node,
                                uint32_t slot)
{
    return (struct bw_range){bw_node_pointer_at(node, slot).bytenr, lookup->reader->nodesize};
}

/* Tells the read-ahead which leaves are wanted now and, if these lie close together, which ones are
 * likely to be wanted next. */
static void advise(struct bw_lookup *lookup, const struct bw_node *node, uint32_t count)
{
    const uint32_t first = lookup->wanted[0].slot, behind = lookup->wanted[count - 1].slot + 1;
    uint32_t ranges = 0;
    for (; ranges < count; ranges++)
        lookup->ranges[ranges] = range_of(lookup, node, lookup->wanted[ranges].slot);
    for (uint32_t slot = behind; slot < node->item_count && slot < behind + count; slot++)
        if (count >= (behind - first) / 2)
            lookup->ranges[ranges++] = range_of(lookup, node, slot);
    if (count > 1)
        bw_blocks_advise(lookup->reader, lookup->ranges, ranges);
}

static void look_in_leaves(struct bw_lookup *lookup, const struct bw_block_pointer *parent,
                           const struct bw_node *node, uint32_t count)
{
    struct bw_block_pointer pointers[BW_BATCH];
    const struct share *missing[BW_BATCH];
    unsigned missing_count = 0;
    advise(lookup, node, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct share *wanted = &lookup->wanted[i];
        pointers[missing_count] = bw_tree_child_pointer(parent, node, wanted->slot);
        if (settle(lookup, &pointers[missing_count], wanted->first, wanted->end))
            continue;
        missing[missing_count++] = wanted;
        if (missing_count == lookup->batch) {
            read_leaves(lookup, pointers, missing, missing_count);
            missing_count = 0;
        }
    }
    if (missing_count)
        read_leaves(lookup, pointers, missing, missing_count);
}

/* Nodes. */

/* The last child from `slot` on that begins at or before a key; `slot` if none does. */
static uint32_t find_child(const struct bw_node *node, uint32_t slot, const struct bw_key *key)
{
    uint32_t low = slot + 1, high = node->item_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        struct bw_key first = bw_node_key(node, middle);
        if (bw_key_compare(&first, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* The next child that keys from `first` on are shared out to; where its share ends. */
static struct share next_share(const struct bw_lookup *lookup, const struct bw_node *node,
                               uint32_t slot, uint32_t first, uint32_t end)
{
    struct bw_key key = key_at(lookup, first);
    struct share share = {find_child(node, slot, &key), first, end};
    if (share.slot + 1 < node->item_count) {
        struct bw_key limit = bw_node_key(node, share.slot + 1);
        share.end = reach(lookup, first, end, &limit);
    }
    return share;
}

/* Leaves that were adopted, for a node that is lost. What would be between them is lost as well. */
static void look_in_adopted(struct bw_lookup *lookup, uint64_t lost, uint32_t first, uint32_t end)
{
    const struct bw_adopted *adopted;
    bw_error_free(bw_adopted_find(lookup->reader, lookup->scope->tree, lost, &adopted));
    while (first < end) {
        struct bw_key key = key_at(lookup, first);
        const struct bw_adopted_leaf *leaf = adopted ? bw_adopted_leaf_of(adopted, &key) : NULL;
        uint32_t next = first + lookup->step;
        for (; leaf && next < end; next += lookup->step) {
            key = key_at(lookup, next);
            if (bw_key_compare(&key, &leaf->last_key) > 0)
                break;
        }
        if (leaf)
            look_in_leaf(lookup, &leaf->pointer, first, next);
        else
            mark_lost(lookup, first, next);
        first = next;
    }
}

/* Reads a node unless it is at hand; false if it is lost. */
static bool read_node(struct bw_lookup *lookup, const struct bw_block_pointer *pointer)
{
    struct held_block *held = &lookup->nodes[pointer->expectation.level];
    if (holds(held, pointer))
        return true;
    if (is_lost(lookup, pointer))
        return false;
    if (!held->block)
        held->block = bw_block_buffer(lookup->reader, 1);
    held->pointer.bytenr = BW_NO_BLOCK;
    struct bw_error *error =
        held->block ? bw_block_read(lookup->reader, pointer, held->block) : bw_error_no_memory();
    if (!error)
        held->pointer = *pointer;
    else
        lose(lookup, pointer, error);
    return !error;
}

static void look_below(struct bw_lookup *lookup, const struct bw_block_pointer *pointer,
                       uint32_t first, uint32_t end);

/* Shares keys out among the children of a node that was read. */
static void share_out(struct bw_lookup *lookup, const struct bw_block_pointer *pointer,
                      uint32_t first, uint32_t end)
{
    const uint8_t level = pointer->expectation.level;
    const struct bw_node node = bw_node_view(lookup->nodes[level].block, lookup->reader->nodesize);
    uint32_t count = 0;
    for (struct share share = {0, first, first}; share.end < end;) {
        share = next_share(lookup, &node, share.slot, share.end, end);
        if (level == 1) {
            lookup->wanted[count++] = share;
            continue;
        }
        struct bw_block_pointer child = bw_tree_child_pointer(pointer, &node, share.slot);
        look_below(lookup, &child, share.first, share.end);
    }
    if (level == 1)
        look_in_leaves(lookup, pointer, &node, count);
}

static void look_below(struct bw_lookup *lookup, const struct bw_block_pointer *pointer,
                       uint32_t first, uint32_t end)
{
    if (pointer->expectation.level == 0)
        look_in_leaf(lookup, pointer, first, end);
    else if (read_node(lookup, pointer))
        share_out(lookup, pointer, first, end);
    else
        look_in_adopted(lookup, pointer->bytenr, first, end);
}

void bw_lookup_run(struct bw_lookup *lookup, const struct bw_task_scope *scope,
                   struct bw_inode_attributes *attributes, size_t count)
{
    const struct bw_block_pointer root = bw_tree_root_pointer(scope->tree, false);
    lookup->scope = scope;
    lookup->attributes = attributes;
    lookup->values.length = 0;
    for (size_t i = 0; i < count; i++)
        attributes[i].inode_state = attributes[i].compression_state = BW_ATTRIBUTE_MISSING;
    if (!count)
        return;
    struct bw_probes *probes = bw_xlator_probes(lookup->reader->top);
    struct bw_key_event event = {.event = {.call = 0},
                                 .tree = scope->tree->id,
                                 .first = {attributes[0].number, BW_INODE_ITEM, 0},
                                 .last = {attributes[count - 1].number, BW_XATTR_ITEM, UINT64_MAX}};
    uint64_t start = BW_PROBE_START(probes, key__search__done);
    BW_PROBE(probes, key__search__start, key_start, &event);
    look_below(lookup, &root, 0, (uint32_t)(2 * count));
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
}
