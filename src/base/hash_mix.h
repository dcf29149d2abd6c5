/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of numbers: pseudorandom numbers that can be repeated, with any number of threads, and
 * fingerprints. */
#ifndef BW_BASE_HASH_MIX_H
#define BW_BASE_HASH_MIX_H

#include <stdint.h>

/** A step of a hash: spreads both numbers over 64 bits (the finalizer of splitmix64). */
static inline uint64_t bw_hash_mix(uint64_t hash, uint64_t value)
{
    uint64_t mixed = (hash ^ value) + UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/** A hash of an address, for a seed. */
static inline uint64_t bw_hash_address(uint64_t seed, uint64_t address)
{
    return bw_hash_mix(bw_hash_mix(0, seed), address);
}

#endif
