/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other file systems on the same images: overwritten ones, whose tree blocks are still there.
 * If devices have diverged, no file system is opened, and these are the sides. Each is opened and
 * read as if its option had been given, and only the numbers of its files are kept.
 *
 * A search for tree blocks reads the whole devices, while a rescue reads only used ranges. Without
 * --scan, large devices are not searched, and none with --no-data, which is to be quick.
 */
#include "cli/rescue/rescue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"

struct cmd_input rescue_input_of(const struct rescue *rescue, const struct rescue_other *other)
{
    struct cmd_input input = rescue->given;
    input.fs.scan = false;
    input.fs.side = other->side;
    input.has_fsid = !other->is_side;
    memcpy(input.fsid, other->fsid, BW_UUID_SIZE);
    return input;
}

/* Opens and reads another file system. `*devices` receives the devices of it; free them. */
static struct bw_error *read_other(const struct rescue *rescue, struct rescue_other *other,
                                   struct bw_device_list *devices)
{
    struct cmd_common common = rescue->common;
    common.input = rescue_input_of(rescue, other);
    struct rescue *inner = rescue_create(&common, rescue->settings);
    if (!inner)
        return bw_error_no_memory();
    struct bw_error *error = rescue_open(inner);
    if (error && error->code != BW_ERROR_NO_MEMORY) {
        cmd_spell_advice(&common, error);
        other->problem = strdup(error->message);
        bw_error_free(error);
        error = other->problem ? NULL : bw_error_no_memory();
    } else if (!error) {
        error = rescue_assess(inner);
        other->total = rescue_total(inner);
        other->generation = bw_fs_status(inner->fs).generation;
        if (!*other->label)
            memcpy(other->label, inner->super.label, sizeof other->label);
        if (!error)
            error = bw_fs_devices(inner->fs, devices);
        if (!error && atomic_load(&inner->no_memory))
            error = bw_error_no_memory();
    }
    cmd_monitor_watch(rescue->fs ? rescue->fs : rescue->answer.session.fs, NULL, NULL);
    rescue_destroy(inner);
    return error;
}

/* File systems. */

/* Reads the file systems that a search has found, except for the opened one. */
static struct bw_error *read_found(struct rescue *rescue, const struct bw_fs *searched)
{
    const struct bw_found_file_system *found;
    BW_SCOPED(bw_device_list) struct bw_device_list opened = {0};
    if (rescue->fs)
        BW_TRY(bw_fs_devices(rescue->fs, &opened));
    bool has_seeds = false; /* which are file systems of their own */
    for (size_t i = 0; i < opened.count; i++)
        has_seeds |= opened.items[i].seed;
    for (size_t i = 0; (found = bw_fs_found(searched, i)); i++) {
        struct rescue_other other = {.generation = found->generation, .changed = found->changed};
        BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
        const bool has_fsid = memcmp(found->option, rescue->super.fsid, BW_UUID_SIZE) == 0 ||
                              memcmp(found->option, rescue->super.metadata_uuid, BW_UUID_SIZE) == 0;
        if (rescue->fs && (has_fsid || (found->is_open && has_seeds)))
            continue;
        memcpy(other.fsid, found->option, BW_UUID_SIZE);
        memcpy(other.label, found->label, sizeof other.label);
        BW_TRY(rescue_others_reserve(&rescue->others, 1));
        struct bw_error *error = read_other(rescue, &other, &devices);
        rescue->others.items[rescue->others.count++] = other;
        if (error)
            return error;
    }
    return NULL;
}

/* Sides. */

