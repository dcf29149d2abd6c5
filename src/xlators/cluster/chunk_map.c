/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/chunk-map: turns logical addresses into offsets on devices. Its children are the devices.
 *
 * The chunk table (layout.h) divides each request into pieces that lie in one stripe of each copy.
 * With the raid-stripe-tree feature, that tree then contains the places of data. A request is
 * mostly one piece of a stripe that can be read; all such requests of a batch are passed on
 * together for each device. Other requests are read piece by piece, in read_pieces().
 *
 * If any copy will do, locate() takes the first one whose device is present and not stale. For data
 * with copies on several devices, it is the one on the device for which the fewest bytes are
 * awaited. Without such a copy, a piece of RAID5 or RAID6 is computed from the other stripes of its
 * row, and one of other profiles is read from a stale device.
 *
 * Parity: a row of n data pieces is a vector D over GF(2^8). P is the sum of all D[i], Q the sum of
 * g^i D[i] with g = 2. Either yields one unknown piece, both together yield two (base/galois.h).
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/galois.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/cluster/layout.h"
#include "xlators/pieces.h"

/* Parity. */

enum { MAX_PARTS = BW_FIELD_VECTORS, WITH_STALE = 2 };

/* A row of stripes from which a piece is computed. Its parts are the data, in order, then P and Q.
 */
struct row {
    const struct bw_piece *piece;
    unsigned data_parts;
    unsigned parts;
    bool bad[MAX_PARTS];        /* parts that must not be used */
    bool without_stale;         /* some of the bad parts are only stale */
    uint8_t sources[MAX_PARTS]; /* the parts to read */
    uint8_t coefficients[MAX_PARTS];
    unsigned source_count;
};

/* Marks the parts that copy `copy` must not use. */
static void mark_bad(struct row *row, unsigned copy)
{
    const struct bw_piece *piece = row->piece;
    for (unsigned part = 0; part < row->parts; part++) {
        const struct bw_layout_stripe *stripe =
            bw_layout_row_stripe(piece->chunk, piece->row, part);
        const bool missing = stripe->child == BW_NO_CHILD;
        const bool stale = !missing && copy == 0 && stripe->stale;
        row->bad[part] = missing || stale;
        row->without_stale |= stale && part != piece->data_stripe;
    }
    row->bad[piece->data_stripe] = true;
    if (copy < 3)
        return;
    /* From copy 3 on, one part after the other except the wanted one. */
    unsigned other = copy - 3;
    if (other >= piece->data_stripe)
        other++;
    row->bad[other] = true;
}

static void add_source(struct row *row, unsigned part, uint8_t coefficient)
{
    row->sources[row->source_count] = (uint8_t)part;
    row->coefficients[row->source_count++] = coefficient;
}

/*
 * Chooses the parts to read, and their coefficients: `p` for P, `q` for Q, and p + q g^i for data
 * piece i, which both sums contain. False if too few parts remain.
 */
static bool choose_sources(struct row *row)
{
    unsigned wanted = row->piece->data_stripe, n = row->data_parts, other = n, others = 0;
    bool has_p = !row->bad[n], has_q = row->parts > n + 1 && !row->bad[n + 1];
    for (unsigned part = 0; part < n; part++)
        if (part != wanted && row->bad[part]) {
            other = part;
            others++;
        }
    uint8_t p, q;
    if (!bw_field_factors(bw_field_power_of_two(wanted), others, bw_field_power_of_two(other),
                          has_p, has_q, &p, &q))
        return false;
    row->source_count = 0;
    for (unsigned part = 0; part < n; part++)
        if (!row->bad[part])
            add_source(row, part, p ^ bw_field_product(q, bw_field_power_of_two(part)));
    if (p)
        add_source(row, n, p);
    if (q)
        add_source(row, n + 1, q);
    return true;
}

/* The image to request from a device, as bw_request.mirror. Devices with fewer images are read from
 * the first. */
static uint8_t image_of(const struct bw_layout_stripe *stripe, unsigned alternative)
{
    if (stripe->alternatives <= 1)
        return 0;
    return alternative > stripe->alternatives ? 1 : (uint8_t)alternative;
}

