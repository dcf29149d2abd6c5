/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of an extraction: nothing is written outside of it, whatever the names are and
 * whatever other processes move. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/target_bench.h"

static void test_hostile_names(void **state)
{
    const bool step_by_step = *state;
    static const char *const names[] = {
        "",   ".",    "..",  "../x",  "a/../x", "a/..",  "/x",
        "a/", "a//b", "./x", "a/./b", "/",      "a/b/.", "../../../../tmp/x",
    };
    struct folders folders;
    set_up(&folders, step_by_step);
    assert_null(make_directory(&folders, "a"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = names[i];
        size_t length = strlen(name);
        struct bw_target *target = &folders.target;
        expect_code(make_file(&folders, name), BW_ERROR_CORRUPT);
        expect_code(make_directory(&folders, name), BW_ERROR_CORRUPT);
        expect_code(make_symlink(&folders, name, length, "x"), BW_ERROR_CORRUPT);
        expect_code(make_fifo(&folders, name, length), BW_ERROR_CORRUPT);
        expect_code(bw_target_make_link(target, name, length, "a", 1), BW_ERROR_CORRUPT);
        expect_code(bw_target_make_link(target, "a/new", 5, name, length), BW_ERROR_CORRUPT);
        assert_false(bw_target_has_file(target, name, length, 0, &plain.mtime));
    }
    expect_code(make_symlink(&folders, "a\0b", 3, "x"), BW_ERROR_CORRUPT);
    char longest[257];
    memset(longest, 'n', 256);
    longest[256] = '\0';
    expect_code(make_file(&folders, longest), BW_ERROR_CORRUPT);
    assert_null(make_file(&folders, longest + 1));
    tear_down(&folders);
}

static void test_links_in_the_way(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    set_up(&folders, step_by_step);
    put_link(&folders, "absolute", folders.outside);
    put_link(&folders, "relative", "../outside");
    put_link(&folders, "self", ".");
    put_link(&folders, "file", "../outside/file");
    static const char *const ways[] = {"absolute", "relative", "self"};
    for (size_t i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "%s/x", ways[i]);
        expect_refused(make_file(&folders, path));
        expect_refused(make_directory(&folders, path));
        expect_refused(make_symlink(&folders, path, strlen(path), "x"));
        expect_refused(make_directory(&folders, ways[i]));
    }
    expect_errno(make_file(&folders, "file"), EEXIST);
    expect_errno(make_symlink(&folders, "file", 4, "x"), EEXIST);
    tear_down(&folders);
}

/* Replaces the current directory, and another one in its path, with links. */
static void test_race(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    set_up(&folders, step_by_step);
    assert_null(make_directory(&folders, "a"));
    assert_null(make_directory(&folders, "a/b"));
    assert_null(make_file(&folders, "a/b/first"));
    move(&folders, "a/b", "moved");
    put_link(&folders, "a/b", "../../outside");
    struct stat status;
    /* The directory is still open, so the next file goes to where it is now. */
    assert_null(make_file(&folders, "a/b/second"));
    assert_true(is_there(&folders, "moved/second", &status));
    /* And after something else it is looked for again. */
    assert_null(make_file(&folders, "elsewhere"));
    expect_refused(make_file(&folders, "a/b/third"));
    move(&folders, "a", "moved/a");
    put_link(&folders, "a", "../outside");
    expect_refused(make_directory(&folders, "a/c"));
    const struct bw_inode inode = {.mode = S_IFDIR | 0777};
    const struct bw_target_attributes attributes = {.inode = &inode};
    bw_target_restore_last(&folders.target, "a", 1, &attributes);
    assert_int_equal(folders.missed, 1);
    assert_int_equal(stat(folders.outside, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    tear_down(&folders);
}

/* The name of a file is taken by a link while the file is being written. */
static void test_late_link(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    struct bw_target_file file;
    const struct bw_target_attributes attributes = {.inode = &plain};
    set_up(&folders, step_by_step);
    assert_null(bw_target_file_begin(&folders.target, "name", 4, &plain, &file));
    put_link(&folders, "name", "../outside/x");
    expect_errno(bw_target_file_finish(&file, "name", 4, 0, &attributes), EEXIST);
    bw_target_close(&folders.target);
    char path[128];
    snprintf(path, sizeof path, "%s/name", folders.inside);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folders.inside), 0); /* it is gone */
    assert_int_equal(mkdir(folders.inside, 0700), 0);
    tear_down(&folders);
}

