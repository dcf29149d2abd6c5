/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block groups, the used bytes of each chunk, and the totals of `btrfs filesystem usage`, with the
 * rounding of cmds/filesystem-usage.c of btrfs-progs.
 *
 * bw_fs_usage() reads the chunks twice. The first time, it adds each chunk to the group of its type
 * and profile, with the used bytes of its block group. Then all groups are known, and so is the
 * size of the table of groups by device, which the stripes of the chunks fill the second time. The
 * sums follow from these, and the estimate of the free space from the sums.
 *
 * The free space is what data chunks have unused, and what new data chunks can use of the devices.
 * btrfs-progs divide all unallocated space by the present ratio instead, although a chunk needs
 * space on several devices at once.
 *
 * Numbers of a crafted image are arbitrary, so sums stop at the maximum.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/scale.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/space.h"
#include "fs/fs.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"

struct bw_block_groups {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    bool reported; /* the missing tree has been reported */
};

struct bw_error *bw_block_groups_open(struct bw_fs *fs, struct bw_block_groups **result)
{
    bool own_tree = fs->block_group_tree.id != 0;
    struct bw_block_groups *groups = *result = calloc(1, sizeof *groups);
    if (!groups)
        return bw_error_no_memory();
    groups->fs = fs;
    bw_leaf_finder_init(&groups->finder, &fs->reader,
                        own_tree ? &fs->block_group_tree : &fs->extent_tree);
    if (!own_tree) /* the following leaves contain extents, so do not announce them */
        groups->finder.advised = BW_KEY_MAX;
    return NULL;
}

void bw_block_groups_close(struct bw_block_groups *groups)
{
    if (groups)
        bw_leaf_finder_free(&groups->finder);
    free(groups);
}

static void close_block_groups(struct bw_block_groups **groups)
{
    bw_block_groups_close(*groups);
}

static struct bw_error *lost_block_group(const struct bw_key *key)
{
    return bw_error_create(BW_ERROR_CORRUPT, "block group %" PRIu64 " is lost", key->objectid);
}

struct bw_error *bw_block_groups_find(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group)
{
    const struct bw_key key = {logical, BW_BLOCK_GROUP_ITEM, UINT64_MAX};
    struct bw_leaf_finder *finder = &groups->finder;
    struct bw_item item;
    if (!finder->tree.id) {
        if (!groups->reported && !groups->fs->is_stream)
            bw_fs_report_text(groups->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "the tree with the block groups is lost");
        groups->reported = true;
        return lost_block_group(&key);
    }
    BW_TRY(bw_find_leaf(finder, &key));
    int64_t slot = finder->lost ? -1 : bw_leaf_last_until(finder, &key);
    bool found = slot >= 0 && bw_leaf_item(&finder->leaf, (uint32_t)slot, &item) &&
                 item.key.objectid == logical && item.key.type == BW_BLOCK_GROUP_ITEM;
    if (!found) {
        const uint64_t block = bw_leaf_lost_block(finder, &key);
        if (!block)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no block group %" PRIu64, logical);
        bw_fs_report_lost(groups->fs, block,
                          finder->error ? BW_TAKE(finder->error) : lost_block_group(&key));
        return lost_block_group(&key);
    }
    const struct bw_disk_block_group *disk = (const void *)item.data;
    if (item.size < sizeof *disk) {
        bw_fs_report(groups->fs, BW_DAMAGE, lost_block_group(&key));
        return lost_block_group(&key);
    }
    *group = (struct bw_block_group_info){.logical = item.key.objectid,
                                          .length = item.key.offset,
                                          .used = bw_get64(disk->used),
                                          .flags = bw_get64(disk->flags)};
    return NULL;
}

struct bw_error *bw_block_groups_read(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group)
{
    *group = (struct bw_block_group_info){.used = 0};
    struct bw_error *error = bw_block_groups_find(groups, logical, group);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        bw_fs_report(groups->fs, BW_DAMAGE, BW_TAKE(error));
    return bw_error_tolerate(error);
}

/* The totals of `btrfs filesystem usage`. */

#define GROUP_KINDS (BW_GROUP_DATA | BW_GROUP_METADATA | BW_GROUP_SYSTEM | BW_GROUP_METADATA_REMAP)

