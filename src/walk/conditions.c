/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of conditions: reading their arguments, and testing files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/human.h"
#include "base/mode.h"
#include "walk/condition.h"

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)
#define MINUTE (60 * SECOND)

enum { MODE_BITS = 07777 };

/* Arguments. */

/* The caller puts the argument in front of this. */
static struct bw_error *wrong(const char *reason)
{
    return bw_error_create(BW_ERROR_USAGE, "%s", reason);
}

static struct bw_error *keep_text(const char *argument, struct bw_condition *condition)
{
    condition->text = strdup(argument);
    condition->text_length = strlen(argument);
    return condition->text ? NULL : bw_error_no_memory();
}

static struct bw_error *read_pattern(const char *argument, struct bw_condition *condition)
{
    const char *problem = bw_glob_problem(argument, strlen(argument));
    if (problem)
        return wrong(problem);
    return keep_text(argument, condition);
}

static struct bw_error *read_regex(const char *argument, struct bw_condition *condition)
{
    const int folded = *condition->kind->name == 'i' ? REG_ICASE : 0;
    char problem[128];
    regex_t *regex = malloc(sizeof *regex);
    if (!regex)
        return bw_error_no_memory();
    int failed = regcomp(regex, argument, REG_EXTENDED | folded);
    if (!failed) {
        condition->regex = regex;
        return NULL;
    }
    regerror(failed, regex, problem, sizeof problem);
    free(regex);
    return wrong(problem);
}

static int take_sign(const char **text)
{
    const int comparison = **text == '+' ? BW_MORE : **text == '-' ? BW_LESS : BW_EQUAL;
    *text += comparison != BW_EQUAL;
    return comparison;
}

static struct bw_error *read_number(const char *argument, struct bw_condition *condition)
{
    condition->comparison = (unsigned)take_sign(&argument);
    return bw_parse_digits(&argument, 10, &condition->number) && !*argument
               ? NULL
               : wrong("this is a number, perhaps with + or - before it: +3");
}

/* Units of find(1) which are none of other tools; without any, blocks are meant. */
static uint64_t own_unit(const char *name)
{
    return strcmp(name, "b") == 0 || !*name ? 512
           : strcmp(name, "w") == 0         ? 2
           : strcmp(name, "c") == 0         ? 1
                                            : 0;
}

static struct bw_error *read_size(const char *argument, struct bw_condition *condition)
{
    char one[8]; /* of its unit */
    const char *unit = one;
    condition->comparison = (unsigned)take_sign(&argument);
    bool good = bw_parse_digits(&argument, 10, &condition->number);
    condition->unit = own_unit(argument);
    if (!condition->unit && snprintf(one, sizeof one, "1%s", argument) < (int)sizeof one)
        good = good && bw_parse_size(&unit, &condition->unit) && !*unit;
    return good && condition->unit
               ? NULL
               : wrong("a size is a number, perhaps with + or - before and one of c w b k M G T, "
                       "or MB and the like after it: +1M");
}

static struct bw_error *read_mode(const char *argument, struct bw_condition *condition)
{
    uint32_t mode, of_directories;
    condition->mode_test = *argument == '-'   ? BW_MODE_HAS_ALL
                           : *argument == '/' ? BW_MODE_HAS_ANY
                                              : BW_MODE_IS;
    argument += condition->mode_test != BW_MODE_IS;
    const bool is_old = argument[0] == '+' && argument[1] >= '0' && argument[1] <= '9';
    if (is_old || !bw_parse_mode(argument, false, &mode) ||
        !bw_parse_mode(argument, true, &of_directories))
        return wrong("a mode is octal, at most 7777, or symbolic, perhaps with - (all of) or / "
                     "(any of) before it: -022, /u+s,g+s");
    condition->number = mode;
    condition->of_directories = of_directories;
    return NULL;
}

static struct bw_error *read_time(const char *argument, struct bw_condition *condition)
{
    return bw_parse_date(argument, &condition->time)
               ? NULL
               : wrong("a time is YYYY-MM-DD, perhaps followed by HH:MM[:SS[.N]] and Z or +HH:MM, "
                       "or @SECONDS since 1970");
}

/* Tests of names. */

static bool matches_name(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const struct bw_named *named = subject->named;
    return bw_glob_matches(condition->text, condition->text_length,
                           named->path + named->path_length - named->name_length,
                           named->name_length);
}

static bool matches_folded(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const struct bw_named *named = subject->named;
    return bw_glob_matches_folded(
        subject->selection->locale, condition->text, condition->text_length,
        named->path + named->path_length - named->name_length, named->name_length);
}

static bool matches_path(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return bw_glob_matches(condition->text, condition->text_length, subject->named->path,
                           subject->named->path_length);
}

static bool matches_folded_path(const struct bw_subject *subject,
                                const struct bw_condition *condition)
{
    return bw_glob_matches_folded(subject->selection->locale, condition->text,
                                  condition->text_length, subject->named->path,
                                  subject->named->path_length);
}

static bool matches_either(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return matches_name(subject, condition) || matches_path(subject, condition);
}

/* Of the matches that begin first, regexec() reports the longest: if the whole path can match, it
 * is that one. */
static bool matches_regex(const struct bw_subject *subject, const struct bw_condition *condition)
{
    regmatch_t match;
    return regexec(condition->regex, subject->named->path, 1, &match, 0) == 0 && match.rm_so == 0 &&
           (size_t)match.rm_eo == subject->named->path_length;
}

static bool compares(const struct bw_condition *condition, uint64_t value)
{
    return condition->comparison == BW_MORE   ? value > condition->number
           : condition->comparison == BW_LESS ? value < condition->number
                                              : value == condition->number;
}

