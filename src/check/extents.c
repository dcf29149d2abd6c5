/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `extents`: the reference counts are evaluated. If both sides do not agree, the extent
 * tree and all other trees are read again, for the references of extents in the buckets that are
 * not zero, and as often as their number needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "check/blocks.h"
#include "check/extents.h"
#include "check/reference_counts.h"
#include "owners/tree_list.h"

/* Lists of references from both sides. Their memory is bounded: if there are too many, the
 * references of later buckets are postponed to another round. */

enum { MOST = 1 << 18 };

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
    if (list->entries.count)
        qsort(list->entries.items, list->entries.count, sizeof *list->entries.items, by_extent);
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

/* Leaves the upper half of the buckets for another time. */
static void halve_buckets(struct bw_entries *list)
{
    size_t kept = 0;
    list->end = list->first + (list->end - list->first + 1) / 2;
    for (size_t i = 0; i < list->entries.count; i++)
        if (bw_reference_bucket(list->entries.items[i].reference.bytenr) < list->end)
            list->entries.items[kept++] = list->entries.items[i];
    list->entries.count = kept;
}

static bool make_room(struct bw_entries *list)
{
    if (list->entries.count < MOST || list->entries.count < list->entries.capacity)
        return !bw_reference_entries_reserve(&list->entries, 1);
    bw_entries_merge(list);
    while (list->entries.count > MOST / 2 && list->end - list->first > 1)
        halve_buckets(list);
    return !bw_reference_entries_reserve(&list->entries, 1);
}

void bw_entries_add(struct bw_entries *list, const struct bw_reference_entry *entry)
{
    const uint32_t bucket = bw_reference_bucket(entry->reference.bytenr);
    if (bucket < list->first || bucket >= list->end ||
        bw_reference_bucket_agrees(list->check->references, bucket))
        return;
    if (!make_room(list)) {
        list->no_memory = true;
        return;
    }
    if (bucket < list->end)
        list->entries.items[list->entries.count++] = *entry;
}

/* Reports faults in the references to an extent, once both sides of them are known. */

/* The entries of one extent. */
struct extent {
    struct bw_check *check;
    const struct bw_reference_entry *item; /* NULL: it has none */
    const struct bw_reference_entry *entries;
    size_t count;
    bool complete;
};

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

static void describe_reference(const struct bw_reference *reference, char text[128])
{
    switch (reference->kind) {
    case BW_EXTENT_DATA_REF:
        snprintf(text, 128, "tree %" PRIu64 " inode %" PRIu64 " offset %" PRId64, reference->source,
                 reference->inode, (int64_t)reference->offset);
        break;
    case BW_TREE_BLOCK_REF:
        snprintf(text, 128, "tree %" PRIu64, reference->source);
        break;
    default:
        snprintf(text, 128, "tree block %" PRIu64, reference->source);
        break;
    }
}

/* Whether two entries are of one reference that gives the extent another length. */
static bool differ_in_length(const struct bw_reference_entry *a, const struct bw_reference_entry *b)
{
    return a->reference.kind == b->reference.kind && a->reference.source == b->reference.source &&
           a->reference.inode == b->reference.inode && a->reference.offset == b->reference.offset &&
           a->reference.kind;
}

static void report_reference(const struct extent *extent, const struct bw_reference_entry *entry)
{
    const struct bw_finding location = location_of(entry);
    char source[128];
    describe_reference(&entry->reference, source);
    if (entry->made <= entry->promised && !extent->complete)
        return;
    if (!entry->made)
        bw_check_find(extent->check, BW_CODE_reference_extra, &location,
                      "the extent tree has a reference from %s, which does not exist", source);
    else if (!entry->promised)
        bw_check_find(extent->check, BW_CODE_reference_missing, &location,
                      "the extent tree lacks the reference from %s", source);
    else
        bw_check_find(extent->check, BW_CODE_reference_count, &location,
                      "references from %s: %" PRIu64 ", the extent tree has %" PRIu64, source,
                      entry->made, entry->promised);
}

static void report_length(const struct extent *extent, const struct bw_reference_entry *entry)
{
    const struct bw_finding location = location_of(entry);
    bw_check_find(extent->check, BW_CODE_extent_differs, &location,
                  "a file extent of %" PRIu64 " bytes, the extent item has %" PRIu64,
                  entry->reference.length, extent->item->reference.length);
}

/* Compares the extent item of a tree block with the block's header. */
static void report_block(const struct extent *extent, const struct bw_reference_entry *promised,
                         const struct bw_reference_entry *made)
{
    const struct bw_finding location = location_of(made);
    bw_check_find(extent->check, BW_CODE_extent_differs, &location,
                  "generation %" PRIu64 " level %" PRIu64
                  ", the extent item has generation %" PRIu64 " level %" PRIu64,
                  made->reference.source, made->reference.inode, promised->reference.source,
                  promised->reference.inode);
}

