/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making selections: a table of the conditions' names, and the reading of their arguments. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/human.h"
#include "select/selection_parts.h"

struct bw_error *bw_selection_create(struct bw_selection **result)
{
    struct bw_selection *selection = calloc(1, sizeof *selection);
    struct timespec now;
    if (!selection)
        return bw_error_no_memory();
    clock_gettime(CLOCK_REALTIME, &now);
    selection->now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
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

static void free_list(struct bw_condition_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_condition(&list->items[i]);
    free(list->items);
}

void bw_selection_destroy(struct bw_selection *selection)
{
    if (!selection)
        return;
    free_list(&selection->any_name);
    free_list(&selection->names);
    free_list(&selection->exclude);
    free_list(&selection->inodes);
    if (selection->locale)
        freelocale(selection->locale);
    free(selection);
}

/* Arguments. Each reader takes one and says what is wrong with it. */

typedef struct bw_error *argument_reader(const struct bw_selection *selection, const char *argument,
                                         struct bw_condition *condition);

/* What is said in front of this is the argument. */
static struct bw_error *wrong(const char *reason)
{
    return bw_error_create(BW_ERROR_USAGE, "%s", reason);
}

static struct bw_error *read_pattern(const struct bw_selection *selection, const char *argument,
                                     struct bw_condition *condition)
{
    const char *problem = bw_glob_problem(argument, strlen(argument));
    (void)selection;
    if (problem)
        return wrong(problem);
    condition->pattern = strdup(argument);
    condition->pattern_length = strlen(argument);
    return condition->pattern ? NULL : bw_error_no_memory();
}

static struct bw_error *read_regex(const struct bw_selection *selection, const char *argument,
                                   struct bw_condition *condition)
{
    char problem[128];
    (void)selection;
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

static enum bw_comparison take_sign(const char **text)
{
    enum bw_comparison comparison = **text == '+' ? BW_MORE : **text == '-' ? BW_LESS : BW_EQUAL;
    *text += comparison != BW_EQUAL;
    return comparison;
}

static struct bw_error *read_number(const struct bw_selection *selection, const char *argument,
                                    struct bw_condition *condition)
{
    (void)selection;
    condition->comparison = take_sign(&argument);
    return bw_parse_digits(&argument, 10, &condition->number) && !*argument
               ? NULL
               : wrong("this is a number, perhaps with + or - in front of it: +3");
}

static struct bw_error *read_size(const struct bw_selection *selection, const char *argument,
                                  struct bw_condition *condition)
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
    (void)selection;
    condition->comparison = take_sign(&argument);
    bool good = bw_parse_digits(&argument, 10, &condition->number);
    const struct bw_unit *unit = bw_unit_find(units, argument, strlen(argument));
    condition->unit = unit ? unit->factor : 1;
    return good && unit ? NULL
                        : wrong("a size is a number, perhaps with + or - in front and one of "
                                "c w b k M G T behind: +1M");
}

static struct bw_error *read_mode(const struct bw_selection *selection, const char *argument,
                                  struct bw_condition *condition)
{
    (void)selection;
    condition->mode_test = *argument == '-'   ? BW_MODE_HAS_ALL
                           : *argument == '/' ? BW_MODE_HAS_ANY
                                              : BW_MODE_IS;
    argument += condition->mode_test != BW_MODE_IS;
    return bw_parse_digits(&argument, 8, &condition->number) && !*argument &&
                   condition->number <= 07777
               ? NULL
               : wrong("a mode is octal, at most 7777, perhaps with - (all of) or / (any of) in "
                       "front: -022");
}

static struct bw_error *read_time(const struct bw_selection *selection, const char *argument,
                                  struct bw_condition *condition)
{
    (void)selection;
    return bw_parse_date(argument, &condition->time)
               ? NULL
               : wrong("a time is YYYY-MM-DD, perhaps with HH:MM[:SS[.N]] and Z or +HH:MM behind, "
                       "or @SECONDS "
                       "since 1970");
}

/* Conditions. */

enum list { ANY_NAME, NAMES, EXCLUDE, INODES };

static const struct kind {
    const char *name;
    enum list list;
    argument_reader *read; /* NULL: it has no argument */
    bw_name_test *test_name;
    bw_inode_test *test_inode;
} kinds[] = {
    {"name", ANY_NAME, read_pattern, bw_test_name, NULL},
    {"iname", ANY_NAME, read_pattern, bw_test_iname, NULL},
    {"path", NAMES, read_pattern, bw_test_path, NULL},
    {"regex", NAMES, read_regex, bw_test_regex, NULL},
    {"inum", NAMES, read_number, bw_test_inum, NULL},
    {"exclude", EXCLUDE, read_pattern, bw_test_name_or_path, NULL},
    {"size", INODES, read_size, NULL, bw_test_size},
    {"newer", INODES, read_time, NULL, bw_test_newer},
    {"mtime", INODES, read_number, NULL, bw_test_mtime},
    {"uid", INODES, read_number, NULL, bw_test_uid},
    {"gid", INODES, read_number, NULL, bw_test_gid},
    {"links", INODES, read_number, NULL, bw_test_links},
    {"perm", INODES, read_mode, NULL, bw_test_perm},
    {"empty", INODES, NULL, NULL, bw_test_empty},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static struct bw_condition_list *list_of(struct bw_selection *selection, enum list list)
{
    switch (list) {
    case ANY_NAME:
        return &selection->any_name;
    case NAMES:
        return &selection->names;
    case EXCLUDE:
        return &selection->exclude;
    default:
        return &selection->inodes;
    }
}

struct bw_error *bw_selection_add(struct bw_selection *selection, const char *name,
                                  const char *argument)
{
    const struct kind *kind = find_kind(name);
    if (!kind)
        return bw_error_create(BW_ERROR_USAGE, "unknown condition %s", name);
    struct bw_condition condition = {.name = kind->test_name, .inode = kind->test_inode};
    struct bw_condition_list *list = list_of(selection, kind->list);
    if (kind->read) {
        struct bw_error *error = kind->read(selection, argument, &condition);
        if (error)
            return error->code == BW_ERROR_USAGE
                       ? bw_error_prefix(error, "--%s '%s'", name, argument)
                       : error;
    }
    if (!BW_ARRAY_RESERVE(list->items, list->count, list->capacity)) {
        free_condition(&condition);
        return bw_error_no_memory();
    }
    list->items[list->count++] = condition;
    return NULL;
}
