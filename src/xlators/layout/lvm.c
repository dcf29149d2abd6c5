/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/lvm: shows a logical volume of LVM2 as a device. Its children are physical volumes, in any
 * order, also of several groups. A logical volume consists of segments, which lie on physical
 * volumes, or on other logical ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/endian.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/lvm_metadata.h"
#include "xlators/layout/pieces.h"
#include "xlators/layout/thin.h"

enum {
    SECTOR = 512,
    DEEPEST = 8, /* logical volumes below each other */
};

struct lvm {
    struct bw_lvm_groups groups;
    const struct bw_lvm_group *group;
    const struct bw_lvm_volume *volume;
    uint64_t size;        /* size of the volume, without a part after the end of devices */
    struct bw_thin *thin; /* NULL: the volume is not a thin one */
    const struct bw_lvm_segment *pool; /* the pool of the thin volume */
    char title[16 + 2 * BW_LVM_NAME];
};

/* Where a byte of a logical volume is. */
struct place {
    struct bw_lvm_physical *physical; /* NULL: a hole */
    uint64_t offset;                  /* on its device */
    uint64_t length;                  /* bytes that follow there */
    bool is_stale;                    /* other legs of a mirror have newer data */
};

/* Locating. */

static const struct bw_lvm_segment *segment_at(const struct bw_lvm_group *group,
                                               const struct bw_lvm_volume *volume, uint64_t address)
{
    const struct bw_lvm_segment *segments = group->segments.items + volume->first_segment;
    size_t low = 0, high = volume->segment_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(segments[middle].begin <= address ? &low : &high) = middle;
    }
    return &segments[low];
}

static const struct bw_lvm_area *leg_at(const struct bw_lvm_area *leg, struct place *place)
{
    bool is_stale = place->offset >= leg->valid;
    if (!is_stale && leg->valid - place->offset < place->length)
        place->length = leg->valid - place->offset;
    place->is_stale |= is_stale;
    return leg;
}

/* The area with a byte of a segment, and the offset in it. In mirrors, `copy` chooses the area. */
static const struct bw_lvm_area *area_at(const struct bw_lvm_group *group,
                                         const struct bw_lvm_segment *segment, uint64_t inside,
                                         size_t copy, struct place *place)
{
    const struct bw_lvm_area *areas = group->areas.items + segment->first_area;
    place->offset = inside;
    place->length = segment->length - inside;
    if (segment->is_mirror)
        return leg_at(&areas[copy % segment->area_count], place);
    if (segment->area_count == 1)
        return areas;
    const uint64_t stripe = inside / segment->stripe, rest = inside % segment->stripe;
    place->offset = stripe / segment->area_count * segment->stripe + rest;
    if (segment->stripe - rest < place->length)
        place->length = segment->stripe - rest;
    return &areas[stripe % segment->area_count];
}

static struct bw_error *unknown_type(const struct bw_lvm_volume *volume, const char *type)
{
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "the logical volume %s has the type %s, which is not read", volume->name,
                           type);
}

/* Locates a byte of a volume that is not a thin one. */
static struct bw_error *locate_below(const struct bw_lvm_group *group,
                                     const struct bw_lvm_volume *volume, uint64_t address,
                                     size_t copy, struct place *place)
{
    uint64_t length = UINT64_MAX;
    place->is_stale = false;
    for (unsigned depth = 0; depth < DEEPEST; depth++) {
        if (address >= volume->size)
            return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s ends at %" PRIu64,
                                   volume->name, volume->size);
        const struct bw_lvm_segment *segment = segment_at(group, volume, address);
        if (!segment->is_known || segment->is_thin || segment->is_pool)
            return unknown_type(volume, segment->type);
        const struct bw_lvm_area *area =
            area_at(group, segment, address - segment->begin, copy, place);
        length = place->length < length ? place->length : length;
        address = area->begin + place->offset;
        if (!area->is_logical) {
            place->physical = &group->physicals.items[area->index];
            place->offset = place->physical->begin + address;
            place->length = length;
            return NULL;
        }
        volume = &group->volumes.items[area->index];
    }
    return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s contains itself", volume->name);
}

