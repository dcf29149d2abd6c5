/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trees that repeat what others say:
 *
 * - The leaves of the free space tree with wrong block groups get the items that the extent tree
 *   implies. Lost leaves are made in the same way. Records outside of block groups disappear.
 * - The lost root of a uuid tree that is one leaf becomes an empty leaf, which the next mount
 *   fills.
 * - Lost leaves of the device tree and of the block group tree get the items that the chunks imply,
 *   leaves of the extent tree the items of all extents (extent_items.c).
 * - A lost leaf of the chunk tree, which may be its root, gets the items that rescue/chunk_tree.c
 *   found.
 *
 * A leaf keeps its address, generation and first key, so its parent stays right. If the items do
 * not fit in, the tree is marked as invalid (superblock_changes.c), so that the next mount builds
 * it again; a lost leaf then gets one item with the key that its parent has, so that the mount can
 * empty the tree. With a block group tree, mounts refuse to build it, and nothing is planned.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/range_set.h"
#include "base/search.h"
#include "btree/memory.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum {
    USES_BITMAPS = 1, /* flag of FREE_SPACE_INFO */
    BITMAP_SIZE = 256,
};

/* A block group, and how the free space tree describes it; or the space between two of them. */
struct group {
    uint64_t start, end;
    bool is_wrong, uses_bitmaps, is_gap;
};

BW_VECTOR(group_list, struct group);

struct caches {
    struct bw_repair *repair;
    const struct bw_tree *tree;
    struct group_list groups;
    struct bw_repair_leaf leaf; /* being made */
    struct bw_key first, end;   /* keys that belong in it */
    bool is_full;
    unsigned group;                    /* of all changes of this tree */
    struct bw_repair_extents *extents; /* owned; NULL: not read yet */
};

/* Leaves. */

/* Begins a leaf, with a copy of the header of the root tree in which some fields are replaced. */
static struct bw_error *begin_leaf(struct caches *caches, uint64_t bytenr, uint64_t generation)
{
    struct bw_repair *repair = caches->repair;
    const uint8_t *root;
    BW_TRY(bw_repair_block_contents(repair, bw_fs_root_tree(repair->fs)->root.bytenr, &root));
    caches->is_full = !root;
    if (!root)
        return NULL;
    caches->leaf = bw_repair_leaf_begin(caches->leaf.bytes, repair->fs->superblock.nodesize, root);
    struct bw_disk_header *header = (void *)caches->leaf.bytes;
    header->bytenr = bw_put64(bytenr);
    header->generation = bw_put64(generation);
    header->owner = bw_put64(caches->tree->id);
    header->level = 0;
    return NULL;
}

/* Adds an item, if its key belongs in the leaf. */
static void add_item(struct caches *caches, struct bw_key key, const void *data, uint32_t size)
{
    if (bw_key_compare(&key, &caches->first) >= 0 && bw_key_compare(&key, &caches->end) < 0 &&
        !bw_repair_leaf_add(&caches->leaf, &key, data, size))
        caches->is_full = true;
}

/* The items of a block group, by the extent tree. */

/* Adds the bitmaps of a block group, each for as many sectors as it has bits. */
static void add_bitmaps(struct caches *caches, const struct group *group,
                        const struct bw_range_set *runs)
{
    const uint32_t sectorsize = caches->repair->fs->superblock.sectorsize;
    const uint64_t covered = (uint64_t)BITMAP_SIZE * 8 * sectorsize;
    size_t run = 0;
    for (uint64_t start = group->start; start < group->end; start += covered) {
        uint8_t bits[BITMAP_SIZE] = {0};
        const uint64_t end = group->end - start < covered ? group->end : start + covered;
        const uint32_t count = (uint32_t)((end - start) / sectorsize);
        while (run < runs->ranges.count && runs->ranges.items[run].end <= start)
            run++;
        for (size_t i = run; i < runs->ranges.count && runs->ranges.items[i].start < end; i++) {
            const struct bw_span *span = &runs->ranges.items[i];
            const uint64_t first = span->start > start ? span->start : start;
            const uint64_t last = span->end < end ? span->end : end;
            for (uint64_t bit = (first - start) / sectorsize; bit < (last - start) / sectorsize;
                 bit++)
                bits[bit / 8] |= (uint8_t)(1u << (bit % 8));
        }
        add_item(caches, (struct bw_key){start, BW_FREE_SPACE_BITMAP, end - start}, bits,
                 (count + 7) / 8);
    }
}

