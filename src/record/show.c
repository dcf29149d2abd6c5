/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values as text and as JSON, by the type and the format of their members. */
#include "record/show.h"

#include <inttypes.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/escape.h"

uint64_t bw_show_number(const struct bw_member *member, const void *record)
{
    uint64_t value;
    memcpy(&value, (const char *)record + member->offset, sizeof value);
    return value;
}

struct bw_bytes bw_show_bytes(const struct bw_member *member, const void *record)
{
    struct bw_bytes bytes = {0};
    const void *place = (const char *)record + member->offset;
    if (member->type == BW_TYPE_BYTES) {
        memcpy(&bytes, place, sizeof bytes);
    } else if (member->type == BW_TYPE_TEXT) {
        memcpy(&bytes.data, place, sizeof bytes.data);
        bytes.length = bytes.data ? strlen(bytes.data) : 0;
    }
    return bytes;
}

static bool is_number(const struct bw_member *member)
{
    return member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64;
}

static void append_number(const struct bw_member *member, uint64_t value, struct bw_buffer *text)
{
    if (member->type == BW_TYPE_I64)
        bw_buffer_format(text, "%" PRId64, (int64_t)value);
    else if (member->format == BW_FORMAT_HEX)
        bw_buffer_format(text, "0x%" PRIx64, value);
    else
        bw_buffer_format(text, member->format == BW_FORMAT_OCTAL ? "%" PRIo64 : "%" PRIu64, value);
}

static bool uuid_text(const struct bw_member *member, const struct bw_bytes *bytes,
                      char text[UUID_STR_LEN])
{
    if (member->format != BW_FORMAT_UUID || bytes->length != sizeof(uuid_t))
        return false;
    uuid_unparse((const unsigned char *)bytes->data, text);
    return true;
}

/* Bytes that are no word by themselves. */
static bool needs_quotes(const struct bw_bytes *bytes)
{
    return bytes->length == 0 || memchr(bytes->data, ' ', bytes->length) ||
           memchr(bytes->data, '"', bytes->length);
}

static void append_quoted(const struct bw_bytes *bytes, struct bw_buffer *text)
{
    bw_buffer_append_byte(text, '"');
    for (uint64_t done = 0, run; done < bytes->length; done += run) {
        const char *next = bytes->data + done;
        run = 1;
        if (*next == ' ') {
            bw_buffer_append_byte(text, ' ');
        } else if (*next == '"') {
            bw_buffer_append(text, "\\\"", 2);
        } else {
            while (done + run < bytes->length && next[run] != ' ' && next[run] != '"')
                run++;
            bw_escape_append(text, next, run);
        }
    }
    bw_buffer_append_byte(text, '"');
}

void bw_show_word(const struct bw_member *member, const void *record, struct bw_buffer *text)
{
    char uuid[UUID_STR_LEN];
    if (is_number(member)) {
        append_number(member, bw_show_number(member, record), text);
        return;
    }
    const struct bw_bytes bytes = bw_show_bytes(member, record);
    if (!bytes.data)
        bw_buffer_append_byte(text, '-');
    else if (uuid_text(member, &bytes, uuid))
        bw_buffer_append(text, uuid, strlen(uuid));
    else if (needs_quotes(&bytes))
        append_quoted(&bytes, text);
    else
        bw_escape_append(text, bytes.data, bytes.length);
}

void bw_show_json(const struct bw_member *member, const void *record, struct bw_json *json)
{
    char uuid[UUID_STR_LEN];
    if (is_number(member)) {
        uint64_t value = bw_show_number(member, record);
        if (member->type == BW_TYPE_I64)
            bw_json_signed(json, member->name, (int64_t)value);
        else
            bw_json_number(json, member->name, value);
        return;
    }
    const struct bw_bytes bytes = bw_show_bytes(member, record);
    if (!bytes.data)
        return;
    if (uuid_text(member, &bytes, uuid))
        bw_json_text(json, member->name, uuid);
    else
        bw_json_bytes(json, member->name, bytes.data, bytes.length);
}
