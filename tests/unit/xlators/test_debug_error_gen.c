/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/error-gen: which requests a rule affects. test_debug_error_actions.c tests the effects. */
#include <errno.h>
#include <inttypes.h>

#include "support/block_bench.h"
#include "support/debug_bench.h"
#include "xlators/classes.h"

enum { COPIES = 3 };

struct rule_bench {
    struct block_bench *blocks;
    struct bw_graph *graph;
    struct bw_xlator *top;
    uint8_t buffer[BENCH_NODESIZE];
};

/* A rule above logical addresses, with any number of options. */
static struct rule_bench *make_bench(const struct option_value *options)
{
    struct rule_bench *bench = calloc(1, sizeof *bench);
    bench->blocks = block_bench_create(COPIES, BW_CHECKSUM_CRC32C);
    bench->graph = fake_graph(NULL);
    bench->top = add_layer(bench->graph, "debug/error-gen",
                           add_fake(bench->graph, &bench->blocks->fake), options);
    return bench;
}

static void free_bench(struct rule_bench *bench)
{
    bw_graph_destroy(bench->graph);
    block_bench_free(bench->blocks);
    free(bench);
}

/* Whether a request is hit; one that is not must get its bytes. */
static bool is_hit(struct rule_bench *bench, enum bw_request_kind kind, uint64_t address,
                   uint32_t length, uint8_t copy)
{
    char wanted[80];
    size_t before = bench->blocks->fake.calls;
    struct bw_request request = {.kind = kind,
                                 .mirror = copy,
                                 .length = length,
                                 .address = address,
                                 .buffer = bench->buffer};
    bench->blocks->fake.read_count = 0;
    bw_wind(NULL, bench->top, &request, 1);
    bool hit = request.error && strstr(request.error->message, "injected");
    assert_int_equal(bench->blocks->fake.calls - before, !hit);
    if (hit) {
        assert_int_equal(request.error->system, EIO);
        snprintf(wanted, sizeof wanted, "injected I/O error at %" PRIu64 ": Input/output error",
                 address);
        expect_error(request.error, BW_ERROR_SYSTEM, wanted);
    } else if (!request.error) {
        assert_memory_equal(bench->buffer, bench->blocks->copies[copy ? copy - 1 : 0] + address,
                            length);
    }
    if (!hit)
        bw_error_free(request.error);
    return hit;
}

static bool raw_is_hit(struct rule_bench *bench, uint64_t address, uint32_t length)
{
    return is_hit(bench, BW_REQUEST_RAW, address, length, 0);
}

static uint64_t matches(const struct rule_bench *bench)
{
    return dump_number(&bw_debug_error_gen_class, bench->top, "matches");
}

static uint64_t faults(const struct rule_bench *bench)
{
    return dump_number(&bw_debug_error_gen_class, bench->top, "faults");
}

static void test_kinds(void **state)
{
    static const char *const choices[] = {"super", "tree-block", "data", "raw", "any"};
    for (size_t choice = 0; choice < COUNT(choices); choice++) {
        const struct option_value options[] = {{"kind", choices[choice]}, {0}};
        struct rule_bench *bench = make_bench(options);
        for (unsigned kind = 0; kind < BW_REQUEST_KINDS; kind++)
            assert_int_equal(is_hit(bench, (enum bw_request_kind)kind, 4096, 512, 0),
                             choice == 4 || choice == kind);
        assert_int_equal(faults(bench), choice == 4 ? 4 : 1);
        assert_int_equal(matches(bench), choice == 4 ? 4 : 1);
        free_bench(bench);
    }
}

/* A request is hit if any of its bytes is in the range. */
static void test_range(void **state)
{
    const struct option_value options[] = {{"start", "8K"}, {"end", "12K"}, {0}};
    struct rule_bench *bench = make_bench(options);
    assert_false(raw_is_hit(bench, 0, 4096));
    assert_false(raw_is_hit(bench, 4096, 4096));
    assert_true(raw_is_hit(bench, 8191, 2));
    assert_false(raw_is_hit(bench, 8191, 1));
    assert_true(raw_is_hit(bench, 8192, 1));
    assert_true(raw_is_hit(bench, 9000, 10));
    assert_true(raw_is_hit(bench, 12287, 1));
    assert_true(raw_is_hit(bench, 12287, 4096));
    assert_false(raw_is_hit(bench, 12288, 1));
    assert_false(raw_is_hit(bench, UINT64_MAX, 4096));
    free_bench(bench);
}

