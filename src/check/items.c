/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judging items: the table of types, with the sizes of their items and the trees they belong to. */
#include "check/items.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/item_rules.h"

/* Kinds of trees. */
enum {
    ROOT = 1 << 0,
    EXTENT = 1 << 1,
    CHUNK = 1 << 2,
    DEVICE = 1 << 3,
    FILES = 1 << 4, /* of a subvolume, or of the data that are being relocated */
    CSUM = 1 << 5,
    QUOTA = 1 << 6,
    UUID = 1 << 7,
    SPACE = 1 << 8, /* free space */
    GROUPS = 1 << 9,
    STRIPE = 1 << 10,
    REMAP = 1 << 11,
    LOG = 1 << 12,
    ANY = (1 << 13) - 1,
};

enum { UNLIMITED = UINT16_MAX };

#define SIZE(structure)  sizeof(struct bw_disk_##structure), sizeof(struct bw_disk_##structure)
#define LARGE(structure) sizeof(struct bw_disk_##structure), UNLIMITED
/* A structure that is followed by at least one byte. */
#define NAMED(structure) sizeof(struct bw_disk_##structure) + 1, UNLIMITED

static const struct item_type {
    bw_item_judge_of_type *judge;
    enum bw_code_number code;
    uint16_t trees;            /* which may hold it; 0: the type is not known */
    uint16_t minimum, maximum; /* bytes */
} types[256] = {
    [BW_UNTYPED] = {bw_judge_free_space_header, BW_CODE_free_space_item, ROOT | FILES, 0,
                    UNLIMITED},
    [BW_INODE_ITEM] = {bw_judge_inode_item, BW_CODE_inode_item, ROOT | FILES | LOG,
                       SIZE(inode_item)},
    [BW_INODE_REF] = {bw_judge_inode_ref, BW_CODE_inode_ref, ROOT | FILES | LOG, NAMED(inode_ref)},
    [BW_INODE_EXTREF] = {bw_judge_inode_ref, BW_CODE_inode_ref, FILES | LOG, NAMED(inode_extref)},
    [BW_XATTR_ITEM] = {bw_judge_dir_item, BW_CODE_xattr_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_VERITY_DESC_ITEM] = {bw_judge_verity, BW_CODE_verity_item, FILES | LOG, 1, UNLIMITED},
    [BW_VERITY_MERKLE_ITEM] = {bw_judge_verity_piece, BW_CODE_verity_item, FILES | LOG, 1,
                               UNLIMITED},
    [BW_ORPHAN_ITEM] = {bw_judge_orphan_item, BW_CODE_orphan_item, ROOT | FILES | LOG, 0, 0},
    [BW_DIR_LOG_ITEM] = {bw_judge_dir_log, BW_CODE_dir_log_item, LOG, SIZE(dir_log)},
    [BW_DIR_LOG_INDEX] = {bw_judge_dir_log, BW_CODE_dir_log_item, LOG, SIZE(dir_log)},
    [BW_DIR_ITEM] = {bw_judge_dir_item, BW_CODE_dir_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_DIR_INDEX] = {bw_judge_dir_item, BW_CODE_dir_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_EXTENT_DATA] = {bw_judge_file_extent, BW_CODE_file_extent, ROOT | FILES | LOG, 0,
                        UNLIMITED},
    [BW_CSUM_ITEM] = {NULL, BW_CODE_checksum_item, FILES, 0, UNLIMITED},
    [BW_EXTENT_CSUM] = {bw_judge_checksums, BW_CODE_checksum_item, CSUM | LOG, 1, UNLIMITED},
    [BW_ROOT_ITEM] = {bw_judge_root_item, BW_CODE_root_item, ROOT | LOG,
                      offsetof(struct bw_disk_root_item, generation_v2),
                      sizeof(struct bw_disk_root_item)},
    [BW_ROOT_BACKREF] = {bw_judge_root_ref, BW_CODE_root_ref, ROOT, NAMED(root_ref)},
    [BW_ROOT_REF] = {bw_judge_root_ref, BW_CODE_root_ref, ROOT, NAMED(root_ref)},
    [BW_EXTENT_ITEM] = {bw_judge_extent_item, BW_CODE_extent_item, EXTENT, LARGE(extent_item)},
    [BW_METADATA_ITEM] = {bw_judge_extent_item, BW_CODE_extent_item, EXTENT, LARGE(extent_item)},
    [BW_TREE_BLOCK_REF] = {bw_judge_keyed_ref, BW_CODE_extent_ref, EXTENT, 0, 0},
    [BW_EXTENT_DATA_REF] = {bw_judge_extent_data_ref, BW_CODE_extent_ref, EXTENT,
                            LARGE(extent_data_ref)},
    [BW_EXTENT_REF_V0] = {NULL, BW_CODE_extent_ref, EXTENT, 0, UNLIMITED},
    [BW_SHARED_BLOCK_REF] = {bw_judge_keyed_ref, BW_CODE_extent_ref, EXTENT, 0, 0},
    [BW_SHARED_DATA_REF] = {bw_judge_keyed_ref, BW_CODE_extent_ref, EXTENT, SIZE(shared_data_ref)},
    [BW_BLOCK_GROUP_ITEM] = {bw_judge_block_group, BW_CODE_block_group_item, EXTENT | GROUPS,
                             sizeof(struct bw_disk_block_group),
                             sizeof(struct bw_disk_block_group_v2)},
    [BW_FREE_SPACE_INFO] = {bw_judge_free_space, BW_CODE_free_space_item, SPACE,
                            SIZE(free_space_info)},
    [BW_FREE_SPACE_EXTENT] = {bw_judge_free_space, BW_CODE_free_space_item, SPACE, 0, 0},
    [BW_FREE_SPACE_BITMAP] = {bw_judge_free_space, BW_CODE_free_space_item, SPACE, 1, UNLIMITED},
    [BW_DEVICE_EXTENT] = {bw_judge_device_extent, BW_CODE_device_extent_item, DEVICE,
                          SIZE(device_extent)},
    [BW_DEVICE_ITEM] = {bw_judge_device_item, BW_CODE_device_item, CHUNK, SIZE(device_item)},
    [BW_CHUNK_ITEM] = {bw_judge_chunk, BW_CODE_chunk_item, CHUNK, LARGE(chunk)},
    [BW_RAID_STRIPE] = {bw_judge_raid_stripe, BW_CODE_stripe_item, STRIPE, LARGE(raid_stride)},
    [BW_IDENTITY_REMAP] = {bw_judge_remap, BW_CODE_remap_item, REMAP, 0, 0},
    [BW_REMAP] = {bw_judge_remap, BW_CODE_remap_item, REMAP, SIZE(remap)},
    [BW_REMAP_BACKREF] = {bw_judge_remap, BW_CODE_remap_item, REMAP, SIZE(remap)},
    /* The last member of the status came with simple quotas. */
    [BW_QGROUP_STATUS] = {bw_judge_qgroup, BW_CODE_quota_item, QUOTA,
                          offsetof(struct bw_disk_qgroup_status, enable_generation),
                          sizeof(struct bw_disk_qgroup_status)},
    [BW_QGROUP_INFO] = {bw_judge_qgroup, BW_CODE_quota_item, QUOTA, SIZE(qgroup_info)},
    [BW_QGROUP_LIMIT] = {bw_judge_qgroup, BW_CODE_quota_item, QUOTA, SIZE(qgroup_limit)},
    [BW_QGROUP_RELATION] = {bw_judge_qgroup, BW_CODE_quota_item, QUOTA, 0, 0},
    [BW_TEMPORARY_ITEM] = {bw_judge_temporary, BW_CODE_status_item, ROOT | CSUM, 0, UNLIMITED},
    [BW_PERSISTENT_ITEM] = {bw_judge_persistent, BW_CODE_status_item, DEVICE, 0, UNLIMITED},
    [BW_DEVICE_REPLACE] = {bw_judge_device_replace, BW_CODE_status_item, DEVICE,
                           SIZE(device_replace)},
    [BW_UUID_SUBVOLUME] = {bw_judge_uuid, BW_CODE_uuid_item, UUID, LARGE(uuid_entry)},
    [BW_UUID_RECEIVED] = {bw_judge_uuid, BW_CODE_uuid_item, UUID, LARGE(uuid_entry)},
    [BW_STRING_ITEM] = {NULL, BW_CODE_item_type, ANY, 0, UNLIMITED},
};