enum {
    MAX_GROUPS = 16 * 9, /* types times profiles */
    TOO_SMALL = 16 << 20 /* unallocated space that is too small for a chunk, as in btrfs-progs */
};

BW_VECTOR(bw_usage_devices, struct bw_usage_device);

/* The result and the intermediate values; `sums`, which the caller receives, must be the first
 * member. */
struct usage {
    struct bw_usage sums;
    struct bw_fs *fs;
    struct bw_usage_group groups[MAX_GROUPS];
    size_t group_count;
    struct bw_usage_devices devices;
    uint64_t *by_group; /* sizes by device and group */
    double worst_ratio;
    bool is_partly_writable; /* there are seeds, or missing devices */
    /* The stripes of all chunks of each group; 0 if their numbers differ. */
    struct shape {
        unsigned stripes, different;
    } shapes[MAX_GROUPS];
};

void bw_usage_free(struct bw_usage *sums)
{
    struct usage *usage = (struct usage *)(void *)sums;
    if (!usage)
        return;
    bw_usage_devices_free(&usage->devices);
    free(usage->by_group);
    free(usage);
}

/* Adds, but stops at the maximum, because values of a crafted image are arbitrary. */
static void add_saturating(uint64_t *sum, uint64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = UINT64_MAX;
}

static int64_t subtract_saturating(uint64_t from, uint64_t amount)
{
    int64_t result;
    if (__builtin_sub_overflow(from, amount, &result))
        result = from > amount ? INT64_MAX : INT64_MIN;
    return result;
}

/* Block groups by type and profile. */

/* The group of a chunk, which is added in its place if it is the first of its kind. */
static struct bw_usage_group *find_group(struct usage *usage, const struct bw_chunk_info *chunk)
{
    const uint64_t type = chunk->type & (GROUP_KINDS | BW_GROUP_PROFILE_MASK);
    struct bw_usage_group *group = usage->groups, *end = group + usage->group_count;
    while (group < end && bw_group_type_compare(group->type, type) < 0)
        group++;
    if (group < end && group->type == type)
        return group;
    struct shape *shape = &usage->shapes[group - usage->groups];
    memmove(shape + 1, shape, (size_t)(end - group) * sizeof *shape);
    memmove(group + 1, group, (size_t)(end - group) * sizeof *group);
    *group = (struct bw_usage_group){.type = type, .profile = chunk->profile, .complete = true};
    usage->group_count++;
    return group;
}

/* Whether a mount writes to a chunk: all its devices are writable, and no more of them are missing
 * than its profile tolerates. */
static bool is_writable(const struct usage *usage, const struct bw_chunk_info *chunk)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    unsigned missing = 0, tolerated = profile->minimum_stripes - 1U;
    if (profile->parity_stripes || profile->striped)
        tolerated = profile->parity_stripes + (unsigned)(profile->copies > 1);
    else if (profile->flag & BW_GROUP_DUP)
        tolerated = 0;
    for (unsigned i = 0; i < chunk->stripe_count; i++)
        for (size_t k = 0; k < usage->devices.count; k++) {
            const struct bw_device_info *device = &usage->devices.items[k].info;
            if (device->devid != chunk->stripes[i].devid)
                continue;
            if (device->seed)
                return false;
            missing += device->state == BW_DEVICE_MISSING;
        }
    return missing <= tolerated;
}

