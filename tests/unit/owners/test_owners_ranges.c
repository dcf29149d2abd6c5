/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/owners/ranges.c: which of the ranges a range meets, and which bytes are covered. */
#include "owners/ranges.h"

#include "support/walk_helpers.h"

/* The numbers of the ranges that meet another one, as digits. */
static void meets(const struct bw_sought_list *list, uint64_t start, uint64_t length,
                  const char *wanted)
{
    char found[16];
    size_t count = 0;
    const struct bw_sought *sought;
    for (size_t next = 0; (sought = bw_sought_next(list, &next, start, length));)
        found[count++] = (char)('0' + sought->number);
    found[count] = '\0';
    assert_string_equal(found, wanted);
}

static void test_sought(void **state)
{
    (void)state;
    struct bw_sought_list list = {0};
    meets(&list, 0, UINT64_MAX, "");
    assert_true(bw_sought_add(&list, 100, 10, 0));
    assert_true(bw_sought_add(&list, 50, 200, 1));
    assert_true(bw_sought_add(&list, 300, 1, 2));
    assert_true(bw_sought_add(&list, UINT64_MAX - 1, 1, 3));
    assert_true(bw_sought_add(&list, 0, 1, 4));
    bw_sought_sort(&list);
    meets(&list, 0, UINT64_MAX, "41023");
    meets(&list, 1, 49, "");
    meets(&list, 109, 1, "10");
    meets(&list, 110, 1, "1");
    meets(&list, 250, 50, "");
    meets(&list, 250, 51, "2");
    meets(&list, UINT64_MAX - 1, 1, "3");
    free(list.items);
}

/* Walks over the addresses from 0 to 100, and says where the cover changes. */
static void covers(const struct bw_cover *cover, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    for (uint64_t at = 0, next; at < 100; at = next) {
        next = 100;
        const bool covered = bw_cover_at(cover, at, &next);
        bw_buffer_format(&text, "%c%u", covered ? '+' : '-', (unsigned)next);
    }
    bw_buffer_append_byte(&text, '\0');
    assert_string_equal(text.data, wanted);
}

static void test_cover(void **state)
{
    (void)state;
    struct bw_cover cover = {0};
    covers(&cover, "-100");
    for (int round = 0; round < 1000; round++) {
        assert_true(bw_cover_add(&cover, 30, 40));
        assert_true(bw_cover_add(&cover, 10, 20));
        assert_true(bw_cover_add(&cover, 15, 25));
    }
    assert_true(cover.capacity < 100); /* what is the same takes no memory */
    bw_cover_join(&cover);
    covers(&cover, "-10+25-30+40-100");
    assert_true(bw_cover_add(&cover, 25, 30));
    bw_cover_join(&cover);
    covers(&cover, "-10+40-100");
    free(cover.items);
}

static void test_blocks(void **state)
{
    (void)state;
    struct bw_block_set set = {0};
    bool added;
    for (uint64_t block = 0; block < 100; block++) {
        assert_false(bw_block_set_has(&set, block << 14));
        assert_true(bw_block_set_add(&set, block << 14, &added) && added);
        assert_true(bw_block_set_add(&set, block << 14, &added) && !added);
        assert_true(bw_block_set_has(&set, block << 14));
    }
    bw_map_free(&set.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sought), cmocka_unit_test(test_cover),
                                       cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
