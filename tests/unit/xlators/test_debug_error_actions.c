/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debug/error-gen: what its actions make of a reply, and options that are refused. Whom a rule hits
 * is in test_debug_error_gen.c.
 */
#include "support/block_bench.h"
#include "support/debug_bench.h"
#include "xlators/classes.h"

struct action_bench {
    struct block_bench *blocks;
    struct bw_graph *graph;
    struct bw_xlator *top;
    uint8_t buffer[BENCH_NODESIZE + 16];
};

static struct action_bench *make_bench(const char *action, const char *seed,
                                       enum bw_checksum_type type)
{
    struct action_bench *bench = calloc(1, sizeof *bench);
    const struct option_value options[] = {{"action", action}, {"seed", seed}, {0}};
    expect_success(bw_checksum_prepare(type));
    bench->blocks = block_bench_create(2, type);
    bench->graph = fake_graph(NULL);
    bench->top = add_layer(bench->graph, "debug/error-gen",
                           add_fake(bench->graph, &bench->blocks->fake), options);
    return bench;
}

static void free_bench(struct action_bench *bench)
{
    bw_graph_destroy(bench->graph);
    block_bench_free(bench->blocks);
    free(bench);
}

static struct bw_error *read_kind(struct action_bench *bench, enum bw_request_kind kind,
                                  uint64_t address, uint32_t length)
{
    struct bw_request request = {
        .kind = kind, .length = length, .address = address, .buffer = bench->buffer};
    memset(bench->buffer, 0xee, sizeof bench->buffer);
    bw_wind(NULL, bench->top, &request, 1);
    for (size_t i = length; i < sizeof bench->buffer; i++)
        assert_int_equal(bench->buffer[i], 0xee);
    return request.error;
}

static uint64_t faults(const struct action_bench *bench)
{
    return dump_number(&bw_debug_error_gen_class, bench->top, "faults");
}

/* The number of the only bit that differs. */
static size_t flipped_bit(struct action_bench *bench, uint64_t address, uint32_t length)
{
    size_t found = SIZE_MAX;
    expect_success(read_kind(bench, BW_REQUEST_DATA, address, length));
    for (size_t bit = 0; bit < (size_t)8 * length; bit++) {
        uint8_t difference = bench->buffer[bit / 8] ^ bench->blocks->copies[0][address + bit / 8];
        if (!(difference >> bit % 8 & 1))
            continue;
        assert_int_equal(found, SIZE_MAX);
        found = bit;
    }
    assert_int_not_equal(found, SIZE_MAX);
    return found;
}

static void test_flip(void **state)
{
    struct action_bench *bench = make_bench("flip", "1", BW_CHECKSUM_CRC32C);
    struct action_bench *other = make_bench("flip", "2", BW_CHECKSUM_CRC32C);
    size_t in_front = 0, same = 0;
    for (uint64_t block = 0; block < 100; block++) {
        size_t bit = flipped_bit(bench, block * 4096, 4096);
        in_front += bit < 4096 * 4;
        same += bit == flipped_bit(other, block * 4096, 4096);
        assert_int_equal(flipped_bit(bench, block * 4096, 4096), bit);
    }
    assert_true(in_front > 30 && in_front < 70);
    assert_true(same < 5);
    assert_true(flipped_bit(bench, 5, 1) < 8);
    assert_int_equal(faults(bench), 201);
    free_bench(bench);
    free_bench(other);
}

static void test_zero(void **state)
{
    static const uint8_t zeros[100];
    struct action_bench *bench = make_bench("zero", "0", BW_CHECKSUM_CRC32C);
    expect_success(read_kind(bench, BW_REQUEST_TREE_BLOCK, 4096, 100));
    assert_memory_equal(bench->buffer, zeros, 100);
    assert_int_equal(faults(bench), 1);
    free_bench(bench);
}

static void test_short(void **state)
{
    struct action_bench *bench = make_bench("short", "0", BW_CHECKSUM_CRC32C);
    expect_error(read_kind(bench, BW_REQUEST_TREE_BLOCK, 4096, 101), BW_ERROR_CORRUPT,
                 "injected short read: 50 of 101 bytes at 4096");
    assert_memory_equal(bench->buffer, block_bench_bytes(bench->blocks, 1, 1), 50);
    for (size_t i = 50; i < 101; i++)
        assert_int_equal(bench->buffer[i], 0xa5);
    expect_error(read_kind(bench, BW_REQUEST_RAW, 0, 1), BW_ERROR_CORRUPT,
                 "injected short read: 0 of 1 bytes");
    assert_int_equal(bench->buffer[0], 0xa5);
    assert_int_equal(faults(bench), 2);
    free_bench(bench);
}

