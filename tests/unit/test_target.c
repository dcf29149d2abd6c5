/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of an extraction: nothing leaves it, whatever the names and whoever moves things about
 * in it. */
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

#include "export/target_file.h"

/* A folder to write into, and one beside it that must stay empty. */
struct folders {
    char top[64], inside[80], outside[80];
    struct bw_target target;
    unsigned missed;
};

static void missed(void *context, struct bw_error *error)
{
    struct folders *folders = context;
    folders->missed++;
    bw_error_free(error);
}

static void open_target(struct folders *folders, bool step_by_step, bool skip_existing)
{
    const struct bw_target_options options = {.step_by_step = step_by_step,
                                              .skip_existing = skip_existing,
                                              .missed = missed,
                                              .context = folders};
    assert_null(bw_target_open(folders->inside, &options, &folders->target));
}

static void set_up(struct folders *folders, bool step_by_step)
{
    *folders = (struct folders){0};
    strcpy(folders->top, "/tmp/test_target.XXXXXX");
    assert_non_null(mkdtemp(folders->top));
    snprintf(folders->inside, sizeof folders->inside, "%s/inside", folders->top);
    snprintf(folders->outside, sizeof folders->outside, "%s/outside", folders->top);
    assert_int_equal(mkdir(folders->outside, 0700), 0);
    open_target(folders, step_by_step, false);
}

/* Removing it tells whether it is empty. */
static void tear_down(struct folders *folders)
{
    char command[128];
    bw_target_close(&folders->target);
    assert_int_equal(rmdir(folders->outside), 0);
    snprintf(command, sizeof command, "rm -rf %s", folders->top);
    assert_int_equal(system(command), 0);
}

static void expect_code(struct bw_error *error, enum bw_error_code code)
{
    assert_non_null(error);
    assert_int_equal(error->code, code);
    bw_error_free(error);
}

static void expect_errno(struct bw_error *error, int number)
{
    assert_non_null(error);
    assert_int_equal(error->code, BW_ERROR_SYSTEM);
    assert_int_equal(error->system, number);
    bw_error_free(error);
}

static void expect_refused(struct bw_error *error)
{
    assert_non_null(error);
    assert_int_equal(error->code, BW_ERROR_SYSTEM);
    assert_true(error->system == ELOOP || error->system == ENOTDIR || error->system == EEXIST);
    bw_error_free(error);
}

/* Makes a link inside the folder, behind the target's back. */
static void put_link(const struct folders *folders, const char *name, const char *to)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folders->inside, name);
    assert_int_equal(symlink(to, path), 0);
}

static void move(const struct folders *folders, const char *from, const char *to)
{
    char old[128], new[128];
    snprintf(old, sizeof old, "%s/%s", folders->inside, from);
    snprintf(new, sizeof new, "%s/%s", folders->inside, to);
    assert_int_equal(rename(old, new), 0);
}

static bool is_there(const struct folders *folders, const char *name, struct stat *status)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folders->inside, name);
    return lstat(path, status) == 0;
}

static struct bw_error *make_directory(struct folders *folders, const char *path)
{
    bool ours;
    return bw_target_make_directory(&folders->target, path, strlen(path), NULL, &ours);
}

static struct bw_error *make_symlink(struct folders *folders, const char *path, size_t length,
                                     const char *to)
{
    int descriptor;
    struct bw_error *error =
        bw_target_make_symlink(&folders->target, path, length, to, &descriptor);
    assert_int_equal(descriptor >= 0, !error);
    if (!error)
        close(descriptor);
    return error;
}

static struct bw_error *make_fifo(struct folders *folders, const char *path, size_t length)
{
    int descriptor;
    struct bw_error *error =
        bw_target_make_node(&folders->target, path, length, S_IFIFO, 0, &descriptor);
    assert_int_equal(descriptor >= 0, !error);
    if (!error)
        close(descriptor);
    return error;
}

#define PLAIN_TIMES .atime = {-2, 500000000}, .mtime = {1234567890, 123456789}
static const struct bw_inode plain = {.mode = S_IFREG | 04755, PLAIN_TIMES};

/* A whole file, from beginning to end. The attributes are those of `plain`. */
static struct bw_error *make_file(struct folders *folders, const char *path)
{
    struct bw_inode inode = plain;
    inode.uid = geteuid();
    inode.gid = getegid();
    const struct bw_target_attributes attributes = {.inode = &inode};
    struct bw_target_file file;
    struct bw_error *error =
        bw_target_file_begin(&folders->target, path, strlen(path), &inode, &file);
    if (error)
        return error;
    assert_null(bw_target_file_write(&file, 8192, "text", 4));
    return bw_target_file_finish(&file, path, strlen(path), 20000, &attributes);
}

