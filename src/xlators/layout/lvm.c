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
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/lvm_metadata.h"

enum { DEEPEST = 8 /* logical volumes below each other */ };

struct lvm {
    struct bw_lvm_groups groups;
    const struct bw_lvm_group *group;
    const struct bw_lvm_volume *volume;
    char title[16 + 2 * BW_LVM_NAME];
};

/* Where a byte of a logical volume is. */
struct place {
    const struct bw_lvm_physical *physical;
    uint64_t offset; /* on its device */
    uint64_t length; /* bytes that follow there */
};

/* Locating. */

static const struct bw_lvm_segment *segment_at(const struct bw_lvm_group *group,
                                               const struct bw_lvm_volume *volume, uint64_t address)
{
    const struct bw_lvm_segment *segments = group->segments + volume->first_segment;
    size_t low = 0, high = volume->segment_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(segments[middle].begin <= address ? &low : &high) = middle;
    }
    return &segments[low];
}

/* The area with a byte of a segment, and the offset in it. In mirrors, `copy` chooses the area. */
static const struct bw_lvm_area *area_at(const struct bw_lvm_group *group,
                                         const struct bw_lvm_segment *segment, uint64_t inside,
                                         size_t copy, struct place *place)
{
    const struct bw_lvm_area *areas = group->areas + segment->first_area;
    place->offset = inside;
    place->length = segment->length - inside;
    if (segment->is_mirror)
        return &areas[copy % segment->area_count];
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

static struct bw_error *locate(const struct bw_lvm_group *group, const struct bw_lvm_volume *volume,
                               uint64_t address, size_t copy, struct place *place)
{
    uint64_t length = UINT64_MAX;
    for (unsigned depth = 0; depth < DEEPEST; depth++) {
        if (address >= volume->size)
            return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s ends at %" PRIu64,
                                   volume->name, volume->size);
        const struct bw_lvm_segment *segment = segment_at(group, volume, address);
        if (!segment->is_known)
            return unknown_type(volume, segment->type);
        const struct bw_lvm_area *area =
            area_at(group, segment, address - segment->begin, copy, place);
        length = place->length < length ? place->length : length;
        address = area->begin + place->offset;
        if (!area->is_logical) {
            place->physical = &group->physicals[area->index];
            place->offset = place->physical->begin + address;
            place->length = length;
            return NULL;
        }
        volume = &group->volumes[area->index];
    }
    return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s contains itself", volume->name);
}

static size_t copies_at(const struct lvm *lvm, uint64_t address)
{
    const struct bw_lvm_segment *segment = segment_at(lvm->group, lvm->volume, address);
    return segment->is_mirror ? segment->area_count : 1;
}

static struct bw_error *missing_error(const struct bw_lvm_group *group,
                                      const struct bw_lvm_physical *physical)
{
    return bw_error_create(BW_ERROR_MISSING_DEVICE,
                           "the physical volume %s%s%s of the volume group %s is missing (%s)",
                           physical->name, *physical->device ? ", last seen as " : "",
                           physical->device, group->name, physical->id);
}

/* Locates a copy of a byte on a physical volume that is not missing. */
static struct bw_error *find_place(const struct lvm *lvm, uint64_t address, struct place *place)
{
    const size_t copies = copies_at(lvm, address);
    for (size_t copy = 0; copy < copies; copy++) {
        BW_TRY(locate(lvm->group, lvm->volume, address, copy, place));
        if (place->physical->layer)
            return NULL;
    }
    return missing_error(lvm->group, place->physical);
}

/* Reading. */

/* A part of a request. */
struct piece {
    struct bw_request *request, below;
    struct bw_xlator *layer;
    uint64_t address;
};

struct batch {
    struct piece pieces[BW_BATCH];
    size_t count;
};

/* Reads a piece from the other copies, if there are any. */
static struct bw_error *read_copies(const struct bw_frame *frame, const struct lvm *lvm,
                                    struct piece *piece)
{
    struct bw_error *error = BW_TAKE(piece->below.error);
    for (size_t copy = 0; error && copy < copies_at(lvm, piece->address); copy++) {
        struct place place;
        BW_AUTO_ERROR struct bw_error *lost =
            locate(lvm->group, lvm->volume, piece->address, copy, &place);
        if (lost || !place.physical->layer || place.physical->layer == piece->layer)
            continue;
        struct bw_request other = piece->below;
        other.address = place.offset;
        bw_wind(frame, place.physical->layer, &other, 1);
        if (!other.error)
            bw_error_free(BW_TAKE(error));
        bw_error_free(other.error);
    }
    return error;
}

static void read_from(const struct bw_frame *frame, struct batch *batch, size_t first)
{
    struct bw_request requests[BW_BATCH];
    size_t owners[BW_BATCH], count = 0;
    struct bw_xlator *layer = batch->pieces[first].layer;
    for (size_t i = first; i < batch->count; i++)
        if (batch->pieces[i].layer == layer) {
            owners[count] = i;
            requests[count++] = batch->pieces[i].below;
        }
    bw_wind(frame, layer, requests, count);
    for (size_t i = 0; i < count; i++)
        bw_request_answer(&batch->pieces[owners[i]].below, &requests[i]);
}

static bool is_first_of_layer(const struct batch *batch, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (batch->pieces[i].layer == batch->pieces[index].layer)
            return false;
    return true;
}

static void read_batch(const struct bw_frame *frame, const struct lvm *lvm, struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (is_first_of_layer(batch, i))
            read_from(frame, batch, i);
    for (size_t i = 0; i < batch->count; i++) {
        struct piece *piece = &batch->pieces[i];
        piece->request->error =
            bw_error_first(piece->request->error, read_copies(frame, lvm, piece));
        piece->request->rebuilt |= piece->below.rebuilt;
    }
    batch->count = 0;
}

