/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/file_set.c: files are the same by device and inode, devices by their number. */
#include "base/file_set.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include "support/walk_helpers.h"

static void expect_held(const struct bw_file_set *set, const char *path, bool held)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(bw_file_set_holds(set, &status), held);
}

static void test_files(void **state)
{
    char folder[] = "/tmp/test_file_set.XXXXXX";
    struct bw_file_set set = {0};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < 2; i++)
        fclose(fopen(i ? "two" : "one", "w"));
    assert_int_equal(link("one", "other"), 0);
    assert_int_equal(symlink("one", "symbolic"), 0);
    assert_null(bw_file_set_insert(&set, "nothing"));
    assert_int_equal(set.files.count, 0);
    expect_held(&set, "one", false);
    assert_null(bw_file_set_insert(&set, "symbolic"));
    assert_string_equal(bw_file_set_path(&set, 0), "symbolic");
    expect_held(&set, "one", true);
    expect_held(&set, "other", true);
    expect_held(&set, "two", false);
    expect_held(&set, ".", false);
    bw_file_set_free(&set);
    expect_held(&set, "one", false);
    static const char *const names[] = {"one", "two", "other", "symbolic"};
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(names[i]);
    assert_int_equal(chdir("/"), 0);
    rmdir(folder);
}

/* A file and a device are never the same, even if their numbers are equal. */
static void test_kinds(void **state)
{
    struct bw_file_set set = {0};
    struct stat file, device = {.st_mode = S_IFBLK, .st_rdev = makedev(4001, 7)};
    assert_int_equal(stat("/", &file), 0);
    assert_null(bw_file_set_insert(&set, "/"));
    device.st_rdev = file.st_dev;
    device.st_ino = file.st_ino;
    assert_false(bw_file_set_holds(&set, &device));
    file.st_dev = makedev(4001, 8);
    assert_false(bw_file_set_holds(&set, &file));
    bw_file_set_free(&set);
}
