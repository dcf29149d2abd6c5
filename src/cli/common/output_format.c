/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the options of columns and JSON to a format, and records in that format. A table is first
 * written with tabs between its columns and then aligned; escaped names contain neither tabs nor
 * newlines.
 *
 * Sorted rows (--sort and --top) wait as text, with the value of the column as their key, so that
 * neither the records nor the memory that they point to have to live until the end. All texts are
 * in one buffer. With --top, the buffer is shortened each time it has grown to twice the size of
 * the first rows.
 */
#include "cli/common/output_format.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/table.h"

/* The options. */

/* Decodes the next byte of a separator and advances; false after an unknown escape. */
static bool next_byte(const char **text, char *byte)
{
    static const char escapes[] = "tn0\\", bytes[] = "\t\n\0\\";
    *byte = *(*text)++;
    if (*byte != '\\')
        return true;
    const char *escape = **text ? strchr(escapes, *(*text)++) : NULL;
    if (escape)
        *byte = bytes[escape - escapes];
    return escape != NULL;
}

/* Prints the columns for '-o help'. */
static int show_columns(const struct command *command, const void *state, const char *argument)
{
    const struct bw_record *record = bw_record_find(cmd_plan_of(command, state).record);
    (void)argument;
    for (unsigned i = 0; i < record->member_count; i++)
        printf("%-14s %s%s\n", record->members[i].name, record->members[i].documentation,
               record->members[i].lazy ? " (only if named)" : "");
    return STATUS_OK;
}

static struct bw_error *store_json(void *target, const struct cmd_option *option, const char *form)
{
    struct cmd_format_settings *settings = target;
    bool array = form && strcmp(form, "array") == 0;
    settings->style = array ? BW_ROWS_JSON_ARRAY : BW_ROWS_JSON_LINES;
    return array || !form || strcmp(form, "lines") == 0
               ? NULL
               : cmd_bad_argument(option, form, "lines, array");
}

static struct bw_error *store_separator(void *target, const struct cmd_option *option,
                                        const char *text)
{
    struct cmd_format_settings *settings = target;
    settings->separator = text;
    for (const char *rest = text; *rest;) {
        char byte;
        if (!next_byte(&rest, &byte))
            return cmd_bad_argument(option, text,
                                    "a text; escapes in it are \\t, \\n, \\0 and \\\\");
    }
    return NULL;
}

static const char *const times[] = {"ns", "iso", "s", "local", NULL}; /* enum bw_rows_times */

const struct cmd_option cmd_format_options[] = {
    {'o', "output", "COLUMNS", "print these columns ('-o help' lists all)",
     CMD_TEXT(struct cmd_format_settings, columns), .show = show_columns,
     .heading = "Columns and JSON"},
    {0, "json", "[=array]", "print JSON: one object per line, or one array", .store = store_json},
    {0, "header", NULL, "begin with column names, or in JSON with versions",
     CMD_FLAG(struct cmd_format_settings, header)},
    {0, "separator", "TEXT", "separator of columns instead of a tab, such as \\0",
     .store = store_separator},
    {'0', "null", NULL, "end rows with NUL, and do not escape names",
     CMD_FLAG(struct cmd_format_settings, null), .alias = "print0"},
    {0, "times", "WORD", "times as ns (default), s, iso (in UTC) or local",
     CMD_WORD(struct cmd_format_settings, times, times),
     CMD_GIVEN(struct cmd_format_settings, times_given)},
    {'h', "iec", NULL, "sizes like 1.50MiB (default on a terminal)",
     CMD_FLAG(struct cmd_format_settings, iec), .alias = "human-readable"},
    {0, "si", NULL, "sizes like 1.57MB", CMD_FLAG(struct cmd_format_settings, si)},
    {'b', "raw", NULL, "plain numbers (default unless on a terminal)",
     CMD_FLAG(struct cmd_format_settings, raw)},
    {0},
};

const struct cmd_option cmd_order_options[] = {
    {0, "sort", "COLUMN", "sort the rows in memory by this column; -COLUMN: largest first",
     CMD_TEXT(struct cmd_format_settings, sort)},
    {0, "top", "N", "print only the first N rows",
     CMD_NUMBER(struct cmd_format_settings, top, 1, 1 << 20, "1 to 1048576")},
    {0},
};

