/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rebuilds a lost chunk tree: from the contents of the system chunks, then also of the metadata
 * chunks known by then, and finally from whole devices. Chunks without an item are derived from
 * their extents on devices and their block groups.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "base/zeros.h"
#include "fs/opening.h"
#include "ondisk/disk_items.h"
#include "rescue/chunk_set.h"
#include "rescue/rescue.h"

/* Deriving chunks without an item from device extents and block groups. */

void bw_chunk_facts_free(struct bw_chunk_facts *facts)
{
    bw_newest_free(&facts->chunks);
    bw_newest_free(&facts->devices);
    bw_newest_free(&facts->groups);
    free(facts->extents);
    bw_data_places_free(&facts->seen);
    *facts = (struct bw_chunk_facts){0};
}

static int by_chunk(const void *left, const void *right)
{
    const struct bw_found_extent *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->chunk, a->devid, a->offset}),
                          ((uint64_t[]){b->chunk, b->devid, b->offset}));
}

struct bw_error *bw_chunk_facts_extents(struct bw_chunk_facts *facts)
{
    const struct bw_newest *devices = &facts->devices;
    free(facts->extents);
    facts->extent_count = 0;
    facts->extents = malloc((devices->items.count + 1) * sizeof *facts->extents);
    if (!facts->extents)
        return bw_error_no_memory();
    for (size_t i = 0; i < devices->items.count; i++) {
        const struct bw_item item = bw_newest_view(devices, &devices->items.items[i]);
        const struct bw_disk_device_extent *disk = (const void *)item.data;
        if (item.size >= sizeof *disk)
            facts->extents[facts->extent_count++] =
                (struct bw_found_extent){bw_get64(disk->chunk_offset), item.key.objectid,
                                         item.key.offset, bw_get64(disk->length)};
    }
    qsort(facts->extents, facts->extent_count, sizeof *facts->extents, by_chunk);
    return NULL;
}

/* The uuid of a device; zeros if unknown. */
static void chunk_facts_uuid(const struct bw_device_scan *scan, const struct bw_chunk_facts *facts,
                             uint64_t devid, uint8_t uuid[BW_UUID_SIZE])
{
    memset(uuid, 0, BW_UUID_SIZE);
    for (size_t i = 0; i < scan->image_count; i++)
        if (scan->images[i].role != BW_IMAGE_UNUSED &&
            scan->images[i].superblock.device.devid == devid)
            memcpy(uuid, scan->images[i].superblock.device.uuid, BW_UUID_SIZE);
    const struct bw_newest *items = &facts->chunks;
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, devid};
    const size_t at = BW_FIRST_INDEX(i, items->items.count,
                                     bw_key_compare(&items->items.items[i].key, &key) >= 0);
    if (at == items->items.count || bw_key_compare(&items->items.items[at].key, &key) != 0)
        return;
    const struct bw_item item = bw_newest_view(items, &items->items.items[at]);
    const struct bw_disk_device_item *disk = (const void *)item.data;
    if (item.size >= sizeof *disk)
        memcpy(uuid, disk->uuid, BW_UUID_SIZE);
}

/* The number of stripes of a chunk; 0 if the extents cannot be all of its extents. */
static unsigned count_stripes(struct bw_derived_chunk *chunk)
{
    const struct bw_raid_profile *profile = chunk->profile;
    const uint64_t length = chunk->extents[0].length;
    for (unsigned i = 1; i < chunk->count; i++)
        if (chunk->extents[i].length != length)
            return 0;
    if (!length || chunk->length % length)
        return 0;
    const uint64_t columns = chunk->length / length;
    if (!profile->striped)
        return columns == 1 && chunk->count >= profile->minimum_stripes &&
                       chunk->count <= profile->maximum_stripes
                   ? chunk->count
                   : 0;
    const uint64_t wanted =
        profile->parity_stripes ? columns + profile->parity_stripes : columns * profile->copies;
    chunk->columns = (unsigned)columns;
    return wanted == chunk->count ? chunk->count : 0;
}

