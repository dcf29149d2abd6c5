/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of states: those that the superblock names, and a root of a root tree for each other. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "history/history.h"

const char *bw_state_standing_name(enum bw_state_standing standing)
{
    static const char *const names[] = {"committed", "abandoned", "unproven"};
    return names[standing];
}

/* Roots. */

static bool is_same(const struct bw_root_pointer *a, const struct bw_root_pointer *b)
{
    return a->bytenr == b->bytenr && a->generation == b->generation;
}

/* Adds a state, or a source of one that is known. */
static struct bw_error *add_state(struct bw_past *past, const struct bw_root_pointer *root,
                                  unsigned source, unsigned backup)
{
    struct bw_past_state *state = NULL;
    /* What the scan finds differs from each other, but not from what the superblock names. */
    for (size_t i = 0; i < past->count && i <= BW_BACKUP_ROOTS && !state; i++)
        if (is_same(&past->states[i].root, root))
            state = &past->states[i];
    if (!state) {
        if (!BW_ARRAY_RESERVE(past->states, past->count, past->capacity))
            return bw_error_no_memory();
        state = &past->states[past->count++];
        *state = (struct bw_past_state){
            .root = *root, .info = {.generation = root->generation, .tree_root = root->bytenr}};
    }
    state->info.sources |= source;
    state->info.backup = state->info.backup ? state->info.backup : backup;
    return NULL;
}

static struct bw_error *add_chunk_root(struct bw_past *past, const struct bw_root_pointer *root,
                                       bool known)
{
    if (!BW_ARRAY_RESERVE(past->chunk_roots, past->chunk_root_count, past->chunk_root_capacity))
        return bw_error_no_memory();
    past->chunk_roots[past->chunk_root_count++] = (struct bw_chunk_root){*root, known};
    return NULL;
}

static bool is_possible(const struct bw_root_pointer *root)
{
    return root->bytenr && root->level < BW_MAX_LEVEL;
}

static struct bw_error *add_of_superblock(struct bw_past *past)
{
    const struct bw_superblock *superblock = &past->fs->superblock;
    BW_TRY(add_state(past, &superblock->root, BW_STATE_OF_SUPERBLOCK, 0));
    BW_TRY(add_chunk_root(past, &superblock->chunk_root, true));
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &superblock->backup_roots[i];
        if (!is_possible(&backup->tree_root) || !is_possible(&backup->chunk_root))
            continue;
        BW_TRY(add_state(past, &backup->tree_root, BW_STATE_OF_BACKUP, i + 1));
        BW_TRY(add_chunk_root(past, &backup->chunk_root, true));
    }
    return NULL;
}

enum { MOST_STATES = 1 << 16 };

static void report_rest(struct bw_past *past)
{
    bw_fs_report(past->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "more than %d root trees: the others are left out", MOST_STATES));
}

/* Blocks of the root tree and the chunk tree that no other one points to. */
static struct bw_error *add_of_scan(struct bw_past *past)
{
    size_t tried = 0;
    for (size_t i = 0; i < past->index.count; i++) {
        const struct bw_found_block *block = &past->index.blocks[i];
        const struct bw_root_pointer root = {block->bytenr, block->generation, block->level};
        const uint64_t owner = bw_found_owner(&past->index, block);
        if ((owner != BW_ROOT_TREE && owner != BW_CHUNK_TREE) ||
            bw_judge_is_child(past->judge, block))
            continue;
        if (owner == BW_CHUNK_TREE && block->first_objectid == BW_DEVICE_ITEMS)
            BW_TRY(add_chunk_root(past, &root, false));
        if (owner != BW_ROOT_TREE || block->first_objectid > BW_EXTENT_TREE)
            continue;
        if (++tried > MOST_STATES) {
            report_rest(past);
            break;
        }
        if (bw_state_is_root(past, &root))
            BW_TRY(add_state(past, &root, BW_STATE_OF_SCAN, 0));
    }
    return NULL;
}

/* What is known of each. */

static int compare_chunk_roots(const void *left, const void *right)
{
    const struct bw_chunk_root *a = left, *b = right;
    return a->root.generation != b->root.generation
               ? (a->root.generation < b->root.generation) * 2 - 1
           : a->known != b->known ? b->known - a->known
                                  : (a->root.bytenr < b->root.bytenr) * 2 - 1;
}

