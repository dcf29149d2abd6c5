/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A single flipped bit, which explains why bytes and their checksum do not match.
 *
 * CRC-32C is linear: if one bit of the bytes is flipped, the sum changes by a value (the syndrome)
 * that depends only on the position of the bit, counted from the end. For all sizes of blocks and
 * sectors, all syndromes differ from each other and have more than one bit, so the difference
 * between the stored and the computed sum names the flipped bit, or excludes that it is only one. A
 * difference of exactly one bit means that the stored sum itself has the flipped bit.
 *
 * Among randomly damaged blocks, 3 in 100,000 look as if one bit was flipped. So the corrected
 * bytes must pass all other checks before they are used.
 */
#ifndef BW_ONDISK_BIT_FLIP_H
#define BW_ONDISK_BIT_FLIP_H

#include "ondisk/checksum.h"

/** The place of a flipped bit. */
struct bw_bit_flip {
    uint32_t byte;
    uint8_t bit;      /**< number of the bit, 0 is the least significant one */
    bool in_checksum; /**< `byte` is a byte of the stored checksum, not of the bytes it is about */
};

/** Searches the flipped bit of `length` bytes (at most 512 MiB) whose CRC-32C differs from the
 * stored one by `difference` (stored ^ computed, not 0); false if more is wrong than one bit. Takes
 * microseconds for a tree block. */
bool bw_crc32c_find_flip(uint32_t difference, size_t length, struct bw_bit_flip *flip);

/** Searches the flipped bit of bytes whose checksum of any type does not match. Only CRC-32C names
 * the bit; with the others, this tries one bit after the other, which can take seconds for a tree
 * block: use bw_bit_flip_is_cheap(). `stored` is the stored checksum. The bytes are changed
 * meanwhile, and are as before in the end. */
bool bw_bit_flip_find(enum bw_checksum_type type, uint8_t *bytes, size_t length,
                      const uint8_t *stored, struct bw_bit_flip *flip);

/** Whether the checksum itself names a flipped bit. */
static inline bool bw_bit_flip_is_cheap(enum bw_checksum_type type)
{
    return type == BW_CHECKSUM_CRC32C;
}

/** Flips the bit, which is not in the stored checksum. */
static inline void bw_bit_flip_apply(const struct bw_bit_flip *flip, uint8_t *bytes)
{
    bytes[flip->byte] ^= (uint8_t)(1u << flip->bit);
}

/** Searches the flipped bit of a tree block, whose first bytes are its checksum, or of a
 * superblock. `flip` gets its place in the block, also of a bit of the checksum. */
bool bw_bit_flip_find_in_block(enum bw_checksum_type type, uint8_t *block, size_t length,
                               struct bw_bit_flip *flip);

/** Whether bytes differ in exactly one bit from good ones, and where. */
bool bw_bit_flip_compare(const uint8_t *bytes, const uint8_t *good, size_t length,
                         struct bw_bit_flip *flip);

#endif