/* Adds the items of a block group whose keys belong in the leaf. */
static struct bw_error *add_group(struct caches *caches, const struct group *group)
{
    struct bw_fs *fs = caches->repair->fs;
    if (group->is_gap)
        return NULL;

    /* The free runs: the gaps between extents. */
    BW_SCOPED(bw_range_set) struct bw_range_set runs = {0};
    uint64_t at = group->start;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->extent_tree, (struct bw_key){group->start, 0, 0},
                      (struct bw_key){group->end - 1, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const uint64_t start = item->key.objectid;
        const bool is_block = item->key.type == BW_METADATA_ITEM;
        if (!is_block && item->key.type != BW_EXTENT_ITEM)
            continue;
        if (start > at)
            BW_TRY(bw_range_set_insert(&runs, at, start));
        at = start + (is_block ? fs->superblock.nodesize : item->key.offset);
    }
    if (at < group->end)
        BW_TRY(bw_range_set_insert(&runs, at, group->end));
    BW_TRY(bw_fs_items_error(&items));

    /* Their number, then themselves. */
    const struct bw_disk_free_space_info info = {
        .extent_count = bw_put32((uint32_t)runs.ranges.count),
        .flags = bw_put32(group->uses_bitmaps ? USES_BITMAPS : 0),
    };
    add_item(caches, (struct bw_key){group->start, BW_FREE_SPACE_INFO, group->end - group->start},
             &info, sizeof info);
    if (group->uses_bitmaps)
        add_bitmaps(caches, group, &runs);
    for (size_t i = 0; !group->uses_bitmaps && i < runs.ranges.count; i++) {
        const struct bw_span *run = &runs.ranges.items[i];
        add_item(caches, (struct bw_key){run->start, BW_FREE_SPACE_EXTENT, run->end - run->start},
                 NULL, 0);
    }
    return NULL;
}

/* The wrong block groups. */

/* The block group with an address; NULL: none. */
static struct group *group_at(const struct caches *caches, uint64_t address)
{
    const struct group *groups = caches->groups.items;
    const size_t i = BW_FIRST_INDEX(k, caches->groups.count, groups[k].end > address);
    return i < caches->groups.count && groups[i].start <= address ? &caches->groups.items[i] : NULL;
}

/* The block group or the gap in the free space tree that a finding is about; NULL: none. A flipped
 * bit of a record in a gap is corrected instead (inodes.c). */
static struct group *group_of(const struct caches *caches, const struct bw_repair_finding *finding)
{
    static const char *const words[] = {"free-space-missing",
                                        "free-space-differs",
                                        "free-space-count",
                                        "free-space-item",
                                        "free-space-stray",
                                        "free-space-ahead",
                                        NULL};
    struct group *group = group_at(caches, finding->key.objectid);
    if (finding->tree != caches->tree->id || !bw_repair_is_any(finding, words) || !group ||
        (group->is_gap && finding->flipped_block != BW_ABSENT))
        return NULL;
    return group;
}

bool bw_repair_doubts_groups(const struct bw_repair *repair)
{
    static const char *const words[] = {"group-missing", "group-differs", "chunk-missing", NULL};
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_lost =
            finding->tree == BW_BLOCK_GROUP_TREE && bw_repair_is_about_lost(finding);
        if ((is_lost || bw_repair_is_any(finding, words)) && !finding->planned)
            return true;
    }
    return false;
}

bool bw_repair_lacks_blocks(const struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->findings.count; i++)
        if (bw_repair_is_about_lost(&repair->findings.items[i]) &&
            repair->findings.items[i].tree != BW_FREE_SPACE_TREE)
            return true;
    return false;
}

