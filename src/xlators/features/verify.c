/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * features/verify: passes only tree blocks and file data that are the ones requested.
 *
 * A batch is read from the child, and then verified. A tree block needs the right checksum and
 * fsid, and the values that its parent contains. Data are compared with their checksums, sector by
 * sector. Other kinds of requests pass.
 *
 * A request that fails is repaired on its own, in repair(). A tree block counts as one sector
 * there. One copy after the other is read, and of each copy only the sectors that no earlier copy
 * had good, so no copy has to be good as a whole. They go straight into the buffer of the request.
 * The copy that the child has chosen comes first. It is not read a second time if its bytes were
 * wrong, because the same bytes would come from the page cache. If it could not be read, its
 * sectors are read one by one: maybe only one of them fails, or the error was transient.
 *
 * If no copy of a tree block is good, their sectors are joined (joint.h): each copy may have lost
 * other ones.
 *
 * If no copy of a sector is good, there are four last resorts, two of which are options. Perhaps
 * only one bit of a copy is flipped; CRC-32C names it (ondisk/bit_flip.h). The corrected sector is
 * verified like any other. Perhaps the last keys of a leaf with the right checksum are beyond those
 * that the parent allows: like the kernel, readers get the other items. Or the parent names a
 * generation that no block can have yet, and all else is right. Or the checksum is ignored,
 * and the first copy that can be read is accepted. In each case, a tree block must pass all other
 * checks, and the items of a leaf must have no gaps between them. A corrected leaf must also have
 * no item with a serious fault (ondisk/item_rules.h): what else is wrong with the block shows
 * there. If the checksum is ignored, wrong bytes are expected, and cost only the items that contain
 * them.
 *
 * Every failed read leaves an attempt: the copy, the sectors and the reason. If all sectors are
 * good in the end, the attempts become a note about the copies that were replaced. Otherwise, they
 * become the error of the request, which lists all copies of its first bad sector.
 */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/galois.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "base/zeros.h"
#include "btrfs-walk/graph.h"
#include "graph/wind.h"
#include "ondisk/bit_flip.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"
#include "ondisk/item_rules.h"
#include "ondisk/node.h"
#include "ondisk/tree_title.h"
#include "xlators/classes.h"
#include "xlators/features/joint.h"

/* The most repairs that are reported; a stale mirror could have millions. */
enum { REPORT_LIMIT = 1 << 16 };

/* The most copies whose search for a flipped bit is remembered. */
enum { SEARCH_LIMIT = 1 << 20 };

/* A copy of a tree block or sector; copy 0 stands for all of them. Its address may be any number:
 * wrong pointers are followed, too. */
struct place {
    uint64_t address;
    uint32_t length;
    uint32_t copy;
};

static bool place_is_zero(struct place place)
{
    return !place.length;
}

static size_t place_hash(struct place place, uint64_t seed)
{
    return bw_key_hash(place.address ^ (uint64_t)place.copy << 60, seed);
}

static bool place_equal(struct place a, struct place b)
{
    return a.address == b.address && a.length == b.length && a.copy == b.copy;
}

BW_MAP(place_map, struct place, uint32_t, place);

/* Results of searches: flips as numbers, or one of these. */
enum { FLIP_NONE = UINT32_MAX - 2, FLIP_NOT_SEARCHED, FLIP_UNKNOWN };

/* Data without checksums that cannot be read are divided into pieces of this size. */
enum { UNCHECKED_SECTOR = 4096 };

/* The choices of the options `correct-bits` and `ignore-checksums`, which are bits. */
enum { NOTHING = 0, METADATA = 1, DATA = 2, ALL = 3 };
static const char *const choices[] = {"off", "metadata", "data", "all", NULL};

struct verify {
    enum bw_checksum_type checksum;
    unsigned other_checksums;   /* as in bw_checksum_accepts_block() */
    struct bw_item_rules rules; /* of the file system; the members of a leaf are not set */
    uint8_t (*fsids)[BW_UUID_SIZE];
    size_t fsid_count;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE]; /* of blocks with the first fsid; zeros: any */
    pthread_mutex_t lock;
    struct bw_key_set reported;    /* addresses whose repair was reported; protected by `lock` */
    uint64_t correct, ignore;      /* the options */
    struct place_map searched;     /* results of find_flip(), and generations of blocks whose copies
                                    * cannot be joined; protected by `lock` */
    struct bw_search_limit *limit; /* bw_fs_options.search_limit; may be NULL */
    uint64_t search_time;          /* the rest of the option, in ns; protected by `lock` */
    _Atomic uint64_t not_searched; /* mirrors of blocks and sectors for which no time was left */
    _Atomic uint64_t corrected_blocks; /* tree blocks with a corrected bit */
    atomic_bool has_unverified;        /* the checksum of a tree block was ignored */
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct verify *verify = bw_xlator_private(xlator);
    pthread_mutex_init(&verify->lock, NULL);
    verify->correct = bw_xlator_option_number(xlator, "correct-bits");
    verify->ignore = bw_xlator_option_number(xlator, "ignore-checksums");
    verify->search_time = bw_xlator_option_number(xlator, "search-time");
    if (verify->search_time)
        verify->limit = bw_xlator_inputs(xlator)->search_limit;
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct verify *verify = bw_xlator_private(xlator);
    pthread_mutex_destroy(&verify->lock);
    bw_key_set_free(&verify->reported);
    place_map_free(&verify->searched);
    free(verify->fsids);
}

