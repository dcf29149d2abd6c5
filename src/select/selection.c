/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selections: a table of the conditions, reading their arguments, and testing files. */
#include "select/selection.h"

#include <locale.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/human.h"
#include "select/choice.h"

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)

enum { MODE_BITS = 07777 };

struct bw_condition {
    const struct kind *kind;
    char *pattern; /* owned */
    size_t pattern_length;
    regex_t *regex; /* owned */
    enum comparison { EQUAL, MORE, LESS } comparison;
    enum { MODE_IS, MODE_HAS_ALL, MODE_HAS_ANY } mode_test;
    uint64_t number; /* also the mode */
    uint64_t unit;   /* of a size: bytes */
    int64_t time;    /* nanoseconds since 1970 */
};

/* What is tested: the one or the other. */
struct subject {
    const struct bw_selection *selection;
    const struct bw_named *named;
    const struct bw_walked_file *file;
};

/* Reads the argument of a condition, or says what is wrong with it. */
typedef struct bw_error *argument_reader(const char *argument, struct bw_condition *condition);

typedef bool condition_test(const struct subject *subject, const struct bw_condition *condition);

struct kind {
    const char *name;
    enum list {
        ANY_NAME, /* of these one has to be met, if there are any */
        NAMES,    /* all of these */
        EXCLUDE,  /* none of these */
        INODES,   /* all of these, which need the inode */
    } list;
    argument_reader *read; /* NULL: it has no argument */
    condition_test *test;
};

/* Arguments. */

/* The caller puts the argument in front of this. */
static struct bw_error *wrong(const char *reason)
{
    return bw_error_create(BW_ERROR_USAGE, "%s", reason);
}

static struct bw_error *read_pattern(const char *argument, struct bw_condition *condition)
{
    const char *problem = bw_glob_problem(argument, strlen(argument));
    if (problem)
        return wrong(problem);
    condition->pattern = strdup(argument);
    condition->pattern_length = strlen(argument);
    return condition->pattern ? NULL : bw_error_no_memory();
}

static struct bw_error *read_regex(const char *argument, struct bw_condition *condition)
{
    char problem[128];
    regex_t *regex = malloc(sizeof *regex);
    if (!regex)
        return bw_error_no_memory();
    int failed = regcomp(regex, argument, REG_EXTENDED);
    if (!failed) {
        condition->regex = regex;
        return NULL;
    }
    regerror(failed, regex, problem, sizeof problem);
    free(regex);
    return wrong(problem);
}

static enum comparison take_sign(const char **text)
{
    enum comparison comparison = **text == '+' ? MORE : **text == '-' ? LESS : EQUAL;
    *text += comparison != EQUAL;
    return comparison;
}

static struct bw_error *read_number(const char *argument, struct bw_condition *condition)
{
    condition->comparison = take_sign(&argument);
    return bw_parse_digits(&argument, 10, &condition->number) && !*argument
               ? NULL
               : wrong("this is a number, perhaps with + or - before it: +3");
}

static struct bw_error *read_size(const char *argument, struct bw_condition *condition)
{
    static const struct bw_unit units[] = {
        {"T", UINT64_C(1) << 40},
        {"G", 1 << 30},
        {"M", 1 << 20},
        {"k", 1 << 10},
        {"b", 512},
        {"", 512},
        {"w", 2},
        {"c", 1},
        {NULL, 0},
    };
    condition->comparison = take_sign(&argument);
    bool good = bw_parse_digits(&argument, 10, &condition->number);
    const struct bw_unit *unit = bw_unit_find(units, argument, strlen(argument));
    condition->unit = unit ? unit->factor : 1;
    return good && unit ? NULL
                        : wrong("a size is a number, perhaps with + or - before and one of "
                                "c w b k M G T after it: +1M");
}

static struct bw_error *read_mode(const char *argument, struct bw_condition *condition)
{
    condition->mode_test = *argument == '-'   ? MODE_HAS_ALL
                           : *argument == '/' ? MODE_HAS_ANY
                                              : MODE_IS;
    argument += condition->mode_test != MODE_IS;
    return bw_parse_digits(&argument, 8, &condition->number) && !*argument &&
                   condition->number <= MODE_BITS
               ? NULL
               : wrong("a mode is octal, at most 7777, perhaps with - (all of) or / (any of) "
                       "before it: -022");
}

