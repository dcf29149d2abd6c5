/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common code of the tests of the folder of an extraction. */
#include "support/target_bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct bw_inode plain = {.mode = S_IFREG | 04755, PLAIN_TIMES};

void missed(void *context, struct bw_error *error)
{
    struct folders *folders = context;
    folders->missed++;
    bw_error_free(error);
}

void open_target(struct folders *folders, bool step_by_step, bool skip_existing)
{
    const struct bw_target_options options = {.step_by_step = step_by_step,
                                              .skip_existing = skip_existing,
                                              .missed = missed,
                                              .context = folders};
    const bool is_new = mkdir(folders->inside, 0777) == 0;
    assert_null(
        bw_target_open(open(folders->inside, O_RDONLY | O_DIRECTORY), &options, &folders->target));
    folders->target.is_new = is_new;
}

void set_up(struct folders *folders, bool step_by_step)
{
    *folders = (struct folders){0};
    strcpy(folders->top, "/tmp/test_target.XXXXXX");
    assert_non_null(mkdtemp(folders->top));
    snprintf(folders->inside, sizeof folders->inside, "%s/inside", folders->top);
    snprintf(folders->outside, sizeof folders->outside, "%s/outside", folders->top);
    assert_int_equal(mkdir(folders->outside, 0700), 0);
    open_target(folders, step_by_step, false);
}

/* Removing the folder fails unless it is empty. */
void tear_down(struct folders *folders)
{
    char command[128];
    bw_target_close(&folders->target);
    assert_int_equal(rmdir(folders->outside), 0);
    snprintf(command, sizeof command, "rm -rf %s", folders->top);
    assert_int_equal(system(command), 0);
}

void expect_code(struct bw_error *error, enum bw_error_code code)
{
    assert_non_null(error);
    assert_int_equal(error->code, code);
    bw_error_free(error);
}

void expect_errno(struct bw_error *error, int number)
{
    assert_non_null(error);
    assert_int_equal(error->code, BW_ERROR_SYSTEM);
    assert_int_equal(error->system, number);
    bw_error_free(error);
}

void expect_refused(struct bw_error *error)
{
    assert_non_null(error);
    assert_int_equal(error->code, BW_ERROR_SYSTEM);
    assert_true(error->system == ELOOP || error->system == ENOTDIR || error->system == EEXIST);
    bw_error_free(error);
}

/* Makes a link inside the folder, behind the target's back. */
void put_link(const struct folders *folders, const char *name, const char *to)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folders->inside, name);
    assert_int_equal(symlink(to, path), 0);
}

void move(const struct folders *folders, const char *from, const char *to)
{
    char old[128], new[128];
    snprintf(old, sizeof old, "%s/%s", folders->inside, from);
    snprintf(new, sizeof new, "%s/%s", folders->inside, to);
    assert_int_equal(rename(old, new), 0);
}

bool is_there(const struct folders *folders, const char *name, struct stat *status)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folders->inside, name);
    return lstat(path, status) == 0;
}

struct bw_error *make_directory(struct folders *folders, const char *path)
{
    bool ours;
    return bw_target_make_directory(&folders->target, path, strlen(path), NULL, &ours);
}

struct bw_error *make_symlink(struct folders *folders, const char *path, size_t length,
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

struct bw_error *make_fifo(struct folders *folders, const char *path, size_t length)
{
    int descriptor;
    struct bw_error *error =
        bw_target_make_node(&folders->target, path, length, S_IFIFO, 0, &descriptor);
    assert_int_equal(descriptor >= 0, !error);
    if (!error)
        close(descriptor);
    return error;
}

/* A whole file, from beginning to end. The attributes are those of `plain`. */
struct bw_error *make_file(struct folders *folders, const char *path)
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
