/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The structures of items, which tables.c assigns to their types, and the superblock. */
#ifndef BW_ONDISK_TABLES_H
#define BW_ONDISK_TABLES_H

#include "ondisk/structure.h"

/** Types and profiles of chunks and block groups. */
extern const struct bw_value_names bw_group_flags;
/** Flags of inodes, subvolumes and quotas. */
extern const struct bw_value_names bw_inode_flags, bw_root_flags, bw_qgroup_flags,
    bw_qgroup_limit_flags;
/** Flags of a superblock. */
extern const struct bw_value_names bw_super_flags, bw_compat_flags, bw_compat_ro_flags,
    bw_incompat_flags;

extern const struct bw_structure bw_structure_inode_item, bw_structure_inode_refs,
    bw_structure_inode_extrefs, bw_structure_dir_item, bw_structure_dir_log,
    bw_structure_verity_descriptor, bw_structure_fsverity_descriptor, bw_structure_bytes,
    bw_structure_file_extent, bw_structure_extent_csum, bw_structure_csum_item;
extern const struct bw_structure bw_structure_extent_item, bw_structure_metadata_item,
    bw_structure_tree_block_ref, bw_structure_shared_block_ref, bw_structure_extent_data_ref,
    bw_structure_shared_data_ref, bw_structure_extent_ref_v0, bw_structure_block_group,
    bw_structure_free_space_info, bw_structure_free_space_extent, bw_structure_free_space_bitmap,
    bw_structure_free_space_header, bw_structure_nothing, bw_structure_remap;

/** The record superblockinfo: a superblock, and where it was found. */
extern const struct bw_structure bw_structure_superblockinfo;
struct bw_superblock_copy {
    struct bw_disk_superblock superblock;
    const char *device; /**< path of its image */
    uint64_t copy, offset;
    const char *message; /**< why it is invalid; NULL: it is valid */
};

extern const struct bw_structure bw_structure_chunk, bw_structure_device_item,
    bw_structure_device_extent, bw_structure_raid_stripe, bw_structure_device_replace,
    bw_structure_persistent, bw_structure_temporary;
extern const struct bw_structure bw_structure_root_item, bw_structure_root_ref,
    bw_structure_root_backref, bw_structure_orphan, bw_structure_uuid, bw_structure_string,
    bw_structure_qgroup_status, bw_structure_qgroup_info, bw_structure_qgroup_limit;

#endif
