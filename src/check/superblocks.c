/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `superblocks`: every copy in every image by itself, with the other copies of its device
 * and with those of the other devices. state.c goes on with what the superblock in use says.
 */
#include "check/superblocks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/disk.h"

/* A copy of a superblock. */
struct copy {
    const struct bw_image *image;
    unsigned number; /* from 0 on */
    uint64_t offset; /* on the device */
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_superblock superblock;
    struct bw_error *bad; /* owned */
};

/* Says what is wrong with a copy. Superblocks are counted from 0, as everywhere. */
__attribute__((format(printf, 5, 6))) static void find(struct bw_check *check,
                                                       enum bw_code_number code,
                                                       const struct copy *copy, bool mendable,
                                                       const char *format, ...)
{
    const struct bw_superblock *superblock = &copy->image->superblock;
    const bool is_known = superblock->generation;
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_OFFSET | (is_known ? BW_KNOWN_DEVICE : 0),
                    .devid = superblock->device.devid,
                    .offset = copy->offset,
                    .mendable = mendable}};
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    bw_check_find(check, code, &subject, "%s%ssuperblock copy %u: %s",
                  is_known ? "" : copy->image->name, is_known ? "" : ": ", copy->number, message);
}

/* Reads a copy; false if the device has none of that number. The kernel writes those that end
 * before the last byte of the device. Source: write_dev_supers() in fs/btrfs/disk-io.c. */
static bool read_copy(const struct bw_fs *fs, const struct bw_image *image, unsigned number,
                      struct copy *copy)
{
    const uint64_t end = bw_superblock_offset(number) + BW_SUPERBLOCK_SIZE;
    *copy = (struct copy){.image = image, .number = number};
    if (number && image->superblock.generation && end >= image->superblock.device.total_bytes)
        return false;
    copy->bad = bw_image_copy_bytes(fs, image, number, copy->bytes, &copy->offset);
    if (!copy->bad)
        copy->bad =
            bw_superblock_decode(copy->bytes, bw_superblock_offset(number), &copy->superblock);
    const bool exists = !copy->bad || copy->bad->code != BW_ERROR_NOT_FOUND;
    if (!exists)
        bw_error_free(BW_TAKE(copy->bad));
    return exists;
}

/* Members that differ between copies, or between devices, of one transaction. The log is written
 * to the first copy alone. */
static const struct skipped {
    size_t start, end;
} skipped[] = {
    {0, BW_CSUM_SIZE},
    {offsetof(struct bw_disk_superblock, bytenr), offsetof(struct bw_disk_superblock, flags)},
    {offsetof(struct bw_disk_superblock, log_root),
     offsetof(struct bw_disk_superblock, total_bytes)},
    {offsetof(struct bw_disk_superblock, log_root_level),
     offsetof(struct bw_disk_superblock, device)},
};

/* The first byte in which two superblocks contradict each other; 0: they do not. */
static size_t find_difference(const uint8_t *a, const uint8_t *b, bool same_device)
{
    const size_t device = offsetof(struct bw_disk_superblock, device),
                 device_end = offsetof(struct bw_disk_superblock, label);
    for (size_t i = 0, k = 0; i < BW_SUPERBLOCK_SIZE; i++) {
        if (k < sizeof skipped / sizeof *skipped && i == skipped[k].start)
            i = skipped[k++].end;
        if (i == device && !same_device)
            i = device_end;
        if (a[i] != b[i])
            return i;
    }
    return 0;
}

/* Whether a copy of a device leads to another log than the first one: a commit leaves none in any
 * copy, and tools that write all copies put the same one into each. */
static bool has_other_log(const struct bw_superblock *copy, const struct bw_superblock *first)
{
    return copy->log_root && copy->log_root != first->log_root;
}

/* Holds a good copy against another one: of the same device, or of another one. */
static void compare(struct bw_check *check, const struct copy *copy, const uint8_t *other,
                    const struct bw_superblock *superblock, bool same_device)
{
    const size_t place = find_difference(copy->bytes, other, same_device);
    if (copy->superblock.generation != superblock->generation)
        find(check, BW_CODE_super_stale, copy, true,
             "generation %" PRIu64 ", another copy has %" PRIu64, copy->superblock.generation,
             superblock->generation);
    else if (place)
        find(check, BW_CODE_super_differs, copy, true, "byte %zu is not the same in %s", place,
             same_device ? "another copy" : "the superblock of another device");
    else if (same_device && has_other_log(&copy->superblock, superblock))
        find(check, BW_CODE_super_differs, copy, true, "another copy has another log tree");
}

/* What a superblock says of its own device, and of a log that only this one may know yet. */
static void check_identity(struct bw_check *check, const struct copy *copy)
{
    const struct bw_superblock *superblock = &copy->superblock;
    if (superblock->log_root_level >= BW_MAX_LEVEL)
        find(check, BW_CODE_super_values, copy, false, "log_root_level %u",
             superblock->log_root_level);
    if (memcmp(superblock->device.fsid, superblock->metadata_uuid, BW_UUID_SIZE) != 0)
        find(check, BW_CODE_super_device, copy, false,
             "its device belongs to a file system of another id");
}

