/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items that no file has: of the extent tree, the chunk tree, the device tree, the root tree and
 * the smaller ones; and the table of all types, with bw_check_item().
 */
#include "base/human.h"
#include "ondisk/chunk.h"
#include "ondisk/item_rules.h"

/* Space: extents with their references, block groups, checksums. */

/* Flags of an extent. */
#define EXTENT_DATA (UINT64_C(1) << 0)
/* Set in memory by a scrub of old, and of no meaning on disk. */
#define EXTENT_SUPER (UINT64_C(1) << 48)

/* Bytes of a reference inside an extent item, by its type; 0: not a valid type. */
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

/* A reference inside an extent item; adds what it counts for. */
static bool wrong_reference(const struct bw_item_rules *rules, const uint8_t *bytes, bool is_data,
                            uint64_t *count, struct bw_item_fault *fault)
{
    const struct bw_disk_inline_reference *reference = (const void *)bytes;
    const struct bw_disk_inline_data_ref *data = (const void *)bytes;
    const struct bw_disk_inline_shared_data_ref *shared = (const void *)bytes;
    const unsigned type = reference->type;
    const uint64_t offset = bw_get64(reference->offset); /* not of data refs */
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
        /* Whose extent it is for simple quotas: the tree that allocated it. A kernel that has not
         * seen the feature's bit refuses the item. */
        if (!(rules->incompat & BW_INCOMPAT_SIMPLE_QUOTA))
            return bw_item_wrong(fault, "EXTENT_OWNER_REF without the feature simple-quota");
        return !bw_is_subvolume(offset) && offset != BW_DATA_RELOC_TREE && offset != BW_ROOT_TREE &&
               bw_item_wrong(fault, "owner is tree %" PRId64, (int64_t)offset);
    default:
        *count += 1;
    }
    return type != BW_TREE_BLOCK_REF && bw_unaligned(rules, fault, "parent", offset);
}

/* References are ordered by type, and within a type by descending values: offsets or, of data refs,
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

static bool check_extent_item(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    const struct bw_disk_extent_item *extent = (const void *)item->data;
    struct bw_cursor cursor = {item->data + sizeof *extent, item->data + item->size, false};
    const uint64_t flags = bw_get64(extent->flags), total = bw_get64(extent->references);
    const bool is_data = flags & EXTENT_DATA;
    uint64_t count = 0;
    if (item->key.type == BW_METADATA_ITEM && !(rules->incompat & BW_INCOMPAT_SKINNY_METADATA))
        return bw_item_wrong(fault, "METADATA_ITEM without the feature skinny-metadata");
    if (is_data == !!(flags & BW_EXTENT_TREE_BLOCK) ||
        (is_data && (flags & BW_EXTENT_FULL_BACKREF)) ||
        flags & ~(EXTENT_DATA | BW_EXTENT_TREE_BLOCK | BW_EXTENT_FULL_BACKREF | EXTENT_SUPER))
        return bw_item_wrong(fault, "flags 0x%" PRIx64, flags);
    if (bw_generation_wrong(rules, fault, "generation", bw_get64(extent->generation)) ||
        wrong_extent(rules, item, is_data, &cursor, fault))
        return true;

    /* The references fill the rest of the item; they may be fewer than it counts, because others
     * have items of their own. */
    const uint8_t *before = NULL;
    fault->kind = BW_FAULT_extent_ref;
    while (cursor.next < cursor.end) {
        const unsigned type = *cursor.next;
        const size_t size = size_of_reference(type);
        const uint8_t *bytes = size ? bw_cursor_take(&cursor, size) : NULL;
        if (!bytes)
            return bw_item_wrong(
                fault, size ? "reference of type %u is cut off" : "reference of unknown type %u",
                type);
        if (wrong_reference(rules, bytes, is_data, &count, fault))
            return true;
        if (before && out_of_order(before, bytes))
            return bw_item_wrong_as(fault, BW_FAULT_extent_ref_order,
                                    "reference of type %u follows type %u", type, *before);
        before = bytes;
    }
    if (count > total)
        return bw_item_wrong(fault, "%" PRIu64 " reference%s, but it counts %" PRIu64, count,
                             bw_plural(count), total);

    /* The extent before ends before this one. */
    const struct bw_item *previous = rules->previous;
    uint64_t length = 0;
    if (previous && previous->key.type == BW_EXTENT_ITEM)
        length = previous->key.offset;
    else if (previous && previous->key.type == BW_METADATA_ITEM)
        length = rules->nodesize;
    if (length && length > item->key.objectid - previous->key.objectid)
        return bw_item_wrong_as(fault, BW_FAULT_items_overlap,
                                "the previous extent has %" PRIu64 " bytes at %" PRIu64, length,
                                previous->key.objectid);
    return bw_later_than_leaf(rules, fault, BW_FAULT_extent_generation, "generation",
                              bw_get64(extent->generation));
}

