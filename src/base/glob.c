/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matching patterns with fnmatch(3), which knows only the locale of the thread. The thread has the
 * chosen locale during a call. ASCII, and patterns without `?`, sets and case, are matched in the
 * locale C, where fnmatch(3) is much faster and gives the same answers.
 */
#include "base/glob.h"

#include <fnmatch.h>
#include <string.h>

#include "base/utf8.h"

void bw_glob_open(struct bw_glob *glob)
{
    glob->bytes = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
    glob->characters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    bw_glob_matches(glob, "\xc3\xa4", "", 0, 0); /* loads the tables of the locale */
}

void bw_glob_close(struct bw_glob *glob)
{
    if (glob->bytes)
        freelocale(glob->bytes);
    if (glob->characters)
        freelocale(glob->characters);
    *glob = (struct bw_glob){0};
}

static bool is_ascii(const char *text, size_t length)
{
    uint64_t word, bits = 0;
    size_t i = 0;
    for (; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        bits |= word;
    }
    for (; i < length; i++)
        bits |= (uint8_t)text[i];
    return !(bits & UINT64_C(0x8080808080808080));
}

bool bw_glob_matches(const struct bw_glob *glob, const char *pattern, const char *text,
                     size_t length, int flags)
{
    const size_t pattern_length = strlen(pattern);
    locale_t locale = glob->bytes;
    if (glob->characters && !(is_ascii(text, length) && is_ascii(pattern, pattern_length)) &&
        (flags || strpbrk(pattern, "?[")) && bw_utf8_is_valid(pattern, pattern_length) &&
        bw_utf8_is_valid(text, length))
        locale = glob->characters;
    const locale_t previous = uselocale(locale);
    const bool matches = fnmatch(pattern, text, flags) == 0;
    uselocale(previous);
    return matches;
}
