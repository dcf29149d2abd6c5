/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of historic roots, and opening each as a file system.
 *
 * Roots come from the superblock and, after a scan, from the index: each block of a root tree that
 * no other block refers to. The extent tree of a root decides about the rest. It lists the root
 * itself if its transaction was committed, since references are complete only then; and its blocks
 * in system chunks lead to the chunk tree of that time. If several roots have one generation, the
 * one with the best evidence is selected; the others are superseded.
 *
 * Old blocks can be overwritten in part, so every range of items may have gaps: an item that is not
 * found proves something only if the range was read completely.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "history/history.h"
#include "history/request_blocks.h"
#include "history/scan.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/* Reading single items. */

/* Notes whether a search of a historic root failed only because memory has run out. */
static void note_lack(struct bw_history *history, const struct bw_error *error)
{
    history->lacks_memory |= error && error->code == BW_ERROR_NO_MEMORY;
}

/* The items in a range of keys, without the lost ones. */
struct items {
    struct bw_history *history;
    struct bw_item_range range;
    bool incomplete; /* some are lost */
};

static void begin_items(struct items *items, struct bw_history *history, const struct bw_tree *tree,
                        struct bw_key first, struct bw_key last)
{
    items->history = history;
    items->incomplete = false;
    bw_item_range_begin(&items->range, &history->reader, tree, first, last);
}

static const struct bw_item *next_item(struct items *items)
{
    while (bw_item_range_next(&items->range)) {
        if (!items->range.error)
            return &items->range.item;
        note_lack(items->history, items->range.error);
        bw_error_free(BW_TAKE(items->range.error));
        items->incomplete = true;
    }
    return NULL;
}

/* Returns whether no item is lost. */
static bool end_items(struct items *items)
{
    BW_AUTO_ERROR struct bw_error *error = bw_item_range_end(&items->range, NULL);
    note_lack(items->history, error);
    return !items->incomplete && !error;
}

static struct bw_tree root_tree(const struct bw_root_pointer *root)
{
    return (struct bw_tree){BW_ROOT_TREE, *root, 0};
}

/* Finds a tree by its last root item, and counts these items; false if some may be lost. */
static bool find_tree(struct bw_history *history, const struct bw_root_pointer *root, uint64_t id,
                      struct bw_tree *found, size_t *count)
{
    const struct bw_tree tree = root_tree(root);
    struct items items;
    *count = 0;
    begin_items(&items, history, &tree, (struct bw_key){id, BW_ROOT_ITEM, 0},
                (struct bw_key){id, BW_ROOT_ITEM, UINT64_MAX});
    for (const struct bw_item *item; (item = next_item(&items));) {
        struct bw_root_item decoded;
        BW_AUTO_ERROR struct bw_error *error = bw_root_item_decode(item, &decoded);
        if (error)
            continue;
        *found = (struct bw_tree){item->key.objectid, decoded.root, 0};
        ++*count;
    }
    return end_items(&items);
}

/* Finds the extent tree of a historic root; false if it is lost, or does not contain tree
 * blocks. */
