/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The physical scan. Threads read some MiB at a time, and examine the beginning of every sector. */
#include "rescue/device_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/pool.h"
#include "base/search.h"
#include "graph/wind.h"
#include "ondisk/disk_items.h"

enum {
    PIECE = 4 << 20,
    WINDOW = PIECE + BW_MAX_NODESIZE, /* a block may begin in a piece and end after it */
};

/* A stored part of a device, read in pieces. */
struct stretch {
    struct bw_device_range range;
    size_t first; /* number of pieces in previous stretches */
};

BW_VECTOR(stretches, struct stretch);

/* A running scan. */
struct run {
    struct bw_device_scan *scan;
    struct stretches stretches;
    size_t pieces;             /* in all stretches */
    uint8_t *buffers;          /* WINDOW bytes per worker */
    uint64_t bytes;            /* in all stretches */
    atomic_uint_fast64_t done; /* number of bytes examined */
    pthread_mutex_t lock;
    bool no_memory;
};

struct bw_error *bw_device_scan_begin(struct bw_device_scan *scan, const struct bw_fs *fs)
{
    *scan = (struct bw_device_scan){.fs = fs,
                                    .images = fs->images,
                                    .image_count = fs->image_count,
                                    .sectorsize = fs->superblock.sectorsize};
    bw_found_init(&scan->owners);
    return bw_found_identity_of(fs, &scan->identity);
}

void bw_device_scan_free(struct bw_device_scan *scan)
{
    bw_block_matches_free(&scan->matches);
    bw_found_free(&scan->owners);
}

static struct bw_xlator *device_of(const struct bw_device_scan *scan, size_t image)
{
    return image < scan->image_count ? scan->images[image].storage : NULL;
}

size_t bw_image_of_devid(const struct bw_device_scan *scan, uint64_t devid)
{
    size_t at = 0;
    while (at < scan->image_count && (scan->images[at].role == BW_IMAGE_UNUSED ||
                                      scan->images[at].superblock.device.devid != devid))
        at++;
    return at;
}

static int by_place(const void *left, const void *right)
{
    const struct bw_device_range *a = left, *b = right;
    return a->image != b->image ? (a->image > b->image) * 2 - 1
                                : (a->offset > b->offset) - (a->offset < b->offset);
}

struct bw_error *bw_device_scan_bytes(const struct bw_device_scan *scan, size_t image,
                                      uint64_t offset, uint32_t length, uint8_t *buffer)
{
    struct bw_xlator *device = device_of(scan, image);
    if (!device)
        return bw_error_create(BW_ERROR_MISSING_DEVICE, "a device is missing");
    return bw_read_raw(NULL, device, offset, buffer, length);
}

bool bw_device_scan_has(const struct bw_device_scan *scan, size_t image, uint64_t offset,
                        enum bw_checksum_type type, const uint8_t *checksum)
{
    const uint32_t size = scan->sectorsize;
    uint8_t sector[BW_MAX_NODESIZE], result[BW_CSUM_SIZE];
    BW_AUTO_ERROR struct bw_error *error = bw_device_scan_bytes(scan, image, offset, size, sector);
    if (error || memcmp(sector, sector + 1, size - 1) == 0)
        return false;
    bw_checksum_compute(type, sector, size, result);
    return memcmp(result, checksum, bw_checksum_size(type)) == 0;
}

