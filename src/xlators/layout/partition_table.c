/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Partition tables: reading them with libblkid, and finding a partition.
 *
 * libblkid reads from a file descriptor, but the bytes come from a layer. So it gets a copy of the
 * disk: a sparse file in memory that is as long as the disk, and contains only the ranges that can
 * belong to a partition table: the beginning and the end, the entries of a GPT, and the chain of
 * the boot records of logical partitions. The size of sectors is not known, so both are tried.
 *
 * Sources: the UEFI specification, 5.3 (GPT); for the chain, block/partitions/msdos.c of the
 * kernel.
 */
#include "xlators/layout/partition_table.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/endian.h"
#include "base/human.h"
#include "base/whole_io.h"
#include "graph/wind.h"
#include "ondisk/disk.h"
#include "ondisk/superblock.h"

enum {
    END_BYTES = 64 << 10,    /* bytes that are read at the beginning and at the end */
    ENTRIES_BYTES = 1 << 20, /* maximum size of the entries of a GPT: libblkid would read up to 4
                              * GiB */
    BOOT_RECORD_BYTES = 512,
    BOOT_RECORDS = BW_PARTITIONS, /* maximum number */
};

struct gpt_header {
    bw_le64 signature;
    bw_le32 revision, header_size, header_crc, reserved;
    bw_le64 own_sector, other_sector, first_usable, last_usable;
    uint8_t disk_id[16];
    bw_le64 entries_sector;
    bw_le32 entry_count, entry_size, entries_crc;
};

/* "EFI PART", read as a little-endian number. */
#define GPT_SIGNATURE UINT64_C(0x5452415020494645)

struct boot_record {
    uint8_t code[446];
    struct {
        uint8_t status, first_chs[3], type, last_chs[3];
        bw_le32 first_sector, sector_count;
    } entries[4];
    uint8_t signature[2];
};

_Static_assert(sizeof(struct boot_record) == BOOT_RECORD_BYTES, "layout of a boot record");
_Static_assert(offsetof(struct gpt_header, entries_sector) == 72, "layout of a GPT header");

/* A file in memory with the parts of a disk that libblkid needs, at their offsets. */
struct disk_copy {
    struct bw_xlator *disk;
    uint64_t size; /* size of the disk, in bytes */
    uint32_t sector_size;
    int file; /* sparse, in memory; -1: none */
    bool failed;
};

static bool read_disk(const struct disk_copy *copy, uint64_t offset, void *bytes, size_t length)
{
    return bw_try_read_raw(NULL, copy->disk, offset, bytes, length);
}

/* Copies a range; bytes that cannot be read stay zero. */
static void copy_range(struct disk_copy *copy, uint64_t offset, uint64_t length)
{
    uint8_t bytes[16 << 10];
    if (offset > copy->size)
        return;
    length = bw_min(length, copy->size - offset);
    for (size_t count; length; offset += count, length -= count) {
        count = (size_t)bw_min(length, sizeof bytes);
        if (read_disk(copy, offset, bytes, count))
            copy->failed |= pwrite(copy->file, bytes, count, (off_t)offset) != (ssize_t)count;
    }
}

static bool read_header(const struct disk_copy *copy, uint64_t offset, struct gpt_header *header)
{
    return read_disk(copy, offset, header, sizeof *header) &&
           bw_get64(header->signature) == GPT_SIGNATURE;
}

/* Whether anything begins like a table: without that, libblkid cannot find one, and most images
 * have none. */
static bool may_have_table(const struct disk_copy *copy)
{
    const uint64_t sectors = copy->size / copy->sector_size;
    struct boot_record record;
    struct gpt_header header;
    return (read_disk(copy, 0, &record, sizeof record) && record.signature[0] == 0x55 &&
            record.signature[1] == 0xaa) ||
           read_header(copy, copy->sector_size, &header) ||
           (sectors && read_header(copy, (sectors - 1) * copy->sector_size, &header));
}

/* Copies the entries of a GPT; removes the signature of a header with too many. */
static void copy_entries(struct disk_copy *copy, uint64_t offset)
{
    static const uint8_t nothing[8];
    struct gpt_header header;
    if (!read_header(copy, offset, &header))
        return;
    uint64_t bytes = (uint64_t)bw_get32(header.entry_count) * bw_get32(header.entry_size);
    uint64_t sector = bw_get64(header.entries_sector);
    if (bytes > ENTRIES_BYTES)
        copy->failed |=
            pwrite(copy->file, nothing, sizeof nothing, (off_t)offset) != sizeof nothing;
    else if (sector <= copy->size / copy->sector_size)
        copy_range(copy, sector * copy->sector_size, bytes);
}

