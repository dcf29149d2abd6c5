/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths that the image writer expects of its images, and what its trees share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/image_writer.h"

enum { TOP = BW_SUBVOLUME_ROOT_INODE };
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_paths(const struct iw_image *image, const char *const *wanted, size_t count)
{
    struct iw_paths paths = iw_expected_paths(image);
    assert_int_equal(paths.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(paths.paths[i], wanted[i]);
    iw_paths_free(&paths);
}

static void test_expected_paths(void **state)
{
    static const char *const wanted[] = {
        "/a file",   "/high/moved/ext", "/high/moved/hard", "/nest/inner/deep",
        "/nest/old", "/plain",          "/snap/old",        "/snap/only here",
    };
    struct iw_options options = {0};
    struct iw_image *image = iw_create(&options);
    uint64_t plain = iw_file(image, 5, TOP, "plain"),
             directory = iw_directory(image, 5, TOP, "low");
    iw_link(image, 5, plain, directory, "hard");
    iw_link_extended(image, 5, plain, directory, "ext");
    iw_symlink(image, 5, TOP, "symlink", "plain");
    iw_make(image, 5, TOP, "pipe", BW_FILE_FIFO);
    iw_file(image, 5, TOP, "a file");
    iw_next_inode(image, 5, 1000);
    uint64_t high = iw_directory(image, 5, TOP, "high");
    assert_int_equal(high, 1000);
    iw_move(image, 5, directory, TOP, "low", high, "moved");
    iw_subvolume(image, 256, 5, TOP, "nest", 0);
    iw_file(image, 256, TOP, "old");
    iw_subvolume(image, 257, 256, TOP, "inner", 0);
    iw_file(image, 257, TOP, "deep");
    iw_snapshot(image, 300, 256, 5, TOP, "snap", BW_ROOT_READ_ONLY); /* "inner" in it is stale */
    iw_file(image, 300, TOP, "only here");
    iw_subvolume(image, 301, 5, TOP, "doomed", 0);
    iw_file(image, 301, TOP, "gone");
    iw_delete_subvolume(image, 301);
    check_paths(image, wanted, COUNT(wanted));
    iw_write_memory(image);
    check_paths(image, wanted, COUNT(wanted));
    iw_destroy(image);
}

static void test_names_of_one_hash_share_an_item(void **state)
{
    static const char one[] = "ethgufec", two[] = "ibvunkku";
    struct iw_options options = {0};
    struct iw_image *image = iw_create(&options);
    assert_int_equal(bw_name_hash(one, 8), bw_name_hash(two, 8));
    struct bw_key key = {TOP, BW_DIR_ITEM, bw_name_hash(one, 8)};
    size_t size = 0;
    iw_file(image, 5, TOP, one);
    iw_file(image, 5, TOP, two);
    assert_non_null(iw_item_bytes(image, 5, key, &size));
    assert_int_equal(size, 2 * (sizeof(struct bw_disk_dir_item) + 8));
    iw_remove_entry(image, 5, TOP, one);
    const struct bw_disk_dir_item *left = iw_item_bytes(image, 5, key, &size);
    assert_int_equal(size, sizeof *left + 8);
    assert_memory_equal(left + 1, two, 8);
    iw_destroy(image);
}

/* A snapshot has its own root and shares unchanged leaves; an alias shares the root. */
static void test_sharing(void **state)
{
    struct iw_options options = {.items_per_leaf = 4};
    struct iw_image *image = iw_create(&options);
    for (char name[] = "a"; *name <= 'z'; ++*name)
        iw_file(image, 5, TOP, name);
    iw_snapshot(image, 256, 5, 5, TOP, "snapshot", 0);
    iw_file(image, 256, TOP, "new");
    iw_alias(image, 257, 256, 5, TOP, "alias");
    iw_write_memory(image);
    size_t shared = 0, own = 0;
    const struct iw_block *leaf;
    for (size_t i = 0; (leaf = iw_block_find(image, 256, 0, i)); i++)
        leaf->tree == 5 ? shared++ : own++;
    assert_true(shared >= 15);
    assert_in_range(own, 1, 10);
    assert_int_equal(iw_root_block(image, 256)->tree, 256);
    assert_ptr_equal(iw_root_block(image, 257), iw_root_block(image, 256));
    iw_destroy(image);
}
