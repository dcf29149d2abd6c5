/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `extents`: whether the extent tree has exactly the references that exist.
 *
 * The passes `space` and `trees` have added up the references of both sides in buckets by extent
 * (reference_counts.h), so if all buckets are zero, the pass ends without reading anything. If not,
 * it reads the extent tree and all other trees again, and lists the references of both sides that
 * belong to extents in the buckets that are not zero. Sorted by extent, references that both sides
 * have cancel out, and each extent that has any left is a finding.
 *
 * The memory of the list is bounded. If there are too many references, it gives up the upper half
 * of its buckets, and another round examines those.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "check/blocks.h"
#include "check/extents.h"
#include "check/flipped.h"
#include "check/reference_counts.h"
#include "owners/ranges.h"
#include "owners/tree_list.h"

enum {
    MOST = 1 << 18, /* entries of a list */
    ROUNDS = 16,    /* with so many faults, more findings do not help */
};

/* By extent, its item first; of references that differ in nothing but the length, those with the
 * same one stand together. */
static int by_extent(const void *left, const void *right)
{
    const struct bw_reference *a = &((const struct bw_reference_entry *)left)->reference,
                              *b = &((const struct bw_reference_entry *)right)->reference;
    int order = bw_compare(a->bytenr, b->bytenr);
    order = order ? order : (b->kind == BW_EXTENT_ITEM) - (a->kind == BW_EXTENT_ITEM);
    order = order ? order : bw_compare(a->kind, b->kind);
    order = order || !a->kind ? order : bw_compare(a->source, b->source);
    order = order || !a->kind ? order : bw_compare(a->inode, b->inode);
    order = order ? order : bw_compare(a->offset, b->offset);
    order = order ? order : bw_compare(a->length, b->length);
    order = order ? order : bw_compare(a->source, b->source);
    return order ? order : bw_compare(a->inode, b->inode);
}

void bw_entries_merge(struct bw_entries *list)
{
    size_t kept = 0;
    bw_reference_entries_sort(&list->entries, by_extent);
    for (size_t i = 0; i < list->entries.count;) {
        struct bw_reference_entry merged = list->entries.items[i++];
        for (; i < list->entries.count && by_extent(&merged, &list->entries.items[i]) == 0; i++) {
            merged.promised += list->entries.items[i].promised;
            merged.made += list->entries.items[i].made;
            merged.tree = merged.tree ? merged.tree : list->entries.items[i].tree;
        }
        if (merged.promised != merged.made || merged.reference.kind == BW_EXTENT_ITEM)
            list->entries.items[kept++] = merged;
    }
    list->entries.count = kept;
}

void bw_entries_add(struct bw_entries *list, const struct bw_reference_entry *entry)
{
    const uint32_t bucket = bw_reference_bucket(entry->reference.bytenr);
    if (list->counts) {
        if (entry->promised && entry->reference.kind != BW_EXTENT_ITEM)
            bw_count_promised_reference(list->check, &entry->reference);
        else if (entry->made)
            bw_count_reference(list->check, &entry->reference);
        return;
    }
    if (bucket < list->first || bucket >= list->end || !list->check->references->buckets[bucket])
        return;
    if (list->entries.count >= MOST && list->entries.count >= list->entries.capacity) {
        bw_entries_merge(list);
        while (list->entries.count > MOST / 2 && list->end - list->first > 1) {
            /* Leaves the upper half of the buckets for another round. */
            size_t kept = 0;
            list->end = list->first + (list->end - list->first + 1) / 2;
            for (size_t i = 0; i < list->entries.count; i++)
                if (bw_reference_bucket(list->entries.items[i].reference.bytenr) < list->end)
                    list->entries.items[kept++] = list->entries.items[i];
            list->entries.count = kept;
        }
    }
    if (bw_reference_entries_reserve(&list->entries, 1))
        list->no_memory = true;
    else if (bucket < list->end)
        list->entries.items[list->entries.count++] = *entry;
}

