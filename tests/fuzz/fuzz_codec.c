/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for extents that are stored compressed. Two bytes choose the algorithm, the sector
 * size, how much is wanted, and whether the header of zlib or LZO is put right; the others are the
 * stream.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"
#include "ondisk/compression.h"

enum { HEAD = 2, REPAIR = 0x80 };

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        fuzz_fail("out of memory");
    return memory;
}

static size_t wanted_length(uint8_t choice)
{
    static const size_t lengths[] = {1,     21,    1000,  4095,   4096,   8192,
                                     12288, 16384, 65536, 100000, 131072, 131073};
    return lengths[choice % (sizeof lengths / sizeof *lengths)];
}

static uint8_t *copy_stream(const uint8_t *data, size_t size, unsigned compression, bool repair)
{
    uint8_t *stream = allocate(size);
    if (size)
        memcpy(stream, data, size);
    const bw_le32 length = bw_put32((uint32_t)size);
    if (repair && compression == BW_COMPRESS_ZLIB && size >= 2)
        memcpy(stream, "\x78\x5e", 2);
    if (repair && compression == BW_COMPRESS_LZO && size >= sizeof length)
        memcpy(stream, &length, sizeof length);
    return stream;
}

/* Decodes over memory that was something else before. The output is the caller's. */
static struct bw_error *decode(struct bw_decompressor *decompressor, unsigned compression,
                               const uint8_t *stream, size_t size, size_t wanted, int before,
                               uint8_t **output)
{
    *output = allocate(wanted);
    memset(*output, before, wanted);
    struct bw_error *error =
        bw_decompress(decompressor, compression, size % 4096 != 0, stream, size, *output, wanted);
    if (error && error->code != BW_ERROR_CORRUPT)
        fuzz_fail("code %d: %s", error->code, error->message);
    if (error && (!error->message || strlen(error->message) > 300))
        fuzz_fail("a message that is none");
    return error;
}

/* The same bytes give the same output, the whole output is written, and a shorter output is a
 * prefix of a longer one. Whether zstd accepts a large window depends on the room for output. */
static void check(struct bw_decompressor *decompressor, unsigned compression, const uint8_t *stream,
                  size_t size, size_t wanted)
{
    uint8_t *first, *again, *less;
    struct bw_error *error = decode(decompressor, compression, stream, size, wanted, 0xee, &first);
    struct bw_error *half_error =
        decode(decompressor, compression, stream, size, wanted / 2, 0x33, &less);
    struct bw_error *again_error =
        decode(decompressor, compression, stream, size, wanted, 0x55, &again);
    if (!error != !again_error || (!error && memcmp(first, again, wanted) != 0))
        fuzz_fail("another answer to the same question");
    if (!error && half_error && compression != BW_COMPRESS_ZSTD)
        fuzz_fail("less is refused: %s", half_error->message);
    if (!error && !half_error && memcmp(first, less, wanted / 2) != 0)
        fuzz_fail("less is not the beginning of more");
    bw_error_free(error);
    bw_error_free(half_error);
    bw_error_free(again_error);
    free(first);
    free(less);
    free(again);
}

void fuzz_codec(const uint8_t *data, size_t size)
{
    static const uint32_t sectorsizes[] = {4096, 4096, 16384, 65536};
    if (size < HEAD)
        return;
    unsigned compression = data[0] % BW_COMPRESS_TYPES;
    struct bw_decompressor *decompressor = NULL;
    if (bw_decompressor_create(sectorsizes[data[0] / BW_COMPRESS_TYPES % 4], &decompressor))
        fuzz_fail("out of memory");
    uint8_t *stream = copy_stream(data + HEAD, size - HEAD, compression, data[0] & REPAIR);
    check(decompressor, compression, stream, size - HEAD, wanted_length(data[1]));
    free(stream);
    bw_decompressor_destroy(decompressor);
}
