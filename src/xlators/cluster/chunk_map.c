/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster/chunk-map: turns logical addresses into offsets on devices. Its children are the devices.
 * Requests of a batch are passed on grouped by device. Requests that cross a stripe boundary, or
 * must be computed from parity, are handled piece by piece.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/galois.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/cluster/layout.h"

/*
 * Parity. A row of n data pieces is a vector D over GF(2^8). P is the sum of all D[i], Q the sum of
 * g^i D[i] with g = 2. Either equation yields one unknown piece, both together yield two. In each
 * case the wanted piece is a linear combination of the remaining pieces; only the coefficients
 * differ.
 */

enum { MAX_PARTS = BW_FIELD_VECTORS, WITH_STALE = 2 };

struct row {
    const struct bw_piece *piece;
    unsigned data_parts;
    unsigned parts;
    bool bad[MAX_PARTS];        /* parts that must not be used; parity parts last */
    bool without_stale;         /* some of the bad parts are only stale */
    uint8_t sources[MAX_PARTS]; /* the parts chosen */
    uint8_t coefficients[MAX_PARTS];
    unsigned source_count;
    unsigned alternative;      /* image of each device to read; 0: any */
    enum bw_request_kind kind; /* of the reads */
};

/* The kind of the reads that a request is divided into. Layers above verify raw bytes, after they
 * have been joined. If nothing verifies the request, cluster/alternatives must not read older
 * images. */
static enum bw_request_kind kind_of_part(const struct bw_request *whole)
{
    return whole->kind == BW_REQUEST_DATA && !whole->data ? BW_REQUEST_DATA : BW_REQUEST_RAW;
}

static void mark_bad(struct row *row, unsigned copy)
{
    const struct bw_piece *piece = row->piece;
    for (unsigned part = 0; part < row->parts; part++) {
        const struct bw_layout_stripe *stripe =
            bw_layout_row_stripe(piece->chunk, piece->row, part);
        bool missing = stripe->child == BW_NO_CHILD, stale = !missing && copy == 0 && stripe->stale;
        row->bad[part] = missing || stale;
        row->without_stale |= stale && part != piece->data_stripe;
    }
    row->bad[piece->data_stripe] = true;
    if (copy < 3)
        return;
    unsigned other = copy - 3;
    row->bad[other < piece->data_stripe ? other : other + 1] = true;
}

static uint8_t power_of_two(unsigned exponent)
{
    uint8_t power = 1;
    while (exponent--)
        power = bw_field_product(power, 2);
    return power;
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
    unsigned wanted = row->piece->data_stripe, n = row->data_parts, other = n, unknown = 1;
    bool has_p = !row->bad[n], has_q = row->parts > n + 1 && !row->bad[n + 1];
    for (unsigned part = 0; part < n; part++)
        if (part != wanted && row->bad[part]) {
            other = part;
            unknown++;
        }
    uint8_t p = 0, q = 0;
    if (unknown == 1 && has_p) {
        p = 1;
    } else if (unknown == 1 && has_q) {
        q = bw_field_inverse(power_of_two(wanted));
    } else if (unknown == 2 && has_p && has_q) {
        /* D[w] + D[o] = P', g^w D[w] + g^o D[o] = Q': D[w] = (g^o P' + Q') / (g^w + g^o). */
        uint8_t scale = bw_field_inverse(power_of_two(wanted) ^ power_of_two(other));
        p = bw_field_product(scale, power_of_two(other));
        q = scale;
    } else {
        return false;
    }
    row->source_count = 0;
    for (unsigned part = 0; part < n; part++)
        if (!row->bad[part])
            add_source(row, part, p ^ bw_field_product(q, power_of_two(part)));
    if (p)
        add_source(row, n, p);
    if (q)
        add_source(row, n + 1, q);
    return true;
}

/* The error if too few stripes are readable. `failed` is the error of a stripe that could not be
 * read; NULL if devices are missing. */
static struct bw_error *too_few(const struct row *row, struct bw_error *failed)
{
    if (failed && failed->code == BW_ERROR_NO_MEMORY)
        return failed;
    struct bw_error *error =
        bw_error_create(failed ? failed->code : BW_ERROR_MISSING_DEVICE,
                        "too few good stripes in row %" PRIu64, row->piece->row);
    bw_error_add_cause(error, failed);
    return error;
}

/* The image to request from a device, as bw_request.copy. Devices with fewer images are read from
 * the first. */
static uint8_t image_of(const struct bw_layout_stripe *stripe, unsigned alternative)
{
    return stripe->alternatives <= 1            ? 0
           : alternative > stripe->alternatives ? 1
                                                : (uint8_t)alternative;
}

