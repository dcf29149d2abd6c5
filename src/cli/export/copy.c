/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The copy command: devices without their free space.
 *
 * A map of the space in use, and with --history of that of older generations, gives the extents of
 * each device in whole blocks. It is passed through twice: first to count the bytes, then to copy
 * them. In a folder, an image has the suffix ".part" until it is complete. No existing file is
 * replaced. Unreadable sectors become zeros; at the end of a device, the files that they belong to
 * are listed.
 */
#include "cli/export/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/generated.h"
#include "base/human.h"
#include "btrfs-walk/history.h"
#include "cli/common/monitor.h"

/* In the order of enum cmd_copy_format. */
static const char *const formats[] = {"raw", "qcow2", NULL};
static const char *const suffixes[] = {"img", "qcow2"};

enum {
    BUFFER = 4 << 20,
    RETRY = 64 << 10, /* pieces to read after an error, and pieces of these after another one */
    SECTOR = 4096,
};

struct copy {
    struct cmd_copy_target *target;
    struct cmd_format *owners; /* NULL: none are listed */
    struct bw_fs *fs;
    struct bw_used_map *used;
    uint8_t *buffer;

    /* The current device. */
    struct bw_device_info device;
    struct bw_device_reader *reader;
    uint64_t start, end; /* space in use that waits until it is known where it ends, in whole
                            blocks; empty: none */
    uint64_t bytes;      /* in use */
    struct bad_ranges bad;
};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct cmd_copy_settings, folder),
    CMD_FILE_OPTION(struct cmd_copy_settings, file),
    {0, "format", "WORD", "raw (the default): with holes where nothing is in use; or qcow2",
     CMD_WORD(struct cmd_copy_settings, format, formats)},
    {0, "compress", NULL, "with qcow2: compress with zstd, for QEMU 5.1 and newer",
     CMD_FLAG(struct cmd_copy_settings, compressed)},
    {0, "history", NULL, "also copy older generations that have not been overwritten",
     CMD_FLAG(struct cmd_copy_settings, history)},
    {0, "continue", NULL, "with raw and -C: continue an interrupted copy",
     CMD_FLAG(struct cmd_copy_settings, resume)},
    {0},
};

/* Files of the folder. */

/* Sets the names of an image: `path` is for messages, `name` is of the incomplete file. */
static struct bw_error *set_names(struct cmd_copy_target *target, uint64_t devid)
{
    const char *suffix = suffixes[target->settings->format];
    target->name.length = target->path.length = 0;
    bw_buffer_format(&target->name, "%s%" PRIu64 ".%s.part%c", target->prefix, devid, suffix, '\0');
    bw_buffer_format(&target->path, "%s/%s%" PRIu64 ".%s%c", target->settings->folder,
                     target->prefix, devid, suffix, '\0');
    return target->name.failed || target->path.failed ? bw_error_no_memory() : NULL;
}

/* The complete name: without ".part", to be freed. */
static char *final_name(const struct cmd_copy_target *target)
{
    return strndup(target->name.data, target->name.length - sizeof ".part");
}

/* Opens the file of -f, before the sandbox is entered. */
struct bw_error *cmd_copy_open_output(void *context, const struct bw_fs *planned)
{
    struct cmd_copy_target *target = context;
    target->file = (struct cmd_output_file){
        .common = target->common, .name = target->settings->file, .descriptor = -1};
    return cmd_output_file_open(&target->file, planned);
}

/* Images. */

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    const struct cmd_copy_target *target = context;
    return cmd_write_at(target->descriptor, target->path.data, offset, bytes, length);
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

/* Begins the image of a device with `size` bytes: opens the incomplete file in the folder, or uses
 * the file of -f, which is open. */
