/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of extents. The libraries decompress; this file reads the frames that btrfs puts
 * around their streams, checks bounds, and decides which irregularities are errors.
 */
#include "ondisk/compression.h"

#include <lzo/lzo1x.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"

enum {
    LZO_LENGTH_SIZE = 4,
    LZO_SMALLEST = 2 * LZO_LENGTH_SIZE,
    ZLIB_HEADER_SIZE = 2,
    ZLIB_HAS_DICTIONARY = 0x20,
    ZSTD_MAGIC_SIZE = 4,
    ZSTD_WINDOW_LOG = 21, /* two MiB: the largest that kernels were seen to read */
};

struct bw_decompressor {
    ZSTD_DCtx *zstd;
    z_stream zlib;
    bool zlib_ready;
    uint32_t sectorsize;

    /* One call of bw_decompress(). */
    bool is_inline;
    const uint8_t *input;
    size_t input_length;
    uint8_t *output;
    size_t output_length;
    size_t produced; /* bytes of output there are so far */

    size_t segment_size; /* the most that an LZO segment may decode to */
    uint8_t segment[];   /* one that may be longer than the rest of the output */
};

/* zlib. */

static struct bw_error *decode_zlib(struct bw_decompressor *self)
{
    z_stream *zlib = &self->zlib;
    const uint8_t *header = self->input;
    if (self->input_length < ZLIB_HEADER_SIZE)
        return bw_error_create(BW_ERROR_CORRUPT, "no room for a header");
    if ((header[0] << 8 | header[1]) % 31 || (header[0] & 15) != Z_DEFLATED ||
        header[0] >> 4 > MAX_WBITS - 8)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid header %02x%02x", header[0], header[1]);
    if (header[1] & ZLIB_HAS_DICTIONARY)
        return bw_error_create(BW_ERROR_CORRUPT, "the header requires a dictionary");
    inflateReset(zlib);
    zlib->next_in = self->input + ZLIB_HEADER_SIZE;
    zlib->avail_in = (uInt)(self->input_length - ZLIB_HEADER_SIZE);
    zlib->next_out = self->output;
    zlib->avail_out = (uInt)self->output_length;
    int status = inflate(zlib, Z_FINISH);
    self->produced = self->output_length - zlib->avail_out;
    if (status == Z_STREAM_END || zlib->avail_out == 0)
        return NULL;
    if (status == Z_MEM_ERROR)
        return bw_error_no_memory();
    if (status == Z_BUF_ERROR)
        return bw_error_create(BW_ERROR_CORRUPT, "the stream is cut off after %zu byte%s of output",
                               self->produced, bw_plural(self->produced));
    return bw_error_create(BW_ERROR_CORRUPT, "%s", zlib->msg ? zlib->msg : zError(status));
}

/* LZO. */

static uint32_t length_at(const uint8_t *bytes)
{
    bw_le32 disk;
    memcpy(&disk, bytes, sizeof disk);
    return bw_get32(disk);
}

static const char *lzo_reason(int status)
{
    switch (status) {
    case LZO_E_INPUT_OVERRUN:
        return "input overrun";
    case LZO_E_OUTPUT_OVERRUN:
        return "it is too long";
    case LZO_E_LOOKBEHIND_OVERRUN:
        return "invalid distance too far back";
    case LZO_E_INPUT_NOT_CONSUMED:
        return "it ends early";
    default:
        return "it does not end";
    }
}

static struct bw_error *decode_lzo(struct bw_decompressor *self)
{
    /* The total length reaches into the last stored sector: btrfs stores no more sectors than
     * needed. Inline data have no padding, and only one segment. Zeros, as a lost write leaves
     * them, are no stream. */
    if (self->input_length < LZO_SMALLEST)
        return bw_error_create(BW_ERROR_CORRUPT, "no room for a segment");
    const bool sole = self->is_inline;
    const size_t padding = sole ? 0 : self->sectorsize - 1;
    const size_t total = length_at(self->input);
    if (total < LZO_SMALLEST || total > self->input_length || self->input_length - total > padding)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "invalid length %zu of a stream stored in %zu bytes", total,
                               self->input_length);

    size_t position = LZO_LENGTH_SIZE;
    while (position < total && self->produced < self->output_length) {
        /* Only the stored bytes limit a segment: the kernel does not compare it with the total
         * length either, unless it is inline. */
        if (self->input_length - position < LZO_LENGTH_SIZE)
            return bw_error_create(BW_ERROR_CORRUPT, "segment at %zu: no room for its length",
                                   position);
        const size_t length = length_at(self->input + position);
        position += LZO_LENGTH_SIZE;
        const size_t remain = self->input_length - position;
        if (length > remain || (sole && length < remain))
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "segment at %zu: invalid length %zu, %zu bytes remain", position,
                                   length, remain);

        /* Decodes directly into the output if the longest segment fits there, otherwise into
         * `segment`, of which only a part is copied. */
        const size_t room = self->output_length - self->produced;
        uint8_t *place = self->output + self->produced;
        if (room < self->segment_size)
            place = self->segment;
        lzo_uint decoded = sole ? self->sectorsize : self->segment_size;
        const int status =
            lzo1x_decompress_safe(self->input + position, length, place, &decoded, NULL);
        if (status != LZO_E_OK)
            return bw_error_create(BW_ERROR_CORRUPT, "segment at %zu: %s", position,
                                   lzo_reason(status));
        if (decoded > room)
            decoded = room;
        if (place == self->segment)
            memcpy(self->output + self->produced, place, decoded);
        self->produced += decoded;

        /* No length crosses the border of a sector. */
        position += length;
        const size_t left = self->sectorsize - position % self->sectorsize;
        if (left < LZO_LENGTH_SIZE)
            position += left;
    }
    return NULL;
}

