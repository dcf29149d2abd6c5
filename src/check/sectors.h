/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of ranges of logical addresses that is built in ascending order and then asked: data that
 * are allocated and have no checksums. Ranges that touch become one.
 */
#ifndef BW_CHECK_SECTORS_H
#define BW_CHECK_SECTORS_H

#include <stdbool.h>
#include <stdint.h>

struct bw_sectors;

/** An empty set; NULL if memory runs out. */
struct bw_sectors *bw_sectors_create(void);
void bw_sectors_destroy(struct bw_sectors *sectors);

/** Adds a range that begins after all others; false if memory runs out. */
bool bw_sectors_add(struct bw_sectors *sectors, uint64_t start, uint64_t length);

/** How many bytes of a range are in the set. Safe from any thread while nobody adds. */
uint64_t bw_sectors_covered(const struct bw_sectors *sectors, uint64_t start, uint64_t length);

#endif
