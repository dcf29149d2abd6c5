/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds unchanged leaves and block groups. Addresses and generations prove it only within one
 * history: if an image was restored from a backup and then used, other blocks may have the
 * addresses and generations of the baseline. So some leaves are read although they are in the
 * baseline: of the trees that describe space, the newest ones, and of all trees, one of 64. If one
 * of them differs, the baseline is of another history.
 *
 * The other passes compare trees with each other, and an unchanged leaf may contradict a changed
 * one. Each such comparison is made by sums that include the skipped leaves, or the leaves that it
 * depends on are not skipped:
 *
 * - The references of leaves, and the facts about inodes, are part of sums.
 * - Whether data need checksums depends on the inode, which may be in an earlier leaf: it must be
 *   unchanged, or have the same flags.
 * - Whether data have checksums depends on the checksum tree. If older data have lost any, nothing
 *   is skipped; if they have more than before, leaves are read that have data without checksums.
 * - If the owner in the header is another tree, that tree must contain the leaf: it is read again.
 * - If the passes before find an error that the baseline does not have, nothing is skipped.
 */
#include "check/unchanged.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "check/reference_counts.h"
#include "data/references.h"
#include "fs/image.h"
#include "ondisk/disk_items.h"

enum {
    NEWEST = 64,    /* leaves that are compared with the baseline */
    SAMPLE = 1 << 6 /* and one of so many */
};

/* A hash of the item about the replacement of a device: afterwards, all blocks lie elsewhere. */
static struct bw_error *hash_replacement(struct bw_check *check, uint64_t *hash)
{
    const struct bw_key key = {0, BW_DEVICE_REPLACE, 0};
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_DEVICE_TREE);
    *hash = 0;
    if (!tree)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, key, key);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        *hash = XXH3_64bits(item->data, item->size);
    return bw_fs_items_error(&items);
}

/* Why no baseline can be made or used; NULL: it can. Each of these changes the location or the
 * users of blocks without changing the blocks. */
static const char *find_obstacle(const struct bw_check *check)
{
    const uint64_t incompat = check->fs->superblock.incompat_flags;
    if (check->fs->is_past)
        return "an older generation is checked";
    if (check->fs->alternatives)
        return "a device has several images";
    for (size_t i = 0; i < check->fs->image_count; i++)
        if (bw_image_is_stale(check->fs, &check->fs->images[i]))
            return "a device missed transactions, and all its blocks are compared";
    if (incompat & BW_INCOMPAT_SIMPLE_QUOTA)
        return "simple quotas count all blocks";
    if (incompat & (BW_INCOMPAT_EXTENT_TREE_V2 | BW_INCOMPAT_REMAP_TREE))
        return "a feature of the file system is not supported";
    return NULL;
}

/* Why a baseline is not of an earlier time of the file system; NULL: it is. */
static const char *find_difference(const struct bw_check *check, const struct bw_baseline *since,
                                   uint64_t replaced)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    if (memcmp(since->fsid, superblock->fsid, BW_UUID_SIZE) != 0)
        return "it is of another file system";
    if (!since->finished)
        return "its check was not finished";
    if (since->generation > superblock->generation)
        return "it is of a later generation";
    if (since->incompat != superblock->incompat_flags ||
        since->compat_ro != superblock->compat_ro_flags ||
        since->nodesize != superblock->nodesize || since->sectorsize != superblock->sectorsize)
        return "the features of the file system have changed";
    if (since->replaced != replaced)
        return "a device was replaced";
    return NULL;
}