/* Reads the chosen stripes. Stripes that fail are marked bad; false: choose again. */
static bool read_sources(const struct bw_frame *frame, struct bw_xlator *xlator, struct row *row,
                         uint8_t *bytes, struct bw_error **failed)
{
    const struct bw_piece *piece = row->piece;
    bool complete = true;
    for (unsigned i = 0; i < row->source_count; i++) {
        const struct bw_layout_stripe *stripe =
            bw_layout_row_stripe(piece->chunk, piece->row, row->sources[i]);
        struct bw_request request = {.kind = row->kind,
                                     .copy = image_of(stripe, row->alternative),
                                     .length = piece->length,
                                     .address = stripe->offset + piece->stripe_offset,
                                     .buffer = bytes + (size_t)i * piece->length};
        bw_wind(frame, bw_xlator_child(xlator, stripe->child), &request, 1);
        if (!request.error)
            continue;
        /* One error is enough to explain the failure. */
        bw_error_free(*failed);
        *failed = request.error;
        row->bad[row->sources[i]] = true;
        complete = false;
    }
    return complete;
}

static void combine_sources(const struct row *row, uint8_t *bytes, uint8_t *buffer)
{
    const size_t length = row->piece->length;
    uint8_t *sources[MAX_PARTS];
    for (size_t i = 0; i < row->source_count; i++)
        sources[i] = bytes + i * length;
    bw_field_combine(row->source_count, length, row->coefficients, sources, buffer);
}

/*
 * Computes a piece of a RAID5 or RAID6 row without reading its own stripe. `copy` selects the
 * method: 2 prefers P; so does 0, which also avoids stale devices if possible; from 3 on, one more
 * stripe of the row is regarded as bad, a different one for each copy, and Q replaces it. Stripes
 * that are missing or cannot be read are bad as well. If too few stripes remain, the error is
 * BW_ERROR_MISSING_DEVICE if devices are missing, which is true of the whole row; if a stripe could
 * not be read, it has the code of that error, and other sectors of the piece may still be readable.
 */
static struct bw_error *rebuild_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                      const struct bw_piece *piece, struct bw_piece_copy wanted,
                                      enum bw_request_kind kind, uint8_t *buffer)
{
    const unsigned copy = wanted.number;
    struct row row = {.piece = piece,
                      .data_parts = bw_layout_data_stripes(piece->chunk),
                      .parts = piece->chunk->stripe_count,
                      .alternative = wanted.alternative,
                      .kind = kind};
    BW_AUTO_FREE uint8_t *bytes = malloc((size_t)row.parts * piece->length + 1); /* not 0 */
    if (!bytes)
        return bw_error_no_memory();
    mark_bad(&row, copy);
    BW_AUTO_ERROR struct bw_error *failed = NULL;
    for (;;) {
        bool enough = choose_sources(&row);
        if (enough && read_sources(frame, xlator, &row, bytes, &failed)) {
            combine_sources(&row, bytes, buffer);
            return NULL;
        }
        if (enough)
            continue;
        if (!row.without_stale)
            return too_few(&row, BW_TAKE(failed));
        row.without_stale = false;
        mark_bad(&row, WITH_STALE);
    }
}

/* The layer. */

/* Counters of children, and remembered choices of copies. Others with the same hash share one. */
enum { CHILDREN = 64, CHOICES = 256 };