/* Only the generation and the checksum in front of it differ, and the checksum is right. */
static void check_stale_block(enum bw_checksum_type type)
{
    const size_t at = offsetof(struct bw_disk_header, generation);
    struct action_bench *bench = make_bench("stale", "0", type);
    for (size_t block = 0; block < 20; block++) {
        const uint8_t *original = block_bench_bytes(bench->blocks, 1, block);
        const struct bw_disk_header *header = (const void *)bench->buffer;
        expect_success(
            read_kind(bench, BW_REQUEST_TREE_BLOCK, block * BENCH_NODESIZE, BENCH_NODESIZE));
        assert_int_equal(bw_get64(header->generation), BENCH_GENERATION - 1);
        assert_true(bw_checksum_matches_block(type, bench->buffer, BENCH_NODESIZE));
        assert_memory_equal(bench->buffer + BW_CSUM_SIZE, original + BW_CSUM_SIZE,
                            at - BW_CSUM_SIZE);
        assert_memory_equal(bench->buffer + at + 8, original + at + 8, BENCH_NODESIZE - at - 8);
    }
    assert_int_equal(faults(bench), 20);
    free_bench(bench);
}

static void test_stale_blocks(void **state)
{
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++)
        check_stale_block((enum bw_checksum_type)type);
}

static void expect_untouched(struct action_bench *bench, enum bw_request_kind kind,
                             uint64_t address, uint32_t length)
{
    uint64_t before = faults(bench);
    expect_success(read_kind(bench, kind, address, length));
    assert_memory_equal(bench->buffer, bench->blocks->copies[0] + address, length);
    assert_int_equal(faults(bench), before);
}

/* Other kinds, parts, damaged blocks, and blocks without an older version. */
static void test_what_is_never_stale(void **state)
{
    static const uint32_t pieces[] = {1, 31, 32, 33, 100, 101, 102, 512, BENCH_NODESIZE - 1};
    struct action_bench *bench = make_bench("stale", "0", BW_CHECKSUM_CRC32C);
    uint8_t *damaged = block_bench_bytes(bench->blocks, 1, 3),
            *first = block_bench_bytes(bench->blocks, 1, 4);
    damaged[2000] ^= 1;
    ((struct bw_disk_header *)first)->generation = bw_put64(0);
    block_bench_seal(first, BW_CHECKSUM_CRC32C);
    expect_untouched(bench, BW_REQUEST_DATA, 0, BENCH_NODESIZE);
    expect_untouched(bench, BW_REQUEST_RAW, 0, BENCH_NODESIZE);
    assert_int_equal(dump_number(&bw_debug_error_gen_class, bench->top, "matches"), 0);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        expect_untouched(bench, BW_REQUEST_TREE_BLOCK, 0, pieces[i]);
        expect_untouched(bench, BW_REQUEST_SUPER, 0, pieces[i]);
    }
    expect_untouched(bench, BW_REQUEST_TREE_BLOCK, 3 * BENCH_NODESIZE, BENCH_NODESIZE);
    expect_untouched(bench, BW_REQUEST_TREE_BLOCK, 4 * BENCH_NODESIZE, BENCH_NODESIZE);
    free_bench(bench);
}

static void test_stale_superblock(void **state)
{
    const size_t at = offsetof(struct bw_disk_superblock, generation);
    struct action_bench *bench = make_bench("stale", "0", BW_CHECKSUM_XXHASH64);
    struct bw_disk_superblock *stored = (void *)block_bench_bytes(bench->blocks, 1, 16);
    *stored = (struct bw_disk_superblock){.generation = bw_put64(UINT64_C(1) << 32),
                                          .csum_type = bw_put16(BW_CHECKSUM_XXHASH64)};
    block_bench_seal((uint8_t *)stored, BW_CHECKSUM_XXHASH64);
    expect_success(read_kind(bench, BW_REQUEST_SUPER, 65536, BW_SUPERBLOCK_SIZE));
    const struct bw_disk_superblock *super = (const void *)bench->buffer;
    assert_int_equal(bw_get64(super->generation), UINT32_MAX);
    assert_true(bw_checksum_matches_block(BW_CHECKSUM_XXHASH64, bench->buffer, BW_SUPERBLOCK_SIZE));
    assert_memory_equal(bench->buffer + at + 8, (uint8_t *)stored + at + 8,
                        BW_SUPERBLOCK_SIZE - at - 8);
    assert_int_equal(faults(bench), 1);
    free_bench(bench);
}

/* Errors from below are not errors of this layer. */
static void test_errors_from_below(void **state)
{
    static const char *const actions[] = {"flip", "zero", "short", "stale"};
    for (size_t i = 0; i < COUNT(actions); i++) {
        struct action_bench *bench = make_bench(actions[i], "0", BW_CHECKSUM_CRC32C);
        bench->blocks->fake.broken[0] = true;
        expect_error(read_kind(bench, BW_REQUEST_TREE_BLOCK, 0, BENCH_NODESIZE), BW_ERROR_SYSTEM,
                     "fake copy 1 is broken");
        assert_int_equal(faults(bench), 0);
        free_bench(bench);
    }
}

