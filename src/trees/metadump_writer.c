/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes metadumps. Pieces are read, cleaned and compressed by several threads, some of them at a
 * time, and then written in order. Memory: these pieces, and the cluster that is being filled.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/struct_size.h"
#include "btrfs-walk/tree.h"
#include "fs/image.h"
#include "fs/tree_items.h"
#include "graph/wind.h"
#include "ondisk/metadump.h"
#include "trees/metadump.h"

enum {
    SLOTS = 32, /* ranges that are processed at a time */
    MOST_BLOCKS = BW_METADUMP_PIECE / BW_MIN_SECTORSIZE,
};

/* A piece that is ready. */
struct piece {
    uint64_t logical;
    uint32_t stored;
};

/* A range of consecutive blocks, at most BW_METADUMP_PIECE bytes. Blocks that cannot be read cut it
 * into several pieces. */
struct slot {
    const struct bw_dumped_block *blocks;
    unsigned count;
    uint8_t *bytes;                       /* of the blocks; a part of the writer's */
    struct bw_error *errors[MOST_BLOCKS]; /* of each block; NULL: it was read */
    bool good[MOST_BLOCKS]; /* it is part of the dump, although there may be an error */
    struct piece pieces[MOST_BLOCKS];
    unsigned piece_count;
    struct bw_buffer stored; /* the bytes of all pieces */
};

/* A metadump that is being written. */
struct writer {
    struct bw_fs *fs;
    struct bw_metadump_options options;
    bw_consumer *consume;
    void *context;
    struct bw_dump_rules rules;
    uint8_t (*uuids)[BW_UUID_SIZE];
    struct bw_pseudonyms names;
    struct bw_dumped_blocks list;
    uint8_t *scratch; /* a block for each worker */
    uint8_t *bytes;   /* BW_METADUMP_PIECE for each slot */
    unsigned workers;
    struct bw_pool *pool;
    struct slot slots[SLOTS];
    union bw_metadump_index index; /* of the cluster */
    uint32_t entries;
    struct bw_buffer cluster; /* the bytes of its pieces */
    uint64_t offset;          /* of the cluster */
};

/* Clusters. */

static struct bw_error *flush_cluster(struct writer *writer)
{
    struct bw_metadump_header *header = &writer->index.cluster.header;
    if (!writer->entries)
        return NULL;
    *header = (struct bw_metadump_header){
        .magic = bw_put64(BW_METADUMP_MAGIC),
        .offset = bw_put64(writer->offset),
        .count = bw_put32(writer->entries),
        .compression = writer->options.compression ? BW_METADUMP_ZLIB : BW_METADUMP_PLAIN};
    static const char zeros[BW_METADUMP_BLOCK];
    bw_buffer_append(&writer->cluster, zeros,
                     -writer->cluster.length & (size_t)(BW_METADUMP_BLOCK - 1));
    BW_TRY(bw_buffer_error(&writer->cluster));
    writer->offset += sizeof writer->index + writer->cluster.length;
    BW_TRY(
        writer->consume(writer->context, (const char *)writer->index.bytes, sizeof writer->index));
    struct bw_error *error =
        writer->consume(writer->context, writer->cluster.data, writer->cluster.length);
    writer->index = (union bw_metadump_index){0};
    writer->cluster.length = 0;
    writer->entries = 0;
    return error;
}

static struct bw_error *add_piece(struct writer *writer, const struct piece *piece,
                                  const char *bytes)
{
    writer->index.cluster.entries[writer->entries++] =
        (struct bw_metadump_entry){bw_put64(piece->logical), bw_put32(piece->stored)};
    bw_buffer_append(&writer->cluster, bytes, piece->stored);
    return writer->entries == BW_METADUMP_ENTRIES ? flush_cluster(writer) : NULL;
}

