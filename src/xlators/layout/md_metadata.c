/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks. One of version 1 is at a fixed place, at the beginning or the end of a device,
 * depending on its minor version; the offset in it must agree. A superblock of version 0.90 is at
 * the end, and an array of words. Version 1 is little-endian. Version 0.90 has the byte order of
 * the machine that made the array; only little-endian arrays are read.
 *
 * A journal is a ring of blocks of 4 KiB, after one block that is never used: meta blocks, each
 * followed by the data and parity that it describes. The superblock contains the offset of the
 * first block that may still be needed. From there, meta blocks are valid as long as their numbers
 * and positions follow each other and their checksums are right, and the checksums of their blocks.
 */
#include "xlators/layout/md_metadata.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "ondisk/superblock.h"
#include "xlators/layout/partition_table.h"
#include "xlators/pieces.h"

enum {
    SECTOR = 512,
    BLOCK = 4096,
    MAGIC = (int)0xa92b4efc,
    ROLES = 256,         /* offset of the roles in a superblock of version 1 */
    RESERVED = 64 << 10, /* at the end of a device, for version 0.90 */
};

/* feature_map of version 1 */
enum {
    RECOVERING = 1 << 1,
    RESHAPING = 1 << 2,
    BAD_BLOCKS = 1 << 3,
    REPLACEMENT = 1 << 4,
    JOURNAL = 1 << 9,
    LAYOUT_OF_RAID0 = 1 << 12,
};

enum { ROLE_JOURNAL = 0xfffd }; /* the greatest that is not a device without a role */

struct disk_1 {
    bw_le32 magic, major, features, padding_0;
    uint8_t id[16];
    char name[32];
    bw_le64 created;
    bw_le32 level, layout;
    bw_le64 size;
    bw_le32 chunk, devices, bitmap, new_level;
    bw_le64 reshaped;
    bw_le32 delta, new_layout, new_chunk, new_offset;
    bw_le64 data_offset, data_size, offset, recovered; /* of a journal: where it begins */
    bw_le32 number, corrected;
    uint8_t device_id[16], flags, bad_shift;
    bw_le16 bad_size;
    bw_le32 bad_offset;
    bw_le64 updated, events, resynced;
    bw_le32 checksum, role_count;
    uint8_t padding_3[32];
    bw_le16 roles[BW_MD_NUMBERS];
};

static_assert(sizeof(struct disk_1) == BLOCK, "as on disk");

/* Version 0.90: an array of words. */
enum word {
    WORD_MAGIC,
    WORD_MAJOR,
    WORD_MINOR,
    WORD_ID = 5,
    WORD_LEVEL = 7,
    WORD_SIZE,
    WORD_DEVICES = 10,
    WORD_ID_REST = 13,
    WORD_CHECKSUM = 38,
    WORD_EVENTS,
    WORD_LAYOUT = 64,
    WORD_CHUNK,
    WORD_DISKS = 128, /* the list of devices */
    WORDS_OF_DISK = 32,
    WORD_THIS = 992,
    WORD_ROLE = WORD_THIS + 3,
    WORD_STATUS,
    WORDS = BLOCK / 4,
};

