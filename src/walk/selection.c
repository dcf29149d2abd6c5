/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selections: the tests of find(1), how arguments are read, and how files are tested.
 *
 * Names are decided first, when the tests of inodes pass; then everything is decided again, if an
 * inode is needed.
 */
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/hash_mix.h"
#include "base/human.h"
#include "base/mode.h"
#include "base/path.h"
#include "btrfs-walk/subvolume.h"
#include "walk/selection.h"

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)
#define MINUTE (60 * SECOND)

enum { MODE_BITS = 07777 };

/* The subject of a test: a name, or a file with its inode. */
struct candidate {
    const struct bw_selection *selection;
    const struct bw_named *named;      /* for tests of names */
    const struct bw_walked_file *file; /* for those of inodes */
};

/* The input of a test, and its role in a set of tests. */
enum test_class {
    ANY_NAME, /* of these one has to pass, if there are any; up to the next "and" */
    ANY_TYPE, /* likewise */
    NAME,
    TYPE,
    INODE,
    EXCLUDE, /* no part of the test: none of these may pass, wherever they stand */
};

/* A kind of test, by the name it has on the command line. */
struct test_kind {
    const char *name;
    enum test_class class;
    struct bw_error *(*read)(const char *argument, struct bw_file_test *test); /* NULL: it has no
                                                                                  argument */
    bool (*passes)(const struct candidate *candidate, const struct bw_file_test *test);
    size_t member; /* of struct bw_inode: the compared member */
};

struct bw_file_test {
    const struct test_kind *kind; /* NULL: it is about the type */
    enum test_class class;        /* the class of the kind; NAME for a negated name */
    unsigned types;               /* a bit for each BW_FILE_* */
    char *text;                   /* a pattern, or the name of a user or group; owned */
    regex_t *regex;               /* owned */
    enum { EQUAL, MORE, LESS } comparison;
    enum { MODE_IS, MODE_HAS_ALL, MODE_HAS_ANY } mode_test;
    bool is_unknown;         /* a user or group that has no number: no file is theirs */
    uint64_t number;         /* also the mode */
    uint64_t of_directories; /* the mode for those */
    uint64_t unit;           /* of a size: bytes */
    int64_t time;            /* nanoseconds since 1970 */
};

/* Arguments. */

/* The caller puts the argument in front of this. */
static struct bw_error *refuse_argument(const char *reason)
{
    return bw_error_create(BW_ERROR_USAGE, "%s", reason);
}

static struct bw_error *keep_text(const char *argument, struct bw_file_test *test)
{
    test->text = strdup(argument);
    return test->text ? NULL : bw_error_no_memory();
}

static struct bw_error *read_regex(const char *argument, struct bw_file_test *test)
{
    const int folded = *test->kind->name == 'i' ? REG_ICASE : 0;
    char problem[128];
    regex_t *regex = malloc(sizeof *regex);
    if (!regex)
        return bw_error_no_memory();
    int failed = regcomp(regex, argument, REG_EXTENDED | folded);
    if (!failed) {
        test->regex = regex;
        return NULL;
    }
    regerror(failed, regex, problem, sizeof problem);
    free(regex);
    return refuse_argument(problem);
}

static int read_sign(const char **text)
{
    const int comparison = **text == '+' ? MORE : **text == '-' ? LESS : EQUAL;
    *text += comparison != EQUAL;
    return comparison;
}

static struct bw_error *read_number(const char *argument, struct bw_file_test *test)
{
    test->comparison = (unsigned)read_sign(&argument);
    return bw_parse_digits(&argument, 10, &test->number) && !*argument
               ? NULL
               : refuse_argument("this is a number, perhaps with + or - before it: +3");
}

/* Units that only find(1) has; without a unit, blocks. */
static uint64_t own_unit(const char *name)
{
    return strcmp(name, "b") == 0 || !*name ? 512
           : strcmp(name, "w") == 0         ? 2
           : strcmp(name, "c") == 0         ? 1
                                            : 0;
}

static struct bw_error *read_size(const char *argument, struct bw_file_test *test)
{
    char one[8]; /* of its unit */
    const char *unit = one;
    test->comparison = (unsigned)read_sign(&argument);
    bool good = bw_parse_digits(&argument, 10, &test->number);
    test->unit = own_unit(argument);
    if (!test->unit && snprintf(one, sizeof one, "1%s", argument) < (int)sizeof one)
        good = good && bw_parse_size(&unit, &test->unit) && !*unit;
    return good && test->unit
               ? NULL
               : refuse_argument(
                     "a size is a number, perhaps with + or - before and one of c w b k M G T, "
                     "or MB and the like after it: +1M");
}