/* A volume that consists of segments, and an address in it. */
struct address {
    const struct bw_lvm_volume *volume;
    uint64_t address;
    uint64_t length; /* bytes that are next to each other in the volume */
    bool is_hole;
};

static const struct bw_lvm_volume *area_volume(const struct lvm *lvm,
                                               const struct bw_lvm_segment *segment, size_t index)
{
    const struct bw_lvm_area *area = &lvm->group->areas.items[segment->first_area + index];
    return &lvm->group->volumes.items[area->index];
}

/* In a thin volume, finds the address in the data of its pool. */
static struct bw_error *resolve_thin(const struct bw_frame *frame, const struct lvm *lvm,
                                     uint64_t address, struct address *found)
{
    struct bw_thin_run run;
    *found = (struct address){lvm->volume, address, UINT64_MAX, false};
    if (!lvm->thin)
        return NULL;
    BW_TRY(bw_thin_find(lvm->thin, frame, address, &run));
    *found =
        (struct address){area_volume(lvm, lvm->pool, 0), run.offset, run.length, !run.is_mapped};
    return NULL;
}

static struct bw_error *locate_address(const struct bw_frame *frame, const struct lvm *lvm,
                                       uint64_t address, size_t copy, struct place *place)
{
    struct address found;
    if (address >= lvm->volume->size)
        return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s ends at %" PRIu64,
                               lvm->volume->name, lvm->volume->size);
    BW_TRY(resolve_thin(frame, lvm, address, &found));
    *place = (struct place){.length = lvm->volume->size - address};
    if (!found.is_hole)
        BW_TRY(locate_below(lvm->group, found.volume, found.address, copy, place));
    if (found.length < place->length)
        place->length = found.length;
    return NULL;
}

/* The number of copies of an address in a volume that is not a thin one. */
static size_t copies_of(const struct lvm *lvm, const struct bw_lvm_volume *volume, uint64_t address)
{
    const struct bw_lvm_segment *segment = segment_at(lvm->group, volume, address);
    return segment->is_mirror ? segment->area_count : 1;
}

static size_t copies_at(const struct bw_frame *frame, const struct lvm *lvm, uint64_t address)
{
    struct address found;
    BW_AUTO_ERROR struct bw_error *error = resolve_thin(frame, lvm, address, &found);
    return error || found.is_hole || found.address >= found.volume->size
               ? 1
               : copies_of(lvm, found.volume, found.address);
}

static struct bw_error *missing_error(const struct bw_lvm_group *group,
                                      const struct bw_lvm_physical *physical)
{
    return bw_error_create(BW_ERROR_MISSING_DEVICE,
                           "the physical volume %s%s%s of the volume group %s is missing (%s)",
                           physical->name, *physical->device ? ", last seen as " : "",
                           physical->device, group->name, physical->id);
}

static struct bw_error *unusable_error(const struct bw_lvm_group *group, const struct place *place)
{
    return place->physical->layer
               ? bw_error_create(BW_ERROR_MISSING_DEVICE,
                                 "the physical volume %s of the volume group %s was missing for a "
                                 "while: its part of a mirror is out of date",
                                 place->physical->name, group->name)
               : missing_error(group, place->physical);
}

static bool is_usable(const struct place *place)
{
    return !place->physical || (place->physical->layer && !place->is_stale);
}

/* Locates a copy of a byte on a physical volume that is not missing. */
static struct bw_error *find_place(const struct bw_frame *frame, const struct lvm *lvm,
                                   uint64_t address, struct place *place)
{
    BW_TRY(locate_address(frame, lvm, address, 0, place));
    if (is_usable(place))
        return NULL;
    const size_t copies = copies_at(frame, lvm, address);
    for (size_t copy = 1; copy < copies; copy++) {
        BW_TRY(locate_address(frame, lvm, address, copy, place));
        if (is_usable(place))
            return NULL;
    }
    return unusable_error(lvm->group, place);
}

/* Reading. */

