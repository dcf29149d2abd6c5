/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The info command: what one wants to know of a file system first, as lines of "Name: value" or as
 * one JSON object. It reads the superblocks, the chunk tree and the root tree. If the trees cannot
 * be read, the superblock tells what it knows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <uuid/uuid.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/space.h"
#include "cli/inspect/plans.h"
#include "cli/common/partitions.h"
#include "cli/inspect/info.h"

struct info_state {
    bool json;
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "one object", CMD_FLAG(struct info_state, json)},
    {0},
};

/* Chunks of a type and a profile. */
struct group {
    const char *type, *profile;
    uint64_t bytes, chunks;
};

/* Subvolumes of each kind. */
struct subvolumes {
    uint64_t subvolumes, snapshots, deleted;
    int64_t changed; /* the last change of any, in nanoseconds since 1970 */
};

/* Messages that are kept for the JSON; the others are counted. */
enum { PROBLEMS_KEPT = 100 };

struct problem {
    enum bw_severity severity;
    struct bw_error *error;
};

struct info {
    struct bw_fs *fs;
    struct bw_superblock_info super;
    bool opened; /* the trees can be read */
    size_t stale_devices;
    struct group *groups;
    size_t group_count, group_capacity;
    struct problem problems[PROBLEMS_KEPT];
    size_t problem_count;
    size_t disk_count;
    struct sheet sheet;
};

static void note_problem(void *context, enum bw_severity severity, const struct bw_error *error)
{
    struct info *info = context;
    if (severity == BW_NOTE)
        return;
    if (info->problem_count < PROBLEMS_KEPT)
        info->problems[info->problem_count] = (struct problem){severity, bw_error_copy(error)};
    info->problem_count++;
}

/* A part of the answer that is missing. */
static void report(struct info *info, struct bw_error *error)
{
    if (error)
        bw_fs_report(info->fs, BW_DAMAGE, error);
}

/* Chunks. */

static struct bw_error *add_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct info *info = context;
    const char *type = bw_chunk_type_name(chunk->type);
    struct group *group = info->groups, *end = group + info->group_count;
    while (group < end &&
           (strcmp(group->type, type) != 0 || strcmp(group->profile, chunk->profile) != 0))
        group++;
    if (group == end) {
        if (!BW_ARRAY_RESERVE(info->groups, info->group_count, info->group_capacity))
            return bw_error_no_memory();
        group = &info->groups[info->group_count++];
        *group = (struct group){.type = type, .profile = chunk->profile};
    }
    group->bytes += chunk->length;
    group->chunks++;
    return NULL;
}

static void put_group(struct sheet *sheet, const struct group *group)
{
    char label[32], size[BW_SIZE_ROOM + 1];
    sheet_object(sheet, NULL);
    sheet_text(sheet, "type", group->type);
    sheet_text(sheet, "profile", group->profile);
    sheet_number(sheet, "size", group->bytes);
    sheet_number(sheet, "chunks", group->chunks);
    sheet_close(sheet);
    snprintf(label, sizeof label, "%s:", group->type);
    sheet_line(sheet, label, "%s, %s in %" PRIu64 " chunk%s", group->profile,
               sheet_size(size, group->bytes), group->chunks, bw_plural(group->chunks));
}

static void put_groups(struct info *info)
{
    report(info, bw_fs_chunks(info->fs, add_chunk, info));
    sheet_array(&info->sheet, "profiles");
    for (size_t i = 0; i < info->group_count; i++)
        put_group(&info->sheet, &info->groups[i]);
    sheet_close(&info->sheet);
}

/* Devices. */

static void put_device_line(struct sheet *sheet, const struct bw_device_info *device)
{
    char label[32], size[BW_SIZE_ROOM + 1], allocated[BW_SIZE_ROOM + 1];
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_buffer_format(&line, "%s, ", bw_device_state_name(device->state));
    if (device->total_bytes)
        bw_buffer_format(&line, "%s, %s allocated", sheet_size(size, device->total_bytes),
                         sheet_size(allocated, device->bytes_used));
    else
        bw_buffer_format(&line, "size not known");
    if (device->path)
        bw_buffer_format(&line, ", ");
    bw_escape_line(&line, device->path, device->path ? strlen(device->path) : 0);
    snprintf(label, sizeof label, "Device %" PRIu64 ":", device->devid);
    sheet_line(sheet, label, "%.*s", (int)line.length, line.data ? line.data : "");
}

