/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file system in memory with the subvolumes of send streams. Each image is a device, and one
 * chunk of single data maps logical addresses to it, so extents are read from the stream. The trees
 * are in memory: a chunk tree; a subvolume for each one in the streams; the top-level subvolume
 * with their names; and the root tree.
 *
 * The streams can come in any order. They are applied by the transaction of their first subvolume;
 * one that needs a subvolume that is not there yet waits, and is tried again as long as another one
 * makes progress.
 */
#include "stream/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "ondisk/chunk.h"
#include "stream/stream_tree.h"

enum {
    NODESIZE = 16384,
    /* For so many bytes of the streams, commands may copy or remove one item. A kernel refers to
     * an extent at most 1,024 times, and writes of its 48 KiB or more in one command. */
    BYTES_PER_ITEM = 16,
    LEAST_ITEMS = 4096,
};

/* Data begin here: an address of 0 would be a hole. Each image begins at a multiple of this. */
#define STREAM_ALIGNMENT (UINT64_C(1) << 20)

/* An image with streams. */
struct source {
    size_t image;
    uint64_t base;    /* logical address of its first byte */
    uint64_t transid; /* of its first subvolume */
    bool is_done;
    bool is_waiting; /* for a subvolume that no earlier stream had */
    uint8_t missing[BW_UUID_SIZE];
};

/* The devices. */

/* Assigns logical addresses to the images, and makes superblocks for them. */
static struct bw_error *begin_sources(struct bw_image_set *set, struct source *sources)
{
    uint64_t end = STREAM_ALIGNMENT;
    for (size_t i = 0; i < set->count; i++) {
        const uint64_t size = bw_xlator_size(set->images[i].storage);
        sources[i] = (struct source){.image = i, .base = end};
        if (size > BW_MEMORY_START / 4 - end)
            return bw_error_create(BW_ERROR_UNSUPPORTED, "the streams are too large");
        end += (size + STREAM_ALIGNMENT - 1) / STREAM_ALIGNMENT * STREAM_ALIGNMENT;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        bw_error_free(BW_TAKE(image->bad));
        image->superblock = (struct bw_superblock){
            .generation = 1,
            .total_bytes = end,
            .bytes_used = end,
            .device_count = set->count,
            .sectorsize = BW_MIN_SECTORSIZE,
            .nodesize = NODESIZE,
            .incompat_flags = BW_INCOMPAT_NO_HOLES,
            .checksum_type = BW_CHECKSUM_CRC32C,
            .device = {.devid = i + 1, .total_bytes = bw_xlator_size(image->storage)}};
        /* A device uuid that is the same each time, and different for each image. */
        for (unsigned k = 0; k < BW_UUID_SIZE; k++)
            image->superblock.device.uuid[k] = (uint8_t)((i + 1) >> 8 * (k % 8));
    }
    return NULL;
}

/* Makes a chunk tree: the devices, and a chunk for each that is not empty. */
static struct bw_error *make_chunk_tree(struct bw_fs *fs, const struct source *sources)
{
    struct bw_tree_editor tree = {.memory = NULL};
    struct bw_error *error = bw_editor_create_empty(&tree, &fs->reader, &fs->memory, BW_CHUNK_TREE,
                                                    fs->superblock.generation);
    for (size_t i = 0; !error && i < fs->image_count; i++) {
        const struct bw_device_identity *device = &fs->images[i].superblock.device;
        const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->devid};
        struct bw_disk_device_item item = {.devid = bw_put64(device->devid),
                                           .total_bytes = bw_put64(device->total_bytes),
                                           .bytes_used = bw_put64(device->total_bytes),
                                           .sector_size = bw_put32(BW_MIN_SECTORSIZE)};
        memcpy(item.uuid, device->uuid, BW_UUID_SIZE);
        error = bw_edit_put(&tree, &key, &item, sizeof item);
    }
    for (size_t i = 0; !error && i < fs->image_count; i++) {
        const struct bw_device_identity *device = &fs->images[sources[i].image].superblock.device;
        const struct bw_key key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, sources[i].base};
        const uint64_t sectors = (device->total_bytes + BW_MIN_SECTORSIZE - 1) / BW_MIN_SECTORSIZE;
        struct {
            struct bw_disk_chunk chunk;
            struct bw_disk_stripe stripe;
        } item = {{.length = bw_put64(sectors * BW_MIN_SECTORSIZE),
                   .owner = bw_put64(BW_EXTENT_TREE),
                   .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                   .type = bw_put64(BW_GROUP_DATA),
                   .sector_size = bw_put32(BW_MIN_SECTORSIZE),
                   .stripe_count = bw_put16(1),
                   .sub_stripes = bw_put16(1)},
                  {.devid = bw_put64(device->devid)}};
        memcpy(item.stripe.device_uuid, device->uuid, BW_UUID_SIZE);
        if (sectors)
            error = bw_edit_put(&tree, &key, &item, sizeof item);
    }
    fs->chunk_tree = tree.tree;
    bw_editor_destroy(&tree);
    return error ? error : bw_bootstrap_chunks(fs, BW_DEVICES_FOUND);
}

