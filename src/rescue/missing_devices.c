/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identifies images without a superblock as missing devices.
 *
 * The chunks known so far determine where tree blocks and data are on each missing device. An image
 * gets a vote for a device for each tree block with the right address at such an offset, and for
 * each sector with the right checksum. It is the device with the most votes, if these are at least
 * PROOF, so a block that was copied into a file does not decide. Only a part of each chunk is
 * examined.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "ondisk/disk_items.h"
#include "rescue/chunk_set.h"
#include "rescue/rescue.h"

enum {
    MOST_DEVICES = 64,       /* maximum number of missing devices */
    MOST_RANGES = 256,       /* maximum number of ranges of an image to search for tree blocks */
    RANGE = 4 << 20,         /* length of each range */
    MOST_CHUNKS = 256,       /* maximum number of chunks to compare the data of */
    SECTORS_OF_A_CHUNK = 64, /* compared sectors per chunk and image */
    STEP = 4,                /* one of so many checksums is compared */
    PROOF = 2,               /* number of positions that must match */
};

struct search {
    struct bw_fs *fs;
    struct bw_device_scan scan;
    struct bw_chunk_set chunks;
    struct bw_device_identity missing[MOST_DEVICES];
    size_t missing_count;
    unsigned (*votes)[MOST_DEVICES]; /* for each image and device */
};

/* The index of a missing device; missing_count if the device is not missing. */
static size_t number_of(const struct search *search, uint64_t devid)
{
    size_t at = 0;
    while (at < search->missing_count && search->missing[at].devid != devid)
        at++;
    return at;
}

static struct bw_device_identity *note_device(struct search *search, uint64_t devid,
                                              const uint8_t uuid[BW_UUID_SIZE])
{
    const size_t at = number_of(search, devid);
    if (devid == BW_UNKNOWN_DEVICE || at == MOST_DEVICES ||
        bw_image_of_device(search->fs, devid, uuid))
        return NULL;
    struct bw_device_identity *device = &search->missing[at];
    if (at == search->missing_count) {
        search->missing_count++;
        *device = (struct bw_device_identity){.devid = devid};
        memcpy(device->uuid, uuid, BW_UUID_SIZE);
        memcpy(device->fsid, search->fs->superblock.fsid, BW_UUID_SIZE);
    }
    return device;
}

/* Reads those parts of an image where tree blocks of missing devices would be. */
static struct bw_error *vote_by_blocks(struct search *search, size_t image)
{
    struct bw_block_matches *matches = &search->scan.matches;
    struct bw_device_range ranges[MOST_RANGES];
    struct bw_chunk chunk;
    struct bw_copies copies;
    size_t count = 0;
    for (size_t at = 0; bw_chunk_set_next(&search->chunks, &at, &chunk);) {
        if (!(chunk.type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
            continue;
        const uint64_t length = bw_stripe_length(&chunk);
        for (unsigned n = 0; n < chunk.stripe_count && count < MOST_RANGES; n++)
            if (number_of(search, bw_get64(chunk.stripes[n].devid)) < search->missing_count)
                ranges[count++] = (struct bw_device_range){image, bw_get64(chunk.stripes[n].offset),
                                                           length < RANGE ? length : RANGE};
    }
    matches->count = 0;
    BW_TRY(bw_device_scan_run(&search->scan, ranges, count));
    for (size_t i = 0; i < matches->count; i++) {
        bw_copies_begin(&copies, &search->chunks, matches->items[i].bytenr);
        while (bw_copies_next(&copies)) {
            const size_t device = number_of(search, copies.devid);
            if (device < search->missing_count && copies.offset == matches->items[i].offset)
                search->votes[image][device]++;
        }
    }
    return NULL;
}

/* Compares a sector on all images that may be a device with a copy of it. Returns the number of
 * comparisons. */
static size_t compare_sector(struct search *search, uint64_t address, enum bw_checksum_type type,
                             const uint8_t *checksum)
{
    const struct bw_fs *fs = search->fs;
    struct bw_copies copies;
    size_t compared = 0;
    bw_copies_begin(&copies, &search->chunks, address);
    while (bw_copies_next(&copies)) {
        const size_t device = number_of(search, copies.devid);
        for (size_t i = 0; device < search->missing_count && i < fs->image_count; i++)
            if (fs->images[i].is_unclaimed) {
                compared++;
                search->votes[i][device] +=
                    bw_device_scan_has(&search->scan, i, copies.offset, type, checksum);
            }
    }
    return compared;
}

/* Compares every fourth sector of a chunk with its checksums, until there are enough: even small
 * files have several of these, and large ones are not read completely. */
static struct bw_error *vote_by_chunk(struct search *search, const struct bw_chunk *chunk)
{
    struct bw_fs *fs = search->fs;
    const size_t enough = SECTORS_OF_A_CHUNK * fs->image_count;
    size_t compared = 0;
    for (size_t i = 0; i < 2 * fs->checksum_trees.count; i++) {
        const uint64_t object = i % 2 ? BW_CSUM_CHANGE : BW_EXTENT_CSUM_OBJECT;
        const struct bw_key first = {object, BW_EXTENT_CSUM, chunk->logical};
        const struct bw_key last = {object, BW_EXTENT_CSUM, chunk->logical + chunk->length - 1};
        const unsigned types = bw_rescue_sum_types(fs, &first);
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, fs, &fs->checksum_trees.items[i / 2], first, last);
        for (const struct bw_item *item;
             types && compared < enough && (item = bw_fs_items_next(&items));)
            for (unsigned left = types; left; left &= left - 1) {
                const enum bw_checksum_type type = (enum bw_checksum_type)__builtin_ctz(left);
                const size_t size = bw_checksum_size(type);
                for (size_t k = 0; (k + 1) * size <= item->size && compared < enough; k += STEP)
                    compared +=
                        compare_sector(search, item->key.offset + k * search->scan.sectorsize, type,
                                       item->data + k * size);
            }
        BW_TRY(bw_fs_items_error(&items));
    }
    return NULL;
}

static void claim_image(struct search *search, struct bw_image *image, size_t device,
                        unsigned votes)
{
    struct bw_fs *fs = search->fs;
    image->superblock = fs->superblock;
    image->superblock.device = search->missing[device];
    if (!image->superblock.device.total_bytes)
        image->superblock.device.total_bytes = bw_xlator_size(image->storage);
    image->role = BW_IMAGE_DEVICE;
    image->is_unclaimed = false;
    image->is_claimed = true;
    image->is_known = true;
    const bool is_other = image->bad->code == BW_ERROR_USAGE;
    bw_fs_report(
        fs, BW_WARNING,
        bw_error_prefix(BW_TAKE(image->bad),
                        "%s is device %" PRIu64 ": blocks of it were found in %u place%s. %s",
                        image->name, search->missing[device].devid, votes, bw_plural(votes),
                        is_other ? "It was formatted again" : "It has no superblock"));
    search->missing[device].devid = BW_UNKNOWN_DEVICE; /* identified */
}

static void search_free(struct search *search)
{
    free(search->votes);
    bw_device_scan_free(&search->scan);
    free(search->scan.identity.ids);
    bw_chunk_set_free(&search->chunks);
}

struct bw_error *bw_rescue_devices(struct bw_fs *fs)
{
    BW_SCOPED(search) struct search search = {.fs = fs};
    struct bw_chunk chunk;
    BW_TRY(bw_device_scan_begin(&search.scan, fs));
    search.votes = calloc(fs->image_count, sizeof *search.votes);
    if (!search.votes)
        return bw_error_no_memory();