static bool find_extent_tree(struct bw_history *history, const struct bw_root_pointer *root,
                             struct bw_tree *tree)
{
    size_t items;
    return find_tree(history, root, BW_EXTENT_TREE, tree, &items) && items == 1 &&
           !(history->fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
}

/* The extent tree contains all references only when its transaction is committed. A root whose
 * transaction was aborted has no extent item in its own extent tree. */
enum bw_generation_status bw_generation_status(struct bw_history *history,
                                               const struct bw_history_entry *state)
{
    const struct bw_root_pointer *root = &state->root;
    struct bw_tree extents;
    if (state->info.sources & (BW_GENERATION_OF_SUPERBLOCK | BW_GENERATION_OF_BACKUP))
        return BW_GENERATION_COMMITTED;
    /* at most one transaction follows the last commit, unless the superblock is stale */
    if (root->generation == history->fs->superblock.generation + 1)
        return BW_GENERATION_ABANDONED;
    if (!find_extent_tree(history, root, &extents))
        return BW_GENERATION_UNVERIFIED;

    struct items items;
    bool is_found = false;
    begin_items(&items, history, &extents, (struct bw_key){root->bytenr, BW_EXTENT_ITEM, 0},
                (struct bw_key){root->bytenr, BW_METADATA_ITEM, UINT64_MAX});
    for (const struct bw_item *item; (item = next_item(&items));) {
        struct bw_tree_extent extent;
        if (bw_tree_extent_decode(item, &extent) && extent.bytenr == root->bytenr)
            is_found |= extent.generation == root->generation && extent.level == root->level;
    }
    const bool complete = end_items(&items);
    if (is_found)
        return BW_GENERATION_COMMITTED;
    return complete ? BW_GENERATION_ABANDONED : BW_GENERATION_UNVERIFIED;
}

/* Finding the chunk tree of a historic root: its blocks are in system chunks, and in the extent
 * tree. */

/* Finds the system chunks for find_chunk_root(). BW_ERROR_NO_MEMORY. */
static struct bw_error *find_system_chunks(struct bw_history *history)
{
    history->items = BW_HISTORY_ITEMS;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(history->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        if (chunk->type & BW_GROUP_SYSTEM && history->system_count < BW_HISTORY_SYSTEM_CHUNKS)
            history->system[history->system_count++] =
                (struct bw_range){chunk->logical, chunk->length};
    }
    return NULL;
}

/* Finds the root of the chunk tree of a historic root in its extent tree: the highest of its
 * blocks. If it is not found, sets `chunk_root->bytenr` to 0. */
static void find_chunk_root(struct bw_history *history, const struct bw_root_pointer *root,
                            struct bw_root_pointer *chunk_root)
{
    struct bw_tree extents;
    *chunk_root = (struct bw_root_pointer){0};
    if (!find_extent_tree(history, root, &extents))
        return;
    for (unsigned i = 0; i < history->system_count && history->items; i++) {
        const struct bw_range *chunk = &history->system[i];
        struct items items;
        begin_items(&items, history, &extents, (struct bw_key){chunk->address, 0, 0},
                    (struct bw_key){chunk->address + chunk->length - 1, UINT8_MAX, UINT64_MAX});
        for (const struct bw_item *item; (item = next_item(&items));) {
            struct bw_extent_reference reference;
            struct bw_tree_extent extent;
            history->items -= history->items > 0;
            if (!bw_tree_extent_decode(item, &extent))
                continue;
            while (bw_extent_reference_next(&extent.references, &reference))
                if (!reference.shared && reference.referrer == BW_CHUNK_TREE &&
                    (!chunk_root->bytenr || extent.level > chunk_root->level))
                    *chunk_root =
                        (struct bw_root_pointer){extent.bytenr, extent.generation, extent.level};
        }
        end_items(&items);
    }
}

/* Whether the root of a tree can be read. */
static bool generation_has_root(struct bw_history *history, uint64_t tree,
                                const struct bw_root_pointer *root)
{
    const struct bw_block_pointer pointer = {
        root->bytenr, {.owner = tree, .generation = root->generation, .level = root->level}};
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&history->reader, 1);
    BW_AUTO_ERROR struct bw_error *error =
        buffer ? bw_block_read(&history->reader, &pointer, buffer) : bw_error_no_memory();
    note_lack(history, error);
    return !error;
}

/* Listing the trees. */