/* Applying the streams, each after its parent. */

static int by_transid(const void *a, const void *b)
{
    const struct source *first = a, *second = b;
    return BW_COMPARE_ALL(((uint64_t[]){first->transid, first->image}),
                          ((uint64_t[]){second->transid, second->image}));
}

static struct bw_error *apply_streams(struct bw_received_set *received, struct source *sources)
{
    struct bw_fs *fs = received->fs;
    const size_t count = fs->image_count;
    uint64_t size = 0;

    /* The order, by the first command of each. Its errors are reported when it is applied. */
    for (size_t i = 0; i < count; i++) {
        struct source *source = &sources[i];
        const struct bw_stream_source bytes = bw_image_stream(&fs->images[source->image]);
        struct bw_stream_reader reader;
        struct bw_stream_command command;
        bool got;
        bw_stream_reader_init(&reader, &bytes);
        BW_AUTO_ERROR struct bw_error *error = bw_stream_next(&reader, &command, &got);
        if (!error && got)
            source->transid = bw_command_number(&command, BW_ATTRIBUTE_CTRANSID);
        bw_stream_reader_free(&reader);
        size += bytes.size;
    }
    qsort(sources, count, sizeof *sources, by_transid);
    received->budget = LEAST_ITEMS + size / BYTES_PER_ITEM;

    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < count; i++) {
            struct source *source = &sources[i];
            struct bw_apply_result result;
            if (source->is_done ||
                (source->is_waiting && !bw_received_find(received, source->missing)))
                continue;
            BW_TRY(bw_apply_stream(received, source->image, source->base, &result));
            progress |= !result.is_waiting;
            source->is_done = !result.is_waiting;
            source->is_waiting = result.is_waiting;
            memcpy(source->missing, result.missing, BW_UUID_SIZE);
        }
    }
    if (received->lzo_sectorsize)
        fs->superblock.sectorsize = received->lzo_sectorsize;

    /* A stream whose parent or clone source is missing is damage, unless there is no other one. */
    for (size_t i = 0; i < count; i++) {
        const struct source *source = &sources[i];
        char uuid[37];
        if (source->is_done)
            continue;
        bw_uuid_text(source->missing, uuid);
        struct bw_error *error =
            bw_error_create(BW_ERROR_NOT_FOUND,
                            "%s needs the subvolume with UUID %s, which none of the streams has",
                            fs->images[source->image].name, uuid);
        if (!received->received.count)
            return error;
        bw_fs_report_stream_error(fs, error);
    }
    if (!received->received.count)
        return bw_error_create(BW_ERROR_CORRUPT, "the streams contain no subvolume");
    return NULL;
}

/* The top-level subvolume and the root tree. */

static struct bw_error *put_root(struct bw_tree_editor *roots, const struct bw_tree *tree,
                                 const struct bw_received *subvolume)
{
    const struct bw_key key = {tree->id, BW_ROOT_ITEM, 0};
    struct bw_disk_root_item item = {.generation = bw_put64(tree->root.generation),
                                     .root_directory = bw_put64(BW_SUBVOLUME_ROOT_INODE),
                                     .bytenr = bw_put64(tree->root.bytenr),
                                     .last_snapshot = bw_put64(roots->generation),
                                     .reference_count = bw_put32(1),
                                     .level = tree->root.level,
                                     .generation_v2 = bw_put64(tree->root.generation)};
    if (subvolume) {
        item.flags = bw_put64(!subvolume->is_incomplete);
        item.change_transid = item.send_transid = bw_put64(subvolume->transid);
        memcpy(item.uuid, subvolume->uuid, BW_UUID_SIZE);
        memcpy(item.received_uuid, subvolume->uuid, BW_UUID_SIZE);
        memcpy(item.parent_uuid, subvolume->parent_uuid, BW_UUID_SIZE);
    }
    return bw_edit_put(roots, &key, &item, sizeof item);
}