struct bw_error *bw_unchanged_begin(struct bw_check *check)
{
    const struct bw_check_options *options = check->options;
    const struct bw_superblock *superblock = &check->fs->superblock;
    if (check->why || check->fs->is_stream)
        return NULL;
    if (options->since_generation) {
        /* Everything that is newer than a generation. */
        BW_SCOPED(bw_block_scan)
        struct bw_block_scan scan = {BW_SCAN_ALL, .newer_than = options->since_generation};
        struct bw_item item;
        const struct bw_listed_trees *trees = &check->trees.entries;
        check->since_generation = options->since_generation;
        check->selects_data = true;
        BW_TRY(bw_tree_list_load(check->fs, &check->trees));
        for (size_t i = 0; options->data && i < trees->count; i++) {
            if (trees->items[i].tree.id != BW_EXTENT_TREE)
                continue;
            bw_block_scan_begin(&scan, &check->fs->reader, &trees->items[i].tree);
            while (bw_block_scan_next_item(&scan, &item)) {
                struct bw_extent_entry extent;
                if (bw_extent_entry_decode(check->fs, &item, &extent) && !extent.is_block &&
                    extent.generation > check->since_generation)
                    BW_TRY(bw_range_set_insert(&check->new_data, extent.bytenr,
                                               extent.bytenr + extent.length));
            }
            BW_TRY(bw_block_scan_end(&scan));
        }
        bw_range_set_join(&check->new_data);
        return NULL;
    }
    if (!options->since && !options->save)
        return NULL;
    uint64_t replaced;
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    BW_TRY(hash_replacement(check, &replaced));
    const char *obstacle = find_obstacle(check);
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(check->fs, &devices));
    for (size_t i = 0; i < devices.count; i++)
        if (devices.items[i].state == BW_DEVICE_MISSING)
            obstacle = "devices are missing";
    if (options->since) {
        const size_t count = options->since->findings.count;
        check->met_again = calloc(count + 1, sizeof *check->met_again);
        if (!check->met_again)
            return bw_error_no_memory();
        for (size_t i = 0; i < count; i++) {
            const uint64_t identity = options->since->findings.items[i].identity;
            check->met_again[i] = bw_key_map_has(&check->known_findings, identity);
            if (!check->met_again[i]) /* only one of several that cannot be distinguished */
                BW_TRY(bw_key_map_put(&check->known_findings, identity, (uint32_t)i));
        }
        const char *reason = obstacle;
        if (!reason)
            reason = find_difference(check, options->since, replaced);
        if (reason) {
            bw_check_find(check, BW_CODE_baseline_unused, NULL, "%s: everything is checked",
                          reason);
        } else {
            check->since = options->since;
            check->since_generation = options->since->generation;
            check->secrets = bw_fact_secrets_of(options->since->seed);
            check->skips = true;
        }
    }
    if (!options->save)
        return NULL;
    struct bw_baseline *save = options->save;
    memcpy(save->fsid, superblock->fsid, BW_UUID_SIZE);
    save->generation = superblock->generation;
    save->incompat = superblock->incompat_flags;
    save->compat_ro = superblock->compat_ro_flags;
    save->nodesize = superblock->nodesize;
    save->sectorsize = superblock->sectorsize;
    save->replaced = replaced;
    save->seed = check->secrets.name;
    save->has_data = options->data && !check->fs->no_data;
    if (!obstacle)
        check->save = save;
    else
        bw_check_find(check, BW_CODE_baseline_unused, NULL,
                      "%s: a check with the new baseline reads everything", obstacle);
    return NULL;
}

/* Block groups. */

/* The newest of the leaves of a tree that are in the baseline. */
struct newest_leaves {
    struct bw_block_pointer pointers[NEWEST];
    unsigned count;
};