static bool has_number(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return compares(condition, subject->named->number);
}

/* Tests of inodes. */

static bool has_size(const struct bw_subject *subject, const struct bw_condition *condition)
{
    uint64_t size = subject->file->inode->size;
    return compares(condition, size / condition->unit + (size % condition->unit != 0));
}

/* The member of the inode that a condition compares. */
static const void *member_of(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return (const char *)subject->file->inode + condition->kind->member;
}

static bool is_newer(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return bw_time_nanoseconds(member_of(subject, condition)) > condition->time;
}

static int64_t age_of(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const struct timespec *time = member_of(subject, condition);
    int64_t age;
    return !__builtin_sub_overflow(subject->selection->now, bw_time_nanoseconds(time), &age) ? age
           : time->tv_sec < 0 ? INT64_MAX
                              : INT64_MIN;
}

/* Whole days must have passed; a time in the future is less than any number of days ago, and none
 * exactly. */
static bool has_days(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const int64_t age = age_of(subject, condition);
    return age < 0 ? condition->comparison == BW_LESS : compares(condition, (uint64_t)(age / DAY));
}

/* Unlike days, minutes are counted to the next whole one: 0 is what was changed in the minute
 * to come. */
static bool has_minutes(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const int64_t age = age_of(subject, condition);
    const uint64_t most = INT64_MAX / MINUTE;
    const int64_t limit = (int64_t)(condition->number < most ? condition->number : most) * MINUTE;
    return condition->comparison == BW_MORE   ? age > limit
           : condition->comparison == BW_LESS ? age < limit
                                              : age < limit && age >= limit - MINUTE;
}

/* Owner, group and links are alike. */
static bool has_value(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return compares(condition, *(const uint32_t *)member_of(subject, condition));
}

/* A name is looked up when the selection is prepared. */
static struct bw_error *read_person(const char *argument, struct bw_condition *condition)
{
    const char *digits = argument;
    if (bw_parse_digits(&digits, 10, &condition->number) && !*digits)
        return NULL;
    if (!*argument)
        return wrong("this is a number or a name");
    condition->is_unknown = true;
    return keep_text(argument, condition);
}

static bool is_of(const struct bw_subject *subject, const struct bw_condition *condition)
{
    return !condition->is_unknown && has_value(subject, condition);
}

static bool has_mode(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const uint64_t mode = subject->file->inode->mode & MODE_BITS;
    const uint64_t wanted =
        S_ISDIR(subject->file->inode->mode) ? condition->of_directories : condition->number;
    const bool is_any = condition->number || condition->of_directories;
    return condition->mode_test == BW_MODE_IS                  ? mode == wanted
           : condition->mode_test == BW_MODE_HAS_ANY && is_any ? (mode & wanted) != 0
                                                               : (mode & wanted) == wanted;
}

/* The size of a directory is that of the names in it, counted twice. */
static bool is_empty(const struct bw_subject *subject, const struct bw_condition *condition)
{
    const struct bw_walked_file *file = subject->file;
    (void)condition;
    return (file->type == BW_FILE_REGULAR || file->type == BW_FILE_DIRECTORY) &&
           file->inode->size == 0;
}

/* Conditions. */

#define MEMBER(name) offsetof(struct bw_inode, name)

static const struct bw_condition_kind kinds[] = {
    {"name", BW_ANY_NAME, read_pattern, matches_name, 0},
    {"iname", BW_ANY_NAME, read_pattern, matches_folded, 0},
    {"path", BW_NAMES, read_pattern, matches_path, 0},
    {"wholename", BW_NAMES, read_pattern, matches_path, 0},
    {"ipath", BW_NAMES, read_pattern, matches_folded_path, 0},
    {"regex", BW_NAMES, read_regex, matches_regex, 0},
    {"iregex", BW_NAMES, read_regex, matches_regex, 0},
    {"inum", BW_NAMES, read_number, has_number, 0},
    {"exclude", BW_EXCLUDE, read_pattern, matches_either, 0},
    {"size", BW_INODES, read_size, has_size, 0},
    {"empty", BW_INODES, NULL, is_empty, 0},
    {"newer", BW_INODES, read_time, is_newer, MEMBER(mtime)},
    {"newermt", BW_INODES, read_time, is_newer, MEMBER(mtime)},
    {"newerat", BW_INODES, read_time, is_newer, MEMBER(atime)},
    {"newerct", BW_INODES, read_time, is_newer, MEMBER(ctime)},
    {"newerBt", BW_INODES, read_time, is_newer, MEMBER(otime)},
    {"mtime", BW_INODES, read_number, has_days, MEMBER(mtime)},
    {"atime", BW_INODES, read_number, has_days, MEMBER(atime)},
    {"ctime", BW_INODES, read_number, has_days, MEMBER(ctime)},
    {"mmin", BW_INODES, read_number, has_minutes, MEMBER(mtime)},
    {"amin", BW_INODES, read_number, has_minutes, MEMBER(atime)},
    {"cmin", BW_INODES, read_number, has_minutes, MEMBER(ctime)},
    {"uid", BW_INODES, read_number, has_value, MEMBER(uid)},
    {"gid", BW_INODES, read_number, has_value, MEMBER(gid)},
    {"user", BW_INODES, read_person, is_of, MEMBER(uid)},
    {"group", BW_INODES, read_person, is_of, MEMBER(gid)},
    {"links", BW_INODES, read_number, has_value, MEMBER(link_count)},
    {"perm", BW_INODES, read_mode, has_mode, 0},
};

const struct bw_condition_kind *bw_condition_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

void bw_condition_release(struct bw_condition *condition)
{
    free(condition->text);
    if (condition->regex)
        regfree(condition->regex);
    free(condition->regex);
}