static struct bw_error *read_mode(const char *argument, struct bw_file_test *test)
{
    uint32_t mode, of_directories;
    test->mode_test = *argument == '-' ? MODE_HAS_ALL : *argument == '/' ? MODE_HAS_ANY : MODE_IS;
    argument += test->mode_test != MODE_IS;
    const bool is_old = argument[0] == '+' && argument[1] >= '0' && argument[1] <= '9';
    if (is_old || !bw_parse_mode(argument, false, &mode) ||
        !bw_parse_mode(argument, true, &of_directories))
        return refuse_argument(
            "a mode is octal, at most 7777, or symbolic, perhaps with - (all of) or / "
            "(any of) before it: -022, /u+s,g+s");
    test->number = mode;
    test->of_directories = of_directories;
    return NULL;
}

static struct bw_error *read_time(const char *argument, struct bw_file_test *test)
{
    return bw_parse_date(argument, &test->time)
               ? NULL
               : refuse_argument(
                     "a time is YYYY-MM-DD, perhaps followed by HH:MM[:SS[.N]] and Z or +HH:MM, "
                     "or @SECONDS since 1970");
}

/* Tests of names. A NUL follows each path. */

static bool matches_glob(const struct candidate *candidate, const struct bw_file_test *test,
                         const char *text)
{
    const int flags = *test->kind->name == 'i' ? FNM_CASEFOLD : 0;
    return bw_glob_matches(&candidate->selection->glob, test->text, text, flags);
}

static bool matches_path(const struct candidate *candidate, const struct bw_file_test *test)
{
    return matches_glob(candidate, test, candidate->named->path);
}

static bool matches_name(const struct candidate *candidate, const struct bw_file_test *test)
{
    const struct bw_named *named = candidate->named;
    return matches_glob(candidate, test, named->path + named->path_length - named->name_length);
}

static bool matches_either(const struct candidate *candidate, const struct bw_file_test *test)
{
    return matches_name(candidate, test) || matches_path(candidate, test);
}

/* regexec() reports the longest of the leftmost matches: if the whole path can match, that is the
 * match. */
static bool matches_regex(const struct candidate *candidate, const struct bw_file_test *test)
{
    regmatch_t match;
    return regexec(test->regex, candidate->named->path, 1, &match, 0) == 0 && match.rm_so == 0 &&
           (size_t)match.rm_eo == candidate->named->path_length;
}

static bool compares_as_wanted(const struct bw_file_test *test, uint64_t value)
{
    return test->comparison == MORE   ? value > test->number
           : test->comparison == LESS ? value < test->number
                                      : value == test->number;
}

static bool has_number(const struct candidate *candidate, const struct bw_file_test *test)
{
    return compares_as_wanted(test, candidate->named->number);
}

/* Tests of inodes. */

static bool has_size(const struct candidate *candidate, const struct bw_file_test *test)
{
    uint64_t size = candidate->file->inode->size;
    return compares_as_wanted(test, size / test->unit + (size % test->unit != 0));
}

/* The member of the inode that a test compares. */
static const void *member_of(const struct candidate *candidate, const struct bw_file_test *test)
{
    return (const char *)candidate->file->inode + test->kind->member;
}

static bool is_newer(const struct candidate *candidate, const struct bw_file_test *test)
{
    return bw_time_nanoseconds(member_of(candidate, test)) > test->time;
}

static int64_t age_of(const struct candidate *candidate, const struct bw_file_test *test)
{
    const struct timespec *time = member_of(candidate, test);
    int64_t age;
    return !__builtin_sub_overflow(candidate->selection->now, bw_time_nanoseconds(time), &age) ? age
           : time->tv_sec < 0 ? INT64_MAX
                              : INT64_MIN;
}

/* Whole days must have passed; a time in the future is less than any number of days ago, and none
 * exactly. */
static bool has_days(const struct candidate *candidate, const struct bw_file_test *test)
{
    const int64_t age = age_of(candidate, test);
    return age < 0 ? test->comparison == LESS : compares_as_wanted(test, (uint64_t)(age / DAY));
}