static struct bw_error *put_device(void *context, const struct bw_device_info *device)
{
    struct info *info = context;
    struct sheet *sheet = &info->sheet;
    info->stale_devices += device->state == BW_DEVICE_STALE;
    sheet_object(sheet, NULL);
    sheet_number(sheet, "id", device->devid);
    sheet_text(sheet, "state", bw_device_state_name(device->state));
    if (device->total_bytes) {
        sheet_number(sheet, "size", device->total_bytes);
        sheet_number(sheet, "allocated", device->bytes_used);
    }
    if (!uuid_is_null(device->uuid))
        info_put_uuid(sheet, NULL, "uuid", device->uuid);
    if (device->path)
        sheet_text(sheet, "path", device->path);
    sheet_close(sheet);
    put_device_line(sheet, device);
    return NULL;
}

static void put_devices(struct info *info)
{
    sheet_array(&info->sheet, "devices");
    report(info, bw_fs_devices(info->fs, put_device, info));
    sheet_close(&info->sheet);
}

/* Subvolumes, and the time of the last transaction, which only they know. */

static struct bw_error *add_subvolume(void *context, const struct bw_subvolume_info *subvolume)
{
    struct subvolumes *subvolumes = context;
    int64_t changed = bw_time_nanoseconds(&subvolume->ctime);
    if (subvolume->is_deleted)
        subvolumes->deleted++;
    else if (subvolume->is_snapshot)
        subvolumes->snapshots++;
    else
        subvolumes->subvolumes++;
    if (changed > subvolumes->changed)
        subvolumes->changed = changed;
    return NULL;
}

static void put_subvolumes(struct info *info, struct subvolumes *subvolumes)
{
    struct sheet *sheet = &info->sheet;
    report(info, bw_fs_subvolumes(info->fs, false, add_subvolume, subvolumes));
    sheet_number(sheet, "subvolumes", subvolumes->subvolumes);
    sheet_number(sheet, "snapshots", subvolumes->snapshots);
    sheet_number(sheet, "deleted_subvolumes", subvolumes->deleted);
    sheet_line(sheet, "Subvolumes:", "%" PRIu64 ", and %" PRIu64 " snapshot%s, %" PRIu64 " deleted",
               subvolumes->subvolumes, subvolumes->snapshots, bw_plural(subvolumes->snapshots),
               subvolumes->deleted);
}

static void put_transaction(struct info *info, int64_t changed)
{
    enum { TO_THE_SECOND = 19 };
    char date[BW_DATE_LENGTH];
    const bool log_tree = info->super.log_root;
    const bool replayed = bw_fs_status(info->fs).log_replayed;
    bw_write_date(date, changed, ' ');
    sheet_number(&info->sheet, "generation", info->super.generation);
    if (changed)
        sheet_number(&info->sheet, "changed", (uint64_t)changed);
    if (info->sheet.is_json) {
        bw_json_bool(&info->sheet.json, "log_tree", log_tree);
        bw_json_bool(&info->sheet.json, "log_replayed", replayed);
    }
    sheet_line(&info->sheet, "Transaction:", "%" PRIu64 "%s%.*s%s", info->super.generation,
               changed ? ", last change " : "", changed ? TO_THE_SECOND : 0, date,
               changed ? " UTC" : "");
    sheet_line(&info->sheet, "Log tree:",
               !log_tree  ? "none"
               : replayed ? "yes, replayed: changes that were fsynced, but not committed, are shown"
                          : "yes, not replayed: some changes were fsynced, but not committed");
}

static struct bw_error *put_table(void *context, const struct bw_partition_table *table)
{
    struct info *info = context;
    info->disk_count++;
    cmd_put_partitions(&info->sheet, table);
    return NULL;
}