static bool is_block(const struct bw_reference_entry *entry)
{
    return !entry->reference.length;
}

/* A finding about an extent touches the file that refers to it, if one is known, or those that
 * have data there. */
static struct bw_finding location_of(const struct bw_reference_entry *entry)
{
    const struct bw_reference *reference = &entry->reference;
    struct bw_finding location =
        BW_FINDING(BW_TOUCHES_NOTHING, .tree = entry->tree ? entry->tree : BW_EXTENT_TREE,
                   .logical = reference->bytenr);
    if (!is_block(entry)) {
        location.row.length = reference->length;
        location.touches = BW_TOUCHES_DATA;
    }
    if (reference->kind == BW_EXTENT_DATA_REF && entry->made) {
        location.row.inode = reference->inode;
        location.touches = BW_TOUCHES_INODE;
    }
    return location;
}

/*
 * Flipped bits. A reference in the extent tree may differ in one bit from a reference that a file
 * or a tree block makes. The extent tree is wrong if its reference contradicts other items, and the
 * other reference does not.
 */

/* Whether two numbers differ in one bit. */
static bool is_one_bit(uint64_t a, uint64_t b)
{
    return a != b && !((a ^ b) & ((a ^ b) - 1));
}

/* The size of an inode of a tree; false if it has no INODE_ITEM. */
static bool find_size(struct bw_check *check, const struct bw_listed_tree *tree, uint64_t number,
                      uint64_t *size)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, key, key);
    const struct bw_item *item = bw_fs_items_next(&items);
    if (!item || item->size < sizeof(struct bw_disk_inode_item))
        return false;
    *size = bw_get64(((const struct bw_disk_inode_item *)(const void *)item->data)->size);
    return true;
}

/* The file extent that makes a reference, or that would with another bit in its address. */
static bool find_file_extent(struct bw_check *check, const struct bw_tree *tree,
                             const struct bw_reference *reference, bool with_flip,
                             struct bw_key *key, struct bw_disk_file_extent *extent)
{
    enum { MOST_PIECES = 64 }; /* of one extent */
    const struct bw_key first = {reference->inode, BW_EXTENT_DATA, reference->offset};
    const struct bw_key last = {reference->inode, BW_EXTENT_DATA, UINT64_MAX};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, tree, first, last);
    for (unsigned i = 0; i < MOST_PIECES; i++) {
        const struct bw_item *item = bw_fs_items_next(&items);
        if (!item)
            return false;
        if (item->size < sizeof *extent)
            continue;
        memcpy(extent, item->data, sizeof *extent);
        const uint64_t address = bw_get64(extent->disk_bytenr);
        *key = item->key;
        if (key->offset - bw_get64(extent->offset) == reference->offset &&
            bw_get64(extent->disk_num_bytes) == reference->length &&
            (with_flip ? is_one_bit(address, reference->bytenr) : address == reference->bytenr))
            return true;
    }
    return false;
}

/* Whether a reference that is made is right, and one that the extent tree has is not. */
static bool is_made_right(struct bw_check *check, const struct bw_reference_entry *promised,
                          const struct bw_reference_entry *made)
{
    const struct bw_reference *have = &promised->reference, *want = &made->reference;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, made->tree);
    struct bw_disk_file_extent extent;
    struct bw_key key;
    uint64_t size = 0;
    if (have->kind == BW_SHARED_BLOCK_REF || have->kind == BW_SHARED_DATA_REF)
        return true;
    if (have->source != want->source)
        return tree && !bw_tree_list_find(&check->trees, have->source) &&
               bw_tree_list_find(&check->trees, want->source) &&
               (tree->tree.root.bytenr != want->bytenr || bw_is_owned(check, &tree->tree));
    if (!tree || !find_size(check, tree, want->inode, &size))
        return false;
    /* The key of the file extent may be wrong if it would also be in order with the other inode. */
    if (have->inode != want->inode) {
        if (!find_file_extent(check, &tree->tree, want, false, &key, &extent))
            return false;
        const struct bw_key other = {have->inode, key.type, key.offset};
        return !bw_key_may_be(check, made->tree, &key, &other);
    }
    /* Only preallocated extents may lie behind the end of a file. */
    return want->offset < size && have->offset >= size &&
           find_file_extent(check, &tree->tree, want, false, &key, &extent) &&
           extent.type == BW_FILE_EXTENT_REGULAR;
}

