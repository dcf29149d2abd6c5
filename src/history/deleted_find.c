/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which inodes were deleted between two states. A subvolume that both have is compared block by
 * block, and what both trees share is not read. What a newer state lacks because a block of it is
 * lost is looked for in the present one, and what is lost there, too, is not taken for deleted.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "diff/diff.h"
#include "ondisk/disk_items.h"
#include "history/deleted.h"

/* Numbers of inodes end here; above are those of orphans and the like. */
#define LAST_INODE ((uint64_t)-257)

/* A subvolume under comparison. */
struct finding {
    struct bw_deleted *deleted;
    const struct bw_subvolume *subvolume;
    struct bw_diff_tree present; /* of the same subvolume; not started if it has none */
    bool has_present;
};

static struct bw_error *add(const struct finding *finding, uint64_t number)
{
    struct bw_deleted *deleted = finding->deleted;
    if (!BW_ARRAY_RESERVE(deleted->inodes, deleted->count, deleted->capacity))
        return bw_error_no_memory();
    deleted->inodes[deleted->count++] = (struct bw_deleted_inode){finding->subvolume, number};
    return NULL;
}

/* Whether the present state lacks an inode, as far as that is known. */
static struct bw_error *is_lacking(struct finding *finding, uint64_t number, uint64_t generation,
                                   bool *lacking)
{
    struct bw_diff_file file;
    *lacking = true;
    if (!finding->has_present)
        return NULL;
    BW_TRY(bw_diff_file_read(&finding->present, number, &file));
    *lacking = !file.lost && !(file.exists && file.inode.generation == generation);
    return NULL;
}

/* Adds an inode that the newer state lacks. What a state had open that was deleted already is
 * another thing than what an older one has under its name. */
static struct bw_error *add_lacking(struct finding *finding, uint64_t number, uint64_t generation,
                                    bool named)
{
    bool lacking, is_new;
    BW_TRY(is_lacking(finding, number, generation, &lacking));
    if (!lacking)
        return NULL;
    /* Numbers are hardly ever used twice, and a state has few generations. */
    const uint64_t identity = number ^ generation << 40 ^ generation >> 24 ^ (uint64_t)!named << 63;
    if (!bw_pair_set_add(&finding->deleted->known, finding->subvolume->tree.id, identity, &is_new))
        return bw_error_no_memory();
    return is_new ? add(finding, number) : NULL;
}

static struct bw_error *take_pair(void *context, const struct bw_item_pair *pair)
{
    struct finding *finding = context;
    struct bw_inode older, newer = {.link_count = 0};
    if (pair->key.type != BW_INODE_ITEM || pair->key.objectid <= BW_SUBVOLUME_ROOT_INODE ||
        pair->key.objectid > LAST_INODE || !pair->items[0] ||
        !bw_inode_decode(pair->items[0], &older))
        return NULL;
    bool has = pair->items[1] && bw_inode_decode(pair->items[1], &newer) &&
               newer.generation == older.generation;
    /* Without a name it was open when it was deleted. */
    if (has && (newer.link_count || !older.link_count))
        return NULL;
    return add_lacking(finding, pair->key.objectid, older.generation, older.link_count);
}

static struct bw_error *lose(void *context, unsigned side, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    const struct finding *finding = context;
    struct bw_deleted *deleted = finding->deleted;
    bw_fs_report_lost(side ? deleted->newer : deleted->state, pointer->bytenr, error);
    return NULL;
}

static struct bw_error *compare(struct finding *finding, const struct bw_fs *newer_fs,
                                const struct bw_subvolume *newer)
{
    struct bw_pairs pairs = {
        .readers = {finding->deleted->state->reader, newer_fs->reader},
        .trees = {finding->subvolume->tree, newer->tree},
        .shared = true,
        .take = take_pair,
        .lose = lose,
        .context = finding,
    };
    return bw_pairs_compare(&pairs);
}

/* All of a subvolume. */

