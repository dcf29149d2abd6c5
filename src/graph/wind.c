/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Winding: handing an operation to a layer. Everything that is true of every call between two layers happens
 * here and nowhere else: passing on what a layer does not implement, counting, and writing on errors which
 * layer they were born in and came through.
 */
#include "graph/instance.h"

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

static void count(struct bw_atomic_counters *counters, const struct bw_counters *more)
{
    atomic_fetch_add_explicit(&counters->calls, more->calls, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->requests, more->requests, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->bytes, more->bytes, memory_order_relaxed);
    if (more->errors)
        atomic_fetch_add_explicit(&counters->errors, more->errors, memory_order_relaxed);
}

/* A batch is of one kind nearly always, so totals are kept per run of equal kinds. */
static void account(struct bw_xlator *xlator, struct bw_request *requests, size_t total)
{
    for (size_t i = 0; i < total;) {
        enum bw_request_kind kind = requests[i].kind;
        struct bw_counters run = {.calls = 1};
        for (; i < total && requests[i].kind == kind; i++) {
            run.requests++;
            run.bytes += requests[i].length;
            if (requests[i].error) {
                run.errors++;
                bw_error_add_hop(requests[i].error, xlator->type->type, xlator->name, &requests[i].address);
            }
        }
        count(&xlator->counters[kind], &run);
    }
}

void bw_wind(const struct bw_frame *parent, struct bw_xlator *xlator, struct bw_request *requests,
             size_t total)
{
    if (total == 0)
        return;
    if (!xlator) {
        for (size_t i = 0; i < total; i++)
            requests[i].error =
                bw_error_create(BW_ERROR_USAGE, "a layer asked a child that it does not have");
        return;
    }
    while (!xlator->type->operations.read)
        xlator = xlator->children[0];
    struct bw_frame frame = {parent, parent ? parent->depth + 1 : 0};
    xlator->type->operations.read(&frame, xlator, requests, total);
    account(xlator, requests, total);
}

struct bw_error *bw_wind_map(const struct bw_frame *parent, struct bw_xlator *xlator, uint64_t address,
                             uint32_t length, unsigned copy, struct bw_map_reply *reply)
{
    while (!xlator->type->operations.map) {
        if (!xlator->child_count)
            return bw_error_create(BW_ERROR_USAGE, "no layer below %s maps addresses", xlator->name);
        xlator = xlator->children[0];
    }
    struct bw_frame frame = {parent, parent ? parent->depth + 1 : 0};
    return xlator->type->operations.map(&frame, xlator, address, length, copy, reply);
}

void bw_wind_advise(const struct bw_frame *parent, struct bw_xlator *xlator, const struct bw_range *ranges,
                    size_t total)
{
    while (!xlator->type->operations.advise) {
        if (!xlator->child_count)
            return;
        xlator = xlator->children[0];
    }
    struct bw_frame frame = {parent, parent ? parent->depth + 1 : 0};
    xlator->type->operations.advise(&frame, xlator, ranges, total);
}

uint64_t bw_xlator_size(struct bw_xlator *xlator)
{
    while (!xlator->type->operations.size) {
        if (!xlator->child_count)
            return 0;
        xlator = xlator->children[0];
    }
    return xlator->type->operations.size(xlator);
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
