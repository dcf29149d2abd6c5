/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * src/format/compression, one algorithm at a time: headers and encoders of zlib, segments of LZO,
 * frames and windows of zstd.
 */
#include "compression_bench.h"

/* zlib. */

/* All windows, stored blocks, the fixed code that hardware encoders like, streams of many flushes.
 */
static void test_zlib_encoders(void **state)
{
    struct bench *bench = *state;
    static const int levels[] = {0, 1, 9},
                     strategies[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
    for (int window = 9; window <= 15; window++)
        for (size_t i = 0; i < COUNT(levels) * COUNT(strategies); i++) {
            size_t packed =
                pack_zlib_as(bench->text, 70000, bench->stream, levels[i % COUNT(levels)], window,
                             strategies[i / COUNT(levels)]);
            expect_success(unpack(bench, BW_COMPRESS_ZLIB, packed, 73728));
            expect_text(bench, 70000, 73728);
        }
    z_stream zlib = {.next_in = bench->text, .next_out = bench->stream, .avail_out = ROOM};
    assert_int_equal(deflateInit(&zlib, 6), Z_OK);
    while (zlib.total_in < 65536) {
        zlib.avail_in = 1024;
        assert_int_equal(deflate(&zlib, Z_FULL_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    deflateEnd(&zlib);
    expect_success(unpack(bench, BW_COMPRESS_ZLIB, zlib.total_out, 65536));
    expect_text(bench, 65536, 65536);
}

static void set_zlib_header(uint8_t *stream, unsigned method, unsigned flags)
{
    stream[0] = (uint8_t)method;
    stream[1] = (uint8_t)(flags + 31 - (method << 8 | flags) % 31);
}

static void test_zlib_headers(void **state)
{
    struct bench *bench = *state;
    size_t packed = pack_zlib_as(bench->text, 4096, bench->stream, 6, 15, Z_DEFAULT_STRATEGY);
    bench->stream[packed - 1] ^= 1;
    expect_success(unpack(bench, BW_COMPRESS_ZLIB, packed, 8192));
    expect_text(bench, 4096, 8192);
    set_zlib_header(bench->stream, 0x78, 0x20);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, packed, "zlib: the header requires a dictionary");
    set_zlib_header(bench->stream, 0x88, 0);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, packed, "zlib: invalid header 88");
    set_zlib_header(bench->stream, 0x77, 0);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, packed, "zlib: invalid header 77");
    packed = pack_zlib_as(bench->text, 4096, bench->stream, 6, -15, Z_DEFAULT_STRATEGY);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, packed, "zlib: invalid header");
    packed = pack_zlib_as(bench->text, 4096, bench->stream, 6, 31, Z_DEFAULT_STRATEGY);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, packed, "zlib: invalid header 1f8b");
    memcpy(bench->stream, "\x78\x9c\x07", 3);
    expect_corrupt(bench, BW_COMPRESS_ZLIB, 100, "zlib: invalid block type");
}

/* LZO. */

static size_t pack_segments(struct bench *bench, const size_t *lengths, size_t count)
{
    size_t position = 4, at = 0;
    for (size_t i = 0; i < count; at += lengths[i++])
        add_segment(bench->stream, &position, 4096, bench->text + at, lengths[i]);
    return end_segments(bench->stream, position, 4096);
}

/* The kernel takes segments of other lengths than a sector one behind the other, if they are no
 * longer than LZO makes a sector at worst. */
static void test_lzo_segments(void **state)
{
    struct bench *bench = *state;
    static const size_t short_ones[] = {4096, 100, 1, 4096, 2000}, long_ones[] = {4421, 4097},
                        too_long[] = {4096, 4422};
    size_t packed = pack_segments(bench, short_ones, COUNT(short_ones));
    expect_success(unpack(bench, BW_COMPRESS_LZO, packed, 16384));
    expect_text(bench, 10293, 16384);
    packed = pack_segments(bench, long_ones, COUNT(long_ones));
    for (size_t length = 8000; length <= 8518; length++) {
        expect_success(unpack(bench, BW_COMPRESS_LZO, packed, length));
        expect_text(bench, length, length);
    }
    packed = pack_segments(bench, too_long, COUNT(too_long));
    expect_error(unpack(bench, BW_COMPRESS_LZO, packed, 16384), BW_ERROR_CORRUPT, "too long");
    expect_success(unpack(bench, BW_COMPRESS_LZO, packed, 4096));
    expect_text(bench, 4096, 4096);
}

