/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common part of the layers that show one range of the device below as a separate device, such
 * as layout/window and layout/partition. They differ in how they find the range. layout/luks also
 * decrypts it, so it has its own operation `read`.
 */
#ifndef BW_XLATORS_LAYOUT_WINDOW_H
#define BW_XLATORS_LAYOUT_WINDOW_H

#include "xlators/pieces.h"

/** The range; the private state of such a layer, or the first member of it. */
struct bw_window {
    const struct bw_piece_map *pieces; /**< the first member, for bw_pieces_*() */
    uint64_t offset, length;           /**< offset + length is at most the size of the child */
};

/** bw_piece_map.locate of such a layer. */
struct bw_error *bw_window_locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  uint64_t address, uint64_t wanted, struct bw_below *below);

/* Its operations. */
uint64_t bw_window_size(struct bw_xlator *xlator);
void bw_window_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count);
void bw_window_dump(struct bw_xlator *xlator, struct bw_json *json);

/** All operations but `init`, as members of struct bw_xlator_operations. */
#define BW_WINDOW_OPERATIONS                                                    \
    .read = bw_window_read, .advise = bw_pieces_advise, .size = bw_window_size, \
    .next_stored = bw_pieces_next_stored, .dump = bw_window_dump

#endif
