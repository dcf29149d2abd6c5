/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows: making a choice of members ready, and writing records by it. */
#include "record/rows.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "record/row.h"

/* Room for a lead of that many bytes. */
static size_t padded(size_t length)
{
    return length ? (length + BW_LEAD_STEP - 1) / BW_LEAD_STEP * BW_LEAD_STEP : BW_LEAD_STEP;
}

/* The longest leads of a member in JSON: ,"NAME_bytes":" */
static size_t json_lead_room(const struct bw_member *member)
{
    return padded(strlen(member->name) + sizeof ",\"_bytes\":\"");
}

/* Takes room for a lead from what is left. Unused bytes are zero. */
static struct bw_lead take_lead(char **left, const char *text, size_t length)
{
    struct bw_lead lead = {*left, length};
    if (length)
        memcpy(*left, text, length);
    *left += padded(length);
    return lead;
}

static struct bw_lead json_lead(char **left, const struct bw_member *member, const char *suffix)
{
    bool quoted = member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES;
    struct bw_lead lead = {*left, 0};
    char *at = *left;
    *left += json_lead_room(member);
    at = stpcpy(stpcpy(stpcpy(stpcpy(at, ",\""), member->name), suffix), "\":");
    if (quoted)
        *at++ = '"';
    *at = '\0';
    lead.length = (size_t)(at - lead.text);
    return lead;
}

static size_t leads_room(const struct bw_record *record, const struct bw_member_list *list,
                         const struct bw_rows_options *options)
{
    size_t room = 3 * BW_LEAD_STEP + padded(options->separator_length); /* begin, absent, none,
                                                                           separator */
    for (unsigned i = 0; i < list->count; i++)
        room += 2 * json_lead_room(&record->members[list->members[i]]);
    return room;
}

static void add_text_columns(struct bw_rows *rows, const struct bw_member_list *list,
                             const struct bw_rows_options *options, char *left)
{
    bool given = options->separator != NULL;
    const struct bw_lead separator =
        take_lead(&left, given ? options->separator : "\t", given ? options->separator_length : 1);
    const struct bw_lead none = take_lead(&left, NULL, 0);
    rows->absent = take_lead(&left, "-", 1);
    for (unsigned i = 0; i < list->count; i++) {
        const struct bw_member *member = &rows->record->members[list->members[i]];
        rows->columns[rows->column_count++] = (struct bw_column){
            .offset = member->offset,
            .bit = UINT64_C(1) << list->members[i],
            .write = bw_text_writer(member, options),
            .lead = i ? separator : none,
        };
    }
}

/* A member in base64 is that in front of it once more. If both are wanted, one of both is written,
 * and the first knows how. */
static bool is_twin(const struct bw_rows *rows, unsigned member)
{
    return rows->record->members[member].format == BW_FORMAT_BASE64 && member > 0 &&
           rows->members >> (member - 1) & 1;
}

static void add_json_columns(struct bw_rows *rows, const struct bw_member_list *list, char *left)
{
    bool array = rows->style == BW_ROWS_JSON_ARRAY;
    rows->begin = take_lead(&left, ",\n", array ? 2 : 0);
    for (unsigned i = 0; i < list->count; i++) {
        const struct bw_member *member = &rows->record->members[list->members[i]];
        if (is_twin(rows, list->members[i]))
            continue;
        rows->columns[rows->column_count++] = (struct bw_column){
            .offset = member->offset,
            .bit = UINT64_C(1) << list->members[i],
            .write = bw_json_writer(member),
            .lead = json_lead(&left, member, ""),
            .bytes_lead = json_lead(&left, member, "_bytes"),
        };
    }
}

/* What a row needs if each value has its greatest size, begin and end included. */
static size_t room_of(const struct bw_rows *rows)
{
    size_t room = 2 * BW_LEAD_STEP;
    for (unsigned i = 0; i < rows->column_count; i++) {
        size_t plain = padded(rows->columns[i].lead.length),
               bytes = padded(rows->columns[i].bytes_lead.length);
        room += (plain > bytes ? plain : bytes) + BW_VALUE_ROOM;
    }
    return room;
}

static void make_ready(struct bw_rows *rows, const struct bw_member_list *list,
                       const struct bw_rows_options *options)
{
    for (unsigned i = 0; i < list->count; i++)
        rows->members |= UINT64_C(1) << list->members[i];
    if (rows->style == BW_ROWS_TEXT)
        add_text_columns(rows, list, options, rows->leads);
    else
        add_json_columns(rows, list, rows->leads);
    rows->members = 0; /* twins that are not written need not be evaluated */
    for (unsigned i = 0; i < rows->column_count; i++)
        rows->members |= rows->columns[i].bit;
    rows->room = room_of(rows);
}

const struct bw_record *bw_rows_record(const struct bw_rows *rows)
{
    return rows->record;
}

struct bw_error *bw_rows_create(const char *record, const struct bw_rows_options *options,
                                struct bw_rows **result)
{
    struct bw_member_list list;
    const struct bw_record *found = bw_record_find(record);
    if (!found)
        return bw_error_create(BW_ERROR_USAGE, "unknown record %s", record);
    BW_TRY(bw_columns_parse(found, options->members, &list));
    struct bw_rows *rows = calloc(1, sizeof *rows + leads_room(found, &list, options));
    if (!rows)
        return bw_error_no_memory();
    rows->record = found;
    rows->style = options->style;
    rows->header = options->header;
    rows->escape = options->escape;
    rows->terminator = options->terminator;
    make_ready(rows, &list, options);
    *result = rows;
    return NULL;
}

void bw_rows_destroy(struct bw_rows *rows)
{
    free(rows);
}

unsigned bw_rows_needs(const struct bw_rows *rows)
{
    uint64_t more = rows->members & ~bw_file_name_xlate.members;
    if (rows->members >> BW_fileinfo_compression & 1)
        return BW_FILE_NEEDS_INODE | BW_FILE_NEEDS_COMPRESSION;
    return more ? BW_FILE_NEEDS_INODE : 0;
}

/* The greatest a record can be: members are of eight or sixteen bytes. */
union any_record {
    struct bw_bytes members[BW_RECORD_MEMBERS];
};

void bw_rows_append(const struct bw_rows *rows, const struct bw_xlate *xlate, const void *in,
                    struct bw_buffer *text)
{
    union any_record record;
    uint64_t present = rows->members & xlate->members;
    size_t before = text->length;
    if (!bw_buffer_reserve(text, rows->room))
        return;
    xlate->translate(in, present, &record);
    char *at = text->data + before;
    if (rows->style == BW_ROWS_TEXT)
        at = bw_text_row(rows, &record, present, at, text);
    else
        at = bw_json_row(rows, &record, present, at, text);
    text->length = at ? (size_t)(at - text->data) : before;
}

void bw_rows_append_file(const struct bw_rows *rows, const struct bw_walked_file *file,
                         struct bw_buffer *text)
{
    bw_rows_append(rows, file->inode ? &bw_file_xlate : &bw_file_name_xlate, file, text);
}
