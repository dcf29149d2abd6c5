/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The usage command: the text of `btrfs filesystem usage`, or its numbers as JSON. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/json.h"
#include "btrfs-walk/space.h"
#include "cli/inspect/plans.h"
#include "cli/common/answer.h"

struct usage_state {
    bool raw, si, json;
};

static const struct cmd_option options[] = {
    {'b', "raw", NULL, "print sizes in bytes", CMD_FLAG(struct usage_state, raw)},
    {0, "si", NULL, "print sizes like 1.57MB instead of 1.50MiB", CMD_FLAG(struct usage_state, si)},
    {0, "json", NULL, "print one object, with sizes in bytes", CMD_FLAG(struct usage_state, json)},
    {0},
};

/* Text. */

/* Appends a size, which may be negative, in as many columns as btrfs-progs use for it. */
static void append_size(struct bw_buffer *text, const struct usage_state *state, int width,
                        bool negative, uint64_t size)
{
    char number[BW_SIZE_ROOM + 2] = "-";
    char *at = number + negative;
    if (state->raw)
        snprintf(at, BW_SIZE_ROOM, "%" PRIu64, size);
    else
        *bw_write_size(at, size, state->si) = '\0';
    bw_buffer_format(text, "%*s", width, number);
}

static void append_line(struct bw_buffer *text, const struct usage_state *state, const char *label,
                        int64_t sign, uint64_t size)
{
    bw_buffer_format(text, "    %s", label);
    append_size(text, state, state->raw ? 18 : 10, sign < 0, size);
    bw_buffer_append_byte(text, '\n');
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

/* Names the kinds of data that have several profiles: their groups follow each other. */
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

static void append_overall(struct bw_buffer *text, const struct usage_state *state,
                           const struct bw_usage *usage)
{
    int width = state->raw ? 18 : 10;
    bw_buffer_format(text, "Overall:\n");
    append_line(text, state, "Device size:\t\t", 0, usage->device_size);
    append_line(text, state, "Device allocated:\t\t", 0, usage->allocated);
    append_line(text, state, "Device unallocated:\t\t", usage->unallocated,
                magnitude(usage->unallocated));
    append_line(text, state, "Device missing:\t\t", 0, usage->missing);
    append_line(text, state, "Device slack:\t\t", 0, usage->slack);
    append_line(text, state, "Used:\t\t\t", 0, usage->used);
    bw_buffer_format(text, "    Free (estimated):\t\t");
    append_size(text, state, width, false, usage->free_estimated);
    bw_buffer_format(text, "\t(min: ");
    append_size(text, state, 0, false, usage->free_minimum);
    bw_buffer_format(text, ")\n    Data ratio:\t\t\t%*.2f\n    Metadata ratio:\t\t%*.2f\n", width,
                     usage->data_ratio, width, usage->metadata_ratio);
    append_several(text, usage, width);
}

static void append_device(struct bw_buffer *text, const struct usage_state *state,
                          const struct bw_device_info *device, int64_t sign, uint64_t size)
{
    bw_buffer_format(text, "   ");
    if (device->path)
        bw_escape_append(text, device->path, strlen(device->path));
    else
        bw_buffer_format(text, "missing (device %" PRIu64 ")", device->devid);
    bw_buffer_append_byte(text, '\t');
    append_size(text, state, 10, sign < 0, size);
    bw_buffer_append_byte(text, '\n');
}

static void append_group(struct bw_buffer *text, const struct usage_state *state,
                         const struct bw_usage *usage, size_t number)
{
    const struct bw_usage_group *group = &usage->groups[number];
    bw_buffer_format(text, "\n%s,%s: Size:", bw_chunk_type_name(group->type), group->profile);
    append_size(text, state, 0, false, group->size);
    bw_buffer_format(text, ", Used:");
    append_size(text, state, 0, false, group->used);
    bw_buffer_format(text, " (%.2f%%)", 100.0 * (double)group->used / ((double)group->size + 1));
    if (group->incomplete_chunks)
        bw_buffer_format(text, ", incomplete: %" PRIu64 " of %" PRIu64 " chunk%s",
                         group->incomplete_chunks, group->chunks, group->chunks == 1 ? "" : "s");
    bw_buffer_append_byte(text, '\n');
    for (size_t i = 0; i < usage->device_count; i++)
        if (usage->devices[i].by_group[number])
            append_device(text, state, &usage->devices[i].info, 0,
                          usage->devices[i].by_group[number]);
}

static void append_text(struct bw_buffer *text, const struct usage_state *state,
                        const struct bw_usage *usage)
{
    append_overall(text, state, usage);
    for (size_t i = 0; i < usage->group_count; i++)
        append_group(text, state, usage, i);
    bw_buffer_format(text, "\nUnallocated:\n");
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_usage_device *device = &usage->devices[i];
        append_device(text, state, &device->info, device->unallocated,
                      magnitude(device->unallocated));
    }
}

/* JSON. */

