/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common code of the tests of opening and walking: collecting messages and paths, comparing them
 * with those that the image writer expects, and an image with files of every kind.
 */
#ifndef BW_TESTS_WALK_HELPERS_H
#define BW_TESTS_WALK_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/walk.h"
#include "image_writer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
    TOP = BW_SUBVOLUME_ROOT_INODE,
    FS = BW_TOP_SUBVOLUME,
};

/** All that was reported. Starts as zeros. */
struct report_log {
    size_t counts[BW_DAMAGE + 1]; /**< by severity */
    struct bw_buffer text; /**< one line a message: "SEVERITY LAYER MESSAGE", NUL at the end */
};

struct bw_reporter report_log_reporter(struct report_log *log);
/** How often a text occurs in the messages. */
size_t report_log_count(const struct report_log *log, const char *text);
void report_log_free(struct report_log *log);

/** Checks the code of an error, and that its message holds `text` (NULL: any); frees it. */
void expect_error(struct bw_error *error, enum bw_error_code code, const char *text);
/** Fails the test if there is an error, with its message. */
void expect_success(struct bw_error *error);

/** Opens the devices named; `log` may be NULL. */
struct bw_error *open_paths(const char *const *paths, size_t count, int superblock_copy,
                            struct report_log *log, struct bw_fs **fs);
/** Opens all devices of an image that were not removed. */
struct bw_error *open_image(const struct iw_image *image, struct report_log *log,
                            struct bw_fs **fs);

/** An image, opened. Starts as zeros, but for the image. */
struct fixture {
    struct iw_image *image;
    struct report_log log;
    struct bw_fs *fs;
    const struct bw_subvolume *top;
};

/** An empty image with small blocks, not open yet. */
struct fixture make_fixture(void);
/** Writes the image to memory, and opens it. */
void open_fixture(struct fixture *fixture);
/** Opens an image that has been written. */
void open_written(struct fixture *fixture);
void close_fixture(struct fixture *fixture);

/** Changes to the default graph in the syntax of the command line. Zeros: none. */
struct graph_changes {
    struct {
        enum bw_graph_edit_kind kind;
        char text[192];
    } changes[16];
    size_t count;
};

/** Inserts a layer: "debug/error-gen@device-1,action=flip". */
void insert_layer(struct graph_changes *changes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Sets an option: "node-cache.size=64K". */
void set_option(struct graph_changes *changes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Opens the devices named through a changed graph; `changes` and `log` may be NULL. */
struct bw_error *open_changed(const char *const *paths, size_t count,
                              const struct graph_changes *changes, struct report_log *log,
                              struct bw_fs **fs);

/** The messages of a walk. */
struct walk_result {
    struct bw_error *error;
    struct bw_walk_summary summary;
    struct bw_buffer bytes; /**< the paths in their order, each with a NUL after it */
    char **paths;           /**< the same, sorted */
    size_t count;
};

/** Walks and collects; `consume`, `context` and `terminator` of the options are not used. */
struct walk_result walk_fs(struct bw_fs *fs, const struct bw_walk_options *options);
void walk_result_free(struct walk_result *result);
/** Paths listed that are not expected; a second time counts as not expected. */
size_t count_foreign(const struct walk_result *result, const struct iw_paths *expected,
                     const char **example);
/** Paths expected that are not listed. */
size_t count_missing(const struct walk_result *result, const struct iw_paths *expected,
                     const char **example);
/** Fails unless the walk lists exactly what the image writer expects. */
void expect_paths(const struct iw_image *image, const struct walk_result *result);

/** Opens the named devices and walks: no error, exactly the expected paths, no damage. `log` may be
 * NULL. */
void check_walk_of(const struct iw_image *image, const char *const *paths, size_t count,
                   struct report_log *log);
/** The same with all devices that were not removed. */
void check_walk(const struct iw_image *image, struct report_log *log);

/** Adds directories, each inside of the one before, with so many files in the top directory and in
 * all but the last of them. */
void fill_depths(struct iw_image *image, unsigned depths, unsigned files);

/** Files, directories, links, a moved directory, subvolumes, snapshots, a deleted subvolume. */
void fill_sample(struct iw_image *image);
/** An image with that content, written to memory. */
struct iw_image *sample_image(const struct iw_options *options);
/** The same with blocks in every stripe of the chunks, over several rows. */
struct iw_image *spread_image(struct iw_options options);

/** The paths that can be recovered without the leaves below `lost`: see recoverable.c. */
struct iw_paths recoverable_paths(const struct iw_image *image, const struct iw_block *lost);

/** The step of a sweep: one of so many cases is enough for each test run. With WORST in the
 * environment, which `make check-long` sets, the step is 1. */
size_t sweep_step(size_t step);

/** The step of a loop over variants, which run the same code: 1, or SWEEP in the environment, which
 * .ci/run sets with sanitizers. */
unsigned variant_step(void);

/** Ends the program after so many seconds of processor time, or ten times as many of real time, of
 * which a busy machine may need more; that times the SLOWNESS of the environment: a machine that is
 * emulated takes longer. */
void limit_seconds(unsigned seconds);
/** The group setup of most tests: ends the program after five minutes of processor time. */
int limit_time(void **state);
/* Whether RLIMIT_AS can be set: sanitizers reserve much of the address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADDRESS_SPACE_LIMITED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ADDRESS_SPACE_LIMITED 0
#endif
#endif
#ifndef ADDRESS_SPACE_LIMITED
#define ADDRESS_SPACE_LIMITED 1
#endif

/** The same for tests that might eat memory as well: more than 2 GiB are refused. Threads need room
 * for stacks. */
int limit_resources(void **state);

#endif
