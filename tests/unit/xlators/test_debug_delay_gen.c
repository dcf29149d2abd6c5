/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/delay-gen: how long it means to wait, exactly; and that it waits at least as long. */
#include <time.h>

#include "base/hash_mix.h"
#include "support/block_bench.h"
#include "support/debug_bench.h"
#include "xlators/classes.h"

enum { ADDRESSES = 1000 };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t delayed_requests(struct bw_xlator *top)
{
    return dump_number(&bw_debug_delay_gen_class, top, "delayed_requests");
}

static uint64_t delay_so_far(struct bw_xlator *top)
{
    return dump_number(&bw_debug_delay_gen_class, top, "delay_nanoseconds");
}

static struct bw_graph *make_graph(const struct option_value *options, struct bw_xlator **top)
{
    struct bw_graph *graph = threads_graph(NULL);
    *top = add_layer(graph, "debug/delay-gen", graph->layers.items[0], options);
    return graph;
}

/* Each request of a batch adds its delay. */
static void test_fixed(void **state)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    const struct option_value options[] = {{"delay", "2ms"}, {0}};
    struct bw_graph *graph = make_graph(options, &top);
    struct bw_request requests[5];
    for (size_t i = 0; i < COUNT(requests); i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_DATA, .length = 16, .address = i, .buffer = buffer};
    uint64_t begin = now();
    bw_wind(NULL, top, requests, COUNT(requests));
    assert_true(now() - begin >= 10000000);
    assert_int_equal(delay_so_far(top), 10000000);
    assert_int_equal(delayed_requests(top), 5);
    begin = now();
    expect_success(read_range(top, 0, buffer, 16));
    assert_true(now() - begin >= 2000000);
    assert_int_equal(delay_so_far(top), 12000000);
    assert_int_equal(buffer[15], 1);
    bw_graph_destroy(graph);
}

/* More than a second, which the clock's two numbers share. */
static void test_more_than_a_second(void **state)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    const struct option_value options[] = {{"delay", "1100ms"}, {0}};
    struct bw_graph *graph = make_graph(options, &top);
    uint64_t begin = now();
    expect_success(read_range(top, 0, buffer, 16));
    assert_true(now() - begin >= 1100000000);
    bw_graph_destroy(graph);
}

static void test_default_delay(void **state)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    struct bw_graph *graph = make_graph(NULL, &top);
    expect_success(read_range(top, 0, buffer, 16));
    assert_int_equal(delay_so_far(top), 1000000);
    bw_graph_destroy(graph);
}

/* Only requests of the chosen kind wait; all are answered. */
static void test_kinds(void **state)
{
    static const char *const choices[] = {"super", "tree-block", "data", "raw", "any"};
    for (size_t choice = 0; choice < COUNT(choices); choice++) {
        uint8_t buffers[4][16];
        struct bw_xlator *top;
        const struct option_value options[] = {{"delay", "1us"}, {"kind", choices[choice]}, {0}};
        struct bw_graph *graph = make_graph(options, &top);
        for (unsigned kind = 0; kind < BW_REQUEST_KINDS; kind++) {
            uint64_t before = delayed_requests(top);
            struct bw_request request = {
                .kind = (enum bw_request_kind)kind, .length = 16, .buffer = buffers[kind]};
            bw_wind(NULL, top, &request, 1);
            expect_success(request.error);
            assert_int_equal(buffers[kind][0], 1);
            assert_int_equal(delayed_requests(top) - before, choice == 4 || choice == kind);
        }
        assert_int_equal(delay_so_far(top), choice == 4 ? 4000 : 1000);
        bw_graph_destroy(graph);
    }
}

/* The delays of addresses 0, 4096, ... read one after the other, or from the last to the first. */
static void find_delays(const char *distribution, const char *seed, bool backwards,
                        uint64_t *delays)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    const struct option_value options[] = {
        {"delay", "1us"}, {"distribution", distribution}, {"seed", seed}, {0}};
    struct bw_graph *graph = make_graph(options, &top);
    for (size_t i = 0; i < ADDRESSES; i++) {
        size_t number = backwards ? ADDRESSES - 1 - i : i;
        uint64_t before = delay_so_far(top);
        expect_success(read_range(top, number * 4096, buffer, 16));
        delays[number] = delay_so_far(top) - before;
    }
    bw_graph_destroy(graph);
}

static size_t count_between(const uint64_t *delays, uint64_t least, uint64_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < ADDRESSES; i++)
        count += delays[i] >= least && delays[i] <= most;
    return count;
}

static uint64_t sum_of(const uint64_t *delays)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ADDRESSES; i++)
        sum += delays[i];
    return sum;
}

