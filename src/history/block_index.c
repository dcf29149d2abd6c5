/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The index of tree blocks that a scan has found: recognising blocks among other bytes, the sorted
 * list, its file, and verifying the claims of such a file.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/pool.h"
#include "base/search.h"
#include "base/vector.h"
#include "base/zeros.h"
#include "btree/block.h"
#include "fs/image.h"
#include "history/block_index.h"
#include "history/history.h"

void bw_found_init(struct bw_found_index *index)
{
    *index = (struct bw_found_index){0};
    pthread_mutex_init(&index->lock, NULL);
}

void bw_found_free(struct bw_found_index *index)
{
    bw_found_blocks_free(&index->blocks);
    bw_numbers_free(&index->owners);
    free(index->starts);
    bw_key_map_free(&index->owner_numbers);
    pthread_mutex_destroy(&index->lock);
}

/* The chunk_tree_uuid of a block that the superblock names, in `uuid`; false if it is unreadable.
 */
static bool read_chunk_tree_uuid(const struct bw_fs *fs, uint64_t owner,
                                 const struct bw_root_pointer *root, uint8_t *block, uint8_t *uuid)
{
    struct bw_tree_reader reader = fs->reader;
    const struct bw_tree tree = {.id = owner, .root = *root};
    const struct bw_block_pointer pointer = bw_tree_root_pointer(&tree, false);
    reader.adopter = NULL;
    if (!root->bytenr || root->level >= BW_MAX_LEVEL)
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&reader, &pointer, block);
    if (!error)
        memcpy(uuid, ((const struct bw_disk_header *)block)->chunk_tree_uuid, BW_UUID_SIZE);
    return !error;
}

/* Sets the chunk_tree_uuid of the file system; to zeros if it is unknown. Every transaction writes
 * the roots of the root tree and the extent tree. The chunk root is usually much older, so a block
 * of a previous file system with the same fsid may have its address and generation. */
static struct bw_error *find_chunk_tree_uuid(const struct bw_fs *fs, uint8_t *uuid)
{
    const struct bw_superblock *super = &fs->superblock;
    const uint64_t changing = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2;
    memcpy(uuid, fs->chunk_tree_uuid, BW_UUID_SIZE);
    if (!bw_is_zeros(uuid, BW_UUID_SIZE) || (super->flags & changing))
        return NULL;
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    if (read_chunk_tree_uuid(fs, BW_ROOT_TREE, &super->root, block, uuid))
        return NULL;
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &super->backup_roots[i];
        if (backup->extent_root.generation == super->generation &&
            read_chunk_tree_uuid(fs, BW_EXTENT_TREE, &backup->extent_root, block, uuid))
            return NULL;
    }
    read_chunk_tree_uuid(fs, BW_CHUNK_TREE, &super->chunk_root, block, uuid);
    return NULL;
}

struct bw_error *bw_found_identity_of(const struct bw_fs *fs, struct bw_found_identity *identity)
{
    uint8_t fsids[2][BW_UUID_SIZE];
    *identity = (struct bw_found_identity){
        .ids = calloc(2 + fs->image_count, sizeof *identity->ids),
        .checksum_type = fs->superblock.checksum_type,
        .other_checksums = bw_fs_other_checksums(fs),
        .nodesize = fs->superblock.nodesize,
    };
    if (!identity->ids)
        return bw_error_no_memory();
    identity->id_count = bw_superblock_block_ids(&fs->superblock, fsids);
    for (size_t i = 0; i < identity->id_count; i++)
        memcpy(identity->ids[i].fsid, fsids[i], BW_UUID_SIZE);
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role == BW_IMAGE_SEED)
            memcpy(identity->ids[identity->id_count++].fsid, fs->images[i].superblock.metadata_uuid,
                   BW_UUID_SIZE);
    return find_chunk_tree_uuid(fs, identity->ids[0].chunk_tree_uuid);
}

/* Recognising blocks. */

