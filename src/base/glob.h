/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns for names in images, as of fnmatch(3): `*` matches anything, `?` one character, `[a-z]`
 * and `[!a-z]` one of a set, in which `[:alpha:]` and the other classes of POSIX may occur; `\`
 * removes the meaning of the next character. Slashes and dots are not special.
 *
 * A character is a sequence of UTF-8, independently of the locale of the process. If a name or a
 * pattern is not valid UTF-8, or if the system has no locale with UTF-8, both are matched byte by
 * byte.
 */
#ifndef BW_BASE_GLOB_H
#define BW_BASE_GLOB_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** The locales in which patterns are matched. */
struct bw_glob {
    locale_t bytes;
    locale_t characters; /**< 0: none */
};

/** Opens the locales; later, matching opens no files. */
void bw_glob_open(struct bw_glob *glob);
void bw_glob_close(struct bw_glob *glob);

/** Whether the whole text, after which there is a NUL, matches the pattern, with the flags of
 * fnmatch(3). Safe from any thread. */
bool bw_glob_matches(const struct bw_glob *glob, const char *pattern, const char *text,
                     size_t length, int flags);

#endif
