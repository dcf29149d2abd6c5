/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash maps and sets, with functions for one type of keys and values.
 *
 *     BW_MAP(bw_inode_numbers, uint64_t, uint32_t, bw_key)
 *
 *     BW_SCOPED(bw_inode_numbers) struct bw_inode_numbers numbers = {0};
 *     BW_TRY(bw_inode_numbers_put(&numbers, inode, 7));
 *     const uint32_t number = bw_inode_numbers_get(&numbers, inode, UINT32_MAX);
 *
 * Open addressing with linear probing, at most three quarters full; nothing is ever removed. An
 * entry takes no more than its key and value, rounded up to four bytes: a key of zeros marks a free
 * entry. The table has one entry more than its capacity, at its end, for the key of zeros itself.
 *
 * Keys come from images, which may be hostile. A random seed for each table makes it unpredictable
 * which keys collide. A table is all zeros while it is empty. A function that fails returns the
 * error that there is no memory, and changes nothing. Threads may search a table at the same time
 * while none of them changes it.
 */
#ifndef BW_BASE_HASH_TABLE_H
#define BW_BASE_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/record.h"

/** A random seed; never 0. `table` is any address of the caller's. */
uint64_t bw_hash_seed(const void *table);

/* The kinds of keys. For each, KIND_hash(), KIND_equal() and KIND_is_zero(). */

/** Numbers of 64 bits. They often follow one another closely: one multiplication lays them out
 * evenly, but now and then in clusters. The seed must be odd. */
static inline size_t bw_key_hash(uint64_t key, uint64_t seed)
{
    uint64_t hash = key * seed;
    hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 32);
}

static inline bool bw_key_equal(uint64_t a, uint64_t b)
{
    return a == b;
}

static inline bool bw_key_is_zero(uint64_t key)
{
    return key == 0;
}

/** Byte strings. A table refers to the bytes of its caller. */
size_t bw_bytes_hash(struct bw_bytes bytes, uint64_t seed);

/** A number for a path or other text, as a key: FNV-1a. */
uint64_t bw_hash_path(const char *path, size_t length);

