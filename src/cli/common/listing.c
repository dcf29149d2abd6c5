/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of the commands that list records. A table is first written with tabs between its
 * columns, and then aligned: escaped names hold neither tabs nor newlines. */
#include "cli/common/listing.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "btrfs-walk/record.h"

/* The table. */

struct column {
    size_t width;
    bool right; /* numbers are */
};

static struct bw_error *gather(void *context, const char *rows, size_t length)
{
    struct cmd_listing *listing = context;
    bw_buffer_append(&listing->table, rows, length);
    return listing->table.failed ? bw_error_no_memory() : NULL;
}

/* Takes the next cell off the text; `*last`: it ends its line. */
static size_t take_cell(const char **text, const char *end, const char **cell, bool *last)
{
    *cell = *text;
    while (*text < end && **text != '\t' && **text != '\n')
        ++*text;
    size_t length = (size_t)(*text - *cell);
    *last = *text == end || **text == '\n';
    *text += *text < end;
    return length;
}

static void measure(const struct bw_buffer *table, struct column *columns)
{
    const char *text = table->data, *end = text + table->length, *cell;
    size_t number = 0;
    for (bool last; text < end; number = last ? 0 : number + 1) {
        size_t length = take_cell(&text, end, &cell, &last);
        size_t width = bw_utf8_count(cell, length);
        if (width > columns[number].width)
            columns[number].width = width;
    }
}

static void append_cell(struct bw_buffer *line, const char *cell, size_t length,
                        const struct column *column, bool last)
{
    int padding = (int)(column->width - bw_utf8_count(cell, length));
    bw_buffer_format(line, "%*s", column->right ? padding : 0, "");
    bw_buffer_append(line, cell, length);
    bw_buffer_format(line, "%*s", last ? 0 : 2 + (column->right ? 0 : padding), "");
    if (last)
        bw_buffer_append_byte(line, '\n');
}

static struct bw_error *write_aligned(struct cmd_listing *listing, const struct column *columns)
{
    const char *text = listing->table.data, *end = text + listing->table.length, *cell;
    struct bw_buffer BW_AUTO_BUFFER line = {0};
    size_t number = 0;
    for (bool last; text < end; number = last ? 0 : number + 1) {
        size_t length = take_cell(&text, end, &cell, &last);
        append_cell(&line, cell, length, &columns[number], last);
        if (!last)
            continue;
        if (line.failed)
            return bw_error_no_memory();
        BW_TRY(cmd_write(&listing->output, line.data, line.length));
        line.length = 0;
    }
    return NULL;
}

/* The names of the columns are good: bw_rows_create() took them. */
static struct bw_error *write_table(struct cmd_listing *listing,
                                    const struct cmd_listing_plan *plan)
{
    const struct bw_record *record = bw_record_find(plan->record);
    struct column columns[BW_RECORD_MEMBERS] = {{0}};
    const char *name = plan->columns;
    for (unsigned i = 0; *name; i++) {
        size_t length = strcspn(name, ",");
        int member = bw_record_member(record, name, length);
        enum bw_member_type type = record->members[member].type;
        columns[i].right = type == BW_TYPE_U64 || type == BW_TYPE_I64;
        name += length + (name[length] == ',');
    }
    measure(&listing->table, columns);
    return write_aligned(listing, columns);
}

/* The frame. */

static struct bw_error *list(struct cmd_listing *listing, const struct cmd_listing_plan *plan)
{
    bool aligned = listing->stream.consume == gather;
    struct bw_error *error = plan->list(listing, plan->context);
    if (!listing->stream.rows || (error && error->code == BW_ERROR_USAGE))
        return error;
    error = bw_error_first(error, bw_rows_end(&listing->stream));
    return aligned ? bw_error_first(error, write_table(listing, plan)) : error;
}

static int finish(struct cmd_listing *listing, struct bw_error *error)
{
    error = bw_error_first(error, cmd_flush(&listing->output));
    int failed = error ? cmd_fail_answer(listing->common, error) : listing->status;
    int status = cmd_close(listing->common, &listing->session);
    return status > failed ? status : failed;
}

/* A table has its own columns, and is for people even if it is not written to a terminal. */
static struct bw_error *make_rows(struct cmd_listing *listing,
                                  const struct cmd_rows_settings *settings,
                                  const struct cmd_listing_plan *plan, struct bw_rows **rows)
{
    struct cmd_rows_settings chosen = *settings;
    bool table = plan->columns && !settings->columns && settings->style == BW_ROWS_TEXT;
    if (table)
        chosen.columns = plan->columns;
    if (table && !settings->separator)
        chosen.header = true;
    BW_TRY(cmd_rows_create(&chosen, plan->record, plan->null_terminated ? '\0' : '\n',
                           table || listing->output.at_once, rows));
    listing->stream.rows = *rows;
    listing->stream.consume = table && !settings->separator ? gather : cmd_write;
    listing->stream.context =
        listing->stream.consume == gather ? (void *)listing : &listing->output;
    return NULL;
}

int cmd_listing_run(const struct cmd_common *common, const struct cmd_rows_settings *settings,
                    const struct cmd_listing_plan *plan)
{
    struct cmd_listing listing = {.common = common, .output.at_once = isatty(STDOUT_FILENO)};
    struct bw_rows *rows = NULL;
    struct bw_error *error = make_rows(&listing, settings, plan, &rows);
    int status = error ? cmd_fail(common, error) : cmd_open(common, &listing.session);
    if (!status)
        status = finish(&listing, list(&listing, plan));
    free(listing.stream.row);
    bw_buffer_free(&listing.table);
    bw_rows_destroy(rows);
    return status;
}

struct bw_error *cmd_listing_gather(const struct cmd_common *common,
                                    const struct cmd_session *session,
                                    const struct cmd_listing_plan *plan, struct bw_buffer *table)
{
    const struct cmd_rows_settings columns = {.iec = true};
    struct cmd_listing listing = {.common = common, .session = *session};
    struct bw_rows *rows = NULL;
    struct bw_error *error = make_rows(&listing, &columns, plan, &rows);
    if (!error)
        error = plan->list(&listing, plan->context);
    if (!error)
        error = bw_rows_end(&listing.stream);
    free(listing.stream.row);
    bw_rows_destroy(rows);
    *table = listing.table;
    return error;
}