static struct bw_error *report_tree(struct bw_history *history, const struct bw_tree *tree,
                                    bool is_deleted, bool is_lost, bw_generation_tree_visitor *take,
                                    void *context)
{
    struct bw_generation_tree row = {.id = tree->id,
                                     .root = tree->root.bytenr,
                                     .generation = tree->root.generation,
                                     .level = tree->root.level,
                                     .is_deleted = is_deleted,
                                     .assessed = history->assessed};
    if (row.assessed) {
        struct bw_loss loss;
        BW_TRY(bw_completeness_of_tree(history->completeness, tree, &loss, &row.readable));
        row.missing = loss.missing;
        row.trimmed = loss.trimmed;
    }
    if (row.assessed && is_lost) {
        row.readable = false;
        row.missing = 1;
    }
    return take(context, &row);
}

/* Passes the trees of a historic root to `take`, as for bw_history_trees(); `newest` (may be NULL)
 * is set to the newest time of a change in its subvolumes. Old kernels do not update the time,
 * which shows in generation_v2. */
static struct bw_error *visit_state_trees(struct bw_history *history,
                                          const struct bw_history_entry *state,
                                          bw_generation_tree_visitor *take, void *context,
                                          struct timespec *newest)
{
    const struct bw_tree roots = root_tree(&state->root),
                         chunks = {BW_CHUNK_TREE, state->chunk_root, 0};
    BW_TRY(report_tree(history, &roots, false, false, take, context));
    BW_TRY(report_tree(history, &chunks, false, state->has_other_chunks, take, context));
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    bw_block_scan_begin(&scan, &history->reader, &roots);
    while (bw_block_scan_next(&scan)) {
        struct bw_item item;
        if (scan.error)
            continue;
        if (!history->leaves)
            return bw_error_create(BW_ERROR_CORRUPT, "the root trees are larger than all blocks");
        history->leaves--;
        for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);) {
            const struct bw_disk_root_item *disk = (const void *)item.data;
            struct bw_root_item root;
            if (item.key.type != BW_ROOT_ITEM)
                continue;
            BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(&item, &root);
            if (bad || !root.root.bytenr)
                continue;
            if (newest && item.size >= sizeof *disk &&
                bw_get64(disk->generation_v2) == bw_get64(disk->generation)) {
                const struct timespec time = {.tv_sec = (time_t)bw_get64(disk->ctime.seconds),
                                              .tv_nsec = (long)bw_get32(disk->ctime.nanoseconds)};
                if (bw_is_earlier(newest, &time))
                    *newest = time;
            }
            const struct bw_tree tree = {item.key.objectid, root.root, 0};
            const bool is_deleted = root.references == 0 || root.flags & BW_ROOT_DEAD;
            BW_TRY(report_tree(history, &tree, is_deleted, false, take, context));
        }
    }
    return bw_block_scan_end(&scan);
}

/* The list of historic roots: those in the superblock, and those that the scan found. */

const char *bw_generation_status_name(enum bw_generation_status status)
{
    static const char *const names[] = {"committed", "abandoned", "unverified"};
    return names[status];
}

/* Collecting roots. */

static bool is_same(const struct bw_root_pointer *a, const struct bw_root_pointer *b)
{
    return a->bytenr == b->bytenr && a->generation == b->generation;
}

/* Adds a historic root, or another source of a known one. */
static struct bw_error *add_state(struct bw_history *history, const struct bw_root_pointer *root,
                                  unsigned source, unsigned backup)
{
    struct bw_history_entry *state = NULL;
    /* the results of the scan are unique, but the superblock may contain some of them */
    for (size_t i = 0; i < history->states.count && i <= BW_BACKUP_ROOTS && !state; i++)
        if (is_same(&history->states.items[i].root, root))
            state = &history->states.items[i];
    if (!state) {
        BW_TRY(bw_history_entries_reserve(&history->states, 1));
        state = &history->states.items[history->states.count++];
        *state = (struct bw_history_entry){
            .root = *root, .info = {.generation = root->generation, .tree_root = root->bytenr}};
    }
    state->info.sources |= source;
    state->info.backup = state->info.backup ? state->info.backup : backup;
    return NULL;
}