/* What is wrong with the images was said when they were opened. */
static void put_disks(const struct cmd_common *common, struct info *info)
{
    const struct bw_fs_options images = cmd_fs_options(common);
    sheet_array(&info->sheet, "disks");
    bw_error_free(bw_partition_tables(&images, put_table, info));
    sheet_close(&info->sheet);
}

/* The state. */

static void put_problems(struct info *info)
{
    static const char *const names[] = {[BW_WARNING] = "warning", [BW_DAMAGE] = "damage"};
    sheet_number(&info->sheet, "problem_count", info->problem_count);
    sheet_array(&info->sheet, "problems");
    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++) {
        sheet_object(&info->sheet, NULL);
        sheet_text(&info->sheet, "severity", names[info->problems[i].severity]);
        sheet_text(&info->sheet, "message", info->problems[i].error->message);
        sheet_close(&info->sheet);
    }
    sheet_close(&info->sheet);
}

/* Chunks in use that cannot be read as a whole without the missing devices. Block groups, which
 * tell what is in use, are read only for that. */
static void count_incomplete(struct info *info, uint64_t *incomplete, uint64_t *chunks)
{
    struct bw_usage *usage = NULL;
    *incomplete = *chunks = 0;
    if (!info->opened || !bw_fs_status(info->fs).missing_devices)
        return;
    report(info, bw_fs_usage(info->fs, &usage));
    *incomplete = usage ? usage->incomplete_chunks : 0;
    *chunks = usage ? usage->chunks : 0;
    bw_usage_free(usage);
}

static void put_state(struct info *info)
{
    struct sheet *sheet = &info->sheet;
    uint64_t incomplete, chunks;
    count_incomplete(info, &incomplete, &chunks);
    const struct bw_fs_status status = bw_fs_status(info->fs);
    const char *state = !info->opened                                   ? "unreadable"
                        : status.damages                                ? "damaged"
                        : incomplete                                    ? "incomplete"
                        : status.missing_devices || info->stale_devices ? "degraded"
                                                                        : "healthy";
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    sheet_text(sheet, "state", state);
    sheet_number(sheet, "missing_devices", status.missing_devices);
    sheet_number(sheet, "stale_devices", info->stale_devices);
    sheet_number(sheet, "incomplete_chunks", incomplete);
    put_problems(info);
    bw_buffer_format(&line, "%s", state);
    if (status.missing_devices)
        bw_buffer_format(&line, ", %zu of %" PRIu64 " devices missing", status.missing_devices,
                         info->super.device_count);
    if (info->stale_devices)
        bw_buffer_format(&line, ", %zu stale", info->stale_devices);
    if (incomplete)
        bw_buffer_format(&line, ", %" PRIu64 " of %" PRIu64 " chunk%s cannot be read as a whole",
                         incomplete, chunks, chunks == 1 ? "" : "s");
    if (info->problem_count)
        bw_buffer_format(&line, "; %zu message%s on stderr", info->problem_count,
                         bw_plural(info->problem_count));
    sheet_line(sheet, "State:", "%.*s", (int)line.length, line.data ? line.data : "");
}

static void put_answer(const struct cmd_common *common, struct info *info, bool json)
{
    struct subvolumes subvolumes = {0};
    sheet_begin(&info->sheet, json);
    info_put_superblock(&info->sheet, &info->super);
    if (info->opened) {
        put_groups(info);
        put_subvolumes(info, &subvolumes);
    }
    put_transaction(info, subvolumes.changed);
    if (info->opened)
        put_devices(info);
    put_state(info);
    put_disks(common, info);
    sheet_end(&info->sheet);
}

static int write_answer(const struct cmd_common *common, struct info *info, bool json)
{
    put_answer(common, info, json);
    return cmd_write_text(common, &info->sheet.text);
}

