/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/btree/edit.c: changes to a tree in memory, compared with an array. The image must not change.
 */
#include "btree/edit.h"
#include "btree/find_leaf.h"
#include "fs/fs.h"
#include "support/walk_helpers.h"

enum { KEYS = 3000, ITEMS = 60, TREE = BW_UUID_TREE, LARGEST = 1500 };

/* The sizes of the items that there should be; 0: none. */
struct model {
    uint32_t sizes[KEYS];
};

static struct bw_key key_of(size_t number)
{
    return (struct bw_key){1000 + number / 10, 1, number % 10};
}

static const uint8_t *bytes_of(size_t number, uint32_t size)
{
    static uint8_t bytes[LARGEST + 1];
    memset(bytes, (int)(number * 7 + size), size);
    return bytes;
}

static struct iw_image *make_image(struct model *model)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    *model = (struct model){{0}};
    for (size_t number = 0; number < KEYS; number += KEYS / ITEMS) {
        model->sizes[number] = 50;
        iw_item(image, TREE, key_of(number), bytes_of(number, 50), 50);
    }
    iw_shape(image, TREE, 5, 5, 2);
    iw_write_memory(image);
    return image;
}

static struct bw_tree tree_of(const struct iw_image *image)
{
    const struct iw_block *root = iw_root_block(image, TREE);
    return (struct bw_tree){TREE, {root->logical, root->generation, (uint8_t)root->level}, 0};
}

/* The tree of an image, to be changed. */
struct bench {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_tree tree;
    struct bw_block_memory memory;
    struct bw_tree_editor editor;
};

static void make_bench(struct bench *bench, struct iw_image *image)
{
    *bench = (struct bench){.image = image, .tree = tree_of(image), .memory = {.nodesize = 4096}};
    expect_success(open_image(image, NULL, &bench->fs));
    expect_success(
        bw_editor_create(&bench->editor, &bench->fs->reader, &bench->memory, &bench->tree, 77));
}

static void free_bench(struct bench *bench)
{
    bw_editor_destroy(&bench->editor);
    bw_memory_free(&bench->memory);
    bw_fs_close(bench->fs);
    iw_destroy(bench->image);
}

/* Reads the tree as everybody does. */
static void check_tree(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                       const struct model *model)
{
    struct bw_item_range range;
    size_t number = 0;
    bw_item_range_begin(&range, reader, tree, (struct bw_key){0}, BW_KEY_MAX);
    for (; bw_item_range_next(&range); number++) {
        assert_null(range.error);
        while (number < KEYS && !model->sizes[number])
            number++;
        assert_in_range(number, 0, KEYS - 1);
        struct bw_key key = key_of(number);
        assert_int_equal(bw_key_compare(&key, &range.item.key), 0);
        assert_int_equal(range.item.size, model->sizes[number]);
        assert_memory_equal(range.item.data, bytes_of(number, range.item.size), range.item.size);
    }
    while (number < KEYS && !model->sizes[number])
        number++;
    assert_int_equal(number, KEYS);
    expect_success(bw_item_range_end(&range, NULL));
}

/* The neighbours of a key. */
static void check_key(struct bw_tree_editor *editor, const struct model *model, size_t number)
{
    const struct bw_key key = key_of(number);
    struct bw_item item;
    size_t at = number;
    expect_success(bw_edit_find(editor, &key, &item));
    assert_int_equal(item.data != NULL, model->sizes[number] != 0);
    while (at < KEYS && !model->sizes[at])
        at++;
    struct bw_key expected = key_of(at);
    expect_success(bw_edit_first(editor, &key, &item));
    assert_int_equal(item.data != NULL, at < KEYS);
    assert_true(!item.data || bw_key_compare(&item.key, &expected) == 0);
    for (at = number + 1; at > 0 && !model->sizes[at - 1];)
        at--;
    expected = key_of(at - 1);
    expect_success(bw_edit_last(editor, &key, &item));
    assert_int_equal(item.data != NULL, at > 0);
    assert_true(!item.data || bw_key_compare(&item.key, &expected) == 0);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void change(struct bw_tree_editor *editor, struct model *model, uint32_t *seed, bool fewer)
{
    size_t number = next_random(seed) % KEYS;
    const struct bw_key key = key_of(number);
    if (next_random(seed) % 8 < (fewer ? 7 : 2)) {
        expect_success(bw_edit_remove(editor, &key));
        model->sizes[number] = 0;
    } else {
        uint32_t largest = next_random(seed) % 4 ? 60 : LARGEST;
        model->sizes[number] = 1 + next_random(seed) % largest;
        expect_success(bw_edit_put(editor, &key, bytes_of(number, model->sizes[number]),
                                   model->sizes[number]));
    }
}

static void test_changes(void **state)
{
    (void)state;
    struct bench bench;
    struct model model, before;
    uint32_t seed = 1;
    make_bench(&bench, make_image(&model));
    before = model;
    check_tree(&bench.fs->reader, &bench.tree, &model);
    for (size_t step = 0; step < 20000; step++) {
        change(&bench.editor, &model, &seed, step % 10000 > 6000);
        check_key(&bench.editor, &model, next_random(&seed) % KEYS);
        if (step % 500 == 0)
            check_tree(&bench.editor.reader, &bench.editor.tree, &model);
    }
    assert_in_range(bench.editor.tree.root.level, 2, 4);
    check_tree(&bench.fs->reader, &bench.tree, &before); /* the image has not changed */
    for (size_t number = 0; number < KEYS; number++) {
        const struct bw_key key = key_of(number);
        expect_success(bw_edit_remove(&bench.editor, &key));
    }
    check_tree(&bench.editor.reader, &bench.editor.tree, &(struct model){{0}});
    free_bench(&bench);
}

/* Only the blocks that a key leads to are copied. */
static void test_cost(void **state)
{
    (void)state;
    struct bench bench;
    struct model model;
    const struct bw_key key = key_of(1);
    make_bench(&bench, make_image(&model));
    expect_success(bw_edit_put(&bench.editor, &key, "new", 3));
    assert_int_equal(bench.memory.blocks.count, bench.tree.root.level + 1);
    const struct bw_item too_large = {key, bytes_of(1, 1), bw_edit_room(&bench.editor) + 1};
    expect_error(bw_edit_put(&bench.editor, &key, too_large.data, too_large.size), BW_ERROR_CORRUPT,
                 "fits no leaf");
    free_bench(&bench);
}

/* A lost leaf cannot be changed; the others can. */
static void test_loss(void **state)
{
    (void)state;
    struct bench bench;
    struct model model;
    struct iw_image *image = make_image(&model);
    const struct bw_key first = key_of(0), last = key_of(KEYS - 1);
    const struct iw_block *leaf = iw_block_of_key(image, TREE, first);
    iw_corrupt(image, leaf->logical, IW_ALL_COPIES, 200, 1, IW_FLIP);
    make_bench(&bench, image);
    expect_error(bw_edit_put(&bench.editor, &first, "new", 3), BW_ERROR_CORRUPT, "checksum");
    expect_success(bw_edit_put(&bench.editor, &last, "new", 3));
    free_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