/* Reads one of the copies of a piece, which may be in several places, unlike the copy that a device
 * failed to read. */
static struct bw_error *read_copy(const struct bw_frame *frame, const struct lvm *lvm,
                                  const struct bw_piece *piece, size_t copy)
{
    struct bw_request part = piece->below;
    for (uint32_t done = 0, left; (left = piece->below.length - done); done += part.length) {
        struct place place;
        BW_TRY(locate_address(frame, lvm, piece->address + done, copy, &place));
        if (!place.physical || !is_usable(&place))
            return bw_error_create(BW_ERROR_MISSING_DEVICE,
                                   "the device of a copy is missing or out of date");
        part.address = place.offset;
        part.length = place.length < left ? (uint32_t)place.length : left;
        part.buffer = (uint8_t *)piece->below.buffer + done;
        if (place.physical->layer == piece->layer && part.address == piece->below.address + done)
            return bw_error_create(BW_ERROR_SYSTEM, "it is the copy that was not read");
        bw_wind(frame, place.physical->layer, &part, 1);
        BW_TRY(part.error);
    }
    return NULL;
}

/* Reads a piece that a device failed to read from the other copies, if there are any. */
static struct bw_error *read_copies(const void *context, const struct bw_frame *frame,
                                    struct bw_piece *piece)
{
    const struct lvm *lvm = context;
    struct bw_error *error = BW_TAKE(piece->below.error);
    const size_t copies = copies_at(frame, lvm, piece->address);
    for (size_t copy = 0; error && copy < copies; copy++) {
        BW_AUTO_ERROR struct bw_error *lost = read_copy(frame, lvm, piece, copy);
        if (!lost)
            bw_error_free(BW_TAKE(error));
    }
    return error;
}

static void add_pieces(const struct bw_frame *frame, const struct lvm *lvm,
                       struct bw_pieces *pieces, struct bw_request *request)
{
    for (uint32_t done = 0; done < request->length && !request->error;) {
        const uint32_t left = request->length - done;
        struct place place;
        request->error = find_place(frame, lvm, request->address + done, &place);
        if (request->error)
            return;
        const uint32_t length = place.length < left ? (uint32_t)place.length : left;
        if (place.physical)
            bw_pieces_add(pieces, request, done, length, place.physical->layer, place.offset);
        else
            memset((uint8_t *)request->buffer + done, 0, length);
        done += length;
        if (pieces->count == BW_BATCH)
            bw_pieces_read(frame, pieces, read_copies, lvm);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    struct bw_pieces pieces;
    pieces.count = 0;
    for (size_t i = 0; i < count; i++)
        add_pieces(frame, lvm, &pieces, &requests[i]);
    bw_pieces_read(frame, &pieces, read_copies, lvm);
}

static void advise_range(const struct bw_frame *frame, const struct lvm *lvm, struct bw_range range)
{
    enum { MOST = 256 /* pieces of a range: more cannot be worth announcing */ };
    for (unsigned i = 0; i < MOST && range.length && range.address < lvm->volume->size; i++) {
        struct place place;
        BW_AUTO_ERROR struct bw_error *error = find_place(frame, lvm, range.address, &place);
        if (error)
            return;
        const uint64_t length = place.length < range.length ? place.length : range.length;
        if (place.physical)
            bw_wind_advise(frame, place.physical->layer, &(struct bw_range){place.offset, length},
                           1, 0);
        range.address += length;
        range.length -= length;
    }
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    (void)copy;
    for (size_t i = 0; i < count; i++)
        advise_range(frame, lvm, ranges[i]);
}

static uint64_t size(struct bw_xlator *xlator)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    return lvm->size;
}

/* The next stored address in a piece, or the end of the piece. */
static uint64_t next_in_piece(const struct place *place, uint64_t address)
{
    const uint64_t next = bw_xlator_next_stored(place->physical->layer, place->offset);
    return next - place->offset < place->length ? address + (next - place->offset)
                                                : address + place->length;
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    while (address < lvm->size) {
        struct place place;
        BW_AUTO_ERROR struct bw_error *error = find_place(NULL, lvm, address, &place);
        if (error)
            return address;
        if (!place.physical) {
            address += place.length;
            continue;
        }
        const uint64_t next = next_in_piece(&place, address);
        if (next < address + place.length)
            return next;
        address = next;
    }
    return UINT64_MAX;
}

