/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of probes: the report, from one table of columns, as text in the manner of strace -c
 * and as JSON. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "probe/stats.h"

/* What the shares of a table are taken of. */
struct whole {
    double time;    /* of all rows: sums that do not fit have shares, too */
    uint64_t shown; /* the same as a number to be shown */
};

/* A number of a row that may not be there. */
struct cell {
    bool there;
    uint64_t value;
};

enum column_number {
    SHARE,
    OWN,
    TOTAL,
    COUNT,
    CALLS,
    REQUESTS,
    ERRORS,
    BYTES,
    LEAST,
    AVERAGE,
    MOST,
    P50,
    P99,
    COLUMNS,
};

/* The heading is NULL where there is no such column. Numbers that are wider push what follows to
 * the right.
 */
static const struct column {
    const char *member, *of_probes, *of_layers;
    int width;
} columns[COLUMNS] = {
    [SHARE] = {"share_permille", "% time", "% own", 6},
    [OWN] = {"own_ns", NULL, "own ns", 12},
    [TOTAL] = {"total_ns", "total ns", "total ns", 12},
    [COUNT] = {"count", "count", NULL, 8},
    [CALLS] = {"calls", NULL, "calls", 8},
    [REQUESTS] = {"requests", NULL, "requests", 8},
    [ERRORS] = {"errors", "errors", "errors", 7},
    [BYTES] = {"bytes", "bytes", "bytes", 12},
    [LEAST] = {"min_ns", "min ns", "min ns", 9},
    [AVERAGE] = {"avg_ns", "avg ns", "avg ns", 9},
    [MOST] = {"max_ns", "max ns", "max ns", 9},
    [P50] = {"p50_ns", "p50 ns", "p50 ns", 9},
    [P99] = {"p99_ns", "p99 ns", "p99 ns", 9},
};

static const char *heading(const struct bw_stats_table *table, unsigned column)
{
    return table->by_xlator ? columns[column].of_layers : columns[column].of_probes;
}

static struct whole whole_of(const struct bw_stats_table *table)
{
    struct whole whole = {0};
    for (size_t i = 0; i < table->count; i++) {
        whole.time += (double)bw_stats_time(table, &table->rows[i]);
        whole.shown = bw_sum(whole.shown, bw_stats_time(table, &table->rows[i]));
    }
    return whole;
}

static uint64_t permille(uint64_t time, const struct whole *whole)
{
    return (uint64_t)((double)time / whole->time * 1000 + 0.5);
}

struct cells {
    struct cell of[COLUMNS];
};

static struct cells cells_of(const struct bw_stats_table *table, const struct whole *whole,
                             const struct bw_stats_row *row)
{
    const struct bw_histogram_totals *times = &row->times;
    const bool timed = times->count, shared = row->has_times && whole->shown;
    return (struct cells){{
        [SHARE] = {shared, shared ? permille(bw_stats_time(table, row), whole) : 0},
        [OWN] = {true, row->own_ns},
        [TOTAL] = {row->has_times, times->sum},
        [COUNT] = {true, row->count},
        [CALLS] = {true, row->count},
        [REQUESTS] = {true, row->requests},
        [ERRORS] = {row->has_errors, row->errors},
        [BYTES] = {row->has_bytes, row->bytes},
        [LEAST] = {timed, times->least},
        [AVERAGE] = {timed, timed ? times->sum / times->count : 0},
        [MOST] = {timed, times->most},
        [P50] = {timed, bw_histogram_percentile(times, 50)},
        [P99] = {timed, bw_histogram_percentile(times, 99)},
    }};
}

/* Text. */

static void append_cell(struct bw_buffer *text, unsigned column, struct cell cell)
{
    int width = columns[column].width;
    if (!cell.there)
        bw_buffer_format(text, "%*s ", width, "-");
    else if (column == SHARE)
        bw_buffer_format(text, "%*" PRIu64 ".%u ", width - 2, cell.value / 10,
                         (unsigned)(cell.value % 10));
    else
        bw_buffer_format(text, "%*" PRIu64 " ", width, cell.value);
}

static void append_name(struct bw_buffer *text, const struct bw_stats_row *row)
{
    bw_escape_words(text, row->name);
    if (!row->type)
        return;
    bw_buffer_append(text, " (", 2);
    bw_escape_words(text, row->type);
    bw_buffer_append_byte(text, ')');
}

static void append_headings(struct bw_buffer *text, const struct bw_stats_table *table)
{
    for (unsigned column = 0; column < COLUMNS; column++)
        if (heading(table, column))
            bw_buffer_format(text, "%*s ", columns[column].width, heading(table, column));
    bw_buffer_format(text, "%s\n", table->by_xlator ? "layer" : "probe");
}

