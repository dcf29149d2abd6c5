/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What subvolumes share: the accounts that count.c has filled, one for each set of subvolumes, and
 * the answers that they give. Subvolumes have numbers in sets in the order in which they changed
 * last: a block that a subvolume had for a while is in consecutive snapshots, and if it still has
 * it, in the subvolume as well. Sets are gone through in such runs.
 */
#include "owners/shares.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btrfs-walk/subvolume.h"

bool bw_shares_enter(struct bw_shares *shares, uint32_t set, uint64_t bytes, uint64_t lost_blocks)
{
    uint32_t number = bw_map_get(&shares->accounts_by_set, set);
    if (number == UINT32_MAX) {
        number = (uint32_t)shares->account_count;
        if (!BW_ARRAY_RESERVE(shares->accounts, shares->account_count, shares->account_capacity) ||
            !bw_map_put(&shares->accounts_by_set, set, number))
            return false;
        shares->accounts[shares->account_count++] = (struct bw_shares_account){.set = set};
    }
    shares->accounts[number].bytes += bytes;
    shares->accounts[number].lost_blocks += lost_blocks;
    return true;
}

/* Opening. */

/* Subvolumes that stay, or those that are being deleted. Replaying the log has changed roots. */
static void add_subvolumes(struct bw_shares *shares, const struct bw_fs *fs,
                           const struct bw_tree_list *list, bool deleted)
{
    for (size_t i = 0; i < list->count; i++) {
        struct bw_listed_tree *tree = &list->entries[i];
        if (!tree->is_subvolume || !tree->references != deleted)
            continue;
        const struct bw_subvolume *replayed = bw_subvolume_by_id(fs, tree->tree.id);
        if (replayed)
            tree->tree = replayed->tree;
        shares->trees[shares->count] = tree;
        shares->subvolumes[shares->count++] =
            (struct bw_subvolume_space){.id = tree->tree.id, .is_deleted = deleted};
    }
}

static uint64_t age_of(const struct bw_shares *shares, uint32_t index)
{
    return shares->trees[index]->tree.root.generation;
}

static int by_age(const void *left, const void *right, void *context)
{
    const uint32_t a = ((const struct bw_shares_number *)left)->index,
                   b = ((const struct bw_shares_number *)right)->index;
    const uint64_t first = age_of(context, a), second = age_of(context, b);
    return first != second ? (first < second ? -1 : 1) : (a > b) - (a < b);
}

/* Numbers of those that stay are lower than those of others. */
static void number_subvolumes(struct bw_shares *shares)
{
    struct bw_shares_number *numbers = shares->numbers;
    for (uint32_t i = 0; i < shares->count; i++)
        numbers[i].index = i;
    qsort_r(numbers, shares->staying, sizeof *numbers, by_age, shares);
    qsort_r(numbers + shares->staying, shares->count - shares->staying, sizeof *numbers, by_age,
            shares);
    for (uint32_t i = shares->count; i-- > 0;) {
        const bool last = i + 1 == shares->count || numbers[i].index + 1 != numbers[i + 1].index;
        numbers[i].end = last ? i + 1 : numbers[i + 1].end;
    }
}

static struct bw_error *take_subvolumes(struct bw_shares *shares, const struct bw_fs *fs,
                                        const struct bw_tree_list *list)
{
    shares->subvolumes = calloc(list->count + 1, sizeof *shares->subvolumes);
    shares->trees = calloc(list->count + 1, sizeof(struct bw_listed_tree *));
    shares->numbers = calloc(list->count + 1, sizeof *shares->numbers);
    if (!shares->subvolumes || !shares->trees || !shares->numbers || list->count >= UINT32_MAX)
        return bw_error_no_memory();
    add_subvolumes(shares, fs, list, false);
    shares->staying = shares->count;
    add_subvolumes(shares, fs, list, true);
    number_subvolumes(shares);
    return bw_root_sets_init(&shares->sets, shares->count) ? NULL : bw_error_no_memory();
}

