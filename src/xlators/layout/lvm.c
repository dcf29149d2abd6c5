/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/lvm: shows a logical volume of LVM2 as a device. Its children are physical volumes, in any
 * order, also of several groups; lvm_metadata.c reads their groups.
 *
 * A logical volume consists of segments, which lie on physical volumes, or on other logical ones.
 * A byte is located by descending through them. The legs of a mirror are copies of a byte. A leg
 * that was missing for a while is out of date until it is rebuilt, and is not read before.
 *
 * A thin volume has blocks in the data of its pool. The metadata of the pool are a volume of their
 * own: its superblock leads to a B-tree of the thin volumes, whose values are the roots of further
 * B-trees, which map blocks of a thin volume to blocks of the pool. Nodes that were read remain in
 * a cache. Sources: drivers/md/dm-thin-metadata.c and persistent-data/ in the kernel, and metadata
 * that thin_restore wrote.
 *
 * Everything in the metadata may be hostile: volumes can contain themselves, so all descents have a
 * limited depth, and a volume is never much larger than its devices.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "base/search.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/lvm_metadata.h"
#include "xlators/pieces.h"

enum {
    SECTOR = 512,
    DEEPEST = 8, /* logical volumes below each other */
};

struct thin;

struct lvm {
    const struct bw_piece_map *pieces; /* the first member, for bw_pieces_*() */
    struct bw_lvm_groups groups;
    const struct bw_lvm_group *group;
    const struct bw_lvm_volume *volume;
    struct thin *thin;                 /* NULL: the volume is not a thin one */
    const struct bw_lvm_segment *pool; /* the pool of the thin volume */
};

/* Where a byte of a logical volume is. */
struct place {
    struct bw_lvm_physical *physical; /* NULL: a hole */
    uint64_t offset;                  /* on its device */
    uint64_t length;                  /* bytes that follow there */
    size_t copies;                    /* legs of a mirror, otherwise 1 */
    bool is_stale;                    /* other legs of a mirror have newer data */
};

/* Locating. */

/* The area with a byte of a segment, and the offset in it. In mirrors, `copy` chooses the area. */
static const struct bw_lvm_area *area_at(const struct bw_lvm_group *group,
                                         const struct bw_lvm_segment *segment, uint64_t inside,
                                         size_t copy, struct place *place)
{
    const struct bw_lvm_area *areas = group->areas.items + segment->first_area;
    place->offset = inside;
    place->length = segment->length - inside;
    if (segment->is_mirror) {
        const struct bw_lvm_area *leg = &areas[copy % segment->area_count];
        if (inside >= leg->valid)
            place->is_stale = true;
        else
            place->length = bw_min(place->length, leg->valid - inside);
        return leg;
    }
    if (segment->area_count == 1)
        return areas;
    const uint64_t stripe = inside / segment->stripe, rest = inside % segment->stripe;
    place->offset = stripe / segment->area_count * segment->stripe + rest;
    place->length = bw_min(place->length, segment->stripe - rest);
    return &areas[stripe % segment->area_count];
}

