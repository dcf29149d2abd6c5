/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `extents`: the books of references are closed. If they do not balance, the extent tree
 * and all other trees are read again, for the extents in the accounts that are open, and as often
 * as their number needs.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/scan.h"
#include "check/blocks.h"
#include "check/entries.h"
#include "owners/item_stream.h"
#include "check/ledger.h"

/* How often the trees are read again at most: if so much is wrong, more of it helps nobody. */
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
    reference = bw_extent_itself(extent);
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

static void add_made(void *context, const struct bw_reference *reference)
{
    const struct reading *reading = context;
    bw_entries_add(reading->list, &(struct bw_reference_entry){.reference = *reference,
                                                               .made = reference->count,
                                                               .tree = reading->tree->tree.id});
}

static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    struct reading *reading = context;
    struct bw_inode_sums sums;
    const enum bw_visit visit = bw_tree_has_dropped(reading->tree, pointer)
                                    ? BW_VISIT_SHARED
                                    : bw_visit(reading->visited, pointer->bytenr, &sums);
    reading->no_memory |= visit == BW_VISIT_FAILED;
    return visit == BW_VISIT_FIRST;
}

static struct bw_error *take_block(void *context, const struct bw_node *node)
{
    struct reading *reading = context;
    bw_check_references_of(reading->list->check, node, bw_tree_first_slot(reading->tree, node),
                           add_made, reading);
    if (!bw_check_goes_on(reading->list->check, 0))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    return reading->no_memory || reading->list->no_memory ? bw_error_no_memory() : NULL;
}

static struct bw_error *add_all_made(struct bw_entries *list, struct bw_visited *visited)
{
    struct bw_check *check = list->check;
    struct bw_tree_reader reader = check->fs->reader;
    reader.adopter = NULL;
    for (size_t i = 0; i < check->trees.count; i++) {
        struct reading reading = {
            .list = list, .tree = &check->trees.entries[i], .visited = visited};
        const struct bw_scan scan = {BW_SCAN_ALL,
                                     .wants = wants,
                                     .node = take_block,
                                     .leaf = take_block,
                                     .lost = bw_scan_ignore_lost,
                                     .context = &reading};
        struct bw_reference root;
        if (!bw_reference_to_root(&check->trees.entries[i].tree, &root))
            continue;
        add_made(&reading, &root);
        BW_TRY(bw_tree_scan(&reader, &check->trees.entries[i].tree, &scan));
    }
    return NULL;
}

/* The extents of as many accounts as memory has room for. */
static struct bw_error *settle(struct bw_entries *list, bool complete)
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
    bw_entries_report(list, complete);
    return NULL;
}

static struct bw_error *settle_all(struct bw_check *check, bool complete)
{
    struct bw_entries list = {.check = check};
    struct bw_error *error = NULL;
    for (unsigned round = 0; !error && round < ROUNDS && list.end < BW_LEDGER_ACCOUNTS; round++) {
        list.first = list.end;
        list.end = BW_LEDGER_ACCOUNTS;
        list.count = 0;
        error = settle(&list, complete);
    }
    free(list.entries);
    if (!error && list.end < BW_LEDGER_ACCOUNTS)
        bw_check_unable(check, bw_error_create(BW_ERROR_CORRUPT,
                                               "so many references are wrong that not all of them "
                                               "were looked at"));
    return error;
}

struct bw_error *bw_pass_extents(struct bw_check *check)
{
    struct bw_reference root;
    bool complete = true;
    for (size_t i = 0; i < check->trees.count; i++) {
        complete &= !check->trees.entries[i].incomplete;
        if (bw_reference_to_root(&check->trees.entries[i].tree, &root))
            bw_reference_made(check, &root);
    }
    /* Without the whole extent tree it is not even known who is the source of a reference. */
    if (!check->extents_known || !bw_ledger_open_accounts(check->references))
        return NULL;
    return settle_all(check, complete);
}
