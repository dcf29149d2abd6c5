/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layers that map their addresses to layers below: they say where a byte is, and requests are split
 * into pieces here. Also the check of the size, and dropped read-ahead.
 */
#ifndef BW_XLATORS_PIECES_H
#define BW_XLATORS_PIECES_H

#include "graph/wind.h"

/** Where bytes of a layer are. */
struct bw_below {
    struct bw_xlator *layer; /**< the device; NULL: it is missing */
    uint64_t offset;         /**< on the device, or in the logical addresses below */
    uint64_t length;         /**< bytes that follow there; at least 1 */
    bool is_hole;            /**< not stored on a device: zeros */
};

/** A part of a request that is on one device. */
struct bw_device_piece {
    struct bw_request *request; /**< the request that contains it */
    uint64_t address;           /**< above the layer */
    struct bw_xlator *layer;    /**< the device; NULL: it is missing */
    struct bw_request below;    /**< to the device */
};

/** The kind of the pieces that a request is divided into. Layers above verify raw bytes, after they
 * have been joined. If nothing verifies the request, cluster/alternatives must not read older
 * images. */
static inline enum bw_request_kind bw_kind_of_piece(const struct bw_request *whole)
{
    return whole->kind == BW_REQUEST_DATA && !whole->data ? BW_REQUEST_DATA : BW_REQUEST_RAW;
}

/** How a layer maps addresses. */
struct bw_piece_map {
    const char *subject; /**< names the contents of the layer, with the verb: "the array ends";
                            NULL: the layer has logical addresses, and no end */
    /** Finds the place of `wanted` bytes, or of the first of them. All of them are in the layer. */
    struct bw_error *(*locate)(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint64_t wanted, struct bw_below *below);
    /** Reads a piece whose device is missing or failed, in another way; piece->below.error is the
     * error of the device, if it has one, and is consumed. NULL: there is no other way, and no
     * device is missing. */
    struct bw_error *(*recover)(const struct bw_frame *frame, struct bw_xlator *xlator,
                                struct bw_device_piece *piece);
};

/* Operations of layers whose private state begins with a pointer to a struct bw_piece_map, which
 * `init` sets. */

/** The operation `read`. Pieces of many requests are read together, with one call to each device.
 * The errors of pieces become the errors of their requests. */
void bw_pieces_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count);

/** The operation `advise`. */
void bw_pieces_advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy);

/** The operation `next_stored`, for layers whose pieces are long. */
uint64_t bw_pieces_next_stored(struct bw_xlator *xlator, uint64_t address);

/** The error of a request that does not end before the end of a layer; `subject` as in struct
 * bw_piece_map. */
struct bw_error *bw_request_check_end(const char *subject, uint64_t size,
                                      const struct bw_request *request);

/** Reads bytes of a container's format; `subject` names the device, with the verb: "the device with
 * the header ends". */
struct bw_error *bw_read_inside(const struct bw_frame *frame, struct bw_xlator *device,
                                const char *subject, uint64_t offset, void *buffer,
                                uint32_t length);

/** The operation `advise` of layers without read-ahead. */
void bw_ignore_advice(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy);

#endif
