/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes as people read them: offsets, hexadecimal digits and characters, as `hexdump -C` prints. */
#ifndef BW_BASE_HEX_DUMP_H
#define BW_BASE_HEX_DUMP_H

#include "base/buffer.h"

/** Appends a line for each 16 bytes. `offset` is the offset of the first byte, and `indent` begins
 * each line. A "*" replaces further lines that are equal to the line before; the last line is
 * always printed. */
void bw_hex_dump(struct bw_buffer *text, const char *indent, uint64_t offset, const uint8_t *bytes,
                 size_t length);

#endif
