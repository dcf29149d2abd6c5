/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of structures as text, in the words of btrfs-progs. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "ondisk/structure.h"

/* Writes the lead of a member; returns its end, with `room` bytes behind it. */
static inline char *write_lead(struct bw_buffer *text, const struct bw_field *member, size_t room)
{
    if (!bw_buffer_reserve(text, BW_LEAD_ROOM + room))
        return NULL;
    char *at = text->data + text->length;
    memcpy(at, member->lead, BW_LEAD_ROOM);
    text->length += member->lead_length;
    return at + member->lead_length;
}

void bw_print_lead(struct bw_printer *printer, const struct bw_field *member)
{
    write_lead(printer->text, member, 0);
}

static void append(struct bw_buffer *text, const char *word)
{
    bw_buffer_append(text, word, strlen(word));
}

char *bw_write_word(char *at, const struct bw_value_names *words, uint64_t value)
{
    for (const struct bw_value_name *word = words->words; word->name; word++) {
        if (word->value == value)
            return stpcpy(at, word->name);
    }
    const size_t length = strlen(words->unknown);
    at = stpcpy(at, words->unknown);
    return length && at[-1] == '.' ? bw_decimal(at, value) : at;
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

/* The longest value that is written at once: a key, or a number and its name. */
enum { VALUE_ROOM = BW_KEY_ROOM + BW_DECIMAL_ROOM + 8 };

static char *write_date(struct bw_printer *printer, char *at, int64_t seconds)
{
    int64_t minute = seconds / 60 - (seconds % 60 < 0);
    if (minute != printer->minute || !printer->minute_length)
        write_minute(printer, minute);
    if (!printer->minute_length)
        return stpcpy(at, " (no date)");
    at = stpcpy(at, " (");
    memcpy(at, printer->minute_text, sizeof printer->minute_text);
    at = bw_decimal_two(at + printer->minute_length, (uint32_t)(seconds - minute * 60));
    *at++ = ')';
    return at;
}

static char *write_time(struct bw_printer *printer, char *at, const uint8_t *bytes)
{
    const struct bw_disk_timespec *time = (const void *)bytes;
    const uint64_t seconds = bw_get64(time->seconds);
    at = bw_decimal(at, seconds);
    *at++ = '.';
    at = bw_decimal(at, bw_get32(time->nanoseconds));
    return write_date(printer, at, (int64_t)seconds);
}

static char *write_uuid(char *at, const uint8_t *bytes)
{
    uuid_unparse_lower(bytes, at);
    return at + UUID_STR_LEN - 1;
}

/* A number in base 8 or 16: with 3 or 4 bits a digit. */
static char *write_power(char *at, uint64_t number, unsigned bits)
{
    unsigned digits = 1;
    while (digits * bits < 64 && number >> digits * bits)
        digits++;
    while (digits-- > 0)
        *at++ = "0123456789abcdef"[number >> digits * bits & ((1U << bits) - 1)];
    return at;
}

static void print_named_bits(struct bw_buffer *text, const struct bw_field *member, uint64_t bits)
{
    const bool hex = member->kind == BW_KIND_HEX_FLAGS;
    if (hex && bw_buffer_reserve(text, VALUE_ROOM)) {
        char *at = write_power(stpcpy(text->data + text->length, "0x"), bits, 4);
        *at++ = '(';
        text->length = (size_t)(at - text->data);
    }
    bw_print_flags(text, member->words, bits);
    if (hex)
        bw_buffer_append_byte(text, ')');
}

/* A value of at most VALUE_ROOM bytes; NULL: it may be longer. */
static char *write_short(struct bw_printer *printer, char *at, const struct bw_field *member,
                         const uint8_t *start)
{
    const uint64_t number = bw_field_number(member, start);
    switch (member->kind) {
    case BW_KIND_NUMBER:
        return bw_decimal(at, number);
    case BW_KIND_SIGNED:
        return bw_decimal_signed(at, (int64_t)number);
    case BW_KIND_OCTAL:
        return write_power(at, number, 3);
    case BW_KIND_HEX:
        return write_power(at, number, 4);
    case BW_KIND_TIME:
        return write_time(printer, at, start + member->offset);
    case BW_KIND_SECONDS:
        return write_date(printer, bw_decimal(at, number), (int64_t)number);
    case BW_KIND_UUID:
        return write_uuid(at, start + member->offset);
    case BW_KIND_KEY: {
        struct bw_key key = bw_key_decode((const void *)(start + member->offset));
        return bw_write_key(at, &key);
    }
    case BW_KIND_TREE:
        return bw_write_objectid(at, number, 0);
    case BW_KIND_NAMED:
        return bw_write_word(at, member->words, number);
    case BW_KIND_NUMBER_NAMED:
        at = bw_write_word(stpcpy(bw_decimal(at, number), " ("), member->words, number);
        return stpcpy(at, ")");
    case BW_KIND_TEXT:
        return at;
    default:
        return NULL;
    }
}

void bw_field_text(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start)
{
    struct bw_buffer *text = printer->text;
    char *at = write_lead(text, member, VALUE_ROOM);
    const char *end = at ? write_short(printer, at, member, start) : NULL;
    if (end)
        text->length = (size_t)(end - text->data);
    else if (at && member->kind == BW_KIND_BYTES)
        bw_buffer_append_hex(text, start + member->offset, member->size);
    else if (at)
        print_named_bits(text, member, bw_field_number(member, start));
}