/* What btrfs_validate_super() in the kernel's fs/btrfs/disk-io.c refuses or warns of, but for what
 * no image can be opened with. */
static void check_values(struct bw_check *check, const struct copy *copy)
{
    const struct bw_disk_superblock *disk = (const void *)copy->bytes;
    const uint64_t generation = bw_get64(disk->generation),
                   cache_generation = bw_get64(disk->cache_generation);
    if (bw_get32(disk->leafsize) != bw_get32(disk->nodesize))
        find(check, BW_CODE_super_values, copy, false,
             "leafsize %" PRIu32 " is not nodesize, %" PRIu32, bw_get32(disk->leafsize),
             bw_get32(disk->nodesize));
    if (bw_get64(disk->root_dir_objectid) != BW_ROOT_TREE_DIR)
        find(check, BW_CODE_super_values, copy, false,
             "root_dir_objectid %" PRIu64 " is not %" PRIu64, bw_get64(disk->root_dir_objectid),
             BW_ROOT_TREE_DIR);
    if (cache_generation > generation && cache_generation != UINT64_MAX)
        find(check, BW_CODE_super_values, copy, false,
             "cache_generation %" PRIu64 " is later than generation, %" PRIu64, cache_generation,
             generation);
}

/* btrfs-image restores the first copy alone: what lies in the places of the others was there
 * before. A mount that writes makes all of them, and keeps the flag. */
static bool is_unrestored(const struct copy *copy, const struct copy *first)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    const struct bw_disk_superblock *disk = (const void *)copy->bytes,
                                    *of_first = (const void *)first->bytes;
    if (copy == first || first->number || first->bad || !(bw_get64(of_first->flags) & restored))
        return false;
    return bw_get64(disk->magic) != bw_get64(of_first->magic) ||
           memcmp(disk->fsid, of_first->fsid, BW_UUID_SIZE) != 0 ||
           !(bw_get64(disk->flags) & restored);
}

/* All copies of an image. `first`, of the file system, is set by the first good one of a device
 * that is up to date. */
static void check_image(struct bw_check *check, const struct bw_image *image, struct copy *first)
{
    struct copy copies[BW_SUPERBLOCK_COPIES], *best = NULL;
    unsigned count = 0;
    for (unsigned number = 0; number < BW_SUPERBLOCK_COPIES; number++) {
        struct copy *copy = &copies[count];
        if (!read_copy(check->fs, image, number, copy))
            continue;
        count++;
        if (!copy->bad && !is_unrestored(copy, copies) &&
            (!best || copy->superblock.generation > best->superblock.generation))
            best = copy;
    }
    for (unsigned i = 0; i < count; i++) {
        if (is_unrestored(&copies[i], copies))
            find(check, BW_CODE_metadump, &copies[i], false, "btrfs-image does not restore it");
        else if (copies[i].bad)
            find(check, BW_CODE_super_bad, &copies[i], best, "%s", copies[i].bad->message);
        else if (best && &copies[i] != best)
            compare(check, &copies[i], best->bytes, &best->superblock, true);
        bw_error_free(BW_TAKE(copies[i].bad));
    }
    if (!best)
        return;
    check_identity(check, best);
    if (image->role != BW_IMAGE_DEVICE || bw_image_is_stale(check->fs, image))
        return;
    if (first->image) {
        compare(check, best, first->bytes, &first->superblock, false);
        return;
    }
    *first = *best;
    check_values(check, best);
}

/* An image that is not of the file system. */
static void report_unused(struct bw_check *check, const struct bw_image *image)
{
    const bool is_target = image->superblock.generation && !image->superblock.device.devid;
    if (!is_target)
        bw_check_find(check, BW_CODE_image_unused, &(struct bw_subject){0},
                      "%s is no device of the file system, or one that was given twice",
                      image->name);
}

static void check_images(struct bw_check *check)
{
    struct copy first = {0};
    for (size_t i = 0; i < check->fs->image_count; i++) {
        const struct bw_image *image = &check->fs->images[i];
        if (check->why || image->role != BW_IMAGE_UNUSED)
            check_image(check, image, &first);
        else
            report_unused(check, image);
    }
}

/* The file system could not be opened. */
static void report_why(struct bw_check *check)
{
    const struct bw_error *why = check->why;
    if (why->code == BW_ERROR_UNSUPPORTED || why->code == BW_ERROR_SYSTEM ||
        why->code == BW_ERROR_NO_MEMORY)
        bw_check_unable(check, bw_error_create(why->code, "%s", why->message));
    else
        bw_check_find(check, BW_CODE_not_opened, &(struct bw_subject){0}, "%s", why->message);
}

struct bw_error *bw_pass_superblocks(struct bw_check *check)
{
    check_images(check);
    if (!check->why)
        return bw_check_state(check);
    report_why(check);
    return NULL;
}