static struct bw_error *add_chunk(const struct bw_derived_chunk *chunk,
                                  const struct bw_chunk_facts *facts, const int *order,
                                  struct bw_chunk_set *set)
{
    const size_t size = sizeof(struct bw_disk_chunk) + chunk->count * sizeof(struct bw_disk_stripe);
    BW_AUTO_FREE uint8_t *bytes = calloc(1, size);
    if (!bytes)
        return bw_error_no_memory();
    struct bw_disk_chunk *disk = (void *)bytes;
    struct bw_disk_stripe *stripes = (void *)(bytes + sizeof *disk);
    const struct bw_item item = {
        {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical}, bytes, (uint32_t)size};
    bool added;
    *disk = (struct bw_disk_chunk){.length = bw_put64(chunk->length),
                                   .owner = bw_put64(BW_EXTENT_TREE),
                                   .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                                   .type = bw_put64(chunk->type),
                                   .io_align = bw_put32(BW_STRIPE_LENGTH),
                                   .io_width = bw_put32(BW_STRIPE_LENGTH),
                                   .sector_size = bw_put32(chunk->scan->sectorsize),
                                   .stripe_count = bw_put16((uint16_t)chunk->count),
                                   .sub_stripes =
                                       bw_put16(chunk->profile->flag == BW_GROUP_RAID10 ? 2 : 1)};
    for (unsigned i = 0; i < chunk->count; i++) {
        if (order[i] < 0) {
            stripes[i].devid = bw_put64(BW_UNKNOWN_DEVICE);
            continue;
        }
        const struct bw_found_extent *extent = &chunk->extents[order[i]];
        stripes[i].devid = bw_put64(extent->devid);
        stripes[i].offset = bw_put64(extent->offset);
        chunk_facts_uuid(chunk->scan, facts, extent->devid, stripes[i].device_uuid);
    }
    return bw_chunk_set_add(set, &item, &added);
}

static void report_derived(struct bw_fs *fs, const struct bw_derived_chunk *chunk,
                           const char *outcome)
{
    if (fs)
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(
                         BW_ERROR_CORRUPT, "chunk %" PRIu64 " (%s, %" PRIu64 " bytes of %s) %s",
                         chunk->logical, chunk->profile ? chunk->profile->name : "unknown profile",
                         chunk->length, chunk->type & BW_GROUP_DATA ? "data" : "tree blocks",
                         outcome));
}

/* Reports how many stripes are unknown. */
static void report_stripes(struct bw_fs *fs, const struct bw_derived_chunk *chunk, const int *order)
{
    unsigned lost = 0;
    for (unsigned i = 0; i < chunk->count; i++)
        lost += order[i] < 0;
    char text[128];
    snprintf(text, sizeof text,
             "has lost %u of %u stripes: their positions on the devices are unknown", lost,
             chunk->count);
    if (lost)
        report_derived(fs, chunk, text);
}

/* Finds the extents by their contents. If other block groups have extents, one without extents is
 * probably stale, of a chunk that was removed. */
static struct bw_error *search_stripes(struct bw_fs *fs, struct bw_derived_chunk *chunk,
                                       const struct bw_chunk_facts *facts, const char *why,
                                       struct bw_chunk_set *set)
{
    struct bw_found_extent found[BW_MOST_STRIPES];
    int order[BW_MOST_STRIPES];
    const bool is_old = !chunk->count && facts->extent_count;
    memset(order, -1, sizeof order);
    if (!chunk->profile || !chunk->scan->is_whole ||
        !bw_found_extents(chunk, facts, set, found, order)) {
        report_derived(is_old ? NULL : fs, chunk, why);
        return NULL;
    }
    report_stripes(fs, chunk, order);
    return add_chunk(chunk, facts, order, set);
}

static struct bw_error *derive_chunk(struct bw_fs *fs, struct bw_derived_chunk *chunk,
                                     const struct bw_chunk_facts *facts, struct bw_chunk_set *set)
{
    int order[BW_MOST_STRIPES];
    memset(order, -1, sizeof order);
    if (!chunk->profile || !chunk->count || chunk->count > BW_MOST_STRIPES || !count_stripes(chunk))
        return search_stripes(fs, chunk, facts,
                              "is lost: its device extents are unknown or incomplete", set);
    if (!chunk->profile->striped)
        for (unsigned i = 0; i < chunk->count; i++)
            order[i] = (int)i;
    else if (!bw_stripe_order_prove(chunk, set, order))
        return search_stripes(fs, chunk, facts,
                              "is lost: the order of its stripes cannot be verified", set);
    return add_chunk(chunk, facts, order, set);
}

/*
 * Adds chunks that have a block group and device extents, but no item, to a set. If the order of
 * their stripes matters, it must be proven by blocks found in them. Chunks that cannot be derived
 * are reported, unless `fs` is NULL. Proofs reduce the budget `work`, and fail when it is used up.
 * BW_ERROR_NO_MEMORY.
 */