/* Locates a byte of a volume that is not a thin one. */
static struct bw_error *locate_below(const struct bw_lvm_group *group,
                                     const struct bw_lvm_volume *volume, uint64_t address,
                                     size_t copy, struct place *place)
{
    uint64_t length = UINT64_MAX;
    *place = (struct place){.copies = 0};
    for (unsigned depth = 0; depth < DEEPEST; depth++) {
        if (address >= volume->size)
            return bw_error_create(BW_ERROR_CORRUPT, "the logical volume %s ends at %" PRIu64,
                                   volume->name, volume->size);
        const struct bw_lvm_segment *segments = group->segments.items + volume->first_segment;
        const size_t after = BW_FIRST_INDEX(i, volume->segment_count, segments[i].begin > address);
        const struct bw_lvm_segment *segment = &segments[after ? after - 1 : 0];
        if (!segment->is_known || segment->is_thin || segment->is_pool)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "the logical volume %s has the type %s, which is not read: "
                                   "activate it with lvm, and read its device",
                                   volume->name, segment->type);
        if (!depth)
            place->copies = segment->is_mirror ? segment->area_count : 1;
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

static const struct bw_lvm_volume *area_volume(const struct lvm *lvm,
                                               const struct bw_lvm_segment *segment, size_t index)
{
    const struct bw_lvm_area *area = &lvm->group->areas.items[segment->first_area + index];
    return &lvm->group->volumes.items[area->index];
}

static bool is_usable(const struct place *place)
{
    return !place->physical || (place->physical->layer && !place->is_stale);
}

static struct bw_error *unusable_error(const struct bw_lvm_group *group, const struct place *place)
{
    const struct bw_lvm_physical *physical = place->physical;
    if (physical->layer)
        return bw_error_create(BW_ERROR_MISSING_DEVICE,
                               "the physical volume %s of the volume group %s was missing for a "
                               "while: its part of a mirror is out of date",
                               physical->name, group->name);
    return bw_error_create(BW_ERROR_MISSING_DEVICE,
                           "the physical volume %s%s%s of the volume group %s is missing (%s)",
                           physical->name, *physical->device ? ", last seen as " : "",
                           physical->device, group->name, physical->id);
}

/* Thin pools. */

enum {
    THIN_BLOCK = 4096,
    THIN_SLOTS = 256,  /* nodes in memory */
    THIN_DEEPEST = 16, /* levels of a tree */
    THIN_MAGIC = 27022010,
    THIN_NEWEST = 2,
    TIME_BITS = 24, /* below the number of a block of the pool */
};

/* The CRC-32C of a block is combined with a number that depends on its type. */
enum { MARK_SUPERBLOCK = 160774, MARK_NODE = 121107 };

struct disk_superblock {
    bw_le32 checksum, flags;
    bw_le64 block;
    uint8_t uuid[16];
    bw_le64 magic;
    bw_le32 version, time;
    bw_le64 transaction, held;
    uint8_t space_maps[2][128];
    bw_le64 mapping_root, details_root;
    bw_le32 chunk, metadata_block; /* sizes in sectors */
    bw_le64 blocks;
    bw_le32 compat, compat_ro, incompat;
} __attribute__((packed));

static_assert(offsetof(struct disk_superblock, mapping_root) == 320, "as on disk");

enum { NODE_INTERNAL = 1, NODE_LEAF = 2 };

struct disk_node {
    bw_le32 checksum, flags;
    bw_le64 block;
    bw_le32 count, room, value_size, padding;
    bw_le64 keys[(THIN_BLOCK - 32) / sizeof(bw_le64)]; /* `room` of them, then the values */
};

static_assert(sizeof(struct disk_node) == THIN_BLOCK, "as on disk");

/* The mapping of a thin volume. */
struct thin {
    uint64_t root;
    pthread_mutex_t lock; /* protects the slots */
    struct {
        uint64_t block; /* 0: empty */
        struct disk_node node;
    } slots[THIN_SLOTS];
};

/* Reads a block of a pool's metadata from the first copy with the right checksum. */
static struct bw_error *read_thin_block(const struct bw_frame *frame, const struct lvm *lvm,
                                        uint64_t number, uint32_t mark, void *block)
{
    const struct bw_lvm_volume *volume = area_volume(lvm, lvm->pool, 1);
    struct bw_error *first = NULL;
    if (number > INT64_MAX / THIN_BLOCK)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin metadata have no block %" PRIu64,
                               number);
    const uint64_t offset = number * THIN_BLOCK;
    for (size_t copy = 0, copies = 1; copy < copies; copy++) {
        struct place place;
        struct bw_error *error = locate_below(lvm->group, volume, offset, copy, &place);
        copies = place.copies;
        if (!error && !is_usable(&place))
            error = unusable_error(lvm->group, &place);
        else if (!error && place.length < THIN_BLOCK)
            error = bw_error_create(BW_ERROR_CORRUPT, "the thin metadata end at %" PRIu64,
                                    volume->size);
        else if (!error)
            error = bw_read_raw(frame, place.physical->layer, place.offset, block, THIN_BLOCK);
        if (!error) {
            bw_le32 stored;
            memcpy(&stored, block, sizeof stored);
            const uint32_t found = bw_crc32c(UINT32_MAX, (const uint8_t *)block + sizeof stored,
                                             THIN_BLOCK - sizeof stored);
            if (bw_get32(stored) == (found ^ mark)) {
                bw_error_free(first);
                return NULL;
            }
            error = bw_error_create(BW_ERROR_CORRUPT, "the checksum is wrong");
        }
        first = bw_error_first(first, error);
    }
    return bw_error_prefix(first, "block %" PRIu64 " of the thin metadata", number);
}

static uint64_t key_at(const struct disk_node *node, uint32_t index)
{
    return bw_get64(node->keys[index]);
}

