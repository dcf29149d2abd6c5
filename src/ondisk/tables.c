/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of items with their names and structures, and the documentation of all of them. */
#include "ondisk/tables.h"

#include "ondisk/disk_items.h"

static const struct {
    const char *name;
    const struct bw_structure *structure;
} item_types[256] = {
    [BW_UNTYPED] = {NULL, &bw_structure_free_space_header},
    [BW_INODE_ITEM] = {"INODE_ITEM", &bw_structure_inode_item},
    [BW_INODE_REF] = {"INODE_REF", &bw_structure_inode_refs},
    [BW_INODE_EXTREF] = {"INODE_EXTREF", &bw_structure_inode_extrefs},
    [BW_XATTR_ITEM] = {"XATTR_ITEM", &bw_structure_dir_item},
    [BW_VERITY_DESC_ITEM] = {"VERITY_DESC_ITEM", &bw_structure_verity_descriptor},
    [BW_VERITY_MERKLE_ITEM] = {"VERITY_MERKLE_ITEM", &bw_structure_bytes},
    [BW_ORPHAN_ITEM] = {"ORPHAN_ITEM", &bw_structure_orphan},
    [BW_DIR_LOG_ITEM] = {"DIR_LOG_ITEM", &bw_structure_dir_log},
    [BW_DIR_LOG_INDEX] = {"DIR_LOG_INDEX", &bw_structure_dir_log},
    [BW_DIR_ITEM] = {"DIR_ITEM", &bw_structure_dir_item},
    [BW_DIR_INDEX] = {"DIR_INDEX", &bw_structure_dir_item},
    [BW_EXTENT_DATA] = {"EXTENT_DATA", &bw_structure_file_extent},
    [BW_CSUM_ITEM] = {"CSUM_ITEM", &bw_structure_csum_item},
    [BW_EXTENT_CSUM] = {"EXTENT_CSUM", &bw_structure_extent_csum},
    [BW_ROOT_ITEM] = {"ROOT_ITEM", &bw_structure_root_item},
    [BW_ROOT_BACKREF] = {"ROOT_BACKREF", &bw_structure_root_backref},
    [BW_ROOT_REF] = {"ROOT_REF", &bw_structure_root_ref},
    [BW_EXTENT_ITEM] = {"EXTENT_ITEM", &bw_structure_extent_item},
    [BW_METADATA_ITEM] = {"METADATA_ITEM", &bw_structure_metadata_item},
    [BW_EXTENT_OWNER_REF] = {"EXTENT_OWNER_REF", NULL}, /* only inside extent items */
    [BW_TREE_BLOCK_REF] = {"TREE_BLOCK_REF", &bw_structure_tree_block_ref},
    [BW_EXTENT_DATA_REF] = {"EXTENT_DATA_REF", &bw_structure_extent_data_ref},
    [BW_EXTENT_REF_V0] = {"EXTENT_REF_V0", &bw_structure_extent_ref_v0},
    [BW_SHARED_BLOCK_REF] = {"SHARED_BLOCK_REF", &bw_structure_shared_block_ref},
    [BW_SHARED_DATA_REF] = {"SHARED_DATA_REF", &bw_structure_shared_data_ref},
    [BW_BLOCK_GROUP_ITEM] = {"BLOCK_GROUP_ITEM", &bw_structure_block_group},
    [BW_FREE_SPACE_INFO] = {"FREE_SPACE_INFO", &bw_structure_free_space_info},
    [BW_FREE_SPACE_EXTENT] = {"FREE_SPACE_EXTENT", &bw_structure_free_space_extent},
    [BW_FREE_SPACE_BITMAP] = {"FREE_SPACE_BITMAP", &bw_structure_free_space_bitmap},
    [BW_DEVICE_EXTENT] = {"DEV_EXTENT", &bw_structure_device_extent},
    [BW_DEVICE_ITEM] = {"DEV_ITEM", &bw_structure_device_item},
    [BW_CHUNK_ITEM] = {"CHUNK_ITEM", &bw_structure_chunk},
    [BW_RAID_STRIPE] = {"RAID_STRIPE", &bw_structure_raid_stripe},
    [BW_IDENTITY_REMAP] = {"IDENTITY_REMAP", &bw_structure_nothing},
    [BW_REMAP] = {"REMAP", &bw_structure_remap},
    [BW_REMAP_BACKREF] = {"REMAP_BACKREF", &bw_structure_remap},
    [BW_QGROUP_STATUS] = {"QGROUP_STATUS", &bw_structure_qgroup_status},
    [BW_QGROUP_INFO] = {"QGROUP_INFO", &bw_structure_qgroup_info},
    [BW_QGROUP_LIMIT] = {"QGROUP_LIMIT", &bw_structure_qgroup_limit},
    [BW_QGROUP_RELATION] = {"QGROUP_RELATION", &bw_structure_nothing},
    [BW_TEMPORARY_ITEM] = {"TEMPORARY_ITEM", &bw_structure_temporary},
    [BW_PERSISTENT_ITEM] = {"PERSISTENT_ITEM", &bw_structure_persistent},
    [BW_DEVICE_REPLACE] = {"DEV_REPLACE", &bw_structure_device_replace},
    [BW_UUID_SUBVOLUME] = {"UUID_KEY_SUBVOL", &bw_structure_uuid},
    [BW_UUID_RECEIVED] = {"UUID_KEY_RECEIVED_SUBVOL", &bw_structure_uuid},
    [BW_STRING_ITEM] = {"STRING_ITEM", &bw_structure_string},
};

