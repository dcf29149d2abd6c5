/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `verity`: the files that were noted while the trees were walked, several at once.
 *
 * A file with fs-verity has a descriptor with a hash, which is the root of a Merkle tree of the
 * hashes of all blocks of the file. Both are items of the inode. First the descriptor of each file
 * is checked, then the tree and the data that it describes. Source: Documentation/filesystems/
 * fsverity.rst and fs/btrfs/verity.c of the kernel.
 */
#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/gcrypt.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/file.h"
#include "check/check.h"
#include "data/reader.h"
#include "ondisk/item_rules.h"

enum { BW_VERITY_DIGEST = 64 }; /* bytes of the longest hash */

/*
 * The Merkle tree of a file: each level is read once, block by block, in parallel with the level
 * above, which has its hashes; and so are the data, in parallel with the lowest level. Memory is
 * two blocks, however large the file is. Unreadable blocks are skipped: they are reported
 * elsewhere.
 */

enum { LARGEST_BLOCK = 64 << 10 };

/* The blocks of a level, one after the other. */
struct level {
    struct bw_item_range range;
    bool has_item;     /* the present one of the range has bytes that are still wanted */
    uint64_t position; /* of the next block, in the tree */
    uint64_t left;     /* blocks */
    uint8_t *bytes;    /* the present block */
};

struct merkle {
    struct bw_check *check;
    const struct bw_data_file *file;

    /* The facts in the descriptor. */
    int algorithm;                     /* libgcrypt's */
    unsigned digest_size;              /* bytes of a hash */
    unsigned salt_size;                /* bytes before each block: 0, or filled with zeros */
    uint32_t block_size;               /* of data, and of the tree */
    unsigned levels;                   /* of the tree, from hashes of data on */
    uint64_t starts[BW_VERITY_DIGEST]; /* of each level, in blocks; the last one begins at 0 */
    uint64_t counts[BW_VERITY_DIGEST]; /* blocks of each level */
    uint8_t salt[2 * BW_VERITY_DIGEST];
    uint8_t root[BW_VERITY_DIGEST];

    /* Of the tree. */
    gcry_md_hd_t hash;
    uint8_t blocks[2][LARGEST_BLOCK];
    struct level above; /* the level with the hashes that are expected, one after the other */
    bool is_root;       /* no such level: the only hash is the root */
    uint32_t used;      /* of the present block of `above` */
    bool ended;         /* blocks of the tree are missing, which has been reported, or lost */

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
    struct bw_tree_reader reader = merkle->check->fs->reader;
    reader.adopter = NULL; /* lost leaves are not replaced */
    *level = (struct level){.position = merkle->starts[number] * merkle->block_size,
                            .left = merkle->counts[number],
                            .bytes = merkle->blocks[buffer]};
    const struct bw_key first = {merkle->file->inode, BW_VERITY_MERKLE_ITEM, level->position},
                        last = {merkle->file->inode, BW_VERITY_MERKLE_ITEM, UINT64_MAX};
    bw_item_range_begin(&level->range, &reader, &merkle->file->subvolume->tree, first, last);
}

/* A location about a file. */
static struct bw_finding verity_location(const struct bw_data_file *file)
{
    return BW_FINDING(BW_TOUCHES_INODE, .tree = file->subvolume->tree.id, .inode = file->inode);
}

static void report_tree(struct merkle *merkle, uint64_t position, const char *problem)
{
    struct bw_finding location = verity_location(merkle->file);
    location.row.key = (struct bw_key){merkle->file->inode, BW_VERITY_MERKLE_ITEM, position};
    bw_check_find(merkle->check, BW_CODE_verity_tree, &location, "%s", problem);
}

