/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/metadump: shows a dump of btrfs-image as a device on which everything lies at its logical
 * address. Stands above the storage layer of the dump; fs/ then tells the chunk map that nothing
 * has to be mapped. metadump_index.h describes the format.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "xlators/classes.h"
#include "xlators/layout/metadump_index.h"

enum { KEPT = 16 }; /* pieces that are kept after they were decompressed */

struct kept {
    const struct bw_metadump_piece *piece; /* NULL: none */
    uint8_t *bytes;
    uint32_t length;
    uint64_t used; /* when, in reads */
};

struct metadump {
    struct bw_metadump_index index;
    pthread_mutex_t lock; /* of what follows */
    struct kept kept[KEPT];
    uint64_t reads;
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct metadump *dump = bw_xlator_private(xlator);
    struct bw_error *cut;
    pthread_mutex_init(&dump->lock, NULL);
    BW_TRY(bw_metadump_index_read(NULL, bw_xlator_child(xlator, 0), &dump->index, &cut));
    if (cut)
        bw_xlator_report(xlator, BW_WARNING, cut);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct metadump *dump = bw_xlator_private(xlator);
    for (unsigned i = 0; i < KEPT; i++)
        free(dump->kept[i].bytes);
    bw_metadump_index_free(&dump->index);
    pthread_mutex_destroy(&dump->lock);
}

/* Up to the end of what the last piece can hold; never more than a file can have, so that what
 * reads a device piece by piece comes to an end. */
static uint64_t size(struct bw_xlator *xlator)
{
    const struct metadump *dump = bw_xlator_private(xlator);
    const struct bw_metadump_piece *last =
        dump->index.count ? &dump->index.pieces[dump->index.count - 1] : NULL;
    const uint64_t room = last && last->compressed ? BW_METADUMP_PIECE : last ? last->stored : 0;
    return !last ? 0 : last->logical > INT64_MAX - room ? INT64_MAX : last->logical + room;
}

/* Between pieces there is nothing. Those of the dump of a large file system lie far apart. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct bw_metadump_index *index = &((struct metadump *)bw_xlator_private(xlator))->index;
    const struct bw_metadump_piece *piece = bw_metadump_find(index, address);
    const struct bw_metadump_piece *next = piece ? piece + 1 : index->pieces;
    const uint32_t room = !piece              ? 0
                          : piece->compressed ? bw_metadump_room(index, piece)
                                              : piece->stored;
    if (piece && address - piece->logical < room)
        return address;
    return next < index->pieces + index->count ? next->logical : UINT64_MAX;
}

static struct bw_error *not_there(const struct bw_request *request)
{
    const bool data = request->kind == BW_REQUEST_DATA;
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           data ? "a dump of btrfs-image has no data: nothing at %" PRIu64
                                : "the dump does not have the block at %" PRIu64,
                           request->address);
}

/* Compressed pieces. */

/* Copies from a piece that is kept; false if it is not. Under the lock. */
static bool copy_kept(struct metadump *dump, const struct bw_metadump_piece *piece, uint64_t from,
                      uint8_t *buffer, uint32_t *length)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct kept *kept = &dump->kept[i];
        if (kept->piece != piece)
            continue;
        kept->used = ++dump->reads;
        if (from >= kept->length)
            *length = 0;
        else if (*length > kept->length - from)
            *length = (uint32_t)(kept->length - from);
        memcpy(buffer, kept->bytes + from, *length);
        return true;
    }
    return false;
}

/* Keeps a piece in the place of the one that was used longest ago. Under the lock. */
static void keep(struct metadump *dump, const struct kept *wanted)
{
    struct kept *oldest = &dump->kept[0];
    for (unsigned i = 1; i < KEPT; i++)
        if (dump->kept[i].used < oldest->used)
            oldest = &dump->kept[i];
    free(oldest->bytes);
    *oldest = *wanted;
    oldest->used = ++dump->reads;
}

/* Room for what a piece holds is made as it is needed: a piece says nothing of its length. */
static struct bw_error *inflate_piece(z_stream *stream, uint32_t room, struct kept *result)
{
    int status = Z_OK;
    uint32_t capacity = 0;
    while (status == Z_OK && capacity < room) {
        capacity = !capacity ? UINT32_C(256) << 10 : capacity * 2;
        capacity = capacity < room ? capacity : room;
        uint8_t *grown = realloc(result->bytes, capacity);
        if (!grown)
            return bw_error_no_memory();
        result->bytes = grown;
        stream->next_out = grown + result->length;
        stream->avail_out = capacity - result->length;
        status = inflate(stream, Z_NO_FLUSH);
        result->length = capacity - stream->avail_out;
    }
    return status == Z_STREAM_END
               ? NULL
               : bw_error_create(BW_ERROR_CORRUPT,
                                 "the piece at %" PRIu64 " of the dump cannot be decompressed",
                                 result->piece->offset);
}

