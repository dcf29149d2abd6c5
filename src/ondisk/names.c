/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers, one table a kind. */
#include "ondisk/tables.h"

#include <sys/stat.h>

#include "ondisk/disk_items.h"
#include "ondisk/items.h"

static const char *const key_types[256] = {
    [BW_INODE_ITEM] = "INODE_ITEM",
    [BW_INODE_REF] = "INODE_REF",
    [BW_INODE_EXTREF] = "INODE_EXTREF",
    [BW_XATTR_ITEM] = "XATTR_ITEM",
    [BW_VERITY_DESC_ITEM] = "VERITY_DESC_ITEM",
    [BW_VERITY_MERKLE_ITEM] = "VERITY_MERKLE_ITEM",
    [BW_ORPHAN_ITEM] = "ORPHAN_ITEM",
    [BW_DIR_LOG_ITEM] = "DIR_LOG_ITEM",
    [BW_DIR_LOG_INDEX] = "DIR_LOG_INDEX",
    [BW_DIR_ITEM] = "DIR_ITEM",
    [BW_DIR_INDEX] = "DIR_INDEX",
    [BW_EXTENT_DATA] = "EXTENT_DATA",
    [BW_CSUM_ITEM] = "CSUM_ITEM",
    [BW_EXTENT_CSUM] = "EXTENT_CSUM",
    [BW_ROOT_ITEM] = "ROOT_ITEM",
    [BW_ROOT_BACKREF] = "ROOT_BACKREF",
    [BW_ROOT_REF] = "ROOT_REF",
    [BW_EXTENT_ITEM] = "EXTENT_ITEM",
    [BW_METADATA_ITEM] = "METADATA_ITEM",
    [BW_EXTENT_OWNER_REF] = "EXTENT_OWNER_REF",
    [BW_TREE_BLOCK_REF] = "TREE_BLOCK_REF",
    [BW_EXTENT_DATA_REF] = "EXTENT_DATA_REF",
    [BW_EXTENT_REF_V0] = "EXTENT_REF_V0",
    [BW_SHARED_BLOCK_REF] = "SHARED_BLOCK_REF",
    [BW_SHARED_DATA_REF] = "SHARED_DATA_REF",
    [BW_BLOCK_GROUP_ITEM] = "BLOCK_GROUP_ITEM",
    [BW_FREE_SPACE_INFO] = "FREE_SPACE_INFO",
    [BW_FREE_SPACE_EXTENT] = "FREE_SPACE_EXTENT",
    [BW_FREE_SPACE_BITMAP] = "FREE_SPACE_BITMAP",
    [BW_DEVICE_EXTENT] = "DEV_EXTENT",
    [BW_DEVICE_ITEM] = "DEV_ITEM",
    [BW_CHUNK_ITEM] = "CHUNK_ITEM",
    [BW_RAID_STRIPE] = "RAID_STRIPE",
    [BW_IDENTITY_REMAP] = "IDENTITY_REMAP",
    [BW_REMAP] = "REMAP",
    [BW_REMAP_BACKREF] = "REMAP_BACKREF",
    [BW_QGROUP_STATUS] = "QGROUP_STATUS",
    [BW_QGROUP_INFO] = "QGROUP_INFO",
    [BW_QGROUP_LIMIT] = "QGROUP_LIMIT",
    [BW_QGROUP_RELATION] = "QGROUP_RELATION",
    [BW_TEMPORARY_ITEM] = "TEMPORARY_ITEM",
    [BW_PERSISTENT_ITEM] = "PERSISTENT_ITEM",
    [BW_DEVICE_REPLACE] = "DEV_REPLACE",
    [BW_UUID_SUBVOLUME] = "UUID_KEY_SUBVOL",
    [BW_UUID_RECEIVED] = "UUID_KEY_RECEIVED_SUBVOL",
    [BW_STRING_ITEM] = "STRING_ITEM",
};

const char *bw_key_type_find(uint8_t type)
{
    return key_types[type];
}

const char *bw_key_type_name(uint8_t type)
{
    const char *name = bw_key_type_find(type);
    return name ? name : "UNKNOWN";
}

const char *bw_file_type_name(uint8_t type)
{
    static const char *const names[] = {
        [BW_FILE_UNKNOWN] = "unknown",
        [BW_FILE_REGULAR] = "file",
        [BW_FILE_DIRECTORY] = "directory",
        [BW_FILE_CHARACTER_DEVICE] = "character-device",
        [BW_FILE_BLOCK_DEVICE] = "block-device",
        [BW_FILE_FIFO] = "fifo",
        [BW_FILE_SOCKET] = "socket",
        [BW_FILE_SYMLINK] = "symlink",
    };
    return type < sizeof names / sizeof *names ? names[type] : names[BW_FILE_UNKNOWN];
}

uint8_t bw_file_type_of_mode(uint32_t mode)
{
    /* By S_IFMT, of which four bits are used. */
    static const uint8_t types[16] = {
        [S_IFIFO >> 12] = BW_FILE_FIFO,      [S_IFCHR >> 12] = BW_FILE_CHARACTER_DEVICE,
        [S_IFDIR >> 12] = BW_FILE_DIRECTORY, [S_IFBLK >> 12] = BW_FILE_BLOCK_DEVICE,
        [S_IFREG >> 12] = BW_FILE_REGULAR,   [S_IFLNK >> 12] = BW_FILE_SYMLINK,
        [S_IFSOCK >> 12] = BW_FILE_SOCKET,
    };
    return types[mode >> 12 & 15];
}

const char *bw_entry_type_name(const struct bw_dir_entry *entry)
{
    return entry->location.type == BW_ROOT_ITEM ? "subvolume" : bw_file_type_name(entry->type);
}

const char *bw_inode_flag_name(unsigned bit)
{
    for (const struct bw_value_name *word = bw_inode_flags.words; bit < 64 && word->name; word++)
        if (word->value >> bit & 1)
            return word->name;
    return NULL;
}
