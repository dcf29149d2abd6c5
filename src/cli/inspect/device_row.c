/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of devices. A missing device is known by its item in the chunk tree; if that is lost,
 * too, its size is unknown. */
#include "cli/inspect/device_row.h"

#include <string.h>
#include <uuid/uuid.h>

#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"

const char *const device_use_words[] = {[BW_USE_CHUNK] = "unused",
                                        [BW_USE_UNALLOCATED] = "unallocated",
                                        [BW_USE_RESERVED] = "reserved",
                                        [BW_USE_SUPERBLOCK] = "superblock",
                                        [BW_USE_OUTSIDE] = "outside"};

struct bw_deviceinfo device_row(const struct bw_fs *fs, const struct bw_device_info *device,
                                struct alternative_paths *paths)
{
    enum { MOST = sizeof paths->names / sizeof *paths->names };
    struct bw_names others = {NULL, 0};
    const char *other;
    while (others.length < MOST &&
           (other = bw_fs_alternative(fs, device->devid, others.length + 2)) != NULL)
        paths->names[others.length++] = (struct bw_bytes){other, strlen(other)};
    others.data = others.length ? paths->names : NULL;

    const struct bw_bytes path = {device->path, device->path ? strlen(device->path) : 0};
    return (struct bw_deviceinfo){
        .devid = device->devid,
        .device_state = bw_device_state_name(device->state),
        .size = cmd_if_known(device->total_bytes, device->total_bytes),
        .allocated = cmd_if_known(device->total_bytes, device->bytes_used),
        .uuid = {uuid_is_null(device->uuid) ? NULL : (const char *)device->uuid,
                 sizeof device->uuid},
        .device = path,
        .device_bytes = path,
        .container = device->container,
        .alternative_paths = others,
        .generation = BW_ABSENT,
        .partition = BW_ABSENT,
        .incomplete_chunks = BW_ABSENT,
        .side = BW_ABSENT,
    };
}