/* The first key of a block; zeros if it is empty. */
static struct bw_key first_key_of(const struct bw_node *node)
{
    if (!node->item_count)
        return (struct bw_key){0};
    return bw_first_key(node);
}

bool bw_found_has_ids(const struct bw_found_identity *identity, const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    for (size_t i = 0; i < identity->id_count; i++) {
        const struct bw_block_ids *ids = &identity->ids[i];
        if (memcmp(ids->fsid, header->fsid, BW_UUID_SIZE) == 0 &&
            (memcmp(ids->chunk_tree_uuid, header->chunk_tree_uuid, BW_UUID_SIZE) == 0 ||
             bw_is_zeros(ids->chunk_tree_uuid, BW_UUID_SIZE)))
            return true;
    }
    return false;
}

/* The index of an owner in index->owners; UINT32_MAX if memory ran out. */
static uint32_t number_of_owner(struct bw_found_index *index, uint64_t id)
{
    pthread_mutex_lock(&index->lock);
    uint32_t number = bw_key_map_get(&index->owner_numbers, id, UINT32_MAX);
    if (number == UINT32_MAX && index->owners.count < BW_FOUND_MOST_OWNER &&
        !bw_numbers_reserve(&index->owners, 1) &&
        !bw_key_map_put(&index->owner_numbers, id, (uint32_t)index->owners.count)) {
        number = (uint32_t)index->owners.count;
        index->owners.items[index->owners.count++] = id;
    }
    if (number == UINT32_MAX)
        index->no_memory = true;
    pthread_mutex_unlock(&index->lock);
    return number;
}

enum bw_found_kind bw_found_recognise(const struct bw_found_identity *identity,
                                      struct bw_found_index *index, const uint8_t *bytes,
                                      uint64_t bytenr, struct bw_found_block *block)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const uint64_t address = bw_get64(header->bytenr), owner = bw_get64(header->owner);
    const uint64_t flags = bw_get64(header->flags);
    if (!bw_found_has_ids(identity, bytes))
        return bw_is_zeros(bytes, identity->nodesize) ? BW_FOUND_ZEROS : BW_FOUND_NOTHING;
    /* no tree has the ids 0 and -1, which the map uses as markers */
    if ((bytenr != BW_FOUND_ANYWHERE && address != bytenr) || header->level >= BW_MAX_LEVEL ||
        address % BW_MIN_SECTORSIZE || !owner || owner == UINT64_MAX ||
        !bw_checksum_accepts_block(identity->checksum_type, identity->other_checksums, bytes,
                                   identity->nodesize))
        return BW_FOUND_DAMAGED;

    /* Only the layout of its entries is checked: what a parent would promise is read from the block
     * itself. */
    const struct bw_tree_block_expectation own = {
        .owner = owner, .generation = bw_get64(header->generation), .level = header->level};
    BW_AUTO_ERROR struct bw_error *bad = bw_node_check(bytes, identity->nodesize, address, &own);
    if (bad)
        return BW_FOUND_DAMAGED;
    const struct bw_node node = bw_node_view(bytes, identity->nodesize);
    const struct bw_key first = first_key_of(&node);
    const uint32_t number = number_of_owner(index, owner);
    if (number == UINT32_MAX)
        return BW_FOUND_DAMAGED;
    *block = (struct bw_found_block){.bytenr = address,
                                     .generation = own.generation,
                                     .first_objectid = first.objectid,
                                     .first_offset = first.offset,
                                     .owner = number & BW_FOUND_MOST_OWNER,
                                     .first_type = first.type,
                                     .level = node.level & BW_FOUND_MOST_LEVEL,
                                     .filled = node.item_count > 0,
                                     .relocated = (flags & BW_HEADER_RELOCATED) > 0};
    return BW_FOUND_BLOCK;
}

/* The list of blocks. */

static int compare_with(const struct bw_found_block *block, uint64_t bytenr, uint64_t generation)
{
    return BW_COMPARE_ALL(((uint64_t[]){block->bytenr, block->generation}),
                          ((uint64_t[]){bytenr, generation}));
}