/* Unlike days, minutes are rounded up: 0 means changed in the coming minute. */
static bool has_minutes(const struct candidate *candidate, const struct bw_file_test *test)
{
    const int64_t age = age_of(candidate, test);
    const uint64_t most = INT64_MAX / MINUTE;
    const int64_t limit = (int64_t)(test->number < most ? test->number : most) * MINUTE;
    return test->comparison == MORE   ? age > limit
           : test->comparison == LESS ? age < limit
                                      : age < limit && age >= limit - MINUTE;
}

/* Owner, group and links are alike. */
static bool has_value(const struct candidate *candidate, const struct bw_file_test *test)
{
    return compares_as_wanted(test, *(const uint32_t *)member_of(candidate, test));
}

/* A name is looked up when the selection is prepared. */
static struct bw_error *read_owner(const char *argument, struct bw_file_test *test)
{
    const char *digits = argument;
    if (bw_parse_digits(&digits, 10, &test->number) && !*digits)
        return NULL;
    if (!*argument)
        return refuse_argument("this is a number or a name");
    test->is_unknown = true;
    return keep_text(argument, test);
}

static bool is_of(const struct candidate *candidate, const struct bw_file_test *test)
{
    return !test->is_unknown && has_value(candidate, test);
}

static bool has_mode(const struct candidate *candidate, const struct bw_file_test *test)
{
    const uint64_t mode = candidate->file->inode->mode & MODE_BITS;
    const uint64_t wanted =
        S_ISDIR(candidate->file->inode->mode) ? test->of_directories : test->number;
    const bool is_any = test->number || test->of_directories;
    return test->mode_test == MODE_IS                  ? mode == wanted
           : test->mode_test == MODE_HAS_ANY && is_any ? (mode & wanted) != 0
                                                       : (mode & wanted) == wanted;
}

/* The size of a directory is twice the length of the names in it. */
static bool is_empty(const struct candidate *candidate, const struct bw_file_test *test)
{
    const struct bw_walked_file *file = candidate->file;
    (void)test;
    return (file->type == BW_FILE_REGULAR || file->type == BW_FILE_DIRECTORY) &&
           file->inode->size == 0;
}

/* The table of tests. */

#define MEMBER(name) offsetof(struct bw_inode, name)

static const struct test_kind kinds[] = {
    {"name", ANY_NAME, keep_text, matches_name, 0},
    {"iname", ANY_NAME, keep_text, matches_name, 0},
    {"path", NAME, keep_text, matches_path, 0},
    {"wholename", NAME, keep_text, matches_path, 0},
    {"ipath", NAME, keep_text, matches_path, 0},
    {"regex", NAME, read_regex, matches_regex, 0},
    {"iregex", NAME, read_regex, matches_regex, 0},
    {"inum", NAME, read_number, has_number, 0},
    {"exclude", EXCLUDE, keep_text, matches_either, 0},
    {"size", INODE, read_size, has_size, 0},
    {"empty", INODE, NULL, is_empty, 0},
    {"newer", INODE, read_time, is_newer, MEMBER(mtime)},
    {"newermt", INODE, read_time, is_newer, MEMBER(mtime)},
    {"newerat", INODE, read_time, is_newer, MEMBER(atime)},
    {"newerct", INODE, read_time, is_newer, MEMBER(ctime)},
    {"newerBt", INODE, read_time, is_newer, MEMBER(otime)},
    {"mtime", INODE, read_number, has_days, MEMBER(mtime)},
    {"atime", INODE, read_number, has_days, MEMBER(atime)},
    {"ctime", INODE, read_number, has_days, MEMBER(ctime)},
    {"mmin", INODE, read_number, has_minutes, MEMBER(mtime)},
    {"amin", INODE, read_number, has_minutes, MEMBER(atime)},
    {"cmin", INODE, read_number, has_minutes, MEMBER(ctime)},
    {"uid", INODE, read_number, has_value, MEMBER(uid)},
    {"gid", INODE, read_number, has_value, MEMBER(gid)},
    {"user", INODE, read_owner, is_of, MEMBER(uid)},
    {"group", INODE, read_owner, is_of, MEMBER(gid)},
    {"links", INODE, read_number, has_value, MEMBER(link_count)},
    {"perm", INODE, read_mode, has_mode, 0},
};

