/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trial: the chosen changes become changed ranges of the images, in memory; through these, the
 * file system is opened and checked like any other. The changes are good if the check finds nothing
 * that it did not find before, and no longer finds the faults that they are about. If they bring
 * back tree blocks that hid others, it may find faults in these: they are for the next round.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "graph/wind.h"
#include "ondisk/superblock.h"
#include "repair/repair.h"

/* The changes of a device. */
static struct bw_error *find_patch(struct bw_repair *repair, uint64_t devid,
                                   struct bw_patch **patch)
{
    const struct bw_repair_device *device = bw_repair_device_of(repair, devid);
    if (!device)
        return bw_error_create(BW_ERROR_MISSING_DEVICE, "device %" PRIu64 " is missing", devid);
    *patch = &repair->patches.items[device - repair->devices.items];
    return NULL;
}

struct bw_error *bw_repair_write(struct bw_repair *repair, uint64_t devid, uint64_t offset,
                                 const void *bytes, size_t length)
{
    struct bw_patch *patch;
    BW_TRY(find_patch(repair, devid, &patch));
    return bw_patch_write(patch, offset, bytes, length);
}

struct bw_error *bw_repair_read(struct bw_repair *repair, uint64_t devid, uint64_t offset,
                                void *bytes, size_t length)
{
    struct bw_patch *patch;
    BW_TRY(find_patch(repair, devid, &patch));
    struct bw_xlator *storage = bw_repair_device_of(repair, devid)->image->storage;
    if (!bw_patch_covers(patch, offset, length))
        BW_TRY(bw_read_raw(NULL, storage, offset, bytes, length));
    bw_patch_apply(patch, offset, bytes, length);
    return NULL;
}

struct bw_error *bw_repair_use_overlays(struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->devices.count; i++) {
        struct bw_repair_place place = {.offset = bw_superblock_offset(0),
                                        .length = BW_SUPERBLOCK_SIZE};
        BW_TRY(bw_repair_locate(repair, repair->devices.items[i].image, &place));
    }
    if (!repair->file_patches)
        repair->file_patches = calloc(repair->how.path_count, sizeof *repair->file_patches);
    return repair->file_patches ? NULL : bw_error_no_memory();
}

static struct bw_error *make_patches(struct bw_repair *repair)
{
    BW_TRY(bw_repair_begin_patches(repair));
    if (repair->trying)
        return bw_repair_write_superblocks(repair);
    size_t generations = 0;
    for (size_t i = repair->first; i < repair->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[i];
        generations += change->chosen && change->generation;
        if (change->chosen && change->bytes && !change->is_in_block)
            BW_TRY(bw_repair_write(repair, change->devid, change->offset, change->bytes,
                                   change->length));
    }
    if (generations > 1)
        return bw_error_advise(
            bw_error_create(BW_ERROR_USAGE, "%zu generations are chosen, but only one is possible",
                            generations),
            "`id` chooses it");
    /* An older generation may share blocks whose fields are wrong only in the current one. */
    if (!generations)
        BW_TRY(bw_repair_write_blocks(repair));
    BW_TRY(bw_repair_convert(repair));
    BW_TRY(bw_repair_write_parity(repair));
    return bw_repair_write_superblocks(repair);
}

/* Whether a finding is the rest of a larger one: its changes were not made. */
static bool is_left_out(struct bw_repair *repair, const struct bw_repair_finding *finding)
{
    struct bw_repair_matches matches = bw_repair_find_changes(repair, finding);
    bool is_left = false;
    for (const struct bw_repair_change *change; (change = bw_repair_next_match(&matches));) {
        if (!change->unit || change->devid != finding->devid)
            continue;
        if (change->chosen)
            return false;
        is_left = true;
    }
    return is_left;
}

/* The check must find nothing new, and no fault that was repaired: `*failing` is set to that. */
static struct bw_error *compare_checks(struct bw_repair *repair,
                                       const struct bw_repair_finding **failing)
{
    const bool reveals = bw_repair_reveals(repair);
    for (size_t i = 0; i < repair->after.count; i++) {
        const struct bw_repair_finding *same = bw_repair_find_same(repair, &repair->after.items[i]);
        const struct bw_finding_code *code = repair->after.items[i].code;
        if (!same && (reveals || is_left_out(repair, &repair->after.items[i])))
            continue;
        if (!same)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "the check of the repaired file system finds something new: "
                                   "%s, %s",
                                   code->word, code->description);
        if (strcmp(code->word, "root-lost") == 0)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "the root tree or the chunk tree is lost: 'rescue' saves the "
                                   "files, but rebuilt trees cannot be written to an overlay yet");

        /* It should be gone if all changes that are about it were made. */
        struct bw_repair_matches matches = bw_repair_find_changes(repair, same);
        bool should_be_gone = same->planned;
        for (const struct bw_repair_change *change;
             should_be_gone && (change = bw_repair_next_match(&matches));)
            should_be_gone = change->chosen;
        if (!should_be_gone)
            continue;
        *failing = same;
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the check of the repaired file system still finds %s", code->word);
    }
    return NULL;
}