/* Adds a leaf of a tree to the block groups that it describes. */
static void add_leaf(const struct bw_check *check, uint64_t tree,
                     const struct bw_block_pointer *pointer, struct newest_leaves *newest)
{
    const struct bw_tree_block_expectation *block = &pointer->expectation;
    const struct bw_checked_groups *groups = &check->groups.groups;

    /* The addresses that it describes, and the block groups that contain any of them. */
    uint64_t first = block->first_key.objectid, last = block->end_key.objectid;
    if (tree == BW_CSUM_TREE) {
        first = block->first_key.objectid == BW_EXTENT_CSUM_OBJECT ? block->first_key.offset : 0;
        last =
            block->end_key.objectid == BW_EXTENT_CSUM_OBJECT ? block->end_key.offset : UINT64_MAX;
    }
    const uint64_t hash = bw_reference_hash(tree, pointer->bytenr, block->generation, first);
    size_t i =
        BW_FIRST_INDEX(k, groups->count, groups->items[k].start + groups->items[k].length > first);
    for (; i < groups->count && groups->items[i].start <= last; i++)
        groups->items[i].leaves += hash;

    /* The newest of those in the baseline. */
    if (!check->since || !bw_baseline_leaf(check->since, pointer->bytenr, block->generation))
        return;
    struct bw_block_pointer *pointers = newest->pointers;
    unsigned place = newest->count;
    if (newest->count < NEWEST)
        newest->count++;
    else
        for (unsigned k = place = 0; k < NEWEST; k++)
            if (pointers[k].expectation.generation < pointers[place].expectation.generation)
                place = k;
    if (place == newest->count - 1 || pointers[place].expectation.generation < block->generation)
        pointers[place] = *pointer;
}

uint32_t bw_block_checksum(const uint8_t *block)
{
    const struct bw_disk_header *header = (const void *)block;
    bw_le32 checksum;
    memcpy(&checksum, header->csum, sizeof checksum);
    return bw_get32(checksum);
}

struct bw_error *bw_unchanged_groups(struct bw_check *check)
{
    static const uint64_t trees[] = {BW_EXTENT_TREE, BW_FREE_SPACE_TREE, BW_CSUM_TREE};
    struct bw_checked_groups *groups = &check->groups.groups;
    struct bw_tree_reader reader = check->fs->reader;
    bool lost = check->groups.incomplete;
    reader.adopter = NULL;
    if (!check->since && !check->save)
        return NULL;
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&check->fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    for (size_t i = 0; i < 3 * check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i / 3];
        struct newest_leaves newest = {.count = 0};
        if (tree->tree.id != trees[i % 3])
            continue;
        bw_block_scan_begin(&scan, &reader, &tree->tree);
        while (bw_block_scan_next(&scan)) {
            scan.selected = scan.pointer.expectation.level > 0;
            lost |= scan.step == BW_SCAN_LOST;
            if (scan.step == BW_SCAN_POINTER && !scan.selected)
                add_leaf(check, tree->tree.id, &scan.pointer, &newest);
        }
        BW_TRY(bw_block_scan_end(&scan));

        /* Compares the newest of the leaves with the baseline. Unreadable ones are not compared:
         * the walk reports them. */
        for (unsigned k = 0; check->since && k < newest.count; k++) {
            const struct bw_block_pointer *pointer = &newest.pointers[k];
            const struct bw_known_leaf *known =
                bw_baseline_leaf(check->since, pointer->bytenr, pointer->expectation.generation);
            BW_AUTO_ERROR struct bw_error *error =
                bw_block_read(&check->fs->reader, pointer, block);
            if (error || bw_block_checksum(block) == known->checksum)
                continue;
            check->since = NULL;
            check->since_generation = 0;
            check->skips = false;
            bw_check_find(check, BW_CODE_baseline_unused, NULL,
                          "it is of another history of the file system: everything is checked");
        }
    }
    for (size_t i = 0; i < groups->count; i++) {
        struct bw_checked_group *group = &groups->items[i];
        const struct bw_known_group *known =
            check->since ? bw_baseline_group(check->since, group->start) : NULL;
        const bool is_alone =
            i + 1 == groups->count || group->start + group->length <= group[1].start;
        group->clean = !lost && is_alone;
        if (!known || !check->skips || !group->clean || known->length != group->length ||
            known->used != group->used || known->flags != group->flags ||
            known->leaves != group->leaves)
            continue;
        group->unchanged = true;
        group->references = known->references;
    }
    return NULL;
}

/* Data. */

/* Whether ranges of `all` that are of older data are missing from `some`. */
static bool has_more(const struct bw_check *check, const struct bw_range_set *all,
                     const struct bw_range_set *some)
{
    for (size_t i = 0; i < all->ranges.count; i++) {
        const struct bw_span *range = &all->ranges.items[i];
        for (uint64_t next = range->start, end; next < range->end; next = end) {
            end = range->end;
            if (bw_range_set_has(&check->old_data, next, &end) &&
                bw_range_set_overlap(some, next, end) != end - next)
                return true;
        }
    }
    return false;
}

