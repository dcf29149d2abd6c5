/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/partclone: images of both formats, made byte by byte, and bad ones. */
#include <zlib.h>

#include "base/endian.h"
#include "support/fake_layer.h"

enum { SIZE = 256 << 10, BLOCK = 1024, BLOCKS = 100, STRIP = 7 };

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE];
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
};

static uint32_t checksum_of(const void *bytes, size_t length)
{
    return ~(uint32_t)crc32(0, bytes, (uInt)length);
}

/* Every fifth block is missing. */
static bool is_there(uint64_t block)
{
    return block % 5 != 3;
}

static uint8_t byte_at(uint64_t address)
{
    return (uint8_t)(address / BLOCK * 3 + address + 1);
}

static void put_blocks(uint8_t *at, unsigned strip)
{
    for (uint64_t block = 0, count = 0; block < BLOCKS; block++) {
        if (!is_there(block))
            continue;
        for (size_t i = 0; i < BLOCK; i++)
            *at++ = byte_at(block * BLOCK + i);
        if (++count % strip == 0)
            at += 4;
    }
}

static void seal(uint8_t *header)
{
    put_le32(header + 106, checksum_of(header, 106));
}

static struct bench *make_2(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uint8_t *header = bench->bytes, *map = header + 110;
    strcpy((char *)header, "partclone-image");
    memcpy(header + 30, "0002\xde\xc0", 6);
    put_le64(header + 52, BLOCKS * BLOCK);
    put_le64(header + 60, BLOCKS);
    put_le32(header + 84, BLOCK);
    put_le32(header + 96, 0x20 | 4 << 16); /* mode and size of checksums */
    put_le32(header + 100, STRIP);
    header[105] = 1;
    seal(header);
    for (unsigned i = 0; i < BLOCKS; i++)
        map[i / 8] |= (uint8_t)(is_there(i) << i % 8);
    put_le32(map + 13, checksum_of(map, 13));
    put_blocks(map + 17, STRIP);
    return bench;
}

static struct bench *make_1(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uint8_t *header = bench->bytes, *map = header + 4160;
    memcpy(header, "partclone-image", 15);
    memcpy(header + 30, "0001", 4);
    put_le32(header + 36, BLOCK);
    put_le64(header + 40, BLOCKS * BLOCK);
    put_le64(header + 48, BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++)
        map[i] = is_there(i);
    memcpy(map + BLOCKS, "BiTmAgIc", 8);
    put_blocks(map + BLOCKS + 8, 1);
    return bench;
}

static struct bw_error *open_bench(struct bench *bench, uint64_t size)
{
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = size};
    bench->graph = fake_graph(&bench->log);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return graph_add_above(bench->graph, bench->below, "layout/partclone", "partclone", NULL,
                           &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void check_contents(struct bench *bench)
{
    uint8_t buffer[3 * BLOCK];
    expect_success(open_bench(bench, SIZE));
    assert_int_equal(bw_xlator_size(bench->top), BLOCKS * BLOCK);
    for (uint64_t block = 0; block < BLOCKS; block += 5)
        for (uint64_t begin = block * BLOCK; begin < (block + 1) * BLOCK; begin += BLOCK / 2) {
            const uint32_t length = (uint32_t)((block + 3) * BLOCK - begin);
            expect_success(read_range(bench->top, begin, buffer, length));
            for (uint32_t i = 0; i < length; i++)
                assert_int_equal(buffer[i], byte_at(begin + i));
        }
    expect_error(read_range(bench->top, 7 * BLOCK + BLOCK / 2, buffer, BLOCK), BW_ERROR_CORRUPT,
                 "block 8 at 8192 is not in the backup");
    expect_error(read_range(bench->top, BLOCKS * BLOCK - 1, buffer, 2), BW_ERROR_CORRUPT,
                 "the device ends at 102400");
    assert_int_equal(bw_xlator_next_stored(bench->top, 3 * BLOCK + 1), 4 * BLOCK);
    assert_int_equal(bw_xlator_next_stored(bench->top, 5 * BLOCK + 1), 5 * BLOCK + 1);
    close_bench(bench);
}

static void test_formats(void **state)
{
    struct bench *first = make_1(), *second = make_2();
    check_contents(first);
    check_contents(second);
    second->bytes[110 + 12] ^= 0x80; /* a block behind the last one: only the checksum sees it */
    check_contents(second);
    expect_success(open_bench(second, SIZE));
    assert_int_equal(report_log_count(&second->log, "the map of the blocks in the partclone"), 1);
    close_bench(second);
    free(first);
    free(second);
}

static void test_cut_off(void **state)
{
    uint8_t buffer[BLOCK];
    struct bench *bench = make_2();
    expect_success(open_bench(bench, 40 << 10));
    expect_success(read_range(bench->top, 0, buffer, BLOCK));
    expect_error(read_range(bench->top, 99 * BLOCK, buffer, BLOCK), BW_ERROR_CORRUPT,
                 "the backup is cut off before block 99");
    close_bench(bench);
    expect_error(open_bench(bench, 115), BW_ERROR_CORRUPT, "ends in its map");
    close_bench(bench);
    expect_error(open_bench(bench, 100), BW_ERROR_CORRUPT, "the partclone image ends at 100");
    close_bench(bench);
    free(bench);
}

static void expect_refusal(size_t at, uint64_t value, const char *message)
{
    struct bench *bench = make_2();
    put_le32(bench->bytes + at, (uint32_t)value);
    if (at == 60)
        put_le64(bench->bytes + at, value);
    seal(bench->bytes);
    expect_error(open_bench(bench, SIZE), BW_ERROR_CORRUPT, message);
    close_bench(bench);
    free(bench);
}

static void test_bad_headers(void **state)
{
    expect_refusal(84, 0, "100 blocks of 0 bytes");
    expect_refusal(84, 1000, "100 blocks of 1000 bytes");
    expect_refusal(60, 0, "0 blocks of 1024 bytes");
    expect_refusal(60, UINT64_MAX, "blocks of 1024 bytes");
    expect_refusal(60, UINT32_MAX, "ends in its map");
    expect_refusal(100, 0, "checksums of no blocks");
    struct bench *bench = make_2();
    bench->bytes[84] ^= 1;
    expect_error(open_bench(bench, SIZE), BW_ERROR_CORRUPT, "checksum of the header");
    close_bench(bench);
    bench->bytes[33] = '9';
    expect_error(open_bench(bench, SIZE), BW_ERROR_UNSUPPORTED, "an unknown version");
    close_bench(bench);
    free(bench);
}
