/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chunk tree is lost: a new one is made. First from what the system chunks hold, then also from
 * what metadata chunks hold that are known by then, and at last from whole devices. */
#include "rescue/chunk_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "ondisk/disk_items.h"
#include "rescue/found_extents.h"
#include "rescue/rescue.h"

/* Work for proofs, so that any number of planted chunks takes seconds: see stripe_order.c. A chunk
 * of a file system takes a GiB and more of the devices. */
enum { WORK = 1 << 26, WORK_OF_A_GIB = 1 << 18, MOST = 1 << 10 };

/* How far has been searched. */
enum stage { SYSTEM_CHUNKS, METADATA_CHUNKS, DEVICES };

struct search {
    struct bw_fs *fs;
    struct bw_found_identity identity;
    struct bw_device_scan scan;
    struct bw_chunk_set system; /* those of the superblock */
    struct bw_chunk_set known;
    struct bw_chunk_facts facts;
    struct bw_device_range *ranges; /* to be read next */
    size_t range_count, range_capacity;
    size_t work; /* that is left for proofs */
    uint8_t *buffer;
};

/* What is read. */

static struct bw_error *add_range(struct search *search, size_t image, uint64_t offset,
                                  uint64_t length)
{
    if (!BW_ARRAY_RESERVE(search->ranges, search->range_count, search->range_capacity))
        return bw_error_no_memory();
    search->ranges[search->range_count++] = (struct bw_device_range){image, offset, length};
    return NULL;
}

