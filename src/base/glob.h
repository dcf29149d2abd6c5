/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns for bytes that have a length and no end, as names in an image have: fnmatch(3) needs a
 * NUL behind its text, and asks the locale. `*` stands for anything, `?` for one character, `[a-z]`
 * and `[!a-z]` for one of a set, in which `[:alpha:]` and the other classes of POSIX stand for
 * characters of ASCII; `\` takes the meaning from what follows. A character is a valid sequence of
 * UTF-8, or a byte that is part of none. Slashes and dots are like all others.
 */
#ifndef BW_BASE_GLOB_H
#define BW_BASE_GLOB_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** What is wrong with a pattern, as a phrase; NULL if nothing is. */
const char *bw_glob_problem(const char *pattern, size_t length);

/** Whether all of the text fits the pattern, in which nothing is wrong. Takes at most as many steps
 * as both lengths multiplied. */
bool bw_glob_matches(const char *pattern, size_t pattern_length, const char *text,
                     size_t text_length);

/** The same where the case of letters does not count, except in classes, as for find -iname. Case
 * is that of the locale; 0: of ASCII alone. */
bool bw_glob_matches_folded(locale_t locale, const char *pattern, size_t pattern_length,
                            const char *text, size_t text_length);

#endif