static struct bw_error *add_chunk_root(struct bw_history *history,
                                       const struct bw_root_pointer *root, bool known)
{
    return bw_chunk_roots_push(&history->chunk_roots, (struct bw_chunk_root){*root, known});
}

static bool is_possible(const struct bw_root_pointer *root)
{
    return root->bytenr && root->level < BW_MAX_LEVEL;
}

enum { MOST_STATES = 1 << 16 };

/* Read-ahead: requests the blocks of all historic roots together, which saves round trips. */

/* The maximum number of searches with read-ahead. */
enum { SEARCHES = 1 << 14 };

/* Requests the root trees, and the parts of extent trees that will be searched. */
static struct bw_error *request_blocks(struct bw_history *history,
                                       const struct bw_root_pointer *roots, size_t count)
{
    const size_t most = 1 + BW_HISTORY_SYSTEM_CHUNKS;
    size_t total = 0;
    if (!bw_history_is_served(history->fs))
        return NULL;
    count = count < SEARCHES / most ? count : SEARCHES / most;
    BW_AUTO_FREE struct bw_generation_choice *states = calloc(count + 1, sizeof *states);
    BW_AUTO_FREE struct bw_look_down *searches = calloc(count * most + 1, sizeof *searches);
    if (!states || !searches)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        states[i].tree_root = roots[i].bytenr;
        states[i].tree_root_generation = roots[i].generation;
    }
    BW_TRY(bw_request_blocks(history->fs, states, count, true, NULL));
    /* The searches of bw_generation_status() and find_chunk_root(). */
    for (size_t i = 0; i < count; i++) {
        struct bw_tree extents;
        if (!find_extent_tree(history, &roots[i], &extents))
            continue;
        const struct bw_block_pointer top = bw_tree_root_pointer(&extents, false);
        searches[total++] = (struct bw_look_down){top, {roots[i].bytenr, BW_EXTENT_ITEM, 0}};
        for (unsigned k = 0; k < history->system_count; k++)
            searches[total++] = (struct bw_look_down){top, {history->system[k].address, 0, 0}};
    }
    return bw_look_down(history->fs, searches, total);
}

/* Blocks of root trees without a parent. */
BW_VECTOR(candidates, struct bw_root_pointer);

/* Adds what the scan has found: the roots of chunk trees, and those of root trees. Their blocks are
 * requested together before any is read. */
static struct bw_error *add_of_scan(struct bw_history *history)
{
    BW_SCOPED(candidates) struct candidates candidates = {0};
    for (size_t i = 0; i < history->index.blocks.count; i++) {
        const struct bw_found_block *block = &history->index.blocks.items[i];
        const struct bw_root_pointer root = {block->bytenr, block->generation, block->level};
        const uint64_t owner = bw_found_owner(&history->index, block);
        if ((owner != BW_ROOT_TREE && owner != BW_CHUNK_TREE) ||
            bw_completeness_is_child(history->completeness, block))
            continue;
        if (owner == BW_CHUNK_TREE && block->first_objectid == BW_DEVICE_ITEMS)
            BW_TRY(add_chunk_root(history, &root, false));
        if (owner != BW_ROOT_TREE || block->first_objectid > BW_EXTENT_TREE)
            continue;
        if (candidates.count == MOST_STATES) {
            bw_fs_report_text(history->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "more than %d root trees: the others are ignored", MOST_STATES);
            break;
        }
        BW_TRY(candidates_push(&candidates, root));
    }
    BW_TRY(request_blocks(history, candidates.items, candidates.count));

    /* Every file system has these two trees, whose keys are nearly the first and the last ones of a
     * root tree. */
    static const uint64_t always[] = {BW_EXTENT_TREE, BW_DATA_RELOC_TREE};
    for (size_t i = 0; i < candidates.count; i++) {
        struct bw_tree tree;
        size_t items;
        bool is_possible = true;
        for (size_t k = 0; k < sizeof always / sizeof *always && is_possible; k++)
            is_possible =
                !find_tree(history, &candidates.items[i], always[k], &tree, &items) || items;
        if (is_possible)
            BW_TRY(add_state(history, &candidates.items[i], BW_GENERATION_OF_SCAN, 0));
    }
    return NULL;
}