struct chunk_map {
    struct bw_layout layout;
    atomic_uint_fast64_t awaited[CHILDREN]; /* bytes of data that threads wait for */
    atomic_uint_fast64_t choices[CHOICES];  /* see preferred_copy() */
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

/* Looks a piece up in the stripe tree. */
static struct bw_error *place_by_stripe_tree(const struct bw_frame *frame,
                                             const struct bw_stripe_source *source,
                                             uint64_t address, struct bw_piece *piece)
{
    struct bw_stripe_extent extent;
    struct bw_error *error = source->find(source->context, frame, address, &extent);
    if (!error)
        bw_layout_place(piece, address, &extent);
    else if (piece->length > extent.length)
        piece->length = (uint32_t)extent.length;
    return error;
}

/* Finds where an address is stored, and the length to which the result, or the failure, applies.
 * Metadata are not looked up in the stripe tree: the blocks of that tree are metadata themselves.
 * */
static struct bw_error *find_piece(const struct bw_frame *frame, const struct bw_xlator *xlator,
                                   uint64_t address, uint32_t length, struct bw_piece *piece)
{
    const struct chunk_map *map = bw_xlator_private(xlator);
    BW_TRY(bw_layout_find(&map->layout, address, length, piece));
    bool placed = map->stripes && piece->chunk->in_stripe_tree && !frame->metadata;
    return placed ? place_by_stripe_tree(frame, map->stripes, address, piece) : NULL;
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

/* A child without a known device may turn out to be the missing device. */
static struct bw_error *missing_device(struct bw_xlator *xlator,
                                       const struct bw_layout_stripe *stripe)
{
    if (stripe->devid == BW_UNKNOWN_DEVICE)
        return bw_error_create(BW_ERROR_MISSING_DEVICE, "the position of its stripe is unknown");
    const bool doubtful = bw_xlator_child_count(xlator) > layout_of(xlator)->device_count;
    return bw_error_create(BW_ERROR_MISSING_DEVICE,
                           doubtful ? "no image was identified as device %" PRIu64
                                    : "device %" PRIu64 " is missing",
                           stripe->devid);
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
 * Which copy of data to read. Data are read in long ranges by several threads. Parts of this size
 * come from the device for which the fewest bytes are awaited, or from each in turn, so that all
 * are busy. The choice is remembered, because reads have to go where they were announced.
 */
enum { MIRROR_PART = 2 << 20, COPY_BITS = 8 };

/* The beginning of a part. A batch, or announcement, is a part if it is not larger: a thread that
 * reads from two devices waits for one after the other. */
struct lead {
    const struct bw_layout_chunk *chunk;
    uint64_t address;
};

static uint64_t find_lead(struct lead *lead, const struct bw_piece *piece, uint64_t address)
{
    if (lead->chunk != piece->chunk || address - lead->address >= MIRROR_PART)
        *lead = (struct lead){piece->chunk, address};
    return lead->address;
}

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

/* The copy on the device with the fewest awaited bytes, beginning with another one in each part. */
static unsigned choose_device(struct chunk_map *map, const struct bw_piece *piece, uint64_t part)
{
    unsigned best = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < piece->direct_copies; i++) {
        const unsigned copy = (unsigned)((part + i) % piece->direct_copies) + 1;
        const uint32_t child = bw_piece_stripe(piece, copy)->child;
        const uint64_t awaited =
            child == BW_NO_CHILD
                ? UINT64_MAX
                : atomic_load_explicit(awaited_from(map, child), memory_order_relaxed);
        if (!best || awaited < least) {
            best = copy;
            least = awaited;
        }
    }
    return best;
}

/* The copy to read first if any will do. */
static unsigned preferred_copy(const struct bw_frame *frame, struct chunk_map *map,
                               const struct bw_piece *piece, uint64_t lead)
{
    if (!is_mirrored(frame, piece))
        return 1;
    const uint64_t part = lead / MIRROR_PART;
    atomic_uint_fast64_t *choice = &map->choices[part % CHOICES];
    const uint64_t known = atomic_load_explicit(choice, memory_order_relaxed);
    const unsigned copy = (unsigned)(known & ((1U << COPY_BITS) - 1));
    if (known >> COPY_BITS == part && copy && copy <= piece->direct_copies)
        return copy;
    const unsigned chosen = choose_device(map, piece, part);
    atomic_store_explicit(choice, part << COPY_BITS | chosen, memory_order_relaxed);
    return chosen;
}

/* The copy to read if any will do; 0 if it has to be computed. */
static unsigned choose_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                            const struct bw_piece *piece, uint64_t lead)
{
    const unsigned first = preferred_copy(frame, bw_xlator_private(xlator), piece, lead);
    const unsigned copy = first_copy(piece, first, false);
    if (copy || piece->chunk->profile->parity_stripes)
        return copy;
    const unsigned stale = first_copy(piece, first, true);
    return stale ? stale : 1;
}

/* The stripe of a copy; NULL if it has to be computed or does not exist. `copy` is the number
 * without alternatives. */
static const struct bw_layout_stripe *stripe_of(const struct bw_piece *piece, unsigned copy)
{
    return copy && copy <= piece->direct_copies ? bw_piece_stripe(piece, copy) : NULL;
}

/* Computes a piece. If that fails and any copy will do, `*stripe` gets a stale stripe to read. */
static struct bw_error *compute_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                      const struct bw_request *whole, const struct bw_piece *piece,
                                      uint8_t *buffer, const struct bw_layout_stripe **stripe)
{
    if (whole->copy > bw_piece_copies(piece))
        return bw_error_create(BW_ERROR_USAGE, "there is no copy %u", whole->copy);
    struct bw_error *error = rebuild_piece(
        frame, xlator, piece, bw_piece_split_copy(piece, whole->copy), kind_of_part(whole), buffer);
    *stripe = error && !whole->copy ? stripe_of(piece, first_copy(piece, 1, true)) : NULL;
    if (!*stripe)
        return error;
    bw_error_free(error);
    return NULL;
}

