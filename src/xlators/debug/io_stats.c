/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/io-stats: counts and times what passes between two layers, and writes a report when it is
 * taken down. Changes nothing. Stands wherever it is put, in either address space.
 *
 * It must not slow down what it measures: a call costs two looks at the clock and a few additions.
 * They go to one of several shards, chosen by processor, so that threads seldom share a cache line.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "base/json.h"
#include "probe/histogram.h"
#include "xlators/classes.h"
#include "xlators/debug/sink.h"

enum { SHARDS = 8, CACHE_LINE = 64 };

/* All numbers of a kind that are added up, in one array: so that shards are, too. The length of a
 * request has 32 bits, so its histogram needs fewer buckets than that of times. */
enum { SIZE_BUCKETS = 33 };
enum {
    REQUESTS,
    BYTES,
    ERRORS,
    SIZES, /* histogram of the length of requests */
    SUMS = SIZES + SIZE_BUCKETS,
};

/* All that is counted of one kind, by one processor. Its size is a multiple of its alignment. */
struct tally {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t sums[SUMS];
    struct bw_histogram times; /* of calls, in nanoseconds */
};

/* The same of all processors, at one time. */
struct totals {
    uint64_t sums[SUMS];
    struct bw_histogram_totals times;
};

struct io_stats {
    struct bw_sink sink;
    bool as_json;
    struct tally tallies[SHARDS][BW_REQUEST_KINDS];
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct io_stats *stats = aligned_alloc(CACHE_LINE, sizeof *stats);
    if (!stats)
        return bw_error_no_memory();
    memset(stats, 0, sizeof *stats);
    stats->as_json = bw_xlator_option_number(xlator, "format") == 1;
    bw_xlator_set_private(xlator, stats);
    return bw_sink_open(xlator, &stats->sink);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void add(atomic_uint_fast64_t *sum, uint64_t more)
{
    atomic_fetch_add_explicit(sum, more, memory_order_relaxed);
}

/* Counts the requests in front that are of one kind and about one size, which most batches are as a
 * whole. */
static size_t count_run(struct tally *tallies, const struct bw_request *requests, size_t count)
{
    enum bw_request_kind kind = requests->kind;
    unsigned bucket = bw_histogram_bucket(requests->length);
    uint64_t bytes = 0, errors = 0;
    size_t run = 0;
    for (; run < count && requests[run].kind == kind &&
           bw_histogram_bucket(requests[run].length) == bucket;
         run++) {
        bytes += requests[run].length;
        errors += requests[run].error != NULL;
    }
    add(&tallies[kind].sums[REQUESTS], run);
    add(&tallies[kind].sums[BYTES], bytes);
    add(&tallies[kind].sums[SIZES + bucket], run);
    if (errors)
        add(&tallies[kind].sums[ERRORS], errors);
    return run;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct io_stats *stats = bw_xlator_private(xlator);
    uint64_t begin = now();
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    uint64_t end = now();
    struct tally *tallies = stats->tallies[(unsigned)sched_getcpu() % SHARDS];
    /* Time is not known by kind within a batch: the call is counted for the kind of its first
     * request. */
    bw_histogram_count(&tallies[requests->kind].times, end - begin);
    for (size_t done = 0; done < count;)
        done += count_run(tallies, requests + done, count - done);
}

/* Adds up what all processors have counted. */
static struct totals total_of(struct io_stats *stats, size_t kind)
{
    struct totals totals = {0};
    for (size_t shard = 0; shard < SHARDS; shard++) {
        struct tally *tally = &stats->tallies[shard][kind];
        for (size_t i = 0; i < SUMS; i++)
            totals.sums[i] += atomic_load_explicit(&tally->sums[i], memory_order_relaxed);
        bw_histogram_add_up(&tally->times, &totals.times);
    }
    return totals;
}

static void add_histogram(struct bw_json *json, const char *name, const uint64_t *counts,
                          unsigned buckets)
{
    bw_json_begin_array(json, name);
    for (unsigned i = 0; i < buckets; i++) {
        if (!counts[i])
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "from", bw_histogram_start(i));
        bw_json_number(json, "count", counts[i]);
        bw_json_end(json);
    }
    bw_json_end(json);
}

static void add_latency(struct bw_json *json, const struct bw_histogram_totals *times)
{
    bw_json_begin_object(json, "call_nanoseconds");
    bw_json_number(json, "minimum", times->least);
    bw_json_number(json, "average", times->sum / times->count);
    bw_json_number(json, "maximum", times->most);
    add_histogram(json, "histogram", times->counts, BW_HISTOGRAM_BUCKETS);
    bw_json_end(json);
}

