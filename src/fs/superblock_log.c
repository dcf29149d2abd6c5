/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for the newest entry of a log. Generations ascend in each of the two zones, so their ends are
 * found by halving; of each length that a zone may have, one step tells whether a second log begins there.
 */
#include "fs/superblock_log.h"

#include "base/cleanup.h"
#include "format/features.h"
#include "format/superblock.h"

enum {
    SMALLEST_ZONE = 22, /* powers of two: 4 MiB */
    LARGEST_ZONE = 33,  /* 8 GiB */
    STEPS_BACK = 8      /* from a newest entry that is bad, which the last write may have left */
};

struct log {
    const struct bw_frame *frame;
    struct bw_xlator *storage;
    unsigned copy;
    uint64_t best_offset, best_generation; /* of the newest entry so far */
    bool found, good;                      /* any entry; its checksum is right */
};

static bool read_block(const struct log *log, uint64_t offset, void *block)
{
    struct bw_request request = {
        .kind = BW_REQUEST_SUPER, .length = BW_SUPERBLOCK_SIZE, .address = offset, .buffer = block};
    uint64_t size = bw_xlator_size(log->storage);
    if (size < BW_SUPERBLOCK_SIZE || offset > size - BW_SUPERBLOCK_SIZE)
        return false;
    bw_wind(log->frame, log->storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error;
}

/* The block at an offset, if it is an entry. An entry calls itself by the address of the copy on devices
 * without zones. */
static bool read_entry(const struct log *log, uint64_t offset, struct bw_disk_superblock *disk)
{
    return read_block(log, offset, disk) && bw_get64(disk->magic) == BW_SUPERBLOCK_MAGIC &&
           bw_get64(disk->bytenr) == bw_superblock_offset(log->copy) &&
           bw_get64(disk->incompat_flags) & BW_INCOMPAT_ZONED;
}

/* Whether an entry of this generation or a later one is at an offset. One bad block among others ends no log.
 */
static bool goes_on(const struct log *log, uint64_t offset, uint64_t generation)
{
    struct bw_disk_superblock disk;
    return (read_entry(log, offset, &disk) && bw_get64(disk.generation) >= generation) ||
           (read_entry(log, offset + BW_SUPERBLOCK_SIZE, &disk) && bw_get64(disk.generation) >= generation);
}

/* Where the entries end that begin at an offset with this generation. */
static uint64_t find_end(const struct log *log, uint64_t start, uint64_t generation)
{
    uint64_t low = 0, high = 1; /* in entries; there is one at low, and none at high */
    const uint64_t limit = UINT64_C(2) << LARGEST_ZONE >> 12;
    while (high < limit && goes_on(log, start + high * BW_SUPERBLOCK_SIZE, generation)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (goes_on(log, start + middle * BW_SUPERBLOCK_SIZE, generation))
            low = middle;
        else
            high = middle;
    }
    return start + high * BW_SUPERBLOCK_SIZE;
}

/* Looks at the last entry before an offset; a good one is better than a bad one, then a newer one. */
static void consider(struct log *log, uint64_t end)
{
    struct bw_disk_superblock disk;
    struct bw_superblock superblock;
    for (unsigned i = 1; i <= STEPS_BACK && end >= i * (uint64_t)BW_SUPERBLOCK_SIZE; i++) {
        uint64_t offset = end - i * (uint64_t)BW_SUPERBLOCK_SIZE;
        if (!read_entry(log, offset, &disk))
            continue;
        BW_AUTO_ERROR struct bw_error *error =
            bw_superblock_decode(&disk, bw_superblock_offset(log->copy), &superblock);
        uint64_t generation = bw_get64(disk.generation);
        bool good = !error;
        if (!log->found || good > log->good || (good == log->good && generation > log->best_generation)) {
            log->best_offset = offset;
            log->best_generation = generation;
            log->found = true;
            log->good = good;
        }
        if (good)
            break;
    }
}

/* The entries that begin at an offset, if there are any; the first one may be bad. */
static void consider_run(struct log *log, uint64_t start)
{
    struct bw_disk_superblock disk;
    if (read_entry(log, start, &disk) || read_entry(log, start += BW_SUPERBLOCK_SIZE, &disk))
        consider(log, find_end(log, start, bw_get64(disk.generation)));
}

bool bw_superblock_log_find(const struct bw_frame *frame, struct bw_xlator *storage, unsigned copy,
                            uint64_t *offset)
{
    static const uint64_t bases[BW_SUPERBLOCK_COPIES] = {0, UINT64_C(512) << 30, UINT64_C(4) << 40};
    struct log log = {.frame = frame, .storage = storage, .copy = copy};
    consider_run(&log, bases[copy]);
    for (unsigned shift = SMALLEST_ZONE; shift <= LARGEST_ZONE; shift++) {
        uint64_t second = bases[copy] + (UINT64_C(1) << shift);
        consider(&log, second); /* the first zone may be full, and newer than the second */
        consider_run(&log, second);
    }
    *offset = log.best_offset;
    return log.found;
}
