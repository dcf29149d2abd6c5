/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The devices command: the devices of a file system, as `btrfs filesystem show` lists them; and
 * the consequences of losing some of them. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/generated.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/inspect/device_row.h"
#include "cli/inspect/plans.h"

struct devices_state {
    struct bw_numbers without; /* devids */
    bool list;
};

static const struct cmd_option options[] = {
    {0, "without", "DEVID",
     "show which files stay readable if this device fails or is stale (can be repeated)",
     CMD_NUMBERS(struct devices_state, without, 0, UINT64_MAX, "the number of a device")},
    {0, "list", NULL, "with --without: list the files that lose something",
     CMD_FLAG(struct devices_state, list)},
    {0},
};

static struct bw_error *list(struct cmd_format *format, void *context)
{
    (void)context;
    struct bw_fs *fs = format->session.fs;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    struct bw_usage *usage = NULL; /* only if a device is missing */
    if (bw_fs_status(fs).missing_devices)
        BW_TRY(bw_fs_usage(fs, &usage));
    /* With missing devices, a file system may be degraded, but still complete thanks to redundancy;
     * or incomplete. */
    if (usage && usage->incomplete_chunks)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_MISSING_DEVICE,
                                     "the file system is incomplete: %" PRIu64 " of %" PRIu64
                                     " chunk%s cannot be read as a whole; 'btrfs-walk check' "
                                     "lists them",
                                     usage->incomplete_chunks, usage->chunks,
                                     usage->chunks == 1 ? "" : "s"));
    struct bw_error *error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        struct alternative_paths paths;
        struct bw_deviceinfo row = device_row(fs, device, &paths);
        if (device->partition)
            row.partition = device->partition;
        if (device->state == BW_DEVICE_MISSING)
            row.incomplete_chunks = 0;
        else
            row.generation = device->generation;
        for (size_t k = 0; usage && k < usage->device_count; k++)
            if (usage->devices[k].info.devid == device->devid && device->state == BW_DEVICE_MISSING)
                row.incomplete_chunks = usage->devices[k].incomplete_chunks;
        error = cmd_format_write(format, &row, sizeof row);
    }
    bw_usage_free(usage);
    return error;
}

const struct cmd_format_plan cmd_devices_plan = {
    .record = "deviceinfo",
    .columns = "devid,device_state,size,allocated,generation,uuid,device",
    .list = list,
};

/* Without some devices. */

static struct bw_error *print_loss(struct cmd_format *format, const void *record)
{
    const struct bw_devicelossinfo *row = record;
    const struct bw_device_loss *loss = row->groups.context;
    const struct cmd_format_settings *settings = &format->settings;
    const int width = settings->raw ? 18 : 10;
    struct bw_buffer *text = &format->text;
    bw_buffer_format(text, "%-14s %-8s %7s %*s %*s %*s %*s\n", "type", "profile", "chunks", width,
                     "used", width, "readable", width, "exposed", width, "lost");
    for (size_t i = 0; i < loss->group_count; i++) {
        const struct bw_device_loss_group *group = &loss->groups[i];
        if (!group->chunks)
            continue;
        bw_buffer_format(text, "%-14s %-8s %7" PRIu64, bw_chunk_type_name(group->type),
                         group->profile, group->chunks);
        bw_buffer_format(text, " %*s %*s %*s %*s\n", width, cmd_size(settings, group->used).text,
                         width, cmd_size(settings, group->used - group->lost).text, width,
                         cmd_size(settings, group->exposed).text, width,
                         cmd_size(settings, group->lost).text);
    }
    bw_buffer_append_byte(text, '\n');
    if (row->exposed_chunks)
        bw_buffer_format(text, "%" PRIu64 " of %" PRIu64 " chunk%s: no redundancy is left.\n",
                         row->exposed_chunks, row->chunks, bw_plural(row->chunks));
    if (row->lost_chunks)
        bw_buffer_format(text, "%" PRIu64 " of %" PRIu64 " chunk%s: lost, completely or in part.\n",
                         row->lost_chunks, row->chunks, bw_plural(row->chunks));
    if (loss->nothing_readable)
        bw_buffer_format(text,
                         "The chunk tree or the root tree is lost, so a mount fails: "
                         "%" PRIu64 " file%s.\n",
                         row->files, bw_plural(row->files));
    else if (!row->lost_chunks)
        bw_buffer_format(text, "All files can be read.\n");
    else
        bw_buffer_format(text,
                         "%" PRIu64 " of %" PRIu64 " file%s cannot be read completely, "
                         "%" PRIu64 " of them not at all.\n",
                         row->affected_files, row->files, bw_plural(row->files), row->lost_files);
    if (loss->metadata_lost && !loss->nothing_readable)
        bw_buffer_format(text, "Metadata are lost: a mount may fail, and more files are "
                               "unreachable if their directories are lost.\n");
    return NULL;
}