void bw_verify_count(const struct bw_xlator *xlator, uint64_t *corrected, uint64_t *not_searched,
                     bool *has_unverified)
{
    const struct verify *verify = bw_xlator_private(xlator);
    if (!verify) /* the layer was not started */
        return;
    *corrected += verify->corrected_blocks;
    *not_searched += verify->not_searched;
    *has_unverified |= verify->has_unverified;
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct verify *verify = bw_xlator_private(xlator);
    const struct bw_control_file_system *facts = control->file_system;
    uint8_t(*ids)[BW_UUID_SIZE] = calloc(facts->id_count, sizeof *ids);
    if (!ids)
        return bw_error_no_memory();
    memcpy(ids, facts->ids, facts->id_count * sizeof *ids);
    free(verify->fsids);
    verify->fsids = ids;
    verify->fsid_count = facts->id_count;
    if (facts->chunk_tree_uuid)
        memcpy(verify->chunk_tree_uuid, facts->chunk_tree_uuid, BW_UUID_SIZE);
    verify->checksum = facts->checksum_type;
    verify->other_checksums = facts->other_checksums;
    verify->rules = (struct bw_item_rules){
        .sectorsize = facts->sectorsize,
        .nodesize = facts->nodesize,
        .checksum_size =
            facts->changes_checksums ? 0 : (uint32_t)bw_checksum_size(facts->checksum_type),
        .generation = facts->generation,
        .incompat = facts->incompat_flags,
    };
    if (facts->dumped)
        verify->other_checksums |= BW_CHECKSUM_BIT(BW_CHECKSUM_CRC32C);
    return NULL;
}

/* Verifying. */

/* Computes the checksums of a block, of each type. */
static void compute_all(const uint8_t *block, uint32_t length, uint8_t sums[][BW_CSUM_SIZE])
{
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++)
        bw_checksum_compute((enum bw_checksum_type)type, block + BW_CSUM_SIZE,
                            length - BW_CSUM_SIZE, sums[type]);
}

/* Corrects the checksum of a block that was computed from another one, with the old checksum of one
 * of them and the new one of the other. btrfstune overwrites as many bytes as the new type has. In
 * RAID6, the difference is multiplied by some factor. */
static bool take_out_change(uint8_t *block, uint8_t own[][BW_CSUM_SIZE],
                            uint8_t other[][BW_CSUM_SIZE], unsigned old, unsigned new)
{
    const size_t old_size = bw_checksum_size((enum bw_checksum_type)old);
    const size_t new_size = bw_checksum_size((enum bw_checksum_type) new);
    const size_t size = old_size > new_size ? old_size : new_size;
    for (unsigned is_written = 0; is_written < 2; is_written++) {
        uint8_t wanted[BW_CSUM_SIZE], factor = 0;
        bool matches = true;
        memcpy(wanted, own[old], BW_CSUM_SIZE);
        if (is_written)
            memcpy(wanted, own[new], new_size);
        for (size_t i = 0; i < size && matches; i++) {
            const uint8_t difference = block[i] ^ wanted[i];
            uint8_t change = 0;
            if (i < new_size)
                change = other[old][i] ^ other[new][i];
            if (change && !factor)
                factor = bw_field_product(difference, bw_field_inverse(change));
            matches = difference == bw_field_product(factor, change);
        }
        if (!matches)
            continue;
        memcpy(block, wanted, size);
        return true;
    }
    return false;
}

/*
 * Corrects the checksum of a tree block that was computed from parity, if btrfstune was interrupted
 * between the writes of a block of the row, with the new type of checksums, and of the parity. All
 * other bytes are right: no other bytes of that block were changed. Which blocks are in the row is
 * known only below. They are whole numbers of stripes away, and a change of the right one explains
 * all bytes of the checksum. It may be the block itself, if two devices are missing.
 */
static bool correct_old_parity(const struct bw_frame *frame, struct bw_xlator *xlator,
                               const struct bw_request *request)
{
    enum { REACH = 15 }; /* stripes in both directions: data in a row of up to 16 */
    const struct verify *verify = bw_xlator_private(xlator);
    if (!request->rebuilt || verify->other_checksums != BW_ALL_CHECKSUMS)
        return false;
    BW_AUTO_FREE uint8_t *block = malloc(request->length);
    uint8_t own[BW_CHECKSUM_TYPES][BW_CSUM_SIZE], other[BW_CHECKSUM_TYPES][BW_CSUM_SIZE];
    compute_all(request->buffer, request->length, own);
    bool is_corrected = false;
    for (int away = -REACH; block && !is_corrected && away <= REACH; away++) {
        struct bw_request read = {.kind = BW_REQUEST_RAW,
                                  .length = request->length,
                                  .address = request->address + (uint64_t)away * BW_STRIPE_LENGTH,
                                  .buffer = block};
        bw_wind(frame, bw_xlator_child(xlator, 0), &read, 1);
        BW_AUTO_ERROR struct bw_error *unreadable = read.error;
        if (unreadable)
            continue;
        compute_all(block, request->length, other);
        for (unsigned i = 0; i < BW_CHECKSUM_TYPES * BW_CHECKSUM_TYPES && !is_corrected; i++)
            is_corrected = take_out_change(request->buffer, own, other, i / BW_CHECKSUM_TYPES,
                                           i % BW_CHECKSUM_TYPES);
    }
    return is_corrected;
}

/* Everything but the checksum of a tree block, which has at least a header. */
static struct bw_error *check_contents(const struct verify *verify,
                                       const struct bw_request *request)
{
    const uint8_t *block = request->buffer;
    const struct bw_disk_header *header = (const void *)block;
    size_t id = 0;
    while (id < verify->fsid_count && memcmp(verify->fsids[id], header->fsid, BW_UUID_SIZE) != 0)
        id++;
    const bool is_stranger =
        !id && !bw_is_zeros(verify->chunk_tree_uuid, BW_UUID_SIZE) &&
        memcmp(verify->chunk_tree_uuid, header->chunk_tree_uuid, BW_UUID_SIZE) != 0;
    if (id == verify->fsid_count || is_stranger)
        return bw_error_create(BW_ERROR_CORRUPT, "block of another file system");
    return bw_node_check(block, request->length, request->address, request->expectation);
}

