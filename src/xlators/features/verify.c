/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verifies tree blocks and data, and on a mismatch reads the next mirror. The error names all bad
 * mirrors of a range.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "btrfs-walk/graph.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"
#include "ondisk/node.h"
#include "ondisk/tree_title.h"
#include "xlators/classes.h"
#include <pthread.h>

/* Private state of the layer. */
struct bw_verify {
    enum bw_checksum_type checksum;
    bool dumped; /**< as in bw_checksum_accepts_block() */
    uint8_t (*fsids)[BW_UUID_SIZE];
    size_t fsid_count;
    pthread_mutex_t lock;
    struct bw_map reported; /**< addresses whose repair was reported; protected by `lock` */
};

/* The bad copies of a range, in the order they were tried. Begins as zeros, except `code`. */
struct bw_bad_copies {
    unsigned count;
    struct bw_error *reasons; /**< the first; linked by `next`; absent where memory ran out */
    struct bw_error *last;    /**< the last of them */
    enum bw_error_code code;  /**< of the last reason */
    bool good_again;          /**< the range was good when it was read a second time */
};

/* How many repairs are reported; a stale mirror could have millions. */
enum { REPORT_LIMIT = 1 << 16 };

/* Adds to the error of a copy which copy it is. If the device is missing, the error names it. */
static struct bw_error *name_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  const struct bw_request *request, unsigned copy,
                                  struct bw_error *reason)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *error = bw_wind_map(
        frame, bw_xlator_child(xlator, 0), request->address, request->length, copy, &reply);
    if (!error && reply.location.rebuilt)
        return bw_error_prefix(reason, "copy %u (rebuilt from parity)", copy);
    if (error || reason->code == BW_ERROR_MISSING_DEVICE)
        return bw_error_prefix(reason, "copy %u", copy);
    if (reply.location.alternative)
        return bw_error_prefix(reason, "copy %u on device %" PRIu64 ", image %u, at %" PRIu64, copy,
                               reply.location.devid, reply.location.alternative,
                               reply.location.offset);
    return bw_error_prefix(reason, "copy %u on device %" PRIu64 " at %" PRIu64, copy,
                           reply.location.devid, reply.location.offset);
}

/* Adds a copy (counted from 1) to the list, with its location; takes ownership of the reason. */
static void note_bad_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                          const struct bw_request *request, unsigned copy, struct bw_error *reason,
                          struct bw_bad_copies *bad)
{
    bad->count++;
    bad->code = reason->code;
    if (reason == bw_error_no_memory())
        return;
    reason = name_copy(frame, xlator, request, copy, reason);
    *(bad->last ? &bad->last->next : &bad->reasons) = reason;
    bad->last = reason;
}

static struct bw_error *name_range(struct bw_error *error, const struct bw_request *request)
{
    if (request->kind == BW_REQUEST_TREE_BLOCK)
        return bw_error_prefix(error, "tree block %" PRIu64 " of %s (level %u)", request->address,
                               bw_tree_title(request->expectation->owner).text,
                               request->expectation->level);
    return bw_error_prefix(error, "data at %" PRIu64, request->address);
}

/* The reasons of all copies are the causes of the error, so its message contains only the first. */
static struct bw_error *create_for_copies(const struct bw_bad_copies *bad, unsigned used)
{
    const char *first = bad->reasons ? bad->reasons->message : bw_error_no_memory()->message;
    if (bad->good_again)
        return bw_error_create(BW_ERROR_CORRUPT, "good only when it was read again (%s)", first);
    if (used)
        return bw_error_create(BW_ERROR_CORRUPT, "used copy %u instead of a bad one (%s)", used,
                               first);
    if (bad->count > 2)
        return bw_error_create(bad->code, "all %u copies are bad: %s", bad->count, first);
    return bw_error_create(bad->code, "%s: %s",
                           bad->count == 2 ? "both copies are bad" : "no good copy", first);
}

