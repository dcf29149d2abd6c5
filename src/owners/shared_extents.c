/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which extents have several references: read from the extent trees, and found by address.
 *
 * Many threads read the trees, and each keeps a list of the extents that it finds. The lists are
 * merged into one ascending list. It is divided into buckets of equal ranges of addresses, about as
 * many as extents, so that a search compares only a few of them. If a part of the trees is lost,
 * the list is not used, and the caller adds the extents that it meets.
 */
#include "owners/shared_extents.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "data/references.h"
#include "owners/level_reader.h"

uint32_t bw_shared_units(uint64_t bytes)
{
    return bytes / BW_MIN_SECTORSIZE < UINT32_MAX ? (uint32_t)(bytes / BW_MIN_SECTORSIZE)
                                                  : UINT32_MAX;
}

static uint64_t address_of(const struct bw_shared_extent *extent)
{
    return extent->place & ~(uint64_t)BW_SHARED_FLAGS;
}

/* The results of a worker, mostly in order. */
struct found {
    struct bw_shared_extent_list extents;
    size_t next; /* to be merged */
};

/* The extent trees on their way in. */
struct loading {
    struct bw_level_reader reader;
    struct found *found; /* of each worker */
};

static void on_leaf(void *context, unsigned worker, const struct bw_queued_block *block,
                    const struct bw_node *leaf)
{
    struct loading *loading = context;
    struct bw_extent_entry entry;
    struct bw_item item;
    (void)block;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        /* An address that the flags would change is not one of an extent. */
        if (!bw_extent_entry_decode(loading->reader.fs, &item, &entry) || entry.references == 1 ||
            entry.bytenr & BW_SHARED_FLAGS)
            continue;
        struct bw_shared_extent extent = {.place = entry.bytenr};
        if (!entry.is_block) {
            extent.place |= BW_SHARED_DATA;
            extent.value = bw_shared_units(entry.length);
        }
        if (bw_shared_extent_list_push(&loading->found[worker].extents, extent))
            loading->reader.no_memory = true;
    }
}

/* Merges the lists of all workers, which are mostly in order, into one ascending list, and divides
 * that into buckets. False if memory runs out. */
static bool make_list(struct bw_shared_extents *shared, struct found *found, unsigned count)
{
    size_t total = 0;
    for (unsigned i = 0; i < count; i++) {
        struct bw_shared_extent_list *list = &found[i].extents;
        size_t k = 1;
        while (k < list->count && list->items[k - 1].place <= list->items[k].place)
            k++;
        if (k < list->count)
            bw_shared_extent_list_sort(list, bw_compare_first);
        total += list->count;
    }
    shared->extents.items = malloc((total + 1) * sizeof *shared->extents.items);
    if (!shared->extents.items)
        return false;
    for (shared->extents.count = 0; shared->extents.count < total; shared->extents.count++) {
        struct found *least = NULL;
        for (unsigned i = 0; i < count; i++)
            if (found[i].next < found[i].extents.count &&
                (!least || found[i].extents.items[found[i].next].place <
                               least->extents.items[least->next].place))
                least = &found[i];
        shared->extents.items[shared->extents.count] = least->extents.items[least->next++];
    }

    /* About as many buckets as extents. */
    shared->first = total ? address_of(&shared->extents.items[0]) : 0;
    const uint64_t range =
        total ? address_of(&shared->extents.items[total - 1]) - shared->first : 0;
    shared->shift = 12;
    while (range >> shared->shift > total)
        shared->shift++;
    shared->bucket_count = (size_t)(range >> shared->shift) + 1;
    shared->buckets = malloc((shared->bucket_count + 1) * sizeof *shared->buckets);
    if (!shared->buckets || total >= UINT32_MAX)
        return false;
    size_t at = 0;
    for (size_t bucket = 0; bucket <= shared->bucket_count; bucket++) {
        while (at < total &&
               (address_of(&shared->extents.items[at]) - shared->first) >> shared->shift < bucket)
            at++;
        shared->buckets[bucket] = (uint32_t)at;
    }
    return true;
}

struct bw_error *bw_shared_load(struct bw_shared_extents *shared, struct bw_fs *fs,
                                const struct bw_tree_list *trees, unsigned threads,
                                bool (*progress)(void *context), void *context)
{
    struct loading loading = {.reader = {.fs = fs,
                                         .threads = threads,
                                         .leaf = on_leaf,
                                         .context = &loading,
                                         .progress = progress,
                                         .progress_context = context}};
    struct bw_error *error = bw_level_reader_begin(&loading.reader);
    loading.found = calloc(loading.reader.workers, sizeof *loading.found);
    if (!error && !loading.found)
        error = bw_error_no_memory();
    bool has_tree = false;
    for (size_t i = 0; !error && i < trees->entries.count; i++) {
        const struct bw_tree *tree = &trees->entries.items[i].tree;
        if (tree->id != BW_EXTENT_TREE)
            continue;
        has_tree = true;
        error = bw_level_reader_add(
            &loading.reader, &(struct bw_queued_block){bw_tree_root_pointer(tree, false), 0, NULL});
    }
    if (!error)
        error = bw_level_reader_run(&loading.reader);
    shared->complete = !error && has_tree && !loading.reader.has_losses;
    if (shared->complete && !make_list(shared, loading.found, loading.reader.workers))
        error = bw_error_no_memory();
    for (unsigned i = 0; loading.found && i < loading.reader.workers; i++)
        bw_shared_extent_list_free(&loading.found[i].extents);
    free(loading.found);
    bw_level_reader_end(&loading.reader);
    return error;
}

size_t bw_shared_find(const struct bw_shared_extents *shared, uint64_t bytenr)
{
    const uint64_t address = bytenr & ~(uint64_t)BW_SHARED_FLAGS;
    if (!shared->complete) {
        const uint32_t number = bw_key_map_get(&shared->added, address, UINT32_MAX);
        return number == UINT32_MAX ? SIZE_MAX : number;
    }
    if (address < shared->first ||
        (address - shared->first) >> shared->shift >= shared->bucket_count)
        return SIZE_MAX;
    const uint32_t *bucket = &shared->buckets[(address - shared->first) >> shared->shift];
    const struct bw_shared_extent *extents = &shared->extents.items[bucket[0]];
    const size_t count = bucket[1] - bucket[0];
    const size_t at = BW_FIRST_INDEX(i, count, address_of(&extents[i]) >= address);
    return at < count && address_of(&extents[at]) == address ? bucket[0] + at : SIZE_MAX;
}

size_t bw_shared_add(struct bw_shared_extents *shared, uint64_t bytenr)
{
    const uint64_t address = bytenr & ~(uint64_t)BW_SHARED_FLAGS;
    if (bw_shared_extent_list_reserve(&shared->extents, 1) || shared->extents.count >= UINT32_MAX ||
        bw_key_map_put(&shared->added, address, (uint32_t)shared->extents.count))
        return SIZE_MAX;
    shared->extents.items[shared->extents.count] = (struct bw_shared_extent){.place = address};
    return shared->extents.count++;
}

void bw_shared_free(struct bw_shared_extents *shared)
{
    bw_shared_extent_list_free(&shared->extents);
    free(shared->buckets);
    bw_key_map_free(&shared->added);
    *shared = (struct bw_shared_extents){0};
}