static const struct test_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static void release_test(struct bw_file_test *test)
{
    free(test->text);
    if (test->regex)
        regfree(test->regex);
    free(test->regex);
}

/* Building a selection. */

static struct bw_error *begin_set(struct bw_selection *selection, uint32_t *set)
{
    selection->open[selection->depth].has_test = false;
    selection->open[selection->depth].run[0] = selection->open[selection->depth].run[1] = 0;
    return bw_condition_add(&selection->condition, BW_CONDITION_ALL, 0, set);
}

/* At the level that the caller has chosen. */
static struct bw_error *begin_group(struct bw_selection *selection)
{
    struct bw_selection_level *level = &selection->open[selection->depth];
    level->negated = selection->negates;
    selection->negates = false;
    BW_TRY(begin_set(selection, &level->group));
    level->set = level->group;
    return NULL;
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
    bw_glob_open(&selection->glob);
    *result = selection;
    return NULL;
}

void bw_selection_destroy(struct bw_selection *selection)
{
    if (!selection)
        return;
    for (size_t i = 0; i < selection->count; i++)
        release_test(&selection->tests[i]);
    free(selection->tests);
    bw_condition_free(&selection->condition);
    bw_glob_close(&selection->glob);
    free(selection);
}

/* Operators. */

/* An error if an operator waits for a test after it. */
static struct bw_error *expect_no_operator(const struct bw_selection *selection)
{
    if (selection->negates)
        return bw_error_create(BW_ERROR_USAGE, "--not: no condition follows");
    if (selection->pending)
        return bw_error_create(BW_ERROR_USAGE, "%s has to be between two conditions",
                               selection->pending);
    return NULL;
}

/* "or" and "and" stand between two tests. */
static struct bw_error *add_operator(struct bw_selection *selection, const char *operator)
{
    BW_TRY(expect_no_operator(selection));
    selection->pending = operator;
    return selection->open[selection->depth].has_test ? NULL : expect_no_operator(selection);
}

struct bw_error *bw_selection_not(struct bw_selection *selection)
{
    selection->negates = !selection->negates;
    return NULL;
}

struct bw_error *bw_selection_or(struct bw_selection *selection)
{
    struct bw_selection_level *level = &selection->open[selection->depth];
    BW_TRY(add_operator(selection, "--or"));
    selection->is_flat = false;
    BW_TRY(begin_set(selection, &level->set));
    return bw_condition_join(&selection->condition, BW_CONDITION_ANY, level->group, level->set);
}

struct bw_error *bw_selection_and(struct bw_selection *selection)
{
    BW_TRY(add_operator(selection, "--and"));
    memset(selection->open[selection->depth].run, 0, sizeof selection->open->run);
    return NULL;
}

struct bw_error *bw_selection_open(struct bw_selection *selection)
{
    if (selection->depth + 1 == BW_MOST_GROUPS)
        return bw_error_create(BW_ERROR_USAGE, "more than %u nested parentheses",
                               BW_MOST_GROUPS - 1);
    selection->is_flat = false;
    selection->pending = NULL;
    struct bw_selection_level *outer = &selection->open[selection->depth++];
    BW_TRY(begin_group(selection));
    outer->has_test = true;
    return bw_condition_join(&selection->condition, BW_CONDITION_ALL, outer->set,
                             selection->open[selection->depth].group);
}

struct bw_error *bw_selection_close(struct bw_selection *selection)
{
    const struct bw_selection_level *level = &selection->open[selection->depth];
    if (!selection->depth)
        return bw_error_create(BW_ERROR_USAGE, "a ')' has no '(' before it");
    BW_TRY(expect_no_operator(selection));
    if (!level->has_test)
        return bw_error_create(BW_ERROR_USAGE, "the parentheses are empty");
    selection->condition.nodes[level->group].negated = level->negated;
    selection->depth--;
    return NULL;
}

/* Tests. */

/* Adds a test to the current set. Of names and of types one has to pass, up to the next "and". */
static struct bw_error *add_node(struct bw_selection *selection, const struct bw_file_test *test)
{
    struct bw_selection_level *level = &selection->open[selection->depth];
    struct bw_condition *condition = &selection->condition;
    const bool joins_run = test->class == ANY_NAME || test->class == ANY_TYPE;
    uint32_t *run = &level->run[test->class == ANY_TYPE], node;
    level->has_test = true;
    if (test->class == EXCLUDE)
        return NULL;
    BW_TRY(bw_condition_add(condition, BW_CONDITION_TEST, (uint32_t)selection->count, &node));
    condition->nodes[node].negated = selection->negates;
    if (joins_run && *run)
        return bw_condition_join(condition, BW_CONDITION_ANY, *run, node);
    if (joins_run)
        *run = node;
    return bw_condition_join(condition, BW_CONDITION_ALL, level->set, node);
}

