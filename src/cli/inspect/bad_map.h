/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of unreadable ranges of a device: map files of ddrescue, lists of badblocks. */
#ifndef BW_CLI_INSPECT_BAD_MAP_H
#define BW_CLI_INSPECT_BAD_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/space.h"

/** Ranges of addresses; the owner frees `items`. All zeros is an empty list. */
struct bad_ranges {
    struct bw_address_range *items;
    size_t count, capacity;
};

/** Adds a range; false if memory runs out. */
bool bad_ranges_add(struct bad_ranges *ranges, uint64_t start, uint64_t length);

/** Sorts the ranges, and joins those that overlap or touch. */
void bad_ranges_join(struct bad_ranges *ranges);

/**
 * Reads a map file of ddrescue, where everything not marked as rescued counts as bad, or a list of
 * badblocks: numbers of blocks of `block_size` bytes. BW_ERROR_USAGE, with the line, if it is
 * neither; BW_ERROR_SYSTEM if it cannot be read.
 */
struct bw_error *bad_map_read(const char *file, uint64_t block_size, struct bad_ranges *ranges);

#endif