static bool check_keyed_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                            struct bw_item_fault *fault)
{
    const struct bw_disk_shared_data_ref *shared = (const void *)item->data;
    if (item->key.type == BW_SHARED_DATA_REF && bw_get32(shared->count) == 0)
        return bw_item_wrong(fault, "shared data ref with the count 0");
    return bw_unaligned(rules, fault, "address", item->key.objectid) ||
           (item->key.type != BW_TREE_BLOCK_REF &&
            bw_unaligned(rules, fault, "parent", item->key.offset));
}

static bool check_extent_data_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                                  struct bw_item_fault *fault)
{
    const struct bw_disk_extent_data_ref *references = (const void *)item->data;
    const size_t count = item->size / sizeof *references;
    if (item->size % sizeof *references)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not a multiple of %zu", item->size,
                             sizeof *references);
    if (bw_unaligned(rules, fault, "address", item->key.objectid))
        return true;
    for (size_t i = 0; i < count; i++)
        if (wrong_data_ref(rules, &references[i], fault))
            return true;
    if (count != 1)
        return false;
    /* The key has the hash of the reference, or if others have the same, a number that comes soon
     * after it. */
    const uint64_t hash = hash_of_data_ref(references);
    return item->key.offset - hash > UINT16_MAX &&
           bw_item_wrong(fault, "data ref has the hash %" PRIu64, hash);
}

static bool wrong_group_type(const struct bw_item_rules *rules, struct bw_item_fault *fault,
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

static bool check_block_group(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    const struct bw_disk_block_group *group = (const void *)item->data;
    const struct bw_disk_block_group_v2 *remapped = (const void *)item->data;
    const bool has_remap = rules->incompat & BW_INCOMPAT_REMAP_TREE;
    const uint64_t used = bw_get64(group->used), tree = bw_get64(group->chunk_objectid);
    if (item->key.offset == 0 || item->key.objectid + item->key.offset < item->key.objectid)
        return bw_item_wrong(fault, "length %" PRIu64, item->key.offset);
    /* With extent-tree-v2 it is the number of the extent tree. */
    if (tree != BW_FIRST_CHUNK && !(rules->incompat & BW_INCOMPAT_EXTENT_TREE_V2))
        return bw_item_wrong(fault, "chunk objectid %" PRIu64, tree);
    if (used > item->key.offset)
        return bw_item_wrong(fault, "used %" PRIu64 " of %" PRIu64, used, item->key.offset);
    if (wrong_group_type(rules, fault, bw_get64(group->flags)))
        return true;

    /* The feature remap-tree adds two members. */
    if (item->size != (has_remap ? sizeof *remapped : sizeof *group))
        return bw_item_wrong(fault, "size is %" PRIu32, item->size);
    if (!has_remap)
        return false;
    const uint64_t bytes = bw_get64(remapped->remap_bytes);
    const uint32_t identities = bw_get32(remapped->identity_remap_count);
    if (bytes > item->key.offset)
        return bw_item_wrong(fault, "remap_bytes %" PRIu64 " of %" PRIu64, bytes, item->key.offset);
    return identities > item->key.offset / rules->sectorsize &&
           bw_item_wrong(fault, "identity_remap_count %" PRIu32, identities);
}

static bool check_checksums(const struct bw_item_rules *rules, const struct bw_item *item,
                            struct bw_item_fault *fault)
{
    const struct bw_item *previous = rules->previous;
    const uint64_t begin = item->key.offset;
    if (item->key.objectid == BW_CSUM_CHANGE)
        return false; /* of another type, while a tool changes them */
    if (item->key.objectid != BW_EXTENT_CSUM_OBJECT)
        return bw_item_wrong(fault, "checksums with the object id %" PRId64,
                             (int64_t)item->key.objectid);
    if (rules->checksum_size && item->size % rules->checksum_size)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not a multiple of %" PRIu32, item->size,
                             rules->checksum_size);
    if (bw_unaligned(rules, fault, "address", begin))
        return true;
    if (!rules->checksum_size || !previous || previous->key.type != BW_EXTENT_CSUM ||
        previous->key.objectid != BW_EXTENT_CSUM_OBJECT)
        return false;
    const uint64_t length = (uint64_t)(previous->size / rules->checksum_size) * rules->sectorsize;
    return length > begin - previous->key.offset &&
           bw_item_wrong_as(fault, BW_FAULT_items_overlap,
                            "the previous checksums are of %" PRIu64 " bytes at %" PRIu64, length,
                            previous->key.offset);
}

/* The chunk tree and the device tree. */

/* The kernel counts the stripes of a chunk in 32 bits. */
#define LARGEST_CHUNK ((uint64_t)BW_STRIPE_LENGTH * UINT32_MAX)

/* States of a replacement: never started, started, finished, cancelled, suspended. */
enum { REPLACE_STATES = 5, REPLACE_MODES = 2 };

