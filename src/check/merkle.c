/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Merkle tree of a file: each level is read once, block by block, beside the level above, which
 * has its hashes; and so are the data beside the lowest level. Memory is two blocks, however large
 * the file is. What cannot be read is passed over: that is found elsewhere.
 */
#include <gcrypt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "check/verity.h"
#include "data/reader.h"
#include "ondisk/disk_items.h"

enum { LARGEST_BLOCK = 64 << 10 };

/* The blocks of a level, one after the other. */
struct level {
    struct bw_item_range range;
    bool has_item;     /* the present one of the range has bytes that are still wanted */
    uint64_t position; /* of the next block, in the tree */
    uint64_t left;     /* blocks */
    uint8_t *bytes;    /* the present block */
};

/* Hashes that are expected, one after the other. */
struct hashes {
    struct level level; /* that has them; without one it is the root */
    bool is_root;
    uint32_t used; /* of the present block */
};

struct merkle {
    struct bw_check *check;
    const struct bw_verity *verity;
    const struct bw_data_file *file;
    gcry_md_hd_t hash;
    uint8_t blocks[2][LARGEST_BLOCK];
    struct hashes hashes;
    bool ended; /* blocks of the tree are missing, which has been reported, or lost */

    /* Of data. */
    uint8_t zeros[BW_VERITY_DIGEST]; /* the hash of a block of zeros */
    uint32_t filled;                 /* bytes of the present block, in blocks[0] */
    bool unknown, nonzero;           /* some of it cannot be read; and is not a hole */
    uint64_t offset;                 /* of the next block, in the file */
    uint64_t bad_start, bad_end;     /* blocks with other hashes, to be reported */
};

/* Reading the tree. */

static void begin_level(struct merkle *merkle, unsigned number, unsigned buffer,
                        struct level *level)
{
    const struct bw_verity *verity = merkle->verity;
    struct bw_tree_reader reader = merkle->check->fs->reader;
    reader.adopter = NULL; /* what is lost is not to be replaced */
    *level = (struct level){.position = verity->starts[number] * verity->block_size,
                            .left = verity->counts[number],
                            .bytes = merkle->blocks[buffer]};
    const struct bw_key first = {merkle->file->inode, BW_VERITY_MERKLE_ITEM, level->position},
                        last = {merkle->file->inode, BW_VERITY_MERKLE_ITEM, UINT64_MAX};
    bw_item_range_begin(&level->range, &reader, &merkle->file->subvolume->tree, first, last);
}

static void report_tree(struct merkle *merkle, uint64_t position, const char *problem)
{
    struct bw_subject subject = bw_verity_subject(merkle->file);
    subject.finding.key = (struct bw_key){merkle->file->inode, BW_VERITY_MERKLE_ITEM, position};
    subject.finding.known |= BW_KNOWN_KEY;
    bw_check_find(merkle->check, BW_CODE_verity_tree, &subject, "%s", problem);
}

/* Fills the next block with the bytes of items; false: the level ends, or some are missing. */
static bool next_block(struct merkle *merkle, struct level *level)
{
    uint32_t filled = 0;
    while (level->left && filled < merkle->verity->block_size) {
        const uint64_t position = level->position + filled;
        if (!level->has_item && !(level->has_item = bw_item_range_next(&level->range)))
            break;
        const struct bw_item *item = &level->range.item;
        if (level->range.error || item->key.offset > position)
            break;
        const uint64_t skipped = position - item->key.offset;
        level->has_item = skipped < item->size;
        if (!level->has_item)
            continue;
        const uint32_t room = merkle->verity->block_size - filled,
                       there = item->size - (uint32_t)skipped, count = there < room ? there : room;
        memcpy(level->bytes + filled, item->data + skipped, count);
        filled += count;
    }
    if (filled == merkle->verity->block_size) {
        level->position += filled;
        level->left--;
        return true;
    }
    merkle->ended = true;
    if (!level->range.error && level->left)
        report_tree(merkle, level->position, "a block of the Merkle tree is missing");
    return false;
}

/* The hash that is expected next; NULL if the tree does not have it. */
static const uint8_t *next_hash(struct merkle *merkle)
{
    struct hashes *hashes = &merkle->hashes;
    const uint32_t size = merkle->verity->digest_size;
    if (hashes->is_root)
        return merkle->verity->root;
    if (hashes->used + size > merkle->verity->block_size) {
        if (!next_block(merkle, &hashes->level))
            return NULL;
        hashes->used = 0;
    }
    hashes->used += size;
    return hashes->level.bytes + hashes->used - size;
}

/* The hashes of what is below a level of this number. */
static void begin_hashes(struct merkle *merkle, unsigned number)
{
    merkle->hashes.is_root = number >= merkle->verity->levels;
    merkle->hashes.used = merkle->verity->block_size;
    if (!merkle->hashes.is_root)
        begin_level(merkle, number, 1, &merkle->hashes.level);
}

static struct bw_error *end_hashes(struct merkle *merkle, struct bw_error *error)
{
    return merkle->hashes.is_root ? error : bw_item_range_end(&merkle->hashes.level.range, error);
}

static bool matches(struct merkle *merkle, const uint8_t *block, const uint8_t *expected)
{
    const struct bw_verity *verity = merkle->verity;
    gcry_md_reset(merkle->hash);
    gcry_md_write(merkle->hash, verity->salt, verity->salt_size);
    gcry_md_write(merkle->hash, block, verity->block_size);
    return memcmp(gcry_md_read(merkle->hash, verity->algorithm), expected, verity->digest_size) ==
           0;
}

