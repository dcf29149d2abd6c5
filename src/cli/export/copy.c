/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The copy command: devices without their free space. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/export/copy_target.h"
#include "cli/export/copy_used.h"
#include "cli/inspect/owner.h"

struct copy_state {
    struct copy_target_settings target;
    bool history;
};

enum {
    BUFFER = 4 << 20,
    RETRY = 64 << 10, /* pieces to read after an error, and pieces of these after another one */
    SECTOR = 4096,
};

/* The use of a device, in whole blocks. */
struct extent {
    uint64_t start, end; /* empty: none */
};

struct copy {
    const struct copy_state *state;
    struct cmd_answer *answer;
    struct bw_fs *fs;
    struct bw_used_map *used;
    struct copy_target target;
    uint8_t *buffer;
    size_t devices; /* that have an image */

    /* The current device. */
    struct bw_device_info device;
    struct bw_device_reader *reader;
    struct extent waiting; /* space in use, until it is known where it ends */
    uint64_t bytes;        /* in use */
    struct bad_ranges bad;
};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct copy_state, target.folder),
    CMD_FILE_OPTION(struct copy_state, target.file),
    {0, "format", "WORD", "raw (the default): with holes where nothing is in use; or qcow2",
     CMD_WORD(struct copy_state, target.format, copy_formats)},
    {0, "compress", NULL, "with qcow2: compress with zstd, for QEMU 5.1 and newer",
     CMD_FLAG(struct copy_state, target.compressed)},
    {0, "history", NULL, "also copy older generations that have not been overwritten",
     CMD_FLAG(struct copy_state, history)},
    {0, "continue", NULL, "with raw and -C: continue an interrupted copy",
     CMD_FLAG(struct copy_state, target.resume)},
    {0},
};

/* Reading. */

static struct bw_error *add_bad(struct copy *copy, uint64_t offset, uint64_t length)
{
    struct bad_ranges *bad = &copy->bad;
    struct bw_address_range *last = bad->count ? &bad->items[bad->count - 1] : NULL;
    if (last && last->logical + last->length == offset)
        last->length += length;
    else if (!bad_ranges_add(bad, offset, length))
        return bw_error_no_memory();
    return NULL;
}

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
        return add_bad(copy, offset, length);
    }
    const uint32_t step = length > RETRY ? RETRY : SECTOR;
    for (uint32_t at = 0; at < length; at += step)
        BW_TRY(read_piece(copy, offset + at, bytes + at, length - at < step ? length - at : step));
    return NULL;
}

/* The next piece is read while the last one is written. */
static struct bw_error *copy_extent(struct copy *copy, const struct extent *extent)
{
    for (uint64_t at = extent->start, length; at < extent->end; at += length) {
        length = extent->end - at < BUFFER ? extent->end - at : BUFFER;
        BW_TRY(read_piece(copy, at, copy->buffer, (uint32_t)length));
        const uint64_t rest = extent->end - at - length;
        if (rest)
            bw_device_reader_advise(copy->reader, at + length, rest < BUFFER ? rest : BUFFER);
        BW_TRY(copy_target_add(&copy->target, at, copy->buffer, (size_t)length));
        cmd_progress_add(length);
    }
    return NULL;
}

/* The space in use, as extents of whole blocks. */

static struct bw_error *end_extent(struct copy *copy)
{
    const struct extent extent = copy->waiting;
    copy->waiting = (struct extent){0};
    if (copy->reader)
        return copy_extent(copy, &extent);
    copy->bytes += extent.end - extent.start;
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
    if (start > copy->waiting.end || copy->waiting.start == copy->waiting.end) {
        BW_TRY(end_extent(copy));
        copy->waiting.start = start;
    }
    copy->waiting.end = end;
    return NULL;
}

/* Passes all extents of the device on: without a reader, only counts their bytes. */
static struct bw_error *list_extents(struct copy *copy)
{
    copy->waiting = (struct extent){0};
    BW_TRY(bw_used_map_device(copy->used, copy->device.devid, add_range, copy));
    return end_extent(copy);
}

/* Devices. */

