/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/md: shows an array of Linux software RAID as a device. Its children are the devices of the
 * array, in any order; their superblocks contain their roles. md_layout.c computes where a byte of
 * the array is.
 *
 * A request is divided into pieces, one for each chunk, which are read together. A piece whose
 * device is missing, or cannot be read, is read from another copy or, with parity, computed from
 * the rest of its row. P of a row is the sum of all data pieces x over GF(2^8), Q the sum of
 * g(x) * x. Without P, or with another missing piece y, Q is used as well:
 * x = (g(y) * p + q) / (g(x) + g(y)), where p and q are the sums without x and y.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/galois.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/md_layout.h"
#include "xlators/layout/pieces.h"

/* A device of the array. */
struct member {
    struct bw_xlator *layer; /* NULL: it is missing */
    uint64_t offset;         /* where its data begin */
    uint64_t data_size;      /* according to its superblock */
    uint64_t size;           /* less if the device was cut off */
    uint64_t current;        /* its data are valid up to here */
};

struct md {
    struct bw_md_superblock array; /* the superblock of the newest member */
    struct member *members;        /* indexed by role */
    uint32_t given;                /* members that are not missing */
    struct bw_md_layout layout;
    char title[64];
};

static bool is_current(const struct md *md, uint32_t role, uint64_t offset, uint64_t length)
{
    const struct member *member = &md->members[role];
    return member->layer && offset <= member->current && length <= member->current - offset;
}

/* Rebuilding pieces of a row. */

static uint8_t field_power(uint8_t exponent)
{
    uint8_t value = 1;
    while (exponent--)
        value = bw_field_product(value, 2);
    return value;
}

