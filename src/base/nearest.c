/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Damerau's distance. */
#include "base/nearest.h"

#include <string.h>

#include "base/compare.h"

enum { LONGEST = 64 };

/* How many letters have to be put in, left out or changed, or two that are side by side swapped;
 * both words have at most LONGEST. */
static size_t edit_distance(const char *from, size_t from_length, const char *to, size_t to_length)
{
    size_t rows[3][LONGEST + 1]; /* the last three, in turn */
    for (size_t i = 0; i <= from_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= to_length; j++) {
            row[j] = j;
            if (!i)
                continue;
            row[j] = (size_t)bw_min(above[j - 1] + (from[i - 1] != to[j - 1]),
                                    bw_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
                row[j] = (size_t)bw_min(row[j], before[j - 2] + 1);
        }
    }
    return rows[from_length % 3][to_length];
}

bool bw_is_suggestion(const char *wanted, const char *candidate)
{
    struct bw_nearest nearest = {.wanted = wanted};
    bw_nearest_try(&nearest, candidate);
    return nearest.best || (*wanted && strncmp(candidate, wanted, strlen(wanted)) == 0);
}

void bw_nearest_try(struct bw_nearest *nearest, const char *candidate)
{
    size_t wanted_length = strlen(nearest->wanted), length = strlen(candidate);
    if (wanted_length > LONGEST || length > LONGEST)
        return;
    /* About a third of the letters may be wrong, and three at most: beyond, it is another word. */
    size_t found = edit_distance(nearest->wanted, wanted_length, candidate, length);
    if (found > bw_min(wanted_length / 3, 3) || (nearest->best && found >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = found;
}
