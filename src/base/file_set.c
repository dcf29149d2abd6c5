/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files are identified by device and inode, block devices by their number. Sets are small, so they
 * are not sorted. */
#include "base/file_set.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/block_device.h"
#include "base/cleanup.h"

/* How many devices may lie one on another: a partition of a loop device over a file of ... */
enum { LEVELS = 8 };

struct bw_file_identity {
    bool is_block_device;
    dev_t device;
    ino_t inode; /* 0 for a block device */
    bool below;  /* not in the set itself: a device of the set gets its bytes from it */
    char *path;  /* NULL if it is below */
};

static bool add_file(struct bw_file_set *set, const struct stat *status, unsigned level);

static bool add_numbered(struct bw_file_set *set, const char *number_file, unsigned level)
{
    struct stat status = {.st_mode = S_IFBLK};
    return !bw_block_device_number(number_file, &status.st_rdev) || add_file(set, &status, level);
}

/* Adds everything below a block device: the file of a loop device, the disk of a partition, the
 * devices of a mapped one. */
static bool add_below(struct bw_file_set *set, dev_t device, unsigned level)
{
    char pattern[96];
    glob_t found;
    struct stat status, partition;
    bool added = true;
    if (bw_loop_file(device, &status))
        added = add_file(set, &status, level);
    snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/partition", major(device),
             minor(device));
    if (stat(pattern, &partition) == 0) {
        snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/../dev", major(device),
                 minor(device));
        added &= add_numbered(set, pattern, level);
    }
    snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/slaves/*/dev", major(device),
             minor(device));
    if (glob(pattern, 0, NULL, &found))
        return added;
    for (size_t i = 0; i < found.gl_pathc; i++)
        added &= add_numbered(set, found.gl_pathv[i], level);
    globfree(&found);
    return added;
}

static struct bw_file_identity identity_of(const struct stat *status, unsigned level)
{
    const bool is_block = S_ISBLK(status->st_mode);
    return (struct bw_file_identity){.is_block_device = is_block,
                                     .device = is_block ? status->st_rdev : status->st_dev,
                                     .inode = is_block ? 0 : status->st_ino,
                                     .below = level > 0};
}

static bool add_file(struct bw_file_set *set, const struct stat *status, unsigned level)
{
    if (!BW_ARRAY_RESERVE(set->files, set->count, set->capacity))
        return false;
    set->files[set->count++] = identity_of(status, level);
    return !S_ISBLK(status->st_mode) || level == LEVELS ||
           add_below(set, status->st_rdev, level + 1);
}

bool bw_file_set_add(struct bw_file_set *set, const char *path)
{
    struct stat status;
    size_t number = set->count;
    if (stat(path, &status))
        return true;
    return add_file(set, &status, 0) && (set->files[number].path = strdup(path));
}

const char *bw_file_set_path(const struct bw_file_set *set, size_t number)
{
    return set->files[number].path;
}

/* Two partitions of one disk are different files, although the same disk is below both. */
static bool is_same(const struct bw_file_identity *a, const struct bw_file_identity *b)
{
    return a->is_block_device == b->is_block_device && a->device == b->device &&
           a->inode == b->inode && !(a->below && b->below);
}

static bool holds_one(const struct bw_file_set *set, const struct bw_file_identity *wanted)
{
    for (size_t i = 0; i < set->count; i++)
        if (is_same(wanted, &set->files[i]))
            return true;
    return false;
}

/* Only a block device has something below it, and needs memory. Without memory the careful answer
 * is that the set holds the device. */
bool bw_file_set_holds(const struct bw_file_set *set, const struct stat *status)
{
    const struct bw_file_identity file = identity_of(status, 0);
    if (!S_ISBLK(status->st_mode))
        return holds_one(set, &file);
    struct bw_file_set wanted = {0};
    bool held = !add_file(&wanted, status, 0);
    for (size_t i = 0; i < wanted.count && !held; i++)
        held = holds_one(set, &wanted.files[i]);
    bw_file_set_free(&wanted);
    return held;
}

void bw_file_set_free(struct bw_file_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->files[i].path);
    free(set->files);
    *set = (struct bw_file_set){0};
}