/* The type of the checksums of a request for data, or of tree blocks. */
static enum bw_checksum_type checksum_of(const struct verify *verify,
                                         const struct bw_request *request)
{
    return request->data && request->data->type ? (enum bw_checksum_type)(request->data->type - 1)
                                                : verify->checksum;
}

static bool sector_is_good(const struct verify *verify, const struct bw_request *request,
                           uint32_t sector)
{
    const enum bw_checksum_type type = checksum_of(verify, request);
    const size_t sectorsize = request->data->sectorsize, size = bw_checksum_size(type);
    uint8_t found[BW_CSUM_SIZE];
    bw_checksum_compute(type, (const uint8_t *)request->buffer + sector * sectorsize, sectorsize,
                        found);
    return memcmp(found, request->data->checksums + sector * size, size) == 0;
}

/* Verifies a request that the child has completed; returns its error. `bad`, unless it is NULL,
 * gets the result of each sector. */
static struct bw_error *verify_reply(const struct bw_frame *frame, struct bw_xlator *xlator,
                                     const struct bw_request *request, bool *bad)
{
    const struct verify *verify = bw_xlator_private(xlator);
    struct bw_error *error = NULL;
    if (request->error)
        return request->error;
    if (request->kind == BW_REQUEST_TREE_BLOCK) {
        if (request->length < sizeof(struct bw_disk_header))
            error = bw_error_create(BW_ERROR_CORRUPT, "%" PRIu32 " bytes cannot be a tree block",
                                    request->length);
        else if (bw_checksum_accepts_block(verify->checksum, verify->other_checksums,
                                           request->buffer, request->length) ||
                 correct_old_parity(frame, xlator, request))
            error = check_contents(verify, request);
        else
            error = bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                                    bw_checksum_name(verify->checksum));
        if (bad)
            *bad = error != NULL;
    } else if (request->data) {
        const uint32_t sectors = request->length / request->data->sectorsize;
        for (uint32_t i = 0; i < sectors && (bad || !error); i++) {
            const bool is_bad = !sector_is_good(verify, request, i);
            if (bad)
                bad[i] = is_bad;
            if (is_bad && !error)
                error = bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                                        bw_checksum_name(checksum_of(verify, request)));
        }
    }
    if (error)
        bw_error_add_hop(error, bw_xlator_type(xlator), bw_xlator_name(xlator), &request->address);
    if (request->kind == BW_REQUEST_TREE_BLOCK)
        BW_PROBE(bw_xlator_probes(xlator), block__verify, block_copy,
                 &(struct bw_block_event){
                     {.call = frame->call, .error = error}, request, request->mirror});
    return error;
}

/* Explaining. */

/* A read that failed. */
struct attempt {
    unsigned copy;       /* 0: unknown */
    uint32_t first, end; /* bad sectors are among these */
    struct bw_error *error;
};

BW_VECTOR(attempts, struct attempt);

/* A request with bad sectors. */
struct repair {
    const struct bw_frame *frame;
    struct bw_xlator *xlator;
    struct bw_request *request;
    uint32_t sectorsize, count; /* sectors; the last one may be shorter if there are no checksums */
    bool *bad;                  /* the result of each sector */
    struct attempts attempts;   /* ordered by time, so the attempts of a copy are adjacent */
    unsigned begin;             /* the copy to try first: the copy that was read, or 1 */
    unsigned used;              /* the last copy that a sector was taken from */
    bool missing;               /* no sector could be read, because its device is missing */
    bool is_accepted;           /* a sector was accepted as a last resort */
};

/* The part of a request from sector `first` up to `end`. `data` gets its expectation. */
static struct bw_request part_of(const struct repair *repair, uint32_t first, uint32_t end,
                                 unsigned copy, struct bw_data_expectation *data)
{
    const struct verify *verify = bw_xlator_private(repair->xlator);
    const uint64_t begin = (uint64_t)first * repair->sectorsize;
    const uint64_t wanted = (uint64_t)(end - first) * repair->sectorsize;
    struct bw_request part = *repair->request;
    part.address += begin;
    part.length = (uint32_t)bw_min(wanted, repair->request->length - begin);
    part.buffer = (uint8_t *)part.buffer + begin;
    part.mirror = (uint8_t)copy;
    part.error = NULL;
    part.rebuilt = false;
    if (part.data) {
        *data = *part.data;
        data->checksums += first * bw_checksum_size(checksum_of(verify, &part));
        part.data = data;
    }
    return part;
}

/* Appends an attempt; consumes its error. */
static struct bw_error *add_attempt(struct repair *repair, unsigned copy, uint32_t first,
                                    uint32_t end, struct bw_error *error)
{
    struct bw_error *failure =
        attempts_push(&repair->attempts, (struct attempt){copy, first, end, error});
    if (failure)
        bw_error_free(error);
    return failure;
}

/* The last attempt to read a sector of a copy; NULL: no attempt. */
static struct attempt *last_attempt(const struct repair *repair, unsigned copy, uint32_t sector)
{
    struct attempt *last = NULL;
    for (size_t i = 0; i < repair->attempts.count; i++) {
        struct attempt *attempt = &repair->attempts.items[i];
        if (attempt->copy == copy && attempt->first <= sector && sector < attempt->end)
            last = attempt;
    }
    return last;
}

struct bw_error *bw_verify_name_mirror(const struct bw_frame *frame, struct bw_xlator *layer,
                                       const struct bw_request *request, unsigned copy,
                                       struct bw_error *reason)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_wind_map(frame, layer, request->address, request->length, copy, &reply);
    if (!unknown && reply.location.rebuilt)
        return bw_error_prefix(reason, "mirror %u (rebuilt from parity)", copy);
    if (unknown || reason->code == BW_ERROR_MISSING_DEVICE)
        return bw_error_prefix(reason, "mirror %u", copy);
    if (reply.location.alternative)
        return bw_error_prefix(reason, "mirror %u on device %" PRIu64 ", image %u, at %" PRIu64,
                               copy, reply.location.devid, reply.location.alternative,
                               reply.location.offset);
    return bw_error_prefix(reason, "mirror %u on device %" PRIu64 " at %" PRIu64, copy,
                           reply.location.devid, reply.location.offset);
}

