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
    piece->below.mirror = 0;
    piece->below.error = NULL;
}

void bw_pieces_read(const struct bw_frame *frame, struct bw_pieces *pieces,
                    bw_piece_recovery *recover, const void *context)
{
    for (size_t first = 0; first < pieces->count; first++) {
        struct bw_xlator *layer = pieces->pieces[first].layer;
        struct bw_request requests[BW_BATCH];
        size_t owners[BW_BATCH], count = 0;
        /* All pieces on a device are read together with the first of them. */
        bool is_done = !layer;
        for (size_t i = 0; i < first && !is_done; i++)
            is_done = pieces->pieces[i].layer == layer;
        if (is_done)
            continue;
        for (size_t i = first; i < pieces->count; i++)
            if (pieces->pieces[i].layer == layer) {
                owners[count] = i;
                requests[count++] = pieces->pieces[i].below;
            }
        bw_wind(frame, layer, requests, count);
        for (size_t i = 0; i < count; i++)
            bw_request_answer(&pieces->pieces[owners[i]].below, &requests[i]);
    }
    for (size_t i = 0; i < pieces->count; i++) {
        struct bw_device_piece *piece = &pieces->pieces[i];
        if (!piece->layer || piece->below.error)
            piece->request->error =
                bw_error_first(piece->request->error, recover(context, frame, piece));
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

void bw_ignore_advice(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame, (void)xlator, (void)ranges, (void)count, (void)copy;
}