/* Reads one piece of a request: the slow path, for split requests and for parity. */
static struct bw_error *read_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   struct bw_request *whole, const struct bw_piece *piece,
                                   uint32_t done)
{
    const struct bw_piece_copy copy = bw_piece_split_copy(piece, whole->copy);
    const unsigned number =
        copy.number ? copy.number : choose_copy(frame, xlator, piece, whole->address + done);
    const struct bw_layout_stripe *stripe = stripe_of(piece, number);
    uint8_t *buffer = (uint8_t *)whole->buffer + done;
    probe_piece(frame, xlator, whole->address + done, whole->copy, piece, stripe);
    if (!stripe) {
        BW_TRY(compute_piece(frame, xlator, whole, piece, buffer, &stripe));
        if (!stripe) {
            whole->rebuilt = true;
            return NULL;
        }
    }
    if (stripe->child == BW_NO_CHILD)
        return missing_device(xlator, stripe);
    bool is_whole = piece->length == whole->length;
    struct bw_request part = {.kind = is_whole ? whole->kind : kind_of_part(whole),
                              .copy = image_of(stripe, copy.alternative),
                              .expectation = is_whole ? whole->expectation : NULL,
                              .data = is_whole ? whole->data : NULL,
                              .length = piece->length,
                              .address = stripe->offset + piece->stripe_offset,
                              .buffer = buffer};
    bw_wind(frame, bw_xlator_child(xlator, stripe->child), &part, 1);
    return part.error;
}

static struct bw_error *read_pieces(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_request *request)
{
    for (uint32_t done = 0; done < request->length;) {
        struct bw_piece piece;
        BW_TRY(find_piece(frame, xlator, request->address + done, request->length - done, &piece));
        BW_TRY(read_piece(frame, xlator, request, &piece, done));
        done += piece.length;
    }
    return NULL;
}

/* The child that a request can be read from in one piece, and the address there; BW_NO_CHILD if it
 * cannot, and the request is completed. */
static uint32_t locate_request(const struct bw_frame *frame, struct bw_xlator *xlator,
                               struct lead *lead, struct bw_request *request, uint64_t *address,
                               uint8_t *image)
{
    struct bw_piece piece;
    request->error = find_piece(frame, xlator, request->address, request->length, &piece);
    if (request->error)
        return BW_NO_CHILD;
    const struct bw_piece_copy copy = bw_piece_split_copy(&piece, request->copy);
    const unsigned number =
        copy.number ? copy.number
                    : choose_copy(frame, xlator, &piece, find_lead(lead, &piece, request->address));
    const struct bw_layout_stripe *stripe = stripe_of(&piece, number);
    if (!request->copy)
        request->copy_read = (uint8_t)number;
    if (piece.length < request->length || !stripe || stripe->child == BW_NO_CHILD) {
        request->error = read_pieces(frame, xlator, request);
        return BW_NO_CHILD;
    }
    probe_piece(frame, xlator, request->address, request->copy, &piece, stripe);
    *address = stripe->offset + piece.stripe_offset;
    *image = image_of(stripe, copy.alternative);
    return stripe->child;
}

/* The requests of a batch that can be read in one piece each. */
struct located {
    uint32_t children[BW_BATCH]; /* BW_NO_CHILD once the request is answered */
    uint64_t addresses[BW_BATCH];
    uint8_t images[BW_BATCH]; /* bw_request.copy for the child */
};