static bool is_for_people(const struct cmd_format_settings *settings)
{
    return !settings->columns && settings->style == BW_ROWS_TEXT;
}

bool cmd_format_is_for_people(const struct cmd_common *common)
{
    return is_for_people(&common->format);
}

static struct bw_error *null_needs_rows(void)
{
    return bw_error_create(BW_ERROR_USAGE,
                           "-0 is for columns and JSON, which -o and --json choose");
}

struct bw_error *cmd_format_rows(const struct cmd_format_settings *settings, const char *record,
                                 bool has_null, bool terminal, struct bw_rows **rows)
{
    const bool json = settings->style != BW_ROWS_TEXT;
    const bool units = settings->iec || settings->si;
    const struct {
        bool is_so;
        const char *reason;
    } contradictions[] = {
        {settings->separator && json, "--separator is for columns, not for --json"},
        {units && json, "--iec and --si are for columns; with --json all numbers are decimal"},
        {settings->iec && settings->si, "--iec and --si exclude each other"},
        {settings->raw && units, "--raw excludes --iec and --si"},
        {!json && !settings->columns && (settings->header || settings->separator || units),
         "--header, --separator, --iec and --si are for columns, which -o chooses"},
        {!json && !settings->columns && settings->times_given,
         "--times is for columns and JSON, which -o and --json choose"},
        {settings->style == BW_ROWS_JSON_ARRAY && settings->null,
         "-0 is for lines, not for --json=array"},
    };
    BW_AUTO_FREE char *separator = NULL;
    *rows = NULL;
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++)
        if (contradictions[i].is_so)
            return bw_error_create(BW_ERROR_USAGE, "%s", contradictions[i].reason);
    if (is_for_people(settings) && settings->null && !has_null)
        return null_needs_rows();
    if (is_for_people(settings))
        return NULL;

    /* On a terminal, sizes have units and times are dates, unless options select something else. */
    const bool readable = terminal && !settings->raw;
    struct bw_rows_options options = {
        .struct_size = sizeof(struct bw_rows_options),
        .members = settings->columns,
        .style = settings->style,
        .terminator = settings->null ? '\0' : '\n',
        .header = settings->header,
        .escape = terminal && !settings->null,
        .units = BW_ROWS_BYTES,
        .times = settings->times,
    };
    if (settings->si)
        options.units = BW_ROWS_SI;
    else if (settings->iec || readable)
        options.units = BW_ROWS_IEC;
    if (readable && !settings->times_given && !json)
        options.times = BW_ROWS_LOCAL;
    if (settings->separator) {
        separator = malloc(strlen(settings->separator) + 1);
        if (!separator)
            return bw_error_no_memory();
        for (const char *rest = settings->separator; *rest;)
            next_byte(&rest, &separator[options.separator_length++]);
        options.separator = separator;
    }
    struct bw_error *error = bw_rows_create(record, &options, rows);
    if (!error || error->code != BW_ERROR_USAGE)
        return error;
    struct bw_error *hinted =
        bw_error_create(BW_ERROR_USAGE, "%s; '-o help' lists all columns", error->message);
    bw_error_free(error);
    return hinted;
}

struct cmd_format_plan cmd_plan_of(const struct command *command, const void *state)
{
    struct cmd_format_plan plan = {.record = NULL};
    if (command->plan)
        plan = *command->plan;
    if (command->plan_of)
        plan = command->plan_of(state);
    if (!plan.record)
        plan.record = command->record;
    plan.context = (void *)(uintptr_t)state;
    return plan;
}

/* The table. */

static struct bw_error *append_rows(void *context, const char *rows, size_t length)
{
    struct bw_buffer *text = context;
    bw_buffer_append(text, rows, length);
    return bw_buffer_error(text);
}

