/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The index of a scan as a file, little-endian: a header, the ids of owners, the blocks. It is tied
 * to the superblocks and the sizes of the images, since any transaction may write over older
 * blocks. Its bytes are as hostile as those of an image: they only name places, and whatever is
 * read there is verified (index_verify.c).
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "fs/image.h"
#include "history/history.h"

enum { VERSION = 2, BATCH = 1024 };

static const char magic[8] = "BWINDEX\n";

struct file_header {
    char magic[8];
    bw_le32 version, nodesize;
    uint8_t fsid[BW_UUID_SIZE];
    bw_le64 generation;
    bw_le64 log_root; /* it is written in free space, without a new generation */
    bw_le64 images;   /* a hash: which devices they are, how large, and of which generation */
    bw_le64 owners, blocks;
    bw_le64 zeros, bytes, unread; /* of struct bw_past_facts */
    bw_le64 hash;                 /* of all that follows */
};

struct file_block {
    bw_le64 bytenr, generation, first_objectid, first_offset;
    bw_le32 owner;
    bw_le16 filled; /* not 0: it has items */
    uint8_t first_type, level;
};

static_assert(sizeof(struct file_header) == 104 && sizeof(struct file_block) == 40,
              "as in the file");

static uint64_t hash_of_images(const struct bw_fs *fs)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->role == BW_IMAGE_UNUSED || !image->storage)
            continue;
        const struct bw_superblock *super = &image->superblock;
        const bw_le64 numbers[] = {bw_put64(super->device.devid), bw_put64(super->generation),
                                   bw_put64(super->root.bytenr), bw_put64(super->chunk_root.bytenr),
                                   bw_put64(bw_xlator_size(image->storage))};
        /* In whatever order they were given. */
        hash += XXH64(numbers, sizeof numbers, 0);
    }
    return hash;
}

static struct file_header header_of(const struct bw_past *past, uint64_t hash)
{
    const struct bw_superblock *superblock = &past->fs->superblock;
    struct file_header header = {.version = bw_put32(VERSION),
                                 .nodesize = bw_put32(superblock->nodesize),
                                 .generation = bw_put64(superblock->generation),
                                 .log_root = bw_put64(superblock->log_root),
                                 .images = bw_put64(hash_of_images(past->fs)),
                                 .owners = bw_put64(past->index.owner_count),
                                 .blocks = bw_put64(past->index.count),
                                 .zeros = bw_put64(past->facts.zeros),
                                 .bytes = bw_put64(past->facts.bytes),
                                 .unread = bw_put64(past->facts.unread),
                                 .hash = bw_put64(hash)};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.fsid, superblock->metadata_uuid, BW_UUID_SIZE);
    return header;
}

/* Writing. */

static struct file_block pack(const struct bw_found_block *block)
{
    return (struct file_block){.bytenr = bw_put64(block->bytenr),
                               .generation = bw_put64(block->generation),
                               .first_objectid = bw_put64(block->first_objectid),
                               .first_offset = bw_put64(block->first_offset),
                               .owner = bw_put32(block->owner),
                               .filled = bw_put16(block->filled),
                               .first_type = block->first_type,
                               .level = block->level};
}

/* Hands out all but the header. */
static struct bw_error *write_body(const struct bw_found_index *index, bw_consumer *consume,
                                   void *context)
{
    struct file_block blocks[BATCH];
    for (size_t i = 0; i < index->owner_count; i++) {
        const bw_le64 id = bw_put64(index->owners[i]);
        BW_TRY(consume(context, (const char *)&id, sizeof id));
    }
    for (size_t done = 0; done < index->count;) {
        size_t count = 0;
        for (; count < BATCH && done < index->count; count++)
            blocks[count] = pack(&index->blocks[done++]);
        BW_TRY(consume(context, (const char *)blocks, count * sizeof *blocks));
    }
    return NULL;
}

