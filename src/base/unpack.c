/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats of compressed files. Their libraries decompress; each function here passes one piece
 * to its library.
 */
#include "base/unpack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#ifdef BW_LZ4
#include <lz4frame.h>
#endif
#ifdef BW_XZ
#include <lzma.h>
#endif

#include "base/cleanup.h"

/* More is needed only by files that were compressed with a window of unusual size. */
enum { LARGEST_WINDOW_LOG = 27, LARGEST_MEMORY = 256 << 20 };

struct bw_packing {
    const char *name;
    const char *magic;
    size_t magic_length;
    struct bw_error *(*begin)(struct bw_unpacker *unpacker);
    struct bw_error *(*run)(struct bw_unpacker *unpacker, struct bw_unpacking *bytes);
    void (*begin_frame)(struct bw_unpacker *unpacker); /* before the second one and others */
    void (*end)(struct bw_unpacker *unpacker);
};

struct bw_unpacker {
    const struct bw_packing *packing;
    bool is_complete;
    union {
        ZSTD_DCtx *zstd;
        z_stream gzip;
#ifdef BW_LZ4
        LZ4F_dctx *lz4;
#endif
#ifdef BW_XZ
        lzma_stream xz;
#endif
    };
};

static struct bw_error *damaged_data(const struct bw_unpacker *unpacker, const char *why)
{
    const char *name = unpacker->packing->name;
    if (!why)
        return bw_error_create(BW_ERROR_CORRUPT, "the %s-compressed data are damaged", name);
    return bw_error_create(BW_ERROR_CORRUPT, "the %s-compressed data are damaged: %s", name, why);
}

static struct bw_error *needs_memory(const char *command)
{
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "decompressing it needs more memory than is allowed: unpack it first, "
                           "with '%s'",
                           command);
}

static void advance_bytes(struct bw_unpacking *bytes, size_t used, size_t written)
{
    bytes->input += used;
    bytes->input_length -= used;
    bytes->output += written;
    bytes->output_length -= written;
}

/* zstd */

static struct bw_error *begin_zstd(struct bw_unpacker *unpacker)
{
    unpacker->zstd = ZSTD_createDCtx();
    if (!unpacker->zstd)
        return bw_error_no_memory();
    ZSTD_DCtx_setParameter(unpacker->zstd, ZSTD_d_windowLogMax, LARGEST_WINDOW_LOG);
    return NULL;
}

static struct bw_error *run_zstd(struct bw_unpacker *unpacker, struct bw_unpacking *bytes)
{
    ZSTD_inBuffer input = {bytes->input, bytes->input_length, 0};
    ZSTD_outBuffer output = {bytes->output, bytes->output_length, 0};
    const size_t left = ZSTD_decompressStream(unpacker->zstd, &output, &input);
    advance_bytes(bytes, input.pos, output.pos);
    if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
        return needs_memory("zstd -d --long=31");
    if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
        return bw_error_no_memory();
    if (ZSTD_isError(left))
        return damaged_data(unpacker, ZSTD_getErrorName(left));
    unpacker->is_complete = !left;
    return NULL;
}

static void end_zstd(struct bw_unpacker *unpacker)
{
    ZSTD_freeDCtx(unpacker->zstd);
}

/* gzip */

static struct bw_error *begin_gzip(struct bw_unpacker *unpacker)
{
    enum { LARGEST_WINDOW = 15, WITH_HEADER = 16 };
    if (inflateInit2(&unpacker->gzip, LARGEST_WINDOW + WITH_HEADER) != Z_OK)
        return bw_error_no_memory();
    return NULL;
}

static void begin_member(struct bw_unpacker *unpacker)
{
    inflateReset(&unpacker->gzip);
}

static struct bw_error *run_gzip(struct bw_unpacker *unpacker, struct bw_unpacking *bytes)
{
    z_stream *stream = &unpacker->gzip;
    stream->next_in = (Bytef *)(uintptr_t)bytes->input;
    stream->avail_in = (uInt)bytes->input_length;
    stream->next_out = bytes->output;
    stream->avail_out = (uInt)bytes->output_length;
    const int result = inflate(stream, Z_NO_FLUSH);
    advance_bytes(bytes, bytes->input_length - stream->avail_in,
                  bytes->output_length - stream->avail_out);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return result == Z_MEM_ERROR ? bw_error_no_memory() : damaged_data(unpacker, stream->msg);
    unpacker->is_complete = result == Z_STREAM_END;
    return NULL;
}

static void end_gzip(struct bw_unpacker *unpacker)
{
    inflateEnd(&unpacker->gzip);
}

/* lz4 */

#ifdef BW_LZ4

static struct bw_error *begin_lz4(struct bw_unpacker *unpacker)
{
    if (LZ4F_isError(LZ4F_createDecompressionContext(&unpacker->lz4, LZ4F_VERSION)))
        return bw_error_no_memory();
    return NULL;
}