static bool check_chunk(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    const struct bw_disk_chunk *disk = (const void *)item->data;
    struct bw_chunk chunk;
    if (item->key.objectid != BW_FIRST_CHUNK)
        return bw_item_wrong(fault, "chunk with the object id %" PRIu64, item->key.objectid);
    const unsigned stripes = bw_get16(disk->stripe_count);
    const size_t size = sizeof *disk + stripes * sizeof(struct bw_disk_stripe);
    if (item->size != size)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %zu, of %u stripes", item->size, size,
                             stripes);
    if (bw_unaligned(rules, fault, "address", item->key.offset) ||
        bw_unaligned(rules, fault, "length", bw_get64(disk->length)))
        return true;
    if (bw_get64(disk->length) >= LARGEST_CHUNK)
        return bw_item_wrong(fault, "length %" PRIu64, bw_get64(disk->length));
    if (bw_get32(disk->sector_size) != rules->sectorsize)
        return bw_item_wrong(fault, "sector size %" PRIu32, bw_get32(disk->sector_size));
    if (bw_get64(disk->owner) != BW_EXTENT_TREE)
        return bw_item_wrong(fault, "owner %" PRIu64, bw_get64(disk->owner));
    if (wrong_group_type(rules, fault, bw_get64(disk->type)))
        return true;
    return !bw_chunk_is_remapped_away(item->data, item->size) &&
           bw_item_refused(fault,
                           bw_chunk_decode(item->key.offset, item->data, item->size, &chunk));
}

static bool check_device_item(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_device_item *device = (const void *)item->data;
    const uint64_t used = bw_get64(device->bytes_used), total = bw_get64(device->total_bytes);
    if (item->key.objectid != BW_DEVICE_ITEMS)
        return bw_item_wrong(fault, "device with the object id %" PRIu64, item->key.objectid);
    if (bw_get64(device->devid) != item->key.offset)
        return bw_item_wrong(fault, "devid %" PRIu64, bw_get64(device->devid));
    return used > total && bw_item_wrong(fault, "bytes_used %" PRIu64 " of %" PRIu64, used, total);
}

static bool check_device_extent(const struct bw_item_rules *rules, const struct bw_item *item,
                                struct bw_item_fault *fault)
{
    const struct bw_disk_device_extent *extent = (const void *)item->data;
    const struct bw_item *previous = rules->previous;
    if (bw_get64(extent->chunk_tree) != BW_CHUNK_TREE)
        return bw_item_wrong(fault, "chunk tree %" PRIu64, bw_get64(extent->chunk_tree));
    if (bw_get64(extent->chunk_objectid) != BW_FIRST_CHUNK)
        return bw_item_wrong(fault, "chunk objectid %" PRIu64, bw_get64(extent->chunk_objectid));
    if (bw_unaligned(rules, fault, "offset on the device", item->key.offset) ||
        bw_unaligned(rules, fault, "chunk offset", bw_get64(extent->chunk_offset)) ||
        bw_unaligned(rules, fault, "length", bw_get64(extent->length)))
        return true;
    if (!bw_get64(extent->length))
        return bw_item_wrong(fault, "length 0");
    if (!previous || previous->key.type != BW_DEVICE_EXTENT ||
        previous->key.objectid != item->key.objectid || previous->size != sizeof *extent)
        return false;
    extent = (const void *)previous->data;
    return bw_get64(extent->length) > item->key.offset - previous->key.offset &&
           bw_item_wrong_as(fault, BW_FAULT_items_overlap,
                            "the previous device extent has %" PRIu64 " bytes at %" PRIu64,
                            bw_get64(extent->length), previous->key.offset);
}

/* Counts of errors; there may be fewer than today, or more. */
static bool check_persistent(const struct bw_item_rules *rules, const struct bw_item *item,
                             struct bw_item_fault *fault)
{
    (void)rules;
    return item->key.objectid == BW_DEVICE_STATS &&
           (item->size == 0 || item->size % sizeof(bw_le64)) &&
           bw_item_wrong(fault, "size is %" PRIu32, item->size);
}

static bool check_device_replace(const struct bw_item_rules *rules, const struct bw_item *item,
                                 struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_device_replace *replace = (const void *)item->data;
    if (item->key.objectid || item->key.offset)
        return bw_item_wrong(fault, "no replacement has this key");
    if (bw_get64(replace->state) >= REPLACE_STATES)
        return bw_item_wrong(fault, "state %" PRIu64, bw_get64(replace->state));
    return bw_get64(replace->reading_mode) >= REPLACE_MODES &&
           bw_item_wrong(fault, "reading mode %" PRIu64, bw_get64(replace->reading_mode));
}

/* The root tree and the smaller trees: uuid, free space, quota, stripes,
 * moved extents. */

/* Flags of FREE_SPACE_INFO, QGROUP_STATUS and QGROUP_LIMIT. */
enum { SPACE_FLAGS = 1, QUOTA_FLAGS = 15, LIMIT_FLAGS = 63, QUOTA_VERSION = 1 };

/* Unique trees with a fixed key. Snapshots have a generation in their key, trees of the
 * extent-tree-v2 feature a number, log and relocation trees their subvolume; btrfs-convert gives
 * the data relocation tree another key. */
