/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/md: shows an array of Linux software RAID as a device. Its children are the devices of the
 * array, in any order; their superblocks (md_metadata.c) contain their roles. The level and the
 * layout of the array determine where each of its bytes is; their source are the personalities of
 * the levels in the kernel's drivers/md.
 *
 * A request is divided into pieces, one for each chunk, which are read together. A piece whose
 * device is missing, or cannot be read, is read from another copy or, with parity, computed from
 * the rest of its row. P of a row is the sum of all data pieces x over GF(2^8), Q the sum of
 * g(x) * x (base/galois.h).
 *
 * The numbers in superblocks may be hostile: sizes are validated before they are multiplied, and an
 * array is never much larger than its devices.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/galois.h"
#include "base/human.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/md_metadata.h"
#include "xlators/pieces.h"

/* RAID0 over devices of different sizes has zones: in each, the devices that are large enough. */
struct zone {
    uint64_t end;   /* on the array */
    uint64_t begin; /* on each device */
    uint32_t first; /* index of its first device in `striped` */
    uint32_t count; /* number of devices */
};

/* A device of the array. */
struct member {
    struct bw_xlator *layer; /* NULL: it is missing */
    uint64_t offset;         /* where its data begin */
    uint64_t data_size;      /* according to its superblock; with RAID0, of whole chunks */
    uint64_t size;           /* less if the device was cut off */
    uint64_t current;        /* its data are valid up to here */
    bool is_replacement;
    struct bw_range *bad; /* where its data are not valid, in its data */
    size_t bad_count;
};

/* A block that only the journal has. */
struct journaled {
    uint64_t offset; /* in the data of its device */
    uint32_t role;
    bool is_cached; /* the parity of its row belongs to older data */
    uint64_t at;    /* on the device with the journal */
};

BW_VECTOR(journaled_blocks, struct journaled);

struct md {
    const struct bw_piece_map *pieces; /* the first member, for bw_pieces_*() */
    struct bw_md_superblock array;     /* the superblock of the newest member */
    struct member *members;            /* indexed by role */
    uint32_t given;                    /* members that are not missing */
    bool has_bad;                      /* a member has bad ranges */
    uint64_t size;                     /* bytes of the array */

    /* RAID4, 5 and 6. */
    struct bw_xlator *journal;         /* NULL: none, or it is empty */
    struct journaled_blocks journaled; /* ordered by offset */

    /* RAID0. */
    struct zone *zones;
    uint32_t zone_count;
    uint32_t *striped; /* roles of the devices of each zone */

    /* RAID10. */
    uint32_t near_copies, far_copies; /* copies of each chunk, side by side and far apart */
    uint32_t set_size;                /* devices in a set, in which far copies move */
    uint64_t stride;                  /* distance between far copies */
    bool interleaves;                 /* far copies follow directly: the layout "offset" */
};

/* Where a byte of the array is. */
struct place {
    uint32_t role;
    uint64_t offset; /* offset in the data of that device */
    uint64_t length; /* bytes that follow there */

    /* RAID4, 5 and 6: a row has a chunk of each device at the same offset. */
    uint32_t p, q; /* roles of the devices with parity; q: only in RAID6 */
    bool by_role;  /* the coefficients of Q follow the roles */
};

/* Devices with parity in each row: 0 to 2. */
static uint32_t parity_of(const struct md *md)
{
    if (md->array.level == 6)
        return 2;
    return md->array.level == 4 || md->array.level == 5;
}

/* RAID0. */

/* In the original layout, chunks are counted from the beginning of the array, in the other one from
 * the beginning of the zone. */
static void locate_striped(const struct md *md, uint64_t address, struct place *place)
{
    enum { ORIGINAL = 1 };
    const uint64_t chunk = md->array.chunk;
    const struct zone *zone = md->zones;
    while (address >= zone->end)
        zone++;
    const uint64_t inside = address - (zone == md->zones ? 0 : zone[-1].end);
    const bool is_original = md->array.has_layout && md->array.layout == ORIGINAL;
    const uint64_t counted = is_original ? address : inside;
    place->role = md->striped[zone->first + counted / chunk % zone->count];
    place->offset = zone->begin + inside / (chunk * zone->count) * chunk + counted % chunk;
    place->length = chunk - counted % chunk;
}

/* RAID10. */

/* The device with the next far copy. The last set also has the devices that do not fill a set. */
static uint32_t next_far_device(const struct md *md, uint32_t device)
{
    const uint32_t count = md->array.device_count, set = md->set_size;
    const uint32_t begin = device / set * set, last = (count / set - 1) * set;
    device += md->near_copies;
    if (count % set && device > last)
        return last + (device - last) % (set + count % set);
    return begin + device % set;
}

