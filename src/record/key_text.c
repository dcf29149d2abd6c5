/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and object ids as btrfs-progs write them: what a number is called depends on the type of
 * the key that it is in. */
#include <inttypes.h>
#include <strings.h>

#include "base/decimal.h"
#include "format/disk_items.h"
#include "record/structure.h"

static const struct bw_value_name objects[] = {
    {BW_ROOT_TREE, "ROOT_TREE", false},
    {BW_EXTENT_TREE, "EXTENT_TREE", false},
    {BW_CHUNK_TREE, "CHUNK_TREE", false},
    {BW_DEVICE_TREE, "DEV_TREE", false},
    {BW_TOP_SUBVOLUME, "FS_TREE", false},
    {BW_ROOT_TREE_DIR, "ROOT_TREE_DIR", false},
    {BW_CSUM_TREE, "CSUM_TREE", false},
    {BW_QUOTA_TREE, "QUOTA_TREE", false},
    {BW_UUID_TREE, "UUID_TREE", false},
    {BW_FREE_SPACE_TREE, "FREE_SPACE_TREE", false},
    {BW_BLOCK_GROUP_TREE, "BLOCK_GROUP_TREE", false},
    {BW_RAID_STRIPE_TREE, "RAID_STRIPE_TREE", false},
    {BW_REMAP_TREE, "REMAP_TREE", false},
    {BW_BALANCE, "BALANCE", false},
    {BW_ORPHAN, "ORPHAN", false},
    {BW_TREE_LOG, "TREE_LOG", false},
    {BW_TREE_LOG_FIXUP, "LOG_FIXUP", false},
    {BW_TREE_RELOC, "TREE_RELOC", false},
    {BW_DATA_RELOC_TREE, "DATA_RELOC_TREE", false},
    {BW_EXTENT_CSUM_OBJECT, "EXTENT_CSUM", false},
    {BW_FREE_SPACE_OBJECT, "FREE_SPACE", false},
    {BW_FREE_INODE, "FREE_INO", false},
    {BW_CSUM_CHANGE, "CSUM_CHANGE", false},
    {BW_MULTIPLE_OBJECTS, "MULTIPLE", false},
    {UINT64_MAX, "-1", false},
    {0, NULL, false},
};

static void append(struct bw_buffer *text, const char *word)
{
    bw_buffer_append(text, word, strlen(word));
}

static void append_qgroup(struct bw_buffer *text, uint64_t id)
{
    bw_decimal_append(text, id >> BW_QGROUP_LEVEL_SHIFT);
    bw_buffer_append_byte(text, '/');
    bw_decimal_append(text, id & ((UINT64_C(1) << BW_QGROUP_LEVEL_SHIFT) - 1));
}

/* Names of ids from 0 to 13, and of those near 2^64. */
static void append_object(struct bw_buffer *text, uint64_t objectid)
{
    if (objectid > BW_REMAP_TREE && objectid <= BW_LAST_SUBVOLUME) {
        bw_decimal_append(text, objectid);
        return;
    }
    for (const struct bw_value_name *object = objects; object->name; object++) {
        if (object->value == objectid) {
            append(text, object->name);
            return;
        }
    }
    bw_decimal_append(text, objectid);
}

void bw_print_objectid(struct bw_buffer *text, uint64_t objectid, uint8_t type)
{
    switch (type) {
    case BW_PERSISTENT_ITEM:
        if (objectid == BW_DEVICE_STATS)
            append(text, "DEV_STATS");
        else
            bw_decimal_append(text, objectid);
        break;
    case BW_DEVICE_EXTENT:
        bw_decimal_append(text, objectid);
        break;
    case BW_QGROUP_RELATION:
        append_qgroup(text, objectid);
        break;
    case BW_UUID_SUBVOLUME:
    case BW_UUID_RECEIVED:
        bw_buffer_format(text, "0x%016" PRIx64, objectid);
        break;
    default:
        if (type == BW_DEVICE_ITEM && objectid == BW_DEVICE_ITEMS)
            append(text, "DEV_ITEMS");
        else if (type == BW_CHUNK_ITEM && objectid == BW_FIRST_CHUNK)
            append(text, "FIRST_CHUNK_TREE");
        else
            append_object(text, objectid);
    }
}

static bool find_name(const struct bw_value_name *names, const char *name, uint64_t *objectid)
{
    while (names->name && strcasecmp(name, names->name) != 0)
        names++;
    *objectid = names->value;
    return names->name;
}

bool bw_objectid_parse(const char *name, uint64_t *objectid)
{
    static const struct bw_value_name of_one_type[] = {{BW_DEVICE_STATS, "DEV_STATS", false},
                                                       {BW_DEVICE_ITEMS, "DEV_ITEMS", false},
                                                       {BW_FIRST_CHUNK, "FIRST_CHUNK_TREE", false},
                                                       {0, NULL, false}};
    return find_name(objects, name, objectid) || find_name(of_one_type, name, objectid);
}

static void append_type(struct bw_buffer *text, const struct bw_key *key)
{
    const char *name = bw_key_type_find(key->type);
    if (key->type == BW_UNTYPED && key->objectid == BW_FREE_SPACE_OBJECT)
        append(text, "UNTYPED");
    else if (name)
        append(text, name);
    else
        bw_buffer_format(text, "UNKNOWN.%u", key->type);
}

static void append_offset(struct bw_buffer *text, const struct bw_key *key)
{
    switch (key->type) {
    case BW_QGROUP_RELATION:
    case BW_QGROUP_INFO:
    case BW_QGROUP_LIMIT:
        append_qgroup(text, key->offset);
        break;
    case BW_UUID_SUBVOLUME:
    case BW_UUID_RECEIVED:
        bw_buffer_format(text, "0x%016" PRIx64, key->offset);
        break;
    case BW_ROOT_ITEM: /* the id of a tree, if it is a copy for relocation */
        if (key->objectid == BW_TREE_RELOC)
            append_object(text, key->offset);
        else
            bw_decimal_append(text, key->offset);
        break;
    default:
        if (key->offset == UINT64_MAX)
            append(text, "-1");
        else
            bw_decimal_append(text, key->offset);
    }
}

void bw_print_key(struct bw_buffer *text, const struct bw_key *key)
{
    bw_buffer_append(text, "key (", 5);
    bw_print_objectid(text, key->objectid, key->type);
    bw_buffer_append_byte(text, ' ');
    append_type(text, key);
    bw_buffer_append_byte(text, ' ');
    append_offset(text, key);
    bw_buffer_append_byte(text, ')');
}
