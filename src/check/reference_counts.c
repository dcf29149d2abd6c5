/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reference counts: an array of sums modulo 2^64. */
#include "check/reference_counts.h"

#include <stdatomic.h>
#include <stdlib.h>

struct bw_reference_counts {
    atomic_uint_fast64_t buckets[BW_REFERENCE_BUCKETS];
};

struct bw_reference_counts *bw_reference_counts_create(void)
{
    return calloc(1, sizeof(struct bw_reference_counts));
}

void bw_reference_counts_destroy(struct bw_reference_counts *counts)
{
    free(counts);
}

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

uint32_t bw_reference_bucket(uint64_t bytenr)
{
    return (uint32_t)(mix_bits(bytenr) % BW_REFERENCE_BUCKETS);
}

void bw_reference_counts_add(struct bw_reference_counts *counts, uint64_t bytenr, uint64_t hash,
                             uint64_t count)
{
    atomic_fetch_add_explicit(&counts->buckets[bw_reference_bucket(bytenr)], hash * count,
                              memory_order_relaxed);
}

bool bw_reference_bucket_agrees(const struct bw_reference_counts *counts, uint32_t bucket)
{
    return !atomic_load_explicit(&counts->buckets[bucket], memory_order_relaxed);
}

size_t bw_reference_counts_disagreeing(const struct bw_reference_counts *counts)
{
    size_t count = 0;
    for (uint32_t bucket = 0; bucket < BW_REFERENCE_BUCKETS; bucket++)
        count += !bw_reference_bucket_agrees(counts, bucket);
    return count;
}

uint64_t bw_reference_counts_total(const struct bw_reference_counts *counts)
{
    uint64_t total = 0;
    for (uint32_t bucket = 0; bucket < BW_REFERENCE_BUCKETS; bucket++)
        total += counts->buckets[bucket];
    return total;
}

void bw_reference_counts_clear(struct bw_reference_counts *counts)
{
    for (uint32_t bucket = 0; bucket < BW_REFERENCE_BUCKETS; bucket++)
        counts->buckets[bucket] = 0;
}

static uint64_t hash_reference(const struct bw_reference *reference)
{
    const uint64_t hash =
        bw_reference_hash(reference->kind, reference->bytenr, reference->length, reference->source);
    if (reference->kind == BW_EXTENT_DATA_REF || !reference->kind)
        return bw_reference_hash(hash, reference->inode, reference->offset, 0);
    return hash;
}

uint64_t bw_count_promised_reference(struct bw_check *check, const struct bw_reference *reference)
{
    const uint64_t hash = hash_reference(reference);
    bw_reference_counts_add(check->references, reference->bytenr, hash, reference->count);
    return hash * reference->count;
}

uint64_t bw_count_reference(struct bw_check *check, const struct bw_reference *reference)
{
    const uint64_t hash = hash_reference(reference);
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
