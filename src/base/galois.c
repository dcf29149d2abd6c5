/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arithmetic in GF(2^8), for the parity of btrfs and of MD. */
#include "base/galois.h"

#include <string.h>

#include "base/vectors.h"

#ifdef BW_ISAL
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#endif

/* Many elements at once. Compilers turn this into the vectors that the processor has. */
typedef uint64_t lanes __attribute__((vector_size(16)));

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* By its address: not every processor returns such a vector in a register. */
static void double_each(lanes *x)
{
    const lanes carries = *x >> 7 & EACH_BYTE(1);
    *x = (*x << 1 & EACH_BYTE(0xfe)) ^ (((carries << 8) - carries) & EACH_BYTE(0x1d));
}

uint8_t bw_field_product(uint8_t a, uint8_t b)
{
    unsigned product = 0, power = a;
    for (; b; b >>= 1) {
        if (b & 1)
            product ^= power;
        power = power << 1 ^ (power & 0x80 ? 0x11d : 0);
    }
    return (uint8_t)product;
}

uint8_t bw_field_power_of_two(unsigned exponent)
{
    uint8_t power = 1;
    while (exponent--)
        power = bw_field_product(power, 2);
    return power;
}

/* All elements but 0 are 1 to the power of 255. */
uint8_t bw_field_inverse(uint8_t a)
{
    uint8_t inverse = 1;
    for (unsigned i = 0; i < 254; i++)
        inverse = bw_field_product(inverse, a);
    return inverse;
}

/* The sums p of D[i] and q of c[i] D[i] over the lost vectors are known from P, Q and the rest. If
 * only D[x] is lost, it is p, or q / c[x]. With D[y], it is (c[y] p + q) / (c[x] + c[y]). */
bool bw_field_factors(uint8_t lost, unsigned others, uint8_t other, bool has_p, bool has_q,
                      uint8_t *p, uint8_t *q)
{
    if (others > 1 || (others && !(has_p && has_q)) || (!has_p && !has_q))
        return false;
    *p = 1;
    *q = 0;
    if (others) {
        *q = bw_field_inverse(lost ^ other);
        *p = bw_field_product(other, *q);
    } else if (!has_p) {
        *q = bw_field_inverse(lost);
        *p = 0;
    }
    return true;
}

void bw_field_combine_plain(unsigned count, size_t length, const uint8_t *coefficients,
                            uint8_t *const *vectors, uint8_t *result)
{
    memset(result, 0, length);
    for (unsigned i = 0; i < count; i++) {
        uint8_t products[256];
        for (unsigned k = 0; k < 256; k++)
            products[k] = bw_field_product(coefficients[i], (uint8_t)k);
        for (size_t k = 0; k < length; k++)
            result[k] ^= products[vectors[i][k]];
    }
}

void bw_field_parity_plain(unsigned data, unsigned parity, size_t length, void **vectors)
{
    for (size_t at = 0; at < length; at += sizeof(lanes)) {
        lanes p = {0}, q = {0}, piece;
        for (unsigned i = data; i-- > 0;) {
            memcpy(&piece, (const uint8_t *)vectors[i] + at, sizeof piece);
            p ^= piece;
            double_each(&q);
            q ^= piece;
        }
        memcpy((uint8_t *)vectors[data] + at, &p, sizeof p);
        if (parity == 2)
            memcpy((uint8_t *)vectors[data + 1] + at, &q, sizeof q);
    }
}

#ifdef BW_ISAL
void bw_field_combine(unsigned count, size_t length, const uint8_t *coefficients,
                      uint8_t *const *vectors, uint8_t *result)
{
    uint8_t tables[32 * BW_FIELD_VECTORS], copies[BW_FIELD_VECTORS];
    uint8_t *sources[BW_FIELD_VECTORS];
    memcpy(copies, coefficients, count);
    memcpy(sources, vectors, count * sizeof *sources);
    ec_init_tables((int)count, 1, copies, tables);
    ec_encode_data((int)length, (int)count, 1, tables, sources, &result);
    bw_vectors_clear();
}

void bw_field_parity(unsigned data, unsigned parity, size_t length, void **vectors)
{
    if (parity == 1)
        xor_gen((int)(data + 1), (int)length, vectors);
    else
        pq_gen((int)(data + 2), (int)length, vectors);
    bw_vectors_clear();
}
#else
void bw_field_combine(unsigned count, size_t length, const uint8_t *coefficients,
                      uint8_t *const *vectors, uint8_t *result)
{
    bw_field_combine_plain(count, length, coefficients, vectors, result);
}

void bw_field_parity(unsigned data, unsigned parity, size_t length, void **vectors)
{
    bw_field_parity_plain(data, parity, length, vectors);
}
#endif