static bool has_no_offset(uint64_t tree)
{
    return tree == BW_CHUNK_TREE || tree == BW_DEVICE_TREE || tree == BW_TOP_SUBVOLUME ||
           tree == BW_QUOTA_TREE || tree == BW_UUID_TREE || tree == BW_BLOCK_GROUP_TREE ||
           tree == BW_RAID_STRIPE_TREE || tree == BW_REMAP_TREE;
}

static bool is_global(uint64_t tree)
{
    return tree == BW_EXTENT_TREE || tree == BW_CSUM_TREE || tree == BW_FREE_SPACE_TREE;
}

/* The levels of a tree, and how far its deletion got. Subvolumes are deleted bit by bit, as are the
 * trees that balancing leaves; others as a whole. */
static bool wrong_root_levels(const struct bw_item_rules *rules, const struct bw_item *item,
                              const struct bw_disk_root_item *root, struct bw_item_fault *fault)
{
    const struct bw_key progress = bw_key_decode(&root->drop_progress);
    if (root->level >= BW_MAX_LEVEL)
        return bw_item_wrong(fault, "level %u", root->level);
    if (root->drop_level >= BW_MAX_LEVEL)
        return bw_item_wrong(fault, "drop_level %u", root->drop_level);
    if (root->drop_level && !progress.objectid)
        return bw_item_wrong(fault, "drop_level %u without progress", root->drop_level);
    if (progress.objectid && !root->drop_level)
        return bw_item_wrong(fault, "drop_level 0 with progress at (%" PRIu64 " %u %" PRIu64 ")",
                             progress.objectid, progress.type, progress.offset);
    static const struct bw_disk_key none;
    return !bw_is_subvolume(item->key.objectid) && item->key.objectid != BW_TREE_RELOC &&
           !rules->in_log && memcmp(&root->drop_progress, &none, sizeof none) != 0 &&
           bw_item_wrong(fault, "drop progress of a tree that is never dropped");
}

/* The key of a snapshot contains the transaction that created it; keys of other subvolumes contain
 * none. An old kernel, which does not know the newer members, leaves an outdated second generation.
 * Source: create_pending_snapshot() in the kernel's fs/btrfs/transaction.c; btrfs-convert puts a
 * transaction into keys, but none into the item. */
static bool wrong_origin(const struct bw_item *item, const struct bw_disk_root_item *root,
                         struct bw_item_fault *fault)
{
    static const uint8_t none[BW_UUID_SIZE];
    const uint64_t origin = bw_get64(root->origin_transid), made = item->key.offset;
    const bool is_snapshot = memcmp(root->parent_uuid, none, sizeof none) != 0;
    if (!bw_is_subvolume(item->key.objectid) || !origin || made == origin ||
        bw_get64(root->generation) != bw_get64(root->generation_v2))
        return false;
    return (made || is_snapshot) && bw_item_wrong(fault, "made in transaction %" PRIu64, origin);
}

static bool check_root_item(const struct bw_item_rules *rules, const struct bw_item *item,
                            struct bw_item_fault *fault)
{
    const struct bw_disk_root_item *root = (const void *)item->data;
    const bool is_long = item->size == sizeof *root;
    const uint64_t tree = item->key.objectid, offset = item->key.offset;
    const uint64_t generation = bw_get64(root->generation);
    const uint64_t flags =
        bw_get64(root->flags) & ~(BW_ROOT_READ_ONLY | BW_ROOT_DEAD | BW_ROOT_SYNOLOGY);
    if (!is_long && item->size != offsetof(struct bw_disk_root_item, generation_v2))
        return bw_item_wrong(fault, "size is %" PRIu32, item->size);
    if (tree == 0)
        return bw_item_wrong(fault, "no tree has the id 0");
    if (offset && (has_no_offset(tree) ||
                   (!(rules->incompat & BW_INCOMPAT_EXTENT_TREE_V2) && is_global(tree))))
        return bw_item_wrong(fault, "no tree has this key");
    /* Kernels before 5.9 copied the tree of relocated data as they do subvolumes. */
    if (tree == BW_TREE_RELOC && !bw_is_subvolume(offset) && offset != BW_DATA_RELOC_TREE)
        return bw_item_wrong(fault, "relocation of tree %" PRId64 ", which is not a subvolume",
                             (int64_t)offset);