static void add_pieces(const struct bw_frame *frame, const struct lvm *lvm, struct batch *batch,
                       struct bw_request *request)
{
    for (uint32_t done = 0; done < request->length && !request->error;) {
        const uint32_t left = request->length - done;
        struct place place;
        request->error = find_place(lvm, request->address + done, &place);
        if (request->error)
            return;
        const uint32_t length = place.length < left ? (uint32_t)place.length : left;
        struct piece *piece = &batch->pieces[batch->count++];
        *piece = (struct piece){.request = request,
                                .below = *request,
                                .layer = place.physical->layer,
                                .address = request->address + done};
        piece->below.address = place.offset;
        piece->below.length = length;
        piece->below.buffer = (uint8_t *)request->buffer + done;
        piece->below.copy = 0;
        done += length;
        if (batch->count == BW_BATCH)
            read_batch(frame, lvm, batch);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    struct batch batch;
    batch.count = 0;
    for (size_t i = 0; i < count; i++)
        add_pieces(frame, lvm, &batch, &requests[i]);
    read_batch(frame, lvm, &batch);
}

static void advise_range(const struct bw_frame *frame, const struct lvm *lvm, struct bw_range range)
{
    enum { MOST = 256 /* pieces of a range: more cannot be worth announcing */ };
    for (unsigned i = 0; i < MOST && range.length && range.address < lvm->volume->size; i++) {
        struct place place;
        BW_AUTO_ERROR struct bw_error *error = find_place(lvm, range.address, &place);
        if (error)
            return;
        const uint64_t length = place.length < range.length ? place.length : range.length;
        bw_wind_advise(frame, place.physical->layer, &(struct bw_range){place.offset, length}, 1,
                       0);
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
    return lvm->volume->size;
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
    while (address < lvm->volume->size) {
        struct place place;
        BW_AUTO_ERROR struct bw_error *error = find_place(lvm, address, &place);
        if (error)
            return address;
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
    for (size_t i = 0; i < groups->count; i++)
        for (size_t k = 0; k < groups->groups[i].volume_count; k++)
            if (groups->groups[i].volumes[k].is_visible)
                bw_buffer_format(text, "%s%s/%s", text->length ? ", " : "", groups->groups[i].name,
                                 groups->groups[i].volumes[k].name);
}

static struct bw_error *choose_volume(struct lvm *lvm, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer names = {0};
    for (size_t i = 0; i < lvm->groups.count; i++) {
        const struct bw_lvm_group *group = &lvm->groups.groups[i];
        for (size_t k = 0; k < group->volume_count; k++) {
            if (!is_named(group, &group->volumes[k], wanted))
                continue;
            if (lvm->volume)
                return bw_error_create(BW_ERROR_AMBIGUOUS,
                                       "the volume groups %s and %s both have a logical volume %s",
                                       lvm->group->name, group->name, wanted);
            lvm->group = group;
            lvm->volume = &group->volumes[k];
        }
    }
    if (lvm->volume)
        return NULL;
    append_names(&lvm->groups, &names);
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no logical volume %s; there are: %.*s",
                           wanted, (int)names.length, names.data ? names.data : "");
}

/* Locates each area once, so that unsupported types and loops are found before the first read.
 * Reports missing physical volumes. */
static struct bw_error *check_volume(struct bw_xlator *xlator)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    if (lvm->volume->is_snapshot)
        return unknown_type(lvm->volume, "snapshot");
    for (size_t i = 0; i < lvm->volume->segment_count; i++) {
        const struct bw_lvm_segment *segment =
            &lvm->group->segments[lvm->volume->first_segment + i];
        for (size_t copy = 0; copy < (segment->area_count ? segment->area_count : 1); copy++) {
            const uint64_t step = segment->is_mirror ? 0 : copy * segment->stripe;
            struct place place;
            if (step >= segment->length)
                continue;
            BW_TRY(locate(lvm->group, lvm->volume, segment->begin + step, copy, &place));
            if (!place.physical->layer)
                bw_xlator_report(xlator, BW_NOTE, missing_error(lvm->group, place.physical));
        }
    }
    return lvm->volume->size ? NULL
                             : bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s is empty",
                                               lvm->volume->name);
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
    return check_volume(xlator);
}

static void fini(struct bw_xlator *xlator)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    bw_lvm_groups_free(&lvm->groups);
}

static const char *title(struct bw_xlator *xlator)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    return lvm->title;
}

static void show(struct bw_xlator *xlator, struct bw_json *json)
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

static struct bw_error *list(const struct bw_frame *frame, struct bw_xlator *const *devices,
                             size_t count, bw_volume_visitor *take, void *context)
{
    struct bw_lvm_groups groups;
    struct bw_error *error = bw_lvm_groups_read(frame, devices, count, &groups);
    for (size_t i = 0; !error && i < groups.count; i++)
        for (size_t k = 0; !error && k < groups.groups[i].volume_count; k++) {
            char name[2 * BW_LVM_NAME + 1];
            snprintf(name, sizeof name, "%s/%s", groups.groups[i].name,
                     groups.groups[i].volumes[k].name);
            if (groups.groups[i].volumes[k].is_visible)
                error = take(context, name);
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
    "    btrfs-walk disk1.img -d disk2.img\n"
    "    btrfs-walk --volume vg0/home disk1.img -d disk2.img\n\n"
    "It reads linear and striped volumes, mirrors, RAID0 and RAID1. Volumes of other types, such "
    "as thin volumes, snapshots, caches and RAID with parity, are refused by name. If a physical "
    "volume is missing, only the data on it cannot be read.\n\n"
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
                   .dump = show,
                   .title = title},
};
