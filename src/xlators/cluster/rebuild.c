/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parity. A row of n data pieces is a vector D over GF(2^8). P is the sum of all D[i], Q the sum of
 * g^i D[i] with g = 2. Either equation yields one unknown piece, both together yield two. In each
 * case the wanted piece is a linear combination of the pieces that are left; only the coefficients
 * differ.
 */
#include "xlators/cluster/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/galois.h"

enum { MAX_PARTS = BW_FIELD_VECTORS, ANY_WAY = 2 };

struct row {
    const struct bw_piece *piece;
    unsigned data_parts;
    unsigned parts;
    bool bad[MAX_PARTS];        /* parts that must not be used; parity parts last */
    bool without_stale;         /* some of the bad parts are only stale */
    uint8_t sources[MAX_PARTS]; /* the parts chosen */
    uint8_t coefficients[MAX_PARTS];
    unsigned source_count;
};

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
 * piece i, which both sums contain. False if too few parts are left.
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

/* `failed` is the error of a stripe that could not be read; NULL: devices are missing. */
static struct bw_error *too_few(const struct row *row, struct bw_error *failed)
{
    if (failed && failed->code == BW_ERROR_NO_MEMORY)
        return failed;
    struct bw_error *error = bw_error_create(
        failed ? failed->code : BW_ERROR_MISSING_DEVICE,
        "too few stripes of row %" PRIu64 " are left to rebuild from", row->piece->row);
    bw_error_add_cause(error, failed);
    return error;
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
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = piece->length,
                                     .address = stripe->offset + piece->stripe_offset,
                                     .buffer = bytes + (size_t)i * piece->length};
        bw_wind(frame, bw_xlator_child(xlator, stripe->child), &request, 1);
        if (!request.error)
            continue;
        /* One error is enough to say why. */
        bw_error_free(*failed);
        *failed = request.error;
        row->bad[row->sources[i]] = true;
        complete = false;
    }
    return complete;
}

static void combine(const struct row *row, uint8_t *bytes, uint8_t *buffer)
{
    const size_t length = row->piece->length;
    uint8_t *sources[MAX_PARTS];
    for (size_t i = 0; i < row->source_count; i++)
        sources[i] = bytes + i * length;
    bw_field_combine(row->source_count, length, row->coefficients, sources, buffer);
}

struct bw_error *bw_rebuild_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  const struct bw_piece *piece, unsigned copy, uint8_t *buffer)
{
    struct row row = {.piece = piece,
                      .data_parts = bw_layout_data_stripes(piece->chunk),
                      .parts = piece->chunk->stripe_count};
    BW_AUTO_FREE uint8_t *bytes = malloc((size_t)row.parts * piece->length + 1); /* not 0 */
    if (!bytes)
        return bw_error_no_memory();
    mark_bad(&row, copy);
    BW_AUTO_ERROR struct bw_error *failed = NULL;
    for (;;) {
        bool enough = choose_sources(&row);
        if (enough && read_sources(frame, xlator, &row, bytes, &failed)) {
            combine(&row, bytes, buffer);
            return NULL;
        }
        if (enough)
            continue;
        if (!row.without_stale)
            return too_few(&row, BW_TAKE(failed));
        row.without_stale = false;
        mark_bad(&row, ANY_WAY);
    }
}
