/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a range of logical addresses lies on the devices, for the extents command: piece by piece,
 * or as the ranges of each device that belong to it. */
#ifndef BW_CMD_EXTENTS_PLACES_H
#define BW_CMD_EXTENTS_PLACES_H

#include "base/buffer.h"
#include "btrfs-walk/xlator.h"

struct bw_fs;

/** A part of a range that lies in one piece on each device that has some of it. */
struct extents_part {
    struct bw_range range;
    unsigned copies; /**< as in struct bw_map_reply; 0: no chunk holds it */
};

/** Takes the first part off a range. False if nothing is left of it. */
bool extents_next_part(const struct bw_fs *fs, struct bw_range *rest, struct extents_part *part);

/** A place of a part, by its number from 1 on: first those of its copies, then, with `rebuilt` set,
 * those of the parity of its row: P, then Q. False if there are no more. */
bool extents_place(const struct bw_fs *fs, const struct extents_part *part, unsigned number,
                   struct bw_location *place);

/** Appends the places of a range: "DEVICE:OFFSET,..." if it lies in one piece, otherwise the ranges
 * of the devices that have parts of it, their parity included, as "DEVICE:OFFSET+LENGTH,..."; "
 * (parity)" stands behind those that are nothing else. Takes no more than a few kilobytes while it
 * works. */
void extents_append_places(const struct bw_fs *fs, struct bw_range range, struct bw_buffer *text);

#endif