static void locate_mirrored(const struct md *md, uint64_t address, uint32_t copy,
                            struct place *place)
{
    const uint64_t chunk = md->array.chunk, count = md->array.device_count;
    const uint64_t number = address / chunk * md->near_copies + copy / md->far_copies;
    uint64_t row = number / count;
    place->role = (uint32_t)(number % count);
    /* near copies beyond the last device continue in the next row */
    const uint64_t first = address / chunk * md->near_copies / count;
    row = md->interleaves ? first * md->far_copies + (row - first) : row;
    place->offset = row * chunk + address % chunk;
    place->length = chunk - address % chunk;
    for (uint32_t far = 0; far < copy % md->far_copies; far++) {
        place->role = next_far_device(md, place->role);
        place->offset += md->stride;
    }
}

/* RAID4, 5 and 6. */

/* Layouts of RAID5, and of RAID6, which adds others. */
enum order {
    LEFT_ASYMMETRIC,
    RIGHT_ASYMMETRIC,
    LEFT_SYMMETRIC,
    RIGHT_SYMMETRIC,
    PARITY_FIRST,
    PARITY_LAST,
    ROTATING_ZERO_RESTART = 8,
    ROTATING_N_RESTART,
    ROTATING_N_CONTINUE,
    Q_LAST = 16, /* added to a layout of RAID5 on all devices but the last */
};

static bool is_known(const struct md *md)
{
    const uint32_t number = md->array.layout;
    return md->array.level == 4 || number <= PARITY_LAST ||
           (md->array.level == 6 &&
            ((number >= ROTATING_ZERO_RESTART && number <= ROTATING_N_CONTINUE) ||
             (number >= Q_LAST && number <= Q_LAST + PARITY_FIRST)));
}

/* The device with P of a row; `last`, if the parity does not rotate and is not first. */
static uint32_t place_p(uint32_t order, uint32_t count, uint64_t row, uint32_t last)
{
    const uint32_t turn = (uint32_t)(row % count);
    switch (order) {
    case LEFT_ASYMMETRIC:
    case LEFT_SYMMETRIC:
    case ROTATING_N_CONTINUE:
        return count - 1 - turn;
    case RIGHT_ASYMMETRIC:
    case RIGHT_SYMMETRIC:
    case ROTATING_ZERO_RESTART:
        return turn;
    case ROTATING_N_RESTART:
        return count - 1 - (uint32_t)((row + 1) % count);
    default:
        return order == PARITY_FIRST ? 0 : last;
    }
}

/* The device with data piece `data` of a row with one parity device among `count`. */
static uint32_t place_in_raid5(uint32_t order, uint32_t count, uint64_t row, uint32_t data,
                               struct place *place)
{
    place->p = place_p(order, count, row, count - 1);
    if (order == LEFT_SYMMETRIC || order == RIGHT_SYMMETRIC)
        return (place->p + 1 + data) % count;
    return data + (data >= place->p);
}

/* The same for RAID6. Mostly, Q follows P. */
static uint32_t place_in_raid6(uint32_t order, uint32_t count, uint64_t row, uint32_t data,
                               struct place *place)
{
    if (order >= Q_LAST) {
        place->q = count - 1;
        return place_in_raid5(order - Q_LAST, count - 1, row, data, place);
    }
    place->by_role = order >= ROTATING_ZERO_RESTART;
    place->p = place_p(order, count, row, count - 2);
    place->q = (place->p + 1) % count;
    if (order == ROTATING_N_CONTINUE) {
        place->q = (place->p + count - 1) % count;
        return (place->p + 1 + data) % count;
    }
    /* The data pieces begin after Q, or fill the devices around P and Q in order. */
    if (order == LEFT_SYMMETRIC || order == RIGHT_SYMMETRIC)
        return (place->p + 2 + data) % count;
    if (place->q == 0)
        return data + 1;
    return data + (data >= place->p ? 2 : 0);
}

/* A data piece of a row of RAID4, 5 or 6. */
static void locate_in_row(const struct md *md, uint64_t address, struct place *place)
{
    const uint64_t chunk = md->array.chunk, number = address / chunk;
    const uint32_t count = md->array.device_count, pieces = count - parity_of(md);
    const uint32_t order = md->array.level == 4 ? PARITY_LAST : md->array.layout;
    const uint32_t data = (uint32_t)(number % pieces);
    const uint64_t row = number / pieces;
    *place = (struct place){.offset = row * chunk + address % chunk,
                            .length = chunk - address % chunk,
                            .q = UINT32_MAX};
    if (md->array.level == 6)
        place->role = place_in_raid6(order, count, row, data, place);
    else
        place->role = place_in_raid5(order, count, row, data, place);
}

