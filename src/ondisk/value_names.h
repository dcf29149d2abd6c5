/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers and of bits, for members whose format is a word or flags. */
#ifndef BW_ONDISK_VALUE_NAMES_H
#define BW_ONDISK_VALUE_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/decimal.h"

/** A number and its name, or a bit and its name. A table ends with an entry without a name. */
struct bw_value_name {
    uint64_t value;
    const char *name;
    bool absent; /**< the name applies if the bit is not set */
};

/** The names of the values of a member. */
struct bw_value_names {
    const struct bw_value_name *words;
    const char *none;    /**< text for no bits at all; NULL: nothing */
    const char *unknown; /**< name of unknown numbers; if it ends with a dot, the number follows */
};

/** A table of names. */
#define BW_NAMES(none_, unknown_, ...)                                                 \
    {                                                                                  \
        (const struct bw_value_name[]){__VA_ARGS__, {0, NULL, false}}, none_, unknown_ \
    }

/** Writes the name of a number, in at most 48 bytes without quotes; returns the end. */
static inline char *bw_write_word(char *at, const struct bw_value_names *words, uint64_t value)
{
    for (const struct bw_value_name *word = words->words; word->name; word++)
        if (word->value == value)
            return stpcpy(at, word->name);
    const size_t length = strlen(words->unknown);
    at = stpcpy(at, words->unknown);
    return length && at[-1] == '.' ? bw_decimal(at, value) : at;
}

/** Whether a bit has this name. */
static inline bool bw_flag_applies(const struct bw_value_name *word, uint64_t flags)
{
    return !(flags & word->value) == word->absent;
}

#endif
