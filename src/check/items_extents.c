/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judging the items about space: extents with their references, block groups, checksums. */
#include "check/item_rules.h"
#include "base/human.h"
#include "ondisk/chunk.h"

/* Flags of an extent. */
#define EXTENT_DATA         (UINT64_C(1) << 0)
#define EXTENT_FULL_BACKREF (UINT64_C(1) << 8)
/* Set in memory by a scrub of old, and of no meaning on disk. */
#define EXTENT_SUPER (UINT64_C(1) << 48)

/* Bytes of a reference inside an extent item, by its type; 0: there is no such reference. */
static size_t size_of_reference(unsigned type)
{
    switch (type) {
    case BW_EXTENT_OWNER_REF:
    case BW_TREE_BLOCK_REF:
    case BW_SHARED_BLOCK_REF:
        return sizeof(struct bw_disk_inline_reference);
    case BW_EXTENT_DATA_REF:
        return sizeof(struct bw_disk_inline_data_ref);
    case BW_SHARED_DATA_REF:
        return sizeof(struct bw_disk_inline_shared_data_ref);
    default:
        return 0;
    }
}

static uint64_t hash_of_data_ref(const struct bw_disk_extent_data_ref *reference)
{
    return bw_data_ref_hash(bw_get64(reference->root), bw_get64(reference->objectid),
                            bw_get64(reference->offset));
}

/* References from files: of subvolumes, of the data that are being relocated, and of the free space
 * cache in the root tree. */
static bool wrong_data_ref(const struct bw_item_rules *rules,
                           const struct bw_disk_extent_data_ref *reference,
                           struct bw_item_fault *fault)
{
    const uint64_t root = bw_get64(reference->root), inode = bw_get64(reference->objectid);
    if (!bw_is_subvolume(root) && root != BW_DATA_RELOC_TREE && root != BW_ROOT_TREE)
        return bw_item_wrong(fault, "data ref of tree %" PRId64, (int64_t)root);
    if (!bw_is_file(inode) && inode != BW_FREE_INODE)
        return bw_item_wrong(fault, "data ref of inode %" PRIu64, inode);
    if (bw_get32(reference->count) == 0)
        return bw_item_wrong(fault, "data ref with the count 0");
    return bw_unaligned(rules, fault, "offset of data ref", bw_get64(reference->offset));
}

/* Whose extent it is for simple quotas: the tree that allocated it. A kernel that has not seen the
 * feature's bit refuses the item. */
static bool wrong_owner(const struct bw_item_rules *rules, uint64_t tree,
                        struct bw_item_fault *fault)
{
    if (!(rules->incompat & BW_INCOMPAT_SIMPLE_QUOTA))
        return bw_item_wrong(fault, "EXTENT_OWNER_REF without the feature simple-quota");
    return !bw_is_subvolume(tree) && tree != BW_DATA_RELOC_TREE && tree != BW_ROOT_TREE &&
           bw_item_wrong(fault, "owner is tree %" PRId64, (int64_t)tree);
}

/* A reference inside an extent item; adds what it counts for. */
static bool wrong_reference(const struct bw_item_rules *rules, const uint8_t *bytes, bool is_data,
                            uint64_t *count, struct bw_item_fault *fault)
{
    const struct bw_disk_inline_reference *reference = (const void *)bytes;
    const struct bw_disk_inline_data_ref *data = (const void *)bytes;
    const struct bw_disk_inline_shared_data_ref *shared = (const void *)bytes;
    const unsigned type = reference->type;
    const bool of_block = type == BW_TREE_BLOCK_REF || type == BW_SHARED_BLOCK_REF;
    if (of_block == is_data)
        return bw_item_wrong(fault, "reference of type %u to %s", type,
                             is_data ? "data" : "a tree block");
    switch (type) {
    case BW_EXTENT_DATA_REF:
        *count += bw_get32(data->reference.count);
        return wrong_data_ref(rules, &data->reference, fault);
    case BW_SHARED_DATA_REF:
        *count += bw_get32(shared->count);
        if (bw_get32(shared->count) == 0)
            return bw_item_wrong(fault, "shared data ref with the count 0");
        break;
    case BW_EXTENT_OWNER_REF:
        return wrong_owner(rules, bw_get64(reference->offset), fault);
    default:
        *count += 1;
    }
    return type != BW_TREE_BLOCK_REF &&
           bw_unaligned(rules, fault, "parent", bw_get64(reference->offset));
}

/* References come by type, and those of a type with descending values: offsets or, of data refs,
 * hashes. */
static bool out_of_order(const uint8_t *previous, const uint8_t *bytes)
{
    const struct bw_disk_inline_reference *a = (const void *)previous, *b = (const void *)bytes;
    if (a->type != b->type)
        return a->type > b->type;
    if (a->type != BW_EXTENT_DATA_REF)
        return bw_get64(a->offset) < bw_get64(b->offset);
    return hash_of_data_ref((const void *)(previous + 1)) <
           hash_of_data_ref((const void *)(bytes + 1));
}