static struct bw_error *name_copy(const struct repair *repair, const struct bw_request *part,
                                  unsigned copy, struct bw_error *reason)
{
    return bw_verify_name_mirror(repair->frame, bw_xlator_child(repair->xlator, 0), part, copy,
                                 reason);
}

/* Puts the part in front of its error. */
static struct bw_error *name_part(const struct bw_request *part, struct bw_error *error)
{
    if (part->kind != BW_REQUEST_TREE_BLOCK)
        return bw_error_prefix(error, "data at %" PRIu64, part->address);
    return bw_error_prefix(error, "tree block %" PRIu64 " of %s (level %u)", part->address,
                           bw_tree_title(part->expectation->owner).text, part->expectation->level);
}

/* The error of a request with sectors that are bad in all copies: the errors of the first such
 * sector. */
static struct bw_error *explain_loss(const struct repair *repair, uint32_t sector, uint32_t lost,
                                     unsigned copies)
{
    struct bw_data_expectation data;
    const struct bw_request part =
        part_of(repair, sector, sector + 1, repair->request->mirror, &data);
    enum bw_error_code code = BW_ERROR_NO_MEMORY; /* the code of the last reason */
    struct bw_error *error = NULL;
    unsigned bad = 0;
    for (unsigned copy = 1; copy <= bw_max(copies, repair->request->mirror); copy++) {
        struct attempt *last = last_attempt(repair, copy, sector);
        if (!last)
            continue;
        struct bw_error *reason = name_copy(repair, &part, copy, BW_TAKE(last->error));
        code = reason->code;
        bad++;
        if (!error)
            error = bw_error_create(code, "%s", reason->message);
        bw_error_add_cause(error, reason);
    }
    if (!error || error == bw_error_no_memory())
        return bw_error_no_memory();
    /* Other parts of the data can be read. */
    error->code = code;
    if (part.kind == BW_REQUEST_DATA && code == BW_ERROR_MISSING_DEVICE && !repair->missing)
        error->code = BW_ERROR_CORRUPT;
    if (bad > 2)
        error = bw_error_prefix(error, "all %u mirrors are bad", bad);
    else
        error = bw_error_prefix(error, bad == 2 ? "both mirrors are bad" : "no good mirror");
    error = name_part(&part, error);
    return lost > 1 ? bw_error_prefix(error, "%" PRIu32 " sectors, the first", lost) : error;
}

/* Whether no repair at this address was reported yet; remembers it. */
static bool is_first_report(struct verify *verify, uint64_t address)
{
    bool is_first = false;
    pthread_mutex_lock(&verify->lock);
    if (verify->reported.count < REPORT_LIMIT)
        bw_error_free(bw_key_set_add(&verify->reported, address, &is_first));
    pthread_mutex_unlock(&verify->lock);
    return is_first;
}

/* Reports, once for each address, that the request was repaired, with the first bad sector of each
 * bad mirror. */
static void report_repair(const struct repair *repair)
{
    const struct bw_request *request = repair->request;
    if (!is_first_report(bw_xlator_private(repair->xlator), request->address))
        return;

    /* Nothing but the first read has failed, and no other copy was used. */
    const bool good_again = repair->attempts.count == 1 && repair->used == repair->begin;
    struct bw_error *note = NULL;
    for (size_t i = 0; i < repair->attempts.count; i++) {
        struct attempt *attempt = &repair->attempts.items[i];
        struct bw_data_expectation data;
        const bool is_named = i && attempt[-1].copy == attempt->copy;
        if (is_named || (!attempt->copy && !good_again))
            continue;
        const unsigned copy = attempt->copy ? attempt->copy : repair->begin;
        const struct bw_request part =
            part_of(repair, attempt->first, attempt->first + 1, copy, &data);
        struct bw_error *reason = name_copy(repair, &part, copy, BW_TAKE(attempt->error));
        if (!note && good_again)
            note = bw_error_create(BW_ERROR_CORRUPT, "good only when it was read again (%s)",
                                   reason->message);
        else if (!note)
            note = bw_error_create(BW_ERROR_CORRUPT, "used mirror %u instead of a bad one (%s)",
                                   repair->used, reason->message);
        bw_error_add_cause(note, reason);
    }
    if (note)
        bw_xlator_report(repair->xlator, BW_NOTE, name_part(request, note));
}

/* Reports that a sector without a good mirror was accepted: the flipped bit was corrected, or
 * without `flip` its checksum, the range of its keys or its generation was ignored. */
static void report_accepted(const struct repair *repair, const struct bw_request *part,
                            const struct attempt *attempt, bool has_wrong_keys,
                            const struct bw_bit_flip *flip)
{
    struct verify *verify = bw_xlator_private(repair->xlator);
    if (!is_first_report(verify, part->address))
        return;
    if (flip && part->kind == BW_REQUEST_TREE_BLOCK)
        verify->corrected_blocks++;
    /* Other sectors may have the same attempt. */
    struct bw_error *reason =
        name_copy(repair, part, attempt->copy, bw_error_brief(attempt->error));
    struct bw_error *note;
    if (!flip)
        note = bw_error_create(BW_ERROR_CORRUPT, "accepted although %s", reason->message);
    else
        note = bw_error_create(BW_ERROR_CORRUPT, "corrected bit %u of byte %" PRIu32 "%s (%s)",
                               flip->bit, flip->byte,
                               flip->in_checksum ? " of the stored checksum" : "", reason->message);
    bw_error_add_cause(note, reason);
    /* Data may have millions of such sectors, and their readers count them. */
    enum bw_severity severity = part->kind == BW_REQUEST_DATA ? BW_NOTE : BW_WARNING;
    if (has_wrong_keys)
        severity = BW_DAMAGE; /* nothing finds the items with these keys */
    bw_xlator_report(repair->xlator, severity, name_part(part, note));
}