/* What a subvolume that is being deleted shares with others is only theirs. */
static struct bw_error *leave_to_staying(struct bw_shares *shares)
{
    for (size_t i = 0; shares->staying < shares->count && i < shares->account_count; i++) {
        const struct bw_shares_account account = shares->accounts[i];
        const uint32_t set = bw_root_set_below(&shares->sets, account.set, shares->staying);
        if (!set || set == account.set)
            continue;
        shares->accounts[i].bytes = shares->accounts[i].lost_blocks = 0;
        if (set == UINT32_MAX || !bw_shares_enter(shares, set, account.bytes, account.lost_blocks))
            return bw_error_no_memory();
    }
    return NULL;
}

static bool is_empty(const struct bw_shares_account *account)
{
    return !account->bytes && !account->lost_blocks;
}

static void remove_empty(struct bw_shares *shares)
{
    size_t kept = 0;
    for (size_t i = 0; i < shares->account_count; i++)
        if (!is_empty(&shares->accounts[i]))
            shares->accounts[kept++] = shares->accounts[i];
    shares->account_count = kept;
    bw_map_free(&shares->accounts_by_set);
}

/* Some subvolumes of a set. */
struct part {
    uint32_t first, count;  /* indices */
    struct bw_root_run run; /* the numbers that are gone through */
    uint32_t next;          /* of these: where to go on */
};

/* The next part of a set; the first one after all zeros. In the order of numbers. */
static bool next_part(const struct bw_shares *shares, uint32_t set, struct part *part)
{
    if (part->next >= part->run.end) {
        if (!bw_root_set_next(&shares->sets, set, &part->run))
            return false;
        part->next = part->run.first;
    }
    const struct bw_shares_number *number = &shares->numbers[part->next];
    const uint32_t end = number->end < part->run.end ? number->end : part->run.end;
    part->first = number->index;
    part->count = end - part->next;
    part->next = end;
    return true;
}

static uint64_t size_of(const struct bw_shares *shares, uint32_t set)
{
    struct bw_root_run run = {0};
    uint64_t size = 0;
    while (bw_root_set_next(&shares->sets, set, &run))
        size += run.end - run.first;
    return size;
}

struct change {
    uint64_t referenced, lost_blocks;
};

/* Notes at the ends of each part of a set what it adds to all subvolumes of that part. */
static void sum_up_account(struct bw_shares *shares, struct bw_shares_account *account,
                           struct change *changes)
{
    struct part part = {0};
    uint64_t size = 0;
    account->first = UINT32_MAX;
    while (next_part(shares, account->set, &part)) {
        const uint32_t end = part.first + part.count;
        account->first = part.first < account->first ? part.first : account->first;
        size += part.count;
        changes[part.first].referenced += account->bytes;
        changes[end].referenced -= account->bytes;
        changes[part.first].lost_blocks += account->lost_blocks;
        changes[end].lost_blocks -= account->lost_blocks;
    }
    if (size == 1)
        shares->subvolumes[account->first].exclusive = account->bytes;
    shares->info.lost_blocks += account->lost_blocks;
}

/* The figures of each subvolume. */
static struct bw_error *sum_up(struct bw_shares *shares)
{
    BW_AUTO_FREE struct change *changes = calloc(shares->count + (size_t)1, sizeof *changes);
    struct change sum = {0};
    if (!changes)
        return bw_error_no_memory();
    for (size_t i = 0; i < shares->account_count; i++)
        sum_up_account(shares, &shares->accounts[i], changes);
    for (uint32_t i = 0; i < shares->count; i++) {
        sum.referenced += changes[i].referenced;
        sum.lost_blocks += changes[i].lost_blocks;
        shares->subvolumes[i].referenced = sum.referenced;
        shares->subvolumes[i].lost_blocks = sum.lost_blocks;
    }
    return NULL;
}