/* Reads a piece, and adds the blocks that begin in it. */
static void scan_piece(void *context, unsigned worker, size_t task)
{
    struct run *run = context;
    struct bw_device_scan *scan = run->scan;
    const size_t after =
        BW_FIRST_INDEX(i, run->stretches.count, run->stretches.items[i].first > task);
    const struct stretch *stretch = &run->stretches.items[after - 1];
    const uint64_t begin = (uint64_t)(task - stretch->first) * PIECE;
    const uint64_t rest = stretch->range.length - begin;
    const struct bw_device_range piece = {stretch->range.image, stretch->range.offset + begin,
                                          rest < PIECE ? rest : PIECE};
    const uint64_t left = bw_xlator_size(device_of(scan, piece.image)) - piece.offset;
    const uint32_t length = left < WINDOW ? (uint32_t)left : WINDOW;
    uint8_t *buffer = run->buffers + (size_t)worker * WINDOW;
    BW_AUTO_ERROR struct bw_error *error =
        bw_device_scan_bytes(scan, piece.image, piece.offset, length, buffer);
    /* skip only the unreadable sectors */
    for (uint32_t at = 0, size; error && at < length; at += size) {
        size = length - at < BW_MIN_SECTORSIZE ? length - at : BW_MIN_SECTORSIZE;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_device_scan_bytes(scan, piece.image, piece.offset + at, size, buffer + at);
        if (bad)
            memset(buffer + at, 0, size);
    }

    const uint32_t nodesize = scan->identity.nodesize;
    struct bw_found_block block;
    for (uint32_t at = 0, step; at < piece.length && at + nodesize <= length; at += step) {
        const uint8_t *bytes = buffer + at;
        step = BW_MIN_SECTORSIZE;
        if (!bw_found_has_ids(&scan->identity, bytes) ||
            bw_found_recognise(&scan->identity, &scan->owners, bytes, BW_FOUND_ANYWHERE, &block) !=
                BW_FOUND_BLOCK)
            continue;
        step = nodesize;
        struct bw_block_match match = {.bytenr = block.bytenr,
                                       .generation = block.generation,
                                       .offset = piece.offset + at,
                                       .owner = block.owner,
                                       .image = (uint16_t)piece.image,
                                       .level = block.level & BW_FOUND_MOST_LEVEL};
        const struct bw_node leaf = bw_node_view(bytes, nodesize);
        for (uint32_t slot = 0; !leaf.level && slot < leaf.item_count && !match.has_groups; slot++)
            match.has_groups = bw_leaf_key(&leaf, slot).type == BW_BLOCK_GROUP_ITEM;

        pthread_mutex_lock(&run->lock);
        const uint8_t *uuid = ((const struct bw_disk_header *)bytes)->chunk_tree_uuid;
        unsigned number = 0;
        while (number < scan->uuid_count && memcmp(scan->uuids[number], uuid, BW_UUID_SIZE) != 0)
            number++;
        if (number == scan->uuid_count && number < BW_SCAN_UUIDS)
            memcpy(scan->uuids[scan->uuid_count++], uuid, BW_UUID_SIZE);
        match.uuid = number & BW_MOST_UUID;
        if (bw_block_matches_push(&scan->matches, match))
            run->no_memory = true;
        pthread_mutex_unlock(&run->lock);
    }
    const uint64_t done = atomic_fetch_add(&run->done, piece.length) + piece.length;
    if (scan->fs->searched)
        scan->fs->searched(scan->fs->searched_context, done, run->bytes);
}

struct bw_error *bw_device_scan_run(struct bw_device_scan *scan, struct bw_device_range *ranges,
                                    size_t count)
{
    struct run run = {.scan = scan, .lock = PTHREAD_MUTEX_INITIALIZER};
    const unsigned workers = bw_pool_workers(0);
    struct bw_pool *pool = bw_pool_create(workers);
    run.buffers = aligned_alloc(BW_MIN_SECTORSIZE, (size_t)workers * WINDOW);
    const uint64_t mask = BW_MIN_SECTORSIZE - 1;
    bool ready = pool && run.buffers;

    /* The stored parts of the ranges, in pieces. In a crafted image, any number of chunks may claim
     * the same range: each begins where those before it end. */
    uint64_t done = 0;
    if (count)
        qsort(ranges, count, sizeof *ranges, by_place);
    for (size_t i = 0; ready && i < count; i++) {
        const struct bw_device_range *range = &ranges[i];
        struct bw_xlator *device = device_of(scan, range->image);
        const uint64_t size = device ? bw_xlator_size(device) : 0;
        const uint64_t left = range->offset < size ? size - range->offset : 0;
        const uint64_t end = range->offset + bw_min(range->length, left);
        if (i && range->image != range[-1].image)
            done = 0;
        uint64_t at = bw_max(range->offset & ~mask, done), next;
        done = bw_max(done, (end + mask) & ~mask);
        for (; ready && left && at < end; at += PIECE) {
            next = bw_xlator_next_stored(device, at);
            if (next >= end)
                break;
            at += (next - at) & ~mask;
            const uint64_t length = bw_min(end - at, PIECE);

            /* A piece continues the stretch that ends at its beginning, or is a new one. */
            struct stretches *stretches = &run.stretches;
            struct bw_device_range *last =
                stretches->count ? &stretches->items[stretches->count - 1].range : NULL;
            if (last && last->image == range->image && last->offset + last->length == at &&
                last->length % PIECE == 0)
                last->length += length;
            else
                ready = !stretches_push(stretches,
                                        (struct stretch){{range->image, at, length}, run.pieces});
            run.pieces++;
            run.bytes += length;
        }
    }
    if (ready)
        bw_pool_run(pool, run.pieces, scan_piece, &run);
    bw_pool_destroy(pool);
    free(run.buffers);
    stretches_free(&run.stretches);
    return !ready || run.no_memory ? bw_error_no_memory() : NULL;
}

