/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows: reading a choice of members, preparing it, writing records, and what surrounds the rows:
 * the names of the columns, the header record, the brackets of an array. */
#include "record/rows.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/short_copy.h"
#include "base/struct_size.h"
#include "record/fields.h"
#include "record/row.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* The choice. */

/* Numbers of the chosen members in their order, without repetitions. */
struct choice {
    unsigned char members[BW_RECORD_MEMBERS];
    unsigned count;
    uint64_t mask;
};

static void choose_member(struct choice *choice, unsigned member)
{
    choice->members[choice->count++] = (unsigned char)member;
    choice->mask |= UINT64_C(1) << member;
}

static struct bw_error *choose_name(const struct bw_record *record, const char *name, size_t length,
                                    struct choice *choice)
{
    int member = bw_record_member(record, name, length);
    if (!length)
        return bw_error_create(BW_ERROR_USAGE, "the name of a column is empty");
    if (member < 0)
        return bw_error_create(BW_ERROR_USAGE, "unknown column %.*s", (int)length, name);
    if (choice->mask >> member & 1)
        return bw_error_create(BW_ERROR_USAGE, "column %.*s is named twice", (int)length, name);
    choose_member(choice, (unsigned)member);
    return NULL;
}

/* Without names, chooses all members that cost nothing extra; for words, all members. */
static struct bw_error *make_choice(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct choice *choice)
{
    uint64_t eager = (int)options->style == BW_ROWS_WORDS ? UINT64_MAX : bw_record_eager(record);
    for (unsigned i = 0; !options->members && i < record->member_count; i++)
        if (eager >> i & 1)
            choose_member(choice, i);
    for (const char *name = options->members; name; name++) {
        size_t length = strcspn(name, ",");
        BW_TRY(choose_name(record, name, length, choice));
        name += length;
        if (!*name)
            break;
    }
    return NULL;
}

/* Preparing it. */

/* Room for a lead of that many bytes. */
static size_t padded_length(size_t length)
{
    return length ? (length + BW_LEAD_STEP - 1) / BW_LEAD_STEP * BW_LEAD_STEP : BW_LEAD_STEP;
}

/* The longest lead of a member: ,"NAME_bytes":" */
static size_t lead_room(const struct bw_member *member)
{
    return padded_length((member->name ? strlen(member->name) : 0) + sizeof ",\"_bytes\":\"");
}

/* Copies a lead to `*left`, and advances it. Unused bytes are zero. */
static struct bw_lead take_lead(char **left, const char *text, size_t length)
{
    struct bw_lead lead = {*left, length};
    if (length)
        memcpy(*left, text, length);
    *left += padded_length(length);
    return lead;
}

/* BEFORE NAME AFTER, and a quote if a string follows. */
static struct bw_lead named_lead(char **left, const char *before, const struct bw_member *member,
                                 const char *after, bool quoted)
{
    struct bw_lead lead = {*left, 0};
    char *at = stpcpy(stpcpy(stpcpy(*left, before), member->name), after);
    *left += lead_room(member);
    if (quoted)
        *at++ = '"';
    *at = '\0';
    lead.length = (size_t)(at - lead.text);
    return lead;
}

/* begin, absent, none and the separator, then two for each member. */
static size_t leads_room(const struct bw_record *record, const struct choice *choice,
                         const struct bw_rows_options *options)
{
    size_t room = (size_t)3 * BW_LEAD_STEP + padded_length(options->separator_length);
    for (unsigned i = 0; i < choice->count; i++)
        room += 2 * lead_room(&record->members[choice->members[i]]);
    return room;
}

static bw_column_writer write_nested;
static struct bw_error *create_structure(const struct bw_structure *structure,
                                         const struct bw_rows_options *options,
                                         struct bw_rows **result);
static struct bw_error *create_rows(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct bw_rows **result);

/* Records within a record are always JSON, in columns of text, too. */
static struct bw_error *add_nested(struct bw_column *column, const struct bw_record *element,
                                   bool is_array, unsigned times)
{
    const struct bw_rows_options options = {.style = BW_ROWS_JSON_LINES, .times = times};
    column->write = write_nested;
    column->is_array = is_array;
    return create_rows(element, &options, &column->nested);
}

