/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/metadump: shows a metadump of btrfs-image as a device on which everything is stored at its
 * logical address. Its child is the storage layer of the metadump; fs/ then sets up an identity
 * chunk map.
 *
 * The clusters of the dump are read once, at the start, for an index of its pieces. A request
 * within one uncompressed piece is passed on with another offset. Compressed pieces are
 * decompressed as a whole, and the last ones are kept.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "ondisk/metadump.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/pieces.h"

/* The longest piece that is decompressed. btrfs-image makes pieces of 256 KiB, but does not split
 * longer ranges. */
#define LONGEST_PIECE (UINT32_C(4) << 20)
/* zlib makes a piece longer by less than a thousandth, if at all. */
#define LONGEST_STORED (2 * LONGEST_PIECE)

/* A piece of the metadump. */
struct piece {
    uint64_t logical; /* its first address */
    uint64_t offset;  /* where its bytes are in the dump */
    uint32_t stored;  /* bytes there */
    bool compressed;  /* compressed with zlib; only decompression yields its length */
};

BW_VECTOR(pieces, struct piece);

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    union bw_metadump_index block;
    (void)id;
    return bw_try_read_raw(NULL, device, 0, &block, BW_METADUMP_BLOCK) &&
           bw_get64(block.cluster.header.magic) == BW_METADUMP_MAGIC &&
           !bw_get64(block.cluster.header.offset);
}

const struct bw_container_type bw_metadump_container = {.layer = "layout/metadump", .find = find};

/* Adds the pieces of a cluster; sets `offset` to the next cluster. */
static struct bw_error *add_cluster(struct pieces *index, const union bw_metadump_index *block,
                                    uint64_t size, uint64_t *offset)
{
    const struct bw_metadump_header *header = &block->cluster.header;
    const bool compressed = header->compression == BW_METADUMP_ZLIB;
    if (bw_get64(header->magic) != BW_METADUMP_MAGIC || bw_get64(header->offset) != *offset)
        return bw_error_create(BW_ERROR_CORRUPT, "no cluster of the dump begins at %" PRIu64,
                               *offset);
    if (bw_get32(header->count) > BW_METADUMP_ENTRIES)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the cluster at %" PRIu64 " of the dump has %" PRIu32 " pieces",
                               *offset, bw_get32(header->count));
    if (header->compression > BW_METADUMP_ZLIB)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the cluster at %" PRIu64 " of the dump has compression %u", *offset,
                               header->compression);
    uint64_t at = *offset + BW_METADUMP_BLOCK;
    for (uint32_t i = 0; i < bw_get32(header->count); i++) {
        const struct bw_metadump_entry *entry = &block->cluster.entries[i];
        const uint64_t room = at < size ? size - at : 0;
        const bool cut = bw_get32(entry->stored) > room;
        const uint32_t stored = (uint32_t)bw_min(bw_get32(entry->stored), room);
        if (!cut || !compressed)
            BW_TRY(pieces_push(index,
                               (struct piece){bw_get64(entry->logical), at, stored, compressed}));
        if (cut)
            return bw_error_create(
                BW_ERROR_CORRUPT,
                "the dump is cut off: it ends at %" PRIu64 ", in the piece at %" PRIu64, size, at);
        at += stored;
    }
    *offset = (at + BW_METADUMP_BLOCK - 1) / BW_METADUMP_BLOCK * BW_METADUMP_BLOCK;
    return NULL;
}

/* By the first two members. */
static int compare_pieces(const void *a, const void *b)
{
    return bw_compare_lists(a, b, 2);
}

/* The last piece that begins at an address or before it; NULL without one. */
static const struct piece *find_piece(const struct pieces *index, uint64_t logical)
{
    const size_t next = BW_FIRST_INDEX(i, index->count, index->items[i].logical > logical);
    return next ? &index->items[next - 1] : NULL;
}

/* The most bytes that a piece can have: up to the next piece, and LONGEST_PIECE. */
static uint32_t room_of(const struct pieces *index, const struct piece *piece)
{
    const struct piece *end = index->items + index->count;
    if (piece + 1 < end && piece[1].logical - piece->logical < LONGEST_PIECE)
        return (uint32_t)(piece[1].logical - piece->logical);
    return LONGEST_PIECE;
}

/* The layer. */

enum { KEPT = 16 }; /* number of decompressed pieces to keep */