static void test_lzo_lengths(void **state)
{
    struct bench *bench = *state;
    size_t packed = pack_lzo(bench->text, 12288, bench->stream, 4096);
    const size_t bad[] = {0, 4, 7, packed + 1, packed - 4096, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < COUNT(bad); i++) {
        store_length(bench->stream, bad[i]);
        expect_corrupt(bench, BW_COMPRESS_LZO, packed, "lzo: invalid length");
    }
    store_length(bench->stream, packed);
    store_length(bench->stream + 4, packed - 7);
    expect_corrupt(bench, BW_COMPRESS_LZO, packed, "segment at 8: invalid length");
    store_length(bench->stream + 4, UINT32_MAX);
    expect_corrupt(bench, BW_COMPRESS_LZO, packed, "segment at 8: invalid length 4294967295");
    store_length(bench->stream + 4, 0);
    expect_corrupt(bench, BW_COMPRESS_LZO, packed, "segment at 8: input overrun");
    size_t end = 4;
    add_segment(bench->stream, &end, 4096, bench->text, 1000);
    for (size_t rest = 1; rest < 4; rest++) {
        store_length(bench->stream, end + rest);
        expect_error(unpack_at(bench, 0, BW_COMPRESS_LZO, bench->stream, end + rest, 8192),
                     BW_ERROR_CORRUPT, "no room for its length");
    }
}

/* Inline data are one segment without padding, so the length of the stream determines both. */
static void test_inline_lzo(void **state)
{
    struct bench *bench = *state;
    size_t length = 4;
    add_segment(bench->stream, &length, 4096, bench->text, 1000);
    for (size_t total = 0; total < 4096; total++) {
        store_length(bench->stream, total);
        if (total != length)
            expect_error(unpack_inline(bench, BW_COMPRESS_LZO, length, 1000), BW_ERROR_CORRUPT,
                         "lzo: invalid length");
    }
    store_length(bench->stream, length);
    expect_success(unpack_inline(bench, BW_COMPRESS_LZO, length, 1000));
    expect_text(bench, 1000, 1000);
    for (size_t segment = 0; segment < 4096; segment++) {
        store_length(bench->stream + 4, segment);
        if (segment != length - 8)
            expect_error(unpack_inline(bench, BW_COMPRESS_LZO, length, 1000), BW_ERROR_CORRUPT,
                         "segment at 8: invalid length");
    }
    length = 4;
    add_segment(bench->stream, &length, 4096, bench->text, 4097);
    store_length(bench->stream, length);
    assert_int_not_equal(length % 4096, 0);
    expect_error(unpack_inline(bench, BW_COMPRESS_LZO, length, 1000), BW_ERROR_CORRUPT, "too long");
}

/* Inline data must be complete. A short extent is filled up with zeros, also in a send stream,
 * where it has no padding. */
static void test_short_inline_data(void **state)
{
    struct bench *bench = *state;
    static const unsigned algorithms[] = {BW_COMPRESS_ZLIB, BW_COMPRESS_LZO, BW_COMPRESS_ZSTD};
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        size_t length = 4;
        if (algorithms[i] == BW_COMPRESS_LZO) {
            add_segment(bench->stream, &length, 4096, bench->text, 1000);
            store_length(bench->stream, length);
        } else {
            length = pack(algorithms[i], bench->text, 1000, bench->stream, 4096);
        }
        expect_success(unpack_inline(bench, algorithms[i], length, 1000));
        expect_text(bench, 1000, 1000);
        expect_error(unpack_inline(bench, algorithms[i], length, 1001), BW_ERROR_CORRUPT,
                     "inline data end after 1000 of 1001 bytes");
        expect_success(unpack_at(bench, 0, algorithms[i], bench->stream, length, 1001));
        expect_text(bench, 1000, 1001);
        expect_success(unpack(bench, algorithms[i], length, 1001));
        expect_text(bench, 1000, 1001);
    }
    size_t length = 4;
    for (size_t at = 0; at < 8192; at += 4096)
        add_segment(bench->stream, &length, 4096, bench->text + at, 4096);
    store_length(bench->stream, length);
    assert_int_not_equal(length % 4096, 0);
    expect_success(unpack_at(bench, 0, BW_COMPRESS_LZO, bench->stream, length, 8192));
    expect_text(bench, 8192, 8192);
}