/* The flipped bit in a reference inside of an extent item, compared with the reference that a file
 * makes. */
static void find_flip_in_reference(struct bw_check *check,
                                   const struct bw_reference_entry *promised,
                                   const struct bw_reference_entry *made, struct bw_flip *flip)
{
    const struct bw_reference *have = &promised->reference, *want = &made->reference;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_EXTENT_TREE);
    const bool is_source = have->inode == want->inode && have->offset == want->offset;
    const bool is_inode = have->source == want->source && have->offset == want->offset;
    const bool is_offset = have->source == want->source && have->inode == want->inode;
    if (!tree || !bw_flip_may_search(check) || have->kind != want->kind ||
        have->length != want->length || is_source + is_inode + is_offset != 1 ||
        !is_made_right(check, promised, made))
        return;
    const struct bw_key first = {have->bytenr, 0, 0}, last = {have->bytenr, UINT8_MAX, UINT64_MAX};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, first, last);
    const struct bw_item *item = bw_fs_items_next(&items);
    struct bw_extent_entry extent;
    struct bw_reference reference;
    if (!item || !bw_extent_entry_decode(check->fs, item, &extent))
        return;
    const struct bw_key key = item->key;
    uint32_t byte = (uint32_t)(extent.inside.next - item->data) + 1; /* behind the type */
    while (bw_extent_reference_step(&extent, &reference)) {
        if (reference.kind == have->kind && reference.source == have->source &&
            reference.inode == have->inode && reference.offset == have->offset)
            break;
        byte = (uint32_t)(extent.inside.next - item->data) + 1;
    }
    if (is_source)
        bw_flip_in_item(check, BW_EXTENT_TREE, &key, byte, 8, have->source, want->source, flip);
    else if (is_inode)
        bw_flip_in_item(check, BW_EXTENT_TREE, &key,
                        byte + offsetof(struct bw_disk_extent_data_ref, objectid), 8, have->inode,
                        want->inode, flip);
    else
        bw_flip_in_item(check, BW_EXTENT_TREE, &key,
                        byte + offsetof(struct bw_disk_extent_data_ref, offset), 8, have->offset,
                        want->offset, flip);
}

/* Nothing refers to an extent, and its checksums prove that it is where it should be: the flipped
 * bit in the address that a file has of it. */
static void find_flip_in_address(struct bw_check *check, const struct bw_reference *reference,
                                 struct bw_flip *flip)
{
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, reference->source);
    const uint64_t start = reference->bytenr, length = reference->length;
    struct bw_disk_file_extent extent;
    struct bw_key key;
    if (reference->kind == BW_EXTENT_DATA_REF && tree && bw_flip_may_search(check) &&
        check->checksums_known && !bw_range_set_overlap(&check->unsummed, start, start + length) &&
        find_file_extent(check, &tree->tree, reference, true, &key, &extent))
        bw_flip_in_item(check, reference->source, &key,
                        offsetof(struct bw_disk_file_extent, disk_bytenr), 8,
                        bw_get64(extent.disk_bytenr), start, flip);
}

/* A file and the extent tree give an extent different lengths: without compression, the file has
 * the right one a second time. */
