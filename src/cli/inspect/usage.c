/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The usage command: the text of `btrfs filesystem usage`, or its numbers as a record. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/inspect/plans.h"

/* Why a file system is full. */

enum { USAGE_REASONS = 4 };

/* The reasons of a file system. */
struct usage_reasons {
    struct {
        const char *word;                     /* "metadata-full" */
        struct bw_buffer description, advice; /* end with NUL */
    } items[USAGE_REASONS];
    size_t count;
};

/* A chunk of metadata has 256 MiB or, on small devices, a tenth of them. */
enum { CHUNK = 256 << 20 };

/* Adds a reason. The format is of its description. */
static void add_reason(struct usage_reasons *reasons, const char *word, const char *advice,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

static void add_reason(struct usage_reasons *reasons, const char *word, const char *advice,
                       const char *format, ...)
{
    va_list arguments;
    BW_AUTO_FREE char *words = NULL;
    if (reasons->count == USAGE_REASONS)
        return;
    const size_t number = reasons->count++;
    reasons->items[number].word = word;
    bw_buffer_append(&reasons->items[number].advice, advice, strlen(advice) + 1);
    va_start(arguments, format);
    if (vasprintf(&words, format, arguments) < 0)
        reasons->items[number].description.failed = true;
    else
        bw_buffer_append(&reasons->items[number].description, words, strlen(words) + 1);
    va_end(arguments);
}

/* Chunks. */

/* The sum of the groups of a type. */
static struct bw_usage_group sum_of(const struct bw_usage *usage, uint64_t type)
{
    struct bw_usage_group sum = {.type = type};
    for (size_t i = 0; i < usage->group_count; i++)
        if (usage->groups[i].type & type) {
            sum.size += usage->groups[i].size;
            sum.used += usage->groups[i].used;
        }
    return sum;
}

static unsigned percent_used(const struct bw_usage_group *sum)
{
    return sum->size ? (unsigned)(100 * (double)sum->used / (double)sum->size) : 0;
}

static void find_full_chunks(const struct bw_usage *usage, struct usage_reasons *reasons)
{
    const struct bw_usage_group data = sum_of(usage, BW_GROUP_DATA),
                                metadata = sum_of(usage, BW_GROUP_METADATA);
    const uint64_t unused = data.used < data.size ? data.size - data.used : 0;

    /* Chunks are full only if the devices have hardly any space for new ones. */
    const uint64_t least =
        usage->device_size / 20 < CHUNK ? usage->device_size / 20 : (uint64_t)CHUNK;
    if (usage->unallocated >= (int64_t)least)
        return;

    /* Part of the metadata space is always reserved, so it is full before it is completely used. */
    enum { RESERVE = 512 << 20 };
    const uint64_t part = metadata.size / 10 * 3;
    const uint64_t reserve = part < RESERVE ? part : (uint64_t)RESERVE;
    const bool is_metadata_full = metadata.used + reserve >= metadata.size;
    if (is_metadata_full && percent_used(&data) < 95)
        add_reason(reasons, "metadata-full", "btrfs balance start -dusage=50 MOUNTPOINT",
                   "Metadata chunks are %u%% full, and no space is unallocated, although data "
                   "chunks have %s free",
                   percent_used(&metadata), cmd_size(NULL, unused).text);
    else if (percent_used(&data) >= 95)
        add_reason(reasons, "data-full", "btrfs filesystem du -s MOUNTPOINT/*",
                   "All space is allocated, and data chunks are %u%% full", percent_used(&data));
    else if (percent_used(&data) < 75)
        add_reason(reasons, "data-half-empty", "btrfs balance start -dusage=50 MOUNTPOINT",
                   "All space is allocated, but data chunks are only %u%% full",
                   percent_used(&data));
}

/* Snapshots. */

/* Adds a reason if a single snapshot holds much: that with the most exclusive data. */
static struct bw_error *find_snapshots(struct bw_fs *fs, const struct bw_usage *usage,
                                       struct usage_reasons *reasons)
{
    const struct bw_shares_options options = {.struct_size = sizeof options};
    struct bw_shares *shares;
    struct bw_subvolume_infos *infos;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    uint64_t most = 0;
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_shares_open(fs, &options, &shares));
    struct bw_error *error = bw_subvolume_infos_open(fs, true, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        const struct bw_subvolume_space *space = bw_shares_subvolume(shares, info->id);
        if (!space || !info->is_snapshot || info->is_deleted || !info->path ||
            space->exclusive <= most)
            continue;
        most = space->exclusive;
        path.length = 0;
        bw_escape_line(&path, info->path, info->path_length);
        if (path.failed)
            error = bw_error_no_memory();
    }
    error = bw_error_first(error, bw_subvolume_infos_close(infos));
    if (!error && most > usage->device_size / 50)
        add_reason(reasons, "snapshots", "btrfs subvolume delete SNAPSHOT",
                   "The snapshot %.*s alone holds %s", (int)path.length, path.data,
                   cmd_size(NULL, most).text);
    bw_shares_close(shares);
    return error;
}