static void report_references(const struct extent *extent)
{
    const struct bw_reference_entry *blocks[2] = {NULL, NULL}; /* promised, made */
    for (size_t i = 0; i < extent->count; i++) {
        const struct bw_reference_entry *entry = &extent->entries[i];
        const bool has_next = i + 1 < extent->count && differ_in_length(entry, entry + 1);
        if (!entry->reference.kind)
            blocks[entry->made > entry->promised] = entry;
        else if (has_next)
            report_length(extent, entry->made ? entry : entry + 1);
        else
            report_reference(extent, entry);
        i += has_next && entry->reference.kind;
    }
    if (blocks[0] && blocks[1])
        report_block(extent, blocks[0], blocks[1]);
}

static void report_missing(const struct extent *extent)
{
    const struct bw_reference_entry *first = NULL;
    uint64_t references = 0;
    for (size_t i = 0; i < extent->count; i++) {
        const struct bw_reference_entry *entry = &extent->entries[i];
        references += entry->reference.kind ? entry->made : 0;
        if (entry->made && (!first || !first->reference.kind))
            first = entry;
    }
    const struct bw_fs *fs = extent->check->fs;
    if (!references || bw_memory_block(fs->reader.memory, location_of(first).row.logical))
        return;
    const struct bw_finding location = location_of(first);
    bw_check_find(extent->check, BW_CODE_extent_missing, &location,
                  "the extent tree lacks the %s, which has references: %" PRIu64,
                  is_block(first) ? "tree block" : "data", references);
}

/* Whether an extent is unreferenced: all references in its item are unmatched. */
static bool is_unreferenced(const struct extent *extent)
{
    uint64_t left = 0;
    for (size_t i = 0; i < extent->count; i++) {
        if (extent->entries[i].made)
            return false;
        left += extent->entries[i].reference.kind ? extent->entries[i].promised : 0;
    }
    return left == extent->item->promised;
}

static void report_unreferenced(const struct extent *extent)
{
    struct bw_finding location = location_of(extent->item);
    location.touches = BW_TOUCHES_NOTHING;
    if (extent->complete)
        bw_check_find(extent->check, BW_CODE_extent_unreferenced, &location,
                      "nothing refers to the %s, which has references: %" PRIu64,
                      is_block(extent->item) ? "tree block" : "data", extent->item->promised);
}

static void report_extent(const struct extent *extent)
{
    if (!extent->count)
        return;
    if (!extent->item)
        report_missing(extent);
    else if (is_unreferenced(extent))
        report_unreferenced(extent);
    else
        report_references(extent);
}

/* Reports faults in merged entries. If not `complete`, a part of some tree is lost, and unmatched
 * references are no findings. */
static void entries_report(const struct bw_entries *list, bool complete)
{
    for (size_t i = 0; i < list->entries.count;) {
        const struct bw_reference_entry *first = &list->entries.items[i];
        const bool has_item = first->reference.kind == BW_EXTENT_ITEM;
        size_t end = i;
        while (end < list->entries.count &&
               list->entries.items[end].reference.bytenr == first->reference.bytenr)
            end++;
        report_extent(&(struct extent){list->check, has_item ? first : NULL, first + has_item,
                                       end - i - has_item, complete});
        i = end;
    }
}

/* The maximum number of times that the trees are read again: with so many faults, more findings do
 * not help. */
enum { ROUNDS = 16 };

static void add_promised(struct bw_entries *list, const struct bw_reference *reference)
{
    if (reference->count)
        bw_entries_add(list, &(struct bw_reference_entry){.reference = *reference,
                                                          .promised = reference->count});
}

/* Adds what an item of the extent tree promises; `*extent` is the extent that the last extent item
 * was for. */
static void add_item(struct bw_entries *list, const struct bw_item *item,
                     struct bw_extent_entry *extent)
{
    struct bw_reference reference;
    if (bw_extent_keyed(extent, item, &reference)) {
        if (extent->bytenr != reference.bytenr)
            reference.length = 0;
        add_promised(list, &reference);
    }
    if (!bw_extent_entry_decode(list->check->fs, item, extent))
        return;
    reference = bw_extent_as_reference(extent);
    if (extent->is_block)
        add_promised(list, &reference);
    reference = (struct bw_reference){.bytenr = extent->bytenr,
                                      .length = extent->is_block ? 0 : extent->length,
                                      .kind = BW_EXTENT_ITEM};
    bw_entries_add(
        list, &(struct bw_reference_entry){.reference = reference, .promised = extent->references});
    while (bw_extent_reference_step(extent, &reference))
        add_promised(list, &reference);
}

