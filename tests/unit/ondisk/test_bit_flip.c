/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk/bit_flip: where one bit is flipped, and that nothing else looks like it. */
#include "ondisk/bit_flip.h"

#include <stdlib.h>

#include "support/walk_helpers.h"

enum { LARGEST = 65536 };

static uint8_t block[LARGEST], before[LARGEST];

/* A tree block of random bytes with its checksum. */
static void make_block(enum bw_checksum_type type, size_t length)
{
    for (size_t i = BW_CSUM_SIZE; i < length; i++)
        block[i] = (uint8_t)rand();
    bw_checksum_compute(type, block + BW_CSUM_SIZE, length - BW_CSUM_SIZE, block);
    memcpy(before, block, length);
}

/* Flips a bit of a block of this length, and expects that it is found and corrected. */
static void expect_corrected(enum bw_checksum_type type, size_t length, size_t byte, unsigned bit)
{
    struct bw_bit_flip flip;
    block[byte] ^= (uint8_t)(1u << bit);
    assert_true(bw_bit_flip_find_in_block(type, block, length, &flip));
    bw_bit_flip_apply(&flip, block);
    assert_int_equal(flip.byte, byte);
    assert_int_equal(flip.bit, bit);
    assert_memory_equal(block, before, length);
}

static void test_every_size(void **state)
{
    for (size_t length = 4096; length <= LARGEST; length *= 2) {
        make_block(BW_CHECKSUM_CRC32C, length);
        for (unsigned i = 0; i < 200; i++)
            expect_corrected(BW_CHECKSUM_CRC32C, length,
                             BW_CSUM_SIZE + (size_t)rand() % (length - BW_CSUM_SIZE), i % 8);
        for (unsigned i = 0; i < 32; i++)
            expect_corrected(BW_CHECKSUM_CRC32C, length, i / 8, i % 8);
        expect_corrected(BW_CHECKSUM_CRC32C, length, BW_CSUM_SIZE, 0);
        expect_corrected(BW_CHECKSUM_CRC32C, length, length - 1, 7);
    }
}

/* No syndrome is that of another bit, or of a bit of the stored checksum. */
static int by_value(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void test_syndromes_differ(void **state)
{
    enum { BITS = 8 * LARGEST };
    uint32_t *syndromes = malloc((BITS + 32) * sizeof *syndromes);
    assert_non_null(syndromes);
    struct bw_bit_flip flip;
    uint32_t syndrome = 1;
    for (size_t i = 0; i < 32; i++)
        syndromes[i] = UINT32_C(1) << i;
    for (size_t i = 0; i < BITS; i++) {
        syndrome = syndrome >> 1 ^ (syndrome & 1 ? UINT32_C(0x82f63b78) : 0);
        syndromes[32 + i] = syndrome;
        if (i % 4099 == 0) {
            assert_true(bw_crc32c_find_flip(syndrome, LARGEST, &flip));
            assert_int_equal(flip.byte * 8 + flip.bit, BITS - 1 - i);
        }
    }
    qsort(syndromes, BITS + 32, sizeof *syndromes, by_value);
    for (size_t i = 1; i < BITS + 32; i++)
        assert_true(syndromes[i - 1] < syndromes[i]);
    free(syndromes);
}

/* The bits of short names, and no bit before the first byte. */
static void test_short_lengths(void **state)
{
    struct bw_bit_flip flip;
    for (size_t length = 1; length <= 255; length++) {
        uint32_t syndrome = 1;
        for (size_t bit = length * 8; bit-- > 0;) {
            syndrome = syndrome >> 1 ^ (syndrome & 1 ? UINT32_C(0x82f63b78) : 0);
            assert_true(bw_crc32c_find_flip(syndrome, length, &flip));
            assert_int_equal(flip.byte * 8 + flip.bit, bit);
            assert_false(flip.in_checksum);
        }
        syndrome = syndrome >> 1 ^ (syndrome & 1 ? UINT32_C(0x82f63b78) : 0);
        assert_false(bw_crc32c_find_flip(syndrome, length, &flip));
    }
}

/* More than one flipped bit is left alone. */
static void test_more_damage(void **state)
{
    enum { LENGTH = 16384 };
    struct bw_bit_flip flip;
    make_block(BW_CHECKSUM_CRC32C, LENGTH);
    for (unsigned i = 0; i < 500; i++) {
        const size_t first = BW_CSUM_SIZE + (size_t)rand() % (LENGTH - BW_CSUM_SIZE);
        const size_t second = i % 2 ? first : BW_CSUM_SIZE + (size_t)rand() % 1000;
        block[first] ^= 1;
        block[second] ^= 64;
        assert_false(bw_bit_flip_find_in_block(BW_CHECKSUM_CRC32C, block, LENGTH, &flip));
        block[first] ^= 1;
        block[second] ^= 64;
        assert_memory_equal(block, before, LENGTH);
    }
}

/* The other checksums need a search. */
static void test_search(void **state)
{
    enum { LENGTH = 300 };
    for (unsigned type = BW_CHECKSUM_XXHASH64; type < BW_CHECKSUM_TYPES; type++) {
        struct bw_bit_flip flip;
        assert_null(bw_checksum_prepare((enum bw_checksum_type)type));
        make_block((enum bw_checksum_type)type, LENGTH);
        for (size_t byte = BW_CSUM_SIZE; byte < LENGTH; byte++)
            expect_corrected((enum bw_checksum_type)type, LENGTH, byte, (unsigned)byte % 8);
        expect_corrected((enum bw_checksum_type)type, LENGTH, LENGTH - 1, 7);
        expect_corrected((enum bw_checksum_type)type, LENGTH, 6, 2);
        block[100] ^= 3;
        assert_false(bw_bit_flip_find_in_block((enum bw_checksum_type)type, block, LENGTH, &flip));
    }
}

static void test_compare(void **state)
{
    const uint8_t good[] = {1, 2, 3, 4};
    struct bw_bit_flip flip;
    assert_true(bw_bit_flip_compare((const uint8_t[]){1, 2, 3, 4 + 64}, good, 4, &flip));
    assert_int_equal(flip.byte, 3);
    assert_int_equal(flip.bit, 6);
    assert_false(flip.in_checksum);
    assert_false(bw_bit_flip_compare(good, good, 4, &flip));
    assert_false(bw_bit_flip_compare((const uint8_t[]){1, 2, 3 + 12, 4}, good, 4, &flip));
    assert_false(bw_bit_flip_compare((const uint8_t[]){0, 2, 3, 5}, good, 4, &flip));
}
