/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows: reading a choice of members, preparing it, writing records, and what surrounds the rows:
 * the names of the columns, the header record, the brackets of an array.
 *
 * Preparing makes a column of each chosen member: the text before its value and the function that
 * writes the value. Writing a row then calls these functions one after the other. A row is built in
 * a buffer, except that the beginning of one with many records within it is passed on before its
 * end is known.
 */
#include "record/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "base/short_copy.h"
#include "base/struct_size.h"
#include "record/fields.h"
#include "record/row.h"

/* The choice. */

/* Numbers of the chosen members in their order, without repetitions. */
struct choice {
    unsigned char members[BW_RECORD_MEMBERS];
    unsigned count;
    uint64_t mask;
};

static struct bw_error *refuse_column(const struct bw_record *record, const char *name,
                                      size_t length)
{
    BW_AUTO_FREE char *wanted = strndup(name, length);
    if (!wanted)
        return bw_error_no_memory();
    struct bw_nearest nearest = {.wanted = wanted};
    for (unsigned i = 0; i < record->member_count; i++)
        bw_nearest_try(&nearest, record->members[i].name);
    if (nearest.best)
        return bw_error_create(BW_ERROR_USAGE, "unknown column %s (did you mean %s?)", wanted,
                               nearest.best);
    return bw_error_create(BW_ERROR_USAGE, "unknown column %s", wanted);
}

/* Without names, chooses all members that cost nothing extra; for words, all members. */
static struct bw_error *make_choice(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct choice *choice)
{
    uint64_t eager = bw_record_eager(record);
    if ((int)options->style == BW_ROWS_WORDS)
        eager = UINT64_MAX;
    for (unsigned i = 0; !options->members && i < record->member_count; i++)
        if (eager >> i & 1) {
            choice->members[choice->count++] = (unsigned char)i;
            choice->mask |= UINT64_C(1) << i;
        }
    for (const char *name = options->members; name; name++) {
        const size_t length = strcspn(name, ",");
        const int member = bw_record_member(record, name, length);
        if (!length)
            return bw_error_create(BW_ERROR_USAGE, "the name of a column is empty");
        if (member < 0)
            return refuse_column(record, name, length);
        if (choice->mask >> member & 1)
            return bw_error_create(BW_ERROR_USAGE, "column %.*s is named twice", (int)length, name);
        choice->members[choice->count++] = (unsigned char)member;
        choice->mask |= UINT64_C(1) << member;
        name += length;
        if (!*name)
            break;
    }
    return NULL;
}

/* Preparing it. */

/* Room for a lead of that many bytes, which is never empty. */
static size_t padded_length(size_t length)
{
    if (!length)
        length = 1;
    return (length + BW_LEAD_STEP - 1) / BW_LEAD_STEP * BW_LEAD_STEP;
}

/* The longest lead of a member: ,"NAME_bytes":" */
static size_t lead_room(const struct bw_member *member)
{
    return padded_length((member->name ? strlen(member->name) : 0) + sizeof ",\"_bytes\":\"");
}

/* Copies a lead to `*left`, and advances it. Unused bytes are zero. */
static struct bw_lead add_lead(char **left, const char *text, size_t length)
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

static bw_column_writer write_nested;
static struct bw_error *create_structure(const struct bw_structure *structure,
                                         const struct bw_rows_options *options,
                                         struct bw_rows **result);
static struct bw_error *create_rows(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct bw_rows **result);

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

    /* Records within a record are always JSON, in columns of text, too. */
    if (element && !described->field) {
        const struct bw_rows_options nested = {.style = BW_ROWS_JSON_LINES,
                                               .times = options->times};
        column->write = write_nested;
        column->is_array = described->type == BW_TYPE_RECORDS;
        return create_rows(element, &nested, &column->nested);
    }

    if (is_json(options) || described->type == BW_TYPE_JSON)
        column->write = bw_json_writer(described, options);
    else
        column->write = bw_text_writer(described, options);
    if (!described->field) {
        /* Equal values have equal texts. Texts are compared by their pointers. */
        column->can_repeat = described->type == BW_TYPE_U64 || described->type == BW_TYPE_I64 ||
                             described->type == BW_TYPE_TEXT;
        if (column->can_repeat)
            rows->repeats |= column->bit;
        column->follows_time = column > rows->columns && described->format == BW_FORMAT_TIME &&
                               column[-1].member->format == BW_FORMAT_TIME;
        return NULL;
    }
    column->write_value = column->write;
    column->write = bw_field_writer(described, false);
    return add_structures(column, options);
}

