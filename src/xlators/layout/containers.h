/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Containers: devices that hold other devices in a format of their own, such as encrypted volumes,
 * volume groups and RAID arrays. Each type has a layer that shows its contents. fs/stack.c
 * looks for containers in images that do not begin with a btrfs, and stacks the layers.
 */
#ifndef BW_XLATORS_LAYOUT_CONTAINERS_H
#define BW_XLATORS_LAYOUT_CONTAINERS_H

#include "base/vector.h"
#include "graph/wind.h"

/** Identifies a container that consists of several devices; zeros for others. */
struct bw_container_id {
    uint8_t bytes[16];
};

/** A type of container. */
struct bw_container_type {
    const char *layer; /**< type of the layer that shows a volume in it */
    bool joins;        /**< devices with the same id are children of one layer */
    bool at_end; /**< its signature may be at the end of a device, so that the device begins like
                    its contents */
    /** Whether a device is, or is part of, such a container. It must recognize the signature beyond
     * doubt, by a checksum or several members. Errors of reading count as no. */
    bool (*find)(struct bw_xlator *device, struct bw_container_id *id);
    const char *option; /**< the option of the layer that selects a volume; NULL: there is only
                           one */
    /** Adds the names of the volumes in a container, given as all its devices, as the option
     * accepts them. NULL if there is no option. */
    struct bw_error *(*list)(struct bw_xlator *const *devices, size_t count,
                             struct bw_strings *names);
};

/** All types; ends with NULL. A device that several of them recognize belongs to the first. */
extern const struct bw_container_type *const bw_container_types[];

extern const struct bw_container_type bw_compressed_container;
extern const struct bw_container_type bw_bcache_container;
extern const struct bw_container_type bw_luks_container;
extern const struct bw_container_type bw_lvm_container;
extern const struct bw_container_type bw_partclone_container;
extern const struct bw_container_type bw_md_container;
extern const struct bw_container_type bw_metadump_container;
extern const struct bw_container_type bw_partition_container;

/** Finds the place of a range of a logical volume, or of its first part: on `*below`, the layer of
 * a physical volume. BW_ERROR_UNSUPPORTED if the range is stored more than once or the volume is a
 * thin one, whose blocks its snapshots may share. */
struct bw_error *bw_lvm_locate(struct bw_xlator *volume, uint64_t *offset, uint64_t *length,
                               struct bw_xlator **below);

#endif