    /* All chunks known so far, and the devices in them that are missing. */
    if (fs->chunk_tree.root.bytenr) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, fs, &fs->chunk_tree, (struct bw_key){0, 0, 0},
                          (struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX});
        for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
            const struct bw_disk_device_item *disk = (const void *)item->data;
            if (item->key.type == BW_CHUNK_ITEM &&
                !bw_chunk_is_remapped_away(item->data, item->size))
                BW_TRY(bw_chunk_set_add(&search.chunks, item));
            if (item->key.type != BW_DEVICE_ITEM || item->size < sizeof *disk)
                continue;
            struct bw_device_identity *device =
                note_device(&search, bw_get64(disk->devid), disk->uuid);
            if (device) {
                device->total_bytes = bw_get64(disk->total_bytes);
                device->bytes_used = bw_get64(disk->bytes_used);
            }
        }
        BW_TRY(bw_fs_items_error(&items));
    }
    BW_TRY(bw_chunk_set_add_array(&search.chunks, &fs->superblock));
    for (size_t at = 0; bw_chunk_set_next(&search.chunks, &at, &chunk);)
        for (unsigned n = 0; n < chunk.stripe_count; n++)
            note_device(&search, bw_get64(chunk.stripes[n].devid), chunk.stripes[n].device_uuid);
    if (!search.missing_count)
        return NULL;

    /* The votes of tree blocks, then of data on missing devices. */
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].is_unclaimed)
            BW_TRY(vote_by_blocks(&search, i));
    unsigned compared = 0;
    for (size_t at = 0; compared < MOST_CHUNKS && bw_chunk_set_next(&search.chunks, &at, &chunk);) {
        bool is_on_missing = false;
        for (unsigned n = 0; n < chunk.stripe_count; n++)
            is_on_missing |=
                number_of(&search, bw_get64(chunk.stripes[n].devid)) < search.missing_count;
        if (!(chunk.type & BW_GROUP_DATA) || !is_on_missing)
            continue;
        BW_TRY(vote_by_chunk(&search, &chunk));
        compared++;
    }

    /* Each image is the device with the most votes that no image before it is. */
    for (size_t i = 0; i < fs->image_count; i++) {
        const unsigned *votes = search.votes[i];
        size_t best = search.missing_count;
        for (size_t n = 0; n < search.missing_count; n++)
            if (search.missing[n].devid != BW_UNKNOWN_DEVICE && votes[n] >= PROOF &&
                (best == search.missing_count || votes[n] > votes[best]))
                best = n;
        if (best < search.missing_count)
            claim_image(&search, &fs->images[i], best, votes[best]);
    }
    return NULL;
}