bool bw_repair_doubts_extents(const struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        if (strcmp(finding->code->pass, "extents") == 0 ||
            (finding->tree == BW_EXTENT_TREE && !finding->planned))
            return true;
    }
    return bw_repair_doubts_groups(repair);
}

/* Fills the leaf with the items of another one, in which those of wrong block groups are replaced.
 * NULL: of a lost one. */
static struct bw_error *fill_leaf(struct caches *caches, const struct bw_node *old)
{
    struct bw_item item = {0};
    uint32_t slot = 0;
    bool has_item = old && bw_leaf_next(old, &slot, &item);
    for (size_t i = 0; i < caches->groups.count; i++) {
        const struct group *group = &caches->groups.items[i];
        if ((old && !group->is_wrong) || group->end < caches->first.objectid ||
            group->start > caches->end.objectid)
            continue;
        for (; has_item && item.key.objectid < group->start;
             has_item = bw_leaf_next(old, &slot, &item))
            add_item(caches, item.key, item.data, item.size);
        while (has_item && item.key.objectid < group->end)
            has_item = bw_leaf_next(old, &slot, &item);
        BW_TRY(add_group(caches, group));
    }
    for (; has_item; has_item = bw_leaf_next(old, &slot, &item))
        add_item(caches, item.key, item.data, item.size);
    return NULL;
}

/* Whether the leaf that was made begins with a key. */
static bool begins_with(const struct bw_repair_leaf *leaf, const struct bw_key *key)
{
    const struct bw_disk_item *item = (const void *)(leaf->bytes + sizeof(struct bw_disk_header));
    const struct bw_key first = bw_key_decode(&item->key);
    return leaf->count && bw_key_compare(&first, key) == 0;
}

/* Plans the leaf that was made. */
static struct bw_error *plan_leaf(struct caches *caches, struct bw_repair_finding *finding,
                                  uint64_t bytenr, bool is_lost, bw_superblock_edit *edit,
                                  const char *proof)
{
    const struct bw_fs *fs = caches->repair->fs;
    const char *loss = NULL;
    bool has_target = false;
    if (caches->tree->id == BW_DEVICE_TREE && !caches->first.objectid) {
        loss = "counters of errors of the devices, and the state of an unfinished replacement";
        for (size_t i = 0; i < fs->image_count; i++)
            has_target |=
                fs->images[i].role != BW_IMAGE_UNUSED && !fs->images[i].superblock.device.devid;
    }
    const char *what = "leaf of the free space tree";
    if (caches->tree->id == BW_UUID_TREE)
        what = "leaf of the uuid tree";
    else if (caches->tree->id == BW_DEVICE_TREE)
        what = "leaf of the device tree";
    else if (caches->tree->id == BW_BLOCK_GROUP_TREE)
        what = "leaf of the block group tree";
    else if (caches->tree->id == BW_EXTENT_TREE)
        what = "leaf of the extent tree";
    else if (caches->tree->id == BW_CHUNK_TREE && caches->tree->root.level)
        what = "leaf of the chunk tree";
    else if (caches->tree->id == BW_CHUNK_TREE)
        what = "root of the chunk tree";
    return bw_repair_edit_contents(
        caches->repair, finding, bytenr, caches->leaf.bytes,
        (struct bw_repair_edit){
            .what = what,
            .loss = loss,
            .is_to_be_chosen = has_target, /* Linux mounts no target without this state */
            .reveals = caches->tree->id != BW_FREE_SPACE_TREE && caches->tree->id != BW_UUID_TREE,
            .why = is_lost ? "no copy of it is good" : "it differs from the extent tree",
            .proof = proof,
            .group = caches->group,
            .is_made = is_lost,
            .edit = edit});
}

static const char from_extents[] = "the gaps between the extents of the verified extent tree";

/* Makes each leaf with items of a block group, and plans it if there is a finding. `*fits`:
 * all of them are possible. */
