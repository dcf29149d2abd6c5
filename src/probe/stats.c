/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of probes. Probes have fixed places in the table; a layer is added on its first call,
 * and nothing is ever removed, so lookups need no lock.
 */
#include "probe/stats.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/hash_table.h"
#include "base/human.h"
#include "base/json.h"
#include "probe/probe.h"

/* A graph has at most 4096 layers. Half of the places stay empty, so that searches are short and
 * terminate. */
enum { LAYERS = 4096, PLACES = 2 * LAYERS, SHARDS = 8, CACHE_LINE = 64 };

_Static_assert((int)PLACES >= (int)BW_PROBES_MAX, "each probe has the place of its number");

static uint64_t load_sum(const atomic_uint_fast64_t *sum)
{
    return atomic_load_explicit(sum, memory_order_relaxed);
}

/* The sum of two numbers, saturated at UINT64_MAX. */
static uint64_t saturated_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_to(atomic_uint_fast64_t *sum, uint64_t more)
{
    uint64_t old = load_sum(sum);
    while (more &&
           !atomic_compare_exchange_weak_explicit(sum, &old, saturated_sum(old, more),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t value)
{
    uint64_t old = load_sum(most);
    while (value > old && !atomic_compare_exchange_weak_explicit(
                              most, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* A probe or layer. Processors have counters of their own, so that threads rarely share a cache
 * line. */
struct entry {
    struct tally {
        _Alignas(CACHE_LINE) atomic_uint_fast64_t count;
        atomic_uint_fast64_t requests, errors, bytes, own_ns;
        struct {
            atomic_uint_fast64_t count, sum, most;
            atomic_uint_fast64_t least; /* inverted, so that all zeros is none */
        } times;
    } tallies[SHARDS];
    char *name, *type; /* copies, because the graph may be destroyed before the report is written */
};

static struct tally *cpu_tally(struct entry *entry)
{
    return &entry->tallies[(unsigned)sched_getcpu() % SHARDS];
}

static void add_time(struct tally *tally, uint64_t ns)
{
    add_to(&tally->times.count, 1);
    add_to(&tally->times.sum, ns);
    raise_to(&tally->times.most, ns);
    raise_to(&tally->times.least, ~ns);
}

static struct bw_tally_totals total_of(const struct entry *entry)
{
    struct bw_tally_totals totals = {.count = 0};
    struct bw_times_total *times = &totals.times;
    for (size_t shard = 0; shard < SHARDS; shard++) {
        const struct tally *tally = &entry->tallies[shard];
        const uint64_t least = ~load_sum(&tally->times.least), most = load_sum(&tally->times.most);
        const uint64_t timed = load_sum(&tally->times.count);
        totals.count = saturated_sum(totals.count, load_sum(&tally->count));
        totals.requests = saturated_sum(totals.requests, load_sum(&tally->requests));
        totals.errors = saturated_sum(totals.errors, load_sum(&tally->errors));
        totals.bytes = saturated_sum(totals.bytes, load_sum(&tally->bytes));
        totals.own_ns = saturated_sum(totals.own_ns, load_sum(&tally->own_ns));
        if (!timed)
            continue;
        if (!times->count || times->least > least)
            times->least = least;
        if (times->most < most)
            times->most = most;
        times->sum = saturated_sum(times->sum, load_sum(&tally->times.sum));
        times->count += timed;
    }
    return totals;
}

/* A number in a record: its member, and its offset; without a bit, the record does not contain
 * it. */
struct number {
    uint64_t bit;
    size_t offset;
};

struct bw_probe_stats {
    struct bw_probe_consumer consumer;
    bool by_xlator;
    struct {
        struct number error, bytes, ns;
    } numbers[BW_PROBES_MAX];
    pthread_mutex_t adding; /* locked while a layer is added */
    unsigned layers;
    atomic_uint_fast64_t uncounted;
    _Atomic(struct entry *) entries[PLACES];
};

static void free_entry(struct entry *entry)
{
    if (!entry)
        return;
    free(entry->name);
    free(entry->type);
    free(entry);
}

/* Allocates an entry; NULL if memory runs out. */
static struct entry *make_entry(const char *name, const char *type)
{
    struct entry *entry = aligned_alloc(CACHE_LINE, sizeof *entry);
    if (!entry)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->name = strdup(name);
    entry->type = type ? strdup(type) : NULL;
    if (entry->name && (entry->type || !type))
        return entry;
    free_entry(entry);
    return NULL;
}

/* Statistics by probe. */

static struct number find_number(const struct bw_probe *probe, const char *name)
{
    int member = bw_record_member(probe->record, name, strlen(name));
    if (member < 0 || !(bw_probe_members(probe) & UINT64_C(1) << member))
        return (struct number){0};
    return (struct number){UINT64_C(1) << member, probe->record->members[member].offset};
}

static uint64_t number_in(const struct bw_probe_event *event, struct number number)
{
    uint64_t value = 0;
    if (event->members & number.bit)
        memcpy(&value, (const char *)event->record + number.offset, sizeof value);
    return value;
}

static void count_event(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_stats *stats = (struct bw_probe_stats *)consumer; /* `consumer` is its first
                                                                       * member */
    unsigned probe = event->probe->number;
    struct entry *entry = atomic_load_explicit(&stats->entries[probe], memory_order_relaxed);
    if (!entry)
        return;
    struct tally *tally = cpu_tally(entry);
    add_to(&tally->count, 1);
    add_to(&tally->errors, number_in(event, stats->numbers[probe].error) != 0);
    add_to(&tally->bytes, number_in(event, stats->numbers[probe].bytes));
    if (event->members & stats->numbers[probe].ns.bit)
        add_time(tally, number_in(event, stats->numbers[probe].ns));
}

/* Statistics by layer. */

/* The place of a layer; empty if the layer is not in the table yet. */
static _Atomic(struct entry *) *find_place(struct bw_probe_stats *stats, const char *name,
                                           const char *type)
{
    size_t place = bw_hash_path(name, strlen(name)) % PLACES;
    for (;; place = (place + 1) % PLACES) {
        struct entry *entry = atomic_load_explicit(&stats->entries[place], memory_order_acquire);
        if (!entry || (strcmp(entry->name, name) == 0 && strcmp(entry->type, type) == 0))
            return &stats->entries[place];
    }
}

/* Finds a layer, or adds it. NULL: the table is full, or memory ran out. */
static struct entry *entry_of_layer(struct bw_probe_stats *stats, const char *name,
                                    const char *type)
{
    _Atomic(struct entry *) *place = find_place(stats, name, type);
    struct entry *entry = atomic_load_explicit(place, memory_order_acquire);
    if (entry)
        return entry;
    pthread_mutex_lock(&stats->adding);
    place = find_place(stats, name, type); /* another thread may have added it meanwhile */
    entry = atomic_load_explicit(place, memory_order_relaxed);
    if (!entry && stats->layers < LAYERS && (entry = make_entry(name, type))) {
        stats->layers++;
        atomic_store_explicit(place, entry, memory_order_release);
    }
    pthread_mutex_unlock(&stats->adding);
    return entry;
}

static void count_call(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_stats *stats = (struct bw_probe_stats *)consumer; /* `consumer` is its first
                                                                       * member */
    const struct bw_fopinfo *call = event->record;
    const char *name = call->layer ? call->layer : "";
    const char *type = call->layer_type ? call->layer_type : "";
    struct entry *entry = entry_of_layer(stats, name, type);
    if (!entry) {
        add_to(&stats->uncounted, 1);
        return;
    }
    struct tally *tally = cpu_tally(entry);
    add_to(&tally->count, 1);
    add_to(&tally->errors, call->errors);
    add_to(&tally->own_ns, call->own_ns);
    add_time(tally, call->ns);
    /* only reads transfer bytes, not mappings or read-ahead */
    if (call->operation && strcmp(call->operation, "read") == 0) {
        add_to(&tally->requests, call->requests);
        add_to(&tally->bytes, call->bytes);
    }
}

/* Reports of both kinds. */

struct bw_error *bw_probe_stats_create(bool by_xlator, const bool selected[BW_PROBES_MAX],
                                       struct bw_probe_stats **result)
{
    struct bw_probe_stats *stats = calloc(1, sizeof *stats);
    if (!stats)
        return bw_error_no_memory();
    struct bw_probe_consumer *consumer = &stats->consumer;
    stats->by_xlator = by_xlator;
    pthread_mutex_init(&stats->adding, NULL);
    *result = stats;
    if (by_xlator) {
        consumer->visit = count_call;
        consumer->selected[BW_PROBE_fop__unwind] = true;
        consumer->lazy[BW_PROBE_fop__unwind] =
            UINT64_C(1) << BW_fopinfo_bytes | UINT64_C(1) << BW_fopinfo_errors;
        return NULL;
    }

    /* The selected probes, or all, and where the numbers are in their records. */
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    consumer->visit = count_event;
    for (unsigned i = 0; i < count; i++) {
        if (selected && !selected[i])
            continue;
        struct entry *entry = make_entry(probes[i].name, NULL);
        if (!entry) {
            bw_probe_stats_destroy(BW_TAKE(*result));
            return bw_error_no_memory();
        }
        atomic_init(&stats->entries[i], entry);
        struct number bytes = find_number(&probes[i], "bytes");
        consumer->selected[i] = true;
        consumer->lazy[i] = bytes.bit;
        if (!bytes.bit)
            bytes = find_number(&probes[i], "bytes_out");
        stats->numbers[i].bytes = bytes;
        stats->numbers[i].error = find_number(&probes[i], "error");
        stats->numbers[i].ns = find_number(&probes[i], "ns");
    }
    return NULL;
}

void bw_probe_stats_destroy(struct bw_probe_stats *stats)
{
    if (!stats)
        return;
    for (size_t i = 0; i < PLACES; i++)
        free_entry(atomic_load_explicit(&stats->entries[i], memory_order_relaxed));
    pthread_mutex_destroy(&stats->adding);
    free(stats);
}

struct bw_probe_consumer *bw_probe_stats_consumer(struct bw_probe_stats *stats)
{
    return &stats->consumer;
}

/* Sorts by descending time, then by name. */
static int compare_rows(const void *a, const void *b)
{
    const struct bw_stats_row *one = a, *other = b;
    int order = bw_compare(bw_stats_time(other), bw_stats_time(one));
    if (!order)
        order = strcmp(one->name, other->name);
    if (!order && one->type && other->type)
        order = strcmp(one->type, other->type);
    return order;
}

struct bw_error *bw_probe_stats_sum(const struct bw_probe_stats *stats,
                                    struct bw_stats_table *table)
{
    const bool by_xlator = stats->by_xlator;
    *table =
        (struct bw_stats_table){.by_xlator = by_xlator, .uncounted = load_sum(&stats->uncounted)};
    for (size_t place = 0; place < PLACES; place++) {
        const struct entry *entry =
            atomic_load_explicit(&stats->entries[place], memory_order_acquire);
        if (!entry)
            continue;
        const struct bw_stats_row row = {
            .name = entry->name,
            .type = entry->type,
            .has_errors = by_xlator || stats->numbers[place].error.bit,
            .has_bytes = by_xlator || stats->numbers[place].bytes.bit,
            .has_times = by_xlator || stats->numbers[place].ns.bit,
            .totals = total_of(entry),
        };
        if (!row.totals.count)
            continue;
        BW_TRY(bw_stats_rows_push(&table->rows, row));
        const uint64_t time = bw_stats_time(&row);
        table->time += (double)time;
        table->shown_time = saturated_sum(table->shown_time, time);
    }
    bw_stats_rows_sort(&table->rows, compare_rows);
    return NULL;
}

/* The report, as text in the style of strace -c and as JSON, from one table of columns. */

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
    COLUMNS,
};

/* A heading is NULL where the report lacks the column. Wide numbers shift the rest of the line to
 * the right. */
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
};

static const char *heading_of(const struct bw_stats_table *table, unsigned column)
{
    return table->by_xlator ? columns[column].of_layers : columns[column].of_probes;
}

/* The numbers of a row; BW_ABSENT where it has none. */
static void fill_cells(const struct bw_stats_table *table, const struct bw_stats_row *row,
                       uint64_t cells[COLUMNS])
{
    const struct bw_tally_totals *totals = &row->totals;
    const struct bw_times_total *times = &totals->times;
    for (unsigned column = 0; column < COLUMNS; column++)
        cells[column] = BW_ABSENT;
    cells[OWN] = totals->own_ns;
    cells[COUNT] = cells[CALLS] = totals->count;
    cells[REQUESTS] = totals->requests;
    if (row->has_times)
        cells[TOTAL] = times->sum;
    if (row->has_times && table->shown_time)
        cells[SHARE] = (uint64_t)((double)bw_stats_time(row) / table->time * 1000 + 0.5);
    if (row->has_errors)
        cells[ERRORS] = totals->errors;
    if (row->has_bytes)
        cells[BYTES] = totals->bytes;
    if (times->count) {
        cells[LEAST] = times->least;
        cells[AVERAGE] = times->sum / times->count;
        cells[MOST] = times->most;
    }
}

static void append_cell(struct bw_buffer *text, unsigned column, uint64_t value)
{
    int width = columns[column].width;
    if (value == BW_ABSENT)
        bw_buffer_format(text, "%*s ", width, "-");
    else if (column == SHARE)
        bw_buffer_format(text, "%*" PRIu64 ".%u ", width - 2, value / 10, (unsigned)(value % 10));
    else
        bw_buffer_format(text, "%*" PRIu64 " ", width, value);
}

static void append_line(struct bw_buffer *text, const struct bw_stats_table *table)
{
    static const char line[] = "--------------------";
    for (unsigned column = 0; column < COLUMNS; column++)
        if (heading_of(table, column))
            bw_buffer_format(text, "%.*s ", columns[column].width, line);
    bw_buffer_format(text, "%s\n", line);
}

static void report_text(const struct bw_stats_table *table, struct bw_buffer *text)
{
    if (table->rows.count) {
        for (unsigned column = 0; column < COLUMNS; column++)
            if (heading_of(table, column))
                bw_buffer_format(text, "%*s ", columns[column].width, heading_of(table, column));
        bw_buffer_format(text, "%s\n", table->by_xlator ? "layer" : "probe");
        append_line(text, table);
    } else {
        bw_buffer_format(text, "%s\n",
                         table->by_xlator ? "no layer was called" : "no probe has fired");
    }
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct bw_stats_row *row = &table->rows.items[i];
        uint64_t cells[COLUMNS];
        fill_cells(table, row, cells);
        for (unsigned column = 0; column < COLUMNS; column++)
            if (heading_of(table, column))
                append_cell(text, column, cells[column]);
        bw_escape_words(text, row->name);
        if (row->type) {
            bw_buffer_append(text, " (", 2);
            bw_escape_words(text, row->type);
            bw_buffer_append_byte(text, ')');
        }
        bw_buffer_append_byte(text, '\n');
    }

    /* The line with 100 %. Totals of other columns would count the same time several times. */
    if (table->shown_time) {
        append_line(text, table);
        append_cell(text, SHARE, 1000);
        append_cell(text, TOTAL, table->shown_time);
        bw_buffer_format(text, "%s\n",
                         table->by_xlator ? "own time of all layers" : "time of all probes");
    }
    if (table->uncounted)
        bw_buffer_format(text,
                         "not counted, as there was no room: %" PRIu64 " call%s of other layers\n",
                         table->uncounted, bw_plural(table->uncounted));
}

static void report_json(const struct bw_stats_table *table, struct bw_buffer *text)
{
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "mode", table->by_xlator ? "xlator" : "probe");
    bw_json_begin_array(&json, table->by_xlator ? "layers" : "probes");
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct bw_stats_row *row = &table->rows.items[i];
        uint64_t cells[COLUMNS];
        fill_cells(table, row, cells);
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, table->by_xlator ? "layer" : "probe", row->name);
        if (row->type)
            bw_json_text(&json, "layer_type", row->type);
        for (unsigned column = 0; column < COLUMNS; column++)
            if (cells[column] != BW_ABSENT && heading_of(table, column))
                bw_json_number(&json, columns[column].member, cells[column]);
        bw_json_end(&json);
    }
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
    BW_SCOPED(bw_stats_table) struct bw_stats_table table = {0};
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    BW_TRY(bw_probe_stats_sum(stats, &table));
    if (as_json)
        report_json(&table, &text);
    else
        report_text(&table, &text);
    BW_TRY(bw_buffer_error(&text));
    return consume(context, text.data, text.length);
}
