/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Partition tables: what libblkid finds in the copy of a disk becomes a list of partitions, in
 * bytes; and the partition that a word of the user means.
 */
#include "xlators/layout/partition_table.h"

#include <blkid/blkid.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "ondisk/disk.h"
#include "ondisk/superblock.h"

/* The types that are met most. Sources: the UEFI specification, the Discoverable Partitions
 * Specification, and the list of fdisk(8). */
static const struct {
    const char *type, *name;
} type_names[] = {
    {"0fc63daf-8483-4772-8e79-3d69d8477de4", "Linux filesystem"},
    {"c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "EFI System"},
    {"21686148-6449-6e6f-744e-656564454649", "BIOS boot"},
    {"0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "Linux swap"},
    {"e6d6d379-f507-44c2-a23c-238f2a3df928", "Linux LVM"},
    {"a19d880f-05fc-4d3b-a006-743f0f84911e", "Linux RAID"},
    {"bc13c2ff-59e6-4262-a352-b275fd6f7172", "Linux extended boot"},
    {"4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "Linux root (x86-64)"},
    {"b921b045-1df0-41c3-af44-4c6f280d3fae", "Linux root (ARM-64)"},
    {"933ac7e1-2eb4-4f13-b844-0e14e2aef915", "Linux home"},
    {"ca7d7ccb-63ed-4c53-861c-1742536059cc", "Linux LUKS"},
    {"ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", "Microsoft basic data"},
    {"e3c9e316-0b5c-4db8-817d-f92df00215ae", "Microsoft reserved"},
    {"de94bba4-06d1-4d40-a16a-bfd50179d6ac", "Windows recovery environment"},
    {"0x05", "Extended"},
    {"0x07", "HPFS/NTFS/exFAT"},
    {"0x0b", "W95 FAT32"},
    {"0x0c", "W95 FAT32 (LBA)"},
    {"0x0f", "W95 Ext'd (LBA)"},
    {"0x82", "Linux swap"},
    {"0x83", "Linux"},
    {"0x85", "Linux extended"},
    {"0x8e", "Linux LVM"},
    {"0xef", "EFI System"},
    {"0xfd", "Linux RAID"},
};

static const char *name_type(const char *type)
{
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type_names[i].type, type) == 0)
            return type_names[i].name;
    return "";
}

/* Cuts off what does not fit. */
#define PUT_TEXT(member, text) snprintf((member), sizeof(member), "%s", (text) ? (text) : "")

/* libblkid counts in units of 512 bytes, whatever the sectors are. False if that makes no sense. */
static bool take_partition(blkid_partition from, uint64_t size, struct bw_partition_info *to)
{
    const int64_t limit = INT64_MAX / 512;
    int64_t start = blkid_partition_get_start(from), length = blkid_partition_get_size(from);
    const char *type = blkid_partition_get_type_string(from);
    if (start < 0 || length <= 0 || start > limit || length > limit - start)
        return false;
    *to = (struct bw_partition_info){.number = (unsigned)blkid_partition_get_partno(from),
                                     .extended = blkid_partition_is_extended(from),
                                     .offset = (uint64_t)start * 512,
                                     .length = (uint64_t)length * 512};
    uint64_t room = to->offset < size ? size - to->offset : 0;
    to->room = to->length < room ? to->length : room;
    if (type)
        PUT_TEXT(to->type, type);
    else
        snprintf(to->type, sizeof to->type, "0x%02x", (unsigned)blkid_partition_get_type(from));
    to->type_name = name_type(to->type);
    PUT_TEXT(to->uuid, blkid_partition_get_uuid(from));
    PUT_TEXT(to->name, blkid_partition_get_name(from));
    return true;
}

static int by_number(const void *left, const void *right)
{
    const struct bw_partition_info *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

static struct bw_error *take_list(blkid_partlist list, uint64_t size,
                                  struct bw_partition_table *table)
{
    int count = blkid_partlist_numof_partitions(list);
    struct bw_partition_info *partitions = calloc(BW_PARTITIONS, sizeof *partitions);
    if (!partitions)
        return bw_error_no_memory();
    table->partitions = partitions;
    PUT_TEXT(table->kind, blkid_parttable_get_type(blkid_partlist_get_table(list)));
    for (int i = 0; i < count && table->count < BW_PARTITIONS; i++)
        table->count +=
            take_partition(blkid_partlist_get_partition(list, i), size, &partitions[table->count]);
    qsort(partitions, table->count, sizeof *partitions, by_number);
    return NULL;
}

/* `force`: take a GPT also if no MBR says that there is one. */
static struct bw_error *probe_file(blkid_probe probe, const struct bw_table_copy *copy, bool force,
                                   struct bw_partition_table *table)
{
    char gpt[] = "gpt", dos[] = "dos";
    char *kinds[] = {gpt, dos, NULL};
    if (blkid_probe_set_device(probe, copy->file, 0, 0) ||
        blkid_probe_set_sectorsize(probe, copy->sector_size) ||
        blkid_probe_enable_superblocks(probe, 0) || blkid_probe_enable_partitions(probe, 1) ||
        blkid_probe_set_partitions_flags(probe, force ? BLKID_PARTS_FORCE_GPT : 0) ||
        blkid_probe_filter_partitions_type(probe, BLKID_FLTR_ONLYIN, kinds))
        return bw_error_create(BW_ERROR_SYSTEM, "libblkid cannot be set up");
    blkid_partlist list = blkid_probe_get_partitions(probe);
    if (!list || blkid_partlist_numof_partitions(list) < 1)
        return bw_error_create(BW_ERROR_NOT_FOUND, "no partition table");
    table->sector_size = copy->sector_size;
    table->size = copy->size;
    return take_list(list, copy->size, table);
}

static struct bw_error *probe_copy(const struct bw_table_copy *copy, bool force,
                                   struct bw_partition_table *table)
{
    blkid_probe probe = blkid_new_probe();
    struct bw_error *error = probe ? probe_file(probe, copy, force, table) : bw_error_no_memory();
    blkid_free_probe(probe);
    return error;
}

/* Frees an error that says that there is no table; true if that is what it said. */
static bool is_none(struct bw_error **error)
{
    if (!*error || (*error)->code != BW_ERROR_NOT_FOUND)
        return false;
    bw_error_free(BW_TAKE(*error));
    return true;
}

static struct bw_error *probe_both(struct bw_table_copy *copy, bool force,
                                   struct bw_partition_table *table)
{
    BW_TRY(bw_table_copy_make(copy));
    struct bw_error *error = probe_copy(copy, force, table);
    if (error && error->code == BW_ERROR_NOT_FOUND && bw_table_copy_extend(copy)) {
        bw_error_free(error);
        error = probe_copy(copy, force, table);
    }
    return error;
}

static struct bw_error *probe(const struct bw_frame *frame, struct bw_xlator *disk,
                              uint32_t sector_size, bool force, struct bw_partition_table *table)
{
    struct bw_table_copy copy = {frame, disk, bw_xlator_size(disk), sector_size, -1, false};
    *table = (struct bw_partition_table){.kind = ""};
    struct bw_error *error = probe_both(&copy, force, table);
    bw_table_copy_free(&copy);
    if (error)
        bw_partition_table_free(table);
    return error;
}

/* Whether a btrfs begins where a partition does. */
static bool holds_btrfs(const struct bw_frame *frame, struct bw_xlator *disk,
                        const struct bw_partition_table *table)
{
    struct bw_disk_superblock block;
    for (size_t i = 0; i < table->count; i++) {
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = sizeof block,
                                     .address =
                                         table->partitions[i].offset + bw_superblock_offset(0),
                                     .buffer = &block};
        if (table->partitions[i].room < bw_superblock_offset(0) + sizeof block)
            continue;
        bw_wind(frame, disk, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        if (!error && bw_get64(block.magic) == BW_SUPERBLOCK_MAGIC)
            return true;
    }
    return false;
}

/* A GPT is found at the size of the sectors that it was made for. An MBR does not say what it
 * counts in: 512 bytes, unless nothing is there and something is where sectors of 4 KiB would put
 * it. */
static struct bw_error *probe_sizes(const struct bw_frame *frame, struct bw_xlator *disk,
                                    bool force, struct bw_partition_table *table)
{
    struct bw_partition_table large;
    struct bw_error *error = probe(frame, disk, 512, force, table);
    bool none = is_none(&error);
    if (error || (!none && (strcmp(table->kind, "dos") != 0 || holds_btrfs(frame, disk, table))))
        return error;
    error = probe(frame, disk, 4096, force, &large);
    if (none) {
        *table = large;
        return error;
    }
    bool better = !error && holds_btrfs(frame, disk, &large);
    bw_error_free(error);
    struct bw_partition_table *worse = better ? table : &large;
    bw_partition_table_free(worse);
    if (better)
        *table = large;
    return NULL;
}

struct bw_error *bw_partition_table_read(const struct bw_frame *frame, struct bw_xlator *disk,
                                         struct bw_partition_table *table)
{
    struct bw_error *error = probe_sizes(frame, disk, false, table);
    return is_none(&error) ? probe_sizes(frame, disk, true, table) : error;
}

void bw_partition_table_free(struct bw_partition_table *table)
{
    free((void *)(uintptr_t)table->partitions);
    *table = (struct bw_partition_table){.kind = ""};
}

/* Finding one. */

static bool fits(const struct bw_partition_info *partition, const char *wanted, bool is_number,
                 uint64_t number)
{
    if (is_number)
        return partition->number == number;
    return strcasecmp(partition->uuid, wanted) == 0 || strcmp(partition->name, wanted) == 0 ||
           strcmp(partition->label, wanted) == 0 ||
           strcasecmp(partition->content_uuid, wanted) == 0;
}

static struct bw_error *refuse(const struct bw_partition_table *table, const char *wanted,
                               struct bw_buffer *several)
{
    BW_AUTO_BUFFER struct bw_buffer names = {0};
    if (several->length)
        return bw_error_create(BW_ERROR_USAGE,
                               "several partitions are called %s: give one of the numbers %.*s",
                               wanted, (int)several->length, several->data);
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        const char *name = *partition->name ? partition->name : partition->label;
        bw_buffer_format(&names, "%s%u", i ? ", " : "", partition->number);
        if (*name)
            bw_buffer_format(&names, " (%s)", name);
    }
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no partition %s; there are: %.*s", wanted,
                           (int)names.length, names.data ? names.data : "");
}

struct bw_error *bw_partition_find(const struct bw_partition_table *table, const char *wanted,
                                   const struct bw_partition_info **found)
{
    BW_AUTO_BUFFER struct bw_buffer several = {0};
    const char *rest = wanted;
    uint64_t number = 0;
    bool is_number = bw_parse_digits(&rest, 10, &number) && !*rest;
    size_t count = 0;
    *found = NULL;
    for (size_t i = 0; *wanted && i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        if (!fits(partition, wanted, is_number, number))
            continue;
        bw_buffer_format(&several, "%s%u", several.length ? ", " : "", partition->number);
        *found = partition;
        count++;
    }
    return count == 1 ? NULL : refuse(table, wanted, &several);
}