static struct bw_error *make_leaves(struct caches *caches, const struct group *group,
                                    struct bw_repair_finding *finding, bool *fits)
{
    struct bw_key key = {group->start, 0, 0};
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    *fits = true;
    bw_leaf_finder_init(&finder, &caches->repair->fs->reader, caches->tree);
    while (*fits && key.objectid < group->end) {
        BW_TRY(bw_find_leaf(&finder, &key));
        *fits = !finder.lost;
        if (!*fits)
            break;
        struct bw_item first = {0};
        const struct bw_disk_header *header = (const void *)finder.leaf.block;
        const bool has_first = bw_leaf_item(&finder.leaf, 0, &first);
        caches->first = finder.first;
        caches->end = finder.end;
        BW_TRY(begin_leaf(caches, finder.bytenr, bw_get64(header->generation)));
        BW_TRY(fill_leaf(caches, &finder.leaf));
        *fits = !caches->is_full && (!caches->tree->root.level ||
                                     (has_first && begins_with(&caches->leaf, &first.key)));
        if (*fits && finding)
            BW_TRY(plan_leaf(caches, finding, finder.bytenr, false, NULL, from_extents));
        key = finder.end;
    }
    return NULL;
}

/* Lost leaves. */

/* Plans the items that belong in a lost leaf, or one that keeps its place until a mount deletes it.
 */
static struct bw_error *plan_lost(struct caches *caches, struct bw_repair_finding *finding)
{
    struct bw_block_pointer pointer;
    const struct bw_tree_block_expectation *expectation = &pointer.expectation;
    const bool is_free_space = caches->tree->id == BW_FREE_SPACE_TREE;
    const bool is_uuid = caches->tree->id == BW_UUID_TREE;
    const bool is_extents = caches->tree->id == BW_EXTENT_TREE;
    bool found;
    BW_TRY(bw_repair_find_pointer(&caches->repair->fs->reader, caches->tree, finding->logical,
                                  &finding->key, &pointer, &found));
    if (!found || expectation->level || (is_uuid && caches->tree->root.level))
        return NULL;
    caches->first = expectation->first_key;
    caches->end = expectation->end_key;
    BW_TRY(begin_leaf(caches, pointer.bytenr, expectation->generation));
    if (!is_uuid && !is_free_space) {
        const struct bw_repair_findings *findings = &caches->repair->findings;
        const struct bw_key last = bw_key_before(caches->end);
        for (size_t i = 0; i < findings->count; i++)
            if (caches->tree->id == BW_BLOCK_GROUP_TREE &&
                findings->items[i].tree == BW_EXTENT_TREE &&
                bw_repair_is_about_lost(&findings->items[i]))
                return NULL; /* the extents of a block group are not all known */
        BW_SCOPED(bw_repair_items) struct bw_repair_items items = {0};
        BW_AUTO_EXTENT_ITEMS struct bw_repair_extent_items extents = {0};
        if (is_extents && !caches->extents)
            BW_TRY(bw_repair_extents_open(caches->repair, false, &caches->extents));
        if (is_extents)
            BW_TRY(bw_repair_items_of_extents(caches->extents, &caches->first, &last, &extents));
        else
            BW_TRY(bw_repair_items_of_chunks(caches->repair, caches->tree->id, &caches->first,
                                             &last, &items));
        for (size_t i = 0; i < items.count; i++)
            add_item(caches, items.items[i].key, &items.items[i].data, items.items[i].size);
        for (size_t i = 0; i < extents.count; i++)
            add_item(caches, extents.items[i].key, extents.items[i].data.data,
                     (uint32_t)extents.items[i].data.length);
        if (!caches->leaf.count || caches->is_full ||
            (expectation->has_first_key && !begins_with(&caches->leaf, &expectation->first_key)))
            return NULL;
        return plan_leaf(caches, finding, pointer.bytenr, true, NULL,
                         is_extents ? "the references to extents in all trees, and all chunks"
                                    : "all chunks");
    }
    if (is_uuid)
        return caches->is_full
                   ? NULL
                   : plan_leaf(caches, finding, pointer.bytenr, true, bw_repair_rescan_uuids,
                               "the next mount reads all subvolumes and fills it");
    if (caches->groups.count)
        BW_TRY(fill_leaf(caches, NULL));
    if (caches->groups.count && !caches->is_full &&
        (!expectation->has_first_key || begins_with(&caches->leaf, &expectation->first_key)))
        return plan_leaf(caches, finding, pointer.bytenr, true, NULL, from_extents);
    if (caches->repair->fs->superblock.compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE)
        return NULL;
    BW_TRY(begin_leaf(caches, pointer.bytenr, expectation->generation));
    if (expectation->has_first_key) {
        static const uint8_t zeros[BITMAP_SIZE];
        const struct bw_key *key = &expectation->first_key;
        uint32_t size = 0;
        if (key->type == BW_FREE_SPACE_INFO)
            size = sizeof(struct bw_disk_free_space_info);
        else if (key->type == BW_FREE_SPACE_BITMAP)
            size = sizeof zeros;
        add_item(caches, *key, zeros, size);
    }
    return caches->is_full
               ? NULL
               : plan_leaf(caches, finding, pointer.bytenr, true, bw_repair_invalidate_free_space,
                           "the next mount empties the tree and builds it from the "
                           "extent tree");
}

