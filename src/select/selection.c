/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selections: conditions joined to alternatives, of which a file must meet one. Names are decided
 * first. Where there is one alternative only, its conditions on names are not tested again when the
 * inode is known.
 */
#include "select/selection.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btrfs-walk/people.h"
#include "select/choice.h"
#include "select/condition.h"

/* Building. */

/* The alternative that conditions are added to. */
static struct bw_alternative *last_of(struct bw_selection *selection)
{
    return &selection->alternatives[selection->alternative_count - 1];
}

static struct bw_error *begin_alternative(struct bw_selection *selection)
{
    if (!BW_ARRAY_RESERVE(selection->alternatives, selection->alternative_count,
                          selection->alternative_capacity))
        return bw_error_no_memory();
    selection->alternatives[selection->alternative_count++] =
        (struct bw_alternative){.first = selection->count, .end = selection->count};
    return NULL;
}

struct bw_error *bw_selection_create(struct bw_selection **result)
{
    struct bw_selection *selection = calloc(1, sizeof *selection);
    struct timespec now;
    if (!selection)
        return bw_error_no_memory();
    struct bw_error *error = begin_alternative(selection);
    if (error) {
        free(selection);
        return error;
    }
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
    for (size_t i = 0; i < selection->count; i++)
        bw_condition_release(&selection->conditions[i]);
    free(selection->conditions);
    free(selection->alternatives);
    if (selection->locale)
        freelocale(selection->locale);
    free(selection);
}

static bool is_begun(const struct bw_alternative *alternative)
{
    return alternative->end > alternative->first || alternative->types || alternative->not_types;
}

/* What is wrong if an alternative ended here; NULL: nothing. */
static struct bw_error *end_alternative(const struct bw_selection *selection)
{
    const struct bw_alternative *last = &selection->alternatives[selection->alternative_count - 1];
    if (selection->negates)
        return bw_error_create(BW_ERROR_USAGE, "--not: no condition follows");
    if (!is_begun(last))
        return bw_error_create(BW_ERROR_USAGE, "--or stands between two conditions");
    return NULL;
}

struct bw_error *bw_selection_not(struct bw_selection *selection)
{
    selection->negates = !selection->negates;
    return NULL;
}

struct bw_error *bw_selection_or(struct bw_selection *selection)
{
    BW_TRY(end_alternative(selection));
    return begin_alternative(selection);
}

void bw_selection_add_types(struct bw_selection *selection, unsigned types)
{
    struct bw_alternative *last = last_of(selection);
    *(selection->negates ? &last->not_types : &last->types) |= types;
    selection->negates = false;
}

/* Which types an alternative selects. */
static unsigned types_of(const struct bw_selection *selection,
                         const struct bw_alternative *alternative)
{
    const unsigned types = alternative->types       ? alternative->types
                           : alternative->not_types ? BW_WALK_ALL
                                                    : selection->default_types;
    return types & ~alternative->not_types;
}

unsigned bw_selection_default_types(struct bw_selection *selection, unsigned types)
{
    unsigned all = 0;
    selection->default_types = types;
    for (size_t i = 0; i < selection->alternative_count; i++)
        all |= types_of(selection, &selection->alternatives[i]);
    return all;
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

static struct bw_error *add(struct bw_selection *selection, const struct bw_condition *condition)
{
    struct bw_alternative *last = last_of(selection);
    if (!BW_ARRAY_RESERVE(selection->conditions, selection->count, selection->capacity))
        return bw_error_no_memory();
    selection->conditions[selection->count++] = *condition;
    last->end = selection->count;
    last->has_any_name |= condition->list == BW_ANY_NAME;
    selection->negates = false;
    selection->has[condition->list] = true;
    return NULL;
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
    if (selection->negates || selection->alternative_count > 1)
        BW_TRY(end_alternative(selection));
    for (size_t i = 0; i < selection->count && !error; i++) {
        if (!names_person(&selection->conditions[i]))
            continue;
        if (!people)
            error = bw_people_read(fs, from, &people);
        if (!error)
            error = find_person(&selection->conditions[i], people);
    }
    bw_people_destroy(people);
    return error;
}

/* Testing files. */

/* Whether the conditions of an alternative are met that need no inode. */
static bool meets_names(const struct bw_alternative *alternative, const struct bw_subject *subject)
{
    const struct bw_condition *conditions = subject->selection->conditions;
    bool any_name = !alternative->has_any_name;
    if (!(types_of(subject->selection, alternative) >> subject->named->type & 1))
        return false;
    for (size_t i = alternative->first; i < alternative->end; i++) {
        const struct bw_condition *condition = &conditions[i];
        if (condition->list == BW_NAMES &&
            condition->kind->test(subject, condition) == condition->negated)
            return false;
        if (condition->list == BW_ANY_NAME && !any_name)
            any_name = condition->kind->test(subject, condition);
    }
    return any_name;
}

/* Whether those are met that need one; none of them is if it is not known. */
static bool meets_inodes(const struct bw_alternative *alternative, const struct bw_subject *subject)
{
    const struct bw_condition *conditions = subject->selection->conditions;
    for (size_t i = alternative->first; i < alternative->end; i++) {
        const struct bw_condition *condition = &conditions[i];
        if (condition->list == BW_INODES &&
            (!subject->file->inode ||
             condition->kind->test(subject, condition) == condition->negated))
            return false;
    }
    return true;
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return selection->has[BW_INODES];
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct bw_subject subject = {selection, named, NULL};
    for (size_t i = 0; selection && selection->has[BW_EXCLUDE] && i < selection->count; i++)
        if (selection->conditions[i].list == BW_EXCLUDE &&
            selection->conditions[i].kind->test(&subject, &selection->conditions[i]))
            return true;
    return false;
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct bw_subject subject = {selection, named, NULL};
    size_t i = 0;
    while (i < selection->alternative_count && !meets_names(&selection->alternatives[i], &subject))
        i++;
    return i < selection->alternative_count;
}

static struct bw_named name_of(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    size_t before = slash && length > 1 ? (size_t)(slash + 1 - path) : 0;
    return (struct bw_named){path, length, length - before, 0, 0};
}

bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file)
{
    struct bw_subject subject = {selection, NULL, file};
    if (selection->alternative_count == 1)
        return meets_inodes(&selection->alternatives[0], &subject);
    struct bw_named named = name_of(file->path, file->path_length);
    named.number = file->number;
    named.type = file->type;
    subject.named = &named;
    for (size_t i = 0; i < selection->alternative_count; i++)
        if (meets_names(&selection->alternatives[i], &subject) &&
            meets_inodes(&selection->alternatives[i], &subject))
            return true;
    return false;
}

/* The same for entries of the public headers. */

static struct bw_named name_of_entry(const struct bw_entry *entry)
{
    struct bw_named named = name_of(entry->path, entry->path_length);
    named.number = entry->place.inode;
    named.type = bw_known_type(entry->place.type);
    return named;
}

bool bw_selection_excludes_entry(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of_entry(entry);
    return bw_selection_excludes(selection, &named);
}

bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of_entry(entry);
    return bw_selection_takes_name(selection, &named);
}

bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_walked_file file = {.path = entry->path,
                                        .path_length = entry->path_length,
                                        .number = entry->place.inode,
                                        .type = bw_known_type(entry->place.type),
                                        .inode = entry->inode};
    return bw_selection_takes_inode(selection, &file);
}
