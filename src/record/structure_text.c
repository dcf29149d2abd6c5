/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of structures as text, in the words of btrfs-progs. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "record/structure.h"

void bw_print_lead(struct bw_printer *printer, const struct bw_field *member)
{
    struct bw_buffer *text = printer->text;
    if (!bw_buffer_reserve(text, BW_LEAD_ROOM))
        return;
    memcpy(text->data + text->length, member->lead, BW_LEAD_ROOM);
    text->length += member->lead_length;
}

static void append(struct bw_buffer *text, const char *word)
{
    bw_buffer_append(text, word, strlen(word));
}

void bw_print_word(struct bw_buffer *text, const struct bw_value_names *words, uint64_t value)
{
    for (const struct bw_value_name *word = words->words; word->name; word++) {
        if (word->value == value) {
            append(text, word->name);
            return;
        }
    }
    size_t length = strlen(words->unknown);
    bw_buffer_append(text, words->unknown, length);
    if (length && words->unknown[length - 1] == '.')
        bw_buffer_format(text, "%" PRIu64, value);
}

void bw_print_flags(struct bw_buffer *text, const struct bw_value_names *words, uint64_t flags)
{
    bool any = false;
    for (const struct bw_value_name *word = words->words; word->name; word++) {
        if (!(flags & word->value) != word->absent)
            continue;
        if (any)
            bw_buffer_append_byte(text, '|');
        append(text, word->name);
        any = true;
    }
    if (!any && words->none)
        append(text, words->none);
}

/* The date of the minute, up to and with the last colon, in the zone of the user. */
static void write_minute(struct bw_printer *printer, int64_t minute)
{
    time_t seconds = minute * 60;
    struct tm parts;
    printer->minute = minute;
    printer->minute_length = 0;
    if (localtime_r(&seconds, &parts))
        printer->minute_length = (uint8_t)strftime(
            printer->minute_text, sizeof printer->minute_text, "%Y-%m-%d %H:%M:", &parts);
}

static void print_date(struct bw_printer *printer, int64_t seconds)
{
    struct bw_buffer *text = printer->text;
    int64_t minute = seconds / 60 - (seconds % 60 < 0);
    if (minute != printer->minute || !printer->minute_length)
        write_minute(printer, minute);
    bw_buffer_append(text, " (", 2);
    bw_buffer_append(text, printer->minute_text, printer->minute_length);
    if (!printer->minute_length)
        append(text, "no date");
    else if (bw_buffer_reserve(text, 2))
        text->length =
            (size_t)(bw_decimal_two(text->data + text->length, (uint32_t)(seconds - minute * 60)) -
                     text->data);
    bw_buffer_append_byte(text, ')');
}

static void print_time(struct bw_printer *printer, const uint8_t *bytes)
{
    const struct bw_disk_timespec *time = (const void *)bytes;
    const uint64_t seconds = bw_get64(time->seconds);
    bw_decimal_append(printer->text, seconds);
    bw_buffer_append_byte(printer->text, '.');
    bw_decimal_append(printer->text, bw_get32(time->nanoseconds));
    print_date(printer, (int64_t)seconds);
}

static void print_uuid(struct bw_buffer *text, const uint8_t *bytes)
{
    char words[UUID_STR_LEN];
    uuid_unparse_lower(bytes, words);
    bw_buffer_append(text, words, sizeof words - 1);
}

/* A number in base 8 or 16: with 3 or 4 bits a digit. */
static void append_power(struct bw_buffer *text, uint64_t number, unsigned bits)
{
    unsigned digits = 1;
    while (digits * bits < 64 && number >> digits * bits)
        digits++;
    if (!bw_buffer_reserve(text, digits))
        return;
    while (digits-- > 0)
        text->data[text->length++] =
            "0123456789abcdef"[number >> digits * bits & ((1U << bits) - 1)];
}

/* What a table of words gives names to. */
static void print_worded(struct bw_printer *printer, const struct bw_field *member, uint64_t number)
{
    struct bw_buffer *text = printer->text;
    const bool both = member->kind == BW_KIND_NUMBER_NAMED || member->kind == BW_KIND_HEX_FLAGS;
    if (member->kind == BW_KIND_NUMBER_NAMED) {
        bw_decimal_append(text, number);
        bw_buffer_append(text, " (", 2);
    } else if (member->kind == BW_KIND_HEX_FLAGS) {
        bw_buffer_append(text, "0x", 2);
        append_power(text, number, 4);
        bw_buffer_append_byte(text, '(');
    }
    if (member->kind == BW_KIND_NAMED || member->kind == BW_KIND_NUMBER_NAMED)
        bw_print_word(text, member->words, number);
    else
        bw_print_flags(text, member->words, number);
    if (both)
        bw_buffer_append_byte(text, ')');
}

void bw_field_text(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start)
{
    struct bw_buffer *text = printer->text;
    const uint8_t *at = start + member->offset;
    const uint64_t number = bw_field_number(member, start);
    bw_print_lead(printer, member);
    switch (member->kind) {
    case BW_KIND_NUMBER:
        bw_decimal_append(text, number);
        break;
    case BW_KIND_SIGNED:
        bw_buffer_format(text, "%" PRId64, (int64_t)number);
        break;
    case BW_KIND_OCTAL:
        append_power(text, number, 3);
        break;
    case BW_KIND_HEX:
        append_power(text, number, 4);
        break;
    case BW_KIND_TIME:
        print_time(printer, at);
        break;
    case BW_KIND_SECONDS:
        bw_decimal_append(text, number);
        print_date(printer, (int64_t)number);
        break;
    case BW_KIND_UUID:
        print_uuid(text, at);
        break;
    case BW_KIND_KEY: {
        struct bw_key key = bw_key_decode((const void *)at);
        bw_print_key(text, &key);
        break;
    }
    case BW_KIND_TREE:
        bw_print_objectid(text, number, 0);
        break;
    case BW_KIND_BYTES:
        bw_buffer_append_hex(text, at, member->size);
        break;
    case BW_KIND_TEXT:
        break;
    default:
        print_worded(printer, member, number);
    }
}