/* Collecting facts about each. */

/* Newest first, roots in the superblock before others. */
static int compare_chunk_roots(const void *left, const void *right)
{
    const struct bw_chunk_root *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){b->root.generation, b->known, b->root.bytenr}),
                          ((uint64_t[]){a->root.generation, a->known, a->root.bytenr}));
}

/* Finds the chunk tree of a historic root. If it is lost or unknown, uses the newest one that is
 * not newer than the root. */
static void set_chunk_root(struct bw_history *history, struct bw_history_entry *state)
{
    const struct bw_superblock *superblock = &history->fs->superblock;
    if (state->info.sources & BW_GENERATION_OF_SUPERBLOCK) {
        state->chunk_root = superblock->chunk_root;
    } else if (state->info.backup) {
        state->chunk_root = superblock->backup_roots[state->info.backup - 1].chunk_root;
    } else {
        struct bw_root_pointer own;
        find_chunk_root(history, &state->root, &own);
        state->has_other_chunks = own.bytenr && !generation_has_root(history, BW_CHUNK_TREE, &own);
        const size_t i =
            BW_FIRST_INDEX(n, history->chunk_roots.count - 1,
                           history->chunk_roots.items[n].root.generation <= state->root.generation);
        state->chunk_root =
            own.bytenr && !state->has_other_chunks ? own : history->chunk_roots.items[i].root;
    }
    if (!is_same(&state->chunk_root, &superblock->chunk_root))
        state->info.chunk_root = state->chunk_root.bytenr;
}

/* Trees that are being deleted may be incomplete. */
static struct bw_error *count_tree(void *context, const struct bw_generation_tree *tree)
{
    struct bw_generation_info *info = context;
    info->readable |= tree->id == BW_ROOT_TREE && tree->readable;
    if (tree->is_deleted)
        return NULL;
    info->trees++;
    info->trees_damaged += tree->missing > 0;
    info->missing += tree->missing;
    info->trimmed += tree->trimmed;
    info->subvolumes += bw_is_subvolume_id(tree->id);
    info->subvolumes_readable += bw_is_subvolume_id(tree->id) && tree->readable;
    return NULL;
}

/* Newest first, committed ones before others. */
static int compare_states(const void *left, const void *right)
{
    const struct bw_generation_info *a = &((const struct bw_history_entry *)left)->info,
                                    *b = &((const struct bw_history_entry *)right)->info;
    return BW_COMPARE_ALL(((uint64_t[]){b->generation, a->status, b->tree_root}),
                          ((uint64_t[]){a->generation, b->status, a->tree_root}));
}

/* The strength of evidence that a root was committed; 0: none. */
static unsigned weight_of(const struct bw_generation_info *info)
{
    if (info->sources & (BW_GENERATION_OF_SUPERBLOCK | BW_GENERATION_OF_BACKUP))
        return 3;
    if (info->status == BW_GENERATION_COMMITTED)
        return 2;
    return info->status == BW_GENERATION_UNVERIFIED;
}

/* Whether a root is preferred to another one of the same generation. When a snapshot is taken with
 * quotas, the transaction writes all trees and then continues: both root trees are complete, but
 * the later one was committed. The later one has a newer time in its list of subvolumes, because
 * the snapshot's entry was created in between. */
static bool is_preferred(const struct bw_generation_info *a, const struct bw_generation_info *b)
{
    const unsigned weight = weight_of(a), other = weight_of(b);
    const bool is_dated = a->date.tv_sec && b->date.tv_sec;
    if (weight != other || weight != 2 || !is_dated)
        return weight > other;
    return bw_is_earlier(&b->date, &a->date);
}