/* Adds a chunk to its group. The devices must have been read. */
static struct bw_error *count_chunk(struct usage *usage, struct bw_block_groups *block_groups,
                                    const struct bw_chunk_info *chunk)
{
    struct bw_usage_group *group = find_group(usage, chunk);
    struct bw_block_group_info found;
    BW_TRY(bw_block_groups_read(block_groups, chunk->logical, &found));
    const unsigned different = bw_chunk_different_stripes(chunk);
    double ratio = (double)chunk->stripe_count / different;
    if (ratio > usage->worst_ratio)
        usage->worst_ratio = ratio;
    struct shape *shape = &usage->shapes[group - usage->groups];
    const bool is_alike =
        !group->chunks || (shape->stripes == chunk->stripe_count && shape->different == different);
    *shape = (struct shape){is_alike ? chunk->stripe_count : 0, different};
    group->complete &= found.length != 0;
    group->chunks++;
    if (found.length && usage->is_partly_writable && !is_writable(usage, chunk))
        add_saturating(&group->unwritable,
                       found.length > found.used ? found.length - found.used : 0);
    /* A chunk that is, or may be, in use and can only be read in part without the missing devices
     * is counted for each of these. */
    if ((found.used || !found.length) &&
        bw_chunk_condition(usage->fs, chunk, NULL) == BW_CHUNK_INCOMPLETE) {
        group->incomplete_chunks++;
        for (size_t i = 0; i < usage->devices.count; i++) {
            struct bw_usage_device *device = &usage->devices.items[i];
            bool has_stripe = false;
            for (unsigned k = 0; k < chunk->stripe_count; k++)
                has_stripe |= chunk->stripes[k].devid == device->info.devid;
            device->incomplete_chunks += has_stripe && device->info.state == BW_DEVICE_MISSING;
        }
    }
    add_saturating(&group->size, chunk->length);
    add_saturating(&group->used, found.used);
    add_saturating(&group->raw_size,
                   bw_scale(bw_chunk_stripe_length(chunk), chunk->stripe_count, 1));
    add_saturating(&group->raw_used, bw_scale(found.used, chunk->stripe_count, different));
    return NULL;
}

/* Totals. */

static double ratio_of(const struct bw_usage *sums, uint64_t kind)
{
    double raw = 0, size = 0;
    for (size_t i = 0; i < sums->group_count; i++) {
        if (!(sums->groups[i].type & kind))
            continue;
        raw += (double)sums->groups[i].raw_size;
        size += (double)sums->groups[i].size;
    }
    return size > 0 ? raw / size : 0;
}

static uint64_t whole_bytes(double value)
{
    if (value >= 0x1p64)
        return UINT64_MAX;
    return value > 0 ? (uint64_t)value : 0;
}

uint64_t bw_usage_data_profile(const struct bw_usage *usage, size_t device_count)
{
    static const uint64_t by_redundancy[] = {BW_GROUP_RAID1C4, BW_GROUP_RAID6,  BW_GROUP_RAID1C3,
                                             BW_GROUP_RAID5,   BW_GROUP_RAID10, BW_GROUP_RAID1,
                                             BW_GROUP_DUP,     BW_GROUP_RAID0};
    uint64_t present = 0;
    for (size_t i = 0; i < usage->group_count; i++)
        if (usage->groups[i].type & BW_GROUP_DATA)
            present |= usage->groups[i].type;
    for (size_t i = 0; i < sizeof by_redundancy / sizeof *by_redundancy; i++)
        if (present & by_redundancy[i] &&
            device_count >= bw_profile_devices(bw_raid_profile_of(by_redundancy[i])))
            return by_redundancy[i];
    return 0;
}