static int compare_blocks(const void *left, const void *right)
{
    const struct bw_found_block *other = right;
    return compare_with(left, other->bytenr, other->generation);
}

/* The same block of several mirrors: the order must not depend on the threads that found them. */
static int compare_contents(const void *left, const void *right)
{
    const int order = compare_blocks(left, right);
    return order ? order : memcmp(left, right, sizeof(struct bw_found_block));
}

void bw_found_add(struct bw_found_index *index, const struct bw_found_block *blocks, size_t count)
{
    enum { NEAR = 1 << 15 };
    if (!count)
        return;
    pthread_mutex_lock(&index->lock);
    struct bw_found_blocks *all = &index->blocks;
    const bool has_room = !bw_found_blocks_reserve(all, count);
    index->no_memory |= !has_room;
    index->parts = 0;
    if (has_room) {
        /* Threads complete their tasks nearly in order, so the position of a batch is near the end.
         * Blocks that do not fit there are sorted later. */
        size_t at = all->count;
        while (at && all->count - at < NEAR && compare_blocks(&all->items[at - 1], &blocks[0]) > 0)
            at--;
        struct bw_found_block *place = all->items + at;
        index->unsorted |= at && compare_blocks(&place[-1], &blocks[0]) >= 0;
        index->unsorted |= at < all->count && compare_blocks(&blocks[count - 1], place) >= 0;
        for (size_t i = 1; i < count; i++)
            index->unsorted |= compare_blocks(&blocks[i - 1], &blocks[i]) >= 0;
        memmove(place + count, place, (all->count - at) * sizeof *place);
        memcpy(place, blocks, count * sizeof *place);
        all->count += count;
    }
    pthread_mutex_unlock(&index->lock);
}

/* Divides the addresses into parts of equal length, so that a search starts with few blocks.
 * Without memory for the parts, it starts with all blocks. */
static void divide_addresses(struct bw_found_index *index)
{
    enum { BLOCKS_OF_A_PART = 8 };
    const uint64_t lowest = index->blocks.count ? index->blocks.items[0].bytenr : 0;
    const uint64_t span =
        index->blocks.count ? index->blocks.items[index->blocks.count - 1].bytenr - lowest : 0;
    unsigned shift = 0;
    free(index->starts);
    index->starts = NULL;
    index->parts = 0;
    while (span >> shift > index->blocks.count / BLOCKS_OF_A_PART + 1)
        shift++;
    const size_t parts = (size_t)(span >> shift) + 1;
    if (index->blocks.count <= UINT32_MAX)
        index->starts = malloc((parts + 1) * sizeof *index->starts);
    if (!index->starts)
        return;
    index->parts = parts;
    index->part_shift = shift;
    for (size_t part = 0, at = 0; part <= parts; part++) {
        while (at < index->blocks.count &&
               (index->blocks.items[at].bytenr - lowest) >> shift < part)
            at++;
        index->starts[part] = (uint32_t)at;
    }
}

/* Numbers the owners in the order of their ids. Threads have found them in any order. */
static void sort_owners(struct bw_found_index *index)
{
    const size_t count = index->owners.count;
    BW_AUTO_FREE uint64_t *found = calloc(count + 1, sizeof *found);
    BW_AUTO_FREE uint32_t *numbers = calloc(count + 1, sizeof *numbers); /* new ones */
    if (!found || !numbers) {
        index->no_memory = true;
        return;
    }
    uint64_t *ids = index->owners.items;
    for (size_t i = 0; i < count; i++)
        found[i] = ids[i];
    if (count)
        qsort(ids, count, sizeof *ids, bw_compare_first);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)BW_FIRST_INDEX(k, count, ids[k] >= found[i]);
        BW_AUTO_ERROR struct bw_error *error =
            bw_key_map_put(&index->owner_numbers, found[i], numbers[i]);
        index->no_memory |= error != NULL;
    }
    for (size_t i = 0; count && i < index->blocks.count; i++) {
        struct bw_found_block *block = &index->blocks.items[i];
        block->owner = numbers[block->owner] & BW_FOUND_MOST_OWNER;
    }
}