/* Segments that end 0 to 9 bytes before a sector does: the next length lies behind the padding. */
static void test_lzo_padding(void **state)
{
    struct bench *bench = *state;
    uint8_t *noise = bench->text + LARGEST;
    uint32_t random = 9;
    unsigned seen = 0;
    for (size_t at = 0; at < 8192; at++)
        noise[at] = (uint8_t)next_random(&random);
    for (size_t length = 4000; length < 4096; length++) {
        size_t position = 4;
        add_segment(bench->stream, &position, 4096, noise, length);
        size_t left = (8192 - position) % 4096;
        seen |= left < 10 ? 1u << left : 0;
        add_segment(bench->stream, &position, 4096, noise + length, 4096);
        position = end_segments(bench->stream, position, 4096);
        expect_success(unpack(bench, BW_COMPRESS_LZO, position, 8192));
        assert_memory_equal(bench->output, noise, length + 4096);
    }
    assert_int_equal(seen, 0x3ff);
    fill_text(bench->text, sizeof bench->text);
}

/* zstd. */

static size_t pack_zstd_as(struct bench *bench, size_t length, int window, bool sum)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, sum);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_inBuffer in = {bench->text, length / 2, 0};
    ZSTD_outBuffer out = {bench->stream, ROOM, 0};
    while (ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush))
        continue;
    in.size = length;
    while (ZSTD_compressStream2(context, &out, &in, ZSTD_e_end))
        continue;
    ZSTD_freeCCtx(context);
    return out.pos;
}

/* Frames without a content size, as streaming encoders write them. */
static void test_zstd_windows(void **state)
{
    struct bench *bench = *state;
    for (int window = 10; window <= 21; window++) {
        size_t packed = pack_zstd_as(bench, 100000, window, window % 2);
        expect_success(unpack(bench, BW_COMPRESS_ZSTD, packed, LARGEST));
        expect_text(bench, 100000, LARGEST);
        expect_success(unpack(bench, BW_COMPRESS_ZSTD, packed, 50001));
        expect_text(bench, 50001, 50001);
    }
    for (int window = 22; window <= 27; window++)
        expect_error(
            unpack(bench, BW_COMPRESS_ZSTD, pack_zstd_as(bench, 100000, window, false), LARGEST),
            BW_ERROR_CORRUPT, "zstd: Frame requires too much memory");
}

static void test_zstd_frames(void **state)
{
    struct bench *bench = *state;
    size_t packed = pack_zstd_as(bench, 20000, 17, true);
    bench->stream[packed - 1] ^= 1;
    expect_corrupt(bench, BW_COMPRESS_ZSTD, packed, "checksum");
    packed = ZSTD_compress(bench->stream, ROOM, bench->text, 20000, 3);
    memcpy(bench->stream + packed, bench->stream, packed);
    expect_success(unpack(bench, BW_COMPRESS_ZSTD, 2 * packed, 65536));
    expect_text(bench, 20000, 65536);
    for (unsigned magic = 0; magic < 256; magic++) {
        memcpy(bench->stream, (const uint8_t[]){(uint8_t)magic, 0xb5, 0x2f, 0xfd}, 4);
        if (magic != 0x28)
            expect_corrupt(bench, BW_COMPRESS_ZSTD, packed, "zstd: no frame");
    }
    memcpy(bench->stream, "\x50\x2a\x4d\x18\x04\0\0\0four", 12);
    expect_corrupt(bench, BW_COMPRESS_ZSTD, 4096, "zstd: no frame");
}