static struct bw_error *add_all_promised(struct bw_entries *list)
{
    struct bw_item_stream stream;
    struct bw_extent_entry extent = {0};
    struct bw_error *error =
        bw_item_stream_begin(&stream, list->check->fs, &list->check->trees, BW_EXTENT_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream))
        add_item(list, &stream.item, &extent);
    return bw_item_stream_end(&stream, error);
}

/* A tree that is read for the references in it. */
struct reading {
    struct bw_entries *list;
    const struct bw_listed_tree *tree;
    struct bw_visited *visited;
    bool no_memory;
};

static void add_made(const struct reading *reading, const struct bw_reference *reference)
{
    bw_entries_add(reading->list, &(struct bw_reference_entry){.reference = *reference,
                                                               .made = reference->count,
                                                               .tree = reading->tree->tree.id});
}

static bool is_needed(void *context, const struct bw_block_pointer *pointer)
{
    struct reading *reading = context;
    struct bw_inode_sums sums;
    const enum bw_visit visit = bw_tree_has_dropped(reading->tree, pointer)
                                    ? BW_VISIT_SHARED
                                    : bw_visit(reading->visited, pointer->bytenr, &sums);
    reading->no_memory |= visit == BW_VISIT_FAILED;
    return visit == BW_VISIT_FIRST;
}

static struct bw_error *on_block(void *context, const struct bw_node *node)
{
    struct reading *reading = context;
    struct bw_reference reference = bw_block_as_reference(node);
    add_made(reading, &reference);
    struct bw_block_references references = bw_check_references_open(
        reading->list->check, node, bw_tree_first_slot(reading->tree, node));
    while (bw_block_references_next(&references, &reference))
        add_made(reading, &reference);
    if (!bw_check_should_continue(reading->list->check, 0))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    return reading->no_memory || reading->list->no_memory ? bw_error_no_memory() : NULL;
}

static struct bw_error *add_all_made(struct bw_entries *list, struct bw_visited *visited)
{
    struct bw_check *check = list->check;
    struct bw_tree_reader reader = check->fs->reader;
    reader.adopter = NULL;
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        struct reading reading = {
            .list = list, .tree = &check->trees.entries.items[i], .visited = visited};
        const struct bw_scan scan = {
            BW_SCAN_ALL,      .wants = is_needed,          .node = on_block,
            .leaf = on_block, .lost = bw_scan_ignore_lost, .context = &reading};
        struct bw_reference root;
        if (!bw_reference_to_root(&check->trees.entries.items[i].tree, &root))
            continue;
        add_made(&reading, &root);
        BW_TRY(bw_tree_scan(&reader, &check->trees.entries.items[i].tree, &scan));
    }
    return NULL;
}

/* The extents of as many buckets as memory has room for. */
static struct bw_error *check_buckets(struct bw_entries *list, bool complete)
{
    struct bw_visited *visited = bw_visited_create();
    struct bw_error *error = visited ? add_all_promised(list) : bw_error_no_memory();
    if (!error)
        error = add_all_made(list, visited);
    bw_visited_destroy(visited);
    if (!error && list->no_memory)
        error = bw_error_no_memory();
    if (error)
        return error;
    bw_entries_merge(list);
    entries_report(list, complete);
    return NULL;
}

static struct bw_error *check_all_buckets(struct bw_check *check, bool complete)
{
    struct bw_entries list = {.check = check};
    struct bw_error *error = NULL;
    for (unsigned round = 0; !error && round < ROUNDS && list.end < BW_REFERENCE_BUCKETS; round++) {
        list.first = list.end;
        list.end = BW_REFERENCE_BUCKETS;
        list.entries.count = 0;
        error = check_buckets(&list, complete);
    }
    bw_reference_entries_free(&list.entries);
    if (!error && list.end < BW_REFERENCE_BUCKETS)
        bw_check_unable(
            check, bw_error_create(BW_ERROR_CORRUPT,
                                   "too many references are wrong: not all of them were examined"));
    return error;
}

struct bw_error *bw_pass_extents(struct bw_check *check)
{
    struct bw_reference root;
    bool complete = true;
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        complete &= !check->trees.entries.items[i].incomplete;
        if (bw_reference_to_root(&check->trees.entries.items[i].tree, &root))
            bw_count_reference(check, &root);
    }
    /* If the extent tree is incomplete, not even the source of a reference is known. */
    if (!check->extents_known || !bw_reference_counts_disagreeing(check->references))
        return NULL;
    return check_all_buckets(check, complete);
}
