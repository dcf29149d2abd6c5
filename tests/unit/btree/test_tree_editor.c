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

/* Smaller and smaller keys in an empty tree: leaves and nodes are split on their left sides. */
static void test_descending_keys(void **state)
{
    struct bench bench;
    struct model model;
    make_bench(&bench, make_image(&model));
    bw_editor_destroy(&bench.editor);
    expect_success(
        bw_editor_create_empty(&bench.editor, &bench.fs->reader, &bench.memory, TREE, 77));
    model = (struct model){{0}};
    check_key(&bench.editor, &model, 7);
    for (size_t number = KEYS; number-- > 0;) {
        const struct bw_key key = key_of(number);
        model.sizes[number] = LARGEST;
        expect_success(bw_edit_put(&bench.editor, &key, bytes_of(number, LARGEST), LARGEST));
    }
    assert_in_range(bench.editor.tree.root.level, 2, 4);
    check_tree(&bench.editor.reader, &bench.editor.tree, &model);
    free_bench(&bench);
}

/* The largest item between two others: three leaves. */
static void test_largest_item(void **state)
{
    struct bench bench;
    struct model model;
    static uint8_t bytes[4096];
    struct bw_item item;
    make_bench(&bench, make_image(&model));
    const struct bw_key before = key_of(1), key = key_of(2), behind = key_of(3);
    const uint32_t room = bw_edit_room(&bench.editor);
    memset(bytes, 'x', room);
    expect_success(bw_edit_put(&bench.editor, &before, "before", 6));
    expect_success(bw_edit_put(&bench.editor, &behind, "behind", 6));
    expect_success(bw_edit_put(&bench.editor, &key, bytes, room));
    expect_success(bw_edit_find(&bench.editor, &key, &item));
    assert_int_equal(item.size, room);
    assert_memory_equal(item.data, bytes, room);
    expect_success(bw_edit_find(&bench.editor, &before, &item));
    assert_memory_equal(item.data, "before", item.size);
    expect_success(bw_edit_find(&bench.editor, &behind, &item));
    assert_memory_equal(item.data, "behind", item.size);
    free_bench(&bench);
}

/* Blocks in memory that another tree shares are copied before a change. */
static void test_shared_blocks(void **state)
{
    struct bench bench;
    struct model model, before;
    make_bench(&bench, make_image(&model));
    const struct bw_key key = key_of(0);
    expect_success(bw_edit_put(&bench.editor, &key, bytes_of(0, 7), 7));
    model.sizes[0] = 7;
    before = model;
    const struct bw_tree shared = bench.editor.tree;
    const size_t count = bench.editor.shared = bench.memory.blocks.count;
    expect_success(bw_edit_put(&bench.editor, &key, bytes_of(0, 8), 8));
    model.sizes[0] = 8;
    assert_int_equal(bench.memory.blocks.count, 2 * count);
    check_tree(&bench.editor.reader, &shared, &before);
    check_tree(&bench.editor.reader, &bench.editor.tree, &model);
    /* Only addresses of whole blocks lead to memory. */
    assert_non_null(bw_memory_block(&bench.memory, BW_MEMORY_START));
    assert_null(bw_memory_block(&bench.memory, BW_MEMORY_START + 1));
    assert_true(bw_memory_has(&bench.memory, BW_MEMORY_START));
    assert_false(bw_memory_has(&bench.memory, BW_MEMORY_START + 1));
    assert_null(bw_memory_block(&bench.memory, BW_MEMORY_START - 4096));
    assert_null(bw_memory_block(&bench.memory, BW_MEMORY_START + 2 * count * 4096));
    free_bench(&bench);
}

/* Hostile blocks, with checksums that match. */

static struct bw_disk_item *items_of(uint8_t *leaf)
{
    return (void *)(leaf + sizeof(struct bw_disk_header));
}

static struct bw_disk_key_pointer *pointers_of(uint8_t *node)
{
    return (void *)(node + sizeof(struct bw_disk_header));
}

static void repeat_key(uint8_t *leaf, uint32_t nodesize, void *closure)
{
    items_of(leaf)[2].key = items_of(leaf)[1].key;
}

static void move_item_out(uint8_t *leaf, uint32_t nodesize, void *closure)
{
    items_of(leaf)[1].offset = bw_put32(nodesize);
}

static void point_to_memory(uint8_t *node, uint32_t nodesize, void *closure)
{
    pointers_of(node)[1].bytenr = bw_put64(BW_MEMORY_START);
}