static void find_flip_in_length(struct bw_check *check, const struct bw_reference_entry *made,
                                uint64_t length, struct bw_flip *flip)
{
    const struct bw_reference *reference = &made->reference;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, made->tree);
    struct bw_disk_file_extent extent;
    struct bw_key key;
    if (reference->kind != BW_EXTENT_DATA_REF || !tree || !bw_flip_may_search(check) ||
        !find_file_extent(check, &tree->tree, reference, false, &key, &extent) ||
        extent.compression)
        return;
    const struct bw_key have = {reference->bytenr, BW_EXTENT_ITEM, length};
    const struct bw_key want = {reference->bytenr, BW_EXTENT_ITEM, reference->length};
    if (bw_get64(extent.ram_bytes) == length)
        bw_flip_in_item(check, made->tree, &key,
                        offsetof(struct bw_disk_file_extent, disk_num_bytes), 8, reference->length,
                        length, flip);
    else if (bw_get64(extent.ram_bytes) == reference->length)
        bw_flip_in_key(check, BW_EXTENT_TREE, &have, &want, flip);
}

/* Reports the entries of an extent that did not cancel out: its item (NULL: it has none), and the
 * references to it. If not `complete`, a part of some tree is lost, and references that only the
 * extent tree has are no findings. */
static void report_extent(struct bw_check *check, const struct bw_reference_entry *item,
                          const struct bw_reference_entry *entries, size_t count, bool complete)
{
    const struct bw_reference_entry *first = NULL;
    uint64_t made = 0, promised = 0;
    for (size_t i = 0; i < count; i++) {
        made += entries[i].reference.kind ? entries[i].made : 0;
        promised += entries[i].reference.kind ? entries[i].promised : 0;
        if (entries[i].made && (!first || !first->reference.kind))
            first = &entries[i];
    }
    if (!count)
        return;
    if (!item) {
        /* The extent tree does not contain the rebuilt trees in memory. */
        if (!made || bw_memory_block(check->fs->reader.memory, first->reference.bytenr))
            return;
        const struct bw_finding location = location_of(first);
        bw_check_find(check, BW_CODE_extent_missing, &location,
                      "the extent tree lacks the %s, which has references: %" PRIu64,
                      is_block(first) ? "tree block" : "data", made);
        return;
    }
    if (!first && promised == item->promised) {
        struct bw_finding location = location_of(item);
        location.touches = BW_TOUCHES_NOTHING;
        if (complete && count == 1)
            find_flip_in_address(check, &entries->reference, &location.flip);
        if (complete)
            bw_check_find(check, BW_CODE_extent_unreferenced, &location,
                          "nothing refers to the %s, which has references: %" PRIu64,
                          is_block(item) ? "tree block" : "data", item->promised);
        return;
    }

    /* It has an item and is in use: the references that differ. */
    const struct bw_reference_entry *blocks[2] = {NULL, NULL}; /* promised, made */
    for (size_t i = 0; i < count; i++) {
        const struct bw_reference_entry *entry = &entries[i], *next = entry + 1;
        const struct bw_reference *a = &entry->reference, *b = &next->reference;
        if (!a->kind) {
            blocks[entry->made > entry->promised] = entry;
        } else if (i + 1 < count && a->kind == b->kind && a->source == b->source &&
                   a->inode == b->inode && a->offset == b->offset) {
            /* One reference: both sides give the extent different lengths. */
            const struct bw_reference_entry *one = entry->made > entry->promised ? entry : next;
            struct bw_finding location = location_of(one);
            find_flip_in_length(check, one, item->reference.length, &location.flip);
            bw_check_find(check, BW_CODE_extent_differs, &location,
                          "a file extent of %" PRIu64 " bytes, the extent item has %" PRIu64,
                          one->reference.length, item->reference.length);
            i++;
        } else if (entry->made > entry->promised || complete) {
            /* Only one side has the reference, or both have it in different numbers. */
            struct bw_finding location = location_of(entry);
            if (count == 2 && !entries[0].made && !entries[1].promised)
                find_flip_in_reference(check, &entries[0], &entries[1], &location.flip);
            else if (count == 2 && !entries[1].made && !entries[0].promised)
                find_flip_in_reference(check, &entries[1], &entries[0], &location.flip);
            const char *kind = a->kind == BW_TREE_BLOCK_REF ? "tree" : "tree block";
            char source[128];
            if (a->kind == BW_EXTENT_DATA_REF)
                snprintf(source, sizeof source,
                         "tree %" PRIu64 " inode %" PRIu64 " offset %" PRId64, a->source, a->inode,
                         (int64_t)a->offset);
            else
                snprintf(source, sizeof source, "%s %" PRIu64, kind, a->source);
            if (!entry->made)
                bw_check_find(check, BW_CODE_reference_extra, &location,
                              "the extent tree has a reference from %s, which does not exist",
                              source);
            else if (!entry->promised)
                bw_check_find(check, BW_CODE_reference_missing, &location,
                              "the extent tree lacks the reference from %s", source);
            else
                bw_check_find(check, BW_CODE_reference_count, &location,
                              "references from %s: %" PRIu64 ", the extent tree has %" PRIu64,
                              source, entry->made, entry->promised);
        }
    }
    if (!blocks[0] || !blocks[1])
        return;

    /* The extent item of a tree block differs from the header of the block. */
    const struct bw_reference *a = &blocks[0]->reference, *b = &blocks[1]->reference;
    const struct bw_finding location = location_of(blocks[1]);
    bw_check_find(check, BW_CODE_extent_differs, &location,
                  "generation %" PRIu64 " level %" PRIu64
                  ", the extent item has generation %" PRIu64 " level %" PRIu64,
                  b->source, b->inode, a->source, a->inode);
}

