/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json_scan.h"

#include <string.h>

/* The value of the four hexadecimal digits of a \u escape; false if there are fewer. */
static bool read_digits(struct bw_json_scan *scan, unsigned *value)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *value = 0;
    if (scan->end - scan->next < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char *found = memchr(digits, *scan->next++, sizeof digits - 1);
        if (!found)
            return false;
        *value = *value << 4 | ((unsigned)(found - digits) & 15);
    }
    return true;
}

/* As UTF-8. */
static void append_character(struct bw_buffer *text, unsigned code)
{
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned more = (unsigned)(code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    bw_buffer_append_byte(text, (char)(first[more] | code >> (6 * more)));
    while (more--)
        bw_buffer_append_byte(text, (char)(0x80 | (code >> (6 * more) & 0x3f)));
}

/* Reads a string whose first quotation mark was read. A lone surrogate becomes U+FFFD. */
static bool read_string(struct bw_json_scan *scan, struct bw_buffer *text)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    unsigned high = 0;
    text->length = 0;
    while (scan->next < scan->end && *scan->next != '"') {
        const char byte = *scan->next++;
        unsigned code;
        if (byte != '\\') {
            bw_buffer_append_byte(text, byte);
            continue;
        }
        if (scan->next == scan->end)
            return false;
        const char letter = *scan->next++;
        const char *found = memchr(letters, letter, sizeof letters - 1);
        if (found) {
            bw_buffer_append_byte(text, values[found - letters]);
            continue;
        }
        if (letter != 'u' || !read_digits(scan, &code))
            return false;
        if (high && (code < 0xdc00 || code >= 0xe000))
            append_character(text, 0xfffd); /* the surrogate before this escape is alone */
        if (code >= 0xd800 && code < 0xdc00 && scan->end - scan->next > 6 &&
            memcmp(scan->next, "\\u", 2) == 0) {
            high = code;
            continue;
        }
        if (high && code >= 0xdc00 && code < 0xe000)
            code = 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00);
        else if (code >= 0xd800 && code < 0xe000)
            code = 0xfffd;
        high = 0;
        append_character(text, code);
    }
    bw_buffer_append_byte(text, '\0');
    return scan->next++ < scan->end && !text->failed;
}

bool bw_json_scan_next(struct bw_json_scan *scan)
{
    if (!scan->key.data)
        bw_buffer_append_byte(&scan->key, '\0');
    while (scan->next < scan->end) {
        const char byte = *scan->next++;
        switch (byte) {
        case ' ':
        case '\t':
        case '\n':
        case '\r':
        case ',':
            continue;
        case '{':
        case '[':
            scan->kind = BW_JSON_BEGIN;
            scan->depth++;
            return !scan->key.failed;
        case '}':
        case ']':
            if (!scan->depth--)
                goto end;
            scan->kind = BW_JSON_END;
            return !scan->key.failed;
        case '"':
            if (!read_string(scan, &scan->text))
                goto end;
            while (scan->next < scan->end && strchr(" \t\n\r", *scan->next))
                scan->next++;
            if (scan->next < scan->end && *scan->next == ':') {
                const struct bw_buffer key = scan->key;
                scan->next++;
                scan->key = scan->text;
                scan->text = key;
                continue;
            }
            scan->kind = BW_JSON_STRING;
            return !scan->key.failed;
        default:
            while (scan->next < scan->end && !strchr(" \t\n\r,]}", *scan->next))
                scan->next++;
            scan->kind = BW_JSON_OTHER;
            return !scan->key.failed;
        }
    }
end:
    scan->next = scan->end;
    return false;
}

void bw_json_scan_free(struct bw_json_scan *scan)
{
    bw_buffer_free(&scan->key);
    bw_buffer_free(&scan->text);
}