static unsigned kind_of_tree(const struct bw_item_rules *rules)
{
    static const uint16_t kinds[] = {
        [BW_ROOT_TREE] = ROOT,          [BW_EXTENT_TREE] = EXTENT,
        [BW_CHUNK_TREE] = CHUNK,        [BW_DEVICE_TREE] = DEVICE,
        [BW_TOP_SUBVOLUME] = FILES,     [BW_CSUM_TREE] = CSUM,
        [BW_QUOTA_TREE] = QUOTA,        [BW_UUID_TREE] = UUID,
        [BW_FREE_SPACE_TREE] = SPACE,   [BW_BLOCK_GROUP_TREE] = GROUPS,
        [BW_RAID_STRIPE_TREE] = STRIPE, [BW_REMAP_TREE] = REMAP,
    };
    if (rules->in_log || rules->owner == BW_TREE_LOG)
        return LOG;
    if (rules->owner < sizeof kinds / sizeof *kinds && kinds[rules->owner])
        return kinds[rules->owner];
    const bool files = bw_is_subvolume(rules->owner) || rules->owner == BW_TREE_RELOC ||
                       rules->owner == BW_DATA_RELOC_TREE;
    return files ? FILES : ANY;
}

static bool say(struct bw_item_fault *fault, const char *format, va_list arguments)
{
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    return true;
}

