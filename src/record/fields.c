/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading members of structures on disk. Lists end because each element consumes a byte or ends the
 * cursor. */
#include "record/fields.h"

#include <time.h>

#include "base/compare.h"
#include "base/escape.h"
#include "base/human.h"
#include "ondisk/disk_items.h"

static struct bw_printer *printer_of(const struct bw_row *row)
{
    return (struct bw_printer *)row->buffer;
}

static size_t bytes_left(const struct bw_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

/* Makes room for the rest of a row, which may be of other columns than the printed one. */
static char *make_room(struct bw_printer *printer, const struct bw_rows *rows, const char *at)
{
    const struct bw_row row = {rows, NULL, &printer->text};
    return at ? bw_row_room(&row, at, 0) : NULL;
}

/* Makes room for the rest of the row after something of any length. */
static char *reserve_rest(const struct bw_row *row, char *at)
{
    return make_room(printer_of(row), row->rows, at);
}

/* Values at a fixed place. */

static char *write_number(const struct bw_row *row, const void *value, char *at)
{
    const uint64_t number = bw_number_at(value, row->column->member->field->size);
    return row->column->write_value(row, &number, at);
}

/* Without nanoseconds if there are 8 bytes. */
static struct timespec time_at(const struct bw_row *row, const void *value)
{
    const struct bw_disk_timespec *disk = value;
    const bool is_short = row->column->member->field->size < sizeof *disk;
    struct timespec time = {.tv_sec = (int64_t)bw_get64(disk->seconds)};
    if (!is_short)
        time.tv_nsec = bw_get32(disk->nanoseconds);
    return time;
}

static char *write_time(const struct bw_row *row, const void *value, char *at)
{
    const struct timespec time = time_at(row, value);
    const int64_t nanoseconds = bw_time_nanoseconds(&time);
    return row->column->write_value(row, &nanoseconds, at);
}

static char *write_key(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_key key = bw_key_decode(value);
    return row->column->write_value(row, &key, at);
}

static char *write_bytes(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes bytes = {value, row->column->member->field->size};
    return row->column->write_value(row, &bytes, at);
}

static char *write_computed(const struct bw_row *row, const void *value, char *at)
{
    union bw_value computed = {0};
    (void)value;
    row->column->member->field->compute(&printer_of(row)->part, &computed);
    return row->column->write_value(row, &computed, at);
}

static char *write_key_offset(const struct bw_row *row, const void *value, char *at)
{
    (void)value;
    return row->column->write_value(row, &printer_of(row)->part.key->offset, at);
}

static char *write_index(const struct bw_row *row, const void *value, char *at)
{
    const uint64_t index = printer_of(row)->part.index;
    (void)value;
    return row->column->write_value(row, &index, at);
}

static char *write_key_objectid(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_key *key = printer_of(row)->part.key;
    (void)value;
    at = bw_row_room(row, at, BW_KEY_ROOM);
    return at ? bw_write_objectid(bw_row_lead(row, at), key->objectid, key->type) : NULL;
}

/* Structures. */

/* Zeros follow a structure that old versions of the kernel wrote shorter. */
enum { PADDED_ROOM = sizeof(struct bw_disk_root_item) };

/* Prints the number of remaining bytes in place of members that do not fit. */
static char *write_cut_off(struct bw_printer *printer, const struct bw_rows *rows, char *at)
{
    struct bw_cursor *cursor = &printer->part.cursor;
    const size_t length = bytes_left(cursor);
    printer->cut_off = true;
    cursor->bad = true;
    cursor->next = cursor->end;
    printer->text.length = (size_t)(at - printer->text.data);
    if (bw_rows_are_text(rows))
        bw_buffer_format(&printer->text, "\n\t\tcut off, %zu byte%s left", length,
                         bw_plural(length));
    else
        bw_buffer_format(&printer->text, ",\"cut_off_bytes\":%zu", length);
    return make_room(printer, rows, printer->text.data + printer->text.length);
}

/* Consumes the bytes of a structure; NULL if it is cut off. */
static const uint8_t *consume_structure(struct bw_cursor *cursor,
                                        const struct bw_structure *structure,
                                        uint8_t padded[PADDED_ROOM])
{
    const size_t have = bytes_left(cursor);
    if (have >= structure->size)
        return bw_cursor_take(cursor, structure->size);
    if (!structure->minimum || have < structure->minimum)
        return NULL;
    memset(padded, 0, PADDED_ROOM);
    memcpy(padded, cursor->next, have);
    cursor->next = cursor->end;
    return padded;
}

/* Writes the members of the structure that begins at part.start. */
static char *write_members(struct bw_printer *printer, const struct bw_rows *rows, char *at)
{
    at = make_room(printer, rows, at);
    if (at)
        at = bw_row_columns(rows, printer->part.start, UINT64_MAX, at, &printer->text);
    return at ? bw_lead_write(at, &rows->end) : NULL;
}

/* Writes the structure at the cursor. */
static char *write_structure(struct bw_printer *printer, const struct bw_rows *rows, char *at)
{
    uint8_t padded[PADDED_ROOM];
    struct bw_part *part = &printer->part;
    const uint8_t *outer = part->start;
    part->start = consume_structure(&part->cursor, rows->structure, padded);
    if (part->start)
        at = write_members(printer, rows, at);
    else
        at = write_cut_off(printer, rows, at);
    part->start = outer;
    return at;
}

/* Writes with `write`, in JSON as an object. The comma of the first member becomes the brace. */
static char *write_object(struct bw_printer *printer, const struct bw_rows *rows, char *at,
                          char *(*write)(struct bw_printer *, const struct bw_rows *, char *))
{
    const size_t start = (size_t)(at - printer->text.data);
    at = write(printer, rows, at);
    if (!at || bw_rows_are_text(rows))
        return at;
    at += at == printer->text.data + start;
    printer->text.data[start] = '{';
    *at++ = '}';
    return at;
}

static char *write_inner(const struct bw_row *row, const void *value, char *at)
{
    struct bw_part *part = &printer_of(row)->part;
    const uint8_t *outer = part->start;
    part->start = value;
    at = write_object(printer_of(row), row->column->nested, bw_row_lead(row, at), write_members);
    part->start = outer;
    return reserve_rest(row, at);
}

static char *write_next(const struct bw_row *row, const void *value, char *at)
{
    (void)value;
    at = write_structure(printer_of(row), row->column->nested, bw_row_lead(row, at));
    return reserve_rest(row, at);
}

/* The chosen structure begins where this one does. */
static char *write_choice(const struct bw_row *row, const void *value, char *at)
{
    struct bw_printer *printer = printer_of(row);
    const size_t chosen = row->column->member->field->choose(&printer->part);
    size_t count = 0;
    (void)value;
    at = bw_row_lead(row, at);
    while (row->column->choices[count])
        count++;
    if (chosen >= count)
        return at;
    const struct bw_rows *more = row->column->choices[chosen];
    const size_t size = more->structure->size, consumed = row->rows->structure->size;
    if (size <= consumed || bw_cursor_take(&printer->part.cursor, size - consumed))
        at = write_members(printer, more, at);
    else
        at = write_cut_off(printer, row->rows, at);
    return reserve_rest(row, at);
}

/* Elements until `count` is reached or the cursor ends. */
static char *write_elements(const struct bw_row *row, uint64_t count, bool bounded, char *at)
{
    struct bw_printer *printer = printer_of(row);
    const struct bw_rows *rows = row->column->nested;
    struct bw_part *part = &printer->part;
    const bool json = !bw_rows_are_text(rows);
    const uint32_t outer = part->index;
    at = bw_row_lead(row, at);
    if (json)
        *at++ = '[';
    for (part->index = 0;
         at && part->index < count && !part->cursor.bad && (bounded || bytes_left(&part->cursor));
         part->index++) {
        if (json && part->index)
            *at++ = ',';
        at = write_object(printer, rows, at, write_structure);
    }
    if (json && at)
        *at++ = ']';
    part->index = outer;
    return reserve_rest(row, at);
}

static char *write_list(const struct bw_row *row, const void *value, char *at)
{
    const uint16_t size = row->column->member->field->size;
    const uint64_t count = size ? bw_number_at(value, size) : UINT64_MAX;
    return write_elements(row, count, size != 0, at);
}

static char *write_range(const struct bw_row *row, const void *value, char *at)
{
    struct bw_part *part = &printer_of(row)->part;
    const struct bw_field *field = row->column->member->field;
    const struct bw_cursor outer = part->cursor;
    const uint8_t *bytes = value;
    size_t length = field->size;
    if (field->choose)
        length = (size_t)bw_min(length, field->choose(part));
    part->cursor = (struct bw_cursor){.next = bytes, .end = bytes + length};
    at = write_elements(row, UINT64_MAX, false, at);
    part->cursor = outer;
    return at;
}

/* Bytes after the members of fixed size. */

static char *write_tail(const struct bw_row *row, const void *value, char *at)
{
    struct bw_printer *printer = printer_of(row);
    struct bw_cursor *cursor = &printer->part.cursor;
    const struct bw_field *field = row->column->member->field;
    size_t length = bytes_left(cursor);
    if (field->size)
        length = (size_t)bw_number_at(value, field->size);
    if (cursor->bad)
        return at;
    if (bytes_left(cursor) < length)
        return write_cut_off(printer, row->rows, at);
    const struct bw_bytes bytes = {(const char *)bw_cursor_take(cursor, length), length};
    if (field->kind == BW_READ_DATA && !length)
        return at;
    if (field->hidden && printer->hide_names)
        return bw_rows_are_text(row->rows) ? stpcpy(bw_row_lead(row, at), "HIDDEN") : at;
    if (field->kind == BW_READ_REST && bw_rows_are_text(row->rows))
        return bw_row_lead(row, at);
    return row->column->write_value(row, &bytes, at);
}

/* A line of text contains one checksum of 32 bytes, two of 8, or four of 4. */
static char *write_checksums(const struct bw_row *row, const void *value, char *at)
{
    struct bw_printer *printer = printer_of(row);
    struct bw_cursor *cursor = &printer->part.cursor;
    const size_t size = printer->part.checksum_size, count = bytes_left(cursor) / size;
    const size_t a_line = BW_CSUM_SIZE / size / 2;
    const uint8_t *sums = bw_cursor_take(cursor, count * size);
    const bool json = !bw_rows_are_text(row->rows);
    (void)value;
    if (!printer->checksum_items)
        return at;
    struct bw_buffer *text = bw_row_buffer(row, bw_row_lead(row, at));
    bw_buffer_append(text, "[", json);
    for (size_t i = 0; i < count; i++) {
        if (json) {
            bw_buffer_append(text, ",", i > 0);
            bw_buffer_append_byte(text, '"');
        } else {
            if (a_line < 2 || i % a_line == 0)
                bw_buffer_append(text, "\n\t\t[", 4);
            else
                bw_buffer_append(text, " [", 2);
            bw_decimal_append(text, printer->part.key->offset + i * printer->part.sectorsize);
            bw_buffer_append(text, "] 0x", 4);
        }
        bw_buffer_append_hex(text, sums + i * size, size);
        bw_buffer_append(text, "\"", json);
    }
    bw_buffer_append(text, "]", json);
    return bw_row_end(row, 0);
}

/* Formats that only the text of structures has. */

/* A date in the zone of the user. Most times are near each other: the date of the minute, up to and
 * with the last colon, is kept. */
static char *write_date(struct bw_printer *printer, char *at, int64_t seconds)
{
    const int64_t minute = seconds / 60 - (seconds % 60 < 0);
    if (minute != printer->minute || !printer->minute_length) {
        const time_t start = minute * 60;
        struct tm parts;
        printer->minute = minute;
        printer->minute_length = 0;
        if (localtime_r(&start, &parts))
            printer->minute_length = (uint8_t)strftime(
                printer->minute_text, sizeof printer->minute_text, "%Y-%m-%d %H:%M:", &parts);
    }
    if (!printer->minute_length)
        return stpcpy(at, " (no date)");
    at = stpcpy(at, " (");
    memcpy(at, printer->minute_text, sizeof printer->minute_text);
    at = bw_decimal_two(at + printer->minute_length, (uint32_t)(seconds - minute * 60));
    *at++ = ')';
    return at;
}

static char *write_dated(const struct bw_row *row, const void *value, char *at)
{
    const struct timespec time = time_at(row, value);
    at = bw_row_room(row, at, 2 * BW_DECIMAL_ROOM + sizeof printer_of(row)->minute_text + 8);
    if (!at)
        return NULL;
    at = bw_decimal(bw_row_lead(row, at), (uint64_t)time.tv_sec);
    if (row->column->member->field->size > sizeof(bw_le64)) {
        *at++ = '.';
        at = bw_decimal(at, (uint64_t)time.tv_nsec);
    }
    return write_date(printer_of(row), at, time.tv_sec);
}

/* btrfs-progs print as many bytes as a name can have. */
static char *write_line(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    struct bw_buffer *buffer = bw_row_buffer(row, bw_row_lead(row, at));
    bw_escape_line(buffer, bytes->data, (size_t)bw_min(bytes->length, BW_NAME_MAX));
    return bw_row_end(row, 0);
}

static char *write_tree(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_objectid(bw_row_lead(row, at), *(const uint64_t *)value, 0);
}

static char *write_digits(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_digits(bw_row_lead(row, at), *(const uint64_t *)value, 4);
}

static char *write_ascii(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    at = bw_row_lead(row, at);
    for (size_t i = 0; i < bytes->length; i++)
        *at++ = bytes->data[i] >= ' ' && bytes->data[i] <= '~' ? bytes->data[i] : '.';
    return at;
}

static char *write_flag_lines(const struct bw_row *row, const void *value, char *at)
{
    uint64_t flags = *(const uint64_t *)value, unknown = flags;
    const char *before = "\n\t\t\t( ";
    at = bw_row_room(row, at, BW_FLAGS_ROOM);
    if (!at)
        return NULL;
    at = bw_write_digits(stpcpy(bw_row_lead(row, at), "0x"), flags, 4);
    for (const struct bw_value_name *word = row->column->member->values->words; word->name;
         word++) {
        unknown &= ~word->value;
        if (!bw_flag_applies(word, flags))
            continue;
        at = stpcpy(stpcpy(at, before), word->name);
        before = " |\n\t\t\t  ";
    }
    if (unknown)
        at = bw_write_digits(stpcpy(stpcpy(at, before), "unknown flag: 0x"), unknown, 4);
    return flags ? stpcpy(at, " )") : at;
}

bw_column_writer *bw_field_text_writer(const struct bw_member *member, const char *format,
                                       size_t length)
{
    static const struct {
        const char *name;
        bw_column_writer *write;
    } formats[] = {{"tree", write_tree},
                   {"digits", write_digits},
                   {"ascii", write_ascii},
                   {"lines", write_flag_lines}};
    const struct bw_rows_options plain = {.style = BW_ROWS_TEXT};
    for (size_t i = 0; length && i < sizeof formats / sizeof *formats; i++)
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, format, length) == 0)
            return formats[i].write;
    if (length)
        return *format == 'h' ? bw_write_hex : bw_write_unsigned;
    if (member->format == BW_FORMAT_NAME)
        return write_line;
    return bw_text_writer(member, &plain);
}