/*
 * Computes a piece of a RAID5 or RAID6 row without reading its own stripe. `wanted.number` selects
 * the method: 2 prefers P; so does 0, which also avoids stale devices if possible; from 3 on, one
 * more stripe of the row is regarded as bad, a different one for each copy, and Q replaces it.
 * Stripes that are missing or cannot be read are bad as well. If too few stripes remain, the error
 * is BW_ERROR_MISSING_DEVICE if devices are missing, which is true of the whole row; if a stripe
 * could not be read, it has the code of that error, and other sectors of the piece may still be
 * readable.
 */
static struct bw_error *rebuild_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                      const struct bw_piece *piece, struct bw_piece_copy wanted,
                                      enum bw_request_kind kind, uint8_t *buffer)
{
    const size_t length = piece->length;
    struct row row = {.piece = piece,
                      .data_parts = bw_layout_data_stripes(piece->chunk),
                      .parts = piece->chunk->stripe_count};
    BW_AUTO_FREE uint8_t *bytes = malloc(row.parts * length + 1); /* not 0 */
    if (!bytes)
        return bw_error_no_memory();
    mark_bad(&row, wanted.number);
    BW_AUTO_ERROR struct bw_error *failed = NULL;
    for (bool complete = false; !complete;) {
        if (!choose_sources(&row)) {
            if (row.without_stale) {
                row.without_stale = false;
                mark_bad(&row, WITH_STALE);
                continue;
            }
            if (failed && failed->code == BW_ERROR_NO_MEMORY)
                return BW_TAKE(failed);
            struct bw_error *error =
                bw_error_create(failed ? failed->code : BW_ERROR_MISSING_DEVICE,
                                "too few good stripes in row %" PRIu64, piece->row);
            bw_error_add_cause(error, BW_TAKE(failed));
            return error;
        }
        /* Stripes that fail become bad parts, and others are chosen. */
        complete = true;
        for (unsigned i = 0; i < row.source_count; i++) {
            const struct bw_layout_stripe *stripe =
                bw_layout_row_stripe(piece->chunk, piece->row, row.sources[i]);
            struct bw_request request = {.kind = kind,
                                         .mirror = image_of(stripe, wanted.alternative),
                                         .length = piece->length,
                                         .address = stripe->offset + piece->stripe_offset,
                                         .buffer = bytes + i * length};
            bw_wind(frame, bw_xlator_child(xlator, stripe->child), &request, 1);
            if (!request.error)
                continue;
            /* One error is enough to explain the failure. */
            bw_error_free(failed);
            failed = request.error;
            row.bad[row.sources[i]] = true;
            complete = false;
        }
    }
    uint8_t *sources[MAX_PARTS];
    for (size_t i = 0; i < row.source_count; i++)
        sources[i] = bytes + i * length;
    bw_field_combine(row.source_count, length, row.coefficients, sources, buffer);
    return NULL;
}

/* The layer. */

/* Counters of children, and remembered choices of copies. Others with the same hash share one. */
enum { CHILDREN = 64, CHOICES = 256 };

struct chunk_map {
    struct bw_layout layout;
    atomic_uint_fast64_t awaited[CHILDREN]; /* bytes of data that threads wait for */
    atomic_uint_fast64_t choices[CHOICES];  /* see choose_copy() */
    const struct bw_stripe_source *stripes; /* NULL: there is no raid stripe tree, or it is not
                                               known yet */
};

static struct bw_layout *layout_of(const struct bw_xlator *xlator)
{
    struct chunk_map *map = bw_xlator_private(xlator);
    return &map->layout;
}

static void fini(struct bw_xlator *xlator)
{
    bw_layout_free(layout_of(xlator));
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct chunk_map *map = bw_xlator_private(xlator);
    if (control->kind == BW_CONTROL_DEVICE)
        return bw_layout_add_device(&map->layout, control->device);
    if (control->kind == BW_CONTROL_CHUNK)
        return bw_layout_add_chunk(&map->layout, control->chunk);
    map->stripes = control->stripes;
    return NULL;
}

