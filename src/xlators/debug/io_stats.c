/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/io-stats: counts and times the reads between two layers, with the tallies of the probes'
 * statistics, and writes a report when it is closed. It changes nothing and works in either address
 * space. It must not slow down the measured layers: a call costs two readings of the clock and a
 * few additions.
 */
#include <inttypes.h>

#include "base/escape.h"
#include "base/json.h"
#include "probe/stats.h"
#include "xlators/classes.h"
#include "xlators/debug/sink.h"

struct io_stats {
    struct bw_sink sink;
    bool as_json;
    struct bw_tallies kinds[BW_REQUEST_KINDS];
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct io_stats *stats = bw_xlator_private(xlator);
    stats->as_json = bw_xlator_option_number(xlator, "format") == 1;
    return bw_sink_open(xlator, &stats->sink);
}

/* The time of single requests within a batch is not known: a call is counted for the kind of its
 * first request. */
static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct io_stats *stats = bw_xlator_private(xlator);
    const struct bw_probes *probes = bw_xlator_probes(xlator);
    uint64_t begin = bw_probes_now(probes);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    uint64_t end = bw_probes_now(probes);
    bw_values_add(&bw_cpu_tally(&stats->kinds[requests->kind])->times, end - begin, 1);
    /* The sizes of requests of one kind and one size together; mostly, these are all requests. */
    for (size_t first = 0, next = 0; first < count; first = next) {
        const struct bw_request *request = &requests[first];
        while (next < count && requests[next].kind == request->kind &&
               requests[next].length == request->length)
            next++;
        bw_values_add(&bw_cpu_tally(&stats->kinds[request->kind])->sizes, request->length,
                      next - first);
    }
}

/* Reporting. */

static struct bw_tally_totals total_of(const struct bw_xlator *xlator, enum bw_request_kind kind)
{
    const struct io_stats *stats = bw_xlator_private(xlator);
    struct bw_tally_totals totals = bw_tallies_total(&stats->kinds[kind]);
    totals.errors = bw_xlator_counters(xlator, kind).errors;
    return totals;
}

static void add_values(struct bw_json *json, const char *name, const struct bw_values_total *values)
{
    if (!values->count)
        return;
    bw_json_begin_object(json, name);
    bw_json_number(json, "minimum", values->least);
    bw_json_number(json, "average", values->sum / values->count);
    bw_json_number(json, "maximum", values->most);
    bw_json_end(json);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    bw_json_begin_object(json, "kinds");
    for (enum bw_request_kind kind = 0; kind < BW_REQUEST_KINDS; kind++) {
        const struct bw_tally_totals totals = total_of(xlator, kind);
        if (!totals.sizes.count)
            continue;
        bw_json_begin_object(json, bw_request_kind_name(kind));
        bw_json_number(json, "calls", totals.times.count);
        bw_json_number(json, "requests", totals.sizes.count);
        bw_json_number(json, "bytes", totals.sizes.sum);
        bw_json_number(json, "errors", totals.errors);
        add_values(json, "request_bytes", &totals.sizes);
        add_values(json, "call_nanoseconds", &totals.times);
        bw_json_end(json);
    }
    bw_json_end(json);
}

static void append_values(struct bw_buffer *text, const char *subject,
                          const struct bw_values_total *values)
{
    if (values->count)
        bw_buffer_format(text,
                         "    %s: minimum %" PRIu64 ", average %" PRIu64 ", maximum %" PRIu64 "\n",
                         subject, values->least, values->sum / values->count, values->most);
}

static void fini(struct bw_xlator *xlator)
{
    struct io_stats *stats = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    if (stats->sink.descriptor < 0)
        return;
    if (stats->as_json) {
        struct bw_json json = bw_json_start(&text, false);
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, "volume", bw_xlator_name(xlator));
        dump(xlator, &json);
        bw_json_end(&json);
        bw_buffer_append_byte(&text, '\n');
    } else {
        bw_escape_words(&text, bw_xlator_name(xlator));
        bw_buffer_append_byte(&text, '\n');
        for (enum bw_request_kind kind = 0; kind < BW_REQUEST_KINDS; kind++) {
            const struct bw_tally_totals totals = total_of(xlator, kind);
            if (!totals.sizes.count)
                continue;
            bw_buffer_format(&text,
                             "  %s: calls %" PRIu64 ", requests %" PRIu64 ", bytes %" PRIu64
                             ", errors %" PRIu64 "\n",
                             bw_request_kind_name(kind), totals.times.count, totals.sizes.count,
                             totals.sizes.sum, totals.errors);
            append_values(&text, "bytes of a request", &totals.sizes);
            append_values(&text, "nanoseconds of a call", &totals.times);
        }
    }
    bw_sink_write(xlator, &stats->sink, &text);
    bw_sink_close(xlator, &stats->sink);
}

static const char *const format_choices[] = {"text", "json", NULL};

static const struct bw_option options[] = {
    {"file", BW_OPTION_OUTPUT, "-", 0, 0,
     "where to write the report: - is stderr; a file is appended to", NULL},
    {"format", BW_OPTION_ENUM, "text", 0, 0, "text for people, or one line of JSON",
     format_choices},
    {0},
};

static const char page[] =
    "Counts the reads that pass. For each kind of read it counts the calls (batches), "
    "requests, bytes and errors, the sizes of the requests and the durations of the calls. "
    "The report is written when the graph is closed; a statedump has the same numbers at "
    "any time.\n\n"
    "Use it to find out where time is spent: the difference between two places is the time "
    "of the layers between them. A call costs only two readings of the clock, so the layer "
    "can be inserted in every place at once.\n\n"
    "    btrfs-walk --insert debug/io-stats@node-cache --insert debug/io-stats@device-1 image.img\n"
    "    btrfs-walk --insert debug/io-stats@verify,format=json,file=stats.json image.img\n\n"
    "A batch of several kinds is counted as a call of the kind of its first request.\n";

const struct bw_xlator_class bw_debug_io_stats_class = {
    .type = "debug/io-stats",
    .description = "counts and times reads",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct io_stats),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
