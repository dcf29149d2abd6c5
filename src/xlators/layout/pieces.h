/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the layers of containers: requests that are split into pieces on several devices,
 * the check of the size, and dropped read-ahead.
 */
#ifndef BW_XLATORS_LAYOUT_PIECES_H
#define BW_XLATORS_LAYOUT_PIECES_H

#include "graph/wind.h"

/** A part of a request that is on one device. */
struct bw_device_piece {
    struct bw_request *request; /**< the request that contains it */
    uint64_t address;           /**< above the layer */
    struct bw_xlator *layer;    /**< the device; NULL: it is missing */
    struct bw_request below;    /**< to the device */
};

/** Pieces that are read together. */
struct bw_pieces {
    struct bw_device_piece pieces[BW_BATCH];
    size_t count;
};

/** Reads a piece whose device is missing or failed, in another way; piece->below.error is the error
 * of the device, if it has one, and is consumed. */
typedef struct bw_error *bw_piece_recovery(const void *context, const struct bw_frame *frame,
                                           struct bw_device_piece *piece);

/** Adds `length` bytes of a request, which follow the first `done` bytes and are at `offset` of a
 * device. There must be room. */
void bw_pieces_add(struct bw_pieces *pieces, struct bw_request *request, uint32_t done,
                   uint32_t length, struct bw_xlator *layer, uint64_t offset);

/** Reads all pieces, with one call to each device, and empties the batch. The errors of pieces
 * become the errors of their requests. */
void bw_pieces_read(const struct bw_frame *frame, struct bw_pieces *pieces,
                    bw_piece_recovery *recover, const void *context);

/** The error of a request that does not end before the end of a layer. `subject` names the
 * contents of the layer, with the verb: "the array ends". */
struct bw_error *bw_request_check_end(const char *subject, uint64_t size,
                                      const struct bw_request *request);

/** The operation `advise` of layers without read-ahead. */
void bw_ignore_advice(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy);

#endif
