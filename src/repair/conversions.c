/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of all tree blocks that a tool began and did not finish, with which every mount refuses
 * the file system. The superblock has a flag for each kind:
 *
 * - the id: if no tree block has the new one yet, the superblocks get the old one back; otherwise
 *   all tree blocks and device items get the new one. With a metadata_uuid, all of them get that.
 *   All blocks get one uuid of the chunk tree, which is the first thing that such a change writes;
 * - metadata_uuid: it concerns superblocks only, so nothing but the flag is missing;
 * - the type of checksums: all tree blocks get the type that the checksums of data have. If these
 *   have the object id of new ones, it becomes the final one. If there are two sets, the one that
 *   does not have all checksums is taken out, or the old one if both have (checksum_tree.c);
 * - the block group tree: if all block groups are in the tree that the superblock names, nothing
 *   but the flag is missing (group_trees.c: they are in two trees).
 *
 * Several flags are set if a tool was started again with another change. All are ended together.
 *
 * Blocks are rewritten where they are, so no reference changes. They are not collected in the plan:
 * the trial reads each one, after the other changes, and writes it.
 */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "ondisk/disk_items.h"
#include "ondisk/node.h"
#include "repair/repair.h"
#include "trees/metadump.h"

static const uint64_t checksum_flags =
                          BW_SUPER_FLAG_CHANGING_DATA_CSUM | BW_SUPER_FLAG_CHANGING_META_CSUM,
                      block_flags = checksum_flags | BW_SUPER_FLAG_CHANGING_FSID |
                                    BW_SUPER_FLAG_CHANGING_GROUP_TREE;

/* Blocks. */

/* Reads the contents of a block with the changes so far, from any copy with a right checksum of any
 * type. */
static struct bw_error *read_block(struct bw_repair *repair, const struct bw_dumped_block *wanted,
                                   uint8_t *block)
{
    const uint32_t size = repair->fs->superblock.nodesize;
    const uint64_t logical = wanted->bytenr;
    const struct bw_disk_header *header = (const void *)block;
    struct bw_mapping mapping = {.copies = 1};
    for (unsigned copy = 1; copy <= mapping.copies; copy++) {
        BW_TRY(bw_fs_map(repair->fs, logical, size, copy, &mapping));
        if (!mapping.present || mapping.rebuilt)
            continue;
        BW_AUTO_ERROR struct bw_error *error =
            bw_repair_read(repair, mapping.devid, mapping.offset, block, size);
        if (error || !bw_checksum_accepts_block(repair->fs->superblock.checksum_type,
                                                BW_ALL_CHECKSUMS, block, size))
            continue;
        const struct bw_tree_block_expectation expectation = {.owner = bw_get64(header->owner),
                                                              .generation = wanted->generation,
                                                              .level = wanted->level};
        BW_AUTO_ERROR struct bw_error *wrong = bw_node_check(block, size, logical, &expectation);
        if (!wrong)
            return NULL;
    }
    return bw_error_create(BW_ERROR_CORRUPT, "no mirror of tree block %" PRIu64 " is good",
                           logical);
}

struct bw_error *bw_repair_write_converted(struct bw_repair *repair, uint64_t logical,
                                           const uint8_t *block)
{
    uint64_t *written = &repair->conversion.written;
    const uint64_t before = *written;
    const uint32_t size = repair->fs->superblock.nodesize;
    struct bw_mapping mapping = {.copies = 1};
    BW_AUTO_FREE uint8_t *old = malloc(size);
    if (!old)
        return bw_error_no_memory();
    for (unsigned copy = 1; copy <= mapping.copies; copy++) {
        BW_TRY(bw_fs_map(repair->fs, logical, size, copy, &mapping));
        if (!mapping.present || mapping.rebuilt)
            continue;

        /* The change may have stopped between two copies. */
        BW_AUTO_ERROR struct bw_error *unread =
            bw_repair_read(repair, mapping.devid, mapping.offset, old, size);
        if (!unread && memcmp(old, block, size) == 0)
            continue;
        *written += size;
        if (*written > repair->options.most_bytes)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "more than %" PRIu64 " MiB would be changed, which is too much "
                                   "for a repair in memory: 'rescue' saves the files",
                                   repair->options.most_bytes >> 20);
        BW_TRY(bw_repair_write(repair, mapping.devid, mapping.offset, block, size));
    }
    return *written > before ? bw_numbers_push(&repair->converted, logical) : NULL;
}