/* zstd. */

/* The library would read frames of its past and skip frames of metadata; btrfs has neither. */
static struct bw_error *decode_zstd(struct bw_decompressor *self)
{
    if (self->input_length < ZSTD_MAGIC_SIZE || length_at(self->input) != ZSTD_MAGICNUMBER)
        return bw_error_create(BW_ERROR_CORRUPT, "no frame");
    ZSTD_DCtx_reset(self->zstd, ZSTD_reset_session_only);
    ZSTD_inBuffer in = {self->input, self->input_length, 0};
    ZSTD_outBuffer out = {self->output, self->output_length, 0};
    size_t left, before;
    do {
        before = in.pos + out.pos;
        left = ZSTD_decompressStream(self->zstd, &out, &in);
        if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
            return bw_error_no_memory();
        if (ZSTD_isError(left))
            return bw_error_create(BW_ERROR_CORRUPT, "%s", ZSTD_getErrorName(left));
    } while (left && out.pos < out.size && in.pos + out.pos > before);
    self->produced = out.pos;
    if (left && out.pos < out.size)
        return bw_error_create(BW_ERROR_CORRUPT, "the stream is cut off after %zu byte%s of output",
                               out.pos, bw_plural(out.pos));
    return NULL;
}

/* All of them. */

static struct bw_error *copy_plain(struct bw_decompressor *self)
{
    self->produced = (size_t)bw_min(self->input_length, self->output_length);
    if (self->produced)
        memcpy(self->output, self->input, self->produced);
    return NULL;
}

static const struct {
    const char *name;
    struct bw_error *(*decode)(struct bw_decompressor *self);
} codecs[BW_COMPRESS_TYPES] = {
    [BW_COMPRESS_NONE] = {"none", copy_plain},
    [BW_COMPRESS_ZLIB] = {"zlib", decode_zlib},
    [BW_COMPRESS_LZO] = {"lzo", decode_lzo},
    [BW_COMPRESS_ZSTD] = {"zstd", decode_zstd},
};

const char *bw_compression_name(unsigned compression)
{
    return compression < BW_COMPRESS_TYPES ? codecs[compression].name : NULL;
}

/* Raw zlib streams are inflated with the largest window, whichever size the header names: it suits
 * all streams, and the state can be reused. */
static struct bw_error *prepare_codecs(struct bw_decompressor *self)
{
    if (lzo_init() != LZO_E_OK)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "lzo does not start");
    self->zlib_ready = inflateInit2(&self->zlib, -MAX_WBITS) == Z_OK;
    self->zstd = ZSTD_createDCtx();
    if (!self->zlib_ready || !self->zstd)
        return bw_error_no_memory();
    ZSTD_DCtx_setParameter(self->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    return NULL;
}

struct bw_error *bw_decompressor_create(uint32_t sectorsize, struct bw_decompressor **result)
{
    *result = NULL;
    /* A segment is a sector, but kernels take as much as LZO may need for an incompressible one. */
    const size_t segment_size = sectorsize + sectorsize / 16 + 64 + 3 + 2;
    struct bw_decompressor *self = calloc(1, sizeof *self + segment_size);
    if (!self)
        return bw_error_no_memory();
    self->sectorsize = sectorsize;
    self->segment_size = segment_size;
    struct bw_error *error = prepare_codecs(self);
    if (error)
        bw_decompressor_destroy(self);
    else
        *result = self;
    return error;
}

void bw_decompressor_destroy(struct bw_decompressor *decompressor)
{
    if (!decompressor)
        return;
    ZSTD_freeDCtx(decompressor->zstd);
    if (decompressor->zlib_ready)
        inflateEnd(&decompressor->zlib);
    free(decompressor);
}

struct bw_error *bw_decompress(struct bw_decompressor *decompressor, unsigned compression,
                               bool is_inline, const uint8_t *input, size_t input_length,
                               uint8_t *output, size_t output_length)
{
    if (compression >= BW_COMPRESS_TYPES)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "unknown compression %u", compression);
    if (output_length == 0)
        return NULL;
    const bool too_long =
        input_length > BW_MAX_COMPRESSED_EXTENT || output_length > BW_MAX_COMPRESSED_EXTENT;
    decompressor->is_inline = is_inline;
    decompressor->input = input;
    decompressor->input_length = input_length;
    decompressor->output = output;
    decompressor->output_length = output_length;
    decompressor->produced = 0;
    struct bw_error *error;
    if (compression != BW_COMPRESS_NONE && too_long)
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "%zu bytes stored for %zu exceed the limits of an extent",
                                input_length, output_length);
    else
        error = codecs[compression].decode(decompressor);
    if (!error && compression != BW_COMPRESS_NONE && decompressor->produced < output_length &&
        is_inline)
        error = bw_error_create(BW_ERROR_CORRUPT, "inline data end after %zu of %zu bytes",
                                decompressor->produced, output_length);
    if (error)
        return bw_error_prefix(error, "%s", codecs[compression].name);
    memset(output + decompressor->produced, 0, output_length - decompressor->produced);
    return NULL;
}
