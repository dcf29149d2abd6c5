/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packed records. The first chunk begins small; whole chunks are mapped, so that freeing them
 * returns the memory to the system, whichever thread does it. The index is an open-addressing table
 * with linear probing over the tags, which lie close together: a record is read only if its tag
 * matches.
 */
#include "base/packed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash_table.h"

enum {
    CHUNK = BW_PACKED_UNIT << BW_PACKED_CHUNK_BITS,
    FIRST_SIZE = 512,
    FIRST_SLOTS = 16,
    KEPT_SLOTS = 1 << 14,  /* of an index that is used again */
    SMALL_SLOTS = 1 << 16, /* up to here an index is doubled: memory matters less than time */
};

static void free_chunk(struct bw_packed_chunk *chunk)
{
    if (chunk->size == CHUNK)
        munmap(chunk->bytes, CHUNK);
    else
        free(chunk->bytes);
}

static void free_index(struct bw_packed *packed)
{
    free(packed->places);
    packed->places = NULL;
    packed->slots = packed->indexed = 0;
}

void bw_packed_free(struct bw_packed *packed)
{
    for (size_t i = 0; i < packed->chunks.count; i++)
        free_chunk(&packed->chunks.items[i]);
    bw_packed_chunks_free(&packed->chunks);
    free_index(packed);
    *packed = (struct bw_packed){0};
}

void bw_packed_clear(struct bw_packed *packed)
{
    while (packed->chunks.count > 1)
        free_chunk(&packed->chunks.items[--packed->chunks.count]);
    if (packed->chunks.count)
        packed->chunks.items[0].used = 0;
    if (packed->slots > KEPT_SLOTS)
        free_index(packed);
    else if (packed->indexed)
        memset(packed->tags, 0, packed->slots);
    packed->indexed = 0;
}

/* Room in the first chunk, which is not yet a whole one. */
static bool grow_first(struct bw_packed_chunk *chunk, size_t length)
{
    uint32_t size = chunk->size ? chunk->size : FIRST_SIZE;
    while (size < CHUNK && chunk->used + length > size)
        size *= 2;
    if (size <= chunk->size)
        return true;
    if (size < CHUNK) {
        uint8_t *bytes = realloc(chunk->bytes, size);
        if (!bytes)
            return false;
        chunk->bytes = bytes;
        chunk->size = size;
        return true;
    }
    struct bw_packed_chunk whole = {.used = chunk->used, .size = CHUNK};
    whole.bytes = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole.bytes == MAP_FAILED)
        return false;
    if (chunk->used)
        memcpy(whole.bytes, chunk->bytes, chunk->used);
    free(chunk->bytes);
    *chunk = whole;
    return true;
}

/* The chunk that has room for a record; NULL if memory or places run out. */
static struct bw_packed_chunk *find_room(struct bw_packed *packed, size_t length)
{
    struct bw_packed_chunk *last =
        packed->chunks.count ? &packed->chunks.items[packed->chunks.count - 1] : NULL;
    if (last && last->used + length <= CHUNK)
        return grow_first(last, length) ? last : NULL;
    struct bw_packed_chunk chunk = {0};
    if (packed->chunks.count == UINT32_MAX >> BW_PACKED_CHUNK_BITS ||
        bw_packed_chunks_reserve(&packed->chunks, 1) ||
        !grow_first(&chunk, packed->chunks.count ? CHUNK : length))
        return NULL;
    packed->chunks.items[packed->chunks.count++] = chunk;
    return &packed->chunks.items[packed->chunks.count - 1];
}

uint32_t bw_packed_begin(struct bw_packed *packed, size_t longest, uint8_t **bytes)
{
    struct bw_packed_chunk *chunk =
        longest <= BW_PACKED_LONGEST ? find_room(packed, longest + BW_PACKED_UNIT) : NULL;
    if (!chunk)
        return BW_NO_RECORD;
    *bytes = chunk->bytes + chunk->used;
    return (uint32_t)((packed->chunks.count - 1) << BW_PACKED_CHUNK_BITS) +
           chunk->used / BW_PACKED_UNIT;
}

void bw_packed_end(struct bw_packed *packed, const uint8_t *end)
{
    struct bw_packed_chunk *chunk = &packed->chunks.items[packed->chunks.count - 1];
    const size_t used = (size_t)(end - chunk->bytes) + BW_PACKED_UNIT - 1;
    chunk->used = (uint32_t)(used - used % BW_PACKED_UNIT);
}

uint32_t bw_packed_first(const struct bw_packed *packed, size_t chunk)
{
    return chunk < packed->chunks.count && packed->chunks.items[chunk].used
               ? (uint32_t)(chunk << BW_PACKED_CHUNK_BITS)
               : BW_NO_RECORD;
}

uint32_t bw_packed_next_in_chunk(const struct bw_packed *packed, uint32_t place, size_t length)
{
    const size_t chunk = place >> BW_PACKED_CHUNK_BITS;
    const size_t next = place + (length + BW_PACKED_UNIT - 1) / BW_PACKED_UNIT;
    const size_t end =
        (chunk << BW_PACKED_CHUNK_BITS) + packed->chunks.items[chunk].used / BW_PACKED_UNIT;
    return next < end ? (uint32_t)next : BW_NO_RECORD;
}

uint32_t bw_packed_next(const struct bw_packed *packed, uint32_t place, size_t length)
{
    const uint32_t next = bw_packed_next_in_chunk(packed, place, length);
    return next != BW_NO_RECORD ? next
                                : bw_packed_first(packed, (place >> BW_PACKED_CHUNK_BITS) + 1);
}

/* Up to seven eighths full. */
bool bw_packed_has_room(const struct bw_packed *packed)
{
    return packed->indexed < packed->slots - packed->slots / 8;
}

bool bw_packed_enlarge(struct bw_packed *packed)
{
    const size_t more = packed->slots < SMALL_SLOTS ? packed->slots : packed->slots / 2;
    const size_t slots = packed->slots < FIRST_SLOTS ? FIRST_SLOTS : packed->slots + more;
    free_index(packed);
    packed->places = calloc(slots, sizeof *packed->places + sizeof *packed->tags);
    if (!packed->places)
        return false;
    packed->tags = (uint8_t *)(packed->places + slots);
    packed->slots = slots;
    if (!packed->multiplier)
        packed->multiplier = bw_hash_seed(packed);
    return true;
}

static size_t home_of(const struct bw_packed *packed, uint32_t hash)
{
    return (size_t)((uint64_t)hash * packed->slots >> 32);
}

static uint8_t tag_of(uint32_t hash)
{
    return hash & 0xff ? (uint8_t)hash : 1;
}

void bw_packed_index(struct bw_packed *packed, uint32_t hash, uint32_t place)
{
    size_t slot = home_of(packed, hash);
    while (packed->tags[slot])
        slot = slot + 1 < packed->slots ? slot + 1 : 0;
    packed->tags[slot] = tag_of(hash);
    packed->places[slot] = place;
    packed->indexed++;
}

uint32_t bw_packed_find(const struct bw_packed *packed, uint32_t hash, size_t *slot)
{
    if (!packed->indexed)
        return BW_NO_RECORD;
    const uint8_t tag = tag_of(hash);
    size_t at = *slot == SIZE_MAX ? home_of(packed, hash) : *slot;
    while (packed->tags[at] && packed->tags[at] != tag)
        at = at + 1 < packed->slots ? at + 1 : 0;
    *slot = at + 1 < packed->slots ? at + 1 : 0;
    return packed->tags[at] ? packed->places[at] : BW_NO_RECORD;
}
