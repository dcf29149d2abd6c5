/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks of which each copy has lost other sectors: the reads, and the result. */
#include "support/block_bench.h"
#include "support/debug_bench.h"
#include "xlators/classes.h"
#include "xlators/features/joint.h"

enum { NODESIZE = 16384, SECTOR = 512, PAGE = 4096, COPIES = 3 };

struct joint_bench {
    struct fake_layer fake;
    struct bw_graph *graph;
    struct bw_xlator *rule; /* makes a range of a mirror unreadable */
    uint8_t good[NODESIZE], copies[COPIES][NODESIZE], buffer[NODESIZE];
};

static struct joint_bench *make_bench(unsigned copies, const struct option_value *options)
{
    struct joint_bench *bench = calloc(1, sizeof *bench);
    for (size_t i = 0; i < NODESIZE; i++)
        bench->good[i] = (uint8_t)(i / SECTOR + 1);
    memset(bench->good + 7 * SECTOR, 0, 2 * SECTOR); /* in two pages */
    bw_checksum_compute(BW_CHECKSUM_SHA256, bench->good + BW_CSUM_SIZE, NODESIZE - BW_CSUM_SIZE,
                        bench->good);
    bench->fake.copy_count = copies;
    bench->fake.size = NODESIZE;
    for (unsigned copy = 0; copy < COPIES; copy++) {
        memcpy(bench->copies[copy], bench->good, NODESIZE);
        bench->fake.copies[copy] = bench->copies[copy];
    }
    bench->graph = fake_graph(NULL);
    bench->rule = add_fake(bench->graph, &bench->fake);
    if (options)
        bench->rule = add_layer(bench->graph, "debug/error-gen", bench->rule, options);
    return bench;
}