static struct bw_error *not_enough(const struct bw_md_place *place)
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
    struct bw_md_place place;
    struct bw_md_row row;
    bw_md_locate_in_row(&md->layout, address, &place, &row);
    BW_AUTO_FREE uint8_t **vectors = calloc(count, sizeof *vectors); /* NULL: not read */
    BW_AUTO_FREE uint8_t *powers = calloc(count, 1);                 /* g() of each data piece */
    BW_AUTO_FREE uint8_t *room = malloc((size_t)count * length);
    if (!vectors || !powers || !room)
        return bw_error_no_memory();
    for (uint32_t role = 0; role < count; role++) {
        const struct member *member = &md->members[role];
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = length,
                                     .address = member->offset + place.offset,
                                     .buffer = room + (size_t)role * length};
        if (role == place.role || !is_current(md, role, place.offset, length))
            continue;
        bw_wind(frame, member->layer, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        if (!error)
            vectors[role] = request.buffer;
    }

    /* In Q, data pieces are mostly counted from the device after it. */
    uint32_t next = 0, lost = 0, other = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t role = row.by_role ? i : (row.q + 1 + i) % count;
        if (row.by_role)
            powers[role] = field_power((uint8_t)role);
        if (role == row.p || role == row.q)
            continue;
        if (!row.by_role)
            powers[role] = field_power((uint8_t)next++);
        if (!vectors[role] && role != place.role) {
            other = role;
            lost++;
        }
    }

    /* The factors of P and Q; each data piece has both, because both sums contain it. */
    const bool has_p = vectors[row.p], has_q = row.q < count && vectors[row.q];
    const uint8_t x = powers[place.role];
    uint8_t p = 1, q = 0;
    if (lost > 1 || (lost && !(has_p && has_q)) || (!has_p && !has_q))
        return not_enough(&place);
    if (lost) {
        q = bw_field_inverse(x ^ powers[other]);
        p = bw_field_product(powers[other], q);
    } else if (!has_p) {
        p = 0;
        q = bw_field_inverse(x);
    }
    uint8_t coefficients[BW_FIELD_VECTORS], *used[BW_FIELD_VECTORS];
    unsigned used_count = 0;
    for (uint32_t role = 0; role < count; role++) {
        uint8_t coefficient = p ^ bw_field_product(q, powers[role]);
        if (role == row.p)
            coefficient = p;
        else if (role == row.q)
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

/* Reads a piece from the other copies. */
static struct bw_error *read_copies(const struct bw_frame *frame, const struct md *md,
                                    const struct bw_piece *piece, struct bw_error *error)
{
    for (uint32_t copy = 0; copy < bw_md_copies(&md->layout); copy++) {
        struct bw_md_place place;
        bw_md_locate(&md->layout, piece->address, copy, &place);
        if (md->members[place.role].layer == piece->layer ||
            !is_current(md, place.role, place.offset, piece->below.length))
            continue;
        struct bw_request other = piece->below;
        other.error = NULL;
        other.address = md->members[place.role].offset + place.offset;
        bw_wind(frame, md->members[place.role].layer, &other, 1);
        if (!other.error) {
            bw_error_free(error);
            return NULL;
        }
        error = bw_error_first(error, other.error);
    }
    if (error)
        return error;
    struct bw_md_place place;
    bw_md_locate(&md->layout, piece->address, 0, &place);
    return not_enough(&place);
}

/* Reads a piece whose device is missing or fails. */
static struct bw_error *recover_piece(const void *context, const struct bw_frame *frame,
                                      struct bw_piece *piece)
{
    const struct md *md = context;
    struct bw_error *error = BW_TAKE(piece->below.error);
    if (!bw_md_parity(&md->layout))
        return read_copies(frame, md, piece, error);
    struct bw_error *second =
        rebuild_piece(frame, md, piece->address, piece->below.length, piece->below.buffer);
    piece->request->rebuilt |= !second;
    if (!second)
        bw_error_free(error);
    if (second)
        return bw_error_first(error, second);
    return NULL;
}

/* Chooses the first copy whose device is not missing. */
static void choose_place(const struct md *md, uint64_t address, uint64_t left,
                         struct bw_md_place *place)
{
    const uint32_t copies = bw_md_copies(&md->layout);
    for (uint32_t copy = 0; copy < copies; copy++) {
        bw_md_locate(&md->layout, address, copy, place);
        const uint64_t length = place->length < left ? place->length : left;
        if (is_current(md, place->role, place->offset, length))
            return;
    }
    bw_md_locate(&md->layout, address, 0, place);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct md *md = bw_xlator_private(xlator);
    struct bw_pieces pieces;
    pieces.count = 0;
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        request->error = bw_request_check_end("the array ends", md->layout.size, request);
        for (uint32_t done = 0, length; !request->error && done < request->length; done += length) {
            struct bw_md_place place;
            length = request->length - done;
            choose_place(md, request->address + done, length, &place);
            if (place.length < length)
                length = (uint32_t)place.length;
            const struct member *member = &md->members[place.role];
            const bool is_there = is_current(md, place.role, place.offset, length);
            bw_pieces_add(&pieces, request, done, length, is_there ? member->layer : NULL,
                          member->offset + place.offset);
            if (pieces.count == BW_BATCH)
                bw_pieces_read(frame, &pieces, recover_piece, md);
        }
    }
    bw_pieces_read(frame, &pieces, recover_piece, md);
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    enum { MOST = 256 /* pieces of a range: more cannot be worth announcing */ };
    const struct md *md = bw_xlator_private(xlator);
    (void)copy;
    for (size_t i = 0; i < count; i++) {
        struct bw_range range = ranges[i];
        for (unsigned k = 0; k < MOST && range.length && range.address < md->layout.size; k++) {
            struct bw_md_place place;
            choose_place(md, range.address, 1, &place);
            const uint64_t length = place.length < range.length ? place.length : range.length;
            const struct member *member = &md->members[place.role];
            const struct bw_range below = {member->offset + place.offset, length};
            if (member->layer)
                bw_wind_advise(frame, member->layer, &below, 1, 0);
            range.address += length;
            range.length -= length;
        }
    }
}

/* Setting up. */