/* The rows of the structures that a member contains, or chooses from. In columns they are JSON. */
static struct bw_error *add_structures(struct bw_column *column,
                                       const struct bw_rows_options *outer)
{
    const struct bw_field *field = column->member->field;
    struct bw_rows_options options = {.style = outer->style, .times = outer->times};
    size_t count = 0;
    if ((int)options.style != BW_ROWS_STRUCTURE)
        options.style = BW_ROWS_JSON_LINES;
    if (field->structure)
        BW_TRY(create_structure(field->structure, &options, &column->nested));
    while (field->structures && field->structures[count])
        count++;
    if (count)
        column->choices = calloc(count + 1, sizeof *column->choices);
    if (count && !column->choices)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        BW_TRY(create_structure(field->structures[i], &options, &column->choices[i]));
    return NULL;
}

static bool is_json(const struct bw_rows_options *options)
{
    return options->style == BW_ROWS_JSON_LINES || options->style == BW_ROWS_JSON_ARRAY;
}

/* Whether equal values have equal texts. Texts are compared by their pointers. */
static bool can_repeat(const struct bw_member *member)
{
    return !member->field && (member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64 ||
                              member->type == BW_TYPE_TEXT);
}

static struct bw_error *add_column(struct bw_rows *rows, unsigned member,
                                   const struct bw_rows_options *options, struct bw_column **result)
{
    struct bw_column *column = *result = &rows->columns[rows->column_count++];
    const struct bw_record *element = bw_record_element(rows->record, member);
    const struct bw_member *described = &rows->record->members[member];
    column->member = described;
    column->offset = described->offset;
    column->bit = UINT64_C(1) << member;
    rows->members |= column->bit;
    if (element && !described->field)
        return add_nested(column, element, described->type == BW_TYPE_RECORDS, options->times);
    column->write = is_json(options) || described->type == BW_TYPE_JSON
                        ? bw_json_writer(described, options)
                        : bw_text_writer(described, options);
    if (can_repeat(described))
        rows->repeats |= column->bit;
    column->can_repeat = rows->repeats & column->bit;
    if (!described->field)
        return NULL;
    column->write_value = column->write;
    column->write = bw_field_writer(described, false);
    return add_structures(column, options);
}

static struct bw_error *add_text_columns(struct bw_rows *rows, const struct choice *choice,
                                         const struct bw_rows_options *options, char *left)
{
    bool given = options->separator != NULL, words = (int)options->style == BW_ROWS_WORDS;
    const struct bw_lead separator =
        take_lead(&left, given ? options->separator : "\t", given ? options->separator_length : 1);
    const struct bw_lead none = take_lead(&left, NULL, 0);
    rows->absent = take_lead(&left, "-", 1);
    for (unsigned i = 0; i < choice->count; i++) {
        const struct bw_member *member = &rows->record->members[choice->members[i]];
        struct bw_column *column;
        BW_TRY(add_column(rows, choice->members[i], options, &column));
        column->optional = words && member->lazy;
        column->lead = words ? named_lead(&left, " ", member, "=", false) : i ? separator : none;
    }
    return NULL;
}

/* A member in base64 repeats the member before it. If both are chosen, JSON has only one of them:
 * the writer of the first one decides. */
static bool is_twin(const struct bw_rows *rows, const struct choice *choice, unsigned member)
{
    return rows->record->members[member].format == BW_FORMAT_BASE64 && member > 0 &&
           choice->mask >> (member - 1) & 1;
}

static struct bw_error *add_json_columns(struct bw_rows *rows, const struct choice *choice,
                                         const struct bw_rows_options *options, char *left)
{
    bool array = rows->style == BW_ROWS_JSON_ARRAY;
    rows->begin = take_lead(&left, ",\n", array ? 2 : 0);
    rows->end = take_lead(&left, NULL, 0);
    for (unsigned i = 0; i < choice->count; i++) {
        const struct bw_member *member = &rows->record->members[choice->members[i]];
        bool quoted = (member->type == BW_TYPE_TEXT && member->format != BW_FORMAT_LIST) ||
                      member->type == BW_TYPE_BYTES;
        if (is_twin(rows, choice, choice->members[i]))
            continue;
        struct bw_column *column;
        BW_TRY(add_column(rows, choice->members[i], options, &column));
        column->optional = true;
        if (!member->name) /* a choice: its members follow as members of this record */
            column->lead = take_lead(&left, NULL, 0);
        else
            column->lead = named_lead(&left, ",\"", member, "\":", quoted);
        column->bytes_lead =
            member->name ? named_lead(&left, ",\"", member, "_bytes\":", quoted) : column->lead;
    }
    return NULL;
}

