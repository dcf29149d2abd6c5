/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * src/ondisk/compression.c, all algorithms: decompresses data from the compressors of the libraries
 * and of the kernel; short, long, truncated and damaged streams behave as the header says.
 * test_compression_frames.c has the tests of single algorithms.
 */
#include "compression_bench.h"
#include "data/kernel_streams.h"

static const unsigned algorithms[] = {BW_COMPRESS_ZLIB, BW_COMPRESS_LZO, BW_COMPRESS_ZSTD};

/* Streams that are good. */

static void check_lengths_of_output(struct bench *bench, size_t sector, unsigned compression,
                                    size_t packed, size_t length)
{
    const size_t outputs[] = {length, 1, length / 2, length - 1, length + 1, LARGEST};
    for (size_t i = 0; i < COUNT(outputs); i++) {
        size_t wanted = outputs[i] && outputs[i] < LARGEST ? outputs[i] : LARGEST;
        expect_success(unpack_at(bench, sector, compression, bench->stream, packed, wanted));
        expect_text(bench, length < wanted ? length : wanted, wanted);
    }
}

/* With zeros or other bytes after it in the last sector. */
static void check_round_trip(struct bench *bench, size_t sector, unsigned compression,
                             size_t length)
{
    uint32_t size = sectorsizes[sector];
    size_t packed = pack(compression, bench->text, length, bench->stream, size);
    size_t padded = (packed + size - 1) / size * size;
    if (padded > LARGEST)
        return;
    for (int byte = 0; byte < 256; byte += 0xa5) {
        memset(bench->stream + packed, byte, padded - packed);
        check_lengths_of_output(bench, sector, compression, padded, length);
    }
}

static void test_round_trips(void **state)
{
    static const size_t lengths[] = {1,     2,      100,         4095,   4096,  4097,
                                     8192,  16384,  16385,       30000,  65536, 65537,
                                     70000, 100000, LARGEST - 1, LARGEST};
    for (size_t sector = 0; sector < COUNT(sectorsizes); sector++)
        for (size_t i = 0; i < COUNT(algorithms); i++)
            for (size_t k = 0; k < COUNT(lengths); k++)
                check_round_trip(*state, sector, algorithms[i], lengths[k]);
}

static void test_none(void **state)
{
    struct bench *bench = *state;
    static const size_t lengths[][2] = {
        {1000, 1000}, {1000, 4096}, {4096, 10}, {2 * LARGEST, 2 * LARGEST}};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t stored = lengths[i][0], wanted = lengths[i][1],
               most = wanted < LARGEST ? wanted : LARGEST;
        expect_success(unpack_at(bench, 0, BW_COMPRESS_NONE, bench->text, stored, wanted));
        expect_text(bench, stored < most ? stored : most, most);
    }
    for (unsigned compression = 0; compression < BW_COMPRESS_TYPES; compression++)
        expect_success(unpack_at(bench, 0, compression, bench->text, 0, 0));
}

static void test_streams_of_the_kernel(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT(kernel_streams); i++) {
        const bool is_inline = kernel_streams[i].ram_bytes == 1000;
        size_t padded = is_inline ? kernel_streams[i].length : 4096;
        memset(bench->stream, 0, padded);
        memcpy(bench->stream, kernel_streams[i].bytes, kernel_streams[i].length);
        expect_success(unpack_bytes(bench, 0, kernel_streams[i].compression, is_inline,
                                    bench->stream, padded, kernel_streams[i].ram_bytes));
        for (size_t at = 0; at < kernel_streams[i].text_length; at++) {
            size_t line = at / 20, column = at % 20;
            char wanted = column ? ": a line of a file\n"[column - 1] : (char)('0' + line % 10);
            assert_int_equal(bench->output[at], wanted);
        }
        memcpy(bench->output, bench->text, kernel_streams[i].text_length);
        expect_text(bench, kernel_streams[i].text_length, kernel_streams[i].ram_bytes);
    }
}

/* Streams that are not. */

/* Whether a call that may fail has either failed as promised or filled the output. */
static bool fails_well(struct bw_error *error)
{
    if (!error)
        return false;
    assert_int_equal(error->code, BW_ERROR_CORRUPT);
    assert_true(strlen(error->message) > 5);
    bw_error_free(error);
    return true;
}

/* Only the sum behind a zlib stream may be missing. Decoding stops when the output is full, so the
 * output has room for one more byte. */
static void test_streams_cut_off(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        size_t packed = pack(algorithms[i], bench->text, 9000, bench->stream, 4096);
        size_t needed = algorithms[i] == BW_COMPRESS_ZLIB ? packed - 4 : packed;
        for (size_t length = 0; length < packed; length++) {
            const size_t wanted = length < needed ? 9001 : 9000;
            struct bw_error *error = unpack_inline(bench, algorithms[i], length, wanted);
            if (error)
                assert_null(strstr(error->message, "inline data end"));
            bool failed = fails_well(error);
            assert_int_equal(failed, length < needed);
            if (!failed)
                expect_text(bench, 9000, 9000);
        }
    }
}

/* Every bit of a stream, in turn; the name of the algorithm is in the message. */
static void test_flipped_bits(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        size_t failures = 0;
        for (unsigned source = 0; source < 2; source++) {
            size_t packed =
                pack(algorithms[i], bench->text + source * 30000, 5000, bench->stream, 4096);
            for (size_t bit = 0; bit < 8 * packed; bit++) {
                bench->stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
                failures += fails_well(unpack(bench, algorithms[i], packed, 8192));
                bench->stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            expect_success(unpack(bench, algorithms[i], packed, 8192));
        }
        assert_true(failures > 100);
    }
}

static void test_zeros_and_noise(void **state)
{
    struct bench *bench = *state;
    uint32_t random = 5;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        const char *name = bw_compression_name(algorithms[i]);
        for (int byte = 0; byte < 256; byte++) {
            memset(bench->stream, byte, 8192);
            expect_corrupt(bench, algorithms[i], 8192, name);
        }
        for (unsigned round = 0; round < 200; round++) {
            for (size_t at = 0; at < 4096; at++)
                bench->stream[at] = (uint8_t)next_random(&random);
            expect_corrupt(bench, algorithms[i], 4096, name);
        }
    }
}

/* A stream for many megabytes stops at the end of the output. */
static void test_bombs(void **state)
{
    struct bench *bench = *state;
    const size_t length = 8 << 20;
    uint8_t *zeros = calloc(1, length);
    assert_non_null(zeros);
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        size_t packed = pack(algorithms[i], zeros, length, bench->stream, 4096);
        expect_success(unpack(bench, algorithms[i], packed, LARGEST));
        expect_text(bench, 0, LARGEST);
    }
    free(zeros);
}

static void test_limits(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        size_t packed = pack(algorithms[i], bench->text, 4096, bench->stream, 4096);
        expect_error(unpack(bench, algorithms[i], packed, LARGEST + 1), BW_ERROR_CORRUPT, "131073");
        expect_error(unpack_inline(bench, algorithms[i], LARGEST + 1, 4096), BW_ERROR_CORRUPT,
                     "131073");
    }
    expect_error(unpack(bench, BW_COMPRESS_TYPES, 10, 10), BW_ERROR_UNSUPPORTED,
                 "unknown compression 4");
    expect_error(unpack(bench, UINT32_MAX, 10, 10), BW_ERROR_UNSUPPORTED, "unknown compression");
    bw_decompressor_destroy(NULL);
    assert_string_equal(bw_compression_name(BW_COMPRESS_ZLIB), "zlib");
    assert_null(bw_compression_name(BW_COMPRESS_TYPES));
}