static bool is_extended(uint8_t type)
{
    return type == 0x05 || type == 0x0f || type == 0x85;
}

/* Copies a chain of boot records as long as their addresses ascend. */
static void copy_chain(struct disk_copy *copy, uint64_t first, unsigned *left)
{
    struct boot_record record;
    uint64_t sector = first, next = first;
    for (; *left && read_disk(copy, next * copy->sector_size, &record, sizeof record); --*left) {
        sector = next;
        copy_range(copy, sector * copy->sector_size, sizeof record);
        for (unsigned i = 0; i < 4 && next == sector; i++)
            if (is_extended(record.entries[i].type) && bw_get32(record.entries[i].sector_count))
                next = first + bw_get32(record.entries[i].first_sector);
        if (next <= sector)
            return;
    }
}

/* Makes a copy of everything on the disk that libblkid needs. */
static struct bw_error *make_copy(struct disk_copy *copy)
{
    const uint64_t last = copy->size / copy->sector_size * copy->sector_size;
    struct boot_record record;
    unsigned left = BOOT_RECORDS;
    copy->file = bw_memory_file(copy->size);
    if (copy->file < 0)
        return bw_error_from_errno(errno, "cannot make a file in memory");
    copy_range(copy, 0, END_BYTES);
    copy_range(copy, copy->size > END_BYTES ? copy->size - END_BYTES : 0, END_BYTES);
    copy_entries(copy, copy->sector_size);
    if (last)
        copy_entries(copy, last - copy->sector_size);
    const bool is_read = read_disk(copy, 0, &record, sizeof record);
    for (unsigned i = 0; is_read && i < 4; i++)
        if (is_extended(record.entries[i].type))
            copy_chain(copy, bw_get32(record.entries[i].first_sector), &left);
    if (copy->failed)
        return bw_error_create(BW_ERROR_SYSTEM, "cannot write to a file in memory");
    return NULL;
}

/* Extends the file to the size of the disk in its GPT; false if that is not larger. libblkid
 * accepts no GPT on a disk that was cut off. */
static bool extend_copy(struct disk_copy *copy)
{
    struct gpt_header header;
    if (!read_header(copy, copy->sector_size, &header))
        return false;
    const uint64_t last = bw_max(bw_get64(header.other_sector), bw_get64(header.last_usable));
    return last < INT64_MAX / copy->sector_size && last >= copy->size / copy->sector_size &&
           bw_resize_file(copy->file, (last + 1) * copy->sector_size);
}

/* Turns the partitions that libblkid finds in the copy into a list, in bytes. */

/* The most common types. Sources: the UEFI specification, the Discoverable Partitions
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

/* Truncates a name that does not fit. */
#define PUT_TEXT(member, text) snprintf((member), sizeof(member), "%s", (text) ? (text) : "")

/* libblkid counts in units of 512 bytes, regardless of the sector size. False if the range is
 * invalid. */
static bool convert_partition(blkid_partition from, uint64_t size, struct bw_partition_info *to)
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
    to->room = to->offset < size ? bw_min(to->length, size - to->offset) : 0;
    if (type)
        PUT_TEXT(to->type, type);
    else
        snprintf(to->type, sizeof to->type, "0x%02x", (unsigned)blkid_partition_get_type(from));
    to->type_name = "";
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type_names[i].type, to->type) == 0)
            to->type_name = type_names[i].name;
    PUT_TEXT(to->uuid, blkid_partition_get_uuid(from));
    PUT_TEXT(to->name, blkid_partition_get_name(from));
    return true;
}

static int by_number(const void *left, const void *right)
{
    const struct bw_partition_info *a = left, *b = right;
    return bw_compare(a->number, b->number);
}

static void free_probe(blkid_probe *probe)
{
    blkid_free_probe(*probe);
}

/* Finds the partitions in a copy. `force`: accept a GPT even without a protective MBR. */
static struct bw_error *probe_copy(const struct disk_copy *copy, bool force,
                                   struct bw_partition_table *table)
{
    char gpt[] = "gpt", dos[] = "dos";
    char *kinds[] = {gpt, dos, NULL};
    __attribute__((cleanup(free_probe))) blkid_probe probe = blkid_new_probe();
    if (!probe)
        return bw_error_no_memory();
    if (blkid_probe_set_device(probe, copy->file, 0, 0) ||
        blkid_probe_set_sectorsize(probe, copy->sector_size) ||
        blkid_probe_enable_superblocks(probe, 0) || blkid_probe_enable_partitions(probe, 1) ||
        blkid_probe_set_partitions_flags(probe, force ? BLKID_PARTS_FORCE_GPT : 0) ||
        blkid_probe_filter_partitions_type(probe, BLKID_FLTR_ONLYIN, kinds))
        return bw_error_create(BW_ERROR_SYSTEM, "libblkid cannot be set up");
    blkid_partlist list = blkid_probe_get_partitions(probe);
    const int count = list ? blkid_partlist_numof_partitions(list) : 0;
    if (count < 1)
        return bw_error_create(BW_ERROR_NOT_FOUND, "no partition table");
    table->sector_size = copy->sector_size;
    table->size = copy->size;
    struct bw_partition_info *partitions = calloc(BW_PARTITIONS, sizeof *partitions);
    if (!partitions)
        return bw_error_no_memory();
    table->partitions = partitions;
    PUT_TEXT(table->kind, blkid_parttable_get_type(blkid_partlist_get_table(list)));
    for (int i = 0; i < count && table->count < BW_PARTITIONS; i++)
        table->count += convert_partition(blkid_partlist_get_partition(list, i), copy->size,
                                          &partitions[table->count]);
    qsort(partitions, table->count, sizeof *partitions, by_number);
    return NULL;
}

