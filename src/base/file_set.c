/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files are identified by device and inode, block devices by their number. Sets are small, so they
 * are not sorted. */
#include "base/file_set.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/block_device.h"
#include "base/cleanup.h"

/* How many devices may lie one on another: a partition of a loop device over a file of ... */
enum { LEVELS = 8 };

static struct bw_error *add_file(struct bw_file_set *set, const struct stat *status,
                                 unsigned level);

static struct bw_error *add_numbered(struct bw_file_set *set, const char *number_file,
                                     unsigned level)
{
    struct stat status = {.st_mode = S_IFBLK};
    if (!bw_block_device_number(number_file, &status.st_rdev))
        return NULL;
    return add_file(set, &status, level);
}

/* Adds everything below a block device: the file of a loop device, the disk of a partition, the
 * devices of a mapped one. */
static struct bw_error *add_below(struct bw_file_set *set, dev_t device, unsigned level)
{
    char pattern[96];
    glob_t found;
    struct stat status, partition;
    if (bw_loop_file(device, &status))
        BW_TRY(add_file(set, &status, level));
    snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/partition", major(device),
             minor(device));
    if (stat(pattern, &partition) == 0) {
        snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/../dev", major(device),
                 minor(device));
        BW_TRY(add_numbered(set, pattern, level));
    }
    snprintf(pattern, sizeof pattern, "/sys/dev/block/%u:%u/slaves/*/dev", major(device),
             minor(device));
    if (glob(pattern, 0, NULL, &found))
        return NULL;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < found.gl_pathc && !error; i++)
        error = add_numbered(set, found.gl_pathv[i], level);
    globfree(&found);
    return error;
}

static struct bw_file_identity identity_of(const struct stat *status, unsigned level)
{
    const bool is_block = S_ISBLK(status->st_mode);
    return (struct bw_file_identity){.is_block_device = is_block,
                                     .device = is_block ? status->st_rdev : status->st_dev,
                                     .inode = is_block ? 0 : status->st_ino,
                                     .below = level > 0};
}

static struct bw_error *add_file(struct bw_file_set *set, const struct stat *status, unsigned level)
{
    BW_TRY(bw_file_identities_push(&set->files, identity_of(status, level)));
    if (!S_ISBLK(status->st_mode) || level == LEVELS)
        return NULL;
    return add_below(set, status->st_rdev, level + 1);
}

struct bw_error *bw_file_set_insert(struct bw_file_set *set, const char *path)
{
    struct stat status;
    const size_t number = set->files.count;
    if (stat(path, &status))
        return NULL;
    BW_TRY(add_file(set, &status, 0));
    set->files.items[number].path = strdup(path);
    return set->files.items[number].path ? NULL : bw_error_no_memory();
}

const char *bw_file_set_path(const struct bw_file_set *set, size_t number)
{
    return set->files.items[number].path;
}

/* Whether a file is in the set. Two partitions of one disk are different files, although the same
 * disk is below both. */
static bool holds_one(const struct bw_file_set *set, const struct bw_file_identity *wanted)
{
    for (size_t i = 0; i < set->files.count; i++) {
        const struct bw_file_identity *file = &set->files.items[i];
        if (wanted->is_block_device == file->is_block_device && wanted->device == file->device &&
            wanted->inode == file->inode && !(wanted->below && file->below))
            return true;
    }
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
    BW_AUTO_ERROR struct bw_error *error = add_file(&wanted, status, 0);
    bool held = error;
    for (size_t i = 0; i < wanted.files.count && !held; i++)
        held = holds_one(set, &wanted.files.items[i]);
    bw_file_set_free(&wanted);
    return held;
}

void bw_file_set_free(struct bw_file_set *set)
{
    for (size_t i = 0; i < set->files.count; i++)
        free(set->files.items[i].path);
    bw_file_identities_free(&set->files);
}
