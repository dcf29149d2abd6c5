/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/concat: which part each request reaches, especially at the borders between parts. */
#include "graph/graph.h"
#include "support/fake_layer.h"

enum { PARTS = 4, WHOLE = 10000 };

static const uint64_t sizes[PARTS] = {3000, 0, 1, 6999};

struct bench {
    struct fake_layer fakes[PARTS];
    uint8_t bytes[WHOLE];
    struct bw_graph *graph;
    struct bw_xlator *parts[PARTS], *concat;
};

static struct bw_error *try_concat(struct bench *bench)
{
    const struct layer layer = {
        .type = "layout/concat", .name = "concat", .children = bench->parts, .child_count = PARTS};
    return graph_add(bench->graph, &layer, &bench->concat);
}

static struct bench *make_parts(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uint64_t begin = 0;
    for (size_t i = 0; i < WHOLE; i++)
        bench->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    bench->graph = fake_graph(NULL);
    for (size_t i = 0; i < PARTS; begin += sizes[i++]) {
        bench->fakes[i] = (struct fake_layer){.copies = {bench->bytes + begin}, .size = sizes[i]};
        bench->parts[i] = add_fake_device(bench->graph, &bench->fakes[i]);
    }
    return bench;
}

static struct bench *make_bench(void)
{
    struct bench *bench = make_parts();
    expect_success(try_concat(bench));
    assert_int_equal(bw_xlator_size(bench->concat), WHOLE);
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

/* Every range around the borders, and none beyond the end. */
static void test_borders(void **state)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 100, 7001, WHOLE};
    struct bench *bench = make_bench();
    uint8_t buffer[WHOLE];
    for (uint64_t address = 2990; address < 3010; address++) {
        for (size_t i = 0; i < COUNT(lengths); i++) {
            bool inside = lengths[i] <= WHOLE - address;
            struct bw_error *error = read_range(bench->concat, address, buffer, lengths[i]);
            if (inside) {
                expect_success(error);
                assert_memory_equal(buffer, bench->bytes + address, lengths[i]);
            } else {
                expect_error(error, BW_ERROR_CORRUPT, "the parts end at 10000, before the end of");
            }
        }
    }
    expect_success(read_range(bench->concat, 0, buffer, WHOLE));
    assert_memory_equal(buffer, bench->bytes, WHOLE);
    expect_error(read_range(bench->concat, UINT64_MAX, buffer, 2), BW_ERROR_CORRUPT, "end at");
    expect_error(read_range(bench->concat, WHOLE, buffer, 1), BW_ERROR_CORRUPT, "end at");
    assert_int_equal(bench->fakes[1].read_count, 0);
    free_bench(bench);
}

/* Requests in one part are passed on together, with their kind and copy: here in four batches. */
static void test_batch(void **state)
{
    enum { MANY = 200, LENGTH = 40 };
    struct bench *bench = make_bench();
    uint8_t buffers[MANY][LENGTH];
    struct bw_request requests[MANY];
    for (size_t i = 0; i < MANY; i++)
        requests[i] = (struct bw_request){.kind = BW_REQUEST_DATA,
                                          .mirror = 1,
                                          .length = LENGTH,
                                          .address = i * 50 + 3,
                                          .buffer = buffers[i]};
    bw_wind(NULL, bench->concat, requests, MANY);
    for (size_t i = 0; i < MANY; i++) {
        expect_success(requests[i].error);
        assert_int_equal(requests[i].address, i * 50 + 3);
        assert_memory_equal(buffers[i], bench->bytes + i * 50 + 3, LENGTH);
    }
    assert_int_equal(bench->fakes[0].calls, 1);
    assert_int_equal(bench->fakes[3].calls, 4);
    assert_int_equal(bench->fakes[3].reads[0].kind, BW_REQUEST_DATA);
    assert_int_equal(bench->fakes[3].reads[0].copy, 1);
    free_bench(bench);
}

/* A bad part costs only the data in it. */
static void test_broken_part(void **state)
{
    struct bench *bench = make_bench();
    uint8_t buffer[10];
    bench->fakes[2].broken[0] = true;
    expect_success(read_range(bench->concat, 2990, buffer, 10));
    expect_success(read_range(bench->concat, 3001, buffer, 10));
    expect_error(read_range(bench->concat, 2995, buffer, 10), BW_ERROR_SYSTEM,
                 "fake copy 1 is broken");
    free_bench(bench);
}

static void test_hints(void **state)
{
    static const struct bw_range given[] = {
        {2999, 3}, {WHOLE, 1}, {UINT64_MAX, UINT64_MAX}, {9999, UINT64_MAX}, {5, 0}};
    struct bench *bench = make_bench();
    bw_wind_advise(NULL, bench->concat, given, COUNT(given), 0);
    assert_int_equal(bench->fakes[0].hint_count, 1);
    assert_int_equal(bench->fakes[0].hints[0].address, 2999);
    assert_int_equal(bench->fakes[0].hints[0].length, 1);
    assert_int_equal(bench->fakes[2].hint_count, 1);
    assert_int_equal(bench->fakes[3].hint_count, 2);
    assert_int_equal(bench->fakes[3].hints[0].address, 0);
    assert_int_equal(bench->fakes[3].hints[0].length, 1);
    assert_int_equal(bench->fakes[3].hints[1].address, 6998);
    assert_int_equal(bench->fakes[3].hints[1].length, 1);
    free_bench(bench);
}

static void test_too_large(void **state)
{
    struct bench *bench = make_parts();
    bench->fakes[0].size = INT64_MAX - 10;
    expect_error(try_concat(bench), BW_ERROR_USAGE, "more than 2^63 bytes");
    free_bench(bench);
}