static struct bw_error *add_to_hash(void *context, const char *bytes, size_t length)
{
    XXH64_update(context, bytes, length);
    return NULL;
}

struct bw_error *bw_past_write_index(const struct bw_past *past, bw_consumer *consume,
                                     void *context)
{
    XXH64_state_t *state = XXH64_createState();
    if (!state)
        return bw_error_no_memory();
    XXH64_reset(state, 0);
    struct bw_error *error = write_body(&past->index, add_to_hash, state);
    const struct file_header header = header_of(past, XXH64_digest(state));
    XXH64_freeState(state);
    error = error ? error : consume(context, (const char *)&header, sizeof header);
    return error ? error : write_body(&past->index, consume, context);
}

/* Reading. */

/* False: there is no such owner or level. */
static bool unpack(const struct file_block *block, struct bw_found_block *found)
{
    *found = (struct bw_found_block){.bytenr = bw_get64(block->bytenr),
                                     .generation = bw_get64(block->generation),
                                     .first_objectid = bw_get64(block->first_objectid),
                                     .first_offset = bw_get64(block->first_offset),
                                     .owner = bw_get32(block->owner) & BW_FOUND_MOST_OWNER,
                                     .first_type = block->first_type,
                                     .level = block->level & BW_FOUND_MOST_LEVEL,
                                     .filled = bw_get16(block->filled) > 0};
    return found->owner == bw_get32(block->owner) && found->level == block->level;
}

bool bw_past_is_index(const void *bytes, size_t size)
{
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static bool is_of_file_system(const struct bw_past *past, const struct file_header *header)
{
    const struct file_header ours = header_of(past, 0);
    return memcmp(header, &ours, offsetof(struct file_header, owners)) == 0;
}

static bool read_blocks(struct bw_found_index *index, const struct file_block *blocks, size_t count)
{
    index->blocks = malloc(count * sizeof *index->blocks + 1);
    if (!index->blocks)
        return false;
    index->capacity = count;
    for (; index->count < count; index->count++) {
        struct bw_found_block *block = &index->blocks[index->count];
        if (!unpack(&blocks[index->count], block) || block->owner >= index->owner_count ||
            (index->count && block[-1].bytenr >= block->bytenr &&
             (block[-1].bytenr > block->bytenr || block[-1].generation >= block->generation)))
            return false;
    }
    return true;
}

static bool read_index(struct bw_found_index *index, const uint8_t *bytes, size_t owners,
                       size_t blocks)
{
    index->owners = malloc(owners * sizeof *index->owners + 1);
    if (!index->owners)
        return false;
    for (size_t i = 0; i < owners; i++)
        index->owners[i] = bw_get64(((const bw_le64 *)bytes)[i]);
    index->owner_count = index->owner_capacity = owners;
    return read_blocks(index, (const void *)(bytes + owners * sizeof(bw_le64)), blocks);
}

bool bw_past_read_index(struct bw_past *past, const void *bytes, size_t size)
{
    const struct file_header *header = bytes;
    if (size < sizeof *header || !is_of_file_system(past, header))
        return false;
    const size_t rest = size - sizeof *header;
    const uint64_t owners = bw_get64(header->owners), blocks = bw_get64(header->blocks);
    if (owners > rest / sizeof(bw_le64) || blocks > rest / sizeof(struct file_block) ||
        owners * sizeof(bw_le64) + blocks * sizeof(struct file_block) != rest ||
        XXH64(header + 1, rest, 0) != bw_get64(header->hash))
        return false;
    if (!read_index(&past->index, (const uint8_t *)(header + 1), (size_t)owners, (size_t)blocks)) {
        bw_found_free(&past->index);
        bw_found_init(&past->index);
        return false;
    }
    past->facts = (struct bw_past_facts){.scanned = true,
                                         .index_used = true,
                                         .zeros = bw_get64(header->zeros),
                                         .bytes = bw_get64(header->bytes),
                                         .unread = bw_get64(header->unread)};
    return true;
}
