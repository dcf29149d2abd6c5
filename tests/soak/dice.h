/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers that a seed repeats, on every machine. */
#ifndef BW_TESTS_SOAK_DICE_H
#define BW_TESTS_SOAK_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state; /**< the seed to begin with */
};

/* splitmix64 */
static inline uint64_t roll_bits(struct dice *dice)
{
    uint64_t z = (dice->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/** A number less than `sides`, which is at least 1. */
static inline unsigned roll(struct dice *dice, unsigned sides)
{
    return (unsigned)(roll_bits(dice) % sides);
}

/** True once in so many times. */
static inline bool one_in(struct dice *dice, unsigned times)
{
    return roll(dice, times) == 0;
}

#endif