/* Reports that a tree block was made of pieces of its copies. */
static void report_joined(const struct repair *repair)
{
    const struct bw_request *request = repair->request;
    const struct attempt *attempt = &repair->attempts.items[repair->attempts.count - 1];
    if (!is_first_report(bw_xlator_private(repair->xlator), request->address))
        return;
    struct bw_error *reason =
        name_copy(repair, request, attempt->copy, bw_error_brief(attempt->error));
    struct bw_error *note =
        bw_error_create(BW_ERROR_CORRUPT, "joined from its bad mirrors (%s)", reason->message);
    bw_error_add_cause(note, reason);
    bw_xlator_report(repair->xlator, BW_WARNING, name_part(request, note));
}

/* Reading copies. */

/* The number of copies of a range; 1 if it is unknown. `length` gets the length up to which each
 * copy is in one piece; `read`, the copy that was read: 0 unless it is the same everywhere. */
static unsigned count_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                             const struct bw_request *request, uint32_t *length, unsigned *read)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *error = bw_wind_map(
        frame, bw_xlator_child(xlator, 0), request->address, request->length, 1, &reply);
    *read = request->mirror;
    *length = request->length;
    if (error)
        return 1;
    *length = reply.length;
    if (!request->mirror && reply.length >= request->length && !reply.location.alternative)
        *read = request->mirror_read;
    return reply.copies;
}

/* Reads bad sectors from a copy. If that fails, they are read one by one, unless they are on a
 * missing device. */
static struct bw_error *read_sectors(struct repair *repair, uint32_t first, uint32_t end,
                                     unsigned copy)
{
    const struct bw_frame *frame = repair->frame;
    struct bw_data_expectation data;
    struct bw_request part = part_of(repair, first, end, copy, &data);
    if (part.kind == BW_REQUEST_TREE_BLOCK) {
        const struct bw_error *before = repair->attempts.items[repair->attempts.count - 1].error;
        BW_PROBE(bw_xlator_probes(repair->xlator), block__retry, block_copy,
                 &(struct bw_block_event){{.call = frame->call, .error = before}, &part, copy});
    }
    bw_wind(frame, bw_xlator_child(repair->xlator, 0), &part, 1);
    const bool is_missing = part.error && part.error->code == BW_ERROR_MISSING_DEVICE;
    const bool divide = part.error && !is_missing && end - first > 1;
    repair->missing &= is_missing;
    if (!part.error)
        memset(repair->bad + first, false, end - first);
    struct bw_error *error = verify_reply(frame, repair->xlator, &part, repair->bad + first);
    if (error)
        BW_TRY(add_attempt(repair, copy, first, end, error));
    for (uint32_t i = first; i < end && divide; i++)
        BW_TRY(read_sectors(repair, i, i + 1, copy));
    for (uint32_t i = first; i < end; i++) {
        if (repair->bad[i])
            continue;
        repair->used = copy;
        repair->request->rebuilt |= part.rebuilt;
    }
    return NULL;
}

/* Reads all sectors that are still bad from a copy, in runs that are in one piece. `copies` gets
 * the number of copies of the run that has most of them. */
static struct bw_error *read_copy(struct repair *repair, unsigned copy, unsigned *copies)
{
    for (uint32_t first = 0, end; first < repair->count; first = end) {
        uint32_t length;
        unsigned read;
        for (end = first; end < repair->count && repair->bad[end]; end++)
            continue;
        if (end == first) {
            end++;
            continue;
        }
        struct bw_data_expectation data;
        const struct bw_request run = part_of(repair, first, end, 0, &data);
        const unsigned found = count_copies(repair->frame, repair->xlator, &run, &length, &read);
        if (length < repair->sectorsize)
            end = first + 1;
        else if (length < run.length)
            end = first + length / repair->sectorsize;
        *copies = (unsigned)bw_max(*copies, found);
        if (copy <= found)
            BW_TRY(read_sectors(repair, first, end, copy));
    }
    return NULL;
}

/* Joins the copies of a tree block, none of which is good. Failures are remembered. */
static struct bw_error *join_copies(struct repair *repair, unsigned copies)
{
    struct verify *verify = bw_xlator_private(repair->xlator);
    const struct bw_request *request = repair->request;
    struct bw_joint joint = {.frame = repair->frame,
                             .layer = bw_xlator_child(repair->xlator, 0),
                             .request = request,
                             .copies = copies,
                             .checksum = verify->checksum,
                             .other_checksums = verify->other_checksums};
    if (request->kind != BW_REQUEST_TREE_BLOCK || request->mirror)
        return NULL;
    const uint32_t generation = (uint32_t)request->expectation->generation;
    const struct place place = {request->address, request->length, 0};
    pthread_mutex_lock(&verify->lock);
    const uint32_t failed = place_map_get(&verify->searched, place, ~generation);
    pthread_mutex_unlock(&verify->lock);
    if (failed == generation)
        return NULL;