/* Finds the newest superblock. A device that missed more than one change is out of date. */
static struct bw_error *find_newest(struct bw_xlator *xlator, struct bw_md_superblock *found)
{
    struct md *md = bw_xlator_private(xlator);
    for (size_t i = 0; i < bw_xlator_child_count(xlator); i++) {
        struct bw_xlator *child = bw_xlator_child(xlator, i);
        const struct bw_md_device device = {child, 0, bw_xlator_size(child)};
        if (!bw_md_superblock_read(NULL, &device, &found[i]))
            return bw_error_create(BW_ERROR_NOT_FOUND, "%s has no superblock of an MD array",
                                   bw_xlator_image(bw_xlator_child(xlator, i)));
        if (memcmp(found[i].id, found[0].id, sizeof found[i].id) != 0)
            return bw_error_create(BW_ERROR_USAGE, "%s belongs to another MD array than %s",
                                   bw_xlator_image(bw_xlator_child(xlator, i)),
                                   bw_xlator_image(bw_xlator_child(xlator, 0)));
        if (i == 0 || found[i].events > md->array.events)
            md->array = found[i];
    }
    return NULL;
}

static void report_unused(struct bw_xlator *xlator, size_t index, const char *reason)
{
    bw_xlator_report(xlator, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT, "%s is not used in the MD array: %s",
                                     bw_xlator_image(bw_xlator_child(xlator, index)), reason));
}

static void add_member(struct bw_xlator *xlator, size_t index, const struct bw_md_superblock *found)
{
    struct md *md = bw_xlator_private(xlator);
    struct bw_xlator *layer = bw_xlator_child(xlator, index);
    const uint64_t size = bw_xlator_size(layer);
    if (found->role == BW_MD_NO_ROLE || found->role >= md->array.device_count)
        return; /* a spare */
    struct member *member = &md->members[found->role];
    if (found->events + 1 < md->array.events) {
        report_unused(xlator, index, "it missed changes");
    } else if (member->layer) {
        report_unused(xlator, index, "another device has its place");
    } else if (found->data_offset < size) {
        const uint64_t room = size - found->data_offset;
        *member = (struct member){layer, found->data_offset, room, room, room};
        if (found->data_size)
            member->data_size = found->data_size;
        if (member->data_size < room)
            member->size = member->data_size;
        if (found->recovered < room)
            member->current = found->recovered;
        md->given++;
    }
}

static uint32_t least_members(const struct md *md)
{
    const uint32_t count = md->array.device_count;
    const uint32_t parity = bw_md_parity(&md->layout);
    if (md->array.level == 1)
        return 1;
    if (md->array.level != 10)
        return count - parity;
    const uint32_t copies = bw_md_copies(&md->layout);
    return (count + 1) / (copies ? copies : 1);
}

static struct bw_error *check_members(struct bw_xlator *xlator)
{
    const struct md *md = bw_xlator_private(xlator);
    const uint32_t count = md->array.device_count, least = least_members(md);
    BW_AUTO_BUFFER struct bw_buffer missing = {0};
    if (md->given == count)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!md->members[i].layer)
            bw_buffer_format(&missing, "%s%" PRIu32, missing.length ? ", " : "", i);
    struct bw_error *error = bw_error_create(
        BW_ERROR_MISSING_DEVICE,
        "the MD array %s%sis %s: of its %" PRIu32 " devices, number %.*s %s missing; it needs "
        "%" PRIu32,
        md->array.name, *md->array.name ? " " : "", md->given < least ? "incomplete" : "degraded",
        count, (int)missing.length, missing.data ? missing.data : "",
        count - md->given == 1 ? "is" : "are", least);
    if (md->given < least)
        return error;
    bw_xlator_report(xlator, BW_WARNING, error);
    return NULL;
}

