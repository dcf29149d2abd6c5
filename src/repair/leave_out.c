/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which changes make a trial fail. If a finding is still there, it is those that are about it. If
 * something is new, the changes are tried in growing numbers, halving the part in which the first
 * one that fails must be. It is excluded with the reason, and the rest is tried again, so that one
 * wrong change does not prevent the others. Changes of a group are made together or not at all.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "repair/repair.h"

/* Each trial is a check of the whole file system. */
enum { MOST_TRIALS = 100 };

struct search {
    struct bw_repair *repair;
    struct bw_sizes chosen; /* the first change of each group that was chosen */
    uint64_t left;
    unsigned trials;
};

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

/* Lists the chosen changes. A group is listed once. */
static struct bw_error *list_chosen(struct search *search)
{
    const struct bw_repair_changes *changes = &search->repair->changes;
    BW_SCOPED(bw_number_set) struct bw_number_set groups = {0};
    bool is_new = true;
    search->chosen.count = 0;
    for (size_t i = search->repair->first; i < changes->count; i++) {
        const struct bw_repair_change *change = &changes->items[i];
        if (!change->chosen)
            continue;
        if (change->group)
            BW_TRY(bw_number_set_insert(&groups, change->group, &is_new));
        if (!change->group || is_new)
            BW_TRY(bw_sizes_push(&search->chosen, i));
    }
    return NULL;
}

static struct bw_error *try_once(struct search *search, const struct bw_repair_finding **failing)
{
    if (search->trials++ == MOST_TRIALS)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "too many changes fail: after %d trials, there is no end",
                               MOST_TRIALS);
    return bw_repair_try_once(search->repair, &search->left, failing);
}

/* Finds the first of the chosen changes that makes a trial fail together with those before it.
 * `*reason` is replaced by the reason of its trial. All are chosen again then. */
static struct bw_error *find_first(struct search *search, struct bw_error **reason, size_t *found)
{
    struct bw_repair *repair = search->repair;
    size_t low = 0, high = search->chosen.count;
    struct bw_error *error = NULL;
    while (!error && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const struct bw_repair_finding *failing;
        for (size_t i = 0; i < search->chosen.count; i++)
            choose_group(repair, search->chosen.items[i], i < middle);
        struct bw_error *result = try_once(search, &failing);
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
    for (size_t i = 0; i < search->chosen.count; i++)
        choose_group(repair, search->chosen.items[i], true);
    *found = search->chosen.items[high - 1];
    return error;
}

static struct bw_error *refuse(struct bw_repair *repair, size_t number, const char *reason)
{
    struct bw_repair_changes *changes = &repair->changes;
    const unsigned group = changes->items[number].group;
    for (size_t i = repair->first; i < changes->count; i++) {
        struct bw_repair_change *change = &changes->items[i];
        if (!change->chosen || (i != number && !(group && change->group == group)))
            continue;
        bw_repair_choose(repair, i, false);
        change->failure = strdup(reason);
        if (!change->failure)
            return bw_error_no_memory();
    }
    return NULL;
}

/* Leaves out what makes the trial fail for a reason. */
static struct bw_error *leave_out(struct search *search, const struct bw_repair_finding *failing,
                                  struct bw_error **reason)
{
    struct bw_repair *repair = search->repair;
    size_t number;
    BW_TRY(list_chosen(search));
    if (!failing) {
        BW_TRY(find_first(search, reason, &number));
        return refuse(repair, number, (*reason)->message);
    }
    struct bw_repair_matches matches = bw_repair_find_changes(repair, failing);
    for (const struct bw_repair_change *change; (change = bw_repair_next_match(&matches));)
        BW_TRY(refuse(repair, (size_t)(change - repair->changes.items), (*reason)->message));
    return NULL;
}

/* The changes that were chosen and were left out, by their numbers, for a message. */
static char *list_failed(const struct bw_repair *repair)
{
    enum { MOST_NAMED = 10 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    size_t count = 0;
    for (size_t i = 0; i < repair->changes.count; i++)
        if (repair->changes.items[i].failure && count++ < MOST_NAMED)
            bw_buffer_format(&text, "%s%zu", count > 1 ? ", " : "", i + 1);
    bw_buffer_format(&text, "%s%c", count > MOST_NAMED ? ", ..." : "", '\0');
    return text.failed ? NULL : strdup(text.data);
}

/* Without `goes_on`, a failure is an error. */
static struct bw_error *try_changes(struct bw_repair *repair, bool goes_on, uint64_t *left)
{
    struct search search = {.repair = repair};
    struct bw_error *error = NULL;
    for (bool fails = true; fails && !error;) {
        const struct bw_repair_finding *failing;
        struct bw_error *reason = try_once(&search, &failing);
        fails = reason && is_failure(reason);
        if (!fails) {
            error = reason;
            break;
        }
        error = leave_out(&search, failing, &reason);
        if (!error && !goes_on) {
            BW_AUTO_FREE char *numbers = list_failed(repair);
            error = bw_error_prefix(BW_TAKE(reason), "change %s", numbers ? numbers : "");
        }
        bw_error_free(reason);
    }
    bw_sizes_free(&search.chosen);
    *left = search.left;
    return error;
}

struct bw_error *bw_repair_try(struct bw_repair *repair, uint64_t *left)
{
    return try_changes(repair, false, left);
}

struct bw_error *bw_repair_try_each(struct bw_repair *repair, uint64_t *left)
{
    return try_changes(repair, true, left);
}