/* Setting up. */

static bool is_named(const struct bw_lvm_group *group, const struct bw_lvm_volume *volume,
                     const char *wanted)
{
    const size_t length = strlen(group->name);
    return strcmp(wanted, volume->name) == 0 ||
           (strncmp(wanted, group->name, length) == 0 && wanted[length] == '/' &&
            strcmp(wanted + length + 1, volume->name) == 0);
}

static void append_names(const struct bw_lvm_groups *groups, struct bw_buffer *text)
{
    for (size_t i = 0; i < groups->list.count; i++)
        for (size_t k = 0; k < groups->list.items[i].volumes.count; k++)
            if (groups->list.items[i].volumes.items[k].is_visible)
                bw_buffer_format(text, "%s%s/%s", text->length ? ", " : "",
                                 groups->list.items[i].name,
                                 groups->list.items[i].volumes.items[k].name);
}

static struct bw_error *choose_volume(struct lvm *lvm, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer names = {0};
    for (size_t i = 0; i < lvm->groups.list.count; i++) {
        const struct bw_lvm_group *group = &lvm->groups.list.items[i];
        for (size_t k = 0; k < group->volumes.count; k++) {
            if (!is_named(group, &group->volumes.items[k], wanted))
                continue;
            if (lvm->volume)
                return bw_error_create(BW_ERROR_AMBIGUOUS,
                                       "the volume groups %s and %s both have a logical volume %s",
                                       lvm->group->name, group->name, wanted);
            lvm->group = group;
            lvm->volume = &group->volumes.items[k];
        }
    }
    if (lvm->volume)
        return NULL;
    append_names(&lvm->groups, &names);
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no logical volume %s; there are: %.*s",
                           wanted, (int)names.length, names.data ? names.data : "");
}

/* The legs of RAID1. */

/* The state of the legs as a leg has recorded it; dm-raid.c calls it a superblock. */
struct disk_legs {
    bw_le32 magic, features, count, number;
    bw_le64 events;
    bw_le64 failed;    /* a bit for each leg */
    bw_le64 recovered; /* sectors of this leg; all bits set: all of them */
    bw_le64 resynced;
};

static bool read_legs(const struct lvm *lvm, const struct bw_lvm_area *leg, struct disk_legs *legs)
{
    enum { MAGIC = 0x64526d44 };
    struct place place;
    if (leg->state == SIZE_MAX)
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        locate_below(lvm->group, &lvm->group->volumes.items[leg->state], 0, 0, &place);
    if (error || !is_usable(&place) || place.length < sizeof *legs)
        return false;
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = sizeof *legs, .address = place.offset, .buffer = legs};
    bw_wind(NULL, place.physical->layer, &request, 1);
    BW_AUTO_ERROR struct bw_error *lost = request.error;
    return !lost && bw_get32(legs->magic) == MAGIC;
}

/* A leg that was missing for a while is out of date until it is rebuilt. The newest state counts.
 */
static void find_stale_legs(struct bw_xlator *xlator, const struct bw_lvm_segment *segment)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    struct bw_lvm_area *areas = lvm->group->areas.items + segment->first_area;
    struct disk_legs found, newest = {0};
    bool is_known = false;
    for (size_t i = 0; i < segment->area_count; i++)
        if (read_legs(lvm, &areas[i], &found) &&
            (!is_known || bw_get64(found.events) > bw_get64(newest.events))) {
            newest = found;
            is_known = true;
        }
    for (size_t i = 0; is_known && i < segment->area_count; i++) {
        const bool has_failed = i < 64 && bw_get64(newest.failed) >> i & 1;
        const uint64_t valid =
            has_failed || !read_legs(lvm, &areas[i], &found) ? 0 : bw_get64(found.recovered);
        areas[i].valid = valid > INT64_MAX / SECTOR ? UINT64_MAX : valid * SECTOR;
    }
}