/* An array cannot be much larger than its devices, even if the superblocks claim so. */
static struct bw_error *set_layout(struct bw_xlator *xlator)
{
    struct md *md = bw_xlator_private(xlator);
    BW_AUTO_FREE uint64_t *sizes = calloc(md->array.device_count, sizeof *sizes);
    if (!sizes)
        return bw_error_no_memory();
    for (uint32_t i = 0; i < md->array.device_count; i++)
        sizes[i] = md->members[i].data_size;
    BW_TRY(bw_md_layout_init(&md->layout, &md->array, sizes));
    for (uint32_t i = 0; i < md->array.device_count; i++)
        sizes[i] = md->members[i].size;
    bw_md_layout_cut(&md->layout, sizes);
    if (md->layout.zone_count > 1 && !md->array.has_layout)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_UNSUPPORTED,
                                         "the metadata of the MD array lack the layout of RAID0 "
                                         "over devices of different sizes: assuming the layout "
                                         "of Linux 3.14 and later"));
    return NULL;
}

static void set_title(struct md *md)
{
    const char *missing = md->given < md->array.device_count ? "of " : "";
    char level[16] = "linear", given[16] = "";
    if (md->array.level >= 0)
        snprintf(level, sizeof level, "RAID%d", md->array.level);
    if (*missing)
        snprintf(given, sizeof given, "%" PRIu32 " ", md->given);
    snprintf(md->title, sizeof md->title, "MD %s, %s%s%" PRIu32 " device%s", level, given, missing,
             md->array.device_count, md->array.device_count == 1 ? "" : "s");
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct md *md = bw_xlator_private(xlator);
    const size_t count = bw_xlator_child_count(xlator);
    BW_AUTO_FREE struct bw_md_superblock *found = calloc(count, sizeof *found);
    if (!found)
        return bw_error_no_memory();
    BW_TRY(find_newest(xlator, found));
    if (md->array.is_reshaping)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the MD array %s is being reshaped, which is not read",
                               md->array.name);
    md->members = calloc(md->array.device_count, sizeof *md->members);
    if (!md->members)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        add_member(xlator, i, &found[i]);
    set_title(md);
    BW_TRY(set_layout(xlator));
    return check_members(xlator);
}

static void fini(struct bw_xlator *xlator)
{
    struct md *md = bw_xlator_private(xlator);
    free(md->members);
    bw_md_layout_free(&md->layout);
}

static uint64_t size(struct bw_xlator *xlator)
{
    const struct md *md = bw_xlator_private(xlator);
    return md->layout.size;
}

/* Skips the ends of the devices of a linear array that were cut off. */
static uint64_t next_in_linear(const struct md *md, uint64_t address)
{
    while (address < md->layout.size) {
        struct bw_md_place place;
        bw_md_locate(&md->layout, address, 0, &place);
        if (place.offset < md->members[place.role].size)
            return address;
        address += place.length;
    }
    return UINT64_MAX;
}

/* Holes are looked for only where the array has the addresses of a device. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct md *md = bw_xlator_private(xlator);
    if (address >= md->layout.size)
        return UINT64_MAX;
    if (md->array.level == BW_MD_LINEAR)
        return next_in_linear(md, address);
    for (uint32_t i = 0; md->array.level == 1 && i < md->array.device_count; i++) {
        const struct member *member = &md->members[i];
        if (!member->layer || member->current < md->layout.size)
            continue;
        const uint64_t next = bw_xlator_next_stored(member->layer, member->offset + address);
        return next < member->offset + md->layout.size ? next - member->offset : UINT64_MAX;
    }
    return address;
}

static const char *title(struct bw_xlator *xlator)
{
    const struct md *md = bw_xlator_private(xlator);
    return md->title;
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct md *md = bw_xlator_private(xlator);
    bw_json_text(json, "array", md->title);
    bw_json_number(json, "size", md->layout.size);
    bw_json_number(json, "chunk", md->array.chunk);
}

/* The container. */

static bool find(const struct bw_frame *frame, struct bw_xlator *device, struct bw_container_id *id)
{
    struct bw_md_superblock found;
    if (!bw_md_is_member(frame, &(struct bw_md_device){device, 0, bw_xlator_size(device)}, &found))
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
    "copy, or computed from parity. A device that missed changes of the others is not used. Arrays "
    "that are being reshaped are refused.\n";

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
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = title},
};
