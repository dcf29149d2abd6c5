/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Telling tree blocks from other bytes, and the sorted list of those that were found. */
#include "history/block_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "fs/image.h"

void bw_found_init(struct bw_found_index *index)
{
    *index = (struct bw_found_index){0};
    pthread_mutex_init(&index->lock, NULL);
}

void bw_found_free(struct bw_found_index *index)
{
    free(index->blocks);
    free(index->owners);
    free(index->starts);
    bw_map_free(&index->owner_numbers);
    pthread_mutex_destroy(&index->lock);
}

struct bw_error *bw_found_identity_of(const struct bw_fs *fs, struct bw_found_identity *identity)
{
    *identity = (struct bw_found_identity){
        .fsids = calloc(1 + fs->image_count, sizeof *identity->fsids),
        .checksum_type = fs->superblock.checksum_type,
        .dumped = fs->no_data,
        .nodesize = fs->superblock.nodesize,
    };
    if (!identity->fsids)
        return bw_error_no_memory();
    memcpy(identity->fsids[identity->fsid_count++], fs->superblock.metadata_uuid, BW_UUID_SIZE);
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role == BW_IMAGE_SEED)
            memcpy(identity->fsids[identity->fsid_count++], fs->images[i].superblock.metadata_uuid,
                   BW_UUID_SIZE);
    return NULL;
}

/* Recognising. */

bool bw_found_is_zero(const uint8_t *bytes, size_t size)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static bool has_fsid(const struct bw_found_identity *identity, const uint8_t *fsid)
{
    for (size_t i = 0; i < identity->fsid_count; i++)
        if (memcmp(identity->fsids[i], fsid, BW_UUID_SIZE) == 0)
            return true;
    return false;
}

/* All that a parent would promise is taken from the block itself: what is left to be checked is
 * whether its entries fit. */
static bool is_consistent(const struct bw_found_identity *identity, const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const struct bw_tree_block_expectation own = {.owner = bw_get64(header->owner),
                                                  .generation = bw_get64(header->generation),
                                                  .level = header->level};
    BW_AUTO_ERROR struct bw_error *error =
        bw_node_check(bytes, identity->nodesize, bw_get64(header->bytenr), &own);
    return !error;
}

