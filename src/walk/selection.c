/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selections: the tests of find(1), how arguments are read, and how files are tested.
 *
 * A selection is one list of tests. A file must pass all of them, but of several patterns or owners
 * for one test, one is enough; such tests lie next to each other in the list. Tests of names are
 * decided when a directory is read; those of inodes later, for files whose names have passed. A
 * table has, for each test, how its argument is read and how it decides.
 */
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/glob.h"
#include "base/hash_mix.h"
#include "base/human.h"
#include "base/nearest.h"
#include "base/path.h"
#include "btrfs-walk/subvolume.h"
#include "walk/walk.h"

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)
#define MINUTE (60 * SECOND)

enum { MODE_BITS = 07777 };

/* The input of a test. */
enum test_class {
    NAME,
    INODE,
    EXCLUDE, /* no part of the list: none of these may pass */
    XATTR,   /* attributes are read last, only for files that pass everything else */
};

/* How a test decides. */
enum test_method {
    MATCHES_NAME,
    MATCHES_PATH,
    MATCHES_EITHER,
    MATCHES_REGEX,
    HAS_SIZE,
    IS_EMPTY,
    IS_NEWER,
    HAS_DAYS,
    HAS_MINUTES,
    HAS_VALUE,
    HAS_MODE,
    IS_LATER, /* generation */
    HAS_XATTR,
};

/* A kind of test, by the name it has on the command line. */
struct test_kind {
    const char *name;
    enum test_class class;
    bool has_alternatives; /* of several tests of this kind, one has to pass; otherwise all */
    struct bw_error *(*read)(const char *argument, struct bw_file_test *test); /* NULL: it has no
                                                                                  argument */
    enum test_method method;
    size_t member; /* of struct bw_inode: the compared member */
};

struct bw_file_test {
    const struct test_kind *kind;
    char *text;     /* a pattern, or the name of a user or group; owned */
    regex_t *regex; /* owned */
    enum { EQUAL, MORE, LESS } comparison;
    enum { MODE_IS, MODE_HAS_ALL, MODE_HAS_ANY } mode_test;
    bool is_unknown;         /* a user or group that has no number: no file is theirs */
    uint64_t number;         /* also the mode */
    uint64_t of_directories; /* the mode for those */
    uint64_t unit;           /* of a size: bytes */
    int64_t time;            /* nanoseconds since 1970 */
};

BW_VECTOR_FUNCTIONS(bw_file_tests, struct bw_file_test);

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
    int comparison = EQUAL;
    if (**text == '+')
        comparison = MORE;
    else if (**text == '-')
        comparison = LESS;
    *text += comparison != EQUAL;
    return comparison;
}

static struct bw_error *read_number(const char *argument, struct bw_file_test *test)
{
    test->comparison = (unsigned)read_sign(&argument);
    if (bw_parse_digits(&argument, 10, &test->number) && !*argument)
        return NULL;
    return refuse_argument("this is a number, perhaps with + or - before it: +3");
}

static struct bw_error *read_generation(const char *argument, struct bw_file_test *test)
{
    if (bw_parse_digits(&argument, 10, &test->number) && !*argument)
        return NULL;
    return refuse_argument("this is the number of a generation");
}

static struct bw_error *read_size(const char *argument, struct bw_file_test *test)
{
    char one[8]; /* 1 and the unit, for bw_parse_size() */
    const char *unit = one;
    test->comparison = (unsigned)read_sign(&argument);
    bool good = bw_parse_digits(&argument, 10, &test->number);

    /* The units that only find(1) has are blocks, also without a unit, words, and characters. */
    test->unit = 0;
    if (strcmp(argument, "b") == 0 || !*argument)
        test->unit = 512;
    else if (strcmp(argument, "w") == 0)
        test->unit = 2;
    else if (strcmp(argument, "c") == 0)
        test->unit = 1;
    else if (snprintf(one, sizeof one, "1%s", argument) < (int)sizeof one)
        good = good && bw_parse_size(&unit, &test->unit) && !*unit;
    if (good && test->unit)
        return NULL;
    return refuse_argument(
        "a size is a number, perhaps with + or - before and one of c w b k M G T, "
        "or MB and the like after it: +1M");
}

