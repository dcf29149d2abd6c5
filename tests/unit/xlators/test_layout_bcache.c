/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/bcache: superblocks with the bytes of make-bcache, and changed ones. */
#include "base/endian.h"
#include "support/fake_layer.h"

enum { SIZE = 1 << 20, PLACE = 4096 };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE];
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
};

/* By division of polynomials, one bit after the other. */
static void seal(uint8_t *superblock)
{
    uint64_t crc = UINT64_MAX;
    for (size_t bit = 8 * 8; bit < 208 * 8; bit++) {
        const uint64_t carry = crc >> 63 ^ (superblock[bit / 8] >> (7 - bit % 8) & 1);
        crc = crc << 1 ^ (carry ? UINT64_C(0x42f0e1eba9ea3693) : 0);
    }
    put_le64(superblock, ~crc);
}

static struct bench *make_bench(void)
{
    static const uint8_t made[] = {
        0x78, 0xbf, 0x35, 0x5c, 0x88, 0xc2, 0xda, 0xb1, 8,    0,    0,    0,    0,    0,    0,
        0,    1,    0,    0,    0,    0,    0,    0,    0,    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a,
        0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81, 0x18, 0x7b, 0xaa, 0xa9, 0x49,
        0x59, 0x4e, 0xfb, 0x84, 0xdd, 0xba, 0x61, 0xca, 0x90, 0x65, 0x81, 0xe7, 0x5f, 0x58, 0xa8,
        0x33, 0x06, 0x4d, 0xc0, 0xb5, 0x00, 0xd3, 0xaa, 0x6d, 0xee, 0x34, 0xc3};
    struct bench *bench = calloc(1, sizeof *bench);
    memcpy(bench->bytes + PLACE, made, sizeof made);
    memcpy(bench->bytes + PLACE + 192, "\x08\x00\x00\x04", 4);
    for (size_t i = 2 * PLACE; i < SIZE; i++)
        bench->bytes[i] = (uint8_t)(i >> 9);
    return bench;
}

static struct bw_error *open_bench(struct bench *bench, uint64_t size)
{
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = size};
    bench->graph = fake_graph(&bench->log);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return graph_add_above(bench->graph, bench->below, "layout/bcache", "bcache", NULL,
                           &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void check_contents(struct bench *bench, uint64_t begin)
{
    uint8_t buffer[4096];
    expect_success(open_bench(bench, SIZE));
    assert_int_equal(bw_xlator_size(bench->top), SIZE - begin);
    expect_success(read_range(bench->top, 5000, buffer, sizeof buffer));
    assert_memory_equal(buffer, bench->bytes + begin + 5000, sizeof buffer);
    expect_error(read_range(bench->top, SIZE - begin - 1, buffer, 2), BW_ERROR_CORRUPT,
                 "the bcache device ends at");
    close_bench(bench);
}

static void test_versions(void **state)
{
    struct bench *bench = make_bench();
    uint8_t *superblock = bench->bytes + PLACE;
    check_contents(bench, 8192);
    put_le64(superblock + 184, 64);
    for (unsigned version = 4; version <= 6; version += 2) {
        put_le64(superblock + 16, version);
        seal(superblock);
        check_contents(bench, 64 * 512);
    }
    free(bench);
}

static void refuse(struct bench *bench, enum bw_error_code code, const char *message)
{
    seal(bench->bytes + PLACE);
    expect_error(open_bench(bench, SIZE), code, message);
    close_bench(bench);
}

static void test_refusals(void **state)
{
    struct bench *bench = make_bench();
    uint8_t *superblock = bench->bytes + PLACE;
    for (unsigned version = 0; version < 6; version += version == 0 ? 3 : 2) {
        put_le64(superblock + 16, version);
        refuse(bench, BW_ERROR_NOT_BTRFS, "a caching device of bcache");
    }
    put_le64(superblock + 16, 9);
    refuse(bench, BW_ERROR_UNSUPPORTED, "a bcache device of version 9");
    put_le64(superblock + 16, 4);
    refuse(bench, BW_ERROR_CORRUPT, "begin at sector 0 of 2048");
    put_le64(superblock + 184, UINT64_MAX);
    refuse(bench, BW_ERROR_CORRUPT, "begin at sector 18446744073709551615 of 2048");
    superblock[0] ^= 1;
    expect_error(open_bench(bench, SIZE), BW_ERROR_NOT_FOUND, "no superblock of bcache");
    close_bench(bench);
    expect_error(open_bench(bench, 5000), BW_ERROR_NOT_FOUND, "no superblock of bcache");
    close_bench(bench);
    put_le64(superblock + 200, UINT64_MAX); /* the number of keys, whose end the checksum covers */
    refuse(bench, BW_ERROR_NOT_FOUND, "no superblock of bcache");
    free(bench);
}

static void test_states(void **state)
{
    struct bench *bench = make_bench();
    put_le64(bench->bytes + PLACE + 104, UINT64_C(1) << 61 | 1);
    seal(bench->bytes + PLACE);
    check_contents(bench, 8192);
    put_le64(bench->bytes + PLACE + 104, UINT64_C(2) << 61 | 1);
    seal(bench->bytes + PLACE);
    struct bw_error *error = open_bench(bench, SIZE);
    assert_string_equal(error->advice, "`offset 8192` reads what the backing device has");
    expect_error(
        error, BW_ERROR_MISSING_DEVICE,
        "the newest data are in the bcache cache set e75f58a8-3306-4dc0-b500-d3aa6dee34c3, "
        "which is not read: let the kernel write them back first");
    close_bench(bench);
    put_le64(bench->bytes + PLACE + 104, UINT64_C(3) << 61);
    seal(bench->bytes + PLACE);
    expect_success(open_bench(bench, SIZE));
    assert_int_equal(report_log_count(&bench->log, "was used without its cache"), 1);
    close_bench(bench);
    free(bench);
}