struct kept {
    const struct piece *piece; /* NULL: none */
    uint8_t *bytes;
    uint32_t length;
    uint64_t used; /* time of the last use, as a count of reads */
};

struct metadump {
    struct pieces index;
    pthread_mutex_t lock; /* protects the following members */
    struct kept kept[KEPT];
    uint64_t reads;
};

/* If the metadump is cut off, or continues with other data, the index ends there, with a warning.
 */
static struct bw_error *init(struct bw_xlator *xlator)
{
    struct metadump *dump = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    struct pieces *index = &dump->index;
    const uint64_t size = bw_xlator_size(device);
    struct bw_error *error = NULL;
    pthread_mutex_init(&dump->lock, NULL);
    for (uint64_t offset = 0; !error && offset < size && size - offset >= BW_METADUMP_BLOCK;) {
        union bw_metadump_index block;
        error = bw_read_raw(NULL, device, offset, &block, BW_METADUMP_BLOCK);
        if (!error)
            error = add_cluster(index, &block, size, &offset);
    }
    pieces_sort(index, compare_pieces);
    if (error && (error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_UNSUPPORTED))
        return error;
    if (error)
        bw_xlator_report(xlator, BW_WARNING, error);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct metadump *dump = bw_xlator_private(xlator);
    for (unsigned i = 0; i < KEPT; i++)
        free(dump->kept[i].bytes);
    pieces_free(&dump->index);
    pthread_mutex_destroy(&dump->lock);
}

/* Up to the possible end of the last piece, but never more than the largest file size, so that
 * reading the device piece by piece ends. */
static uint64_t size(struct bw_xlator *xlator)
{
    const struct metadump *dump = bw_xlator_private(xlator);
    if (!dump->index.count)
        return 0;
    const struct piece *last = &dump->index.items[dump->index.count - 1];
    const uint64_t room = last->compressed ? LONGEST_PIECE : last->stored;
    return last->logical > INT64_MAX - room ? INT64_MAX : last->logical + room;
}

/* Between pieces nothing is stored. In the metadump of a large file system, pieces are far
 * apart. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct pieces *index = &((struct metadump *)bw_xlator_private(xlator))->index;
    const struct piece *piece = find_piece(index, address);
    const struct piece *next = index->items;
    if (piece) {
        const uint32_t room = piece->compressed ? room_of(index, piece) : piece->stored;
        if (address - piece->logical < room)
            return address;
        next = piece + 1;
    }
    return next < index->items + index->count ? next->logical : UINT64_MAX;
}

static struct bw_error *not_there(const struct bw_request *request)
{
    if (request->kind == BW_REQUEST_DATA)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "a metadump of btrfs-image has no data: nothing at %" PRIu64,
                               request->address);
    return bw_error_create(BW_ERROR_NOT_FOUND, "the metadump lacks the block at %" PRIu64,
                           request->address);
}

/* Compressed pieces. */

/* Copies from a decompressed piece; false if it is not kept. The lock must be held. */
static bool copy_kept(struct metadump *dump, const struct piece *piece, uint64_t from,
                      uint8_t *buffer, uint32_t *length)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct kept *kept = &dump->kept[i];
        if (kept->piece != piece)
            continue;
        kept->used = ++dump->reads;
        *length = from < kept->length ? (uint32_t)bw_min(*length, kept->length - from) : 0;
        memcpy(buffer, kept->bytes + from, *length);
        return true;
    }
    return false;
}

/* Decompresses a piece. Its buffer grows on demand, because the format does not store the
 * decompressed length. */
static struct bw_error *decompress_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                         struct kept *result)
{
    struct metadump *dump = bw_xlator_private(xlator);
    const struct piece *piece = result->piece;
    const uint32_t length = piece->stored < LONGEST_STORED ? piece->stored : LONGEST_STORED;
    BW_AUTO_FREE uint8_t *stored = malloc((size_t)length + 1);
    if (!stored)
        return bw_error_no_memory();
    if (length)
        BW_TRY(bw_read_raw(frame, bw_xlator_child(xlator, 0), piece->offset, stored, length));

