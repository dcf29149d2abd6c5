/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC-32C, the default checksum of btrfs: from libisal or, in builds without that, from here. */
#ifndef BW_BASE_CRC32C_H
#define BW_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/** Goes on with a checksum, without the inversions at its beginning and end. At most 2 GiB. */
uint32_t bw_crc32c(uint32_t seed, const void *bytes, size_t length);

/** The same without libisal. */
uint32_t bw_crc32c_plain(uint32_t seed, const void *bytes, size_t length);

/** The same without the instruction that some processors have for it. */
uint32_t bw_crc32c_tables(uint32_t seed, const void *bytes, size_t length);

#endif