static struct bw_error *decompress(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   struct kept *result)
{
    struct metadump *dump = bw_xlator_private(xlator);
    const struct bw_metadump_piece *piece = result->piece;
    BW_AUTO_FREE uint8_t *stored = malloc((size_t)piece->stored + 1);
    z_stream stream = {.next_in = stored, .avail_in = piece->stored};
    if (!stored || inflateInit(&stream) != Z_OK)
        return bw_error_no_memory();
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .length = piece->stored,
                                 .address = piece->offset,
                                 .buffer = stored};
    if (piece->stored)
        bw_wind(frame, bw_xlator_child(xlator, 0), &request, 1);
    struct bw_error *error = request.error;
    if (!error)
        error = inflate_piece(&stream, bw_metadump_room(&dump->index, piece), result);
    inflateEnd(&stream);
    return error;
}

/* Reads from a piece, and tells how much of what was wanted it holds. */
static struct bw_error *read_compressed(const struct bw_frame *frame, struct bw_xlator *xlator,
                                        const struct bw_metadump_piece *piece, uint64_t from,
                                        uint8_t *buffer, uint32_t *length)
{
    struct metadump *dump = bw_xlator_private(xlator);
    struct kept fresh = {.piece = piece};
    pthread_mutex_lock(&dump->lock);
    bool found = copy_kept(dump, piece, from, buffer, length);
    pthread_mutex_unlock(&dump->lock);
    if (found)
        return NULL;
    struct bw_error *error = decompress(frame, xlator, &fresh);
    if (error) {
        free(fresh.bytes);
        return error;
    }
    pthread_mutex_lock(&dump->lock);
    keep(dump, &fresh);
    copy_kept(dump, piece, from, buffer, length);
    pthread_mutex_unlock(&dump->lock);
    return NULL;
}

/* Reads as much of a request as the piece at an address of it has. */
static struct bw_error *read_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   struct bw_request *whole, uint32_t done, uint32_t *length)
{
    struct metadump *dump = bw_xlator_private(xlator);
    const uint64_t address = whole->address + done;
    const struct bw_metadump_piece *piece = bw_metadump_find(&dump->index, address);
    uint8_t *buffer = (uint8_t *)whole->buffer + done;
    const uint64_t from = piece ? address - piece->logical : 0;
    *length = whole->length - done;
    if (!piece || (!piece->compressed && from >= piece->stored))
        return not_there(whole);
    if (piece->compressed) {
        BW_TRY(from < BW_METADUMP_PIECE
                   ? read_compressed(frame, xlator, piece, from, buffer, length)
                   : not_there(whole));
        return *length ? NULL : not_there(whole);
    }
    if (*length > piece->stored - from)
        *length = (uint32_t)(piece->stored - from);
    struct bw_request part = {.kind = BW_REQUEST_RAW,
                              .length = *length,
                              .address = piece->offset + from,
                              .buffer = buffer};
    bw_wind(frame, bw_xlator_child(xlator, 0), &part, 1);
    return part.error;
}

/* A request that lies in one piece that is not compressed goes down as it is, with the others of
 * the batch; the rest is read here. */
static bool place(const struct bw_frame *frame, struct bw_xlator *xlator,
                  struct bw_request *request, struct bw_request *copy)
{
    const struct metadump *dump = bw_xlator_private(xlator);
    const struct bw_metadump_piece *piece = bw_metadump_find(&dump->index, request->address);
    const uint64_t from = piece ? request->address - piece->logical : 0;
    if (piece && !piece->compressed && from < piece->stored &&
        request->length <= piece->stored - from) {
        copy->address = piece->offset + from;
        return true;
    }
    for (uint32_t done = 0, length; !request->error && done < request->length; done += length)
        request->error = read_piece(frame, xlator, request, done, &length);
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind_copies(frame, xlator, requests, count, place);
}

/* The bytes of a piece are read as a whole, or lie elsewhere: hints have no use. */
static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame, (void)xlator, (void)ranges, (void)count, (void)copy;
}

static void show(struct bw_xlator *xlator, struct bw_json *json)
{
    struct metadump *dump = bw_xlator_private(xlator);
    pthread_mutex_lock(&dump->lock);
    bw_json_number(json, "pieces", dump->index.count);
    bw_json_number(json, "reads", dump->reads);
    pthread_mutex_unlock(&dump->lock);
}

static const char page[] =
    "Shows a dump of btrfs-image as a device. Such a dump has the tree blocks of a file system, "
    "those of all its devices, but no contents of files. It is what developers ask for in reports "
    "of errors.\n"
    "\n"
    "You need not insert this layer: an image that begins as a dump does gets one. Compressed "
    "dumps are read as they are: a piece of the dump is decompressed when something in it is "
    "wanted, and the last few stay in memory.\n"
    "\n"
    "    btrfs-image -c9 /dev/sdb1 dump.bti\n"
    "    btrfs-walk dump.bti\n"
    "\n"
    "On the device that this layer shows, everything lies at its logical address, and in one copy. "
    "So the devices, offsets and copies that commands name for a dump are not those of the file "
    "system it was made of.\n";

const struct bw_xlator_class bw_layout_metadump_class = {
    .type = "layout/metadump",
    .description = "shows a dump of btrfs-image as a device",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct metadump),
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = show},
};
