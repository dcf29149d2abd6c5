/* SPDX-License-Identifier: GPL-2.0-or-later */
/* performance/node-cache: which blocks are cached, and which are still read from below. */
#include "support/block_bench.h"

struct cache_bench {
    struct block_bench *blocks;
    struct bw_graph *graph;
    struct bw_xlator *top;
    uint8_t buffer[BENCH_NODESIZE];
};

static struct cache_bench *make_bench(const char *size)
{
    struct cache_bench *bench = calloc(1, sizeof *bench);
    const struct option_value options[] = {{"size", size}, {0}};
    bench->blocks = block_bench_create(1, BW_CHECKSUM_CRC32C);
    bench->graph = fake_graph(NULL);
    bench->top = add_layer(bench->graph, "performance/node-cache",
                           add_fake(bench->graph, &bench->blocks->fake), options);
    return bench;
}

static void free_bench(struct cache_bench *bench)
{
    bw_graph_destroy(bench->graph);
    block_bench_free(bench->blocks);
    free(bench);
}

/* Reads a block, compares its bytes, and returns whether the layer below was used. */
static bool was_read(struct cache_bench *bench, size_t block, bool keep)
{
    const struct bw_tree_block_expectation wanted = block_bench_expectation(block);
    size_t before = bench->blocks->fake.calls;
    memset(bench->buffer, 0xee, sizeof bench->buffer);
    expect_success(block_bench_read(bench->top, block, &wanted, keep, bench->buffer));
    assert_memory_equal(bench->buffer, block_bench_bytes(bench->blocks, 1, block), BENCH_NODESIZE);
    return bench->blocks->fake.calls != before;
}

static void test_hits(void **state)
{
    struct cache_bench *bench = make_bench("1M");
    for (size_t block = 0; block < 50; block++)
        assert_true(was_read(bench, block, true));
    for (unsigned round = 0; round < 3; round++)
        for (size_t block = 0; block < 50; block++)
            assert_false(was_read(bench, block, true));
    free_bench(bench);
}

static void test_what_is_not_kept(void **state)
{
    struct cache_bench *bench = make_bench("1M");
    assert_true(was_read(bench, 1, false));
    assert_true(was_read(bench, 1, false));
    assert_true(was_read(bench, 1, true));
    assert_false(was_read(bench, 1, true));
    assert_true(was_read(bench, 1, false)); /* passed on, although it is cached */
    struct bw_tree_block_expectation wanted = block_bench_expectation(2);
    struct bw_request request = {.kind = BW_REQUEST_TREE_BLOCK,
                                 .keep = true,
                                 .mirror = 1,
                                 .length = BENCH_NODESIZE,
                                 .address = 2 * BENCH_NODESIZE,
                                 .buffer = bench->buffer,
                                 .expectation = &wanted};
    bw_wind(NULL, bench->top, &request, 1);
    assert_true(was_read(bench, 2, true)); /* a chosen copy is not remembered */
    wanted = block_bench_expectation(3);
    wanted.lenient = true;
    expect_success(block_bench_read(bench->top, 3, &wanted, true, bench->buffer));
    assert_true(was_read(bench, 3, true)); /* nor blocks that were accepted leniently */
    request = (struct bw_request){.kind = BW_REQUEST_RAW,
                                  .keep = true,
                                  .length = 100,
                                  .address = 4 * BENCH_NODESIZE,
                                  .buffer = bench->buffer};
    bw_wind(NULL, bench->top, &request, 1);
    assert_true(was_read(bench, 4, true));
    free_bench(bench);
}

static void test_errors_are_not_kept(void **state)
{
    struct cache_bench *bench = make_bench("1M");
    const struct bw_tree_block_expectation wanted = block_bench_expectation(5);
    bench->blocks->fake.broken[0] = true;
    expect_error(block_bench_read(bench->top, 5, &wanted, true, bench->buffer), BW_ERROR_SYSTEM,
                 "broken");
    bench->blocks->fake.broken[0] = false;
    assert_true(was_read(bench, 5, true));
    assert_false(was_read(bench, 5, true));
    free_bench(bench);
}

