/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash map from 64-bit numbers to 32-bit numbers; nothing is ever taken out. Directory inodes to
 * their records, logical addresses that were already reported, subvolume ids.
 */
#ifndef BW_BASE_MAP_H
#define BW_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_map_entry;

/** An empty map is all zeros. */
struct bw_map {
    struct bw_map_entry *entries; /**< capacity of them; a power of two, or NULL */
    size_t capacity;
    size_t count;
    uint64_t multiplier; /**< of the hash; random */
};

/** Frees the memory and leaves an empty map. */
void bw_map_free(struct bw_map *map);

/** Forgets all entries but keeps the memory. */
void bw_map_clear(struct bw_map *map);

/** The value of a key, or UINT32_MAX. Several threads may call it at once while none of them
 * changes the map. */
uint32_t bw_map_get(const struct bw_map *map, uint64_t key);

/** The next entry from `*position` on, in no order; `*position`, which begins as 0, moves past it.
 * False at the end. */
bool bw_map_next(const struct bw_map *map, size_t *position, uint64_t *key, uint32_t *value);

/** Sets the value of a key; false if memory runs out. The keys 0 and UINT64_MAX are one. */
bool bw_map_put(struct bw_map *map, uint64_t key, uint32_t value);

/** Where a key goes in a table, modulo its size: for maps and sets. */
size_t bw_map_hash(uint64_t key, uint64_t multiplier);

/** A number for a path or other text, as a key: FNV-1a. */
uint64_t bw_hash_path(const char *path, size_t length);

#endif