/* Copies of each byte that are stored, not computed. */
static uint32_t copies_of(const struct md *md)
{
    if (md->array.level == 1)
        return md->array.device_count;
    return md->array.level == 10 ? md->near_copies * md->far_copies : 1;
}

/* Locates a copy of the byte at `address`, which is less than the size. */
static void locate(const struct md *md, uint64_t address, uint32_t copy, struct place *place)
{
    switch (md->array.level) {
    case BW_MD_LINEAR:
        place->role = 0;
        while (address >= md->members[place->role].data_size)
            address -= md->members[place->role++].data_size;
        place->offset = address;
        place->length = md->members[place->role].data_size - address;
        break;
    case 0:
        locate_striped(md, address, place);
        break;
    case 1:
        *place = (struct place){.role = copy, .offset = address, .length = md->size - address};
        break;
    case 10:
        locate_mirrored(md, address, copy, place);
        break;
    default:
        locate_in_row(md, address, place);
    }
}

/* Setting up the layout. */

static struct bw_error *refuse_array(const char *problem)
{
    return bw_error_create(BW_ERROR_UNSUPPORTED, "the MD array has %s", problem);
}

/* Zones of RAID0: each ends where the smallest of its devices ends. */
static struct bw_error *add_zones(struct md *md)
{
    const uint32_t count = md->array.device_count;
    uint32_t used = 0;
    md->zones = calloc(count, sizeof *md->zones);
    md->striped = calloc((size_t)count * count, sizeof *md->striped);
    if (!md->zones || !md->striped)
        return bw_error_no_memory();
    for (uint64_t begin = 0, end, total = 0;; begin = end) {
        end = UINT64_MAX;
        for (uint32_t i = 0; i < count; i++)
            if (md->members[i].data_size > begin && md->members[i].data_size < end)
                end = md->members[i].data_size;
        if (end == UINT64_MAX)
            return NULL;
        struct zone *zone = &md->zones[md->zone_count++];
        *zone = (struct zone){.begin = begin, .first = used};
        for (uint32_t i = 0; i < count; i++)
            if (md->members[i].data_size >= end)
                md->striped[used++] = i;
        zone->count = used - zone->first;
        zone->end = total += (end - begin) * zone->count;
    }
}

/* The kernel computes the chunks of the array first, then the chunks of each device. */
static struct bw_error *set_mirrors(struct md *md)
{
    const uint32_t number = md->array.layout, count = md->array.device_count;
    const uint32_t nears = number & 255, fars = number >> 8 & 255, sets = number >> 17;
    md->near_copies = nears;
    md->far_copies = fars;
    md->interleaves = number >> 16 & 1;
    md->set_size = nears * fars;
    if (sets == 0)
        md->set_size = count;
    else if (sets == 1)
        md->set_size = fars ? count / fars : 0;
    if (!nears || !fars || nears * fars > count || sets > 2 || !md->set_size ||
        md->set_size > count)
        return refuse_array("an unknown layout of RAID10");
    const uint64_t chunks = md->array.used_size / md->array.chunk / fars * count / nears;
    if (chunks > INT64_MAX / md->array.chunk)
        return refuse_array("an impossible size");
    const uint64_t used = (chunks * nears * fars + count - 1) / count;
    md->stride = md->interleaves ? md->array.chunk : used / fars * md->array.chunk;
    md->size = chunks * md->array.chunk;
    return NULL;
}

/* Sets the size of the array and the places of its chunks. BW_ERROR_UNSUPPORTED if the layout is
 * not known or has impossible numbers. */
static struct bw_error *init_layout(struct md *md)
{
    const int level = md->array.level;
    const uint64_t chunk = md->array.chunk;
    const uint32_t count = md->array.device_count;
    if (level != 1 && level != BW_MD_LINEAR && !chunk)
        return refuse_array("no chunk size");
    if (level == 1) {
        md->size = md->array.used_size;
        return NULL;
    }
    if (level == 10)
        return set_mirrors(md);
    if (level >= 4) {
        const uint32_t parity = parity_of(md), data = count - parity;
        const uint64_t chunks = md->array.used_size / chunk;
        if (!is_known(md) || count < parity + 1 || count > BW_FIELD_VECTORS)
            return refuse_array("an unknown layout");
        if (chunks > INT64_MAX / chunk / data)
            return refuse_array("an impossible size");
        md->size = chunks * chunk * data;
        return NULL;
    }

    /* Linear arrays and RAID0 use all of each device, in whole chunks. */
    for (uint32_t i = 0; i < count; i++) {
        struct member *member = &md->members[i];
        member->data_size -= chunk ? member->data_size % chunk : 0;
        if (member->data_size > INT64_MAX - md->size)
            return refuse_array("an impossible size");
        md->size += member->data_size;
    }
    return level == 0 ? add_zones(md) : NULL;
}