static void test_files(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    struct stat status;
    set_up(&folders, step_by_step);
    assert_null(make_file(&folders, "file"));
    assert_true(is_there(&folders, "file", &status));
    assert_int_equal(status.st_size, 20000);
    assert_true(status.st_blocks * 512 < 20000);
    assert_int_equal(folders.target.lowered, 1);
    expect_errno(make_file(&folders, "file"), EEXIST);
    struct timespec mtime = plain.mtime;
    assert_true(bw_target_has_file(&folders.target, "file", 4, 20000, &mtime));
    assert_false(bw_target_has_file(&folders.target, "file", 4, 20001, &mtime));
    mtime.tv_nsec++;
    assert_false(bw_target_has_file(&folders.target, "file", 4, 20000, &mtime));
    assert_null(bw_target_make_link(&folders.target, "link", 4, "file", 4));
    assert_true(is_there(&folders, "link", &status));
    assert_int_equal(status.st_nlink, 2);
    assert_int_equal(folders.missed, 0);
    tear_down(&folders);
}

static void test_file_gets_permissions_and_both_times(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    struct stat status;
    set_up(&folders, step_by_step);
    assert_null(make_file(&folders, "file"));
    assert_true(is_there(&folders, "file", &status));
    assert_int_equal(status.st_mode & 07777, 0755); /* without setuid */
    assert_int_equal(status.st_mtim.tv_nsec, 123456789);
    assert_int_equal(status.st_atim.tv_sec, -2);
    assert_int_equal(status.st_atim.tv_nsec, 500000000);
    tear_down(&folders);
}

/* A special file is replaced between its making and the restoring of its attributes. */
static void test_replaced_node(void **state)
{
    const bool step_by_step = *state;
    struct folders folders;
    struct stat status;
    int descriptor;
    const struct bw_inode inode = {
        .mode = S_IFIFO | 0640, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    const struct bw_target_attributes attributes = {.inode = &inode};
    set_up(&folders, step_by_step);
    assert_null(bw_target_make_node(&folders.target, "fifo", 4, S_IFIFO, 0, &descriptor));
    move(&folders, "fifo", "moved");
    put_link(&folders, "fifo", "../outside");
    bw_target_restore(&folders.target, descriptor, "fifo", 4, &attributes);
    close(descriptor);
    assert_int_equal(folders.missed, 0);
    assert_true(is_there(&folders, "moved", &status));
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(status.st_mtim.tv_sec, plain.mtime.tv_sec);
    assert_true(is_there(&folders, "fifo", &status));
    assert_int_not_equal(status.st_mtim.tv_sec, plain.mtime.tv_sec);
    assert_int_equal(stat(folders.outside, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    tear_down(&folders);
}

/* Every user may make a character device with number 0, but no block device. */
static void test_device_zero(void **state)
{
    struct folders folders;
    int descriptor;
    set_up(&folders, *state);
    const struct bw_inode whiteout = {.mode = S_IFCHR | 0600}, block = {.mode = S_IFBLK | 0600};
    assert_false(bw_target_leaves_out(&folders.target, &whiteout));
    assert_true(bw_target_leaves_out(&folders.target, &block));
    struct bw_error *error =
        bw_target_make_node(&folders.target, "block", 5, S_IFBLK, 0, &descriptor);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "only with the option preserve"));
    bw_error_free(error);
    tear_down(&folders);
}

struct way {
    struct bw_target *target;
    unsigned made;
};

static struct bw_error *make_way(void *context, const char *path, size_t length)
{
    struct way *way = context;
    bool ours;
    way->made++;
    return bw_target_make_directory(way->target, path, length, NULL, &ours);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int i = 0; i < 256; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* A path that no single system call takes. Descriptors of the way are closed again. */
static void test_deep(void **state)
{
    const bool step_by_step = *state;
    enum { NAME = 200, LEVELS = 40 };
    static char path[LEVELS * (NAME + 1)];
    const int open_before = count_descriptors();
    struct folders folders;
    set_up(&folders, step_by_step);
    struct way way = {.target = &folders.target};
    memset(path, 'd', sizeof path);
    for (size_t i = 1; i < LEVELS; i++)
        path[i * (NAME + 1) - 1] = '/';
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < 2; i++)
        assert_null(bw_target_make_replacing(&folders.target, path, strlen(path), make_way, &way));
    assert_int_equal(way.made, LEVELS - 1);
    assert_null(make_file(&folders, path));
    expect_errno(make_file(&folders, path), EEXIST);
    tear_down(&folders);
    assert_int_equal(count_descriptors(), open_before);
}

/* Opening paths at once, and step by step. */
#define BOTH(test) cmocka_unit_test(test), cmocka_unit_test_prestate(test, (void *)"step by step")

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_hostile_names),
        BOTH(test_links_in_the_way),
        BOTH(test_race),
        BOTH(test_late_link),
        BOTH(test_files),
        BOTH(test_deep),
        BOTH(test_file_gets_permissions_and_both_times),
        BOTH(test_replaced_node),
        BOTH(test_device_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
