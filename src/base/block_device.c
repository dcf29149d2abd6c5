/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loop devices and mounts, as /sys and /proc/self/mounts describe them. */
#include "base/block_device.h"

#include <glob.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vector.h"

/* The first line of a file, without its newline; NULL if it cannot be read. */
static char *read_line(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    if (file && getline(&line, &capacity, file) > 0)
        line[strcspn(line, "\n")] = '\0';
    else
        free(BW_TAKE(line));
    if (file)
        fclose(file);
    return line;
}

bool bw_block_device_number(const char *number_file, dev_t *device)
{
    unsigned major_number, minor_number;
    BW_AUTO_FREE char *line = read_line(number_file);
    /* The kernel writes it. NOLINTNEXTLINE(cert-err34-c) */
    if (!line || sscanf(line, "%u:%u", &major_number, &minor_number) != 2)
        return false;
    *device = makedev(major_number, minor_number);
    return true;
}

bool bw_loop_file(dev_t device, struct stat *status)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/loop/backing_file", major(device),
             minor(device));
    BW_AUTO_FREE char *file = read_line(path);
    return file && stat(file, status) == 0;
}

/* Goes from a partition that begins at an offset to its disk; false if it is none. */
static bool find_disk(dev_t *device, uint64_t offset)
{
    char path[96];
    unsigned major_number = major(*device), minor_number = minor(*device);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/start", major_number, minor_number);
    BW_AUTO_FREE char *start = read_line(path);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../dev", major_number, minor_number);
    return start && strtoull(start, NULL, 10) == offset / 512 &&
           bw_block_device_number(path, device);
}

/* Whether a block device is the file itself, or a loop device over it; or the partition of either
 * that begins at an offset, unless that is 0. */
static bool is_on(dev_t device, const struct stat *file, uint64_t offset)
{
    struct stat below;
    if (offset && !find_disk(&device, offset))
        return false;
    if (S_ISBLK(file->st_mode))
        return device == file->st_rdev;
    return bw_loop_file(device, &below) && below.st_dev == file->st_dev &&
           below.st_ino == file->st_ino;
}

/* Whether the file system with a device has its bytes on the file. A mount names one device of its
 * file system; /sys/fs/btrfs lists all of them. */
static bool file_system_uses(dev_t source, const struct stat *file, uint64_t offset)
{
    char link[64], pattern[512];
    const char *name = "none";
    glob_t found, devices;
    bool uses = false;
    if (is_on(source, file, offset))
        return true;
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(source), minor(source));
    BW_AUTO_FREE char *real = realpath(link, NULL);
    if (real)
        name = strrchr(real, '/') + 1;
    snprintf(pattern, sizeof pattern, "/sys/fs/btrfs/*/devices/%s", name);
    if (glob(pattern, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !uses; i++) {
        snprintf(pattern, sizeof pattern, "%.*s/*/dev",
                 (int)(strrchr(found.gl_pathv[i], '/') - found.gl_pathv[i]), found.gl_pathv[i]);
        if (glob(pattern, 0, NULL, &devices))
            continue;
        for (size_t k = 0; k < devices.gl_pathc && !uses; k++) {
            dev_t device;
            uses =
                bw_block_device_number(devices.gl_pathv[k], &device) && is_on(device, file, offset);
        }
        globfree(&devices);
    }
    globfree(&found);
    return uses;
}

/* A file system may be mounted many times, with each of its subvolumes and into each container. It
 * is looked at once. */
char *bw_mount_point(const char *path, uint64_t offset)
{
    BW_SCOPED(bw_numbers) struct bw_numbers seen = {0};
    struct mntent entry;
    struct stat file, source;
    char *point = NULL, text[4096 + 512];
    FILE *mounts = stat(path, &file) ? NULL : setmntent("/proc/self/mounts", "re");
    while (mounts && !point && getmntent_r(mounts, &entry, text, sizeof text)) {
        if (strcmp(entry.mnt_type, "btrfs") != 0 || stat(entry.mnt_fsname, &source) ||
            !S_ISBLK(source.st_mode))
            continue;
        bool is_new = true;
        for (size_t i = 0; i < seen.count && is_new; i++)
            is_new = seen.items[i] != source.st_rdev;
        if (!is_new)
            continue;
        bw_error_free(bw_numbers_push(&seen, source.st_rdev)); /* else it is looked at again */
        if (file_system_uses(source.st_rdev, &file, offset))
            point = strdup(entry.mnt_dir);
    }
    if (mounts)
        endmntent(mounts);
    return point;
}
