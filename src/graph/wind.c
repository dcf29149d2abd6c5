/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Winding: passing an operation to a layer. All common steps of calls between layers are here. An
 * operation that a layer does not implement goes to its first child. Each call gets a frame with a
 * number, which connects the records of probes; its time is taken only if a probe needs it. After a
 * read, the layer's counters increase, and errors get a hop: the layer that they have passed.
 */
#include "graph/wind.h"

#include <limits.h>

#include "base/cleanup.h"
#include "graph/graph.h"

const char *const bw_request_kind_choices[] = {
    "any",
    [1 + BW_REQUEST_SUPER] = "super",
    [1 + BW_REQUEST_TREE_BLOCK] = "tree-block",
    [1 + BW_REQUEST_DATA] = "data",
    [1 + BW_REQUEST_RAW] = "raw",
    [1 + BW_REQUEST_KINDS] = NULL,
};

const char *bw_request_kind_name(enum bw_request_kind kind)
{
    return bw_request_kind_choices[1 + kind];
}

/* The time of the calls of a layer from another one, added up by these calls; several threads may
 * run them. */
struct bw_frame_clock {
    atomic_uint_fast64_t below;
};

struct bw_frame bw_frame_above(const struct bw_frame *parent, struct bw_probes *probes)
{
    return (struct bw_frame){parent,
                             UINT_MAX,
                             bw_probes_call(probes),
                             NULL,
                             parent && parent->metadata,
                             parent && parent->reread};
}

struct bw_frame bw_frame_above_blocks(const struct bw_frame *parent, struct bw_probes *probes)
{
    struct bw_frame frame = bw_frame_above(parent, probes);
    frame.metadata = frame.reread = true;
    return frame;
}

/* A call of a layer: its frame, and the data of its probes. */
struct call {
    struct bw_frame frame;
    struct bw_frame_clock clock;
    struct bw_probes *probes;
    bool timed; /* a consumer of probes needs the time */
    uint64_t start;
    struct bw_fop_event event;
};

/* Initializes the frame; returns whether a probe needs the event. */
static bool begin_call(struct call *call, const struct bw_frame *parent,
                       const struct bw_xlator *xlator)
{
    call->probes = xlator->graph->probes;
    call->frame = bw_frame_above(parent, call->probes);
    call->frame.depth = parent ? parent->depth + 1 : 0;
    call->timed = BW_PROBE_ON(call->probes, fop__unwind);
    return call->timed || BW_PROBE_ON(call->probes, fop__wind);
}

/* Fires the probe at the beginning. The caller has set the parts of call->event that depend on the
 * operation. */
static void watch_call(struct call *call, const struct bw_frame *parent,
                       const struct bw_xlator *xlator)
{
    call->event.event = (struct bw_event){.call = call->frame.call};
    call->event.xlator = xlator->name.text;
    call->event.type = xlator->type->type;
    call->event.depth = call->frame.depth;
    call->event.parent = parent ? parent->call : 0;
    BW_PROBE(call->probes, fop__wind, wind, &call->event);
    if (call->timed) {
        atomic_init(&call->clock.below, 0);
        call->frame.clock = &call->clock;
        call->start = bw_probes_now(call->probes);
    }
}

static void end_call(struct call *call, const struct bw_frame *parent, const struct bw_error *error)
{
    if (!call->timed)
        return;
    uint64_t ns = bw_probes_now(call->probes) - call->start;
    uint64_t below = atomic_load_explicit(&call->clock.below, memory_order_relaxed);
    /* layers below may work in parallel, so the sum of their times may exceed the time that has
     * passed */
    call->event.own_ns = ns > below ? ns - below : 0;
    call->event.event.ns = ns;
    call->event.event.error = error;
    if (parent && parent->clock)
        atomic_fetch_add_explicit(&parent->clock->below, ns, memory_order_relaxed);
    BW_PROBE(call->probes, fop__unwind, unwind, &call->event);
}