static struct bw_error *list_groups(void *context, struct bw_record_sink *sink)
{
    const struct bw_device_loss *loss = context;
    for (size_t i = 0; i < loss->group_count; i++) {
        const struct bw_device_loss_group *group = &loss->groups[i];
        const struct bw_lossgroupinfo row = {
            .chunk_type = bw_chunk_type_name(group->type),
            .profile = group->profile,
            .chunks = group->chunks,
            .used = group->used,
            .readable_bytes = group->used - group->lost,
            .exposed_chunks = group->exposed_chunks,
            .exposed_bytes = group->exposed,
            .lost_chunks = group->lost_chunks,
            .lost_bytes = group->lost,
            .complete = group->complete,
        };
        if (group->chunks)
            BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *write_lost_file(void *context, const struct bw_lost_file *file)
{
    const struct bw_lostfileinfo row = {
        .recoverable = file->lost >= file->bytes ? "lost" : "partly",
        .path = file->path,
        .path_bytes = file->path,
        .size = file->size,
        .bad_bytes = file->lost,
        .metadata_lost = file->metadata_lost,
        .subvolume = bw_subvolume_id(file->subvolume),
        .inode = file->inode,
    };
    return cmd_format_write(context, &row, sizeof row);
}

/* One path a line. */
static struct bw_error *print_lost_file(struct cmd_format *format, const void *record)
{
    const struct bw_lostfileinfo *row = record;
    if (!row->path.data) {
        bw_buffer_format(&format->text, "inode %" PRIu64 " of subvolume %" PRIu64, row->inode,
                         row->subvolume);
        bw_buffer_append_byte(&format->text, format->common->format.null ? '\0' : '\n');
    } else if (format->common->format.null) {
        bw_buffer_append(&format->text, row->path.data, row->path.length);
        bw_buffer_append_byte(&format->text, '\0');
    } else {
        bw_escape_line(&format->text, row->path.data, row->path.length);
        bw_buffer_append_byte(&format->text, '\n');
    }
    return NULL;
}

static struct bw_error *list_without(struct cmd_format *format, void *context)
{
    const struct devices_state *state = context;
    const struct bw_device_loss_options how = {.struct_size = sizeof how,
                                               .devids = state->without.items,
                                               .count = state->without.count,
                                               .visit = state->list ? write_lost_file : NULL,
                                               .context = format};
    struct bw_device_loss *loss;
    cmd_progress_expect_trees(format->session.fs, true);
    BW_TRY(bw_fs_device_loss(format->session.fs, &how, &loss));
    struct bw_error *error = NULL;
    if (!state->list) {
        struct bw_devicelossinfo row = {
            .recoverable = "all",
            .metadata_lost = loss->metadata_lost,
            .files = loss->files,
            .affected_files = loss->affected_files,
            .lost_files = loss->lost_files,
            .groups = {list_groups, loss},
        };
        for (size_t i = 0; i < loss->group_count; i++) {
            row.chunks += loss->groups[i].chunks;
            row.exposed_chunks += loss->groups[i].exposed_chunks;
            row.lost_chunks += loss->groups[i].lost_chunks;
            row.lost_bytes += loss->groups[i].lost;
        }
        if (row.lost_chunks)
            row.recoverable = loss->nothing_readable ? "nothing" : "partly";
        else
            row.files = BW_ABSENT;
        error = cmd_format_write(format, &row, sizeof row);
    } else if (loss->nothing_readable) {
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_MISSING_DEVICE,
                                     "the chunk tree or the root tree would be lost, so a mount "
                                     "would fail"));
    }
    bw_device_loss_free(loss);
    return error;
}

static struct cmd_format_plan plan_of(const void *context)
{
    const struct devices_state *state = context;
    if (!state->without.count)
        return cmd_devices_plan;
    if (state->list)
        return (struct cmd_format_plan){.record = "lostfileinfo",
                                        .print = print_lost_file,
                                        .has_null = true,
                                        .list = list_without};
    return (struct cmd_format_plan){
        .record = "devicelossinfo", .print = print_loss, .has_units = true, .list = list_without};
}

static int run(const struct cmd_common *common, void *context)
{
    struct devices_state *state = context;
    struct cmd_format_plan plan = cmd_plan_of(&cmd_devices, state);
    if (state->list && !state->without.count)
        return cmd_usage_error(&cmd_devices, "--list needs --without", NULL);
    if (common->input.fs.alternatives && !state->without.count)
        plan.columns = "devid,device_state,size,allocated,generation,uuid,device,alternative_paths";
    return cmd_format_run(common, &plan);
}

const struct command cmd_devices = {
    .name = "devices",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Lists the devices of a file system, including missing ones.",
    .details =
        "\n"
        "For each device, prints its id, whether its image was given, its size, how much of\n"
        "it is allocated to chunks, the generation of its superblock, its uuid, and the\n"
        "image, with --alternatives all of its images. A device is stale if it missed transactions "
        "that other devices have, for\n"
        "example while it was disconnected. A message reports if chunks cannot be read\n"
        "completely without the missing devices.\n\n"
        "--without answers what the loss of a device would mean, in addition to the missing\n"
        "ones: by type and profile of chunks, the bytes in use, how many of them can still be\n"
        "read, how many of these have lost their redundancy (exposed), and how many are lost;\n"
        "then the number of regular files that lose something, in all subvolumes and snapshots.\n"
        "--list prints the paths of these files. A device that is stale counts as gone only\n"
        "with --without. The exit status is 0 also if data would be lost.\n",
    .examples = "  btrfs-walk devices a.img b.img                      a table\n"
                "  btrfs-walk devices -o devid,device --raw a.img      columns\n"
                "  btrfs-walk devices --json a.img | jq .device_state  for programs\n"
                "  btrfs-walk devices --without 2 a.img b.img          if device 2 fails\n"
                "  btrfs-walk devices --without 2 --list a.img b.img   the files it would cost\n",
    .options = options,
    .record = "deviceinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .run = run,
    .state_size = sizeof(struct devices_state),
};