bool bw_device_scan_read(const struct bw_device_scan *scan, const struct bw_block_match *match,
                         uint8_t *buffer, struct bw_node *block)
{
    const struct bw_disk_header *header = (const void *)buffer;
    const struct bw_found_identity *identity = &scan->identity;
    BW_AUTO_ERROR struct bw_error *error =
        bw_device_scan_bytes(scan, match->image, match->offset, identity->nodesize, buffer);
    if (error || bw_get64(header->bytenr) != match->bytenr || header->level != match->level ||
        !bw_checksum_accepts_block(identity->checksum_type, identity->other_checksums, buffer,
                                   identity->nodesize))
        return false;
    *block = bw_node_view(buffer, identity->nodesize);
    return true;
}

const struct bw_block_match *bw_device_scan_leaf(const struct bw_device_scan *scan, size_t *at,
                                                 uint64_t tree, uint8_t *buffer,
                                                 struct bw_node *leaf)
{
    while (*at < scan->matches.count) {
        const struct bw_block_match *match = &scan->matches.items[(*at)++];
        if (!match->level && bw_block_match_owner(scan, match) == tree &&
            bw_device_scan_read(scan, match, buffer, leaf))
            return match;
    }
    return NULL;
}

/* Whether a block is one that the superblock names as a root. */
static bool is_root(const struct bw_block_match *match, const struct bw_root_pointer *root)
{
    return root->bytenr && match->bytenr == root->bytenr && match->generation == root->generation &&
           match->level == root->level;
}

/* The number of roots in the superblock that a block is. The root of the root tree counts most: it
 * has the generation of the superblock. */
static size_t count_roots(const struct bw_superblock *super, const struct bw_block_match *match)
{
    size_t count = is_root(match, &super->root) * (size_t)BW_BACKUP_ROOTS;
    count += is_root(match, &super->chunk_root);
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &super->backup_roots[i];
        count += is_root(match, &backup->tree_root) || is_root(match, &backup->extent_root) ||
                 is_root(match, &backup->fs_root) || is_root(match, &backup->device_root) ||
                 is_root(match, &backup->csum_root);
    }
    return count;
}

size_t bw_device_scan_count_roots(const struct bw_device_scan *scan,
                                  const struct bw_superblock *super)
{
    size_t count = 0;
    for (size_t i = 0; i < scan->matches.count; i++)
        count += count_roots(super, &scan->matches.items[i]);
    return count;
}

const uint8_t *bw_device_scan_uuid(const struct bw_device_scan *scan,
                                   const struct bw_superblock *super)
{
    size_t counts[BW_SCAN_UUIDS + 1] = {0}, best = 0;
    for (size_t i = 0; i < scan->matches.count; i++)
        counts[scan->matches.items[i].uuid] += count_roots(super, &scan->matches.items[i]);
    for (size_t i = 1; i < scan->uuid_count; i++)
        if (counts[i] > counts[best])
            best = i;
    return scan->uuid_count && (counts[best] || scan->uuid_count == 1) ? scan->uuids[best] : NULL;
}

void bw_device_scan_keep(struct bw_device_scan *scan, const uint8_t *uuid)
{
    size_t kept = 0;
    for (size_t i = 0; i < scan->matches.count; i++) {
        const struct bw_block_match match = scan->matches.items[i];
        if (match.uuid < scan->uuid_count &&
            memcmp(scan->uuids[match.uuid], uuid, BW_UUID_SIZE) == 0)
            scan->matches.items[kept++] = match;
    }
    scan->matches.count = kept;
}