/* The maximum size of a row with its begin and end, without values of unlimited size. */
static size_t room_of(const struct bw_rows *rows)
{
    size_t room = (size_t)2 * BW_LEAD_STEP;
    for (unsigned i = 0; i < rows->column_count; i++) {
        size_t plain = padded_length(rows->columns[i].lead.length),
               bytes = padded_length(rows->columns[i].bytes_lead.length);
        room += (plain > bytes ? plain : bytes) + BW_VALUE_ROOM;
    }
    return room;
}

static struct bw_error *create_rows(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct bw_rows **result)
{
    struct choice choice = {0};
    BW_TRY(make_choice(record, options, &choice));
    size_t size = sizeof(struct bw_rows) + choice.count * sizeof(struct bw_column);
    struct bw_rows *rows = calloc(1, size + leads_room(record, &choice, options));
    if (!rows)
        return bw_error_no_memory();
    rows->record = record;
    rows->style = options->style;
    rows->header = options->header;
    rows->escape = options->escape;
    rows->times = options->times;
    rows->terminator = options->terminator;
    struct bw_error *error = is_json(options)
                                 ? add_json_columns(rows, &choice, options, (char *)rows + size)
                                 : add_text_columns(rows, &choice, options, (char *)rows + size);
    if (error) {
        bw_rows_destroy(rows);
        return error;
    }
    rows->room = room_of(rows);
    *result = rows;
    return NULL;
}

/* The text of a structure: the template contains the leads. */

/* A member and the format that a template names: "flags:hex". */
static struct bw_error *add_template_column(struct bw_rows *rows, const char *name, size_t length,
                                            const struct bw_rows_options *options)
{
    const struct bw_record *record = &rows->structure->record;
    struct bw_column *column = &rows->columns[rows->column_count++];
    const char *colon = memchr(name, ':', length);
    const size_t name_length = colon ? (size_t)(colon - name) : length;
    const struct bw_member *member = bw_field_of_template(name, name_length);
    for (unsigned i = 0; !member && i < record->member_count; i++) {
        const char *known = record->members[i].name ? record->members[i].name : "...";
        if (strlen(known) == name_length && memcmp(known, name, name_length) == 0)
            member = &record->members[i];
    }
    if (!member)
        return bw_error_create(BW_ERROR_USAGE, "%s has no member %.*s", record->name, (int)length,
                               name);
    column->member = member;
    column->offset = member->offset;
    column->bit = 1;
    column->write_value =
        bw_field_text_writer(member, name + name_length + 1, colon ? length - name_length - 1 : 0);
    column->write = member->field ? bw_field_writer(member, true) : column->write_value;
    return member->field ? add_structures(column, options) : NULL;
}

static struct bw_error *add_template(struct bw_rows *rows, const struct bw_rows_options *options,
                                     char *left)
{
    const char *at = rows->structure->text ? rows->structure->text : "", *brace;
    for (; (brace = strchr(at, '{')); at = strchr(brace, '}') + 1) {
        const struct bw_lead lead = take_lead(&left, at, (size_t)(brace - at));
        rows->columns[rows->column_count].lead = lead;
        BW_TRY(add_template_column(rows, brace + 1, strcspn(brace + 1, "}"), options));
    }
    rows->end = take_lead(&left, at, strlen(at));
    return NULL;
}

static struct bw_error *create_text(const struct bw_structure *structure,
                                    const struct bw_rows_options *options, struct bw_rows **result)
{
    const char *text = structure->text ? structure->text : "";
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '{')); at++)
        count++;
    const size_t size = sizeof(struct bw_rows) + count * sizeof(struct bw_column);
    struct bw_rows *rows =
        calloc(1, size + padded_length(strlen(text)) + (count + 1) * BW_LEAD_STEP);
    if (!rows)
        return bw_error_no_memory();
    rows->record = &structure->record;
    rows->structure = structure;
    rows->style = options->style;
    struct bw_error *error = add_template(rows, options, (char *)rows + size);
    if (error) {
        bw_rows_destroy(rows);
        return error;
    }
    rows->room = room_of(rows) + padded_length(rows->end.length);
    *result = rows;
    return NULL;
}