struct bw_error *bw_unchanged_data(struct bw_check *check)
{
    bw_range_set_join(&check->unsummed);
    bw_range_set_join(&check->old_data);
    const struct bw_baseline *since = check->since;
    if (since && has_more(check, &check->unsummed, &since->unsummed))
        check->skips = false;
    check->has_more_checksums = since && has_more(check, &since->unsummed, &check->unsummed);
    check->selects_data = since && since->has_data;
    for (size_t i = 0; check->selects_data && i < since->bad_data.ranges.count; i++)
        BW_TRY(bw_range_set_insert(&check->new_data, since->bad_data.ranges.items[i].start,
                                   since->bad_data.ranges.items[i].end));
    bw_range_set_join(&check->new_data);

    /* How much is not read: the used bytes of all block groups of data but the new ones. */
    const uint64_t selected = bw_range_set_total(&check->new_data);
    for (size_t i = 0; check->selects_data && i < check->groups.groups.count; i++)
        if (check->groups.groups.items[i].flags & BW_GROUP_DATA)
            check->skipped_data += check->groups.groups.items[i].used;
    check->skipped_data -= selected < check->skipped_data ? selected : check->skipped_data;
    return NULL;
}

/* Leaves. */

const struct bw_known_leaf *bw_unchanged_leaf(struct bw_check *check,
                                              const struct bw_listed_tree *tree,
                                              const struct bw_block_pointer *pointer)
{
    if (!check->skips || !check->extents_known || !check->checksums_known)
        return NULL;
    const struct bw_known_leaf *leaf =
        bw_baseline_leaf(check->since, pointer->bytenr, pointer->expectation.generation);
    if (!leaf || bw_reference_hash(0, leaf->bytenr, leaf->generation, 0) % SAMPLE == 0)
        return NULL;
    const bool by_address = bw_key_map_has(&check->full_backrefs, leaf->bytenr);
    if (by_address != (bool)(leaf->facts & BW_LEAF_BY_ADDRESS) ||
        (tree->is_subvolume && leaf->owner != tree->tree.id && !by_address) ||
        (tree->has_inodes != (bool)(leaf->facts & BW_LEAF_HAS_SUMS)) ||
        (check->has_more_checksums && leaf->facts & BW_LEAF_UNSUMMED) ||
        bw_memory_block(check->fs->reader.memory, leaf->bytenr))
        return NULL;
    return leaf;
}

void bw_unchanged_compare(struct bw_check *check, const struct bw_block_pointer *pointer,
                          const uint8_t *block)
{
    const struct bw_known_leaf *known =
        check->since
            ? bw_baseline_leaf(check->since, pointer->bytenr, pointer->expectation.generation)
            : NULL;
    if (known && known->checksum != bw_block_checksum(block) &&
        !bw_memory_block(check->fs->reader.memory, pointer->bytenr) &&
        !atomic_exchange(&check->is_foreign, true))
        bw_check_unable(check,
                        bw_error_create(BW_ERROR_CORRUPT,
                                        "tree block %" PRIu64 " differs from the baseline: it was "
                                        "changed in place, or the baseline is of another history; "
                                        "check again without it",
                                        pointer->bytenr));
}

/* Findings. */

static const struct bw_check_pass *pass_of(const struct bw_finding_code *code)
{
    size_t count;
    const struct bw_check_pass *pass = bw_check_passes(&count);
    while (strcmp(pass->name, code->pass) != 0)
        pass++;
    return pass;
}

/* Whether a finding is about data: they must be read again. */
static bool is_of_data(const struct bw_finding_code *code)
{
    return pass_of(code)->data || strcmp(code->pass, "verity") == 0;
}

