/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorted rows. Each is kept as its text, with the value of the column as its key, so that neither
 * the records nor what they point to have to live until the end. All are in one buffer; to keep
 * only the first rows, it is shortened each time when it has grown to twice the size.
 */
#include "cli/common/row_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"

/* The column must be eager, so that every record contains its value. */
static const struct bw_member *find_column(const struct bw_record *record, const char *name)
{
    const int number = bw_record_member(record, name, strlen(name));
    const struct bw_member *member = number < 0 ? NULL : &record->members[number];
    const bool is_sortable =
        member && !member->lazy && !member->field && member->type <= BW_TYPE_BYTES;
    return is_sortable ? member : NULL;
}

struct bw_error *cmd_row_order_begin(struct cmd_row_order *order,
                                     const struct cmd_format_settings *settings, const char *record,
                                     const char *largest)
{
    const char *name = settings->sort;
    *order =
        (struct cmd_row_order){.is_used = name || settings->top, .most = (size_t)settings->top};
    if (!order->is_used)
        return NULL;
    order->record = bw_record_find(record);
    order->path = find_column(order->record, "path");
    order->is_descending = name ? *name == '-' : largest != NULL;
    if (name)
        name += *name == '-';
    else
        name = largest;
    order->column = name ? find_column(order->record, name) : NULL;
    return order->column || !name
               ? NULL
               : bw_error_create(
                     BW_ERROR_USAGE,
                     "--sort: there is no column %s that can be sorted; '-o help' lists "
                     "all columns",
                     name);
}

/* Adds the value of a text or bytes; false if it has none. */
static bool append_value(struct cmd_row_order *order, const struct bw_member *member,
                         const void *record, size_t size, uint64_t absent, uint64_t *number)
{
    const char *value = (const char *)record + member->offset;
    const size_t length =
        member->type == BW_TYPE_BYTES ? sizeof(struct bw_bytes) : sizeof(uint64_t);
    if (member->offset + length > size || absent >> member->offset / sizeof(void *) & 1)
        return false;
    struct bw_bytes bytes = {0};
    if (member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64) {
        memcpy(number, value, sizeof *number);
        *number ^= (uint64_t)(member->type == BW_TYPE_I64) << 63; /* negative ones first */
        return true;
    }
    if (member->type == BW_TYPE_BYTES)
        memcpy(&bytes, value, sizeof bytes);
    else
        memcpy(&bytes.data, value, sizeof bytes.data);
    if (bytes.data && member->type == BW_TYPE_TEXT)
        bytes.length = strlen(bytes.data);
    if (bytes.data)
        bw_buffer_append(&order->bytes, bytes.data, bytes.length);
    return bytes.data;
}

struct bw_error *cmd_row_order_add(struct cmd_row_order *order, const void *record, size_t size,
                                   uint64_t absent)
{
    uint64_t unused;
    BW_TRY(cmd_sorted_rows_reserve(&order->rows, 1));
    struct cmd_sorted_row *row = &order->rows.items[order->rows.count];
    *row = (struct cmd_sorted_row){.added = order->rows.count++, .key = order->bytes.length};
    if (order->column)
        row->is_known = append_value(order, order->column, record, size, absent, &row->number);
    row->path = order->bytes.length;
    if (order->path && order->path != order->column)
        append_value(order, order->path, record, size, absent, &unused);
    row->text = order->bytes.length;
    return order->bytes.failed ? bw_error_no_memory() : NULL;
}

/* Unknown values are last in both directions. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct cmd_sorted_row *a = left, *b = right;
    const struct cmd_row_order *order = context;
    const char *bytes = order->bytes.data;
    if (a->is_known != b->is_known)
        return a->is_known ? -1 : 1;
    int by_value = bw_compare(a->number, b->number);
    if (!by_value)
        by_value =
            bw_compare_bytes(bytes + a->key, a->path - a->key, bytes + b->key, b->path - b->key);
    if (by_value)
        return order->is_descending ? -by_value : by_value;
    const int by_path = order->column ? bw_compare_bytes(bytes + a->path, a->text - a->path,
                                                         bytes + b->path, b->text - b->path)
                                      : 0;
    return by_path ? by_path : bw_compare(a->added, b->added);
}

static void sort_rows(struct cmd_row_order *order)
{
    if (order->rows.count)
        qsort_r(order->rows.items, order->rows.count, sizeof *order->rows.items, compare_rows,
                order);
    if (order->most && order->rows.count > order->most)
        order->rows.count = order->most;
}

struct bw_error *cmd_row_order_end_row(struct cmd_row_order *order)
{
    enum { SPARE = 256 };
    if (order->bytes.failed)
        return bw_error_no_memory();
    order->rows.items[order->rows.count - 1].end = order->bytes.length;
    if (!order->most || order->rows.count <= SPARE || (order->rows.count - SPARE) / 2 < order->most)
        return NULL;
    sort_rows(order);
    struct bw_buffer kept = {0};
    for (size_t i = 0; i < order->rows.count; i++) {
        struct cmd_sorted_row *row = &order->rows.items[i];
        const size_t moved = row->key - kept.length;
        bw_buffer_append(&kept, order->bytes.data + row->key, row->end - row->key);
        row->added = i;
        row->key -= moved; /* unsigned: wraps where the row moves up */
        row->path -= moved;
        row->text -= moved;
        row->end -= moved;
    }
    bw_buffer_free(&order->bytes);
    order->bytes = kept;
    return kept.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_row_order_pass_on(struct cmd_row_order *order,
                                       struct bw_error *(*take)(void *context, const char *text,
                                                                size_t length),
                                       void *context)
{
    sort_rows(order);
    for (size_t i = 0; i < order->rows.count; i++)
        BW_TRY(take(context, order->bytes.data + order->rows.items[i].text,
                    order->rows.items[i].end - order->rows.items[i].text));
    return NULL;
}

void cmd_row_order_free(struct cmd_row_order *order)
{
    cmd_sorted_rows_free(&order->rows);
    bw_buffer_free(&order->bytes);
    *order = (struct cmd_row_order){0};
}
