/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which changes make a trial fail. If a finding is still there, it is those that are about it. If
 * something is new, the changes are tried in growing numbers, halving the part in which the first
 * one that fails must be. It is excluded with the reason, and the rest is tried again, so that one
 * wrong change does not prevent the others. Changes of a group are made together or not at all. A
 * change of several blocks or sectors is divided, until only those are excluded that fail.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "repair/repair.h"

/* Each trial is a check of the whole file system. In the second half of them, nothing is divided.
 */
enum { MOST_TRIALS = 100 };

/* Whether an error is about the changes, and not about the trial itself. */
static bool is_failure(const struct bw_error *error)
{
    switch (error->code) {
    case BW_ERROR_NO_MEMORY:
    case BW_ERROR_SYSTEM:
    case BW_ERROR_STOPPED:
    case BW_ERROR_USAGE:
    case BW_ERROR_UNSUPPORTED:
        return false;
    default:
        return true;
    }
}

/* Chooses a change and the rest of its group, or excludes them. */
static void choose_group(struct bw_repair *repair, size_t number, bool chosen)
{
    struct bw_repair_changes *changes = &repair->changes;
    const unsigned group = changes->items[number].group;
    changes->items[number].chosen = chosen;
    for (size_t i = number + 1; group && i < changes->count; i++)
        if (changes->items[i].group == group)
            changes->items[i].chosen = chosen;
}

static struct bw_error *try_once(struct bw_repair *repair, unsigned *trials, uint64_t *left,
                                 const struct bw_repair_finding **failing)
{
    if (++*trials > MOST_TRIALS)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "too many changes fail: after %d trials, there is no end",
                               MOST_TRIALS);
    return bw_repair_try_once(repair, left, failing);
}

/* Finds the first of the chosen changes that makes a trial fail together with those before it.
 * `*reason` is replaced by the reason of its trial. All are chosen again then. */
static struct bw_error *find_first(struct bw_repair *repair, unsigned *trials,
                                   struct bw_error **reason, size_t *found)
{
    const struct bw_repair_changes *changes = &repair->changes;

    /* The chosen changes, of a group only the first one. */
    BW_SCOPED(bw_sizes) struct bw_sizes chosen = {0};
    BW_SCOPED(bw_number_set) struct bw_number_set groups = {0};
    for (size_t i = repair->first; i < changes->count; i++) {
        const struct bw_repair_change *change = &changes->items[i];
        bool is_new = change->chosen;
        if (change->chosen && change->group)
            BW_TRY(bw_number_set_insert(&groups, change->group, &is_new));
        if (is_new)
            BW_TRY(bw_sizes_push(&chosen, i));
    }

    /* The first `low` of them are good, the first `high` of them fail. */
    size_t low = 0, high = chosen.count;
    struct bw_error *error = NULL;
    while (!error && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const struct bw_repair_finding *failing;
        uint64_t left;
        for (size_t i = 0; i < chosen.count; i++)
            choose_group(repair, chosen.items[i], i < middle);
        struct bw_error *result = try_once(repair, trials, &left, &failing);
        if (!result) {
            low = middle;
        } else if (is_failure(result)) {
            high = middle;
            bw_error_free(*reason);
            *reason = result;
        } else {
            error = result;
        }
    }
    for (size_t i = 0; i < chosen.count; i++)
        choose_group(repair, chosen.items[i], true);
    *found = chosen.items[high - 1];
    return error;
}

/* Leaves out a change and the rest of its group. */
static struct bw_error *refuse(struct bw_repair *repair, size_t number, const char *reason)
{
    struct bw_repair_changes *changes = &repair->changes;
    const unsigned group = changes->items[number].group;
    for (size_t i = repair->first; i < changes->count; i++) {
        struct bw_repair_change *change = &changes->items[i];
        if (!change->chosen || (i != number && !(group && change->group == group)))
            continue;
        change->chosen = false;
        free(change->failure);
        change->failure = strdup(reason);
        if (!change->failure)
            return bw_error_no_memory();
    }
    return NULL;
}

/* Leaves out the changes that are about a finding; of several blocks or sectors, only those. */
static struct bw_error *refuse_about(struct bw_repair *repair,
                                     const struct bw_repair_finding *finding, const char *reason,
                                     bool divides)
{
    struct bw_repair_matches matches = bw_repair_find_changes(repair, finding);
    for (const struct bw_repair_change *change; (change = bw_repair_next_match(&matches));) {
        size_t number = (size_t)(change - repair->changes.items);
        const uint64_t unit = change->unit, before = finding->logical - change->logical;
        if (unit && finding->logical >= change->logical + change->length)
            continue; /* they are divided already */
        if (divides && bw_repair_is_joined(change)) {
            const uint64_t start = finding->logical > change->logical ? before / unit * unit : 0,
                           length = bw_min(finding->length, change->length - start),
                           end = start + (length + unit - 1) / unit * unit;
            if (end < change->length)
                BW_TRY(bw_repair_split(repair, number, end));
            if (start) {
                BW_TRY(bw_repair_split(repair, number, start));
                number = repair->changes.count - 1;
            }
        }
        BW_TRY(refuse(repair, number, reason));
    }
    return bw_repair_index_changes(repair);
}

/* Tries the chosen changes, without those that were found to fail, until a trial is good. Without
 * `goes_on`, a failure is an error, which names the changes. */
static struct bw_error *try_changes(struct bw_repair *repair, bool goes_on, uint64_t *left)
{
    unsigned trials = 0;
    for (;;) {
        const struct bw_repair_finding *failing;
        BW_AUTO_ERROR struct bw_error *reason = try_once(repair, &trials, left, &failing);
        if (!reason || !is_failure(reason))
            return BW_TAKE(reason);

        /* Without superblocks, it cannot be opened with none of the changes, either. */
        bool has_chosen = false;
        for (size_t i = repair->first; i < repair->changes.count; i++)
            has_chosen |= repair->changes.items[i].chosen;
        if (!has_chosen)
            return NULL;
        const bool divides = trials <= MOST_TRIALS / 2;
        if (failing) {
            BW_TRY(refuse_about(repair, failing, reason->message, divides));
        } else {
            size_t number = 0;
            BW_TRY(find_first(repair, &trials, &reason, &number));
            const struct bw_repair_change *change = &repair->changes.items[number];
            if (divides && bw_repair_is_joined(change)) {
                const uint64_t half = change->length / change->unit / 2 * change->unit;
                BW_TRY(bw_repair_split(repair, number, half));
                BW_TRY(bw_repair_index_changes(repair));
                continue;
            }
            BW_TRY(refuse(repair, number, reason->message));
        }
        if (goes_on)
            continue;

        /* The numbers of the changes that failed. */
        enum { MOST_NAMED = 10 };
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        size_t count = 0;
        for (size_t i = 0; i < repair->rows.count; i++)
            if (repair->changes.items[repair->rows.items[i]].failure && count++ < MOST_NAMED)
                bw_buffer_format(&text, "%s%zu", count > 1 ? ", " : "", i + 1);
        bw_buffer_format(&text, "%s%c", count > MOST_NAMED ? ", ..." : "", '\0');
        return bw_error_prefix(BW_TAKE(reason), "change %s", text.failed ? "" : text.data);
    }
}

struct bw_error *bw_repair_try(struct bw_repair *repair, uint64_t *left)
{
    return try_changes(repair, false, left);
}

struct bw_error *bw_repair_try_each(struct bw_repair *repair, uint64_t *left)
{
    return try_changes(repair, true, left);
}