static struct bw_error *chunks_derive(struct bw_fs *fs, const struct bw_device_scan *scan,
                                      const struct bw_chunk_facts *facts, size_t *work,
                                      struct bw_chunk_set *set)
{
    /* Chunks with metadata contain the checksums, which prove chunks of data: they come first. */
    const size_t count = facts->groups.items.count;
    for (size_t i = 0; i < 2 * count; i++) {
        const bool is_data = i >= count;
        const struct bw_item item =
            bw_newest_view(&facts->groups, &facts->groups.items.items[i % count]);
        const struct bw_disk_block_group *disk = (const void *)item.data;
        struct bw_copies known;
        if (item.size < sizeof *disk ||
            is_data != !(bw_get64(disk->flags) & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)) ||
            bw_copies_begin(&known, set, item.key.objectid))
            continue;
        const size_t first =
            BW_FIRST_INDEX(n, facts->extent_count, facts->extents[n].chunk >= item.key.objectid);
        struct bw_derived_chunk chunk = {.scan = scan,
                                         .logical = item.key.objectid,
                                         .length = item.key.offset,
                                         .type = bw_get64(disk->flags),
                                         .profile = bw_raid_profile_of(bw_get64(disk->flags)),
                                         .extents = facts->extents + first,
                                         .columns = 1,
                                         .work = work};
        while (first + chunk.count < facts->extent_count && chunk.count <= BW_MOST_STRIPES &&
               chunk.extents[chunk.count].chunk == chunk.logical)
            chunk.count++;
        BW_TRY(derive_chunk(fs, &chunk, facts, set));
    }
    return NULL;
}

/* Rebuilding the chunk tree: first from the contents of the system chunks, then also of metadata
 * chunks known by then, and finally from whole devices. */

/* The budget for proofs, so that any number of chunks in a crafted image takes only seconds: see
 * stripe_search.c. Chunks of a real file system are usually at least a GiB long. */
enum { WORK = 1 << 26, WORK_OF_A_GIB = 1 << 18, MOST = 1 << 10 };

/* The areas searched so far. */
enum stage { SYSTEM_CHUNKS, METADATA_CHUNKS, DEVICES };

BW_VECTOR(bw_device_ranges, struct bw_device_range);

struct search {
    struct bw_fs *fs;
    struct bw_found_identity identity;
    struct bw_device_scan scan;
    struct bw_chunk_set system; /* system chunks of the superblock */
    struct bw_chunk_set known;
    struct bw_chunk_facts facts;
    struct bw_device_ranges ranges; /* to read next */
    size_t work;                    /* remaining budget for proofs */
    uint8_t *buffer;
};

/* Reading. */

static struct bw_error *add_range(struct search *search, size_t image, uint64_t offset,
                                  uint64_t length)
{
    return bw_device_ranges_push(&search->ranges, (struct bw_device_range){image, offset, length});
}

/* Calls `visit` for all stripes of chunks of these types. */
static struct bw_error *
for_stripes(struct search *search, const struct bw_chunk_set *set, uint64_t types,
            struct bw_error *(*visit)(struct search *search, uint64_t devid, uint64_t offset,
                                      uint64_t length, void *context),
            void *context)
{
    for (size_t i = 0; i < set->items.items.count; i++) {
        const struct bw_item item = bw_newest_view(&set->items, &set->items.items.items[i]);
        struct bw_chunk chunk;
        BW_TRY(bw_chunk_decode(item.key.offset, item.data, item.size, &chunk));
        for (unsigned n = 0; (chunk.type & types) && n < chunk.stripe_count; n++)
            BW_TRY(visit(search, bw_get64(chunk.stripes[n].devid),
                         bw_get64(chunk.stripes[n].offset), bw_stripe_length(&chunk), context));
    }
    return NULL;
}

static struct bw_error *read_stripe(struct search *search, uint64_t devid, uint64_t offset,
                                    uint64_t length, void *context)
{
    (void)context;
    for (size_t i = 0; i < search->fs->image_count; i++) {
        const struct bw_image *image = &search->fs->images[i];
        if (image->role != BW_IMAGE_UNUSED && image->superblock.device.devid == devid)
            BW_TRY(add_range(search, i, offset, length));
    }
    return NULL;
}

