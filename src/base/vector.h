/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vectors: arrays that grow, with functions for one type of items.
 *
 *     BW_VECTOR(bw_ranges, struct bw_range)
 *
 *     BW_SCOPED(bw_ranges) struct bw_ranges ranges = {0};
 *     BW_TRY(bw_ranges_push(&ranges, (struct bw_range){start, end}));
 *     for (size_t i = 0; i < ranges.count; i++)
 *         use(&ranges.items[i]);
 *
 * A vector is all zeros while it is empty. The capacity grows by half, so pushing n items copies at
 * most 3n. A function that fails returns the error that there is no memory, and changes nothing.
 * Items move when a vector grows, so pointers to items last only until the next push.
 */
#ifndef BW_BASE_VECTOR_H
#define BW_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/error.h"

/** Reallocates `items`, of `size` bytes each, with room for `more` of them after the first `count`.
 * NULL, with nothing changed, if memory runs out. */
void *bw_vector_grow(void *items, size_t count, size_t more, size_t *capacity, size_t size)
    __attribute__((cold));

/** Defines `struct name`, a vector of `type`, and its functions. */
#define BW_VECTOR(name, type)   \
    BW_VECTOR_TYPE(name, type); \
    BW_VECTOR_FUNCTIONS(name, type)

/** Only the structure, where `type` is still incomplete. */
#define BW_VECTOR_TYPE(name, type) \
    struct name {                  \
        type *items;               \
        size_t count, capacity;    \
    }

/**
 * The functions of a vector:
 *
 *     name_reserve(vector, n)          makes room, so that pushing n items cannot fail
 *     name_push(vector, item)          adds an item at the end
 *     name_append(vector, items, n)    adds n items at the end
 *     name_insert(vector, at, item)    puts an item in front of the one at an index
 *     name_pop(vector)                 removes the last item, which must exist, and returns it
 *     name_remove(vector, at)          removes the item at an index
 *     name_sort(vector, compare)       sorts the items with qsort(3)
 *     name_free(vector)                frees the memory and leaves an empty vector
 */
#define BW_VECTOR_FUNCTIONS(name, type)                                                            \
    BW_GENERATED_RESULT struct bw_error *name##_reserve(struct name *vector, size_t more)          \
    {                                                                                              \
        if (__builtin_expect(vector->capacity - vector->count >= more, 1)) {                       \
            if (more && !vector->items) /* for analyzers: a vector with room has items */          \
                __builtin_unreachable();                                                           \
            return NULL;                                                                           \
        }                                                                                          \
        void *grown =                                                                              \
            bw_vector_grow(vector->items, vector->count, more, &vector->capacity, sizeof(type));   \
        if (!grown)                                                                                \
            return bw_error_no_memory();                                                           \
        vector->items = grown;                                                                     \
        return NULL;                                                                               \
    }                                                                                              \
    BW_GENERATED_RESULT struct bw_error *name##_push(struct name *vector, type item)               \
    {                                                                                              \
        BW_TRY(name##_reserve(vector, 1));                                                         \
        vector->items[vector->count++] = item;                                                     \
        return NULL;                                                                               \
    }                                                                                              \
    BW_GENERATED_RESULT struct bw_error *name##_append(struct name *vector, type const *items,     \
                                                       size_t count)                               \
    {                                                                                              \
        BW_TRY(name##_reserve(vector, count));                                                     \
        if (count)                                                                                 \
            memcpy(vector->items + vector->count, items, count * sizeof(type));                    \
        vector->count += count;                                                                    \
        return NULL;                                                                               \
    }                                                                                              \
    BW_GENERATED_RESULT struct bw_error *name##_insert(struct name *vector, size_t at, type item)  \
    {                                                                                              \
        BW_TRY(name##_reserve(vector, 1));                                                         \
        memmove(vector->items + at + 1, vector->items + at, (vector->count - at) * sizeof(type));  \
        vector->count++;                                                                           \
        vector->items[at] = item;                                                                  \
        return NULL;                                                                               \
    }                                                                                              \
    BW_GENERATED type name##_pop(struct name *vector)                                              \
    {                                                                                              \
        return vector->items[--vector->count];                                                     \
    }                                                                                              \
    BW_GENERATED void name##_remove(struct name *vector, size_t at)                                \
    {                                                                                              \
        memmove(vector->items + at, vector->items + at + 1,                                        \
                (--vector->count - at) * sizeof(type));                                            \
    }                                                                                              \
    BW_GENERATED void name##_sort(struct name *vector, int (*compare)(const void *, const void *)) \
    {                                                                                              \
        if (vector->count) /* an empty one has no array */                                         \
            qsort(vector->items, vector->count, sizeof(type), compare);                            \
    }                                                                                              \
    BW_GENERATED void name##_free(struct name *vector)                                             \
    {                                                                                              \
        free(vector->items);                                                                       \
        *vector = (struct name){0};                                                                \
    }                                                                                              \
    _Static_assert(sizeof(type) > 0, "a vector has items")

BW_VECTOR(bw_numbers, uint64_t);
BW_VECTOR(bw_sizes, size_t);
BW_VECTOR(bw_strings, char *); /* each allocated by itself */
BW_VECTOR(bw_const_strings, const char *);

/** Adds a copy of a string. */
BW_GENERATED_RESULT struct bw_error *bw_strings_push_copy(struct bw_strings *strings,
                                                          const char *text)
{
    BW_TRY(bw_strings_reserve(strings, 1));
    char *copy = strdup(text);
    return copy ? bw_strings_push(strings, copy) : bw_error_no_memory();
}

/** Frees the strings as well. */
BW_GENERATED void bw_strings_free_all(struct bw_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    bw_strings_free(strings);
}

#endif
