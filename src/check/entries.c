/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of references of both sides. Their memory is bounded: if there are too many, those of the
 * later accounts are left for another time. */
#include "check/entries.h"

#include <stdlib.h>

#include "base/array.h"
#include "check/ledger.h"

enum { MOST = 1 << 18 };

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* By extent, its item first; of references that differ in nothing but the length, those with the
 * same one stand together. */
static int compare(const void *left, const void *right)
{
    const struct bw_reference *a = &((const struct bw_reference_entry *)left)->reference,
                              *b = &((const struct bw_reference_entry *)right)->reference;
    int order = compare_numbers(a->bytenr, b->bytenr);
    order = order ? order : (b->kind == BW_EXTENT_ITEM) - (a->kind == BW_EXTENT_ITEM);
    order = order ? order : compare_numbers(a->kind, b->kind);
    order = order || !a->kind ? order : compare_numbers(a->source, b->source);
    order = order || !a->kind ? order : compare_numbers(a->inode, b->inode);
    order = order ? order : compare_numbers(a->offset, b->offset);
    order = order ? order : compare_numbers(a->length, b->length);
    order = order ? order : compare_numbers(a->source, b->source);
    return order ? order : compare_numbers(a->inode, b->inode);
}

void bw_entries_merge(struct bw_entries *list)
{
    size_t kept = 0;
    if (list->count)
        qsort(list->entries, list->count, sizeof *list->entries, compare);
    for (size_t i = 0; i < list->count;) {
        struct bw_reference_entry merged = list->entries[i++];
        for (; i < list->count && compare(&merged, &list->entries[i]) == 0; i++) {
            merged.promised += list->entries[i].promised;
            merged.made += list->entries[i].made;
            merged.tree = merged.tree ? merged.tree : list->entries[i].tree;
        }
        if (merged.promised != merged.made || merged.reference.kind == BW_EXTENT_ITEM)
            list->entries[kept++] = merged;
    }
    list->count = kept;
}

/* Leaves the upper half of the accounts for another time. */
static void halve(struct bw_entries *list)
{
    size_t kept = 0;
    list->end = list->first + (list->end - list->first + 1) / 2;
    for (size_t i = 0; i < list->count; i++)
        if (bw_ledger_account(list->entries[i].reference.bytenr) < list->end)
            list->entries[kept++] = list->entries[i];
    list->count = kept;
}

static bool make_room(struct bw_entries *list)
{
    if (list->count < MOST || list->count < list->capacity)
        return BW_ARRAY_RESERVE(list->entries, list->count, list->capacity);
    bw_entries_merge(list);
    while (list->count > MOST / 2 && list->end - list->first > 1)
        halve(list);
    return BW_ARRAY_RESERVE(list->entries, list->count, list->capacity);
}

void bw_entries_add(struct bw_entries *list, const struct bw_reference_entry *entry)
{
    const uint32_t account = bw_ledger_account(entry->reference.bytenr);
    if (account < list->first || account >= list->end ||
        bw_ledger_balances(list->check->references, account))
        return;
    if (!make_room(list)) {
        list->no_memory = true;
        return;
    }
    if (account < list->end)
        list->entries[list->count++] = *entry;
}
