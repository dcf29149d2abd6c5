/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in the partitions of a disk. */
#include "fs/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "ondisk/superblock.h"
#include "graph/identify.h"
#include "xlators/layout/partition_table.h"

/* The partitions belong to the disk. */
static struct bw_partition_info *partition_of(const struct bw_disk *disk, size_t index)
{
    return (struct bw_partition_info *)(uintptr_t)disk->table.partitions + index;
}

/* Reads a copy of the superblock in a partition. */
static void read_copy(const struct bw_frame *frame, struct bw_disk *disk, size_t index,
                      unsigned copy)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    struct bw_partition_content *content = &disk->contents[index];
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    uint64_t offset = bw_superblock_offset(copy);
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof bytes,
                                 .address = partition->offset + offset,
                                 .buffer = bytes};
    if (partition->room < offset + sizeof bytes)
        return;
    bw_wind(frame, disk->storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error =
        request.error ? request.error : bw_superblock_decode(bytes, offset, &content->superblock);
    content->good = !error;
    partition->btrfs |= !error || error->code == BW_ERROR_CORRUPT;
}

static void look_into(const struct bw_frame *frame, struct bw_disk *disk, size_t index)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    const struct bw_partition_content *content = &disk->contents[index];
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !content->good; copy++)
        read_copy(frame, disk, index, copy);
    if (!partition->btrfs)
        return;
    disk->has_btrfs = true;
    snprintf(partition->content, sizeof partition->content, "%s",
             content->good ? "btrfs" : "btrfs without a good superblock");
    if (!content->good)
        return;
    snprintf(partition->label, sizeof partition->label, "%s", content->superblock.label);
    bw_uuid_text(content->superblock.fsid, partition->content_uuid);
}

struct bw_error *bw_disk_open(const struct bw_frame *frame, const struct bw_image *image,
                              struct bw_disk **result)
{
    struct bw_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *none =
        bw_partition_table_read(frame, image->storage, &disk->table);
    disk->storage = image->storage;
    disk->table.path = image->path;
    disk->contents = none ? NULL : calloc(disk->table.count, sizeof *disk->contents);
    if (!disk->contents) {
        bw_disk_free(disk);
        return none ? NULL : bw_error_no_memory();
    }
    for (size_t i = 0; i < disk->table.count; i++)
        look_into(frame, disk, i);
    *result = disk;
    return NULL;
}

void bw_disk_free(struct bw_disk *disk)
{
    if (!disk)
        return;
    bw_partition_table_free(&disk->table);
    free(disk->contents);
    free(disk);
}

void bw_disk_identify(const struct bw_frame *frame, struct bw_disk *disk)
{
    for (size_t i = 0; i < disk->table.count; i++) {
        struct bw_partition_info *partition = partition_of(disk, i);
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        if (!partition->btrfs && !partition->extended && partition->room &&
            bw_identify(frame, disk->storage, partition->offset, partition->room, &name))
            snprintf(partition->content, sizeof partition->content, "%.*s", (int)name.length,
                     name.data);
    }
}

struct bw_error *bw_disk_refuse(const struct bw_disk *disk)
{
    enum { NAMED = 16 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    size_t named = 0;
    for (size_t i = 0; i < disk->table.count && named < NAMED; i++) {
        const struct bw_partition_info *partition = &disk->table.partitions[i];
        if (!*partition->content)
            continue;
        bw_buffer_format(&text, "; partition %u is %s", partition->number, partition->content);
        named++;
    }
    return bw_error_create(BW_ERROR_NOT_BTRFS,
                           "it is a disk with %s partition table, and no partition holds btrfs%.*s",
                           strcmp(disk->table.kind, "gpt") == 0 ? "a GPT" : "an MBR",
                           (int)text.length, text.data ? text.data : "");
}
