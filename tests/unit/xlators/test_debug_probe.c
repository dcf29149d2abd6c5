/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/probe: it changes nothing, and what passes is seen under its name. */
#include "record/record_types.h"
#include "support/block_bench.h"
#include "support/debug_bench.h"

enum { EVENTS = 64, NAME = 16 };

/* The events in their order; everything runs in one thread. */
struct watcher {
    struct bw_probe_consumer consumer; /* first: take() gets it */
    struct bw_fopinfo seen[EVENTS];
    char names[EVENTS][NAME];
    bool unwound[EVENTS];
    size_t count;
};

static void take(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct watcher *watcher = (struct watcher *)consumer;
    assert_true(watcher->count < EVENTS);
    struct bw_fopinfo *record = &watcher->seen[watcher->count];
    memcpy(record, event->record, sizeof *record);
    snprintf(watcher->names[watcher->count], NAME, "%s", record->layer);
    watcher->unwound[watcher->count++] = strcmp(event->probe->name, "fop-unwind") == 0;
}

struct probe_bench {
    struct watcher watcher;
    struct bw_probes *probes;
    struct block_bench *blocks;
    struct bw_graph *graph;
    struct bw_xlator *top;
    uint8_t buffer[3][BENCH_NODESIZE];
};

/* debug/probe (layer-1) above memory (layer-0), and a consumer of all calls. */
static struct probe_bench *make_bench(const char *each)
{
    struct probe_bench *bench = calloc(1, sizeof *bench);
    bench->watcher.consumer.visit = take;
    expect_success(bw_probes_create(&bench->probes));
    expect_success(bw_probes_select("fop-*", bench->watcher.consumer.selected));
    bw_probes_add(bench->probes, &bench->watcher.consumer);
    bench->blocks = block_bench_create(2, BW_CHECKSUM_CRC32C);
    bench->graph = fake_graph(NULL);
    bench->graph->probes = bench->probes;
    const struct option_value options[] = {{each ? "each" : NULL, each}, {0}};
    bench->top = add_layer(bench->graph, "debug/probe",
                           add_fake(bench->graph, &bench->blocks->fake), options);
    return bench;
}

static void free_bench(struct probe_bench *bench)
{
    bw_graph_destroy(bench->graph);
    bw_probes_destroy(bench->probes);
    block_bench_free(bench->blocks);
    free(bench);
}

/* Three blocks, of which the second asks for a copy that is broken. */
static void read_three(struct probe_bench *bench)
{
    struct bw_request requests[3];
    bench->blocks->fake.broken[1] = true;
    for (size_t i = 0; i < COUNT(requests); i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_TREE_BLOCK,
                                          .mirror = i == 1 ? 2 : 0,
                                          .length = BENCH_NODESIZE,
                                          .address = (9 - i) * BENCH_NODESIZE,
                                          .buffer = bench->buffer[i]};
    bw_wind(NULL, bench->top, requests, COUNT(requests));
    expect_success(requests[0].error);
    expect_error(requests[1].error, BW_ERROR_SYSTEM, "fake copy 2 is broken");
    expect_success(requests[2].error);
    assert_memory_equal(bench->buffer[2], block_bench_bytes(bench->blocks, 1, 7), BENCH_NODESIZE);
    assert_int_equal(bench->blocks->fake.read_count, 3);
}

/* One line an event. */
static char *describe(const struct watcher *watcher)
{
    struct bw_buffer text = {0};
    for (size_t i = 0; i < watcher->count; i++) {
        const struct bw_fopinfo *seen = &watcher->seen[i];
        bw_buffer_format(&text, "%s %s %s %s %d at %d", watcher->names[i],
                         watcher->unwound[i] ? "<" : ">", seen->operation,
                         seen->request_kind ? seen->request_kind : "-", (int)seen->requests,
                         (int)seen->address / BENCH_NODESIZE);
        bw_buffer_format(&text, " call %d in %d error %s\n", (int)seen->call,
                         (int)seen->parent_call, seen->error ? "yes" : "no");
    }
    bw_buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    return text.data;
}