/* Plans the leaves of the free space tree in which a block group is wrong, or none of them if one
 * is not possible. */
static struct bw_error *plan_wrong(struct caches *caches)
{
    struct bw_repair_findings *findings = &caches->repair->findings;
    struct bw_fs *fs = caches->repair->fs;

    /* The block groups and gaps, and which of them have bitmaps, or are wrong. */
    BW_SCOPED(bw_fs_items) struct bw_fs_items groups;
    struct group gap = {.start = 0, .end = UINT64_MAX, .is_gap = true};
    bw_repair_all_items(&groups, fs, bw_repair_group_tree(fs));
    for (const struct bw_item *item; (item = bw_fs_items_next(&groups));) {
        const struct group group = {.start = item->key.objectid,
                                    .end = item->key.objectid + item->key.offset};
        if (item->key.type != BW_BLOCK_GROUP_ITEM || group.end <= group.start)
            continue;
        gap.end = group.start;
        if (gap.start < gap.end)
            BW_TRY(group_list_push(&caches->groups, gap));
        BW_TRY(group_list_push(&caches->groups, group));
        gap.start = group.end;
    }
    BW_TRY(bw_fs_items_error(&groups));
    gap.end = UINT64_MAX;
    BW_TRY(group_list_push(&caches->groups, gap));

    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, caches->tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct group *group = group_at(caches, item->key.objectid);
        if (group && item->key.type == BW_FREE_SPACE_BITMAP)
            group->uses_bitmaps = true;
    }
    BW_TRY(bw_fs_items_error(&items));

    for (size_t i = 0; i < findings->count; i++) {
        struct group *group = group_of(caches, &findings->items[i]);
        if (group)
            group->is_wrong = true;
    }

    for (size_t i = 0; i < findings->count; i++) {
        struct bw_repair_finding *finding = &findings->items[i];
        const struct group *group = group_of(caches, finding);
        bool fits;
        if (!group || finding->planned)
            continue;
        BW_TRY(make_leaves(caches, group, NULL, &fits));
        if (fits)
            BW_TRY(make_leaves(caches, group, finding, &fits));
    }
    return NULL;
}

struct bw_error *bw_repair_plan_caches(struct bw_repair *repair, bool of_chunks)
{
    static const uint64_t trees[][3] = {{BW_FREE_SPACE_TREE, BW_UUID_TREE},
                                        {BW_DEVICE_TREE, BW_BLOCK_GROUP_TREE, BW_EXTENT_TREE}};
    const uint64_t *ids = trees[of_chunks];
    struct bw_repair_findings *findings = &repair->findings;
    BW_SCOPED(bw_tree_list) struct bw_tree_list list = {0};
    BW_TRY(bw_tree_list_load(repair->fs, &list));
    BW_AUTO_FREE uint8_t *bytes = malloc(repair->fs->superblock.nodesize);
    struct bw_error *error = bytes ? NULL : bw_error_no_memory();
    for (size_t i = 0; !error && i < sizeof *trees / sizeof **trees; i++) {
        const struct bw_listed_tree *tree = bw_tree_list_find(&list, ids[i]);
        struct caches caches = {.repair = repair, .leaf.bytes = bytes, .group = ++repair->groups};
        if (!tree)
            continue;
        caches.tree = &tree->tree;
        if (ids[i] == BW_FREE_SPACE_TREE && !bw_repair_doubts_extents(repair))
            error = plan_wrong(&caches);
        for (size_t k = 0; !error && k < findings->count; k++) {
            struct bw_repair_finding *finding = &findings->items[k];
            if (finding->tree == ids[i] && !finding->planned && bw_repair_is_about_lost(finding) &&
                finding->flipped_block == BW_ABSENT)
                error = plan_lost(&caches, finding);
        }
        group_list_free(&caches.groups);
        bw_repair_extents_close(&caches.extents);
    }
    return error;
}

