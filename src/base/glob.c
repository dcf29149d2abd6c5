/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matching patterns with fnmatch(3), which knows only the locale of the thread. The thread has the
 * chosen locale during a call. ASCII, and patterns without `?`, sets and case, are matched in the
 * locale C, where fnmatch(3) is much faster and gives the same answers.
 *
 * If characters do not match, glibc compares the bytes, so that "??" matches one letter of two
 * bytes. Therefore both sides begin with something that matches as characters, but not as bytes:
 * text with an arrow, patterns with the set of all characters after the arrow before it. The first
 * byte of both arrows is the end of a range in the set of bytes, and so not in that set.
 */
#include "base/glob.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

void bw_glob_open(struct bw_glob *glob)
{
    glob->bytes = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
    glob->characters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    bw_glob_matches(glob, "?", "\xc3\xa4", 2, 0); /* loads the tables of the locale */
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

#define ARROW_BEFORE "\xe2\x86\x90"
#define ARROW        "\xe2\x86\x91"
#define AFTER_ARROW  "[!\x01-" ARROW_BEFORE "]"

/* The text after a prefix; NULL without memory. */
static char *prepend(const char *prefix, const char *text, size_t length)
{
    const size_t before = strlen(prefix);
    char *joined = malloc(before + length + 1);
    if (joined) {
        memcpy(joined, prefix, before);
        memcpy(joined + before, text, length + 1);
    }
    return joined;
}

bool bw_glob_matches(const struct bw_glob *glob, const char *pattern, const char *text,
                     size_t length, int flags)
{
    const size_t pattern_length = strlen(pattern);
    const bool by_character =
        glob->characters && !(is_ascii(text, length) && is_ascii(pattern, pattern_length)) &&
        (flags || strpbrk(pattern, "?[")) && bw_utf8_is_valid(pattern, pattern_length) &&
        bw_utf8_is_valid(text, length);
    BW_AUTO_FREE char *set = NULL;
    BW_AUTO_FREE char *arrow = NULL;
    if (by_character) {
        set = prepend(AFTER_ARROW, pattern, pattern_length);
        arrow = prepend(ARROW, text, length);
    }
    if (set && arrow) {
        pattern = set;
        text = arrow;
    }
    const locale_t previous = uselocale(by_character ? glob->characters : glob->bytes);
    const bool matches = fnmatch(pattern, text, flags) == 0;
    uselocale(previous);
    return matches;
}