/* Frees the error for a missing table; true if it was that error. */
static bool is_none(struct bw_error **error)
{
    if (!*error || (*error)->code != BW_ERROR_NOT_FOUND)
        return false;
    bw_error_free(BW_TAKE(*error));
    return true;
}

static struct bw_error *probe_disk(struct bw_xlator *disk, uint32_t sector_size, bool force,
                                   struct bw_partition_table *table)
{
    struct disk_copy copy = {disk, bw_xlator_size(disk), sector_size, -1, false};
    *table = (struct bw_partition_table){.kind = ""};
    if (!may_have_table(&copy))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no partition table");
    struct bw_error *error = make_copy(&copy);
    if (!error)
        error = probe_copy(&copy, force, table);
    if (error && error->code == BW_ERROR_NOT_FOUND && extend_copy(&copy)) {
        bw_error_free(error);
        error = probe_copy(&copy, force, table);
    }
    if (copy.file >= 0)
        close(copy.file);
    if (error)
        bw_partition_table_free(table);
    return error;
}

/* Whether a btrfs begins where a partition does. */
static bool holds_btrfs(struct bw_xlator *disk, const struct bw_partition_table *table)
{
    struct bw_disk_superblock block;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        const uint64_t offset = partition->offset + bw_superblock_offset(0);
        if (partition->room >= bw_superblock_offset(0) + sizeof block &&
            bw_try_read_raw(NULL, disk, offset, &block, sizeof block) &&
            bw_get64(block.magic) == BW_SUPERBLOCK_MAGIC)
            return true;
    }
    return false;
}

/* A GPT is found only with the sector size that it was made for. An MBR does not contain its unit:
 * it is 512 bytes, unless no partition starts there but one does with sectors of 4 KiB. */
static struct bw_error *probe_sizes(struct bw_xlator *disk, bool force,
                                    struct bw_partition_table *table)
{
    struct bw_partition_table large;
    struct bw_error *error = probe_disk(disk, 512, force, table);
    bool none = is_none(&error);
    if (error || (!none && (strcmp(table->kind, "dos") != 0 || holds_btrfs(disk, table))))
        return error;
    error = probe_disk(disk, 4096, force, &large);
    if (none) {
        *table = large;
        return error;
    }
    bool better = !error && holds_btrfs(disk, &large);
    bw_error_free(error);
    struct bw_partition_table *worse = better ? table : &large;
    bw_partition_table_free(worse);
    if (better)
        *table = large;
    return NULL;
}

struct bw_error *bw_partition_table_read(struct bw_xlator *disk, struct bw_partition_table *table)
{
    struct bw_error *error = probe_sizes(disk, false, table);
    return is_none(&error) ? probe_sizes(disk, true, table) : error;
}

void bw_partition_table_free(struct bw_partition_table *table)
{
    free((void *)(uintptr_t)table->partitions);
    *table = (struct bw_partition_table){.kind = ""};
}

/* Finding one. */

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
        bool is_wanted = partition->number == number;
        if (!is_number)
            is_wanted = strcasecmp(partition->uuid, wanted) == 0 ||
                        strcmp(partition->name, wanted) == 0 ||
                        strcmp(partition->label, wanted) == 0 ||
                        strcasecmp(partition->content_uuid, wanted) == 0;
        if (!is_wanted)
            continue;
        bw_buffer_format(&several, "%s%u", several.length ? ", " : "", partition->number);
        *found = partition;
        count++;
    }
    if (count == 1)
        return NULL;
    if (count)
        return bw_error_create(BW_ERROR_USAGE,
                               "several partitions are called %s: give one of the numbers %.*s",
                               wanted, (int)several.length, several.data);
    BW_AUTO_BUFFER struct bw_buffer names = {0};
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