static void add_overall(struct bw_json *json, const struct bw_usage *usage)
{
    bw_json_begin_object(json, "overall");
    bw_json_number(json, "device_size", usage->device_size);
    bw_json_number(json, "device_allocated", usage->allocated);
    bw_json_signed(json, "device_unallocated", usage->unallocated);
    bw_json_number(json, "device_missing", usage->missing);
    bw_json_number(json, "device_slack", usage->slack);
    bw_json_number(json, "used", usage->used);
    bw_json_number(json, "free_estimated", usage->free_estimated);
    bw_json_number(json, "free_min", usage->free_minimum);
    bw_json_number(json, "data_ratio_percent", (uint64_t)(100 * usage->data_ratio + 0.5));
    bw_json_number(json, "metadata_ratio_percent", (uint64_t)(100 * usage->metadata_ratio + 0.5));
    bw_json_bool(json, "multiple_profiles", usage->several_profiles);
    bw_json_number(json, "chunks", usage->chunks);
    bw_json_number(json, "incomplete_chunks", usage->incomplete_chunks);
    bw_json_bool(json, "complete", usage->complete);
    bw_json_end(json);
}

static void add_group(struct bw_json *json, const struct bw_usage *usage, size_t number)
{
    const struct bw_usage_group *group = &usage->groups[number];
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "type", bw_chunk_type_name(group->type));
    bw_json_text(json, "profile", group->profile);
    bw_json_number(json, "size", group->size);
    bw_json_number(json, "used", group->used);
    bw_json_number(json, "raw_size", group->raw_size);
    bw_json_number(json, "raw_used", group->raw_used);
    bw_json_number(json, "chunks", group->chunks);
    bw_json_number(json, "incomplete_chunks", group->incomplete_chunks);
    bw_json_bool(json, "complete", group->complete);
    bw_json_begin_array(json, "devices");
    for (size_t i = 0; i < usage->device_count; i++) {
        const struct bw_usage_device *device = &usage->devices[i];
        if (!device->by_group[number])
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "devid", device->info.devid);
        bw_json_number(json, "size", device->by_group[number]);
        bw_json_end(json);
    }
    bw_json_end(json);
    bw_json_end(json);
}

static void add_device(struct bw_json *json, const struct bw_usage_device *device)
{
    const char *path = device->info.path;
    bw_json_begin_object(json, NULL);
    bw_json_number(json, "id", device->info.devid);
    bw_json_text(json, "state", bw_device_state_name(device->info.state));
    if (path)
        bw_json_bytes(json, "path", path, strlen(path));
    bw_json_bool(json, "seed", device->info.seed);
    bw_json_number(json, "size", device->info.total_bytes);
    bw_json_number(json, "allocated", device->allocated);
    bw_json_signed(json, "unallocated", device->unallocated);
    bw_json_number(json, "slack", device->slack);
    bw_json_end(json);
}

static void append_json(struct bw_buffer *text, const struct bw_usage *usage)
{
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    add_overall(&json, usage);
    bw_json_begin_array(&json, "groups");
    for (size_t i = 0; i < usage->group_count; i++)
        add_group(&json, usage, i);
    bw_json_end(&json);
    bw_json_begin_array(&json, "devices");
    for (size_t i = 0; i < usage->device_count; i++)
        add_device(&json, &usage->devices[i]);
    bw_json_end(&json);
    bw_json_end(&json);
    bw_buffer_append_byte(text, '\n');
}

void cmd_usage_append(struct bw_buffer *text, const struct bw_usage *usage)
{
    append_text(text, &(struct usage_state){.raw = false}, usage);
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    const struct usage_state *state = context;
    struct bw_usage *usage;
    struct bw_buffer BW_AUTO_BUFFER text = {0};
    BW_TRY(bw_fs_usage(answer->session.fs, &usage));
    if (state->json)
        append_json(&text, usage);
    else
        append_text(&text, state, usage);
    bw_usage_free(usage);
    return text.failed ? bw_error_no_memory() : cmd_write(&answer->output, text.data, text.length);
}

static int run(const struct cmd_common *common, void *state)
{
    const struct cmd_answer_plan plan = {.list = list, .context = state};
    return cmd_answer_run(common, &plan);
}

const struct command cmd_usage = {
    .name = "usage",
    .topic = cmd_topic_volume,
    .operands = "IMAGE...",
    .summary =
        "Prints how much space is allocated, used and free, in all and by profile and device.",
    .details =
        "\n"
        "The lines and labels are those of 'btrfs filesystem usage'. The global reserve and what "
        "statfs(2)\nwould say are left out: only a mounted file system knows them. With mixed "
        "block groups, what is\nfree is overestimated by the global reserve.\n",
    .examples = "  btrfs-walk usage disk.img                              with units\n"
                "  btrfs-walk usage -b a.img b.img c.img                  in bytes\n"
                "  btrfs-walk usage --json disk.img | jq .overall.used    for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct usage_state),
};
