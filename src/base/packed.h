/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of a few bytes each, of which there may be millions: they are stored one after the other,
 * and found by their place or, through an index, by a hash. The caller defines the contents of a
 * record and its hash. The memory grows in chunks that never move. The index can be rebuilt from
 * the records, so it is freed before a larger one is allocated: growing needs no additional memory.
 */
#ifndef BW_BASE_PACKED_H
#define BW_BASE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

enum { BW_NO_RECORD = UINT32_MAX };

enum {
    BW_PACKED_UNIT = 2,         /**< places are counted in units of so many bytes */
    BW_PACKED_CHUNK_BITS = 15,  /**< units of a chunk */
    BW_PACKED_LONGEST = 1 << 12 /**< no record has more bytes */
};

struct bw_packed_chunk {
    uint8_t *bytes;
    uint32_t used, size; /**< in bytes */
};

BW_VECTOR(bw_packed_chunks, struct bw_packed_chunk);

/** An empty one is all zeros. */
struct bw_packed {
    struct bw_packed_chunks chunks;
    uint32_t *places; /**< of the index: `slots` of them, and after them as many tags */
    uint8_t *tags;    /**< some bits of the hash; 0: the slot is free */
    size_t slots, indexed;
    uint64_t multiplier; /**< of hashes; random */
};

/** Frees the memory and leaves an empty one. */
void bw_packed_free(struct bw_packed *packed);

/** Forgets all records. Keeps the memory, unless that is much. */
void bw_packed_clear(struct bw_packed *packed);

/** Begins a record of at most `longest` bytes, which are to be written to `*bytes`. Returns its
 * place, which is greater than those before; BW_NO_RECORD if memory or places run out. The first is
 * at 0.
 */
uint32_t bw_packed_begin(struct bw_packed *packed, size_t longest, uint8_t **bytes);

/** Ends it, with its last byte before `end`. */
void bw_packed_end(struct bw_packed *packed, const uint8_t *end);

/** The bytes at a place. */
static inline uint8_t *bw_packed_at(const struct bw_packed *packed, uint32_t place)
{
    return packed->chunks.items[place >> BW_PACKED_CHUNK_BITS].bytes +
           (size_t)(place & ((1u << BW_PACKED_CHUNK_BITS) - 1)) * BW_PACKED_UNIT;
}

/** The first place of a chunk, or BW_NO_RECORD after the last chunk. */
uint32_t bw_packed_first(const struct bw_packed *packed, size_t chunk);

/** The place after a record of this length, or BW_NO_RECORD at the end of its chunk. */
uint32_t bw_packed_next_in_chunk(const struct bw_packed *packed, uint32_t place, size_t length);

/** The place after a record of this length, or BW_NO_RECORD after the last. */
uint32_t bw_packed_next(const struct bw_packed *packed, uint32_t place, size_t length);

/** Whether the index has room for one more. */
bool bw_packed_has_room(const struct bw_packed *packed);

/** Empties the index and makes it larger: all records are to be added again. False if memory runs
 * out. */
bool bw_packed_enlarge(struct bw_packed *packed);

/** Adds a place to the index, which has room for it. */
void bw_packed_index(struct bw_packed *packed, uint32_t hash, uint32_t place);

/** The next place with a matching tag; BW_NO_RECORD at the end. `*slot` is the position to continue
 * from, SIZE_MAX at first. Several threads may call it at once if the records do not change. */
uint32_t bw_packed_find(const struct bw_packed *packed, uint32_t hash, size_t *slot);

/* Numbers of seven bits a byte, the lowest first; the last byte has no high bit. */

enum { BW_VARINT_LONGEST = 10 };

static inline uint8_t *bw_varint_put(uint8_t *at, uint64_t number)
{
    for (; number > 0x7f; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static inline uint64_t bw_varint_get(const uint8_t **at)
{
    uint64_t number = *(*at)++;
    if (number < 0x80)
        return number;
    number &= 0x7f;
    for (unsigned shift = 7;; shift += 7) {
        const uint64_t byte = *(*at)++;
        number |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
}

/* Differences modulo 2^64. Small ones take few bytes, whether positive or negative: the lowest bit
 * is the sign. */

static inline uint8_t *bw_varint_put_signed(uint8_t *at, uint64_t difference)
{
    return bw_varint_put(at, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

static inline uint64_t bw_varint_get_signed(const uint8_t **at)
{
    const uint64_t number = bw_varint_get(at);
    return number >> 1 ^ (number & 1 ? UINT64_MAX : 0);
}

#endif