/* Calls a function for all stripes of the chunks of a set. */
static struct bw_error *
for_stripes(struct search *search, const struct bw_chunk_set *set, uint64_t types,
            struct bw_error *(*take)(struct search *search, uint64_t devid, uint64_t offset,
                                     uint64_t length, void *context),
            void *context)
{
    for (size_t i = 0; i < set->items.count; i++) {
        const struct bw_item item = bw_newest_view(&set->items, &set->items.items[i]);
        struct bw_chunk chunk;
        BW_TRY(bw_chunk_decode(item.key.offset, item.data, item.size, &chunk));
        for (unsigned n = 0; (chunk.type & types) && n < chunk.stripe_count; n++)
            BW_TRY(take(search, bw_get64(chunk.stripes[n].devid), bw_get64(chunk.stripes[n].offset),
                        bw_stripe_length(&chunk), context));
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
    if (bytes <= BW_TRUNK_LIMIT || search->fs->scan)
        return NULL;
    search->range_count = 0;
    bw_fs_report(search->fs, BW_WARNING,
                 bw_error_create(BW_ERROR_NOT_FOUND,
                                 "chunks are lost: with --scan, they are searched on the devices, "
                                 "%" PRIu64 " GiB",
                                 bytes >> 30));
    return NULL;
}

static struct bw_error *read_more(struct search *search, enum stage stage)
{
    search->range_count = 0;
    if (stage == SYSTEM_CHUNKS)
        BW_TRY(for_stripes(search, &search->system, BW_GROUP_SYSTEM, read_stripe, NULL));
    else if (stage == METADATA_CHUNKS)
        BW_TRY(for_stripes(search, &search->known, BW_GROUP_METADATA, read_stripe, NULL));
    else
        BW_TRY(add_devices(search));
    if (stage == DEVICES && search->range_count)
        search->scan.count = 0;
    search->scan.is_whole = stage == DEVICES && search->range_count;
    return bw_device_scan_run(&search->scan, search->ranges, search->range_count);
}

/* What it says. */

static bool is_extent(uint8_t type)
{
    return type == BW_DEVICE_EXTENT;
}

static bool is_group(uint8_t type)
{
    return type == BW_BLOCK_GROUP_ITEM;
}

static struct bw_error *take_leaf(struct search *search, const struct bw_sighting *sighting)
{
    const uint64_t owner = bw_sighting_owner(&search->scan, sighting);
    const uint32_t nodesize = search->identity.nodesize;
    const bool is_chunks = owner == BW_CHUNK_TREE, is_devices = owner == BW_DEVICE_TREE;
    if (!bw_device_scan_read(&search->scan, sighting, search->buffer))
        return NULL;
    const struct bw_node leaf = bw_node_view(search->buffer, nodesize);
    return bw_newest_add(is_chunks    ? &search->facts.chunks
                         : is_devices ? &search->facts.devices
                                      : &search->facts.groups,
                         &leaf, sighting->generation, 0,
                         is_chunks    ? NULL
                         : is_devices ? is_extent
                                      : is_group);
}

static bool tells(const struct search *search, const struct bw_sighting *sighting)
{
    const uint64_t owner = bw_sighting_owner(&search->scan, sighting);
    return !sighting->level &&
           (owner == BW_CHUNK_TREE || owner == BW_DEVICE_TREE ||
            (sighting->has_groups && (owner == BW_EXTENT_TREE || owner == BW_BLOCK_GROUP_TREE)));
}

/* Reads all leaves that tell of chunks, and lie where `known` puts them; if they are `unplaced`,
 * also where no chunk is known. Those of the chunk tree are in system chunks. */
static struct bw_error *gather(struct search *search, bool unplaced)
{
    bw_chunk_facts_free(&search->facts);
    for (size_t i = 0; i < search->scan.count; i++) {
        const struct bw_sighting *sighting = &search->scan.sightings[i];
        if (!tells(search, sighting))
            continue;
        const bool is_chunk = bw_sighting_owner(&search->scan, sighting) == BW_CHUNK_TREE;
        const enum bw_agreement agreement = bw_chunk_set_judge(
            is_chunk ? &search->system : &search->known, &search->scan, sighting);
        if (agreement == BW_AGREES || (agreement == BW_NO_CHUNK && unplaced && !is_chunk))
            BW_TRY(take_leaf(search, sighting));
    }
    BW_TRY(bw_newest_settle(&search->facts.chunks));
    BW_TRY(bw_newest_settle(&search->facts.devices));
    BW_TRY(bw_newest_settle(&search->facts.groups));
    return bw_chunk_facts_extents(&search->facts);
}

static int newest_first(const void *left, const void *right)
{
    const struct bw_newest_item *a = left, *b = right;
    return a->rank != b->rank ? (a->rank < b->rank) * 2 - 1 : bw_key_compare(&a->key, &b->key);
}

/* Makes the set of known chunks anew: newer ones first, so that they win. */
static struct bw_error *compose(struct search *search, bool last)
{
    const struct bw_newest *chunks = &search->facts.chunks;
    bool added;
    bw_chunk_set_free(&search->known);
    BW_AUTO_FREE struct bw_newest_item *order = malloc((chunks->count + 1) * sizeof *order);
    if (!order)
        return bw_error_no_memory();
    if (chunks->count)
        memcpy(order, chunks->items, chunks->count * sizeof *order);
    qsort(order, chunks->count, sizeof *order, newest_first);
    for (size_t i = 0; i < chunks->count; i++) {
        const struct bw_item item = bw_newest_view(chunks, &order[i]);
        if (item.key.type == BW_CHUNK_ITEM)
            BW_TRY(bw_chunk_set_add(&search->known, &item, &added));
    }
    for (size_t i = 0; i < search->system.items.count; i++) {
        const struct bw_item item =
            bw_newest_view(&search->system.items, &search->system.items.items[i]);
        BW_TRY(bw_chunk_set_add(&search->known, &item, &added));
    }
    return bw_chunks_derive(last ? search->fs : NULL, &search->scan, &search->facts, &search->work,
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

/* Whether the chunks take what the superblocks say that chunks take of the devices. Those that were
 * made, which name no roots, do not know. */
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
    return search->known.items.count > search->system.items.count;
}

/* Names the chunks that leaves tell of which lie in none that is known. */
static struct bw_error *refuse_all(struct search *search)
{
    BW_TRY(gather(search, true));
    return compose(search, true);
}

static struct bw_error *find(struct search *search, bool *complete)
{
    *complete = false;
    BW_TRY(bw_chunk_set_add_array(&search->system, &search->fs->superblock));
    for (enum stage stage = SYSTEM_CHUNKS; !*complete && stage <= DEVICES; stage++) {
        BW_TRY(read_more(search, stage));
        if (stage == SYSTEM_CHUNKS)
            BW_TRY(gather(search, false));
        BW_TRY(compose(search, false));
        BW_TRY(gather(search, stage == DEVICES));
        BW_TRY(compose(search, false));
        BW_TRY(gather(search, false));
        if (search->scan.is_whole)
            BW_TRY(bw_data_search(&search->scan, &search->facts, &search->known));
        BW_TRY(compose(search, stage == DEVICES));
        BW_TRY(is_complete(search, complete));
    }
    return has_found(search) ? NULL : refuse_all(search);
}

/* The new tree. */

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

/* A device that stripes lie on; better items come later. */
static struct bw_error *put_stripe_device(struct bw_tree_editor *tree, const struct bw_chunk *chunk)
{
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        struct bw_device_identity device = {.devid = bw_get64(chunk->stripes[i].devid)};
        if (device.devid == BW_UNKNOWN_DEVICE)
            continue;
        memcpy(device.uuid, chunk->stripes[i].device_uuid, BW_UUID_SIZE);
        BW_TRY(put_device(tree, &device));
    }
    return NULL;
}

static struct bw_error *put_chunks(const struct search *search, struct bw_tree_editor *tree)
{
    const struct bw_newest *items = &search->known.items;
    for (size_t i = 0; i < items->count; i++) {
        const struct bw_item item = bw_newest_view(items, &items->items[i]);
        struct bw_chunk chunk;
        BW_TRY(bw_chunk_decode(item.key.offset, item.data, item.size, &chunk));
        BW_TRY(put_stripe_device(tree, &chunk));
        BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    }
    return NULL;
}

static struct bw_error *make_tree(const struct search *search, struct bw_tree_editor *tree)
{
    const struct bw_newest *others = &search->facts.chunks;
    BW_TRY(bw_trunk_begin_tree(search->fs, BW_CHUNK_TREE, tree));
    BW_TRY(put_chunks(search, tree));
    for (size_t i = 0; i < others->count; i++) {
        const struct bw_item item = bw_newest_view(others, &others->items[i]);
        if (item.key.type == BW_DEVICE_ITEM && item.size <= bw_edit_room(tree))
            BW_TRY(bw_edit_put(tree, &item.key, item.data, item.size));
    }
    for (size_t i = 0; i < search->fs->image_count; i++)
        if (search->fs->images[i].role == BW_IMAGE_DEVICE)
            BW_TRY(put_device(tree, &search->fs->images[i].superblock.device));
    return NULL;
}

static struct bw_error *begin(struct search *search)
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

static void end(struct search *search)
{
    free(search->buffer);
    free(search->ranges);
    free(search->scan.sightings);
    free(search->identity.fsids);
    bw_found_free(&search->scan.owners);
    bw_chunk_set_free(&search->system);
    bw_chunk_set_free(&search->known);
    bw_chunk_facts_free(&search->facts);
}

static void report(const struct search *search, bool complete, struct bw_error *why)
{
    bw_fs_report(search->fs, BW_DAMAGE,
                 bw_error_prefix(why,
                                 "the chunk tree is lost: it is put together from what was found: "
                                 "%zu chunks%s",
                                 search->known.items.count,
                                 complete || !search->fs->superblock.chunk_root.bytenr
                                     ? ""
                                     : ", which are not all of them"));
}

struct bw_error *bw_trunk_find_chunks(struct bw_fs *fs, struct bw_error *why)
{
    struct search search = {.fs = fs};
    struct bw_tree_editor tree = {.before = NULL};
    bool complete;
    bw_found_init(&search.scan.owners);
    struct bw_error *error = begin(&search);
    if (!error)
        error = find(&search, &complete);
    if (!error && !has_found(&search))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no chunk was found");
    if (!error)
        error = make_tree(&search, &tree);
    if (!error) {
        fs->chunk_tree = tree.tree;
        report(&search, complete, why);
    }
    bw_editor_destroy(&tree);
    end(&search);
    return bw_trunk_give_up(error, why);
}