/* A cached block that does not match the expectation is read from below, where verify reports the
 * reason. */
static void test_expectation_mismatch_is_a_miss(void **state)
{
    struct cache_bench *bench = make_bench("1M");
    assert_true(was_read(bench, 6, true));
    for (unsigned what = 0; what < 4; what++) {
        struct bw_tree_block_expectation wanted = block_bench_expectation(6);
        wanted.generation += what == 0;
        wanted.level = what == 1;
        wanted.first_key.offset += what == 2;
        wanted.owner = what == 3 ? BW_ROOT_TREE : wanted.owner;
        size_t calls = bench->blocks->fake.calls;
        expect_success(block_bench_read(bench->top, 6, &wanted, true, bench->buffer));
        assert_int_equal(bench->blocks->fake.calls, calls + 1);
    }
    struct bw_tree_block_expectation other_tree = block_bench_expectation(6);
    size_t calls = bench->blocks->fake.calls;
    other_tree.owner = 300; /* a snapshot may share it */
    expect_success(block_bench_read(bench->top, 6, &other_tree, true, bench->buffer));
    assert_int_equal(bench->blocks->fake.calls, calls);
    assert_false(was_read(bench, 6, true));
    free_bench(bench);
}

/* With more blocks than the cache can hold, it is full but not larger. */
static void test_size_is_kept(void **state)
{
    static const struct {
        const char *text;
        size_t blocks;
    } sizes[] = {{"0", 0}, {"64K", 16}, {"256K", 64}, {"1M", 256}, {"1M", 256}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct cache_bench *bench = make_bench(sizes[i].text);
        size_t hits = 0;
        for (size_t block = 0; block < BENCH_BLOCKS; block++)
            was_read(bench, block, true);
        for (size_t block = 0; block < BENCH_BLOCKS; block++) {
            const struct bw_tree_block_expectation wanted = block_bench_expectation(block);
            size_t before = bench->blocks->fake.calls;
            /* After the layer below fails, only cached blocks can be read. */
            bench->blocks->fake.broken[0] = true;
            struct bw_error *error =
                block_bench_read(bench->top, block, &wanted, true, bench->buffer);
            hits += !error;
            assert_int_equal(bench->blocks->fake.calls - before, error != NULL);
            bw_error_free(error);
        }
        assert_true(hits <= sizes[i].blocks);
        assert_true(hits >= sizes[i].blocks * 3 / 4);
        free_bench(bench);
    }
}

/* Half of the batch is cached. */
static void test_batch(void **state)
{
    struct cache_bench *bench = make_bench("4M");
    enum { BATCH = 150 };
    struct bw_request requests[BATCH];
    struct bw_tree_block_expectation wanted[BATCH];
    uint8_t *buffers = calloc(BATCH, BENCH_NODESIZE);
    for (size_t block = 0; block < BATCH; block += 2)
        was_read(bench, block, true);
    size_t before = bench->blocks->fake.read_count;
    for (size_t i = 0; i < BATCH; i++) {
        wanted[i] = block_bench_expectation(i);
        requests[i] = (struct bw_request){.kind = BW_REQUEST_TREE_BLOCK,
                                          .keep = true,
                                          .length = BENCH_NODESIZE,
                                          .address = i * BENCH_NODESIZE,
                                          .buffer = buffers + i * BENCH_NODESIZE,
                                          .expectation = &wanted[i]};
    }
    bw_wind(NULL, bench->top, requests, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        expect_success(requests[i].error);
        assert_memory_equal(requests[i].buffer, block_bench_bytes(bench->blocks, 1, i),
                            BENCH_NODESIZE);
    }
    assert_int_equal(bench->blocks->fake.read_count - before, BATCH / 2);
    free(buffers);
    free_bench(bench);
}
