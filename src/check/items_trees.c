/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judging the items of the root tree and of the smaller trees: uuid, free space, quota, stripes,
 * moved extents. */
#include <string.h>

#include "check/item_rules.h"
#include "base/human.h"
#include "ondisk/chunk.h"

/* Flags of FREE_SPACE_INFO, QGROUP_STATUS and QGROUP_LIMIT. */
enum { SPACE_FLAGS = 1, QUOTA_FLAGS = 15, LIMIT_FLAGS = 63, QUOTA_VERSION = 1 };

/* Trees of which there is one, and whose key is always the same. Snapshots have a generation in
 * their key, trees of the feature extent-tree-v2 a number, those of logs and relocation their
 * subvolume; btrfs-convert gives the tree of relocated data another one. */
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

static bool wrong_root_key(const struct bw_key *key, uint64_t incompat, struct bw_item_fault *fault)
{
    if (key->objectid == 0)
        return bw_item_wrong(fault, "no tree has the id 0");
    if (key->offset && (has_no_offset(key->objectid) ||
                        (!(incompat & BW_INCOMPAT_EXTENT_TREE_V2) && is_global(key->objectid))))
        return bw_item_wrong(fault, "no tree has this key");
    /* Kernels before 5.9 copied the tree of relocated data as they do subvolumes. */
    return key->objectid == BW_TREE_RELOC && !bw_is_subvolume(key->offset) &&
           key->offset != BW_DATA_RELOC_TREE &&
           bw_item_wrong(fault, "relocation of tree %" PRId64 ", which is no subvolume",
                         (int64_t)key->offset);
}

/* Subvolumes are deleted, and trees that balancing leaves, bit by bit; others as a whole. */
static bool wrong_progress(const struct bw_item_rules *rules, const struct bw_item *item,
                           const struct bw_disk_root_item *root, struct bw_item_fault *fault)
{
    static const struct bw_disk_key none;
    if (bw_is_subvolume(item->key.objectid) || item->key.objectid == BW_TREE_RELOC || rules->in_log)
        return false;
    return memcmp(&root->drop_progress, &none, sizeof none) != 0 &&
           bw_item_wrong(fault, "drop progress of a tree that is never dropped");
}

static bool wrong_root_levels(const struct bw_disk_root_item *root, struct bw_item_fault *fault)
{
    const struct bw_key progress = bw_key_decode(&root->drop_progress);
    if (root->level >= BW_MAX_LEVEL)
        return bw_item_wrong(fault, "level %u", root->level);
    if (root->drop_level >= BW_MAX_LEVEL)
        return bw_item_wrong(fault, "drop_level %u", root->drop_level);
    if (root->drop_level && !progress.objectid)
        return bw_item_wrong(fault, "drop_level %u without progress", root->drop_level);
    return progress.objectid && !root->drop_level &&
           bw_item_wrong(fault, "drop_level 0 with progress at (%" PRIu64 " %u %" PRIu64 ")",
                         progress.objectid, progress.type, progress.offset);
}

/* The key of a snapshot has the transaction that made it, and that of another subvolume none. An
 * old kernel, which does not know the newer members, leaves the second generation behind. Source:
 * create_pending_snapshot() in the kernel's fs/btrfs/transaction.c; btrfs-convert puts a
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

/* Subvolumes that are snapshots or were made by btrfs-convert, and the tree of relocated data that
 * it makes, have the transaction in their key that made them. */
static bool wrong_root_transaction(const struct bw_item *item, const struct bw_disk_root_item *root,
                                   struct bw_item_fault *fault)
{
    const uint64_t tree = item->key.objectid, made = item->key.offset;
    return (bw_is_subvolume(tree) || tree == BW_DATA_RELOC_TREE) &&
           made > bw_get64(root->generation) &&
           bw_item_wrong_as(fault, BW_CODE_root_key,
                            "transaction %" PRIu64 " in the key, generation %" PRIu64
                            " of the root",
                            made, bw_get64(root->generation));
}

