/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common code of the tests of decompression: the compressors of the libraries, the frames of LZO in
 * btrfs, and decompression into guarded memory.
 */
#ifndef BW_TESTS_COMPRESSION_BENCH_H
#define BW_TESTS_COMPRESSION_BENCH_H

#include <lzo/lzo1x.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "ondisk/compression.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP    set_up
#define GROUP_TEARDOWN tear_down

enum {
    LARGEST = BW_MAX_COMPRESSED_EXTENT,
    ROOM = 512 << 10, /* for a stream that is no smaller than what it holds */
};

static const uint32_t sectorsizes[] = {4096, 16384, 65536};

/* A decompressor for each sector size, and bytes to compress. */
struct bench {
    struct bw_decompressor *decompressors[COUNT(sectorsizes)];
    uint8_t text[4 * LARGEST]; /* words, noise and runs, in pieces of a few thousand bytes */
    uint8_t stream[ROOM];
    uint8_t output[LARGEST];
};

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static inline void fill_text(uint8_t *text, size_t length)
{
    uint32_t state = 1;
    for (size_t at = 0, left = 0, kind = 0; at < length; at++, left--) {
        if (!left) {
            left = 1 + next_random(&state) % 5000;
            kind = next_random(&state) % 4;
        }
        uint8_t random = (uint8_t)next_random(&state);
        text[at] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? random : random % (kind == 2 ? 8 : 3));
    }
}

static inline int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    fill_text(bench->text, sizeof bench->text);
    for (size_t i = 0; i < COUNT(sectorsizes); i++)
        expect_success(bw_decompressor_create(sectorsizes[i], &bench->decompressors[i]));
    *state = bench;
    return 0;
}

static inline int tear_down(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT(sectorsizes); i++)
        bw_decompressor_destroy(bench->decompressors[i]);
    free(bench);
    return 0;
}

/* Packing. */

static inline size_t pack_zlib_as(const uint8_t *bytes, size_t length, uint8_t *stream, int level,
                                  int window, int strategy)
{
    z_stream zlib = {
        .next_in = bytes, .avail_in = (uInt)length, .next_out = stream, .avail_out = ROOM};
    assert_int_equal(deflateInit2(&zlib, level, Z_DEFLATED, window, 8, strategy), Z_OK);
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    deflateEnd(&zlib);
    return zlib.total_out;
}

static inline void store_length(uint8_t *place, size_t length)
{
    const bw_le32 disk = bw_put32((uint32_t)length);
    memcpy(place, &disk, sizeof disk);
}

/* Appends a segment, and where its length would cross a sector, zeros in front. */
static inline void add_segment(uint8_t *stream, size_t *position, uint32_t sectorsize,
                               const uint8_t *bytes, size_t length)
{
    static uint8_t work[LZO1X_1_MEM_COMPRESS];
    lzo_uint packed;
    while (sectorsize - *position % sectorsize < 4)
        stream[(*position)++] = 0;
    assert_int_equal(lzo1x_1_compress(bytes, length, stream + *position + 4, &packed, work),
                     LZO_E_OK);
    store_length(stream + *position, packed);
    *position += 4 + packed;
}

/* Fills the last sector of a stream with zeros; returns the length that is stored. */
static inline size_t pad(uint8_t *stream, size_t length, uint32_t sectorsize)
{
    const size_t padding = (sectorsize - length % sectorsize) % sectorsize;
    memset(stream + length, 0, padding);
    return length + padding;
}

static inline size_t end_segments(uint8_t *stream, size_t position, uint32_t sectorsize)
{
    store_length(stream, position);
    return pad(stream, position, sectorsize);
}

static inline size_t pack_lzo(const uint8_t *bytes, size_t length, uint8_t *stream,
                              uint32_t sectorsize)
{
    size_t position = 4;
    for (size_t at = 0; at < length; at += sectorsize)
        add_segment(stream, &position, sectorsize, bytes + at,
                    length - at < sectorsize ? length - at : sectorsize);
    return end_segments(stream, position, sectorsize);
}

static inline size_t pack(unsigned compression, const uint8_t *bytes, size_t length,
                          uint8_t *stream, uint32_t sectorsize)
{
    if (compression == BW_COMPRESS_ZLIB)
        return pack_zlib_as(bytes, length, stream, 3, 15, Z_DEFAULT_STRATEGY);
    if (compression == BW_COMPRESS_LZO)
        return pack_lzo(bytes, length, stream, sectorsize);
    size_t result = ZSTD_compress(stream, ROOM, bytes, length, 3);
    assert_false(ZSTD_isError(result));
    return result;
}

/* Unpacking, into the bench's output, from a block of memory that ends where the stream does. */

static inline struct bw_error *unpack_bytes(struct bench *bench, size_t sector,
                                            unsigned compression, bool is_inline,
                                            const uint8_t *stream, size_t length, size_t ram_bytes)
{
    uint8_t *input = malloc(length + !length), *output = malloc(ram_bytes + !ram_bytes);
    assert_true(input && output);
    memcpy(input, stream, length);
    memset(output, 0xee, ram_bytes);
    struct bw_error *error = bw_decompress(bench->decompressors[sector], compression, is_inline,
                                           input, length, output, ram_bytes);
    memcpy(bench->output, output, ram_bytes < LARGEST ? ram_bytes : LARGEST);
    free(input);
    free(output);
    return error;
}

static inline struct bw_error *unpack_at(struct bench *bench, size_t sector, unsigned compression,
                                         const uint8_t *stream, size_t length, size_t ram_bytes)
{
    return unpack_bytes(bench, sector, compression, false, stream, length, ram_bytes);
}

static inline struct bw_error *unpack_inline(struct bench *bench, unsigned compression,
                                             size_t length, size_t ram_bytes)
{
    return unpack_bytes(bench, 0, compression, true, bench->stream, length, ram_bytes);
}

static inline struct bw_error *unpack(struct bench *bench, unsigned compression, size_t length,
                                      size_t ram_bytes)
{
    length = pad(bench->stream, length, sectorsizes[0]);
    return unpack_at(bench, 0, compression, bench->stream, length, ram_bytes);
}

static inline void expect_corrupt(struct bench *bench, unsigned compression, size_t length,
                                  const char *text)
{
    expect_error(unpack(bench, compression, length, 65536), BW_ERROR_CORRUPT, text);
}

/* The output is the text, then zeros. */
static inline void expect_text(const struct bench *bench, size_t length, size_t ram_bytes)
{
    assert_memory_equal(bench->output, bench->text, length);
    for (size_t i = length; i < ram_bytes; i++)
        assert_int_equal(bench->output[i], 0);
}

#endif
