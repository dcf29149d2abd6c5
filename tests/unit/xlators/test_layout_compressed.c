/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/compressed: files of each format, of one frame and of two, damaged and cut off. */
#include <zlib.h>
#include <zstd.h>
#ifdef BW_LZ4
#include <lz4frame.h>
#endif
#ifdef BW_XZ
#include <lzma.h>
#endif

#include "support/fake_layer.h"

enum { SIZE = 3 << 20, HOLE = 1 << 20, ROOM = 2 * SIZE + 4096 };

struct bench {
    struct fake_layer fake;
    uint8_t plain[SIZE], packed[ROOM];
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
};

/* Noise, with zeros in the middle. */
static struct bench *make_bench(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    uint32_t noise = 1;
    for (size_t i = 0; i < SIZE; i++) {
        noise = noise * 1664525 + 1013904223;
        bench->plain[i] = i / HOLE == 1 ? 0 : (uint8_t)(noise >> 24);
    }
    return bench;
}

typedef size_t packer(const uint8_t *bytes, size_t length, uint8_t *packed, size_t room);

static size_t pack_zstd(const uint8_t *bytes, size_t length, uint8_t *packed, size_t room)
{
    return ZSTD_compress(packed, room, bytes, length, 1);
}

static size_t pack_gzip(const uint8_t *bytes, size_t length, uint8_t *packed, size_t room)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes,
                       .avail_in = (uInt)length,
                       .next_out = packed,
                       .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

#ifdef BW_LZ4
static size_t pack_lz4(const uint8_t *bytes, size_t length, uint8_t *packed, size_t room)
{
    const LZ4F_preferences_t how = {.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled};
    return LZ4F_compressFrame(packed, room, bytes, length, &how);
}
#endif

#ifdef BW_XZ
static size_t pack_xz(const uint8_t *bytes, size_t length, uint8_t *packed, size_t room)
{
    size_t end = 0;
    assert_int_equal(
        lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, bytes, length, packed, &end, room),
        LZMA_OK);
    return end;
}
#endif

static const struct {
    const char *name;
    packer *pack;
} formats[] = {
    {"zstd", pack_zstd},
    {"gzip", pack_gzip},
#ifdef BW_LZ4
    {"lz4", pack_lz4},
#endif
#ifdef BW_XZ
    {"xz", pack_xz},
#endif
};

enum { FORMATS = sizeof formats / sizeof *formats };

