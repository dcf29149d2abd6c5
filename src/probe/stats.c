/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of probes: counting. Numbers go to one of several shards, chosen by processor, so that
 * threads seldom share a cache line. Probes have a fixed place in the table; a layer is added when
 * it is first called, and nothing is ever removed, so that a lookup takes no lock.
 */
#include "probe/stats.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/probe.h"

/* A graph has at most 4096 layers; half of the places stay empty, so that searches are short and
 * end. */
enum { SHARDS = 8, CACHE_LINE = 64, LAYERS = 4096, PLACES = 2 * LAYERS };

_Static_assert((int)PLACES >= (int)BW_PROBES_MAX, "each probe has the place of its number");

/* What one processor has counted of a probe or layer. Its size is a multiple of its alignment. */
struct tally {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t count;
    atomic_uint_fast64_t requests, errors, bytes, own_ns;
    struct bw_histogram times;
};

struct entry {
    struct tally tallies[SHARDS];
    char *name, *type; /* copies: a graph may be gone before the report is written */
};

/* Where a record has a number; without a bit: it has none. */
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
    pthread_mutex_t adding; /* held while a layer is added */
    unsigned layers;
    atomic_uint_fast64_t uncounted;
    _Atomic(struct entry *) entries[PLACES];
};

static struct tally *tally_of(struct entry *entry)
{
    return &entry->tallies[(unsigned)sched_getcpu() % SHARDS];
}

static void free_entry(struct entry *entry)
{
    if (!entry)
        return;
    free(entry->name);
    free(entry->type);
    free(entry);
}

/* NULL if memory runs out. */
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

/* By probe. */

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

static void take_probe(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_stats *stats = (struct bw_probe_stats *)consumer; /* its first member */
    unsigned probe = event->probe->number;
    struct entry *entry = atomic_load_explicit(&stats->entries[probe], memory_order_relaxed);
    if (!entry)
        return;
    struct tally *tally = tally_of(entry);
    bw_sum_atomic(&tally->count, 1);
    bw_sum_atomic(&tally->errors, number_in(event, stats->numbers[probe].error) != 0);
    bw_sum_atomic(&tally->bytes, number_in(event, stats->numbers[probe].bytes));
    if (event->members & stats->numbers[probe].ns.bit)
        bw_histogram_count(&tally->times, number_in(event, stats->numbers[probe].ns));
}

static struct bw_error *add_probe(struct bw_probe_stats *stats, const struct bw_probe *probe)
{
    struct entry *entry = make_entry(probe->name, NULL);
    if (!entry)
        return bw_error_no_memory();
    atomic_init(&stats->entries[probe->number], entry);
    struct number bytes = find_number(probe, "bytes");
    stats->numbers[probe->number].error = find_number(probe, "error");
    stats->numbers[probe->number].ns = find_number(probe, "ns");
    stats->numbers[probe->number].bytes = bytes.bit ? bytes : find_number(probe, "bytes_out");
    stats->consumer.selected[probe->number] = true;
    stats->consumer.lazy[probe->number] = bytes.bit;
    return NULL;
}

static struct bw_error *watch_probes(struct bw_probe_stats *stats, const bool *selected)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        if (!selected || selected[i])
            BW_TRY(add_probe(stats, &probes[i]));
    stats->consumer.take = take_probe;
    return NULL;
}

/* By layer. */

static size_t first_place(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash % PLACES;
}

/* The place of a layer; if there is nothing in it, the layer is not in the table. */
static _Atomic(struct entry *) *find_place(struct bw_probe_stats *stats, const char *name,
                                           const char *type)
{
    for (size_t place = first_place(name);; place = (place + 1) % PLACES) {
        struct entry *entry = atomic_load_explicit(&stats->entries[place], memory_order_acquire);
        if (!entry || (strcmp(entry->name, name) == 0 && strcmp(entry->type, type) == 0))
            return &stats->entries[place];
    }
}

/* Another thread may have been quicker. NULL: there is no room. */
static struct entry *add_layer(struct bw_probe_stats *stats, const char *name, const char *type)
{
    pthread_mutex_lock(&stats->adding);
    _Atomic(struct entry *) *place = find_place(stats, name, type);
    struct entry *entry = atomic_load_explicit(place, memory_order_relaxed);
    if (!entry && stats->layers < LAYERS && (entry = make_entry(name, type))) {
        stats->layers++;
        atomic_store_explicit(place, entry, memory_order_release);
    }
    pthread_mutex_unlock(&stats->adding);
    return entry;
}

