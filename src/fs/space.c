/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers of statfs(2), as btrfs_statfs() of the kernel computes them: 6.18 is the reference.
 * They are simpler than the truth, but df, installers and file managers decide by them. All space
 * is divided by the number of mirrors of the data, parity does not count as a copy, and unallocated
 * space is added up device by device, the smallest first, without sorting again.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btrfs-walk/space.h"
#include "fs/fs.h"
#include "ondisk/chunk.h"

enum {
    STRIPE_LENGTH = 64 << 10,
    RESERVED = 1 << 20,       /* at the beginning of each device */
    METADATA_MARGIN = 4 << 20 /* metadata are full even if so much is free beyond the reserve */
};

/* Copies of each byte; 1 for parity profiles, too. */
static uint64_t copies_of(uint64_t type)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(type);
    return profile->copies ? profile->copies : profile->minimum_stripes;
}

/* Whether other chunks keep the kernel from writing to chunks without redundancy. */
static bool is_shunned(uint64_t type, uint64_t profile)
{
    return !(type & BW_GROUP_PROFILE_MASK & ~BW_GROUP_RAID0) && profile & ~BW_GROUP_RAID0;
}

static int by_space(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

/* The bytes of each present device that chunks can take, in descending order; returns how many. */
static size_t list_devices(const struct bw_usage *usage, const struct bw_raid_profile *profile,
                           uint64_t *free)
{
    const uint64_t least = profile->flag & BW_GROUP_DUP ? 2 * STRIPE_LENGTH : STRIPE_LENGTH;
    size_t count = 0;
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_device_info *device = &usage->devices[i].info;
        uint64_t bytes = device->total_bytes - device->bytes_used;
        if (device->seed || device->state == BW_DEVICE_MISSING ||
            device->bytes_used > device->total_bytes)
            continue;
        bytes -= bytes % STRIPE_LENGTH;
        if (bytes > RESERVED + least)
            free[count++] = bytes - RESERVED;
    }
    if (count)
        qsort(free, count, sizeof *free, by_space);
    return count;
}

/* Bytes of all devices that the kernel expects data chunks to use, with all copies. */
static uint64_t unallocated_data(const struct bw_raid_profile *profile, uint64_t *free,
                                 size_t count)
{
    const uint64_t least = profile->flag & BW_GROUP_DUP ? 2 * STRIPE_LENGTH : STRIPE_LENGTH;
    const size_t minimum = bw_profile_devices(profile);
    size_t width = 1;
    uint64_t sum = 0;
    if (profile->flag & BW_GROUP_RAID0)
        width = count;
    else if (profile->flag & BW_GROUP_RAID10)
        width = 4;
    else if (!profile->striped && !(profile->flag & BW_GROUP_DUP))
        width = minimum;
    for (; count >= minimum && count; count--) {
        const uint64_t bytes = free[count - 1];
        width = width < count ? width : count;
        if (bytes < least || bytes > UINT64_MAX / 2)
            continue;
        sum += bytes * width;
        for (size_t i = count - width; i < count; i++)
            free[i] -= bytes;
    }
    return sum;
}

struct bw_error *bw_fs_space(const struct bw_fs *fs, const struct bw_usage *usage,
                             struct bw_space *space)
{
    const uint64_t sector = fs->superblock.sectorsize, reserve = usage->global_reserve;
    uint64_t used = 0, data = 0, metadata = 0, metadata_profile = 0, factor = 1, last = 0;
    size_t present = 0;
    bool is_mixed = false;
    BW_AUTO_FREE uint64_t *free = calloc(usage->device_count + 1, sizeof *free);
    if (!free)
        return bw_error_no_memory();
    for (size_t i = 0; i < usage->device_count; i++)
        present +=
            !usage->devices[i].info.seed && usage->devices[i].info.state != BW_DEVICE_MISSING;
    const uint64_t profile = bw_usage_data_profile(usage, present);

    /* chunks of data count only if a mount writes to them */
    for (size_t i = 0; i < usage->group_count; i++) {
        const struct bw_usage_group *group = &usage->groups[i];
        const uint64_t copies = copies_of(group->type);
        uint64_t unused = group->size > group->used ? group->size - group->used : 0;
        used += group->used * copies;
        if (group->type & BW_GROUP_DATA) {
            is_mixed |= (group->type & BW_GROUP_METADATA) != 0;
            if (is_shunned(group->type, profile))
                unused = 0;
            data += (unused > group->unwritable ? unused - group->unwritable : 0) * copies;
            if ((group->type & BW_GROUP_PROFILE_MASK) >= last) {
                last = group->type & BW_GROUP_PROFILE_MASK;
                factor = copies;
            }
        } else if (group->type & BW_GROUP_METADATA) {
            metadata += unused * copies;
            metadata_profile |= group->type & BW_GROUP_PROFILE_MASK;
        }
    }

    /* in whole sectors, as the kernel rounds */
    const uint64_t size = fs->superblock.total_bytes / factor / sector,
                   taken = used / factor / sector + reserve / sector;
    space->size = size * sector;
    space->free = size > taken ? (size - taken) * sector : 0;
    const size_t count = list_devices(usage, bw_raid_profile_of(profile), free);
    space->available =
        data / factor + unallocated_data(bw_raid_profile_of(profile), free, count) / factor;
    space->available -= space->available % sector;

    /* with several profiles of metadata, the profile of the next chunk is unknown */
    const bool is_full = metadata < METADATA_MARGIN || metadata - METADATA_MARGIN < reserve;
    const struct bw_raid_profile *known = bw_raid_profile_of(metadata_profile);
    if (!is_mixed && is_full && known &&
        list_devices(usage, known, free) < bw_profile_devices(known))
        space->available = 0; /* the devices have no room for another chunk of metadata */
    return NULL;
}
