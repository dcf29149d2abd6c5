/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matching patterns, without recursion: on a mismatch only the last star has to be tried again, one character
 * further, because what stood before it has matched as early as it could.
 */
#include "base/glob.h"

#include <stdint.h>

#include "base/utf8.h"

/* Bytes that are no UTF-8 are characters beyond all of Unicode's. */
enum { BARE_BYTE = 0x200000 };

struct cursor {
    const uint8_t *next, *end;
};

static struct cursor cursor_of(const char *bytes, size_t length)
{
    const uint8_t *begin = (const uint8_t *)bytes;
    return (struct cursor){begin, begin + length};
}

/* Takes a character; there is one. */
static uint32_t take(struct cursor *cursor)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t length = bw_utf8_length(cursor->next, (size_t)(cursor->end - cursor->next));
    if (length == 0)
        return BARE_BYTE | *cursor->next++;
    uint32_t character = *cursor->next++ & first_bits[length];
    for (; length > 1; length--)
        character = character << 6 | (*cursor->next++ & 0x3f);
    return character;
}

static bool at(const struct cursor *cursor, char byte)
{
    return cursor->next < cursor->end && *cursor->next == (uint8_t)byte;
}

static bool skip(struct cursor *cursor, char byte)
{
    if (!at(cursor, byte))
        return false;
    cursor->next++;
    return true;
}

/* Takes a character that may have a backslash in front of it; false at the end. */
static bool take_plain(struct cursor *pattern, uint32_t *character)
{
    skip(pattern, '\\');
    if (pattern->next == pattern->end)
        return false;
    *character = take(pattern);
    return true;
}

/* One character or a range of them, in a set. */
static bool take_range(struct cursor *pattern, uint32_t *first, uint32_t *last)
{
    if (!take_plain(pattern, first))
        return false;
    *last = *first;
    bool range = at(pattern, '-') && pattern->end - pattern->next > 1 && pattern->next[1] != ']';
    return !range || (skip(pattern, '-') && take_plain(pattern, last));
}

/* What follows `[`, up to and with `]`; a `]` that is the first stands for itself. False if it does not end.
 */
static bool take_set(struct cursor *pattern, uint32_t character, bool *found)
{
    uint32_t first, last;
    bool inverted = skip(pattern, '!') || skip(pattern, '^');
    *found = false;
    do {
        if (!take_range(pattern, &first, &last))
            return false;
        *found |= character >= first && character <= last;
    } while (!skip(pattern, ']'));
    *found ^= inverted;
    return true;
}

/* Whether the next thing in the pattern, which is no star, stands for this character. */
static bool matches_one(struct cursor *pattern, uint32_t character)
{
    bool found;
    uint32_t plain;
    if (skip(pattern, '?'))
        return true;
    if (skip(pattern, '['))
        return take_set(pattern, character, &found) && found;
    return take_plain(pattern, &plain) && plain == character;
}

bool bw_glob_matches(const char *pattern, size_t pattern_length, const char *text, size_t text_length)
{
    struct cursor wanted = cursor_of(pattern, pattern_length), given = cursor_of(text, text_length);
    struct cursor behind_star = {0}, retry = {0};
    while (given.next < given.end) {
        if (skip(&wanted, '*')) {
            behind_star = wanted;
            retry = given;
        } else if (!matches_one(&wanted, take(&given))) {
            if (!behind_star.next)
                return false;
            take(&retry);
            wanted = behind_star;
            given = retry;
        }
    }
    while (skip(&wanted, '*'))
        ;
    return wanted.next == wanted.end;
}

static const char *problem_of_set(struct cursor *pattern)
{
    const uint8_t *start = pattern->next;
    bool unused;
    if (!take_set(pattern, 0, &unused))
        return "a '[' without its ']'";
    for (; start + 1 < pattern->next; start++)
        if (start[0] == '[' && (start[1] == ':' || start[1] == '.' || start[1] == '='))
            return "classes like [:alpha:] are not known";
    return NULL;
}

const char *bw_glob_problem(const char *pattern, size_t length)
{
    struct cursor cursor = cursor_of(pattern, length);
    const char *problem = NULL;
    uint32_t unused;
    while (!problem && cursor.next < cursor.end)
        if (skip(&cursor, '['))
            problem = problem_of_set(&cursor);
        else if (!take_plain(&cursor, &unused))
            problem = "a '\\' with nothing behind it";
    return problem;
}