bool bw_item_wrong(struct bw_item_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(fault, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_wrong_as(struct bw_item_fault *fault, enum bw_code_number code, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->code = code;
    say(fault, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_refused(struct bw_item_fault *fault, struct bw_error *error)
{
    BW_AUTO_ERROR struct bw_error *own = error;
    if (!own)
        return false;
    const char *words = strstr(own->message, ": ");
    return bw_item_wrong(fault, "%s", words ? words + 2 : own->message);
}

static bool wrong_size(const struct item_type *type, uint32_t size, struct bw_item_fault *fault)
{
    if (type->maximum == UNLIMITED)
        return bw_item_wrong(fault, "size is %" PRIu32 ", less than %u", size, type->minimum);
    if (type->minimum == type->maximum)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %u", size, type->maximum);
    return bw_item_wrong(fault, "size is %" PRIu32 ", not %u to %u", size, type->minimum,
                         type->maximum);
}

/* mkfs.btrfs 4.16 to 4.20 made the uuid tree as it makes a subvolume: with a top directory, which
 * nothing reads. Its two items are one finding. */
static bool is_top_of_uuid_tree(const struct bw_item_rules *rules, const struct bw_item *item)
{
    return rules->owner == BW_UUID_TREE && item->key.objectid == BW_SUBVOLUME_ROOT_INODE &&
           (item->key.type == BW_INODE_ITEM || item->key.type == BW_INODE_REF);
}

static bool misplaced(const struct bw_item_rules *rules, const struct bw_item *item,
                      struct bw_item_fault *fault)
{
    const char *name = bw_key_type_find(item->key.type);
    if (is_top_of_uuid_tree(rules, item))
        return item->key.type == BW_INODE_ITEM &&
               bw_item_wrong_as(fault, BW_CODE_item_type,
                                "the uuid tree has a directory, which mkfs.btrfs 4.16 to 4.20 "
                                "left there and nothing reads");
    if (!name)
        return bw_item_wrong_as(fault, BW_CODE_item_type, "items of type %u are not known",
                                item->key.type);
    return bw_item_wrong_as(fault, BW_CODE_item_type,
                            "items of type %s do not belong into tree %" PRId64, name,
                            (int64_t)rules->owner);
}

bool bw_item_judge(const struct bw_item_rules *rules, const struct bw_item *item,
                   struct bw_item_fault *fault)
{
    const struct item_type *type = &types[item->key.type];
    fault->code = type->code;
    if (item->size < type->minimum || (type->trees && item->size > type->maximum))
        return wrong_size(type, item->size, fault);
    if (type->judge && type->judge(rules, item, fault))
        return true;
    return !(type->trees & kind_of_tree(rules)) && misplaced(rules, item, fault);
}
