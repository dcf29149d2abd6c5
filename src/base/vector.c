/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vectors grow by half of their capacity, and begin with room for 16 items. */
#include "base/vector.h"

void *bw_vector_grow(void *items, size_t count, size_t more, size_t *capacity, size_t size)
{
    size_t wanted = *capacity + *capacity / 2;
    if (more > SIZE_MAX - count)
        return NULL;
    if (wanted < 16)
        wanted = 16;
    if (wanted < count + more)
        wanted = count + more;
    void *grown = wanted > SIZE_MAX / size ? NULL : realloc(items, wanted * size);
    if (grown)
        *capacity = wanted;
    return grown;
}