static struct bw_error *create_structure(const struct bw_structure *structure,
                                         const struct bw_rows_options *options,
                                         struct bw_rows **result)
{
    if ((int)options->style == BW_ROWS_STRUCTURE)
        return create_text(structure, options, result);
    BW_TRY(create_rows(&structure->record, options, result));
    (*result)->structure = structure;
    return NULL;
}

struct bw_error *bw_rows_of_structure(const struct bw_structure *structure, bool json,
                                      const struct bw_rows *outer, struct bw_rows **rows)
{
    const struct bw_rows_options options = {.style = json ? BW_ROWS_JSON_LINES
                                                          : (enum bw_rows_style)BW_ROWS_STRUCTURE,
                                            .times = outer ? outer->times : BW_ROWS_NANOSECONDS};
    return create_structure(structure, &options, rows);
}

/* Paths alone. */

static struct bw_error *create_paths(const struct bw_record *record,
                                     const struct bw_rows_options *options, struct bw_rows **result)
{
    if (record != &bw_fileinfo_record || options->members || options->header)
        return bw_error_create(BW_ERROR_USAGE, "paths are of fileinfo, without columns");
    struct bw_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return bw_error_no_memory();
    rows->record = record;
    rows->style = options->style;
    rows->escape = options->escape;
    rows->terminator = options->terminator;
    *result = rows;
    return NULL;
}

bool bw_rows_are_paths(const struct bw_rows *rows, bool *escape, char *terminator)
{
    *escape = rows && rows->escape;
    *terminator = rows ? rows->terminator : '\0';
    return !rows || rows->style == BW_ROWS_PATHS;
}

struct bw_error *bw_rows_create(const char *record, const struct bw_rows_options *given,
                                struct bw_rows **result)
{
    struct bw_rows_options options;
    const struct bw_record *found = bw_record_find(record);
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!found)
        return bw_error_create(BW_ERROR_USAGE, "unknown record %s", record);
    return options.style == BW_ROWS_PATHS ? create_paths(found, &options, result)
                                          : create_rows(found, &options, result);
}

void bw_rows_destroy(struct bw_rows *rows)
{
    for (unsigned i = 0; rows && i < rows->column_count; i++) {
        bw_rows_destroy(rows->columns[i].nested);
        for (struct bw_rows **choice = rows->columns[i].choices; choice && *choice; choice++)
            bw_rows_destroy(*choice);
        free(rows->columns[i].choices);
    }
    free(rows);
}

const struct bw_record *bw_rows_record(const struct bw_rows *rows)
{
    return rows->record;
}

unsigned bw_rows_needs(const struct bw_rows *rows)
{
    if (rows->style == BW_ROWS_PATHS)
        return 0;
    uint64_t more = rows->members & ~bw_file_name_xlate.members;
    const uint64_t user_names = UINT64_C(1) << BW_fileinfo_user | UINT64_C(1) << BW_fileinfo_group;
    const unsigned compression =
        rows->members >> BW_fileinfo_compression & 1 ? BW_FILE_NEEDS_COMPRESSION : 0;
    const uint64_t extents = UINT64_C(1) << BW_fileinfo_extent_count | UINT64_C(1)
                                                                           << BW_fileinfo_disk;
    return more ? BW_FILE_NEEDS_INODE | compression |
                      (rows->members & user_names ? BW_FILE_NEEDS_USER_NAMES : 0) |
                      (rows->members & extents ? BW_FILE_NEEDS_EXTENTS : 0) |
                      (rows->members >> BW_fileinfo_shared & 1 ? BW_FILE_NEEDS_SHARED : 0)
                : 0;
}

/* Writing. */

void bw_rows_append_members(const struct bw_rows *rows, const void *record, uint64_t present,
                            struct bw_buffer *text)
{
    if (!bw_buffer_reserve(text, rows->room))
        return;
    char *end = bw_row_columns(rows, record, present, text->data + text->length, text);
    if (end)
        text->length = (size_t)(end - text->data);
}

/* A row that may hold records. All of it need not be in memory: its beginning is passed on when it
 * is long. */
