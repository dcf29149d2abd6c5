/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The intended word for a misspelt one; for "did you mean". */
#ifndef BW_BASE_NEAREST_H
#define BW_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/** A search. Begins with all but `wanted` zero. */
struct bw_nearest {
    const char *wanted;
    const char *best; /**< the nearest candidate so far; NULL: none is near enough to be worth a
                         word */
    size_t distance;  /**< how many letters it is away */
};

/** Tries a candidate, which must live as long as the answer is used. */
void bw_nearest_try(struct bw_nearest *nearest, const char *candidate);

/** Whether a word is a misspelt `candidate`, or its beginning: for lists of suggestions. */
bool bw_is_suggestion(const char *wanted, const char *candidate);

#endif
