/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/format: the check of tree blocks, and the items in them. */
#include "ondisk/items.h"
#include "ondisk/node.h"
#include "support/walk_helpers.h"

enum { NODESIZE = 4096, BYTENR = 1 << 20 };

/* Tree blocks. */

static struct bw_disk_header *header(uint8_t *block)
{
    return (void *)block;
}

static struct bw_disk_key_pointer *pointers(uint8_t *block)
{
    return (void *)(block + sizeof(struct bw_disk_header));
}

static struct bw_disk_item *items(uint8_t *block)
{
    return (void *)(block + sizeof(struct bw_disk_header));
}

static struct bw_disk_key disk_key(uint64_t objectid, uint8_t type, uint64_t offset)
{
    return (struct bw_disk_key){bw_put64(objectid), type, bw_put64(offset)};
}

/* A block of tree 5, generation 7, with three children or empty items, keys (256 96 2), (256 96 3),
 * (256 96 4). */
static void make_block(uint8_t *block, uint8_t level)
{
    memset(block, 0, NODESIZE);
    *header(block) = (struct bw_disk_header){.bytenr = bw_put64(BYTENR),
                                             .generation = bw_put64(7),
                                             .owner = bw_put64(5),
                                             .item_count = bw_put32(3),
                                             .level = level};
    for (uint64_t i = 0; i < 3; i++) {
        struct bw_disk_key key = disk_key(256, BW_DIR_INDEX, 2 + i);
        if (level)
            pointers(block)[i] =
                (struct bw_disk_key_pointer){key, bw_put64((i + 1) << 16), bw_put64(7)};
        else
            items(block)[i] = (struct bw_disk_item){key, bw_put32(NODESIZE - 101), bw_put32(0)};
    }
}

static struct bw_tree_block_expectation expectation(uint8_t level)
{
    return (struct bw_tree_block_expectation){.owner = 5,
                                              .generation = 7,
                                              .first_key = {256, BW_DIR_INDEX, 2},
                                              .level = level,
                                              .has_first_key = true};
}

/* A block that was not checked may have any number of items. */
static void test_views_end_with_the_block(void **state)
{
    uint8_t block[NODESIZE];
    make_block(block, 0);
    header(block)->item_count = bw_put32(UINT32_MAX);
    assert_int_equal(bw_node_view(block, NODESIZE).item_count, (NODESIZE - 101) / 25);
    make_block(block, 1);
    assert_int_equal(bw_node_view(block, NODESIZE).item_count, 3);
    header(block)->item_count = bw_put32(122);
    assert_int_equal(bw_node_view(block, NODESIZE).item_count, (NODESIZE - 101) / 33);
}

static void test_good_blocks(void **state)
{
    uint8_t block[NODESIZE];
    for (uint8_t level = 0; level < BW_MAX_LEVEL; level++) {
        struct bw_tree_block_expectation wanted = expectation(level);
        make_block(block, level);
        expect_success(bw_node_check(block, NODESIZE, BYTENR, &wanted));
        assert_true(bw_node_meets_expectation(block, NODESIZE, BYTENR, &wanted));
        struct bw_node node = bw_node_view(block, NODESIZE);
        assert_int_equal(node.level, level);
        assert_int_equal(node.item_count, 3);
    }
}

static void expect_bad(const uint8_t *block, const struct bw_tree_block_expectation *wanted,
                       const char *text)
{
    expect_error(bw_node_check(block, NODESIZE, BYTENR, wanted), BW_ERROR_CORRUPT, text);
    assert_false(bw_node_meets_expectation(block, NODESIZE, BYTENR, wanted));
}

static void test_mismatches(void **state)
{
    uint8_t block[NODESIZE];
    struct bw_tree_block_expectation wanted = expectation(0);
    make_block(block, 0);
    expect_error(bw_node_check(block, NODESIZE, BYTENR + 4096, &wanted), BW_ERROR_CORRUPT,
                 "bytenr mismatch, want 1052672 have 1048576");
    wanted.level = 1;
    expect_bad(block, &wanted, "level mismatch, want 1 have 0");
    wanted = expectation(0);
    wanted.generation = 8;
    expect_bad(block, &wanted, "generation mismatch, want 8 have 7");
    wanted.generation = 6;
    expect_bad(block, &wanted, "generation mismatch, want 6 have 7");
    wanted = expectation(0);
    wanted.first_key.offset = 1;
    expect_bad(block, &wanted, "first key mismatch, slot 0 key (256 96 2)");
    wanted.has_first_key = false;
    expect_success(bw_node_check(block, NODESIZE, BYTENR, &wanted));
}

