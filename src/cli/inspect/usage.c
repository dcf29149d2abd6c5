/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The usage command: the text of `btrfs filesystem usage`, or its numbers as a record. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"
#include "cli/inspect/plans.h"
#include "cli/inspect/usage_reasons.h"

/* Output as text. */

/* Appends a size, which may be negative, in as many columns as in btrfs-progs. */
static void append_size(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                        int width, bool negative, uint64_t size)
{
    char number[BW_SIZE_ROOM + 2] = "-";
    char *at = number + negative;
    if (settings->raw)
        snprintf(at, BW_SIZE_ROOM, "%" PRIu64, size);
    else
        *bw_write_size(at, size, settings->si) = '\0';
    bw_buffer_format(text, "%*s", width, number);
}

static void append_line(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                        const char *label, int64_t sign, uint64_t size)
{
    bw_buffer_format(text, "    %s", label);
    append_size(text, settings, settings->raw ? 18 : 10, sign < 0, size);
    bw_buffer_append_byte(text, '\n');
}

static uint64_t absolute_value(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

/* Lists the types of chunks that have several profiles: groups of a type are adjacent. */
static void append_several(struct bw_buffer *text, const struct bw_usage *usage, int width)
{
    const char *before = "(", *last = NULL;
    bw_buffer_format(text, "    Multiple profiles:\t\t%*s", width,
                     usage->several_profiles ? "yes" : "no");
    if (usage->several_profiles)
        bw_buffer_append_byte(text, '\t');
    for (size_t i = 1; i < usage->group_count; i++) {
        const char *kind = bw_chunk_type_name(usage->groups[i].type);
        if (kind != bw_chunk_type_name(usage->groups[i - 1].type) || kind == last)
            continue;
        bw_buffer_format(text, "%s", before);
        for (const char *letter = kind; *letter; letter++)
            bw_buffer_append_byte(text, (char)tolower((unsigned char)*letter));
        before = ", ";
        last = kind;
    }
    bw_buffer_format(text, "%s\n", last ? ")" : "");
}

static void append_overall(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                           const struct bw_usage *usage)
{
    int width = settings->raw ? 18 : 10;
    bw_buffer_format(text, "Overall:\n");
    append_line(text, settings, "Device size:\t\t", 0, usage->device_size);
    append_line(text, settings, "Device allocated:\t\t", 0, usage->allocated);
    append_line(text, settings, "Device unallocated:\t\t", usage->unallocated,
                absolute_value(usage->unallocated));
    append_line(text, settings, "Device missing:\t\t", 0, usage->missing);
    append_line(text, settings, "Device slack:\t\t", 0, usage->slack);
    append_line(text, settings, "Used:\t\t\t", 0, usage->used);
    bw_buffer_format(text, "    Free (estimated):\t\t");
    append_size(text, settings, width, false, usage->free_estimated);
    bw_buffer_format(text, "\t(min: ");
    append_size(text, settings, 0, false, usage->free_minimum);
    bw_buffer_format(text, ")\n    Data ratio:\t\t\t%*.2f\n    Metadata ratio:\t\t%*.2f\n", width,
                     usage->data_ratio, width, usage->metadata_ratio);
    append_several(text, usage, width);
}

static void append_device(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                          const struct bw_device_info *device, int64_t sign, uint64_t size)
{
    bw_buffer_format(text, "   ");
    if (device->path)
        bw_escape_append(text, device->path, strlen(device->path));
    else
        bw_buffer_format(text, "missing (device %" PRIu64 ")", device->devid);
    bw_buffer_append_byte(text, '\t');
    append_size(text, settings, 10, sign < 0, size);
    bw_buffer_append_byte(text, '\n');
}

static void append_group(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                         const struct bw_usage *usage, size_t number)
{
    const struct bw_usage_group *group = &usage->groups[number];
    bw_buffer_format(text, "\n%s,%s: Size:", bw_chunk_type_name(group->type), group->profile);
    append_size(text, settings, 0, false, group->size);
    bw_buffer_format(text, ", Used:");
    append_size(text, settings, 0, false, group->used);
    bw_buffer_format(text, " (%.2f%%)", 100.0 * (double)group->used / ((double)group->size + 1));
    if (group->incomplete_chunks)
        bw_buffer_format(text, ", incomplete: %" PRIu64 " of %" PRIu64 " chunk%s",
                         group->incomplete_chunks, group->chunks, group->chunks == 1 ? "" : "s");
    bw_buffer_append_byte(text, '\n');
    for (size_t i = 0; i < usage->device_count; i++)
        if (usage->devices[i].by_group[number])
            append_device(text, settings, &usage->devices[i].info, 0,
                          usage->devices[i].by_group[number]);
}

static void append_text(struct bw_buffer *text, const struct cmd_answer_settings *settings,
                        const struct bw_usage *usage)
{
    append_overall(text, settings, usage);
    for (size_t i = 0; i < usage->group_count; i++)
        append_group(text, settings, usage, i);
    bw_buffer_format(text, "\nUnallocated:\n");
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_usage_device *device = &usage->devices[i];
        append_device(text, settings, &device->info, device->unallocated,
                      absolute_value(device->unallocated));
    }
}