/* Selects a root of each generation if it is preferred to all others of it. */
static void select_committed(struct bw_history *history)
{
    struct bw_history_entry *states = history->states.items;
    const size_t count = history->states.count;
    qsort(states, count, sizeof *states, compare_states);
    for (size_t first = 0, end; first < count; first = end) {
        size_t best = first;
        for (end = first + 1;
             end < count && states[end].info.generation == states[first].info.generation; end++)
            if (is_preferred(&states[end].info, &states[best].info))
                best = end;
        bool is_clear = true;
        for (size_t i = first; i < end; i++)
            is_clear &= i == best || is_preferred(&states[best].info, &states[i].info);
        for (size_t i = first; is_clear && i < end; i++) {
            struct bw_generation_info *info = &states[i].info;
            if (i == best)
                continue;
            info->superseded = true;
            states[i].is_complete = info->status == BW_GENERATION_COMMITTED;
            if (states[i].is_complete)
                info->status = BW_GENERATION_ABANDONED;
        }
    }
    qsort(states, count, sizeof *states, compare_states);
}

/* Reports a complete commit that is newer than the superblock. Old blocks that lie around after an
 * older image was written over a part of the device are seldom complete. */
static struct bw_error *report_stale(struct bw_history *history)
{
    const struct bw_history_entry *newest =
        history->states.count ? &history->states.items[0] : NULL;
    const uint64_t known = history->fs->superblock.generation;
    const bool assessed = history->assessed;
    struct bw_generation_info info = {.missing = 0};
    if (!newest || newest->info.generation <= known ||
        newest->info.status != BW_GENERATION_COMMITTED)
        return NULL;
    history->assessed = history->completeness;
    struct bw_error *error = visit_state_trees(history, newest, count_tree, &info, &info.date);
    history->assessed = assessed;
    if (!error && !info.missing)
        bw_fs_report(history->fs, BW_WARNING,
                     bw_error_advise(bw_error_create(BW_ERROR_CORRUPT,
                                                     "the superblock has generation %" PRIu64
                                                     ", but a newer commit is complete",
                                                     known),
                                     "`generation %" PRIu64 "` reads it", newest->info.generation));
    return error;
}

/* Finding one in the list. */

size_t bw_history_count(const struct bw_history *history)
{
    return history->states.count;
}

const struct bw_generation_info *bw_history_entry(const struct bw_history *history, size_t state)
{
    return &history->states.items[state].info;
}

struct bw_error *bw_history_trees(struct bw_history *history, size_t state,
                                  bw_generation_tree_visitor *take, void *context)
{
    return visit_state_trees(history, &history->states.items[state], take, context, NULL);
}

struct bw_error *bw_history_find(const struct bw_history *history, uint64_t generation,
                                 size_t *state)
{
    size_t count = 0;
    for (size_t i = 0; i < history->states.count; i++) {
        const struct bw_generation_info *info = &history->states.items[i].info;
        if (info->generation != generation || info->superseded || !weight_of(info))
            continue;
        count++;
        *state = i;
    }

    /* None, or several: the message lists the candidates. */
    if (count != 1) {
        enum { MOST_TEXT = 1024 };
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        for (size_t i = 0; i < history->states.count && text.length < MOST_TEXT; i++) {
            const struct bw_generation_info *info = &history->states.items[i].info;
            if (info->generation == generation)
                bw_buffer_format(&text, "%s`tree_root %" PRIu64 "@%" PRIu64 "` (%s)",
                                 text.length ? ", " : "", info->tree_root, generation,
                                 bw_generation_status_name(info->status));
        }
        if (!text.length)
            return bw_error_create(BW_ERROR_NOT_FOUND, "generation %" PRIu64 " is not recoverable",
                                   generation);
        return bw_error_advise(
            bw_error_create(BW_ERROR_NOT_FOUND, "generation %" PRIu64 " is ambiguous", generation),
            "choose one: %.*s", (int)text.length, text.data);
    }

    /* Several complete roots are reported, unless the superblock contains the selected one. */
    const struct bw_generation_info *chosen = &history->states.items[*state].info;
    size_t complete = 1;
    for (size_t i = 0; i < history->states.count; i++)
        complete += history->states.items[i].info.generation == generation &&
                    history->states.items[i].is_complete;
    if (complete > 1 && weight_of(chosen) < 3)
        bw_fs_report(
            history->fs, BW_WARNING,
            bw_error_advise(bw_error_create(BW_ERROR_USAGE,
                                            "generation %" PRIu64
                                            " has %zu complete root trees: the latest is read",
                                            generation, complete),
                            "it is `tree_root %" PRIu64 "`", chosen->tree_root));
    return NULL;
}