/* Appends the stored form of a piece to a buffer; returns its size, or 0 if memory runs out. */
static uint32_t store_piece(const struct writer *writer, struct bw_buffer *stored,
                            const uint8_t *bytes, size_t length)
{
    uLongf size = compressBound(length);
    if (!writer->options.compression) {
        bw_buffer_append(stored, bytes, length);
        return (uint32_t)length;
    }
    if (!bw_buffer_reserve(stored, size) ||
        compress2((uint8_t *)stored->data + stored->length, &size, bytes, length,
                  (int)writer->options.compression) != Z_OK)
        return 0;
    stored->length += size;
    return (uint32_t)size;
}

/* Ranges. */

static void read_blocks(const struct writer *writer, struct slot *slot)
{
    const struct bw_tree_reader *reader = &writer->fs->reader;
    struct bw_block_pointer pointers[MOST_BLOCKS];
    struct bw_request requests[MOST_BLOCKS];
    unsigned numbers[MOST_BLOCKS], count = 0;
    for (unsigned i = 0; i < slot->count; i++) {
        uint8_t *bytes = slot->bytes + (size_t)i * reader->nodesize;
        if (slot->blocks[i].tree == BW_DUMPED_UNKNOWN_TREE) {
            slot->errors[i] = bw_block_copy_read(writer->fs, slot->blocks[i].bytenr, 0, bytes);
            slot->good[i] = !slot->errors[i];
            continue;
        }
        const struct bw_dumped_block *block = &slot->blocks[i];
        const struct bw_tree tree = {writer->list.trees.entries.items[block->tree].tree.id,
                                     {block->bytenr, block->generation, block->level},
                                     0};
        numbers[count] = i;
        pointers[count] = bw_tree_root_pointer(&tree, true);
        requests[count] = bw_block_request(reader, &pointers[count], bytes);
        requests[count++].keep = false;
    }
    bw_blocks_read(reader, requests, count);
    for (unsigned i = 0; i < count; i++) {
        BW_AUTO_ERROR struct bw_error *bad = NULL;
        slot->errors[numbers[i]] = requests[i].error;
        if (requests[i].error) /* the parent may expect another block than the one there */
            bad = bw_block_copy_read(writer->fs, requests[i].address, 0, requests[i].buffer);
        slot->good[numbers[i]] = !bad;
    }
}

static void run_slot(void *context, unsigned worker, size_t number)
{
    struct writer *writer = context;
    struct slot *slot = &writer->slots[number];
    const uint32_t nodesize = writer->fs->reader.nodesize;
    uint8_t *bytes = slot->bytes;
    if (!slot->blocks->is_data)
        read_blocks(writer, slot);
    for (unsigned i = 0; i < slot->count; bytes += slot->blocks[i++].length) {
        struct bw_request request = {.kind = BW_REQUEST_DATA,
                                     .length = slot->blocks[i].length,
                                     .address = slot->blocks[i].bytenr,
                                     .buffer = bytes};
        if (!slot->blocks->is_data) {
            if (slot->good[i])
                bw_dumped_block_clean(&writer->rules, bytes, nodesize,
                                      writer->scratch + (size_t)worker * nodesize);
            continue;
        }
        /* Without names, zeros take the place of the space cache: if the root tree is damaged, its
         * extents may belong to a user's file. */
        if (writer->options.sanitize)
            memset(bytes, 0, request.length);
        else
            bw_wind(NULL, writer->fs->reader.top, &request, 1);
        slot->errors[i] = request.error;
        slot->good[i] = !request.error;
    }

    /* A piece of each sequence of good blocks. */
    bytes = slot->bytes;
    slot->piece_count = 0;
    slot->stored.length = 0;
    for (unsigned i = 0, end; i < slot->count; i = end) {
        size_t length = slot->blocks[i].length;
        for (end = i + 1; end < slot->count && slot->good[i] && slot->good[end]; end++)
            length += slot->blocks[end].length;
        if (slot->good[i])
            slot->pieces[slot->piece_count++] = (struct piece){
                slot->blocks[i].bytenr, store_piece(writer, &slot->stored, bytes, length)};
        bytes += length;
    }
}

/* Writes all blocks: assigns ranges to slots, processes these with all threads, and writes them in
 * order. A range has blocks of one kind, one directly after the other. */
