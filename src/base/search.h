/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binary search in anything that can be indexed. */
#ifndef BW_BASE_SEARCH_H
#define BW_BASE_SEARCH_H

#include <stddef.h>

/**
 * The first index for which `condition`, an expression of `index`, holds; `count` if it holds for
 * none below. If it holds for an index, it must hold for all greater ones.
 */
#define BW_FIRST_INDEX(index, count, condition)             \
    __extension__({                                         \
        size_t bw_low = 0, bw_high = (count);               \
        while (bw_low < bw_high) {                          \
            size_t index = bw_low + (bw_high - bw_low) / 2; \
            if (condition)                                  \
                bw_high = index;                            \
            else                                            \
                bw_low = index + 1;                         \
        }                                                   \
        bw_low;                                             \
    })

#endif
