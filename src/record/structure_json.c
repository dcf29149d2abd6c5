/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of structures as JSON. Nothing that an image can say is lost: numbers and bits without a
 * name are written as such. */
#include <inttypes.h>
#include <stdio.h>
#include <uuid/uuid.h>

#include "record/structure.h"

void bw_json_key(struct bw_json *json, const struct bw_key *key)
{
    char unknown[16];
    const char *type = bw_key_type_find(key->type);
    bw_json_begin_object(json, NULL);
    BW_JSON_NAME(json, "objectid");
    bw_json_number(json, NULL, key->objectid);
    BW_JSON_NAME(json, "type");
    if (!type) {
        snprintf(unknown, sizeof unknown, "UNKNOWN.%u", key->type);
        type = unknown;
    }
    bw_json_text(json, NULL, type);
    BW_JSON_NAME(json, "offset");
    bw_json_number(json, NULL, key->offset);
    bw_json_end(json);
}

static void write_word(struct bw_json *json, const struct bw_field *member, uint64_t value)
{
    char text[64];
    struct bw_buffer word = {.data = text, .capacity = sizeof text, .fixed = true};
    bw_print_word(&word, member->words, value);
    bw_json_bytes(json, NULL, text, word.length);
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
    snprintf(rest, sizeof rest, "0x%" PRIx64, flags);
    if (flags)
        bw_json_text(json, NULL, rest);
    bw_json_end(json);
}

static void write_time(struct bw_json *json, const uint8_t *bytes)
{
    const struct bw_disk_timespec *time = (const void *)bytes;
    bw_json_begin_object(json, NULL);
    BW_JSON_NAME(json, "sec");
    bw_json_signed(json, NULL, (int64_t)bw_get64(time->seconds));
    BW_JSON_NAME(json, "nsec");
    bw_json_number(json, NULL, bw_get32(time->nanoseconds));
    bw_json_end(json);
}

static void write_uuid(struct bw_json *json, const uint8_t *bytes)
{
    char text[UUID_STR_LEN];
    uuid_unparse_lower(bytes, text);
    bw_json_bytes(json, NULL, text, sizeof text - 1);
}

void bw_field_json(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start)
{
    struct bw_json *json = printer->json;
    const uint64_t number = bw_field_number(member, start);
    const uint8_t *at = start + member->offset;
    if (!member->name)
        return;
    bw_json_name(json, member->quoted, member->quoted_length);
    switch (member->kind) {
    case BW_KIND_SIGNED:
        bw_json_signed(json, NULL, (int64_t)number);
        break;
    case BW_KIND_NAMED:
    case BW_KIND_NUMBER_NAMED:
        write_word(json, member, number);
        break;
    case BW_KIND_FLAGS:
    case BW_KIND_HEX_FLAGS:
        write_flags(json, member, number);
        break;
    case BW_KIND_TIME:
        write_time(json, at);
        break;
    case BW_KIND_UUID:
        write_uuid(json, at);
        break;
    case BW_KIND_KEY: {
        struct bw_key key = bw_key_decode((const void *)at);
        bw_json_key(json, &key);
        break;
    }
    case BW_KIND_BYTES:
        bw_json_hex(json, NULL, at, member->size);
        break;
    default:
        bw_json_number(json, NULL, number);
    }
}