/* Gives all keys of new checksums the final object id. */
static void rename_checksums(uint8_t *block)
{
    const struct bw_disk_header *header = (const void *)block;
    const size_t step =
        header->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    uint8_t *at = block + sizeof *header;
    for (uint32_t i = 0; i < bw_get32(header->item_count); i++, at += step) {
        struct bw_disk_key *key = (void *)at;
        if (bw_get64(key->objectid) == BW_CSUM_CHANGE)
            key->objectid = bw_put64(BW_EXTENT_CSUM_OBJECT);
    }
}

struct bw_error *bw_repair_convert(struct bw_repair *repair)
{
    const struct bw_repair_conversion *conversion = &repair->conversion;
    const uint32_t size = repair->fs->superblock.nodesize;
    BW_SCOPED(bw_dumped_blocks) struct bw_dumped_blocks list = {.bytes = 0};
    bool is_chosen = false;
    repair->converted.count = 0;
    repair->conversion.written = 0;
    for (size_t i = repair->first; i < repair->changes.count; i++)
        is_chosen |= repair->changes.items[i].chosen &&
                     repair->changes.items[i].edit == bw_repair_end_conversion;
    if (!is_chosen || !conversion->rewrites)
        return NULL;
    BW_AUTO_FREE uint8_t *block = malloc(size);
    if (!block)
        return bw_error_no_memory();
    if (conversion->refills_checksums)
        BW_TRY(bw_repair_refill_checksums(repair));
    BW_TRY(bw_dumped_blocks_find(&list, repair->fs));
    for (size_t i = 0; i < list.blocks.count; i++) {
        const struct bw_dumped_block *wanted = &list.blocks.items[i];
        struct bw_disk_header *header = (void *)block;
        if (wanted->is_data)
            continue;
        BW_TRY(read_block(repair, wanted, block));
        const uint64_t owner = bw_get64(header->owner);
        if (conversion->rewrites_ids) {
            memcpy(header->fsid, conversion->fsid, BW_UUID_SIZE);
            memcpy(header->chunk_tree_uuid, conversion->chunk_tree_uuid, BW_UUID_SIZE);
        }
        if (conversion->renames_checksums && owner == BW_CSUM_TREE)
            rename_checksums(block);

        /* Device items have the id, too. The root tree has an empty item with the new type. */
        const struct bw_node leaf = bw_node_view(block, size);
        const bool has_ids = conversion->rewrites_ids && owner == BW_CHUNK_TREE;
        const bool has_type = conversion->flags & checksum_flags && owner == BW_ROOT_TREE;
        struct bw_item item;
        for (uint32_t slot = 0; !leaf.level && bw_leaf_next(&leaf, &slot, &item);) {
            if (has_ids && item.key.type == BW_DEVICE_ITEM &&
                item.size >= sizeof(struct bw_disk_device_item))
                memcpy(block + (item.data - block) + offsetof(struct bw_disk_device_item, fsid),
                       conversion->fsid, BW_UUID_SIZE);
            if (!has_type || slot == 1 || item.size || item.key.objectid != BW_CSUM_CHANGE ||
                item.key.type != BW_TEMPORARY_ITEM)
                continue;
            bw_repair_cut_item(block, size, &item.key);
            break;
        }
        bw_checksum_compute(conversion->checksum_type, block + BW_CSUM_SIZE, size - BW_CSUM_SIZE,
                            block);
        BW_TRY(bw_repair_write_converted(repair, wanted->bytenr, block));
    }
    return NULL;
}

void bw_repair_end_conversion(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    const struct bw_repair_conversion *conversion = &repair->conversion;
    super->flags = bw_put64(bw_get64(super->flags) & ~conversion->flags);
    super->csum_type = bw_put16((uint16_t)conversion->checksum_type);
    if (!(conversion->flags & BW_SUPER_FLAG_CHANGING_FSID))
        return;
    memcpy(super->device.fsid, conversion->fsid, BW_UUID_SIZE);
    if (!(bw_get64(super->incompat_flags) & BW_INCOMPAT_METADATA_UUID))
        memcpy(super->fsid, conversion->fsid, BW_UUID_SIZE);
}

