/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Option structures of the public headers begin with their size, so that they can grow. */
#ifndef BW_BASE_STRUCT_SIZE_H
#define BW_BASE_STRUCT_SIZE_H

#include <stddef.h>

#include "btrfs-walk/error.h"

/**
 * Copies a caller's option structure, which begins with its size in bytes, into a structure of this
 * library's version. Members that the caller's version lacks become zero, and the size becomes
 * `our_size`. BW_ERROR_USAGE if the size is not set, or if the caller has set members that this
 * version lacks.
 */
struct bw_error *bw_take_options(void *ours, size_t our_size, const void *given);

#define BW_TAKE_OPTIONS(ours, given) bw_take_options((ours), sizeof *(ours), (given))

#endif
