/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xlators/layout/pieces.h"

#include <inttypes.h>

#include "base/cleanup.h"

void bw_pieces_add(struct bw_pieces *pieces, struct bw_request *request, uint32_t done,
                   uint32_t length, struct bw_xlator *layer, uint64_t offset)
{
    struct bw_device_piece *piece = &pieces->pieces[pieces->count++];
    *piece = (struct bw_device_piece){
        .request = request, .address = request->address + done, .layer = layer, .below = *request};
    piece->below.address = offset;
    piece->below.length = length;
    piece->below.buffer = (uint8_t *)request->buffer + done;
    piece->below.copy = 0;
    piece->below.error = NULL;
}

/* Reads the pieces on the device of one of them. */
static void read_device(const struct bw_frame *frame, struct bw_pieces *pieces, size_t first)
{
    struct bw_request requests[BW_BATCH];
    size_t owners[BW_BATCH], count = 0;
    struct bw_xlator *layer = pieces->pieces[first].layer;
    for (size_t i = first; i < pieces->count; i++)
        if (pieces->pieces[i].layer == layer) {
            owners[count] = i;
            requests[count++] = pieces->pieces[i].below;
        }
    bw_wind(frame, layer, requests, count);
    for (size_t i = 0; i < count; i++)
        bw_request_answer(&pieces->pieces[owners[i]].below, &requests[i]);
}

static bool is_first_of_device(const struct bw_pieces *pieces, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (pieces->pieces[i].layer == pieces->pieces[index].layer)
            return false;
    return pieces->pieces[index].layer;
}

void bw_pieces_read(const struct bw_frame *frame, struct bw_pieces *pieces,
                    bw_piece_recovery *recover, const void *context)
{
    for (size_t i = 0; i < pieces->count; i++)
        if (is_first_of_device(pieces, i))
            read_device(frame, pieces, i);
    for (size_t i = 0; i < pieces->count; i++) {
        struct bw_device_piece *piece = &pieces->pieces[i];
        struct bw_error *error =
            piece->layer && !piece->below.error ? NULL : recover(context, frame, piece);
        piece->request->error = bw_error_first(piece->request->error, error);
        piece->request->rebuilt |= piece->below.rebuilt;
    }
    pieces->count = 0;
}

struct bw_error *bw_request_check_end(const char *subject, uint64_t size,
                                      const struct bw_request *request)
{
    if (request->address <= size && request->length <= size - request->address)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT,
                           "%s at %" PRIu64 ", before the end of %" PRIu32 " bytes at %" PRIu64,
                           subject, size, request->length, request->address);
}