struct bw_error *cmd_info_lines(const struct cmd_common *common, struct bw_fs *fs,
                                struct bw_buffer *text)
{
    BW_AUTO_FREE struct info *info = calloc(1, sizeof *info);
    if (!info)
        return bw_error_no_memory();
    info->fs = fs;
    info->opened = true;
    bw_fs_superblock(fs, &info->super);
    put_answer(common, info, false);
    free(info->groups);
    *text = info->sheet.text;
    return text->failed ? bw_error_no_memory() : NULL;
}

/* The partitions of disks that none of them could be chosen from. */
static int write_disks(const struct cmd_common *common, struct info *info, bool json)
{
    sheet_begin(&info->sheet, json);
    put_disks(common, info);
    sheet_end(&info->sheet);
    if (info->disk_count)
        return cmd_write_text(common, &info->sheet.text);
    bw_buffer_free(&info->sheet.text);
    info->sheet = (struct sheet){.is_json = false};
    return STATUS_OK;
}

/* The newest superblock of all images, if the file system cannot be opened. False if there is
 * none. */
static bool find_superblock(struct info *info)
{
    bool found = false;
    for (size_t image = 0; image < bw_fs_image_count(info->fs); image++)
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_NUMBERS; copy++) {
            struct bw_superblock_info super;
            BW_AUTO_ERROR struct bw_error *error =
                bw_fs_read_superblock(info->fs, image, copy, &super);
            if (error || (found && super.generation <= info->super.generation))
                continue;
            info->super = super;
            found = true;
        }
    return found;
}

/* Why the file system could not be opened was said, and so was what is wrong with the copies. */
static int answer_without_trees(const struct cmd_common *common, struct info *info, bool json,
                                int status)
{
    const struct bw_fs_options how = cmd_fs_options(common);
    BW_AUTO_ERROR struct bw_error *error = bw_fs_open_images(&how, &info->fs);
    if (!error && find_superblock(info)) {
        int written = write_answer(common, info, json);
        status = written || status == STATUS_CANNOT ? STATUS_PARTIAL : status;
    }
    bw_fs_close(info->fs);
    return status;
}

static int answer(const struct cmd_common *common, struct info *info, bool json)
{
    struct cmd_session session;
    int status = cmd_open(common, &session);
    if (status == STATUS_CANNOT && write_disks(common, info, json))
        return STATUS_PARTIAL;
    if (status)
        return info->disk_count ? status : answer_without_trees(common, info, json, status);
    info->fs = session.fs;
    info->opened = true;
    bw_fs_superblock(info->fs, &info->super);
    status = write_answer(common, info, json);
    int closed = cmd_close(common, &session);
    return closed ? closed : status;
}

static int run(const struct cmd_common *common, void *state)
{
    BW_AUTO_FREE struct info *info = calloc(1, sizeof *info);
    struct cmd_common listening = *common;
    if (!info)
        return cmd_fail(common, bw_error_no_memory());
    listening.listener = (struct bw_reporter){note_problem, info};
    listening.lists_partitions = true;
    int status = answer(&listening, info, ((const struct info_state *)state)->json);
    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++)
        bw_error_free(info->problems[i].error);
    free(info->groups);
    return status;
}

const struct command cmd_info = {
    .name = "info",
    .topic = cmd_topic_volume,
    .operands = "IMAGE...",
    .summary = "Prints what a file system is: size, profiles, features, devices, state.",
    .details = "\n"
               "Answers from the superblocks, the chunk tree and the root tree alone. The date is "
               "that of the\nlast change in any subvolume. The state is healthy; degraded, if "
               "devices are missing or have\nmissed transactions; incomplete, if the missing ones "
               "leave only a part of chunks that are in use;\ndamaged, if part of these trees "
               "is lost; or unreadable, if the superblock is all that can be read.\nOf a disk, the "
               "partitions are listed as well. \"Log "
               "tree\" tells\nwhether there is a log and whether it was replayed; 'btrfs-walk log' "
               "lists what it changes.\n",
    .examples = "  btrfs-walk info disk.img                 one screen\n"
                "  btrfs-walk info --json a.img b.img | jq -r .state\n"
                "                                           for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct info_state),
};