    if (!generation)
        return bw_item_wrong(fault, "generation 0");
    if (bw_generation_wrong(rules, fault, "generation", generation) ||
        bw_generation_wrong(rules, fault, "last_snapshot", bw_get64(root->last_snapshot)) ||
        (is_long &&
         (bw_generation_wrong(rules, fault, "generation_v2", bw_get64(root->generation_v2)) ||
          bw_generation_wrong(rules, fault, "change_transid", bw_get64(root->change_transid)) ||
          bw_generation_wrong(rules, fault, "origin_transid", bw_get64(root->origin_transid)) ||
          wrong_origin(item, root, fault))) ||
        bw_unaligned(rules, fault, "bytenr", bw_get64(root->bytenr)) ||
        wrong_root_levels(rules, item, root, fault))
        return true;
    if (bw_is_subvolume(tree) && bw_get64(root->root_directory) != BW_SUBVOLUME_ROOT_INODE)
        return bw_item_wrong(fault, "root_directory %" PRIu64, bw_get64(root->root_directory));
    if (flags)
        return bw_item_wrong(fault, "unknown flags 0x%" PRIx64, flags);
    /* Subvolumes that are snapshots or were made by btrfs-convert, and the tree of relocated data
     * that it makes, have the transaction in their key that made them. */
    return (bw_is_subvolume(tree) || tree == BW_DATA_RELOC_TREE) && offset > generation &&
           bw_item_wrong_as(fault, BW_FAULT_root_key,
                            "transaction %" PRIu64 " in the key, generation %" PRIu64
                            " of the root",
                            offset, generation);
}

/* ROOT_REF has the parent in its key first, ROOT_BACKREF the child. */
static bool check_root_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                           struct bw_item_fault *fault)
{
    (void)rules;
    struct bw_root_ref ref;
    if (!bw_root_ref_decode(item, &ref) ||
        item->size != sizeof(struct bw_disk_root_ref) + ref.name_length)
        return bw_item_wrong(fault, "size is %" PRIu32 ", which does not fit its name", item->size);
    if (!bw_is_subvolume(item->key.objectid) || !bw_is_subvolume(item->key.offset))
        return bw_item_wrong(fault, "no reference between subvolumes has this key");
    if (!bw_is_file(ref.directory))
        return bw_item_wrong(fault, "directory %" PRIu64, ref.directory);
    return !bw_name_is_valid(ref.name, ref.name_length) &&
           bw_item_wrong(fault, "a name of %u byte%s that no subvolume can have", ref.name_length,
                         bw_plural(ref.name_length));
}

static bool check_uuid(const struct bw_item_rules *rules, const struct bw_item *item,
                       struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_uuid_entry *entries = (const void *)item->data;
    if (item->size % sizeof *entries)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not a multiple of %zu", item->size,
                             sizeof *entries);
    for (size_t i = 0; i < item->size / sizeof *entries; i++)
        if (!bw_is_subvolume(bw_get64(entries[i].subvolume)))
            return bw_item_wrong(fault, "no subvolume has the id %" PRIu64,
                                 bw_get64(entries[i].subvolume));
    return false;
}

static bool check_free_space(const struct bw_item_rules *rules, const struct bw_item *item,
                             struct bw_item_fault *fault)
{
    const uint64_t length = item->key.offset, sectors = length / rules->sectorsize;
    if (bw_unaligned(rules, fault, "address", item->key.objectid) ||
        bw_unaligned(rules, fault, "length", length))
        return true;
    if (!length || item->key.objectid + length < item->key.objectid)
        return bw_item_wrong(fault, "length %" PRIu64, length);
    if (item->key.type == BW_FREE_SPACE_INFO) {
        const struct bw_disk_free_space_info *info = (const void *)item->data;
        const uint32_t count = bw_get32(info->extent_count), flags = bw_get32(info->flags);
        if (flags & ~(uint32_t)SPACE_FLAGS)
            return bw_item_wrong(fault, "unknown flags 0x%" PRIx32, flags);
        return count > sectors &&
               bw_item_wrong(fault, "%" PRIu32 " extent%s in %" PRIu64 " sector%s", count,
                             bw_plural(count), sectors, bw_plural(sectors));
    }
    return item->key.type == BW_FREE_SPACE_BITMAP && item->size != (sectors + 7) / 8 &&
           bw_item_wrong(fault, "size is %" PRIu32 ", not that of %" PRIu64 " bits", item->size,
                         sectors);
}

static bool check_free_space_header(const struct bw_item_rules *rules, const struct bw_item *item,
                                    struct bw_item_fault *fault)
{
    const struct bw_disk_free_space_header *header = (const void *)item->data;
    if (item->key.objectid != BW_FREE_SPACE_OBJECT)
        return bw_item_wrong_as(fault, BW_FAULT_item_type, "items of type 0 are unknown");
    if (item->size != sizeof *header)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %zu", item->size, sizeof *header);
    const struct bw_key location = bw_key_decode(&header->location);
    if (!bw_is_inode(location.objectid) || location.type != BW_INODE_ITEM || location.offset)
        return bw_item_wrong(fault, "points to (%" PRIu64 " %u %" PRIu64 ")", location.objectid,
                             location.type, location.offset);
    return bw_generation_wrong(rules, fault, "generation", bw_get64(header->generation));
}

/* mkfs.btrfs 6.2 with --rootdir and quotas inserts this item without initializing its bytes. The
 * kernel reads a limit only if its flag is set, and keeps the other flags when a user sets one. */