/* Scanning. */

/* Fills the index of blocks from a file, or by a scan of the metadata chunks. If the scan skips
 * zeros and lacks the current root, the mirror that it reads may be lost: then it is repeated with
 * the other mirrors in place of zeros. */
static struct bw_error *fill_index(struct bw_history *history,
                                   const struct bw_history_options *options)
{
    const struct bw_superblock *super = &history->fs->superblock;
    BW_SCOPED(bw_scan_ranges) struct bw_scan_ranges ranges = {0};
    if (options->scanning == BW_HISTORY_SCAN_NEVER)
        return NULL;
    if (options->index && bw_history_read_index(history, options->index, options->index_size))
        return options->only_list ? NULL : bw_history_verify_index(history, options->threads);
    BW_TRY(bw_scan_add_chunks(history->fs, &ranges));
    if (options->scanning != BW_HISTORY_SCAN_ALWAYS && ranges.bytes > BW_HISTORY_SMALL)
        return NULL;
    struct bw_history_scan scan = {.fs = history->fs,
                                   .ranges = &ranges,
                                   .index = &history->index,
                                   .threads = options->threads,
                                   .progress = options->progress,
                                   .context = options->context};
    BW_TRY(bw_history_scan(&scan));
    if (scan.zeros && super->root.bytenr &&
        !bw_found_find(&history->index, super->root.bytenr, super->generation)) {
        scan.doubts_zeros = true;
        scan.zeros = scan.unread = 0;
        BW_TRY(bw_history_scan(&scan));
    }
    history->facts = (struct bw_history_facts){
        .scanned = true, .bytes = ranges.bytes, .zeros = scan.zeros, .unread = scan.unread};
    return NULL;
}

/* Opening the list. */

/* Lists the roots: finds blocks, collects roots, and finds out about each whether it was committed
 * and, after a scan, which of its trees are complete. */