bool bw_judge_root_item(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    const struct bw_disk_root_item *root = (const void *)item->data;
    const bool is_long = item->size == sizeof *root;
    const uint64_t flags = bw_get64(root->flags) & ~(BW_ROOT_READ_ONLY | BW_ROOT_DEAD);
    if (!is_long && item->size != offsetof(struct bw_disk_root_item, generation_v2))
        return bw_item_wrong(fault, "size is %" PRIu32, item->size);
    if (wrong_root_key(&item->key, rules->incompat, fault) ||
        bw_generation_wrong(rules, fault, "generation", bw_get64(root->generation)) ||
        bw_generation_wrong(rules, fault, "last_snapshot", bw_get64(root->last_snapshot)) ||
        (is_long &&
         (bw_generation_wrong(rules, fault, "generation_v2", bw_get64(root->generation_v2)) ||
          bw_generation_wrong(rules, fault, "change_transid", bw_get64(root->change_transid)) ||
          bw_generation_wrong(rules, fault, "origin_transid", bw_get64(root->origin_transid)) ||
          wrong_origin(item, root, fault))) ||
        bw_unaligned(rules, fault, "bytenr", bw_get64(root->bytenr)) ||
        wrong_root_levels(root, fault) || wrong_progress(rules, item, root, fault))
        return true;
    if (bw_is_subvolume(item->key.objectid) &&
        bw_get64(root->root_directory) != BW_SUBVOLUME_ROOT_INODE)
        return bw_item_wrong(fault, "root_directory %" PRIu64, bw_get64(root->root_directory));
    if (flags)
        return bw_item_wrong(fault, "flags 0x%" PRIx64 " are not known", flags);
    return wrong_root_transaction(item, root, fault);
}

/* ROOT_REF has the parent in its key first, ROOT_BACKREF the child. */
bool bw_judge_root_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                       struct bw_item_fault *fault)
{
    (void)rules;
    struct bw_root_ref ref;
    if (!bw_root_ref_decode(item, &ref) ||
        item->size != sizeof(struct bw_disk_root_ref) + ref.name_length)
        return bw_item_wrong(fault, "size is %" PRIu32 ", which is not that of its name",
                             item->size);
    if (!bw_is_subvolume(item->key.objectid) || !bw_is_subvolume(item->key.offset))
        return bw_item_wrong(fault, "no reference between subvolumes has this key");
    if (!bw_is_file(ref.directory))
        return bw_item_wrong(fault, "directory %" PRIu64, ref.directory);
    return !bw_name_is_valid(ref.name, ref.name_length) &&
           bw_item_wrong(fault, "a name of %u byte%s that no subvolume can have", ref.name_length,
                         bw_plural(ref.name_length));
}

bool bw_judge_uuid(const struct bw_item_rules *rules, const struct bw_item *item,
                   struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_uuid_entry *entries = (const void *)item->data;
    if (item->size % sizeof *entries)
        return bw_item_wrong(fault, "size is %" PRIu32 ", no multiple of %zu", item->size,
                             sizeof *entries);
    for (size_t i = 0; i < item->size / sizeof *entries; i++)
        if (!bw_is_subvolume(bw_get64(entries[i].subvolume)))
            return bw_item_wrong(fault, "no subvolume has the id %" PRIu64,
                                 bw_get64(entries[i].subvolume));
    return false;
}

static bool wrong_free_space_info(const struct bw_item *item, uint64_t sectors,
                                  struct bw_item_fault *fault)
{
    const struct bw_disk_free_space_info *info = (const void *)item->data;
    const uint32_t count = bw_get32(info->extent_count), flags = bw_get32(info->flags);
    if (flags & ~(uint32_t)SPACE_FLAGS)
        return bw_item_wrong(fault, "flags 0x%" PRIx32 " are not known", flags);
    return count > sectors && bw_item_wrong(fault, "%" PRIu32 " extent%s in %" PRIu64 " sector%s",
                                            count, bw_plural(count), sectors, bw_plural(sectors));
}

bool bw_judge_free_space(const struct bw_item_rules *rules, const struct bw_item *item,
                         struct bw_item_fault *fault)
{
    const uint64_t length = item->key.offset, sectors = length / rules->sectorsize;
    if (bw_unaligned(rules, fault, "address", item->key.objectid) ||
        bw_unaligned(rules, fault, "length", length))
        return true;
    if (!length || item->key.objectid + length < item->key.objectid)
        return bw_item_wrong(fault, "length %" PRIu64, length);
    if (item->key.type == BW_FREE_SPACE_INFO)
        return wrong_free_space_info(item, sectors, fault);
    return item->key.type == BW_FREE_SPACE_BITMAP && item->size != (sectors + 7) / 8 &&
           bw_item_wrong(fault, "size is %" PRIu32 ", not that of %" PRIu64 " bits", item->size,
                         sectors);
}

