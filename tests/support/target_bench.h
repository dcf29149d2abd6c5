/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of an extraction, beside another that must stay empty, and files to put into it. */
#ifndef TEST_TARGET_BENCH_H
#define TEST_TARGET_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "export/target.h"

/* A folder to write to, and one next to it that must remain empty. */
struct folders {
    char top[64], inside[80], outside[80];
    struct bw_target target;
    unsigned missed;
};

/* The attributes of a file that is made. */
extern const struct bw_inode plain;
#define PLAIN_TIMES .atime = {-2, 500000000}, .mtime = {1234567890, 123456789}

void missed(void *context, struct bw_error *error);
void open_target(struct folders *folders, bool step_by_step, bool skip_existing);
void set_up(struct folders *folders, bool step_by_step);

/* Removing the folder fails unless it is empty. */
void tear_down(struct folders *folders);
void expect_code(struct bw_error *error, enum bw_error_code code);
void expect_errno(struct bw_error *error, int number);
void expect_refused(struct bw_error *error);

/* Makes a link inside the folder, behind the target's back. */
void put_link(const struct folders *folders, const char *name, const char *to);
void move(const struct folders *folders, const char *from, const char *to);
bool is_there(const struct folders *folders, const char *name, struct stat *status);
struct bw_error *make_directory(struct folders *folders, const char *path);
struct bw_error *make_symlink(struct folders *folders, const char *path, size_t length,
                              const char *to);
struct bw_error *make_fifo(struct folders *folders, const char *path, size_t length);

/* A whole file, from beginning to end. The attributes are those of `plain`. */
struct bw_error *make_file(struct folders *folders, const char *path);

#endif