static uint64_t value_at(const struct disk_node *node, uint32_t index)
{
    return bw_get64(node->keys[bw_get32(node->room) + index]);
}

/* Loads a node into its slot; the lock is held. */
static struct bw_error *load_node(const struct bw_frame *frame, const struct lvm *lvm,
                                  uint64_t number, const struct disk_node **found)
{
    const uint64_t slot = number % THIN_SLOTS;
    struct disk_node *node = &lvm->thin->slots[slot].node;
    *found = node;
    if (lvm->thin->slots[slot].block == number && number)
        return NULL;
    lvm->thin->slots[slot].block = 0;
    BW_TRY(read_thin_block(frame, lvm, number, MARK_NODE, node));

    const uint32_t flags = bw_get32(node->flags), count = bw_get32(node->count);
    const uint32_t room = bw_get32(node->room);
    const uint32_t most = sizeof node->keys / (sizeof(bw_le64) + sizeof(bw_le64));
    bool is_valid = (flags == NODE_INTERNAL || flags == NODE_LEAF) &&
                    bw_get64(node->block) == number && count <= room && room <= most &&
                    bw_get32(node->value_size) == sizeof(bw_le64);
    for (uint32_t i = 1; i < count && is_valid; i++)
        is_valid = key_at(node, i - 1) < key_at(node, i);
    if (!is_valid)
        return bw_error_create(
            BW_ERROR_CORRUPT, "block %" PRIu64 " of the thin metadata is not a valid node", number);
    lvm->thin->slots[slot].block = number;
    return NULL;
}

/* The number of keys that are not greater than one. */
static uint32_t count_up_to(const struct disk_node *node, uint64_t key)
{
    return (uint32_t)BW_FIRST_INDEX(i, bw_get32(node->count), key_at(node, (uint32_t)i) > key);
}

/* Finds the leaf of a key; the lock is held. `next` becomes the first key of the leaf after it;
 * UINT64_MAX: none. */
static struct bw_error *find_leaf(const struct bw_frame *frame, const struct lvm *lvm,
                                  uint64_t root, uint64_t key, const struct disk_node **leaf,
                                  uint64_t *next)
{
    uint64_t number = root;
    *next = UINT64_MAX;
    for (unsigned depth = 0; depth < THIN_DEEPEST; depth++) {
        BW_TRY(load_node(frame, lvm, number, leaf));
        if (bw_get32((*leaf)->flags) == NODE_LEAF)
            return NULL;
        const uint32_t count = count_up_to(*leaf, key), all = bw_get32((*leaf)->count);
        if (!all)
            break;
        const uint32_t index = count ? count - 1 : 0;
        if (index + 1 < all)
            *next = key_at(*leaf, index + 1);
        number = value_at(*leaf, index);
    }
    return bw_error_create(BW_ERROR_CORRUPT,
                           "a tree of the thin metadata is damaged at block %" PRIu64, number);
}

static uint64_t pool_block_at(const struct disk_node *leaf, uint32_t index)
{
    return value_at(leaf, index) >> TIME_BITS;
}

/* Finds a byte of a thin volume in the data of its pool, and how far the blocks that follow are
 * next to each other there. */
static struct bw_error *find_in_pool(const struct bw_frame *frame, const struct lvm *lvm,
                                     uint64_t *address, uint64_t *length, bool *is_hole)
{
    const uint64_t chunk = lvm->pool->chunk, block = *address / chunk, inside = *address % chunk;
    const struct disk_node *leaf;
    uint64_t next, in_pool = 0; /* `next`: the first block after the range */
    pthread_mutex_lock(&lvm->thin->lock);
    struct bw_error *error = find_leaf(frame, lvm, lvm->thin->root, block, &leaf, &next);
    if (!error) {
        const uint32_t after = count_up_to(leaf, block), all = bw_get32(leaf->count);
        *is_hole = !after || key_at(leaf, after - 1) != block;
        if (!*is_hole) {
            uint32_t end = after;
            in_pool = pool_block_at(leaf, after - 1);
            while (end < all && key_at(leaf, end) == key_at(leaf, end - 1) + 1 &&
                   pool_block_at(leaf, end) == pool_block_at(leaf, end - 1) + 1)
                end++;
            next = block + (end - after) + 1;
        } else if (after < all) {
            next = key_at(leaf, after);
        }
        if (next <= UINT64_MAX / chunk && next * chunk - *address < *length)
            *length = next * chunk - *address;
    }
    pthread_mutex_unlock(&lvm->thin->lock);
    if (!error && in_pool > INT64_MAX / chunk)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin pool has no block %" PRIu64, in_pool);
    *address = in_pool * chunk + inside;
    return error;
}

