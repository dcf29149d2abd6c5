/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which type of item has which structure, and the documentation of all of them. */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

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

/* The structure of items of a key; NULL if it is unknown. */
static const struct bw_structure *item_structure(const struct bw_key *key)
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
    const struct bw_structure *structure = item_structure(&item->key);
    struct bw_cursor cursor = bw_cursor_of(item);
    if (structure)
        bw_structure_print(printer, structure, &item->key, &cursor);
    if (cursor.next < cursor.end)
        print_raw(printer, &cursor);
}

/* The tables of items as JSON, for the documentation. */

static const char *const kinds[] = {
    [BW_KIND_NUMBER] = "number", [BW_KIND_SIGNED] = "signed number",
    [BW_KIND_OCTAL] = "number",  [BW_KIND_HEX] = "number",
    [BW_KIND_NAMED] = "name",    [BW_KIND_NUMBER_NAMED] = "name",
    [BW_KIND_FLAGS] = "names",   [BW_KIND_HEX_FLAGS] = "names",
    [BW_KIND_TIME] = "time",     [BW_KIND_SECONDS] = "number",
    [BW_KIND_UUID] = "uuid",     [BW_KIND_KEY] = "key",
    [BW_KIND_TREE] = "number",   [BW_KIND_BYTES] = "hexadecimal",
    [BW_KIND_STRUCT] = "object", [BW_KIND_NAME] = "text",
    [BW_KIND_DATA] = "text",     [BW_KIND_REST] = "hexadecimal",
    [BW_KIND_LIST] = "array",    [BW_KIND_SPECIAL] = "number",
};

/* Some tables represent a member that they share: "name". */
static void describe_words(struct bw_json *json, const struct bw_value_names *words)
{
    bw_json_begin_array(json, "values");
    for (const struct bw_value_name *word = words->words; word->name; word++)
        bw_json_text(json, NULL, word->name);
    bw_json_end(json);
}

static void describe(struct bw_json *json, const struct bw_structure *structure);

static void describe_choices(struct bw_json *json, const struct bw_field *member)
{
    bw_json_begin_array(json, "one_of");
    for (size_t i = 0; member->structures[i]; i++) {
        bw_json_begin_object(json, NULL);
        describe(json, member->structures[i]);
        bw_json_end(json);
    }
    bw_json_end(json);
}

static bool has_words(const struct bw_field *member)
{
    return member->kind == BW_KIND_NAMED || member->kind == BW_KIND_NUMBER_NAMED ||
           member->kind == BW_KIND_FLAGS || member->kind == BW_KIND_HEX_FLAGS;
}

static void describe_member(struct bw_json *json, const struct bw_field *member)
{
    if (!member->name && member->kind != BW_KIND_CHOICE)
        return;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "name", member->name);
    bw_json_text(json, "type", kinds[member->kind]);
    bw_json_number(json, "offset", member->offset);
    bw_json_number(json, "size", member->size);
    bw_json_text(json, "description", member->description);
    if (has_words(member))
        describe_words(json, member->words);
    if (member->kind == BW_KIND_LIST || member->kind == BW_KIND_STRUCT) {
        bw_json_begin_object(json, "of");
        describe(json, member->structure);
        bw_json_end(json);
    }
    if (member->kind == BW_KIND_CHOICE)
        describe_choices(json, member);
    bw_json_end(json);
}

static void describe(struct bw_json *json, const struct bw_structure *structure)
{
    bw_json_text(json, "name", structure->name);
    bw_json_text(json, "description", structure->description);
    bw_json_begin_array(json, "members");
    for (uint32_t i = 0; i < structure->count; i++)
        describe_member(json, &structure->members[i]);
    bw_json_end(json);
}

void bw_structures_describe(struct bw_json *json, const char *name)
{
    bw_json_begin_array(json, name);
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        /* The untyped item belongs to an object. */
        const struct bw_key key = {type ? 0 : BW_FREE_SPACE_OBJECT, (uint8_t)type, 0};
        const struct bw_structure *structure = item_structure(&key);
        if (!structure)
            continue;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "type", type ? bw_key_type_name((uint8_t)type) : "UNTYPED");
        bw_json_number(json, "number", type);
        describe(json, structure);
        bw_json_end(json);
    }
    bw_json_end(json);
}
