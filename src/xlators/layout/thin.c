/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The superblock leads to a tree whose values are the roots of other trees, one for each volume.
 * The tree of a volume maps its blocks to blocks of the pool. Nodes that were read remain in a
 * cache.
 */
#include "xlators/layout/thin.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crc32c.h"
#include "base/endian.h"

enum {
    SECTOR = 512,
    SLOTS = 256,  /* nodes in memory */
    DEEPEST = 16, /* levels of a tree */
    MAGIC = 27022010,
    NEWEST = 2,
    TIME_BITS = 24, /* below the number of a block of the pool */
};

/* The CRC-32C of a block is combined with a number that depends on its type. */
enum { MARK_SUPERBLOCK = 160774, MARK_NODE = 121107 };

struct disk_superblock {
    bw_le32 checksum, flags;
    bw_le64 block;
    uint8_t uuid[16];
    bw_le64 magic;
    bw_le32 version, time;
    bw_le64 transaction, held;
    uint8_t space_maps[2][128];
    bw_le64 mapping_root, details_root;
    bw_le32 chunk, metadata_block; /* sizes in sectors */
    bw_le64 blocks;
    bw_le32 compat, compat_ro, incompat;
} __attribute__((packed));

static_assert(offsetof(struct disk_superblock, mapping_root) == 320, "as on disk");

enum { NODE_INTERNAL = 1, NODE_LEAF = 2 };

struct disk_node {
    bw_le32 checksum, flags;
    bw_le64 block;
    bw_le32 count, room, value_size, padding;
    bw_le64 keys[(BW_THIN_BLOCK - 32) / sizeof(bw_le64)]; /* `room` of them, then the values */
};

static_assert(sizeof(struct disk_node) == BW_THIN_BLOCK, "as on disk");

struct slot {
    uint64_t block; /* 0: empty */
    struct disk_node node;
};

struct bw_thin {
    struct bw_thin_target target;
    uint64_t root;
    pthread_mutex_t lock; /* protects the slots */
    struct slot slots[SLOTS];
};

static bool is_right(const void *block, uint32_t mark)
{
    bw_le32 stored;
    memcpy(&stored, block, sizeof stored);
    const uint32_t found = bw_crc32c(UINT32_MAX, (const uint8_t *)block + sizeof stored,
                                     BW_THIN_BLOCK - sizeof stored);
    return bw_get32(stored) == (found ^ mark);
}

/* Reads a block from the first copy with the right checksum. */
static struct bw_error *read_block(const struct bw_thin *thin, const struct bw_frame *frame,
                                   uint64_t number, uint32_t mark, void *block)
{
    struct bw_error *first = NULL;
    if (number > INT64_MAX / BW_THIN_BLOCK)
        return bw_error_create(BW_ERROR_CORRUPT, "the thin metadata have no block %" PRIu64,
                               number);
    for (unsigned copy = 0;; copy++) {
        struct bw_error *error =
            thin->target.read(thin->target.context, frame, number * BW_THIN_BLOCK, copy, block);
        if (!error && is_right(block, mark)) {
            bw_error_free(first);
            return NULL;
        }
        if (copy && error && error->code == BW_ERROR_NOT_FOUND) {
            bw_error_free(error);
            return bw_error_prefix(first, "block %" PRIu64 " of the thin metadata", number);
        }
        if (!error)
            error = bw_error_create(BW_ERROR_CORRUPT, "the checksum is wrong");
        first = bw_error_first(first, error);
    }
}

/* Nodes. */

static struct bw_error *check_node(const struct disk_node *node, uint64_t number)
{
    const uint32_t flags = bw_get32(node->flags), count = bw_get32(node->count);
    const uint32_t room = bw_get32(node->room);
    const uint32_t most = sizeof node->keys / (sizeof(bw_le64) + sizeof(bw_le64));
    bool is_one = (flags == NODE_INTERNAL || flags == NODE_LEAF) &&
                  bw_get64(node->block) == number && count <= room && room <= most &&
                  bw_get32(node->value_size) == sizeof(bw_le64);
    for (uint32_t i = 1; i < count && is_one; i++)
        is_one = bw_get64(node->keys[i - 1]) < bw_get64(node->keys[i]);
    if (is_one)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT,
                           "block %" PRIu64 " of the thin metadata is not a valid node", number);
}

static uint64_t key_at(const struct disk_node *node, uint32_t index)
{
    return bw_get64(node->keys[index]);
}

static uint64_t value_at(const struct disk_node *node, uint32_t index)
{
    return bw_get64(node->keys[bw_get32(node->room) + index]);
}

/* Loads a node into its slot; the lock is held. */
static struct bw_error *load_node(struct bw_thin *thin, const struct bw_frame *frame,
                                  uint64_t number, const struct disk_node **node)
{
    struct slot *slot = &thin->slots[number % SLOTS];
    *node = &slot->node;
    if (slot->block == number && number)
        return NULL;
    slot->block = 0;
    BW_TRY(read_block(thin, frame, number, MARK_NODE, &slot->node));
    BW_TRY(check_node(&slot->node, number));
    slot->block = number;
    return NULL;
}