static bool wrong_references(const struct bw_item_rules *rules, struct bw_cursor *cursor,
                             bool is_data, uint64_t *count, struct bw_item_fault *fault)
{
    const uint8_t *previous = NULL;
    while (cursor->next < cursor->end) {
        const unsigned type = *cursor->next;
        const size_t size = size_of_reference(type);
        const uint8_t *bytes = size ? bw_cursor_take(cursor, size) : NULL;
        if (!bytes)
            return bw_item_wrong(
                fault, size ? "reference of type %u is cut off" : "reference of unknown type %u",
                type);
        if (wrong_reference(rules, bytes, is_data, count, fault))
            return true;
        if (previous && out_of_order(previous, bytes))
            return bw_item_wrong_as(fault, BW_CODE_extent_ref_order,
                                    "reference of type %u comes after one of type %u", type,
                                    *previous);
        previous = bytes;
    }
    return false;
}

/* The key, and for a tree block of an EXTENT_ITEM the level in it. */
static bool wrong_extent(const struct bw_item_rules *rules, const struct bw_item *item,
                         bool is_data, struct bw_cursor *cursor, struct bw_item_fault *fault)
{
    const struct bw_key *key = &item->key;
    const struct bw_disk_tree_block_info *info;
    if (bw_unaligned(rules, fault, "address", key->objectid))
        return true;
    if (is_data)
        return key->type == BW_METADATA_ITEM ? bw_item_wrong(fault, "data in a METADATA_ITEM")
                                             : bw_unaligned(rules, fault, "length", key->offset);
    if (key->type == BW_METADATA_ITEM)
        return key->offset >= BW_MAX_LEVEL && bw_item_wrong(fault, "level %" PRIu64, key->offset);
    if (key->offset != rules->nodesize)
        return bw_item_wrong(fault, "tree block of %" PRIu64 " bytes", key->offset);
    info = (const void *)bw_cursor_take(cursor, sizeof *info);
    if (!info)
        return bw_item_wrong(fault, "level and key of the tree block are cut off");
    return info->level >= BW_MAX_LEVEL && bw_item_wrong(fault, "level %u", info->level);
}

static bool overlaps_previous(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    const struct bw_item *previous = rules->previous;
    if (!previous ||
        (previous->key.type != BW_EXTENT_ITEM && previous->key.type != BW_METADATA_ITEM))
        return false;
    const uint64_t begin = previous->key.objectid;
    const uint64_t length =
        previous->key.type == BW_METADATA_ITEM ? rules->nodesize : previous->key.offset;
    return length > item->key.objectid - begin &&
           bw_item_wrong_as(fault, BW_CODE_items_overlap,
                            "the extent before has %" PRIu64 " bytes at %" PRIu64, length, begin);
}

bool bw_judge_extent_item(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    const struct bw_disk_extent_item *extent = (const void *)item->data;
    struct bw_cursor cursor = {item->data + sizeof *extent, item->data + item->size, false};
    const uint64_t flags = bw_get64(extent->flags), total = bw_get64(extent->references);
    const bool is_data = flags & EXTENT_DATA;
    uint64_t count = 0;
    if (item->key.type == BW_METADATA_ITEM && !(rules->incompat & BW_INCOMPAT_SKINNY_METADATA))
        return bw_item_wrong(fault, "METADATA_ITEM without the feature skinny-metadata");
    if (is_data == !!(flags & BW_EXTENT_TREE_BLOCK) || (is_data && (flags & EXTENT_FULL_BACKREF)) ||
        flags & ~(EXTENT_DATA | BW_EXTENT_TREE_BLOCK | EXTENT_FULL_BACKREF | EXTENT_SUPER))
        return bw_item_wrong(fault, "flags 0x%" PRIx64, flags);
    if (bw_generation_wrong(rules, fault, "generation", bw_get64(extent->generation)) ||
        wrong_extent(rules, item, is_data, &cursor, fault))
        return true;
    fault->code = BW_CODE_extent_ref;
    if (wrong_references(rules, &cursor, is_data, &count, fault))
        return true;
    if (count > total)
        return bw_item_wrong(fault, "%" PRIu64 " reference%s, but it counts %" PRIu64, count,
                             bw_plural(count), total);
    return overlaps_previous(rules, item, fault) ||
           bw_later_than_leaf(rules, fault, BW_CODE_extent_generation, "generation",
                              bw_get64(extent->generation));
}

bool bw_judge_keyed_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    const struct bw_disk_shared_data_ref *shared = (const void *)item->data;
    if (item->key.type == BW_SHARED_DATA_REF && bw_get32(shared->count) == 0)
        return bw_item_wrong(fault, "shared data ref with the count 0");
    return bw_unaligned(rules, fault, "address", item->key.objectid) ||
           (item->key.type != BW_TREE_BLOCK_REF &&
            bw_unaligned(rules, fault, "parent", item->key.offset));
}

/* The key has the hash of the reference, or if others have the same, a number that comes soon after
 * it. */
static bool far_from_hash(const struct bw_item *item, struct bw_item_fault *fault)
{
    const uint64_t hash = hash_of_data_ref((const void *)item->data);
    return item->key.offset - hash > UINT16_MAX &&
           bw_item_wrong(fault, "data ref has the hash %" PRIu64, hash);
}

