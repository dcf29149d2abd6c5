/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What subvolumes share: the accounts that count.c has filled, one for each set of subvolumes, and
 * the answers that they give. Sets are gone through in runs of consecutive subvolumes, of which
 * snapshots in a row make few.
 */
#include "owners/shares.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
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

static struct bw_error *take_subvolumes(struct bw_shares *shares, const struct bw_fs *fs,
                                        const struct bw_tree_list *list)
{
    shares->subvolumes = calloc(list->count + 1, sizeof *shares->subvolumes);
    shares->trees = calloc(list->count + 1, sizeof(struct bw_listed_tree *));
    if (!shares->subvolumes || !shares->trees || list->count >= UINT32_MAX)
        return bw_error_no_memory();
    add_subvolumes(shares, fs, list, false);
    shares->staying = shares->count;
    add_subvolumes(shares, fs, list, true);
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

static uint64_t size_of(const struct bw_shares *shares, uint32_t set)
{
    struct bw_root_run run = {0};
    uint64_t size = 0;
    while (bw_root_set_next(&shares->sets, set, &run))
        size += run.end - run.first;
    return size;
}

/* Numbers of each subvolume. What a set adds to all subvolumes of a run is noted at its ends. */
static struct bw_error *sum_up(struct bw_shares *shares)
{
    struct change {
        uint64_t referenced, lost_blocks;
    };
    BW_AUTO_FREE struct change *changes = calloc(shares->count + (size_t)1, sizeof *changes);
    if (!changes)
        return bw_error_no_memory();
    for (size_t i = 0; i < shares->account_count; i++) {
        struct bw_shares_account *account = &shares->accounts[i];
        struct bw_root_run run = {0};
        uint64_t size = 0;
        while (bw_root_set_next(&shares->sets, account->set, &run)) {
            account->first = size ? account->first : run.first;
            size += run.end - run.first;
            changes[run.first].referenced += account->bytes;
            changes[run.end].referenced -= account->bytes;
            changes[run.first].lost_blocks += account->lost_blocks;
            changes[run.end].lost_blocks -= account->lost_blocks;
        }
        if (size == 1)
            shares->subvolumes[account->first].exclusive = account->bytes;
        shares->info.lost_blocks += account->lost_blocks;
    }
    struct change sum = {0};
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
        struct bw_root_run run = {0};
        if (!account->lost_blocks || !bw_root_set_next(&shares->sets, account->set, &run))
            continue;
        const uint64_t others = size_of(shares, account->set) - 1;
        struct bw_buffer text = {0};
        bw_buffer_format(&text, "%" PRIu64 " block%s of tree %" PRIu64, account->lost_blocks,
                         account->lost_blocks == 1 ? "" : "s", shares->subvolumes[run.first].id);
        if (others)
            bw_buffer_format(&text, " and %" PRIu64 " other%s", others, others == 1 ? "" : "s");
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

/* How many of a set are marked; `before` tells how many are before each number. */
static uint64_t count_marked(const struct bw_shares *shares, uint32_t set, const uint32_t *before,
                             bool *all)
{
    struct bw_root_run run = {0};
    uint64_t marked = 0, size = 0;
    while (bw_root_set_next(&shares->sets, set, &run)) {
        marked += before[run.end] - before[run.first];
        size += run.end - run.first;
    }
    *all = marked == size;
    return marked;
}

/* before[i]: how many subvolumes with numbers below i are meant. */
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

struct bw_error *bw_shares_sets(const struct bw_shares *shares, bw_shared_set_taker *take,
                                void *context)
{
    BW_AUTO_FREE struct bw_subvolume_range *ranges =
        calloc(shares->count + (size_t)1, sizeof *ranges);
    struct bw_error *error = ranges ? NULL : bw_error_no_memory();
    for (size_t i = 0; !error && i < shares->account_count; i++) {
        const struct bw_shares_account *account = &shares->accounts[i];
        struct bw_shared_set set = {.bytes = account->bytes, .ranges = ranges};
        struct bw_root_run run = {0};
        while (bw_root_set_next(&shares->sets, account->set, &run)) {
            ranges[set.range_count++] = (struct bw_subvolume_range){
                shares->subvolumes[run.first].id, shares->subvolumes[run.end - 1].id};
            set.subvolume_count += run.end - run.first;
            set.are_deleted = run.first >= shares->staying;
        }
        error = set.bytes ? take(context, &set) : NULL;
    }
    return error;
}
