/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Levenshtein's distance, over one row. */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters have to be put in, left out or changed; both words have at most LONGEST. */
static size_t distance(const char *from, size_t from_length, const char *to, size_t to_length)
{
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= to_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= from_length; i++) {
        size_t diagonal = row[0]++;
        for (size_t j = 1; j <= to_length; j++) {
            size_t changed = diagonal + (from[i - 1] != to[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[to_length];
}

/* About a third of the letters may be wrong, and three at most: beyond that it is another word. */
static size_t tolerance(size_t length)
{
    return length < 3 ? 0 : length < 6 ? 1 : length < 9 ? 2 : 3;
}

bool bw_is_like(const char *wanted, const char *candidate)
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
    size_t found = distance(nearest->wanted, wanted_length, candidate, length);
    if (found > tolerance(wanted_length) || (nearest->best && found >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = found;
}