    for (unsigned copy = 1; copy <= bw_min(copies, BW_JOINT_COPIES); copy++) {
        const struct attempt *attempt = last_attempt(repair, copy, 0);
        if (attempt && attempt->error->code == BW_ERROR_SYSTEM)
            joint.failed |= UINT64_C(1) << (copy - 1);
    }
    bool is_joined;
    BW_TRY(bw_joint_read(&joint, &is_joined));
    BW_AUTO_ERROR struct bw_error *wrong = is_joined ? check_contents(verify, request) : NULL;
    if (is_joined && !wrong) {
        report_joined(repair);
        repair->bad[0] = false;
        repair->is_accepted = true;
        return NULL;
    }
    pthread_mutex_lock(&verify->lock);
    if (verify->searched.count < SEARCH_LIMIT)
        bw_error_free(place_map_put(&verify->searched, place, generation));
    pthread_mutex_unlock(&verify->lock);
    return NULL;
}

/* The last resorts for sectors that are bad in all copies. */

/* Whether a tree block without a matching checksum passes all other checks; with `strict`, its
 * items do as well. */
static bool is_plausible(const struct verify *verify, const struct bw_request *request, bool strict)
{
    if (request->length < sizeof(struct bw_disk_header))
        return false;
    /* A wrong last key may be beyond those that belong in the block. */
    struct bw_tree_block_expectation wanted = *request->expectation;
    struct bw_request own = *request;
    own.expectation = &wanted;
    if (!strict)
        wanted.end_key = (struct bw_key){0};
    BW_AUTO_ERROR struct bw_error *error = check_contents(verify, &own);
    if (error)
        return false;
    const struct bw_node node = bw_node_view(request->buffer, request->length);
    if (node.level)
        return true;
    if (!strict)
        return bw_leaf_is_packed(&node);
    const struct bw_disk_header *header = request->buffer;
    struct bw_item_rules rules = verify->rules;
    rules.owner = bw_get64(header->owner);
    rules.in_log = rules.owner == BW_TREE_LOG;
    rules.leaf_generation = rules.in_log ? UINT64_MAX : bw_get64(header->generation);
    return bw_leaf_is_sound(&node, &rules);
}

/* Whether the header of a tree block differs from the expected one in at most one bit. Others need
 * no search: more than one bit is wrong. */
static bool header_is_near(const struct verify *verify, const struct bw_request *request)
{
    const struct bw_disk_header *header = request->buffer;
    unsigned fsid = UINT_MAX;
    for (size_t i = 0; i < verify->fsid_count; i++) {
        const unsigned bits = bw_bits_different(header->fsid, verify->fsids[i], BW_UUID_SIZE);
        fsid = bits < fsid ? bits : fsid;
    }
    const uint64_t bytenr = bw_get64(header->bytenr) ^ request->address;
    const uint64_t generation = bw_get64(header->generation) ^ request->expectation->generation;
    const unsigned level = header->level ^ request->expectation->level;
    return fsid <= 1 && fsid + (unsigned)__builtin_popcountll(bytenr) +
                                (unsigned)__builtin_popcountll(generation) +
                                (unsigned)__builtin_popcount(level) <=
                            1;
}

