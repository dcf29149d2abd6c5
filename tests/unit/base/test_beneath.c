/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening files beneath a directory, with and without openat2(2). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/beneath.h"

enum { LEVELS = 20 }; /* with names of 250 bytes: longer than a path for a system call */

/* A folder with: deep/file, link -> deep, to-file -> deep/file. */
static int make_folder(char *name)
{
    strcpy(name, "/tmp/beneath-XXXXXX");
    assert_non_null(mkdtemp(name));
    const int folder = open(name, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    assert_int_equal(mkdirat(folder, "deep", 0700), 0);
    close(openat(folder, "deep/file", O_WRONLY | O_CREAT, 0600));
    assert_int_equal(symlinkat("deep", folder, "link"), 0);
    assert_int_equal(symlinkat("deep/file", folder, "to-file"), 0);
    return folder;
}

static void remove_folder(int folder, const char *name)
{
    unlinkat(folder, "to-file", 0);
    unlinkat(folder, "link", 0);
    unlinkat(folder, "deep/file", 0);
    unlinkat(folder, "deep", AT_REMOVEDIR);
    close(folder);
    assert_int_equal(rmdir(name), 0);
}

static void test_beneath(void **state)
{
    static const struct {
        const char *path;
        int flags, first, second; /* 0, or one of two numbers of errors */
    } cases[] = {
        {"deep", O_RDONLY | O_DIRECTORY, 0, 0},
        {"deep/file", O_RDONLY, 0, 0},
        {"deep/file", O_PATH, 0, 0},
        {"deep/file", O_RDONLY | O_DIRECTORY, ENOTDIR, 0},
        {"deep/none", O_RDONLY, ENOENT, 0},
        {"", O_RDONLY, ENOENT, 0},
        {"link", O_RDONLY | O_DIRECTORY, ELOOP, ENOTDIR},
        {"link/file", O_RDONLY, ELOOP, ENOTDIR},
        {"to-file", O_RDONLY, ELOOP, 0},
        {"..", O_RDONLY | O_DIRECTORY, EXDEV, 0},
        {"deep/../..", O_RDONLY | O_DIRECTORY, EXDEV, 0},
        {"/", O_RDONLY | O_DIRECTORY, EXDEV, 0},
        {"/tmp", O_RDONLY | O_DIRECTORY, EXDEV, 0},
    };
    char name[32];
    const int folder = make_folder(name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        errno = 0;
        const int opened = bw_open_beneath(folder, cases[i].path, cases[i].flags, *state != NULL);
        if (cases[i].first)
            assert_true(opened < 0 && (errno == cases[i].first || errno == cases[i].second));
        else
            assert_true(opened > folder && close(opened) == 0);
    }
    remove_folder(folder, name);
}

static void test_long_path(void **state)
{
    char name[32], component[251], path[LEVELS * sizeof component];
    const int folder = make_folder(name);
    int levels[LEVELS + 1] = {folder};
    memset(component, 'n', sizeof component - 1);
    component[sizeof component - 1] = '\0';
    path[0] = '\0';
    for (unsigned i = 0; i < LEVELS; i++) {
        assert_int_equal(mkdirat(levels[i], component, 0700), 0);
        levels[i + 1] = openat(levels[i], component, O_RDONLY | O_DIRECTORY);
        strcat(strcat(path, i ? "/" : ""), component);
    }
    assert_true(strlen(path) > PATH_MAX);
    struct stat found, last;
    const int opened = bw_open_beneath(folder, path, O_RDONLY | O_DIRECTORY, *state != NULL);
    assert_int_equal(fstat(opened, &found), 0);
    assert_int_equal(fstat(levels[LEVELS], &last), 0);
    assert_int_equal(found.st_ino, last.st_ino);
    close(opened);
    for (unsigned i = LEVELS; i--; close(levels[i + 1]))
        unlinkat(levels[i], component, AT_REMOVEDIR);
    remove_folder(folder, name);
}

static void test_sole(void **state)
{
    char name[32], text[8] = "";
    const int folder = make_folder(name);
    int file = bw_open_sole(folder, "new");
    assert_true(file >= 0);
    assert_int_equal(write(file, "text", 4), 4);
    close(file);
    file = bw_open_sole(folder, "new"); /* continues */
    assert_true(file >= 0);
    assert_int_equal(read(file, text, sizeof text), 4);
    close(file);
    assert_int_equal(bw_open_sole(folder, "to-file"), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(symlinkat("nothing", folder, "dangling"), 0);
    assert_int_equal(bw_open_sole(folder, "dangling"), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(linkat(folder, "deep/file", folder, "hard", 0), 0);
    assert_int_equal(bw_open_sole(folder, "hard"), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(mkfifoat(folder, "fifo", 0600), 0);
    assert_int_equal(bw_open_sole(folder, "fifo"), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(bw_open_sole(folder, "deep"), -1);
    static const char *const made[] = {"new", "dangling", "hard", "fifo"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(unlinkat(folder, made[i], 0), 0);
    remove_folder(folder, name);
}

/* With renameat2(2), with links, and on folders, which can have no links. */
static void test_rename_new(void **state)
{
    const bool step_by_step = *state;
    char name[32];
    struct stat before, after;
    const int folder = make_folder(name);
    assert_int_equal(fstatat(folder, "deep/file", &before, 0), 0);
    assert_int_equal(linkat(folder, "deep/file", folder, "part", 0), 0);
    assert_int_equal(bw_rename_new(folder, "part", "link", step_by_step), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(bw_rename_new(folder, "none", "new", step_by_step), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(bw_rename_new(folder, "part", "new", step_by_step), 0);
    assert_int_equal(fstatat(folder, "new", &after, 0), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(fstatat(folder, "part", &after, 0), -1);
    assert_int_equal(unlinkat(folder, "new", 0), 0);

    /* A folder has no second link, and does not replace a file: nothing changes. */
    assert_int_equal(bw_rename_new(folder, "deep", "new", step_by_step), step_by_step ? -1 : 0);
    assert_int_equal(fstatat(folder, "new", &after, 0), step_by_step ? -1 : 0);
    if (!step_by_step)
        assert_int_equal(bw_rename_new(folder, "new", "deep", step_by_step), 0);
    remove_folder(folder, name);
}

int main(void)
{
    static bool by_steps = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beneath),
        cmocka_unit_test_prestate(test_beneath, &by_steps),
        cmocka_unit_test(test_rename_new),
        cmocka_unit_test_prestate(test_rename_new, &by_steps),
        cmocka_unit_test(test_sole),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test_prestate(test_long_path, &by_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