/* Plans a lost leaf of the chunk tree, which is perhaps the root, with the chunks that were found.
 */
static struct bw_error *plan_chunk_leaf(struct caches *caches, struct bw_repair_finding *finding,
                                        const struct bw_block_pointer *pointer, bool *is_possible)
{
    struct bw_fs *fs = caches->repair->fs;
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    caches->first = expectation->first_key;
    caches->end = expectation->end_key;
    BW_TRY(begin_leaf(caches, pointer->bytenr, expectation->generation));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, &fs->chunk_tree);
    for (const struct bw_item *item; !caches->is_full && (item = bw_fs_items_next(&items));)
        add_item(caches, item->key, item->data, item->size);
    BW_TRY(bw_fs_items_error(&items));
    *is_possible = !caches->is_full && (!expectation->has_first_key ||
                                        begins_with(&caches->leaf, &expectation->first_key));
    return *is_possible
               ? plan_leaf(caches, finding, pointer->bytenr, true, NULL,
                           "the device extents and the block groups, which agree with all chunks")
               : NULL;
}

struct bw_error *bw_repair_plan_chunk_root(struct bw_repair *repair)
{
    struct bw_fs *fs = repair->fs;
    const struct bw_tree lost = {.id = BW_CHUNK_TREE, .root = fs->superblock.chunk_root};
    struct caches caches = {.repair = repair, .tree = &lost, .group = ++repair->groups};
    struct bw_repair_finding *finding = NULL;
    bool is_sure = true; /* that no chunk is missing or stale */
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *other = &repair->findings.items[i];
        const bool is_about_chunks = other->tree == BW_DEVICE_TREE ||
                                     other->tree == BW_BLOCK_GROUP_TREE ||
                                     other->tree == BW_EXTENT_TREE;
        is_sure &= strcmp(other->code->pass, "chunks") != 0 &&
                   !(is_about_chunks && bw_repair_is_about_lost(other));
        if (bw_repair_is(other, "root-lost") && other->logical == lost.root.bytenr)
            finding = other;
    }
    if (!finding || !is_sure || finding->planned || lost.root.level > 1 || repair->is_made ||
        fs->chunk_tree.root.bytenr < BW_MEMORY_START || bw_fs_status(fs).missing_devices)
        return NULL;
    BW_AUTO_FREE uint8_t *bytes = caches.leaf.bytes = malloc(fs->superblock.nodesize);
    if (!bytes)
        return bw_error_no_memory();
    bool is_possible = true;
    const struct bw_block_pointer root = bw_tree_root_pointer(&lost, false);
    if (!lost.root.level)
        return plan_chunk_leaf(&caches, finding, &root, &is_possible);
    BW_AUTO_FREE uint8_t *blocks = bw_block_buffer(&fs->reader, 2);
    if (!blocks)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *lost_root = bw_block_read(&fs->reader, &root, blocks);
    if (lost_root)
        return NULL;
    const struct bw_node node = bw_node_view(blocks, fs->superblock.nodesize);
    for (uint32_t slot = 0; slot < node.item_count && is_possible; slot++) {
        const struct bw_block_pointer leaf = bw_tree_child_pointer(&root, &node, slot);
        BW_AUTO_ERROR struct bw_error *lost_leaf =
            bw_block_read(&fs->reader, &leaf, blocks + fs->superblock.nodesize);
        if (lost_leaf)
            BW_TRY(plan_chunk_leaf(&caches, finding, &leaf, &is_possible));
    }
    return NULL;
}
