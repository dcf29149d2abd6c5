/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C for the binding of Python: batches of items. */
#include "btrfs-walk/btrfs-walk.h"
#include <string.h>

/* Items: one call for many of them, with copies of their data, because the library reuses the
 * memory of an item with the next one. */

struct python_item {
    struct bw_item item;
    struct bw_item_location location;
};

enum { LARGEST_ITEM = 1 << 16 };

/* Copies up to `*count` items; `*count` becomes their number, and is 0 after the last item. Returns
 * the error that follows these items. */
static struct bw_error *python_items_next(struct bw_items *items, struct python_item *batch,
                                          size_t *count, uint8_t *data, size_t size)
{
    const size_t limit = *count;
    const struct bw_item *item = NULL;
    for (*count = 0; *count < limit && size >= LARGEST_ITEM; (*count)++) {
        struct python_item *copy = &batch[*count];
        struct bw_error *error = bw_items_next(items, &item, &copy->location);
        if (error || !item)
            return error;
        if (item->size > LARGEST_ITEM)
            return bw_error_create(BW_ERROR_CORRUPT, "an item of %u bytes", item->size);
        copy->item = *item;
        copy->item.data = memcpy(data, item->data, item->size);
        data += item->size;
        size -= item->size;
    }
    return NULL;
}
