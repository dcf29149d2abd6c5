/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The devices command: the devices of a file system, as `btrfs filesystem show` lists them. */
#include <inttypes.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"
#include "cli/inspect/alternatives.h"
#include "cli/inspect/plans.h"

/* `usage` is NULL if no device is missing. */
static struct bw_error *write_device(struct cmd_format *format, const struct bw_usage *usage,
                                     const struct bw_device_info *device)
{
    uint64_t incomplete = 0;
    for (size_t i = 0; usage && i < usage->device_count; i++)
        if (usage->devices[i].info.devid == device->devid)
            incomplete = usage->devices[i].incomplete_chunks;
    const struct bw_bytes path = {device->path, device->path ? strlen(device->path) : 0};
    struct alternative_paths paths;
    const struct bw_deviceinfo row = {
        .devid = device->devid,
        .device_state = bw_device_state_name(device->state),
        .size = device->total_bytes,
        .allocated = device->bytes_used,
        .generation = device->generation,
        .uuid = {uuid_is_null(device->uuid) ? NULL : (const char *)device->uuid,
                 sizeof device->uuid},
        .device = path,
        .device_bytes = path,
        .partition = device->partition,
        .incomplete_chunks = incomplete,
        .container = device->container,
        .alternative_paths = alternative_paths_of(format->session.fs, device->devid, &paths)};
    uint64_t absent = BW_MEMBER(deviceinfo, incomplete_chunks);
    if (device->state == BW_DEVICE_MISSING)
        absent = BW_MEMBER(deviceinfo, generation);
    if (!device->total_bytes)
        absent |= BW_MEMBER(deviceinfo, size) | BW_MEMBER(deviceinfo, allocated);
    if (!device->partition)
        absent |= BW_MEMBER(deviceinfo, partition);
    if (!device->container)
        absent |= BW_MEMBER(deviceinfo, container);
    return cmd_format_write(format, &row, sizeof row, absent);
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    (void)context;
    struct bw_fs *fs = format->session.fs;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    struct bw_usage *usage = NULL;
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
    for (size_t i = 0; !error && i < devices.count; i++)
        error = write_device(format, usage, &devices.items[i]);
    bw_usage_free(usage);
    return error;
}

const struct cmd_format_plan cmd_devices_plan = {
    .record = "deviceinfo",
    .columns = "devid,device_state,size,allocated,generation,uuid,device",
    .list = list,
};

static int run(const struct cmd_common *common, void *state)
{
    struct cmd_format_plan plan = cmd_devices_plan;
    (void)state;
    if (common->input.alternatives)
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
        "completely without the missing devices.\n",
    .examples = "  btrfs-walk devices a.img b.img                      a table\n"
                "  btrfs-walk devices -o devid,device --raw a.img      columns\n"
                "  btrfs-walk devices --json a.img | jq .device_state  for programs\n",
    .options = cmd_no_options,
    .record = "deviceinfo",
    .run = run,
};