static struct bw_error *add_text_columns(struct bw_rows *rows, const struct choice *choice,
                                         const struct bw_rows_options *options, char *left)
{
    const bool words = (int)options->style == BW_ROWS_WORDS;
    struct bw_lead separator;
    if (options->separator)
        separator = add_lead(&left, options->separator, options->separator_length);
    else
        separator = add_lead(&left, "\t", 1);
    const struct bw_lead none = add_lead(&left, NULL, 0);
    rows->absent = add_lead(&left, "-", 1);
    for (unsigned i = 0; i < choice->count; i++) {
        const struct bw_member *member = &rows->record->members[choice->members[i]];
        struct bw_column *column;
        BW_TRY(add_column(rows, choice->members[i], options, &column));
        column->optional = words && member->lazy;
        if (words)
            column->lead = named_lead(&left, " ", member, "=", false);
        else
            column->lead = i ? separator : none;
    }
    return NULL;
}

static struct bw_error *add_json_columns(struct bw_rows *rows, const struct choice *choice,
                                         const struct bw_rows_options *options, char *left)
{
    const bool is_array = rows->style == BW_ROWS_JSON_ARRAY;
    rows->begin = add_lead(&left, ",\n", is_array ? 2 : 0);
    rows->end = add_lead(&left, NULL, 0);
    for (unsigned i = 0; i < choice->count; i++) {
        const unsigned number = choice->members[i];
        const struct bw_member *member = &rows->record->members[number];
        /* A member in base64 repeats the member before it. If both are chosen, JSON has only one of
         * them: the writer of the first one decides. */
        if (member->format == BW_FORMAT_BASE64 && number > 0 && choice->mask >> (number - 1) & 1)
            continue;
        struct bw_column *column;
        BW_TRY(add_column(rows, number, options, &column));
        column->optional = true;
        if (!member->name) { /* a choice: its members follow as members of this record */
            column->lead = column->bytes_lead = add_lead(&left, NULL, 0);
            continue;
        }
        const bool quoted = (member->type == BW_TYPE_TEXT && member->format != BW_FORMAT_LIST) ||
                            member->type == BW_TYPE_BYTES;
        column->lead = named_lead(&left, ",\"", member, "\":", quoted);
        column->bytes_lead = named_lead(&left, ",\"", member, "_bytes\":", quoted);
    }
    return NULL;
}

/* The maximum size of a row with its begin and end, without values of unlimited size. */
static size_t room_of(const struct bw_rows *rows)
{
    size_t room = (size_t)2 * BW_LEAD_STEP;
    for (unsigned i = 0; i < rows->column_count; i++)
        room += BW_VALUE_ROOM + (size_t)bw_max(padded_length(rows->columns[i].lead.length),
                                               padded_length(rows->columns[i].bytes_lead.length));
    return room;
}

static void destroy_rows(struct bw_rows **rows)
{
    bw_rows_destroy(*rows);
}
#define AUTO_ROWS __attribute__((cleanup(destroy_rows)))