/* Reads each side once: devices that are read together with one before it are the same side. */
static struct bw_error *read_sides(struct rescue *rescue)
{
    struct bw_fs *images = rescue->answer.session.fs;
    const size_t count = bw_fs_image_count(images);
    BW_AUTO_FREE struct bw_device_list *read = calloc(count + 1, sizeof *read);
    struct bw_error *error = read ? NULL : bw_error_no_memory();
    for (size_t i = 0; !error && i < count; i++) {
        struct bw_superblock_info super;
        bool is_known = cmd_read_superblock(images, i, &super) == BW_SUPERBLOCK_NUMBERS;
        for (size_t k = 0; k < i && !is_known; k++)
            for (size_t m = 0; m < read[k].count; m++)
                is_known |= read[k].items[m].devid == super.devid &&
                            read[k].items[m].state == BW_DEVICE_PRESENT;
        if (is_known)
            continue;
        struct rescue_other other = {
            .is_side = true, .side = super.devid, .generation = super.generation};
        memcpy(other.fsid, super.fsid, BW_UUID_SIZE);
        error = rescue_others_reserve(&rescue->others, 1);
        if (error)
            break;
        error = read_other(rescue, &other, &read[i]);
        rescue->others.items[rescue->others.count++] = other;
    }
    for (size_t i = 0; read && i < count; i++)
        bw_device_list_free(&read[i]);
    return error;
}

struct bw_error *rescue_find_others(struct rescue *rescue, const struct bw_error *why)
{
    struct bw_fs *images = rescue->answer.session.fs;
    const struct cmd_input *given = &rescue->given;
    const struct bw_generation_choice *chosen = &given->fs.state;
    if (why && why->code == BW_ERROR_DIVERGED)
        return read_sides(rescue);
    if (given->has_fsid || given->fs.side || chosen->generation || chosen->tree_root ||
        given->fs.alternatives ||
        (why && why->code != BW_ERROR_AMBIGUOUS && why->code != BW_ERROR_CORRUPT))
        return NULL;
    if (rescue->settings->no_data && !given->fs.scan)
        return NULL;
    if (rescue->fs && bw_fs_found(rescue->fs, 0)) {
        rescue->searched_others = true;
        return read_found(rescue, rescue->fs);
    }
    struct bw_error *error = bw_fs_search(images, given->fs.scan ? 0 : RESCUE_SEARCHED);
    cmd_progress_expect(0);
    rescue->searched_others = !error;
    if (error && error->code == BW_ERROR_NOT_FOUND) {
        bw_error_free(error);
        return NULL;
    }
    return error ? error : read_found(rescue, images);
}

/* Records. */

struct bw_error *rescue_list_others(void *context, struct bw_record_sink *sink)
{
    const struct rescue *rescue = context;
    for (size_t i = 0; i < rescue->others.count; i++) {
        const struct rescue_other *other = &rescue->others.items[i];
        const uint64_t *files = other->total.files, *bytes = other->total.bytes;
        char option[sizeof "--fsid " + UUID_STR_LEN] = "--fsid ";
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        rescue_append_other(&text, rescue, other);
        BW_TRY(bw_buffer_terminate(&text));
        if (other->is_side)
            snprintf(option, sizeof option, "--side %" PRIu64, other->side);
        else
            uuid_unparse_lower(other->fsid, option + strlen(option));
        struct bw_rescueotherinfo row = {
            .open_option = option,
            .fsid = {(const char *)other->fsid, BW_UUID_SIZE},
            .label = *other->label ? other->label : NULL,
            .generation = other->generation,
            .changed = other->changed ? other->changed : BW_ABSENT_SIGNED,
            .open_error = other->problem,
            .verified_files = files[BW_RECOVERABLE_VERIFIED],
            .verified_bytes = bytes[BW_RECOVERABLE_VERIFIED],
            .corrected_files = files[BW_RECOVERABLE_CORRECTED],
            .corrected_bytes = bytes[BW_RECOVERABLE_CORRECTED],
            .unverified_files = files[BW_RECOVERABLE_UNVERIFIED],
            .unverified_bytes = bytes[BW_RECOVERABLE_UNVERIFIED],
            .partly_files = files[BW_RECOVERABLE_PARTLY],
            .partly_bytes = bytes[BW_RECOVERABLE_PARTLY],
            .lost_files = files[BW_RECOVERABLE_LOST],
            .lost_bytes = bytes[BW_RECOVERABLE_LOST],
            .shell_command = text.data,
        };
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}