static void test_uniform(void **state)
{
    uint64_t delays[ADDRESSES];
    find_delays("uniform", "1", false, delays);
    assert_int_equal(count_between(delays, 0, 2000), ADDRESSES);
    for (uint64_t part = 0; part < 4; part++) {
        size_t count = count_between(delays, part * 500, part * 500 + 499);
        assert_true(count > 200 && count < 300);
    }
}

/* With a mean of 1000, the shares match the distribution. */
static void test_exponential(void **state)
{
    uint64_t delays[ADDRESSES];
    find_delays("exponential", "1", false, delays);
    uint64_t mean = sum_of(delays) / ADDRESSES;
    assert_true(mean > 900 && mean < 1100);
    assert_int_equal(count_between(delays, 0, 10000), ADDRESSES);
    size_t below_half = count_between(delays, 0, 692),
           above_three = count_between(delays, 3000, 10000);
    assert_true(below_half > 450 && below_half < 550);
    assert_true(above_three > 25 && above_three < 80);
}

/* The longest delays, so rare that one has to be looked for, are cut at ten times the mean. */
static void test_longest_exponential(void **state)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    uint64_t address = 0;
    const struct option_value options[] = {
        {"delay", "1us"}, {"distribution", "exponential"}, {"seed", "5"}, {0}};
    struct bw_graph *graph = make_graph(options, &top);
    while (bw_hash_address(5, address) >> 48)
        address++;
    expect_success(read_range(top, address, buffer, 16));
    assert_int_equal(delay_so_far(top), 10000);
    bw_graph_destroy(graph);
}

/* The seed and the address decide, and nothing else. */
static void test_determinism(void **state)
{
    static const char *const distributions[] = {"uniform", "exponential"};
    for (size_t i = 0; i < COUNT(distributions); i++) {
        uint64_t first[ADDRESSES], again[ADDRESSES], other[ADDRESSES];
        find_delays(distributions[i], "7", false, first);
        find_delays(distributions[i], "7", true, again);
        find_delays(distributions[i], "8", false, other);
        assert_memory_equal(first, again, sizeof first);
        assert_memory_not_equal(first, other, sizeof first);
        assert_memory_not_equal(first, first + 1, sizeof first - sizeof *first);
    }
}

static void test_range_of_delays(void **state)
{
    uint8_t buffer[16];
    struct bw_xlator *top;
    const struct option_value none[] = {{"delay", "0"}, {"distribution", "exponential"}, {0}};
    struct bw_graph *graph = make_graph(none, &top);
    struct bw_xlator *child = graph->layers.items[0];
    expect_success(read_range(top, 0, buffer, 16));
    assert_int_equal(delayed_requests(top), 1);
    assert_int_equal(delay_so_far(top), 0);
    expect_error(try_option(graph, "debug/delay-gen", child, "delay", "61s"), BW_ERROR_USAGE,
                 "'61s'");
    expect_error(try_option(graph, "debug/delay-gen", child, "delay", "5"), BW_ERROR_USAGE,
                 "a time like 10ms");
    expect_success(try_option(graph, "debug/delay-gen", child, "delay", "1m"));
    bw_graph_destroy(graph);
}

/* A batch is passed on unchanged, in either address space. */
static void test_passes(void **state)
{
    struct block_bench *blocks = block_bench_create(3, BW_CHECKSUM_CRC32C);
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"delay", "1ns"}, {0}};
    struct bw_xlator *top =
        add_layer(graph, "debug/delay-gen", add_fake(graph, &blocks->fake), options);
    struct bw_xlator *device =
        add_layer(graph, "debug/delay-gen", add_fake_device(graph, &blocks->fake), options);
    uint8_t buffer[16];
    struct bw_request requests[200];
    for (size_t i = 0; i < COUNT(requests); i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_RAW, .length = 16, .buffer = buffer};
    bw_wind(NULL, top, requests, COUNT(requests));
    assert_int_equal(blocks->fake.calls, 1);
    assert_int_equal(blocks->fake.read_count, 200);
    expect_passes(top, &blocks->fake);
    blocks->fake.broken[0] = true;
    expect_error(read_range(device, 0, buffer, 16), BW_ERROR_SYSTEM, "fake copy 1 is broken");
    assert_int_equal(delay_so_far(device), 1);
    bw_graph_destroy(graph);
    block_bench_free(blocks);
}

static void read_in_thread(struct bw_xlator *top, unsigned thread)
{
    uint8_t buffer[16];
    for (uint64_t i = 0; i < 200; i++)
        bw_error_free(read_range(top, i * THREADS + thread, buffer, 16));
}

static void test_threads(void **state)
{
    struct bw_xlator *top;
    const struct option_value options[] = {{"delay", "100ns"}, {0}};
    struct bw_graph *graph = make_graph(options, &top);
    run_threads(read_in_thread, top);
    assert_int_equal(delayed_requests(top), 200 * THREADS);
    assert_int_equal(delay_so_far(top), 20000 * THREADS);
    bw_graph_destroy(graph);
}
