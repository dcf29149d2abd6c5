/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The devices command: the devices of a file system, as `btrfs filesystem show` lists them. */
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "btrfs-walk/records.h"
#include "cli/common/answers.h"
#include "cli/common/listing.h"

struct devices_state {
    struct cmd_rows_settings rows;
};

static const struct cmd_option options[] = {
    CMD_GROUP(cmd_rows_options, struct devices_state, rows),
    {0},
};

static struct bw_error *take(void *context, const struct bw_device_info *device)
{
    bool missing = device->state == BW_DEVICE_MISSING;
    const uint64_t unsized = BW_MEMBER(deviceinfo, size) | BW_MEMBER(deviceinfo, allocated);
    const struct bw_bytes path = {device->path, device->path ? strlen(device->path) : 0};
    const struct bw_deviceinfo row = {
        .id = device->devid,
        .state = bw_device_state_name(device->state),
        .size = device->total_bytes,
        .allocated = device->bytes_used,
        .generation = device->generation,
        .uuid = {uuid_is_null(device->uuid) ? NULL : (const char *)device->uuid,
                 sizeof device->uuid},
        .path = path,
        .path_bytes = path,
        .partition = device->partition};
    return cmd_listing_write(context, &row, sizeof row,
                             (missing ? BW_MEMBER(deviceinfo, generation) : 0) |
                                 (device->total_bytes ? 0 : unsized) |
                                 (device->partition ? 0 : BW_MEMBER(deviceinfo, partition)));
}

static struct bw_error *list(struct cmd_listing *listing, void *context)
{
    (void)context;
    return bw_fs_devices(listing->session.fs, take, listing);
}

const struct cmd_listing_plan cmd_devices_plan = {
    .record = "deviceinfo",
    .columns = "id,state,size,allocated,generation,uuid,path",
    .list = list,
};

static int run(const struct cmd_common *common, void *state)
{
    const struct devices_state *devices = state;
    return cmd_listing_run(common, &devices->rows, &cmd_devices_plan);
}

const struct command cmd_devices = {
    .name = "devices",
    .topic = cmd_topic_volume,
    .operands = "IMAGE...",
    .summary = "Lists the devices of a file system, with those that are missing.",
    .details = "\n"
               "For each device: its id, whether an image of it was given, its size, how much of "
               "it is\nallocated to chunks, the generation of its superblock, its uuid, and the "
               "image. A device is\nstale if it missed transactions that others have, as after "
               "it was disconnected for a while.\n" CMD_LISTING_DETAILS,
    .examples = "  btrfs-walk devices a.img b.img               a table\n"
                "  btrfs-walk devices -o id,path --raw a.img    columns\n"
                "  btrfs-walk devices --json a.img | jq .state  for programs\n",
    .options = options,
    .record = "deviceinfo",
    .run = run,
    .state_size = sizeof(struct devices_state),
};