static struct bw_error *take_item(void *context, const struct bw_item *item)
{
    const uint64_t number = item->key.objectid;
    return item->key.type == BW_INODE_ITEM && number >= BW_SUBVOLUME_ROOT_INODE &&
                   number <= LAST_INODE
               ? add(context, number)
               : NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct bw_deleted_inode *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static struct bw_error *add_all(struct finding *finding)
{
    struct bw_deleted *deleted = finding->deleted;
    const uint64_t id = finding->subvolume->tree.id;
    const size_t first = deleted->count;
    if (bw_map_get(&deleted->gone, id) != UINT32_MAX)
        return NULL;
    if (!bw_map_put(&deleted->gone, id, 0))
        return bw_error_no_memory();
    BW_TRY(bw_fs_scan(deleted->state, &finding->subvolume->tree, "subvolume", take_item, finding));
    if (deleted->count > first)
        qsort(deleted->inodes + first, deleted->count - first, sizeof *deleted->inodes, by_number);
    return NULL;
}

/* The subvolume of another state that is the same one, and not being deleted; NULL: there is none.
 */
static const struct bw_subvolume *same_in(const struct bw_fs *fs,
                                          const struct bw_subvolume *subvolume)
{
    const struct bw_subvolume *found = bw_subvolume_by_id(fs, subvolume->tree.id);
    return found && !found->deleted ? found : NULL;
}

/* A state between that has lost the subvolume counts for nothing. */
static struct bw_error *find_in(struct bw_deleted *deleted, const struct bw_subvolume *subvolume)
{
    struct finding finding = {.deleted = deleted, .subvolume = subvolume};
    const struct bw_subvolume *newer = same_in(deleted->newer, subvolume);
    const struct bw_subvolume *present = same_in(deleted->present, subvolume);
    const struct bw_subvolume *other = newer ? newer : present;
    if (!other)
        return add_all(&finding);
    if (present) {
        const struct bw_diff_side side = {deleted->present, present};
        bw_diff_tree_init(&finding.present, &side);
        finding.has_present = true;
    }
    struct bw_error *error = compare(&finding, newer ? deleted->newer : deleted->present, other);
    if (present)
        bw_diff_tree_free(&finding.present);
    return error;
}

struct bw_error *bw_deleted_find(struct bw_deleted *deleted)
{
    const struct bw_subvolume_table *table = &deleted->state->subvolumes;
    for (size_t i = 0; i < table->count; i++)
        if (!table->items[i].deleted)
            BW_TRY(find_in(deleted, &table->items[i]));
    return NULL;
}

/* The present state. */

static struct bw_error *take_orphan(void *context, const struct bw_item *item)
{
    struct finding *finding = context;
    struct bw_diff_file file;
    BW_TRY(bw_diff_file_read(&finding->present, item->key.offset, &file));
    const uint64_t mode = file.inode.mode;
    return mode && !file.exists && !file.lost ? add(finding, item->key.offset) : NULL;
}

/* Files that have lost their last name, but were not removed. */
static struct bw_error *find_orphans(struct bw_deleted *deleted,
                                     const struct bw_subvolume *subvolume)
{
    const struct bw_diff_side side = {deleted->present, subvolume};
    struct finding finding = {.deleted = deleted, .subvolume = subvolume, .has_present = true};
    bw_diff_tree_init(&finding.present, &side);
    struct bw_error *error = bw_fs_items(
        deleted->present, &subvolume->tree, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, 0},
        (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, UINT64_MAX}, take_orphan, &finding);
    bw_diff_tree_free(&finding.present);
    return error;
}

struct bw_error *bw_deleted_find_present(struct bw_deleted *deleted)
{
    const struct bw_subvolume_table *table = &deleted->present->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        struct finding finding = {.deleted = deleted, .subvolume = &table->items[i]};
        BW_TRY(table->items[i].deleted ? add_all(&finding)
                                       : find_orphans(deleted, &table->items[i]));
    }
    return NULL;
}