/* Makes one error from the list or, if copy `used` replaced the bad ones (0: none did), a note.
 * The reasons become its causes, and the list is emptied. */
static struct bw_error *explain_copies(struct bw_bad_copies *bad, const struct bw_request *request,
                                       unsigned used)
{
    struct bw_error *error = name_range(create_for_copies(bad, used), request);
    for (struct bw_error *reason = bad->reasons, *next; reason; reason = next) {
        next = reason->next;
        reason->next = NULL;
        bw_error_add_cause(error, reason);
    }
    *bad = (struct bw_bad_copies){.code = bad->code};
    return error;
}

/* The number of copies at the beginning of a range; 1 if it is unknown. `length`, unless it is
 * NULL, gets the length up to which each copy is in one piece. */
static unsigned copy_count(const struct bw_frame *frame, struct bw_xlator *xlator,
                           const struct bw_request *request, uint32_t *length)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *error = bw_wind_map(
        frame, bw_xlator_child(xlator, 0), request->address, request->length, 1, &reply);
    if (length)
        *length = error ? request->length : reply.length;
    return error ? 1 : reply.copies;
}

static bool first_report(struct bw_verify *verify, uint64_t address)
{
    pthread_mutex_lock(&verify->lock);
    bool first = verify->reported.count < REPORT_LIMIT &&
                 bw_map_get(&verify->reported, address) == UINT32_MAX;
    if (first)
        bw_map_put(&verify->reported, address, 1);
    pthread_mutex_unlock(&verify->lock);
    return first;
}

/* Reports a repair, once for each address; takes ownership of the note. */
static void verify_note(struct bw_xlator *xlator, uint64_t address, struct bw_error *note)
{
    if (first_report(bw_xlator_private(xlator), address))
        bw_xlator_report(xlator, BW_NOTE, note);
    else
        bw_error_free(note);
}

/*
 * File data in features/verify. Data are checked sector by sector. Other copies of runs of bad
 * sectors are read, and their good sectors are used, so no copy has to be good as a whole. If a
 * sector stays bad, each of its copies is read once more to report its error.
 */

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
    struct bw_data_expectation part; /* of the part that is read */
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

static struct bw_error *checksum_mismatch(const struct repair *repair)
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
static struct bw_request part_of(struct repair *repair, uint32_t first, uint32_t count,
                                 unsigned copy)
{
    const struct bw_verify *verify = bw_xlator_private(repair->xlator);
    struct bw_request part = *repair->request;
    part.address += (uint64_t)first * repair->sectorsize;
    part.length = length_of(repair, first, count);
    part.buffer = repair->bytes + (size_t)first * repair->sectorsize;
    part.copy = (uint8_t)copy;
    if (part.data) {
        repair->part = *part.data;
        repair->part.checksums += (size_t)first * bw_checksum_size(verify->checksum);
        part.data = &repair->part;
    }
    part.error = NULL;
    part.rebuilt = false;
    return part;
}

/* Copies the good sectors of a range read from another mirror; returns the number of sectors that
 * are still bad. */
static uint32_t copy_good_sectors(struct repair *repair, uint32_t first, uint32_t count,
                                  unsigned copy, bool rebuilt)
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

static void note_bad_part(struct repair *repair, uint32_t first, unsigned copy,
                          struct bw_error *reason)
{
    struct bw_request part = part_of(repair, first, 1, copy);
    if (copy == repair->noted) {
        bw_error_free(reason);
        return;
    }
    repair->noted = copy;
    note_bad_copy(repair->frame, repair->xlator, &part, copy, reason, &repair->tried);
}