static void test_owners(void **state)
{
    static const struct {
        uint64_t wanted, found;
        bool fits;
    } cases[] = {
        {5, 5, true},
        {5, 256, true},
        {300, 5, true},
        {300, 299, true},
        {300, BW_TREE_RELOC, true},
        {5, 1, false},
        {5, 255, false},
        {1, 5, false},
        {3, 1, false},
        {1, 1, true},
        {256, (uint64_t)-9, false},
        {5, 3, false},
        {300, 255, false},
        {10, 10, true},
    };
    uint8_t block[NODESIZE];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_tree_block_expectation wanted = expectation(0);
        make_block(block, 0);
        header(block)->owner = bw_put64(cases[i].found);
        wanted.owner = cases[i].wanted;
        if (cases[i].fits)
            expect_success(bw_node_check(block, NODESIZE, BYTENR, &wanted));
        else
            expect_bad(block, &wanted, "owner mismatch");
    }
}

static void test_item_counts(void **state)
{
    const uint32_t most[] = {(NODESIZE - 101) / 25, (NODESIZE - 101) / 33};
    static const uint32_t huge[] = {UINT32_MAX, 1u << 31, 65536};
    uint8_t block[NODESIZE];
    for (uint8_t level = 0; level < 2; level++) {
        struct bw_tree_block_expectation wanted = expectation(level);
        wanted.lenient = true; /* zeros follow the three items */
        make_block(block, level);
        header(block)->item_count = bw_put32(most[level]);
        expect_success(bw_node_check(block, NODESIZE, BYTENR, &wanted));
        header(block)->item_count = bw_put32(most[level] + 1);
        expect_bad(block, &wanted, "invalid item count");
        for (size_t i = 0; i < COUNT(huge); i++) {
            header(block)->item_count = bw_put32(huge[i]);
            expect_bad(block, &wanted, "invalid item count");
        }
        header(block)->item_count = bw_put32(0);
        expect_bad(block, &wanted, "no items");
    }
    struct bw_tree_block_expectation root = {.owner = 5, .generation = 7};
    make_block(block, 0);
    header(block)->item_count = bw_put32(0);
    expect_success(bw_node_check(block, NODESIZE, BYTENR, &root));
}

static void test_pointers(void **state)
{
    uint8_t block[NODESIZE];
    struct bw_tree_block_expectation wanted = expectation(2), lenient = wanted;
    lenient.lenient = true;
    make_block(block, 2);
    pointers(block)[1].key = disk_key(256, BW_DIR_INDEX, 2);
    expect_error(bw_node_check(block, NODESIZE, BYTENR, &wanted), BW_ERROR_CORRUPT,
                 "keys out of order, slot 1");
    expect_success(bw_node_check(block, NODESIZE, BYTENR, &lenient));
    make_block(block, 2);
    pointers(block)[2].key = disk_key(255, BW_DIR_INDEX, 9);
    expect_error(bw_node_check(block, NODESIZE, BYTENR, &wanted), BW_ERROR_CORRUPT,
                 "keys out of order, slot 2");
    make_block(block, 2);
    pointers(block)[2].bytenr = bw_put64(65537);
    expect_error(bw_node_check(block, NODESIZE, BYTENR, &wanted), BW_ERROR_CORRUPT,
                 "unaligned pointer, slot 2 bytenr 65537");
    lenient.first_key.offset = 77;
    expect_success(bw_node_check(block, NODESIZE, BYTENR, &lenient));
    lenient.generation = 8;
    expect_error(bw_node_check(block, NODESIZE, BYTENR, &lenient), BW_ERROR_CORRUPT, "generation");
}