/* The plan. */

/* Which ids the tree blocks have. The old one is the one in the device items of the superblocks,
 * which a change sets last. */
static struct bw_error *plan_id(struct bw_repair *repair, const char **proof)
{
    struct bw_repair_conversion *conversion = &repair->conversion;
    BW_SCOPED(bw_dumped_blocks) struct bw_dumped_blocks list = {.bytes = 0};
    const struct bw_disk_superblock *super = &repair->devices.items[0].best;
    bool has_new = false;

    /* The flag may not have reached the superblocks of all devices. */
    for (size_t i = 0; i < repair->devices.count; i++)
        if (bw_get64(repair->devices.items[i].best.flags) & BW_SUPER_FLAG_CHANGING_FSID)
            super = &repair->devices.items[i].best;
    const bool has_metadata_uuid = bw_get64(super->incompat_flags) & BW_INCOMPAT_METADATA_UUID;
    const uint8_t *new_id = has_metadata_uuid ? super->metadata_uuid : super->fsid;

    BW_AUTO_FREE uint8_t *block = malloc(repair->fs->superblock.nodesize);
    if (!block)
        return bw_error_no_memory();
    BW_TRY(bw_dumped_blocks_find(&list, repair->fs));
    for (size_t i = 0; !has_new && i < list.blocks.count; i++) {
        const struct bw_disk_header *header = (const void *)block;
        if (list.blocks.items[i].is_data)
            continue;
        BW_TRY(read_block(repair, &list.blocks.items[i], block));
        has_new = memcmp(header->fsid, new_id, BW_UUID_SIZE) == 0;
        if (has_new || bw_get64(header->owner) == BW_CHUNK_TREE) /* which is changed last */
            memcpy(conversion->chunk_tree_uuid, header->chunk_tree_uuid, BW_UUID_SIZE);
    }
    conversion->rewrites = conversion->rewrites_ids = true;
    memcpy(conversion->fsid, has_new || has_metadata_uuid ? new_id : super->device.fsid,
           BW_UUID_SIZE);
    if (has_metadata_uuid)
        *proof = "all tree blocks get the metadata_uuid of the superblocks, as a mount expects";
    else if (has_new)
        *proof = "some tree blocks have the new id; the other ones get it, too";
    else
        *proof = "all tree blocks have the old id, which the superblocks get back";
    return NULL;
}

/* Whether there are checksums of data under an object id. */
static struct bw_error *has_checksums(struct bw_repair *repair, uint64_t objectid, bool *found)
{
    *found = false;
    for (size_t i = 0; !*found && i < repair->fs->checksum_trees.count; i++) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, repair->fs, &repair->fs->checksum_trees.items[i],
                          (struct bw_key){objectid, BW_EXTENT_CSUM, 0},
                          (struct bw_key){objectid, BW_EXTENT_CSUM, UINT64_MAX});
        *found = bw_fs_items_next(&items);
        BW_TRY(bw_fs_items_error(&items));
    }
    return NULL;
}

static struct bw_error *plan_checksums(struct bw_repair *repair, const char **proof)
{
    struct bw_repair_conversion *conversion = &repair->conversion;
    bool has_new, has_final;
    BW_TRY(has_checksums(repair, BW_CSUM_CHANGE, &has_new));
    BW_TRY(has_checksums(repair, BW_EXTENT_CSUM_OBJECT, &has_final));
    if (has_new && has_final) {
        BW_TRY(bw_repair_can_refill(repair, &conversion->refills_checksums));
        if (!conversion->refills_checksums) {
            bw_fs_report_once(
                repair->given, BW_WARNING,
                bw_error_create(BW_ERROR_UNSUPPORTED,
                                "a change of the checksums is not ended: one of two sets would "
                                "have to be taken out, and the other one does not fill all "
                                "leaves, or does not fit in them"));
            return NULL;
        }
    }
    conversion->rewrites = true;
    conversion->renames_checksums = has_new && !has_final;
    conversion->checksum_type = bw_fs_data_checksum(repair->fs);
    *proof = conversion->checksum_type == repair->fs->superblock.checksum_type
                 ? "the checksums of all data have the old type, which all tree blocks get back"
                 : "the checksums of all data have the new type; all tree blocks get it, too";
    return NULL;
}