static struct bw_error *read_mode(const char *argument, struct bw_file_test *test)
{
    uint32_t mode, of_directories;
    test->mode_test = MODE_IS;
    if (*argument == '-')
        test->mode_test = MODE_HAS_ALL;
    else if (*argument == '/')
        test->mode_test = MODE_HAS_ANY;
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
    if (bw_parse_date(argument, &test->time))
        return NULL;
    return refuse_argument(
        "a time from 1678 to 2262 is YYYY-MM-DD, perhaps with HH:MM[:SS[.N]] and Z or +HH:MM, "
        "or @SECONDS since 1970");
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

/* The table of tests. */

#define MEMBER(name) offsetof(struct bw_inode, name)

static const struct test_kind kinds[] = {
    {"name", NAME, true, keep_text, MATCHES_NAME, 0},
    {"iname", NAME, true, keep_text, MATCHES_NAME, 0},
    {"path", NAME, true, keep_text, MATCHES_PATH, 0},
    {"ipath", NAME, true, keep_text, MATCHES_PATH, 0},
    {"regex", NAME, true, read_regex, MATCHES_REGEX, 0},
    {"iregex", NAME, true, read_regex, MATCHES_REGEX, 0},
    {"exclude", EXCLUDE, true, keep_text, MATCHES_EITHER, 0},
    {"size", INODE, false, read_size, HAS_SIZE, 0},
    {"empty", INODE, false, NULL, IS_EMPTY, 0},
    {"newer", INODE, false, read_time, IS_NEWER, MEMBER(mtime)},
    {"newerat", INODE, false, read_time, IS_NEWER, MEMBER(atime)},
    {"newerct", INODE, false, read_time, IS_NEWER, MEMBER(ctime)},
    {"newerBt", INODE, false, read_time, IS_NEWER, MEMBER(otime)},
    {"mtime", INODE, false, read_number, HAS_DAYS, MEMBER(mtime)},
    {"atime", INODE, false, read_number, HAS_DAYS, MEMBER(atime)},
    {"ctime", INODE, false, read_number, HAS_DAYS, MEMBER(ctime)},
    {"mmin", INODE, false, read_number, HAS_MINUTES, MEMBER(mtime)},
    {"amin", INODE, false, read_number, HAS_MINUTES, MEMBER(atime)},
    {"cmin", INODE, false, read_number, HAS_MINUTES, MEMBER(ctime)},
    {"uid", INODE, false, read_number, HAS_VALUE, MEMBER(uid)},
    {"gid", INODE, false, read_number, HAS_VALUE, MEMBER(gid)},
    {"user", INODE, true, read_owner, HAS_VALUE, MEMBER(uid)},
    {"group", INODE, true, read_owner, HAS_VALUE, MEMBER(gid)},
    {"links", INODE, false, read_number, HAS_VALUE, MEMBER(link_count)},
    {"perm", INODE, false, read_mode, HAS_MODE, 0},
    {"newer-generation", INODE, false, read_generation, IS_LATER, MEMBER(transid)},
    {"xattr", XATTR, true, keep_text, HAS_XATTR, 0},
};

/* Deciding a test. */

static bool compares_as_wanted(const struct bw_file_test *test, uint64_t value)
{
    if (test->comparison == MORE)
        return value > test->number;
    if (test->comparison == LESS)
        return value < test->number;
    return value == test->number;
}

/* Whether a test of names passes. A NUL follows each path. */
static bool passes_by_name(const struct bw_selection *selection, const struct bw_file_test *test,
                           const struct bw_named *named)
{
    const int flags = *test->kind->name == 'i' ? FNM_CASEFOLD : 0;
    const char *name = named->path + named->path_length - named->name_length;
    const enum test_method method = test->kind->method;
    regmatch_t match;
    /* regexec() reports the longest of the leftmost matches: if the whole path can match, that is
     * the match. */
    if (method == MATCHES_REGEX)
        return regexec(test->regex, named->path, 1, &match, 0) == 0 && match.rm_so == 0 &&
               (size_t)match.rm_eo == named->path_length;
    if (method != MATCHES_PATH &&
        bw_glob_matches(&selection->glob, test->text, name, named->name_length, flags))
        return true;
    return method != MATCHES_NAME &&
           bw_glob_matches(&selection->glob, test->text, named->path, named->path_length, flags);
}

/* Whether a test of inodes passes. */
static bool passes_by_inode(const struct bw_selection *selection, const struct bw_file_test *test,
                            const struct bw_walked_file *file)
{
    const struct bw_inode *inode = file->inode;
    const void *member = (const char *)inode + test->kind->member;
    const uint64_t most_minutes = INT64_MAX / MINUTE;
    uint64_t mode = inode->mode & MODE_BITS, wanted = test->number;
    int64_t age = 0, limit;
    if (test->kind->method == HAS_DAYS || test->kind->method == HAS_MINUTES) {
        const struct timespec *time = member;
        if (__builtin_sub_overflow(selection->now, bw_time_nanoseconds(time), &age))
            age = time->tv_sec < 0 ? INT64_MAX : INT64_MIN;
    }
    switch (test->kind->method) {
    case HAS_SIZE: /* in units, rounded up */
        return compares_as_wanted(test, inode->size / test->unit + (inode->size % test->unit != 0));
    case IS_EMPTY: /* the size of a directory is twice the length of the names in it */
        return (file->type == BW_FILE_REGULAR || file->type == BW_FILE_DIRECTORY) &&
               inode->size == 0;
    case IS_NEWER:
        return bw_time_nanoseconds(member) > test->time;
    case HAS_DAYS:
        /* Whole days must have passed; a time in the future is less than any number of days ago,
         * and none exactly. */
        if (age < 0)
            return test->comparison == LESS;
        return compares_as_wanted(test, (uint64_t)(age / DAY));
    case HAS_MINUTES:
        /* Unlike days, minutes are rounded up: 0 means changed in the coming minute. */
        limit = (int64_t)(test->number < most_minutes ? test->number : most_minutes) * MINUTE;
        if (test->comparison == MORE)
            return age > limit;
        return age < limit && (test->comparison == LESS || age >= limit - MINUTE);
    case HAS_VALUE: /* owner, group and links are alike */
        return !test->is_unknown && compares_as_wanted(test, *(const uint32_t *)member);
    case IS_LATER:
        return *(const uint64_t *)member > test->number;
    case HAS_MODE:
        if (S_ISDIR(inode->mode))
            wanted = test->of_directories;
        if (test->mode_test == MODE_IS)
            return mode == wanted;
        if (test->mode_test == MODE_HAS_ANY && wanted)
            return (mode & wanted) != 0;
        return (mode & wanted) == wanted;
    default:
        return false;
    }
}

static void release_test(struct bw_file_test *test)
{
    free(test->text);
    if (test->regex)
        regfree(test->regex);
    free(test->regex);
}

/* Building a selection. */

struct bw_error *bw_selection_create(struct bw_selection **result)
{
    struct bw_selection *selection = calloc(1, sizeof *selection);
    if (!selection)
        return bw_error_no_memory();
    selection->now = bw_clock(CLOCK_REALTIME);
    bw_glob_open(&selection->glob);
    *result = selection;
    return NULL;
}

void bw_selection_destroy(struct bw_selection *selection)
{
    if (!selection)
        return;
    for (size_t i = 0; i < selection->tests.count; i++)
        release_test(&selection->tests.items[i]);
    bw_file_tests_free(&selection->tests);
    bw_glob_close(&selection->glob);
    free(selection);
}

struct bw_error *bw_selection_add(struct bw_selection *selection, const char *name,
                                  const char *argument)
{
    struct bw_file_tests *tests = &selection->tests;
    struct bw_file_test test = {.kind = NULL};
    struct bw_error *error = NULL;
    struct bw_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !test.kind; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            test.kind = &kinds[i];
        else
            bw_nearest_try(&nearest, kinds[i].name);
    }
    if (!test.kind && nearest.best)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s (did you mean %s?)", name,
                               nearest.best);
    if (!test.kind)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s", name);
    if (test.kind->read && !argument)
        return bw_error_create(BW_ERROR_USAGE, "condition %s needs an argument", name);
    if (test.kind->read)
        error = test.kind->read(argument, &test);
    if (error && error->code == BW_ERROR_USAGE)
        error = bw_error_prefix(error, "%s '%s'", name, argument);

    /* Tests of one kind lie next to each other. */
    size_t at = tests->count;
    for (size_t i = 0; i < tests->count; i++)
        if (tests->items[i].kind == test.kind)
            at = i;
    if (!error)
        error = bw_file_tests_insert(tests, at, test);
    if (error) {
        release_test(&test);
        return error;
    }
    selection->has_exclude |= test.kind->class == EXCLUDE;
    selection->has_inodes |= test.kind->class == INODE;
    selection->has_xattrs |= test.kind->class == XATTR;
    return NULL;
}