static struct bw_error *fill_history(struct bw_history *history,
                                     const struct bw_history_options *options)
{
    enum { LEAVES = 1 << 20, LEAVES_A_BLOCK = 64 };
    BW_TRY(fill_index(history, options));
    history->leaves = LEAVES + history->index.blocks.count * LEAVES_A_BLOCK;
    history->facts.blocks = history->index.blocks.count;
    history->assessed = history->facts.scanned && !options->only_list;

    /* btrfs-image copies only the blocks in use, so missing blocks are normal in a metadump. */
    const uint64_t unread = history->facts.unread;
    if (unread && history->fs->is_dump)
        bw_fs_report_text(history->fs, BW_NOTE, BW_ERROR_NOT_FOUND,
                          "the metadump lacks %" PRIu64 " unused bytes of the metadata chunks",
                          unread);
    else if (unread)
        bw_fs_report_text(
            history->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
            "%" PRIu64 " bytes of the metadata chunks cannot be read: generations may be missing",
            unread);

    if (history->facts.scanned)
        BW_TRY(bw_completeness_create(history->fs, &history->index, options->threads,
                                      &history->completeness));

    const struct bw_superblock *superblock = &history->fs->superblock;
    BW_TRY(add_state(history, &superblock->root, BW_GENERATION_OF_SUPERBLOCK, 0));
    BW_TRY(add_chunk_root(history, &superblock->chunk_root, true));
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &superblock->backup_roots[i];
        if (!is_possible(&backup->tree_root) || !is_possible(&backup->chunk_root))
            continue;
        BW_TRY(add_state(history, &backup->tree_root, BW_GENERATION_OF_BACKUP, i + 1));
        BW_TRY(add_chunk_root(history, &backup->chunk_root, true));
    }
    BW_TRY(find_system_chunks(history));
    if (history->completeness)
        BW_TRY(add_of_scan(history));
    bw_chunk_roots_sort(&history->chunk_roots, compare_chunk_roots);
    for (size_t i = 0; i < history->states.count; i++) {
        struct bw_history_entry *state = &history->states.items[i];
        set_chunk_root(history, state);
        state->info.status = bw_generation_status(history, state);
        state->info.assessed = history->assessed;
        BW_TRY(visit_state_trees(history, state, count_tree, &state->info, &state->info.date));
    }
    if (history->lacks_memory)
        return bw_error_no_memory();
    select_committed(history);
    return report_stale(history);
}

struct bw_error *bw_history_open(struct bw_fs *fs, const struct bw_history_options *given,
                                 struct bw_history **history)
{
    struct bw_history_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_history *made = calloc(1, sizeof *made);
    if (!made)
        return bw_error_no_memory();
    made->fs = fs;
    made->reader = (struct bw_tree_reader){
        .top = fs->reader.top, .nodesize = fs->reader.nodesize, .keeps_leaves = true};
    bw_found_init(&made->index);
    struct bw_error *error = fill_history(made, &options);
    if (error)
        bw_history_close(made);
    else
        *history = made;
    return error;
}

void bw_history_close(struct bw_history *history)
{
    if (!history)
        return;
    bw_completeness_destroy(history->completeness);
    bw_found_free(&history->index);
    bw_history_entries_free(&history->states);
    bw_chunk_roots_free(&history->chunk_roots);
    free(history);
}

void bw_history_facts(const struct bw_history *history, struct bw_history_facts *facts)
{
    *facts = history->facts;
}

/* Historic roots as file systems. */

struct bw_error *bw_history_open_state(const struct bw_history *history, size_t state,
                                       const struct bw_fs_options *given, struct bw_fs **fs)
{
    struct bw_fs_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    options.state = bw_generation_choice_of(bw_history_entry(history, state));
    return history->fs->reopen(&options, fs);
}

struct bw_error *bw_history_find_generation(struct bw_fs *fs)
{
    const struct bw_history_options options = {
        .struct_size = sizeof options, .scanning = BW_HISTORY_SCAN_ALWAYS, .only_list = true};
    struct bw_history *history = NULL;
    size_t state;
    BW_TRY(bw_history_open(fs, &options, &history));
    struct bw_error *error = bw_history_find(history, fs->choice.generation, &state);
    if (!error)
        fs->choice = bw_generation_choice_of(bw_history_entry(history, state));
    bw_history_close(history);
    return error;
}

struct bw_error *bw_history_find_chunk_root(struct bw_fs *fs, const struct bw_root_pointer *root)
{
    struct bw_history history = {
        .fs = fs,
        .reader = {.top = fs->reader.top, .nodesize = fs->reader.nodesize, .keeps_leaves = true}};
    struct bw_root_pointer own;
    BW_TRY(find_system_chunks(&history));
    find_chunk_root(&history, root, &own);
    if (own.bytenr && own.bytenr != fs->chunk_tree.root.bytenr &&
        generation_has_root(&history, BW_CHUNK_TREE, &own))
        fs->choice.chunk_root = own.bytenr;
    return history.lacks_memory ? bw_error_no_memory() : NULL;
}