/* In a large batch each request that is hit is spoiled, and no other. */
static void test_batch(void **state)
{
    enum { BATCH = 150 };
    static const uint8_t zeros[64];
    const struct option_value options[] = {{"action", "zero"}, {"nth", "4"}, {0}};
    struct action_bench *bench = make_bench("eio", "0", BW_CHECKSUM_CRC32C);
    struct bw_xlator *top =
        add_layer(bench->graph, "debug/error-gen", bench->graph->layers.items[0], options);
    struct bw_request requests[BATCH];
    uint8_t *buffers = calloc(BATCH, 64);
    for (size_t i = 0; i < BATCH; i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .length = 64, .address = i * 4096, .buffer = buffers + i * 64};
    bw_wind(NULL, top, requests, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        expect_success(requests[i].error);
        assert_memory_equal(requests[i].buffer,
                            (i + 1) % 4 ? block_bench_bytes(bench->blocks, 1, i) : zeros, 64);
    }
    assert_int_equal(bench->blocks->fake.calls, 1);
    assert_int_equal(bench->blocks->fake.read_count, BATCH);
    free(buffers);
    free_bench(bench);
}

/* Under features/verify. */

static void check_under_verify(const char *action, const char *copy, const char *why)
{
    enum { BLOCK = 299 }; /* its item belongs to an inode that a file can have */
    struct report_log log = {0};
    uint8_t buffer[BENCH_NODESIZE];
    const struct bw_tree_block_expectation wanted = block_bench_expectation(BLOCK);
    const struct option_value options[] = {{"action", action}, {"mirror", copy}, {0}};
    struct block_bench *blocks = block_bench_create(2, BW_CHECKSUM_CRC32C);
    struct bw_graph *graph = fake_graph(&log);
    struct bw_xlator *rule =
        add_layer(graph, "debug/error-gen", add_fake(graph, &blocks->fake), options);
    struct bw_xlator *top = add_layer(graph, "features/verify", rule, NULL);
    expect_success(tell_ids(top, BW_CHECKSUM_CRC32C, &blocks->fsid, 1));
    struct bw_error *error = block_bench_read(top, BLOCK, &wanted, false, buffer);
    if (*copy == '1') {
        expect_success(error);
        assert_memory_equal(buffer, block_bench_bytes(blocks, 1, BLOCK), BENCH_NODESIZE);
        assert_int_equal(report_log_count(&log, "used mirror 2 instead of a bad one"), 1);
        assert_int_equal(report_log_count(&log, why), 1);
    } else if (strcmp(action, "flip") == 0) {
        expect_success(error);
        assert_memory_equal(buffer, block_bench_bytes(blocks, 1, BLOCK), BENCH_NODESIZE);
        assert_int_equal(report_log_count(&log, "corrected bit "), 1);
    } else {
        assert_non_null(error);
        expect_error(error, error->code, why);
    }
    bw_graph_destroy(graph);
    block_bench_free(blocks);
    report_log_free(&log);
}

/* Each fault is identified, and another copy is used; or the flipped bit is corrected, if all
 * copies have one. */
static void test_under_verify(void **state)
{
    static const char *const cases[][2] = {
        {"eio", "injected I/O error"},
        {"flip", "crc32c checksum mismatch"},
        {"zero", "checksum mismatch"},
        {"short", "injected short read: 2048 of 4096 bytes"},
        {"stale", "generation mismatch, want 7 have 6"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_under_verify(cases[i][0], "1", cases[i][1]);
        check_under_verify(cases[i][0], "0", cases[i][1]);
    }
}

static void test_refused_options(void **state)
{
    struct bw_graph *graph = threads_graph(NULL);
    struct bw_xlator *child = graph->layers.items[0], *made = NULL;
    const struct option_value options[] = {{"start", "8K"}, {"end", "8K"}, {0}};
    expect_error(graph_add_above(graph, child, "debug/error-gen", "rule", options, &made),
                 BW_ERROR_USAGE, "start 8192 is not below end 8192");
    expect_error(try_option(graph, "debug/error-gen", child, "mirror", "256"), BW_ERROR_USAGE,
                 "'256'");
    expect_error(try_option(graph, "debug/error-gen", child, "rate", "101%"), BW_ERROR_USAGE,
                 "'101%'");
    expect_error(try_option(graph, "debug/error-gen", child, "action", "explode"), BW_ERROR_USAGE,
                 "'explode' is not one of: eio, flip, zero, short, stale");
    assert_int_equal(graph->layers.count, 1);
    bw_graph_destroy(graph);
}
