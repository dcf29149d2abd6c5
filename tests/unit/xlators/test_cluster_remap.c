/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cluster/remap: ranges that have moved, requests that straddle their borders, and ranges that make
 * no sense.
 */
#include "support/fake_layer.h"

enum { SIZE = 65536 };

struct bench {
    struct bw_graph *graph;
    struct bw_xlator *top;
    struct fake_layer fake;
    uint8_t bytes[SIZE];
};

/* 4096 to 8191 lie at 32768, 8192 to 12287 at 20480, 16384 to 16483 at 50000. */
static struct bench *make_bench(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    for (size_t i = 0; i < SIZE; i++)
        bench->bytes[i] = (uint8_t)(i * 40503u >> 8);
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = SIZE};
    bench->graph = fake_graph(NULL);
    bench->top =
        add_layer(bench->graph, "cluster/remap", add_fake(bench->graph, &bench->fake), NULL);
    return bench;
}

static void add_ranges(struct bench *bench)
{
    expect_success(tell_moved(bench->top, 4096, 4096, 32768));
    expect_success(tell_moved(bench->top, 8192, 4096, 20480));
    expect_success(tell_moved(bench->top, 16384, 100, 50000));
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

static size_t moved(size_t address)
{
    if (address >= 4096 && address < 8192)
        return address - 4096 + 32768;
    if (address >= 8192 && address < 12288)
        return address - 8192 + 20480;
    return address >= 16384 && address < 16484 ? address - 16384 + 50000 : address;
}

static void check(struct bench *bench, uint64_t address, uint32_t length)
{
    uint8_t *buffer = malloc(length);
    expect_success(read_range(bench->top, address, buffer, length));
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(buffer[i], bench->bytes[moved((size_t)address + i)]);
    free(buffer);
}

static void test_ranges(void **state)
{
    struct bench *bench = make_bench();
    check(bench, 0, 100);
    bw_error_free(NULL);
    add_ranges(bench);
    static const uint64_t borders[] = {4096, 8192, 12288, 16384, 16484};
    for (size_t i = 0; i < COUNT(borders); i++)
        for (uint64_t before = 0; before <= 64; before += 16)
            for (uint32_t length = 1; length <= 256; length += 51)
                check(bench, borders[i] - before, length);
    check(bench, 0, 20000);
    check(bench, 4096, 4096);
    check(bench, 4097, 4000);
    assert_int_equal(bench->fake.reads[bench->fake.read_count - 1].address, 32769);
    free_bench(bench);
}

/* The pieces of a tree block, and of data with checksums, are raw bytes, which are verified above.
 * Pieces of data that nothing verifies must not come from older images, so they remain data. */
static void test_kinds(void **state)
{
    static const struct bw_data_expectation data;
    uint8_t buffer[200];
    struct bench *bench = make_bench();
    struct bw_request requests[] = {
        {.kind = BW_REQUEST_TREE_BLOCK},
        {.kind = BW_REQUEST_DATA, .data = &data},
        {.kind = BW_REQUEST_DATA},
    };
    static const enum bw_request_kind kinds[] = {BW_REQUEST_RAW, BW_REQUEST_RAW, BW_REQUEST_DATA};
    add_ranges(bench);
    for (size_t i = 0; i < COUNT(requests); i++) {
        const size_t first = bench->fake.read_count;
        requests[i].address = 4000;
        requests[i].length = sizeof buffer;
        requests[i].buffer = buffer;
        bw_wind(NULL, bench->top, &requests[i], 1);
        expect_success(requests[i].error);
        assert_int_equal(bench->fake.read_count, first + 2);
        assert_int_equal(bench->fake.reads[first].kind, kinds[i]);
        assert_int_equal(bench->fake.reads[first + 1].kind, kinds[i]);
    }
    free_bench(bench);
}

static void test_batch(void **state)
{
    struct bench *bench = make_bench();
    struct bw_request requests[100];
    uint8_t *buffers = malloc(100 * 300);
    add_ranges(bench);
    for (size_t i = 0; i < COUNT(requests); i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_RAW,
                                          .address = i == 50 ? SIZE - 1 : i * 180,
                                          .length = 300,
                                          .buffer = buffers + i * 300};
    bw_wind(NULL, bench->top, requests, COUNT(requests));
    for (size_t i = 0; i < COUNT(requests); i++) {
        if (i == 50) {
            expect_error(requests[i].error, BW_ERROR_CORRUPT, "behind the fake's end");
            continue;
        }
        expect_success(requests[i].error);
        for (size_t at = 0; at < 300; at++)
            assert_int_equal(((uint8_t *)requests[i].buffer)[at],
                             bench->bytes[moved(i * 180 + at)]);
    }
    free(buffers);
    free_bench(bench);
}

static void test_map_and_hints(void **state)
{
    struct bench *bench = make_bench();
    struct bw_map_reply reply;
    add_ranges(bench);
    expect_success(bw_wind_map(NULL, bench->top, 8000, 1000, 1, &reply));
    assert_int_equal(reply.location.offset, 32768 + 8000 - 4096);
    assert_int_equal(reply.length, 192);
    expect_success(bw_wind_map(NULL, bench->top, 4000, 1000, 1, &reply));
    assert_int_equal(reply.location.offset, 4000);
    assert_int_equal(reply.length, 96);
    const struct bw_range range = {4096, 4096};
    bw_wind_advise(NULL, bench->top, &range, 1, 2);
    assert_int_equal(bench->fake.hints[0].address, 32768);
    assert_int_equal(bench->fake.hint_copy, 2);
    free_bench(bench);
}

static void test_bad_ranges(void **state)
{
    static const uint64_t bad[][3] = {
        {20000, 0, 0},
        {16384, 100, 0},
        {16483, 1, 0},
        {4096, 1, 0},
        {0, 1, 0},
        {20000, UINT64_MAX, 0},
        {UINT64_MAX, 2, 0},
        {20000, 4096, UINT64_MAX - 10},
        {16400, UINT64_C(1) << 63, 0},
    };
    struct bench *bench = make_bench();
    add_ranges(bench);
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_error(tell_moved(bench->top, bad[i][0], bad[i][1], bad[i][2]), BW_ERROR_CORRUPT,
                     "invalid range");
    expect_success(tell_moved(bench->top, 16484, 1, 60000));
    check(bench, 0, 16484);
    free_bench(bench);
}