/* Which function reads a member. */

static const struct bw_member template_members[] = {
    BW_PART("@index", U64, NUMBER, "", .kind = BW_READ_INDEX),
    BW_PART("@objectid", U64, NUMBER, "", .kind = BW_READ_KEY_OBJECTID),
    BW_PART("@offset", U64, NUMBER, "", .kind = BW_READ_KEY_OFFSET),
};

const struct bw_member *bw_field_of_template(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof template_members / sizeof *template_members; i++)
        if (strlen(template_members[i].name) == length &&
            memcmp(template_members[i].name, name, length) == 0)
            return &template_members[i];
    return NULL;
}

bw_column_writer *bw_field_writer(const struct bw_member *member, bool text)
{
    static bw_column_writer *const writers[] = {
        [BW_READ_KEY_OBJECTID] = write_key_objectid,
        [BW_READ_KEY_OFFSET] = write_key_offset,
        [BW_READ_INDEX] = write_index,
        [BW_READ_COMPUTED] = write_computed,
        [BW_READ_STRUCTURE] = write_inner,
        [BW_READ_RANGE] = write_range,
        [BW_READ_NAME] = write_tail,
        [BW_READ_DATA] = write_tail,
        [BW_READ_REST] = write_tail,
        [BW_READ_LIST] = write_list,
        [BW_READ_NEXT] = write_next,
        [BW_READ_CHECKSUMS] = write_checksums,
        [BW_READ_CHOICE] = write_choice,
    };
    const enum bw_field_kind kind = member->field->kind;
    if (kind != BW_READ_VALUE)
        return writers[kind];
    if (member->format == BW_FORMAT_TIME)
        return text ? write_dated : write_time;
    if (member->type == BW_TYPE_KEY)
        return write_key;
    return member->type == BW_TYPE_BYTES ? write_bytes : write_number;
}