static void expect_events(const struct watcher *watcher, const char *wanted)
{
    char *text = describe(watcher);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_batch(void **state)
{
    struct probe_bench *bench = make_bench(NULL);
    read_three(bench);
    assert_int_equal(bench->blocks->fake.calls, 1);
    expect_events(&bench->watcher, "layer-1 > read tree-block 3 at 9 call 1 in 0 error no\n"
                                   "layer-0 > read tree-block 3 at 9 call 2 in 1 error no\n"
                                   "layer-0 < read tree-block 3 at 9 call 2 in 1 error yes\n"
                                   "layer-1 < read tree-block 3 at 9 call 1 in 0 error yes\n");
    free_bench(bench);
}

static void test_each(void **state)
{
    struct probe_bench *bench = make_bench("on");
    read_three(bench);
    assert_int_equal(bench->blocks->fake.calls, 3);
    expect_events(&bench->watcher, "layer-1 > read tree-block 3 at 9 call 1 in 0 error no\n"
                                   "layer-0 > read tree-block 1 at 9 call 2 in 1 error no\n"
                                   "layer-0 < read tree-block 1 at 9 call 2 in 1 error no\n"
                                   "layer-0 > read tree-block 1 at 8 call 3 in 1 error no\n"
                                   "layer-0 < read tree-block 1 at 8 call 3 in 1 error yes\n"
                                   "layer-0 > read tree-block 1 at 7 call 4 in 1 error no\n"
                                   "layer-0 < read tree-block 1 at 7 call 4 in 1 error no\n"
                                   "layer-1 < read tree-block 3 at 9 call 1 in 0 error yes\n");
    free_bench(bench);
}

static void test_other_operations(void **state)
{
    struct probe_bench *bench = make_bench("off");
    expect_passes(bench->top, &bench->blocks->fake);
    expect_events(&bench->watcher, "layer-1 > map - 1 at 2 call 1 in 0 error no\n"
                                   "layer-0 > map - 1 at 2 call 2 in 1 error no\n"
                                   "layer-0 < map - 1 at 2 call 2 in 1 error no\n"
                                   "layer-1 < map - 1 at 2 call 1 in 0 error no\n"
                                   "layer-1 > advise - 1 at 1 call 3 in 0 error no\n"
                                   "layer-0 > advise - 1 at 1 call 4 in 3 error no\n"
                                   "layer-0 < advise - 1 at 1 call 4 in 3 error no\n"
                                   "layer-1 < advise - 1 at 1 call 3 in 0 error no\n");
    free_bench(bench);
}

static void test_times_add_up(void **state)
{
    struct probe_bench *bench = make_bench("on");
    read_three(bench);
    uint64_t below = 0, own = 0, last = bench->watcher.count - 1;
    for (size_t i = 0; i <= last; i++) {
        own += bench->watcher.seen[i].own_ns;
        below += i < last ? bench->watcher.seen[i].ns : 0;
    }
    assert_int_equal(bench->watcher.seen[last].ns, own);
    assert_int_equal(bench->watcher.seen[last].own_ns, bench->watcher.seen[last].ns - below);
    free_bench(bench);
}

static void test_devices(void **state)
{
    struct probe_bench *bench = make_bench(NULL);
    struct fake_layer device = {.size = 5};
    struct bw_xlator *top =
        add_layer(bench->graph, "debug/probe", add_fake_device(bench->graph, &device), NULL);
    bw_wind(NULL, top, NULL, 0);
    assert_int_equal(bench->watcher.count, 0);
    assert_int_equal(device.calls, 0);
    expect_error(try_option(bench->graph, "debug/probe", top, "each", "some"), BW_ERROR_USAGE,
                 "each");
    free_bench(bench);
}
