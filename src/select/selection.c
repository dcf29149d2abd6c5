/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selections as the walk uses them: trying conditions on names and on inodes. */
#include "select/selection.h"

#include <sys/stat.h>

#include "base/glob.h"
#include "select/selection_parts.h"

enum { BW_MODE_BITS = 07777 };

#define NANOSECONDS_OF_DAY (INT64_C(86400) * 1000000000)

/* Names. */

static const char *name_of(const struct bw_named *named)
{
    return named->path + named->path_length - named->name_length;
}

bool bw_test_name(const struct bw_selection *selection, const struct bw_condition *condition,
                  const struct bw_named *named)
{
    (void)selection;
    return bw_glob_matches(condition->pattern, condition->pattern_length, name_of(named),
                           named->name_length);
}

bool bw_test_iname(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_named *named)
{
    return bw_glob_matches_folded(selection->locale, condition->pattern, condition->pattern_length,
                                  name_of(named), named->name_length);
}

bool bw_test_path(const struct bw_selection *selection, const struct bw_condition *condition,
                  const struct bw_named *named)
{
    (void)selection;
    return bw_glob_matches(condition->pattern, condition->pattern_length, named->path,
                           named->path_length);
}

bool bw_test_name_or_path(const struct bw_selection *selection,
                          const struct bw_condition *condition, const struct bw_named *named)
{
    return bw_test_name(selection, condition, named) || bw_test_path(selection, condition, named);
}

/* Of the matches that begin first the longest is told: if all of the path can match, it is that
 * one. */
bool bw_test_regex(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_named *named)
{
    regmatch_t match;
    (void)selection;
    return regexec(condition->regex, named->path, 1, &match, 0) == 0 && match.rm_so == 0 &&
           (size_t)match.rm_eo == named->path_length;
}

/* Numbers. */

static bool compares(const struct bw_condition *condition, uint64_t value)
{
    return condition->comparison == BW_MORE   ? value > condition->number
           : condition->comparison == BW_LESS ? value < condition->number
                                              : value == condition->number;
}

bool bw_test_inum(const struct bw_selection *selection, const struct bw_condition *condition,
                  const struct bw_named *named)
{
    (void)selection;
    return compares(condition, named->number);
}

bool bw_test_size(const struct bw_selection *selection, const struct bw_condition *condition,
                  const struct bw_walked_file *file)
{
    uint64_t size = file->inode->size;
    (void)selection;
    return compares(condition, size / condition->unit + (size % condition->unit != 0));
}

bool bw_test_newer(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_walked_file *file)
{
    (void)selection;
    return bw_time_nanoseconds(&file->inode->mtime) > condition->time;
}

/* Whole days have to have passed; a time to come is less than any number of days ago, and none
 * exactly. */
bool bw_test_mtime(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_walked_file *file)
{
    int64_t age;
    if (__builtin_sub_overflow(selection->now, bw_time_nanoseconds(&file->inode->mtime), &age))
        age = file->inode->mtime.tv_sec < 0 ? INT64_MAX : INT64_MIN;
    if (age < 0)
        return condition->comparison == BW_LESS;
    return compares(condition, (uint64_t)(age / NANOSECONDS_OF_DAY));
}

bool bw_test_uid(const struct bw_selection *selection, const struct bw_condition *condition,
                 const struct bw_walked_file *file)
{
    (void)selection;
    return compares(condition, file->inode->uid);
}

bool bw_test_gid(const struct bw_selection *selection, const struct bw_condition *condition,
                 const struct bw_walked_file *file)
{
    (void)selection;
    return compares(condition, file->inode->gid);
}

bool bw_test_links(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_walked_file *file)
{
    (void)selection;
    return compares(condition, file->inode->link_count);
}

bool bw_test_perm(const struct bw_selection *selection, const struct bw_condition *condition,
                  const struct bw_walked_file *file)
{
    const uint64_t mode = file->inode->mode & BW_MODE_BITS, common = mode & condition->number;
    (void)selection;
    switch (condition->mode_test) {
    case BW_MODE_HAS_ALL:
        return common == condition->number;
    case BW_MODE_HAS_ANY:
        return common || !condition->number;
    default:
        return mode == condition->number;
    }
}

/* The size of a directory is that of the names in it, counted twice. */
bool bw_test_empty(const struct bw_selection *selection, const struct bw_condition *condition,
                   const struct bw_walked_file *file)
{
    (void)selection, (void)condition;
    return (file->type == BW_FILE_REGULAR || file->type == BW_FILE_DIRECTORY) &&
           file->inode->size == 0;
}

/* Selections. */

bool bw_selection_is_empty(const struct bw_selection *selection)
{
    return !selection->any_name.count && !selection->names.count && !selection->exclude.count &&
           !selection->inodes.count;
}

unsigned bw_selection_needs(const struct bw_selection *selection)
{
    return selection->inodes.count ? BW_FILE_NEEDS_INODE : 0;
}

/* How many conditions, from the first on, do not answer `until`. */
static size_t count_until(const struct bw_selection *selection,
                          const struct bw_condition_list *list, const struct bw_named *named,
                          bool until)
{
    size_t count = 0;
    while (count < list->count &&
           list->items[count].name(selection, &list->items[count], named) != until)
        count++;
    return count;
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct bw_condition_list *list = &selection->exclude;
    return count_until(selection, list, named, true) < list->count;
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct bw_condition_list *any = &selection->any_name, *all = &selection->names;
    return (!any->count || count_until(selection, any, named, true) < any->count) &&
           count_until(selection, all, named, false) == all->count;
}

bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file)
{
    const struct bw_condition_list *list = &selection->inodes;
    size_t count = 0;
    if (list->count && !file->inode)
        return false;
    while (count < list->count && list->items[count].inode(selection, &list->items[count], file))
        count++;
    return count == list->count;
}