/* Reduces the size of an array to the part before the end of its data on devices that were cut
 * off. */
static void cut_layout(struct md *md)
{
    uint64_t longest = 0, begin = 0, end = 0;
    for (uint32_t i = 0; i < md->array.device_count; i++) {
        const struct member *member = &md->members[i];
        longest = bw_max(longest, member->size);
        if (md->array.level == BW_MD_LINEAR && member->size)
            end = begin + bw_min(member->size, member->data_size);
        begin += member->data_size;
    }
    if (md->array.level == 1) {
        end = longest;
    } else if (md->array.level != BW_MD_LINEAR) {
        /* A row has at most one chunk of each device that is not parity. */
        const uint64_t chunk = md->array.chunk, rows = longest / chunk + (longest % chunk != 0);
        if (__builtin_mul_overflow(rows, md->array.device_count - parity_of(md), &end) ||
            __builtin_mul_overflow(end, chunk, &end))
            end = UINT64_MAX;
    }
    md->size = bw_min(md->size, end);
}

/* How far the bytes of a member from an offset on are all bad, or all not; at most `length`. */
static uint64_t until_border(const struct member *member, uint64_t offset, uint64_t length,
                             bool *is_bad)
{
    *is_bad = false;
    for (size_t i = 0; i < member->bad_count; i++) {
        const struct bw_range *bad = &member->bad[i];
        uint64_t border = length;
        if (bad->address > offset) {
            border = bad->address - offset;
        } else if (offset - bad->address < bad->length) {
            border = bad->length - (offset - bad->address);
            *is_bad = true;
        }
        length = bw_min(length, border);
    }
    return length;
}

static bool is_current(const struct md *md, uint32_t role, uint64_t offset, uint64_t length)
{
    const struct member *member = &md->members[role];
    bool is_bad;
    return member->layer && offset <= member->current && length <= member->current - offset &&
           until_border(member, offset, length, &is_bad) == length && !is_bad;
}

/* The journal: it gets data and parity before the other devices. If it has both of a row, the
 * kernel writes them there when it starts the array. If it has only data, these belong to the
 * array, but parity and the other data of the row still belong to the older data. */