static int compare_free(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

/*
 * How many bytes chunks of a profile can take from devices with these free bytes, copies not
 * counted. The kernel makes each chunk on the devices that have the most free space, so it drains
 * the fullest `width` devices together until others have as much: from then on, these take turns. A
 * step ends when the draining ones get level with the next device, or when they are empty, so there
 * are at most two steps for each device.
 */
static double allocatable(const struct bw_raid_profile *profile, double *free, size_t count)
{
    const size_t minimum = bw_profile_devices(profile);
    const bool is_dup = profile->flag & BW_GROUP_DUP;
    double sum = 0;
    if (count)
        qsort(free, count, sizeof *free, compare_free);
    for (size_t steps = 2 * count; steps; steps--) {
        while (count && free[count - 1] < 1)
            count--;
        size_t width = profile->striped ? count : minimum;
        width -= profile->flag & BW_GROUP_RAID10 ? width % 2 : 0;
        if (!width || count < width || width < minimum)
            break;
        /* the devices with as much as the last chosen one, and how many of these a chunk takes */
        size_t first = width - 1, end = width;
        while (first && free[first - 1] - free[width - 1] < 1)
            first--;
        while (end < count && free[width - 1] - free[end] < 1)
            end++;
        const double share = (double)(width - first) / (double)(end - first);
        double amount = free[width - 1] / share;
        if (end < count && (free[width - 1] - free[end]) / share < amount)
            amount = (free[width - 1] - free[end]) / share;
        if (first && share < 1 && (free[first - 1] - free[width - 1]) / (1 - share) < amount)
            amount = (free[first - 1] - free[width - 1]) / (1 - share);
        for (size_t i = 0; i < end; i++)
            free[i] -= i < first ? amount : amount * share;
        const size_t copies = profile->copies ? profile->copies : width;
        sum += amount * (double)(width - profile->parity_stripes) / (double)copies;
    }
    return is_dup ? sum / 2 : sum;
}

static struct bw_error *estimate_free(struct usage *usage)
{
    struct bw_usage *sums = &usage->sums;
    uint64_t size = 0, used = 0, reserve = 0;
    const double ratio = sums->data_ratio > 0 ? sums->data_ratio : 1;
    for (size_t i = 0; i < sums->group_count; i++) {
        if (!(sums->groups[i].type & BW_GROUP_DATA))
            continue;
        add_saturating(&size, sums->groups[i].raw_size);
        add_saturating(&used, sums->groups[i].raw_used);
        if (sums->groups[i].type & BW_GROUP_METADATA) /* it comes out of the same chunks */
            reserve = sums->global_reserve;
    }
    double unused = size > used ? (double)(size - used) / ratio : 0;
    unused = unused > (double)reserve ? unused - (double)reserve : 0;
    sums->free_estimated = sums->free_minimum = whole_bytes(unused);
    if (sums->unallocated < TOO_SMALL)
        return NULL;
    BW_AUTO_FREE double *free = calloc(usage->devices.count + 1, sizeof *free);
    size_t count = 0;
    if (!free)
        return bw_error_no_memory();
    for (size_t i = 0; i < usage->devices.count; i++)
        if (!usage->devices.items[i].info.seed && usage->devices.items[i].unallocated > 0)
            free[count++] = (double)usage->devices.items[i].unallocated;
    const struct bw_raid_profile *profile =
        bw_raid_profile_of(bw_usage_data_profile(sums, usage->devices.count));
    const double more = allocatable(profile, free, count),
                 least = (double)sums->unallocated / usage->worst_ratio;
    sums->free_estimated = whole_bytes((double)sums->free_estimated + more);
    sums->free_minimum = whole_bytes((double)sums->free_minimum + (least < more ? least : more));
    return NULL;
}

/* Completes the devices and groups, and adds them up. */
static void add_up(struct usage *usage)
{
    struct bw_usage *sums = &usage->sums;
    sums->groups = usage->groups;
    sums->group_count = usage->group_count;
    sums->devices = usage->devices.items;
    sums->device_count = usage->devices.count;
    sums->complete = true;
    for (size_t i = 0; i < usage->devices.count; i++) {
        struct bw_usage_device *device = &usage->devices.items[i];
        const uint64_t size = device->info.total_bytes;
        device->by_group = usage->by_group + i * usage->group_count;
        device->unallocated = subtract_saturating(size, device->allocated);
        device->slack = device->info.image_bytes > size ? device->info.image_bytes - size : 0;
        if (device->info.seed)
            continue;
        add_saturating(&sums->device_size, size);
        add_saturating(&sums->slack, device->slack);
        if (device->info.state == BW_DEVICE_MISSING)
            add_saturating(&sums->missing, size);
    }
    for (size_t i = 0; i < usage->group_count; i++) {
        struct bw_usage_group *group = &usage->groups[i];
        const struct shape *shape = &usage->shapes[i];
        if (bw_raid_profile_of(group->type)->parity_stripes && shape->stripes)
            group->raw_used = bw_scale(group->used / shape->different, shape->stripes, 1);
        add_saturating(&sums->allocated, group->raw_size);
        add_saturating(&sums->used, group->raw_used);
        sums->complete &= group->complete;
        sums->chunks += group->chunks;
        sums->incomplete_chunks += group->incomplete_chunks;
        sums->several_profiles |= i && ((group->type ^ group[-1].type) & GROUP_KINDS) == 0;
    }
    sums->unallocated = subtract_saturating(sums->device_size, sums->allocated);
    sums->data_ratio = ratio_of(sums, BW_GROUP_DATA);
    sums->metadata_ratio = ratio_of(sums, BW_GROUP_METADATA);
}

/* The global reserve: the metadata space that a mount keeps back, so that files can always be
 * deleted. It is as large as the trees that every transaction changes, but at least what deleting a
 * file may take, and at most 512 MiB. */

enum { MAX_RESERVE = 512 << 20, UNLINK_ITEMS = 6 };

static struct bw_error *compute_reserve(struct bw_fs *fs, struct bw_usage *sums)
{
    const struct bw_superblock *super = &fs->superblock;
    const bool has_free_space = super->compat_ro_flags & BW_COMPAT_RO_FREE_SPACE_TREE;
    const struct {
        uint64_t tree;
        bool exists;
    } trees[] = {{BW_EXTENT_TREE, true},
                 {BW_CSUM_TREE, true},
                 {BW_FREE_SPACE_TREE, has_free_space},
                 {BW_BLOCK_GROUP_TREE, super->compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE},
                 {BW_RAID_STRIPE_TREE, super->incompat_flags & BW_INCOMPAT_RAID_STRIPE_TREE}};
    unsigned items = 1 + UNLINK_ITEMS;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        if (!trees[i].exists)
            continue;
        items++;
        BW_SCOPED(bw_fs_items) struct bw_fs_items roots;
        bw_fs_items_begin(&roots, fs, &fs->root_tree,
                          (struct bw_key){trees[i].tree, BW_ROOT_ITEM, 0},
                          (struct bw_key){trees[i].tree, BW_ROOT_ITEM, UINT64_MAX});
        for (const struct bw_item *item; (item = bw_fs_items_next(&roots));) {
            struct bw_root_item root;
            BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(item, &root);
            if (!bad)
                add_saturating(&sums->global_reserve, root.bytes);
        }
        BW_TRY(bw_fs_items_error(&roots));
    }
    /* each item may split and copy a path of nodes; so may each of its back references, which also
     * change the free space tree */
    items += (unsigned)UNLINK_ITEMS * (has_free_space ? 2 : 1);
    const uint64_t least = (uint64_t)items * 2 * BW_MAX_LEVEL * super->nodesize;
    sums->global_reserve = bw_min(bw_max(sums->global_reserve, least), MAX_RESERVE);
    return NULL;
}