void bw_found_sort(struct bw_found_index *index)
{
    sort_owners(index);
    struct bw_found_blocks *blocks = &index->blocks;
    struct bw_found_block *fitting =
        blocks->count ? realloc(blocks->items, blocks->count * sizeof *fitting) : NULL;
    if (fitting) {
        blocks->items = fitting;
        blocks->capacity = blocks->count;
    }
    if (index->unsorted) {
        size_t kept = 0;
        bw_found_blocks_sort(blocks, compare_contents);
        for (size_t i = 0; i < blocks->count; i++)
            if (!kept || compare_blocks(&blocks->items[kept - 1], &blocks->items[i]) != 0)
                blocks->items[kept++] = blocks->items[i];
        blocks->count = kept;
        index->unsorted = false;
    }
    divide_addresses(index);
}

const struct bw_found_block *bw_found_find(const struct bw_found_index *index, uint64_t bytenr,
                                           uint64_t generation)
{
    const struct bw_found_block *blocks = index->blocks.items;
    size_t count = index->blocks.count;
    if (count && index->parts) {
        const uint64_t part = (bytenr - blocks->bytenr) >> index->part_shift;
        if (bytenr < blocks->bytenr || part >= index->parts)
            return NULL;
        count = index->starts[part + 1] - index->starts[part];
        blocks += index->starts[part];
    }
    const size_t at = BW_FIRST_INDEX(i, count, compare_with(&blocks[i], bytenr, generation) >= 0);
    return at < count && compare_with(&blocks[at], bytenr, generation) == 0 ? &blocks[at] : NULL;
}

/*
 * The index of a scan as a file, little-endian: a header, the ids of owners, the blocks. It is
 * valid only for the same superblocks and sizes of images, because any transaction may overwrite
 * older blocks. It is as untrusted as an image: it only contains addresses, and the blocks at these
 * addresses are verified below.
 */

enum { VERSION = 2, BATCH = 1024 };

static const char magic[8] = "BWINDEX\n";

struct file_header {
    char magic[8];
    bw_le32 version, nodesize;
    uint8_t fsid[BW_UUID_SIZE];
    bw_le64 generation;
    bw_le64 log_root; /* the log is written to free space, without a new generation */
    bw_le64 images;   /* a hash of the devices with their sizes and generations */
    bw_le64 owners, blocks;
    bw_le64 zeros, bytes, unread; /* of struct bw_history_facts */
    bw_le64 hash;                 /* of everything after it */
};

struct file_block {
    bw_le64 bytenr, generation, first_objectid, first_offset;
    bw_le32 owner;
    bw_le16 filled; /* not 0: it has items */
    uint8_t first_type, level;
};

static_assert(sizeof(struct file_header) == 104 && sizeof(struct file_block) == 40,
              "as in the file");

/* The header for the present state of the images. Their hash does not depend on their order. */
static struct file_header header_of(const struct bw_history *history, uint64_t hash)
{
    const struct bw_fs *fs = history->fs;
    const struct bw_superblock *superblock = &fs->superblock;
    uint64_t images = 0;
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->role == BW_IMAGE_UNUSED || !image->storage)
            continue;
        const struct bw_superblock *super = &image->superblock;
        const bw_le64 numbers[] = {bw_put64(super->device.devid), bw_put64(super->generation),
                                   bw_put64(super->root.bytenr), bw_put64(super->chunk_root.bytenr),
                                   bw_put64(bw_xlator_size(image->storage))};
        images += XXH64(numbers, sizeof numbers, 0);
    }
    struct file_header header = {.version = bw_put32(VERSION),
                                 .nodesize = bw_put32(superblock->nodesize),
                                 .generation = bw_put64(superblock->generation),
                                 .log_root = bw_put64(superblock->log_root),
                                 .images = bw_put64(images),
                                 .owners = bw_put64(history->index.owners.count),
                                 .blocks = bw_put64(history->index.blocks.count),
                                 .zeros = bw_put64(history->facts.zeros),
                                 .bytes = bw_put64(history->facts.bytes),
                                 .unread = bw_put64(history->facts.unread),
                                 .hash = bw_put64(hash)};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.fsid, superblock->metadata_uuid, BW_UUID_SIZE);
    return header;
}

