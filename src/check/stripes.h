/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stripes of all chunks, and the devices that they lie on. */
#ifndef BW_CHECK_STRIPES_H
#define BW_CHECK_STRIPES_H

#include "check/check.h"
#include "ondisk/chunk.h"

/** A stripe of a chunk. */
struct bw_checked_stripe {
    uint64_t devid, offset, length;
    uint64_t logical; /**< of the chunk */
    uint8_t device_uuid[BW_UUID_SIZE];
};

/** A device of the chunk tree. */
struct bw_checked_device {
    struct bw_device_info info; /**< its path ends with the file system */
    uint64_t allocated;         /**< bytes of its device extents */
};

/** What `chunks` has read of the chunk tree. */
struct bw_stripe_list {
    struct bw_check *check;
    struct bw_checked_stripe *stripes;
    size_t count, capacity;
    struct bw_checked_device *devices; /**< ascending */
    size_t device_count, device_capacity;
    bool incomplete; /**< some may be lost */
};

/** Adds the stripes of a chunk; false if memory runs out. */
bool bw_stripes_add(struct bw_stripe_list *list, const struct bw_chunk *chunk);

/** Holds the stripes against the device extents, and these against the devices. */
struct bw_error *bw_stripes_check(struct bw_stripe_list *list);

/** Holds the devices against superblocks and images. */
void bw_devices_check(const struct bw_stripe_list *list);

/** The device with an id; NULL if there is none. */
struct bw_checked_device *bw_checked_device(const struct bw_stripe_list *list, uint64_t devid);

#endif