static void test_open_ranges(void **state)
{
    const struct option_value from[] = {{"start", "8K"}, {0}}, to[] = {{"end", "8K"}, {0}};
    struct rule_bench *bench = make_bench(from);
    assert_false(raw_is_hit(bench, 8191, 1));
    assert_true(raw_is_hit(bench, 8191, 2));
    assert_true(raw_is_hit(bench, UINT64_MAX - 1, 1));
    assert_true(raw_is_hit(bench, UINT64_MAX - 100, UINT32_MAX));
    assert_true(raw_is_hit(bench, UINT64_MAX - 100, 4096));
    free_bench(bench);
    bench = make_bench(to);
    assert_true(raw_is_hit(bench, 0, 1));
    assert_true(raw_is_hit(bench, 8191, 1));
    assert_false(raw_is_hit(bench, 8192, 1));
    assert_false(raw_is_hit(bench, UINT64_MAX - 100, UINT32_MAX));
    free_bench(bench);
}

/* Who takes any copy asks for the first. */
static void test_copies(void **state)
{
    static const char *const choices[] = {"0", "1", "2", "3"};
    for (uint8_t choice = 0; choice < COUNT(choices); choice++) {
        const struct option_value options[] = {{"mirror", choices[choice]}, {0}};
        struct rule_bench *bench = make_bench(options);
        for (uint8_t copy = 0; copy <= COPIES; copy++)
            assert_int_equal(is_hit(bench, BW_REQUEST_TREE_BLOCK, 0, 4096, copy),
                             choice == 0 || choice == (copy ? copy : 1));
        free_bench(bench);
    }
}

/* Which of ten requests are hit, as bits; each second one is none that the rule is for. */
static unsigned hits_of_ten(const char *nth, const char *once)
{
    const struct option_value options[] = {{"nth", nth}, {"once", once}, {"start", "4K"}, {0}};
    struct rule_bench *bench = make_bench(options);
    unsigned hits = 0;
    for (unsigned i = 0; i < 10; i++) {
        assert_false(raw_is_hit(bench, 0, 4096));
        hits |= (unsigned)raw_is_hit(bench, 4096, 4096) << i;
    }
    assert_int_equal(matches(bench), 10);
    assert_int_equal(faults(bench), __builtin_popcount(hits));
    free_bench(bench);
    return hits;
}

static void test_nth_and_once(void **state)
{
    assert_int_equal(hits_of_ten("0", "off"), 0x3ff);
    assert_int_equal(hits_of_ten("1", "off"), 0x3ff);
    assert_int_equal(hits_of_ten("3", "off"), 0x124);
    assert_int_equal(hits_of_ten("10", "off"), 0x200);
    assert_int_equal(hits_of_ten("11", "off"), 0);
    assert_int_equal(hits_of_ten("0", "on"), 1);
    assert_int_equal(hits_of_ten("1", "on"), 1);
    assert_int_equal(hits_of_ten("3", "on"), 4);
}

/* Batches. */

enum { BATCH = 3 * BW_BATCH + 8 };

/* One batch with a request a block; which ones are hit. */
static void read_batch(struct rule_bench *bench, bool *hits)
{
    struct bw_request requests[BATCH];
    uint8_t *buffers = calloc(BATCH, 512);
    for (size_t i = 0; i < BATCH; i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_DATA,
                                          .length = 512,
                                          .address = i * BENCH_NODESIZE,
                                          .buffer = buffers + i * 512};
    bw_wind(NULL, bench->top, requests, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        hits[i] = requests[i].error;
        if (hits[i])
            expect_error(requests[i].error, BW_ERROR_SYSTEM, "injected I/O error");
        else
            assert_memory_equal(requests[i].buffer, block_bench_bytes(bench->blocks, 1, i), 512);
    }
    free(buffers);
}

/* Unaffected requests are passed on together, each with its own result. */
static void test_batch(void **state)
{
    bool hits[BATCH];
    const struct option_value options[] = {{"nth", "5"}, {0}};
    struct rule_bench *bench = make_bench(options);
    read_batch(bench, hits);
    for (size_t i = 0; i < BATCH; i++)
        assert_int_equal(hits[i], (i + 1) % 5 == 0);
    assert_int_equal(bench->blocks->fake.calls, 4);
    assert_int_equal(bench->blocks->fake.read_count, BATCH - BATCH / 5);
    free_bench(bench);
}