static void run_twice(void (*test)(bool step_by_step))
{
    test(false);
    test(true);
}

static void try_hostile_names(bool step_by_step)
{
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

static void test_hostile_names(void **state)
{
    (void)state;
    run_twice(try_hostile_names);
}

static void try_links_in_the_way(bool step_by_step)
{
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

static void test_links_in_the_way(void **state)
{
    (void)state;
    run_twice(try_links_in_the_way);
}

/* A directory that was used before is replaced by a link, and another on the way to it. */
static void try_race(bool step_by_step)
{
    struct folders folders;
    set_up(&folders, step_by_step);
    assert_null(make_directory(&folders, "a"));
    assert_null(make_directory(&folders, "a/b"));
    assert_null(make_file(&folders, "a/b/first"));
    move(&folders, "a/b", "moved");
    put_link(&folders, "a/b", "../../outside");
    struct stat status;
    /* The directory is still open: what comes next goes where it is now. */
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
    bw_target_restore_directory(&folders.target, "a", 1, &attributes);
    assert_int_equal(folders.missed, 1);
    assert_int_equal(stat(folders.outside, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    tear_down(&folders);
}

static void test_race(void **state)
{
    (void)state;
    run_twice(try_race);
}

/* The name of a file is taken by a link while the file is being written. */
static void try_late_link(bool step_by_step)
{
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
    assert_int_equal(rmdir(folders.inside), 0); /* nothing is left of it */
    assert_int_equal(mkdir(folders.inside, 0700), 0);
    tear_down(&folders);
}

static void test_late_link(void **state)
{
    (void)state;
    run_twice(try_late_link);
}

static void try_files(bool step_by_step)
{
    struct folders folders;
    struct stat status;
    set_up(&folders, step_by_step);
    assert_null(make_file(&folders, "file"));
    assert_true(is_there(&folders, "file", &status));
    assert_int_equal(status.st_size, 20000);
    assert_int_equal(status.st_mode & 07777, 0755); /* without setuid */
    assert_int_equal(status.st_mtim.tv_nsec, 123456789);
    assert_int_equal(status.st_atim.tv_sec, -2);
    assert_int_equal(status.st_atim.tv_nsec, 500000000);
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

static void test_files(void **state)
{
    (void)state;
    run_twice(try_files);
}

static size_t count_unfinished(const struct folders *folders)
{
    DIR *directory = opendir(folders->inside);
    size_t count = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += strncmp(entry->d_name, ".btrfs-walk-", 12) == 0;
    closedir(directory);
    return count;
}

/* What a run that was killed has left is removed by one that goes on; what belongs to one that is
 * still running is not. */
static void test_unfinished_files(void **state)
{
    struct folders folders;
    struct bw_target_file running, other;
    (void)state;
    set_up(&folders, true);
    assert_null(bw_target_file_begin(&folders.target, "file", 4, &plain, &running));
    assert_int_equal(count_unfinished(&folders), 1);
    bw_target_close(&folders.target);
    open_target(&folders, true, true);
    assert_null(bw_target_file_begin(&folders.target, "file", 4, &plain, &other));
    assert_int_equal(count_unfinished(&folders), 2);
    bw_target_file_abandon(&other);
    assert_int_equal(count_unfinished(&folders), 1);
    close(running.descriptor); /* as if it was killed */
    assert_null(make_file(&folders, "file"));
    assert_int_equal(count_unfinished(&folders), 0);
    /* By a signal; only the name goes. */
    assert_null(bw_target_file_begin(&folders.target, "other", 5, &plain, &other));
    bw_target_file_remove(&other);
    assert_int_equal(count_unfinished(&folders), 0);
    bw_target_file_abandon(&other);
    tear_down(&folders);
}

static void test_going_on(void **state)
{
    struct folders folders;
    (void)state;
    set_up(&folders, false);
    bw_target_close(&folders.target);
    open_target(&folders, false, true);
    for (int i = 0; i < 2; i++) {
        assert_null(make_symlink(&folders, "link", 4, "to"));
        assert_null(make_fifo(&folders, "fifo", 4));
        assert_null(bw_target_make_link(&folders.target, "again", 5, "fifo", 4));
        assert_null(make_directory(&folders, "directory"));
    }
    expect_errno(make_symlink(&folders, "link", 4, "elsewhere"), EEXIST);
    expect_errno(make_symlink(&folders, "fifo", 4, "to"), EEXIST);
    expect_errno(bw_target_make_link(&folders.target, "link", 4, "fifo", 4), EEXIST);
    expect_errno(make_directory(&folders, "fifo"), EEXIST);
    tear_down(&folders);
}

/* A special file is replaced between its making and the restoring of its attributes. */
static void try_replaced_node(bool step_by_step)
{
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

static void test_replaced_node(void **state)
{
    (void)state;
    run_twice(try_replaced_node);
}

/* The attributes of a symbolic link go on the link, and not on what it leads to. */
static void test_symlink_itself(void **state)
{
    struct folders folders;
    struct stat status;
    int descriptor;
    const struct bw_inode inode = {
        .mode = S_IFLNK | 0777, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    const struct bw_target_attributes attributes = {.inode = &inode};
    (void)state;
    set_up(&folders, false);
    assert_null(bw_target_make_symlink(&folders.target, "link", 4, "../outside", &descriptor));
    bw_target_restore(&folders.target, descriptor, "link", 4, &attributes);
    close(descriptor);
    assert_int_equal(folders.missed, 0);
    assert_true(is_there(&folders, "link", &status));
    assert_int_equal(status.st_mtim.tv_sec, plain.mtime.tv_sec);
    assert_int_equal(stat(folders.outside, &status), 0);
    assert_int_not_equal(status.st_mtim.tv_sec, plain.mtime.tv_sec);
    tear_down(&folders);
}

static bool adopts(struct folders *folders, const char *name, mode_t mode,
                   const struct bw_inode *inode)
{
    char path[128];
    bool ours;
    snprintf(path, sizeof path, "%s/%s", folders->inside, name);
    assert_int_equal(chmod(path, mode), 0);
    assert_null(bw_target_make_directory(&folders->target, name, strlen(name), inode, &ours));
    return ours;
}

/* Which directories are taken for those that an earlier run has left. */
static void test_directories_left(void **state)
{
    struct folders folders;
    struct bw_inode inode = {
        .mode = S_IFDIR | 0555, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    struct stat status;
    (void)state;
    set_up(&folders, false);
    assert_null(make_directory(&folders, "a"));
    assert_false(adopts(&folders, "a", 0700, &inode)); /* not without skip_existing */
    bw_target_close(&folders.target);
    open_target(&folders, false, true);
    folders.target.privileged = false;
    assert_true(adopts(&folders, "a", 0700, &inode));
    assert_true(adopts(&folders, "a", 0555, &inode)); /* nobody could have put anything into it */
    assert_true(is_there(&folders, "a", &status));
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_false(adopts(&folders, "a", 0500, &inode));
    assert_false(adopts(&folders, "a", 0555, NULL));
    inode.mode = S_IFDIR | 0755;
    assert_false(adopts(&folders, "a", 0755, &inode)); /* its time is another */
    inode.mtime = status.st_mtim;
    assert_true(adopts(&folders, "a", 0755, &inode));
    assert_true(is_there(&folders, "a", &status));
    assert_int_equal(status.st_mode & 07777, 0755);
    tear_down(&folders);
}

/* A hostile time, and one that has to be as it is. */
static void test_times(void **state)
{
    static const struct timespec zero = {0, 0}, half = {0, 500000000}, second = {1, 0};
    static const struct timespec first = {INT64_MIN, 0}, last = {INT64_MAX, 999999999};
    (void)state;
    assert_true(bw_target_is_same_time(&half, &half));
    assert_true(bw_target_is_same_time(&zero, &half));
    assert_true(bw_target_is_same_time(&zero, &second));
    assert_false(bw_target_is_same_time(&half, &zero));
    assert_false(bw_target_is_same_time(&second, &zero));
    assert_false(bw_target_is_same_time(&zero, &first));
    assert_false(bw_target_is_same_time(&zero, &last));
    assert_false(bw_target_is_same_time(&first, &last));
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

/* A path that no single system call takes. */
static void try_deep(bool step_by_step)
{
    enum { NAME = 200, LEVELS = 40 };
    static char path[LEVELS * (NAME + 1)];
    struct folders folders;
    set_up(&folders, step_by_step);
    struct way way = {.target = &folders.target};
    memset(path, 'd', sizeof path);
    for (size_t i = 1; i < LEVELS; i++)
        path[i * (NAME + 1) - 1] = '/';
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < 2; i++)
        assert_null(bw_target_make_way(&folders.target, path, strlen(path), make_way, &way));
    assert_int_equal(way.made, LEVELS - 1);
    assert_null(make_file(&folders, path));
    expect_errno(make_file(&folders, path), EEXIST);
    tear_down(&folders);
}

static void test_deep(void **state)
{
    (void)state;
    run_twice(try_deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_names),  cmocka_unit_test(test_links_in_the_way),
        cmocka_unit_test(test_race),           cmocka_unit_test(test_late_link),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_deep),           cmocka_unit_test(test_replaced_node),
        cmocka_unit_test(test_symlink_itself), cmocka_unit_test(test_directories_left),
        cmocka_unit_test(test_times),          cmocka_unit_test(test_unfinished_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