struct bw_error *bw_unchanged_finding(struct bw_check *check, enum bw_code_number code,
                                      struct bw_findinginfo *row)
{
    const struct bw_baseline *since = check->options->since;
    struct bw_baseline *save = check->options->save;
    const bool is_listed = code != BW_CODE_baseline_unused && code != BW_CODE_unfinished;
    if (since && is_listed && check->met_again) {
        const uint64_t identity = bw_finding_identity(row);
        row->since = "new";
        const uint32_t known = bw_key_map_get(&check->known_findings, identity, UINT32_MAX);
        if (known != UINT32_MAX) {
            check->met_again[known] = true;
            row->since = "same";
        } else {
            check->new_findings++;
            check->new_errors += check->findings.counts[code].code->severity == BW_FINDING_ERROR;
        }
    }
    if (!save || !is_listed)
        return NULL;
    const bool is_data = is_of_data(check->findings.counts[code].code);
    save->has_data &= !is_data || row->logical != BW_ABSENT;
    if (is_data && row->logical != BW_ABSENT) {
        uint64_t length = row->length;
        if (length == BW_ABSENT || !length)
            length = check->fs->superblock.sectorsize;
        if (row->logical <= UINT64_MAX - length)
            BW_TRY(bw_range_set_insert(&save->bad_data, row->logical, row->logical + length));
    }
    return bw_baseline_add_finding(save, row);
}

static struct bw_error *copy_keys(const struct bw_key_map *map, struct bw_numbers *numbers)
{
    uint64_t key;
    uint32_t unused;
    for (size_t position = 0; bw_key_map_next(map, &position, &key, &unused);)
        BW_TRY(bw_numbers_push(numbers, key));
    bw_numbers_sort(numbers, bw_compare_first);
    return NULL;
}

struct bw_error *bw_unchanged_end(struct bw_check *check)
{
    const struct bw_baseline *since = check->options->since;
    struct bw_baseline *save = check->options->save;
    if (since && check->met_again && !check->unfinished)
        for (size_t i = 0; i < since->findings.count; i++) {
            if (check->met_again[i])
                continue;
            struct bw_findinginfo row = since->findings.items[i].row;
            size_t count;
            const struct bw_finding_code *code = bw_finding_code_find(row.code);
            const bool is_hidden =
                check->findings.counts[code - bw_finding_codes(&count)].hidden > 0;
            /* Nothing is known about findings that were hidden, or of passes that did not run. */
            if (is_hidden || pass_of(code)->external || (is_of_data(code) && !check->options->data))
                continue;
            char tree[BW_KEY_TEXT];
            row.since = "gone";
            if (row.tree != BW_ABSENT)
                row.tree_name = bw_tree_id_text(row.tree, tree);
            check->gone_findings++;
            if (check->options->visit)
                BW_TRY(check->options->visit(check->options->context, &row));
        }
    if (!save)
        return NULL;
    save->time = (uint64_t)time(NULL);
    save->blocks = check->blocks + check->skipped_blocks;
    for (unsigned code = 0; code < BW_CODES; code++) {
        const struct bw_finding_count *count = &check->findings.counts[code];
        save->findings_hidden |= count->hidden > 0;
        save->has_data &= !count->hidden || !is_of_data(count->code);
    }
    save->finished = !check->unfinished && check->save;
    if (!check->save)
        return NULL;
    for (size_t i = 0; i < check->groups.groups.count; i++) {
        const struct bw_checked_group *group = &check->groups.groups.items[i];
        if (group->clean && !group->unsure)
            BW_TRY(bw_known_groups_push(&save->groups,
                                        (struct bw_known_group){group->start, group->length,
                                                                group->used, group->flags,
                                                                group->leaves, group->references}));
    }
    for (size_t i = 0; i < check->unsummed.ranges.count; i++)
        BW_TRY(bw_range_set_insert(&save->unsummed, check->unsummed.ranges.items[i].start,
                                   check->unsummed.ranges.items[i].end));
    bw_range_set_join(&save->bad_data);
    BW_TRY(copy_keys(&check->full_backrefs, &save->full_backrefs));
    return copy_keys(&check->shared_blocks, &save->shared_blocks);
}
