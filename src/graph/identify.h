/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding out what an image, or a part of one, is that is no btrfs file system. */
#ifndef BW_GRAPH_IDENTIFY_H
#define BW_GRAPH_IDENTIFY_H

#include "base/buffer.h"
#include "graph/wind.h"

/** What bytes are. */
enum bw_identity {
    BW_UNIDENTIFIED, /**< nothing that is known */
    BW_EMPTY,        /**< they begin and end with zeros: what lies between was not looked at */
    BW_FOREIGN       /**< something else than a btrfs file system, or zeros alone */
};

/**
 * Appends in a few words what the `length` bytes at `offset` of a layer are and, if something can
 * be done about it, what: "ext4, label root", "a qcow2 image: convert it with ...". Nothing is
 * appended if it is nothing that is known. A btrfs file system is not looked for. Reads the
 * first 4 MiB and the last MiB; the text may hold any bytes of the image.
 */
enum bw_identity bw_identify(const struct bw_frame *frame, struct bw_xlator *layer, uint64_t offset,
                             uint64_t length, struct bw_buffer *text);

#endif