static inline bool bw_bytes_equal(struct bw_bytes a, struct bw_bytes b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static inline bool bw_bytes_is_zero(struct bw_bytes bytes)
{
    return bytes.length == 0;
}

/*
 * What maps and sets have in common. Besides the functions below:
 *
 *     name_place()        the entry of a key or, if it is not there, the free one for it
 *     name_search()       the entry of a key, or NULL
 *     name_enter()        the entry of a key, which it adds
 *     name_entry_from()   the next entry that is used
 */
#define BW_HASH_TABLE(name, key_type, kind)                                                       \
    struct name {                                                                                 \
        struct name##_entry *entries; /* capacity + 1 */                                          \
        size_t capacity;              /* a power of two, or 0 */                                  \
        size_t count;                                                                             \
        uint64_t seed;                                                                            \
        bool has_zero; /* the last entry is used */                                               \
    };                                                                                            \
    BW_GENERATED struct name##_entry *name##_place(const struct name *table, key_type key)        \
    {                                                                                             \
        if (kind##_is_zero(key))                                                                  \
            return &table->entries[table->capacity];                                              \
        size_t at = kind##_hash(key, table->seed) & (table->capacity - 1);                        \
        while (!kind##_is_zero(table->entries[at].key) &&                                         \
               !kind##_equal(table->entries[at].key, key))                                        \
            at = (at + 1) & (table->capacity - 1);                                                \
        return &table->entries[at];                                                               \
    }                                                                                             \
    BW_GENERATED struct name##_entry *name##_search(const struct name *table, key_type key)       \
    {                                                                                             \
        if (!table->count)                                                                        \
            return NULL;                                                                          \
        struct name##_entry *entry = name##_place(table, key);                                    \
        const bool is_used = kind##_is_zero(key) ? table->has_zero : !kind##_is_zero(entry->key); \
        return is_used ? entry : NULL;                                                            \
    }                                                                                             \
    BW_GENERATED_COLD struct bw_error *name##_grow(struct name *table)                            \
    {                                                                                             \
        struct name larger = *table;                                                              \
        larger.seed = table->seed ? table->seed : bw_hash_seed(table);                            \
        larger.capacity = table->capacity ? table->capacity * 2 : 16;                             \
        larger.entries = calloc(larger.capacity + 1, sizeof *larger.entries);                     \
        if (!larger.entries)                                                                      \
            return bw_error_no_memory();                                                          \
        for (size_t i = 0; i < table->capacity; i++)                                              \
            if (!kind##_is_zero(table->entries[i].key))                                           \
                *name##_place(&larger, table->entries[i].key) = table->entries[i];                \
        if (table->has_zero)                                                                      \
            larger.entries[larger.capacity] = table->entries[table->capacity];                    \
        free(table->entries);                                                                     \
        *table = larger;                                                                          \
        return NULL;                                                                              \
    }                                                                                             \
    BW_GENERATED_RESULT struct bw_error *name##_enter(struct name *table, key_type key,           \
                                                      struct name##_entry **entry, bool *is_new)  \
    {                                                                                             \
        if (table->count * 4 >= table->capacity * 3)                                              \
            BW_TRY(name##_grow(table));                                                           \
        *entry = name##_place(table, key);                                                        \
        *is_new = kind##_is_zero(key) ? !table->has_zero : kind##_is_zero((*entry)->key);         \
        table->has_zero |= kind##_is_zero(key);                                                   \
        table->count += *is_new;                                                                  \
        (*entry)->key = key;                                                                      \
        return NULL;                                                                              \
    }                                                                                             \
    BW_GENERATED struct name##_entry *name##_entry_from(const struct name *table,                 \
                                                        size_t *position)                         \
    {                                                                                             \
        while (*position < table->capacity) {                                                     \
            struct name##_entry *entry = &table->entries[(*position)++];                          \
            if (!kind##_is_zero(entry->key))                                                      \
                return entry;                                                                     \
        }                                                                                         \
        if (!table->has_zero || *position > table->capacity)                                      \
            return NULL;                                                                          \
        return &table->entries[(*position)++];                                                    \
    }                                                                                             \
    BW_GENERATED bool name##_has(const struct name *table, key_type key)                          \
    {                                                                                             \
        return name##_search(table, key) != NULL;                                                 \
    }                                                                                             \
    BW_GENERATED void name##_free(struct name *table)                                             \
    {                                                                                             \
        free(table->entries);                                                                     \
        *table = (struct name){0};                                                                \
    }                                                                                             \
    BW_GENERATED void name##_clear(struct name *table)                                            \
    {                                                                                             \
        /* A table that was large once must not make every later, small use as costly. */         \
        if (table->capacity > 1024 && table->count < table->capacity / 16)                        \
            name##_free(table);                                                                   \
        else if (table->count)                                                                    \
            memset(table->entries, 0, (table->capacity + 1) * sizeof *table->entries);            \
        table->count = 0;                                                                         \
        table->has_zero = false;                                                                  \
    }

/**
 * Defines `struct name`, a map from `key_type` to `value_type`, and its functions:
 *
 *     name_get(map, key, otherwise)    the value, or `otherwise`
 *     name_has(map, key)               whether there is a value
 *     name_put(map, key, value)        sets the value of a key
 *     name_next(map, &position, &key, &value)
 *                                      the next entry, in no order; `position` begins as 0. False
 *                                      at the end
 *     name_clear(map)                  removes all entries, and keeps the memory if it is not much
 *     name_free(map)                   frees the memory and leaves an empty map
 */
#define BW_MAP(name, key_type, value_type, kind)                                             \
    struct name##_entry {                                                                    \
        key_type key;                                                                        \
        value_type value;                                                                    \
    } __attribute__((packed, aligned(4)));                                                   \
    BW_HASH_TABLE(name, key_type, kind)                                                      \
    BW_GENERATED value_type name##_get(const struct name *table, key_type key,               \
                                       value_type otherwise)                                 \
    {                                                                                        \
        const struct name##_entry *entry = name##_search(table, key);                        \
        return entry ? entry->value : otherwise;                                             \
    }                                                                                        \
    BW_GENERATED_RESULT struct bw_error *name##_put(struct name *table, key_type key,        \
                                                    value_type value)                        \
    {                                                                                        \
        struct name##_entry *entry;                                                          \
        bool is_new;                                                                         \
        BW_TRY(name##_enter(table, key, &entry, &is_new));                                   \
        entry->value = value;                                                                \
        return NULL;                                                                         \
    }                                                                                        \
    BW_GENERATED bool name##_next(const struct name *table, size_t *position, key_type *key, \
                                  value_type *value)                                         \
    {                                                                                        \
        const struct name##_entry *entry = name##_entry_from(table, position);               \
        if (!entry)                                                                          \
            return false;                                                                    \
        *key = entry->key;                                                                   \
        *value = entry->value;                                                               \
        return true;                                                                         \
    }                                                                                        \
    _Static_assert(sizeof(value_type) > 0, "a map has values")

/**
 * Defines `struct name`, a set of `key_type`, with has, clear and free like a map, and
 *
 *     name_add(set, key, &is_new)      adds a key; `is_new`: it was not there before
 *     name_next(set, &position, &key)
 */
#define BW_SET(name, key_type, kind)                                                         \
    struct name##_entry {                                                                    \
        key_type key;                                                                        \
    } __attribute__((packed, aligned(4)));                                                   \
    BW_HASH_TABLE(name, key_type, kind)                                                      \
    BW_GENERATED_RESULT struct bw_error *name##_add(struct name *table, key_type key,        \
                                                    bool *is_new)                            \
    {                                                                                        \
        struct name##_entry *entry;                                                          \
        return name##_enter(table, key, &entry, is_new);                                     \
    }                                                                                        \
    BW_GENERATED bool name##_next(const struct name *table, size_t *position, key_type *key) \
    {                                                                                        \
        const struct name##_entry *entry = name##_entry_from(table, position);               \
        if (!entry)                                                                          \
            return false;                                                                    \
        *key = entry->key;                                                                   \
        return true;                                                                         \
    }                                                                                        \
    _Static_assert(sizeof(key_type) > 0, "a set has keys")

/** From numbers to other numbers, such as indices of a vector. */
BW_MAP(bw_key_map, uint64_t, uint32_t, bw_key);

/** Numbers that do not lie close together; for inodes and the like, see base/number_set.h. */
BW_SET(bw_key_set, uint64_t, bw_key);

#endif
