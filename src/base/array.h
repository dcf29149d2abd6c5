/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growing arrays: the one piece of arithmetic that every list of this project needs. */
#ifndef BW_BASE_ARRAY_H
#define BW_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** Makes `array` (of `*capacity` items of `size` bytes) large enough for `count` items; NULL if
 * memory runs out. */
static inline void *bw_array_grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count <= *capacity)
        return array;
    size_t wanted = *capacity + *capacity / 2 < 16 ? 16 : *capacity + *capacity / 2;
    if (wanted < count)
        wanted = count;
    void *grown = wanted > SIZE_MAX / size ? NULL : realloc(array, wanted * size);
    if (grown)
        *capacity = wanted;
    return grown;
}

/** Makes room for one more item after the first `count`; false, with nothing changed, if memory
 * runs out. */
#define BW_ARRAY_RESERVE(array, count, capacity)                                             \
    __extension__({                                                                          \
        void *bw_grown = bw_array_grown((array), (count) + 1, &(capacity), sizeof *(array)); \
        if (bw_grown)                                                                        \
            (array) = bw_grown;                                                              \
        bw_grown != NULL;                                                                    \
    })

#endif