static struct bw_error *begin_image(struct cmd_copy_target *target, uint64_t devid, uint64_t size)
{
    const struct cmd_copy_settings *settings = target->settings;
    target->kept = 0;
    if (settings->folder) {
        BW_TRY(set_names(target, devid));
        const char *name = target->name.data;
        if (settings->resume)
            target->descriptor = bw_open_sole(target->folder, name);
        else
            target->descriptor =
                openat(target->folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        const int problem = errno;
        target->is_open = target->descriptor >= 0;
        if (!target->is_open) {
            BW_AUTO_FREE char *path = NULL;
            if (asprintf(&path, "%s/%s", settings->folder, name) < 0)
                return bw_error_no_memory();
            return cmd_name_error(target->folder, name, path, problem);
        }
    } else {
        struct stat status;
        target->descriptor = cmd_output_file_descriptor(&target->file);
        if (fstat(target->descriptor, &status) || !S_ISREG(status.st_mode))
            return bw_error_create(BW_ERROR_USAGE, "%s is not a regular file, which a copy needs",
                                   settings->file);
        bw_buffer_format(&target->path, "%s%c", settings->file, '\0');
        if (target->path.failed)
            return bw_error_no_memory();
        BW_TRY(cmd_output_file_start(&target->file));
    }
    if (settings->format == CMD_COPY_QCOW2)
        return bw_qcow2_create(size, settings->compressed, write_at, target, &target->qcow2);
    if (settings->resume)
        target->kept = find_kept(target->descriptor);
    if (ftruncate(target->descriptor, (off_t)size))
        return bw_error_from_errno(errno, "cannot set the size of %s", target->path.data);
    return NULL;
}

/* Ends the image. Consumes `error`, which may be NULL, and returns the first error. After one, an
 * incomplete file in a folder keeps its temporary name. */
static struct bw_error *end_image(struct cmd_copy_target *target, struct bw_error *error)
{
    const char *folder = target->settings->folder;
    if (!error && target->qcow2)
        error = bw_qcow2_end(target->qcow2);
    bw_qcow2_destroy(BW_TAKE(target->qcow2));
    if (!target->is_open)
        return error;
    target->is_open = false;
    BW_TRY(cmd_close_file(target->common, target->descriptor, target->path.data, error));
    BW_AUTO_FREE char *final = final_name(target);
    if (!final)
        return bw_error_no_memory();
    if (renameat2(target->folder, target->name.data, target->folder, final, RENAME_NOREPLACE))
        return bw_error_from_errno(errno, "cannot rename %s/%s", folder, target->name.data);
    return cmd_sync_file(target->common, target->folder, folder);
}

struct bw_error *cmd_copy_close(struct cmd_copy_target *target, struct bw_error *error)
{
    if (target->settings->folder && target->folder >= 0)
        close(target->folder);
    target->folder = -1;
    if (target->settings->file)
        error = cmd_output_file_close(&target->file, error);
    bw_buffer_free(&target->name);
    bw_buffer_free(&target->path);
    return error;
}

/* The space to copy. */

static struct bw_error *add_history(void *used, uint64_t logical, uint64_t length)
{
    return bw_used_map_add(used, logical, length);
}

/* The space in use of an older generation. */
struct older {
    struct bw_used_map *used, *present;
};

static struct bw_error *add_older_range(void *context, const struct bw_used_range *range)
{
    const struct older *older = context;
    if (!range->in_use)
        return NULL;
    return bw_used_map_add_device(older->present, range->devid, range->offset, range->length);
}

/* Adds what all generations have in the chunks of this one, which differ from the present ones. A
 * chunk tree that cannot be read is of no use for the copy, either. */
static struct bw_error *add_generation(const struct cmd_common *common,
                                       const struct bw_history *history, size_t number,
                                       struct bw_used_map *used)
{
    struct bw_fs_options how = cmd_fs_options(common);
    struct older older = {.present = used};
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_history_open_state(history, number, &how, &fs);
    if (!error)
        error = bw_used_map_open(fs, NULL, &older.used);
    if (!error)
        error = bw_history_ranges(history, add_history, older.used);
    if (!error)
        error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++)
        if (devices.items[i].path)
            error = bw_used_map_device(older.used, devices.items[i].devid, add_older_range, &older);
    bw_used_map_close(older.used);
    bw_fs_close(fs);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    return NULL;
}