/* The column names are valid, because bw_rows_create() accepted them. */
static struct bw_error *write_table(struct cmd_format *format, const struct cmd_format_plan *plan)
{
    const struct bw_record *record = bw_record_find(plan->record);
    struct bw_table_column columns[BW_RECORD_MEMBERS] = {{0}};
    struct bw_buffer BW_AUTO_BUFFER text = {0};
    const char *name = plan->columns;
    for (unsigned i = 0; *name; i++) {
        size_t length = strcspn(name, ",");
        int member = bw_record_member(record, name, length);
        enum bw_member_type type = record->members[member].type;
        columns[i].right = type == BW_TYPE_U64 || type == BW_TYPE_I64;
        name += length + (name[length] == ',');
    }
    bw_table_append(&text, &format->text, columns);
    return cmd_write_buffer(&format->output, &text);
}

/* Sorted rows. */

/* The column must be eager, so that every record contains its value. */
static const struct bw_member *find_column(const struct bw_record *record, const char *name)
{
    const int number = bw_record_member(record, name, strlen(name));
    if (number < 0)
        return NULL;
    const struct bw_member *member = &record->members[number];
    const bool is_sortable = !member->lazy && !member->field && member->type <= BW_TYPE_BYTES;
    return is_sortable ? member : NULL;
}

/* Prepares the order that the settings select. `largest`: the column by which --top selects the
 * greatest rows without --sort; NULL: the first rows. BW_ERROR_USAGE if there is no such column. */
static struct bw_error *begin_order(struct cmd_row_order *order,
                                    const struct cmd_format_settings *settings, const char *record,
                                    const char *largest)
{
    const char *name = settings->sort;
    *order =
        (struct cmd_row_order){.is_used = name || settings->top, .most = (size_t)settings->top};
    if (!order->is_used)
        return NULL;
    order->record = bw_record_find(record);
    order->path = find_column(order->record, "path");
    order->is_descending = name ? *name == '-' : largest != NULL;
    if (name)
        name += *name == '-';
    else
        name = largest;
    order->column = name ? find_column(order->record, name) : NULL;
    if (name && !order->column)
        return bw_error_create(BW_ERROR_USAGE,
                               "--sort: there is no column %s that can be sorted; '-o help' lists "
                               "all columns",
                               name);
    return NULL;
}

/* Adds the value of a text or bytes; false if it has none. */
static bool append_value(struct cmd_row_order *order, const struct bw_member *member,
                         const void *record, size_t size, uint64_t *number)
{
    const char *value = (const char *)record + member->offset;
    const size_t length =
        member->type == BW_TYPE_BYTES ? sizeof(struct bw_bytes) : sizeof(uint64_t);
    if (member->offset + length > size)
        return false;
    struct bw_bytes bytes = {0};
    if (member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64) {
        memcpy(number, value, sizeof *number);
        if (*number == BW_ABSENT)
            return false;
        *number ^= (uint64_t)(member->type == BW_TYPE_I64) << 63; /* negative ones first */
        return true;
    }
    if (member->type == BW_TYPE_BYTES)
        memcpy(&bytes, value, sizeof bytes);
    else
        memcpy(&bytes.data, value, sizeof bytes.data);
    if (bytes.data && member->type == BW_TYPE_TEXT)
        bytes.length = strlen(bytes.data);
    if (bytes.data)
        bw_buffer_append(&order->bytes, bytes.data, bytes.length);
    return bytes.data;
}

/* Unknown values are last in both directions. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct cmd_sorted_row *a = left, *b = right;
    const struct cmd_row_order *order = context;
    const char *bytes = order->bytes.data;
    if (a->is_known != b->is_known)
        return a->is_known ? -1 : 1;
    int by_value = bw_compare(a->number, b->number);
    if (!by_value)
        by_value =
            bw_compare_bytes(bytes + a->key, a->path - a->key, bytes + b->key, b->path - b->key);
    if (by_value)
        return order->is_descending ? -by_value : by_value;
    int by_path = 0;
    if (order->column)
        by_path = bw_compare_bytes(bytes + a->path, a->text - a->path, bytes + b->path,
                                   b->text - b->path);
    return by_path ? by_path : bw_compare(a->added, b->added);
}

static void sort_rows(struct cmd_row_order *order)
{
    if (order->rows.count)
        qsort_r(order->rows.items, order->rows.count, sizeof *order->rows.items, compare_rows,
                order);
    if (order->most && order->rows.count > order->most)
        order->rows.count = order->most;
}

/* The steps of the output. */