static struct bw_error *open_bench(struct bench *bench, uint64_t size)
{
    bench->fake = (struct fake_layer){.copies = {bench->packed}, .size = size};
    bench->graph = fake_graph(&bench->log);
    bench->below = add_fake_device(bench->graph, &bench->fake);
    return graph_add_above(bench->graph, bench->below, "layout/compressed", "compressed", NULL,
                           &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void check_contents(struct bench *bench, uint64_t size)
{
    enum { PIECE = 100 * 1000 };
    static uint8_t buffer[PIECE];
    expect_success(open_bench(bench, size));
    assert_int_equal(bw_xlator_size(bench->top), SIZE);
    for (uint32_t at = 0; at < SIZE; at += PIECE) {
        const uint32_t length = at + PIECE < SIZE ? PIECE : SIZE - at;
        expect_success(read_range(bench->top, at, buffer, length));
        assert_memory_equal(buffer, bench->plain + at, length);
    }
    expect_error(read_range(bench->top, SIZE - 1, buffer, 2), BW_ERROR_CORRUPT,
                 "the image ends at 3145728");
    assert_int_equal(bw_xlator_next_stored(bench->top, HOLE), 2 * HOLE);
    assert_int_equal(bw_xlator_next_stored(bench->top, 2 * HOLE + 7), 2 * HOLE + 7);
    assert_int_equal(bw_xlator_next_stored(bench->top, SIZE), UINT64_MAX);
    assert_int_equal(bench->log.text.length, 0);
    close_bench(bench);
}

static void test_formats(void **state)
{
    struct bench *bench = make_bench();
    for (size_t i = 0; i < FORMATS; i++) {
        const size_t size = formats[i].pack(bench->plain, SIZE, bench->packed, ROOM);
        check_contents(bench, size);
        memset(bench->packed + size, 0, 5001); /* as in a device that is longer */
        check_contents(bench, size + 5001);
        const size_t half = formats[i].pack(bench->plain, SIZE / 2, bench->packed, ROOM);
        check_contents(bench, half + formats[i].pack(bench->plain + SIZE / 2, SIZE / 2,
                                                     bench->packed + half, ROOM - half));
    }
    free(bench);
}

/* What can be decompressed can be read. */
static void check_part(struct bench *bench, uint64_t size, const char *message)
{
    uint8_t buffer[4096];
    expect_success(open_bench(bench, size));
    assert_int_equal(report_log_count(&bench->log, message), 1);
    expect_success(read_range(bench->top, 0, buffer, sizeof buffer));
    assert_memory_equal(buffer, bench->plain, sizeof buffer);
    expect_error(read_range(bench->top, SIZE - 4096, buffer, sizeof buffer), BW_ERROR_CORRUPT,
                 message);
    close_bench(bench);
}

static void test_cut_off(void **state)
{
    struct bench *bench = make_bench();
    for (size_t i = 0; i < FORMATS; i++) {
        const size_t size = formats[i].pack(bench->plain, SIZE, bench->packed, ROOM);
        check_part(bench, size - HOLE, "the compressed file is cut off");
        expect_error(open_bench(bench, 9), BW_ERROR_CORRUPT, "cut off");
        close_bench(bench);
    }
    free(bench);
}

static void test_damage(void **state)
{
    struct bench *bench = make_bench();
    char message[64];
    for (size_t i = 0; i < FORMATS; i++) {
        const size_t size = formats[i].pack(bench->plain, SIZE, bench->packed, ROOM);
        snprintf(message, sizeof message, "the %s-compressed data are damaged", formats[i].name);
        memset(bench->packed + size - HOLE, 0xff, HOLE);
        if (formats[i].pack != pack_gzip) /* most bytes are valid, so only its checksum is wrong */
            check_part(bench, size, message);
        formats[i].pack(bench->plain, SIZE, bench->packed, ROOM);
        bench->packed[size - 8] ^= 1;
        expect_success(open_bench(bench, size));
        assert_int_equal(report_log_count(&bench->log, message), formats[i].pack != pack_zstd);
        close_bench(bench);
    }
    memset(bench->packed, 'x', SIZE);
    expect_error(open_bench(bench, SIZE), BW_ERROR_NOT_BTRFS, "not compressed in a known format");
    close_bench(bench);
    free(bench);
}

/* A window that zstd itself accepts only with an option. */
static void test_memory(void **state)
{
    struct bench *bench = make_bench();
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    ZSTD_inBuffer input = {bench->plain, SIZE, 0};
    ZSTD_outBuffer output = {bench->packed, ROOM, 0};
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 28);
    assert_int_equal(ZSTD_compressStream2(zstd, &output, &input, ZSTD_e_flush), 0);
    assert_int_equal(ZSTD_compressStream2(zstd, &output, &input, ZSTD_e_end), 0);
    ZSTD_freeCCtx(zstd);
    expect_error(open_bench(bench, output.pos), BW_ERROR_UNSUPPORTED, "zstd -d --long=31");
    close_bench(bench);
    free(bench);
}

#ifdef BW_XZ
/* The head of an xz file may ask for gigabytes, in a few bytes. */
static void test_memory_of_xz(void **state)
{
    struct bench *bench = make_bench();
    lzma_options_lzma options;
    assert_false(lzma_lzma_preset(&options, 1));
    options.dict_size = UINT32_C(1) << 31;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    const lzma_stream_flags stream = {.backward_size = LZMA_VLI_UNKNOWN, .check = LZMA_CHECK_CRC32};
    lzma_block block = {.check = LZMA_CHECK_CRC32,
                        .compressed_size = LZMA_VLI_UNKNOWN,
                        .uncompressed_size = LZMA_VLI_UNKNOWN,
                        .filters = filters};
    assert_int_equal(lzma_stream_header_encode(&stream, bench->packed), LZMA_OK);
    assert_int_equal(lzma_block_header_size(&block), LZMA_OK);
    assert_int_equal(lzma_block_header_encode(&block, bench->packed + LZMA_STREAM_HEADER_SIZE),
                     LZMA_OK);
    expect_error(open_bench(bench, 4096), BW_ERROR_UNSUPPORTED, "unxz");
    close_bench(bench);
    free(bench);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),      cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_memory),
#ifdef BW_XZ
        cmocka_unit_test(test_memory_of_xz),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