static void test_batch_that_is_not_hit(void **state)
{
    bool hits[BATCH];
    const struct option_value options[] = {{"kind", "raw"}, {0}}, all[] = {{0}};
    struct rule_bench *bench = make_bench(options);
    read_batch(bench, hits);
    assert_int_equal(bench->blocks->fake.calls, 1);
    assert_int_equal(bench->blocks->fake.read_count, BATCH);
    free_bench(bench);
    bench = make_bench(all);
    read_batch(bench, hits);
    assert_int_equal(bench->blocks->fake.calls, 0);
    assert_int_equal(faults(bench), BATCH);
    free_bench(bench);
}

/* An error from below comes up beside those made here. */
static void test_errors_from_below(void **state)
{
    const struct option_value options[] = {{"end", "4K"}, {0}};
    struct rule_bench *bench = make_bench(options);
    struct bw_request requests[2] = {{.kind = BW_REQUEST_RAW, .length = 8, .buffer = bench->buffer},
                                     {.kind = BW_REQUEST_RAW,
                                      .length = 8,
                                      .mirror = 2,
                                      .address = 8192,
                                      .buffer = bench->buffer}};
    bench->blocks->fake.broken[1] = true;
    bw_wind(NULL, bench->top, requests, 2);
    expect_error(requests[0].error, BW_ERROR_SYSTEM, "injected I/O error");
    expect_error(requests[1].error, BW_ERROR_SYSTEM, "fake copy 2 is broken");
    free_bench(bench);
}

/* Rates. */

struct hit_set {
    bool hit[BENCH_BLOCKS];
    size_t count;
};

static struct hit_set hits_of_rate(const char *rate, const char *seed, enum bw_request_kind kind,
                                   uint8_t copy, bool backwards)
{
    struct hit_set set = {0};
    const struct option_value options[] = {{"rate", rate}, {"seed", seed}, {0}};
    struct rule_bench *bench = make_bench(options);
    for (size_t i = 0; i < BENCH_BLOCKS; i++) {
        size_t block = backwards ? BENCH_BLOCKS - 1 - i : i;
        set.hit[block] = is_hit(bench, kind, block * BENCH_NODESIZE, 512, copy);
        set.count += set.hit[block];
    }
    assert_int_equal(faults(bench), set.count);
    free_bench(bench);
    return set;
}

static void test_rates(void **state)
{
    assert_int_equal(hits_of_rate("0", "1", BW_REQUEST_RAW, 0, false).count, 0);
    assert_int_equal(hits_of_rate("100%", "1", BW_REQUEST_RAW, 0, false).count, BENCH_BLOCKS);
    struct hit_set tenth = hits_of_rate("10%", "1", BW_REQUEST_RAW, 0, false);
    struct hit_set half = hits_of_rate("50%", "1", BW_REQUEST_RAW, 0, false);
    assert_true(tenth.count > BENCH_BLOCKS / 10 - 40 && tenth.count < BENCH_BLOCKS / 10 + 40);
    assert_true(half.count > BENCH_BLOCKS / 2 - 70 && half.count < BENCH_BLOCKS / 2 + 70);
    /* More is worse in no other place. */
    for (size_t i = 0; i < BENCH_BLOCKS; i++)
        assert_true(half.hit[i] || !tenth.hit[i]);
}

/* The same seed hits the same places, in any order; seed, kind and copy each make a difference. */
static void test_seeds(void **state)
{
    struct hit_set first = hits_of_rate("20%", "7", BW_REQUEST_DATA, 1, false);
    struct hit_set again = hits_of_rate("20%", "7", BW_REQUEST_DATA, 1, true);
    assert_memory_equal(first.hit, again.hit, sizeof first.hit);
    again = hits_of_rate("20%", "7", BW_REQUEST_DATA, 0, true);
    assert_memory_equal(first.hit, again.hit, sizeof first.hit);
    again = hits_of_rate("20%", "8", BW_REQUEST_DATA, 1, false);
    assert_memory_not_equal(first.hit, again.hit, sizeof first.hit);
    again = hits_of_rate("20%", "7", BW_REQUEST_RAW, 1, false);
    assert_memory_not_equal(first.hit, again.hit, sizeof first.hit);
    again = hits_of_rate("20%", "7", BW_REQUEST_DATA, 2, false);
    assert_memory_not_equal(first.hit, again.hit, sizeof first.hit);
}