/* Locates each area once, so that unsupported types and loops are found before the first read.
 * Reports missing physical volumes. */
static struct bw_error *check_volume(struct bw_xlator *xlator, const struct bw_lvm_volume *volume)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    for (size_t i = 0; i < volume->segment_count; i++) {
        const struct bw_lvm_segment *segment =
            &lvm->group->segments.items[volume->first_segment + i];
        if (segment->is_mirror)
            find_stale_legs(xlator, segment);
        for (size_t copy = 0; copy < (segment->area_count ? segment->area_count : 1); copy++) {
            const uint64_t step = segment->is_mirror ? 0 : copy * segment->stripe;
            struct place place;
            if (step >= segment->length)
                continue;
            BW_TRY(locate_below(lvm->group, volume, segment->begin + step, copy, &place));
            if (!is_usable(&place) && !place.physical->is_reported)
                bw_xlator_report(xlator, place.is_stale ? BW_WARNING : BW_NOTE,
                                 unusable_error(lvm->group, &place));
            place.physical->is_reported |= !is_usable(&place);
        }
    }
    if (volume->size)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s is empty", volume->name);
}

/* The size of a volume on devices that were cut off. Whatever the metadata say, a volume cannot be
 * much larger than its devices. */

struct measuring {
    const struct bw_lvm_group *group;
    struct measured {
        bool is_known; /* or is being measured, which ends loops */
        uint64_t end;
    } * volumes;
    unsigned depth;
};

static uint64_t measure_volume(struct measuring *measuring, size_t index);

/* The number of bytes that an area has; more than any segment has if that is unknown. */
static uint64_t room_of(struct measuring *measuring, const struct bw_lvm_area *area)
{
    uint64_t begin = area->begin, end;
    if (area->is_logical) {
        measuring->depth++;
        end = measuring->depth < DEEPEST ? measure_volume(measuring, area->index) : 0;
        measuring->depth--;
    } else {
        const struct bw_lvm_physical *physical = &measuring->group->physicals.items[area->index];
        begin += physical->begin;
        end = physical->layer ? bw_xlator_size(physical->layer) : UINT64_MAX;
    }
    return begin < end ? end - begin : 0;
}

/* The end of the data of an area, in its segment. */
static uint64_t end_in_segment(const struct bw_lvm_segment *segment, size_t index, uint64_t room)
{
    uint64_t end;
    if (!room || room >= segment->length)
        return room ? segment->length : 0;
    if (segment->is_mirror || segment->area_count == 1)
        return room;
    const uint64_t stripe = (room - 1) / segment->stripe, rest = (room - 1) % segment->stripe;
    const bool is_over = __builtin_mul_overflow(stripe, segment->area_count, &end) ||
                         __builtin_add_overflow(end, index, &end) ||
                         __builtin_mul_overflow(end, segment->stripe, &end) ||
                         __builtin_add_overflow(end, rest + 1, &end);
    return is_over || end > segment->length ? segment->length : end;
}

static uint64_t measure_segment(struct measuring *measuring, const struct bw_lvm_segment *segment)
{
    uint64_t most = 0;
    if (!segment->is_known || segment->is_thin || segment->is_pool)
        return segment->length;
    for (size_t i = 0; i < segment->area_count && most < segment->length; i++) {
        const struct bw_lvm_area *area = &measuring->group->areas.items[segment->first_area + i];
        const uint64_t end = end_in_segment(segment, i, room_of(measuring, area));
        most = end > most ? end : most;
    }
    return most;
}

static uint64_t measure_volume(struct measuring *measuring, size_t index)
{
    const struct bw_lvm_volume *volume = &measuring->group->volumes.items[index];
    struct measured *measured = &measuring->volumes[index];
    if (measured->is_known)
        return measured->end;
    measured->is_known = true;
    for (size_t i = volume->segment_count; i-- > 0 && !measured->end;) {
        const struct bw_lvm_segment *segment =
            &measuring->group->segments.items[volume->first_segment + i];
        const uint64_t end = measure_segment(measuring, segment);
        measured->end = end ? segment->begin + end : 0;
    }
    return measured->end;
}

