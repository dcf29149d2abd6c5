/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/partition: shows a partition of the disk below as a separate device. The partition table
 * has its range (partition_table.c); the rest is the same as in layout/window.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/partition_table.h"
#include "xlators/layout/window.h"

static const struct bw_piece_map pieces = {"the partition ends", bw_window_locate, NULL};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_window *window = bw_xlator_private(xlator);
    struct bw_xlator *disk = bw_xlator_child(xlator, 0);
    const char *wanted = bw_xlator_option_text(xlator, "partition");
    const struct bw_partition_info *partition;
    BW_SCOPED(bw_partition_table) struct bw_partition_table table;
    struct bw_error *error = bw_partition_table_read(disk, &table);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        return bw_error_prefix(error, "%s", bw_xlator_name(disk));
    if (error)
        return error;
    BW_TRY(bw_partition_find(&table, wanted, &partition));

    bw_xlator_set_title(xlator, "%s partition %u", strcmp(table.kind, "gpt") == 0 ? "GPT" : "MBR",
                        partition->number);
    *window = (struct bw_window){&pieces, partition->offset, partition->room};
    if (!partition->room)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "partition %u begins at %" PRIu64 ", after the end of the image",
                               partition->number, partition->offset);
    if (partition->room < partition->length)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "partition %u is cut off: the image has %" PRIu64
                                         " of its %" PRIu64 " bytes",
                                         partition->number, partition->room, partition->length));
    return NULL;
}

/* The container. */

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    BW_SCOPED(bw_partition_table) struct bw_partition_table table;
    (void)id;
    BW_AUTO_ERROR struct bw_error *none = bw_partition_table_read(device, &table);
    return !none;
}

static struct bw_error *list(struct bw_xlator *const *devices, size_t count,
                             struct bw_strings *names)
{
    BW_SCOPED(bw_partition_table) struct bw_partition_table table;
    (void)count;
    BW_TRY(bw_partition_table_read(devices[0], &table));
    for (size_t i = 0; i < table.count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", table.partitions[i].number);
        if (table.partitions[i].room && !table.partitions[i].extended)
            BW_TRY(bw_strings_push_copy(names, number));
    }
    return NULL;
}

const struct bw_container_type bw_partition_container = {
    .layer = "layout/partition", .find = find, .option = "partition", .list = list};

static const struct bw_option options[] = {
    {"partition", BW_OPTION_STRING, NULL, 0, 0, "which partition: its number, name or UUID", NULL},
    {0},
};

static const char page[] =
    "Shows a partition of the disk below as a separate disk. libblkid reads the partition "
    "table, GPT or MBR. If the first header of a GPT is damaged, its second one is used. "
    "Logical partitions of an MBR are numbered from 5 on. Sectors have 512 bytes or 4 KiB.\n\n"
    "The default graph contains it for an image without a superblock that has a partition "
    "with a btrfs file system; --partition selects one of several. To put layers below it, "
    "insert it yourself:\n\n"
    "    btrfs-walk --insert layout/partition@device-1,partition=2 whole-disk.img\n\n"
    "A partition that extends beyond the end of the image is cut off there, with a warning.\n";

const struct bw_xlator_class bw_layout_partition_class = {
    .type = "layout/partition",
    .description = "shows a partition of a disk",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct bw_window),
    .options = options,
    .operations = {.init = init, BW_WINDOW_OPERATIONS, .title = bw_xlator_title},
};