/* Locating in any volume. */

static struct bw_error *locate_address(const struct bw_frame *frame, const struct lvm *lvm,
                                       uint64_t address, size_t copy, struct place *place)
{
    const struct bw_lvm_volume *volume = lvm->volume;
    uint64_t length = volume->size - address;
    bool is_hole = false;
    if (lvm->thin) {
        BW_TRY(find_in_pool(frame, lvm, &address, &length, &is_hole));
        volume = area_volume(lvm, lvm->pool, 0);
    }
    *place = (struct place){.length = length, .copies = 1};
    if (!is_hole)
        BW_TRY(locate_below(lvm->group, volume, address, copy, place));
    place->length = bw_min(place->length, length);
    return NULL;
}

struct bw_error *bw_lvm_locate(struct bw_xlator *volume, uint64_t *offset, uint64_t *length,
                               struct bw_xlator **below)
{
    const struct lvm *lvm = bw_xlator_private(volume);
    struct place place;
    BW_TRY(locate_address(NULL, lvm, *offset, 0, &place));
    if (lvm->thin || place.copies > 1)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "the logical volume %s is not linear",
                               lvm->volume->name);
    if (!is_usable(&place))
        return unusable_error(lvm->group, &place);
    *offset = place.offset;
    *length = place.length < *length ? place.length : *length;
    *below = place.physical->layer;
    return NULL;
}

/* Reading. */

/* Reads one of the copies of a piece, which may be in several places, unlike the copy that a device
 * failed to read. */
static struct bw_error *read_copy(const struct bw_frame *frame, const struct lvm *lvm,
                                  const struct bw_device_piece *piece, size_t copy)
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
static struct bw_error *read_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_device_piece *piece)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    struct bw_error *error = BW_TAKE(piece->below.error);
    struct place place;
    BW_AUTO_ERROR struct bw_error *unknown = locate_address(frame, lvm, piece->address, 0, &place);
    for (size_t copy = 0; error && !unknown && copy < place.copies; copy++) {
        BW_AUTO_ERROR struct bw_error *lost = read_copy(frame, lvm, piece, copy);
        if (!lost)
            bw_error_free(BW_TAKE(error));
    }
    return error;
}

/* Locates the first copy of a byte on a physical volume that is not missing. */
static struct bw_error *locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint64_t wanted, struct bw_below *below)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    struct place place;
    size_t copy = 0;
    (void)wanted;
    do {
        BW_TRY(locate_address(frame, lvm, address, copy, &place));
    } while (!is_usable(&place) && ++copy < place.copies);
    if (!is_usable(&place))
        return unusable_error(lvm->group, &place);
    *below = (struct bw_below){
        .offset = place.offset, .length = place.length, .is_hole = !place.physical};
    if (place.physical)
        below->layer = place.physical->layer;
    return NULL;
}

static const struct bw_piece_map pieces = {"the logical volume ends", locate, read_copies};

/* Setting up. */

/* Finds the volume with a name, or GROUP/NAME. */
static struct bw_error *choose_volume(struct lvm *lvm, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer names = {0};
    for (size_t i = 0; i < lvm->groups.list.count; i++) {
        const struct bw_lvm_group *group = &lvm->groups.list.items[i];
        const size_t prefix = strlen(group->name);
        for (size_t k = 0; k < group->volumes.count; k++) {
            const char *name = group->volumes.items[k].name;
            const bool is_qualified = strncmp(wanted, group->name, prefix) == 0 &&
                                      wanted[prefix] == '/' &&
                                      strcmp(wanted + prefix + 1, name) == 0;
            if (!is_qualified && strcmp(wanted, name) != 0)
                continue;
            if (lvm->volume)
                return bw_error_advise(
                    bw_error_create(BW_ERROR_AMBIGUOUS,
                                    "the volume groups %s and %s both have a logical volume %s",
                                    lvm->group->name, group->name, wanted),
                    "choose one with `volume GROUP/NAME`");
            lvm->group = group;
            lvm->volume = &group->volumes.items[k];
        }
    }
    if (lvm->volume)
        return NULL;
    for (size_t i = 0; i < lvm->groups.list.count; i++) {
        const struct bw_lvm_group *group = &lvm->groups.list.items[i];
        for (size_t k = 0; k < group->volumes.count; k++)
            if (group->volumes.items[k].is_visible)
                bw_buffer_format(&names, "%s%s/%s", names.length ? ", " : "", group->name,
                                 group->volumes.items[k].name);
    }
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no logical volume %s; there are: %.*s",
                           wanted, (int)names.length, names.data ? names.data : "");
}