/* Takes over what the test owns. */
static struct bw_error *add_test(struct bw_selection *selection, struct bw_file_test *test)
{
    struct bw_error *error =
        BW_ARRAY_RESERVE(selection->tests, selection->count, selection->capacity)
            ? add_node(selection, test)
            : bw_error_no_memory();
    if (error) {
        release_test(test);
        return error;
    }
    selection->tests[selection->count++] = *test;
    selection->has_exclude |= test->class == EXCLUDE;
    selection->has_inodes |= test->class == INODE;
    selection->negates = false;
    selection->pending = NULL;
    return NULL;
}

struct bw_error *bw_selection_add_types(struct bw_selection *selection, unsigned types)
{
    return add_test(selection, &(struct bw_file_test){.class = selection->negates ? TYPE : ANY_TYPE,
                                                      .types = types});
}

unsigned bw_selection_default_types(struct bw_selection *selection, unsigned types)
{
    selection->default_types = types;
    return bw_selection_types(selection);
}

static struct bw_error *read_argument(struct bw_file_test *test, const char *name,
                                      const char *argument)
{
    struct bw_error *error = test->kind->read ? test->kind->read(argument, test) : NULL;
    return error && error->code == BW_ERROR_USAGE
               ? bw_error_prefix(error, "--%s '%s'", name, argument)
               : error;
}

struct bw_error *bw_selection_add(struct bw_selection *selection, const char *name,
                                  const char *argument)
{
    struct bw_file_test test = {.kind = find_kind(name)};
    if (!test.kind)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s", name);
    test.class = test.kind->class;
    if (selection->negates && test.class == EXCLUDE)
        return bw_error_create(BW_ERROR_USAGE, "--not goes before a condition, not --%s", name);
    if (selection->negates && test.class == ANY_NAME)
        test.class = NAME;
    BW_TRY(read_argument(&test, name, argument));
    return add_test(selection, &test);
}

/* Names of users and groups. */

static struct bw_error *look_up_owner(struct bw_file_test *test,
                                      const struct bw_user_names *user_names)
{
    const bool is_user = strcmp(test->kind->name, "user") == 0;
    uint32_t number;
    if (!(is_user ? bw_user_names_find_user : bw_user_names_find_group)(user_names, test->text,
                                                                        &number))
        return bw_error_create(BW_ERROR_NOT_FOUND, "--%s '%s': %s%s has no such name",
                               test->kind->name, test->text, bw_user_names_place(user_names),
                               is_user ? "/etc/passwd" : "/etc/group");
    test->number = number;
    test->is_unknown = false;
    return NULL;
}

static bool has_owner_name(const struct bw_file_test *test)
{
    return test->is_unknown && test->text;
}

struct bw_error *bw_selection_prepare(struct bw_selection *selection, struct bw_fs *fs,
                                      const struct bw_subvolume *from)
{
    struct bw_user_names *user_names = NULL;
    struct bw_error *error = NULL;
    BW_TRY(expect_no_operator(selection));
    if (selection->depth)
        return bw_error_create(BW_ERROR_USAGE, "a '(' has no ')' after it");
    for (size_t i = 0; i < selection->count && !error; i++) {
        if (!has_owner_name(&selection->tests[i]))
            continue;
        if (!user_names)
            error = bw_user_names_open(fs, from, &user_names);
        if (!error)
            error = look_up_owner(&selection->tests[i], user_names);
    }
    bw_user_names_close(user_names);
    return error;
}
/* Testing a file. */

/* A file that passes a test of its type is selected independently of the default types. Without a
 * name or file, its tests are not known yet, or no longer matter: then they pass. */