/* Looks up the names of users and groups. */
struct bw_error *bw_selection_prepare(struct bw_selection *selection, struct bw_fs *fs,
                                      const struct bw_subvolume *from)
{
    struct bw_user_names *names = NULL;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < selection->tests.count && !error; i++) {
        struct bw_file_test *test = &selection->tests.items[i];
        const bool is_user = strcmp(test->kind->name, "user") == 0;
        uint32_t number;
        bool found;
        if (!test->is_unknown || !test->text)
            continue;
        if (!names)
            error = bw_user_names_open(fs, from, &names);
        if (error)
            break;
        if (is_user)
            found = bw_user_names_find_user(names, test->text, &number);
        else
            found = bw_user_names_find_group(names, test->text, &number);
        if (!found) {
            error = bw_error_create(BW_ERROR_NOT_FOUND, "%s '%s': %s%s has no such name",
                                    test->kind->name, test->text, bw_user_names_place(names),
                                    is_user ? "/etc/passwd" : "/etc/group");
            break;
        }
        test->number = number;
        test->is_unknown = false;
    }
    bw_user_names_close(names);
    return error;
}

/* Testing a file. */

/* Whether a test of a class passes. One of the other classes does. */
static bool passes(const struct bw_selection *selection, const struct bw_file_test *test,
                   enum test_class class, const struct bw_named *named,
                   const struct bw_walked_file *file)
{
    if (test->kind->class != class)
        return true;
    if (class == INODE)
        return passes_by_inode(selection, test, file);
    return passes_by_name(selection, test, named);
}

