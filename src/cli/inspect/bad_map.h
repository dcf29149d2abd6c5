/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bad ranges of a device: lists of bad sectors, and the rows of `owner --map` for the owners. */
#ifndef BW_CLI_INSPECT_BAD_MAP_H
#define BW_CLI_INSPECT_BAD_MAP_H

#include <stdint.h>

#include "base/vector.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"

/** Ranges of addresses; the owner frees `items`. All zeros is an empty list. */
BW_VECTOR(bad_ranges, struct bw_address_range);

/** Sorts the ranges, and joins those that overlap or touch. */
void bad_ranges_join(struct bad_ranges *ranges);

/** Reads a list of bad sectors (bw_bad_map_read()); the ranges are sorted and joined. */
struct bw_error *bad_map_read(const char *file, struct bad_ranges *ranges);

/** Prints a row (ownerinfo); for plan->print. In owner.c. */
struct bw_error *cmd_print_owner(struct cmd_format *format, const void *record);

/** Writes a record for each owner of bad ranges of a device, and for each part without an owner.
 * The ranges are sorted and joined. In owner.c. */
struct bw_error *cmd_list_bad_owners(struct cmd_format *format, uint64_t devid,
                                     const struct bad_ranges *bad);

#endif
