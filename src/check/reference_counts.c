/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reference counts: an array of sums modulo 2^64. */
#include "check/reference_counts.h"

#include "check/inode_sums.h"

/* The finalizer of SplitMix64: every bit of the input changes every bit of the result. */
static uint64_t mix_bits(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

uint64_t bw_reference_hash(uint64_t kind, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    return mix_bits(mix_bits(mix_bits(mix_bits(kind + step) ^ (a + 2 * step)) + b * 3) ^
                    (c + 5 * step));
}

/* 64 KiB share a bucket: references to neighbours follow each other in most trees, and find it in
 * the processor's cache. */
uint32_t bw_reference_bucket(uint64_t bytenr)
{
    return (uint32_t)(bytenr >> 16) % BW_REFERENCE_BUCKETS;
}

void bw_reference_counts_add(struct bw_reference_counts *counts, uint64_t bytenr, uint64_t hash,
                             uint64_t count)
{
    atomic_fetch_add_explicit(&counts->buckets[bw_reference_bucket(bytenr)], hash * count,
                              memory_order_relaxed);
}

size_t bw_reference_counts_disagreeing(const struct bw_reference_counts *counts)
{
    size_t count = 0;
    for (uint32_t bucket = 0; bucket < BW_REFERENCE_BUCKETS; bucket++)
        count += counts->buckets[bucket] != 0;
    return count;
}

/* The halves of a product of 128 bits, combined. Modulo 2^64, changes of the highest bits of two
 * numbers would cancel out in the sum. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t first = a_low * b_low, second = a_high * b_low + (first >> 32);
    const uint64_t third = a_low * b_high + (uint32_t)second;
    return (third << 32 | (uint32_t)first) ^ (a_high * b_high + (second >> 32) + (third >> 32));
#endif
}

static uint64_t hash_reference(const struct bw_check *check, const struct bw_reference *reference)
{
    const uint64_t *numbers = check->secrets.number;
    return bw_fact_mix(multiply(reference->bytenr ^ numbers[0], reference->length ^ numbers[1]) +
                       multiply(reference->source ^ numbers[2], reference->kind ^ numbers[3]) +
                       multiply(reference->inode ^ numbers[4], reference->offset ^ numbers[5]));
}

uint64_t bw_count_promised_reference(struct bw_check *check, const struct bw_reference *reference)
{
    const uint64_t hash = hash_reference(check, reference);
    bw_reference_counts_add(check->references, reference->bytenr, hash, reference->count);
    return hash * reference->count;
}

uint64_t bw_count_reference(struct bw_check *check, const struct bw_reference *reference)
{
    const uint64_t hash = hash_reference(check, reference);
    bw_reference_counts_add(check->references, reference->bytenr, hash, -reference->count);
    return hash * reference->count;
}

struct bw_block_references bw_check_references_open(const struct bw_check *check,
                                                    const struct bw_node *node, uint32_t first_slot)
{
    const struct bw_disk_header *header = (const void *)node->block;
    const bool by_address = bw_key_map_has(&check->full_backrefs, bw_get64(header->bytenr));
    return bw_block_references_open(node, first_slot, by_address);
}