struct bw_error *bw_repair_try_once(struct bw_repair *repair, uint64_t *left,
                                    const struct bw_repair_finding **failing)
{
    struct bw_fs_options how = bw_repair_how(repair);
    bool is_other = repair->trying || repair->is_made; /* generation, in all superblocks */
    struct bw_fs *fs = NULL;
    *left = 0;
    *failing = NULL;
    for (size_t i = repair->first; i < repair->changes.count; i++)
        is_other |= repair->changes.items[i].chosen && repair->changes.items[i].generation;
    bw_fs_close(BW_TAKE(repair->tried));
    BW_TRY(make_patches(repair));
    how.patches = repair->patches.list;
    how.patch_count = repair->devices.count;
    how.scan = false;
    how.superblock_copy = BW_ANY_SUPERBLOCK_COPY;
    struct bw_error *error = repair->given->reopen(&how, &fs);
    if (!error)
        error = bw_repair_check(repair, fs);
    if (error)
        error = bw_error_prefix(error, "the repaired file system");
    else
        *left = repair->after.count;

    /* In another generation, findings have nothing to do with those before: it must be without
     * errors, but for bad mirrors that have good ones. */
    for (size_t i = 0; i < repair->after.count && !error && is_other; i++) {
        const struct bw_repair_finding *finding = &repair->after.items[i];
        if (finding->code->severity == BW_FINDING_ERROR && !finding->repairable)
            error = bw_error_create(BW_ERROR_CORRUPT,
                                    "the check of the repaired file system finds %s, %s",
                                    finding->code->word, finding->code->description);
    }
    if (!error && !is_other)
        error = compare_checks(repair, failing);
    if (!error && !is_other)
        error = bw_repair_compare_files(repair, fs);
    if (error || repair->trying) {
        bw_fs_close(fs);
        return error;
    }
    repair->tried = fs;
    repair->given->status.unused_images = fs->status.unused_images; /* in the result */

    /* Map the changes of the devices down to the files that get overlays. */
    uint8_t bytes[BW_PATCH_SECTOR] = {0};
    for (size_t i = 0; repair->file_patches && i < repair->how.path_count; i++)
        bw_patch_free(&repair->file_patches[i]);
    for (size_t i = 0; repair->file_patches && i < repair->devices.count; i++) {
        const struct bw_patch *patch = &repair->patches.items[i];
        for (uint64_t at = 0; (at = bw_patch_next(patch, at)) != UINT64_MAX; at += sizeof bytes) {
            struct bw_repair_place place = {.offset = at, .length = sizeof bytes};
            BW_TRY(bw_repair_locate(repair, repair->devices.items[i].image, &place));
            bw_patch_apply(patch, at, bytes, sizeof bytes);
            BW_TRY(bw_patch_write(&repair->file_patches[place.image], place.offset, bytes,
                                  sizeof bytes));
        }
    }
    return NULL;
}

/* The changed ranges. */

const struct bw_patch *const *bw_repair_patches(const struct bw_repair *repair, size_t *count)
{
    *count = repair->devices.count;
    return repair->patches.list;
}

uint64_t bw_repair_changed(const struct bw_repair *repair, size_t image, size_t unit)
{
    uint64_t bytes = 0;
    for (uint64_t at = 0; repair->file_patches; at = at / unit * unit + unit, bytes += unit) {
        at = bw_patch_next(&repair->file_patches[image], at);
        if (at == UINT64_MAX)
            break;
    }
    return bytes;
}

uint64_t bw_repair_image_size(const struct bw_repair *repair, size_t image)
{
    struct bw_xlator *storage = bw_repair_storage(repair, image);
    return storage ? bw_xlator_size(storage) : 0;
}

uint64_t bw_repair_image_devid(const struct bw_repair *repair, size_t image)
{
    const struct bw_xlator *storage = bw_repair_storage(repair, image);
    for (size_t i = 0; storage && i < repair->devices.count; i++) {
        struct bw_repair_place place = {.offset = bw_superblock_offset(0),
                                        .length = BW_SUPERBLOCK_SIZE};
        const struct bw_image *device = repair->devices.items[i].image;
        BW_AUTO_ERROR struct bw_error *none = bw_repair_locate(repair, device, &place);
        if (!none && place.image == image)
            return device->superblock.device.devid;
    }
    return 0;
}

struct bw_error *bw_repair_next(struct bw_repair *repair, size_t image, uint64_t offset,
                                size_t unit, struct bw_repair_range *range)
{
    enum { SECTOR = 4096 };
    struct bw_xlator *storage = bw_repair_storage(repair, image);
    *range = (struct bw_repair_range){0};
    if (!storage || !repair->file_patches)
        return NULL;
    const struct bw_patch *patch = &repair->file_patches[image];
    const uint64_t next = bw_patch_next(patch, offset);
    if (next == UINT64_MAX)
        return NULL;
    uint8_t *buffer = realloc(repair->buffer, unit);
    if (!buffer)
        return bw_error_no_memory();
    repair->buffer = buffer;
    range->offset = next / unit * unit;
    range->length = (size_t)bw_min(unit, bw_xlator_size(storage) - range->offset);
    range->bytes = buffer;
    struct bw_error *error = bw_read_raw(NULL, storage, range->offset, buffer, range->length);
    for (size_t at = 0; error && at < range->length; at += SECTOR) {
        const size_t length = (size_t)bw_min(SECTOR, range->length - at);
        if (!bw_try_read_raw(NULL, storage, range->offset + at, buffer + at, length))
            memset(buffer + at, 0, length);
    }
    bw_error_free(error);
    bw_patch_apply(patch, range->offset, buffer, range->length);
    return NULL;
}