/* Writing the file. */

/* Writes everything but the header. */
static struct bw_error *write_body(const struct bw_found_index *index, bw_consumer *consume,
                                   void *context)
{
    struct file_block blocks[BATCH];
    for (size_t i = 0; i < index->owners.count; i++) {
        const bw_le64 id = bw_put64(index->owners.items[i]);
        BW_TRY(consume(context, (const char *)&id, sizeof id));
    }
    for (size_t done = 0; done < index->blocks.count;) {
        size_t count = 0;
        for (; count < BATCH && done < index->blocks.count; count++) {
            const struct bw_found_block *block = &index->blocks.items[done++];
            blocks[count] = (struct file_block){.bytenr = bw_put64(block->bytenr),
                                                .generation = bw_put64(block->generation),
                                                .first_objectid = bw_put64(block->first_objectid),
                                                .first_offset = bw_put64(block->first_offset),
                                                .owner = bw_put32(block->owner),
                                                .filled = bw_put16(block->filled),
                                                .first_type = block->first_type,
                                                .level = block->level};
        }
        BW_TRY(consume(context, (const char *)blocks, count * sizeof *blocks));
    }
    return NULL;
}

static struct bw_error *add_to_hash(void *context, const char *bytes, size_t length)
{
    XXH64_update(context, bytes, length);
    return NULL;
}

struct bw_error *bw_history_write_index(const struct bw_history *history, bw_consumer *consume,
                                        void *context)
{
    XXH64_state_t *state = XXH64_createState();
    if (!state)
        return bw_error_no_memory();
    XXH64_reset(state, 0);
    struct bw_error *error = write_body(&history->index, add_to_hash, state);
    const struct file_header header = header_of(history, XXH64_digest(state));
    XXH64_freeState(state);
    error = error ? error : consume(context, (const char *)&header, sizeof header);
    return error ? error : write_body(&history->index, consume, context);
}

/* Reading the file. */