static void add_promised(struct bw_entries *list, const struct bw_reference *reference)
{
    if (reference->count)
        bw_entries_add(list, &(struct bw_reference_entry){.reference = *reference,
                                                          .promised = reference->count});
}

/* Adds the references that the extent tree promises. */
static struct bw_error *add_all_promised(struct bw_entries *list)
{
    const struct bw_check *check = list->check;
    struct bw_item_stream stream;
    struct bw_extent_entry extent = {0}; /* of the last extent item */
    struct bw_error *error =
        bw_item_stream_begin(&stream, check->fs, &check->trees, BW_EXTENT_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        struct bw_reference reference;
        if (bw_extent_keyed(&extent, &stream.item, &reference)) {
            if (extent.bytenr != reference.bytenr)
                reference.length = 0;
            add_promised(list, &reference);
        }
        if (!bw_extent_entry_decode(check->fs, &stream.item, &extent))
            continue;
        reference = bw_extent_as_reference(&extent);
        if (extent.is_block)
            add_promised(list, &reference);
        reference = (struct bw_reference){.bytenr = extent.bytenr,
                                          .length = extent.is_block ? 0 : extent.length,
                                          .kind = BW_EXTENT_ITEM};
        bw_entries_add(list, &(struct bw_reference_entry){.reference = reference,
                                                          .promised = extent.references});
        while (bw_extent_reference_step(&extent, &reference))
            add_promised(list, &reference);
    }
    return bw_item_stream_end(&stream, error);
}

