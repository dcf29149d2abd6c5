/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block maps for bmaptool(1), version 2.0: the blocks of an image that have to be written, with
 * their SHA-256 hashes. */
#ifndef BW_EXPORT_BMAP_H
#define BW_EXPORT_BMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"

/** Size of a block. */
enum { BW_BMAP_BLOCK = 4096 };

struct bw_bmap;

/** Begins the map of an image. `size`: its bytes; `blocks`: how many of its blocks will be
 * mapped. */
struct bw_error *bw_bmap_create(uint64_t size, uint64_t blocks, struct bw_bmap **result);

/** Adds bytes of the image, by ascending offset. Each range begins at a block, and ends at one or
 * at the end of the image. */
struct bw_error *bw_bmap_add(struct bw_bmap *map, uint64_t offset, const void *bytes,
                             size_t length);

/** Completes the map; `*text` belongs to it. */
struct bw_error *bw_bmap_end(struct bw_bmap *map, const struct bw_buffer **text);

/** Frees it; NULL is allowed. */
void bw_bmap_destroy(struct bw_bmap *map);

#endif
