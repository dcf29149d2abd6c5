/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of an extraction that continues an earlier one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/target_bench.h"

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

/* A continued run removes the temporary files of a killed run, but not those of a running one. */
static void test_unfinished_files(void **state)
{
    struct folders folders;
    struct bw_target_file running, other;
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

/* The attributes of a symbolic link are set on the link, not on its target. */
static void test_symlink_itself(void **state)
{
    struct folders folders;
    struct stat status;
    int descriptor;
    const struct bw_inode inode = {
        .mode = S_IFLNK | 0777, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    const struct bw_target_attributes attributes = {.inode = &inode};
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

/* Which directories count as made by an earlier run. */
static void test_directories_left(void **state)
{
    struct folders folders;
    struct bw_inode inode = {
        .mode = S_IFDIR | 0555, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    struct stat status;
    set_up(&folders, false);
    assert_null(make_directory(&folders, "a"));
    assert_false(adopts(&folders, "a", 0700, &inode)); /* not without skip_existing */
    bw_target_close(&folders.target);
    open_target(&folders, false, true);
    folders.target.privileged = false;
    assert_true(adopts(&folders, "a", 0700, &inode));
    assert_true(adopts(&folders, "a", 0555, &inode)); /* nobody else could have written to it */
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

/* The folder itself already exists: it gets the missing attributes, and loses its default access
 * control list. */
static void test_folder_itself(void **state)
{
    static const unsigned char list[] = {2,   0,   0, 0, 1,   0,   7,   0,   255, 255,
                                         255, 255, 4, 0, 5,   0,   255, 255, 255, 255,
                                         32,  0,   0, 0, 255, 255, 255, 255};
    const struct bw_inode inode = {
        .mode = S_IFDIR | 0751, .uid = geteuid(), .gid = getegid(), PLAIN_TIMES};
    const struct bw_xattr note = {.name = (const uint8_t *)"user.note",
                                  .name_length = 9,
                                  .value = (const uint8_t *)"x",
                                  .value_length = 1};
    const struct bw_target_attributes attributes = {
        .inode = &inode, .xattrs = &note, .xattr_count = 1};
    struct folders folders;
    struct stat status;
    char value[8];
    set_up(&folders, false);
    assert_true(folders.target.is_new);
    bw_target_close(&folders.target);
    const bool has_lists =
        setxattr(folders.inside, "system.posix_acl_default", list, sizeof list, 0) == 0;
    const bool has_notes = setxattr(folders.inside, "user.other", "y", 1, 0) == 0;
    open_target(&folders, false, false);
    assert_false(folders.target.is_new);
    assert_null(make_file(&folders, "file"));
    bw_target_restore_last(&folders.target, "", 0, &attributes);
    assert_int_equal(folders.missed, !has_notes);
    assert_int_equal(stat(folders.inside, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0751);
    assert_int_equal(status.st_mtim.tv_sec, plain.mtime.tv_sec);
    assert_int_equal(status.st_mtim.tv_nsec, plain.mtime.tv_nsec);
    if (has_notes)
        assert_int_equal(getxattr(folders.inside, "user.note", value, sizeof value), 1);
    if (has_lists)
        assert_int_equal(getxattr(folders.inside, "system.posix_acl_default", NULL, 0), -1);
    assert_int_equal(stat(folders.top, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    tear_down(&folders);
}
