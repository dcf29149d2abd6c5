/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that `copy` writes. In a folder, an image has the suffix ".part" until it is complete.
 * No existing file is replaced.
 */
#include "cli/export/copy_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"

const char *const copy_formats[] = {"raw", "qcow2", NULL};
static const char *const suffixes[] = {"img", "qcow2"};

/* Files of the folder. */

struct bw_error *copy_target_open_folder(struct copy_target *target)
{
    return cmd_open_folder(target->common, target->settings->folder, &target->folder, NULL);
}

static bool file_exists(const struct copy_target *target, const char *name)
{
    struct stat status;
    return fstatat(target->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct bw_error *create_file(const struct copy_target *target, const char *name, bool resume,
                                    int *descriptor)
{
    *descriptor = resume
                      ? bw_open_sole(target->folder, name)
                      : openat(target->folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*descriptor >= 0)
        return NULL;
    BW_AUTO_FREE char *path = NULL;
    const int problem = errno;
    if (asprintf(&path, "%s/%s", target->settings->folder, name) < 0)
        return bw_error_no_memory();
    return cmd_name_error(target->folder, name, path, problem);
}

/* Sets the names of an image: `path` is for messages, `name` is of the incomplete file. */
static struct bw_error *set_names(struct copy_target *target, uint64_t devid)
{
    const char *suffix = suffixes[target->settings->format];
    target->name.length = target->path.length = 0;
    bw_buffer_format(&target->name, "%" PRIu64 ".%s.part%c", devid, suffix, '\0');
    bw_buffer_format(&target->path, "%s/%" PRIu64 ".%s%c", target->settings->folder, devid, suffix,
                     '\0');
    return target->name.failed || target->path.failed ? bw_error_no_memory() : NULL;
}

/* The complete name: without ".part", to be freed. */
static char *final_name(const struct copy_target *target)
{
    return strndup(target->name.data, target->name.length - sizeof ".part");
}

struct bw_error *copy_target_check(struct copy_target *target, uint64_t devid)
{
    if (!target->settings->folder)
        return NULL;
    BW_TRY(set_names(target, devid));
    BW_AUTO_FREE char *final = final_name(target);
    if (!final)
        return bw_error_no_memory();
    if (file_exists(target, final))
        return bw_error_create(BW_ERROR_USAGE, "%s exists, and is not replaced", target->path.data);
    if (file_exists(target, target->name.data) && !target->settings->resume)
        return bw_error_create(BW_ERROR_USAGE, "%s.part is an incomplete copy%s", target->path.data,
                               target->settings->format == COPY_RAW ? "; --continue completes it"
                                                                    : "");
    return NULL;
}

/* Opens the incomplete image. */
static struct bw_error *open_in_folder(struct copy_target *target, uint64_t devid)
{
    BW_TRY(set_names(target, devid));
    BW_TRY(create_file(target, target->name.data, target->settings->resume, &target->descriptor));
    target->is_open = true;
    return NULL;
}

/* Gives a complete file its name. */
static struct bw_error *rename_complete(const struct copy_target *target)
{
    BW_AUTO_FREE char *final = final_name(target);
    if (!final)
        return bw_error_no_memory();
    return renameat2(target->folder, target->name.data, target->folder, final, RENAME_NOREPLACE)
               ? bw_error_from_errno(errno, "cannot rename %s/%s", target->settings->folder,
                                     target->name.data)
               : NULL;
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

/* The file of -f. */

struct bw_error *copy_target_open_files(void *context, const struct bw_fs *planned)
{
    struct copy_target *target = context;
    target->file = (struct cmd_output_file){
        .common = target->common, .name = target->settings->file, .descriptor = -1};
    return cmd_output_file_open(&target->file, planned);
}

static struct bw_error *start_file(struct copy_target *target)
{
    struct stat status;
    target->descriptor = cmd_output_file_descriptor(&target->file);
    if (fstat(target->descriptor, &status) || !S_ISREG(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is not a regular file, which a copy needs",
                               target->settings->file);
    bw_buffer_format(&target->path, "%s%c", target->settings->file, '\0');
    return target->path.failed ? bw_error_no_memory() : cmd_output_file_start(&target->file);
}

/* Images. */

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    const struct copy_target *target = context;
    const char *next = bytes;
    while (length) {
        const ssize_t written = pwrite(target->descriptor, next, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return bw_error_from_errno(errno, "cannot write to %s", target->path.data);
        next += written;
        offset += (size_t)written;
        length -= (size_t)written;
    }
    return NULL;
}

struct bw_error *copy_target_begin(struct copy_target *target, uint64_t devid, uint64_t size)
{
    const struct copy_target_settings *settings = target->settings;
    target->kept = 0;
    BW_TRY(settings->folder ? open_in_folder(target, devid) : start_file(target));
    if (settings->format == COPY_QCOW2)
        return bw_qcow2_create(size, settings->compressed, write_at, target, &target->qcow2);
    if (settings->resume)
        target->kept = find_kept(target->descriptor);
    return ftruncate(target->descriptor, (off_t)size)
               ? bw_error_from_errno(errno, "cannot set the size of %s", target->path.data)
               : NULL;
}

struct bw_error *copy_target_add(struct copy_target *target, uint64_t offset, const void *bytes,
                                 size_t length)
{
    if (target->qcow2)
        return bw_qcow2_add(target->qcow2, offset, bytes, length);
    return offset + length <= target->kept ? NULL : write_at(target, offset, bytes, length);
}

struct bw_error *copy_target_end(struct copy_target *target, struct bw_error *error)
{
    if (!error && target->qcow2)
        error = bw_qcow2_end(target->qcow2);
    if (target->is_open)
        error = cmd_close_file(target->common, target->descriptor, target->path.data, error);
    if (target->is_open && !error)
        error = rename_complete(target);
    if (target->is_open && !error)
        error = cmd_sync_file(target->common, target->folder, target->settings->folder);
    target->is_open = false;
    bw_qcow2_destroy(BW_TAKE(target->qcow2));
    return error;
}

struct bw_error *copy_target_close(struct copy_target *target, struct bw_error *error)
{
    if (target->settings->folder)
        close(target->folder);
    if (target->settings->file)
        error = cmd_output_file_close(&target->file, error);
    bw_buffer_free(&target->name);
    bw_buffer_free(&target->path);
    return error;
}