/* The first block in the journal whose offset is not less. */
static size_t first_journaled(const struct md *md, uint64_t offset)
{
    size_t begin = 0, end = md->journaled.count;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (md->journaled.items[middle].offset < offset)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* How far the blocks of a row from an offset on are all in the journal, or all not. */
static uint64_t until_journaled(const struct md *md, uint64_t offset, uint64_t length)
{
    const uint64_t begin = offset / BW_MD_LOG_BLOCK * BW_MD_LOG_BLOCK;
    const size_t i = first_journaled(md, begin);
    if (i == md->journaled.count)
        return length;
    const uint64_t found = md->journaled.items[i].offset;
    return bw_min(length, found == begin ? begin + BW_MD_LOG_BLOCK - offset : found - offset);
}

/* Where the journal has a part of a device. It contains either the bytes of the array or, without
 * `with_cached`, those of which the row has the parity. */
static bool find_journaled(const struct md *md, uint32_t role, uint64_t offset, bool with_cached,
                           uint64_t *at)
{
    const uint64_t begin = offset / BW_MD_LOG_BLOCK * BW_MD_LOG_BLOCK;
    bool is_found = false;
    for (size_t i = first_journaled(md, begin);
         i < md->journaled.count && md->journaled.items[i].offset == begin; i++) {
        const struct journaled *block = &md->journaled.items[i];
        if (block->role != role || (block->is_cached && !with_cached))
            continue;
        *at = block->at + (offset - begin); /* the cached ones are the last */
        is_found = true;
    }
    return is_found;
}

static int compare_logged(const void *a, const void *b)
{
    const struct bw_md_logged *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

/* Adds the blocks of a row that the other devices lack. `log` is the history of the row. */
static struct bw_error *replay_row(struct md *md, const struct bw_md_logged *log, size_t count)
{
    const uint32_t devices = md->array.device_count;
    BW_AUTO_FREE uint64_t *blocks = calloc(2 * (size_t)devices, sizeof *blocks); /* 0: none */
    if (!blocks)
        return bw_error_no_memory();
    uint64_t *written = blocks, *pending = blocks + devices;
    bool has_data = false, has_parity = false;
    for (size_t i = 0; i <= count; i++) {
        const bool is_end = i == count, is_data = !is_end && log[i].kind == BW_MD_LOG_DATA;
        const bool is_flush = !is_end && log[i].kind == BW_MD_LOG_FLUSH;
        const bool is_complete = has_parity && (is_end || is_data);
        /* parity without data: the row was written before */
        for (uint32_t role = 0; is_complete && has_data && role < devices; role++)
            if (pending[role])
                written[role] = pending[role];
        if (is_complete || is_flush) {
            memset(pending, 0, devices * sizeof *pending);
            has_data = has_parity = false;
        }
        if (is_end || is_flush)
            continue;
        pending[log[i].role] = log[i].at;
        has_data |= is_data;
        has_parity |= !is_data;
    }
    for (uint32_t i = 0; i < 2 * devices; i++)
        if (blocks[i])
            BW_TRY(
                journaled_blocks_push(&md->journaled, (struct journaled){.offset = log->place,
                                                                         .role = i % devices,
                                                                         .is_cached = i >= devices,
                                                                         .at = blocks[i]}));
    return NULL;
}

/* Finds the blocks that the other devices lack. */
static struct bw_error *replay_journal(struct md *md, struct bw_md_log *log)
{
    const uint64_t chunk = md->array.chunk;
    const uint32_t pieces = md->array.device_count - parity_of(md);
    for (size_t i = 0; i < log->count; i++) {
        struct bw_md_logged *logged = &log->items[i];
        const bool is_data = logged->kind == BW_MD_LOG_DATA;
        struct place place;
        locate_in_row(md, is_data ? logged->place : logged->place / chunk * chunk * pieces, &place);
        logged->role = logged->kind == BW_MD_LOG_Q ? place.q : place.p;
        if (!is_data)
            continue;
        logged->role = place.role;
        logged->place = place.offset;
    }
    bw_md_log_sort(log, compare_logged);
    for (size_t i = 0, end; i < log->count; i = end) {
        for (end = i; end < log->count && log->items[end].place == log->items[i].place;)
            end++;
        BW_TRY(replay_row(md, &log->items[i], end - i));
    }
    return NULL;
}

/* Rebuilding pieces of a row. */

static struct bw_error *not_enough(const struct place *place)
{
    return bw_error_create(BW_ERROR_MISSING_DEVICE,
                           "the devices given do not suffice for offset %" PRIu64
                           " of device %" PRIu32 " of the array",
                           place->offset, place->role);
}

/* Computes a piece from the other devices of its row. */
static struct bw_error *rebuild_piece(const struct bw_frame *frame, const struct md *md,
                                      uint64_t address, uint32_t length, uint8_t *result)
{
    const uint32_t count = md->array.device_count;
    struct place place;
    locate(md, address, 0, &place);
    BW_AUTO_FREE uint8_t **vectors = calloc(count, sizeof *vectors); /* NULL: not read */
    BW_AUTO_FREE uint8_t *powers = calloc(count, 1);                 /* g() of each data piece */
    BW_AUTO_FREE uint8_t *room = malloc((size_t)count * length);
    if (!vectors || !powers || !room)
        return bw_error_no_memory();
    for (uint32_t role = 0; role < count; role++) {
        struct bw_xlator *layer = md->members[role].layer;
        uint64_t at = md->members[role].offset + place.offset;
        uint8_t *vector = room + (size_t)role * length;
        if (find_journaled(md, role, place.offset, false, &at))
            layer = md->journal;
        else if (!is_current(md, role, place.offset, length))
            continue;
        if (role == place.role)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_read_raw(frame, layer, at, vector, length);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        if (!error)
            vectors[role] = vector;
    }

    /* In Q, data pieces are mostly counted from the device after it. */
    uint32_t next = 0, lost = 0, other = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t role = place.by_role ? i : (place.q + 1 + i) % count;
        if (place.by_role)
            powers[role] = bw_field_power_of_two(role);
        if (role == place.p || role == place.q)
            continue;
        if (!place.by_role)
            powers[role] = bw_field_power_of_two(next++);
        if (!vectors[role] && role != place.role) {
            other = role;
            lost++;
        }
    }

    /* The factors of P and Q; each data piece has both, because both sums contain it. */
    const bool has_p = vectors[place.p], has_q = place.q < count && vectors[place.q];
    uint8_t p, q;
    if (!bw_field_factors(powers[place.role], lost, powers[other], has_p, has_q, &p, &q))
        return not_enough(&place);
    uint8_t coefficients[BW_FIELD_VECTORS], *used[BW_FIELD_VECTORS];
    unsigned used_count = 0;
    for (uint32_t role = 0; role < count; role++) {
        uint8_t coefficient = p ^ bw_field_product(q, powers[role]);
        if (role == place.p)
            coefficient = p;
        else if (role == place.q)
            coefficient = q;
        if (role == place.role || !vectors[role] || !coefficient)
            continue;
        used[used_count] = vectors[role];
        coefficients[used_count++] = coefficient;
    }
    bw_field_combine(used_count, length, coefficients, used, result);
    return NULL;
}

/* Reading. */

/* Reads a piece whose device is missing or fails: computes it with parity, or reads the other
 * copies. */
static struct bw_error *recover_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                      struct bw_device_piece *piece)
{
    const struct md *md = bw_xlator_private(xlator);
    struct bw_error *error = BW_TAKE(piece->below.error);
    if (piece->layer && piece->layer == md->journal)
        return error; /* the row may have older data */
    if (parity_of(md)) {
        struct bw_error *second =
            rebuild_piece(frame, md, piece->address, piece->below.length, piece->below.buffer);
        if (second)
            return bw_error_first(error, second);
        piece->request->rebuilt = true;
        bw_error_free(error);
        return NULL;
    }
    struct place place;
    for (uint32_t copy = 0; copy < copies_of(md); copy++) {
        locate(md, piece->address, copy, &place);
        const struct member *member = &md->members[place.role];
        if (member->layer == piece->layer ||
            !is_current(md, place.role, place.offset, piece->below.length))
            continue;
        struct bw_request other = piece->below;
        other.error = NULL;
        other.address = member->offset + place.offset;
        bw_wind(frame, member->layer, &other, 1);
        if (!other.error) {
            bw_error_free(error);
            return NULL;
        }
        error = bw_error_first(error, other.error);
    }
    locate(md, piece->address, 0, &place);
    return error ? error : not_enough(&place);
}

