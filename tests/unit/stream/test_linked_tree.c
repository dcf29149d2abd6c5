/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trees of hard links: deeper than the stack and the descriptors of a process allow, and with names
 * like those of copies. */
#include "stream/linked_tree.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/walk_helpers.h"

enum { LEVELS = 2100 };

static int enter(int directory, const char *name)
{
    const int opened = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(directory);
    return opened;
}

static void make_levels(int folder)
{
    assert_int_equal(mkdirat(folder, "old", 0700), 0);
    int at = openat(folder, "old", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 1; i < LEVELS; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        at = enter(at, "d");
        assert_true(at >= 0);
    }
    close(at);
}

/* Returns the number of levels. */
static unsigned remove_levels(int folder, const char *name)
{
    unsigned levels = 1;
    int at = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(at >= 0);
    for (; faccessat(at, "d", F_OK, 0) == 0; levels++)
        at = enter(at, "d");
    for (unsigned i = 1; i < levels; i++) {
        at = enter(at, "..");
        assert_int_equal(unlinkat(at, "d", AT_REMOVEDIR), 0);
    }
    close(at);
    assert_int_equal(unlinkat(folder, name, AT_REMOVEDIR), 0);
    return levels;
}

static void test_deep(void **state)
{
    char path[] = "/tmp/linked-XXXXXX";
    struct bw_linked_tree tree = {0};
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 2 * LEVELS)
        skip();
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_non_null(mkdtemp(path));
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_levels(folder);
    const int old = openat(folder, "old", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    expect_error(bw_linked_tree_make(&tree, old, folder, "new"), BW_ERROR_UNSUPPORTED,
                 "more than 2000 nested directories");
    close(openat(old, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect_success(bw_linked_tree_add_link(&tree, old, "file"));
    expect_error(bw_linked_tree_own(&tree, old, old, "file"), BW_ERROR_UNSUPPORTED,
                 "more than 2000 nested directories");
    assert_int_equal(tree.depth, 0);
    assert_int_equal(unlinkat(old, "file", 0), 0);
    close(old);
    assert_int_equal(remove_levels(folder, "new"), 2000);
    assert_int_equal(remove_levels(folder, "old"), LEVELS);
    bw_linked_tree_free(&tree);
    close(folder);
    assert_int_equal(rmdir(path), 0);
}

/* A copy does not replace a file that has a name like a copy. */
static void test_name_of_copy(void **state)
{
    static const char *const names[] = {"file", ".btrfs-walk-copy", ".btrfs-walk-copy-0"};
    char path[] = "/tmp/linked-XXXXXX";
    struct bw_linked_tree tree = {0};
    struct stat before[3], after[3];
    assert_non_null(mkdtemp(path));
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 3; i++) {
        close(openat(folder, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        assert_int_equal(fstatat(folder, names[i], &before[i], 0), 0);
    }
    expect_success(bw_linked_tree_own(&tree, folder, folder, "file"));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fstatat(folder, names[i], &after[i], 0), 0);
        assert_int_equal(after[i].st_ino == before[i].st_ino, i > 0);
        assert_int_equal(unlinkat(folder, names[i], 0), 0);
    }
    bw_linked_tree_free(&tree);
    close(folder);
    assert_int_equal(rmdir(path), 0);
}