static struct bw_error *report_bad(struct copy *copy)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < copy->bad.count; i++)
        bytes += copy->bad.items[i].length;
    if (!bytes)
        return NULL;
    bw_fs_report(copy->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64
                                 " bytes in use cannot be read, and are zeros in the copy",
                                 copy->device.devid, bytes));
    return cmd_list_bad_owners(copy->answer, copy->device.devid, &copy->bad);
}

static struct bw_error *copy_image(struct copy *copy)
{
    const uint64_t devid = copy->device.devid;
    copy->bytes = 0;
    BW_TRY(list_extents(copy));
    bw_fs_report(copy->fs, BW_NOTE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "device %" PRIu64 ": %" PRIu64 " of %" PRIu64 " bytes are in use",
                                 devid, copy->bytes, copy->device.image_bytes));
    BW_TRY(bw_device_reader_open(copy->fs, devid, &copy->reader));
    cmd_progress_step("copying", 1, 1);
    cmd_progress_expect(copy->bytes);
    BW_TRY(copy_target_begin(&copy->target, devid, copy->device.image_bytes));
    return list_extents(copy);
}

static struct bw_error *copy_device(void *context, const struct bw_device_info *device)
{
    struct copy *copy = context;
    if (!device->path)
        return NULL;
    copy->device = *device;
    copy->bad.count = 0;
    struct bw_error *error = copy_target_end(&copy->target, copy_image(copy));
    bw_device_reader_close(BW_TAKE(copy->reader));
    return error ? error : report_bad(copy);
}

static struct bw_error *count_device(void *context, const struct bw_device_info *device)
{
    struct copy *copy = context;
    if (!device->path)
        return NULL;
    copy->devices++;
    return copy_target_check(&copy->target, device->devid);
}

/* The steps of the command. */

static struct bw_error *copy_all(struct copy *copy)
{
    BW_TRY(bw_fs_devices(copy->fs, count_device, copy));
    if (copy->state->target.file && copy->devices != 1)
        return bw_error_create(BW_ERROR_USAGE,
                               "the file system has %zu devices here; -C DIR writes an image of "
                               "each",
                               copy->devices);
    copy->buffer = malloc(BUFFER);
    if (!copy->buffer)
        return bw_error_no_memory();
    BW_TRY(copy_find_used(copy->answer->common, copy->fs, copy->state->history, &copy->used));
    return bw_fs_devices(copy->fs, copy_device, copy);
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct copy *copy = context;
    copy->answer = answer;
    copy->fs = answer->session.fs;
    struct bw_error *error = copy_target_close(&copy->target, copy_all(copy));
    bw_used_map_close(copy->used);
    free(copy->buffer);
    free(copy->bad.items);
    return error;
}

static const char *find_mistake(const struct copy_target_settings *settings)
{
    if (!settings->folder == !settings->file)
        return "give either -C DIR or -f FILE";
    if (settings->file && strcmp(settings->file, "-") == 0)
        return "a copy cannot be written to stdout";
    if (settings->compressed && settings->format != COPY_QCOW2)
        return "--compress is for --format qcow2";
    if (settings->resume && (settings->format != COPY_RAW || !settings->folder))
        return "--continue is for --format raw with -C DIR";
    return NULL;
}

/* The log is ignored: replaying it would create tree blocks that are not in the image. */
static int run(const struct cmd_common *common, void *settings)
{
    const struct copy_state *state = settings;
    struct copy copy = {.state = state, .target = {.common = common, .settings = &state->target}};
    const struct cmd_answer_plan plan = {
        .record = "ownerinfo", .print = cmd_print_owner, .list = list, .context = &copy};
    const char *mistake = find_mistake(&state->target);
    struct cmd_common own = *common;
    if (mistake)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "%s", mistake));
    own.input.log = BW_LOG_IGNORE;
    struct bw_error *error = state->target.folder ? copy_target_open_folder(&copy.target) : NULL;
    if (error)
        return cmd_fail(common, error);
    own.writing.folder = state->target.folder ? &copy.target.folder : NULL;
    own.writing.open_outputs = state->target.file ? copy_target_open_files : NULL;
    own.writing.outputs = &copy.target;
    const int status = cmd_answer_run(&own, &plan);
    if (!copy.answer) /* the file system was not opened */
        bw_error_free(copy_target_close(&copy.target, NULL));
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
    .state_size = sizeof(struct copy_state),
};