static enum bw_verdict evaluate_test(const void *context, uint32_t number, bool negated)
{
    const struct candidate *candidate = context;
    const struct bw_named *named = candidate->named;
    const struct bw_file_test *test = &candidate->selection->tests[number];
    bool passes;
    switch (test->class) {
    case ANY_TYPE:
    case TYPE:
        return !named || (test->types >> named->type & 1) != negated ? BW_STRONG_YES : BW_NO;
    case INODE:
        passes = !candidate->file ||
                 (candidate->file->inode && test->kind->passes(candidate, test) != negated);
        break;
    default:
        passes = !named || !named->path || test->kind->passes(candidate, test) != negated;
    }
    return passes ? BW_YES : BW_NO;
}

static bool accepts_candidate(const struct candidate *candidate)
{
    const struct bw_selection *selection = candidate->selection;
    const enum bw_verdict verdict =
        bw_condition_evaluate(&selection->condition, evaluate_test, candidate);
    const unsigned types = verdict == BW_STRONG_YES ? BW_WALK_ALL : selection->default_types;
    return verdict && (!candidate->named || types >> candidate->named->type & 1);
}

unsigned bw_selection_types(const struct bw_selection *selection)
{
    unsigned types = 0;
    for (unsigned type = 0; type <= BW_FILE_SYMLINK; type++) {
        const struct bw_named named = {.type = (uint8_t)type};
        types |= (unsigned)accepts_candidate(&(struct candidate){selection, &named, NULL}) << type;
    }
    return types;
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return selection->has_inodes;
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct candidate candidate = {selection, named, NULL};
    for (size_t i = 0; selection && selection->has_exclude && i < selection->count; i++)
        if (selection->tests[i].class == EXCLUDE &&
            selection->tests[i].kind->passes(&candidate, &selection->tests[i]))
            return true;
    return false;
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    return accepts_candidate(&(struct candidate){selection, named, NULL});
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
    struct bw_named named;
    struct candidate candidate = {selection, NULL, file};
    if (!selection->has_inodes)
        return true;
    if (!selection->is_flat) {
        named = name_of(file->path, file->path_length);
        named.number = file->number;
        named.type = file->type;
        candidate.named = &named;
    }
    return accepts_candidate(&candidate);
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

/* Types and depth. */

static_assert(BW_WALK_FILES == 1 << BW_FILE_REGULAR &&
                  BW_WALK_DIRECTORIES == 1 << BW_FILE_DIRECTORY &&
                  BW_WALK_CHARACTER_DEVICES == 1 << BW_FILE_CHARACTER_DEVICE &&
                  BW_WALK_BLOCK_DEVICES == 1 << BW_FILE_BLOCK_DEVICE &&
                  BW_WALK_FIFOS == 1 << BW_FILE_FIFO && BW_WALK_SOCKETS == 1 << BW_FILE_SOCKET &&
                  BW_WALK_SYMLINKS == 1 << BW_FILE_SYMLINK,
              "the masks of types shift a bit by the number of the type");

struct bw_choice bw_choice_of(const struct bw_walk_options *options)
{
    struct bw_choice choice = {.types = options->types ? options->types : BW_WALK_FILES,
                               .has_maxdepth = options->has_maxdepth,
                               .maxdepth = options->maxdepth,
                               .mindepth = options->mindepth,
                               .part = options->part,
                               .parts = options->parts};
    if (options->selection && options->selection->count)
        choice.selection = options->selection;
    choice.is_plain = choice.types == BW_WALK_FILES && !choice.has_maxdepth && !choice.mindepth &&
                      !choice.selection && !choice.parts;
    return choice;
}

void bw_choice_start(struct bw_choice *choice, const char *path, size_t length, bool single)
{
    choice->start_depth = bw_path_names(path, length) + single;
}

unsigned bw_choice_depth(const struct bw_choice *choice, const char *path, size_t length)
{
    const bool matters = choice->has_maxdepth || choice->mindepth;
    return matters ? bw_path_names(path, length) - choice->start_depth : 0;
}

bool bw_part_contains(unsigned part, unsigned parts, uint64_t subvolume, uint64_t inode)
{
    return !parts || bw_hash_mix(subvolume, inode) % parts + 1 == part;
}

bool bw_choice_lists(const struct bw_choice *choice, uint64_t subvolume,
                     const struct bw_named *named, unsigned depth)
{
    return bw_part_contains(choice->part, choice->parts, subvolume, named->number) &&
           choice->types >> named->type & 1 && depth >= choice->mindepth &&
           (!choice->selection || bw_selection_takes_name(choice->selection, named));
}