/* Chooses the first copy whose device is not missing. */
static struct bw_error *choose_place(const struct bw_frame *frame, struct bw_xlator *xlator,
                                     uint64_t address, uint64_t wanted, struct bw_below *below)
{
    const struct md *md = bw_xlator_private(xlator);
    const uint32_t copies = copies_of(md);
    struct place place;
    bool is_there = false, is_bad;
    (void)frame;

    /* Bad blocks shorten the piece, so that each device has all of it or nothing. */
    for (uint32_t copy = 0; md->has_bad && copy < copies; copy++) {
        locate(md, address, copy, &place);
        wanted = until_border(&md->members[place.role], place.offset, wanted, &is_bad);
    }
    const uint32_t in_row = md->has_bad && parity_of(md) ? md->array.device_count : 0;
    for (uint32_t role = 0; role < in_row; role++)
        wanted = until_border(&md->members[role], place.offset, wanted, &is_bad);

    if (md->journal) {
        locate(md, address, 0, &place);
        below->length = until_journaled(md, place.offset, bw_min(place.length, wanted));
        wanted = below->length;
        if (find_journaled(md, place.role, place.offset, true, &below->offset)) {
            below->layer = md->journal;
            return NULL;
        }
    }

    for (uint32_t copy = 0; copy < copies && !is_there; copy++) {
        locate(md, address, copy, &place);
        below->length = place.length < wanted ? place.length : wanted;
        is_there = is_current(md, place.role, place.offset, below->length);
    }
    if (!is_there)
        locate(md, address, 0, &place);
    const struct member *member = &md->members[place.role];
    below->offset = member->offset + place.offset;
    below->length = place.length < wanted ? place.length : wanted;
    if (is_there)
        below->layer = member->layer;
    return NULL;
}

static const struct bw_piece_map pieces = {"the array ends", choose_place, recover_piece};

/* Setting up. */

static void report_unused(struct bw_xlator *xlator, size_t index, const char *reason)
{
    bw_xlator_report(xlator, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT, "%s is not used in the MD array: %s",
                                     bw_xlator_image(bw_xlator_child(xlator, index)), reason));
}

