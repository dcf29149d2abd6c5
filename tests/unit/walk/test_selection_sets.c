/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of conditions: "or", "not", and empty ones. */
#include "support/walk_helpers.h"
#include "walk/selection.h"

static bool takes(const struct bw_selection *selection, const char *path, uint8_t type,
                  const struct bw_inode *inode)
{
    struct bw_named named = {path, strlen(path), strlen(path) - 1, 300, type};
    const struct bw_walked_file file = {
        .path = path, .path_length = strlen(path), .type = type, .number = 300, .inode = inode};
    return bw_selection_takes_name(selection, &named) && bw_selection_takes_inode(selection, &file);
}

static void test_alternatives(void **state)
{
    (void)state;
    const struct bw_inode large = {.size = 5000}, small = {.size = 5};
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_add(selection, "name", "*.a"));
    expect_success(bw_selection_add(selection, "name", "*.b"));
    expect_success(bw_selection_add(selection, "size", "+4k"));
    expect_success(bw_selection_or(selection));
    bw_selection_add_types(selection, BW_WALK_DIRECTORIES);
    expect_success(bw_selection_not(selection));
    expect_success(bw_selection_add(selection, "name", "*.c"));
    expect_success(bw_selection_prepare(selection, NULL, NULL));
    assert_int_equal(bw_selection_default_types(selection, BW_WALK_FILES),
                     BW_WALK_FILES | BW_WALK_DIRECTORIES);
    assert_true(takes(selection, "/x.a", BW_FILE_REGULAR, &large));
    assert_true(takes(selection, "/x.b", BW_FILE_REGULAR, &large));
    assert_false(takes(selection, "/x.a", BW_FILE_REGULAR, &small));
    assert_false(takes(selection, "/x.a", BW_FILE_REGULAR, NULL));
    assert_false(takes(selection, "/x.d", BW_FILE_REGULAR, &large));
    assert_true(takes(selection, "/x.a", BW_FILE_DIRECTORY, &small));
    assert_true(takes(selection, "/x.d", BW_FILE_DIRECTORY, NULL));
    assert_false(takes(selection, "/x.c", BW_FILE_DIRECTORY, &large));
    assert_false(takes(selection, "/x.c", BW_FILE_FIFO, &large));
    bw_selection_destroy(selection);
}

static void test_not(void **state)
{
    (void)state;
    const struct bw_inode large = {.size = 5000}, small = {.size = 5};
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_not(selection));
    expect_success(bw_selection_add(selection, "size", "+4k"));
    expect_success(bw_selection_not(selection));
    bw_selection_add_types(selection, BW_WALK_DIRECTORIES);
    expect_success(bw_selection_not(selection));
    expect_success(bw_selection_not(selection));
    expect_success(bw_selection_add(selection, "name", "a"));
    assert_true(takes(selection, "/a", BW_FILE_REGULAR, &small));
    assert_true(takes(selection, "/a", BW_FILE_FIFO, &small));
    assert_false(takes(selection, "/b", BW_FILE_REGULAR, &small));
    assert_false(takes(selection, "/a", BW_FILE_REGULAR, &large));
    assert_false(takes(selection, "/a", BW_FILE_DIRECTORY, &small));
    assert_false(takes(selection, "/a", BW_FILE_REGULAR, NULL)); /* not known is not "not" */
    bw_selection_destroy(selection);
}

/* The same rules as find's: "not" before "and" before "or"; sets without a type have the default.
 */
static void test_parentheses(void **state)
{
    (void)state;
    const struct bw_inode large = {.size = 5000}, small = {.size = 5};
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_not(selection));
    expect_success(bw_selection_open(selection)); /* ! ( a -o ( b -size +4k -type d ) ) */
    expect_success(bw_selection_add(selection, "name", "a"));
    expect_success(bw_selection_or(selection));
    expect_success(bw_selection_open(selection));
    expect_success(bw_selection_add(selection, "name", "b"));
    expect_success(bw_selection_add(selection, "size", "+4k"));
    expect_success(bw_selection_add_types(selection, BW_WALK_DIRECTORIES));
    expect_success(bw_selection_close(selection));
    expect_success(bw_selection_close(selection));
    expect_success(bw_selection_prepare(selection, NULL, NULL));
    assert_int_equal(bw_selection_default_types(selection, BW_WALK_FILES),
                     BW_WALK_ALL & ~BW_WALK_DIRECTORIES);
    assert_false(takes(selection, "/a", BW_FILE_REGULAR, &small));
    assert_false(takes(selection, "/a", BW_FILE_FIFO, &small));
    assert_true(takes(selection, "/b", BW_FILE_REGULAR, &large));
    assert_true(takes(selection, "/b", BW_FILE_FIFO, &large));
    assert_true(takes(selection, "/b", BW_FILE_REGULAR, NULL)); /* its name or type decides */
    assert_false(takes(selection, "/b", BW_FILE_DIRECTORY, &small));
    bw_selection_default_types(selection, BW_WALK_ALL);
    assert_false(takes(selection, "/b", BW_FILE_DIRECTORY, &large));
    assert_true(takes(selection, "/b", BW_FILE_DIRECTORY, &small));
    assert_false(takes(selection, "/b", BW_FILE_DIRECTORY, NULL));
    bw_selection_destroy(selection);
}