/* Says what is missing, for each set of subvolumes once. */
static void report_losses(const struct bw_shares *shares, struct bw_fs *fs)
{
    for (size_t i = 0; i < shares->account_count; i++) {
        const struct bw_shares_account *account = &shares->accounts[i];
        if (!account->lost_blocks)
            continue;
        const uint64_t others = size_of(shares, account->set) - 1;
        struct bw_buffer text = {0};
        bw_buffer_format(&text, "%" PRIu64 " block%s of tree %" PRIu64, account->lost_blocks,
                         bw_plural(account->lost_blocks), shares->subvolumes[account->first].id);
        if (others)
            bw_buffer_format(&text, " and %" PRIu64 " other%s", others, bw_plural(others));
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "%s lost: figures are lower bounds",
                                     text.failed ? "blocks" : text.data));
        bw_buffer_free(&text);
    }
}

static int by_bytes(const void *left, const void *right, void *context)
{
    const struct bw_shares *shares = context;
    const struct bw_shares_account *a = left, *b = right;
    struct bw_root_run first = {0}, second = {0};
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    while (bw_root_set_next(&shares->sets, a->set, &first) &&
           bw_root_set_next(&shares->sets, b->set, &second)) {
        if (first.first != second.first)
            return first.first < second.first ? -1 : 1;
        if (first.end != second.end)
            return first.end < second.end ? -1 : 1;
    }
    return 0;
}

static struct bw_error *open_shares(struct bw_shares *shares, struct bw_fs *fs,
                                    const struct bw_shares_options *options,
                                    struct bw_tree_list *list)
{
    BW_TRY(bw_tree_list_load(fs, list));
    BW_TRY(take_subvolumes(shares, fs, list));
    BW_TRY(bw_shares_count(shares, fs, list, options));
    BW_TRY(leave_to_staying(shares));
    remove_empty(shares);
    BW_TRY(sum_up(shares));
    shares->info.sets = shares->account_count;
    if (shares->account_count)
        qsort_r(shares->accounts, shares->account_count, sizeof *shares->accounts, by_bytes,
                shares);
    report_losses(shares, fs);
    return NULL;
}

struct bw_error *bw_shares_open(struct bw_fs *fs, const struct bw_shares_options *options,
                                struct bw_shares **result)
{
    struct bw_shares_options own = {0};
    struct bw_tree_list list = {0};
    *result = NULL;
    BW_TRY(BW_TAKE_OPTIONS(&own, options));
    struct bw_shares *shares = calloc(1, sizeof *shares);
    struct bw_error *error = shares ? open_shares(shares, fs, &own, &list) : bw_error_no_memory();
    free(list.entries);
    if (shares)
        free(BW_TAKE(shares->trees));
    if (error) {
        bw_shares_close(shares);
        return error;
    }
    *result = shares;
    return NULL;
}

void bw_shares_close(struct bw_shares *shares)
{
    if (!shares)
        return;
    free(shares->subvolumes);
    free(shares->numbers);
    free(shares->accounts);
    bw_map_free(&shares->accounts_by_set);
    bw_root_sets_free(&shares->sets);
    free(shares);
}

/* Answers. */

void bw_shares_get(const struct bw_shares *shares, struct bw_shares_info *info)
{
    *info = shares->info;
}

const struct bw_subvolume_space *bw_shares_subvolume(const struct bw_shares *shares, uint64_t id)
{
    const struct bw_subvolume_space *all = shares->subvolumes;
    const size_t staying = shares->staying, count = shares->count;
    size_t at = BW_FIRST_INDEX(i, staying, all[i].id >= id);
    if (at == staying || all[at].id != id)
        at = staying + BW_FIRST_INDEX(i, count - staying, all[staying + i].id >= id);
    return at < count && all[at].id == id ? &all[at] : NULL;
}