static struct bw_error *read_time(const char *argument, struct bw_condition *condition)
{
    return bw_parse_date(argument, &condition->time)
               ? NULL
               : wrong("a time is YYYY-MM-DD, perhaps followed by HH:MM[:SS[.N]] and Z or +HH:MM, "
                       "or @SECONDS since 1970");
}

/* Tests of names. */

static bool matches_name(const struct subject *subject, const struct bw_condition *condition)
{
    const struct bw_named *named = subject->named;
    return bw_glob_matches(condition->pattern, condition->pattern_length,
                           named->path + named->path_length - named->name_length,
                           named->name_length);
}

static bool matches_folded(const struct subject *subject, const struct bw_condition *condition)
{
    const struct bw_named *named = subject->named;
    return bw_glob_matches_folded(
        subject->selection->locale, condition->pattern, condition->pattern_length,
        named->path + named->path_length - named->name_length, named->name_length);
}

static bool matches_path(const struct subject *subject, const struct bw_condition *condition)
{
    return bw_glob_matches(condition->pattern, condition->pattern_length, subject->named->path,
                           subject->named->path_length);
}

static bool matches_either(const struct subject *subject, const struct bw_condition *condition)
{
    return matches_name(subject, condition) || matches_path(subject, condition);
}

/* Of the matches that begin first, regexec() reports the longest: if the whole path can match, it
 * is that one. */
static bool matches_regex(const struct subject *subject, const struct bw_condition *condition)
{
    regmatch_t match;
    return regexec(condition->regex, subject->named->path, 1, &match, 0) == 0 && match.rm_so == 0 &&
           (size_t)match.rm_eo == subject->named->path_length;
}

static bool compares(const struct bw_condition *condition, uint64_t value)
{
    return condition->comparison == MORE   ? value > condition->number
           : condition->comparison == LESS ? value < condition->number
                                           : value == condition->number;
}

static bool has_number(const struct subject *subject, const struct bw_condition *condition)
{
    return compares(condition, subject->named->number);
}

/* Tests of inodes. */

static bool has_size(const struct subject *subject, const struct bw_condition *condition)
{
    uint64_t size = subject->file->inode->size;
    return compares(condition, size / condition->unit + (size % condition->unit != 0));
}

static bool is_newer(const struct subject *subject, const struct bw_condition *condition)
{
    return bw_time_nanoseconds(&subject->file->inode->mtime) > condition->time;
}

/* Whole days must have passed; a time in the future is less than any number of days ago, and none
 * exactly. */
static bool has_age(const struct subject *subject, const struct bw_condition *condition)
{
    const struct timespec *mtime = &subject->file->inode->mtime;
    int64_t age;
    if (__builtin_sub_overflow(subject->selection->now, bw_time_nanoseconds(mtime), &age))
        age = mtime->tv_sec < 0 ? INT64_MAX : INT64_MIN;
    return age < 0 ? condition->comparison == LESS : compares(condition, (uint64_t)(age / DAY));
}

static bool has_owner(const struct subject *subject, const struct bw_condition *condition)
{
    return compares(condition, subject->file->inode->uid);
}

static bool has_group(const struct subject *subject, const struct bw_condition *condition)
{
    return compares(condition, subject->file->inode->gid);
}

static bool has_links(const struct subject *subject, const struct bw_condition *condition)
{
    return compares(condition, subject->file->inode->link_count);
}

static bool has_mode(const struct subject *subject, const struct bw_condition *condition)
{
    const uint64_t mode = subject->file->inode->mode & MODE_BITS;
    const uint64_t common = mode & condition->number;
    return condition->mode_test == MODE_HAS_ALL   ? common == condition->number
           : condition->mode_test == MODE_HAS_ANY ? common || !condition->number
                                                  : mode == condition->number;
}

/* The size of a directory is that of the names in it, counted twice. */
static bool is_empty(const struct subject *subject, const struct bw_condition *condition)
{
    const struct bw_walked_file *file = subject->file;
    (void)condition;
    return (file->type == BW_FILE_REGULAR || file->type == BW_FILE_DIRECTORY) &&
           file->inode->size == 0;
}

/* Conditions. */