static struct entry *entry_of_layer(struct bw_probe_stats *stats, const char *name,
                                    const char *type)
{
    struct entry *entry = atomic_load_explicit(find_place(stats, name, type), memory_order_acquire);
    return entry ? entry : add_layer(stats, name, type);
}

static void take_call(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_probe_stats *stats = (struct bw_probe_stats *)consumer; /* its first member */
    const struct bw_fopinfo *call = event->record;
    struct entry *entry =
        entry_of_layer(stats, call->xlator ? call->xlator : "", call->type ? call->type : "");
    if (!entry) {
        bw_sum_atomic(&stats->uncounted, 1);
        return;
    }
    struct tally *tally = tally_of(entry);
    bw_sum_atomic(&tally->count, 1);
    bw_sum_atomic(&tally->errors, call->errors);
    bw_sum_atomic(&tally->own_ns, call->own_ns);
    bw_histogram_count(&tally->times, call->ns);
    /* Nothing is read by a mapping or a hint. */
    if (call->operation && strcmp(call->operation, "read") == 0) {
        bw_sum_atomic(&tally->requests, call->requests);
        bw_sum_atomic(&tally->bytes, call->bytes);
    }
}

static void watch_layers(struct bw_probe_stats *stats)
{
    stats->consumer.take = take_call;
    stats->consumer.selected[BW_PROBE_fop__unwind] = true;
    stats->consumer.lazy[BW_PROBE_fop__unwind] =
        UINT64_C(1) << BW_fopinfo_bytes | UINT64_C(1) << BW_fopinfo_errors;
}

/* Both. */

struct bw_error *bw_probe_stats_create(bool by_xlator, const bool selected[BW_PROBES_MAX],
                                       struct bw_probe_stats **stats)
{
    struct bw_error *error = NULL;
    *stats = calloc(1, sizeof **stats);
    if (!*stats)
        return bw_error_no_memory();
    (*stats)->by_xlator = by_xlator;
    pthread_mutex_init(&(*stats)->adding, NULL);
    if (by_xlator)
        watch_layers(*stats);
    else
        error = watch_probes(*stats, selected);
    if (error)
        bw_probe_stats_destroy(BW_TAKE(*stats));
    return error;
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

static uint64_t now_in(const atomic_uint_fast64_t *sum)
{
    return atomic_load_explicit(sum, memory_order_relaxed);
}

static void add_up(const struct tally *tally, struct bw_stats_row *row)
{
    row->count = bw_sum(row->count, now_in(&tally->count));
    row->requests = bw_sum(row->requests, now_in(&tally->requests));
    row->errors = bw_sum(row->errors, now_in(&tally->errors));
    row->bytes = bw_sum(row->bytes, now_in(&tally->bytes));
    row->own_ns = bw_sum(row->own_ns, now_in(&tally->own_ns));
    bw_histogram_add_up(&tally->times, &row->times);
}

static struct bw_stats_row make_row(const struct bw_probe_stats *stats, const struct entry *entry,
                                    size_t place)
{
    struct bw_stats_row row = {.name = entry->name, .type = entry->type};
    row.has_errors = stats->by_xlator || stats->numbers[place].error.bit;
    row.has_bytes = stats->by_xlator || stats->numbers[place].bytes.bit;
    row.has_times = stats->by_xlator || stats->numbers[place].ns.bit;
    for (size_t shard = 0; shard < SHARDS; shard++)
        add_up(&entry->tallies[shard], &row);
    return row;
}

/* The most time first: own time of layers, which have a type, total time of probes. */
static int compare_rows(const void *a, const void *b)
{
    const struct bw_stats_row *one = a, *other = b;
    uint64_t one_time = one->type ? one->own_ns : one->times.sum;
    uint64_t other_time = other->type ? other->own_ns : other->times.sum;
    if (one_time != other_time)
        return one_time > other_time ? -1 : 1;
    int order = strcmp(one->name, other->name);
    return order || !one->type || !other->type ? order : strcmp(one->type, other->type);
}

bool bw_probe_stats_table(const struct bw_probe_stats *stats, struct bw_stats_table *table)
{
    *table = (struct bw_stats_table){.by_xlator = stats->by_xlator,
                                     .uncounted = now_in(&stats->uncounted)};
    for (size_t place = 0; place < PLACES; place++) {
        const struct entry *entry =
            atomic_load_explicit(&stats->entries[place], memory_order_acquire);
        if (!entry)
            continue;
        if (!BW_ARRAY_RESERVE(table->rows, table->count, table->capacity)) {
            free(BW_TAKE(table->rows));
            return false;
        }
        table->rows[table->count] = make_row(stats, entry, place);
        table->count += table->rows[table->count].count > 0;
    }
    if (table->count)
        qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    return true;
}