/* Holds the blocks of a level against their hashes. */
static struct bw_error *check_level(struct merkle *merkle, unsigned number)
{
    struct level level;
    const uint8_t *expected;
    begin_level(merkle, number, 0, &level);
    begin_hashes(merkle, number + 1);
    while (level.left && next_block(merkle, &level) && (expected = next_hash(merkle)))
        if (!matches(merkle, level.bytes, expected)) {
            report_tree(merkle, level.position - merkle->verity->block_size,
                        "a block of the Merkle tree does not have the hash above it");
            break;
        }
    return bw_item_range_end(&level.range, end_hashes(merkle, NULL));
}

/* Data. */

static void report_data(struct merkle *merkle)
{
    struct bw_subject subject = bw_verity_subject(merkle->file);
    subject.finding.known |= BW_KNOWN_FILE_OFFSET | BW_KNOWN_FILE_LENGTH;
    subject.finding.file_offset = merkle->bad_start;
    subject.finding.file_length = merkle->bad_end - merkle->bad_start;
    if (merkle->bad_start < merkle->bad_end)
        bw_check_find(merkle->check, BW_CODE_verity_data, &subject,
                      "the data do not have their hash in the Merkle tree");
    merkle->bad_start = merkle->bad_end = 0;
}

/* The block of data that was filled, or ends with the file. */
static void end_block(struct merkle *merkle)
{
    const uint32_t size = merkle->verity->block_size;
    const uint8_t *expected = next_hash(merkle);
    const uint64_t left = merkle->file->size - merkle->offset;
    if (!expected)
        return;
    memset(merkle->blocks[0] + merkle->filled, 0, size - merkle->filled);
    const bool good =
        merkle->unknown ||
        (merkle->nonzero ? matches(merkle, merkle->blocks[0], expected)
                         : memcmp(merkle->zeros, expected, merkle->verity->digest_size) == 0);
    if (!good && merkle->bad_end != merkle->offset)
        report_data(merkle);
    if (!good && merkle->bad_start == merkle->bad_end)
        merkle->bad_start = merkle->offset;
    merkle->bad_end = good ? merkle->bad_end : merkle->offset + (left < size ? left : size);
    merkle->offset += left < size ? left : size;
    merkle->filled = 0;
    merkle->unknown = merkle->nonzero = false;
}

static struct bw_error *take_part(void *context, const struct bw_data_part *part)
{
    struct merkle *merkle = context;
    const uint32_t size = merkle->verity->block_size;
    size_t count;
    for (uint64_t done = 0; done < part->length && !merkle->ended; done += count) {
        const uint64_t left = part->length - done, room = size - merkle->filled;
        uint8_t *to = merkle->blocks[0] + merkle->filled;
        count = (size_t)(left < room ? left : room);
        if (part->kind == BW_DATA_BYTES)
            memcpy(to, part->bytes + done, count);
        else
            memset(to, 0, count);
        merkle->nonzero |= part->kind == BW_DATA_BYTES;
        merkle->unknown |= part->kind == BW_DATA_BAD;
        merkle->filled += (uint32_t)count;
        if (merkle->filled == size)
            end_block(merkle);
    }
    return merkle->ended ? bw_error_create(BW_ERROR_STOPPED, "the Merkle tree ends") : NULL;
}

static struct bw_error *check_data(struct merkle *merkle, struct bw_data_reader *reader)
{
    begin_hashes(merkle, 0);
    memset(merkle->blocks[0], 0, merkle->verity->block_size);
    matches(merkle, merkle->blocks[0], merkle->zeros);
    memcpy(merkle->zeros, gcry_md_read(merkle->hash, merkle->verity->algorithm),
           merkle->verity->digest_size);
    struct bw_error *error = bw_data_read(reader, merkle->file, 0, UINT64_MAX, take_part, merkle);
    if (!error && merkle->filled)
        end_block(merkle);
    report_data(merkle);
    if (error && error->code == BW_ERROR_STOPPED) {
        bw_error_free(error);
        error = NULL;
    }
    return end_hashes(merkle, error);
}

/* The hash of an empty file is all zeros. */
static void check_empty(struct merkle *merkle)
{
    static const uint8_t zeros[BW_VERITY_DIGEST];
    if (memcmp(merkle->verity->root, zeros, merkle->verity->digest_size) != 0)
        report_tree(merkle, 0, "an empty file has a hash");
}

struct bw_error *bw_merkle_check(struct bw_check *check, const struct bw_verity *verity,
                                 const struct bw_data_file *file, struct bw_data_reader *reader)
{
    BW_AUTO_FREE struct merkle *merkle = calloc(1, sizeof *merkle);
    if (!merkle)
        return bw_error_no_memory();
    merkle->check = check;
    merkle->verity = verity;
    merkle->file = file;
    if (gcry_md_open(&merkle->hash, verity->algorithm, 0))
        return bw_error_create(BW_ERROR_UNSUPPORTED, "hashes of fs-verity cannot be computed here");
    struct bw_error *error = NULL;
    for (unsigned level = verity->levels; !error && !merkle->ended && level-- > 0;)
        error = check_level(merkle, level);
    if (!file->size)
        check_empty(merkle);
    else if (!error && reader && !merkle->ended)
        error = check_data(merkle, reader);
    gcry_md_close(merkle->hash);
    return error;
}
