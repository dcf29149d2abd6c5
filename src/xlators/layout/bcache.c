/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/bcache: shows the data of a backing device of bcache. They begin after its superblock; the
 * rest is the same as in layout/window. The btree of caches is not read, so a backing device whose
 * cache contains newer data is refused.
 *
 * Source: struct cache_sb_disk in the header of bcache in the kernel, and devices that make-bcache
 * wrote.
 */
#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/window.h"

enum {
    SECTOR = 512,
    PLACE = 8, /* sector of the superblock */
    DEFAULT_BEGIN = 16,
    KEYS = 256,
};

static const uint8_t magic[16] = {0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca,
                                  0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81};

struct disk_superblock {
    bw_le64 checksum;
    bw_le64 place;
    bw_le64 version;
    uint8_t magic[16], uuid[16], set[16];
    char label[32];
    bw_le64 flags, sequence, padding[8];
    bw_le64 begin; /* where the data begin, in sectors; since version 4 */
    bw_le16 block, bucket, count, number;
    bw_le32 last_mount;
    bw_le16 first_bucket, keys;
    bw_le64 key[KEYS];
};

static_assert(offsetof(struct disk_superblock, key) == 208, "as on disk");

enum version {
    CACHE = 0,
    BACKING = 1,
    CACHE_UUID = 3,
    BACKING_BEGIN = 4,
    CACHE_FEATURES = 5,
    BACKING_FEATURES = 6,
};
enum cache_status { CACHE_NONE, CACHE_CLEAN, CACHE_DIRTY, CACHE_STALE };

/* CRC-64 of ECMA-182, the most significant bit first. */
static uint64_t checksum_of(const uint8_t *bytes, size_t length)
{
    const uint64_t polynomial = 0x42f0e1eba9ea3693;
    uint64_t crc = UINT64_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= (uint64_t)bytes[i] << 56;
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc << 1 ^ (crc >> 63 ? polynomial : 0);
    }
    return ~crc;
}

/* Whether a device has a superblock. */
static bool read_superblock(struct bw_xlator *device, struct disk_superblock *superblock)
{
    if (!bw_try_read_raw(NULL, device, PLACE * SECTOR, superblock, sizeof *superblock) ||
        memcmp(superblock->magic, magic, sizeof magic) != 0 ||
        bw_get64(superblock->place) != PLACE || bw_get16(superblock->keys) > KEYS)
        return false;
    const size_t end =
        offsetof(struct disk_superblock, key) + bw_get16(superblock->keys) * sizeof(bw_le64);
    const size_t begin = sizeof superblock->checksum;
    return bw_get64(superblock->checksum) ==
           checksum_of((const uint8_t *)superblock + begin, end - begin);
}

static const struct bw_piece_map pieces = {"the bcache device ends", bw_window_locate, NULL};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_window *window = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    struct disk_superblock superblock;
    if (!read_superblock(device, &superblock))
        return bw_error_create(BW_ERROR_NOT_FOUND, "it has no superblock of bcache");
    const uint64_t version = bw_get64(superblock.version), size = bw_xlator_size(device);
    const uint64_t begin = version == BACKING ? DEFAULT_BEGIN : bw_get64(superblock.begin);
    switch (version) {
    case BACKING:
    case BACKING_BEGIN:
    case BACKING_FEATURES:
        break;
    case CACHE:
    case CACHE_UUID:
    case CACHE_FEATURES:
        return bw_error_create(BW_ERROR_NOT_BTRFS,
                               "it is a caching device of bcache: give its backing device");
    default:
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "it is a bcache device of version %" PRIu64 ", which is not read",
                               version);
    }
    if (begin < DEFAULT_BEGIN || begin >= size / SECTOR)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the data of the bcache device begin at sector %" PRIu64
                               " of %" PRIu64,
                               begin, size / SECTOR);
    bw_xlator_set_title(xlator, "bcache");
    *window = (struct bw_window){&pieces, begin * SECTOR, size - begin * SECTOR};

    /* The newest data may be in the cache only. */
    const enum cache_status status = bw_get64(superblock.flags) >> 61 & 3;
    char set[37];
    bw_uuid_text(superblock.set, set);
    if (status == CACHE_DIRTY) {
        struct bw_error *error = bw_error_create(
            BW_ERROR_MISSING_DEVICE,
            "the newest data are in the bcache cache set %s, which is not read: let the kernel "
            "write them back first",
            set);
        if (bw_xlator_child_count(device)) /* another layer, not an image */
            return error;
        return bw_error_advise(error, "`offset %" PRIu64 "` reads what the backing device has",
                               window->offset);
    }
    if (status == CACHE_STALE)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "the backing device of bcache was used without its cache "
                                         "set %s, so that data may be lost",
                                         set));
    return NULL;
}

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    struct disk_superblock superblock;
    (void)id;
    return read_superblock(device, &superblock);
}

const struct bw_container_type bw_bcache_container = {.layer = "layout/bcache", .find = find};

static const char page[] =
    "Shows the data of a backing device of bcache, without the kernel. The default graph contains "
    "it for images, or partitions, with a superblock of bcache.\n\n"
    "    btrfs-walk /dev/sdb1\n\n"
    "Caches are not read. If the cache of the device contains data that were not written back "
    "yet, the device is refused, because it is incomplete: attach the cache on a machine with "
    "bcache, and wait until the state of the device is clean. To read what the backing device "
    "contains nevertheless, skip the superblock; the file system is then probably damaged:\n\n"
    "    btrfs-walk --image-offset 8K /dev/sdb1\n";

const struct bw_xlator_class bw_layout_bcache_class = {
    .type = "layout/bcache",
    .description = "shows the data of a backing device of bcache",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct bw_window),
    .operations = {.init = init, BW_WINDOW_OPERATIONS, .title = bw_xlator_title},
};
