/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data that were read and verified. Snapshots share most of their data, which need to be read only
 * once: a file is whole if all its extents were read for other files. Memory is limited; data that
 * are forgotten are read again.
 */
#ifndef BW_CLI_RESCUE_VERIFIED_H
#define BW_CLI_RESCUE_VERIFIED_H

#include <pthread.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "btrfs-walk/file.h"

enum { RESCUE_VERIFIED_SECTORS = 4096 }; /**< of a page: 16 MiB of data */

struct rescue_verified_page {
    uint64_t bits[RESCUE_VERIFIED_SECTORS / 64];
};

BW_VECTOR(rescue_verified_pages, struct rescue_verified_page);

/** A set of sectors. All zeros but `sectorsize` and `lock`: empty. */
struct rescue_verified {
    pthread_mutex_t lock;
    uint32_t sectorsize;
    struct bw_key_map positions; /**< of pages in `pages`, by their number */
    struct rescue_verified_pages pages;
};

/** Whether all data of an extent were verified. */
bool rescue_verified_has(struct rescue_verified *verified, const struct bw_extent *extent);

/** Adds the data of an extent. False if memory runs out. */
bool rescue_verified_add(struct rescue_verified *verified, const struct bw_extent *extent);

void rescue_verified_free(struct rescue_verified *verified);

#endif