static struct bw_error *add_devices(struct search *search)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < search->fs->image_count; i++) {
        const struct bw_image *image = &search->fs->images[i];
        if (image->role == BW_IMAGE_UNUSED || !image->storage)
            continue;
        bytes += bw_xlator_size(image->storage);
        BW_TRY(add_range(search, i, 0, bw_xlator_size(image->storage)));
    }
    if (bytes <= BW_RESCUE_LIMIT || search->fs->scan)
        return NULL;
    search->ranges.count = 0;
    bw_fs_report(search->fs, BW_WARNING,
                 bw_error_create(BW_ERROR_NOT_FOUND,
                                 "chunks are lost: --scan searches the devices for them (%" PRIu64
                                 " GiB)",
                                 bytes >> 30));
    return NULL;
}

static struct bw_error *read_more(struct search *search, enum stage stage)
{
    search->ranges.count = 0;
    if (stage == SYSTEM_CHUNKS)
        BW_TRY(for_stripes(search, &search->system, BW_GROUP_SYSTEM, read_stripe, NULL));
    else if (stage == METADATA_CHUNKS)
        BW_TRY(for_stripes(search, &search->known, BW_GROUP_METADATA, read_stripe, NULL));
    else
        BW_TRY(add_devices(search));
    if (stage == DEVICES && search->ranges.count)
        search->scan.matches.count = 0;
    search->scan.is_whole = stage == DEVICES && search->ranges.count;
    return bw_device_scan_run(&search->scan, search->ranges.items, search->ranges.count);
}

/* Blocks of several file systems with the same fsid: keeps those of the superblock's. False if the
 * blocks that it names were not read yet. */
static bool keep_own_blocks(struct search *search)
{
    struct bw_fs *fs = search->fs;
    const uint64_t changing = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2;
    const bool is_changing = fs->superblock.flags & changing;
    if (search->scan.uuid_count < 2 || is_changing || search->identity.id_count > 1 ||
        !bw_is_zeros(search->identity.ids[0].chunk_tree_uuid, BW_UUID_SIZE))
        return true;
    const uint8_t *uuid = bw_device_scan_uuid(&search->scan, &fs->superblock);
    if (!uuid)
        return false;
    bw_device_scan_keep(&search->scan, uuid);
    memcpy(search->identity.ids[0].chunk_tree_uuid, uuid, BW_UUID_SIZE);
    memcpy(fs->chunk_tree_uuid, uuid, BW_UUID_SIZE);
    return true;
}

/* Collecting facts. */

static bool is_extent(uint8_t type)
{
    return type == BW_DEVICE_EXTENT;
}

static bool is_group(uint8_t type)
{
    return type == BW_BLOCK_GROUP_ITEM;
}

/* Reads all leaves with facts about chunks that are where the known chunks put them; with
 * `unplaced`, also leaves outside of known chunks. Leaves of the chunk tree must be in system
 * chunks. */
static struct bw_error *collect_facts(struct search *search, bool unplaced)
{
    struct bw_chunk_facts *facts = &search->facts;
    bw_chunk_facts_free(facts);
    for (size_t i = 0; i < search->scan.matches.count; i++) {
        const struct bw_block_match *match = &search->scan.matches.items[i];
        const uint64_t owner = bw_block_match_owner(&search->scan, match);
        struct bw_newest *items = NULL;
        bool (*wants)(uint8_t type) = NULL;
        if (owner == BW_CHUNK_TREE) {
            items = &facts->chunks;
        } else if (owner == BW_DEVICE_TREE) {
            items = &facts->devices;
            wants = is_extent;
        } else if (match->has_groups && (owner == BW_EXTENT_TREE || owner == BW_BLOCK_GROUP_TREE)) {
            items = &facts->groups;
            wants = is_group;
        }
        if (match->level || !items)
            continue;
        const bool is_chunk = owner == BW_CHUNK_TREE;
        const enum bw_agreement agreement =
            bw_chunk_set_test(is_chunk ? &search->system : &search->known, &search->scan, match);
        if ((agreement != BW_AGREES && !(agreement == BW_NO_CHUNK && unplaced && !is_chunk)) ||
            !bw_device_scan_read(&search->scan, match, search->buffer))
            continue;
        const struct bw_node leaf = bw_node_view(search->buffer, search->identity.nodesize);
        BW_TRY(bw_newest_add(items, &leaf, match->generation, 0, wants));
    }
    BW_TRY(bw_newest_settle(&facts->chunks));
    BW_TRY(bw_newest_settle(&facts->devices));
    BW_TRY(bw_newest_settle(&facts->groups));
    return bw_chunk_facts_extents(facts);
}