/* Opens the map of the space to copy: the space in use, and that of older generations if requested.
 */
static struct bw_error *find_used(struct copy *copy)
{
    const struct cmd_common *common = copy->target->common;
    struct bw_fs *fs = copy->fs;
    const struct bw_used_options how = {.struct_size = sizeof how, .files = true};
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_used_map_open(fs, &how, &copy->used));
    if (!copy->target->settings->history) {
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_NOT_FOUND,
                                     "older generations are not copied: 'roots' and 'deleted' will "
                                     "find less in the copy; --history copies them, too"));
        return NULL;
    }
    const struct bw_history_options searched = {.struct_size = sizeof searched,
                                                .scanning = BW_HISTORY_SCAN_ALWAYS,
                                                .progress = cmd_progress_scan,
                                                .only_list = true};
    struct bw_history *history;
    BW_TRY(bw_history_open(fs, &searched, &history));
    struct bw_error *error = bw_history_ranges(history, add_history, copy->used);
    /* generations with other chunks: one for each of their chunk trees */
    struct bw_superblock_info superblock;
    bw_fs_superblock(fs, &superblock);
    uint64_t known = superblock.chunk_root;
    for (size_t i = 0; !error && i < bw_history_count(history); i++) {
        const uint64_t root = bw_history_entry(history, i)->chunk_root;
        if (root && root != known && root != superblock.chunk_root)
            error = add_generation(common, history, i, copy->used);
        if (root)
            known = root;
    }
    bw_history_close(history);
    return error;
}

/* Reading. */

/* Reads a piece; unreadable sectors become zeros. */
static struct bw_error *read_piece(struct copy *copy, uint64_t offset, uint8_t *bytes,
                                   uint32_t length)
{
    struct bw_error *error = bw_device_reader_read(copy->reader, offset, bytes, length);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    if (length <= SECTOR) {
        memset(bytes, 0, length);
        struct bad_ranges *bad = &copy->bad;
        struct bw_address_range *last = bad->count ? &bad->items[bad->count - 1] : NULL;
        if (last && last->logical + last->length == offset)
            last->length += length;
        else
            return bad_ranges_push(bad, (struct bw_address_range){offset, length});
        return NULL;
    }
    const uint32_t step = length > RETRY ? RETRY : SECTOR;
    for (uint32_t at = 0; at < length; at += step)
        BW_TRY(read_piece(copy, offset + at, bytes + at, length - at < step ? length - at : step));
    return NULL;
}

/* Copies the waiting extent; without a reader, only counts its bytes. */
static struct bw_error *end_extent(struct copy *copy)
{
    const uint64_t end = copy->end;
    uint64_t at = copy->start;
    copy->start = copy->end = 0;
    if (!copy->reader) {
        copy->bytes += end - at;
        return NULL;
    }
    /* the next piece is read while the last one is written */
    for (uint64_t length; at < end; at += length) {
        length = end - at < BUFFER ? end - at : BUFFER;
        BW_TRY(read_piece(copy, at, copy->buffer, (uint32_t)length));
        const uint64_t rest = end - at - length;
        if (rest)
            bw_device_reader_advise(copy->reader, at + length, rest < BUFFER ? rest : BUFFER);
        struct cmd_copy_target *target = copy->target;
        if (target->qcow2)
            BW_TRY(bw_qcow2_add(target->qcow2, at, copy->buffer, (size_t)length));
        else if (at + length > target->kept)
            BW_TRY(write_at(target, at, copy->buffer, (size_t)length));
        cmd_progress_add(length);
    }
    return NULL;
}