static void discard(struct usage **usage)
{
    bw_usage_free((struct bw_usage *)*usage);
}

static int compare_devices(const void *left, const void *right)
{
    const struct bw_usage_device *a = left, *b = right;
    return bw_compare(a->info.devid, b->info.devid);
}

struct bw_error *bw_fs_usage(struct bw_fs *fs, struct bw_usage **result)
{
    struct usage *usage __attribute__((cleanup(discard))) = calloc(1, sizeof *usage);
    *result = NULL;
    if (!usage)
        return bw_error_no_memory();
    usage->fs = fs;
    usage->worst_ratio = 1;

    /* The devices, in the order of their ids. */
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        BW_TRY(bw_usage_devices_push(&usage->devices, (struct bw_usage_device){.info = *device}));
        usage->is_partly_writable |= device->seed || device->state == BW_DEVICE_MISSING;
    }
    bw_usage_devices_sort(&usage->devices, compare_devices);

    /* The groups, and their shapes, sorted by type. */
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    struct bw_block_groups *block_groups __attribute__((cleanup(close_block_groups)));
    BW_TRY(bw_block_groups_open(fs, &block_groups));
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++)
        BW_TRY(count_chunk(usage, block_groups, &chunks.items[i]));

    /* The bytes of each group on each device: the stripes of the chunks. */
    usage->by_group =
        calloc(usage->devices.count * usage->group_count + 1, sizeof *usage->by_group);
    if (!usage->by_group)
        return bw_error_no_memory();
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        const size_t group = (size_t)(find_group(usage, chunk) - usage->groups);
        const uint64_t length = bw_chunk_stripe_length(chunk);
        for (unsigned k = 0; k < chunk->stripe_count; k++) {
            const uint64_t devid = chunk->stripes[k].devid;
            const size_t device = BW_FIRST_INDEX(j, usage->devices.count,
                                                 usage->devices.items[j].info.devid >= devid);
            if (device == usage->devices.count || usage->devices.items[device].info.devid != devid)
                continue;
            add_saturating(&usage->by_group[device * usage->group_count + group], length);
            add_saturating(&usage->devices.items[device].allocated, length);
        }
    }

    BW_TRY(compute_reserve(fs, &usage->sums));
    add_up(usage);
    BW_TRY(estimate_free(usage));
    *result = &BW_TAKE(usage)->sums;
    return NULL;
}
