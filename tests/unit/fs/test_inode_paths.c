/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/fs/inode_paths.c: the paths of many inodes, in any order, with circles among them. */
#include "fs/inode_paths.h"

#include "fs/fs.h"
#include "support/walk_helpers.h"

enum { DEPTH = 400 };

/* outer/inner, which is moved into itself; a chain of directories; and one whose path is too long.
 */
static struct iw_image *make_image(uint64_t *circle, uint64_t *chain, uint64_t *deepest)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    char name[251];
    memset(name, 'n', 250);
    name[250] = '\0';
    const uint64_t outer = iw_directory(image, FS, TOP, "outer");
    circle[0] = iw_directory(image, FS, outer, "inner");
    circle[1] = iw_file(image, FS, circle[0], "unreachable");
    iw_move(image, FS, outer, TOP, "outer", circle[0], "moved into itself");
    chain[0] = iw_directory(image, FS, TOP, "a");
    for (unsigned i = 1; i < 4; i++)
        chain[i] = iw_directory(image, FS, chain[i - 1], (const char[]){(char)('a' + i), 0});
    *deepest = TOP;
    for (unsigned i = 0; i < DEPTH; i++)
        *deepest = iw_directory(image, FS, *deepest, name);
    return image;
}

/* Appends the paths of an inode, each with a space behind it. */
static void append_paths(struct bw_buffer *text, struct bw_inode_paths *paths, uint64_t inode)
{
    struct bw_bytes path;
    bw_inode_paths_begin(paths, bw_subvolume_by_id(paths->fs, FS), inode);
    while (bw_inode_paths_next(paths, &path)) {
        bw_buffer_append(text, path.data, path.length);
        bw_buffer_append_byte(text, ' ');
    }
    expect_success(bw_inode_paths_error(paths));
}

static void expect_names(struct bw_inode_paths *paths, uint64_t inode, const char *wanted)
{
    struct bw_buffer text = {0};
    append_paths(&text, paths, inode);
    assert_string_equal(bw_buffer_text(&text), wanted);
    bw_buffer_free(&text);
}

static void test_orders(void **state)
{
    uint64_t circle[2], chain[4], deepest;
    struct iw_image *image = make_image(circle, chain, &deepest);
    struct bw_fs *fs;
    iw_write_memory(image);
    for (unsigned order = 0; order < 3; order++) {
        expect_success(open_image(image, NULL, &fs));
        struct bw_inode_paths paths = {.fs = fs};
        expect_names(&paths, TOP, "/ ");
        expect_names(&paths, circle[1], "");
        for (unsigned i = 0; i < 4; i++) {
            static const char *const wanted[] = {"/a ", "/a/b ", "/a/b/c ", "/a/b/c/d "};
            const unsigned at = order == 0 ? i : order == 1 ? 3 - i : (i + 2) % 4;
            expect_names(&paths, chain[at], wanted[at]);
        }
        expect_names(&paths, circle[0], "");
        expect_names(&paths, deepest, "");
        expect_names(&paths, chain[3], "/a/b/c/d ");
        bw_inode_paths_free(&paths);
        bw_fs_close(fs);
    }
    iw_destroy(image);
}

/* A hard link in a directory with a short path has a path, even if another directory's path is too
 * long. */
static void test_too_long(void **state)
{
    uint64_t circle[2], chain[4], deepest;
    struct iw_image *image = make_image(circle, chain, &deepest);
    struct bw_fs *fs;
    struct report_log log = {0};
    size_t shortest = 0;
    iw_write_memory(image);
    expect_success(open_image(image, &log, &fs));
    struct bw_inode_paths paths = {.fs = fs};
    for (unsigned i = 0; i < DEPTH; i++) {
        struct bw_buffer text = {0};
        append_paths(&text, &paths, deepest - i);
        shortest = text.length ? text.length : shortest;
        bw_buffer_free(&text);
    }
    assert_int_equal(shortest, 1 + 250 + 1);
    assert_true(report_log_count(&log, ": its path is longer than 64 KiB") > 0);
    bw_inode_paths_free(&paths);

    /* Directories below one whose path is too long, and those asked for again, end there. */
    const size_t before = report_log_count(&log, ": its path is longer than 64 KiB");
    paths = (struct bw_inode_paths){.fs = fs};
    for (unsigned i = 200; i-- > 0;)
        expect_names(&paths, deepest - i / 2, "");
    assert_int_equal(report_log_count(&log, ": its path is longer than 64 KiB"), before + 1);
    bw_inode_paths_free(&paths);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}