/* Reads a run from another copy; if that fails as a whole, sector by sector. */
static void try_run(struct repair *repair, uint32_t first, uint32_t count, unsigned copy)
{
    struct bw_request part = part_of(repair, first, count, copy);
    bw_wind(repair->frame, bw_xlator_child(repair->xlator, 0), &part, 1);
    if (!part.error) {
        repair->missing = false;
        if (copy_good_sectors(repair, first, count, copy, part.rebuilt))
            note_bad_part(repair, first, copy, checksum_mismatch(repair));
        return;
    }
    /* If a device is missing, no sector of the run can be read. */
    bool divide = part.error->code != BW_ERROR_MISSING_DEVICE;
    repair->missing &= !divide;
    note_bad_part(repair, first, copy, part.error);
    for (uint32_t i = first; divide && count > 1 && i < first + count; i++)
        try_run(repair, i, 1, copy);
}

/* Finds the next run of bad sectors, cut to one piece; false without one. */
static bool next_run(struct repair *repair, uint32_t from, uint32_t *first, uint32_t *count,
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
    *copies = copy_count(repair->frame, repair->xlator, &part, &length);
    if (length < part.length)
        *count = length < repair->sectorsize ? 1 : length / repair->sectorsize;
    return true;
}

/* The copy that was read first, and is bad or was. */
static unsigned first_read(const struct repair *repair)
{
    return repair->request->copy_read ? repair->request->copy_read : 1;
}

/* Tries each copy once, beginning with the copy that was read. */
static void try_data_copies(struct repair *repair)
{
    const unsigned begin = first_read(repair);
    unsigned most = begin;
    for (unsigned i = 0; i < most; i++) {
        const unsigned copy = i == 0 ? begin : i < begin ? i : i + 1;
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

/* The error of each copy of a sector; NULL if a copy is good now. */
static struct bw_error *explain_sector(struct repair *repair, uint32_t sector)
{
    struct bw_bad_copies tried = {.code = BW_ERROR_CORRUPT};
    struct bw_request part = part_of(repair, sector, 1, 0);
    unsigned copies = copy_count(repair->frame, repair->xlator, &part, NULL);
    unsigned first = repair->request->copy ? repair->request->copy : 1;
    unsigned last = repair->request->copy ? repair->request->copy : copies;
    for (unsigned copy = first; copy <= last; copy++) {
        part = part_of(repair, sector, 1, copy);
        bw_wind(repair->frame, bw_xlator_child(repair->xlator, 0), &part, 1);
        if (!part.error && !copy_good_sectors(repair, sector, 1, copy, part.rebuilt)) {
            bw_error_free(explain_copies(&tried, &part, 0));
            return NULL;
        }
        note_bad_copy(repair->frame, repair->xlator, &part, copy,
                      part.error ? part.error : checksum_mismatch(repair), &tried);
    }
    /* Other parts of the request can be read. */
    if (tried.code == BW_ERROR_MISSING_DEVICE && !repair->missing)
        tried.code = BW_ERROR_CORRUPT;
    return explain_copies(&tried, &part, 0);
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
        try_data_copies(repair);
    struct bw_error *error = explain_bad(repair);
    /* Every copy is good now; the first read was not. */
    if (!error && !repair->tried.count) {
        note_bad_part(repair, 0, first_read(repair), first ? first : checksum_mismatch(repair));
        first = NULL;
        repair->tried.good_again = true;
    }
    bw_error_free(first);
    struct bw_error *replaced = explain_copies(&repair->tried, repair->request, repair->used);
    if (error)
        bw_error_free(replaced);
    else
        verify_note(repair->xlator, repair->request->address, replaced);
    return error;
}

/*
 * Replaces the sectors of a data request that are bad or could not be read, from other copies. Sets
 * request->error if some stay bad; its code is BW_ERROR_MISSING_DEVICE only if all copies of the
 * whole request are on missing devices.
 */
static void repair_data(const struct bw_frame *frame, struct bw_xlator *xlator,
                        struct bw_request *request)
{
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

/*
 * features/verify: passes only tree blocks that are the ones requested. It checks the checksum, the
 * fsid and the values expected by the parent; on a mismatch it reads the next copy, which may be
 * computed from parity. A block without a good copy fails with an error that lists every copy. File
 * data is checked above; other kinds of requests pass.
 */

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_init(&verify->lock, NULL);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_destroy(&verify->lock);
    bw_map_free(&verify->reported);
    free(verify->fsids);
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    const struct bw_control_file_system *facts = control->file_system;
    uint8_t(*ids)[BW_UUID_SIZE] = calloc(facts->id_count, sizeof *ids);
    if (!ids)
        return bw_error_no_memory();
    memcpy(ids, facts->ids, facts->id_count * sizeof *ids);
    free(verify->fsids);
    verify->fsids = ids;
    verify->fsid_count = facts->id_count;
    verify->checksum = facts->checksum_type;
    verify->dumped = facts->dumped;
    return NULL;
}

static bool fsid_allowed(const struct bw_verify *verify, const uint8_t *fsid)
{
    for (size_t i = 0; i < verify->fsid_count; i++)
        if (memcmp(verify->fsids[i], fsid, BW_UUID_SIZE) == 0)
            return true;
    return false;
}

static struct bw_error *check_block(const struct bw_verify *verify,
                                    const struct bw_request *request)
{
    const uint8_t *block = request->buffer;
    if (request->length < sizeof(struct bw_disk_header))
        return bw_error_create(BW_ERROR_CORRUPT, "%" PRIu32 " bytes cannot be a tree block",
                               request->length);
    if (!bw_checksum_accepts_block(verify->checksum, verify->dumped, block, request->length))
        return bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                               bw_checksum_name(verify->checksum));
    if (!fsid_allowed(verify, ((const struct bw_disk_header *)block)->fsid))
        return bw_error_create(BW_ERROR_CORRUPT, "block of another file system");
    return bw_node_check(block, request->length, request->address, request->expectation);
}

/* The error of a block that was read, from the layers below or from this layer. */
static struct bw_error *check_reply(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_request *request)
{
    if (request->error)
        return request->error;
    struct bw_error *error = check_block(bw_xlator_private(xlator), request);
    if (error)
        bw_error_add_hop(error, bw_xlator_type(xlator), bw_xlator_name(xlator), &request->address);
    BW_PROBE(
        bw_xlator_probes(xlator), block__verify, block_copy,
        &(struct bw_block_event){{.call = frame->call, .error = error}, request, request->copy});
    return error;
}

static struct bw_error *read_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  struct bw_request request, unsigned copy)
{
    request.copy = (uint8_t)copy;
    request.error = NULL;
    bw_wind(frame, bw_xlator_child(xlator, 0), &request, 1);
    return check_reply(frame, xlator, &request);
}