/* The answer to a question that btrfs-progs do not answer: why it is full. */
static void append_reasons(struct bw_buffer *text, const struct usage_reasons *reasons)
{
    if (reasons->count)
        bw_buffer_format(text, "\nWhy it is full:\n");
    for (size_t i = 0; i < reasons->count; i++)
        bw_buffer_format(text, "   %s.\n   This helps: %s\n", reasons->items[i].description.data,
                         reasons->items[i].advice.data);
}

static struct bw_error *print_usage(struct cmd_answer *answer, const void *record, uint64_t absent)
{
    const struct bw_usageinfo *row = record;
    (void)absent;
    append_text(&answer->text, &answer->settings, row->groups.context);
    append_reasons(&answer->text, row->reasons.context);
    return NULL;
}

/* Output as a record. */

static struct bw_error *list_overall(void *context, struct bw_record_sink *sink)
{
    const struct bw_usage *usage = context;
    const struct bw_usagesuminfo row = {
        .device_size = usage->device_size,
        .device_allocated = usage->allocated,
        .device_unallocated = usage->unallocated,
        .device_missing = usage->missing,
        .device_slack = usage->slack,
        .used = usage->used,
        .free_estimated = usage->free_estimated,
        .free_min = usage->free_minimum,
        .data_ratio_percent = (uint64_t)(100 * usage->data_ratio + 0.5),
        .metadata_ratio_percent = (uint64_t)(100 * usage->metadata_ratio + 0.5),
        .multiple_profiles = usage->several_profiles,
        .chunks = usage->chunks,
        .incomplete_chunks = usage->incomplete_chunks,
        .complete = usage->complete,
    };
    return sink->visit(sink, &row, sizeof row, 0);
}

/* A group and its index. */
struct group {
    const struct bw_usage *usage;
    size_t number;
};

static struct bw_error *list_allocations(void *context, struct bw_record_sink *sink)
{
    const struct group *group = context;
    for (size_t i = 0; i < group->usage->device_count; i++) {
        const struct bw_usage_device *device = &group->usage->devices[i];
        const struct bw_allocationinfo row = {.devid = device->info.devid,
                                              .size = device->by_group[group->number]};
        if (row.size)
            BW_TRY(sink->visit(sink, &row, sizeof row, 0));
    }
    return NULL;
}

static struct bw_error *list_groups(void *context, struct bw_record_sink *sink)
{
    const struct bw_usage *usage = context;
    for (size_t i = 0; i < usage->group_count; i++) {
        const struct bw_usage_group *group = &usage->groups[i];
        const struct bw_usagegroupinfo row = {
            .chunk_type = bw_chunk_type_name(group->type),
            .profile = group->profile,
            .size = group->size,
            .used = group->used,
            .raw_size = group->raw_size,
            .raw_used = group->raw_used,
            .chunks = group->chunks,
            .incomplete_chunks = group->incomplete_chunks,
            .complete = group->complete,
            .devices = {list_allocations, &(struct group){usage, i}},
        };
        BW_TRY(sink->visit(sink, &row, sizeof row, 0));
    }
    return NULL;
}

static struct bw_error *list_devices(void *context, struct bw_record_sink *sink)
{
    const struct bw_usage *usage = context;
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_usage_device *device = &usage->devices[i];
        const char *path = device->info.path;
        const struct bw_usagedeviceinfo row = {
            .devid = device->info.devid,
            .device_state = bw_device_state_name(device->info.state),
            .device = {path, path ? strlen(path) : 0},
            .seed = device->info.seed,
            .size = device->info.total_bytes,
            .allocated = device->allocated,
            .unallocated = device->unallocated,
            .slack = device->slack,
        };
        BW_TRY(sink->visit(sink, &row, sizeof row, 0));
    }
    return NULL;
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct bw_usage *usage;
    struct usage_reasons reasons = {.count = 0};
    (void)context;
    BW_TRY(bw_fs_usage(answer->session.fs, &usage));
    struct bw_error *error = usage_reasons_find(answer->session.fs, usage, &reasons);
    const struct bw_usageinfo row = {
        .overall = {list_overall, usage},
        .groups = {list_groups, usage},
        .devices = {list_devices, usage},
        .reasons = {usage_reasons_list, &reasons},
    };
    if (!error)
        error = cmd_answer_write(answer, &row, sizeof row, 0);
    usage_reasons_free(&reasons);
    bw_usage_free(usage);
    return error;
}

const struct cmd_answer_plan cmd_usage_plan = {
    .record = "usageinfo",
    .print = print_usage,
    .has_units = true,
    .list = list,
};

static int run(const struct cmd_common *common, void *state)
{
    (void)state;
    return cmd_answer_run(common, &cmd_usage_plan);
}

const struct command cmd_usage = {
    .name = "usage",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Prints how much space is allocated, used and free.",
    .details = "\n"
               "The output has the lines and labels of 'btrfs filesystem usage', except for the\n"
               "global reserve and statfs(2). Free (estimated) counts only space that chunks can\n"
               "use: a chunk of RAID1, for example, needs space on two devices.\n\n"
               "If the file system is full, the last lines say why: full metadata chunks, full or\n"
               "half-empty data chunks, a large snapshot, or the limit of a quota group.\n",
    .examples = "  btrfs-walk usage disk.img                            with units\n"
                "  btrfs-walk usage -b a.img b.img c.img                in bytes\n"
                "  btrfs-walk usage --json disk.img | jq .overall.used  for programs\n",
    .options = cmd_no_options,
    .record = "usageinfo",
    .run = run,
};
