/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts batches, and finds adjacent requests. */
#include "xlators/storage/runs.h"

void bw_sort_by_address(struct bw_request **order, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct bw_request *moving = order[i];
        size_t at = i;
        for (; at && order[at - 1]->address > moving->address; at--)
            order[at] = order[at - 1];
        order[at] = moving;
    }
}

size_t bw_find_run(struct bw_request *const *order, size_t first, size_t count, size_t *length)
{
    size_t next = first;
    uint64_t end = order[first]->address;
    for (; next < count && order[next]->address == end; next++)
        end += order[next]->length;
    *length = (size_t)(end - order[first]->address);
    return next - first;
}

const struct bw_error *bw_run_error(struct bw_request *const *run, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (run[i]->error)
            return run[i]->error;
    return NULL;
}
