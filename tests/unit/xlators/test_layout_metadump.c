/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/metadump: reading intact and hostile dumps that are made here. */
#include <zlib.h>

#include "base/endian.h"
#include "support/fake_layer.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"

enum { BLOCK = 1024, ROOM = 64 * BLOCK, HEADER = 21, ENTRY = 12 };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[ROOM];
    size_t cluster, end; /* where the last cluster begins, and its pieces end */
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below, *dump;
};

static void add_cluster(struct bench *bench, uint8_t compression)
{
    bench->cluster = (bench->end + BLOCK - 1) / BLOCK * BLOCK;
    bench->end = bench->cluster + BLOCK;
    put_le64(bench->bytes + bench->cluster, UINT64_C(0xbd5c25e27295668b));
    put_le64(bench->bytes + bench->cluster + 8, bench->cluster);
    bench->bytes[bench->cluster + 20] = compression;
}

static void add_piece(struct bench *bench, uint64_t logical, const void *bytes, size_t length)
{
    uint8_t *header = bench->bytes + bench->cluster;
    const uint32_t number = header[16];
    put_le64(header + HEADER + number * ENTRY, logical);
    put_le32(header + HEADER + number * ENTRY + 8, (uint32_t)length);
    memcpy(bench->bytes + bench->end, bytes, length);
    bench->end += length;
    put_le32(header + 16, number + 1);
}

/* A piece of equal bytes, compressed. */
static void add_packed(struct bench *bench, uint64_t logical, uint8_t byte, size_t length)
{
    uint8_t packed[BLOCK];
    uLongf size = sizeof packed;
    uint8_t *bytes = malloc(length);
    memset(bytes, byte, length);
    assert_int_equal(compress2(packed, &size, bytes, length, 9), Z_OK);
    free(bytes);
    add_piece(bench, logical, packed, size);
}

static struct bench *make_bench(void)
{
    return calloc(1, sizeof(struct bench));
}

static struct bw_error *open_dump_of(struct bench *bench, const uint8_t *bytes)
{
    bench->fake = (struct fake_layer){.copies = {bytes}, .size = bench->end};
    bench->graph = fake_graph(&bench->log);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return graph_add_above(bench->graph, bench->below, "layout/metadump", "dump", NULL,
                           &bench->dump);
}

static struct bw_error *open_dump(struct bench *bench)
{
    return open_dump_of(bench, bench->bytes);
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    free(bench);
}

/* Reads bytes that must all have one value. */
static void expect_bytes(const struct bench *bench, uint64_t address, uint8_t byte, size_t length)
{
    uint8_t *buffer = malloc(length);
    expect_success(read_range(bench->dump, address, buffer, (uint32_t)length));
    for (size_t i = 0; i < length; i++)
        assert_int_equal(buffer[i], byte);
    free(buffer);
}

static void expect_nothing(const struct bench *bench, uint64_t address, uint32_t length,
                           const char *message)
{
    uint8_t buffer[BLOCK];
    expect_error(read_range(bench->dump, address, buffer, length), BW_ERROR_NOT_FOUND, message);
}

static void test_plain(void **state)
{
    struct bench *bench = make_bench();
    uint8_t bytes[600];
    add_cluster(bench, 0);
    memset(bytes, 2, sizeof bytes);
    add_piece(bench, 20000, bytes, sizeof bytes);
    memset(bytes, 1, sizeof bytes);
    add_piece(bench, 10000, bytes, sizeof bytes); /* they need not ascend */
    add_cluster(bench, 0);
    memset(bytes, 3, sizeof bytes);
    add_piece(bench, 20600, bytes, sizeof bytes);
    expect_success(open_dump(bench));
    assert_int_equal(bw_xlator_size(bench->dump), 21200);
    expect_bytes(bench, 10000, 1, 600);
    expect_bytes(bench, 20100, 2, 500);
    expect_bytes(bench, 21199, 3, 1);
    uint8_t both[20];
    expect_success(read_range(bench->dump, 20590, both, sizeof both));
    assert_int_equal(both[9], 2);
    assert_int_equal(both[10], 3);
    expect_nothing(bench, 9999, 1, "the metadump lacks the block at 9999");
    expect_nothing(bench, 10599, 2, "the metadump lacks the block at 10599");
    expect_nothing(bench, 21200, 1, "lacks the block");
    expect_nothing(bench, UINT64_MAX, 1, "lacks the block");
    assert_int_equal(bw_xlator_next_stored(bench->dump, 0), 10000);
    assert_int_equal(bw_xlator_next_stored(bench->dump, 10599), 10599);
    assert_int_equal(bw_xlator_next_stored(bench->dump, 10600), 20000);
    assert_int_equal(bw_xlator_next_stored(bench->dump, 20600), 20600);
    assert_true(bw_xlator_next_stored(bench->dump, 21200) == UINT64_MAX);
    assert_int_equal(bench->log.counts[BW_WARNING], 0);
    free_bench(bench);
}