/* The chunk tree that was in force when a state was committed that the superblock does not name. If
 * it is lost, or not known, the newest that is not newer than the state has to do. */
static void search_chunk_root(struct bw_past *past, struct bw_past_state *state)
{
    struct bw_root_pointer own;
    bw_state_chunk_root(past, &state->root, &own);
    state->has_other_chunks = own.bytenr && !bw_state_has_root(past, BW_CHUNK_TREE, &own);
    const size_t i = BW_FIRST_INDEX(n, past->chunk_root_count - 1,
                                    past->chunk_roots[n].root.generation <= state->root.generation);
    state->chunk_root = own.bytenr && !state->has_other_chunks ? own : past->chunk_roots[i].root;
}

static void set_chunk_root(struct bw_past *past, struct bw_past_state *state)
{
    const struct bw_superblock *superblock = &past->fs->superblock;
    if (state->info.sources & BW_STATE_OF_SUPERBLOCK)
        state->chunk_root = superblock->chunk_root;
    else if (state->info.backup)
        state->chunk_root = superblock->backup_roots[state->info.backup - 1].chunk_root;
    else
        search_chunk_root(past, state);
    if (!is_same(&state->chunk_root, &superblock->chunk_root))
        state->info.chunk_root = state->chunk_root.bytenr;
}

static bool is_subvolume(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

/* What was being deleted need not be whole. */
static struct bw_error *count_tree(void *context, const struct bw_state_tree *tree)
{
    struct bw_state_info *info = context;
    info->readable |= tree->id == BW_ROOT_TREE && tree->readable;
    if (tree->is_deleted)
        return NULL;
    info->trees++;
    info->trees_damaged += tree->missing > 0;
    info->missing += tree->missing;
    info->trimmed += tree->trimmed;
    info->subvolumes += is_subvolume(tree->id);
    info->subvolumes_readable += is_subvolume(tree->id) && tree->readable;
    return NULL;
}

static int compare_states(const void *left, const void *right)
{
    const struct bw_state_info *a = &((const struct bw_past_state *)left)->info,
                               *b = &((const struct bw_past_state *)right)->info;
    return a->generation != b->generation ? (a->generation < b->generation) * 2 - 1
           : a->standing != b->standing   ? (a->standing > b->standing) * 2 - 1
                                          : (a->tree_root < b->tree_root) * 2 - 1;
}

/* How much speaks for a state being the one that its generation names; 0: nothing. */
static unsigned weight_of(const struct bw_state_info *info)
{
    return info->sources & (BW_STATE_OF_SUPERBLOCK | BW_STATE_OF_BACKUP) ? 3
           : info->standing == BW_STATE_COMMITTED                        ? 2
           : info->standing == BW_STATE_UNPROVEN                         ? 1
                                                                         : 0;
}

/* Whether a state is preferred to another one of its generation. To take a snapshot with quotas, a
 * transaction writes all trees, and then goes on: both root trees are complete, and the later one
 * was committed. Every later root has a newer time in the list of subvolumes, since the entry of
 * the snapshot is made in between. */
static bool is_preferred(const struct bw_state_info *a, const struct bw_state_info *b)
{
    const unsigned weight = weight_of(a), other = weight_of(b);
    const bool is_dated = a->date.tv_sec && b->date.tv_sec;
    if (weight != other || weight != 2 || !is_dated)
        return weight > other;
    return a->date.tv_sec != b->date.tv_sec ? a->date.tv_sec > b->date.tv_sec
                                            : a->date.tv_nsec > b->date.tv_nsec;
}

/* Prefers one of the states of a generation, if there is one that is preferred to all others. */
static void settle_generation(struct bw_past_state *states, size_t count)
{
    const struct bw_past_state *best = &states[0];
    for (size_t i = 1; i < count; i++)
        if (is_preferred(&states[i].info, &best->info))
            best = &states[i];
    for (size_t i = 0; i < count; i++)
        if (&states[i] != best && !is_preferred(&best->info, &states[i].info))
            return;
    for (size_t i = 0; i < count; i++) {
        struct bw_state_info *info = &states[i].info;
        if (&states[i] == best)
            continue;
        info->superseded = true;
        states[i].is_complete = info->standing == BW_STATE_COMMITTED;
        if (states[i].is_complete)
            info->standing = BW_STATE_ABANDONED;
    }
}

/* A generation has one committed state, as far as that can be decided. */
static void settle(struct bw_past *past)
{
    qsort(past->states, past->count, sizeof *past->states, compare_states);
    for (size_t i = 0, next; i < past->count; i = next) {
        const uint64_t generation = past->states[i].info.generation;
        for (next = i + 1; next < past->count && past->states[next].info.generation == generation;)
            next++;
        settle_generation(&past->states[i], next - i);
    }
    qsort(past->states, past->count, sizeof *past->states, compare_states);
}

static void report_stale(const struct bw_past *past)
{
    const struct bw_state_info *newest = past->count ? &past->states[0].info : NULL;
    const uint64_t known = past->fs->superblock.generation;
    if (newest && newest->generation > known && newest->standing == BW_STATE_COMMITTED)
        bw_fs_report(past->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "the superblock, of generation %" PRIu64
                                     ", is older than what was committed: --generation %" PRIu64
                                     " is the newest state",
                                     known, newest->generation));
}