static bool wrong_limit_flags(const struct bw_item *item, struct bw_item_fault *fault)
{
    const struct bw_disk_qgroup_limit *limit = (const void *)item->data;
    const uint64_t flags = bw_get64(limit->flags), known = flags & LIMIT_FLAGS;
    if (flags == known)
        return false;
    if (!known)
        return bw_item_wrong_as(
            fault, BW_FAULT_quota_limit_unset,
            "flags 0x%" PRIx64 ": mkfs.btrfs left them uninitialized; no limit is in force", flags);
    return bw_item_wrong_as(fault, BW_FAULT_quota_limit_flags,
                            "flags 0x%" PRIx64 ": those of known limits, 0x%" PRIx64
                            ", are in force, but may be uninitialized, too",
                            flags, known);
}

static bool check_qgroup(const struct bw_item_rules *rules, const struct bw_item *item,
                         struct bw_item_fault *fault)
{
    const uint64_t from = item->key.objectid, to = item->key.offset;
    if (item->key.type == BW_QGROUP_RELATION)
        return from >> BW_QGROUP_LEVEL_SHIFT == to >> BW_QGROUP_LEVEL_SHIFT &&
               bw_item_wrong(fault, "relation between quota groups of one level");
    if (from)
        return bw_item_wrong(fault, "no quota group has this key");
    if (item->key.type == BW_QGROUP_STATUS) {
        const struct bw_disk_qgroup_status *status = (const void *)item->data;
        const uint64_t flags = bw_get64(status->flags) & ~(uint64_t)QUOTA_FLAGS;
        if (to)
            return bw_item_wrong(fault, "no state of quotas has this key");
        if (bw_get64(status->version) != QUOTA_VERSION)
            return bw_item_wrong(fault, "version %" PRIu64, bw_get64(status->version));
        if (bw_generation_wrong(rules, fault, "generation", bw_get64(status->generation)))
            return true;
        return flags && bw_item_wrong(fault, "unknown flags 0x%" PRIx64, flags);
    }
    return item->key.type == BW_QGROUP_LIMIT && wrong_limit_flags(item, fault);
}

static bool check_raid_stripe(const struct bw_item_rules *rules, const struct bw_item *item,
                              struct bw_item_fault *fault)
{
    struct bw_stripe_extent extent;
    if (!(rules->incompat & BW_INCOMPAT_RAID_STRIPE_TREE))
        return bw_item_wrong(fault, "RAID_STRIPE without the feature raid-stripe-tree");
    return bw_unaligned(rules, fault, "address", item->key.objectid) ||
           bw_unaligned(rules, fault, "length", item->key.offset) ||
           bw_item_refused(fault, bw_stripe_extent_decode(item, &extent));
}

static bool check_remap(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    const struct bw_disk_remap *remap = (const void *)item->data;
    const uint64_t begin = item->key.objectid, length = item->key.offset;
    if (!(rules->incompat & BW_INCOMPAT_REMAP_TREE))
        return bw_item_wrong(fault, "%s without the feature remap-tree",
                             bw_key_type_name(item->key.type));
    if (bw_unaligned(rules, fault, "address", begin) ||
        bw_unaligned(rules, fault, "length", length))
        return true;
    if (!length || begin + length < begin)
        return bw_item_wrong(fault, "length %" PRIu64, length);
    return item->key.type != BW_IDENTITY_REMAP &&
           bw_unaligned(rules, fault, "other address", bw_get64(remap->address));
}

/* A balance that was interrupted. Other object ids are those of tools at work. */
static bool check_temporary(const struct bw_item_rules *rules, const struct bw_item *item,
                            struct bw_item_fault *fault)
{
    (void)rules;
    return item->key.objectid == BW_BALANCE && item->size != sizeof(struct bw_disk_balance) &&
           bw_item_wrong(fault, "size is %" PRIu32 ", not %zu", item->size,
                         sizeof(struct bw_disk_balance));
}