void bw_wind(const struct bw_frame *parent, struct bw_xlator *xlator, struct bw_request *requests,
             size_t total)
{
    struct call call;
    if (total == 0)
        return;
    if (!xlator) {
        for (size_t i = 0; i < total; i++)
            requests[i].error =
                bw_error_create(BW_ERROR_USAGE, "internal error: a layer has no such child");
        return;
    }
    while (!xlator->type->operations.read)
        xlator = xlator->children.items[0].layer;
    if (begin_call(&call, parent, xlator)) {
        call.event = (struct bw_fop_event){.operation = "read",
                                           .kind = bw_request_kind_name(requests->kind),
                                           .requests = requests,
                                           .count = total,
                                           .address = requests->address};
        watch_call(&call, parent, xlator);
    }
    xlator->type->operations.read(&call.frame, xlator, requests, total);

    /* Counters. Nearly all batches contain requests of one kind, so totals are kept for ranges of
     * equal kinds. */
    const struct bw_error *first_error = NULL;
    for (size_t i = 0, begin; i < total;) {
        const enum bw_request_kind kind = requests[i].kind;
        struct bw_atomic_counters *counters = &xlator->counters[kind];
        uint64_t bytes = 0, errors = 0;
        for (begin = i; i < total && requests[i].kind == kind; i++) {
            bytes += requests[i].length;
            if (!requests[i].error)
                continue;
            errors++;
            if (!first_error)
                first_error = requests[i].error;
            bw_error_add_hop(requests[i].error, xlator->type->type, xlator->name.text,
                             &requests[i].address);
        }
        atomic_fetch_add_explicit(&counters->calls, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&counters->requests, i - begin, memory_order_relaxed);
        atomic_fetch_add_explicit(&counters->bytes, bytes, memory_order_relaxed);
        if (errors)
            atomic_fetch_add_explicit(&counters->errors, errors, memory_order_relaxed);
    }
    end_call(&call, parent, first_error);
}

void bw_wind_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *requests, size_t count,
                    bool (*change)(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   struct bw_request *request, struct bw_request *copy))
{
    for (size_t done = 0; done < count; done += BW_BATCH) {
        const size_t end = done + bw_next_batch(count - done);
        struct bw_request copies[BW_BATCH], *originals[BW_BATCH];
        size_t wound = 0;
        for (size_t i = done; i < end; i++) {
            copies[wound] = requests[i];
            if (change(frame, xlator, &requests[i], &copies[wound]))
                originals[wound++] = &requests[i];
        }
        bw_wind(frame, bw_xlator_child(xlator, 0), copies, wound);
        for (size_t i = 0; i < wound; i++)
            bw_request_answer(originals[i], &copies[i]);
    }
}

struct bw_error *bw_read_raw(const struct bw_frame *frame, struct bw_xlator *xlator,
                             uint64_t offset, void *buffer, size_t length)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = (uint32_t)length, .address = offset, .buffer = buffer};
    bw_wind(frame, xlator, &request, 1);
    return request.error;
}

bool bw_try_read_raw(const struct bw_frame *frame, struct bw_xlator *xlator, uint64_t offset,
                     void *buffer, size_t length)
{
    const uint64_t size = bw_xlator_size(xlator);
    if (offset > size || length > size - offset)
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_read_raw(frame, xlator, offset, buffer, length);
    return !error;
}

struct bw_error *bw_wind_map(const struct bw_frame *parent, struct bw_xlator *xlator,
                             uint64_t address, uint32_t length, unsigned mirror,
                             struct bw_map_reply *reply)
{
    struct call call;
    while (!xlator->type->operations.map) {
        if (!xlator->children.count)
            return bw_error_create(BW_ERROR_USAGE, "no layer below %s maps addresses",
                                   xlator->name.text);
        xlator = xlator->children.items[0].layer;
    }
    if (begin_call(&call, parent, xlator)) {
        call.event = (struct bw_fop_event){
            .operation = "map", .count = 1, .address = address, .length = length};
        watch_call(&call, parent, xlator);
    }
    struct bw_error *error =
        xlator->type->operations.map(&call.frame, xlator, address, length, mirror, reply);
    end_call(&call, parent, error);
    return error;
}

