/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompressing. An extent of which all is wanted is decoded in place; others go to a buffer first.
 */
#include "data/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/compression.h"
#include "fs/fs.h"

struct bw_data_decoder {
    struct bw_fs *fs;
    struct bw_decompressor *decompressor;
    uint8_t *bytes;        /* of the last extent of which only a part was wanted */
    struct bw_extent kept; /* which one that is; logical 0: none */
    bool unchecked;        /* its checksums were not looked at */
};

struct bw_error *bw_data_decoder_create(struct bw_fs *fs, struct bw_data_decoder **result)
{
    struct bw_data_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return bw_error_no_memory();
    decoder->fs = fs;
    decoder->bytes = malloc(BW_MAX_COMPRESSED_EXTENT);
    struct bw_error *error =
        decoder->bytes ? bw_decompressor_create(fs->superblock.sectorsize, &decoder->decompressor)
                       : bw_error_no_memory();
    if (error)
        bw_data_decoder_destroy(decoder);
    else
        *result = decoder;
    return error;
}

void bw_data_decoder_destroy(struct bw_data_decoder *decoder)
{
    if (!decoder)
        return;
    bw_decompressor_destroy(decoder->decompressor);
    free(decoder->bytes);
    free(decoder);
}

static struct bw_error *decode(struct bw_data_decoder *decoder, const struct bw_data_file *file,
                               const struct bw_extent_piece *piece, const uint8_t *stored,
                               uint8_t *output, size_t length)
{
    struct bw_probes *probes = bw_xlator_probes(decoder->fs->reader.top);
    const struct bw_extent *extent = &piece->extent;
    size_t size = piece->inline_data ? piece->inline_length : (size_t)extent->stored;
    struct bw_codec_event event = {.algorithm = bw_compression_name(extent->compression),
                                   .bytes_in = size,
                                   .bytes_out = length,
                                   .inode = file->inode,
                                   .tree = file->subvolume->tree.id};
    uint64_t start = BW_PROBE_START(probes, decompress__done);
    BW_PROBE(probes, decompress__start, codec_start, &event);
    struct bw_error *error =
        bw_decompress(decoder->decompressor, extent->compression, stored, size, output, length);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, decompress__done, codec_done, &event);
    return error;
}

bool bw_data_decoded(const struct bw_data_decoder *decoder, const struct bw_data_file *file,
                     const struct bw_extent *extent, uint8_t *output)
{
    const struct bw_extent *kept = &decoder->kept;
    if (!kept->logical || kept->logical != extent->logical || kept->stored != extent->stored ||
        kept->ram_bytes != extent->ram_bytes || kept->compression != extent->compression ||
        (decoder->unchecked && !file->unchecked))
        return false;
    memcpy(output, decoder->bytes + extent->extent_offset, (size_t)extent->length);
    return true;
}

struct bw_error *bw_data_decode(struct bw_data_decoder *decoder, const struct bw_data_file *file,
                                const struct bw_extent_piece *piece, const uint8_t *stored,
                                uint8_t *output)
{
    const struct bw_extent *extent = &piece->extent;
    if (extent->extent_offset == 0 && extent->length == extent->ram_bytes)
        return decode(decoder, file, piece, stored, output, (size_t)extent->length);
    if (bw_data_decoded(decoder, file, extent, output))
        return NULL;
    decoder->kept.logical = 0;
    BW_TRY(decode(decoder, file, piece, stored, decoder->bytes, (size_t)extent->ram_bytes));
    decoder->kept = *extent; /* an inline one has no address */
    decoder->unchecked = file->unchecked;
    memcpy(output, decoder->bytes + extent->extent_offset, (size_t)extent->length);
    return NULL;
}