/* Subtracts a search from a limit, which other processes may change at the same time. */
static void subtract_search(struct bw_search_limit *limit, uint64_t spent, bool not_searched)
{
    uint64_t left = __atomic_load_n(&limit->nanoseconds, __ATOMIC_RELAXED), next;
    do {
        next = left - (spent < left ? spent : left);
    } while (!__atomic_compare_exchange_n(&limit->nanoseconds, &left, next, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    if (not_searched)
        __atomic_fetch_add(&limit->not_searched, 1, __ATOMIC_RELAXED);
}

/* Tries all bits, or computes the flipped one if the checksum names it. */
static bool try_bits(enum bw_checksum_type type, struct bw_request *part, struct bw_bit_flip *flip)
{
    if (part->kind == BW_REQUEST_TREE_BLOCK)
        return bw_bit_flip_find_in_block(type, part->buffer, part->length, flip);
    return bw_bit_flip_find(type, part->buffer, part->length, part->data->checksums, flip);
}

/* Finds the flipped bit of a mirror of a tree block or a sector; false if none exists, or it was
 * not found. CRC-32C names it. With other checksums, all bits are tried, within the limit of time.
 * The result is remembered, so no copy is searched twice, and none is counted twice. */
static bool find_flip(struct verify *verify, struct bw_request *part, struct bw_bit_flip *flip)
{
    const bool is_block = part->kind == BW_REQUEST_TREE_BLOCK;
    enum bw_checksum_type type = checksum_of(verify, part);
    if (is_block && verify->other_checksums & BW_CHECKSUM_BIT(BW_CHECKSUM_CRC32C))
        type = BW_CHECKSUM_CRC32C;
    if (bw_bit_flip_is_cheap(type))
        return try_bits(type, part, flip);

    /* The result of an earlier search. */
    const struct place place = {part->address, part->length, part->mirror};
    pthread_mutex_lock(&verify->lock);
    uint32_t packed = place_map_get(&verify->searched, place, FLIP_UNKNOWN);
    uint64_t time = verify->search_time;
    pthread_mutex_unlock(&verify->lock);
    if (packed != FLIP_UNKNOWN) {
        *flip = (struct bw_bit_flip){packed >> 4, packed & 7, packed >> 3 & 1};
        return packed != FLIP_NONE && packed != FLIP_NOT_SEARCHED;
    }
    struct bw_search_limit *limit = verify->limit;
    if (limit && !__atomic_load_n(&limit->nanoseconds, __ATOMIC_RELAXED))
        time = 0;

    /* The search. It is useless if more is wrong than one bit, or this is another block. */
    const int64_t begin = bw_clock(CLOCK_MONOTONIC);
    const bool is_useless =
        is_block && (!header_is_near(verify, part) ||
                     bw_checksum_matches_block(type, part->buffer, part->length));
    const bool found = !is_useless && time && try_bits(type, part, flip);
    if (found)
        packed = flip->byte << 4 | (uint32_t)flip->in_checksum << 3 | flip->bit;
    else if (is_useless || time)
        packed = FLIP_NONE;
    else
        packed = FLIP_NOT_SEARCHED;
    const uint64_t spent = (uint64_t)(bw_clock(CLOCK_MONOTONIC) - begin);

    /* The result, and the rest of the limit. */
    pthread_mutex_lock(&verify->lock);
    verify->search_time -= spent < verify->search_time ? spent : verify->search_time;
    verify->not_searched += packed == FLIP_NOT_SEARCHED;
    if (verify->searched.count < SEARCH_LIMIT)
        bw_error_free(place_map_put(&verify->searched, place, packed));
    pthread_mutex_unlock(&verify->lock);
    if (limit)
        subtract_search(limit, spent, packed == FLIP_NOT_SEARCHED);
    return found;
}

/* Whether the parent names a generation that no block can have yet; a log is written one ahead. */
static bool is_of_future(const struct verify *verify, const struct bw_request *request)
{
    return request->expectation->generation > verify->rules.generation + 1;
}

/* Whether nothing is wrong with a tree block but what its parent says about it: the last keys of a
 * leaf are beyond those that it allows, or its generation is an impossible one. */
static bool only_parent_is_wrong(const struct verify *verify, const struct bw_request *request)
{
    const struct bw_disk_header *header = request->buffer;
    struct bw_tree_block_expectation wanted = *request->expectation;
    struct bw_request own = *request;
    own.expectation = &wanted;
    if (request->length < sizeof *header || (header->level && !is_of_future(verify, request)))
        return false;
    if (is_of_future(verify, request))
        wanted.generation = bw_min(bw_get64(header->generation), verify->rules.generation);
    return is_plausible(verify, &own, false) &&
           bw_checksum_accepts_block(verify->checksum, verify->other_checksums, request->buffer,
                                     request->length);
}

/* Accepts a sector that is bad in all copies, if one of them permits one of the last resorts. */
static void accept_sector(struct repair *repair, uint32_t sector, unsigned copies)
{
    enum { CORRECT, OTHER_PARENT, IGNORE, RESORTS };
    struct verify *verify = bw_xlator_private(repair->xlator);
    struct bw_request *request = repair->request;
    const bool is_block = request->kind == BW_REQUEST_TREE_BLOCK;
    const uint64_t applies_to[] = {verify->correct, METADATA, verify->ignore};
    for (unsigned i = 0; i < RESORTS * copies; i++) {
        const unsigned resort = i / copies, copy = i % copies + 1;
        const struct attempt *attempt = last_attempt(repair, copy, sector);
        if (!(applies_to[resort] & (is_block ? METADATA : DATA)) || !attempt ||
            attempt->error->code != BW_ERROR_CORRUPT)
            continue;

        /* The copy again, since the buffer has the last one that was tried. */
        struct bw_data_expectation data;
        struct bw_bit_flip flip = {0};
        struct bw_request part = part_of(repair, sector, sector + 1, copy, &data);
        bw_wind(repair->frame, bw_xlator_child(repair->xlator, 0), &part, 1);
        BW_AUTO_ERROR struct bw_error *unreadable = part.error;
        if (unreadable || (resort == CORRECT && !find_flip(verify, &part, &flip)))
            continue;
        if (resort == CORRECT && !flip.in_checksum) {
            bw_bit_flip_apply(&flip, part.buffer);
            BW_AUTO_ERROR struct bw_error *bad =
                verify_reply(repair->frame, repair->xlator, &part, NULL);
            if (bad)
                continue;
        }
        if (resort == OTHER_PARENT && !only_parent_is_wrong(verify, &part))
            continue;
        if (resort != OTHER_PARENT && is_block && !is_plausible(verify, &part, resort == CORRECT))
            continue;

        repair->bad[sector] = false;
        repair->is_accepted = true;
        request->corrected |= resort == CORRECT;
        request->unverified |= resort == IGNORE;
        if (is_block && resort == IGNORE)
            verify->has_unverified = true;
        report_accepted(repair, &part, attempt,
                        resort == OTHER_PARENT && !is_of_future(verify, &part),
                        resort == CORRECT ? &flip : NULL);
        return;
    }
}

static void free_repair(struct repair *repair)
{
    for (size_t i = 0; i < repair->attempts.count; i++)
        bw_error_free(repair->attempts.items[i].error);
    attempts_free(&repair->attempts);
    free(repair->bad);
}

/*
 * Repairs a request whose bytes are wrong or, unless `was_read`, could not be read: replaces bad
 * sectors from other copies. Returns the error if some stay bad. Its code is
 * BW_ERROR_MISSING_DEVICE only if all copies of the whole data are on missing devices.
 */
static struct bw_error *repair(const struct bw_frame *frame, struct bw_xlator *xlator,
                               struct bw_request *request, bool was_read)
{
    struct repair repair __attribute__((cleanup(free_repair))) = {
        .frame = frame,
        .xlator = xlator,
        .request = request,
        .sectorsize = UNCHECKED_SECTOR,
        .begin = request->mirror_read ? request->mirror_read : 1,
        .missing = request->error->code == BW_ERROR_MISSING_DEVICE};
    if (request->kind == BW_REQUEST_TREE_BLOCK)
        repair.sectorsize = request->length;
    else if (request->data)
        repair.sectorsize = request->data->sectorsize;
    repair.count =
        (uint32_t)(((uint64_t)request->length + repair.sectorsize - 1) / repair.sectorsize);
    repair.bad = calloc(repair.count, sizeof *repair.bad);
    if (!repair.bad) {
        bw_error_free(request->error);
        return bw_error_no_memory();
    }

    /* The result of the first read: the first attempt. */
    uint32_t length, first = 0, lost = 0;
    unsigned read, copies = count_copies(frame, xlator, request, &length, &read);
    memset(repair.bad, true, repair.count);
    for (uint32_t i = 0; was_read && request->data && i < repair.count; i++)
        repair.bad[i] = !sector_is_good(bw_xlator_private(xlator), request, i);
    while (!repair.bad[first])
        first++;
    BW_TRY(add_attempt(&repair, read, first, repair.count, BW_TAKE(request->error)));

    /* The copy that was read, then all others, without the sectors that are good already. */
    const bool may_be_good = !was_read && !repair.missing && (!request->mirror || repair.count > 1);
    for (uint32_t i = 0; read && may_be_good && i < repair.count; i++)
        BW_TRY(read_sectors(&repair, i, i + 1, read));
    if (!read)
        BW_TRY(read_copy(&repair, repair.begin, &copies));
    for (unsigned copy = 1; !request->mirror && copy <= copies; copy++)
        if (copy != repair.begin)
            BW_TRY(read_copy(&repair, copy, &copies));

    BW_TRY(repair.bad[0] ? join_copies(&repair, copies) : NULL);

    /* The last resorts, and the result. */
    for (uint32_t i = repair.count; i-- > 0;) {
        if (repair.bad[i] && !request->mirror)
            accept_sector(&repair, i, copies);
        if (repair.bad[i]) {
            first = i;
            lost++;
        }
    }
    if (lost)
        return explain_loss(&repair, first, lost, copies);
    if (!repair.is_accepted)
        report_repair(&repair);
    return NULL;
}

/*
 * Announces the copies of all bad ranges of a batch together, before one after the other is read.
 * A failing disk takes long for each attempt to read a bad sector, so ranges that it could not read
 * are not announced.
 */
static void announce_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                            struct bw_request *const *bad, size_t count)
{
    struct bw_frame again = *frame;
    again.reread = true; /* as a whole, and sector by sector */
    for (size_t i = 0; i < count; i++) {
        const struct bw_range range = {bad[i]->address, bad[i]->length};
        const bool is_single = bad[i]->kind == BW_REQUEST_TREE_BLOCK && count == 1;
        uint32_t length;
        unsigned read;
        if (bad[i]->mirror || is_single || bad[i]->error->code == BW_ERROR_SYSTEM)
            continue;
        const unsigned copies = count_copies(frame, xlator, bad[i], &length, &read);
        for (unsigned copy = 1; copy <= copies; copy++)
            if (copy != read)
                bw_wind_advise(&again, bw_xlator_child(xlator, 0), &range, 1, copy);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t done = 0; done < count; done += BW_BATCH) {
        struct bw_request *bad[BW_BATCH];
        bool was_read[BW_BATCH];
        size_t bad_count = 0, end = done + bw_next_batch(count - done);
        for (size_t i = done; i < end; i++) {
            if (requests[i].kind != BW_REQUEST_TREE_BLOCK && requests[i].kind != BW_REQUEST_DATA)
                continue;
            was_read[bad_count] = !requests[i].error;
            requests[i].error = verify_reply(frame, xlator, &requests[i], NULL);
            if (requests[i].error)
                bad[bad_count++] = &requests[i];
        }
        announce_copies(frame, xlator, bad, bad_count);
        for (size_t i = 0; i < bad_count; i++)
            bad[i]->error = repair(frame, xlator, bad[i], was_read[i]);
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct verify *verify = bw_xlator_private(xlator);
    pthread_mutex_lock(&verify->lock);
    const size_t repaired = verify->reported.count;
    pthread_mutex_unlock(&verify->lock);
    bw_json_text(json, "checksum", bw_checksum_name(verify->checksum));
    bw_json_number(json, "fsids", verify->fsid_count);
    bw_json_number(json, "repaired_blocks", repaired);
    bw_json_number(json, "blocks_not_searched", verify->not_searched);
}

static const struct bw_option options[] = {
    {"correct-bits", BW_OPTION_ENUM, "metadata", 0, 0,
     "blocks to correct if one bit is flipped and no mirror is good", choices},
    {"ignore-checksums", BW_OPTION_ENUM, "off", 0, 0,
     "blocks to accept with a wrong checksum if no mirror is good", choices},
    {"search-time", BW_OPTION_TIME, "0", 0, UINT64_C(3600000000000),
     "limit of time for trying all bits, with checksums other than CRC-32C", NULL},
    {0},
};

const struct bw_xlator_class bw_features_verify_class = {
    .type = "features/verify",
    .description = "verifies tree blocks and file data, and tries their other copies",
    .page =
        "For each tree block, this layer verifies the checksum, the fsid, the address, and the "
        "level, owner, generation and first key that the parent block contains. If a copy is "
        "bad, it reads the next one, and finally the copy computed from parity. -v reports bad "
        "copies that were replaced.\n\n"
        "If no mirror is good, their sectors are joined: if a combination of them matches the "
        "checksum and the parent, it is used, and reported.\n\n"
        "If that fails, too, the read fails. The message lists every copy, its location and its "
        "error. File data with checksums are verified in the same way, sector by sector.\n\n"
        "If one bit of a tree block is flipped, its CRC-32C names the bit. The corrected block is "
        "verified again, passes all checks, and is reported. File data are corrected only if the "
        "option correct-bits includes them. The other checksums name no bit: search-time sets how "
        "long this layer may try one bit after the other. With ignore-checksums, a tree block that "
        "passes all other checks is accepted, and so are data. A leaf whose last keys alone are "
        "wrong, since they are beyond those that belong in it, is always accepted: a message says "
        "so. So is a block if its parent names a generation that no block can have yet.\n\n"
        "To test detection, insert a layer that corrupts reads below this one. To bypass "
        "detection, insert it above:\n\n"
        "    btrfs-walk --insert debug/error-gen@chunk-map disk.img\n",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .options = options,
    .private_size = sizeof(struct verify),
    .takes = BW_TAKES(BW_CONTROL_FILE_SYSTEM),
    .operations =
        {.init = init, .fini = fini, .control = control, .read = read_requests, .dump = dump},
};
