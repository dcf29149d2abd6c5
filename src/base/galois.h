/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The field GF(2^8) of the polynomial x^8 + x^4 + x^3 + x^2 + 1, in which RAID5 and RAID6 compute
 * parity, and sums of long vectors over it: from libisal or, in builds without that, from here.
 */
#ifndef BW_BASE_GALOIS_H
#define BW_BASE_GALOIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The most vectors that are combined. */
enum { BW_FIELD_VECTORS = 255 };

/** The product of two elements. */
uint8_t bw_field_product(uint8_t a, uint8_t b);

/** The element whose product with `a`, which is not 0, is 1. */
uint8_t bw_field_inverse(uint8_t a);

/** 2 to the power of `exponent`: the coefficient of a vector in Q. */
uint8_t bw_field_power_of_two(unsigned exponent);

/**
 * The factors of P and Q in a lost vector, of which `lost` is the coefficient in Q; `others`: how
 * many other vectors are lost, and `other` the coefficient of one of them. False if the rest does
 * not suffice. A vector with the coefficient c, which both sums contain, has the factor p + q c.
 */
bool bw_field_factors(uint8_t lost, unsigned others, uint8_t other, bool has_p, bool has_q,
                      uint8_t *p, uint8_t *q);

/** Sets `result` to the sum of `count` vectors (1 to BW_FIELD_VECTORS) of `length` bytes, each
 * multiplied by its coefficient. */
void bw_field_combine(unsigned count, size_t length, const uint8_t *coefficients,
                      uint8_t *const *vectors, uint8_t *result);

/**
 * Computes parity: `vectors` holds the vectors of `data` (at least 2), then one for their sum, P,
 * and with `parity` 2 one for the sum of 2^i times vector i, Q. Each has `length` bytes, a multiple
 * of 64, and begins at a multiple of 32.
 */
void bw_field_parity(unsigned data, unsigned parity, size_t length, void **vectors);

/** The same without libisal. */
void bw_field_combine_plain(unsigned count, size_t length, const uint8_t *coefficients,
                            uint8_t *const *vectors, uint8_t *result);
void bw_field_parity_plain(unsigned data, unsigned parity, size_t length, void **vectors);

#endif
