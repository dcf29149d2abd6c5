/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices that are larger than their images, as after a partition was made smaller. If nothing is
 * in use behind the end of the image, the device gets the size of the image: in its item, which a
 * mount believes, and in the superblocks.
 *
 * Bytes in use: of a block group, the sum of its extents; of a device, the sum of its device
 * extents; and in the superblocks, which contain the sum of all block groups and the device item.
 * Mounts add differences to these numbers, so an error would stay. Only if the check has no doubts
 * about the extents.
 *
 * Wrong numbers of quota groups are marked as inconsistent: `btrfs quota rescan` counts them again.
 * No mount does this for simple quotas.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/subvolume.h"
#include "ondisk/disk_items.h"
#include "repair/repair.h"

enum { MOST_FINDINGS = 1000 }; /* of one kind; an image may be crafted to have millions */

/* Where the last device extent of a device ends, and how much all of them contain. UINT64_MAX:
 * unknown. */
static struct bw_error *find_end(struct bw_fs *fs, uint64_t devid, uint64_t *end, uint64_t *used)
{
    struct bw_tree tree;
    *end = *used = UINT64_MAX;
    BW_TRY(bw_repair_find_tree(fs, BW_DEVICE_TREE, &tree));
    if (!tree.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &tree, (struct bw_key){devid, BW_DEVICE_EXTENT, 0},
                      (struct bw_key){devid, BW_DEVICE_EXTENT, UINT64_MAX});
    *end = *used = 0;
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->size < sizeof *extent)
            continue;
        *end = bw_max(*end, item->key.offset + bw_get64(extent->length));
        *used += bw_get64(extent->length);
    }
    return bw_fs_items_error(&items);
}

struct bw_disk_device_item *bw_repair_device_item(const struct bw_repair *repair, uint64_t devid)
{
    for (size_t i = 0; i < repair->current.devices.count; i++)
        if (bw_get64(repair->current.devices.items[i].devid) == devid)
            return &repair->current.devices.items[i];
    return NULL;
}

static struct bw_error *plan_device(struct bw_repair *repair, struct bw_repair_finding *finding,
                                    bool *is_planned)
{
    const struct bw_repair_device *device = bw_repair_device_of(repair, finding->devid);
    struct bw_disk_device_item *item = bw_repair_device_item(repair, finding->devid);
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, finding->devid};
    uint64_t end, used;
    if (!device || !item)
        return NULL;
    const uint64_t size = bw_xlator_size(device->image->storage), old = bw_get64(item->total_bytes);
    const uint64_t wanted = size - size % repair->fs->superblock.sectorsize;
    BW_TRY(find_end(repair->fs, finding->devid, &end, &used));
    if (wanted >= old)
        return NULL;
    if (end > wanted) {
        bool is_possible;
        BW_TRY(bw_repair_cut_chunks(repair, finding, finding->devid, &is_possible));
        if (!is_possible)
            return NULL;
    }
    BW_AUTO_FREE char *why =
        bw_repair_text("the device has %" PRIu64 " bytes, its image %" PRIu64, old, size);
    BW_AUTO_FREE char *proof = end > wanted
                                   ? strdup("only chunks without contents lie behind the end")
                                   : bw_repair_text("no chunk lies behind %" PRIu64, end);
    BW_TRY(bw_repair_edit_item(
        repair, finding, &repair->fs->chunk_tree, &key,
        offsetof(struct bw_disk_device_item, total_bytes), sizeof item->total_bytes, wanted,
        (struct bw_repair_edit){.group = repair->groups + 1,
                                .what = "size of the device in the chunk tree",
                                .why = why,
                                .proof = proof}));
    if (!finding->planned)
        return NULL;
    item->total_bytes = bw_put64(wanted);
    repair->current.total_bytes -= old - wanted;
    *is_planned = true;
    return NULL;
}

/* Whether another finding makes the numbers doubtful from which a sum is computed: one of a pass,
 * or about a tree. */
static bool is_doubtful(const struct bw_repair *repair, const char *pass, const char *code,
                        uint64_t tree)
{
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_this = bw_repair_is(finding, code) || finding->planned;
        const bool is_about = strcmp(finding->code->pass, pass) == 0 || finding->tree == tree;
        if (is_about && !is_this && finding->code->severity == BW_FINDING_ERROR &&
            !bw_repair_is(finding, "device-differs"))
            return true;
    }
    return false;
}

static struct bw_error *plan_device_used(struct bw_repair *repair,
                                         struct bw_repair_finding *finding, bool *is_planned)
{
    struct bw_disk_device_item *item = bw_repair_device_item(repair, finding->devid);
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, finding->devid};
    uint64_t end, used;
    if (!item || is_doubtful(repair, "chunks", "device-used", BW_DEVICE_TREE))
        return NULL;
    BW_TRY(find_end(repair->fs, finding->devid, &end, &used));
    if (used == UINT64_MAX)
        return NULL;
    BW_AUTO_FREE char *why =
        bw_repair_text("%" PRIu64 " bytes must be %" PRIu64, bw_get64(item->bytes_used), used);
    BW_TRY(bw_repair_edit_item(
        repair, finding, &repair->fs->chunk_tree, &key,
        offsetof(struct bw_disk_device_item, bytes_used), sizeof item->bytes_used, used,
        (struct bw_repair_edit){.group = repair->groups + 1,
                                .what = "bytes_used of the device in the chunk tree",
                                .why = why,
                                .proof = "the sum of its device extents"}));
    if (finding->planned)
        item->bytes_used = bw_put64(used);
    *is_planned |= finding->planned;
    return NULL;
}