struct long_row {
    struct bw_buffer text; /* the first member, so that writers find the rest */
    struct bw_rows_stream *stream;
    size_t brace;           /* place of the brace of the innermost object that is open */
    unsigned pieces;        /* passed on so far */
    struct bw_error *error; /* from the function that lists the records */
};

/* The records of a member on their way. */
struct nested {
    struct bw_record_sink sink;
    const struct bw_rows *rows;
    struct long_row *row;
    bool not_first;
};

enum { WORTH_PASSING_ON = 64 << 10 };

/* All braces have been written. */
#define NO_BRACE SIZE_MAX

static uint64_t present_members(const struct bw_rows *rows, size_t size, uint64_t absent);

static struct bw_error *pass_on(struct long_row *row)
{
    const size_t length = row->text.length;
    row->text.length = 0;
    row->pieces++;
    return bw_rows_take(row->stream, row->text.data, length);
}

/* The braces of the outer objects were written before, so nothing refers to the part that is passed
 * on. */
static struct bw_error *append_nested(struct bw_record_sink *sink, const void *record, size_t size,
                                      uint64_t absent)
{
    struct nested *nested = (struct nested *)sink;
    struct long_row *row = nested->row;
    struct bw_buffer *text = &row->text;
    bw_buffer_append(text, ",", nested->not_first);
    nested->not_first = true;
    if (!bw_buffer_reserve(text, nested->rows->room))
        return bw_error_no_memory();
    const size_t start = row->brace = text->length;
    const unsigned pieces = row->pieces;
    char *at = bw_row_columns(nested->rows, record, present_members(nested->rows, size, absent),
                              text->data + start, text);
    if (!at)
        return row->error ? BW_TAKE(row->error) : bw_error_no_memory();
    if (row->pieces == pieces) {
        at += at == text->data + start;
        text->data[start] = '{';
    }
    *at++ = '}';
    text->length = (size_t)(at - text->data);
    return text->length < WORTH_PASSING_ON ? NULL : pass_on(row);
}

/* Only rows of bw_rows_write() contain records: the buffer is part of a long row. */
static char *write_nested(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_records *records = value;
    const struct bw_column *column = row->column;
    struct long_row *long_row = (struct long_row *)row->buffer;
    struct nested nested = {{.visit = append_nested}, column->nested, long_row, false};
    if (!records->list)
        return column->optional ? at : bw_row_absent(row, at);
    struct bw_buffer *buffer = bw_row_buffer(row, bw_row_lead(row, at));
    if (bw_rows_are_objects(row->rows) && long_row->brace != NO_BRACE)
        buffer->data[long_row->brace] = '{';
    bw_buffer_append(buffer, "[", column->is_array);
    long_row->error = records->list(records->context, &nested.sink);
    long_row->brace = NO_BRACE;
    bw_buffer_append(buffer, "]", column->is_array);
    return long_row->error ? NULL : bw_row_end(row, 0);
}

/* Columns with the same value as in the row before. */

static bool is_repeated(const struct bw_repeated_text *repeated, const void *value)
{
    return memcmp(value, &repeated->value, sizeof repeated->value) == 0;
}

/* A text has at most the size for which each column has room. */
_Static_assert(BW_REPEATED_ROOM <= BW_LEAD_STEP + BW_VALUE_ROOM, "texts fit");

static char *copy_text(const struct bw_repeated_text *repeated, char *at)
{
    const size_t length = repeated->length;
    memcpy(at, repeated->text, BW_REPEATED_STEP);
    if (length > BW_REPEATED_STEP)
        memcpy(at + BW_REPEATED_STEP, repeated->text + BW_REPEATED_STEP, BW_REPEATED_STEP);
    return at + length;
}

/* Keeps the text that was written from `start` on. */
static void keep_text(struct bw_repeated_text *repeated, const char *start, const char *end)
{
    const size_t length = (size_t)(end - start);
    if (length > sizeof repeated->text)
        return;
    bw_copy_short(repeated->text, start, length);
    repeated->length = (uint32_t)length;
}

/* Writes a column. Keeps its text only if the row before had the same value: values that change in
 * each row are never copied. */
static char *write_repeatable(const struct bw_row *row, const void *value,
                              struct bw_repeated_text *repeated, char *at)
{
    const size_t start = (size_t)(at - row->buffer->data);
    const bool is_same = is_repeated(repeated, value);
    at = row->column->write(row, value, at);
    repeated->length = 0;
    memcpy(&repeated->value, value, sizeof repeated->value);
    if (is_same && at)
        keep_text(repeated, row->buffer->data + start, at);
    return at;
}

