/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The superblocks of a zoned device are entries of a log in two zones. Generations ascend in each
 * zone, so the end of the first one is found by a binary search. If that zone is not full, it
 * contains the newest entry. Otherwise the second zone does, which is searched at each possible
 * length of a zone. Other data may be there, so an entry is valid only if it belongs to the same
 * device. Source: sb_log_location() in the kernel's fs/btrfs/zoned.c.
 */
#include "fs/opening.h"

#include <string.h>

#include "base/cleanup.h"

enum {
    SMALLEST_ZONE = 22,      /* as powers of two: 4 MiB */
    LARGEST_ZONE = 33,       /* 8 GiB */
    CAPACITY_UNIT = 1 << 20, /* the capacity of a zone, which may be less than its length, is a
                              * multiple of this */
    LOOK_AHEAD = 8,          /* blocks to examine for an entry after bad ones */
    STEPS_BACK = 64          /* blocks to examine for a good entry */
};

struct search {
    const struct bw_superblock_log *log;
    struct bw_disk_superblock first; /* identifies the device; valid if has_first */
    bool has_first;
    struct bw_superblock_entry newest; /* so far */
    uint64_t generation;               /* The generation that `newest` has. */
    bool found, good; /* found: there is any entry; good: its checksum is correct */
};

/* Reads the block at an offset; false if it is not an entry. The address in an entry is the offset
 * of the copy on devices without zones. The fsid may have been changed since, but the uuid of the
 * device never changes. */
static bool read_entry(const struct search *search, uint64_t offset,
                       struct bw_disk_superblock *disk)
{
    const struct bw_superblock *known = search->log->known;
    return bw_try_read_super(search->log->storage, offset, disk) &&
           bw_get64(disk->magic) == BW_SUPERBLOCK_MAGIC &&
           bw_get64(disk->bytenr) == bw_superblock_offset(search->log->copy) &&
           bw_get64(disk->incompat_flags) & BW_INCOMPAT_ZONED &&
           (!known || memcmp(disk->device.uuid, known->device.uuid, BW_UUID_SIZE) == 0) &&
           (!search->has_first ||
            memcmp(disk->device.uuid, search->first.device.uuid, BW_UUID_SIZE) == 0);
}

/* Whether an entry of this generation or a later one is at an offset or soon after it: a log may
 * continue after a few bad blocks. */
static bool has_entry_since(const struct search *search, uint64_t offset, uint64_t generation)
{
    struct bw_disk_superblock disk;
    for (uint64_t ahead = 0; ahead <= LOOK_AHEAD; ahead = ahead ? 2 * ahead : 1)
        if (read_entry(search, offset + ahead * BW_SUPERBLOCK_SIZE, &disk) &&
            bw_get64(disk.generation) >= generation)
            return true;
    return false;
}

/* The end of the entries that begin at an offset with this generation; at most LOOK_AHEAD blocks
 * too far. */
static uint64_t find_end(const struct search *search, uint64_t start, uint64_t generation)
{
    uint64_t low = 0, high = 1; /* An entry exists at number `low`, but not at `high`. */
    const uint64_t limit = UINT64_C(2) << LARGEST_ZONE >> 12;
    while (high < limit && has_entry_since(search, start + high * BW_SUPERBLOCK_SIZE, generation)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (has_entry_since(search, start + middle * BW_SUPERBLOCK_SIZE, generation))
            low = middle;
        else
            high = middle;
    }
    return start + high * BW_SUPERBLOCK_SIZE;
}

static bool is_good(const struct search *search, const struct bw_disk_superblock *disk)
{
    struct bw_superblock superblock;
    BW_AUTO_ERROR struct bw_error *error =
        bw_superblock_decode(disk, bw_superblock_offset(search->log->copy), &superblock);
    return !error;
}

/* Finds the first good entry at an offset or soon after it; otherwise a bad one, whose generation
 * is unreliable. */
static bool find_first(const struct search *search, uint64_t *start,
                       struct bw_disk_superblock *disk)
{
    uint64_t from = *start;
    bool found = false, good = false;
    for (uint64_t ahead = 0; ahead <= LOOK_AHEAD && !good; ahead = ahead ? 2 * ahead : 1) {
        struct bw_disk_superblock candidate;
        if (!read_entry(search, from + ahead * BW_SUPERBLOCK_SIZE, &candidate))
            continue;
        good = is_good(search, &candidate);
        if (found && !good)
            continue;
        *disk = candidate;
        *start = from + ahead * BW_SUPERBLOCK_SIZE;
        found = true;
    }
    return found;
}

/* Considers the entries that begin at an offset. Returns their end; 0 if none exist. A good entry
 * is better than a bad one, then a newer one. */
static uint64_t consider_run(struct search *search, uint64_t start)
{
    struct bw_disk_superblock disk;
    if (!find_first(search, &start, &disk))
        return 0;
    search->first = disk;
    search->has_first = true;

    /* The last entries before the end, back to a good one. */
    const uint64_t end = find_end(search, start, bw_get64(disk.generation));
    uint64_t last = 0, bad = 0;
    bool good = false;
    for (unsigned i = 1; i <= STEPS_BACK && end >= i * (uint64_t)BW_SUPERBLOCK_SIZE && !good; i++) {
        const uint64_t offset = end - i * (uint64_t)BW_SUPERBLOCK_SIZE;
        if (!read_entry(search, offset, &disk))
            continue;
        const uint64_t generation = bw_get64(disk.generation);
        good = is_good(search, &disk);
        if (!search->found || good > search->good ||
            (good == search->good && generation >= search->generation)) {
            search->newest = (struct bw_superblock_entry){offset, bad};
            search->generation = generation;
            search->found = true;
            search->good = good;
        }
        last = last ? last : offset + BW_SUPERBLOCK_SIZE;
        bad = bad ? bad : offset;
    }
    return last;
}

bool bw_superblock_log_find(const struct bw_superblock_log *log, struct bw_superblock_entry *entry)
{
    static const uint64_t bases[BW_SUPERBLOCK_COPIES] = {0, UINT64_C(512) << 30, UINT64_C(4) << 40};
    struct search search = {.log = log};
    uint64_t base = bases[log->copy], plain = bw_superblock_offset(log->copy);
    uint64_t end = consider_run(&search, base);
    bool has_begin = end;
    if (!end && log->known)
        end = consider_run(&search, plain);

    /* The second zone can contain the newest entry only if the first one is full or empty. */
    const bool is_full = end && (end - base) % CAPACITY_UNIT == 0;
    const bool is_empty = !end && !log->known; /* otherwise `known` would be in the first zone */
    for (unsigned shift = SMALLEST_ZONE; shift <= LARGEST_ZONE && (is_full || is_empty); shift++)
        if (base + (UINT64_C(1) << shift) >= end &&
            consider_run(&search, base + (UINT64_C(1) << shift)))
            break;
    *entry = search.newest;
    return search.found &&
           (!log->known || (search.good && (has_begin || search.newest.offset != plain)));
}