    z_stream stream = {.next_in = stored, .avail_in = length};
    if (inflateInit(&stream) != Z_OK)
        return bw_error_no_memory();
    const uint32_t room = room_of(&dump->index, piece);
    uint32_t capacity = 0;
    int status = Z_OK;
    while (status == Z_OK && capacity < room) {
        capacity = (uint32_t)bw_min(capacity ? capacity * 2 : UINT32_C(256) << 10, room);
        uint8_t *grown = realloc(result->bytes, capacity);
        if (!grown) {
            inflateEnd(&stream);
            return bw_error_no_memory();
        }
        result->bytes = grown;
        stream.next_out = grown + result->length;
        stream.avail_out = capacity - result->length;
        status = inflate(&stream, Z_NO_FLUSH);
        result->length = capacity - stream.avail_out;
    }
    inflateEnd(&stream);
    if (status == Z_STREAM_END)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT,
                           "the piece at %" PRIu64 " of the dump cannot be decompressed",
                           piece->offset);
}

/* Reads from a piece, and returns how many of the requested bytes it holds. */
static struct bw_error *read_compressed(const struct bw_frame *frame, struct bw_xlator *xlator,
                                        const struct piece *piece, uint64_t from, uint8_t *buffer,
                                        uint32_t *length)
{
    struct metadump *dump = bw_xlator_private(xlator);
    struct kept fresh = {.piece = piece};
    pthread_mutex_lock(&dump->lock);
    bool found = copy_kept(dump, piece, from, buffer, length);
    pthread_mutex_unlock(&dump->lock);
    if (found)
        return NULL;
    struct bw_error *error = decompress_piece(frame, xlator, &fresh);
    if (error) {
        free(fresh.bytes);
        return error;
    }
    /* It replaces the least recently used piece. */
    pthread_mutex_lock(&dump->lock);
    struct kept *oldest = &dump->kept[0];
    for (unsigned i = 1; i < KEPT; i++)
        if (dump->kept[i].used < oldest->used)
            oldest = &dump->kept[i];
    free(oldest->bytes);
    *oldest = fresh;
    copy_kept(dump, piece, from, buffer, length);
    pthread_mutex_unlock(&dump->lock);
    return NULL;
}

/* A request within one uncompressed piece is passed on unchanged, together with the rest of the
 * batch; the others are read here, piece by piece. */
static bool pass_or_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                         struct bw_request *request, struct bw_request *copy)
{
    const struct metadump *dump = bw_xlator_private(xlator);
    for (uint32_t done = 0, length; !request->error && done < request->length; done += length) {
        const uint64_t address = request->address + done;
        const struct piece *piece = find_piece(&dump->index, address);
        uint8_t *buffer = (uint8_t *)request->buffer + done;
        const uint64_t from = piece ? address - piece->logical : 0;
        length = request->length - done;
        if (!piece || from >= (piece->compressed ? LONGEST_PIECE : piece->stored)) {
            request->error = not_there(request);
        } else if (piece->compressed) {
            request->error = read_compressed(frame, xlator, piece, from, buffer, &length);
            if (!request->error && !length)
                request->error = not_there(request);
        } else if (!done && length <= piece->stored - from) {
            copy->address = piece->offset + from;
            return true;
        } else {
            length = (uint32_t)bw_min(length, piece->stored - from);
            request->error = bw_read_raw(frame, bw_xlator_child(xlator, 0), piece->offset + from,
                                         buffer, length);
        }
    }
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind_copies(frame, xlator, requests, count, pass_or_read);
}

static void dump_state(struct bw_xlator *xlator, struct bw_json *json)
{
    struct metadump *dump = bw_xlator_private(xlator);
    pthread_mutex_lock(&dump->lock);
    bw_json_number(json, "pieces", dump->index.count);
    bw_json_number(json, "reads", dump->reads);
    pthread_mutex_unlock(&dump->lock);
}

static const char page[] =
    "Shows a metadump of btrfs-image as a device. A metadump contains the tree blocks of a "
    "file system, from all its devices, but no file contents. Developers ask for it in bug "
    "reports.\n\n"
    "The default graph contains it for an image that begins with the magic number of a "
    "metadump. If the metadump is compressed, the layer decompresses only the pieces that "
    "are read.\n\n"
    "    btrfs-image -c9 /dev/sdb1 dump.bti\n"
    "    btrfs-walk dump.bti\n\n"
    "On the device that this layer shows, everything is stored at its logical address, in "
    "one copy. So the devices, offsets and copies that commands print for a metadump differ "
    "from those on the original file system.\n";

const struct bw_xlator_class bw_layout_metadump_class = {
    .type = "layout/metadump",
    .description = "shows a metadump of btrfs-image as a device",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct metadump),
    /* Pieces are read as a whole, or lie elsewhere, so read-ahead is useless. */
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = bw_ignore_advice,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump_state},
};