/* Finds where an address is stored, and the length to which the result, or the failure, applies.
 * Metadata are not looked up in the stripe tree: the blocks of that tree are metadata themselves.
 */
static struct bw_error *find_piece(const struct bw_frame *frame, const struct bw_xlator *xlator,
                                   uint64_t address, uint32_t length, struct bw_piece *piece)
{
    const struct chunk_map *map = bw_xlator_private(xlator);
    const struct bw_stripe_source *stripes = map->stripes;
    struct bw_stripe_extent extent;
    BW_TRY(bw_layout_find(&map->layout, address, length, piece));
    if (!stripes || !piece->chunk->in_stripe_tree || frame->metadata)
        return NULL;
    struct bw_error *error = stripes->find(stripes->context, frame, address, &extent);
    if (!error)
        bw_layout_place(piece, address, &extent);
    else if (piece->length > extent.length)
        piece->length = (uint32_t)extent.length;
    return error;
}

/* Reports where a piece is stored. If it is computed from parity, the stripe is its own, bad one.
 */
static void probe_piece(const struct bw_frame *frame, const struct bw_xlator *xlator,
                        uint64_t logical, unsigned copy, const struct bw_piece *piece,
                        const struct bw_layout_stripe *stripe)
{
    const struct bw_layout_stripe *place = stripe ? stripe : bw_piece_stripe(piece, 1);
    BW_PROBE(bw_xlator_probes(xlator), chunk__map, map,
             &(struct bw_map_event){{.call = frame->call},
                                    logical,
                                    place->offset + piece->stripe_offset,
                                    place->devid,
                                    piece->length,
                                    copy,
                                    bw_piece_copies(piece),
                                    !stripe,
                                    place->child == BW_NO_CHILD});
}

/* The first copy, beginning with number `first`, on a device that is present and, unless `stale`,
 * not stale; 0 without one. */
static unsigned first_copy(const struct bw_piece *piece, unsigned first, bool stale)
{
    for (unsigned i = 0; i < piece->direct_copies; i++) {
        const unsigned copy = (first - 1 + i) % piece->direct_copies + 1;
        const struct bw_layout_stripe *stripe = bw_piece_stripe(piece, copy);
        if (stripe->child != BW_NO_CHILD && stripe->stale <= stale)
            return copy;
    }
    return 0;
}

/*
 * Which mirror of data to read. Data are read in long ranges by several threads. Parts of this size
 * come from the device for which the fewest bytes are awaited, or from each in turn, so that all
 * are busy. The choice is remembered, because reads have to go where they were announced.
 */
enum { MIRROR_PART = 2 << 20, COPY_BITS = 8 };

static atomic_uint_fast64_t *awaited_from(struct chunk_map *map, uint32_t child)
{
    return &map->awaited[child % CHILDREN];
}

/* Whether data can be read from any copy alike. Two copies on one device would only make its head
 * move, and alternatives have numbers of their own. */
static bool is_mirrored(const struct bw_frame *frame, const struct bw_piece *piece)
{
    const struct bw_layout_stripe *first = bw_piece_stripe(piece, 1);
    bool mirrored = !frame->metadata && piece->direct_copies > 1;
    for (unsigned copy = 1; mirrored && copy <= piece->direct_copies; copy++) {
        const struct bw_layout_stripe *stripe = bw_piece_stripe(piece, copy);
        mirrored = stripe->alternatives <= 1 && (copy == 1 || stripe->child != first->child);
    }
    return mirrored;
}