/* Adds the received subvolumes to the root tree and to the top directory. */
static struct bw_error *add_subvolumes(const struct bw_received_set *received,
                                       struct bw_stream_tree *top, struct bw_tree_editor *roots)
{
    BW_SCOPED(bw_key_map) struct bw_key_map numbers = {0}; /* the last ones, by hashes of names */
    for (size_t i = 0; i < received->received.count; i++) {
        const struct bw_received *subvolume = &received->received.items[i];
        const uint64_t id = subvolume->tree.id, index = i + 2;

        /* A name that is still free: NAME, NAME.2, NAME.3, ... */
        char name[BW_NAME_MAX + 1];
        const size_t whole = strlen(subvolume->name), kept = bw_min(whole, BW_NAME_MAX - 11);
        const uint64_t hash = bw_fs_name_hash(received->fs, 0, subvolume->name, whole);
        uint32_t number = bw_key_map_get(&numbers, hash, 0) + 1;
        struct bw_stream_place place = {.inode = 1};
        memcpy(name, subvolume->name, whole + 1);
        for (; place.inode; number++) {
            if (number > 1)
                snprintf(name + kept, 12, ".%" PRIu32, number);
            BW_TRY(bw_stream_lookup(top, (struct bw_bytes){name, strlen(name)}, &place));
        }
        BW_TRY(bw_key_map_put(&numbers, hash, number - 1));
        BW_TRY(put_root(roots, &subvolume->tree, subvolume));

        /* The references between it and the top-level subvolume, and its entries there. */
        const uint16_t length = (uint16_t)strlen(name);
        const struct bw_key up = {id, BW_ROOT_BACKREF, BW_TOP_SUBVOLUME};
        const struct bw_key down = {BW_TOP_SUBVOLUME, BW_ROOT_REF, id};
        struct {
            struct bw_disk_root_ref head;
            uint8_t name[BW_NAME_MAX];
        } ref = {{bw_put64(BW_SUBVOLUME_ROOT_INODE), bw_put64(index), bw_put16(length)}, {0}};
        const uint32_t ref_size = (uint32_t)sizeof ref.head + length;
        memcpy(ref.name, name, length);
        BW_TRY(bw_edit_put(roots, &up, &ref, ref_size));
        BW_TRY(bw_edit_put(roots, &down, &ref, ref_size));

        const struct bw_key by_name = {BW_SUBVOLUME_ROOT_INODE, BW_DIR_ITEM,
                                       bw_name_hash(name, length)};
        const struct bw_key by_index = {BW_SUBVOLUME_ROOT_INODE, BW_DIR_INDEX, index};
        struct {
            struct bw_disk_dir_item head;
            uint8_t name[BW_NAME_MAX];
        } entry = {{.location = {.objectid = bw_put64(id),
                                 .type = BW_ROOT_ITEM,
                                 .offset = bw_put64(UINT64_MAX)},
                    .name_length = bw_put16(length),
                    .type = BW_FILE_DIRECTORY},
                   {0}};
        const uint32_t entry_size = (uint32_t)sizeof entry.head + length;
        memcpy(entry.name, name, length);
        BW_TRY(bw_edit_append(&top->editor, &by_name, &entry, entry_size));
        BW_TRY(bw_edit_put(&top->editor, &by_index, &entry, entry_size));
    }
    return put_root(roots, &top->editor.tree, NULL);
}

/* The file system has the id of its first subvolume. */
struct bw_error *bw_streams_apply(struct bw_fs *fs, struct bw_image_set *set)
{
    BW_SCOPED(bw_received) struct bw_received_set received = {.fs = fs};
    BW_AUTO_FREE struct source *sources = calloc(set->count, sizeof *sources);
    if (!sources)
        return bw_error_no_memory();
    BW_TRY(begin_sources(set, sources));
    BW_TRY(bw_build_upper_graph(fs, set));
    fs->memory.nodesize = fs->reader.nodesize;
    fs->reader.memory = &fs->memory;
    BW_TRY(apply_streams(&received, sources));

    const uint64_t generation = received.received.count;
    fs->superblock.generation = fs->superblock.root.generation = generation;
    for (size_t i = 0; i < fs->image_count; i++) /* none is stale */
        fs->images[i].superblock.generation = generation;
    memcpy(fs->superblock.fsid, received.received.items[0].uuid, BW_UUID_SIZE);
    memcpy(fs->superblock.metadata_uuid, fs->superblock.fsid, BW_UUID_SIZE);
    BW_TRY(make_chunk_tree(fs, sources));

    struct bw_stream_tree top = {.transid = 0};
    struct bw_tree_editor roots = {.memory = NULL};
    struct bw_error *error =
        bw_editor_create_empty(&top.editor, &fs->reader, &fs->memory, BW_TOP_SUBVOLUME, generation);
    top.editor.shared = fs->memory.blocks.count - 1;
    if (!error)
        error = bw_editor_create_empty(&roots, &fs->reader, &fs->memory, BW_ROOT_TREE, generation);
    roots.shared = top.editor.shared;
    if (!error)
        error = bw_stream_tree_begin(&top);
    if (!error)
        error = add_subvolumes(&received, &top, &roots);
    fs->root_tree = roots.tree;
    bw_stream_tree_free(&top);
    bw_editor_destroy(&roots);
    return error ? error : bw_subvolumes_load(fs);
}