/* A batch is hit in the places its requests would be hit in one by one. */
static void test_rate_in_batches(void **state)
{
    bool hits[BATCH];
    struct hit_set single = hits_of_rate("20%", "7", BW_REQUEST_DATA, 0, false);
    const struct option_value options[] = {{"rate", "20%"}, {"seed", "7"}, {0}};
    struct rule_bench *bench = make_bench(options);
    read_batch(bench, hits);
    assert_memory_equal(hits, single.hit, sizeof hits);
    free_bench(bench);
}

/* nth counts what the rate has left over. */
static void test_rate_and_nth(void **state)
{
    bool all[BATCH], third[BATCH];
    size_t seen = 0;
    const struct option_value rate[] = {{"rate", "30%"}, {0}};
    const struct option_value both[] = {{"rate", "30%"}, {"nth", "3"}, {0}};
    struct rule_bench *bench = make_bench(rate), *other = make_bench(both);
    read_batch(bench, all);
    read_batch(other, third);
    for (size_t i = 0; i < BATCH; i++) {
        seen += all[i];
        assert_int_equal(third[i], all[i] && seen % 3 == 0);
    }
    assert_true(seen > 30);
    free_bench(bench);
    free_bench(other);
}

static void test_passes(void **state)
{
    struct rule_bench *bench = make_bench(NULL);
    expect_passes(bench->top, &bench->blocks->fake);
    free_bench(bench);
}

/* Below the chunk map addresses are offsets on a device. */
static void test_devices(void **state)
{
    static const uint8_t bytes[64] = "bytes";
    uint8_t buffer[16];
    struct fake_layer fake = {.copies = {bytes}, .size = sizeof bytes};
    const struct option_value options[] = {{"start", "32"}, {"end", "33"}, {0}};
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *top =
        add_layer(graph, "debug/error-gen", add_fake_device(graph, &fake), options);
    expect_success(read_range(top, 0, buffer, 16));
    assert_memory_equal(buffer, bytes, 16);
    expect_error(read_range(top, 30, buffer, 16), BW_ERROR_SYSTEM, "injected I/O error");
    bw_graph_destroy(graph);
}

enum { ROUNDS = 7000 };

static void read_in_thread(struct bw_xlator *top, unsigned thread)
{
    uint8_t buffers[3][8];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct bw_request requests[3];
        for (size_t i = 0; i < COUNT(requests); i++)
            requests[i] = (struct bw_request){.kind = BW_REQUEST_RAW,
                                              .length = 8,
                                              .address = (thread * ROUNDS + round) * 3 + i,
                                              .buffer = buffers[i]};
        bw_wind(NULL, top, requests, COUNT(requests));
        for (size_t i = 0; i < COUNT(requests); i++)
            bw_error_free(requests[i].error);
    }
}

static uint64_t faults_of_threads(const struct option_value *options)
{
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *top = add_layer(graph, "debug/error-gen", graph->layers.items[0], options);
    run_threads(read_in_thread, top);
    uint64_t count = dump_number(&bw_debug_error_gen_class, top, "faults");
    assert_int_equal(bw_xlator_counters(top, BW_REQUEST_RAW).errors, count);
    bw_graph_destroy(graph);
    return count;
}

/* Threads share the count, and a rate hits the same places as without threads. */
static void test_threads(void **state)
{
    const struct option_value nth[] = {{"nth", "7"}, {0}}, once[] = {{"once", "on"}, {0}};
    const struct option_value rate[] = {{"rate", "10%"}, {"seed", "3"}, {0}};
    assert_int_equal(faults_of_threads(nth), THREADS * ROUNDS * 3 / 7);
    assert_int_equal(faults_of_threads(once), 1);
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *top = add_layer(graph, "debug/error-gen", graph->layers.items[0], rate);
    for (unsigned thread = 0; thread < THREADS; thread++)
        read_in_thread(top, thread);
    assert_int_equal(faults_of_threads(rate),
                     dump_number(&bw_debug_error_gen_class, top, "faults"));
    bw_graph_destroy(graph);
}