static struct bw_error *write_blocks(struct writer *writer)
{
    const struct bw_dumped_blocks *list = &writer->list;
    uint64_t done = 0;
    for (size_t next = 0; next < list->blocks.count;) {
        unsigned count = 0;
        for (; count < SLOTS && next < list->blocks.count; count++) {
            struct slot *slot = &writer->slots[count];
            uint64_t length = 0;
            slot->blocks = &list->blocks.items[next];
            for (slot->count = 0; next < list->blocks.count; slot->count++, next++) {
                const struct bw_dumped_block *block = &list->blocks.items[next];
                if (slot->count == MOST_BLOCKS || length + block->length > BW_METADUMP_PIECE ||
                    block->bytenr != slot->blocks->bytenr + length ||
                    block->is_data != slot->blocks->is_data)
                    break;
                length += block->length;
            }
            done += length;
        }
        bw_pool_run(writer->pool, count, run_slot, writer);

        /* Unreadable blocks of all slots are reported, even after an error. */
        struct bw_error *error = NULL;
        for (unsigned k = 0; k < count; k++) {
            struct slot *slot = &writer->slots[k];
            const char *bytes = slot->stored.data;
            for (unsigned i = 0; i < slot->count; i++)
                if (slot->errors[i])
                    bw_fs_report_lost(writer->fs, slot->blocks[i].bytenr, BW_TAKE(slot->errors[i]));
            if (!error && slot->stored.failed)
                error = bw_error_no_memory();
            for (unsigned i = 0; !error && i < slot->piece_count; i++) {
                const struct piece *piece = &slot->pieces[i];
                error = piece->stored ? add_piece(writer, piece, bytes) : bw_error_no_memory();
                bytes += piece->stored;
            }
        }
        BW_TRY(error);
        if (writer->options.progress)
            writer->options.progress(writer->options.progress_context, done, list->bytes);
    }
    return NULL;
}

/* The superblock. */

/* Writes the superblock in use, or encodes it again if it was rebuilt. */
static struct bw_error *write_superblock(struct writer *writer)
{
    struct bw_disk_superblock disk;
    struct bw_superblock decoded;
    uint64_t offset;

    /* The device with the lowest id whose superblock is as new as the file system. */
    const struct bw_fs *fs = writer->fs;
    const struct bw_image *image = NULL;
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *other = &fs->images[i];
        if (other->role == BW_IMAGE_DEVICE && !other->bad && !bw_image_is_stale(fs, other) &&
            (!image || other->superblock.device.devid < image->superblock.device.devid))
            image = other;
    }
    if (!image)
        return bw_error_create(BW_ERROR_CORRUPT, "no device has a good superblock");
    BW_AUTO_ERROR struct bw_error *bad =
        bw_image_copy_bytes(image, image->copy, (uint8_t *)&disk, &offset);
    /* in the log of a zoned device, bytenr is not the address of the entry */
    if (!bad)
        bad = bw_superblock_decode(&disk, bw_get64(disk.bytenr), &decoded);
    if (bad)
        bw_superblock_encode(&image->superblock, &disk);

    if (writer->options.sanitize) {
        const struct bw_disk_superblock source = disk;
        bw_sanitized_superblock_copy(&writer->rules, &source, &disk);
    }
    disk.bytenr = bw_put64(bw_superblock_offset(0));
    bw_checksum_compute(writer->rules.checksum_type, disk.csum + BW_CSUM_SIZE,
                        sizeof disk - BW_CSUM_SIZE, disk.csum);

    BW_AUTO_BUFFER struct bw_buffer stored = {0};
    const uint32_t size = store_piece(writer, &stored, (const uint8_t *)&disk, sizeof disk);
    if (!size || stored.failed)
        return bw_error_no_memory();
    return add_piece(writer, &(struct piece){bw_superblock_offset(0), size}, stored.data);
}

/* Begin and end. */

/* Sets the rules for sanitized blocks: a random key for the names, which is stored nowhere, and the
 * values with which numbers are compared. */
