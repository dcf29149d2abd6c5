/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC-32C, used by ondisk/checksum.c. */
#include "base/crc32c.h"

#include <string.h>

#include "base/endian.h"
#include "base/vectors.h"

#ifdef BW_ISAL
#include <isa-l/crc.h>

uint32_t bw_crc32c(uint32_t seed, const void *bytes, size_t length)
{
    /* The library is made for blocks: for a name, it takes several times as long. */
    if (length < 64)
        return bw_crc32c_plain(seed, bytes, length);

    /* The library takes a pointer that is not const, but writes nothing. */
    const uint32_t sum = crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)length, seed);
    bw_vectors_clear();
    return sum;
}
#else
uint32_t bw_crc32c(uint32_t seed, const void *bytes, size_t length)
{
    return bw_crc32c_plain(seed, bytes, length);
}
#endif

/*
 * Table n holds what a byte adds to the checksum when n more bytes follow it. The sum is linear, so
 * the entries for single bits, which are given here, make those for all bytes.
 */
#define BIT(byte, number, value) ((byte)&1 << (number) ? UINT32_C(value) : 0)
#define BYTE(byte, a, b, c, d, e, f, g, h)                                                     \
    (BIT(byte, 0, a) ^ BIT(byte, 1, b) ^ BIT(byte, 2, c) ^ BIT(byte, 3, d) ^ BIT(byte, 4, e) ^ \
     BIT(byte, 5, f) ^ BIT(byte, 6, g) ^ BIT(byte, 7, h))
#define BYTES_4(byte, ...)                                                             \
    BYTE(byte, __VA_ARGS__), BYTE(byte + 1, __VA_ARGS__), BYTE(byte + 2, __VA_ARGS__), \
        BYTE(byte + 3, __VA_ARGS__)
#define BYTES_16(byte, ...)                                                                     \
    BYTES_4(byte, __VA_ARGS__), BYTES_4(byte + 4, __VA_ARGS__), BYTES_4(byte + 8, __VA_ARGS__), \
        BYTES_4(byte + 12, __VA_ARGS__)
#define BYTES_64(byte, ...)                                        \
    BYTES_16(byte, __VA_ARGS__), BYTES_16(byte + 16, __VA_ARGS__), \
        BYTES_16(byte + 32, __VA_ARGS__), BYTES_16(byte + 48, __VA_ARGS__)
#define SLICE(...)                                                                       \
    {                                                                                    \
        BYTES_64(0, __VA_ARGS__), BYTES_64(64, __VA_ARGS__), BYTES_64(128, __VA_ARGS__), \
            BYTES_64(192, __VA_ARGS__)                                                   \
    }

/* The first byte of each table has no bits. NOLINTBEGIN(misc-redundant-expression) */
static const uint32_t tables[8][256] = {
    SLICE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    SLICE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    SLICE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    SLICE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    SLICE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    SLICE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    SLICE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    SLICE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};
/* NOLINTEND(misc-redundant-expression) */

uint32_t bw_crc32c_tables(uint32_t seed, const void *bytes, size_t length)
{
    const uint8_t *next = bytes;
    for (; length >= 8; next += 8, length -= 8) {
        bw_le64 word;
        memcpy(&word, next, sizeof word);
        const uint64_t value = bw_get64(word) ^ seed;
        seed = 0;
        for (unsigned i = 0; i < 8; i++)
            seed ^= tables[7 - i][(value >> 8 * i) & 0xff];
    }
    while (length--)
        seed = seed >> 8 ^ tables[0][(seed ^ *next++) & 0xff];
    return seed;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t seed, const uint8_t *bytes, size_t length)
{
    uint64_t sum = seed, word;
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    seed = (uint32_t)sum;
    while (length--)
        seed = __builtin_ia32_crc32qi(seed, *bytes++);
    return seed;
}

uint32_t bw_crc32c_plain(uint32_t seed, const void *bytes, size_t length)
{
    return BW_HAS_SSE42 ? by_instruction(seed, bytes, length)
                        : bw_crc32c_tables(seed, bytes, length);
}
#else
uint32_t bw_crc32c_plain(uint32_t seed, const void *bytes, size_t length)
{
    return bw_crc32c_tables(seed, bytes, length);
}
#endif
