/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Building a selection: the operators, and names of users and groups; judge.c tests files. */
#include "walk/selection.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btrfs-walk/people.h"
#include "walk/condition.h"

/* Adds a node to the set, and so to all that it is in. */
static struct bw_error *append(struct bw_selection *selection, const struct bw_condition *node)
{
    if (!BW_ARRAY_RESERVE(selection->nodes, selection->node_count, selection->capacity))
        return bw_error_no_memory();
    selection->nodes[selection->node_count++] = *node;
    for (unsigned i = 0; i <= selection->depth; i++)
        selection->nodes[selection->open[i].group].end =
            selection->nodes[selection->open[i].set].end = selection->node_count;
    return NULL;
}

static struct bw_error *begin_set(struct bw_selection *selection)
{
    selection->open[selection->depth].set = selection->node_count;
    return append(selection, &(struct bw_condition){.list = BW_SET});
}

/* At the level that the caller has chosen. */
static struct bw_error *begin_group(struct bw_selection *selection)
{
    const size_t number = selection->node_count;
    const struct bw_condition group = {.list = BW_GROUP, .negated = selection->negates};
    selection->open[selection->depth].group = selection->open[selection->depth].set = number;
    selection->negates = false;
    BW_TRY(append(selection, &group));
    return begin_set(selection);
}

struct bw_error *bw_selection_create(struct bw_selection **result)
{
    struct bw_selection *selection = calloc(1, sizeof *selection);
    struct timespec now;
    if (!selection)
        return bw_error_no_memory();
    struct bw_error *error = begin_group(selection);
    if (error) {
        bw_selection_destroy(selection);
        return error;
    }
    selection->is_flat = true;
    selection->default_types = BW_WALK_ALL;
    clock_gettime(CLOCK_REALTIME, &now);
    selection->now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    selection->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *result = selection;
    return NULL;
}

void bw_selection_destroy(struct bw_selection *selection)
{
    if (!selection)
        return;
    for (size_t i = 0; i < selection->node_count; i++)
        bw_condition_release(&selection->nodes[i]);
    free(selection->nodes);
    if (selection->locale)
        freelocale(selection->locale);
    free(selection);
}

/* Operators. */

/* Whether the set has something in it. */
static bool is_begun(const struct bw_selection *selection)
{
    return selection->node_count > selection->open[selection->depth].set + 1;
}

/* What is wrong if nothing more comes; NULL: nothing. */
static struct bw_error *want_condition(const struct bw_selection *selection)
{
    if (selection->negates)
        return bw_error_create(BW_ERROR_USAGE, "--not: no condition follows");
    if (selection->pending)
        return bw_error_create(BW_ERROR_USAGE, "%s stands between two conditions",
                               selection->pending);
    return NULL;
}

static struct bw_error *join(struct bw_selection *selection, const char *operator)
{
    BW_TRY(want_condition(selection));
    selection->pending = operator;
    return is_begun(selection) ? NULL : want_condition(selection);
}

struct bw_error *bw_selection_not(struct bw_selection *selection)
{
    selection->negates = !selection->negates;
    return NULL;
}

struct bw_error *bw_selection_or(struct bw_selection *selection)
{
    BW_TRY(join(selection, "--or"));
    selection->is_flat = false;
    return begin_set(selection);
}

struct bw_error *bw_selection_and(struct bw_selection *selection)
{
    BW_TRY(join(selection, "--and"));
    return append(selection, &(struct bw_condition){.list = BW_AND});
}

struct bw_error *bw_selection_open(struct bw_selection *selection)
{
    if (selection->depth + 1 == BW_MOST_GROUPS)
        return bw_error_create(BW_ERROR_USAGE, "more than %u parentheses in each other",
                               BW_MOST_GROUPS - 1);
    selection->is_flat = false;
    selection->pending = NULL;
    selection->depth++;
    return begin_group(selection);
}

struct bw_error *bw_selection_close(struct bw_selection *selection)
{
    if (!selection->depth)
        return bw_error_create(BW_ERROR_USAGE, "a ')' has no '(' before it");
    BW_TRY(want_condition(selection));
    if (!is_begun(selection))
        return bw_error_create(BW_ERROR_USAGE, "there is nothing between '(' and ')'");
    selection->depth--;
    return NULL;
}

/* Conditions. */

static struct bw_error *add(struct bw_selection *selection, const struct bw_condition *condition)
{
    BW_TRY(append(selection, condition));
    selection->count++;
    selection->has_exclude |= condition->list == BW_EXCLUDE;
    selection->has_inodes |= condition->list == BW_INODES;
    selection->negates = false;
    selection->pending = NULL;
    return NULL;
}

struct bw_error *bw_selection_add_types(struct bw_selection *selection, unsigned types)
{
    const struct bw_condition condition = {.list = selection->negates ? BW_TYPES : BW_ANY_TYPE,
                                           .negated = selection->negates,
                                           .types = types};
    return add(selection, &condition);
}

unsigned bw_selection_default_types(struct bw_selection *selection, unsigned types)
{
    selection->default_types = types;
    return bw_selection_types(selection);
}

static struct bw_error *read_argument(struct bw_condition *condition, const char *name,
                                      const char *argument)
{
    struct bw_error *error =
        condition->kind->read ? condition->kind->read(argument, condition) : NULL;
    return error && error->code == BW_ERROR_USAGE
               ? bw_error_prefix(error, "--%s '%s'", name, argument)
               : error;
}

struct bw_error *bw_selection_add(struct bw_selection *selection, const char *name,
                                  const char *argument)
{
    struct bw_condition condition = {.kind = bw_condition_find(name),
                                     .negated = selection->negates};
    if (!condition.kind)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s", name);
    condition.list = condition.kind->list;
    if (condition.negated && condition.list == BW_EXCLUDE)
        return bw_error_create(BW_ERROR_USAGE, "--not goes before a condition, not --%s", name);
    if (condition.negated && condition.list == BW_ANY_NAME)
        condition.list = BW_NAMES;
    struct bw_error *error = read_argument(&condition, name, argument);
    if (!error)
        error = add(selection, &condition);
    if (error)
        bw_condition_release(&condition);
    return error;
}

/* Names of users and groups. */

static struct bw_error *find_person(struct bw_condition *condition, const struct bw_people *people)
{
    const bool is_user = strcmp(condition->kind->name, "user") == 0;
    uint32_t number;
    if (!(is_user ? bw_people_find_user : bw_people_find_group)(people, condition->text, &number))
        return bw_error_create(BW_ERROR_NOT_FOUND, "--%s '%s': %s%s has no such name",
                               condition->kind->name, condition->text, bw_people_place(people),
                               is_user ? "/etc/passwd" : "/etc/group");
    condition->number = number;
    condition->is_unknown = false;
    return NULL;
}

static bool names_person(const struct bw_condition *condition)
{
    return condition->is_unknown && condition->text;
}

struct bw_error *bw_selection_prepare(struct bw_selection *selection, struct bw_fs *fs,
                                      const struct bw_subvolume *from)
{
    struct bw_people *people = NULL;
    struct bw_error *error = NULL;
    BW_TRY(want_condition(selection));
    if (selection->depth)
        return bw_error_create(BW_ERROR_USAGE, "a '(' has no ')' after it");
    for (size_t i = 0; i < selection->node_count && !error; i++) {
        if (!names_person(&selection->nodes[i]))
            continue;
        if (!people)
            error = bw_people_read(fs, from, &people);
        if (!error)
            error = find_person(&selection->nodes[i], people);
    }
    bw_people_destroy(people);
    return error;
}