/* The copy to read if any will do; 0 if it has to be computed. `begin`: of its part. */
static unsigned choose_copy(const struct bw_frame *frame, struct chunk_map *map,
                            const struct bw_piece *piece, uint64_t begin)
{
    unsigned preferred = 1;
    if (is_mirrored(frame, piece)) {
        const uint64_t part = begin / MIRROR_PART;
        atomic_uint_fast64_t *choice = &map->choices[part % CHOICES];
        const uint64_t known = atomic_load_explicit(choice, memory_order_relaxed);
        preferred = (unsigned)(known & ((1U << COPY_BITS) - 1));
        if (known >> COPY_BITS != part || !preferred || preferred > piece->direct_copies) {
            /* The device with the fewest awaited bytes, beginning with another one in each part. */
            uint64_t least = UINT64_MAX;
            preferred = (unsigned)(part % piece->direct_copies) + 1;
            for (unsigned i = 0; i < piece->direct_copies; i++) {
                const unsigned copy = (unsigned)((part + i) % piece->direct_copies) + 1;
                const uint32_t child = bw_piece_stripe(piece, copy)->child;
                if (child == BW_NO_CHILD)
                    continue;
                const uint64_t awaited =
                    atomic_load_explicit(awaited_from(map, child), memory_order_relaxed);
                if (awaited < least) {
                    preferred = copy;
                    least = awaited;
                }
            }
            atomic_store_explicit(choice, part << COPY_BITS | preferred, memory_order_relaxed);
        }
    }
    const unsigned copy = first_copy(piece, preferred, false);
    if (copy || piece->chunk->profile->parity_stripes)
        return copy;
    const unsigned stale = first_copy(piece, preferred, true);
    return stale ? stale : 1;
}

/* Where a piece is read, and the part that it belongs to. The next piece of a batch, or of an
 * announcement, continues the part if that does not become too long: a thread that reads from two
 * devices waits for one after the other. */
struct place {
    const struct bw_layout_chunk *chunk; /* of the part; NULL: a new one begins */
    uint64_t begin;                      /* the address of the part */
    struct bw_piece piece;
    struct bw_piece_copy wanted;
    unsigned copy;                         /* its number without alternatives; 0: computed */
    const struct bw_layout_stripe *stripe; /* NULL: computed, or there is no such copy */
};

/* Finds the piece at an address, and the place of a copy of it (0: any). */
static struct bw_error *locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint32_t length, unsigned copy,
                               struct place *place)
{
    struct bw_piece *piece = &place->piece;
    BW_TRY(find_piece(frame, xlator, address, length, piece));
    place->wanted = bw_piece_split_copy(piece, copy);
    place->copy = place->wanted.number;
    if (!place->copy) {
        if (place->chunk != piece->chunk || address - place->begin >= MIRROR_PART) {
            place->chunk = piece->chunk;
            place->begin = address;
        }
        place->copy = choose_copy(frame, bw_xlator_private(xlator), piece, place->begin);
    }
    place->stripe = NULL;
    if (place->copy && place->copy <= piece->direct_copies)
        place->stripe = bw_piece_stripe(piece, place->copy);
    return NULL;
}