static struct bw_error *add_member(struct bw_xlator *xlator, size_t index,
                                   const struct bw_md_superblock *found)
{
    struct md *md = bw_xlator_private(xlator);
    struct bw_xlator *layer = bw_xlator_child(xlator, index);
    const uint64_t size = bw_xlator_size(layer);
    if (found->role == BW_MD_NO_ROLE || found->role >= md->array.device_count)
        return NULL; /* a spare */
    struct member *member = &md->members[found->role];
    const uint32_t number = found->number;
    if (found->events + 1 < md->array.events) {
        report_unused(xlator, index, "it missed changes");
    } else if (number >= BW_MD_NUMBERS || md->array.roles[number] != found->role) {
        report_unused(xlator, index, "it failed");
    } else if (member->layer && found->is_replacement) {
        return NULL; /* its data are being copied from the other device */
    } else if (member->layer && !member->is_replacement) {
        report_unused(xlator, index, "another device has its place");
    } else if (found->data_offset < size) {
        const uint64_t room = size - found->data_offset;
        const uint64_t data_size = found->data_size ? found->data_size : room;
        struct member added = {.layer = layer,
                               .offset = found->data_offset,
                               .data_size = data_size,
                               .size = bw_min(data_size, room),
                               .current = bw_min(found->recovered, room),
                               .is_replacement = found->is_replacement};
        BW_AUTO_ERROR struct bw_error *error = NULL;
        if (md->array.level >= 1) {
            const struct bw_md_device device = {layer, 0, size};
            added.bad = calloc(BW_MD_BAD, sizeof *added.bad);
            if (!added.bad)
                return bw_error_no_memory();
            error = bw_md_bad_blocks_read(&device, found, added.bad, &added.bad_count);
        }
        if (error) {
            free(added.bad);
            if (error->code == BW_ERROR_NO_MEMORY)
                return BW_TAKE(error);
            report_unused(xlator, index, error->message);
            return NULL;
        }
        md->has_bad |= added.bad_count != 0;
        md->given += !member->layer;
        free(member->bad);
        *member = added;
    }
    return NULL;
}

/* Reads the journal. Without it, or if it is damaged, the array may have older data. */
static struct bw_error *read_journal(struct bw_xlator *xlator, const struct bw_md_superblock *found)
{
    struct md *md = bw_xlator_private(xlator);
    const struct bw_md_superblock *journal = NULL;
    struct bw_md_device device = {0};
    if (!md->array.has_journal || !parity_of(md))
        return NULL;
    for (size_t i = 0; i < bw_xlator_child_count(xlator); i++)
        if (found[i].is_journal && found[i].events + 1 >= md->array.events) {
            journal = &found[i];
            device.layer = bw_xlator_child(xlator, i);
            device.size = bw_xlator_size(device.layer);
        }
    if (!journal) {
        bw_xlator_report(
            xlator, BW_WARNING,
            bw_error_create(BW_ERROR_MISSING_DEVICE,
                            "the device with the journal of the MD array %s is missing: "
                            "it may have newer data",
                            md->array.name));
        return NULL;
    }
    BW_SCOPED(bw_md_log) struct bw_md_log log = {0};
    BW_AUTO_ERROR struct bw_error *error =
        bw_md_journal_read(&device, journal, parity_of(md), &log);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (error)
        bw_xlator_report(
            xlator, BW_WARNING,
            bw_error_prefix(BW_TAKE(error), "the journal of the MD array %s", md->array.name));
    BW_TRY(replay_journal(md, &log));
    if (md->journaled.count)
        md->journal = device.layer;
    return NULL;
}

static struct bw_error *check_members(struct bw_xlator *xlator)
{
    const struct md *md = bw_xlator_private(xlator);
    const uint32_t count = md->array.device_count;
    uint32_t least = count - parity_of(md);
    BW_AUTO_BUFFER struct bw_buffer missing = {0};
    if (md->given == count)
        return NULL;
    if (md->array.level == 1)
        least = 1;
    else if (md->array.level == 10)
        least = (count + 1) / copies_of(md);
    for (uint32_t i = 0; i < count; i++)
        if (!md->members[i].layer)
            bw_buffer_format(&missing, "%s%" PRIu32, missing.length ? ", " : "", i);
    const char *verb = count - md->given == 1 ? "is" : "are";
    const char *adjective = md->given < least ? "incomplete" : "degraded";
    const char *space = *md->array.name ? " " : "";
    struct bw_error *error = bw_error_create(
        BW_ERROR_MISSING_DEVICE,
        "the MD array %s%sis %s: of its %" PRIu32 " devices, number%s %.*s %s missing; it needs "
        "%" PRIu32,
        md->array.name, space, adjective, count, bw_plural(count - md->given), (int)missing.length,
        missing.data ? missing.data : "", verb, least);
    if (md->given < least)
        return error;
    bw_xlator_report(xlator, BW_WARNING, error);
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct md *md = bw_xlator_private(xlator);
    const size_t count = bw_xlator_child_count(xlator);
    BW_AUTO_FREE struct bw_md_superblock *found = calloc(count, sizeof *found);
    if (!found)
        return bw_error_no_memory();
    md->pieces = &pieces;

