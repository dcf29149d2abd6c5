/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of addresses, and those of lists of bad sectors. */
#ifndef BW_CLI_INSPECT_BAD_MAP_H
#define BW_CLI_INSPECT_BAD_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/space.h"

/** Ranges of addresses; the owner frees `items`. All zeros is an empty list. */
BW_VECTOR(bad_ranges, struct bw_address_range);

/** Sorts the ranges, and joins those that overlap or touch. */
void bad_ranges_join(struct bad_ranges *ranges);

/** Reads a list of bad sectors (bw_bad_map_read()); the ranges are sorted and joined. */
struct bw_error *bad_map_read(const char *file, struct bad_ranges *ranges);

#endif
