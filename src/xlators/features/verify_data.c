/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File data in features/verify. Data are checked sector by sector. Other copies of runs of bad
 * sectors are read, and their good sectors are used, so no copy has to be good as a whole. If a
 * sector stays bad, each of its copies is read once more to report what is wrong with it.
 */
#include "xlators/features/verify_copies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* If data without checksums cannot be read, they are read again in pieces of this size. */
enum { UNCHECKED_SECTOR = 4096 };

/* A request with bad sectors. */
struct repair {
    const struct bw_frame *frame;
    struct bw_xlator *xlator;
    struct bw_request *request;
    uint32_t sectorsize, count; /* sectors; the last one may be shorter if there are no checksums */
    bool *bad;                  /* for each sector */
    uint8_t *bytes;             /* of another copy */
    struct bw_bad_copies tried; /* one entry for each bad copy */
    unsigned noted;             /* copies up to this one have their entry, if they are bad */
    unsigned used;              /* the last copy that a sector was taken from */
    bool missing;               /* all copies of all sectors are on missing devices */
};

static bool sector_is_good(const struct bw_verify *verify, const struct bw_request *request,
                           uint32_t sector, const uint8_t *bytes)
{
    uint8_t found[32];
    size_t size = bw_checksum_size(verify->checksum);
    if (!request->data)
        return true;
    bw_checksum_compute(verify->checksum, bytes, request->data->sectorsize, found);
    return memcmp(found, request->data->checksums + sector * size, size) == 0;
}

static bool all_good(const struct bw_verify *verify, const struct bw_request *request)
{
    if (!request->data)
        return true;
    for (uint32_t at = 0, sector = 0; at < request->length;
         at += request->data->sectorsize, sector++)
        if (!sector_is_good(verify, request, sector, (const uint8_t *)request->buffer + at))
            return false;
    return true;
}

static struct bw_error *mismatch(const struct repair *repair)
{
    const struct bw_verify *verify = bw_xlator_private(repair->xlator);
    struct bw_error *error = bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                                             bw_checksum_name(verify->checksum));
    bw_error_add_hop(error, bw_xlator_type(repair->xlator), bw_xlator_name(repair->xlator),
                     &repair->request->address);
    return error;
}

static uint32_t length_of(const struct repair *repair, uint32_t first, uint32_t count)
{
    uint32_t left = repair->request->length - first * repair->sectorsize;
    return count < left / repair->sectorsize + (left % repair->sectorsize != 0)
               ? count * repair->sectorsize
               : left;
}

/* A request for some of the sectors, into the buffer for other copies. */
static struct bw_request part_of(const struct repair *repair, uint32_t first, uint32_t count,
                                 unsigned copy)
{
    struct bw_request part = *repair->request;
    part.address += (uint64_t)first * repair->sectorsize;
    part.length = length_of(repair, first, count);
    part.buffer = repair->bytes + (size_t)first * repair->sectorsize;
    part.copy = (uint8_t)copy;
    part.data = NULL;
    part.error = NULL;
    part.rebuilt = false;
    return part;
}

/* Takes the good sectors of a run that was read from another copy; returns how many stay bad. */
static uint32_t take_good(struct repair *repair, uint32_t first, uint32_t count, unsigned copy,
                          bool rebuilt)
{
    uint32_t left = 0;
    for (uint32_t i = first; i < first + count; i++) {
        size_t at = (size_t)i * repair->sectorsize;
        if (!repair->bad[i])
            continue;
        if (!sector_is_good(bw_xlator_private(repair->xlator), repair->request, i,
                            repair->bytes + at)) {
            left++;
            continue;
        }
        memcpy((uint8_t *)repair->request->buffer + at, repair->bytes + at,
               length_of(repair, i, 1));
        repair->request->rebuilt |= rebuilt;
        repair->bad[i] = false;
        repair->used = copy;
    }
    return left;
}

static void note(struct repair *repair, uint32_t first, unsigned copy, struct bw_error *reason)
{
    struct bw_request part = part_of(repair, first, 1, copy);
    if (copy <= repair->noted) {
        bw_error_free(reason);
        return;
    }
    repair->noted = copy;
    bw_note_bad_copy(repair->frame, repair->xlator, &part, copy, reason, &repair->tried);
}

/* Reads a run from another copy; if that fails as a whole, sector by sector. */
static void try_run(struct repair *repair, uint32_t first, uint32_t count, unsigned copy)
{
    struct bw_request part = part_of(repair, first, count, copy);
    bw_wind(repair->frame, bw_xlator_child(repair->xlator, 0), &part, 1);
    if (!part.error) {
        repair->missing = false;
        if (take_good(repair, first, count, copy, part.rebuilt))
            note(repair, first, copy, mismatch(repair));
        return;
    }
    /* If a device is missing, no sector of the run can be read. */
    bool divide = part.error->code != BW_ERROR_MISSING_DEVICE;
    repair->missing &= !divide;
    note(repair, first, copy, part.error);
    for (uint32_t i = first; divide && count > 1 && i < first + count; i++)
        try_run(repair, i, 1, copy);
}

