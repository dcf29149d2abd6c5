/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `inodes`: subvolumes whose inodes do not add up to zero are looked at again, one by one.
 * Of several with the same rest, as snapshots have, only the first is: the others share its faults.
 *
 * A subvolume is read twice, whatever its size: first into accounts, 1.5 MiB of them, and then for
 * what is said of the inodes in accounts that do not balance. If that is more than 16 MiB, it is
 * done in several readings.
 */
#include "check/inodes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "check/directories.h"

enum {
    ACCOUNTS = 1 << 17,
    MOST_RECORDS = 1 << 18, /* of 56 bytes, unless a single account has more */
};

struct bw_subject bw_examination_subject(const struct bw_examination *examination, uint64_t inode,
                                         struct bw_key key)
{
    return (struct bw_subject){.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_INODE,
                                           .tree = examination->tree->tree.id,
                                           .key = key,
                                           .inode = inode,
                                           .more_subvolumes = examination->more_subvolumes},
                               .touches = BW_TOUCHES_INODE};
}

bool bw_examination_lost(const struct bw_examination *examination, struct bw_key first,
                         struct bw_key last)
{
    return bw_lost_list_overlaps(&examination->lost_list, &first, &last, 0);
}

static uint32_t account_of(const struct bw_examination *examination, uint64_t inode)
{
    return (uint32_t)(bw_fact_of_inode(&examination->secrets, inode, BW_FACT_LINK) >> 32) %
           ACCOUNTS;
}

struct bw_error *bw_examination_enter(struct bw_examination *examination,
                                      const struct bw_name_record *record, uint64_t fact)
{
    const uint32_t account = account_of(examination, record->inode);
    if (!examination->collecting) {
        examination->rests[account] += fact;
        examination->counts[account]++;
        return NULL;
    }
    if (account < examination->first_account || account >= examination->end_account ||
        !examination->rests[account])
        return NULL;
    if (!BW_ARRAY_RESERVE(examination->records, examination->count, examination->capacity))
        return bw_error_no_memory();
    examination->records[examination->count++] = *record;
    return NULL;
}

/* Reading the tree. */

static struct bw_error *lose_keys(struct bw_examination *examination,
                                  const struct bw_lost_range *range)
{
    struct bw_inode_run *run = &examination->run;
    run->incomplete |= range->low.objectid <= run->number;
    if (bw_key_compare(&range->high, &examination->lost_end) > 0)
        examination->lost_end = range->high;
    return examination->collecting ? NULL : bw_lost_ranges_add(&examination->lost, range);
}

static struct bw_error *lose_block(void *context, const struct bw_block_pointer *pointer,
                                   struct bw_error *error)
{
    const struct bw_lost_range range = bw_lost_range_of(pointer, 0);
    bw_error_free(error);
    return lose_keys(context, &range);
}

struct bw_error *bw_examination_lose_item(struct bw_examination *examination,
                                          const struct bw_key *key)
{
    struct bw_lost_range range = {.bytenr = BW_NO_BLOCK, .low = *key, .high = *key};
    range.high.offset++;
    range.high.type = (uint8_t)(key->type + !range.high.offset);
    return lose_keys(examination, &range);
}

static bool is_in_order(const struct bw_node *leaf)
{
    for (uint32_t slot = 1; slot < leaf->item_count; slot++) {
        const struct bw_key last = bw_leaf_key(leaf, slot - 1), key = bw_leaf_key(leaf, slot);
        if (bw_key_compare(&last, &key) >= 0)
            return false;
    }
    return true;
}

/* A leaf whose keys are out of order, which has been reported: where its items belong is not known.
 */
static struct bw_error *lose_leaf(struct bw_examination *examination, const struct bw_node *leaf)
{
    struct bw_lost_range range = {.bytenr = BW_NO_BLOCK,
                                  .low = bw_leaf_key(leaf, 0),
                                  .high = bw_leaf_key(leaf, leaf->item_count - 1)};
    range.high.offset += range.high.offset != UINT64_MAX;
    return bw_key_compare(&range.low, &range.high) < 0 ? lose_keys(examination, &range) : NULL;
}

