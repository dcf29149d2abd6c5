/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flipped bits: the position from the CRC-32C, or by trying one bit after the other. */
#include "ondisk/bit_flip.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "ondisk/disk.h"

enum { HASHED_AT_ONCE = 128 }; /* by BLAKE2b; SHA-256 hashes 64 bytes at once */

/* The register of CRC-32C after a bit of zero. The bits of the polynomial are in reversed order. */
static uint32_t pass_bit(uint32_t value)
{
    return value >> 1 ^ (-(value & 1) & UINT32_C(0x82f63b78));
}

/* The slot of a hash table that has a value, or is empty (0). */
static uint32_t *slot_of(uint32_t *slots, size_t count, uint32_t value)
{
    size_t at = value % count;
    while (slots[at] && slots[at] != value)
        at = (at + 1) % count;
    return &slots[at];
}

bool bw_crc32c_find_flip(uint32_t difference, size_t length, struct bw_bit_flip *flip)
{
    if (difference && !(difference & (difference - 1))) {
        const unsigned number = (unsigned)__builtin_ctz(difference);
        *flip = (struct bw_bit_flip){number / 8, (uint8_t)(number % 8), true};
        return true;
    }
    /* The last bit changes the sum by pass_bit(1), and each bit before it by one pass more. The
     * table has the difference after 0 to PASSING - 1 passes. One of these is 1 after a multiple
     * of PASSING passes. */
    enum { PASSING = 512, SLOTS = 2 * PASSING };
    static const uint8_t zeros[PASSING / 8];
    uint32_t made[SLOTS] = {0}, syndrome = 1;
    for (uint32_t i = 0, value = difference; i < PASSING; i++, value = pass_bit(value))
        *slot_of(made, SLOTS, value) = value;
    for (size_t bits = 0; bits < length * 8;) {
        syndrome = bw_crc32c_plain(syndrome, zeros, sizeof zeros);
        bits += PASSING;
        if (!*slot_of(made, SLOTS, syndrome))
            continue;
        for (; difference != syndrome; difference = pass_bit(difference))
            bits--;
        if (bits > length * 8)
            return false;
        const size_t bit = length * 8 - bits;
        *flip = (struct bw_bit_flip){(uint32_t)(bit / 8), (uint8_t)(bit % 8), false};
        return true;
    }
    return false;
}

/* Whether exactly one bit of a stored checksum differs from the computed one. */
static bool flip_in_checksum(const uint8_t *stored, const uint8_t *computed, size_t size,
                             struct bw_bit_flip *flip)
{
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++) {
        const unsigned difference = stored[i] ^ computed[i];
        if (!difference)
            continue;
        bits += (unsigned)__builtin_popcount(difference);
        *flip = (struct bw_bit_flip){(uint32_t)i, (uint8_t)__builtin_ctz(difference), true};
    }
    return bits == 1;
}

bool bw_bit_flip_find(enum bw_checksum_type type, uint8_t *bytes, size_t length,
                      const uint8_t *stored, struct bw_bit_flip *flip)
{
    const size_t size = bw_checksum_size(type);
    uint8_t computed[BW_CSUM_SIZE];
    bw_checksum_compute(type, bytes, length, computed);
    if (type == BW_CHECKSUM_CRC32C) {
        bw_le32 have, found;
        memcpy(&have, stored, sizeof have);
        memcpy(&found, computed, sizeof found);
        return bw_crc32c_find_flip(bw_get32(have) ^ bw_get32(found), length, flip);
    }
    if (flip_in_checksum(stored, computed, size, flip))
        return true;

    /* The bytes before the flipped one are hashed only once, which halves the time. */
    struct gcry_md_handle *beginning = bw_checksum_begin(type);
    size_t common = 0;
    bool found = false;
    for (size_t bit = 0; bit < length * 8 && !found; bit++) {
        *flip = (struct bw_bit_flip){(uint32_t)(bit / 8), (uint8_t)(bit % 8), false};
        if (beginning && flip->byte == common + HASHED_AT_ONCE) {
            bw_checksum_continue(beginning, bytes + common, HASHED_AT_ONCE);
            common += HASHED_AT_ONCE;
        }
        bw_bit_flip_apply(flip, bytes);
        found = bw_checksum_finish(type, beginning, bytes + common, length - common, computed) &&
                memcmp(computed, stored, size) == 0;
        bw_bit_flip_apply(flip, bytes);
    }
    bw_checksum_end(beginning);
    return found;
}

bool bw_bit_flip_find_in_block(enum bw_checksum_type type, uint8_t *block, size_t length,
                               struct bw_bit_flip *flip)
{
    if (!bw_bit_flip_find(type, block + BW_CSUM_SIZE, length - BW_CSUM_SIZE, block, flip))
        return false;
    if (!flip->in_checksum)
        flip->byte += BW_CSUM_SIZE;
    flip->in_checksum = false;
    return true;
}

bool bw_bit_flip_compare(const uint8_t *bytes, const uint8_t *good, size_t length,
                         struct bw_bit_flip *flip)
{
    bool found = false;
    for (size_t i = 0; i < length; i++) {
        const unsigned difference = bytes[i] ^ good[i];
        if (!difference)
            continue;
        if (found || difference & (difference - 1))
            return false;
        *flip = (struct bw_bit_flip){(uint32_t)i, (uint8_t)__builtin_ctz(difference), false};
        found = true;
    }
    return found;
}
