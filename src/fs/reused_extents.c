/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the parts of extents that overlap another extent in a newer leaf.
 *
 * The parts are visited in the order of their addresses. A heap holds those that contain the
 * current address; whenever the one in the newest leaf changes, it is recorded as the owner of the
 * addresses from there on. Then each part is compared with the owners of its addresses.
 */
#include "fs/reused_extents.h"

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/block.h"
#include "ondisk/disk_items.h"

enum {
    FIRST_COMPACTION = 1 << 20, /* number of parts */
    MOST_OWNERS = 4096,         /* A part is compared with so many; a real extent has fewer. */
};

/* The owner of addresses, up to the next one. */
struct owner {
    uint64_t begin;
    size_t part; /* its index, or `NONE` */
};

#define NONE SIZE_MAX

BW_VECTOR(owners, struct owner);

static uint64_t begin_of(const struct bw_seen_extent *part)
{
    return part->logical + part->offset;
}

static uint64_t end_of(const struct bw_seen_extent *part)
{
    return begin_of(part) + part->length;
}

static bool is_same_extent(const struct bw_seen_extent *a, const struct bw_seen_extent *b)
{
    return a->logical == b->logical && a->stored == b->stored && a->generation == b->generation;
}

/* The newest leaf comes first among equal parts. */
static int by_address(const void *left, const void *right)
{
    const struct bw_seen_extent *a = left, *b = right;
    return BW_COMPARE_ALL(
        ((uint64_t[]){begin_of(a), a->length, a->logical, a->stored, a->generation, b->leaf}),
        ((uint64_t[]){begin_of(b), b->length, b->logical, b->stored, b->generation, a->leaf}));
}

static int by_extent(const void *left, const void *right)
{
    const struct bw_seen_extent *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->logical, a->stored, a->generation, a->offset}),
                          ((uint64_t[]){b->logical, b->stored, b->generation, b->offset}));
}

/* Sorts the parts by address, and keeps one of equal ones. */
static void compact(struct bw_seen_extents *seen)
{
    size_t kept = 0;
    bw_seen_extents_sort(seen, by_address);
    for (size_t i = 0; i < seen->count; i++) {
        const struct bw_seen_extent *part = &seen->items[i];
        const struct bw_seen_extent *last = &seen->items[kept ? kept - 1 : 0];
        if (!kept || !is_same_extent(part, last) || part->offset != last->offset ||
            part->length != last->length)
            seen->items[kept++] = *part;
    }
    seen->count = kept;
}

struct bw_error *bw_seen_extents_add_leaf(struct bw_seen_extents *seen, const struct bw_node *leaf,
                                          uint64_t generation, uint32_t sectorsize)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_file_extent extent;
        if (item.key.type != BW_EXTENT_DATA)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_file_extent_decode(&item, sectorsize, &extent);
        const bool is_plain = !error && extent.compression == BW_COMPRESS_NONE;
        const bool has_data = !error && extent.type != BW_FILE_EXTENT_INLINE &&
                              (extent.type != BW_FILE_EXTENT_PREALLOC || !is_plain);
        if (!has_data || !extent.disk_bytenr || extent.disk_num_bytes > UINT32_MAX ||
            extent.disk_bytenr > UINT64_MAX - UINT32_MAX - 1)
            continue;
        if (is_plain && (extent.offset > extent.disk_num_bytes ||
                         extent.num_bytes > extent.disk_num_bytes - extent.offset))
            continue;
        const struct bw_seen_extent part = {
            .logical = extent.disk_bytenr,
            .generation = extent.generation,
            .leaf = generation,
            .stored = (uint32_t)extent.disk_num_bytes,
            .offset = is_plain ? (uint32_t)extent.offset : 0,
            .length = (uint32_t)(is_plain ? extent.num_bytes : extent.disk_num_bytes)};
        if (seen->count == seen->capacity && seen->count >= FIRST_COMPACTION) {
            compact(seen);
            if (seen->count > seen->capacity / 2)
                BW_TRY(bw_seen_extents_reserve(seen, seen->capacity));
        }
        BW_TRY(bw_seen_extents_push(seen, part));
    }
    return NULL;
}

/* The heap: indexes of parts, the one in the newest leaf first. */

static bool is_newer(const struct bw_seen_extents *seen, const struct bw_sizes *heap, size_t a,
                     size_t b)
{
    return seen->items[heap->items[a]].leaf > seen->items[heap->items[b]].leaf;
}

static void swap(struct bw_sizes *heap, size_t a, size_t b)
{
    const size_t part = heap->items[a];
    heap->items[a] = heap->items[b];
    heap->items[b] = part;
}

