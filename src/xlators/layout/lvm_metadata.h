/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metadata of LVM2: labels of physical volumes, and volume groups, which are described in a text.
 * Sources: lib/format_text and lib/label in LVM2 2.03, and texts that its programs wrote.
 */
#ifndef BW_XLATORS_LAYOUT_LVM_METADATA_H
#define BW_XLATORS_LAYOUT_LVM_METADATA_H

#include "base/vector.h"
#include "graph/wind.h"

enum {
    BW_LVM_NAME = 128, /**< bytes of a name, with its NUL */
    BW_LVM_ID = 32,    /**< characters of an id, without hyphens */
};

/** A physical volume of a group. Sizes and offsets are in bytes. */
struct bw_lvm_physical {
    char name[BW_LVM_NAME]; /**< its name in the text: "pv0" */
    char id[BW_LVM_ID + 1];
    char device[BW_LVM_NAME]; /**< where it was last seen: "/dev/sda2" */
    uint64_t begin;           /**< where its first extent begins */
    struct bw_xlator *layer;  /**< NULL: it is missing */
    bool is_reported;         /**< a message said that it is missing */
};

/** A part of a segment: a range of a physical volume, or of another logical one. */
struct bw_lvm_area {
    bool is_logical;
    size_t index;    /**< index of that volume in the group */
    uint64_t begin;  /**< offset in that volume; in a physical one, from its first extent */
    size_t metadata; /**< the volume with the metadata of this leg of RAID1; SIZE_MAX: none */
    uint64_t valid;  /**< bytes from `begin` that are not out of date */
};

/** A range of a logical volume. */
struct bw_lvm_segment {
    char type[32];          /**< as in the text: "striped", "raid1", "thin" */
    uint64_t begin, length; /**< its place in the volume */
    uint64_t stripe; /**< bytes of a stripe, if there are several areas with different data */
    uint64_t chunk;  /**< bytes of a block of a thin pool */
    uint64_t device; /**< number of a thin volume in its pool, which is its only area */
    bool is_mirror;  /**< all areas have the same data */
    bool is_thin;
    bool is_pool;  /**< a pool of thin volumes: its areas are its data, and the metadata */
    bool is_known; /**< this library reads the type */
    size_t first_area, area_count;
};

struct bw_lvm_volume {
    char name[BW_LVM_NAME];
    bool is_visible;          /**< it is not a part of other volumes */
    bool is_snapshot;         /**< the changes since a snapshot, not a device */
    char origin[BW_LVM_NAME]; /**< name of the volume of which it is a snapshot */
    uint64_t size;
    size_t first_segment, segment_count;
};

BW_VECTOR(bw_lvm_physicals, struct bw_lvm_physical);
BW_VECTOR(bw_lvm_volumes, struct bw_lvm_volume);
BW_VECTOR(bw_lvm_segments, struct bw_lvm_segment);
BW_VECTOR(bw_lvm_areas, struct bw_lvm_area);

/** A volume group. */
struct bw_lvm_group {
    char name[BW_LVM_NAME];
    char id[BW_LVM_ID + 1];
    uint64_t number; /**< counts changes of the metadata */
    uint64_t extent; /**< bytes */
    struct bw_lvm_physicals physicals;
    struct bw_lvm_volumes volumes;
    struct bw_lvm_segments segments;
    struct bw_lvm_areas areas;
};

BW_VECTOR(bw_lvm_group_list, struct bw_lvm_group);

/** The groups on some devices. */
struct bw_lvm_groups {
    struct bw_lvm_group_list list;
    uint64_t text_length; /**< sum of the lengths of all texts that were read, in bytes */
};

/** Whether a device is a physical volume; `id` may be NULL. */
bool bw_lvm_find_label(struct bw_xlator *device, char id[BW_LVM_ID + 1]);

/** Reads the newest metadata of all groups on the devices. Metadata that cannot be read are
 * skipped, if another copy can; otherwise BW_ERROR_CORRUPT. Free with bw_lvm_groups_free(), also
 * after an error. */
struct bw_error *bw_lvm_groups_read(struct bw_xlator *const *devices, size_t count,
                                    struct bw_lvm_groups *groups);

void bw_lvm_groups_free(struct bw_lvm_groups *groups);

#endif