static int newest_first(const void *left, const void *right)
{
    const struct bw_newest_item *a = left, *b = right;
    return a->rank != b->rank ? (a->rank < b->rank) * 2 - 1 : bw_key_compare(&a->key, &b->key);
}

/* Rebuilds the set of known chunks. Newer chunks are added first, so they take precedence. */
static struct bw_error *rebuild_chunks(struct search *search, bool last)
{
    const struct bw_newest *chunks = &search->facts.chunks;
    bool added;
    bw_chunk_set_free(&search->known);
    BW_AUTO_FREE struct bw_newest_item *order = malloc((chunks->items.count + 1) * sizeof *order);
    if (!order)
        return bw_error_no_memory();
    if (chunks->items.count)
        memcpy(order, chunks->items.items, chunks->items.count * sizeof *order);
    qsort(order, chunks->items.count, sizeof *order, newest_first);
    for (size_t i = 0; i < chunks->items.count; i++) {
        const struct bw_item item = bw_newest_view(chunks, &order[i]);
        if (item.key.type == BW_CHUNK_ITEM)
            BW_TRY(bw_chunk_set_add(&search->known, &item, &added));
    }
    for (size_t i = 0; i < search->system.items.items.count; i++) {
        const struct bw_item item =
            bw_newest_view(&search->system.items, &search->system.items.items.items[i]);
        BW_TRY(bw_chunk_set_add(&search->known, &item, &added));
    }
    return chunks_derive(last ? search->fs : NULL, &search->scan, &search->facts, &search->work,
                         &search->known);
}

static struct bw_error *add_up(struct search *search, uint64_t devid, uint64_t offset,
                               uint64_t length, void *context)
{
    const struct bw_device_identity *device = context;
    (void)search;
    (void)offset;
    if (devid == device->devid)
        ((struct bw_device_identity *)context)->bytes_used -= length;
    return NULL;
}

/* Whether the chunks use as many bytes of each device as its superblock records. A rebuilt
 * superblock without roots does not contain this number. */
static struct bw_error *is_complete(struct search *search, bool *complete)
{
    *complete = search->fs->superblock.chunk_root.bytenr != 0;
    for (size_t i = 0; i < search->fs->image_count; i++) {
        struct bw_device_identity device = search->fs->images[i].superblock.device;
        if (search->fs->images[i].role == BW_IMAGE_UNUSED)
            continue;
        BW_TRY(for_stripes(search, &search->known, UINT64_MAX, add_up, &device));
        *complete &= device.bytes_used == 0;
    }
    return NULL;
}

static bool has_found(const struct search *search)
{
    return search->known.items.items.count > search->system.items.items.count;
}

static struct bw_error *find_chunks(struct search *search, bool *complete)
{
    *complete = false;
    BW_TRY(bw_chunk_set_add_array(&search->system, &search->fs->superblock));
    for (enum stage stage = SYSTEM_CHUNKS; !*complete && stage <= DEVICES; stage++) {
        BW_TRY(read_more(search, stage));
        if (!keep_own_blocks(search) && stage != DEVICES)
            continue;
        if (stage == SYSTEM_CHUNKS)
            BW_TRY(collect_facts(search, false));
        BW_TRY(rebuild_chunks(search, false));
        BW_TRY(collect_facts(search, stage == DEVICES));
        BW_TRY(rebuild_chunks(search, false));
        BW_TRY(collect_facts(search, false));
        if (search->scan.is_whole)
            BW_TRY(bw_data_search(&search->scan, &search->facts, &search->known));
        BW_TRY(rebuild_chunks(search, stage == DEVICES));
        BW_TRY(is_complete(search, complete));
    }
    if (has_found(search))
        return NULL;

    /* Leaves outside of known chunks, too, so that the chunks that cannot be used are reported. */
    BW_TRY(collect_facts(search, true));
    return rebuild_chunks(search, true);
}

/* Making the new tree. */

static struct bw_error *put_device(struct bw_tree_editor *tree,
                                   const struct bw_device_identity *device)
{
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->devid};
    struct bw_disk_device_item item = {.devid = bw_put64(device->devid),
                                       .total_bytes = bw_put64(device->total_bytes),
                                       .bytes_used = bw_put64(device->bytes_used),
                                       .io_align = bw_put32(BW_MIN_SECTORSIZE),
                                       .io_width = bw_put32(BW_MIN_SECTORSIZE),
                                       .sector_size = bw_put32(BW_MIN_SECTORSIZE)};
    memcpy(item.uuid, device->uuid, BW_UUID_SIZE);
    memcpy(item.fsid, device->fsid, BW_UUID_SIZE);
    return bw_edit_put(tree, &key, &item, sizeof item);
}

