/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much there is to read for one who reads all trees: for progress, not for answers. */
#include "base/cleanup.h"
#include "btree/scan.h"
#include "ondisk/items.h"
#include "fs/fs.h"

/* What is added up. */
struct sum {
    bool subvolumes;       /* of these alone */
    const uint64_t *trees; /* or of these; NULL: of all */
    size_t count;
    uint64_t bytes;
};

static bool is_wanted(const struct sum *sum, uint64_t id)
{
    for (size_t i = 0; i < sum->count; i++)
        if (sum->trees[i] == id)
            return true;
    if (sum->trees)
        return false;
    return !sum->subvolumes || id == BW_TOP_SUBVOLUME ||
           (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct sum *sum = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_root_item root;
        struct bw_item item;
        if (!bw_leaf_item(leaf, slot, &item) || item.key.type != BW_ROOT_ITEM ||
            !is_wanted(sum, item.key.objectid))
            continue;
        BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(&item, &root);
        const struct bw_disk_root_item *disk = (const void *)item.data;
        if (!bad && root.references)
            sum->bytes += bw_get64(disk->bytes_used);
    }
    return NULL;
}

static uint64_t add_up(struct bw_fs *fs, struct sum sum)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = take_leaf, .lost = bw_scan_ignore_lost,
                                 .context = &sum};
    bw_error_free(bw_tree_scan(&fs->reader, &fs->root_tree, &scan));
    return sum.bytes < fs->superblock.bytes_used ? sum.bytes : fs->superblock.bytes_used;
}

uint64_t bw_fs_tree_bytes(struct bw_fs *fs, bool subvolumes)
{
    return add_up(fs, (struct sum){.subvolumes = subvolumes});
}

uint64_t bw_fs_tree_bytes_of(struct bw_fs *fs, const uint64_t *trees, size_t count)
{
    return add_up(fs, (struct sum){.trees = trees, .count = count});
}
