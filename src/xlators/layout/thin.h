/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metadata of the device mapper's thin pools: which block of the pool has a block of a thin volume.
 * Sources: drivers/md/dm-thin-metadata.c and persistent-data/ in the kernel, and metadata that
 * thin_restore wrote.
 */
#ifndef BW_XLATORS_LAYOUT_THIN_H
#define BW_XLATORS_LAYOUT_THIN_H

#include "graph/wind.h"

/** The size of a block of metadata. */
enum { BW_THIN_BLOCK = 4096 };

/** Reads a block of metadata from one of its copies, numbered from 0. BW_ERROR_NOT_FOUND: there are
 * fewer copies. */
typedef struct bw_error *bw_thin_reader(void *context, const struct bw_frame *frame,
                                        uint64_t offset, unsigned copy, void *block);

struct bw_thin;

/** The volume to open. */
struct bw_thin_target {
    bw_thin_reader *read;
    void *context;   /**< passed to `read` */
    uint64_t device; /**< its number in the pool */
    uint64_t chunk;  /**< bytes of a block of the pool, for comparison */
};

/** Opens a volume. BW_ERROR_CORRUPT, BW_ERROR_NOT_FOUND, BW_ERROR_UNSUPPORTED. */
struct bw_error *bw_thin_open(const struct bw_frame *frame, const struct bw_thin_target *target,
                              struct bw_thin **made);

/** NULL is allowed. */
void bw_thin_close(struct bw_thin *thin);

/** A range of a volume. */
struct bw_thin_run {
    bool is_mapped;  /**< otherwise, it was never written, and contains zeros */
    uint64_t offset; /**< offset in the data of the pool */
    uint64_t length; /**< bytes that follow the address; UINT64_MAX: nothing is mapped after it */
};

/** Locates an address. Any number of threads may call it. BW_ERROR_CORRUPT. */
struct bw_error *bw_thin_find(struct bw_thin *thin, const struct bw_frame *frame, uint64_t address,
                              struct bw_thin_run *run);

#endif