static struct bw_error *run_lz4(struct bw_unpacker *unpacker, struct bw_unpacking *bytes)
{
    size_t used = bytes->input_length, written = bytes->output_length;
    const size_t left =
        LZ4F_decompress(unpacker->lz4, bytes->output, &written, bytes->input, &used, NULL);
    if (LZ4F_isError(left)) {
        const char *why = LZ4F_getErrorName(left); /* codes are not part of its interface */
        return strcmp(why, "ERROR_allocation_failed") == 0 ? bw_error_no_memory()
                                                           : damaged_data(unpacker, why);
    }
    advance_bytes(bytes, used, written);
    unpacker->is_complete = !left;
    return NULL;
}

static void end_lz4(struct bw_unpacker *unpacker)
{
    LZ4F_freeDecompressionContext(unpacker->lz4);
}

#endif

/* xz */

#ifdef BW_XZ

static struct bw_error *begin_xz(struct bw_unpacker *unpacker)
{
    unpacker->xz = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&unpacker->xz, LARGEST_MEMORY, 0) != LZMA_OK)
        return bw_error_no_memory();
    return NULL;
}

/* Without memory, the next call fails. */
static void begin_stream(struct bw_unpacker *unpacker)
{
    if (lzma_stream_decoder(&unpacker->xz, LARGEST_MEMORY, 0) != LZMA_OK)
        lzma_end(&unpacker->xz);
}

static struct bw_error *run_xz(struct bw_unpacker *unpacker, struct bw_unpacking *bytes)
{
    lzma_stream *stream = &unpacker->xz;
    stream->next_in = bytes->input;
    stream->avail_in = bytes->input_length;
    stream->next_out = bytes->output;
    stream->avail_out = bytes->output_length;
    const lzma_ret result = lzma_code(stream, LZMA_RUN);
    advance_bytes(bytes, bytes->input_length - stream->avail_in,
                  bytes->output_length - stream->avail_out);
    if (result == LZMA_MEMLIMIT_ERROR)
        return needs_memory("unxz");
    if (result == LZMA_MEM_ERROR)
        return bw_error_no_memory();
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
        return damaged_data(unpacker, NULL);
    unpacker->is_complete = result == LZMA_STREAM_END;
    return NULL;
}

static void end_xz(struct bw_unpacker *unpacker)
{
    lzma_end(&unpacker->xz);
}

#endif

#define PACKING(name, magic, begin_frame)                                                 \
    {                                                                                     \
#name, magic, sizeof magic - 1, begin_##name, run_##name, begin_frame, end_##name \
    }

static const struct bw_packing packings[] = {
    PACKING(zstd, "\x28\xb5\x2f\xfd", NULL),
    PACKING(gzip, "\x1f\x8b\x08", begin_member),
#ifdef BW_LZ4
    PACKING(lz4, "\x04\x22\x4d\x18", NULL),
#endif
#ifdef BW_XZ
    PACKING(xz, "\xfd\x37zXZ\0", begin_stream),
#endif
};

const struct bw_packing *bw_packing_find(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
        if (packings[i].magic_length <= length &&
            memcmp(bytes, packings[i].magic, packings[i].magic_length) == 0)
            return &packings[i];
    return NULL;
}

const char *bw_packing_name(const struct bw_packing *packing)
{
    return packing->name;
}

struct bw_error *bw_unpacker_create(const struct bw_packing *packing, struct bw_unpacker **made)
{
    struct bw_unpacker *unpacker = calloc(1, sizeof *unpacker);
    if (!unpacker)
        return bw_error_no_memory();
    unpacker->packing = packing;
    struct bw_error *error = packing->begin(unpacker);
    if (error)
        free(unpacker);
    else
        *made = unpacker;
    return error;
}

void bw_unpacker_destroy(struct bw_unpacker *unpacker)
{
    if (!unpacker)
        return;
    unpacker->packing->end(unpacker);
    free(unpacker);
}

struct bw_error *bw_unpack(struct bw_unpacker *unpacker, struct bw_unpacking *bytes)
{
    size_t before;
    do {
        /* After a frame, another one may follow. Zeros may as well: a device, or a tape, is longer
         * than the file in it. */
        while (unpacker->is_complete && bytes->input_length && !*bytes->input)
            advance_bytes(bytes, 1, 0);
        if (unpacker->is_complete && !bytes->input_length)
            break;
        if (unpacker->is_complete && unpacker->packing->begin_frame)
            unpacker->packing->begin_frame(unpacker);
        before = bytes->input_length + bytes->output_length;
        BW_TRY(unpacker->packing->run(unpacker, bytes));
    } while (bytes->output_length && bytes->input_length &&
             bytes->input_length + bytes->output_length < before);
    return NULL;
}

bool bw_unpacker_is_complete(const struct bw_unpacker *unpacker)
{
    return unpacker->is_complete;
}