/* How many of a set are marked; `before` tells how many are before each index. */
static uint64_t count_marked(const struct bw_shares *shares, uint32_t set, const uint32_t *before,
                             bool *all)
{
    struct part part = {0};
    uint64_t marked = 0, size = 0;
    while (next_part(shares, set, &part)) {
        marked += before[part.first + part.count] - before[part.first];
        size += part.count;
    }
    *all = marked == size;
    return marked;
}

/* before[i]: how many subvolumes with indices below i are meant. */
static struct bw_error *mark(const struct bw_shares *shares, const uint64_t *ids, size_t count,
                             uint32_t *before)
{
    for (size_t i = 0; i < count; i++) {
        const struct bw_subvolume_space *subvolume = bw_shares_subvolume(shares, ids[i]);
        if (!subvolume)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume %" PRIu64, ids[i]);
        before[subvolume - shares->subvolumes + 1] = 1;
    }
    for (uint32_t i = 0; i < shares->count; i++)
        before[i + 1] += before[i];
    return NULL;
}

struct bw_error *bw_shares_of(const struct bw_shares *shares, const uint64_t *ids, size_t count,
                              struct bw_shares_sum *sum)
{
    BW_AUTO_FREE uint32_t *before = calloc(shares->count + (size_t)1, sizeof *before);
    if (!before)
        return bw_error_no_memory();
    BW_TRY(mark(shares, ids, count, before));
    *sum = (struct bw_shares_sum){0};
    for (size_t i = 0; i < shares->account_count; i++) {
        const struct bw_shares_account *account = &shares->accounts[i];
        bool all;
        if (!count_marked(shares, account->set, before, &all))
            continue;
        sum->referenced += account->bytes;
        sum->exclusive += all ? account->bytes : 0;
        sum->lost_blocks += account->lost_blocks;
    }
    return NULL;
}

static int by_first_index(const void *left, const void *right)
{
    const struct bw_root_run *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

/* The subvolumes of a set as few runs of indices, ascending. */
static size_t list_runs(const struct bw_shares *shares, uint32_t set, struct bw_root_run *runs)
{
    struct part part = {0};
    size_t count = 0, kept = 0;
    while (next_part(shares, set, &part))
        runs[count++] = (struct bw_root_run){part.first, part.first + part.count};
    qsort(runs, count, sizeof *runs, by_first_index);
    for (size_t i = 0; i < count; i++)
        if (kept && runs[kept - 1].end == runs[i].first)
            runs[kept - 1].end = runs[i].end;
        else
            runs[kept++] = runs[i];
    return kept;
}

/* There is room for `shares->count` runs and ranges. */
static struct bw_error *tell_set(const struct bw_shares *shares,
                                 const struct bw_shares_account *account, struct bw_root_run *runs,
                                 struct bw_subvolume_range *ranges, bw_shared_set_taker *take,
                                 void *context)
{
    struct bw_shared_set set = {.bytes = account->bytes,
                                .ranges = ranges,
                                .range_count = list_runs(shares, account->set, runs),
                                .are_deleted = account->first >= shares->staying};
    for (size_t i = 0; i < set.range_count; i++) {
        ranges[i] = (struct bw_subvolume_range){shares->subvolumes[runs[i].first].id,
                                                shares->subvolumes[runs[i].end - 1].id};
        set.subvolume_count += runs[i].end - runs[i].first;
    }
    return take(context, &set);
}

struct bw_error *bw_shares_sets(const struct bw_shares *shares, bw_shared_set_taker *take,
                                void *context)
{
    const size_t room = shares->count + (size_t)1;
    BW_AUTO_FREE struct bw_root_run *runs = calloc(room, sizeof *runs);
    BW_AUTO_FREE struct bw_subvolume_range *ranges = calloc(room, sizeof *ranges);
    struct bw_error *error = runs && ranges ? NULL : bw_error_no_memory();
    for (size_t i = 0; !error && i < shares->account_count; i++)
        if (shares->accounts[i].bytes)
            error = tell_set(shares, &shares->accounts[i], runs, ranges, take, context);
    return error;
}