/*
 * Reads copy after copy into the request's buffer until one is good; false if none is. `first` is
 * the error of the request itself. If the request was for a certain copy, no other copy is tried.
 */
static bool find_good_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                           const struct bw_request *request, struct bw_error *first,
                           struct bw_bad_copies *bad, unsigned *used)
{
    if (request->copy) {
        note_bad_copy(frame, xlator, request, request->copy, first, bad);
        return false;
    }
    unsigned copies = copy_count(frame, xlator, request, NULL);
    const struct bw_error *before = first;
    for (*used = 1; *used <= copies; ++*used) {
        BW_PROBE(bw_xlator_probes(xlator), block__retry, block_copy,
                 &(struct bw_block_event){{.call = frame->call, .error = before}, request, *used});
        struct bw_error *reason = read_copy(frame, xlator, *request, *used);
        if (!reason)
            break;
        note_bad_copy(frame, xlator, request, *used, reason, bad);
        before = reason;
    }
    /* Every copy is good now; the first read was not. */
    if (*used <= copies && !bad->count) {
        note_bad_copy(frame, xlator, request, *used, BW_TAKE(first), bad);
        bad->good_again = true;
    }
    bw_error_free(first);
    return *used <= copies;
}

static struct bw_error *try_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   const struct bw_request *request, struct bw_error *first)
{
    struct bw_bad_copies bad = {.code = BW_ERROR_CORRUPT};
    unsigned used;
    bool found = find_good_copy(frame, xlator, request, first, &bad, &used);
    struct bw_error *error = explain_copies(&bad, request, found ? used : 0);
    if (!found)
        return error;
    verify_note(xlator, request->address, error);
    return NULL;
}

