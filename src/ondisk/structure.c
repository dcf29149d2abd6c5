/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interpreter of structures: iterates over the members of a structure and what follows it, and
 * writes them as text, in the words of btrfs-progs, or as JSON. It ends because each element of a
 * list consumes at least one byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/human.h"
#include "ondisk/structure.h"

/* Text. */

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

/* The name of a number, with the number if that is how unknown ones are named. At most BW_KEY_ROOM
 * bytes, without quotes; returns the end. */
static char *bw_write_word(char *at, const struct bw_value_names *words, uint64_t value)
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

static uint64_t field_number(const struct bw_field *member, const uint8_t *start);

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
    const uint64_t number = field_number(member, start);
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
        print_named_bits(text, member, field_number(member, start));
}

/* JSON. Nothing that an image can say is lost: numbers and bits without a
 * name are written as such. */

/* The longest value that is written at once: a key, or a word with its quotes. */
enum { JSON_ROOM = BW_KEY_ROOM + 2 };

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

static char *write_json_time(char *at, const uint8_t *bytes)
{
    const struct bw_disk_timespec *time = (const void *)bytes;
    at = bw_decimal_signed(stpcpy(at, "{\"sec\":"), (int64_t)bw_get64(time->seconds));
    at = bw_decimal(stpcpy(at, ",\"nsec\":"), bw_get32(time->nanoseconds));
    *at++ = '}';
    return at;
}

static char *write_json_uuid(char *at, const uint8_t *bytes)
{
    *at = '"';
    uuid_unparse_lower(bytes, at + 1);
    at[UUID_STR_LEN] = '"';
    return at + UUID_STR_LEN + 1;
}

/* A value of at most JSON_ROOM bytes. */
static char *write_value(char *at, const struct bw_field *member, const uint8_t *start)
{
    const uint64_t number = field_number(member, start);
    switch (member->kind) {
    case BW_KIND_SIGNED:
        return bw_decimal_signed(at, (int64_t)number);
    case BW_KIND_NAMED:
    case BW_KIND_NUMBER_NAMED:
        return write_word(at, member, number);
    case BW_KIND_TIME:
        return write_json_time(at, start + member->offset);
    case BW_KIND_UUID:
        return write_json_uuid(at, start + member->offset);
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
        write_flags(json, member, field_number(member, start));
    } else if (member->kind == BW_KIND_BYTES) {
        bw_json_name(json, member->json, member->json_length);
        bw_json_hex(json, NULL, start + member->offset, member->size);
    } else {
        char *at = bw_json_member(json, member->json, member->json_length, JSON_ROOM);
        if (at)
            bw_json_member_end(json, write_value(at, member, start));
    }
}

/* The interpreter. */

/* Zeros behind a structure that old versions of the kernel wrote shorter. */
enum { PADDED_ROOM = sizeof(struct bw_disk_root_item) };

/* A number of 1, 2, 4 or 8 bytes; 0 for other sizes. */
static uint64_t field_number(const struct bw_field *member, const uint8_t *start)
{
    const uint8_t *at = start + member->offset;
    switch (member->size) {
    case 1:
        return *at;
    case 2:
        return bw_get16(*(const bw_le16 *)at);
    case 4:
        return bw_get32(*(const bw_le32 *)at);
    case 8:
        return bw_get64(*(const bw_le64 *)at);
    default:
        return 0;
    }
}

static void print_members(struct bw_printer *printer, const struct bw_structure *structure,
                          const struct bw_part *part);