struct bw_error *cmd_format_pass_on(struct cmd_format *format, size_t least)
{
    struct bw_buffer *text = &format->text;
    const size_t length = text->length;
    BW_TRY(bw_buffer_error(text));
    if (length < least)
        return NULL;
    text->length = 0;
    return format->stream.consume(format->stream.context, text->data, length);
}

/* Writes a row to the stream, or prints the record. */
static struct bw_error *write_record(struct cmd_format *format, const void *record, size_t size)
{
    if (format->stream.rows)
        return bw_rows_write(&format->stream, record, size);
    format->text.length = 0;
    BW_TRY(format->plan->print(format, record));
    return cmd_format_pass_on(format, 1);
}

/* Adds a row: its key, its path, and its text. Headers and separators follow when it is passed on.
 * Drops rows that will not be among the first `most`. */
static struct bw_error *add_sorted(struct cmd_format *format, const void *record, size_t size)
{
    enum { SPARE = 256 };
    struct cmd_row_order *order = &format->order;
    struct bw_buffer *bytes = &order->bytes;
    struct bw_rows_stream *stream = &format->stream;
    const struct bw_rows_stream passing = *stream;
    struct cmd_sorted_row row = {.added = order->rows.count, .key = bytes->length};
    uint64_t unused;
    BW_TRY(cmd_sorted_rows_reserve(&order->rows, 1));
    if (order->column)
        row.is_known = append_value(order, order->column, record, size, &row.number);
    row.path = bytes->length;
    if (order->path && order->path != order->column)
        append_value(order, order->path, record, size, &unused);
    row.text = bytes->length;
    BW_TRY(bw_buffer_error(bytes));
    stream->begun = stream->not_first = true;
    stream->consume = append_rows;
    stream->context = bytes;
    struct bw_error *error = write_record(format, record, size);
    stream->begun = passing.begun;
    stream->consume = passing.consume;
    stream->context = passing.context;
    BW_TRY(error);
    BW_TRY(bw_buffer_error(bytes));
    row.end = bytes->length;
    BW_TRY(cmd_sorted_rows_push(&order->rows, row));
    if (!order->most || order->rows.count <= SPARE || (order->rows.count - SPARE) / 2 < order->most)
        return NULL;

    sort_rows(order);
    struct bw_buffer kept = {0};
    for (size_t i = 0; i < order->rows.count; i++) {
        struct cmd_sorted_row *next = &order->rows.items[i];
        const size_t moved = next->key - kept.length;
        bw_buffer_append(&kept, bytes->data + next->key, next->end - next->key);
        next->added = i;
        next->key -= moved; /* unsigned: wraps where the row moves up */
        next->path -= moved;
        next->text -= moved;
        next->end -= moved;
    }
    bw_buffer_free(bytes);
    *bytes = kept;
    return bw_buffer_error(&kept);
}

struct bw_error *cmd_format_write(struct cmd_format *format, const void *record, size_t size)
{
    if (format->order.is_used)
        return add_sorted(format, record, size);
    return write_record(format, record, size);
}

/* A table has its own columns and is formatted for people even if it is not written to a terminal.
 * A `print` with has_units converts sizes itself. */
static struct bw_error *make_rows(struct cmd_format *format)
{
    const struct cmd_format_settings *settings = &format->settings;
    const struct cmd_format_plan *plan = format->plan;
    struct cmd_format_settings chosen = *settings;
    bool for_people = is_for_people(settings);
    bool table = plan->columns && for_people;
    bool aligned = table && !settings->separator;
    if (table && settings->null)
        return null_needs_rows();
    if (table)
        chosen.columns = plan->columns;
    chosen.header |= aligned;
    chosen.raw |= table && !format->output.at_once && !settings->iec && !settings->si;
    if (for_people && plan->has_units)
        chosen.iec = chosen.si = false;
    BW_TRY(cmd_format_rows(&chosen, plan->record, plan->has_null, table || format->output.at_once,
                           &format->rows));
    format->stream.rows = format->rows;
    if (aligned) {
        format->stream.consume = append_rows;
        format->stream.context = &format->text;
    } else {
        format->stream.consume = cmd_write;
        format->stream.context = &format->output;
    }
    return begin_order(&format->order, settings, plan->record, plan->largest);
}

