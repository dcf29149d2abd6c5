/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the space in use. */
#include "cli/inspect/used.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"

/* A running listing. */
struct used {
    struct cmd_answer *answer;
    const uint64_t *wanted; /* the only device to list; NULL: all */
    struct bw_used_map *map;
    const char *path; /* of the present device */
    bool found;
};

static struct bw_error *write_range(void *context, const struct bw_used_range *range)
{
    const struct used *used = context;
    const struct bw_bytes path = {used->path, used->path ? strlen(used->path) : 0};
    const struct bw_usedinfo row = {.start = range->offset,
                                    .length = range->length,
                                    .present = range->in_use,
                                    .zero = !range->in_use,
                                    .data = range->in_use,
                                    .offset = range->offset,
                                    .kind = bw_used_kind_name(range->kind),
                                    .devid = range->devid,
                                    .device = path,
                                    .device_bytes = path};
    return cmd_answer_write(used->answer, &row, sizeof row, 0);
}

static struct bw_error *list_device(void *context, const struct bw_device_info *device)
{
    struct used *used = context;
    if (used->wanted ? device->devid != *used->wanted : !device->path)
        return NULL;
    used->found = true;
    used->path = device->path;
    return bw_used_map_device(used->map, device->devid, write_range, used);
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct used *used = context;
    struct bw_fs *fs = answer->session.fs;
    used->answer = answer;
    BW_TRY(bw_used_map_open(fs, NULL, &used->map));
    struct bw_error *error = bw_fs_devices(fs, list_device, used);
    if (!error && used->wanted && !used->found)
        error = bw_error_create(
            BW_ERROR_USAGE, "there is no device %" PRIu64 "; 'devices' lists them", *used->wanted);
    bw_used_map_close(used->map);
    return error;
}

int cmd_list_used(const struct cmd_common *common, const uint64_t *devid)
{
    struct used used = {.wanted = devid};
    const struct cmd_answer_plan plan = {.record = "usedinfo",
                                         .columns = "devid,start,length,data,kind,device",
                                         .list = list,
                                         .context = &used};
    return cmd_answer_run(common, &plan);
}