/* The number of keys that are not greater than one. */
static uint32_t count_up_to(const struct disk_node *node, uint64_t key)
{
    uint32_t low = 0, high = bw_get32(node->count);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (key_at(node, middle) <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the leaf of a key. `next` becomes the first key of the leaf after it; UINT64_MAX: none. */
static struct bw_error *find_leaf(struct bw_thin *thin, const struct bw_frame *frame, uint64_t root,
                                  uint64_t key, const struct disk_node **leaf, uint64_t *next)
{
    uint64_t number = root;
    *next = UINT64_MAX;
    for (unsigned depth = 0; depth < DEEPEST; depth++) {
        BW_TRY(load_node(thin, frame, number, leaf));
        if (bw_get32((*leaf)->flags) == NODE_LEAF)
            return NULL;
        const uint32_t count = count_up_to(*leaf, key), all = bw_get32((*leaf)->count);
        if (!all)
            break;
        const uint32_t index = count ? count - 1 : 0;
        if (index + 1 < all)
            *next = key_at(*leaf, index + 1);
        number = value_at(*leaf, index);
    }
    return bw_error_create(BW_ERROR_CORRUPT,
                           "a tree of the thin metadata is damaged at block "
                           "%" PRIu64,
                           number);
}

/* Opening. */

static struct bw_error *check_superblock(const struct disk_superblock *superblock,
                                         const struct bw_thin_target *target)
{
    const uint64_t chunk = (uint64_t)bw_get32(superblock->chunk) * SECTOR;
    if (bw_get64(superblock->magic) != MAGIC)
        return bw_error_create(BW_ERROR_CORRUPT, "the superblock of the thin pool is damaged");
    if (bw_get32(superblock->version) > NEWEST || bw_get32(superblock->incompat) ||
        bw_get32(superblock->metadata_block) != BW_THIN_BLOCK / SECTOR)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the thin pool has version %" PRIu32 " and the features 0x%" PRIx32
                               ", which are not read",
                               bw_get32(superblock->version), bw_get32(superblock->incompat));
    if (!chunk || chunk != target->chunk)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the thin pool has blocks of %" PRIu64 " bytes, not of %" PRIu64,
                               chunk, target->chunk);
    return NULL;
}

static struct bw_error *find_root(struct bw_thin *thin, const struct bw_frame *frame, uint64_t top)
{
    const struct disk_node *leaf;
    uint64_t next;
    BW_TRY(find_leaf(thin, frame, top, thin->target.device, &leaf, &next));
    const uint32_t count = count_up_to(leaf, thin->target.device);
    if (!count || key_at(leaf, count - 1) != thin->target.device)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the thin pool has no volume %" PRIu64,
                               thin->target.device);
    thin->root = value_at(leaf, count - 1);
    return NULL;
}

struct bw_error *bw_thin_open(const struct bw_frame *frame, const struct bw_thin_target *target,
                              struct bw_thin **made)
{
    union {
        struct disk_superblock superblock;
        uint8_t bytes[BW_THIN_BLOCK];
    } block;
    struct bw_thin *thin = calloc(1, sizeof *thin);
    if (!thin)
        return bw_error_no_memory();
    thin->target = *target;
    pthread_mutex_init(&thin->lock, NULL);
    struct bw_error *error = read_block(thin, frame, 0, MARK_SUPERBLOCK, &block);
    if (!error)
        error = check_superblock(&block.superblock, target);
    if (!error)
        error = find_root(thin, frame, bw_get64(block.superblock.mapping_root));
    if (error)
        bw_thin_close(thin);
    else
        *made = thin;
    return error;
}

void bw_thin_close(struct bw_thin *thin)
{
    if (!thin)
        return;
    pthread_mutex_destroy(&thin->lock);
    free(thin);
}

/* Locating. */

static uint64_t block_at(const struct disk_node *leaf, uint32_t index)
{
    return value_at(leaf, index) >> TIME_BITS;
}

/* The number of blocks from an entry of a leaf on that are next to each other in the pool. */
static uint64_t count_run(const struct disk_node *leaf, uint32_t index)
{
    uint32_t end = index + 1;
    while (end < bw_get32(leaf->count) && key_at(leaf, end) == key_at(leaf, end - 1) + 1 &&
           block_at(leaf, end) == block_at(leaf, end - 1) + 1)
        end++;
    return end - index;
}

/* A range that ends before block `end`. */
static uint64_t length_until(const struct bw_thin *thin, uint64_t end, uint64_t address)
{
    return end > UINT64_MAX / thin->target.chunk ? UINT64_MAX : end * thin->target.chunk - address;
}

struct bw_error *bw_thin_find(struct bw_thin *thin, const struct bw_frame *frame, uint64_t address,
                              struct bw_thin_run *run)
{
    const uint64_t block = address / thin->target.chunk, inside = address % thin->target.chunk;
    const struct disk_node *leaf;
    uint64_t next;
    *run = (struct bw_thin_run){.is_mapped = false};
    pthread_mutex_lock(&thin->lock);
    struct bw_error *error = find_leaf(thin, frame, thin->root, block, &leaf, &next);
    if (!error) {
        const uint32_t count = count_up_to(leaf, block);
        run->is_mapped = count && key_at(leaf, count - 1) == block;
        if (run->is_mapped) {
            run->offset = block_at(leaf, count - 1) * thin->target.chunk + inside;
            next = block + count_run(leaf, count - 1);
        } else if (count < bw_get32(leaf->count)) {
            next = key_at(leaf, count);
        }
        run->length = length_until(thin, next, address);
        if (run->is_mapped && block_at(leaf, count - 1) > INT64_MAX / thin->target.chunk)
            error = bw_error_create(BW_ERROR_CORRUPT, "the thin pool has no block %" PRIu64,
                                    block_at(leaf, count - 1));
    }
    pthread_mutex_unlock(&thin->lock);
    return error;
}
