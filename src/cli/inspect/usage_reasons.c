/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a file system is full. */
#include "cli/inspect/usage_reasons.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/monitor.h"

/* A chunk of metadata has 256 MiB or, on small devices, a tenth of them. */
enum { CHUNK = 256 << 20 };

static void append_text(struct bw_buffer *text, const char *format, va_list arguments)
{
    BW_AUTO_FREE char *words = NULL;
    if (vasprintf(&words, format, arguments) < 0)
        text->failed = true;
    else
        bw_buffer_append(text, words, strlen(words) + 1);
}

/* Adds a reason. The format is of its description. */
static void add_reason(struct usage_reasons *reasons, const char *word, const char *advice,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

static void add_reason(struct usage_reasons *reasons, const char *word, const char *advice,
                       const char *format, ...)
{
    va_list arguments;
    if (reasons->count == USAGE_REASONS)
        return;
    const size_t number = reasons->count++;
    reasons->items[number].word = word;
    bw_buffer_append(&reasons->items[number].advice, advice, strlen(advice) + 1);
    va_start(arguments, format);
    append_text(&reasons->items[number].description, format, arguments);
    va_end(arguments);
}

struct size_text {
    char text[BW_SIZE_ROOM + 1];
};

static struct size_text size_of(uint64_t bytes)
{
    struct size_text size;
    *bw_write_size(size.text, bytes, false) = '\0';
    return size;
}

/* Chunks. */

struct sum {
    uint64_t size, used;
};

static struct sum sum_of(const struct bw_usage *usage, uint64_t type)
{
    struct sum sum = {0, 0};
    for (size_t i = 0; i < usage->group_count; i++)
        if (usage->groups[i].type & type) {
            sum.size += usage->groups[i].size;
            sum.used += usage->groups[i].used;
        }
    return sum;
}

static unsigned percent_used(const struct sum *sum)
{
    return sum->size ? (unsigned)(100 * (double)sum->used / (double)sum->size) : 0;
}

/* Whether hardly any space is left for new chunks. */
static bool is_allocated(const struct bw_usage *usage)
{
    const uint64_t least =
        usage->device_size / 20 < CHUNK ? usage->device_size / 20 : (uint64_t)CHUNK;
    return usage->unallocated < (int64_t)least;
}

/* Part of the metadata space is always reserved, so it is full before it is completely used. */
static bool is_metadata_full(const struct sum *metadata)
{
    enum { RESERVE = 512 << 20 };
    const uint64_t part = metadata->size / 10 * 3,
                   reserve = part < RESERVE ? part : (uint64_t)RESERVE;
    return metadata->used + reserve >= metadata->size;
}

static void find_full_chunks(const struct bw_usage *usage, struct usage_reasons *reasons)
{
    const struct sum data = sum_of(usage, BW_GROUP_DATA),
                     metadata = sum_of(usage, BW_GROUP_METADATA);
    const uint64_t unused = data.size - (data.used < data.size ? data.used : data.size);
    if (!is_allocated(usage))
        return;
    if (is_metadata_full(&metadata) && percent_used(&data) < 95)
        add_reason(reasons, "metadata-full", "btrfs balance start -dusage=50 MOUNTPOINT",
                   "Metadata chunks are %u%% full, and no space is unallocated, although data "
                   "chunks have %s free",
                   percent_used(&metadata), size_of(unused).text);
    else if (percent_used(&data) >= 95)
        add_reason(reasons, "data-full", "btrfs filesystem du -s MOUNTPOINT/*",
                   "All space is allocated, and data chunks are %u%% full", percent_used(&data));
    else if (percent_used(&data) < 75)
        add_reason(reasons, "data-half-empty", "btrfs balance start -dusage=50 MOUNTPOINT",
                   "All space is allocated, but data chunks are only %u%% full",
                   percent_used(&data));
}

/* Snapshots. */

struct largest {
    const struct bw_shares *shares;
    uint64_t exclusive, count, total;
    struct bw_buffer path;
};

static struct bw_error *compare_snapshot(void *context, const struct bw_subvolume_info *info)
{
    struct largest *largest = context;
    const struct bw_subvolume_space *space = bw_shares_subvolume(largest->shares, info->id);
    if (!space || !info->is_snapshot || info->is_deleted || !info->path)
        return NULL;
    largest->count++;
    largest->total += space->exclusive;
    if (space->exclusive <= largest->exclusive)
        return NULL;
    largest->exclusive = space->exclusive;
    largest->path.length = 0;
    bw_escape_line(&largest->path, info->path, info->path_length);
    return largest->path.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *find_snapshots(struct bw_fs *fs, const struct bw_usage *usage,
                                       struct usage_reasons *reasons)
{
    const struct bw_shares_options options = {.struct_size = sizeof options};
    struct bw_shares *shares;
    struct largest largest = {.exclusive = 0};
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_shares_open(fs, &options, &shares));
    largest.shares = shares;
    struct bw_error *error = bw_fs_subvolumes(fs, true, compare_snapshot, &largest);
    if (!error && largest.exclusive > usage->device_size / 50)
        add_reason(reasons, "snapshots", "btrfs subvolume delete SNAPSHOT",
                   "The snapshot %.*s alone holds %s", (int)largest.path.length, largest.path.data,
                   size_of(largest.exclusive).text);
    bw_buffer_free(&largest.path);
    bw_shares_close(shares);
    return error;
}

/* Quotas. */

static struct bw_error *compare_limit(void *context, const struct bw_qgroup_info *group)
{
    struct usage_reasons *reasons = context;
    const uint64_t limit = group->limits & BW_QGROUP_LIMITS_REFERENCED  ? group->max_referenced
                           : group->limits & BW_QGROUP_LIMITS_EXCLUSIVE ? group->max_exclusive
                                                                        : 0;
    const uint64_t used =
        group->limits & BW_QGROUP_LIMITS_REFERENCED ? group->referenced : group->exclusive;
    if (!group->is_counted || !limit || used < limit - limit / 20)
        return NULL;
    add_reason(reasons, "quota", "btrfs qgroup limit none SUBVOLUME",
               "Quota group %u/%" PRIu64 " has used %s of its limit of %s", group->level,
               group->number, size_of(used).text, size_of(limit).text);
    return NULL;
}

struct bw_error *usage_reasons_find(struct bw_fs *fs, const struct bw_usage *usage,
                                    struct usage_reasons *reasons)
{
    find_full_chunks(usage, reasons);
    if (reasons->count && strcmp(reasons->items[0].word, "data-full") == 0)
        BW_TRY(find_snapshots(fs, usage, reasons));
    return bw_fs_qgroups(fs, false, compare_limit, reasons);
}

struct bw_error *usage_reasons_list(void *context, struct bw_record_sink *sink)
{
    const struct usage_reasons *reasons = context;
    for (size_t i = 0; i < reasons->count; i++) {
        const struct bw_usagereasoninfo row = {.reason = reasons->items[i].word,
                                               .description = reasons->items[i].description.data,
                                               .advice = reasons->items[i].advice.data};
        if (reasons->items[i].description.failed || reasons->items[i].advice.failed)
            return bw_error_no_memory();
        BW_TRY(sink->visit(sink, &row, sizeof row, 0));
    }
    return NULL;
}

void usage_reasons_free(struct usage_reasons *reasons)
{
    for (size_t i = 0; i < reasons->count; i++) {
        bw_buffer_free(&reasons->items[i].description);
        bw_buffer_free(&reasons->items[i].advice);
    }
}
