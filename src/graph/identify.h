/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identifies images, or parts of them, that are not btrfs file systems. */
#ifndef BW_GRAPH_IDENTIFY_H
#define BW_GRAPH_IDENTIFY_H

#include "base/buffer.h"
#include "graph/wind.h"

/** Results of an identification. */
enum bw_identity {
    BW_UNIDENTIFIED, /**< nothing known */
    BW_EMPTY,        /**< zeros at the beginning and the end; the rest was not examined */
    BW_ZEROS,        /**< only zeros */
    BW_FOREIGN       /**< known, and neither btrfs nor zeros */
};

/**
 * Identifies the `length` bytes at `offset` of a layer, and appends a short description, possibly
 * with advice: "ext4, label root", "a qcow2 image: convert it with ...". Appends nothing if they
 * are unknown. Does not detect btrfs. Reads the first 4 MiB and the last MiB; the text may contain
 * any bytes of the image.
 */
enum bw_identity bw_identify(struct bw_xlator *layer, uint64_t offset, uint64_t length,
                             struct bw_buffer *text);

#endif