struct bw_error *bw_visit_made_references(struct bw_fs *fs, const struct bw_tree_list *trees,
                                          const struct bw_key_map *by_address,
                                          bw_made_visitor *visit, void *context)
{
    struct bw_tree_reader reader = fs->reader;
    struct bw_reference reference;
    reader.adopter = NULL;
    BW_SCOPED(bw_block_set) struct bw_block_set seen = {0};
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .nodes = true, .pointers = true};
    for (size_t i = 0; i < trees->entries.count; i++) {
        const struct bw_listed_tree *tree = &trees->entries.items[i];
        if (!bw_reference_to_root(&tree->tree, &reference))
            continue;
        BW_TRY(visit(context, tree, &reference, NULL));
        bw_block_scan_begin(&scan, &reader, &tree->tree);
        while (bw_block_scan_next(&scan)) {
            const struct bw_node *node = &scan.node;
            if (scan.step == BW_SCAN_POINTER && !bw_tree_has_dropped(tree, &scan.pointer))
                BW_TRY(bw_block_set_insert(&seen, scan.pointer.bytenr, &scan.selected));
            if (scan.step == BW_SCAN_POINTER || scan.step == BW_SCAN_LOST)
                continue;
            reference = bw_block_as_reference(node);
            struct bw_block_references references = bw_block_references_open(
                node, bw_tree_first_slot(tree, node), bw_key_map_has(by_address, reference.bytenr));
            BW_TRY(visit(context, tree, &reference, &references));
            while (bw_block_references_next(&references, &reference))
                BW_TRY(visit(context, tree, &reference, &references));
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    return NULL;
}

static struct bw_error *add_made(void *context, const struct bw_listed_tree *tree,
                                 const struct bw_reference *reference,
                                 const struct bw_block_references *block)
{
    struct bw_entries *list = context;
    (void)block;
    bw_entries_add(list, &(struct bw_reference_entry){.reference = *reference,
                                                      .made = reference->count,
                                                      .tree = tree->tree.id});
    if (!reference->kind && !bw_check_should_continue(list->check, 0))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    return list->no_memory ? bw_error_no_memory() : NULL;
}

/* Adds the references that exist. */
static struct bw_error *add_all_made(struct bw_entries *list)
{
    struct bw_check *check = list->check;
    return bw_visit_made_references(check->fs, &check->trees, &check->full_backrefs, add_made,
                                    list);
}

static void bw_entries_free(struct bw_entries *list)
{
    bw_reference_entries_free(&list->entries);
}

struct bw_error *bw_pass_extents(struct bw_check *check)
{
    /* The last references that exist: from the superblock and the root items to the roots. */
    struct bw_reference root;
    const struct bw_block_memory *memory = check->fs->reader.memory;
    bool complete = !bw_memory_block(memory, check->fs->root_tree.root.bytenr) &&
                    !bw_memory_block(memory, check->fs->chunk_tree.root.bytenr);
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        complete &= !check->trees.entries.items[i].incomplete;
        if (bw_reference_to_root(&check->trees.entries.items[i].tree, &root))
            bw_count_reference(check, &root);
    }

    BW_SCOPED(bw_entries) struct bw_entries list = {.check = check};

    /* With a baseline, only the sum of all buckets is known, and they must be filled again if it
     * is not zero. */
    if (check->extents_known && check->skips) {
        uint64_t total = check->carried;
        for (uint32_t bucket = 0; bucket < BW_REFERENCE_BUCKETS; bucket++)
            total += check->references->buckets[bucket];
        if (!total)
            return NULL;
        list.counts = true;
        memset(check->references, 0, sizeof *check->references);
        BW_TRY(add_all_promised(&list));
        BW_TRY(add_all_made(&list));
    }

    /* If the extent tree is incomplete, not even the source of a reference is known. */
    if (!check->extents_known || !bw_reference_counts_disagreeing(check->references))
        return NULL;
    list.counts = false;
    for (unsigned round = 0; round < ROUNDS && list.end < BW_REFERENCE_BUCKETS; round++) {
        /* The references of as many buckets from list.first on as memory has room for. */
        list.first = list.end;
        list.end = BW_REFERENCE_BUCKETS;
        list.entries.count = 0;
        BW_TRY(add_all_promised(&list));
        BW_TRY(add_all_made(&list));
        if (list.no_memory)
            return bw_error_no_memory();
        bw_entries_merge(&list);
        for (size_t i = 0, end; i < list.entries.count; i = end) {
            const struct bw_reference_entry *first = &list.entries.items[i];
            const bool has_item = first->reference.kind == BW_EXTENT_ITEM;
            for (end = i; end < list.entries.count &&
                          list.entries.items[end].reference.bytenr == first->reference.bytenr;)
                end++;
            report_extent(check, has_item ? first : NULL, first + has_item, end - i - has_item,
                          complete);
        }
    }
    if (list.end < BW_REFERENCE_BUCKETS)
        bw_check_unable(
            check, bw_error_create(BW_ERROR_CORRUPT,
                                   "too many references are wrong: not all of them were examined"));
    return NULL;
}