static void test_leaf_items(void **state)
{
    static const struct {
        uint32_t offset, size;
        bool inside;
    } cases[] = {
        {NODESIZE - 101, 0, true},
        {NODESIZE - 102, 1, true},
        {75, NODESIZE - 101 - 75, true},
        {NODESIZE - 101, 1, false},
        {NODESIZE - 100, 0, false},
        {74, 10, false},
        {0, 10, false},
        {UINT32_MAX, 2, false},
        {1000, UINT32_MAX, false},
        {2, UINT32_MAX - 1, false},
        {NODESIZE - 102, 2, false},
    };
    uint8_t block[NODESIZE];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_item item;
        make_block(block, 0);
        items(block)[1].offset = bw_put32(cases[i].offset);
        items(block)[1].size = bw_put32(cases[i].size);
        struct bw_node leaf = bw_node_view(block, NODESIZE);
        assert_int_equal(bw_leaf_item(&leaf, 1, &item), cases[i].inside);
        assert_int_equal(item.key.offset, 3);
        if (cases[i].inside)
            assert_ptr_equal(item.data, block + 101 + cases[i].offset);
    }
}

static void test_keys(void **state)
{
    static const struct bw_key ascending[] = {
        {0, 0, 0},          {0, 0, 1}, {0, 1, 0},          {1, 0, 0},
        {1, 0, UINT64_MAX}, {1, 1, 0}, {UINT64_MAX, 0, 0}, {UINT64_MAX, 255, UINT64_MAX}};
    for (size_t i = 0; i < COUNT(ascending); i++)
        for (size_t j = 0; j < COUNT(ascending); j++) {
            int order = bw_key_compare(&ascending[i], &ascending[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
}

/* Names. */

static void test_names(void **state)
{
    static const struct {
        const char *name;
        size_t length;
        bool valid;
    } cases[] = {
        {"a", 1, true},
        {"", 0, false},
        {".", 1, false},
        {"..", 2, false},
        {"...", 3, true},
        {".a", 2, true},
        {"a/b", 3, false},
        {"/", 1, false},
        {"a\0b", 3, false},
        {"\0", 1, false},
        {"12345678/", 9, false},
        {"1234567/", 8, false},
        {"12345678\0", 9, false},
        {"\0002345678", 8, false},
        {"12345678abcdefg/", 16, false},
        {"12345678abcdefgh", 16, true},
        {"\xff\xfe\x80\x01", 4, true},
        {"\n", 1, true},
        {".2345678", 8, true},
        {"\x30\x2e\x2f", 3, false},
        {"\x2e\x30\x2e\x30\x2e\x30\x2e\x30", 8, true},
        {"\x01\x01\x01\x01\x01\x01\x01\x01", 8, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80", 8, true},
        {"\xaf\xaf\xaf\xaf\xaf\xaf\xaf\xaf", 8, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(bw_name_is_valid((const uint8_t *)cases[i].name, cases[i].length),
                         cases[i].valid);
}

/* A bad byte is found wherever it stands, in names of every length. */
static void test_bad_bytes_in_names(void **state)
{
    uint8_t name[BW_NAME_MAX + 1];
    for (size_t length = 1; length <= BW_NAME_MAX; length++) {
        memset(name, 'x', sizeof name);
        assert_true(bw_name_is_valid(name, length));
        for (size_t at = 0; at < length; at++) {
            name[at] = '/';
            assert_false(bw_name_is_valid(name, length));
            name[at] = '\0';
            assert_false(bw_name_is_valid(name, length));
            name[at] = 'x';
        }
    }
    assert_false(bw_name_is_valid(name, BW_NAME_MAX + 1));
}

/* Snapshots share blocks. */
static void test_owners_of_shared_blocks(void **state)
{
    static const struct {
        uint64_t tree, owner;
        bool may;
    } cases[] = {
        {BW_ROOT_TREE, BW_ROOT_TREE, true},
        {BW_ROOT_TREE, BW_EXTENT_TREE, false},
        {256, 257, true},
        {256, BW_TREE_RELOC, true},
        {BW_DATA_RELOC_TREE, BW_TREE_RELOC, true},
        {BW_TREE_RELOC, BW_DATA_RELOC_TREE, true},
        {BW_DATA_RELOC_TREE, 256, false},
        {256, BW_DATA_RELOC_TREE, false},
        {256, BW_EXTENT_TREE, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(bw_node_may_belong(cases[i].tree, cases[i].owner), cases[i].may);
}
