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

/* Something that may be mounted. */
struct place {
    struct stat file;
    uint64_t offset; /* 0: the whole file, otherwise a partition of it */
};

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

/* Whether a block device is the file itself, or a loop device over it; or a partition of either. */
static bool is_on(dev_t device, const struct place *place)
{
    struct stat below;
    if (place->offset && !find_disk(&device, place->offset))
        return false;
    if (S_ISBLK(place->file.st_mode))
        return device == place->file.st_rdev;
    return bw_loop_file(device, &below) && below.st_dev == place->file.st_dev &&
           below.st_ino == place->file.st_ino;
}

/* Whether one of the devices that `number_files` lead to is on the file. */
static bool any_is_on(const char *number_files, const struct place *place)
{
    glob_t found;
    dev_t device;
    bool any = false;
    if (glob(number_files, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !any; i++)
        any = bw_block_device_number(found.gl_pathv[i], &device) && is_on(device, place);
    globfree(&found);
    return any;
}

/* A mount names one device of its file system; /sys/fs/btrfs lists all of them. */
static bool file_system_uses(dev_t source, const struct place *place)
{
    char link[64], pattern[512];
    glob_t found;
    bool uses = false;
    if (is_on(source, place))
        return true;
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(source), minor(source));
    BW_AUTO_FREE char *real = realpath(link, NULL);
    snprintf(pattern, sizeof pattern, "/sys/fs/btrfs/*/devices/%s",
             real ? strrchr(real, '/') + 1 : "none");
    if (glob(pattern, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !uses; i++) {
        snprintf(pattern, sizeof pattern, "%.*s/*/dev",
                 (int)(strrchr(found.gl_pathv[i], '/') - found.gl_pathv[i]), found.gl_pathv[i]);
        uses = any_is_on(pattern, place);
    }
    globfree(&found);
    return uses;
}

/* A file system may be mounted many times, with each of its subvolumes and into each container. It
 * is looked at once, unless there are very many. */
struct seen {
    dev_t sources[64];
    size_t count;
};

static bool is_new(struct seen *seen, dev_t source)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->sources[i] == source)
            return false;
    if (seen->count < sizeof seen->sources / sizeof *seen->sources)
        seen->sources[seen->count++] = source;
    return true;
}

static bool mount_uses(const char *mounted, struct seen *seen, const struct place *place)
{
    struct stat source;
    return stat(mounted, &source) == 0 && S_ISBLK(source.st_mode) && is_new(seen, source.st_rdev) &&
           file_system_uses(source.st_rdev, place);
}

char *bw_mount_point(const char *path, uint64_t offset)
{
    struct place place = {.offset = offset};
    struct seen seen = {.count = 0};
    struct mntent entry;
    char *point = NULL, text[4096 + 512];
    FILE *mounts = stat(path, &place.file) ? NULL : setmntent("/proc/self/mounts", "re");
    while (mounts && !point && getmntent_r(mounts, &entry, text, sizeof text))
        if (strcmp(entry.mnt_type, "btrfs") == 0 && mount_uses(entry.mnt_fsname, &seen, &place))
            point = strdup(entry.mnt_dir);
    if (mounts)
        endmntent(mounts);
    return point;
}
