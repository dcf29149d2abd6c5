/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which type of item has which structure, and the documentation of all of them. */
#include "ondisk/tables.h"

#include "ondisk/disk_items.h"

static const struct bw_structure *const structures[256] = {
    [BW_INODE_ITEM] = &bw_structure_inode_item,
    [BW_INODE_REF] = &bw_structure_inode_refs,
    [BW_INODE_EXTREF] = &bw_structure_inode_extrefs,
    [BW_XATTR_ITEM] = &bw_structure_dir_item,
    [BW_VERITY_DESC_ITEM] = &bw_structure_verity_descriptor,
    [BW_VERITY_MERKLE_ITEM] = &bw_structure_bytes,
    [BW_ORPHAN_ITEM] = &bw_structure_orphan,
    [BW_DIR_LOG_ITEM] = &bw_structure_dir_log,
    [BW_DIR_LOG_INDEX] = &bw_structure_dir_log,
    [BW_DIR_ITEM] = &bw_structure_dir_item,
    [BW_DIR_INDEX] = &bw_structure_dir_item,
    [BW_EXTENT_DATA] = &bw_structure_file_extent,
    [BW_CSUM_ITEM] = &bw_structure_csum_item,
    [BW_EXTENT_CSUM] = &bw_structure_extent_csum,
    [BW_ROOT_ITEM] = &bw_structure_root_item,
    [BW_ROOT_BACKREF] = &bw_structure_root_backref,
    [BW_ROOT_REF] = &bw_structure_root_ref,
    [BW_EXTENT_ITEM] = &bw_structure_extent_item,
    [BW_METADATA_ITEM] = &bw_structure_metadata_item,
    [BW_TREE_BLOCK_REF] = &bw_structure_tree_block_ref,
    [BW_EXTENT_DATA_REF] = &bw_structure_extent_data_ref,
    [BW_EXTENT_REF_V0] = &bw_structure_extent_ref_v0,
    [BW_SHARED_BLOCK_REF] = &bw_structure_shared_block_ref,
    [BW_SHARED_DATA_REF] = &bw_structure_shared_data_ref,
    [BW_BLOCK_GROUP_ITEM] = &bw_structure_block_group,
    [BW_FREE_SPACE_INFO] = &bw_structure_free_space_info,
    [BW_FREE_SPACE_EXTENT] = &bw_structure_free_space_extent,
    [BW_FREE_SPACE_BITMAP] = &bw_structure_free_space_bitmap,
    [BW_DEVICE_EXTENT] = &bw_structure_device_extent,
    [BW_DEVICE_ITEM] = &bw_structure_device_item,
    [BW_CHUNK_ITEM] = &bw_structure_chunk,
    [BW_RAID_STRIPE] = &bw_structure_raid_stripe,
    [BW_IDENTITY_REMAP] = &bw_structure_nothing,
    [BW_REMAP] = &bw_structure_remap,
    [BW_REMAP_BACKREF] = &bw_structure_remap,
    [BW_QGROUP_STATUS] = &bw_structure_qgroup_status,
    [BW_QGROUP_INFO] = &bw_structure_qgroup_info,
    [BW_QGROUP_LIMIT] = &bw_structure_qgroup_limit,
    [BW_QGROUP_RELATION] = &bw_structure_nothing,
    [BW_TEMPORARY_ITEM] = &bw_structure_temporary,
    [BW_PERSISTENT_ITEM] = &bw_structure_persistent,
    [BW_DEVICE_REPLACE] = &bw_structure_device_replace,
    [BW_UUID_SUBVOLUME] = &bw_structure_uuid,
    [BW_UUID_RECEIVED] = &bw_structure_uuid,
    [BW_STRING_ITEM] = &bw_structure_string,
};

const struct bw_structure *bw_item_structure(const struct bw_key *key)
{
    if (key->type == BW_UNTYPED && key->objectid == BW_FREE_SPACE_OBJECT)
        return &bw_structure_free_space_header;
    if (key->type == BW_VERITY_DESC_ITEM && key->offset)
        return &bw_structure_bytes;
    return structures[key->type];
}

/* Bytes that no structure describes. */
static void print_raw(struct bw_printer *printer, const struct bw_cursor *cursor)
{
    enum { A_LINE = 32 };
    const size_t length = (size_t)(cursor->end - cursor->next);
    if (printer->json) {
        bw_json_hex(printer->json, "raw", cursor->next, length);
        return;
    }
    for (size_t at = 0; at < length; at += A_LINE) {
        bw_buffer_format(printer->text, BW_LINE "raw %zu: ", at);
        bw_buffer_append_hex(printer->text, cursor->next + at,
                             length - at < A_LINE ? length - at : A_LINE);
    }
}

void bw_item_print(struct bw_printer *printer, const struct bw_item *item)
{
    const struct bw_structure *structure = bw_item_structure(&item->key);
    struct bw_cursor cursor = bw_cursor_of(item);
    if (structure)
        bw_structure_print(printer, structure, &item->key, &cursor);
    if (cursor.next < cursor.end)
        print_raw(printer, &cursor);
}