bool bw_judge_extent_data_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    const struct bw_disk_extent_data_ref *references = (const void *)item->data;
    const size_t count = item->size / sizeof *references;
    if (item->size % sizeof *references)
        return bw_item_wrong(fault, "size is %" PRIu32 ", no multiple of %zu", item->size,
                             sizeof *references);
    if (bw_unaligned(rules, fault, "address", item->key.objectid))
        return true;
    for (size_t i = 0; i < count; i++)
        if (wrong_data_ref(rules, &references[i], fault))
            return true;
    return count == 1 && far_from_hash(item, fault);
}

bool bw_group_type_wrong(const struct bw_item_rules *rules, struct bw_item_fault *fault,
                         uint64_t type)
{
    const uint64_t mixed = BW_GROUP_DATA | BW_GROUP_METADATA;
    const uint64_t remap = BW_GROUP_REMAPPED | BW_GROUP_METADATA_REMAP;
    const uint64_t use = type & (mixed | BW_GROUP_SYSTEM | BW_GROUP_METADATA_REMAP);
    const uint64_t unknown = type & ~(mixed | BW_GROUP_SYSTEM | remap | BW_GROUP_PROFILE_MASK);
    if (unknown)
        return bw_item_wrong(fault, "unknown bits 0x%" PRIx64 " in the type", unknown);
    if (!bw_raid_profile_of(type))
        return bw_item_wrong(fault, "more than one profile in the type 0x%" PRIx64, type);
    if (!use || ((use & (use - 1)) && use != mixed))
        return bw_item_wrong(fault, "type 0x%" PRIx64, type);
    if (use == mixed && !(rules->incompat & BW_INCOMPAT_MIXED_GROUPS))
        return bw_item_wrong(fault, "data and metadata without the feature mixed-groups");
    return (type & remap) && !(rules->incompat & BW_INCOMPAT_REMAP_TREE) &&
           bw_item_wrong(fault, "type 0x%" PRIx64 " without the feature remap-tree", type);
}

/* What the feature remap-tree adds. */
static bool wrong_group_remap(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    const struct bw_disk_block_group_v2 *group = (const void *)item->data;
    const bool has_remap = rules->incompat & BW_INCOMPAT_REMAP_TREE;
    if (item->size != (has_remap ? sizeof *group : sizeof(struct bw_disk_block_group)))
        return bw_item_wrong(fault, "size is %" PRIu32, item->size);
    if (!has_remap)
        return false;
    if (bw_get64(group->remap_bytes) > item->key.offset)
        return bw_item_wrong(fault, "remap_bytes %" PRIu64 " of %" PRIu64,
                             bw_get64(group->remap_bytes), item->key.offset);
    return bw_get32(group->identity_remap_count) > item->key.offset / rules->sectorsize &&
           bw_item_wrong(fault, "identity_remap_count %" PRIu32,
                         bw_get32(group->identity_remap_count));
}

bool bw_judge_block_group(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    const struct bw_disk_block_group *group = (const void *)item->data;
    const uint64_t used = bw_get64(group->used), tree = bw_get64(group->chunk_objectid);
    if (item->key.offset == 0 || item->key.objectid + item->key.offset < item->key.objectid)
        return bw_item_wrong(fault, "length %" PRIu64, item->key.offset);
    /* With extent-tree-v2 it is the number of the extent tree. */
    if (tree != BW_FIRST_CHUNK && !(rules->incompat & BW_INCOMPAT_EXTENT_TREE_V2))
        return bw_item_wrong(fault, "chunk objectid %" PRIu64, tree);
    if (used > item->key.offset)
        return bw_item_wrong(fault, "used %" PRIu64 " of %" PRIu64, used, item->key.offset);
    return bw_group_type_wrong(rules, fault, bw_get64(group->flags)) ||
           wrong_group_remap(rules, item, fault);
}

bool bw_judge_checksums(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    const struct bw_item *previous = rules->previous;
    const uint64_t begin = item->key.offset;
    if (item->key.objectid == BW_CSUM_CHANGE)
        return false; /* of another type, while a tool changes them */
    if (item->key.objectid != BW_EXTENT_CSUM_OBJECT)
        return bw_item_wrong(fault, "checksums with the object id %" PRId64,
                             (int64_t)item->key.objectid);
    if (item->size % rules->checksum_size)
        return bw_item_wrong(fault, "size is %" PRIu32 ", no multiple of %" PRIu32, item->size,
                             rules->checksum_size);
    if (bw_unaligned(rules, fault, "address", begin))
        return true;
    if (!previous || previous->key.type != BW_EXTENT_CSUM ||
        previous->key.objectid != BW_EXTENT_CSUM_OBJECT)
        return false;
    const uint64_t length = (uint64_t)(previous->size / rules->checksum_size) * rules->sectorsize;
    return length > begin - previous->key.offset &&
           bw_item_wrong_as(fault, BW_CODE_items_overlap,
                            "the checksums before are of %" PRIu64 " bytes at %" PRIu64, length,
                            previous->key.offset);
}
