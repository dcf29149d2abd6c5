/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of copied devices: export/device_copy.h copies what is in use, and this file decides
 * where it goes. In a folder, an image has the suffix ".part" until it is complete. No existing
 * file is replaced. Unreadable sectors become zeros; at the end of a device, the files that they
 * belong to are listed.
 */
#include "cli/export/device_images.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/monitor.h"
#include "cli/inspect/bad_map.h"
#include "export/device_copy.h"

/* In the order of enum cmd_copy_format. */
static const char *const suffixes[] = {"img", "qcow2"};

static void set_name(struct cmd_copy_target *target, uint64_t devid)
{
    snprintf(target->name, sizeof target->name, "%s%" PRIu64 ".%s", target->prefix, devid,
             suffixes[target->settings->format]);
}

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    const struct cmd_copy_target *target = context;
    return cmd_write_at(target->descriptor, target->path, offset, bytes, length);
}

/* Where an interrupted copy ended: images are written in their order, and the end of the last write
 * may be missing. If there is no hole after it, the file system may not know about holes. */
static uint64_t find_kept(int descriptor)
{
    enum { DOUBTFUL = 64 << 20 };
    struct stat status;
    off_t data = 0, end = 0;
    while ((data = lseek(descriptor, end, SEEK_DATA)) >= 0)
        end = lseek(descriptor, data, SEEK_HOLE);
    const bool is_known = fstat(descriptor, &status) == 0 && end < status.st_size;
    return is_known && end > DOUBTFUL ? (uint64_t)(end - DOUBTFUL) : 0;
}

struct bw_error *cmd_copy_check_names(struct cmd_copy_target *target, struct bw_fs *fs)
{
    const struct cmd_copy_settings *settings = target->settings;
    size_t count = 0; /* devices that have an image */
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        if (!devices.items[i].path)
            continue;
        if (settings->folder) {
            /* The folder must not have an image of this device. */
            const struct cmd_folder *folder = target->common->writing.folder;
            char part[sizeof target->name + sizeof ".part"];
            struct stat status;
            set_name(target, devices.items[i].devid);
            snprintf(part, sizeof part, "%s.part", target->name);
            if (fstatat(folder->descriptor, target->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
                return bw_error_create(BW_ERROR_USAGE, "%s/%s exists, and is not replaced",
                                       folder->path, target->name);
            if (!target->settings->resume &&
                fstatat(folder->descriptor, part, &status, AT_SYMLINK_NOFOLLOW) == 0)
                return bw_error_create(BW_ERROR_USAGE, "%s/%s is incomplete, and is not replaced%s",
                                       folder->path, part,
                                       target->can_resume ? "; --continue completes it" : "");
        }
        count++;
    }
    if (settings->file && count != 1)
        return bw_error_create(BW_ERROR_USAGE,
                               "the file system has %zu devices here; -C DIR writes a file for "
                               "each",
                               count);
    return NULL;
}

/* Writes the image of a device, and reports the unreadable ranges. */
static struct bw_error *copy_device(struct cmd_copy_target *target, struct bw_fs *fs,
                                    struct bw_device_copy *copy,
                                    const struct bw_device_info *device, struct cmd_format *owners)
{
    const struct cmd_copy_settings *settings = target->settings;
    const uint64_t devid = device->devid;
    uint64_t bytes;
    BW_TRY(bw_device_copy_begin(copy, device, &bytes));
    bw_fs_report(fs, BW_NOTE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64 " of %" PRIu64 " bytes are in use",
                                 devid, bytes, device->image_bytes));
    if (target->announces && !target->common->messages.quiet) {
        fprintf(stderr, "The copy of device %" PRIu64 " will take %s.\n", devid,
                cmd_size(NULL, bytes).text);
    }
    cmd_progress_step("copying", 1, 1);
    cmd_progress_expect(bytes);

    /* The file: an incomplete one in the folder, or that of -f, which is open. */
    if (settings->folder) {
        struct cmd_folder_file *file = &target->in_folder;
        set_name(target, devid);
        BW_TRY(cmd_folder_file_open(file, target->common, target->name, settings->resume));
        target->descriptor = file->output.descriptor;
        target->path = file->path;
    } else {
        struct stat status;
        struct cmd_output_file *file = target->common->writing.file;
        target->descriptor = file->output.descriptor;
        if (fstat(target->descriptor, &status) || !S_ISREG(status.st_mode))
            return bw_error_create(BW_ERROR_USAGE, "%s is not a regular file, which a copy needs",
                                   settings->file);
        target->path = settings->file;
        BW_TRY(cmd_output_file_start(file));
    }
    struct bw_device_image image = {.write = write_at,
                                    .context = target,
                                    .is_qcow2 = settings->format == CMD_COPY_QCOW2,
                                    .compressed = settings->compressed};
    struct bw_error *error = NULL;
    if (settings->resume)
        image.kept = find_kept(target->descriptor);
    if (!image.is_qcow2 && ftruncate(target->descriptor, (off_t)device->image_bytes))
        error = bw_error_from_errno(errno, "cannot set the size of %s", target->path);
    if (!error)
        error = bw_device_copy_write(copy, &image);
    if (settings->folder)
        error = cmd_folder_file_close(&target->in_folder, true, error);
    const struct bw_device_ranges *bad = bw_device_copy_bad(copy);
    if (error || !bad->count)
        return error;

    uint64_t unread = 0;
    for (size_t i = 0; i < bad->count; i++)
        unread += bad->items[i].length;
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64
                                 " bytes in use cannot be read, and are zeros in the copy",
                                 devid, unread));
    const struct bad_ranges ranges = {.items = bad->items, .count = bad->count};
    return owners ? cmd_list_bad_owners(owners, devid, &ranges) : NULL;
}

struct bw_error *cmd_copy_devices(struct cmd_copy_target *target, struct bw_fs *fs,
                                  struct cmd_format *owners)
{
    const struct cmd_copy_settings *settings = target->settings;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(cmd_copy_check_names(target, fs));
    BW_TRY(bw_fs_devices(fs, &devices));

    /* The space to copy. */
    const struct bw_fs_options how = cmd_fs_options(target->common);
    struct bw_device_copy *copy;
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_device_copy_open(fs, cmd_progress_add, &copy));
    struct bw_error *error = NULL;
    if (settings->history)
        error = bw_device_copy_add_history(copy, &how, cmd_progress_scan);
    else
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_NOT_FOUND,
                                     "older generations are not copied: 'roots' and 'deleted' will "
                                     "find less in the copy; --history copies them, too"));

    for (size_t i = 0; !error && i < devices.count; i++)
        if (devices.items[i].path)
            error = copy_device(target, fs, copy, &devices.items[i], owners);
    bw_device_copy_close(copy);
    return error;
}
