/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parity. A row of n data pieces is a vector over GF(2^8); each stripe of the row is a known linear
 * combination of it: data piece i is unit vector i, P is all ones, Q is the powers of two. Any n stripes
 * whose combinations are independent give the vector back. So one way serves RAID5, RAID6 and every pattern
 * of loss: choose n good stripes, invert their matrix, apply the wanted row of the inverse. The field
 * arithmetic is libisal's.
 */
#include "xlators/cluster/rebuild.h"

#include <inttypes.h>
#include <isa-l/erasure_code.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MAX_PARTS = 255 };

struct row {
    const struct bw_piece *piece;
    unsigned data_parts;
    unsigned parts;
    bool bad[MAX_PARTS];        /* parts that must not be used; parity parts last */
    uint8_t sources[MAX_PARTS]; /* the parts chosen, data_parts of them */
};

static void mark_bad(struct row *row, unsigned copy)
{
    const struct bw_piece *piece = row->piece;
    for (unsigned part = 0; part < row->parts; part++)
        row->bad[part] = bw_layout_row_stripe(piece->chunk, piece->row, part)->child == BW_NO_CHILD;
    row->bad[piece->data_stripe] = true;
    if (copy < 3)
        return;
    unsigned other = copy - 3;
    row->bad[other < piece->data_stripe ? other : other + 1] = true;
}

static bool choose_sources(struct row *row)
{
    unsigned chosen = 0;
    for (unsigned part = 0; part < row->parts && chosen < row->data_parts; part++)
        if (!row->bad[part])
            row->sources[chosen++] = (uint8_t)part;
    return chosen == row->data_parts;
}

/* The coefficients that turn the chosen stripes into the wanted piece. */
static struct bw_error *solve(const struct row *row, uint8_t *coefficients)
{
    size_t n = row->data_parts;
    BW_AUTO_FREE uint8_t *matrix = calloc(2 * n, n);
    if (!matrix)
        return bw_error_no_memory();
    uint8_t *inverse = matrix + n * n;
    for (size_t i = 0; i < n; i++) {
        unsigned part = row->sources[i];
        if (part < n)
            matrix[i * n + part] = 1;
        else if (part == n)
            memset(matrix + i * n, 1, n);
        else
            for (size_t j = 0, power = 1; j < n; j++, power = gf_mul((uint8_t)power, 2))
                matrix[i * n + j] = (uint8_t)power;
    }
    if (gf_invert_matrix(matrix, inverse, (int)n))
        return bw_error_create(BW_ERROR_CORRUPT, "the stripes of row %" PRIu64 " do not determine its data",
                               row->piece->row);
    memcpy(coefficients, inverse + row->piece->data_stripe * n, n);
    return NULL;
}

/* Reads the chosen stripes; those that fail are marked bad, and false means: choose again. */
static bool read_sources(const struct bw_frame *frame, struct bw_xlator *xlator, struct row *row,
                         uint8_t *bytes)
{
    const struct bw_piece *piece = row->piece;
    bool complete = true;
    for (unsigned i = 0; i < row->data_parts; i++) {
        const struct bw_layout_stripe *stripe =
            bw_layout_row_stripe(piece->chunk, piece->row, row->sources[i]);
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = piece->length,
                                     .address = stripe->offset + piece->stripe_offset,
                                     .buffer = bytes + (size_t)i * piece->length};
        bw_wind(frame, bw_xlator_child(xlator, stripe->child), &request, 1);
        if (!request.error)
            continue;
        bw_error_free(request.error);
        row->bad[row->sources[i]] = true;
        complete = false;
    }
    return complete;
}

static struct bw_error *combine(const struct row *row, uint8_t *bytes, uint8_t *buffer)
{
    size_t n = row->data_parts, length = row->piece->length;
    uint8_t coefficients[MAX_PARTS];
    BW_TRY(solve(row, coefficients));
    BW_AUTO_FREE uint8_t *tables = malloc(32 * n);
    if (!tables)
        return bw_error_no_memory();
    uint8_t *sources[MAX_PARTS];
    for (size_t i = 0; i < n; i++)
        sources[i] = bytes + i * length;
    ec_init_tables((int)n, 1, coefficients, tables);
    ec_encode_data((int)length, (int)n, 1, tables, sources, &buffer);
    return NULL;
}

struct bw_error *bw_rebuild_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  const struct bw_piece *piece, unsigned copy, uint8_t *buffer)
{
    struct row row = {.piece = piece,
                      .data_parts = bw_layout_data_stripes(piece->chunk),
                      .parts = piece->chunk->stripe_count};
    BW_AUTO_FREE uint8_t *bytes = malloc((size_t)row.data_parts * piece->length);
    if (!bytes)
        return bw_error_no_memory();
    mark_bad(&row, copy);
    do {
        if (!choose_sources(&row))
            return bw_error_create(BW_ERROR_MISSING_DEVICE,
                                   "too few stripes of row %" PRIu64 " are left to rebuild from", piece->row);
    } while (!read_sources(frame, xlator, &row, bytes));
    return combine(&row, bytes, buffer);
}