/* UINT32_MAX: memory ran out. */
static uint32_t number_of_owner(struct bw_found_index *index, uint64_t id)
{
    pthread_mutex_lock(&index->lock);
    uint32_t number = bw_map_get(&index->owner_numbers, id);
    if (number == UINT32_MAX && index->owner_count < BW_FOUND_MOST_OWNER &&
        BW_ARRAY_RESERVE(index->owners, index->owner_count, index->owner_capacity) &&
        bw_map_put(&index->owner_numbers, id, (uint32_t)index->owner_count)) {
        number = (uint32_t)index->owner_count;
        index->owners[index->owner_count++] = id;
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
    if (!has_fsid(identity, header->fsid))
        return bw_found_is_zero(bytes, identity->nodesize) ? BW_FOUND_ZEROS : BW_FOUND_NOTHING;
    /* No tree has the ids 0 and -1, which the map cannot tell apart. */
    if ((bytenr != BW_FOUND_ANYWHERE && address != bytenr) || header->level >= BW_MAX_LEVEL ||
        address % BW_MIN_SECTORSIZE || !owner || owner == UINT64_MAX ||
        !bw_checksum_accepts_block(identity->checksum_type, identity->dumped, bytes,
                                   identity->nodesize) ||
        !is_consistent(identity, bytes))
        return BW_FOUND_DAMAGED;
    const struct bw_node node = bw_node_view(bytes, identity->nodesize);
    const struct bw_key first = !node.item_count ? (struct bw_key){0}
                                : node.level     ? bw_node_key(&node, 0)
                                                 : bw_leaf_key(&node, 0);
    const uint32_t number = number_of_owner(index, owner);
    if (number == UINT32_MAX)
        return BW_FOUND_DAMAGED;
    *block = (struct bw_found_block){.bytenr = address,
                                     .generation = bw_get64(header->generation),
                                     .first_objectid = first.objectid,
                                     .first_offset = first.offset,
                                     .owner = number & BW_FOUND_MOST_OWNER,
                                     .first_type = first.type,
                                     .level = node.level & BW_FOUND_MOST_LEVEL,
                                     .filled = node.item_count > 0};
    return BW_FOUND_BLOCK;
}

/* The list. */

static int compare_with(const struct bw_found_block *block, uint64_t bytenr, uint64_t generation)
{
    return block->bytenr != bytenr           ? (block->bytenr > bytenr) - (block->bytenr < bytenr)
           : block->generation != generation ? (block->generation > generation) * 2 - 1
                                             : 0;
}

static int compare(const void *left, const void *right)
{
    const struct bw_found_block *other = right;
    return compare_with(left, other->bytenr, other->generation);
}

/* Threads end their tasks nearly in order, so the place of a batch is near the end. What does not
 * fit in there is sorted later. */
static size_t place_of(const struct bw_found_index *index, const struct bw_found_block *first)
{
    enum { NEAR = 1 << 15 };
    size_t at = index->count;
    while (at && index->count - at < NEAR && compare(&index->blocks[at - 1], first) > 0)
        at--;
    return at;
}

void bw_found_add(struct bw_found_index *index, const struct bw_found_block *blocks, size_t count)
{
    if (!count)
        return;
    pthread_mutex_lock(&index->lock);
    struct bw_found_block *grown =
        bw_array_grown(index->blocks, index->count + count, &index->capacity, sizeof *blocks);
    if (!grown)
        index->no_memory = true;
    index->parts = 0;
    if (grown) {
        index->blocks = grown;
        const size_t at = place_of(index, &blocks[0]);
        index->unsorted |= at && compare(&grown[at - 1], &blocks[0]) >= 0;
        index->unsorted |= at < index->count && compare(&blocks[count - 1], &grown[at]) >= 0;
        for (size_t i = 1; i < count; i++)
            index->unsorted |= compare(&blocks[i - 1], &blocks[i]) >= 0;
        memmove(grown + at + count, grown + at, (index->count - at) * sizeof *grown);
        memcpy(grown + at, blocks, count * sizeof *grown);
        index->count += count;
    }
    pthread_mutex_unlock(&index->lock);
}

/* Divides the addresses into parts, so that a search begins among few blocks if they lie evenly.
 * Without memory, it begins among all of them. */
static void divide(struct bw_found_index *index)
{
    enum { BLOCKS_OF_A_PART = 8 };
    const uint64_t lowest = index->count ? index->blocks[0].bytenr : 0;
    const uint64_t span = index->count ? index->blocks[index->count - 1].bytenr - lowest : 0;
    unsigned shift = 0;
    free(index->starts);
    index->starts = NULL;
    index->parts = 0;
    while (span >> shift > index->count / BLOCKS_OF_A_PART + 1)
        shift++;
    const size_t parts = (size_t)(span >> shift) + 1;
    if (index->count <= UINT32_MAX)
        index->starts = malloc((parts + 1) * sizeof *index->starts);
    if (!index->starts)
        return;
    index->parts = parts;
    index->part_shift = shift;
    for (size_t part = 0, at = 0; part <= parts; part++) {
        while (at < index->count && (index->blocks[at].bytenr - lowest) >> shift < part)
            at++;
        index->starts[part] = (uint32_t)at;
    }
}

static void sort(struct bw_found_index *index)
{
    size_t kept = 0;
    qsort(index->blocks, index->count, sizeof *index->blocks, compare);
    for (size_t i = 0; i < index->count; i++)
        if (!kept || compare(&index->blocks[kept - 1], &index->blocks[i]) != 0)
            index->blocks[kept++] = index->blocks[i];
    index->count = kept;
    index->unsorted = false;
}

void bw_found_sort(struct bw_found_index *index)
{
    struct bw_found_block *fitting =
        index->count ? realloc(index->blocks, index->count * sizeof *fitting) : NULL;
    if (fitting) {
        index->blocks = fitting;
        index->capacity = index->count;
    }
    if (index->unsorted)
        sort(index);
    divide(index);
}

const struct bw_found_block *bw_found_find(const struct bw_found_index *index, uint64_t bytenr,
                                           uint64_t generation)
{
    const struct bw_found_block *blocks = index->blocks;
    size_t count = index->count;
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
