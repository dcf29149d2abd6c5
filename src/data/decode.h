/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompressing extents, of which a file may want only a part: the last one is kept, for those who
 * want another part of it.
 */
#ifndef BW_DATA_DECODE_H
#define BW_DATA_DECODE_H

#include "data/extents.h"

struct bw_fs;
struct bw_data_decoder;

struct bw_error *bw_data_decoder_create(struct bw_fs *fs, struct bw_data_decoder **result);
/** Frees it; NULL is allowed. */
void bw_data_decoder_destroy(struct bw_data_decoder *decoder);

/** A part of a compressed extent, in bytes of what it decodes to. */
struct bw_decoded_part {
    const struct bw_data_file *file;
    const struct bw_file_extent *extent;
    uint64_t skip, length; /**< inside extent->ram_bytes */
};

/** Copies a part from the extent that is kept; false if that is another one. */
bool bw_data_decoded(const struct bw_data_decoder *decoder, const struct bw_decoded_part *part,
                     uint8_t *output);

/** Decodes a part of an extent from its bytes as they are stored. */
struct bw_error *bw_data_decode(struct bw_data_decoder *decoder, const struct bw_decoded_part *part,
                                const uint8_t *stored, uint8_t *output);

#endif