static void free_bench(struct joint_bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

static void lose(struct joint_bench *bench, unsigned copy, unsigned first, unsigned count, int byte)
{
    for (unsigned i = first; i < first + count; i++)
        memset(bench->copies[copy - 1] + (size_t)i * SECTOR, byte, SECTOR);
}

/* Joins the copies; a result must be the block. */
static bool is_joined(struct joint_bench *bench, uint64_t failed)
{
    const struct bw_request request = {
        .kind = BW_REQUEST_TREE_BLOCK, .length = NODESIZE, .buffer = bench->buffer};
    const struct bw_joint joint = {.layer = bench->rule,
                                   .request = &request,
                                   .copies = bench->fake.copy_count,
                                   .failed = failed,
                                   .checksum = BW_CHECKSUM_SHA256};
    bool joined;
    bench->fake.read_count = 0;
    expect_success(bw_joint_read(&joint, &joined));
    if (joined)
        assert_memory_equal(bench->buffer, bench->good, NODESIZE);
    return joined;
}

static void test_zeros(void **state)
{
    struct joint_bench *bench = make_bench(2, NULL);
    lose(bench, 1, 0, 16, 0);
    lose(bench, 2, 16, 16, 0);
    assert_true(is_joined(bench, 0));
    assert_int_equal(bench->fake.read_count, 2);
    lose(bench, 1, 31, 1, 0); /* in no copy */
    assert_false(is_joined(bench, 0));
    free_bench(bench);

    /* zeros are right, other bytes are wrong */
    bench = make_bench(2, NULL);
    lose(bench, 1, 7, 2, 0x55);
    lose(bench, 2, 20, 1, 0);
    assert_true(is_joined(bench, 0));
    free_bench(bench);
}

/* Other bytes: of whole pages that have some sectors in common, or of a few sectors of a page. */
static void test_versions(void **state)
{
    struct joint_bench *bench = make_bench(2, NULL);
    for (unsigned page = 0; page < 4; page++)
        for (unsigned sector = 0; sector < 8; sector += 2)
            lose(bench, 1 + page % 2, page * 8 + sector, 1, 0x55);
    assert_true(is_joined(bench, 0));
    free_bench(bench);

    bench = make_bench(2, NULL);
    for (unsigned page = 0; page < 4; page++)
        lose(bench, 1 + page % 2, page * 8, 8, 0x55); /* with zeros in two of them */
    assert_true(is_joined(bench, 0));
    free_bench(bench);

    bench = make_bench(2, NULL);
    for (unsigned sector = 0; sector < 6; sector++)
        lose(bench, 1 + sector % 2, sector, 1, 0x55);
    assert_true(is_joined(bench, 0));
    lose(bench, 2, 9, 1, 0x55); /* too many combinations */
    assert_false(is_joined(bench, 0));
    free_bench(bench);
}

/* A copy with a right checksum has lost nothing: it is another version. */
static void test_whole_copies(void **state)
{
    struct joint_bench *bench = make_bench(3, NULL);
    bench->copies[0][NODESIZE - 1] ^= 1;
    bw_checksum_compute(BW_CHECKSUM_SHA256, bench->copies[0] + BW_CSUM_SIZE,
                        NODESIZE - BW_CSUM_SIZE, bench->copies[0]);
    memcpy(bench->copies[2], bench->copies[0], NODESIZE);
    lose(bench, 2, 5, 1, 0x55);
    assert_false(is_joined(bench, 0));
    memcpy(bench->copies[2], bench->good, NODESIZE);
    lose(bench, 3, 6, 1, 0x55);
    assert_true(is_joined(bench, 0));
    free_bench(bench);
}

/* A disk may need seconds for each attempt, so a page that it fails to read is not divided, and a
 * copy that failed as a whole is read page by page at once. */
static void test_failing_disk(void **state)
{
    const struct option_value options[] = {
        {"start", "9K"}, {"end", "10K"}, {"mirror", "1"}, {"action", "eio"}, {0}};
    struct joint_bench *bench = make_bench(2, options);
    lose(bench, 2, 0, 1, 0x55);
    assert_true(is_joined(bench, 1));
    assert_int_equal(dump_number(&bw_debug_error_gen_class, bench->rule, "faults"), 1);
    assert_int_equal(bench->fake.read_count, 4);
    assert_true(is_joined(bench, 0));
    assert_int_equal(dump_number(&bw_debug_error_gen_class, bench->rule, "faults"), 3);
    lose(bench, 2, 16, 1, 0x55); /* in the page that fails */
    assert_false(is_joined(bench, 1));
    free_bench(bench);
}

/* A copy that failed as a whole can be read now. It needs no other copy, and counts as bad only if
 * it was read before. */
static void test_good_again(void **state)
{
    struct joint_bench *bench = make_bench(2, NULL);
    lose(bench, 1, 0, 32, 0x55);
    assert_true(is_joined(bench, 2));
    assert_false(is_joined(bench, 1));
    free_bench(bench);
}

/* Sectors that a map of ddrescue lacks. */
static void test_unread_sectors(void **state)
{
    const struct option_value options[] = {
        {"start", "9K"}, {"end", "10K"}, {"mirror", "1"}, {"action", "short"}, {0}};
    struct joint_bench *bench = make_bench(2, options);
    lose(bench, 2, 16, 2, 0x55);
    lose(bench, 2, 20, 1, 0x55);
    assert_true(is_joined(bench, 0));
    lose(bench, 2, 19, 1, 0x55); /* in no copy */
    assert_false(is_joined(bench, 0));
    free_bench(bench);
}

/* Requests that no file system makes. */
static void test_odd_requests(void **state)
{
    static const uint32_t lengths[] = {1, 511, 2048, PAGE + SECTOR, 2 * BW_MAX_NODESIZE};
    struct joint_bench *bench = make_bench(2, NULL);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct bw_request request = {.length = lengths[i], .buffer = bench->buffer};
        const struct bw_joint joint = {.layer = bench->rule, .request = &request, .copies = 2};
        bool joined = true;
        expect_success(bw_joint_read(&joint, &joined));
        assert_false(joined);
    }
    assert_int_equal(bench->fake.read_count, 0);
    free_bench(bench);
}