static struct bw_error *add_range(void *context, const struct bw_used_range *range)
{
    struct copy *copy = context;
    const uint64_t size = copy->device.image_bytes;
    uint64_t start = range->offset / SECTOR * SECTOR,
             end = (range->offset + range->length + SECTOR - 1) / SECTOR * SECTOR;
    if (!range->in_use)
        return NULL;
    end = end < size ? end : size;
    if (start > copy->end || copy->start == copy->end) {
        BW_TRY(end_extent(copy));
        copy->start = start;
    }
    copy->end = end;
    return NULL;
}

/* Copies all extents of the device, or counts their bytes. */
static struct bw_error *list_extents(struct copy *copy)
{
    copy->start = copy->end = 0;
    BW_TRY(bw_used_map_device(copy->used, copy->device.devid, add_range, copy));
    return end_extent(copy);
}

/* Devices. */

static struct bw_error *copy_device(struct copy *copy, const struct bw_device_info *device)
{
    copy->device = *device;
    copy->bytes = 0;
    copy->bad.count = 0;
    BW_TRY(list_extents(copy));
    bw_fs_report(copy->fs, BW_NOTE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64 " of %" PRIu64 " bytes are in use",
                                 device->devid, copy->bytes, device->image_bytes));
    if (copy->target->announces && !copy->target->common->messages.quiet) {
        char size[BW_SIZE_ROOM];
        *bw_write_size(size, copy->bytes, false) = '\0';
        fprintf(stderr, "The copy of device %" PRIu64 " will take %s.\n", device->devid, size);
    }
    BW_TRY(bw_device_reader_open(copy->fs, device->devid, &copy->reader));
    cmd_progress_step("copying", 1, 1);
    cmd_progress_expect(copy->bytes);
    struct bw_error *error = begin_image(copy->target, device->devid, device->image_bytes);
    if (!error)
        error = list_extents(copy);
    error = end_image(copy->target, error);
    bw_device_reader_close(BW_TAKE(copy->reader));
    if (error || !copy->bad.count)
        return error;

    uint64_t bytes = 0;
    for (size_t i = 0; i < copy->bad.count; i++)
        bytes += copy->bad.items[i].length;
    bw_fs_report(copy->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64
                                 " bytes in use cannot be read, and are zeros in the copy",
                                 device->devid, bytes));
    return copy->owners ? cmd_list_bad_owners(copy->owners, device->devid, &copy->bad) : NULL;
}

