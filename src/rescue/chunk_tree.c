/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rebuilds a lost chunk tree. The leaves of the old one are in system chunks, which the superblock
 * lists. Chunks without an item in a leaf are derived: a block group contains the length and the
 * profile, and the device tree names the ranges of the devices, or their contents show them.
 *
 * Leaves of other trees can be read only where a known chunk puts them. Therefore the search first
 * reads the system chunks, then also the metadata chunks known by then, and finally whole devices.
 * It ends as soon as the known chunks use as many bytes of each device as its superblock records.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "base/zeros.h"
#include "fs/opening.h"
#include "ondisk/disk_items.h"
#include "rescue/chunk_set.h"
#include "rescue/rescue.h"

/* The budget for proofs, so that any number of chunks in a crafted image takes only seconds: see
 * stripe_search.c. Chunks of a real file system are usually at least a GiB long. */
enum { WORK = 1 << 26, WORK_OF_A_GIB = 1 << 18, MOST = 1 << 10 };

/* The areas searched so far. */
enum stage { SYSTEM_CHUNKS, METADATA_CHUNKS, DEVICES };

BW_VECTOR(bw_device_ranges, struct bw_device_range);

struct search {
    struct bw_fs *fs;
    struct bw_device_scan scan;
    struct bw_chunk_set system; /* system chunks of the superblock */
    struct bw_chunk_set known;
    struct bw_chunk_facts facts;
    size_t work; /* remaining budget for proofs */
    enum stage last;
    bool complete; /* no chunk is missing */
    struct bw_tree_editor tree;
};

/* Deriving chunks without an item from device extents and block groups. */

/* Whether the device extents can be all extents of the chunk. Sets chunk->columns. */
static bool has_all_extents(struct bw_derived_chunk *chunk)
{
    const struct bw_raid_profile *profile = chunk->profile;
    if (!profile || !chunk->count || chunk->count > BW_MOST_STRIPES)
        return false;
    const uint64_t length = chunk->extents[0].length;
    for (unsigned i = 1; i < chunk->count; i++)
        if (chunk->extents[i].length != length)
            return false;
    if (!length || chunk->length % length)
        return false;
    const uint64_t columns = chunk->length / length;
    if (!profile->striped)
        return columns == 1 && chunk->count >= profile->minimum_stripes &&
               chunk->count <= profile->maximum_stripes;
    chunk->columns = (unsigned)columns;
    if (profile->parity_stripes)
        return columns + profile->parity_stripes == chunk->count;
    return columns * profile->copies == chunk->count;
}

static struct bw_error *add_chunk(struct search *search, const struct bw_derived_chunk *chunk,
                                  const int *order)
{
    const size_t size = sizeof(struct bw_disk_chunk) + chunk->count * sizeof(struct bw_disk_stripe);
    BW_AUTO_FREE uint8_t *bytes = calloc(1, size);
    if (!bytes)
        return bw_error_no_memory();
    struct bw_disk_chunk *disk = (void *)bytes;
    struct bw_disk_stripe *stripes = (void *)(bytes + sizeof *disk);
    const struct bw_item item = {
        {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical}, bytes, (uint32_t)size};
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
        const size_t image = bw_image_of_devid(chunk->scan, extent->devid);
        const struct bw_disk_device_item *device =
            bw_chunk_facts_device(&search->facts, extent->devid);
        if (device)
            memcpy(stripes[i].device_uuid, device->uuid, BW_UUID_SIZE);
        else if (image < chunk->scan->image_count)
            memcpy(stripes[i].device_uuid, chunk->scan->images[image].superblock.device.uuid,
                   BW_UUID_SIZE);
    }
    return bw_chunk_set_add(&search->known, &item);
}

static void report_derived(struct bw_fs *fs, const struct bw_derived_chunk *chunk,
                           const char *outcome)
{
    const char *profile = chunk->profile ? chunk->profile->name : "unknown profile";
    const char *contents = chunk->type & BW_GROUP_DATA ? "data" : "tree blocks";
    bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                      "chunk %" PRIu64 " (%s, %" PRIu64 " bytes of %s) %s", chunk->logical, profile,
                      chunk->length, contents, outcome);
}