/* Whether a request that was read has to be repaired. The error of a tree block is completed. */
static bool is_bad(const struct bw_frame *frame, struct bw_xlator *xlator,
                   struct bw_request *request)
{
    if (request->kind == BW_REQUEST_TREE_BLOCK)
        request->error = check_reply(frame, xlator, request);
    else if (request->kind == BW_REQUEST_DATA)
        return request->error || !all_good(bw_xlator_private(xlator), request);
    return request->kind == BW_REQUEST_TREE_BLOCK && request->error;
}

/* Whether the copies of a bad range are requested before they are read. A failing disk takes long
 * for each attempt to read a bad sector, so ranges that it cannot read are not. */
static bool is_announced(const struct bw_request *bad, size_t count)
{
    if (bad->error && bad->error->code == BW_ERROR_SYSTEM)
        return false;
    return bad->kind == BW_REQUEST_DATA || (count > 1 && !bad->copy);
}

/* Requests the copies of all bad ranges of a batch together. Copies of data are read several
 * times: as a whole, and sector by sector. */
static void announce_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                            struct bw_request *const *bad, size_t count)
{
    struct bw_frame again = *frame;
    again.reread = true;
    for (size_t i = 0; i < count; i++) {
        const struct bw_range range = {bad[i]->address, bad[i]->length};
        if (!is_announced(bad[i], count))
            continue;
        const unsigned copies = copy_count(frame, xlator, bad[i], NULL);
        for (unsigned copy = 1; copy <= copies; copy++)
            if (!bad[i]->copy || copy == bad[i]->copy)
                bw_wind_advise(&again, bw_xlator_child(xlator, 0), &range, 1, copy);
    }
}

static void verify_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                         struct bw_request *requests, size_t count)
{
    struct bw_request *bad[BW_BATCH];
    size_t bad_count = 0;
    for (size_t i = 0; i < count; i++)
        if (is_bad(frame, xlator, &requests[i]))
            bad[bad_count++] = &requests[i];
    announce_copies(frame, xlator, bad, bad_count);
    for (size_t i = 0; i < bad_count; i++) {
        if (bad[i]->kind == BW_REQUEST_DATA)
            repair_data(frame, xlator, bad[i]);
        else
            bad[i]->error = try_copies(frame, xlator, bad[i], bad[i]->error);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t done = 0; done < count; done += BW_BATCH)
        verify_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_lock(&verify->lock);
    size_t repaired = verify->reported.count;
    pthread_mutex_unlock(&verify->lock);
    bw_json_text(json, "checksum", bw_checksum_name(verify->checksum));
    bw_json_number(json, "fsids", verify->fsid_count);
    bw_json_number(json, "repaired_blocks", repaired);
}

const struct bw_xlator_class bw_features_verify_class = {
    .type = "features/verify",
    .description = "verifies tree blocks and file data, and tries their other copies",
    .page =
        "For each tree block, this layer verifies the checksum, the fsid, the address, and the "
        "level, owner, generation and first key that the parent block contains. If a copy is "
        "bad, it reads the next one, and finally the copy computed from parity. -v reports bad "
        "copies that were replaced.\n\n"
        "If no copy is good, the read fails. The message lists every copy, its location and its "
        "error. File data with checksums are verified in the same way, sector by sector.\n\n"
        "To test detection, insert a layer that corrupts reads below this one. To bypass "
        "detection, insert it above:\n\n"
        "    btrfs-walk --insert debug/error-gen@chunk-map disk.img\n",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .private_size = sizeof(struct bw_verify),
    .takes = BW_TAKES(BW_CONTROL_FILE_SYSTEM),
    .operations =
        {.init = init, .fini = fini, .control = control, .read = read_requests, .dump = dump},
};
