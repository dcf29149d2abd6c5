/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The judges of items, one for each type of key or for several that are alike; items.c calls them
 * for items whose size their type allows. Everything that the kernel's tree-checker (fs/btrfs/
 * tree-checker.c) refuses is a fault, and so is what `btrfs check` finds in a single item.
 */
#ifndef BW_CHECK_ITEM_RULES_H
#define BW_CHECK_ITEM_RULES_H

#include <inttypes.h>

#include "check/items.h"
#include "ondisk/disk_items.h"

/** Returns true if something is wrong, after bw_item_wrong(). The code in `fault` is already that
 * of the type of the item. */
typedef bool bw_item_judge_of_type(const struct bw_item_rules *rules, const struct bw_item *item,
                                   struct bw_item_fault *fault);

/* items_inodes.c */
bw_item_judge_of_type bw_judge_inode_item, bw_judge_inode_ref, bw_judge_dir_item,
    bw_judge_orphan_item, bw_judge_dir_log, bw_judge_verity, bw_judge_verity_piece,
    bw_judge_file_extent;
/* items_extents.c */
bw_item_judge_of_type bw_judge_extent_item, bw_judge_keyed_ref, bw_judge_extent_data_ref,
    bw_judge_block_group, bw_judge_checksums;
/* items_devices.c */
bw_item_judge_of_type bw_judge_chunk, bw_judge_device_item, bw_judge_device_extent,
    bw_judge_persistent, bw_judge_device_replace;
/* items_trees.c */
bw_item_judge_of_type bw_judge_root_item, bw_judge_root_ref, bw_judge_uuid, bw_judge_free_space,
    bw_judge_free_space_header, bw_judge_qgroup, bw_judge_raid_stripe, bw_judge_remap,
    bw_judge_temporary;

/** Says what is wrong; always true. */
bool bw_item_wrong(struct bw_item_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/** The same with another code than that of the type. */
bool bw_item_wrong_as(struct bw_item_fault *fault, enum bw_code_number code, const char *format,
                      ...) __attribute__((format(printf, 3, 4), cold));
/** The same, with the words of a decoder. Takes the error; false if it is NULL. The words are those
 * behind the name of the item, which its key tells. */
bool bw_item_refused(struct bw_item_fault *fault, struct bw_error *error);

/** Whether the type, the profile or another bit of a block group or chunk is wrong. */
bool bw_group_type_wrong(const struct bw_item_rules *rules, struct bw_item_fault *fault,
                         uint64_t type);

/** Whether a number is no multiple of the sector size. */
static inline bool bw_unaligned(const struct bw_item_rules *rules, struct bw_item_fault *fault,
                                const char *name, uint64_t value)
{
    return (value & (rules->sectorsize - 1)) &&
           bw_item_wrong(fault, "%s %" PRIu64 " is not aligned to %" PRIu32, name, value,
                         rules->sectorsize);
}

/** Whether a generation is later than any that can be on disk: what was fsynced is one later than
 * the superblock. */
static inline bool bw_generation_wrong(const struct bw_item_rules *rules,
                                       struct bw_item_fault *fault, const char *name,
                                       uint64_t value)
{
    return value > rules->generation && value - rules->generation > 1 &&
           bw_item_wrong(fault, "%s %" PRIu64 " is later than the superblock's, %" PRIu64, name,
                         value, rules->generation);
}

/** Whether a generation is later than the transaction that wrote the leaf: reported as `code`. */
static inline bool bw_later_than_leaf(const struct bw_item_rules *rules,
                                      struct bw_item_fault *fault, enum bw_code_number code,
                                      const char *name, uint64_t value)
{
    return value > rules->leaf_generation &&
           bw_item_wrong_as(fault, code, "%s %" PRIu64 " is later than the leaf's, %" PRIu64, name,
                            value, rules->leaf_generation);
}

/** Whether an id is that of a subvolume. Greater ones are those of quota groups. */
static inline bool bw_is_subvolume(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME ||
           (id >= BW_FIRST_SUBVOLUME && id < UINT64_C(1) << BW_QGROUP_LEVEL_SHIFT);
}

/** Whether a number is that of a file in a subvolume. */
static inline bool bw_is_file(uint64_t inode)
{
    return inode >= BW_SUBVOLUME_ROOT_INODE && inode <= BW_LAST_SUBVOLUME;
}

/** Whether a number is that of an inode: of a file, the directory of the root tree, or the inode
 * cache of old. */
static inline bool bw_is_inode(uint64_t inode)
{
    return bw_is_file(inode) || inode == BW_ROOT_TREE_DIR || inode == BW_FREE_INODE;
}

#endif