/* Adds the chunk of a block group, if its stripes can be found. `reports`: report lost stripes. */
static struct bw_error *derive_chunk(struct search *search, struct bw_derived_chunk *chunk,
                                     bool reports)
{
    struct bw_found_extent found[BW_MOST_STRIPES];
    int order[BW_MOST_STRIPES];
    memset(order, -1, sizeof order);

    /* Device extents name the ranges. If these are mirrors of each other, their order does not
     * matter; otherwise it must be proven. */
    const char *why = "is lost: its device extents are unknown or incomplete";
    const bool has_extents = has_all_extents(chunk);
    for (unsigned i = 0; has_extents && !chunk->profile->striped && i < chunk->count; i++)
        order[i] = (int)i;
    if (has_extents &&
        (!chunk->profile->striped || bw_stripe_order_prove(chunk, &search->known, order)))
        return add_chunk(search, chunk, order);
    if (has_extents)
        why = "is lost: the order of its stripes cannot be verified";

    /* The contents show the ranges. If other block groups have extents, one without extents is
     * probably stale, of a chunk that was removed. */
    const bool is_stale = !chunk->count && search->facts.extents.count;
    memset(order, -1, sizeof order);
    if (!chunk->profile || !chunk->scan->is_whole ||
        !bw_found_extents(chunk, &search->facts, &search->known, found, order)) {
        if (reports && !is_stale)
            report_derived(search->fs, chunk, why);
        return NULL;
    }
    unsigned lost = 0;
    char text[128];
    for (unsigned i = 0; i < chunk->count; i++)
        lost += order[i] < 0;
    snprintf(text, sizeof text,
             "has lost %u of %u stripes: their positions on the devices are unknown", lost,
             chunk->count);
    if (reports && lost)
        report_derived(search->fs, chunk, text);
    return add_chunk(search, chunk, order);
}

static int newest_first(const void *left, const void *right)
{
    const struct bw_newest_item *a = left, *b = right;
    return a->rank != b->rank ? (a->rank < b->rank) * 2 - 1 : bw_key_compare(&a->key, &b->key);
}

/* Rebuilds the set of known chunks from the facts. Newer chunks are added first, so they take
 * precedence. The chunks of the superblock follow, then chunks with only a block group. `reports`:
 * report chunks that cannot be derived. */
static struct bw_error *rebuild_chunks(struct search *search, bool reports)
{
    const struct bw_chunk_facts *facts = &search->facts;
    const size_t count = facts->chunks.items.count, groups = facts->groups.items.count;
    struct bw_item item;
    bw_chunk_set_free(&search->known);
    BW_AUTO_FREE struct bw_newest_item *order = malloc((count + 1) * sizeof *order);
    if (!order)
        return bw_error_no_memory();
    if (count)
        memcpy(order, facts->chunks.items.items, count * sizeof *order);
    qsort(order, count, sizeof *order, newest_first);
    for (size_t i = 0; i < count; i++) {
        item = bw_newest_view(&facts->chunks, &order[i]);
        if (item.key.type == BW_CHUNK_ITEM)
            BW_TRY(bw_chunk_set_add(&search->known, &item));
    }
    for (size_t at = 0; bw_newest_next(&search->system.items, &at, &item);)
        BW_TRY(bw_chunk_set_add(&search->known, &item));

    /* Chunks with metadata contain the checksums, which prove chunks of data: they come first. */
    for (size_t i = 0; i < 2 * groups; i++) {
        item = bw_newest_view(&facts->groups, &facts->groups.items.items[i % groups]);
        const struct bw_disk_block_group *disk = (const void *)item.data;
        struct bw_copies known;
        if (item.size < sizeof *disk ||
            (i >= groups) != !(bw_get64(disk->flags) & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)) ||
            bw_copies_begin(&known, &search->known, item.key.objectid))
            continue;
        const size_t first = BW_FIRST_INDEX(n, facts->extents.count,
                                            facts->extents.items[n].chunk >= item.key.objectid);
        struct bw_derived_chunk chunk = {.scan = &search->scan,
                                         .logical = item.key.objectid,
                                         .length = item.key.offset,
                                         .type = bw_get64(disk->flags),
                                         .profile = bw_raid_profile_of(bw_get64(disk->flags)),
                                         .extents = facts->extents.items + first,
                                         .columns = 1,
                                         .work = &search->work};
        while (first + chunk.count < facts->extents.count && chunk.count <= BW_MOST_STRIPES &&
               chunk.extents[chunk.count].chunk == chunk.logical)
            chunk.count++;
        BW_TRY(derive_chunk(search, &chunk, reports));
    }
    return NULL;
}

/* Reading. */