bool bw_judge_free_space_header(const struct bw_item_rules *rules, const struct bw_item *item,
                                struct bw_item_fault *fault)
{
    const struct bw_disk_free_space_header *header = (const void *)item->data;
    if (item->key.objectid != BW_FREE_SPACE_OBJECT)
        return bw_item_wrong_as(fault, BW_CODE_item_type, "items of type 0 are not known");
    if (item->size != sizeof *header)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %zu", item->size, sizeof *header);
    const struct bw_key location = bw_key_decode(&header->location);
    if (!bw_is_inode(location.objectid) || location.type != BW_INODE_ITEM || location.offset)
        return bw_item_wrong(fault, "leads to (%" PRIu64 " %u %" PRIu64 ")", location.objectid,
                             location.type, location.offset);
    return bw_generation_wrong(rules, fault, "generation", bw_get64(header->generation));
}

static bool wrong_qgroup_status(const struct bw_item_rules *rules, const struct bw_item *item,
                                struct bw_item_fault *fault)
{
    const struct bw_disk_qgroup_status *status = (const void *)item->data;
    const uint64_t flags = bw_get64(status->flags) & ~(uint64_t)QUOTA_FLAGS;
    if (item->key.offset)
        return bw_item_wrong(fault, "no state of quotas has this key");
    if (bw_get64(status->version) != QUOTA_VERSION)
        return bw_item_wrong(fault, "version %" PRIu64, bw_get64(status->version));
    if (bw_generation_wrong(rules, fault, "generation", bw_get64(status->generation)))
        return true;
    return flags && bw_item_wrong(fault, "flags 0x%" PRIx64 " are not known", flags);
}

/* mkfs.btrfs 6.2 with --rootdir and quotas inserts this item and leaves its bytes as they were in
 * the block. The kernel reads a limit only if its flag is set, and keeps the other flags when a
 * user sets one. */
static bool wrong_limit_flags(const struct bw_item *item, struct bw_item_fault *fault)
{
    const struct bw_disk_qgroup_limit *limit = (const void *)item->data;
    const uint64_t flags = bw_get64(limit->flags), known = flags & LIMIT_FLAGS;
    if (flags == known)
        return false;
    if (!known)
        return bw_item_wrong_as(
            fault, BW_CODE_quota_limit_unset,
            "flags 0x%" PRIx64 ": mkfs.btrfs left them uninitialized; no limit is in force", flags);
    return bw_item_wrong_as(fault, BW_CODE_quota_limit_flags,
                            "flags 0x%" PRIx64 ": those of known limits, 0x%" PRIx64
                            ", are in force, and may be uninitialized as the others are",
                            flags, known);
}

bool bw_judge_qgroup(const struct bw_item_rules *rules, const struct bw_item *item,
                     struct bw_item_fault *fault)
{
    const uint64_t from = item->key.objectid, to = item->key.offset;
    if (item->key.type == BW_QGROUP_RELATION)
        return from >> BW_QGROUP_LEVEL_SHIFT == to >> BW_QGROUP_LEVEL_SHIFT &&
               bw_item_wrong(fault, "relation between quota groups of one level");
    if (from)
        return bw_item_wrong(fault, "no quota group has this key");
    if (item->key.type == BW_QGROUP_STATUS)
        return wrong_qgroup_status(rules, item, fault);
    return item->key.type == BW_QGROUP_LIMIT && wrong_limit_flags(item, fault);
}

bool bw_judge_raid_stripe(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    struct bw_stripe_extent extent;
    if (!(rules->incompat & BW_INCOMPAT_RAID_STRIPE_TREE))
        return bw_item_wrong(fault, "RAID_STRIPE without the feature raid-stripe-tree");
    return bw_unaligned(rules, fault, "address", item->key.objectid) ||
           bw_unaligned(rules, fault, "length", item->key.offset) ||
           bw_item_refused(fault, bw_stripe_extent_decode(item, &extent));
}

bool bw_judge_remap(const struct bw_item_rules *rules, const struct bw_item *item,
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
bool bw_judge_temporary(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    (void)rules;
    return item->key.objectid == BW_BALANCE && item->size != sizeof(struct bw_disk_balance) &&
           bw_item_wrong(fault, "size is %" PRIu32 ", not %zu", item->size,
                         sizeof(struct bw_disk_balance));
}