struct bw_error *cmd_format_begin(struct cmd_format *format, const struct cmd_common *common,
                                  const struct cmd_format_plan *plan)
{
    *format = (struct cmd_format){.common = common,
                                  .plan = plan,
                                  .settings = common->format,
                                  .output.at_once = isatty(STDOUT_FILENO)};
    return make_rows(format);
}

/* Writes the texts of the rows that waited. */
static struct bw_error *write_sorted(struct cmd_format *format)
{
    struct bw_rows_stream *stream = &format->stream;
    sort_rows(&format->order);
    for (size_t i = 0; i < format->order.rows.count; i++) {
        const struct cmd_sorted_row *row = &format->order.rows.items[i];
        const char *text = format->order.bytes.data + row->text;
        if (format->rows)
            BW_TRY(bw_rows_take(stream, text, row->end - row->text));
        else
            BW_TRY(stream->consume(stream->context, text, row->end - row->text));
    }
    return NULL;
}

struct bw_error *cmd_format_end(struct cmd_format *format, struct bw_error *error)
{
    struct bw_rows_stream *stream = &format->stream;
    const bool aligned = stream->consume == append_rows;
    if (format->order.is_used && !(error && error->code == BW_ERROR_USAGE))
        error = bw_error_first(error, write_sorted(format));
    /* A table without rows has no names of columns either. */
    const bool is_empty = aligned && !stream->begun && !format->settings.header;
    if (format->rows && !is_empty && !(error && error->code == BW_ERROR_USAGE)) {
        error = bw_error_first(error, bw_rows_end(stream));
        if (aligned)
            error = bw_error_first(error, write_table(format, format->plan));
    }
    return bw_error_first(error, cmd_flush(&format->output));
}

void cmd_format_free(struct cmd_format *format)
{
    free(format->stream.row);
    cmd_sorted_rows_free(&format->order.rows);
    bw_buffer_free(&format->order.bytes);
    bw_buffer_free(&format->text);
    bw_rows_destroy(format->rows);
}

void cmd_format_miss(struct cmd_format *format, struct bw_error *error)
{
    format->status = cmd_worse_status(format->status, cmd_miss(format->common, error));
}

void cmd_format_append_name(const struct cmd_format *format, const void *name, size_t length,
                            struct bw_buffer *text)
{
    if (format->output.at_once)
        bw_escape_append(text, name, length);
    else
        bw_buffer_append(text, name, length);
}

int cmd_format_run_in(const struct cmd_common *common, const struct cmd_format_plan *plan,
                      struct cmd_session *session)
{
    struct cmd_format format;
    struct bw_error *error = cmd_format_begin(&format, common, plan);
    int status = cmd_fail(common, error);
    if (session)
        format.session = *session;
    else if (!status)
        status = cmd_open_to(common, plan->depth, &format.session);
    if (!status) {
        error = cmd_format_end(&format, plan->list(&format, plan->context));
        status = cmd_end(common, &format.session, error, format.status);
    } else if (session) {
        status = cmd_end(common, session, NULL, status);
    }
    cmd_format_free(&format);
    return status;
}

int cmd_format_run(const struct cmd_common *common, const struct cmd_format_plan *plan)
{
    return cmd_format_run_in(common, plan, NULL);
}

int cmd_run_plan(const struct cmd_common *common, const struct command *command, void *state)
{
    const struct cmd_format_plan plan = cmd_plan_of(command, state);
    return cmd_format_run(common, &plan);
}

struct bw_error *cmd_format_gather(const struct cmd_common *common,
                                   const struct cmd_session *session,
                                   const struct cmd_format_plan *plan, struct bw_buffer *text)
{
    struct cmd_format format = {
        .common = common, .plan = plan, .settings.iec = true, .session = *session};
    struct bw_buffer gathered = {0};
    struct bw_error *error = make_rows(&format);
    format.stream.consume = append_rows;
    format.stream.context = &gathered;
    if (!error)
        error = plan->list(&format, plan->context);
    if (!error && format.rows)
        error = bw_rows_end(&format.stream);
    cmd_format_free(&format);
    *text = gathered;
    return error;
}