static void test_hostile_blocks(void **state)
{
    static const struct {
        iw_block_editor *edit;
        unsigned level;
        const char *problem;
    } cases[] = {{repeat_key, 0, "keys of a leaf are out of order"},
                 {point_to_memory, 1, "a pointer leads out of the image"},
                 {point_to_memory, 2, "a pointer leads out of the image"}};
    const struct bw_key key = key_of(0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bench bench;
        struct model model;
        struct bw_item item;
        struct iw_image *image = make_image(&model);
        iw_rewrite_block(image, iw_block_find(image, TREE, cases[i].level, 0)->logical,
                         cases[i].edit, NULL, true);
        make_bench(&bench, image);
        expect_error(bw_edit_put(&bench.editor, &key, "new", 3), BW_ERROR_CORRUPT,
                     cases[i].problem);
        expect_error(bw_edit_remove(&bench.editor, &key), BW_ERROR_CORRUPT, cases[i].problem);
        expect_error(bw_edit_find(&bench.editor, &key, &item), BW_ERROR_CORRUPT, cases[i].problem);
        expect_error(bw_edit_first(&bench.editor, &key, &item), BW_ERROR_CORRUPT, cases[i].problem);
        free_bench(&bench);
    }
}

/* An item whose bytes are outside its leaf is empty, also after the leaf is written again. */
static void test_item_outside_leaf(void **state)
{
    struct bench bench;
    struct model model;
    struct bw_item item;
    struct iw_image *image = make_image(&model);
    const struct bw_key key = key_of(0), other = key_of(KEYS / ITEMS);
    iw_rewrite_block(image, iw_block_of_key(image, TREE, other)->logical, move_item_out, NULL,
                     true);
    make_bench(&bench, image);
    expect_success(bw_edit_find(&bench.editor, &other, &item));
    assert_true(item.data && item.size == 0);
    expect_success(bw_edit_put(&bench.editor, &key, "new", 3));
    expect_success(bw_edit_find(&bench.editor, &other, &item));
    assert_true(item.data && item.size == 0);
    expect_success(bw_edit_put(&bench.editor, &other, bytes_of(1, 50), 50));
    expect_success(bw_edit_find(&bench.editor, &other, &item));
    assert_int_equal(item.size, 50);
    free_bench(&bench);

    image = make_image(&model); /* the same without another change before */
    iw_rewrite_block(image, iw_block_of_key(image, TREE, other)->logical, move_item_out, NULL,
                     true);
    make_bench(&bench, image);
    expect_success(bw_edit_put(&bench.editor, &other, bytes_of(1, 50), 50));
    expect_success(bw_edit_find(&bench.editor, &other, &item));
    assert_memory_equal(item.data, bytes_of(1, 50), item.size);
    free_bench(&bench);
}

/* Fills a node with pointers that are not followed. */
static void fill_node(uint8_t *node, uint32_t nodesize, void *closure)
{
    struct bw_disk_header *header = (void *)node;
    struct bw_disk_key_pointer *pointers = pointers_of(node);
    const uint32_t room = (nodesize - (uint32_t)sizeof *header) / (uint32_t)sizeof *pointers;
    for (uint32_t i = 1; i < room; i++) {
        pointers[i] = pointers[0];
        pointers[i].key.objectid = bw_put64(2000 + UINT64_C(1000) * header->level + i); /* within
                                                                                         * the
                                                                                         * parent's
                                                                                         */
    }
    header->item_count = bw_put32(room);
}

/* A tree of the maximum height whose nodes are full cannot grow. */
static void test_full_tree(void **state)
{
    struct bench bench;
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    const struct bw_key key = key_of(0);
    iw_item(image, TREE, key, "item", 4);
    iw_shape(image, TREE, 0, 0, BW_MAX_LEVEL - 1);
    iw_write_memory(image);
    for (unsigned level = 1; level < BW_MAX_LEVEL; level++)
        iw_rewrite_block(image, iw_block_find(image, TREE, level, 0)->logical, fill_node, NULL,
                         true);
    make_bench(&bench, image);
    struct bw_error *error = NULL;
    for (size_t number = 1; number < 10 && !error; number++) {
        const struct bw_key next = key_of(number);
        error = bw_edit_put(&bench.editor, &next, bytes_of(number, LARGEST), LARGEST);
    }
    expect_error(error, BW_ERROR_CORRUPT, "the tree gets too high");
    free_bench(&bench);
}
