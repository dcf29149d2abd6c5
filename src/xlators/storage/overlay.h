/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Overlays: qcow2 files with a backing file, of which they contain the changed clusters only. Read
 * without QEMU, as far as overlays need it: no compression, encryption, snapshots or external data.
 * Source of the format: docs/interop/qcow2.txt of QEMU.
 */
#ifndef BW_XLATORS_STORAGE_OVERLAY_H
#define BW_XLATORS_STORAGE_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

/** An open overlay. Any number of threads may read it. */
struct bw_overlay;

/** Opens an overlay and reads its tables. BW_ERROR_SYSTEM if the file cannot be read;
 * BW_ERROR_UNSUPPORTED for other images and for features that this reader lacks; BW_ERROR_CORRUPT.
 * The caller closes `*overlay`. */
struct bw_error *bw_overlay_open(const char *path, struct bw_overlay **overlay);

/** Closes it; NULL is allowed. */
void bw_overlay_close(struct bw_overlay *overlay);

/** The path of the backing file, relative to the working directory; NULL: it has none. */
const char *bw_overlay_backing(const struct bw_overlay *overlay);

/** Size of the disk, in bytes. */
uint64_t bw_overlay_size(const struct bw_overlay *overlay);

/** Replaces the changed bytes in a range that was read from the backing file. */
struct bw_error *bw_overlay_apply(const struct bw_overlay *overlay, uint64_t offset, void *bytes,
                                  size_t length);

/** Whether the overlay has all bytes of a range. */
bool bw_overlay_covers(const struct bw_overlay *overlay, uint64_t offset, size_t length);

/** The first changed byte from `offset` on, or UINT64_MAX. */
uint64_t bw_overlay_next(const struct bw_overlay *overlay, uint64_t offset);

#endif