static void test_compressed(void **state)
{
    struct bench *bench = make_bench();
    add_cluster(bench, 1);
    for (unsigned i = 0; i < 40; i++)
        add_packed(bench, 1000000 + i * 300000, (uint8_t)(i + 1), i % 2 ? 300000 : 100000);
    expect_success(open_dump(bench));
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 40; i++)
            expect_bytes(bench, 1000000 + i * 300000 + 99900, (uint8_t)(i + 1), 100);
    uint8_t both[20];
    expect_success(read_range(bench->dump, 1599990, both, sizeof both));
    assert_int_equal(both[9], 2);
    assert_int_equal(both[10], 3);
    expect_nothing(bench, 1099999, 2, "lacks the block");
    expect_nothing(bench, 1200000, 1, "lacks the block");
    /* The length of a compressed piece is not known in advance. */
    assert_int_equal(bw_xlator_next_stored(bench->dump, 999999), 1000000);
    assert_int_equal(bw_xlator_next_stored(bench->dump, 1200000), 1200000);
    assert_true(bw_xlator_next_stored(bench->dump, 20000000) == UINT64_MAX);
    free_bench(bench);
}

/* A piece that is longer than the room up to the next one, or than any may be, and one that is no
 * stream. */
static void test_bad_pieces(void **state)
{
    struct bench *bench = make_bench();
    uint8_t buffer[4];
    add_cluster(bench, 1);
    add_packed(bench, 1000, 1, 2000);
    add_packed(bench, 2000, 2, 2000);
    add_piece(bench, 9000, "nothing", 7);
    add_piece(bench, 10000, "", 0);
    expect_success(open_dump(bench));
    expect_error(read_range(bench->dump, 1000, buffer, 4), BW_ERROR_CORRUPT,
                 "the piece at 1024 of the dump cannot be decompressed");
    expect_bytes(bench, 2000, 2, 2000);
    expect_error(read_range(bench->dump, 9000, buffer, 4), BW_ERROR_CORRUPT, "cannot be decompr");
    expect_error(read_range(bench->dump, 10000, buffer, 4), BW_ERROR_CORRUPT, "cannot be decompr");
    free_bench(bench);
}

/* A piece that claims gigabytes of a sparse file: no more is read than one can have. */
static void test_long_piece(void **state)
{
    enum { STORED = 12 << 20, MOST = 8 << 20 };
    uint8_t buffer[4], *bytes = calloc(1, STORED + 2 * BLOCK);
    struct bench *bench = make_bench();
    add_cluster(bench, 1);
    add_packed(bench, 1000, 1, 2000);
    put_le32(bench->bytes + HEADER + 8, STORED);
    memcpy(bytes, bench->bytes, ROOM);
    bench->end = STORED + 2 * BLOCK;
    expect_success(open_dump_of(bench, bytes));
    expect_bytes(bench, 1000, 1, 2000);
    for (size_t i = 0; i < bench->fake.read_count; i++)
        assert_true(bench->fake.reads[i].length <= MOST);
    expect_error(read_range(bench->dump, 4000, buffer, 4), BW_ERROR_NOT_FOUND, "lacks the block");
    free_bench(bench);
    free(bytes);
}

/* Complete pieces before the end of a truncated dump can be read. */
static void test_cut(void **state)
{
    struct bench *bench = make_bench();
    uint8_t bytes[600];
    add_cluster(bench, 0);
    memset(bytes, 1, sizeof bytes);
    add_piece(bench, 10000, bytes, sizeof bytes);
    add_piece(bench, 20000, bytes, sizeof bytes);
    bench->end -= 500;
    expect_success(open_dump(bench));
    assert_int_equal(bench->log.counts[BW_WARNING], 1);
    expect_bytes(bench, 10000, 1, 600);
    expect_bytes(bench, 20000, 1, 100);
    expect_nothing(bench, 20000, 101, "lacks the block");
    free_bench(bench);
}

/* Whoever reads it piece by piece must come to an end. */
static void test_far_away(void **state)
{
    struct bench *bench = make_bench();
    add_cluster(bench, 1);
    add_packed(bench, 1000, 1, 2000);
    add_packed(bench, UINT64_MAX - 5000, 1, 2000);
    expect_success(open_dump(bench));
    assert_true(bw_xlator_size(bench->dump) == INT64_MAX);
    free_bench(bench);
}

static void check_header(size_t offset, uint8_t byte, enum bw_error_code code, const char *message)
{
    struct bench *bench = make_bench();
    add_cluster(bench, 1);
    add_packed(bench, 1000, 1, 2000);
    bench->bytes[offset] = byte;
    struct bw_error *error = open_dump(bench);
    if (code) {
        expect_error(error, code, message);
    } else {
        expect_success(error);
        assert_int_equal(bench->log.counts[BW_WARNING], 1);
        assert_int_equal(report_log_count(&bench->log, message), 1);
    }
    free_bench(bench);
}

static void test_headers(void **state)
{
    check_header(0, 0, 0, "no cluster of the dump begins at 0");
    check_header(8, 1, 0, "no cluster of the dump begins at 0");
    check_header(16, 84, 0, "has 84 pieces");
    check_header(20, 2, BW_ERROR_UNSUPPORTED, "has compression 2");
    check_header(HEADER + 11, 255, 0, "is cut off: it ends at ");
}
