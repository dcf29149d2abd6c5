/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The problems of a file system: the state of its devices in words, and the messages of the
 * library. Messages that differ only in their numbers are one problem. */
#include "cli/rescue/rescue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/human.h"
#include "btrfs-walk/space.h"

/* `message` NULL: memory ran out. */
static void add_problem(struct rescue *rescue, enum bw_severity severity, const char *message,
                        const struct cmd_message_kind *kind)
{
    if (rescue->problem_count == RESCUE_PROBLEMS)
        return;
    char *copy = message ? strdup(message) : NULL;
    if (!copy)
        atomic_store(&rescue->no_memory, true);
    else
        rescue->problems[rescue->problem_count++] = (struct rescue_problem){severity, copy, kind};
}

void rescue_note_problem(void *context, enum bw_severity severity, const struct bw_error *error)
{
    struct rescue *rescue = context;
    const bool is_device = severity == BW_WARNING && error->code == BW_ERROR_MISSING_DEVICE;
    if (severity == BW_NOTE || is_device) /* rescue_find_problems() describes the devices */
        return;
    rescue->is_damaged |= severity == BW_DAMAGE && error->code != BW_ERROR_UNSUPPORTED;
    const struct cmd_message_kind *kind = cmd_repeats_count(&rescue->repeats, error->message);
    if (!kind || kind->count == 1)
        add_problem(rescue, severity, error->message, kind);
}

struct bw_error *rescue_list_problems(void *context, struct bw_record_sink *sink)
{
    const struct rescue *rescue = context;
    for (size_t i = 0; i < rescue->problem_count; i++) {
        const struct rescue_problem *problem = &rescue->problems[i];
        struct bw_probleminfo row = {
            .severity = cmd_severity_name(problem->severity),
            .message = problem->message,
            .similar = BW_ABSENT,
        };
        if (problem->kind && problem->kind->count > 1)
            row.similar = problem->kind->count - 1;
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* Devices. */

/* Adds how much cannot be read without the missing devices. */
static struct bw_error *find_incomplete(struct rescue *rescue)
{
    uint64_t count = 0, data = 0, metadata = 0; /* chunks; used bytes in them */
    struct bw_block_groups *groups;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    const uint64_t missing = bw_fs_status(rescue->fs).missing_devices;
    if (!missing)
        return NULL;
    BW_TRY(bw_fs_chunks(rescue->fs, &chunks));
    BW_TRY(bw_block_groups_open(rescue->fs, &groups));
    struct bw_error *error = NULL;
    for (size_t i = 0; !error && i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        struct bw_block_group_info group = {.used = 0};
        if (bw_chunk_condition(rescue->fs, chunk, NULL) != BW_CHUNK_INCOMPLETE)
            continue;
        BW_AUTO_ERROR struct bw_error *unknown =
            bw_block_groups_find(groups, chunk->logical, &group);
        if (unknown && unknown->code == BW_ERROR_NO_MEMORY)
            error = BW_TAKE(unknown);
        const uint64_t used = unknown ? chunk->length : group.used;
        count += used != 0;
        if (chunk->type & BW_GROUP_DATA)
            data += used;
        else
            metadata += used;
    }
    bw_block_groups_close(groups);
    if (error || !count)
        return error;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_format(&text, "%" PRIu64 " chunk%s with ", count, bw_plural(count));
    if (data)
        bw_buffer_format(&text, "%s of data", cmd_size(NULL, data).text);
    if (data && metadata)
        bw_buffer_format(&text, " and ");
    if (metadata)
        bw_buffer_format(&text, "%s of metadata", cmd_size(NULL, metadata).text);
    bw_buffer_format(&text, " cannot be read completely without %s", missing > 1 ? "them" : "it");
    bw_buffer_append_byte(&text, '\0');
    add_problem(rescue, BW_DAMAGE, text.failed ? NULL : text.data, NULL);
    return NULL;
}

struct bw_error *rescue_find_problems(struct rescue *rescue)
{
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(rescue->fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        const uint64_t count = rescue->super.device_count;
        char text[160] = "";
        if (device->state == BW_DEVICE_MISSING)
            snprintf(text, sizeof text, "device %" PRIu64 " of %" PRIu64 " is missing",
                     device->devid, count);
        else if (device->state == BW_DEVICE_STALE)
            snprintf(text, sizeof text,
                     "device %" PRIu64 " of %" PRIu64 " missed transactions: its last is %" PRIu64,
                     device->devid, count, device->generation);
        if (*text)
            add_problem(rescue, BW_WARNING, text, NULL);
    }
    if (rescue_is_older(rescue)) {
        char text[160];
        snprintf(text, sizeof text,
                 "the current generation %" PRIu64 " cannot be read; this is generation %" PRIu64,
                 rescue->super.generation, bw_fs_status(rescue->fs).generation);
        add_problem(rescue, BW_DAMAGE, text, NULL);
    }
    return find_incomplete(rescue);
}
