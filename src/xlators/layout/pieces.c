/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xlators/layout/pieces.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void bw_pieces_add(struct bw_pieces *pieces, struct bw_request *request, uint32_t done,
                   uint32_t length, struct bw_xlator *layer, uint64_t offset)
{
    struct bw_piece *piece = &pieces->pieces[pieces->count++];
    *piece = (struct bw_piece){
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
        struct bw_piece *piece = &pieces->pieces[i];
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

struct bw_error *bw_read_blocks(const struct bw_frame *frame, struct bw_xlator *device,
                                uint64_t offset, uint32_t block, struct bw_request *request,
                                bw_block_handler *handle, void *context)
{
    const uint64_t begin = request->address / block * block;
    const uint64_t end = (request->address + request->length + block - 1) / block * block;
    BW_AUTO_FREE uint8_t *bytes = malloc(end - begin);
    struct bw_request whole = *request;
    if (!bytes)
        return bw_error_no_memory();
    whole.address = offset + begin;
    whole.length = (uint32_t)(end - begin);
    whole.buffer = bytes;
    bw_wind(frame, device, &whole, 1);
    bw_request_answer(request, &whole);
    if (request->error)
        return BW_TAKE(request->error);
    BW_TRY(handle(context, frame, bytes, begin, end - begin));
    memcpy(request->buffer, bytes + (request->address - begin), request->length);
    return NULL;
}