bool bw_history_is_index(const void *bytes, size_t size)
{
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

/* Reads the ids of the owners and the blocks; false if memory runs out, if the blocks are not in
 * order, or if an owner or a level does not exist. */
static bool read_index(struct bw_found_index *index, const uint8_t *bytes, size_t owners,
                       size_t blocks)
{
    index->owners.items = malloc(owners * sizeof *index->owners.items + 1);
    if (!index->owners.items)
        return false;
    for (size_t i = 0; i < owners; i++)
        index->owners.items[i] = bw_get64(((const bw_le64 *)bytes)[i]);
    index->owners.count = index->owners.capacity = owners;

    const struct file_block *stored = (const void *)(bytes + owners * sizeof(bw_le64));
    struct bw_found_blocks *all = &index->blocks;
    if (bw_found_blocks_reserve(all, blocks))
        return false;
    for (; all->count < blocks; all->count++, stored++) {
        const uint32_t owner = bw_get32(stored->owner);
        struct bw_found_block *block = &all->items[all->count];
        *block = (struct bw_found_block){.bytenr = bw_get64(stored->bytenr),
                                         .generation = bw_get64(stored->generation),
                                         .first_objectid = bw_get64(stored->first_objectid),
                                         .first_offset = bw_get64(stored->first_offset),
                                         .owner = owner & BW_FOUND_MOST_OWNER,
                                         .first_type = stored->first_type,
                                         .level = stored->level & BW_FOUND_MOST_LEVEL,
                                         .filled = bw_get16(stored->filled) > 0};
        if (block->owner != owner || owner >= owners || block->level != stored->level ||
            (all->count && compare_blocks(&block[-1], block) >= 0))
            return false;
    }
    return true;
}

bool bw_history_read_index(struct bw_history *history, const void *bytes, size_t size)
{
    const struct file_header *header = bytes, ours = header_of(history, 0);
    if (size < sizeof *header || memcmp(header, &ours, offsetof(struct file_header, owners)) != 0)
        return false;
    const size_t rest = size - sizeof *header;
    const uint64_t owners = bw_get64(header->owners), blocks = bw_get64(header->blocks);
    if (owners > rest / sizeof(bw_le64) || blocks > rest / sizeof(struct file_block) ||
        owners * sizeof(bw_le64) + blocks * sizeof(struct file_block) != rest ||
        XXH64(header + 1, rest, 0) != bw_get64(header->hash))
        return false;
    if (!read_index(&history->index, (const uint8_t *)(header + 1), (size_t)owners,
                    (size_t)blocks)) {
        bw_found_free(&history->index);
        bw_found_init(&history->index);
        return false;
    }
    history->facts = (struct bw_history_facts){.scanned = true,
                                               .index_used = true,
                                               .zeros = bw_get64(header->zeros),
                                               .bytes = bw_get64(header->bytes),
                                               .unread = bw_get64(header->unread)};
    return true;
}

/* An index from a file is a list of claims. All of its blocks are read again, and blocks that
 * differ from the claims are dropped, because the completeness of generations depends on the
 * index. */

/* Verifying. A block that no longer exists gets a number that no owner has. */
enum { GONE = BW_FOUND_MOST_OWNER };

static bool is_as_recorded(const struct bw_history *history, const struct bw_found_block *block,
                           const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const struct bw_node node = bw_node_view(bytes, history->reader.nodesize);
    const struct bw_key recorded = bw_found_first_key(block), first = first_key_of(&node);
    return bw_get64(header->owner) == bw_found_owner(&history->index, block) &&
           (node.item_count > 0) == block->filled && bw_key_compare(&first, &recorded) == 0;
}

static void verify_batch(void *context, unsigned worker, size_t task)
{
    struct bw_history *history = context;
    const uint32_t nodesize = history->reader.nodesize;
    const unsigned batch = bw_block_batch(&history->reader);
    struct bw_found_block *blocks = history->index.blocks.items + task * batch;
    const size_t count = (size_t)bw_min(history->index.blocks.count - task * batch, batch);
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&history->reader, batch);
    (void)worker;
    if (!buffer) {
        history->index.no_memory = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        pointers[i] = bw_found_pointer(&history->index, &blocks[i]);
        requests[i] = bw_block_request(&history->reader, &pointers[i], buffer + i * nodesize);
        requests[i].keep = false;
    }
    bw_blocks_read(&history->reader, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (requests[i].error || !is_as_recorded(history, &blocks[i], requests[i].buffer))
            blocks[i].owner = GONE;
        bw_error_free(requests[i].error);
    }
}

struct bw_error *bw_history_verify_index(struct bw_history *history, unsigned threads)
{
    struct bw_found_index *index = &history->index;
    const unsigned batch = bw_block_batch(&history->reader);
    struct bw_pool *pool = bw_pool_create(bw_pool_workers(threads));
    if (!pool)
        return bw_error_no_memory();
    bw_pool_run(pool, (index->blocks.count + batch - 1) / batch, verify_batch, history);
    bw_pool_destroy(pool);
    size_t kept = 0;
    for (size_t i = 0; i < index->blocks.count; i++)
        if (index->blocks.items[i].owner != GONE)
            index->blocks.items[kept++] = index->blocks.items[i];
    index->blocks.count = kept;
    return index->no_memory ? bw_error_no_memory() : NULL;
}