/* Reads the areas of a stage, and adds the tree blocks in them to the matches of the scan. */
static struct bw_error *read_more(struct search *search, enum stage stage)
{
    struct bw_fs *fs = search->fs;
    const struct bw_chunk_set *set = stage == SYSTEM_CHUNKS ? &search->system : &search->known;
    const uint64_t types = stage == SYSTEM_CHUNKS ? BW_GROUP_SYSTEM : BW_GROUP_METADATA;
    BW_SCOPED(bw_device_ranges) struct bw_device_ranges ranges = {0};
    struct bw_chunk chunk;
    uint64_t bytes = 0;
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->role == BW_IMAGE_UNUSED)
            continue;
        for (size_t at = 0; stage != DEVICES && bw_chunk_set_next(set, &at, &chunk);)
            for (unsigned n = 0; (chunk.type & types) && n < chunk.stripe_count; n++)
                if (bw_get64(chunk.stripes[n].devid) == image->superblock.device.devid)
                    BW_TRY(bw_device_ranges_push(
                        &ranges, (struct bw_device_range){i, bw_get64(chunk.stripes[n].offset),
                                                          bw_stripe_length(&chunk)}));
        if (stage == DEVICES && image->storage) {
            const uint64_t size = bw_xlator_size(image->storage);
            bytes += size;
            BW_TRY(bw_device_ranges_push(&ranges, (struct bw_device_range){i, 0, size}));
        }
    }
    if (bytes > BW_RESCUE_LIMIT && !fs->scan) {
        ranges.count = 0;
        bw_fs_report(fs, BW_WARNING,
                     bw_error_advise(bw_error_create(BW_ERROR_NOT_FOUND, "chunks are lost"),
                                     "`scan` searches the devices for them (%" PRIu64 " GiB)",
                                     bytes >> 30));
    }
    search->scan.is_whole = stage == DEVICES && ranges.count;
    if (search->scan.is_whole)
        search->scan.matches.count = 0;
    return bw_device_scan_run(&search->scan, ranges.items, ranges.count);
}

/* Reads all leaves with facts about chunks that are where the known chunks put them; with
 * `unplaced`, also leaves outside of known chunks. Leaves of the chunk tree must be in system
 * chunks. */
static struct bw_error *collect_facts(struct search *search, bool unplaced)
{
    struct bw_chunk_facts *facts = &search->facts;
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->fs->reader, 1);
    struct bw_node leaf;
    bw_chunk_facts_free(facts);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; i < search->scan.matches.count; i++) {
        const struct bw_block_match *match = &search->scan.matches.items[i];
        const uint64_t owner = bw_block_match_owner(&search->scan, match);
        struct bw_newest *items = NULL;
        uint8_t type = 0;
        if (owner == BW_CHUNK_TREE) {
            items = &facts->chunks;
        } else if (owner == BW_DEVICE_TREE) {
            items = &facts->devices;
            type = BW_DEVICE_EXTENT;
        } else if (match->has_groups && (owner == BW_EXTENT_TREE || owner == BW_BLOCK_GROUP_TREE)) {
            items = &facts->groups;
            type = BW_BLOCK_GROUP_ITEM;
        }
        if (match->level || !items)
            continue;
        const bool is_chunk = owner == BW_CHUNK_TREE;
        const enum bw_agreement agreement =
            bw_chunk_set_test(is_chunk ? &search->system : &search->known, &search->scan, match);
        if ((agreement != BW_AGREES && !(agreement == BW_NO_CHUNK && unplaced && !is_chunk)) ||
            !bw_device_scan_read(&search->scan, match, buffer, &leaf))
            continue;
        BW_TRY(bw_newest_add(items, &leaf, match->generation, type));
    }
    return bw_chunk_facts_settle(facts);
}

static bool has_found(const struct search *search)
{
    return search->known.items.items.count > search->system.items.items.count;
}

