/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes as offsets, hexadecimal digits and characters. */
#include "base/hex_dump.h"

enum {
    LINE_BYTES = 16,
    OFFSET_DIGITS = 8, /* at least */
    LINE_ROOM = 96,    /* characters of a line without its indent */
};

void bw_hex_dump(struct bw_buffer *text, const char *indent, uint64_t offset, const uint8_t *bytes,
                 size_t length)
{
    bool is_skipping = false;
    for (size_t at = 0; at < length; at += LINE_BYTES) {
        const size_t count = length - at < LINE_BYTES ? length - at : LINE_BYTES;
        const bool is_inner = at && length - at > LINE_BYTES;
        const bool is_same =
            is_inner && memcmp(bytes + at, bytes + at - LINE_BYTES, LINE_BYTES) == 0;
        if (is_same && is_skipping)
            continue;
        is_skipping = is_same;
        bw_buffer_append(text, indent, strlen(indent));
        if (is_same) {
            bw_buffer_append(text, "*\n", 2);
            continue;
        }
        if (!bw_buffer_reserve(text, LINE_ROOM))
            return;
        unsigned digits = OFFSET_DIGITS;
        while (digits < 16 && (offset + at) >> (4 * digits))
            digits++;
        while (digits-- > 0)
            bw_buffer_append_byte(text, "0123456789abcdef"[(offset + at) >> (4 * digits) & 15]);
        for (size_t i = 0; i < LINE_BYTES; i++) {
            bw_buffer_append(text, "  ", i % 8 ? 1 : 2);
            if (i < count)
                bw_buffer_append_hex(text, bytes + at + i, 1);
            else
                bw_buffer_append(text, "  ", 2);
        }
        bw_buffer_append(text, "  |", 3);
        for (size_t i = at; i < at + count; i++)
            bw_buffer_append_byte(text, bytes[i] >= ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '.');
        bw_buffer_append(text, "|\n", 2);
    }
}
