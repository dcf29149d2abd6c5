/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of the lines of du: sorts entries in memory, and keeps all or only the first ones. */
#ifndef BW_CLI_INSPECT_DU_ORDER_H
#define BW_CLI_INSPECT_DU_ORDER_H

#include <stdbool.h>

#include "base/buffer.h"
#include "btrfs-walk/space.h"

/** Columns to sort by. */
enum du_column {
    DU_UNSORTED,
    DU_BY_TOTAL,
    DU_BY_EXCLUSIVE,
    DU_BY_SHARED,
    DU_BY_FILES,
    DU_BY_EXTENTS,
    DU_BY_DISK,
    DU_BY_PATH,
};

/** Sorted entries. Set the first three members; the rest begins as zeros. */
struct du_order {
    unsigned column; /**< enum du_column; not DU_UNSORTED */
    bool falls;      /**< the greatest first */
    uint64_t most;   /**< entries to keep; 0: all. Memory holds at most twice as many and some
                        thousand */
    struct bw_du_entry *entries; /**< their paths are offsets into `paths`, as pointers */
    size_t count, capacity;
    struct bw_buffer paths;
};

/** Adds a copy of an entry. BW_ERROR_NO_MEMORY. */
struct bw_error *du_order_add(struct du_order *order, const struct bw_du_entry *entry);

/** Passes on the entries in their order. BW_ERROR_NO_MEMORY, or the error of `visit`. */
struct bw_error *du_order_pass_on(struct du_order *order, bw_du_visitor *visit, void *context);

/** Frees the memory. */
void du_order_free(struct du_order *order);

#endif
