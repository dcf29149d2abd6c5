/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices as files, named by their ids, with holes where nothing is in use. So any program can copy
 * them without their free space. A sector that cannot be read fails; everything else is as `copy`
 * writes it.
 */
#include "mount/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { DOTS = 2, SECTOR = 4096, NAME = 24 };

/* Opening them. */

static struct bw_error *add_range(void *context, const struct bw_used_range *range)
{
    struct bw_mount_device *device = context;
    const uint64_t start = range->offset / SECTOR * SECTOR,
                   end = (range->offset + range->length + SECTOR - 1) / SECTOR * SECTOR;
    if (!range->in_use)
        return NULL;
    return bw_range_set_insert(&device->used, start, end < device->size ? end : device->size);
}

struct bw_error *bw_mount_create_devices(struct bw_fs *fs, const struct bw_mount_options *options,
                                         struct bw_mount **mount)
{
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_mount_create(fs, options, mount));
    struct bw_mount_devices *files = &(*mount)->devices;
    struct bw_error *error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++) {
        const struct bw_device_info *info = &devices.items[i];
        struct bw_mount_device device = {.devid = info->devid, .size = info->image_bytes};
        if (!info->path)
            continue;
        error = bw_mount_devices_push(files, device);
        if (error)
            break;
        struct bw_mount_device *file = &files->items[files->count - 1];
        error = bw_device_reader_open(fs, info->devid, &file->reader);
        if (!error)
            error = bw_used_map_device(options->used, info->devid, add_range, file);
        if (!error)
            bw_range_set_join(&file->used);
    }
    if (error)
        bw_mount_destroy(BW_TAKE(*mount));
    return error;
}

/* Names and attributes. The kernel's number of a device is its place, after the directory. */

static fuse_ino_t node_of(size_t place)
{
    return FUSE_ROOT_ID + 1 + place;
}

/* NULL: the directory, or no such device. */
static const struct bw_mount_device *device_of(const struct bw_mount *mount, fuse_ino_t node)
{
    const uint64_t place = node - FUSE_ROOT_ID - 1;
    return place < mount->devices.count ? &mount->devices.items[place] : NULL;
}

static void set_name(char name[NAME], const struct bw_mount_device *device)
{
    snprintf(name, NAME, "%" PRIu64, device->devid);
}

static struct fuse_attr attributes_of(const struct bw_mount *mount, fuse_ino_t node)
{
    const struct bw_mount_options *options = &mount->options;
    const struct bw_mount_device *device = device_of(mount, node);
    struct fuse_attr attributes = {.ino = node,
                                   .mode = S_IFDIR | 0500,
                                   .nlink = 2,
                                   .uid = getuid(),
                                   .gid = getgid(),
                                   .blksize = SECTOR};
    if (device) {
        attributes.mode = S_IFREG | 0400;
        attributes.nlink = 1;
        attributes.size = device->size;
        for (size_t i = 0; i < device->used.ranges.count; i++)
            attributes.blocks +=
                (device->used.ranges.items[i].end - device->used.ranges.items[i].start) / 512;
    }
    if (options->squash_user)
        attributes.uid = options->user;
    if (options->squash_group)
        attributes.gid = options->group;
    return attributes;
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct fuse_entry_out entry = {.entry_valid = BW_MOUNT_FOREVER, .attr_valid = BW_MOUNT_FOREVER};
    char own[NAME];
    for (size_t i = 0; parent == FUSE_ROOT_ID && i < mount->devices.count; i++) {
        set_name(own, &mount->devices.items[i]);
        if (strcmp(name, own) == 0)
            entry.nodeid = node_of(i);
    }
    if (entry.nodeid)
        entry.attr = attributes_of(mount, entry.nodeid);
    fuse_reply_buf(request, (const char *)&entry, sizeof entry);
}

static void getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    const struct fuse_attr_out answer = {.attr_valid = BW_MOUNT_FOREVER,
                                         .attr = attributes_of(bw_mount_of(request), node)};
    (void)file;
    fuse_reply_buf(request, (const char *)&answer, sizeof answer);
}

static void readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t from,
                    struct fuse_file_info *file)
{
    const struct bw_mount *mount = bw_mount_of(request);
    BW_AUTO_FREE char *bytes = malloc(size);
    struct bw_mount_answer answer = {.bytes = bytes, .size = bytes ? size : 0};
    char name[NAME];
    (void)node, (void)file;
    for (uint64_t i = (uint64_t)from; i < DOTS + mount->devices.count; i++) {
        const fuse_ino_t number = i < DOTS ? FUSE_ROOT_ID : node_of(i - DOTS);
        const struct fuse_entry_out entry = {.attr = attributes_of(mount, number)};
        snprintf(name, sizeof name, "%s", i ? ".." : ".");
        if (i >= DOTS)
            set_name(name, &mount->devices.items[i - DOTS]);
        if (!bw_mount_answer_add(&answer, name, &entry, i + 1))
            break;
    }
    fuse_reply_buf(request, bytes, answer.used);
}

/* Contents. */

static void open_device_file(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    (void)node;
    file->keep_cache = 1;
    fuse_reply_open(request, file);
}

static void read_device(fuse_req_t request, fuse_ino_t node, size_t size, off_t from,
                        struct fuse_file_info *file)
{
    const struct bw_mount_device *device = device_of(bw_mount_of(request), node);
    const uint64_t offset = (uint64_t)from;
    (void)file;
    if (!device || offset >= device->size)
        size = 0;
    else if (size > device->size - offset)
        size = (size_t)(device->size - offset);
    BW_AUTO_FREE uint8_t *bytes = malloc(size + 1);
    struct bw_error *error = NULL;
    if (!bytes)
        error = bw_error_no_memory();

    /* The ranges in use are read, the others become zeros. */
    for (uint64_t at = offset, end; !error && at < offset + size; at = end) {
        uint8_t *to = bytes + (at - offset);
        end = offset + size;
        const bool used = bw_range_set_has(&device->used, at, &end);
        if (used)
            error = bw_device_reader_read(device->reader, at, to, (uint32_t)(end - at));
        else
            memset(to, 0, end - at);
    }
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_buf(request, (const char *)bytes, size);
}

static void seek(fuse_req_t request, fuse_ino_t node, off_t from, int whence,
                 struct fuse_file_info *file)
{
    const struct bw_mount_device *device = device_of(bw_mount_of(request), node);
    uint64_t offset = (uint64_t)from, end;
    (void)file;
    if (!device || from < 0 || offset >= device->size) {
        fuse_reply_err(request, ENXIO);
        return;
    }
    end = device->size;
    if (bw_range_set_has(&device->used, offset, &end) != (whence == SEEK_DATA))
        offset = end;
    if (whence == SEEK_DATA && offset == device->size)
        fuse_reply_err(request, ENXIO);
    else
        fuse_reply_lseek(request, (off_t)offset);
}

struct fuse_lowlevel_ops bw_mount_device_operations(void)
{
    return (struct fuse_lowlevel_ops){
        .lookup = lookup,
        .getattr = getattr,
        .readdir = readdir,
        .open = open_device_file,
        .read = read_device,
        .lseek = seek,
    };
}