/* Fills the next block with the bytes of items; false: the level ends, or some are missing. */
static bool next_block(struct merkle *merkle, struct level *level)
{
    uint32_t filled = 0;
    while (level->left && filled < merkle->block_size) {
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
        const uint32_t room = merkle->block_size - filled, there = item->size - (uint32_t)skipped,
                       count = (uint32_t)bw_min(there, room);
        memcpy(level->bytes + filled, item->data + skipped, count);
        filled += count;
    }
    if (filled == merkle->block_size) {
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
    const uint32_t size = merkle->digest_size;
    if (merkle->is_root)
        return merkle->root;
    if (merkle->used + size > merkle->block_size) {
        if (!next_block(merkle, &merkle->above))
            return NULL;
        merkle->used = 0;
    }
    merkle->used += size;
    return merkle->above.bytes + merkle->used - size;
}

/* The hashes of the blocks below the level of this number. */
static void begin_hashes(struct merkle *merkle, unsigned number)
{
    merkle->is_root = number >= merkle->levels;
    merkle->used = merkle->block_size;
    if (!merkle->is_root)
        begin_level(merkle, number, 1, &merkle->above);
}

static struct bw_error *end_hashes(struct merkle *merkle, struct bw_error *error)
{
    return merkle->is_root ? error : bw_item_range_end(&merkle->above.range, error);
}

static bool matches_digest(struct merkle *merkle, const uint8_t *block, const uint8_t *expected)
{
    gcry_md_reset(merkle->hash);
    gcry_md_write(merkle->hash, merkle->salt, merkle->salt_size);
    gcry_md_write(merkle->hash, block, merkle->block_size);
    return memcmp(gcry_md_read(merkle->hash, merkle->algorithm), expected, merkle->digest_size) ==
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
        if (!matches_digest(merkle, level.bytes, expected)) {
            report_tree(merkle, level.position - merkle->block_size,
                        "a block of the Merkle tree does not have the hash above it");
            break;
        }
    return bw_item_range_end(&level.range, end_hashes(merkle, NULL));
}

/* Data. */

static void report_data(struct merkle *merkle)
{
    struct bw_finding location = verity_location(merkle->file);
    location.row.file_offset = merkle->bad_start;
    location.row.file_length = merkle->bad_end - merkle->bad_start;
    if (merkle->bad_start < merkle->bad_end)
        bw_check_find(merkle->check, BW_CODE_verity_data, &location,
                      "the data do not have their hash in the Merkle tree");
    merkle->bad_start = merkle->bad_end = 0;
}

/* The block of data that was filled, or ends with the file. */
static void end_block(struct merkle *merkle)
{
    const uint32_t size = merkle->block_size;
    const uint8_t *expected = next_hash(merkle);
    const uint64_t left = merkle->file->size - merkle->offset;
    if (!expected)
        return;
    memset(merkle->blocks[0] + merkle->filled, 0, size - merkle->filled);
    const bool good = merkle->unknown ||
                      (merkle->nonzero ? matches_digest(merkle, merkle->blocks[0], expected)
                                       : memcmp(merkle->zeros, expected, merkle->digest_size) == 0);
    if (!good && merkle->bad_end != merkle->offset)
        report_data(merkle);
    if (!good && merkle->bad_start == merkle->bad_end)
        merkle->bad_start = merkle->offset;
    merkle->offset += bw_min(left, size);
    if (!good)
        merkle->bad_end = merkle->offset;
    merkle->filled = 0;
    merkle->unknown = merkle->nonzero = false;
}

/* Adds the parts of the data to their blocks; a block that is full is compared with its hash. */
static struct bw_error *check_data(struct merkle *merkle, struct bw_data_reader *reader)
{
    const uint32_t size = merkle->block_size;
    begin_hashes(merkle, 0);
    memset(merkle->blocks[0], 0, size);
    matches_digest(merkle, merkle->blocks[0], merkle->zeros);
    memcpy(merkle->zeros, gcry_md_read(merkle->hash, merkle->algorithm), merkle->digest_size);
    const struct bw_data_part *part;
    struct bw_error *error = NULL;
    bw_data_begin(reader, merkle->file, 0, UINT64_MAX);
    while (!merkle->ended && !(error = bw_data_next(reader, &part)) && part) {
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
    }
    if (!error && !merkle->ended && merkle->filled)
        end_block(merkle);
    report_data(merkle);
    return end_hashes(merkle, error);
}

/* A file that is being deleted loses its extents, then its Merkle tree, over several transactions;
 * the next mount continues with that. */
bool bw_verity_note(struct bw_check *check, uint64_t tree, const struct bw_item *item)
{
    const struct bw_disk_inode_item *disk = (const void *)item->data;
    struct bw_inode inode;
    if (item->size < sizeof *disk || !(bw_get64(disk->flags) & BW_INODE_VERITY) ||
        !bw_inode_decode(item, &inode) || !inode.link_count)
        return false;
    pthread_mutex_lock(&check->lock);
    if (bw_verity_files_push(&check->verity_files,
                             (struct bw_verity_file){tree, item->key.objectid, inode.size,
                                                     inode.flags & BW_INODE_NODATASUM}))
        check->no_memory = true;
    pthread_mutex_unlock(&check->lock);
    return true;
}

/* Descriptors. */

/* Decodes a descriptor; returns a description of its fault, or NULL. */
static const char *decode_descriptor(struct merkle *merkle,
                                     const struct bw_disk_fsverity *descriptor, uint64_t size)
{
    const uint64_t file_size = merkle->file->size;
    static const struct bw_disk_fsverity none;
    const bool sha512 = descriptor->algorithm == 2;
    if (descriptor->version != 1 || descriptor->algorithm < 1 || descriptor->algorithm > 2)
        return "it has an unknown version or algorithm";
    if (descriptor->log_block_size < 10 || descriptor->log_block_size > 16)
        return "it has an impossible size of blocks";
    if (descriptor->salt_size > sizeof descriptor->salt)
        return "it has an impossible size of the salt";
    if (bw_get32(descriptor->signature_size) > size - sizeof *descriptor)
        return "its signature is cut off";
    if (memcmp(descriptor->reserved, none.reserved, sizeof none.reserved) != 0)
        return "its reserved bytes are not zero";
    if (bw_get64(descriptor->data_size) != file_size)
        return "it is of a file of another size";
    merkle->algorithm = sha512 ? GCRY_MD_SHA512 : GCRY_MD_SHA256;
    merkle->digest_size = sha512 ? 64 : 32;
    merkle->block_size = UINT32_C(1) << descriptor->log_block_size;
    if (descriptor->salt_size)
        merkle->salt_size = sha512 ? 128 : 64;
    memcpy(merkle->salt, descriptor->salt, descriptor->salt_size);
    memcpy(merkle->root, descriptor->root, sizeof merkle->root);

    /* Each level has the hashes of the one below, or of data, and the topmost has one block. They
     * are stored from the top. */
    const uint64_t hashes = merkle->block_size / merkle->digest_size;
    uint64_t start = 0;
    for (uint64_t blocks = file_size / merkle->block_size + (file_size % merkle->block_size != 0);
         blocks > 1; merkle->levels++) {
        blocks = blocks / hashes + (blocks % hashes != 0);
        merkle->counts[merkle->levels] = blocks;
    }
    for (unsigned level = merkle->levels; level-- > 0; start += merkle->counts[level])
        merkle->starts[level] = start;
    return NULL;
}

static struct bw_error *check_file(void *context, struct bw_data_reader *reader,
                                   const struct bw_stream_file *stream_file)
{
    static const uint8_t zeros[BW_VERITY_DIGEST];
    struct bw_check *check = context;
    const struct bw_data_file *file = &stream_file->data;
    const struct bw_finding location = verity_location(file);
    BW_AUTO_FREE struct merkle *merkle = calloc(1, sizeof *merkle);
    if (!merkle)
        return bw_error_no_memory();
    merkle->check = check;
    merkle->file = file;

    /* The descriptor: its size is in the first item, its bytes are in those from the next one on.
     */
    const struct bw_key first = {file->inode, BW_VERITY_DESC_ITEM, 0},
                        last = {file->inode, BW_VERITY_DESC_ITEM, UINT64_MAX};
    struct bw_disk_fsverity descriptor = {0};
    uint64_t size = 0;
    size_t length = 0;
    bool lost = false;
    struct bw_item_range range;
    bw_item_range_begin(&range, &check->fs->reader, &file->subvolume->tree, first, last);
    while (length < sizeof descriptor && bw_item_range_next(&range)) {
        const struct bw_item *item = &range.item;
        lost = range.error != NULL;
        if (lost)
            break;
        const struct bw_disk_verity_descriptor *head = (const void *)item->data;
        if (!item->key.offset) {
            size = item->size >= sizeof *head ? bw_get64(head->size) : 0;
            continue;
        }
        if (item->key.offset != length + 1)
            break;
        const size_t count = (size_t)bw_min(item->size, sizeof descriptor - length);
        memcpy((uint8_t *)&descriptor + length, item->data, count);
        length += count;
    }
    BW_TRY(bw_item_range_end(&range, NULL));
    if (lost)
        return NULL;
    const char *problem = NULL;
    if (!length)
        problem = "there is none";
    else if (length < sizeof descriptor || size < sizeof descriptor)
        problem = "it is cut off";
    else
        problem = decode_descriptor(merkle, &descriptor, size);
    if (problem) {
        bw_check_find(check, BW_CODE_verity_descriptor, &location,
                      "the descriptor of fs-verity: %s", problem);
        return NULL;
    }
    /* Metadumps may lack all hashes. */
    if (check->fs->no_data && memcmp(merkle->root, zeros, sizeof zeros) == 0)
        return NULL;

    /* The Merkle tree, then the data. The hash of an empty file is all zeros. */
    if (gcry_md_open(&merkle->hash, merkle->algorithm, 0))
        return bw_error_create(BW_ERROR_UNSUPPORTED, "hashes of fs-verity cannot be computed here");
    struct bw_error *error = NULL;
    for (unsigned level = merkle->levels; !error && !merkle->ended && level-- > 0;)
        error = check_level(merkle, level);
    if (!file->size && memcmp(merkle->root, zeros, merkle->digest_size) != 0)
        report_tree(merkle, 0, "an empty file has a hash");
    else if (file->size && !error && check->options->data && !merkle->ended)
        error = check_data(merkle, reader);
    gcry_md_close(merkle->hash);
    return error;
}

/* The files. */

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct bw_check *check = context;
    *got = false;
    while (!*got && check->next_verity_file < check->verity_files.count &&
           bw_check_should_continue(check, 0)) {
        const struct bw_verity_file *next = &check->verity_files.items[check->next_verity_file++];
        *file = (struct bw_stream_file){
            .data = {.subvolume = bw_subvolume_by_id(check->fs, next->tree),
                     .inode = next->inode,
                     .size = next->size < INT64_MAX ? next->size : INT64_MAX,
                     .unchecked = next->unchecked},
            .length = UINT64_MAX};
        *got = file->data.subvolume != NULL;
    }
    return NULL;
}

struct bw_error *bw_pass_verity(struct bw_check *check)
{
    if (!check->verity_files.count)
        return NULL;
    if (!(check->fs->superblock.compat_ro_flags & BW_COMPAT_RO_VERITY))
        bw_check_find(check, BW_CODE_verity_feature, NULL,
                      "%zu files have fs-verity, and compat_ro_flags lacks VERITY",
                      check->verity_files.count);
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = check->workers,
                                     .next = next_file,
                                     .work = check_file,
                                     .work_limit = UINT64_MAX,
                                     .context = check};
    BW_TRY(bw_gcrypt_prepare());
    return bw_stream_run(check->fs, &stream);
}
