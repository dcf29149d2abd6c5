/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices that are larger than their images, as after a partition was made smaller. If nothing is
 * allocated behind the end of the image, the device gets the size of the image: in its item, which
 * a mount believes, and in the superblocks.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compare.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

/* Where the last device extent of a device ends. */
static struct bw_error *find_end(struct bw_fs *fs, uint64_t devid, uint64_t *end)
{
    struct bw_tree_list trees = {0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    *end = UINT64_MAX;
    struct bw_error *error = bw_tree_list_load(fs, &trees);
    const struct bw_listed_tree *found = bw_tree_list_find(&trees, BW_DEVICE_TREE);
    const struct bw_tree tree = found ? found->tree : (struct bw_tree){.id = 0};
    bw_listed_trees_free(&trees.entries);
    bw_fs_items_begin(&items, fs, &tree, (struct bw_key){devid, BW_DEVICE_EXTENT, 0},
                      (struct bw_key){devid, BW_DEVICE_EXTENT, UINT64_MAX});
    if (error || !tree.id)
        return error;
    *end = 0;
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->size >= sizeof *extent)
            *end = bw_max(*end, item->key.offset + bw_get64(extent->length));
    }
    return bw_fs_items_error(&items);
}

static struct bw_disk_device_item *find_item(struct bw_repair *repair, uint64_t devid)
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
    struct bw_disk_device_item *item = find_item(repair, finding->devid);
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, finding->devid};
    uint64_t end;
    if (!device || !item)
        return NULL;
    const uint64_t size = bw_xlator_size(device->image->storage), old = bw_get64(item->total_bytes);
    const uint64_t wanted = size - size % repair->fs->superblock.sectorsize;
    BW_TRY(find_end(repair->fs, finding->devid, &end));
    if (end > wanted || wanted >= old)
        return NULL;
    BW_TRY(bw_repair_edit_item(
        repair, finding, &repair->fs->chunk_tree, &key,
        offsetof(struct bw_disk_device_item, total_bytes), sizeof item->total_bytes, wanted,
        (struct bw_repair_edit){
            .group = repair->groups + 1,
            .what = "size of the device in the chunk tree",
            .why =
                bw_repair_text("the device has %" PRIu64 " bytes, its image %" PRIu64, old, size),
            .proof = bw_repair_text("no chunk lies behind %" PRIu64, end)}));
    if (!finding->planned)
        return NULL;
    item->total_bytes = bw_put64(wanted);
    repair->sums.total_bytes -= old - wanted;
    *is_planned = true;
    return NULL;
}

struct bw_error *bw_repair_plan_sizes(struct bw_repair *repair)
{
    bool is_planned = false;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (strcmp(repair->findings.items[i].code->word, "device-truncated") == 0)
            BW_TRY(plan_device(repair, &repair->findings.items[i], &is_planned));
    if (!is_planned)
        return NULL;
    return bw_repair_add(repair, (struct bw_repair_change){
                                     .class_number = BW_REPAIR_DERIVED,
                                     .logical = BW_ABSENT,
                                     .devid = BW_ABSENT,
                                     .offset = BW_ABSENT,
                                     .length = BW_ABSENT,
                                     .what = "sizes of devices in all superblocks",
                                     .why = strdup("they are larger than the images"),
                                     .proof = strdup("the changed device items of the chunk tree"),
                                     .group = ++repair->groups,
                                     .edit = bw_repair_set_sizes,
                                 });
}