struct bw_error *bw_repair_add_extents(struct bw_fs *fs, const struct bw_key *group, uint64_t *used)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->extent_tree, (struct bw_key){group->objectid, 0, 0},
                      (struct bw_key){group->objectid + group->offset - 1, UINT8_MAX, UINT64_MAX});
    *used = 0;
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        if (item->key.type == BW_EXTENT_ITEM)
            *used += item->key.offset;
        else if (item->key.type == BW_METADATA_ITEM)
            *used += fs->superblock.nodesize;
    }
    return bw_fs_items_error(&items);
}

struct bw_error *bw_repair_read_group_used(struct bw_fs *fs, const struct bw_tree *groups,
                                           const struct bw_key *key, uint64_t *used)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, groups, *key, *key);
    const struct bw_item *item = bw_fs_items_next(&items);
    const struct bw_disk_block_group *group = item ? (const void *)item->data : NULL;
    *used = group && item->size >= sizeof *group ? bw_get64(group->used) : 0;
    return bw_fs_items_error(&items);
}

static struct bw_error *plan_group_used(struct bw_repair *repair, struct bw_repair_finding *finding,
                                        bool *is_planned)
{
    struct bw_fs *fs = repair->fs;
    const struct bw_tree *groups = bw_repair_group_tree(fs);
    uint64_t used, old;
    if (!fs->extent_tree.id || finding->key.type != BW_BLOCK_GROUP_ITEM || !finding->key.offset ||
        bw_repair_doubts_groups(repair) ||
        is_doubtful(repair, "extents", "group-used", BW_EXTENT_TREE))
        return NULL;
    BW_TRY(bw_repair_add_extents(fs, &finding->key, &used));
    BW_TRY(bw_repair_read_group_used(fs, groups, &finding->key, &old));
    BW_AUTO_FREE char *why = bw_repair_text("%" PRIu64 " bytes must be %" PRIu64, old, used);
    BW_TRY(bw_repair_edit_item(
        repair, finding, groups, &finding->key, offsetof(struct bw_disk_block_group, used), 8, used,
        (struct bw_repair_edit){.group = repair->groups + 1,
                                .what = "bytes in use of a block group",
                                .why = why,
                                .proof = "the sum of its extents in the extent tree"}));
    if (finding->planned)
        repair->current.bytes_used += used - old;
    *is_planned |= finding->planned;
    return NULL;
}

struct bw_error *bw_repair_plan_supers(struct bw_repair *repair, const char *code,
                                       bw_superblock_edit *edit, const char *what, const char *why,
                                       const char *proof)
{
    for (size_t i = 0; i < repair->findings.count; i++)
        if (bw_repair_is(&repair->findings.items[i], code)) {
            repair->findings.items[i].planned = true;
            repair->findings.items[i].edit = edit;
        }
    return bw_repair_add(repair, (struct bw_repair_change){.class_number = BW_REPAIR_DERIVED,
                                                           .what = what,
                                                           .why = strdup(why),
                                                           .proof = strdup(proof),
                                                           .group = ++repair->groups,
                                                           .edit = edit});
}

static struct bw_error *plan_quota(struct bw_repair *repair, struct bw_repair_finding *finding,
                                   bool *is_planned)
{
    enum { INCONSISTENT = 4 };
    const struct bw_key key = {0, BW_QGROUP_STATUS, 0};
    struct bw_quota_status status;
    struct bw_tree tree;
    BW_TRY(bw_fs_quota_status(repair->fs, &status));
    BW_TRY(bw_repair_find_tree(repair->fs, BW_QUOTA_TREE, &tree));
    if (!tree.id || !status.is_known || status.simple || bw_repair_doubts_extents(repair))
        return NULL;
    BW_TRY(bw_repair_edit_item(
        repair, finding, &tree, &key, offsetof(struct bw_disk_qgroup_status, flags), 8,
        status.flags | INCONSISTENT,
        (struct bw_repair_edit){.what = "the numbers of quota groups are marked as inconsistent",
                                .why = "they differ from the space that the subvolumes use",
                                .proof = "'btrfs quota rescan' counts them again"}));
    *is_planned |= finding->planned;
    return NULL;
}

/* Plans a finding of one kind, and notes whether anything is planned. */
typedef struct bw_error *planner(struct bw_repair *repair, struct bw_repair_finding *finding,
                                 bool *is_planned);

static struct bw_error *plan_each(struct bw_repair *repair, const char *code, planner *plan,
                                  bool *is_planned)
{
    unsigned count = 0;
    for (size_t i = 0; i < repair->findings.count && count < MOST_FINDINGS; i++)
        if (bw_repair_is(&repair->findings.items[i], code) && ++count)
            BW_TRY(plan(repair, &repair->findings.items[i], is_planned));
    return NULL;
}

struct bw_error *bw_repair_plan_sizes(struct bw_repair *repair)
{
    bool has_devices = false, has_groups = false, has_others = false;
    BW_TRY(plan_each(repair, "device-truncated", plan_device, &has_devices));
    BW_TRY(plan_each(repair, "device-used", plan_device_used, &has_devices));
    if (has_devices)
        BW_TRY(bw_repair_plan_supers(
            repair, "device-differs", bw_repair_set_sizes, "sizes of devices in all superblocks",
            "they must be the same as in the trees", "the changed device items of the chunk tree"));
    BW_TRY(plan_each(repair, "qgroup-count", plan_quota, &has_others));
    BW_TRY(plan_each(repair, "group-used", plan_group_used, &has_groups));
    if (has_groups)
        BW_TRY(bw_repair_plan_supers(repair, "super-used", bw_repair_set_used,
                                     "bytes_used of all superblocks",
                                     "they must be the same as in the trees",
                                     "the sum of the block groups, with the changed ones"));
    return NULL;
}