/* Copies the texts of columns that have the same values as in the rows before, and writes the
 * others. All members that can be repeated are present. */
static char *write_columns(const struct bw_rows *rows, const void *record, uint64_t present,
                           char *at, struct bw_buffer *buffer, struct bw_repeated *repeated)
{
    const struct bw_column *end = rows->columns + rows->column_count;
    struct bw_row row = {rows, rows->columns, buffer};
    struct bw_repeated_text *text = repeated->columns;
    for (const struct bw_column *column = rows->columns; column < end; column++, text++) {
        const void *value = (const char *)record + column->offset;
        if (text->length && is_repeated(text, value)) {
            at = copy_text(text, at);
            continue;
        }
        row.column = column;
        at = column->can_repeat ? write_repeatable(&row, value, text, at)
                                : bw_row_column(&row, record, present, at);
        if (!at)
            break;
    }
    return at;
}

/* In JSON each member starts with a comma; the first comma is overwritten with the brace. Its place
 * is relative to the start of the buffer, which may move. */
static void append_row(const struct bw_rows *rows, const void *record, uint64_t present,
                       struct bw_buffer *text, struct long_row *row, struct bw_repeated *repeated)
{
    size_t before = text->length;
    if (!bw_buffer_reserve(text, rows->room))
        return;
    char *at = text->data + before;
    if (bw_rows_are_objects(rows))
        at = bw_lead_write(at, &rows->begin);
    size_t start = (size_t)(at - text->data);
    if (row)
        row->brace = start;
    at = repeated && !(rows->repeats & ~present)
             ? write_columns(rows, record, present, at, text, repeated)
             : bw_row_columns(rows, record, present, at, text);
    if (at && bw_rows_are_objects(rows)) {
        if (!row || !row->pieces) {
            at += at == text->data + start;
            text->data[start] = '{';
        }
        *at++ = '}';
    }
    if (at && rows->style != BW_ROWS_JSON_ARRAY)
        *at++ = rows->terminator;
    text->length = at ? (size_t)(at - text->data) : before;
}

/* The maximum size of a record: record.c limits it to 64 pointers. */
union any_record {
    struct bw_bytes members[BW_RECORD_MEMBERS];
};

/* Appends a row of the members that a translator sets and that are `known`. */
static void append_translated(const struct bw_rows *rows, const struct bw_xlate *xlate,
                              const void *in, uint64_t known, struct bw_repeated *repeated,
                              struct bw_buffer *text)
{
    union any_record record;
    const uint64_t present = rows->members & xlate->members & known;
    xlate->translate(in, present, &record);
    append_row(rows, &record, present, text, NULL, repeated);
}

void bw_rows_append(const struct bw_rows *rows, const struct bw_xlate *xlate, const void *in,
                    struct bw_buffer *text)
{
    append_translated(rows, xlate, in, UINT64_MAX, NULL, text);
}

void bw_rows_append_record(const struct bw_rows *rows, const void *record, uint64_t present,
                           struct bw_buffer *text)
{
    append_row(rows, record, present & rows->members, text, NULL, NULL);
}

void bw_rows_append_file(const struct bw_rows *rows, const struct bw_walked_file *file,
                         struct bw_repeated *repeated, struct bw_buffer *text)
{
    const uint64_t shared = UINT64_C(1) << BW_fileinfo_shared;
    if (rows->style != BW_ROWS_PATHS) {
        append_translated(rows, file->inode ? &bw_file_xlate : &bw_file_name_xlate, file,
                          file->shared_known ? UINT64_MAX : ~shared, repeated, text);
        return;
    }
    if (rows->escape)
        bw_escape_append(text, file->path, file->path_length);
    else
        bw_buffer_append(text, file->path, file->path_length);
    bw_buffer_append_byte(text, rows->terminator);
}

/* Names of columns, the header, and the brackets of an array. */

/* Like columns of values. */
static void append_names(const struct bw_rows *rows, struct bw_buffer *text)
{
    for (unsigned i = 0; i < rows->column_count; i++) {
        const struct bw_column *column = &rows->columns[i];
        const char *name = rows->record->members[__builtin_ctzll(column->bit)].name;
        bw_buffer_append(text, column->lead.text, column->lead.length);
        bw_buffer_append(text, name, strlen(name));
    }
    bw_buffer_append_byte(text, rows->terminator);
}