/* The table of types, with the sizes of their items and the trees they belong to. */

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
    bw_item_check *check;
    enum bw_item_fault_kind kind;
    uint16_t trees;            /* which may hold it; 0: the type is not known */
    uint16_t minimum, maximum; /* bytes */
} types[256] = {
    [BW_UNTYPED] = {check_free_space_header, BW_FAULT_free_space_item, ROOT | FILES, 0, UNLIMITED},
    [BW_INODE_ITEM] = {bw_check_inode_item, BW_FAULT_inode_item, ROOT | FILES | LOG,
                       SIZE(inode_item)},
    [BW_INODE_REF] = {bw_check_inode_ref, BW_FAULT_inode_ref, ROOT | FILES | LOG, NAMED(inode_ref)},
    [BW_INODE_EXTREF] = {bw_check_inode_ref, BW_FAULT_inode_ref, FILES | LOG, NAMED(inode_extref)},
    [BW_XATTR_ITEM] = {bw_check_dir_item, BW_FAULT_xattr_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_VERITY_DESC_ITEM] = {bw_check_verity, BW_FAULT_verity_item, FILES | LOG, 1, UNLIMITED},
    [BW_VERITY_MERKLE_ITEM] = {bw_check_verity_piece, BW_FAULT_verity_item, FILES | LOG, 1,
                               UNLIMITED},
    [BW_ORPHAN_ITEM] = {bw_check_orphan_item, BW_FAULT_orphan_item, ROOT | FILES | LOG, 0, 0},
    [BW_DIR_LOG_ITEM] = {bw_check_dir_log, BW_FAULT_dir_log_item, LOG, SIZE(dir_log)},
    [BW_DIR_LOG_INDEX] = {bw_check_dir_log, BW_FAULT_dir_log_item, LOG, SIZE(dir_log)},
    [BW_DIR_ITEM] = {bw_check_dir_item, BW_FAULT_dir_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_DIR_INDEX] = {bw_check_dir_item, BW_FAULT_dir_item, ROOT | FILES | LOG, NAMED(dir_item)},
    [BW_EXTENT_DATA] = {bw_check_file_extent, BW_FAULT_file_extent, ROOT | FILES | LOG, 0,
                        UNLIMITED},
    [BW_CSUM_ITEM] = {NULL, BW_FAULT_checksum_item, FILES, 0, UNLIMITED},
    [BW_EXTENT_CSUM] = {check_checksums, BW_FAULT_checksum_item, CSUM | LOG, 1, UNLIMITED},
    [BW_ROOT_ITEM] = {check_root_item, BW_FAULT_root_item, ROOT | LOG,
                      offsetof(struct bw_disk_root_item, generation_v2),
                      sizeof(struct bw_disk_root_item)},
    [BW_ROOT_BACKREF] = {check_root_ref, BW_FAULT_root_ref, ROOT, NAMED(root_ref)},
    [BW_ROOT_REF] = {check_root_ref, BW_FAULT_root_ref, ROOT, NAMED(root_ref)},
    [BW_EXTENT_ITEM] = {check_extent_item, BW_FAULT_extent_item, EXTENT, LARGE(extent_item)},
    [BW_METADATA_ITEM] = {check_extent_item, BW_FAULT_extent_item, EXTENT, LARGE(extent_item)},
    [BW_TREE_BLOCK_REF] = {check_keyed_ref, BW_FAULT_extent_ref, EXTENT, 0, 0},
    [BW_EXTENT_DATA_REF] = {check_extent_data_ref, BW_FAULT_extent_ref, EXTENT,
                            LARGE(extent_data_ref)},
    [BW_EXTENT_REF_V0] = {NULL, BW_FAULT_extent_ref, EXTENT, 0, UNLIMITED},
    [BW_SHARED_BLOCK_REF] = {check_keyed_ref, BW_FAULT_extent_ref, EXTENT, 0, 0},
    [BW_SHARED_DATA_REF] = {check_keyed_ref, BW_FAULT_extent_ref, EXTENT, SIZE(shared_data_ref)},
    [BW_BLOCK_GROUP_ITEM] = {check_block_group, BW_FAULT_block_group_item, EXTENT | GROUPS,
                             sizeof(struct bw_disk_block_group),
                             sizeof(struct bw_disk_block_group_v2)},
    [BW_FREE_SPACE_INFO] = {check_free_space, BW_FAULT_free_space_item, SPACE,
                            SIZE(free_space_info)},
    [BW_FREE_SPACE_EXTENT] = {check_free_space, BW_FAULT_free_space_item, SPACE, 0, 0},
    [BW_FREE_SPACE_BITMAP] = {check_free_space, BW_FAULT_free_space_item, SPACE, 1, UNLIMITED},
    [BW_DEVICE_EXTENT] = {check_device_extent, BW_FAULT_device_extent_item, DEVICE,
                          SIZE(device_extent)},
    [BW_DEVICE_ITEM] = {check_device_item, BW_FAULT_device_item, CHUNK, SIZE(device_item)},
    [BW_CHUNK_ITEM] = {check_chunk, BW_FAULT_chunk_item, CHUNK, LARGE(chunk)},
    [BW_RAID_STRIPE] = {check_raid_stripe, BW_FAULT_stripe_item, STRIPE, LARGE(raid_stride)},
    [BW_IDENTITY_REMAP] = {check_remap, BW_FAULT_remap_item, REMAP, 0, 0},
    [BW_REMAP] = {check_remap, BW_FAULT_remap_item, REMAP, SIZE(remap)},
    [BW_REMAP_BACKREF] = {check_remap, BW_FAULT_remap_item, REMAP, SIZE(remap)},
    /* The last member of the status came with simple quotas. */
    [BW_QGROUP_STATUS] = {check_qgroup, BW_FAULT_quota_item, QUOTA,
                          offsetof(struct bw_disk_qgroup_status, enable_generation),
                          sizeof(struct bw_disk_qgroup_status)},
    [BW_QGROUP_INFO] = {check_qgroup, BW_FAULT_quota_item, QUOTA, SIZE(qgroup_info)},
    [BW_QGROUP_LIMIT] = {check_qgroup, BW_FAULT_quota_item, QUOTA, SIZE(qgroup_limit)},
    [BW_QGROUP_RELATION] = {check_qgroup, BW_FAULT_quota_item, QUOTA, 0, 0},
    [BW_TEMPORARY_ITEM] = {check_temporary, BW_FAULT_status_item, ROOT | CSUM, 0, UNLIMITED},
    [BW_PERSISTENT_ITEM] = {check_persistent, BW_FAULT_status_item, DEVICE, 0, UNLIMITED},
    [BW_DEVICE_REPLACE] = {check_device_replace, BW_FAULT_status_item, DEVICE,
                           SIZE(device_replace)},
    [BW_UUID_SUBVOLUME] = {check_uuid, BW_FAULT_uuid_item, UUID, LARGE(uuid_entry)},
    [BW_UUID_RECEIVED] = {check_uuid, BW_FAULT_uuid_item, UUID, LARGE(uuid_entry)},
    [BW_STRING_ITEM] = {NULL, BW_FAULT_item_type, ANY, 0, UNLIMITED},
};