/* Adds a reason for each quota group that has nearly reached its limit. */
static struct bw_error *find_full_quotas(struct bw_fs *fs, struct usage_reasons *reasons)
{
    struct bw_qgroups *qgroups;
    BW_TRY(bw_qgroups_open(fs, false, &qgroups));
    for (const struct bw_qgroup_info *group; (group = bw_qgroups_next(qgroups));) {
        uint64_t limit = 0, used = group->exclusive;
        if (group->limits & BW_QGROUP_LIMITS_REFERENCED) {
            limit = group->max_referenced;
            used = group->referenced;
        } else if (group->limits & BW_QGROUP_LIMITS_EXCLUSIVE) {
            limit = group->max_exclusive;
        }
        if (group->is_counted && limit && used >= limit - limit / 20)
            add_reason(reasons, "quota", "btrfs qgroup limit none SUBVOLUME",
                       "Quota group %u/%" PRIu64 " has used %s of its limit of %s", group->level,
                       group->number, cmd_size(NULL, used).text, cmd_size(NULL, limit).text);
    }
    return bw_qgroups_close(qgroups);
}

/* For usageinfo.reasons. */
static struct bw_error *usage_reasons_list(void *context, struct bw_record_sink *sink)
{
    const struct usage_reasons *reasons = context;
    for (size_t i = 0; i < reasons->count; i++) {
        const struct bw_usagereasoninfo row = {.reason = reasons->items[i].word,
                                               .description = reasons->items[i].description.data,
                                               .advice = reasons->items[i].advice.data};
        if (reasons->items[i].description.failed || reasons->items[i].advice.failed)
            return bw_error_no_memory();
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* Output as text. */

/* Appends a size, which may be negative, in as many columns as in btrfs-progs. */
static void append_size(struct bw_buffer *text, const struct cmd_format_settings *settings,
                        int width, bool negative, uint64_t size)
{
    char number[sizeof(struct cmd_size) + 1] = "-";
    strcpy(number + negative, cmd_size(settings, size).text);
    bw_buffer_format(text, "%*s", width, number);
}

static void append_line(struct bw_buffer *text, const struct cmd_format_settings *settings,
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

static void append_device(struct bw_buffer *text, const struct cmd_format_settings *settings,
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

static struct bw_error *print_usage(struct cmd_format *format, const void *record)
{
    const struct bw_usageinfo *row = record;
    const struct bw_usage *usage = row->groups.context;
    const struct usage_reasons *reasons = row->reasons.context;
    const struct cmd_format_settings *settings = &format->settings;
    struct bw_buffer *text = &format->text;
    const int width = settings->raw ? 18 : 10;
    bw_buffer_format(text, "Overall:\n");
    append_line(text, settings, "Device size:\t\t", 0, usage->device_size);
    append_line(text, settings, "Device allocated:\t\t", 0, usage->allocated);
    append_line(text, settings, "Device unallocated:\t\t", usage->unallocated,
                absolute_value(usage->unallocated));
    append_line(text, settings, "Device missing:\t\t", 0, usage->missing);
    append_line(text, settings, "Device slack:\t\t", 0, usage->slack);
    append_line(text, settings, "Used:\t\t\t", 0, usage->used);
    bw_buffer_format(text, "    Free (estimated):\t\t%*s\t(min: %s)\n", width,
                     cmd_size(settings, usage->free_estimated).text,
                     cmd_size(settings, usage->free_minimum).text);
    bw_buffer_format(text, "    Data ratio:\t\t\t%*.2f\n    Metadata ratio:\t\t%*.2f\n", width,
                     usage->data_ratio, width, usage->metadata_ratio);
    /* Types of chunks that have several profiles: the groups of a type are adjacent. */
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

    /* The groups, and how much of each is on which device. */
    for (size_t number = 0; number < usage->group_count; number++) {
        const struct bw_usage_group *group = &usage->groups[number];
        bw_buffer_format(text, "\n%s,%s: Size:%s, Used:%s (%.2f%%)",
                         bw_chunk_type_name(group->type), group->profile,
                         cmd_size(settings, group->size).text, cmd_size(settings, group->used).text,
                         100.0 * (double)group->used / ((double)group->size + 1));
        if (group->incomplete_chunks)
            bw_buffer_format(text, ", incomplete: %" PRIu64 " of %" PRIu64 " chunk%s",
                             group->incomplete_chunks, group->chunks, bw_plural(group->chunks));
        bw_buffer_append_byte(text, '\n');
        for (size_t i = 0; i < usage->device_count; i++)
            if (usage->devices[i].by_group[number])
                append_device(text, settings, &usage->devices[i].info, 0,
                              usage->devices[i].by_group[number]);
    }
    bw_buffer_format(text, "\nUnallocated:\n");
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_usage_device *device = &usage->devices[i];
        append_device(text, settings, &device->info, device->unallocated,
                      absolute_value(device->unallocated));
    }

    /* btrfs-progs do not explain why a file system is full. */
    if (reasons->count)
        bw_buffer_format(text, "\nWhy it is full:\n");
    for (size_t i = 0; i < reasons->count; i++)
        bw_buffer_format(text, "   %s.\n   This helps: %s\n", reasons->items[i].description.data,
                         reasons->items[i].advice.data);
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
    return sink->visit(sink, &row, sizeof row);
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
            BW_TRY(sink->visit(sink, &row, sizeof row));
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
        BW_TRY(sink->visit(sink, &row, sizeof row));
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
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct bw_usage *usage;
    struct usage_reasons reasons = {.count = 0};
    (void)context;
    if (bw_fs_is_stream(format->session.fs))
        return bw_error_create(BW_ERROR_USAGE, "a send stream has no block groups");
    BW_TRY(bw_fs_usage(format->session.fs, &usage));
    struct bw_error *error = NULL;
    find_full_chunks(usage, &reasons);
    /* Only if data chunks are full, all trees are read for the space of snapshots. */
    if (reasons.count && strcmp(reasons.items[0].word, "data-full") == 0)
        error = find_snapshots(format->session.fs, usage, &reasons);
    if (!error)
        error = find_full_quotas(format->session.fs, &reasons);
    const struct bw_usageinfo row = {
        .overall = {list_overall, usage},
        .groups = {list_groups, usage},
        .devices = {list_devices, usage},
        .reasons = {usage_reasons_list, &reasons},
    };
    if (!error)
        error = cmd_format_write(format, &row, sizeof row);
    for (size_t i = 0; i < reasons.count; i++) {
        bw_buffer_free(&reasons.items[i].description);
        bw_buffer_free(&reasons.items[i].advice);
    }
    bw_usage_free(usage);
    return error;
}

const struct cmd_format_plan cmd_usage_plan = {
    .record = "usageinfo",
    .print = print_usage,
    .has_units = true,
    .list = list,
};

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
    .plan = &cmd_usage_plan,
};