static void append_line(struct bw_buffer *text, const struct bw_stats_table *table)
{
    static const char line[] = "--------------------";
    for (unsigned column = 0; column < COLUMNS; column++)
        if (heading(table, column))
            bw_buffer_format(text, "%.*s ", columns[column].width, line);
    bw_buffer_format(text, "%s\n", line);
}

static void append_row(struct bw_buffer *text, const struct bw_stats_table *table,
                       const struct whole *whole, const struct bw_stats_row *row)
{
    const struct cells cells = cells_of(table, whole, row);
    for (unsigned column = 0; column < COLUMNS; column++)
        if (heading(table, column))
            append_cell(text, column, cells.of[column]);
    append_name(text, row);
    bw_buffer_append_byte(text, '\n');
}

/* What 100 % is. Sums of other columns would count the same thing several times. */
static void append_whole(struct bw_buffer *text, const struct bw_stats_table *table,
                         const struct whole *whole)
{
    if (!whole->shown)
        return;
    append_line(text, table);
    append_cell(text, SHARE, (struct cell){true, 1000});
    append_cell(text, TOTAL, (struct cell){true, whole->shown});
    bw_buffer_format(text, "%s\n",
                     table->by_xlator ? "own time of all layers" : "time of all probes");
}

static void append_histograms(struct bw_buffer *text, const struct bw_stats_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!table->rows[i].times.count)
            continue;
        bw_buffer_append_byte(text, '\n');
        append_name(text, &table->rows[i]);
        bw_buffer_format(text, ", ns\n");
        bw_histogram_draw(text, &table->rows[i].times);
    }
}

static void report_text(const struct bw_stats_table *table, struct bw_buffer *text)
{
    struct whole whole = whole_of(table);
    if (table->count) {
        append_headings(text, table);
        append_line(text, table);
    } else {
        bw_buffer_format(text, "%s\n",
                         table->by_xlator ? "no layer was called" : "no probe has fired");
    }
    for (size_t i = 0; i < table->count; i++)
        append_row(text, table, &whole, &table->rows[i]);
    append_whole(text, table, &whole);
    if (table->uncounted)
        bw_buffer_format(text,
                         "not counted, as there was no room: %" PRIu64 " calls of other layers\n",
                         table->uncounted);
    append_histograms(text, table);
}

/* JSON. */

static void add_histogram(struct bw_json *json, const struct bw_stats_row *row)
{
    if (!row->has_times)
        return;
    bw_json_begin_object(json, "histogram");
    bw_json_text(json, "unit", "ns");
    bw_histogram_json(json, "data", &row->times);
    bw_json_end(json);
}

static void add_row(struct bw_json *json, const struct bw_stats_table *table,
                    const struct whole *whole, const struct bw_stats_row *row)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, table->by_xlator ? "xlator" : "probe", row->name);
    if (row->type)
        bw_json_text(json, "type", row->type);
    const struct cells cells = cells_of(table, whole, row);
    for (unsigned column = 0; column < COLUMNS; column++)
        if (cells.of[column].there && heading(table, column))
            bw_json_number(json, columns[column].member, cells.of[column].value);
    add_histogram(json, row);
    bw_json_end(json);
}

static void report_json(const struct bw_stats_table *table, struct bw_buffer *text)
{
    struct whole whole = whole_of(table);
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "mode", table->by_xlator ? "xlator" : "probe");
    bw_json_begin_array(&json, table->by_xlator ? "layers" : "probes");
    for (size_t i = 0; i < table->count; i++)
        add_row(&json, table, &whole, &table->rows[i]);
    bw_json_end(&json);
    if (table->by_xlator)
        bw_json_number(&json, "uncounted", table->uncounted);
    bw_json_end(&json);
    bw_buffer_append_byte(text, '\n');
}

struct bw_error *bw_probe_stats_report(const struct bw_probe_stats *stats, bool as_json,
                                       struct bw_error *(*consume)(void *context, const char *text,
                                                                   size_t length),
                                       void *context)
{
    struct bw_stats_table table;
    struct bw_buffer text = {0};
    if (!bw_probe_stats_table(stats, &table))
        return bw_error_no_memory();
    (as_json ? report_json : report_text)(&table, &text);
    free(table.rows);
    struct bw_error *error =
        text.failed ? bw_error_no_memory() : consume(context, text.data, text.length);
    bw_buffer_free(&text);
    return error;
}
