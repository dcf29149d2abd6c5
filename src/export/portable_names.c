/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names that Windows accepts.
 *
 * The components of a path are replaced one after the other. For each, the names "x", "x_2", "x_3"
 * and so on are tried until one is free, or was given to the same component before. A name counts
 * as taken if another one in the directory is equal without regard to case. The table contains only
 * hashes: where two collide, a name gets a number that it does not need.
 *
 * Letters are compared after towupper() and towlower(), because NTFS and exFAT compare upper-case
 * letters one by one, without expansions such as that of U+00DF.
 */
#include "export/portable_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <wctype.h>

#include "base/cleanup.h"
#include "base/utf8.h"

enum {
    LONGEST_NAME = 255,
    NUMBERED = 9, /* names with higher numbers end with a hash: a directory may have any number of
                   * names that become the same */
};

void bw_portable_names_open(struct bw_portable_names *names)
{
    names->characters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

void bw_portable_names_close(struct bw_portable_names *names)
{
    if (names->characters)
        freelocale(names->characters);
    bw_key_map_free(&names->taken);
    bw_buffer_free(&names->key);
    bw_buffer_free(&names->name);
    bw_buffer_free(&names->last);
    bw_buffer_free(&names->renamed);
    *names = (struct bw_portable_names){0};
}

/* The length of the reserved word that a name is, or that precedes its first dot; 0 if none.
 * Windows ignores spaces before the dot. */
static size_t reserved_length(const char *name, size_t length)
{
    static const char *const words[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
    static const char *const ports[] = {"COM", "LPT"};
    static const char *const superscripts[] = {"\xc2\xb9", "\xc2\xb2", "\xc2\xb3"}; /* 1 to 3 */
    const char *dot = memchr(name, '.', length);
    size_t end = dot ? (size_t)(dot - name) : length;
    while (end && name[end - 1] == ' ')
        end--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (end == strlen(words[i]) && strncasecmp(name, words[i], end) == 0)
            return end;
    for (size_t i = 0; end > 3 && i < sizeof ports / sizeof *ports; i++) {
        if (strncasecmp(name, ports[i], 3) != 0)
            continue;
        if (end == 4 && name[3] >= '0' && name[3] <= '9')
            return end;
        for (size_t j = 0; j < sizeof superscripts / sizeof *superscripts; j++)
            if (end == 5 && memcmp(name + 3, superscripts[j], 2) == 0)
                return end;
    }
    return 0;
}

/* Appends a name without anything that Windows refuses. */
static void append_accepted(struct bw_buffer *result, const char *name, size_t length)
{
    const size_t start = result->length, reserved = reserved_length(name, length);
    for (size_t i = 0, step; i < length; i += step) {
        step = bw_utf8_length((const uint8_t *)name + i, length - i);
        const bool is_refused =
            !step || (uint8_t)name[i] < 0x20 || (step == 1 && strchr("\"*:<>?\\|", name[i]));
        if (is_refused)
            bw_buffer_append_byte(result, '_');
        else
            bw_buffer_append(result, name + i, step);
        step += !step;
        if (i + step == reserved)
            bw_buffer_append_byte(result, '_');
    }
    if (!result->failed && result->length > start && strchr(". ", result->data[result->length - 1]))
        result->data[result->length - 1] = '_';
}

/* Shortens a name to make room for `more` bytes, at the beginning of a character. */
static void make_room(struct bw_buffer *name, size_t more)
{
    if (name->length + more <= LONGEST_NAME)
        return;
    name->length = LONGEST_NAME - more;
    while (name->length && ((uint8_t)name->data[name->length] & 0xc0) == 0x80)
        name->length--;
}

/* Inserts a number before the suffix of a name, or at its end. */
static void insert_number(struct bw_buffer *name, const char *number)
{
    BW_AUTO_BUFFER struct bw_buffer suffix = {0};
    const char *dot = memrchr(name->data, '.', name->length);
    if (dot && dot != name->data && name->data + name->length - dot < LONGEST_NAME / 2) {
        bw_buffer_append(&suffix, dot, (size_t)(name->data + name->length - dot));
        name->length -= suffix.length;
    }
    make_room(name, strlen(number) + suffix.length);
    bw_buffer_append(name, number, strlen(number));
    bw_buffer_append(name, suffix.data, suffix.length);
    name->failed |= suffix.failed;
}

/* The key of a name without case in the directory whose new path is `directory`. */
static uint64_t hash_without_case(struct bw_portable_names *names, const char *directory,
                                  size_t length, const struct bw_buffer *name)
{
    struct bw_buffer *key = &names->key;
    key->length = 0;
    bw_buffer_append(key, directory, length);
    bw_buffer_append_byte(key, '/');
    for (size_t i = 0, step; i < name->length; i += step) {
        const uint8_t *next = (const uint8_t *)name->data + i;
        step = bw_utf8_length(next, name->length - i);
        uint32_t letter = bw_utf8_decode(next, step);
        if (names->characters)
            letter = (uint32_t)towlower_l(towupper_l(letter, names->characters), names->characters);
        else if (letter >= 'A' && letter <= 'Z')
            letter |= 0x20;
        bw_buffer_append(key, &letter, sizeof letter);
    }
    return bw_hash_path(key->data, key->length);
}

/* Appends the new name of a component to the new path of its directory. `path` ends with the
 * component, which begins at `start`. */
static struct bw_error *append_component(struct bw_portable_names *names, const char *path,
                                         size_t start, size_t length, struct bw_buffer *result)
{
    enum { NEVER = UINT32_MAX };
    const uint64_t hash = bw_hash_path(path, length);
    const uint32_t original = (uint32_t)(hash >> 33); /* never NEVER */
    struct bw_buffer *name = &names->name;
    uint32_t found = NEVER;
    uint64_t key;
    for (unsigned number = 1; number <= NUMBERED + 1; number++) {
        char text[32];
        name->length = 0;
        append_accepted(name, path + start, length - start);
        make_room(name, 0);
        snprintf(text, sizeof text, "_%u", number);
        if (number > NUMBERED)
            snprintf(text, sizeof text, "_%016llx", (unsigned long long)hash);
        if (number > 1)
            insert_number(name, text);
        key = hash_without_case(names, result->data, result->length, name);
        if (name->failed || names->key.failed)
            return bw_error_no_memory();
        found = bw_key_map_get(&names->taken, key, NEVER);
        if (found == NEVER || found == original)
            break;
    }
    if (start)
        bw_buffer_append_byte(result, '/');
    bw_buffer_append(result, name->data, name->length);
    BW_TRY(bw_buffer_error(result));
    if (found != NEVER)
        return NULL;
    BW_TRY(bw_key_map_put(&names->taken, key, original));
    const bool is_same =
        name->length == length - start && memcmp(name->data, path + start, name->length) == 0;
    return is_same ? NULL : names->changed(names->context, length, result->data, result->length);
}

struct bw_error *bw_portable_names_find(struct bw_portable_names *names, const char *path,
                                        size_t length, struct bw_buffer *result)
{
    /* Most entries are in the directory of the previous one. */
    const char *slash = memrchr(path, '/', length);
    const size_t directory = slash ? (size_t)(slash - path) : 0;
    size_t start = 0;
    result->length = 0;
    if (directory && names->last.length == directory &&
        memcmp(names->last.data, path, directory) == 0) {
        bw_buffer_append(result, names->renamed.data, names->renamed.length);
        start = directory + 1;
    }
    while (start < length) {
        const char *next = memchr(path + start, '/', length - start);
        const size_t end = next ? (size_t)(next - path) : length;
        BW_TRY(append_component(names, path, start, end, result));
        if (end == directory) {
            BW_TRY(bw_buffer_set(&names->last, path, end));
            BW_TRY(bw_buffer_set(&names->renamed, result->data, result->length));
        }
        start = end + 1;
    }
    return bw_buffer_end_text(result);
}
