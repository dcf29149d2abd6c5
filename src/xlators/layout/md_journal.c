/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A journal is a ring of blocks of 4 KiB, after one block that is never used: meta blocks, each
 * followed by the data and parity that it describes. The superblock tells where the first block is
 * that may still be needed. From there, meta blocks are valid as long as their numbers and
 * positions follow each other and their checksums are right. Source: the kernel's header linux/raid
 * for journals, and drivers/md/raid5-cache.c.
 */
#include "xlators/layout/md_journal.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/crc32c.h"
#include "base/endian.h"

enum { SECTOR = 512, BLOCK = 4096, MAGIC = 0x6433c509, VERSION = 1 };

enum payload_type { PAYLOAD_DATA, PAYLOAD_PARITY, PAYLOAD_FLUSH };

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

/* Adds up what a meta block describes: blocks of data, and all blocks that follow it. */
static void add_payloads(const uint8_t *block, uint32_t size, uint64_t *data, uint64_t *blocks)
{
    struct disk_payload payload;
    for (size_t at = sizeof(struct disk_meta); at + sizeof payload <= size;) {
        memcpy(&payload, block + at, sizeof payload);
        const unsigned type = bw_get16(payload.type);
        const uint32_t length = bw_get32(payload.size);
        if (type == PAYLOAD_FLUSH) {
            at += 8 + (size_t)length;
            continue;
        }
        const uint32_t count = length / (BLOCK / SECTOR);
        *data += type == PAYLOAD_DATA ? count : 0;
        *blocks += count;
        at += sizeof payload + (size_t)count * sizeof(bw_le32); /* a checksum for each block */
    }
}

struct bw_error *bw_md_journal_count(const struct bw_md_device *device,
                                     const struct bw_md_superblock *journal, uint64_t *count)
{
    const uint64_t size = journal->data_size / BLOCK * BLOCK;
    const uint32_t seed = bw_crc32c(UINT32_MAX, journal->id, sizeof journal->id);
    uint64_t at = journal->journal_tail, read = 0, number = 0;
    *count = 0;
    while (at < size && read < size) {
        uint8_t block[BLOCK];
        struct disk_meta meta;
        BW_TRY(bw_read_raw(NULL, device->layer, device->begin + journal->data_offset + at, block,
                           sizeof block));
        memcpy(&meta, block, sizeof meta);
        const uint32_t meta_size = bw_get32(meta.size), wanted = bw_get32(meta.checksum);
        memset(block + offsetof(struct disk_meta, checksum), 0, sizeof meta.checksum);
        if (bw_get32(meta.magic) != MAGIC || meta.version != VERSION || meta_size > BLOCK ||
            bw_get64(meta.position) * SECTOR != at || (read && bw_get64(meta.number) != number) ||
            bw_crc32c(seed, block, sizeof block) != wanted)
            break;
        uint64_t blocks = 1;
        add_payloads(block, meta_size, count, &blocks);
        number = bw_get64(meta.number) + 1;
        read += blocks * BLOCK;
        at += blocks * BLOCK;
        if (at >= size)
            at -= size;
    }
    return NULL;
}