static inline unsigned kind_of_tree(const struct bw_item_rules *rules)
{
    static const uint16_t kinds[] = {
        [BW_ROOT_TREE] = ROOT,          [BW_EXTENT_TREE] = EXTENT,
        [BW_CHUNK_TREE] = CHUNK,        [BW_DEVICE_TREE] = DEVICE,
        [BW_TOP_SUBVOLUME] = FILES,     [BW_CSUM_TREE] = CSUM,
        [BW_QUOTA_TREE] = QUOTA,        [BW_UUID_TREE] = UUID,
        [BW_FREE_SPACE_TREE] = SPACE,   [BW_BLOCK_GROUP_TREE] = GROUPS,
        [BW_RAID_STRIPE_TREE] = STRIPE, [BW_REMAP_TREE] = REMAP,
    };
    const uint64_t owner = rules->owner;
    if (owner >= BW_SYNOLOGY_FIRST_TREE && owner <= BW_SYNOLOGY_LAST_TREE)
        return 0; /* only kernels of Synology know their items */
    if (rules->in_log || owner == BW_TREE_LOG)
        return LOG;
    if (owner < sizeof kinds / sizeof *kinds)
        return kinds[owner] ? kinds[owner] : ANY;
    const bool files =
        bw_is_subvolume(owner) || owner == BW_TREE_RELOC || owner == BW_DATA_RELOC_TREE;
    return files ? FILES : ANY;
}

/* Checks an item whose size or tree is wrong. It is not a part of bw_check_item(), so that this one
 * need not save registers. */
static __attribute__((cold, noinline)) bool check_odd_item(const struct bw_item_rules *rules,
                                                           const struct bw_item *item,
                                                           struct bw_item_fault *fault)
{
    const struct item_type *type = &types[item->key.type];
    const unsigned tree = kind_of_tree(rules);
    const uint32_t size = item->size;
    if (!tree)
        return false;
    if (size < type->minimum && type->maximum == UNLIMITED)
        return bw_item_wrong(fault, "size is %" PRIu32 ", less than %u", size, type->minimum);
    const bool has_wrong_size = size < type->minimum || (type->trees && size > type->maximum);
    if (has_wrong_size && type->minimum == type->maximum)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %u", size, type->maximum);
    if (has_wrong_size)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %u to %u", size, type->minimum,
                             type->maximum);
    if (type->check && type->check(rules, item, fault))
        return true;
    if (type->trees & tree)
        return false;

    /* mkfs.btrfs 4.16 to 4.20 made the uuid tree as it makes a subvolume: with a top directory,
     * which nothing reads. Its two items are one finding. */
    const char *name = bw_key_type_find(item->key.type);
    if (rules->owner == BW_UUID_TREE && item->key.objectid == BW_SUBVOLUME_ROOT_INODE &&
        item->key.type == BW_INODE_REF)
        return false;
    if (rules->owner == BW_UUID_TREE && item->key.objectid == BW_SUBVOLUME_ROOT_INODE &&
        item->key.type == BW_INODE_ITEM)
        return bw_item_wrong_as(fault, BW_FAULT_item_type,
                                "the uuid tree has a directory, which mkfs.btrfs 4.16 to 4.20 "
                                "left there and nothing reads");
    if (!name)
        return bw_item_wrong_as(fault, BW_FAULT_item_type, "items of type %u are unknown",
                                item->key.type);
    return bw_item_wrong_as(fault, BW_FAULT_item_type,
                            "items of type %s do not belong in tree %" PRId64, name,
                            (int64_t)rules->owner);
}

bool bw_check_item(const struct bw_item_rules *rules, const struct bw_item *item,
                   struct bw_item_fault *fault)
{
    const struct item_type *type = &types[item->key.type];
    fault->kind = type->kind;
    if (type->trees & kind_of_tree(rules) && item->size >= type->minimum &&
        item->size <= type->maximum)
        return type->check && type->check(rules, item, fault);
    return check_odd_item(rules, item, fault);
}