/* Whether all tests of a class pass; of several alternatives in a row, one. */
static bool passes_all(const struct bw_selection *selection, enum test_class class,
                       const struct bw_named *named, const struct bw_walked_file *file)
{
    const struct bw_file_test *test = selection->tests.items;
    const struct bw_file_test *const end = test + selection->tests.count;
    while (test < end) {
        const struct test_kind *kind = test->kind;
        bool good = passes(selection, test, class, named, file);
        for (test++; kind->has_alternatives && test < end && test->kind == kind; test++)
            good = good || passes(selection, test, class, named, file);
        if (!good)
            return false;
    }
    return true;
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return selection->has_inodes;
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    if (!selection || !selection->has_exclude)
        return false;
    for (size_t i = 0; i < selection->tests.count; i++) {
        const struct bw_file_test *test = &selection->tests.items[i];
        if (test->kind->class == EXCLUDE && passes_by_name(selection, test, named))
            return true;
    }
    return false;
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    return passes_all(selection, NAME, named, NULL);
}

bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file)
{
    return !selection->has_inodes || (file->inode && passes_all(selection, INODE, NULL, file));
}

bool bw_selection_takes_xattrs(const struct bw_selection *selection, const struct bw_xattr *xattrs,
                               size_t count)
{
    /* All tests are patterns of one kind: alternatives. */
    for (size_t i = 0; i < selection->tests.count; i++) {
        const struct bw_file_test *test = &selection->tests.items[i];
        for (size_t j = 0; test->kind->class == XATTR && j < count; j++)
            if (bw_glob_matches(&selection->glob, test->text, (const char *)xattrs[j].name,
                                xattrs[j].name_length, 0))
                return true;
    }
    return false;
}

/* The same for entries of the public headers. */

static struct bw_named name_of_entry(const struct bw_entry *entry)
{
    const char *slash = memrchr(entry->path, '/', entry->path_length);
    size_t before = slash && entry->path_length > 1 ? (size_t)(slash + 1 - entry->path) : 0;
    return (struct bw_named){.path = entry->path,
                             .path_length = entry->path_length,
                             .name_length = entry->path_length - before};
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
    const struct bw_walked_file file = {.type = bw_known_type(entry->place.type),
                                        .inode = entry->inode};
    return bw_selection_takes_inode(selection, &file);
}

bool bw_selection_needs_xattrs(const struct bw_selection *selection)
{
    return selection->has_xattrs;
}

struct bw_error *bw_selection_accepts_xattrs(const struct bw_selection *selection, struct bw_fs *fs,
                                             const struct bw_entry *entry, bool *accepts)
{
    struct bw_xattr_reader *reader = NULL;
    const struct bw_xattr *xattrs;
    size_t count;
    *accepts = !selection->has_xattrs;
    if (*accepts || entry->place.inode == BW_EMPTY_DIRECTORY)
        return NULL;
    struct bw_error *error = bw_xattr_reader_create(fs, &reader);
    if (!error)
        error = bw_xattr_reader_read(reader, &entry->place, &xattrs, &count);
    *accepts = !error && bw_selection_takes_xattrs(selection, xattrs, count);
    bw_xattr_reader_destroy(reader);
    return error;
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
    if (options->selection && options->selection->tests.count)
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