    /* The newest superblock describes the array. */
    for (size_t i = 0; i < count; i++) {
        struct bw_xlator *child = bw_xlator_child(xlator, i);
        const struct bw_md_device device = {child, 0, bw_xlator_size(child)};
        if (!bw_md_superblock_read(&device, &found[i]))
            return bw_error_create(BW_ERROR_NOT_FOUND, "%s has no superblock of an MD array",
                                   bw_xlator_image(child));
        if (memcmp(found[i].id, found[0].id, sizeof found[i].id) != 0)
            return bw_error_create(BW_ERROR_USAGE, "%s belongs to another MD array than %s",
                                   bw_xlator_image(child),
                                   bw_xlator_image(bw_xlator_child(xlator, 0)));
        if (i == 0 || found[i].events > md->array.events)
            md->array = found[i];
    }
    if (md->array.is_reshaping)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the MD array %s is being reshaped, which is not read",
                               md->array.name);

    /* The members by their roles. A device that missed more than one change is out of date. */
    md->members = calloc(md->array.device_count, sizeof *md->members);
    if (!md->members)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        BW_TRY(add_member(xlator, i, &found[i]));

    const char *missing = md->given < md->array.device_count ? "of " : "";
    char level[16] = "linear", given[16] = "";
    if (md->array.level >= 0)
        snprintf(level, sizeof level, "RAID%d", md->array.level);
    if (*missing)
        snprintf(given, sizeof given, "%" PRIu32 " ", md->given);
    bw_xlator_set_title(xlator, "MD %s, %s%s%" PRIu32 " device%s", level, given, missing,
                        md->array.device_count, md->array.device_count == 1 ? "" : "s");

    BW_TRY(init_layout(md));
    cut_layout(md);
    BW_TRY(read_journal(xlator, found));
    bw_xlator_set_size(xlator, md->size);
    if (md->zone_count > 1 && !md->array.has_layout)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_UNSUPPORTED,
                                         "the metadata of the MD array lack the layout of RAID0 "
                                         "over devices of different sizes: assuming the layout "
                                         "of Linux 3.14 and later"));
    return check_members(xlator);
}

static void fini(struct bw_xlator *xlator)
{
    struct md *md = bw_xlator_private(xlator);
    for (uint32_t i = 0; md->members && i < md->array.device_count; i++)
        free(md->members[i].bad);
    free(md->members);
    journaled_blocks_free(&md->journaled);
    free(md->zones);
    free(md->striped);
}

/* Holes are looked for only where the array has the addresses of a device. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct md *md = bw_xlator_private(xlator);
    if (address >= md->size)
        return UINT64_MAX;
    if (md->array.level == BW_MD_LINEAR) {
        /* Skips the ends of devices that were cut off. */
        while (address < md->size) {
            struct place place;
            locate(md, address, 0, &place);
            if (place.offset < md->members[place.role].size)
                return address;
            address += place.length;
        }
        return UINT64_MAX;
    }
    for (uint32_t i = 0; md->array.level == 1 && i < md->array.device_count; i++) {
        const struct member *member = &md->members[i];
        if (!member->layer || member->current < md->size || member->bad_count)
            continue;
        const uint64_t next = bw_xlator_next_stored(member->layer, member->offset + address);
        return next < member->offset + md->size ? next - member->offset : UINT64_MAX;
    }
    return address;
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct md *md = bw_xlator_private(xlator);
    bw_json_text(json, "array", bw_xlator_title(xlator));
    bw_json_number(json, "size", md->size);
    bw_json_number(json, "chunk", md->array.chunk);
}

/* The container. */

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    struct bw_md_superblock found;
    if (!bw_md_is_member(&(struct bw_md_device){device, 0, bw_xlator_size(device)}, &found))
        return false;
    memcpy(id->bytes, found.id, sizeof id->bytes);
    return true;
}

const struct bw_container_type bw_md_container = {
    .layer = "layout/md", .joins = true, .at_end = true, .find = find};

static const char page[] =
    "Shows an array of Linux software RAID (MD) as a device, without the kernel's part of it. The "
    "default graph contains it for images, or partitions, with a superblock of MD. All devices of "
    "the array are given, in any order:\n\n"
    "    btrfs-walk disk1.img disk2.img disk3.img\n\n"
    "It reads superblocks of the versions 0.90, 1.0, 1.1 and 1.2, and linear arrays, RAID0, RAID1, "
    "RAID4, RAID5, RAID6 and RAID10 in all layouts. Data on a missing device are read from a "
    "copy, or computed from parity, and so are bad blocks that a device lists. A device that "
    "missed "
    "changes of the others is not used. Arrays that are being reshaped are refused. Blocks in a "
    "journal that are not yet on the other devices are read there.\n";

const struct bw_xlator_class bw_layout_md_class = {
    .type = "layout/md",
    .description = "shows an array of Linux software RAID as a device",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = UINT32_MAX,
    .private_size = sizeof(struct md),
    .operations = {.init = init,
                   .fini = fini,
                   .read = bw_pieces_read,
                   .advise = bw_pieces_advise,
                   .size = bw_xlator_own_size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = bw_xlator_title},
};