/* Items. */

/* The structure of an item, and the bytes that no structure describes. */
static char *write_item(struct bw_printer *printer, const struct bw_rows *rows, char *at)
{
    enum { A_LINE = 32 };
    struct bw_buffer *text = &printer->text;
    const struct bw_cursor *cursor = &printer->part.cursor;
    if (rows->structure)
        at = write_structure(printer, rows, at);
    const size_t length = bytes_left(cursor);
    if (!at || !length)
        return at;
    text->length = (size_t)(at - text->data);
    bw_buffer_append(text, ",\"raw\":\"", printer->json ? 8 : 0);
    for (size_t i = 0; i < length; i += A_LINE) {
        if (!printer->json)
            bw_buffer_format(text, "\n\t\traw %zu: ", i);
        bw_buffer_append_hex(text, cursor->next + i, (size_t)bw_min(length - i, A_LINE));
    }
    bw_buffer_append(text, "\"", printer->json);
    return bw_buffer_reserve(text, rows->room) ? text->data + text->length : NULL;
}

void bw_item_print(struct bw_printer *printer, const struct bw_rows *rows,
                   const struct bw_item *item)
{
    struct bw_rows unknown = {.style = (enum bw_rows_style)BW_ROWS_STRUCTURE,
                              .room = BW_VALUE_ROOM};
    struct bw_buffer *text = &printer->text;
    if (printer->json)
        unknown.style = BW_ROWS_JSON_LINES;
    printer->part.key = &item->key;
    printer->part.cursor = bw_cursor_of(item);
    if (!bw_buffer_reserve(text, BW_VALUE_ROOM))
        return;
    const char *end =
        write_object(printer, rows ? rows : &unknown, text->data + text->length, write_item);
    if (end)
        text->length = (size_t)(end - text->data);
}

void bw_structure_print(struct bw_printer *printer, const struct bw_rows *rows, const void *bytes)
{
    struct bw_buffer *text = &printer->text;
    printer->part.start = bytes;
    if (!bw_buffer_reserve(text, rows->room))
        return;
    const char *end = write_members(printer, rows, text->data + text->length);
    if (end)
        text->length = (size_t)(end - text->data);
}