/* Whether a tree has an item of a block group. */
static struct bw_error *has_groups(struct bw_repair *repair, uint64_t id, bool *found)
{
    struct bw_tree tree;
    *found = false;
    BW_TRY(bw_repair_find_tree(repair->fs, id, &tree));
    if (!tree.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, &tree);
    for (const struct bw_item *item; !*found && (item = bw_fs_items_next(&items));)
        *found = item->key.type == BW_BLOCK_GROUP_ITEM;
    return bw_fs_items_error(&items);
}

static struct bw_error *plan_groups(struct bw_repair *repair, const char **proof)
{
    const bool is_tree = repair->fs->superblock.compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE;
    bool in_extents, in_tree;
    BW_TRY(has_groups(repair, BW_EXTENT_TREE, &in_extents));
    BW_TRY(has_groups(repair, BW_BLOCK_GROUP_TREE, &in_tree));
    if (in_extents && in_tree)
        return NULL; /* group_trees.c */
    if (in_extents == is_tree || in_tree != is_tree) {
        bw_fs_report_once(repair->given, BW_WARNING,
                          bw_error_create(BW_ERROR_UNSUPPORTED,
                                          "a conversion of the block groups is not ended: they are "
                                          "not in the tree that the superblock names"));
        return NULL;
    }
    *proof = is_tree ? "all block groups are in the block group tree, which the superblock names"
                     : "all block groups are in the extent tree, none in a block group tree";
    return NULL;
}

struct bw_error *bw_repair_plan_conversion(struct bw_repair *repair)
{
    /* The flag of a change of tree blocks may be on one device only. */
    struct bw_repair_conversion *conversion = &repair->conversion;
    uint64_t flags = repair->fs->superblock.flags & BW_SUPER_FLAG_CHANGING_FSID_V2;
    if (repair->is_made)
        return NULL;
    for (size_t i = 0; i < repair->devices.count; i++)
        flags |= bw_get64(repair->devices.items[i].best.flags) & block_flags;
    *conversion = (struct bw_repair_conversion){
        .flags = flags, .checksum_type = repair->fs->superblock.checksum_type};

    /* The proof of each change. A change of metadata_uuid has written the id of each superblock
     * with or before its flag. */
    const struct {
        uint64_t flags;
        struct bw_error *(*plan)(struct bw_repair *repair, const char **proof);
        const char *proof;
    } changes[] = {{BW_SUPER_FLAG_CHANGING_FSID, plan_id, NULL},
                   {BW_SUPER_FLAG_CHANGING_FSID_V2, NULL,
                    "all tree blocks have the id that the superblocks name"},
                   {BW_SUPER_FLAG_CHANGING_GROUP_TREE, plan_groups, NULL},
                   {checksum_flags, plan_checksums, NULL}};
    BW_AUTO_BUFFER struct bw_buffer proofs = {0};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *proof = changes[i].proof;
        if (!(flags & changes[i].flags))
            continue;
        if (changes[i].plan)
            BW_TRY(changes[i].plan(repair, &proof));
        if (!proof)
            return NULL;
        bw_buffer_format(&proofs, "%s%s", proofs.length ? "; " : "", proof);
    }
    if (!flags)
        return NULL;
    bw_buffer_format(&proofs, "%c", '\0');
    BW_TRY(bw_buffer_error(&proofs));

    /* If the flag is not on all devices, their superblocks differ. */
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        if (finding->planned || !bw_repair_is(finding, "super-differs"))
            continue;
        finding->planned = true;
        finding->edit = bw_repair_end_conversion;
    }
    return bw_repair_plan_supers(repair, "half-done", bw_repair_end_conversion,
                                 "the end of an interrupted change",
                                 "with its flag, no mount succeeds", proofs.data);
}
