/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorted entries of du. The paths are in one buffer; to keep only the first entries, both are
 * shortened each time when they have grown to twice the size. */
#include "cli/inspect/du_order.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/compare.h"

/* An entry and its path, while they are sorted. */
struct sorted {
    const struct bw_du_entry *entry;
    const char *path;
};

static uint64_t value_of(const struct bw_du_entry *entry, unsigned column)
{
    return column == DU_BY_TOTAL       ? entry->total
           : column == DU_BY_EXCLUSIVE ? entry->exclusive
           : column == DU_BY_SHARED    ? entry->shared
           : column == DU_BY_FILES     ? entry->files
           : column == DU_BY_EXTENTS   ? entry->extent_count
           : column == DU_BY_DISK      ? entry->disk
                                       : 0;
}

static bool is_known(const struct bw_du_entry *entry, unsigned column)
{
    return entry->sharing_known || (column != DU_BY_EXCLUSIVE && column != DU_BY_SHARED);
}

/* Unknown values are last in both directions; equal ones are in the order of their paths. */
static int compare_entries(const void *a, const void *b, void *context)
{
    const struct sorted *one = a, *other = b;
    const struct du_order *order = context;
    const bool known = is_known(one->entry, order->column);
    const int paths = bw_compare_bytes(one->path, one->entry->path_length, other->path,
                                       other->entry->path_length);
    const int values =
        bw_compare(value_of(one->entry, order->column), value_of(other->entry, order->column));
    if (known != is_known(other->entry, order->column))
        return known ? -1 : 1;
    if (known && values)
        return order->falls ? -values : values;
    return order->falls && order->column == DU_BY_PATH ? -paths : paths;
}

static size_t offset_of(const struct bw_du_entry *entry)
{
    return (size_t)(uintptr_t)entry->path;
}

struct bw_error *du_order_pass_on(struct du_order *order, bw_du_visitor *visit, void *context)
{
    BW_AUTO_FREE struct sorted *sorted = malloc((order->count + 1) * sizeof *sorted);
    if (!sorted)
        return bw_error_no_memory();
    for (size_t i = 0; i < order->count; i++)
        sorted[i] =
            (struct sorted){&order->entries[i], order->paths.data + offset_of(&order->entries[i])};
    qsort_r(sorted, order->count, sizeof *sorted, compare_entries, order);
    for (size_t i = 0; i < order->count && (!order->most || i < order->most); i++) {
        struct bw_du_entry entry = *sorted[i].entry;
        entry.path = sorted[i].path;
        BW_TRY(visit(context, &entry));
    }
    return NULL;
}

static struct bw_error *append_entry(void *context, const struct bw_du_entry *entry)
{
    struct du_order *order = context;
    const size_t offset = order->paths.length;
    bw_buffer_append(&order->paths, entry->path, entry->path_length);
    if (order->paths.failed || !BW_ARRAY_RESERVE(order->entries, order->count, order->capacity))
        return bw_error_no_memory();
    order->entries[order->count] = *entry;
    order->entries[order->count++].path = (const char *)(uintptr_t)offset;
    return NULL;
}

static struct bw_error *drop_excess(struct du_order *order)
{
    struct du_order shorter = {.column = order->column, .falls = order->falls, .most = order->most};
    struct bw_error *error = du_order_pass_on(order, append_entry, &shorter);
    du_order_free(order);
    *order = shorter;
    return error;
}

struct bw_error *du_order_add(struct du_order *order, const struct bw_du_entry *entry)
{
    enum { SPARE = 4096 };
    BW_TRY(append_entry(order, entry));
    return order->most && order->count > SPARE && (order->count - SPARE) / 2 >= order->most
               ? drop_excess(order)
               : NULL;
}

void du_order_free(struct du_order *order)
{
    free(order->entries);
    bw_buffer_free(&order->paths);
    order->entries = NULL;
    order->count = order->capacity = 0;
}