const char *bw_key_type_find(uint8_t type)
{
    return item_types[type].name;
}

const char *bw_key_type_name(uint8_t type)
{
    const char *name = bw_key_type_find(type);
    return name ? name : "UNKNOWN";
}

unsigned bw_structure_number(const struct bw_key *key)
{
    if (key->type == BW_UNTYPED && key->objectid != BW_FREE_SPACE_OBJECT)
        return BW_NO_ITEM_TYPE;
    if (key->type == BW_VERITY_DESC_ITEM && key->offset)
        return BW_VERITY_MERKLE_ITEM;
    return key->type;
}

const struct bw_structure *bw_structure_numbered(unsigned number)
{
    return number < BW_NO_ITEM_TYPE ? item_types[number].structure : NULL;
}

/* The tables of items as JSON, for the documentation. */

static const char *type_of(const struct bw_member *member)
{
    static const char *const types[] = {
        [BW_TYPE_U64] = "number",    [BW_TYPE_I64] = "signed number", [BW_TYPE_TEXT] = "text",
        [BW_TYPE_BYTES] = "text",    [BW_TYPE_NAMES] = "array",       [BW_TYPE_KEY] = "key",
        [BW_TYPE_RECORD] = "object", [BW_TYPE_RECORDS] = "array",
    };
    static const char *const formats[] = {
        [BW_FORMAT_TIME] = "time", [BW_FORMAT_UUID] = "uuid",   [BW_FORMAT_WORD] = "name",
        [BW_FORMAT_HEX] = NULL,    [BW_FORMAT_FLAGS] = "names",
    };
    if (member->type == BW_TYPE_BYTES && member->format == BW_FORMAT_HEX)
        return "hexadecimal";
    return formats[member->format] ? formats[member->format] : types[member->type];
}

/* Members with other structures contain the descriptions of these. Some tables represent a member
 * that they share: "name". */
static void describe_structure(struct bw_json *json, const struct bw_structure *structure)
{
    bw_json_text(json, "name", structure->record.name);
    bw_json_text(json, "description", structure->record.documentation);
    bw_json_begin_array(json, "members");
    for (unsigned i = 0; i < structure->record.member_count; i++) {
        const struct bw_member *member = &structure->record.members[i];
        const struct bw_field *field = member->field;
        if (member->lazy)
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "name", member->name);
        bw_json_text(json, "type", member->name ? type_of(member) : NULL);
        bw_json_number(json, "offset", member->offset);
        bw_json_number(json, "size", field->size);
        bw_json_text(json, "description", member->documentation);
        if (member->values) {
            bw_json_begin_array(json, "values");
            for (const struct bw_value_name *word = member->values->words; word->name; word++)
                bw_json_text(json, NULL, word->name);
            bw_json_end(json);
        }
        if (field->structure) {
            bw_json_begin_object(json, "of");
            describe_structure(json, field->structure);
            bw_json_end(json);
        }
        if (field->structures) {
            bw_json_begin_array(json, "one_of");
            for (size_t choice = 0; field->structures[choice]; choice++) {
                bw_json_begin_object(json, NULL);
                describe_structure(json, field->structures[choice]);
                bw_json_end(json);
            }
            bw_json_end(json);
        }
        bw_json_end(json);
    }
    bw_json_end(json);
}

void bw_structures_describe(struct bw_json *json, const char *name)
{
    bw_json_begin_array(json, name);
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        if (!item_types[type].structure)
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "type", type ? bw_key_type_name((uint8_t)type) : "UNTYPED");
        bw_json_number(json, "number", type);
        describe_structure(json, item_types[type].structure);
        bw_json_end(json);
    }
    bw_json_end(json);
}