void bw_wind_advise(const struct bw_frame *parent, struct bw_xlator *xlator,
                    const struct bw_range *ranges, size_t total, unsigned mirror)
{
    struct call call;
    while (!xlator->type->operations.advise) {
        if (!xlator->children.count)
            return;
        xlator = xlator->children.items[0].layer;
    }
    if (begin_call(&call, parent, xlator)) {
        call.event = (struct bw_fop_event){
            .operation = "advise", .count = total, .address = total ? ranges->address : 0};
        watch_call(&call, parent, xlator);
    }
    xlator->type->operations.advise(&call.frame, xlator, ranges, total, mirror);
    end_call(&call, parent, NULL);
}

uint64_t bw_xlator_size(struct bw_xlator *xlator)
{
    while (!xlator->type->operations.size) {
        if (!xlator->children.count)
            return 0;
        xlator = xlator->children.items[0].layer;
    }
    return xlator->type->operations.size(xlator);
}

uint64_t bw_xlator_next_stored(struct bw_xlator *xlator, uint64_t address)
{
    while (!xlator->type->operations.next_stored) {
        if (!xlator->children.count || xlator->type->operations.size)
            return address < bw_xlator_size(xlator) ? address : UINT64_MAX;
        xlator = xlator->children.items[0].layer;
    }
    return xlator->type->operations.next_stored(xlator, address);
}

struct bw_counters bw_xlator_counters(const struct bw_xlator *xlator, enum bw_request_kind kind)
{
    const struct bw_atomic_counters *from = &xlator->counters[kind];
    return (struct bw_counters){
        .calls = atomic_load_explicit(&from->calls, memory_order_relaxed),
        .requests = atomic_load_explicit(&from->requests, memory_order_relaxed),
        .bytes = atomic_load_explicit(&from->bytes, memory_order_relaxed),
        .errors = atomic_load_explicit(&from->errors, memory_order_relaxed),
    };
}

/* A layer's view of itself. */

struct bw_probes *bw_xlator_probes(const struct bw_xlator *xlator)
{
    return xlator->graph->probes;
}

const struct bw_graph_inputs *bw_xlator_inputs(const struct bw_xlator *xlator)
{
    return &xlator->graph->inputs;
}

void *bw_xlator_private(const struct bw_xlator *xlator)
{
    return xlator->state;
}

const char *bw_xlator_name(const struct bw_xlator *xlator)
{
    return xlator->name.text;
}

const char *bw_xlator_type(const struct bw_xlator *xlator)
{
    return xlator->type->type;
}

size_t bw_xlator_child_count(const struct bw_xlator *xlator)
{
    return xlator->children.count;
}

struct bw_xlator *bw_xlator_child(const struct bw_xlator *xlator, size_t index)
{
    return index < xlator->children.count ? xlator->children.items[index].layer : NULL;
}

/* Messages. */

void bw_graph_report(struct bw_graph *graph, enum bw_severity severity, struct bw_error *error)
{
    BW_PROBE(graph->probes, error, report,
             &(struct bw_report_event){.error = error, .severity = severity});
    if (graph->reporter.report) {
        pthread_mutex_lock(&graph->report_lock);
        graph->reporter.report(graph->reporter.context, severity, error);
        pthread_mutex_unlock(&graph->report_lock);
    }
    bw_error_free(error);
}

void bw_xlator_report(const struct bw_xlator *xlator, enum bw_severity severity,
                      struct bw_error *error)
{
    if (!error->way)
        bw_error_add_hop(error, xlator->type->type, xlator->name.text, NULL);
    bw_graph_report(xlator->graph, severity, error);
}
