/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits requests into pieces, and reads the pieces of many requests together. */
#include "xlators/pieces.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"

/* Reads pieces, one batch for each device. */
static void read_pieces(const struct bw_frame *frame, struct bw_xlator *xlator,
                        const struct bw_piece_map *map, struct bw_device_piece *pieces,
                        size_t total)
{
    for (size_t first = 0; first < total; first++) {
        struct bw_xlator *layer = pieces[first].layer;
        struct bw_request requests[BW_BATCH];
        size_t owners[BW_BATCH], count = 0;
        /* All pieces on a device are read together with the first of them. */
        bool is_done = !layer;
        for (size_t i = 0; i < first && !is_done; i++)
            is_done = pieces[i].layer == layer;
        if (is_done)
            continue;
        for (size_t i = first; i < total; i++)
            if (pieces[i].layer == layer) {
                owners[count] = i;
                requests[count++] = pieces[i].below;
            }
        bw_wind(frame, layer, requests, count);
        for (size_t i = 0; i < count; i++)
            bw_request_answer(&pieces[owners[i]].below, &requests[i]);
    }
    for (size_t i = 0; i < total; i++) {
        struct bw_device_piece *piece = &pieces[i];
        struct bw_request *request = piece->request;
        if (map->recover && (!piece->layer || piece->below.error))
            piece->below.error = map->recover(frame, xlator, piece);
        piece->below.error = bw_error_first(request->error, piece->below.error);
        bw_request_answer(request, &piece->below);
    }
}

static const struct bw_piece_map *map_of(struct bw_xlator *xlator)
{
    return *(const struct bw_piece_map *const *)bw_xlator_private(xlator);
}

static uint64_t size_of(struct bw_xlator *xlator, const struct bw_piece_map *map)
{
    return map->subject ? bw_xlator_size(xlator) : UINT64_MAX;
}

void bw_pieces_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count)
{
    const struct bw_piece_map *map = map_of(xlator);
    const uint64_t size = size_of(xlator, map);
    struct bw_device_piece pieces[BW_BATCH];
    size_t piece_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        if (map->subject)
            request->error = bw_request_check_end(map->subject, size, request);
        for (uint32_t done = 0, length; !request->error && done < request->length; done += length) {
            const uint64_t address = request->address + done;
            uint8_t *buffer = (uint8_t *)request->buffer + done;
            struct bw_below place = {0};
            length = request->length - done;
            request->error = map->locate(frame, xlator, address, length, &place);
            if (request->error)
                break;
            length = (uint32_t)bw_min(length, place.length);
            if (place.is_hole) {
                memset(buffer, 0, length);
                continue;
            }
            struct bw_device_piece *piece = &pieces[piece_count++];
            *piece = (struct bw_device_piece){request, address, place.layer, *request};
            piece->below.address = place.offset;
            piece->below.length = length;
            piece->below.buffer = buffer;
            if (length < request->length) {
                /* a piece of a block is no block */
                piece->below.kind = bw_kind_of_piece(request);
                piece->below.keep = false;
                piece->below.expectation = NULL;
                piece->below.data = NULL;
            }
            if (piece_count == BW_BATCH) {
                read_pieces(frame, xlator, map, pieces, piece_count);
                piece_count = 0;
            }
        }
    }
    read_pieces(frame, xlator, map, pieces, piece_count);
}

void bw_pieces_advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy)
{
    const struct bw_piece_map *map = map_of(xlator);
    enum { MOST = 256 /* pieces of a range: more cannot be worth announcing */ };
    const uint64_t size = size_of(xlator, map);
    for (size_t i = 0; i < count; i++) {
        struct bw_range left = ranges[i];
        if (left.address < size && left.length > size - left.address)
            left.length = size - left.address;
        for (unsigned k = 0; k < MOST && left.length && left.address < size; k++) {
            struct bw_below place = {0};
            BW_AUTO_ERROR struct bw_error *error =
                map->locate(frame, xlator, left.address, left.length, &place);
            if (error)
                break;
            const uint64_t length = place.length < left.length ? place.length : left.length;
            if (place.layer)
                bw_wind_advise(frame, place.layer, &(struct bw_range){place.offset, length}, 1,
                               copy);
            left.address += length;
            left.length -= length;
        }
    }
}

uint64_t bw_pieces_next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct bw_piece_map *map = map_of(xlator);
    const uint64_t size = bw_xlator_size(xlator);
    while (address < size) {
        struct bw_below place = {0};
        BW_AUTO_ERROR struct bw_error *error =
            map->locate(NULL, xlator, address, size - address, &place);
        if (error)
            return address;
        if (!place.is_hole) {
            const uint64_t next = bw_xlator_next_stored(place.layer, place.offset);
            if (next - place.offset < place.length)
                return address + (next - place.offset);
        }
        address += place.length;
    }
    return UINT64_MAX;
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

struct bw_error *bw_read_inside(const struct bw_frame *frame, struct bw_xlator *device,
                                const char *subject, uint64_t offset, void *buffer, uint32_t length)
{
    const struct bw_request range = {.address = offset, .length = length};
    BW_TRY(bw_request_check_end(subject, bw_xlator_size(device), &range));
    return bw_read_raw(frame, device, offset, buffer, length);
}

void bw_ignore_advice(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame, (void)xlator, (void)ranges, (void)count, (void)copy;
}
