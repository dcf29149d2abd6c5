/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and object ids as btrfs-progs write them. The name of a number depends on the type of the
 * key. */
#include "ondisk/structure.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>
#include <uuid/uuid.h>

#include "ondisk/disk_items.h"

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
    {BW_SYNOLOGY_FIRST_TREE, "SYNOLOGY_USER_QUOTA_TREE", false},
    {201, "SYNOLOGY_QUOTA_TREE", false},
    {202, "SYNOLOGY_BLOCK_GROUP_HINT_TREE", false},
    {203, "SYNOLOGY_BLOCK_GROUP_CACHE_TREE", false},
    {205, "SYNOLOGY_USAGE_TREE", false},
    {BW_SYNOLOGY_LAST_TREE, "SYNOLOGY_EXTENT_USAGE_TREE", false},
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

static char *write_qgroup(char *at, uint64_t id)
{
    at = bw_decimal(at, id >> BW_QGROUP_LEVEL_SHIFT);
    *at++ = '/';
    return bw_decimal(at, id & ((UINT64_C(1) << BW_QGROUP_LEVEL_SHIFT) - 1));
}

/* Half of a uuid, as the number that it is in keys. */
static char *write_half(char *at, uint64_t half)
{
    return at + sprintf(at, "0x%016" PRIx64, half);
}

/* Names of ids from 0 to 13, of the trees of Synology, and of ids near 2^64. */
static char *write_object(char *at, uint64_t objectid)
{
    const bool is_synology =
        objectid >= BW_SYNOLOGY_FIRST_TREE && objectid <= BW_SYNOLOGY_LAST_TREE;
    if (objectid > BW_REMAP_TREE && objectid <= BW_LAST_SUBVOLUME && !is_synology)
        return bw_decimal(at, objectid);
    for (const struct bw_value_name *object = objects; object->name; object++) {
        if (object->value == objectid)
            return stpcpy(at, object->name);
    }
    return bw_decimal(at, objectid);
}

char *bw_write_objectid(char *at, uint64_t objectid, uint8_t type)
{
    switch (type) {
    case BW_PERSISTENT_ITEM:
        if (objectid == BW_DEVICE_STATS)
            return stpcpy(at, "DEV_STATS");
        return bw_decimal(at, objectid);
    case BW_DEVICE_EXTENT:
        return bw_decimal(at, objectid);
    case BW_QGROUP_RELATION:
        return write_qgroup(at, objectid);
    case BW_UUID_SUBVOLUME:
    case BW_UUID_RECEIVED:
        return write_half(at, objectid);
    default:
        if (type == BW_DEVICE_ITEM && objectid == BW_DEVICE_ITEMS)
            return stpcpy(at, "DEV_ITEMS");
        if (type == BW_CHUNK_ITEM && objectid == BW_FIRST_CHUNK)
            return stpcpy(at, "FIRST_CHUNK_TREE");
        return write_object(at, objectid);
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

char *bw_write_key(char *at, const struct bw_key *key)
{
    const char *type = bw_key_type_find(key->type);
    if (key->type == BW_UNTYPED && key->objectid == BW_FREE_SPACE_OBJECT)
        type = "UNTYPED";
    at = bw_write_objectid(stpcpy(at, "("), key->objectid, key->type);
    *at++ = ' ';
    if (type)
        at = stpcpy(at, type);
    else
        at = bw_decimal(stpcpy(at, "UNKNOWN."), key->type);
    *at++ = ' ';
    switch (key->type) {
    case BW_QGROUP_RELATION:
    case BW_QGROUP_INFO:
    case BW_QGROUP_LIMIT:
        at = write_qgroup(at, key->offset);
        break;
    case BW_UUID_SUBVOLUME:
    case BW_UUID_RECEIVED:
        at = write_half(at, key->offset);
        break;
    default:
        if (key->type == BW_ROOT_ITEM && key->objectid == BW_TREE_RELOC)
            at = write_object(at, key->offset); /* the id of the copied tree */
        else if (key->type != BW_ROOT_ITEM && key->offset == UINT64_MAX)
            at = stpcpy(at, "-1");
        else
            at = bw_decimal(at, key->offset);
    }
    *at++ = ')';
    return at;
}

void bw_print_objectid(struct bw_buffer *text, uint64_t objectid, uint8_t type)
{
    if (bw_buffer_reserve(text, BW_KEY_ROOM))
        text->length =
            (size_t)(bw_write_objectid(text->data + text->length, objectid, type) - text->data);
}

void bw_print_key(struct bw_buffer *text, const struct bw_key *key)
{
    if (bw_buffer_reserve(text, BW_KEY_ROOM))
        text->length = (size_t)(bw_write_key(text->data + text->length, key) - text->data);
}