/* Finds the next run of bad sectors, cut to one piece; false if there is none. */
static bool next_run(const struct repair *repair, uint32_t from, uint32_t *first, uint32_t *count,
                     unsigned *copies)
{
    while (from < repair->count && !repair->bad[from])
        from++;
    *first = from;
    while (from < repair->count && repair->bad[from])
        from++;
    *count = from - *first;
    if (!*count)
        return false;
    uint32_t length;
    const struct bw_request part = part_of(repair, *first, *count, 0);
    *copies = bw_copy_count(repair->frame, repair->xlator, &part, &length);
    if (length < part.length)
        *count = length < repair->sectorsize ? 1 : length / repair->sectorsize;
    return true;
}

/* Tries each copy once. */
static void try_copies(struct repair *repair)
{
    unsigned most = 1;
    for (unsigned copy = 1; copy <= most; copy++) {
        uint32_t first, count;
        unsigned copies;
        for (uint32_t from = 0; next_run(repair, from, &first, &count, &copies);
             from = first + count) {
            if (copies > most)
                most = copies;
            if (copy <= copies)
                try_run(repair, first, count, copy);
        }
    }
}

/* What is wrong with each copy of a sector; NULL if a copy is good now. */
static struct bw_error *explain_sector(struct repair *repair, uint32_t sector)
{
    struct bw_bad_copies tried = {.code = BW_ERROR_CORRUPT};
    struct bw_request part = part_of(repair, sector, 1, 0);
    unsigned copies = bw_copy_count(repair->frame, repair->xlator, &part, NULL);
    unsigned first = repair->request->copy ? repair->request->copy : 1;
    unsigned last = repair->request->copy ? repair->request->copy : copies;
    for (unsigned copy = first; copy <= last; copy++) {
        part = part_of(repair, sector, 1, copy);
        bw_wind(repair->frame, bw_xlator_child(repair->xlator, 0), &part, 1);
        if (!part.error && !take_good(repair, sector, 1, copy, part.rebuilt)) {
            bw_error_free(bw_explain_copies(&tried, &part, 0));
            return NULL;
        }
        bw_note_bad_copy(repair->frame, repair->xlator, &part, copy,
                         part.error ? part.error : mismatch(repair), &tried);
    }
    /* Other parts of the request can be read. */
    if (tried.code == BW_ERROR_MISSING_DEVICE && !repair->missing)
        tried.code = BW_ERROR_CORRUPT;
    return bw_explain_copies(&tried, &part, 0);
}

static struct bw_error *explain_bad(struct repair *repair)
{
    uint32_t others = 0;
    struct bw_error *error = NULL;
    for (uint32_t i = 0; i < repair->count; i++) {
        if (!repair->bad[i])
            continue;
        if (error)
            others++;
        else
            error = explain_sector(repair, i);
    }
    return others ? bw_error_prefix(error, "%" PRIu32 " sectors, the first", others + 1) : error;
}

static void find_bad(struct repair *repair)
{
    for (uint32_t i = 0; i < repair->count; i++)
        repair->bad[i] =
            repair->request->error ||
            !sector_is_good(bw_xlator_private(repair->xlator), repair->request, i,
                            (uint8_t *)repair->request->buffer + (size_t)i * repair->sectorsize);
}

static struct bw_error *repair_request(struct repair *repair, struct bw_error *first)
{
    repair->tried.code = BW_ERROR_CORRUPT;
    repair->missing = first && first->code == BW_ERROR_MISSING_DEVICE;
    if (!repair->request->copy)
        try_copies(repair);
    struct bw_error *error = explain_bad(repair);
    /* Every copy is good now; the first read was not. */
    if (!error && !repair->tried.text.length) {
        note(repair, 0, 1, first ? first : mismatch(repair));
        first = NULL;
        repair->tried.good_again = true;
    }
    bw_error_free(first);
    struct bw_error *replaced = bw_explain_copies(&repair->tried, repair->request, repair->used);
    if (error)
        bw_error_free(replaced);
    else
        bw_verify_note(repair->xlator, repair->request->address, replaced);
    return error;
}

void bw_verify_data(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *request)
{
    if (!request->error && all_good(bw_xlator_private(xlator), request))
        return;
    uint32_t sectorsize = request->data ? request->data->sectorsize : UNCHECKED_SECTOR;
    uint32_t count = request->length / sectorsize + (request->length % sectorsize != 0);
    BW_AUTO_FREE bool *bad = calloc(count, sizeof *bad);
    BW_AUTO_FREE uint8_t *bytes = malloc(request->length);
    if (!bad || !bytes) {
        bw_error_free(request->error);
        request->error = bw_error_no_memory();
        return;
    }
    struct repair repair = {frame, xlator, request, sectorsize, count, bad, bytes, .used = 0};
    find_bad(&repair);
    request->error = repair_request(&repair, request->error);
}