/* BW_ERROR_USAGE if the folder already has an image of this device. */
static struct bw_error *check_is_new(struct cmd_copy_target *target, uint64_t devid)
{
    struct stat status;
    if (!target->settings->folder)
        return NULL;
    BW_TRY(set_names(target, devid));
    BW_AUTO_FREE char *final = final_name(target);
    if (!final)
        return bw_error_no_memory();
    if (fstatat(target->folder, final, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return bw_error_create(BW_ERROR_USAGE, "%s exists, and is not replaced", target->path.data);
    if (!target->settings->resume &&
        fstatat(target->folder, target->name.data, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return bw_error_create(
            BW_ERROR_USAGE, "%s.part is an incomplete copy%s", target->path.data,
            target->settings->format == CMD_COPY_RAW ? "; --continue completes it" : "");
    return NULL;
}

/* The steps of the command. */

struct bw_error *cmd_copy_devices(struct cmd_copy_target *target, struct bw_fs *fs,
                                  struct cmd_format *owners)
{
    struct copy copy = {.target = target, .owners = owners, .fs = fs};
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};

    /* No device may have an image already, and -f is for a single one. */
    size_t count = 0; /* devices that have an image */
    struct bw_error *error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++) {
        if (!devices.items[i].path)
            continue;
        error = check_is_new(target, devices.items[i].devid);
        count++;
    }
    if (!error && target->settings->file && count != 1)
        error = bw_error_create(BW_ERROR_USAGE,
                                "the file system has %zu devices here; -C DIR writes an image of "
                                "each",
                                count);
    copy.buffer = malloc(BUFFER);
    if (!error && !copy.buffer)
        error = bw_error_no_memory();

    if (!error)
        error = find_used(&copy);
    for (size_t i = 0; !error && i < devices.count; i++)
        if (devices.items[i].path)
            error = copy_device(&copy, &devices.items[i]);
    bw_used_map_close(copy.used);
    free(copy.buffer);
    bad_ranges_free(&copy.bad);
    return error;
}

static struct bw_error *list(struct cmd_format *answer, void *context)
{
    return cmd_copy_close(context, cmd_copy_devices(context, answer->session.fs, answer));
}

/* The log is ignored: replaying it would create tree blocks that are not in the image. */
static int run(const struct cmd_common *common, void *state)
{
    const struct cmd_copy_settings *settings = state;
    struct cmd_copy_target target = {.common = common, .settings = settings, .prefix = ""};
    const struct cmd_format_plan plan = {
        .record = "ownerinfo", .print = cmd_print_owner, .list = list, .context = &target};
    const char *mistake = NULL;
    struct cmd_common own = *common;
    if (!settings->folder == !settings->file)
        mistake = "give either -C DIR or -f FILE";
    else if (settings->file && strcmp(settings->file, "-") == 0)
        mistake = "a copy cannot be written to stdout";
    else if (settings->compressed && settings->format != CMD_COPY_QCOW2)
        mistake = "--compress is for --format qcow2";
    else if (settings->resume && (settings->format != CMD_COPY_RAW || !settings->folder))
        mistake = "--continue is for --format raw with -C DIR";
    if (mistake)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "%s", mistake));
    own.input.log = BW_LOG_IGNORE;
    struct bw_error *error = NULL;
    if (settings->folder)
        error = cmd_open_folder(common, settings->folder, &target.folder, NULL);
    if (error)
        return cmd_fail(common, error);
    own.writing.folder = settings->folder ? &target.folder : NULL;
    own.writing.open_outputs = settings->file ? cmd_copy_open_output : NULL;
    own.writing.outputs = &target;
    const int status = cmd_format_run(&own, &plan);
    bw_error_free(cmd_copy_close(&target, NULL)); /* unless list() has done that */
    return status;
}

const struct command cmd_copy = {
    .name = "copy",
    .topic = cmd_topic_export,
    .operands = "-C DIR|-f FILE IMAGE...",
    .summary = "Copies devices without their free space.",
    .details =
        "\n"
        "Makes an image of each device that contains everything in use: data, metadata and\n"
        "superblocks with all their copies, parity, the log, and the first MiB. Elsewhere, the\n"
        "image has holes. -C writes DIR/DEVID.img or .qcow2, and creates DIR if it does not\n"
        "exist; -f writes the image of the only device to FILE. 'map --used' lists the space\n"
        "in use.\n\n"
        "All commands give the same results for the copy as for the original. Only 'roots',\n"
        "'deleted' and 'versions', which search for older generations, find less without\n"
        "--history. Damage never makes a copy smaller: if it is unknown whether space is in\n"
        "use, it is copied. Bytes that cannot be read become zeros, and are listed with the\n"
        "files that they belong to, as 'owner --map' does. Nothing is verified: bad blocks\n"
        "are copied, too.\n\n"
        "In DIR, an image has the suffix .part until it is complete. --continue continues\n"
        "after an interruption, if neither the devices nor --history have changed. Existing\n"
        "images are not replaced.\n",
    .examples = "  btrfs-walk copy -f thin.img disk.img                  an image with holes\n"
                "  btrfs-walk copy -C copies a.img b.img                 of two devices\n"
                "  btrfs-walk copy --history -f all.img disk.img         with older generations\n"
                "  btrfs-walk copy --format qcow2 --compress -f d.qcow2 /dev/sdb\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct cmd_copy_settings),
};