static struct bw_error *set_size(struct lvm *lvm)
{
    struct measuring measuring = {.group = lvm->group};
    BW_AUTO_FREE struct measured *volumes = calloc(lvm->group->volumes.count, sizeof *volumes);
    if (!volumes)
        return bw_error_no_memory();
    measuring.volumes = volumes;
    lvm->size = measure_volume(&measuring, (size_t)(lvm->volume - lvm->group->volumes.items));
    return NULL;
}

/* Thin volumes. */

static struct bw_error *read_metadata(void *context, const struct bw_frame *frame, uint64_t offset,
                                      unsigned copy, void *block)
{
    const struct lvm *lvm = context;
    const struct bw_lvm_volume *volume = area_volume(lvm, lvm->pool, 1);
    struct place place;
    const size_t copies = offset < volume->size ? copies_of(lvm, volume, offset) : 1;
    if (copy >= copies)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there are no more copies");
    BW_TRY(locate_below(lvm->group, volume, offset, copy, &place));
    if (!is_usable(&place))
        return unusable_error(lvm->group, &place);
    if (place.length < BW_THIN_BLOCK)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin metadata end at %" PRIu64, volume->size);
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = BW_THIN_BLOCK, .address = place.offset, .buffer = block};
    bw_wind(frame, place.physical->layer, &request, 1);
    return request.error;
}

/* The segment of the pool of a thin volume, or NULL. */
static const struct bw_lvm_segment *find_pool(const struct lvm *lvm,
                                              const struct bw_lvm_segment *segment)
{
    const struct bw_lvm_area *area = &lvm->group->areas.items[segment->first_area];
    const struct bw_lvm_volume *volume = &lvm->group->volumes.items[area->index];
    if (!area->is_logical || !volume->segment_count)
        return NULL;
    const struct bw_lvm_segment *pool = &lvm->group->segments.items[volume->first_segment];
    const struct bw_lvm_area *areas = &lvm->group->areas.items[pool->first_area];
    return pool->is_pool && areas[0].is_logical && areas[1].is_logical ? pool : NULL;
}

static struct bw_error *open_thin(struct bw_xlator *xlator, const struct bw_lvm_segment *segment)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    lvm->pool = find_pool(lvm, segment);
    if (!lvm->pool || lvm->volume->segment_count != 1)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin volume %s has no pool",
                               lvm->volume->name);
    BW_TRY(check_volume(xlator, area_volume(lvm, lvm->pool, 0)));
    BW_TRY(check_volume(xlator, area_volume(lvm, lvm->pool, 1)));
    const struct bw_thin_target target = {.read = read_metadata,
                                          .context = lvm,
                                          .device = segment->device,
                                          .chunk = lvm->pool->chunk};
    struct bw_error *error = bw_thin_open(NULL, &target, &lvm->thin);
    if (error)
        return bw_error_prefix(error, "the thin volume %s", lvm->volume->name);
    return NULL;
}

static struct bw_error *set_up(struct bw_xlator *xlator)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    const struct bw_lvm_volume *volume = lvm->volume;
    const struct bw_lvm_segment *first =
        volume->segment_count ? &lvm->group->segments.items[volume->first_segment] : NULL;
    if (volume->is_snapshot)
        return unknown_type(volume, "snapshot");
    bool is_thin = first && first->is_thin && first->is_known;
    BW_TRY(set_size(bw_xlator_private(xlator)));
    return is_thin ? open_thin(xlator, first) : check_volume(xlator, volume);
}

static struct bw_error *read_groups(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_lvm_groups *groups)
{
    const size_t count = bw_xlator_child_count(xlator);
    BW_AUTO_FREE struct bw_xlator **devices = calloc(count, sizeof(struct bw_xlator *));
    if (!devices)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        devices[i] = bw_xlator_child(xlator, i);
    return bw_lvm_groups_read(frame, devices, count, groups);
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    BW_TRY(read_groups(NULL, xlator, &lvm->groups));
    BW_TRY(choose_volume(lvm, bw_xlator_option_text(xlator, "volume")));
    snprintf(lvm->title, sizeof lvm->title, "LVM %s/%s", lvm->group->name, lvm->volume->name);
    return set_up(xlator);
}