/* As a line; in an array without its end. */
static struct bw_error *append_header_record(const struct bw_rows *rows, struct bw_buffer *text)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .style = BW_ROWS_JSON_LINES,
                                            .terminator = rows->terminator};
    const struct bw_header header = {.version = BW_VERSION, .of = rows->record};
    struct bw_rows *header_rows;
    BW_TRY(bw_rows_create("headerinfo", &options, &header_rows));
    bw_rows_append(header_rows, &bw_header_xlate, &header, text);
    bw_rows_destroy(header_rows);
    text->length -= rows->style == BW_ROWS_JSON_ARRAY && !text->failed;
    return NULL;
}

static struct bw_error *append_front(const struct bw_rows *rows, struct bw_buffer *text)
{
    if (rows->style == BW_ROWS_JSON_ARRAY)
        bw_buffer_append(text, "[\n", 2);
    if (rows->header && rows->style != BW_ROWS_TEXT)
        return append_header_record(rows, text);
    if (rows->header)
        append_names(rows, text);
    return NULL;
}

static struct bw_error *begin_stream(struct bw_rows_stream *stream)
{
    struct bw_buffer text = {0};
    stream->begun = true;
    stream->not_first = stream->rows->header;
    struct bw_error *error = append_front(stream->rows, &text);
    if (!error && text.failed)
        error = bw_error_no_memory();
    else if (!error && text.length)
        error = stream->consume(stream->context, text.data, text.length);
    bw_buffer_free(&text);
    return error;
}

/* Rows of an array begin with ",\n"; the first has nothing to be separated from. */
struct bw_error *bw_rows_take(void *context, const char *rows, size_t length)
{
    struct bw_rows_stream *stream = context;
    struct bw_error *error = stream->begun ? NULL : begin_stream(stream);
    if (error || !length)
        return error;
    size_t comma = stream->not_first ? 0 : stream->rows->begin.length;
    stream->not_first = true;
    return stream->consume(stream->context, rows + comma, length - comma);
}

static size_t member_size(enum bw_member_type type)
{
    return type == BW_TYPE_TEXT    ? sizeof(const char *)
           : type == BW_TYPE_KEY   ? sizeof(struct bw_key)
           : type >= BW_TYPE_BYTES ? sizeof(struct bw_bytes)
                                   : sizeof(uint64_t);
}

/* The members that are present: neither absent nor unknown to the caller. Callers may use an older
 * version of the structure. */
static uint64_t present_members(const struct bw_rows *rows, size_t size, uint64_t absent)
{
    uint64_t present = 0;
    for (unsigned i = 0; i < rows->record->member_count; i++) {
        const struct bw_member *member = &rows->record->members[i];
        size_t length = member_size(member->type);
        bool there =
            member->offset + length <= size && !(absent >> member->offset / sizeof(void *) & 1);
        present |= (uint64_t)there << i;
    }
    return present;
}

struct bw_error *bw_rows_write(struct bw_rows_stream *stream, const void *record, size_t size,
                               uint64_t absent)
{
    struct long_row row = {.text = {.data = stream->row, .capacity = stream->row_capacity},
                           .stream = stream};
    if (bw_record_is_on_disk(stream->rows->record))
        return bw_error_create(BW_ERROR_USAGE, "records of %s are read from disk",
                               stream->rows->record->name);
    append_row(stream->rows, record, present_members(stream->rows, size, absent), &row.text, &row,
               NULL);
    stream->row = row.text.data;
    stream->row_capacity = row.text.capacity;
    return row.error         ? row.error
           : row.text.failed ? bw_error_no_memory()
                             : bw_rows_take(stream, row.text.data, row.text.length);
}

struct bw_error *bw_rows_end(struct bw_rows_stream *stream)
{
    struct bw_error *error = stream->begun ? NULL : begin_stream(stream);
    free(BW_TAKE(stream->row));
    stream->row_capacity = 0;
    if (error || stream->rows->style != BW_ROWS_JSON_ARRAY)
        return error;
    return stream->not_first ? stream->consume(stream->context, "\n]\n", 3)
                             : stream->consume(stream->context, "]\n", 2);
}