static void test_and(void **state)
{
    (void)state;
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_add(selection, "name", "a*"));
    expect_success(bw_selection_add(selection, "name", "b*"));
    expect_success(bw_selection_and(selection));
    expect_success(bw_selection_add(selection, "name", "*c"));
    expect_success(bw_selection_add(selection, "name", "*d"));
    assert_true(takes(selection, "/ac", BW_FILE_REGULAR, NULL));
    assert_true(takes(selection, "/bd", BW_FILE_REGULAR, NULL));
    assert_false(takes(selection, "/ab", BW_FILE_REGULAR, NULL));
    assert_false(takes(selection, "/xd", BW_FILE_REGULAR, NULL));
    bw_selection_destroy(selection);
}

/* An empty intersection of types selects nothing, rather than the default. */
static void test_no_type(void **state)
{
    (void)state;
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_success(bw_selection_add_types(selection, BW_WALK_FILES));
    expect_success(bw_selection_and(selection));
    expect_success(bw_selection_add_types(selection, BW_WALK_DIRECTORIES));
    assert_int_equal(bw_selection_default_types(selection, BW_WALK_FILES), 0);
    assert_false(takes(selection, "/a", BW_FILE_REGULAR, NULL));
    assert_true(selection->count);
    bw_selection_destroy(selection);
}

static void test_parentheses_alone(void **state)
{
    (void)state;
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_error(bw_selection_close(selection), BW_ERROR_USAGE, "no '('");
    for (unsigned i = 1; i < BW_MOST_GROUPS; i++)
        expect_success(bw_selection_open(selection));
    expect_error(bw_selection_open(selection), BW_ERROR_USAGE, "more than 63");
    expect_error(bw_selection_close(selection), BW_ERROR_USAGE, "parentheses are empty");
    expect_success(bw_selection_add(selection, "name", "a"));
    expect_error(bw_selection_prepare(selection, NULL, NULL), BW_ERROR_USAGE, "no ')'");
    for (unsigned i = 1; i < BW_MOST_GROUPS; i++)
        expect_success(bw_selection_close(selection));
    expect_success(bw_selection_prepare(selection, NULL, NULL));
    assert_true(takes(selection, "/a", BW_FILE_REGULAR, NULL));
    assert_false(takes(selection, "/b", BW_FILE_REGULAR, NULL));
    bw_selection_destroy(selection);
}

static void test_operators_without_conditions(void **state)
{
    (void)state;
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    expect_error(bw_selection_or(selection), BW_ERROR_USAGE, "--or");
    expect_success(bw_selection_not(selection));
    expect_error(bw_selection_prepare(selection, NULL, NULL), BW_ERROR_USAGE, "--not");
    expect_error(bw_selection_add(selection, "exclude", "a"), BW_ERROR_USAGE, "--exclude");
    expect_success(bw_selection_add(selection, "name", "a"));
    expect_success(bw_selection_or(selection));
    expect_error(bw_selection_or(selection), BW_ERROR_USAGE, "--or");
    bw_selection_default_types(selection, BW_WALK_FILES);
    expect_error(bw_selection_prepare(selection, NULL, NULL), BW_ERROR_USAGE, "--or");
    bw_selection_destroy(selection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_not),
        cmocka_unit_test(test_parentheses),
        cmocka_unit_test(test_and),
        cmocka_unit_test(test_no_type),
        cmocka_unit_test(test_parentheses_alone),
        cmocka_unit_test(test_operators_without_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