/* Sums 32-bit words as the kernel does. */
static uint32_t sum_words(const uint8_t *bytes, size_t length)
{
    uint64_t sum = 0;
    for (; length >= 4; length -= 4, bytes += 4) {
        bw_le32 word;
        memcpy(&word, bytes, sizeof word);
        sum += bw_get32(word);
    }
    if (length >= 2)
        sum += (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8;
    return (uint32_t)((sum & UINT32_MAX) + (sum >> 32));
}

static bool is_possible(const struct bw_md_superblock *found)
{
    const int level = found->level;
    return (level == BW_MD_LINEAR || level == 0 || level == 1 || (level >= 4 && level <= 6) ||
            level == 10) &&
           found->device_count && found->device_count <= BW_MD_DEVICES &&
           found->chunk <= UINT64_C(1) << 32 && found->used_size <= INT64_MAX &&
           found->data_offset <= INT64_MAX && found->data_size <= INT64_MAX;
}

static bool read_block(const struct bw_md_device *device, uint64_t offset, void *block)
{
    if (offset > device->size || device->size - offset < BLOCK)
        return false;
    return bw_try_read_raw(NULL, device->layer, device->begin + offset, block, BLOCK);
}

static bool read_1(const struct bw_md_device *device, uint64_t offset, const char *version,
                   struct bw_md_superblock *found)
{
    struct disk_1 disk;
    if (!read_block(device, offset, &disk) || bw_get32(disk.magic) != (uint32_t)MAGIC ||
        bw_get32(disk.major) != 1 || bw_get64(disk.offset) * SECTOR != offset)
        return false;
    const uint32_t roles = bw_get32(disk.role_count), wanted = bw_get32(disk.checksum);
    if (roles > sizeof disk.roles / sizeof *disk.roles)
        return false;
    disk.checksum = bw_put32(0);
    if (sum_words((const void *)&disk, ROLES + 2 * (size_t)roles) != wanted)
        return false;
    const uint32_t features = bw_get32(disk.features), number = bw_get32(disk.number);
    const uint64_t recovered = bw_get64(disk.recovered);
    const uint32_t role = number < roles ? bw_get16(disk.roles[number]) : UINT16_MAX;
    *found = (struct bw_md_superblock){
        .version = version,
        .offset = offset,
        .level = (int)bw_get32(disk.level),
        .layout = bw_get32(disk.layout),
        .chunk = UINT64_C(1) * bw_get32(disk.chunk) * SECTOR,
        .device_count = bw_get32(disk.devices),
        .role = role < bw_get32(disk.devices) ? role : BW_MD_NO_ROLE,
        .data_offset = bw_get64(disk.data_offset) * SECTOR,
        .data_size = bw_get64(disk.data_size) * SECTOR,
        .used_size = bw_get64(disk.size) * SECTOR,
        .recovered = UINT64_MAX,
        .events = bw_get64(disk.events),
        .number = number,
        .is_reshaping = features & RESHAPING,
        .has_layout = features & LAYOUT_OF_RAID0,
        .is_replacement = features & REPLACEMENT,
        .has_journal = features & JOURNAL,
        .is_journal = role == ROLE_JOURNAL,
        .bad_shift = disk.bad_shift,
    };
    if (features & RECOVERING)
        found->recovered = recovered * SECTOR;
    if (found->is_journal)
        found->journal_tail = recovered * SECTOR;
    /* The list may precede the superblock. */
    if (features & BAD_BLOCKS && disk.bad_shift < 16) {
        const uint32_t size = UINT32_C(1) * bw_get16(disk.bad_size) * SECTOR;
        found->bad_blocks =
            offset + (uint64_t)((int64_t)(int32_t)bw_get32(disk.bad_offset) * SECTOR);
        found->bad_size = size < BLOCK ? size : BLOCK;
    }
    for (size_t i = 0; i < BW_MD_NUMBERS; i++)
        found->roles[i] = i < roles ? bw_get16(disk.roles[i]) : UINT16_MAX;
    memcpy(found->id, disk.id, sizeof found->id);
    memcpy(found->name, disk.name, sizeof disk.name);
    return is_possible(found);
}

static uint32_t word_at(const bw_le32 *words, enum word word)
{
    return bw_get32(words[word]);
}

/* A disk and its last partition often end at the same address, where both would have their
 * superblock. */
static bool is_in_partition(const struct bw_md_device *device, uint64_t offset)
{
    struct bw_partition_table table;
    BW_AUTO_ERROR struct bw_error *error = bw_partition_table_read(device->layer, &table);
    bool is_inside = false;
    for (size_t i = 0; !error && i < table.count; i++) {
        const struct bw_partition_info *partition = &table.partitions[i];
        const uint64_t size = partition->length / RESERVED * RESERVED;
        is_inside |= !partition->extended && partition->room == partition->length &&
                     size >= RESERVED && partition->offset + size - RESERVED == offset;
    }
    bw_partition_table_free(&table);
    return is_inside;
}

static bool read_0(const struct bw_md_device *device, struct bw_md_superblock *found)
{
    enum { IN_SYNC = 1 << 2, DISKS = 27 };
    bw_le32 words[WORDS];
    const uint64_t size = device->size / RESERVED * RESERVED;
    if (size < RESERVED || !read_block(device, size - RESERVED, words) ||
        word_at(words, WORD_MAGIC) != (uint32_t)MAGIC || word_at(words, WORD_MAJOR) != 0)
        return false;
    const uint32_t wanted = word_at(words, WORD_CHECKSUM);
    words[WORD_CHECKSUM] = bw_put32(0);
    if (sum_words((const void *)words, sizeof words) != wanted)
        return false;
    const uint64_t offset = size - RESERVED, high_events = bw_get32(words[WORD_EVENTS + 1]);
    *found = (struct bw_md_superblock){
        .version = "0.90",
        .offset = offset,
        .level = (int)word_at(words, WORD_LEVEL),
        .layout = word_at(words, WORD_LAYOUT),
        .chunk = word_at(words, WORD_CHUNK),
        .device_count = word_at(words, WORD_DEVICES),
        .role = word_at(words, WORD_ROLE),
        .data_size = offset,
        .used_size = UINT64_C(1024) * word_at(words, WORD_SIZE),
        .recovered = UINT64_MAX,
        .events = high_events << 32 | word_at(words, WORD_EVENTS),
        .number = word_at(words, WORD_THIS),
        .is_reshaping = word_at(words, WORD_MINOR) == 91,
    };
    for (size_t i = 0; i < BW_MD_NUMBERS; i++) {
        const bw_le32 *disk = words + WORD_DISKS + (i < DISKS ? i : 0) * WORDS_OF_DISK;
        const bool has_role = i < DISKS && bw_get32(disk[WORD_STATUS - WORD_THIS]) & IN_SYNC;
        found->roles[i] = has_role ? (uint16_t)bw_get32(disk[WORD_ROLE - WORD_THIS]) : UINT16_MAX;
    }
    memcpy(found->id, &words[WORD_ID], 4);
    memcpy(found->id + 4, &words[WORD_ID_REST], 12);
    if (!(word_at(words, WORD_STATUS) & IN_SYNC) || found->role >= found->device_count)
        found->role = BW_MD_NO_ROLE;
    return is_possible(found) && (device->begin || !is_in_partition(device, found->offset));
}

bool bw_md_superblock_read(const struct bw_md_device *device, struct bw_md_superblock *found)
{
    enum { AT_END = 16 * SECTOR };
    const uint64_t size = device->size / SECTOR * SECTOR;
    const uint64_t end = size < AT_END ? size : (size - AT_END) / BLOCK * BLOCK;
    return read_1(device, BLOCK, "1.2", found) || read_1(device, 0, "1.1", found) ||
           (end && read_1(device, end, "1.0", found)) || read_0(device, found);
}

struct bw_error *bw_md_bad_blocks_read(const struct bw_md_device *device,
                                       const struct bw_md_superblock *superblock,
                                       struct bw_range *ranges, size_t *count)
{
    bw_le64 list[BW_MD_BAD];
    *count = 0;
    if (!superblock->bad_size)
        return NULL;
    BW_TRY(bw_read_inside(NULL, device->layer, "the device with its list of bad blocks ends",
                          device->begin + superblock->bad_blocks, list, superblock->bad_size));
    /* 54 bits of the address, 10 of the length; all bits are set after the last. */
    for (size_t i = 0; i < superblock->bad_size / sizeof *list; i++) {
        const uint64_t entry = bw_get64(list[i]), unit = (uint64_t)SECTOR << superblock->bad_shift;
        if (entry == UINT64_MAX)
            break;
        if (entry >> 10 > INT64_MAX / unit)
            continue;
        const uint64_t begin = (entry >> 10) * unit, end = begin + (entry & 1023) * unit;
        const uint64_t first = bw_max(begin, superblock->data_offset);
        if (first < end)
            ranges[(*count)++] = (struct bw_range){first - superblock->data_offset, end - first};
    }
    return NULL;
}

bool bw_md_is_member(const struct bw_md_device *device, struct bw_md_superblock *found)
{
    if (!bw_md_superblock_read(device, found))
        return false;
    if (found->data_offset || found->level != 1)
        return true;
    /* A device of RAID1 with the superblock at its end begins like the array. If the btrfs there is
     * larger than the array, it was made after the array was given up. */
    struct bw_superblock superblock;
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof bytes,
                                 .address = device->begin + bw_superblock_offset(0),
                                 .buffer = bytes};
    bw_wind(NULL, device->layer, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    if (!error)
        error = bw_superblock_decode(bytes, bw_superblock_offset(0), &superblock);
    return error || superblock.device.total_bytes <= found->used_size;
}

/* The journal. */

enum { JOURNAL_MAGIC = 0x6433c509, JOURNAL_VERSION = 1 };

enum payload_type {
    PAYLOAD_DATA = BW_MD_LOG_DATA,
    PAYLOAD_PARITY = BW_MD_LOG_P,
    PAYLOAD_FLUSH = BW_MD_LOG_FLUSH,
};

struct disk_meta {
    bw_le32 magic, checksum;
    uint8_t version, padding[3];
    bw_le32 size; /* of this header and of all payloads, in bytes */
    bw_le64 number, position;
};

struct disk_payload {
    bw_le16 type, flags;
    bw_le32 size; /* data: in sectors; of a flush: bytes that follow */
    bw_le64 place;
};

static_assert(sizeof(struct disk_meta) == 32 && sizeof(struct disk_payload) == 16, "as on disk");

/* Adds the payloads of a meta block, and moves `*at` behind their blocks. If a block was not
 * written completely, `is_valid` is false, and the journal has ended before. */
static struct bw_error *read_payloads(const struct bw_md_device *ring, uint32_t seed,
                                      const uint8_t *meta, size_t meta_size, unsigned parity,
                                      uint64_t *at, struct bw_md_log *log, bool *is_valid)
{
    struct disk_payload payload;
    *is_valid = false;
    for (size_t next = sizeof(struct disk_meta); next < meta_size;) {
        if (meta_size - next < sizeof payload)
            return NULL;
        memcpy(&payload, meta + next, sizeof payload);
        const unsigned type = bw_get16(payload.type);
        /* A checksum for each block; a flush has the places of rows instead. */
        const uint32_t sectors = bw_get32(payload.size);
        size_t count = sectors / (BLOCK / SECTOR), unit = sizeof(bw_le32);
        next += sizeof payload;
        if (type == PAYLOAD_FLUSH) {
            next -= sizeof payload.place;
            unit = sizeof payload.place;
            count = sectors / unit;
        }
        if (type > PAYLOAD_FLUSH || (type == PAYLOAD_DATA && count > 1) ||
            (type == PAYLOAD_PARITY && count > parity) || count > (meta_size - next) / unit)
            return NULL;
        for (size_t i = 0; i < count; i++, next += unit) {
            struct bw_md_logged logged = {.order = log->count, .at = ring->begin + *at};
            logged.kind = type;
            if (type == PAYLOAD_FLUSH) {
                memcpy(&payload.place, meta + next, sizeof payload.place);
            } else {
                uint8_t block[BLOCK];
                bw_le32 checksum;
                memcpy(&checksum, meta + next, sizeof checksum);
                BW_TRY(bw_read_raw(NULL, ring->layer, logged.at, block, sizeof block));
                if (bw_crc32c(seed, block, sizeof block) != bw_get32(checksum))
                    return NULL;
                *at = (*at + BLOCK) % ring->size;
                if (i)
                    logged.kind = BW_MD_LOG_Q;
            }
            const uint64_t sector = bw_get64(payload.place);
            if (sector > INT64_MAX / SECTOR || sector % (BLOCK / SECTOR))
                return NULL;
            logged.place = sector * SECTOR;
            BW_TRY(bw_md_log_push(log, logged));
        }
    }
    *is_valid = true;
    return NULL;
}

struct bw_error *bw_md_journal_read(const struct bw_md_device *device,
                                    const struct bw_md_superblock *journal, unsigned parity,
                                    struct bw_md_log *log)
{
    const struct bw_md_device ring = {.layer = device->layer,
                                      .begin = device->begin + journal->data_offset,
                                      .size = journal->data_size / BLOCK * BLOCK};
    const uint32_t seed = bw_crc32c(UINT32_MAX, journal->id, sizeof journal->id);
    uint64_t at = journal->journal_tail, read = 0, number = 0;
    while (at < ring.size && read < ring.size) {
        uint8_t block[BLOCK];
        struct disk_meta meta;
        BW_TRY(bw_read_raw(NULL, ring.layer, ring.begin + at, block, sizeof block));
        memcpy(&meta, block, sizeof meta);
        const uint32_t meta_size = bw_get32(meta.size), wanted = bw_get32(meta.checksum);
        memset(block + offsetof(struct disk_meta, checksum), 0, sizeof meta.checksum);
        if (bw_get32(meta.magic) != JOURNAL_MAGIC || meta.version != JOURNAL_VERSION ||
            meta_size > BLOCK || bw_get64(meta.position) * SECTOR != at ||
            (read && bw_get64(meta.number) != number) ||
            bw_crc32c(seed, block, sizeof block) != wanted)
            break;
        const uint64_t begin = at;
        const size_t before = log->count;
        bool is_valid;
        at = (at + BLOCK) % ring.size;
        struct bw_error *error =
            read_payloads(&ring, seed, block, meta_size, parity, &at, log, &is_valid);
        if (error || !is_valid) {
            log->count = before;
            return error;
        }
        number = bw_get64(meta.number) + 1;
        read += at > begin ? at - begin : ring.size - begin + at;
    }
    return NULL;
}
