/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of hash tables that do not depend on their types. */
#include "base/hash_table.h"

#include <sys/random.h>
#include <xxhash.h>

uint64_t bw_hash_seed(const void *table)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uintptr_t)table * UINT64_C(0x9E3779B97F4A7C15);
    return number | 1;
}

size_t bw_bytes_hash(struct bw_bytes bytes, uint64_t seed)
{
    return (size_t)XXH3_64bits_withSeed(bytes.data, bytes.length, seed);
}

uint64_t bw_hash_path(const char *path, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
    return hash;
}