/* Reads a request piece by piece: the slow path, for split requests and for parity. */
static struct bw_error *read_pieces(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_request *whole)
{
    struct place place;
    const struct bw_piece *piece = &place.piece;
    for (uint32_t done = 0; done < whole->length; done += piece->length) {
        const uint64_t address = whole->address + done;
        uint8_t *buffer = (uint8_t *)whole->buffer + done;
        place.chunk = NULL;
        BW_TRY(locate(frame, xlator, address, whole->length - done, whole->mirror, &place));
        const struct bw_layout_stripe *stripe = place.stripe;
        probe_piece(frame, xlator, address, whole->mirror, piece, stripe);

        if (!stripe) {
            if (whole->mirror > bw_piece_copies(piece))
                return bw_error_create(BW_ERROR_USAGE, "there is no mirror %u", whole->mirror);
            struct bw_error *error =
                rebuild_piece(frame, xlator, piece, place.wanted, bw_kind_of_piece(whole), buffer);
            if (!error) {
                whole->rebuilt = true;
                continue;
            }
            const unsigned stale = whole->mirror ? 0 : first_copy(piece, 1, true);
            if (!stale)
                return error;
            bw_error_free(error);
            stripe = bw_piece_stripe(piece, stale);
        }

        if (stripe->child == BW_NO_CHILD && stripe->devid == BW_UNKNOWN_DEVICE)
            return bw_error_create(BW_ERROR_MISSING_DEVICE,
                                   "the position of its stripe is unknown");
        /* A child without a known device may turn out to be the missing device. */
        if (stripe->child == BW_NO_CHILD &&
            bw_xlator_child_count(xlator) > layout_of(xlator)->devices.count)
            return bw_error_create(BW_ERROR_MISSING_DEVICE,
                                   "no image was identified as device %" PRIu64, stripe->devid);
        if (stripe->child == BW_NO_CHILD)
            return bw_error_create(BW_ERROR_MISSING_DEVICE, "device %" PRIu64 " is missing",
                                   stripe->devid);

        struct bw_request part = {.kind = bw_kind_of_piece(whole),
                                  .mirror = image_of(stripe, place.wanted.alternative),
                                  .length = piece->length,
                                  .address = stripe->offset + piece->stripe_offset,
                                  .buffer = buffer};
        if (piece->length == whole->length) {
            part.kind = whole->kind;
            part.expectation = whole->expectation;
            part.data = whole->data;
        }
        bw_wind(frame, bw_xlator_child(xlator, stripe->child), &part, 1);
        if (part.error)
            return part.error;
    }
    return NULL;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *all, size_t total)
{
    for (size_t done = 0; done < total; done += BW_BATCH) {
        struct bw_request *requests = all + done;
        const size_t count = bw_next_batch(total - done);
        uint32_t children[BW_BATCH]; /* BW_NO_CHILD once the request is completed */
        uint64_t addresses[BW_BATCH];
        uint8_t images[BW_BATCH]; /* bw_request.mirror for the child */
        struct place place;
        place.chunk = NULL;
        for (size_t i = 0; i < count; i++) {
            struct bw_request *request = &requests[i];
            children[i] = BW_NO_CHILD;
            request->error =
                locate(frame, xlator, request->address, request->length, request->mirror, &place);
            if (request->error)
                continue;
            if (!request->mirror)
                request->mirror_read = (uint8_t)place.copy;
            if (place.piece.length < request->length || !place.stripe ||
                place.stripe->child == BW_NO_CHILD) {
                request->error = read_pieces(frame, xlator, request);
                continue;
            }
            probe_piece(frame, xlator, request->address, request->mirror, &place.piece,
                        place.stripe);
            children[i] = place.stripe->child;
            addresses[i] = place.stripe->offset + place.piece.stripe_offset;
            images[i] = image_of(place.stripe, place.wanted.alternative);
        }

        /* Together, all requests with the same child. */
        for (size_t first = 0; first < count; first++) {
            struct bw_request parts[BW_BATCH], *wholes[BW_BATCH];
            const uint32_t child = children[first];
            uint64_t bytes = 0;
            size_t found = 0;
            if (child == BW_NO_CHILD)
                continue;
            for (size_t i = first; i < count; i++) {
                if (children[i] != child)
                    continue;
                parts[found] = requests[i];
                parts[found].address = addresses[i];
                parts[found].mirror = images[i];
                wholes[found++] = &requests[i];
                children[i] = BW_NO_CHILD;
                bytes += requests[i].length;
            }
            atomic_uint_fast64_t *awaited = awaited_from(bw_xlator_private(xlator), child);
            atomic_fetch_add_explicit(awaited, bytes, memory_order_relaxed);
            bw_wind(frame, bw_xlator_child(xlator, child), parts, found);
            atomic_fetch_sub_explicit(awaited, bytes, memory_order_relaxed);
            for (size_t i = 0; i < found; i++)
                bw_request_answer(wholes[i], &parts[i]);
        }
    }
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    struct bw_piece piece;
    struct bw_error *error = find_piece(frame, xlator, address, length, &piece);
    if (error) {
        *reply = (struct bw_map_reply){.length = piece.length};
        return error;
    }
    const struct bw_piece_copy wanted = bw_piece_split_copy(&piece, copy);
    const bool rebuilt = wanted.number > piece.direct_copies;
    const struct bw_layout_stripe *stripe = bw_piece_stripe(&piece, 1);
    if (wanted.number && !rebuilt) {
        stripe = bw_piece_stripe(&piece, wanted.number);
    } else if (rebuilt && piece.chunk->profile->parity_stripes) {
        /* The parity from which the copy is computed: P for copy 2, Q for others. */
        const unsigned from_end = wanted.number == 2 ? piece.chunk->profile->parity_stripes : 1;
        stripe = bw_layout_row_stripe(piece.chunk, piece.row, piece.chunk->stripe_count - from_end);
    }
    probe_piece(frame, xlator, address, copy, &piece, rebuilt ? NULL : stripe);
    *reply = (struct bw_map_reply){
        .copies = bw_piece_copies(&piece),
        .location = {stripe->devid, stripe->offset + piece.stripe_offset,
                     stripe->child != BW_NO_CHILD, rebuilt,
                     stripe->alternatives > 1 ? wanted.alternative : 0},
        .length = piece.length,
    };
    return NULL;
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    struct place place;
    place.chunk = NULL;
    for (size_t i = 0; i < count; i++) {
        const uint64_t end = ranges[i].address + ranges[i].length;
        for (uint64_t address = ranges[i].address; address < end; address += place.piece.length) {
            const uint64_t left = end - address;
            const uint32_t length = left > MIRROR_PART ? MIRROR_PART : (uint32_t)left;
            BW_AUTO_ERROR struct bw_error *error =
                locate(frame, xlator, address, length, copy, &place);
            if (error)
                break; /* no chunk */
            const struct bw_layout_stripe *stripe = place.stripe;
            if (!stripe || stripe->child == BW_NO_CHILD)
                continue;
            const struct bw_range below = {stripe->offset + place.piece.stripe_offset,
                                           place.piece.length};
            bw_wind_advise(frame, bw_xlator_child(xlator, stripe->child), &below, 1,
                           image_of(stripe, place.wanted.alternative));
        }
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct bw_layout *layout = layout_of(xlator);
    uint64_t bytes = 0, missing_stripes = 0;
    for (size_t i = 0; i < layout->chunks.count; i++) {
        bytes += layout->chunks.items[i].length;
        for (unsigned stripe = 0; stripe < layout->chunks.items[i].stripe_count; stripe++)
            missing_stripes += layout->chunks.items[i].stripes[stripe].child == BW_NO_CHILD;
    }
    bw_json_number(json, "chunks", layout->chunks.count);
    bw_json_number(json, "bytes", bytes);
    bw_json_number(json, "missing_stripes", missing_stripes);
    bw_json_begin_array(json, "devices");
    for (size_t i = 0; i < layout->devices.count; i++) {
        const struct bw_control_device *device = &layout->devices.items[i];
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "devid", device->devid);
        bw_json_text(json, "volume", bw_xlator_name(bw_xlator_child(xlator, device->child)));
        bw_json_end(json);
    }
    bw_json_end(json);
}