/* Reads all requests that have the same child as the one at `first`. */
static void read_from_child(const struct bw_frame *frame, struct bw_xlator *xlator,
                            struct bw_request *requests, size_t count, size_t first,
                            struct located *located)
{
    struct bw_request parts[BW_BATCH], *wholes[BW_BATCH];
    const uint32_t child = located->children[first];
    atomic_uint_fast64_t *awaited = awaited_from(bw_xlator_private(xlator), child);
    uint64_t bytes = 0;
    size_t found = 0;
    for (size_t i = first; i < count; i++) {
        if (located->children[i] != child)
            continue;
        parts[found] = requests[i];
        parts[found].address = located->addresses[i];
        parts[found].copy = located->images[i];
        wholes[found++] = &requests[i];
        located->children[i] = BW_NO_CHILD;
        bytes += requests[i].length;
    }
    atomic_fetch_add_explicit(awaited, bytes, memory_order_relaxed);
    bw_wind(frame, bw_xlator_child(xlator, child), parts, found);
    atomic_fetch_sub_explicit(awaited, bytes, memory_order_relaxed);
    for (size_t i = 0; i < found; i++)
        bw_request_answer(wholes[i], &parts[i]);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct located located;
    struct lead lead = {0};
    for (size_t i = 0; i < count; i++)
        located.children[i] = locate_request(frame, xlator, &lead, &requests[i],
                                             &located.addresses[i], &located.images[i]);
    for (size_t i = 0; i < count; i++)
        if (located.children[i] != BW_NO_CHILD)
            read_from_child(frame, xlator, requests, count, i, &located);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t done = 0; done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

/* The stripe in the reply of `map`: the copy's stripe or, if the copy is computed, the stripe of
 * its parity. */
static const struct bw_layout_stripe *stripe_to_name(const struct bw_piece *piece, unsigned copy)
{
    const struct bw_layout_chunk *chunk = piece->chunk;
    if (copy <= piece->direct_copies)
        return bw_piece_stripe(piece, copy ? copy : 1);
    unsigned parity = chunk->profile->parity_stripes;
    if (!parity)
        return bw_piece_stripe(piece, 1);
    return bw_layout_row_stripe(chunk, piece->row, chunk->stripe_count - (copy == 2 ? parity : 1));
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
    const struct bw_layout_stripe *stripe = stripe_to_name(&piece, wanted.number);
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

/* Announces the beginning of a range that lies in one piece; returns its length, or 0 if it is
 * nowhere. */
static uint32_t advise_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                             struct lead *lead, uint64_t address, uint32_t length, unsigned copy)
{
    struct bw_piece piece;
    BW_AUTO_ERROR struct bw_error *error = find_piece(frame, xlator, address, length, &piece);
    if (error)
        return 0;
    const struct bw_piece_copy wanted = bw_piece_split_copy(&piece, copy);
    const unsigned number =
        wanted.number ? wanted.number
                      : choose_copy(frame, xlator, &piece, find_lead(lead, &piece, address));
    const struct bw_layout_stripe *stripe = stripe_of(&piece, number);
    const struct bw_range below = {stripe ? stripe->offset + piece.stripe_offset : 0, piece.length};
    if (stripe && stripe->child != BW_NO_CHILD)
        bw_wind_advise(frame, bw_xlator_child(xlator, stripe->child), &below, 1,
                       image_of(stripe, wanted.alternative));
    return piece.length;
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    struct lead lead = {0};
    for (size_t i = 0; i < count; i++) {
        uint64_t address = ranges[i].address, end = address + ranges[i].length;
        for (uint32_t done = 1; address < end && done; address += done) {
            const uint64_t left = end - address;
            const uint32_t length = left > MIRROR_PART ? MIRROR_PART : (uint32_t)left;
            done = advise_piece(frame, xlator, &lead, address, length, copy);
        }
    }
}

static void dump_devices(struct bw_xlator *xlator, const struct bw_layout *layout,
                         struct bw_json *json)
{
    bw_json_begin_array(json, "devices");
    for (size_t i = 0; i < layout->device_count; i++) {
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "devid", layout->devices[i].devid);
        bw_json_text(json, "volume",
                     bw_xlator_name(bw_xlator_child(xlator, layout->devices[i].child)));
        bw_json_end(json);
    }
    bw_json_end(json);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct bw_layout *layout = layout_of(xlator);
    uint64_t bytes = 0, missing_stripes = 0;
    for (size_t i = 0; i < layout->chunk_count; i++) {
        bytes += layout->chunks[i].length;
        for (unsigned stripe = 0; stripe < layout->chunks[i].stripe_count; stripe++)
            missing_stripes += layout->chunks[i].stripes[stripe].child == BW_NO_CHILD;
    }
    bw_json_number(json, "chunks", layout->chunk_count);
    bw_json_number(json, "bytes", bytes);
    bw_json_number(json, "missing_stripes", missing_stripes);
    dump_devices(xlator, layout, json);
}

const struct bw_xlator_class bw_cluster_chunk_map_class = {
    .type = "cluster/chunk-map",
    .description = "maps logical addresses to devices, through every RAID profile",
    .page =
        "Btrfs refers to its blocks by logical addresses. This layer maps each address to the "
        "devices that store it, and reads it there. It supports every profile: single, DUP, "
        "RAID0, RAID1 with two, three or four copies, RAID10, RAID5 and RAID6. A read that "
        "crosses a stripe boundary is split. If a device is missing, or stale because it missed "
        "writes, the layer reads another copy, or computes the bytes from parity. If a copy is "
        "present but bad, features/verify requests the next one. File data with copies on "
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