static struct bw_error *take_item(struct bw_examination *examination, const struct bw_item *item,
                                  bool inside)
{
    const bool is_orphan = item->key.objectid == BW_ORPHAN && item->key.type == BW_ORPHAN_ITEM;
    if (!bw_is_inode_number(item->key.objectid) && !is_orphan)
        return NULL;
    if (!is_orphan)
        BW_TRY(bw_inode_run_enter(examination, &item->key));
    if (!inside)
        return bw_examination_lose_item(examination, &item->key);
    if (!is_orphan)
        BW_TRY(bw_inode_run_take(examination, item));
    return bw_names_take(examination, item);
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    if (!is_in_order(leaf))
        return lose_leaf(context, leaf);
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const bool inside = bw_leaf_item(leaf, slot, &item);
        BW_TRY(take_item(context, &item, inside));
    }
    return NULL;
}

static struct bw_error *read_tree(struct bw_examination *examination)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = take_leaf, .lost = lose_block,
                                 .context = examination};
    examination->run = (struct bw_inode_run){0};
    examination->lost_end = (struct bw_key){0};
    BW_TRY(bw_tree_scan(&examination->check->fs->reader, &examination->tree->tree, &scan));
    return bw_inode_run_end(examination);
}

/* Looking at a tree. */

/* Chooses accounts from the first on that have as many records as memory may hold. */
static void choose_accounts(struct bw_examination *examination)
{
    uint64_t records = 0;
    uint32_t end = examination->first_account;
    for (; end < ACCOUNTS && records <= MOST_RECORDS; end++)
        if (examination->rests[end])
            records += examination->counts[end];
    examination->end_account = end;
    examination->count = 0;
}

static struct bw_error *examine(struct bw_examination *examination)
{
    examination->rests = calloc(ACCOUNTS, sizeof *examination->rests);
    examination->counts = calloc(ACCOUNTS, sizeof *examination->counts);
    if (!examination->rests || !examination->counts)
        return bw_error_no_memory();
    BW_TRY(read_tree(examination));
    BW_TRY(bw_lost_list_make(&examination->lost, 0, &examination->lost_list));
    examination->collecting = true;
    while (examination->first_account < ACCOUNTS && bw_check_goes_on(examination->check, 0)) {
        choose_accounts(examination);
        BW_TRY(read_tree(examination));
        bw_names_judge(examination);
        examination->first_account = examination->end_account;
    }
    return NULL;
}

static struct bw_error *examine_tree(struct bw_check *check, const struct bw_listed_tree *tree,
                                     uint64_t more_subvolumes)
{
    struct bw_examination examination = {.check = check,
                                         .tree = tree,
                                         .more_subvolumes = more_subvolumes,
                                         .secrets = bw_fact_secrets_of(check->fs)};
    struct bw_error *error = examine(&examination);
    bw_lost_list_free(&examination.lost_list);
    free(examination.lost.items);
    free(examination.rests);
    free(examination.counts);
    free(examination.records);
    return error;
}

/* The subvolumes. */

static bool is_suspect(const struct bw_listed_tree *tree)
{
    return tree->has_inodes && tree->references && (tree->total || tree->incomplete);
}

/* Sets for each tree how many later ones have the same rest; those get UINT64_MAX. */
static struct bw_error *count_alike(const struct bw_check *check, uint64_t *alike)
{
    struct bw_map first = {0};
    bool stored = true;
    for (size_t i = 0; stored && i < check->trees.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries[i];
        if (!is_suspect(tree))
            continue;
        const uint64_t rest = tree->total ^ tree->incomplete;
        const uint32_t known = bw_map_get(&first, rest);
        if (known != UINT32_MAX) {
            alike[known]++;
            alike[i] = UINT64_MAX;
        } else {
            stored = bw_map_put(&first, rest, (uint32_t)i);
        }
    }
    bw_map_free(&first);
    return stored ? NULL : bw_error_no_memory();
}

struct bw_error *bw_pass_inodes(struct bw_check *check)
{
    BW_AUTO_FREE uint64_t *alike = calloc(check->trees.count + 1, sizeof *alike);
    if (!alike)
        return bw_error_no_memory();
    BW_TRY(count_alike(check, alike));
    for (size_t i = 0; i < check->trees.count && bw_check_goes_on(check, 0); i++)
        if (is_suspect(&check->trees.entries[i]) && alike[i] != UINT64_MAX)
            BW_TRY(examine_tree(check, &check->trees.entries[i], alike[i]));
    return bw_check_directories(check);
}
