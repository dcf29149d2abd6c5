/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The levels and layouts of MD arrays: where each byte of an array is on its devices.
 * Source: the personalities of the levels in the kernel's drivers/md.
 */
#ifndef BW_XLATORS_LAYOUT_MD_LAYOUT_H
#define BW_XLATORS_LAYOUT_MD_LAYOUT_H

#include "xlators/layout/md_superblock.h"

/** RAID0 over devices of different sizes has zones: in each, the devices that are large enough. */
struct bw_md_zone {
    uint64_t end;   /**< on the array */
    uint64_t begin; /**< on each device */
    uint32_t first; /**< index of its first device in `striped` */
    uint32_t count; /**< number of devices */
};

/** The layout of RAID10. */
struct bw_md_mirrors {
    uint32_t near_copies, far_copies; /**< copies of each chunk, side by side and far apart */
    uint32_t set_size;                /**< devices in a set, in which far copies move */
    uint64_t stride;                  /**< distance between far copies */
    bool interleaves;                 /**< far copies follow directly: the layout "offset" */
};

/** The layout of an array. */
struct bw_md_layout {
    int level;
    uint32_t number; /**< depends on the level; of RAID0 only if `has_number` */
    bool has_number;
    uint64_t chunk;     /**< bytes; 0 if the level has none */
    uint32_t count;     /**< number of devices */
    uint64_t used_size; /**< bytes of each device; not in linear arrays and RAID0 */
    uint64_t *sizes;    /**< bytes of each device, in linear arrays and RAID0 */
    uint64_t size;      /**< bytes of the array */
    struct bw_md_zone *zones;
    uint32_t zone_count;
    uint32_t *striped; /**< roles of the devices of each zone */
    struct bw_md_mirrors mirrors;
};

/** Where a byte of the array is. */
struct bw_md_place {
    uint32_t role;
    uint64_t offset; /**< offset in the data of that device */
    uint64_t length; /**< bytes that follow there */
};

/** A row of RAID4, 5 or 6: a chunk of each device at the same offset. */
struct bw_md_row {
    uint64_t number;
    uint32_t p, q; /**< roles of the devices with parity; q: only in RAID6 */
    bool by_role;  /**< the coefficients of Q follow the roles */
};

/** Sets up the layout of an array whose devices have these sizes. BW_ERROR_UNSUPPORTED if it is not
 * known or has impossible numbers. Free it with bw_md_layout_free(), also after an error. */
struct bw_error *bw_md_layout_init(struct bw_md_layout *layout,
                                   const struct bw_md_superblock *array, const uint64_t *sizes);

/** Reduces the size of an array to the part before the end of its data on devices that were cut
 * off. `ends`: the bytes that each device has. */
void bw_md_layout_cut(struct bw_md_layout *layout, const uint64_t *ends);

void bw_md_layout_free(struct bw_md_layout *layout);

/** Devices with parity in each row: 0 to 2. */
uint32_t bw_md_parity(const struct bw_md_layout *layout);

/** Copies of each byte. */
uint32_t bw_md_copies(const struct bw_md_layout *layout);

/** Locates a copy of the byte at `address`, which is less than the size. */
void bw_md_locate(const struct bw_md_layout *layout, uint64_t address, uint32_t copy,
                  struct bw_md_place *place);

/** The same for RAID4, 5 and 6, with the row. */
void bw_md_locate_in_row(const struct bw_md_layout *layout, uint64_t address,
                         struct bw_md_place *place, struct bw_md_row *row);

#endif
