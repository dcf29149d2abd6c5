/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matching patterns without recursion: on a mismatch only the last star is tried again, one
 * character further, because everything before it has matched as early as possible.
 */
#include "base/glob.h"

#include <stdint.h>
#include <string.h>
#include <wctype.h>

#include "base/utf8.h"

/* Bytes that are not UTF-8 become characters beyond Unicode. */
enum { BARE_BYTE = 0x200000 };

struct cursor {
    const uint8_t *next, *end;
};

/* How case is ignored. */
struct folding {
    bool folds;
    locale_t locale; /* 0: only those of ASCII are known */
};

static struct cursor cursor_of(const char *bytes, size_t length)
{
    const uint8_t *begin = (const uint8_t *)bytes;
    return (struct cursor){begin, begin + length};
}

/* Consumes the next character, which must exist. */
static uint32_t next_character(struct cursor *cursor)
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

static bool is_at(const struct cursor *cursor, char byte)
{
    return cursor->next < cursor->end && *cursor->next == (uint8_t)byte;
}

static bool skip_byte(struct cursor *cursor, char byte)
{
    if (!is_at(cursor, byte))
        return false;
    cursor->next++;
    return true;
}

static uint32_t fold_case(const struct folding *folding, uint32_t character)
{
    if (!folding->folds)
        return character;
    if (character < 0x80)
        return character >= 'A' && character <= 'Z' ? character - 'A' + 'a' : character;
    bool known = folding->locale && character < BARE_BYTE;
    return known ? (uint32_t)towlower_l((wint_t)character, folding->locale) : character;
}

/* Parses a character, which may follow a backslash; false at the end. */
static bool parse_character(struct cursor *pattern, uint32_t *character)
{
    skip_byte(pattern, '\\');
    if (pattern->next == pattern->end)
        return false;
    *character = next_character(pattern);
    return true;
}

/* Parses one character, or a range of them, in a set. */
static bool parse_range(struct cursor *pattern, uint32_t *first, uint32_t *last)
{
    if (!parse_character(pattern, first))
        return false;
    *last = *first;
    bool range = is_at(pattern, '-') && pattern->end - pattern->next > 1 && pattern->next[1] != ']';
    return !range || (skip_byte(pattern, '-') && parse_character(pattern, last));
}

/* Parses `[:name:]` in a set; `*class` is 0 if the class does not exist. Anything else is not a
 * class but single characters. */
static bool parse_class(struct cursor *pattern, wctype_t *class)
{
    struct cursor ahead = *pattern;
    char text[8] = "";
    if (!skip_byte(&ahead, '[') || !skip_byte(&ahead, ':'))
        return false;
    const uint8_t *name = ahead.next;
    while (ahead.next < ahead.end && *ahead.next >= 'a' && *ahead.next <= 'z')
        ahead.next++;
    size_t length = (size_t)(ahead.next - name);
    if (!skip_byte(&ahead, ':') || !skip_byte(&ahead, ']'))
        return false;
    *class = length < sizeof text ? wctype(memcpy(text, name, length)) : 0;
    *pattern = ahead;
    return true;
}

/* A set while it is read. */
struct set {
    uint32_t character;
    bool found;
    bool bad_class; /* it has a class that does not exist */
};

static bool parse_member(const struct folding *folding, struct cursor *pattern, struct set *set)
{
    wctype_t class;
    uint32_t first, last, folded = fold_case(folding, set->character);
    if (parse_class(pattern, &class)) {
        /* Of ASCII only, so that results do not depend on the locale; and not folded, as in find.
         */
        set->found |= class && set->character < 0x80 && iswctype((wint_t)set->character, class);
        set->bad_class |= !class;
        return true;
    }
    if (!parse_range(pattern, &first, &last))
        return false;
    set->found |= folded >= fold_case(folding, first) && folded <= fold_case(folding, last);
    return true;
}

/* Parses a set after its `[`, including the `]`. A `]` at the beginning is a member of the set.
 * False if the set does not end. */
static bool parse_set(const struct folding *folding, struct cursor *pattern, struct set *set)
{
    bool inverted = skip_byte(pattern, '!') || skip_byte(pattern, '^');
    do {
        if (!parse_member(folding, pattern, set))
            return false;
    } while (!skip_byte(pattern, ']'));
    set->found ^= inverted;
    return true;
}

/* Whether the next element of the pattern, which is no star, matches this character. */
static bool matches_one(const struct folding *folding, struct cursor *pattern, uint32_t character)
{
    struct set set = {.character = character};
    uint32_t plain;
    if (skip_byte(pattern, '?'))
        return true;
    if (skip_byte(pattern, '['))
        return parse_set(folding, pattern, &set) && set.found;
    return parse_character(pattern, &plain) &&
           fold_case(folding, plain) == fold_case(folding, character);
}

static bool matches_pattern(const struct folding *folding, struct cursor wanted,
                            struct cursor given)
{
    struct cursor after_star = {0}, retry = {0};
    while (given.next < given.end) {
        if (skip_byte(&wanted, '*')) {
            after_star = wanted;
            retry = given;
        } else if (!matches_one(folding, &wanted, next_character(&given))) {
            if (!after_star.next)
                return false;
            next_character(&retry);
            wanted = after_star;
            given = retry;
        }
    }
    while (skip_byte(&wanted, '*'))
        ;
    return wanted.next == wanted.end;
}

bool bw_glob_matches(const char *pattern, size_t pattern_length, const char *text,
                     size_t text_length)
{
    return matches_pattern(&(struct folding){0}, cursor_of(pattern, pattern_length),
                           cursor_of(text, text_length));
}

bool bw_glob_matches_folded(locale_t locale, const char *pattern, size_t pattern_length,
                            const char *text, size_t text_length)
{
    return matches_pattern(&(struct folding){true, locale}, cursor_of(pattern, pattern_length),
                           cursor_of(text, text_length));
}

static const char *problem_of_set(struct cursor *pattern)
{
    const uint8_t *start = pattern->next;
    struct set set = {0};
    if (!parse_set(&(struct folding){0}, pattern, &set))
        return "a '[' without its ']'";
    if (set.bad_class)
        return "no class has that name: they are like [:alpha:]";
    for (; start + 1 < pattern->next; start++)
        if (start[0] == '[' && (start[1] == '.' || start[1] == '='))
            return "[.x.] and [=x=] are not known";
    return NULL;
}

const char *bw_glob_problem(const char *pattern, size_t length)
{
    struct cursor cursor = cursor_of(pattern, length);
    const char *problem = NULL;
    uint32_t unused;
    while (!problem && cursor.next < cursor.end)
        if (skip_byte(&cursor, '['))
            problem = problem_of_set(&cursor);
        else if (!parse_character(&cursor, &unused))
            problem = "a '\\' with nothing after it";
    return problem;
}
