/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open addressing with linear probing; at most three quarters full. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"

struct bw_map_entry {
    uint32_t key_low, key_high; /* split, so that an entry takes 12 bytes; 0 is free */
    uint32_t value;
};

static uint64_t key_of(const struct bw_map_entry *entry)
{
    return (uint64_t)entry->key_high << 32 | entry->key_low;
}

/* 0 marks a free entry, so it is stored as the greatest number, which no caller uses. */
static uint64_t stored_key(uint64_t key)
{
    return key ? key : UINT64_MAX;
}

size_t bw_map_hash(uint64_t key, uint64_t multiplier)
{
    return bw_key_hash(key, multiplier);
}

/* The entry that holds a key or, if it is not there, the free one where it would go. */
static struct bw_map_entry *find_entry(const struct bw_map *map, uint64_t key)
{
    size_t at = bw_map_hash(key, map->multiplier) & (map->capacity - 1);
    while (key_of(&map->entries[at]) != 0 && key_of(&map->entries[at]) != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->entries[at];
}

void bw_map_free(struct bw_map *map)
{
    free(map->entries);
    *map = (struct bw_map){0};
}

void bw_map_clear(struct bw_map *map)
{
    /* A map that was large once must not make every later, small use as costly. */
    if (map->capacity > 1024 && map->count < map->capacity / 16)
        bw_map_free(map);
    else if (map->count)
        memset(map->entries, 0, map->capacity * sizeof *map->entries);
    map->count = 0;
}

uint32_t bw_map_get(const struct bw_map *map, uint64_t key)
{
    if (!map->count)
        return UINT32_MAX;
    const struct bw_map_entry *entry = find_entry(map, stored_key(key));
    return key_of(entry) ? entry->value : UINT32_MAX;
}

bool bw_map_next(const struct bw_map *map, size_t *position, uint64_t *key, uint32_t *value)
{
    while (*position < map->capacity) {
        const struct bw_map_entry *entry = &map->entries[(*position)++];
        *key = key_of(entry);
        *value = entry->value;
        if (*key)
            return true;
    }
    return false;
}

static bool grow_map(struct bw_map *map)
{
    struct bw_map larger = {.capacity = map->capacity ? map->capacity * 2 : 16,
                            .count = map->count,
                            .multiplier = map->multiplier ? map->multiplier : bw_hash_seed(map)};
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (key_of(&map->entries[i]))
            *find_entry(&larger, key_of(&map->entries[i])) = map->entries[i];
    free(map->entries);
    *map = larger;
    return true;
}

bool bw_map_put(struct bw_map *map, uint64_t key, uint32_t value)
{
    if (map->count * 4 >= map->capacity * 3 && !grow_map(map))
        return false;
    key = stored_key(key);
    struct bw_map_entry *entry = find_entry(map, key);
    if (!key_of(entry))
        map->count++;
    *entry = (struct bw_map_entry){(uint32_t)key, (uint32_t)(key >> 32), value};
    return true;
}

uint64_t bw_hash_path(const char *path, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
    return hash;
}