/* The legs of RAID1. */

/* The status of all legs as a leg has recorded it; dm-raid.c calls it a superblock. */
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
    if (leg->metadata == SIZE_MAX)
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        locate_below(lvm->group, &lvm->group->volumes.items[leg->metadata], 0, 0, &place);
    if (error || !is_usable(&place) || place.length < sizeof *legs)
        return false;
    return bw_try_read_raw(NULL, place.physical->layer, place.offset, legs, sizeof *legs) &&
           bw_get32(legs->magic) == MAGIC;
}

/* Sets how far each leg of a mirror is valid. The newest status counts. */
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

/* The size of a volume on devices that were cut off. */

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

/* The end of the data of a volume. `ends` contains the results for all volumes of the group;
 * UINT64_MAX: not measured yet. A volume that is being measured has 0, which ends loops. */
static uint64_t measure_volume(const struct bw_lvm_group *group, size_t index, uint64_t *ends,
                               unsigned depth)
{
    const struct bw_lvm_volume *volume = &group->volumes.items[index];
    if (ends[index] != UINT64_MAX)
        return ends[index];
    ends[index] = 0;
    for (size_t i = volume->segment_count; i-- > 0 && !ends[index];) {
        const struct bw_lvm_segment *segment = &group->segments.items[volume->first_segment + i];
        const bool is_mapped = segment->is_known && !segment->is_thin && !segment->is_pool;
        uint64_t most = is_mapped ? 0 : segment->length;
        for (size_t k = 0; k < segment->area_count && most < segment->length; k++) {
            /* The bytes of the area; more than any segment has if its device is missing. */
            const struct bw_lvm_area *area = &group->areas.items[segment->first_area + k];
            uint64_t begin = area->begin, end = 0;
            if (!area->is_logical) {
                const struct bw_lvm_physical *physical = &group->physicals.items[area->index];
                begin += physical->begin;
                end = physical->layer ? bw_xlator_size(physical->layer) : UINT64_MAX;
            } else if (depth + 1 < DEEPEST) {
                end = measure_volume(group, area->index, ends, depth + 1);
            }
            end = end_in_segment(segment, k, begin < end ? end - begin : 0);
            most = bw_max(most, end);
        }
        ends[index] = most ? segment->begin + most : 0;
    }
    return ends[index];
}

/* Thin volumes. */

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

/* Finds the root of the mapping of a thin volume in the metadata of its pool. */
static struct bw_error *open_thin(struct lvm *lvm, uint64_t device)
{
    lvm->thin = calloc(1, sizeof *lvm->thin);
    if (!lvm->thin)
        return bw_error_no_memory();
    pthread_mutex_init(&lvm->thin->lock, NULL);