const struct bw_xlator_class bw_cluster_chunk_map_class = {
    .type = "cluster/chunk-map",
    .description = "maps logical addresses to devices, through every RAID profile",
    .page =
        "Btrfs refers to its blocks by logical addresses. This layer maps each address to the "
        "devices that store it, and reads it there. It supports every profile: single, DUP, "
        "RAID0, RAID1 with two, three or four mirrors, RAID10, RAID5 and RAID6. A read that "
        "crosses a stripe boundary is split. If a device is missing, or stale because it missed "
        "writes, the layer reads another mirror, or computes the bytes from parity. If a mirror is "
        "present but bad, features/verify requests the next one. File data with mirrors on "
        "several devices are read from the device for which the fewest bytes are awaited, or from "
        "each in turn, 2 MiB at a time, so that all devices work at the same time. With the "
        "raid-stripe-tree feature, the location of file data comes from that tree.\n\n"
        "Every graph needs exactly one such layer. The layers below it are the devices of the "
        "file system, in any order. The list of chunks comes from the image.",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = UINT32_MAX,
    .private_size = sizeof(struct chunk_map),
    .takes = BW_TAKES(BW_CONTROL_DEVICE) | BW_TAKES(BW_CONTROL_CHUNK) |
             BW_TAKES(BW_CONTROL_STRIPE_SOURCE),
    .operations = {.fini = fini,
                   .control = control,
                   .read = read_requests,
                   .map = map,
                   .advise = advise,
                   .dump = dump},
};
