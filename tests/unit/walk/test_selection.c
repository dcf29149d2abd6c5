/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every condition of a selection at its limits; dates; invalid values. */
#include "support/time_of.h"
#include "support/walk_helpers.h"
#include "walk/walk.h"

static struct bw_selection *make(const char *condition, const char *argument)
{
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    assert_int_equal(selection->tests.count, 0);
    expect_success(bw_selection_add(selection, condition, argument));
    assert_int_equal(selection->tests.count, 1);
    return selection;
}

static struct bw_named named_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    return (struct bw_named){path, length, slash[1] ? strlen(slash + 1) : length, 300,
                             BW_FILE_REGULAR};
}

static bool takes_path(const char *condition, const char *argument, const char *path)
{
    struct bw_selection *selection = make(condition, argument);
    const struct bw_named named = named_of(path);
    assert_false(bw_selection_needs_inode(selection));
    bool taken = bw_selection_takes_name(selection, &named);
    assert_false(bw_selection_excludes(selection, &named));
    bw_selection_destroy(selection);
    return taken;
}

/* Names. */

static void test_names(void **state)
{
    static const struct {
        const char *condition, *argument, *path;
        bool taken;
    } cases[] = {
        {"name", "*.txt", "/a/b.txt", true},   {"name", "*.txt", "/a.txt/b", false},
        {"name", "*.TXT", "/a/b.txt", false},  {"name", "*", "/a/.hidden", true},
        {"name", "a*", "/a/b", false},         {"name", "/", "/", true},
        {"name", "?", "/a/\xc3\x84", true},    {"iname", "*.TXT", "/a/b.txt", true},
        {"iname", "*.txt", "/a/B.TXT", true},  {"iname", "\xc3\xa4*", "/\xc3\x84-rger", true},
        {"iname", "[A-C]", "/b", true},        {"iname", "[a-c]", "/B", true},
        {"iname", "b\xff", "/B\xff", true},    {"iname", "b\xff", "/B\xfe", false},
        {"path", "/a/*", "/a/b/c", true},      {"path", "*", "/", true},
        {"path", "/a", "/a/b", false},         {"path", "*c", "/a/b/c", true},
        {"path", "/a?b", "/a/b", true},        {"path", "[!x]a[/]b", "/a/b", true},
        {"regex", "/a/.*", "/a/b/c", true},    {"regex", "/a", "/a/b", false},
        {"regex", "a/b", "/a/b", false},       {"regex", "/a|/a/b", "/a/b", true},
        {"regex", "/(a|b)/\\1", "/b/b", true}, {"regex", "/(a|b)/\\1", "/b/a", false},
        {"regex", "/.{2}", "/\xc3\x84", true}, {"regex", "/.*", "/new\nline", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (takes_path(cases[i].condition, cases[i].argument, cases[i].path) != cases[i].taken)
            fail_msg("--%s '%s' on %s", cases[i].condition, cases[i].argument, cases[i].path);
}

/* The longest name there can be, of letters that grow when they become small. */
static void test_long_names(void **state)
{
    char path[2 + BW_NAME_MAX] = "/";
    for (size_t i = 0; i + 2 <= BW_NAME_MAX; i += 2)
        memcpy(path + 1 + i, "\xc8\xba", 3);
    assert_true(takes_path("iname", "*\xe2\xb1\xa5", path));
    assert_true(takes_path("iname", "*\xc8\xba", path));
    assert_false(takes_path("iname", "*a", path));
}

/* Patterns of one test are alternatives, wherever they stand; different tests must all pass. */
static void test_any_name(void **state)
{
    struct bw_selection *selection = make("name", "*.a");
    const struct bw_named a = named_of("/x.a"), b = named_of("/x.B"), c = named_of("/y.c");
    expect_success(bw_selection_add(selection, "path", "/x*"));
    expect_success(bw_selection_add(selection, "name", "*.B"));
    assert_true(bw_selection_takes_name(selection, &a));
    assert_true(bw_selection_takes_name(selection, &b));
    expect_success(bw_selection_add(selection, "name", "*.c"));
    assert_false(bw_selection_takes_name(selection, &c));
    expect_success(bw_selection_add(selection, "path", "/y*"));
    assert_true(bw_selection_takes_name(selection, &c));
    expect_success(bw_selection_add(selection, "iname", "*.A"));
    assert_true(bw_selection_takes_name(selection, &a));
    assert_false(bw_selection_takes_name(selection, &b));
    expect_success(bw_selection_add(selection, "regex", "/x.A"));
    assert_false(bw_selection_takes_name(selection, &a));
    expect_success(bw_selection_add(selection, "regex", ".*a"));
    assert_true(bw_selection_takes_name(selection, &a));
    bw_selection_destroy(selection);
}

/* Owners are alternatives, too; numbers are not, so that two of them are a range. */
static void test_repeated_tests_of_inodes(void **state)
{
    const struct bw_inode mine = {.uid = 1, .size = 5}, large = {.uid = 2, .size = 50},
                          other = {.uid = 3, .size = 5};
    const struct bw_walked_file files[] = {{.inode = &mine}, {.inode = &large}, {.inode = &other}};
    struct bw_selection *selection = make("size", "+4c");
    expect_success(bw_selection_add(selection, "user", "1"));
    expect_success(bw_selection_add(selection, "size", "-10c"));
    expect_success(bw_selection_add(selection, "user", "2"));
    assert_true(bw_selection_takes_inode(selection, &files[0]));
    assert_false(bw_selection_takes_inode(selection, &files[1]));
    assert_false(bw_selection_takes_inode(selection, &files[2]));
    assert_false(bw_selection_takes_inode(selection, &(struct bw_walked_file){.inode = NULL}));
    bw_selection_destroy(selection);
}

static void test_exclude(void **state)
{
    struct bw_selection *selection = make("exclude", "*.o");
    expect_success(bw_selection_add(selection, "exclude", "/tmp/*"));
    const struct bw_named by_name = named_of("/a/b.o"), by_path = named_of("/tmp/a/b"),
                          none = named_of("/a/tmp");
    assert_true(bw_selection_excludes(selection, &by_name));
    assert_true(bw_selection_excludes(selection, &by_path));
    assert_false(bw_selection_excludes(selection, &none));
    assert_true(bw_selection_takes_name(selection, &none));
    bw_selection_destroy(selection);
}

/* Inodes. */

static bool takes_file(const char *condition, const char *argument, const struct bw_inode *inode,
                       uint8_t type)
{
    struct bw_selection *selection = make(condition, argument);
    const struct bw_walked_file file = {
        .path = "/a", .path_length = 2, .type = type, .inode = inode};
    const struct bw_walked_file unknown = {.path = "/a", .path_length = 2, .type = type};
    assert_true(bw_selection_needs_inode(selection));
    assert_false(bw_selection_takes_inode(selection, &unknown));
    bool taken = bw_selection_takes_inode(selection, &file);
    bw_selection_destroy(selection);
    return taken;
}

static void expect_taken(const char *condition, const char *argument, const struct bw_inode *inode,
                         bool taken)
{
    if (takes_file(condition, argument, inode, BW_FILE_REGULAR) != taken)
        fail_msg("--%s %s takes a file %s", condition, argument,
                 taken ? "not" : "that it should not");
}

/* Rounded up to whole units before it is compared. */
static void test_size(void **state)
{
    static const struct {
        const char *argument;
        uint64_t size;
        bool taken;
    } cases[] = {
        {"0", 0, true},
        {"0", 1, false},
        {"+0", 0, false},
        {"+0", 1, true},
        {"-1", 0, true},
        {"-1", 1, false},
        {"1", 1, true},
        {"1", 512, true},
        {"1", 513, false},
        {"2", 513, true},
        {"+1", 512, false},
        {"+1", 513, true},
        {"1b", 512, true},
        {"100c", 100, true},
        {"100c", 99, false},
        {"+100c", 101, true},
        {"-100c", 99, true},
        {"-100c", 100, false},
        {"1w", 1, true},
        {"1w", 3, false},
        {"1k", 1024, true},
        {"1k", 1025, false},
        {"-1k", 1, false},
        {"-1k", 0, true},
        {"1M", 1, true},
        {"1M", 1048576, true},
        {"+1M", 1048577, true},
        {"+1M", 1048576, false},
        {"-1M", 1, false},
        {"-1M", 0, true},
        {"1G", 1, true},
        {"2T", (UINT64_C(1) << 40) + 1, true},
        {"0", UINT64_MAX, false},
        {"18014398509481984k", UINT64_MAX, true},
        {"18446744073709551615c", UINT64_MAX, true},
        {"+18446744073709551614c", UINT64_MAX, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_taken("size", cases[i].argument, &(struct bw_inode){.size = cases[i].size},
                     cases[i].taken);
}

static void test_numbers(void **state)
{
    const struct bw_inode inode = {.uid = UINT32_MAX, .gid = 100, .link_count = 2};
    expect_taken("uid", "4294967295", &inode, true);
    expect_taken("uid", "-4294967295", &inode, false);
    expect_taken("uid", "+4294967294", &inode, true);
    expect_taken("uid", "18446744073709551615", &inode, false);
    expect_taken("gid", "100", &inode, true);
    expect_taken("gid", "0", &inode, false);
    expect_taken("links", "2", &inode, true);
    expect_taken("links", "+1", &inode, true);
    expect_taken("links", "+2", &inode, false);
    expect_taken("links", "-2", &inode, false);
}

static void test_perm(void **state)
{
    static const struct {
        const char *argument;
        uint32_t mode;
        bool taken;
    } cases[] = {
        {"644", 0100644, true},          {"644", 0104644, false},
        {"4644", 0104644, true},         {"-444", 0100644, true},
        {"-022", 0100620, false},        {"/022", 0100620, true},
        {"/022", 0100600, false},        {"/0", 0100000, true},
        {"-0", 0100000, true},           {"0", 0100000, true},
        {"0", 0100001, false},           {"/7000", 0101000, true},
        {"-6000", 0104000, false},       {"u=rw,go=r", 0100644, true},
        {"-u+s", 0104755, true},         {"-u+s", 0100755, false},
        {"/u+s,g+s", 0102755, true},     {"/a=x", 0100666, false},
        {"-g=u", 0100000, true},         {"u=rwx,g=u-w,o=", 0100750, true},
        {"a+X", 0100000, true},          {"a+X", 0040111, true},
        {"-a+X", 0040110, false},        {"-u+x,a+X", 0100110, false},
        {"=644", 0100644, true},         {"+t", 0101000, true},
        {"u=rwxs,u=rwx", 0100700, true}, {"u=rwxs,u=rwx", 0044700, true},
        {"+s,u=rw", 0046600, true},      {"/a=", 0100000, true},
        {"/a=X", 0100644, true},         {"/a=X", 0040644, false},
        {"/a=X", 0040744, true},         {"/a=X", 0040000, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_taken("perm", cases[i].argument, &(struct bw_inode){.mode = cases[i].mode},
                     cases[i].taken);
}

static void test_empty(void **state)
{
    const struct bw_inode none = {0}, some = {.size = 1};
    assert_true(takes_file("empty", NULL, &none, BW_FILE_REGULAR));
    assert_true(takes_file("empty", NULL, &none, BW_FILE_DIRECTORY));
    assert_false(takes_file("empty", NULL, &some, BW_FILE_REGULAR));
    assert_false(takes_file("empty", NULL, &some, BW_FILE_DIRECTORY));
    assert_false(takes_file("empty", NULL, &none, BW_FILE_FIFO));
}

static void test_newer(void **state)
{
    const struct bw_inode inode = {.mtime = TIME_OF(INT64_C(981173106789000000))};
    expect_taken("newer", "2001-02-03 04:05:06", &inode, true);
    expect_taken("newer", "2001-02-03 04:05:07", &inode, false);
    expect_taken("newer", "@981173106.789", &inode, false);
    expect_taken("newer", "@981173106.788999999", &inode, true);
    expect_taken("newer", "@0", &(struct bw_inode){.mtime = TIME_OF(-1)}, false);
    expect_taken("newer", "@-1", &(struct bw_inode){.mtime = TIME_OF(-1)}, true);
}

static void test_mtime(void **state)
{
    const int64_t day = INT64_C(86400000000000), now = 100 * day;
    static const struct {
        const char *argument;
        int64_t days; /* ago, in halves; one nanosecond more or less in `step` */
        int64_t step;
        bool taken;
    } cases[] = {
        {"0", 0, 0, true},    {"0", 2, -1, true},  {"0", 2, 0, false},   {"1", 2, 0, true},
        {"1", 4, -1, true},   {"1", 4, 0, false},  {"+0", 2, -1, false}, {"+0", 2, 0, true},
        {"+1", 4, -1, false}, {"+1", 4, 0, true},  {"-1", 2, -1, true},  {"-1", 2, 0, false},
        {"-0", 0, 0, false},  {"-0", -1, 0, true}, {"0", -1, 0, false},  {"+0", -1, 0, false},
        {"-1", -1, 0, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_selection *selection = make("mtime", cases[i].argument);
        const int64_t time = now - cases[i].days * day / 2 - cases[i].step;
        const struct bw_inode inode = {.mtime = TIME_OF(time)};
        const struct bw_walked_file file = {.inode = &inode, .type = BW_FILE_REGULAR};
        selection->now = now;
        if (bw_selection_takes_inode(selection, &file) != cases[i].taken)
            fail_msg("--mtime %s, case %zu", cases[i].argument, i);
        bw_selection_destroy(selection);
    }
    expect_taken("mtime", "+1000", &(struct bw_inode){.mtime = TIME_OF(INT64_MIN)}, true);
    expect_taken("mtime", "-0", &(struct bw_inode){.mtime = TIME_OF(INT64_MAX)}, true);
}

/* To the next whole minute, unlike days. */
static void test_mmin(void **state)
{
    const int64_t minute = INT64_C(60000000000), now = 1000 * minute;
    static const struct {
        const char *argument;
        int64_t minutes, step; /* ago, and nanoseconds more */
        bool taken;
    } cases[] = {
        {"0", 0, -1, true},
        {"0", 0, 0, false},
        {"1", 0, 0, true},
        {"1", 1, 0, false},
        {"1", 1, -1, true},
        {"2", 1, 0, true},
        {"+1", 1, 0, false},
        {"+1", 1, 1, true},
        {"-1", 1, -1, true},
        {"-1", 1, 0, false},
        {"-0", -5, 0, true},
        {"+0", -5, 0, false},
        {"+18446744073709551615", 999, 0, false},
        {"-18446744073709551615", 999, 0, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_selection *selection = make("mmin", cases[i].argument);
        const struct bw_inode inode = {
            .mtime = TIME_OF(now - cases[i].minutes * minute - cases[i].step)};
        const struct bw_walked_file file = {.inode = &inode, .type = BW_FILE_REGULAR};
        selection->now = now;
        if (bw_selection_takes_inode(selection, &file) != cases[i].taken)
            fail_msg("--mmin %s, case %zu", cases[i].argument, i);
        bw_selection_destroy(selection);
    }
}

/* Each condition uses the time that it names. */
static void test_time_members(void **state)
{
    static const struct timespec set = {.tv_sec = 1000};
    const struct {
        const char *newer, *days, *minutes;
        struct bw_inode inode;
    } cases[] = {
        {"newer", "mtime", "mmin", {.mtime = set}},
        {"newerat", "atime", "amin", {.atime = set}},
        {"newerct", "ctime", "cmin", {.ctime = set}},
        {"newerBt", NULL, NULL, {.otime = set}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t j = 0; j < COUNT(cases); j++) {
            expect_taken(cases[i].newer, "@999", &cases[j].inode, i == j);
            const struct bw_inode later = {.mtime = TIME_OF(i == 0 ? INT64_MAX : 0),
                                           .atime = TIME_OF(i == 1 ? INT64_MAX : 0),
                                           .ctime = TIME_OF(i == 2 ? INT64_MAX : 0)};
            if (cases[j].days) {
                expect_taken(cases[j].days, "-0", &later, i == j);
                expect_taken(cases[j].minutes, "-0", &later, i == j);
            }
        }
}

/* Refusals. */

static void test_generations_and_attributes(void **state)
{
    const struct bw_inode inode = {.transid = 8};
    expect_taken("newer-generation", "7", &inode, true);
    expect_taken("newer-generation", "8", &inode, false);
    expect_taken("newer-generation", "18446744073709551615", &inode, false);

    /* Attributes are neither names nor inodes. */
    struct bw_selection *selection = make("xattr", "user.*");
    const struct bw_named named = named_of("/a");
    const struct bw_walked_file file = {.path = "/a", .path_length = 2};
    const struct bw_xattr xattrs[] = {
        {.name = (const uint8_t *)"trusted.a", .name_length = 9},
        {.name = (const uint8_t *)"user.b", .name_length = 6},
    };
    assert_true(bw_selection_needs_xattrs(selection));
    assert_false(bw_selection_needs_inode(selection));
    assert_true(bw_selection_takes_name(selection, &named));
    assert_true(bw_selection_takes_inode(selection, &file));
    assert_true(bw_selection_takes_xattrs(selection, xattrs, 2));
    assert_false(bw_selection_takes_xattrs(selection, xattrs, 1));
    assert_false(bw_selection_takes_xattrs(selection, xattrs, 0));
    expect_success(bw_selection_add(selection, "xattr", "trusted.a"));
    assert_true(bw_selection_takes_xattrs(selection, xattrs, 1));
    bw_selection_destroy(selection);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *condition, *argument;
    } cases[] = {
        {"regex", "("},
        {"regex", "a{2,1}"},
        {"size", ""},
        {"size", "+"},
        {"size", "1x"},
        {"size", "1kk"},
        {"size", "k"},
        {"size", "--1"},
        {"size", " 1"},
        {"size", "1.5M"},
        {"size", "18446744073709551616"},
        {"uid", "root"},
        {"uid", ""},
        {"uid", "1 "},
        {"perm", "888"},
        {"perm", "u+y"},
        {"perm", "10000"},
        {"perm", "+111"},
        {"perm", "-"},
        {"mtime", "0.5"},
        {"links", "0x1"},
        {"links", "-"},
        {"newer", "today"},
        {"newer", ""},
        {"newer", "2001-02"},
        {"nothing", "1"},
        {"inum", "1"},
        {"wholename", "/a"},
        {"name", NULL},
    };
    struct bw_selection *selection;
    expect_success(bw_selection_create(&selection));
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_error(bw_selection_add(selection, cases[i].condition, cases[i].argument),
                     BW_ERROR_USAGE, cases[i].condition);
    assert_int_equal(selection->tests.count, 0);
    bw_selection_destroy(selection);
    bw_selection_destroy(NULL);
}