struct bw_error *bw_past_list(struct bw_past *past)
{
    BW_TRY(add_of_superblock(past));
    BW_TRY(bw_past_find_system_chunks(past));
    if (past->judge)
        BW_TRY(add_of_scan(past));
    qsort(past->chunk_roots, past->chunk_root_count, sizeof *past->chunk_roots,
          compare_chunk_roots);
    for (size_t i = 0; i < past->count; i++) {
        struct bw_past_state *state = &past->states[i];
        set_chunk_root(past, state);
        state->info.standing = bw_state_standing(past, state);
        state->info.judged = past->judged;
        BW_TRY(bw_state_trees(past, state, count_tree, &state->info, &state->info.date));
    }
    settle(past);
    report_stale(past);
    return NULL;
}

/* Asking for them. */

size_t bw_past_count(const struct bw_past *past)
{
    return past->count;
}

const struct bw_state_info *bw_past_state(const struct bw_past *past, size_t state)
{
    return &past->states[state].info;
}

struct bw_error *bw_past_trees(struct bw_past *past, size_t state, bw_state_tree_taker *take,
                               void *context)
{
    return bw_state_trees(past, &past->states[state], take, context, NULL);
}

static struct bw_error *list_candidates(const struct bw_past *past, uint64_t generation)
{
    enum { MOST_TEXT = 1024 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    for (size_t i = 0; i < past->count && text.length < MOST_TEXT; i++) {
        const struct bw_state_info *info = &past->states[i].info;
        if (info->generation == generation)
            bw_buffer_format(&text, "%s--tree-root %" PRIu64 "@%" PRIu64 " (%s)",
                             text.length ? ", " : "", info->tree_root, generation,
                             bw_state_standing_name(info->standing));
    }
    if (!text.length)
        return bw_error_create(BW_ERROR_NOT_FOUND, "no state of generation %" PRIu64 " is left",
                               generation);
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           "generation %" PRIu64 " does not name one state; choose one: %.*s",
                           generation, (int)text.length, text.data);
}

/* That there was a choice, unless the superblock has made it. */
static void report_choice(const struct bw_past *past, const struct bw_state_info *chosen)
{
    size_t complete = 1;
    for (size_t i = 0; i < past->count; i++)
        complete +=
            past->states[i].info.generation == chosen->generation && past->states[i].is_complete;
    if (complete > 1 && weight_of(chosen) < 3)
        bw_fs_report(past->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_USAGE,
                                     "generation %" PRIu64 " has %zu complete root trees: the "
                                     "latest is read, --tree-root %" PRIu64,
                                     chosen->generation, complete, chosen->tree_root));
}

struct bw_error *bw_past_find(const struct bw_past *past, uint64_t generation, size_t *state)
{
    size_t count = 0;
    for (size_t i = 0; i < past->count; i++) {
        const struct bw_state_info *info = &past->states[i].info;
        if (info->generation != generation || info->superseded || !weight_of(info))
            continue;
        count++;
        *state = i;
    }
    if (count != 1)
        return list_candidates(past, generation);
    report_choice(past, &past->states[*state].info);
    return NULL;
}