static void fini(struct bw_xlator *xlator)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    bw_thin_close(lvm->thin);
    bw_lvm_groups_free(&lvm->groups);
}

static const char *title(struct bw_xlator *xlator)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    return lvm->title;
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    bw_json_number(json, "size", lvm->volume->size);
    bw_json_number(json, "segments", lvm->volume->segment_count);
}

/* The container. Labels do not name the group, so all physical volumes are children of one layer.
 */

static bool find(const struct bw_frame *frame, struct bw_xlator *device, struct bw_container_id *id)
{
    (void)id;
    return bw_lvm_find_label(frame, device, NULL);
}

/* Each volume gets a layer, which reads the texts again. Texts with so many volumes that this would
 * take minutes are not listed. */
static struct bw_error *check_count(const struct bw_lvm_groups *groups)
{
    enum { MOST_VOLUMES = 4096, MOST_BYTES = 256 << 20 };
    size_t count = 0;
    for (size_t i = 0; i < groups->list.count; i++)
        for (size_t k = 0; k < groups->list.items[i].volumes.count; k++)
            count += groups->list.items[i].volumes.items[k].is_visible;
    if (count <= MOST_VOLUMES && count * groups->text_length <= MOST_BYTES)
        return NULL;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "it has %zu logical volumes, too many to examine all of them: "
                           "choose one by its name",
                           count);
}

static struct bw_error *list(const struct bw_frame *frame, struct bw_xlator *const *devices,
                             size_t count, bw_volume_visitor *visit, void *context)
{
    struct bw_lvm_groups groups;
    struct bw_error *error = bw_lvm_groups_read(frame, devices, count, &groups);
    if (!error)
        error = check_count(&groups);
    for (size_t i = 0; !error && i < groups.list.count; i++)
        for (size_t k = 0; !error && k < groups.list.items[i].volumes.count; k++) {
            char name[2 * BW_LVM_NAME + 1];
            snprintf(name, sizeof name, "%s/%s", groups.list.items[i].name,
                     groups.list.items[i].volumes.items[k].name);
            if (groups.list.items[i].volumes.items[k].is_visible)
                error = visit(context, name);
        }
    bw_lvm_groups_free(&groups);
    return error;
}

const struct bw_container_type bw_lvm_container = {
    .layer = "layout/lvm", .joins = true, .find = find, .option = "volume", .list = list};

static const struct bw_option options[] = {
    {"volume", BW_OPTION_STRING, NULL, 0, 0, "which logical volume: its name, or GROUP/NAME", NULL},
    {0},
};

static const char page[] =
    "Shows a logical volume of LVM2 as a device, without the device mapper. The default graph "
    "contains it for images, or partitions, that are physical volumes. All physical volumes of "
    "the group are given, in any order. If several logical volumes contain a btrfs, --volume "
    "selects one:\n\n"
    "    btrfs-walk disk1.img disk2.img\n"
    "    btrfs-walk --volume vg0/home disk1.img disk2.img\n\n"
    "It reads linear, striped and thin volumes, mirrors, RAID0 and RAID1. Volumes of other types, "
    "such as snapshots of volumes that are not thin, caches and RAID with parity, are refused by "
    "name. If a physical volume is missing, only the data on it cannot be read. If one was missing "
    "for a while, its legs of RAID1 are not read until they are rebuilt.\n\n"
    "The newest metadata on any physical volume count. Metadata with a wrong checksum are not "
    "used.\n";

const struct bw_xlator_class bw_layout_lvm_class = {
    .type = "layout/lvm",
    .description = "shows a logical volume of LVM2 as a device",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = UINT32_MAX,
    .private_size = sizeof(struct lvm),
    .options = options,
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = title},
};