static struct bw_error *heap_push(const struct bw_seen_extents *seen, struct bw_sizes *heap,
                                  size_t part)
{
    BW_TRY(bw_sizes_push(heap, part));
    for (size_t at = heap->count - 1; at && is_newer(seen, heap, at, (at - 1) / 2);
         at = (at - 1) / 2)
        swap(heap, at, (at - 1) / 2);
    return NULL;
}

static void heap_pop(const struct bw_seen_extents *seen, struct bw_sizes *heap)
{
    heap->items[0] = heap->items[heap->count - 1];
    heap->count--;
    for (size_t at = 0, child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && is_newer(seen, heap, child + 1, child))
            child++;
        if (!is_newer(seen, heap, child, at))
            return;
        swap(heap, at, child);
        at = child;
    }
}

/* Finds the owners of all addresses. */
static struct bw_error *find_owners(const struct bw_seen_extents *seen, struct owners *owners)
{
    BW_SCOPED(bw_sizes) struct bw_sizes heap = {0};
    for (size_t i = 0; i <= seen->count; i++) {
        const uint64_t begin = i < seen->count ? begin_of(&seen->items[i]) : UINT64_MAX;
        while (heap.count && end_of(&seen->items[heap.items[0]]) <= begin) {
            const uint64_t end = end_of(&seen->items[heap.items[0]]);
            while (heap.count && end_of(&seen->items[heap.items[0]]) <= end)
                heap_pop(seen, &heap);
            BW_TRY(owners_push(owners, (struct owner){end, heap.count ? heap.items[0] : NONE}));
        }
        if (i == seen->count)
            break;
        const size_t before = heap.count ? heap.items[0] : NONE;
        BW_TRY(heap_push(seen, &heap, i));
        if (heap.items[0] != before)
            BW_TRY(owners_push(owners, (struct owner){begin, heap.items[0]}));
    }
    return NULL;
}

static bool is_freed(const struct bw_seen_extents *seen, const struct owners *owners,
                     const struct bw_seen_extent *part)
{
    const uint64_t begin = begin_of(part);
    const size_t behind = BW_FIRST_INDEX(i, owners->count, owners->items[i].begin > begin);
    const size_t first = behind ? behind - 1 : 0;
    for (size_t i = first; i < owners->count && i - first < MOST_OWNERS; i++) {
        const struct owner *owner = &owners->items[i];
        if (owner->begin >= end_of(part))
            return false;
        if (owner->part != NONE && seen->items[owner->part].leaf > part->leaf &&
            !is_same_extent(&seen->items[owner->part], part))
            return true;
    }
    return false;
}

struct bw_error *bw_seen_extents_settle(struct bw_seen_extents *seen)
{
    BW_SCOPED(owners) struct owners owners = {0};
    BW_SCOPED(bw_seen_extents) struct bw_seen_extents freed = {0};
    compact(seen);
    BW_TRY(find_owners(seen, &owners));
    for (size_t i = 0; i < seen->count; i++)
        if (is_freed(seen, &owners, &seen->items[i]))
            BW_TRY(bw_seen_extents_push(&freed, seen->items[i]));

    /* Parts of the same extent become one. */
    bw_seen_extents_sort(&freed, by_extent);
    bw_seen_extents_free(seen);
    for (size_t i = 0; i < freed.count; i++) {
        const struct bw_seen_extent *part = &freed.items[i];
        struct bw_seen_extent *last = seen->count ? &seen->items[seen->count - 1] : NULL;
        if (!last || !is_same_extent(last, part) || begin_of(part) > end_of(last))
            BW_TRY(bw_seen_extents_push(seen, *part));
        else if (end_of(part) > end_of(last))
            last->length = (uint32_t)(end_of(part) - begin_of(last));
    }
    return NULL;
}

bool bw_extent_is_reused(const struct bw_seen_extents *reused, const struct bw_extent *extent)
{
    if (!reused->count || extent->kind != BW_EXTENT_REGULAR)
        return false;
    const struct bw_seen_extent *parts = reused->items;
    const uint64_t wanted[] = {extent->logical, extent->stored, extent->generation,
                               extent->used_logical};
    const size_t at =
        BW_FIRST_INDEX(i, reused->count,
                       BW_COMPARE_ALL(((uint64_t[]){parts[i].logical, parts[i].stored,
                                                    parts[i].generation, end_of(&parts[i]) - 1}),
                                      wanted) >= 0);
    return at < reused->count && parts[at].logical == extent->logical &&
           parts[at].stored == extent->stored && parts[at].generation == extent->generation &&
           begin_of(&parts[at]) < extent->used_logical + extent->used_stored;
}
