/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of structures as JSON. Nothing that an image can say is lost: numbers and bits without a
 * name are written as such. */
#include <inttypes.h>
#include <stdio.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "ondisk/structure.h"

/* The longest value that is written at once: a key, or a word with its quotes. */
enum { VALUE_ROOM = BW_KEY_ROOM + 2 };

char *bw_json_key(char *at, const struct bw_key *key)
{
    const char *type = bw_key_type_find(key->type);
    at = bw_decimal(stpcpy(at, "{\"objectid\":"), key->objectid);
    at = stpcpy(stpcpy(at, ",\"type\":\""), type ? type : "UNKNOWN.");
    if (!type)
        at = bw_decimal(at, key->type);
    at = bw_decimal(stpcpy(at, "\",\"offset\":"), key->offset);
    *at++ = '}';
    return at;
}

/* Words need no escapes. */
static char *write_word(char *at, const struct bw_field *member, uint64_t value)
{
    at = bw_write_word(stpcpy(at, "\""), member->words, value);
    *at++ = '"';
    return at;
}

static void write_flags(struct bw_json *json, const struct bw_field *member, uint64_t flags)
{
    char rest[20];
    bw_json_begin_array(json, NULL);
    for (const struct bw_value_name *word = member->words->words; word->name; word++) {
        if (!(flags & word->value) == word->absent)
            bw_json_text(json, NULL, word->name);
    }
    for (const struct bw_value_name *word = member->words->words; word->name; word++)
        flags &= ~word->value;
    if (flags) {
        snprintf(rest, sizeof rest, "0x%" PRIx64, flags);
        bw_json_text(json, NULL, rest);
    }
    bw_json_end(json);
}

static char *write_time(char *at, const uint8_t *bytes)
{
    const struct bw_disk_timespec *time = (const void *)bytes;
    at = bw_decimal_signed(stpcpy(at, "{\"sec\":"), (int64_t)bw_get64(time->seconds));
    at = bw_decimal(stpcpy(at, ",\"nsec\":"), bw_get32(time->nanoseconds));
    *at++ = '}';
    return at;
}

static char *write_uuid(char *at, const uint8_t *bytes)
{
    *at = '"';
    uuid_unparse_lower(bytes, at + 1);
    at[UUID_STR_LEN] = '"';
    return at + UUID_STR_LEN + 1;
}

/* A value of at most VALUE_ROOM bytes. */
static char *write_value(char *at, const struct bw_field *member, const uint8_t *start)
{
    const uint64_t number = bw_field_number(member, start);
    switch (member->kind) {
    case BW_KIND_SIGNED:
        return bw_decimal_signed(at, (int64_t)number);
    case BW_KIND_NAMED:
    case BW_KIND_NUMBER_NAMED:
        return write_word(at, member, number);
    case BW_KIND_TIME:
        return write_time(at, start + member->offset);
    case BW_KIND_UUID:
        return write_uuid(at, start + member->offset);
    case BW_KIND_KEY: {
        struct bw_key key = bw_key_decode((const void *)(start + member->offset));
        return bw_json_key(at, &key);
    }
    default:
        return bw_decimal(at, number);
    }
}

void bw_field_json(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start)
{
    struct bw_json *json = printer->json;
    if (!member->name)
        return;
    if (member->kind == BW_KIND_FLAGS || member->kind == BW_KIND_HEX_FLAGS) {
        bw_json_name(json, member->json, member->json_length);
        write_flags(json, member, bw_field_number(member, start));
    } else if (member->kind == BW_KIND_BYTES) {
        bw_json_name(json, member->json, member->json_length);
        bw_json_hex(json, NULL, start + member->offset, member->size);
    } else {
        char *at = bw_json_member(json, member->json, member->json_length, VALUE_ROOM);
        if (at)
            bw_json_member_end(json, write_value(at, member, start));
    }
}
