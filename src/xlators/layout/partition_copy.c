/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The copy of a disk that libblkid looks at. libblkid reads from a file descriptor, but the bytes
 * come from a layer. So it gets a sparse file in memory that is as long as the disk, and holds only
 * what can belong to a partition table: the beginning and the end, the entries of a GPT, and the
 * chain of the boot records of logical partitions.
 *
 * Sources: the UEFI specification, 5.3 (GPT); for the chain, block/partitions/msdos.c of the
 * kernel.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "xlators/layout/partition_table.h"

enum {
    END_BYTES = 64 << 10,    /* of the beginning and the end */
    ENTRIES_BYTES = 1 << 20, /* of the entries of a GPT, at most: libblkid would read 4 GiB */
    BOOT_RECORD_BYTES = 512,
    BOOT_RECORDS = BW_PARTITIONS, /* at most */
};

struct gpt_header {
    bw_le64 signature;
    bw_le32 revision, header_size, header_crc, reserved;
    bw_le64 own_sector, other_sector, first_usable, last_usable;
    uint8_t disk_id[16];
    bw_le64 entries_sector;
    bw_le32 entry_count, entry_size, entries_crc;
};

/** "EFI PART", read as a little-endian number. */
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

static bool read_disk(const struct bw_table_copy *copy, uint64_t offset, void *bytes, size_t length)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = (uint32_t)length, .address = offset, .buffer = bytes};
    if (offset > copy->size || length > copy->size - offset)
        return false;
    bw_wind(copy->frame, copy->disk, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error;
}

/* What cannot be read stays zero. */
static void copy_range(struct bw_table_copy *copy, uint64_t offset, uint64_t length)
{
    uint8_t bytes[16 << 10];
    if (offset > copy->size)
        return;
    uint64_t end = length < copy->size - offset ? offset + length : copy->size;
    for (uint64_t next; offset < end; offset = next) {
        next = end - offset < sizeof bytes ? end : offset + sizeof bytes;
        size_t count = (size_t)(next - offset);
        if (read_disk(copy, offset, bytes, count))
            copy->failed |= pwrite(copy->file, bytes, count, (off_t)offset) != (ssize_t)count;
    }
}

static bool read_header(const struct bw_table_copy *copy, uint64_t offset,
                        struct gpt_header *header)
{
    return read_disk(copy, offset, header, sizeof *header) &&
           bw_get64(header->signature) == GPT_SIGNATURE;
}

/* A header whose entries are too many loses its signature. */
static void copy_entries(struct bw_table_copy *copy, uint64_t offset)
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

/* Follows the links from one boot record to the next, as long as they lead on. */
static void copy_chain(struct bw_table_copy *copy, uint64_t first, unsigned *left)
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

static void copy_boot_records(struct bw_table_copy *copy)
{
    struct boot_record record;
    unsigned left = BOOT_RECORDS;
    if (!read_disk(copy, 0, &record, sizeof record))
        return;
    for (unsigned i = 0; i < 4; i++)
        if (is_extended(record.entries[i].type))
            copy_chain(copy, bw_get32(record.entries[i].first_sector), &left);
}

struct bw_error *bw_table_copy_make(struct bw_table_copy *copy)
{
    uint64_t last = copy->size / copy->sector_size * copy->sector_size;
    copy->file = memfd_create("btrfs-walk", MFD_CLOEXEC);
    if (copy->file < 0 || ftruncate(copy->file, (off_t)copy->size))
        return bw_error_from_errno(errno, "cannot make a file in memory");
    copy_range(copy, 0, END_BYTES);
    copy_range(copy, copy->size > END_BYTES ? copy->size - END_BYTES : 0, END_BYTES);
    copy_entries(copy, copy->sector_size);
    if (last)
        copy_entries(copy, last - copy->sector_size);
    copy_boot_records(copy);
    return copy->failed ? bw_error_create(BW_ERROR_SYSTEM, "cannot write to a file in memory")
                        : NULL;
}

bool bw_table_copy_extend(struct bw_table_copy *copy)
{
    struct gpt_header header;
    if (!read_header(copy, copy->sector_size, &header))
        return false;
    uint64_t other = bw_get64(header.other_sector), usable = bw_get64(header.last_usable);
    uint64_t last = other > usable ? other : usable;
    return last < INT64_MAX / copy->sector_size && last >= copy->size / copy->sector_size &&
           ftruncate(copy->file, (off_t)((last + 1) * copy->sector_size)) == 0;
}

void bw_table_copy_free(struct bw_table_copy *copy)
{
    if (copy->file >= 0)
        close(copy->file);
}