/* Searches the areas one after the other, and sets `known` and `complete`. */
static struct bw_error *find_chunks(struct search *search)
{
    struct bw_fs *fs = search->fs;
    struct bw_device_scan *scan = &search->scan;
    const uint64_t changing = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2;
    uint64_t gigabytes = 0;
    for (size_t i = 0; i < fs->image_count; i++)
        gigabytes += fs->images[i].storage ? bw_xlator_size(fs->images[i].storage) >> 30 : 0;
    search->work = WORK + (size_t)(gigabytes < MOST ? gigabytes : MOST) * WORK_OF_A_GIB;
    BW_TRY(bw_device_scan_begin(scan, fs));
    BW_TRY(bw_chunk_set_add_array(&search->system, &fs->superblock));
    for (enum stage stage = SYSTEM_CHUNKS; !search->complete && stage <= search->last; stage++) {
        BW_TRY(read_more(search, stage));

        /* Of several file systems with the same fsid, only blocks of the superblock's stay. The
         * blocks that it names may not have been read yet. */
        uint8_t *own = scan->identity.ids[0].chunk_tree_uuid;
        if (scan->uuid_count > 1 && scan->identity.id_count == 1 &&
            !(fs->superblock.flags & changing) && bw_is_zeros(own, BW_UUID_SIZE)) {
            const uint8_t *uuid = bw_device_scan_uuid(scan, &fs->superblock);
            if (!uuid && stage != DEVICES)
                continue;
            if (uuid) {
                bw_device_scan_keep(scan, uuid);
                memcpy(own, uuid, BW_UUID_SIZE);
                memcpy(fs->chunk_tree_uuid, uuid, BW_UUID_SIZE);
            }
        }
        if (stage == SYSTEM_CHUNKS)
            BW_TRY(collect_facts(search, false));
        BW_TRY(rebuild_chunks(search, false));
        BW_TRY(collect_facts(search, stage == DEVICES));
        BW_TRY(rebuild_chunks(search, false));
        BW_TRY(collect_facts(search, false));
        if (scan->is_whole)
            BW_TRY(bw_data_search(scan, &search->facts, &search->known));
        BW_TRY(rebuild_chunks(search, stage == DEVICES));

        /* Superblocks record the number of bytes in use. One that was rebuilt has no roots, and
         * does not contain it. */
        search->complete = fs->superblock.chunk_root.bytenr != 0;
        for (size_t i = 0; i < fs->image_count; i++) {
            const struct bw_device_identity *device = &fs->images[i].superblock.device;
            uint64_t unknown = device->bytes_used;
            struct bw_chunk chunk;
            for (size_t at = 0; bw_chunk_set_next(&search->known, &at, &chunk);)
                for (unsigned n = 0; n < chunk.stripe_count; n++)
                    if (bw_get64(chunk.stripes[n].devid) == device->devid)
                        unknown -= bw_stripe_length(&chunk);
            search->complete &= fs->images[i].role == BW_IMAGE_UNUSED || !unknown;
        }
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
static struct bw_error *make_tree(struct search *search)
{
    const struct bw_newest *known = &search->known.items;
    struct bw_tree_editor *tree = &search->tree;
    struct bw_chunk chunk;
    struct bw_item item;
    BW_TRY(bw_rescue_begin_tree(search->fs, BW_CHUNK_TREE, tree));
    for (size_t at = 0; bw_chunk_set_next(&search->known, &at, &chunk);) {
        item = bw_newest_view(known, &known->items.items[at - 1]);
        for (unsigned n = 0; n < chunk.stripe_count; n++) {
            struct bw_device_identity device = {.devid = bw_get64(chunk.stripes[n].devid)};
            if (device.devid == BW_UNKNOWN_DEVICE)
                continue;
            memcpy(device.uuid, chunk.stripes[n].device_uuid, BW_UUID_SIZE);
            BW_TRY(put_device(tree, &device));
        }
        BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    }
    for (size_t at = 0; bw_newest_next(&search->facts.chunks, &at, &item);)
        if (item.key.type == BW_DEVICE_ITEM && item.size <= bw_edit_room(tree))
            BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    for (size_t i = 0; i < search->fs->image_count; i++)
        if (search->fs->images[i].role == BW_IMAGE_DEVICE)
            BW_TRY(put_device(tree, &search->fs->images[i].superblock.device));
    return NULL;
}

static void search_free(struct search *search)
{
    bw_editor_destroy(&search->tree);
    bw_device_scan_free(&search->scan);
    free(search->scan.identity.ids);
    bw_chunk_set_free(&search->system);
    bw_chunk_set_free(&search->known);
    bw_chunk_facts_free(&search->facts);
}

struct bw_error *bw_rescue_find_chunks(struct bw_fs *fs, struct bw_newest *found)
{
    struct search search = {.fs = fs, .last = METADATA_CHUNKS};
    struct bw_error *error = find_chunks(&search);
    if (!error) {
        *found = search.known.items;
        search.known.items = (struct bw_newest){0};
    }
    search_free(&search);
    return error;
}

struct bw_error *bw_rescue_chunk_tree(struct bw_fs *fs, struct bw_error *why)
{
    struct search search = {.fs = fs, .last = DEVICES};
    const size_t *count = &search.known.items.items.count;
    struct bw_error *error = find_chunks(&search);
    if (!error && !has_found(&search))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no chunk was found");
    if (!error)
        error = make_tree(&search);
    if (!error) {
        const bool is_partial = !search.complete && fs->superblock.chunk_root.bytenr;
        fs->chunk_tree = search.tree.tree;
        bw_fs_report(fs, BW_DAMAGE, why);
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                          "the chunk tree is lost: it was rebuilt with %zu chunk%s%s", *count,
                          bw_plural(*count), is_partial ? "; others are missing" : "");
    }
    search_free(&search);
    return bw_rescue_end(error, why);
}