static const struct kind kinds[] = {
    {"name", ANY_NAME, read_pattern, matches_name},
    {"iname", ANY_NAME, read_pattern, matches_folded},
    {"path", NAMES, read_pattern, matches_path},
    {"regex", NAMES, read_regex, matches_regex},
    {"inum", NAMES, read_number, has_number},
    {"exclude", EXCLUDE, read_pattern, matches_either},
    {"size", INODES, read_size, has_size},
    {"newer", INODES, read_time, is_newer},
    {"mtime", INODES, read_number, has_age},
    {"uid", INODES, read_number, has_owner},
    {"gid", INODES, read_number, has_group},
    {"links", INODES, read_number, has_links},
    {"perm", INODES, read_mode, has_mode},
    {"empty", INODES, NULL, is_empty},
};

struct bw_error *bw_selection_create(struct bw_selection **result)
{
    struct bw_selection *selection = calloc(1, sizeof *selection);
    struct timespec now;
    if (!selection)
        return bw_error_no_memory();
    clock_gettime(CLOCK_REALTIME, &now);
    selection->now = now.tv_sec * SECOND + now.tv_nsec;
    selection->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *result = selection;
    return NULL;
}

static void free_condition(struct bw_condition *condition)
{
    free(condition->pattern);
    if (condition->regex)
        regfree(condition->regex);
    free(condition->regex);
}

void bw_selection_destroy(struct bw_selection *selection)
{
    if (!selection)
        return;
    for (size_t i = 0; i < selection->count; i++)
        free_condition(&selection->conditions[i]);
    free(selection->conditions);
    if (selection->locale)
        freelocale(selection->locale);
    free(selection);
}

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

struct bw_error *bw_selection_add(struct bw_selection *selection, const char *name,
                                  const char *argument)
{
    struct bw_condition condition = {.kind = find_kind(name)};
    if (!condition.kind)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s", name);
    struct bw_error *error =
        condition.kind->read ? condition.kind->read(argument, &condition) : NULL;
    if (error)
        return error->code == BW_ERROR_USAGE ? bw_error_prefix(error, "--%s '%s'", name, argument)
                                             : error;
    if (!BW_ARRAY_RESERVE(selection->conditions, selection->count, selection->capacity)) {
        free_condition(&condition);
        return bw_error_no_memory();
    }
    selection->conditions[selection->count++] = condition;
    return NULL;
}

/* Testing files. */

/* Whether any condition of a list answers `answer`. */
static bool any_is(const struct subject *subject, enum list list, bool answer)
{
    const struct bw_selection *selection = subject->selection;
    for (size_t i = 0; i < selection->count; i++) {
        const struct bw_condition *condition = &selection->conditions[i];
        if (condition->kind->list == list && condition->kind->test(subject, condition) == answer)
            return true;
    }
    return false;
}

static bool has_any(const struct bw_selection *selection, enum list list)
{
    for (size_t i = 0; i < selection->count; i++)
        if (selection->conditions[i].kind->list == list)
            return true;
    return false;
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return has_any(selection, INODES);
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    return selection && any_is(&(struct subject){selection, named, NULL}, EXCLUDE, true);
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct subject subject = {selection, named, NULL};
    return !any_is(&subject, NAMES, false) &&
           (!has_any(selection, ANY_NAME) || any_is(&subject, ANY_NAME, true));
}

bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file)
{
    return file->inode ? !any_is(&(struct subject){selection, NULL, file}, INODES, false)
                       : !has_any(selection, INODES);
}

/* The same for entries of the public headers. */

static struct bw_named name_of(const struct bw_entry *entry)
{
    const char *slash = memrchr(entry->path, '/', entry->path_length);
    bool is_top = entry->path_length == 1;
    size_t before = slash && !is_top ? (size_t)(slash + 1 - entry->path) : 0;
    return (struct bw_named){.path = entry->path,
                             .path_length = entry->path_length,
                             .name_length = entry->path_length - before,
                             .number = entry->place.inode,
                             .type = bw_known_type(entry->place.type)};
}

bool bw_selection_excludes_entry(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of(entry);
    return bw_selection_excludes(selection, &named);
}

bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of(entry);
    return bw_selection_takes_name(selection, &named);
}

bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_walked_file file = {.number = entry->place.inode,
                                        .type = bw_known_type(entry->place.type),
                                        .inode = entry->inode};
    return bw_selection_takes_inode(selection, &file);
}