static struct bw_error *create_rows(const struct bw_record *record,
                                    const struct bw_rows_options *options, struct bw_rows **result)
{
    struct choice choice = {0};
    BW_TRY(make_choice(record, options, &choice));

    /* The leads, after the columns: begin, absent, none and the separator, then two a member. */
    const size_t size = sizeof(struct bw_rows) + choice.count * sizeof(struct bw_column);
    size_t leads = (size_t)3 * BW_LEAD_STEP + padded_length(options->separator_length);
    for (unsigned i = 0; i < choice.count; i++)
        leads += 2 * lead_room(&record->members[choice.members[i]]);
    AUTO_ROWS struct bw_rows *rows = calloc(1, size + leads);
    if (!rows)
        return bw_error_no_memory();
    char *left = (char *)rows + size;

    rows->record = record;
    rows->style = options->style;
    rows->header = options->header;
    rows->escape = options->escape;
    rows->times = options->times;
    rows->terminator = options->terminator;
    if (is_json(options))
        BW_TRY(add_json_columns(rows, &choice, options, left));
    else
        BW_TRY(add_text_columns(rows, &choice, options, left));
    rows->room = room_of(rows);
    *result = BW_TAKE(rows);
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

static struct bw_error *create_text(const struct bw_structure *structure,
                                    const struct bw_rows_options *options, struct bw_rows **result)
{
    const char *text = structure->text ? structure->text : "", *at = text;
    size_t count = 0;
    for (const char *brace = text; (brace = strchr(brace, '{')); brace++)
        count++;
    const size_t size = sizeof(struct bw_rows) + count * sizeof(struct bw_column);
    AUTO_ROWS struct bw_rows *rows =
        calloc(1, size + padded_length(strlen(text)) + (count + 1) * BW_LEAD_STEP);
    if (!rows)
        return bw_error_no_memory();
    rows->record = &structure->record;
    rows->structure = structure;
    rows->style = options->style;
    char *left = (char *)rows + size;
    for (const char *brace; (brace = strchr(at, '{')); at = strchr(brace, '}') + 1) {
        rows->columns[rows->column_count].lead = add_lead(&left, at, (size_t)(brace - at));
        BW_TRY(add_template_column(rows, brace + 1, strcspn(brace + 1, "}"), options));
    }
    rows->end = add_lead(&left, at, strlen(at));
    rows->room = room_of(rows) + padded_length(rows->end.length);
    *result = BW_TAKE(rows);
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
    struct bw_rows_options options = {.style = (enum bw_rows_style)BW_ROWS_STRUCTURE};
    if (json)
        options.style = BW_ROWS_JSON_LINES;
    if (outer)
        options.times = outer->times;
    return create_structure(structure, &options, rows);
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
    if (options.style != BW_ROWS_PATHS)
        return create_rows(found, &options, result);
    if (found != &bw_fileinfo_record || options.members || options.header)
        return bw_error_create(BW_ERROR_USAGE, "paths are of fileinfo, without columns");
    struct bw_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return bw_error_no_memory();
    rows->record = found;
    rows->style = options.style;
    rows->escape = options.escape;
    rows->terminator = options.terminator;
    *result = rows;
    return NULL;
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
    static const struct {
        uint64_t members;
        unsigned needs;
    } table[] = {
        {UINT64_C(1) << BW_fileinfo_compression, BW_FILE_NEEDS_COMPRESSION},
        {UINT64_C(1) << BW_fileinfo_user | UINT64_C(1) << BW_fileinfo_group,
         BW_FILE_NEEDS_USER_NAMES},
        {UINT64_C(1) << BW_fileinfo_extent_count | UINT64_C(1) << BW_fileinfo_disk,
         BW_FILE_NEEDS_EXTENTS},
        {UINT64_C(1) << BW_fileinfo_shared, BW_FILE_NEEDS_SHARED},
        {UINT64_C(1) << BW_fileinfo_acl | UINT64_C(1) << BW_fileinfo_capabilities,
         BW_FILE_NEEDS_XATTRS},
    };
    if (rows->style == BW_ROWS_PATHS || !(rows->members & ~bw_file_name_xlate.members))
        return 0;
    unsigned needs = BW_FILE_NEEDS_INODE;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (rows->members & table[i].members)
            needs |= table[i].needs;
    return needs;
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

static uint64_t present_members(const struct bw_rows *rows, const void *record, size_t size);

/* The braces of the outer objects were written before, so nothing refers to the part that is passed
 * on. */
static struct bw_error *append_nested(struct bw_record_sink *sink, const void *record, size_t size)
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
    char *at = bw_row_columns(nested->rows, record, present_members(nested->rows, record, size),
                              text->data + start, text);
    if (!at && row->error)
        return BW_TAKE(row->error);
    if (!at)
        return bw_error_no_memory();
    if (row->pieces == pieces) {
        at += at == text->data + start;
        text->data[start] = '{';
    }
    *at++ = '}';
    text->length = (size_t)(at - text->data);
    if (text->length < WORTH_PASSING_ON)
        return NULL;
    const size_t length = text->length;
    text->length = 0;
    row->pieces++;
    return bw_rows_take(row->stream, text->data, length);
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

/* A repeated text has at most the size for which each column has room. */
_Static_assert(BW_REPEATED_ROOM <= BW_LEAD_STEP + BW_VALUE_ROOM, "texts fit");

/* Writes the value of the column before again: its text is kept, or begins at `written`. */
static char *repeat_before(const struct bw_row *row, const struct bw_repeated_text *before,
                           const char *written, char *at)
{
    const size_t lead = row->column[-1].lead.length;
    const size_t length = (before->length ? before->length : (size_t)(at - written)) - lead;
    at = bw_row_lead(row, at);
    bw_copy_short(at, (before->length ? before->text : written) + lead, length);
    return at + length;
}

/* Copies the texts of columns that have the same values as in the rows before, and writes the
 * others. All members that can be repeated are present. A text is kept only if the row before had
 * the same value: values that change in each row are never copied, except times that equal the one
 * before them in the row, as those of files that have not been changed since they were made. */
static char *write_columns(const struct bw_rows *rows, const void *record, uint64_t present,
                           char *at, struct bw_buffer *buffer, struct bw_repeated *repeated)
{
    const struct bw_column *end = rows->columns + rows->column_count;
    struct bw_row row = {rows, rows->columns, buffer};
    struct bw_repeated_text *text = repeated->columns;
    size_t start = 0; /* of the column that was written last */
    for (; at && row.column < end; row.column++, text++) {
        const void *value = (const char *)record + row.column->offset;
        if (!row.column->can_repeat) {
            at = bw_row_column(&row, record, present, at);
            continue;
        }
        const bool is_same = memcmp(value, &text->value, sizeof text->value) == 0;
        if (is_same && text->length) {
            memcpy(at, text->text, BW_REPEATED_STEP);
            if (text->length > BW_REPEATED_STEP)
                memcpy(at + BW_REPEATED_STEP, text->text + BW_REPEATED_STEP, BW_REPEATED_STEP);
            at += text->length;
            continue;
        }
        const size_t last = start;
        start = (size_t)(at - buffer->data); /* writers may move the buffer */
        if (row.column->follows_time && memcmp(value, &text[-1].value, sizeof text->value) == 0)
            at = repeat_before(&row, &text[-1], buffer->data + last, at);
        else
            at = row.column->write(&row, value, at);
        text->length = 0;
        memcpy(&text->value, value, sizeof text->value);
        if (!is_same || !at)
            continue;
        const size_t length = (size_t)(at - buffer->data) - start;
        if (length <= sizeof text->text) {
            bw_copy_short(text->text, buffer->data + start, length);
            text->length = (uint32_t)length;
        }
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
    if (repeated && !(rows->repeats & ~present))
        at = write_columns(rows, record, present, at, text, repeated);
    else
        at = bw_row_columns(rows, record, present, at, text);
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

void bw_rows_append(const struct bw_rows *rows, const struct bw_xlate *xlate, const void *in,
                    struct bw_buffer *text)
{
    union any_record record;
    const uint64_t present = rows->members & xlate->members;
    xlate->translate(in, present, &record);
    append_row(rows, &record, present, text, NULL, NULL);
}

void bw_rows_append_record(const struct bw_rows *rows, const void *record, uint64_t present,
                           struct bw_buffer *text)
{
    append_row(rows, record, present & rows->members, text, NULL, NULL);
}

void bw_rows_append_file(const struct bw_rows *rows, const struct bw_walked_file *file,
                         struct bw_repeated *repeated, struct bw_buffer *text)
{
    if (!rows || rows->style == BW_ROWS_PATHS) {
        bool escape;
        char terminator;
        bw_rows_are_paths(rows, &escape, &terminator);
        if (escape)
            bw_escape_append(text, file->path, file->path_length);
        else
            bw_buffer_append(text, file->path, file->path_length);
        bw_buffer_append_byte(text, terminator);
        return;
    }
    struct bw_fileinfo record;
    uint64_t present = rows->members;
    if (!file->shared_known)
        present &= ~(UINT64_C(1) << BW_fileinfo_shared);
    if (!file->inode)
        present &= bw_file_name_xlate.members;
    bw_xlate_file(file, present, &record);
    append_row(rows, &record, present, text, NULL, repeated);
}

/* Names of columns, the header, and the brackets of an array. */

static struct bw_error *begin_stream(struct bw_rows_stream *stream)
{
    const struct bw_rows *rows = stream->rows;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    stream->begun = true;
    stream->not_first = rows->header;
    if (rows->style == BW_ROWS_JSON_ARRAY)
        bw_buffer_append(&text, "[\n", 2);
    if (rows->header && rows->style == BW_ROWS_TEXT) {
        for (unsigned i = 0; i < rows->column_count; i++) {
            const struct bw_column *column = &rows->columns[i];
            const char *name = rows->record->members[__builtin_ctzll(column->bit)].name;
            bw_buffer_append(&text, column->lead.text, column->lead.length);
            bw_buffer_append(&text, name, strlen(name));
        }
        bw_buffer_append_byte(&text, rows->terminator);
    } else if (rows->header) { /* as a line; in an array without its end */
        const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                                .style = BW_ROWS_JSON_LINES,
                                                .terminator = rows->terminator};
        const struct bw_header header = {.version = BW_VERSION, .of = rows->record};
        AUTO_ROWS struct bw_rows *header_rows = NULL;
        BW_TRY(bw_rows_create("headerinfo", &options, &header_rows));
        bw_rows_append(header_rows, &bw_header_xlate, &header, &text);
        text.length -= rows->style == BW_ROWS_JSON_ARRAY && !text.failed;
    }
    BW_TRY(bw_buffer_error(&text));
    return text.length ? stream->consume(stream->context, text.data, text.length) : NULL;
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

/* The members that are present: neither absent nor unknown to the caller. Callers may use an older
 * version of the structure. */
static uint64_t present_members(const struct bw_rows *rows, const void *record, size_t size)
{
    uint64_t present = 0;
    for (unsigned i = 0; i < rows->record->member_count; i++) {
        const struct bw_member *member = &rows->record->members[i];
        size_t length = sizeof(uint64_t);
        if (member->type == BW_TYPE_TEXT)
            length = sizeof(const char *);
        else if (member->type == BW_TYPE_KEY)
            length = sizeof(struct bw_key);
        else if (member->type >= BW_TYPE_BYTES)
            length = sizeof(struct bw_bytes);
        if (member->offset + length > size)
            continue;
        uint64_t number = 0; /* the objectid is the first member of a key */
        if (member->type <= BW_TYPE_I64 || member->type == BW_TYPE_KEY)
            memcpy(&number, (const char *)record + member->offset, sizeof number);
        present |= (uint64_t)(number != BW_ABSENT) << i;
    }
    return present;
}

struct bw_error *bw_rows_write(struct bw_rows_stream *stream, const void *record, size_t size)
{
    struct long_row row = {.text = {.data = stream->row, .capacity = stream->row_capacity},
                           .stream = stream};
    if (bw_record_is_on_disk(stream->rows->record))
        return bw_error_create(BW_ERROR_USAGE, "records of %s are read from disk",
                               stream->rows->record->name);
    append_row(stream->rows, record, present_members(stream->rows, record, size), &row.text, &row,
               NULL);
    stream->row = row.text.data;
    stream->row_capacity = row.text.capacity;
    if (row.error)
        return row.error;
    BW_TRY(bw_buffer_error(&row.text));
    return bw_rows_take(stream, row.text.data, row.text.length);
}

struct bw_error *bw_rows_end(struct bw_rows_stream *stream)
{
    struct bw_error *error = stream->begun ? NULL : begin_stream(stream);
    free(BW_TAKE(stream->row));
    stream->row_capacity = 0;
    if (error || stream->rows->style != BW_ROWS_JSON_ARRAY)
        return error;
    if (stream->not_first)
        return stream->consume(stream->context, "\n]\n", 3);
    return stream->consume(stream->context, "]\n", 2);
}