static struct bw_error *set_sanitizing_rules(struct writer *writer)
{
    const struct bw_fs *fs = writer->fs;
    struct bw_dump_rules *rules = &writer->rules;
    rules->names = &writer->names;
    BW_TRY(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    if (getrandom(writer->names.key, sizeof writer->names.key, 0) != sizeof writer->names.key)
        return bw_error_create(BW_ERROR_SYSTEM, "no random numbers are available");
    writer->uuids = calloc(2 * fs->image_count + 2, sizeof *writer->uuids);
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!writer->uuids || !block)
        return bw_error_no_memory();
    memcpy(writer->uuids[0], fs->superblock.fsid, BW_UUID_SIZE);
    memcpy(writer->uuids[1], fs->superblock.metadata_uuid, BW_UUID_SIZE);
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_device_identity *device = &fs->images[i].superblock.device;
        memcpy(writer->uuids[2 * i + 2], device->uuid, BW_UUID_SIZE);
        memcpy(writer->uuids[2 * i + 3], device->fsid, BW_UUID_SIZE);
    }
    rules->uuids = (const uint8_t(*)[BW_UUID_SIZE])writer->uuids;
    rules->uuid_count = 2 * fs->image_count + 2;
    rules->generation = fs->superblock.generation + 1; /* a log tree has it */
    rules->sectorsize = fs->superblock.sectorsize;
    rules->checksum_size = (uint32_t)bw_checksum_size(rules->checksum_type);
    /* If the chunk root cannot be read, the blocks of the metadump have no chunk tree UUID, which
     * no reader requires. */
    BW_AUTO_ERROR struct bw_error *bad =
        bw_block_copy_read(writer->fs, fs->superblock.chunk_root.bytenr, 0, block);
    const uint8_t *uuid = ((const struct bw_disk_header *)block)->chunk_tree_uuid;
    const struct bw_known_bytes known = {.uuids = rules->uuids, .uuid_count = rules->uuid_count};
    if (!bad && bw_known_uuid(&known, uuid))
        memcpy(rules->chunk_tree_uuid, uuid, BW_UUID_SIZE);
    return NULL;
}

struct bw_error *bw_metadump_write(struct bw_fs *fs, const struct bw_metadump_options *options,
                                   bw_consumer *consume, void *context)
{
    struct bw_metadump_options ours;
    BW_TRY(BW_TAKE_OPTIONS(&ours, options));
    if (ours.compression > 9)
        return bw_error_create(BW_ERROR_USAGE, "levels of compression are 0 to 9");
    if (fs->is_stream)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "a send stream has no tree blocks");
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return bw_error_no_memory();
    *writer = (struct writer){.fs = fs,
                              .options = ours,
                              .consume = consume,
                              .context = context,
                              .rules = {.checksum_type = fs->superblock.checksum_type,
                                        .checksums = ours.checksums,
                                        .fsid = fs->superblock.metadata_uuid},
                              .workers = bw_pool_workers(0),
                              .pool = bw_pool_create(bw_pool_workers(0))};
    writer->scratch = bw_block_buffer(&fs->reader, writer->workers);
    writer->bytes = malloc((size_t)SLOTS * BW_METADUMP_PIECE);
    struct bw_error *error = NULL;
    if (!writer->pool || !writer->scratch || !writer->bytes)
        error = bw_error_no_memory();
    for (unsigned i = 0; i < SLOTS && !error; i++)
        writer->slots[i].bytes = writer->bytes + (size_t)i * BW_METADUMP_PIECE;
    if (!error && ours.sanitize)
        error = set_sanitizing_rules(writer);
    if (!error)
        error = bw_dumped_blocks_find(&writer->list, fs);
    if (!error)
        error = write_superblock(writer);
    if (!error)
        error = write_blocks(writer);
    if (!error)
        error = flush_cluster(writer);

    bw_pool_destroy(writer->pool);
    bw_dumped_blocks_free(&writer->list);
    for (unsigned i = 0; i < SLOTS; i++)
        bw_buffer_free(&writer->slots[i].stored);
    free(writer->bytes);
    free(writer->scratch);
    free(writer->uuids);
    bw_buffer_free(&writer->cluster);
    explicit_bzero(&writer->names, sizeof writer->names);
    free(writer);
    return error;
}
