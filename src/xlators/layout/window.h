/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common part of the layers that show one range of the device below as a separate device:
 * layout/window and layout/partition. They differ in how they find the range.
 */
#ifndef BW_XLATORS_LAYOUT_WINDOW_H
#define BW_XLATORS_LAYOUT_WINDOW_H

#include "btrfs-walk/graph.h"

/** The range; the private state of such a layer. */
struct bw_window {
    uint64_t offset, length; /**< offset + length is at most the size of the child */
};

/* The operations of such a layer. */
uint64_t bw_window_size(struct bw_xlator *xlator);
uint64_t bw_window_next_stored(struct bw_xlator *xlator, uint64_t address);
void bw_window_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count);
void bw_window_advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy);
void bw_window_dump(struct bw_xlator *xlator, struct bw_json *json);

/** All operations but `init`, as members of struct bw_xlator_operations. */
#define BW_WINDOW_OPERATIONS                                                    \
    .read = bw_window_read, .advise = bw_window_advise, .size = bw_window_size, \
    .next_stored = bw_window_next_stored, .dump = bw_window_dump

#endif