/* Makes the new tree: the chunks, and the devices of their stripes. Better items of these, from
 * leaves of the old tree and from superblocks, replace them. */
static struct bw_error *make_tree(const struct search *search, struct bw_tree_editor *tree)
{
    const struct bw_newest *known = &search->known.items, *others = &search->facts.chunks;
    BW_TRY(bw_rescue_begin_tree(search->fs, BW_CHUNK_TREE, tree));
    for (size_t i = 0; i < known->items.count; i++) {
        const struct bw_item item = bw_newest_view(known, &known->items.items[i]);
        struct bw_chunk chunk;
        BW_TRY(bw_chunk_decode(item.key.offset, item.data, item.size, &chunk));
        for (unsigned n = 0; n < chunk.stripe_count; n++) {
            struct bw_device_identity device = {.devid = bw_get64(chunk.stripes[n].devid)};
            if (device.devid == BW_UNKNOWN_DEVICE)
                continue;
            memcpy(device.uuid, chunk.stripes[n].device_uuid, BW_UUID_SIZE);
            BW_TRY(put_device(tree, &device));
        }
        BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    }
    for (size_t i = 0; i < others->items.count; i++) {
        const struct bw_item item = bw_newest_view(others, &others->items.items[i]);
        if (item.key.type == BW_DEVICE_ITEM && item.size <= bw_edit_room(tree))
            BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    }
    for (size_t i = 0; i < search->fs->image_count; i++)
        if (search->fs->images[i].role == BW_IMAGE_DEVICE)
            BW_TRY(put_device(tree, &search->fs->images[i].superblock.device));
    return NULL;
}

static struct bw_error *begin_search(struct search *search)
{
    struct bw_fs *fs = search->fs;
    uint64_t gigabytes = 0;
    for (size_t i = 0; i < fs->image_count; i++)
        gigabytes += fs->images[i].storage ? bw_xlator_size(fs->images[i].storage) >> 30 : 0;
    search->work = WORK + (size_t)(gigabytes < MOST ? gigabytes : MOST) * WORK_OF_A_GIB;
    BW_TRY(bw_found_identity_of(fs, &search->identity));
    search->scan.fs = fs;
    search->scan.images = fs->images;
    search->scan.image_count = fs->image_count;
    search->scan.identity = &search->identity;
    search->scan.sectorsize = fs->superblock.sectorsize;
    search->buffer = bw_block_buffer(&fs->reader, 1);
    return search->buffer ? NULL : bw_error_no_memory();
}

static void end_search(struct search *search)
{
    free(search->buffer);
    bw_device_ranges_free(&search->ranges);
    bw_block_matches_free(&search->scan.matches);
    free(search->identity.ids);
    bw_found_free(&search->scan.owners);
    bw_chunk_set_free(&search->system);
    bw_chunk_set_free(&search->known);
    bw_chunk_facts_free(&search->facts);
}

static void report_rebuilt(const struct search *search, bool complete, struct bw_error *why)
{
    bw_fs_report(search->fs, BW_DAMAGE, why);
    bw_fs_report(
        search->fs, BW_WARNING,
        bw_error_create(
            BW_ERROR_CORRUPT, "the chunk tree is lost: it was rebuilt with %zu chunk%s%s",
            search->known.items.items.count, bw_plural(search->known.items.items.count),
            complete || !search->fs->superblock.chunk_root.bytenr ? "" : "; others are missing"));
}

struct bw_error *bw_rescue_chunk_tree(struct bw_fs *fs, struct bw_error *why)
{
    struct search search = {.fs = fs};
    struct bw_tree_editor tree = {.before = NULL};
    bool complete;
    bw_found_init(&search.scan.owners);
    struct bw_error *error = begin_search(&search);
    if (!error)
        error = find_chunks(&search, &complete);
    if (!error && !has_found(&search))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no chunk was found");
    if (!error)
        error = make_tree(&search, &tree);
    if (!error) {
        fs->chunk_tree = tree.tree;
        report_rebuilt(&search, complete, why);
    }
    bw_editor_destroy(&tree);
    end_search(&search);
    return bw_rescue_end(error, why);
}