static size_t left(const struct bw_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

/* What does not fit is shown as it is. */
static void print_cut_off(struct bw_printer *printer, struct bw_cursor *cursor)
{
    size_t length = left(cursor);
    printer->cut_off = true;
    cursor->bad = true;
    cursor->next = cursor->end;
    if (printer->json)
        bw_json_number(printer->json, "cut_off_bytes", length);
    else
        bw_buffer_format(printer->text, BW_LINE "cut off, %zu byte%s left", length,
                         bw_plural(length));
}

/* Consumes the bytes of a structure beyond the first `taken`; NULL if it is cut off. */
static const uint8_t *consume_structure(struct bw_cursor *cursor,
                                        const struct bw_structure *structure, size_t taken,
                                        uint8_t padded[PADDED_ROOM])
{
    size_t have = left(cursor);
    if (have + taken >= structure->size)
        return bw_cursor_take(cursor, structure->size - taken);
    if (!structure->minimum || have < structure->minimum)
        return NULL;
    memset(padded, 0, PADDED_ROOM);
    memcpy(padded, cursor->next, have);
    cursor->next = cursor->end;
    return padded;
}

static void print_struct(struct bw_printer *printer, const struct bw_structure *structure,
                         const struct bw_part *above, uint32_t index)
{
    uint8_t padded[PADDED_ROOM];
    struct bw_part part = *above;
    part.start = consume_structure(part.cursor, structure, 0, padded);
    part.index = index;
    if (part.start)
        print_members(printer, structure, &part);
    else
        print_cut_off(printer, part.cursor);
}

/* The chosen structure begins where this one does. */
static void print_choice(struct bw_printer *printer, const struct bw_field *member,
                         const struct bw_part *part, const struct bw_structure *structure)
{
    size_t chosen = member->choose(part), count = 0;
    while (member->structures[count])
        count++;
    if (chosen >= count)
        return;
    const struct bw_structure *more = member->structures[chosen];
    bool fits = more->size <= structure->size ||
                bw_cursor_take(part->cursor, (size_t)more->size - structure->size);
    if (fits)
        print_members(printer, more, part);
    else
        print_cut_off(printer, part->cursor);
}

static void begin_json(struct bw_printer *printer, const struct bw_field *member,
                       void (*begin)(struct bw_json *json, const char *name))
{
    bw_json_name(printer->json, member->json, member->json_length);
    begin(printer->json, NULL);
}

static void print_list(struct bw_printer *printer, const struct bw_field *member,
                       const struct bw_part *part)
{
    uint64_t count = member->size ? field_number(member, part->start) : UINT64_MAX;
    struct bw_cursor *cursor = part->cursor;
    if (printer->json)
        begin_json(printer, member, bw_json_begin_array);
    for (uint32_t i = 0; i < count && !cursor->bad && (member->size || left(cursor)); i++) {
        if (printer->json)
            bw_json_begin_object(printer->json, NULL);
        print_struct(printer, member->structure, part, i);
        if (printer->json)
            bw_json_end(printer->json);
    }
    if (printer->json)
        bw_json_end(printer->json);
}

/* In text, names and values are printed up to the length that a name can have, as btrfs-progs do.
 */
static void print_bytes(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    size_t length = (size_t)field_number(member, part->start);
    const uint8_t *bytes = left(part->cursor) < length ? NULL : part->cursor->next;
    if (!bytes) {
        print_cut_off(printer, part->cursor);
        return;
    }
    part->cursor->next += length;
    if (member->kind == BW_KIND_DATA && !length)
        return;
    if (printer->json && !printer->hide_names)
        bw_json_bytes(printer->json, member->name, bytes, length);
    if (printer->json)
        return;
    bw_print_lead(printer, member);
    if (printer->hide_names)
        bw_buffer_append(printer->text, "HIDDEN", 6);
    else
        bw_escape_line(printer->text, bytes, length < BW_NAME_MAX ? length : BW_NAME_MAX);
}

static void print_rest(struct bw_printer *printer, const struct bw_field *member,
                       const struct bw_part *part)
{
    struct bw_cursor *cursor = part->cursor;
    size_t length = left(cursor);
    const uint8_t *bytes = bw_cursor_take(cursor, length);
    if (printer->json)
        bw_json_hex(printer->json, member->name, bytes, length);
    else if (!member->quiet)
        bw_print_lead(printer, member);
}

static void print_inner(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    struct bw_part inner = *part;
    inner.start += member->offset;
    if (printer->json)
        begin_json(printer, member, bw_json_begin_object);
    else if (!member->quiet)
        bw_print_lead(printer, member);
    if (printer->json || !member->quiet)
        print_members(printer, member->structure, &inner);
    if (printer->json)
        bw_json_end(printer->json);
}

static void print_member(struct bw_printer *printer, const struct bw_structure *structure,
                         const struct bw_field *member, const struct bw_part *part)
{
    switch (member->kind) {
    case BW_KIND_STRUCT:
        print_inner(printer, member, part);
        break;
    case BW_KIND_NAME:
    case BW_KIND_DATA:
        print_bytes(printer, member, part);
        break;
    case BW_KIND_REST:
        print_rest(printer, member, part);
        break;
    case BW_KIND_LIST:
        print_list(printer, member, part);
        break;
    case BW_KIND_CHOICE:
        print_choice(printer, member, part, structure);
        break;
    case BW_KIND_SPECIAL:
        member->write(printer, member, part);
        break;
    case BW_KIND_INDEX:
        if (printer->json)
            break;
        bw_print_lead(printer, member);
        bw_decimal_append(printer->text, part->index);
        break;
    default:
        if (printer->json)
            bw_field_json(printer, member, part->start);
        else if (!member->quiet)
            bw_field_text(printer, member, part->start);
    }
}

static void print_members(struct bw_printer *printer, const struct bw_structure *structure,
                          const struct bw_part *part)
{
    for (uint32_t i = 0; i < structure->count && !part->cursor->bad; i++)
        print_member(printer, structure, &structure->members[i], part);
}

void bw_structure_print(struct bw_printer *printer, const struct bw_structure *structure,
                        const struct bw_key *key, struct bw_cursor *cursor)
{
    const struct bw_part part = {.key = key, .cursor = cursor};
    print_struct(printer, structure, &part, 0);
}