static void add_kind(struct bw_json *json, const char *name, const struct totals *totals)
{
    bw_json_begin_object(json, name);
    bw_json_number(json, "calls", totals->times.count);
    bw_json_number(json, "requests", totals->sums[REQUESTS]);
    bw_json_number(json, "bytes", totals->sums[BYTES]);
    bw_json_number(json, "errors", totals->sums[ERRORS]);
    bw_json_begin_object(json, "request_bytes");
    add_histogram(json, "histogram", &totals->sums[SIZES], SIZE_BUCKETS);
    bw_json_end(json);
    if (totals->times.count)
        add_latency(json, &totals->times);
    bw_json_end(json);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    bw_json_begin_object(json, "kinds");
    for (size_t kind = 0; kind < BW_REQUEST_KINDS; kind++) {
        struct totals totals = total_of(bw_xlator_private(xlator), kind);
        if (totals.sums[REQUESTS])
            add_kind(json, bw_request_kind_name((enum bw_request_kind)kind), &totals);
    }
    bw_json_end(json);
}

static void report_json(struct bw_xlator *xlator, struct bw_buffer *text)
{
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "volume", bw_xlator_name(xlator));
    dump(xlator, &json);
    bw_json_end(&json);
    bw_buffer_append_byte(text, '\n');
}

static void report_kind(struct bw_buffer *text, const char *name, const struct totals *totals)
{
    const uint64_t *sums = totals->sums;
    const struct bw_histogram_totals *times = &totals->times;
    bw_buffer_format(text,
                     "  %s: calls %" PRIu64 ", requests %" PRIu64 ", bytes %" PRIu64
                     ", errors %" PRIu64 "\n",
                     name, times->count, sums[REQUESTS], sums[BYTES], sums[ERRORS]);
    bw_buffer_format(text, "    bytes of a request\n");
    bw_histogram_draw(text, &sums[SIZES], SIZE_BUCKETS);
    if (!times->count)
        return;
    bw_buffer_format(text,
                     "    nanoseconds of a call: minimum %" PRIu64 ", average %" PRIu64
                     ", maximum %" PRIu64 "\n",
                     times->least, times->sum / times->count, times->most);
    bw_histogram_draw(text, times->counts, BW_HISTOGRAM_BUCKETS);
}

static void report_text(struct bw_xlator *xlator, struct bw_buffer *text)
{
    bw_escape_words(text, bw_xlator_name(xlator));
    bw_buffer_append_byte(text, '\n');
    for (size_t kind = 0; kind < BW_REQUEST_KINDS; kind++) {
        struct totals totals = total_of(bw_xlator_private(xlator), kind);
        if (totals.sums[REQUESTS])
            report_kind(text, bw_request_kind_name((enum bw_request_kind)kind), &totals);
    }
}

static void fini(struct bw_xlator *xlator)
{
    struct io_stats *stats = bw_xlator_private(xlator);
    if (stats && stats->sink.descriptor >= 0) {
        struct bw_buffer text = {0};
        (stats->as_json ? report_json : report_text)(xlator, &text);
        bw_sink_write(xlator, &stats->sink, &text);
        bw_sink_close(&stats->sink);
    }
    free(stats);
    bw_xlator_set_private(xlator, NULL);
}

static const char *const format_choices[] = {"text", "json", NULL};

static const struct bw_option options[] = {
    {.name = "file",
     .type = BW_OPTION_OUTPUT,
     .default_value = "-",
     .description = "where to write the report: - is stderr; a file is appended to"},
    {.name = "format",
     .type = BW_OPTION_ENUM,
     .default_value = "text",
     .description = "for people, or one line of JSON",
     .choices = format_choices},
    {0},
};

static const char page[] =
    "Counts what passes: for each kind of read the calls (batches), requests, bytes and errors, "
    "how large "
    "the "
    "requests were and how long the calls took. The report is written when the graph is taken "
    "down; a "
    "statedump holds the same numbers as they are then.\n"
    "\n"
    "Use it to find out where time goes: the difference between two places is what the layers "
    "between them "
    "take. It costs two looks at the clock a call, so it may stand in every place at once.\n"
    "\n"
    "    btrfs-walk --insert debug/io-stats@node-cache --insert debug/io-stats@device-1 image.img\n"
    "    btrfs-walk --insert debug/io-stats@verify,format=json,file=stats.json image.img\n"
    "\n"
    "Sizes and times are shown by powers of two: a line counts the values from its own up to the "
    "next. A "
    "batch that mixes kinds is counted as a call of the kind of its first request.\n";

const struct bw_xlator_class bw_debug_io_stats_class = {
    .type = "debug/io-stats",
    .description = "counts and times what passes",
    .page = page,
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