    uint8_t block[THIN_BLOCK];
    struct disk_superblock superblock;
    BW_TRY(read_thin_block(NULL, lvm, 0, MARK_SUPERBLOCK, block));
    memcpy(&superblock, block, sizeof superblock);
    const uint64_t chunk = (uint64_t)bw_get32(superblock.chunk) * SECTOR;
    if (bw_get64(superblock.magic) != THIN_MAGIC)
        return bw_error_create(BW_ERROR_CORRUPT, "the superblock of the thin pool is damaged");
    if (bw_get32(superblock.version) > THIN_NEWEST || bw_get32(superblock.incompat) ||
        bw_get32(superblock.metadata_block) != THIN_BLOCK / SECTOR)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the thin pool has version %" PRIu32 " and the features 0x%" PRIx32
                               ", which are not read",
                               bw_get32(superblock.version), bw_get32(superblock.incompat));
    if (!chunk || chunk != lvm->pool->chunk)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the thin pool has blocks of %" PRIu64 " bytes, not of %" PRIu64,
                               chunk, lvm->pool->chunk);

    const struct disk_node *leaf;
    uint64_t next;
    BW_TRY(find_leaf(NULL, lvm, bw_get64(superblock.mapping_root), device, &leaf, &next));
    const uint32_t count = count_up_to(leaf, device);
    if (!count || key_at(leaf, count - 1) != device)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the thin pool has no volume %" PRIu64, device);
    lvm->thin->root = value_at(leaf, count - 1);
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    const size_t count = bw_xlator_child_count(xlator);
    lvm->pieces = &pieces;
    BW_AUTO_FREE struct bw_xlator **devices = calloc(count, sizeof(struct bw_xlator *));
    if (!devices)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        devices[i] = bw_xlator_child(xlator, i);
    BW_TRY(bw_lvm_groups_read(devices, count, &lvm->groups));
    BW_TRY(choose_volume(lvm, bw_xlator_option_text(xlator, "volume")));

    const struct bw_lvm_group *group = lvm->group;
    const struct bw_lvm_volume *volume = lvm->volume;
    bw_xlator_set_title(xlator, "LVM %s/%s", group->name, volume->name);
    if (volume->is_snapshot)
        return bw_error_create(
            BW_ERROR_UNSUPPORTED,
            "the logical volume %s has the type snapshot, which is not read: "
            "read its origin %s/%s, or activate it with lvm, and read its device",
            volume->name, group->name, volume->origin);
    BW_AUTO_FREE uint64_t *ends = malloc(group->volumes.count * sizeof *ends);
    if (!ends)
        return bw_error_no_memory();
    memset(ends, 0xff, group->volumes.count * sizeof *ends);
    const size_t number = (size_t)(volume - group->volumes.items);
    bw_xlator_set_size(xlator, measure_volume(group, number, ends, 0));

    const struct bw_lvm_segment *first = NULL;
    if (volume->segment_count)
        first = &group->segments.items[volume->first_segment];
    if (!first || !first->is_thin || !first->is_known)
        return check_volume(xlator, volume);
    lvm->pool = find_pool(lvm, first);
    if (!lvm->pool || volume->segment_count != 1)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin volume %s has no pool", volume->name);
    BW_TRY(check_volume(xlator, area_volume(lvm, lvm->pool, 0)));
    BW_TRY(check_volume(xlator, area_volume(lvm, lvm->pool, 1)));
    struct bw_error *error = open_thin(lvm, first->device);
    return error ? bw_error_prefix(error, "the thin volume %s", volume->name) : NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct lvm *lvm = bw_xlator_private(xlator);
    if (lvm->thin)
        pthread_mutex_destroy(&lvm->thin->lock);
    free(lvm->thin);
    bw_lvm_groups_free(&lvm->groups);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct lvm *lvm = bw_xlator_private(xlator);
    bw_json_number(json, "size", lvm->volume->size);
    bw_json_number(json, "segments", lvm->volume->segment_count);
}

/* The container. Labels do not name the group, so all physical volumes are children of one layer.
 */

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    (void)id;
    return bw_lvm_find_label(device, NULL);
}

static struct bw_error *list(struct bw_xlator *const *devices, size_t count,
                             struct bw_strings *names)
{
    enum { MOST_VOLUMES = 4096, MOST_BYTES = 256 << 20 };
    BW_SCOPED(bw_lvm_groups) struct bw_lvm_groups groups;
    size_t visible = 0;
    BW_TRY(bw_lvm_groups_read(devices, count, &groups));

    /* Each volume gets a layer, which reads the texts again. Texts with so many volumes that this
     * would take minutes are not listed. */
    for (size_t i = 0; i < groups.list.count; i++)
        for (size_t k = 0; k < groups.list.items[i].volumes.count; k++)
            visible += groups.list.items[i].volumes.items[k].is_visible;
    if (visible > MOST_VOLUMES || visible * groups.text_length > MOST_BYTES)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "it has %zu logical volumes, too many to examine all of them: "
                               "choose one by its name",
                               visible);

    for (size_t i = 0; i < groups.list.count; i++)
        for (size_t k = 0; k < groups.list.items[i].volumes.count; k++) {
            char name[2 * BW_LVM_NAME + 1];
            snprintf(name, sizeof name, "%s/%s", groups.list.items[i].name,
                     groups.list.items[i].volumes.items[k].name);
            if (groups.list.items[i].volumes.items[k].is_visible)
                BW_TRY(bw_strings_push_copy(names, name));
        }
    return NULL;
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
                   .read = bw_pieces_read,
                   .advise = bw_pieces_advise,
                   .size = bw_xlator_own_size,
                   .next_stored = bw_pieces_next_stored,
                   .dump = dump,
                   .title = bw_xlator_title},
};
