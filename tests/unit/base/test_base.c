/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base: errors, buffers, escaping, sets of numbers, growing arrays, little-endian numbers,
 * cleanup. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/escape.h"
#include "base/pair_set.h"
#include "support/walk_helpers.h"

/* Errors. */

static void test_error_messages(void **state)
{
    struct bw_error *error = bw_error_create(BW_ERROR_CORRUPT, "slot %d", 7);
    assert_int_equal(error->code, BW_ERROR_CORRUPT);
    assert_int_equal(error->system, 0);
    assert_null(error->way);
    assert_null(error->causes);
    assert_string_equal(error->message, "slot 7");
    error = bw_error_prefix(error, "block %d", 4096);
    error = bw_error_prefix(error, "tree %s", "5");
    assert_string_equal(error->message, "tree 5: block 4096: slot 7");
    assert_int_equal(error->code, BW_ERROR_CORRUPT);
    bw_error_free(error);
    bw_error_free(NULL);
}

static void test_error_of_system(void **state)
{
    struct bw_error *error = bw_error_from_errno(ENOENT, "cannot open %s", "x.img");
    assert_int_equal(error->code, BW_ERROR_SYSTEM);
    assert_int_equal(error->system, ENOENT);
    assert_string_equal(error->message, "cannot open x.img: No such file or directory");
    bw_error_free(error);
}

static void test_error_without_memory(void **state)
{
    struct bw_error *error = bw_error_no_memory();
    assert_int_equal(error->code, BW_ERROR_NO_MEMORY);
    assert_ptr_equal(bw_error_prefix(error, "context"), error);
    assert_string_equal(error->message, "out of memory");
    bw_error_free(error);
    assert_string_equal(bw_error_no_memory()->message, "out of memory");
}

static void test_error_way_and_causes(void **state)
{
    const uint64_t below = 100, above = 200;
    char name[] = "device-1";
    struct bw_error *error = bw_error_create(BW_ERROR_CORRUPT, "no good mirror");
    bw_error_add_hop(error, "storage/file", name, &below);
    name[0] = 'x'; /* names are copied: the layers may go before the error */
    bw_error_add_hop(error, "cluster/chunk-map", "map", &above);
    bw_error_add_hop(error, "fs", "fs", NULL);
    assert_string_equal(error->way->volume, "device-1");
    assert_string_equal(error->way->layer, "storage/file");
    assert_int_equal(error->way->address, 100);
    assert_string_equal(error->way->next->volume, "map");
    assert_int_equal(error->way->next->address, 200);
    assert_false(error->way->next->next->has_address);
    assert_null(error->way->next->next->next);
    bw_error_add_cause(error, bw_error_create(BW_ERROR_SYSTEM, "first"));
    bw_error_add_cause(error, bw_error_create(BW_ERROR_SYSTEM, "second"));
    bw_error_add_cause(error, NULL);
    bw_error_add_cause(error, bw_error_no_memory());
    bw_error_add_cause(error->causes->next, bw_error_create(BW_ERROR_SYSTEM, "below"));
    assert_string_equal(error->causes->message, "first");
    assert_string_equal(error->causes->next->message, "second");
    assert_string_equal(error->causes->next->causes->message, "below");
    assert_null(error->causes->next->next);
    bw_error_free(error);
    bw_error_add_hop(bw_error_no_memory(), "a/b", "c", NULL);
    bw_error_add_cause(bw_error_no_memory(), bw_error_create(BW_ERROR_SYSTEM, "dropped"));
    assert_null(bw_error_no_memory()->way);
    assert_null(bw_error_no_memory()->causes);
}

/* A copy has everything, and belongs to nobody else. */
static void test_error_copy(void **state)
{
    const uint64_t address = 100;
    struct bw_error *error = bw_error_from_errno(ENOSPC, "full");
    bw_error_add_hop(error, "storage/file", "device", &address);
    bw_error_add_hop(error, "fs", "fs", NULL);
    bw_error_add_cause(error, bw_error_create(BW_ERROR_CORRUPT, "cause"));
    error = bw_error_advise(bw_error_advise(error, "wait"), "delete `%u` files", 2);
    error = bw_error_in(bw_error_about(error, "/inner"), "/outer");
    struct bw_error *copy = bw_error_copy(error);
    bw_error_free(error);
    assert_int_equal(copy->system, ENOSPC);
    assert_string_equal(copy->message, "/outer: full: No space left on device");
    assert_string_equal(copy->file, "/inner");
    assert_string_equal(copy->advice, "delete `2` files");
    assert_true(copy->way->has_address && copy->way->address == 100);
    assert_string_equal(copy->way->next->layer, "fs");
    assert_false(copy->way->next->has_address);
    assert_string_equal(copy->causes->message, "cause");
    bw_error_free(copy);
    assert_ptr_equal(bw_error_copy(bw_error_no_memory()), bw_error_no_memory());
    error = bw_error_in(bw_error_advise(bw_error_no_memory(), "wait"), "/file");
    assert_ptr_equal(error, bw_error_no_memory());
    assert_null(error->file);
    assert_null(error->advice);
}

static struct bw_error *fail_if(bool fail)
{
    return fail ? bw_error_create(BW_ERROR_USAGE, "failed") : NULL;
}

static struct bw_error *try_twice(bool first, bool second, int *reached)
{
    *reached = 0;
    BW_TRY(fail_if(first));
    *reached = 1;
    BW_AUTO_FREE char *memory = malloc(10);
    assert_non_null(memory);
    BW_AUTO_ERROR struct bw_error *ignored = fail_if(true);
    BW_TRY(fail_if(second));
    *reached = 2;
    return BW_TAKE(ignored);
}

static void test_cleanup(void **state)
{
    int reached;
    expect_error(try_twice(true, false, &reached), BW_ERROR_USAGE, "failed");
    assert_int_equal(reached, 0);
    expect_error(try_twice(false, true, &reached), BW_ERROR_USAGE, "failed");
    assert_int_equal(reached, 1);
    expect_error(try_twice(false, false, &reached), BW_ERROR_USAGE, "failed");
    assert_int_equal(reached, 2);
}

/* Buffers. */

static void test_buffer(void **state)
{
    struct bw_buffer buffer = {0};
    bw_buffer_append(&buffer, "", 0);
    assert_null(buffer.data);
    for (int i = 0; i < 10000; i++) {
        bw_buffer_append(&buffer, "abc", 3);
        bw_buffer_append_byte(&buffer, (char)i);
    }
    assert_int_equal(buffer.length, 40000);
    assert_true(buffer.capacity >= 40000 && buffer.capacity < 100000);
    assert_memory_equal(buffer.data + 4 * 513, "abc\1", 4);
    bw_buffer_format(&buffer, "%05d", 42);
    assert_memory_equal(buffer.data + 40000, "00042", 5);
    assert_false(buffer.failed);
    bw_buffer_free(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.capacity, 0);
}

static void test_buffer_without_memory(void **state)
{
    struct bw_buffer buffer = {0};
    /* A length that was set although the append failed must not look like room. */
    buffer.length = 100;
    bw_buffer_append(&buffer, "abc", 3);
    assert_true(buffer.failed && !buffer.data && buffer.length == 100);
    buffer = (struct bw_buffer){0};
    bw_buffer_append(&buffer, "kept", 4);
    assert_false(bw_buffer_reserve(&buffer, SIZE_MAX));
    assert_true(buffer.failed);
    assert_false(bw_buffer_reserve(&buffer, SIZE_MAX - 2));
    assert_int_equal(buffer.length, 4);
    assert_memory_equal(buffer.data, "kept", 4);
    bw_buffer_free(&buffer);
    assert_false(buffer.failed);
}

/* A NUL follows a text without belonging to it; without memory for it, it takes the last byte. */
static void test_buffer_text(void **state)
{
    char room[4];
    struct bw_buffer buffer = {0}, fixed = {.data = room, .capacity = sizeof room, .fixed = true};
    assert_string_equal(bw_buffer_text(&buffer), "");
    bw_buffer_format(&buffer, "abc");
    assert_string_equal(bw_buffer_text(&buffer), "abc");
    bw_buffer_append_byte(&buffer, 'd');
    assert_string_equal(bw_buffer_text(&buffer), "abcd");
    assert_int_equal(buffer.length, 4);
    bw_buffer_append(&fixed, "abcd", 4);
    assert_string_equal(bw_buffer_text(&fixed), "abc");
    assert_true(fixed.failed);
    assert_null(bw_buffer_terminate(&buffer));
    assert_int_equal(buffer.length, 5);
    bw_buffer_free(&buffer);
}

/* Escaping. */

static void test_escape(void **state)
{
    static const struct {
        const char *raw, *escaped;
    } cases[] = {
        {"plain-name_1.txt", "plain-name_1.txt"},
        {"a b", "a\\ b"},
        {"back\\slash", "back\\\\slash"},
        {"\a\b\t\n\v\f\r", "\\a\\b\\t\\n\\v\\f\\r"},
        {"\x01\x1b[31m\x7f", "\\001\\033[31m\\177"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac\\ \xf0\x9f\x98\x80"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\\302\\200\\302\\237\xc2\xa0"},
        {"\xff\xfe", "\\377\\376"},
        {"\xc0\xaf", "\\300\\257"},
        {"\xc1\xbf", "\\301\\277"},
        {"\xe0\x80\xaf", "\\340\\200\\257"},
        {"\xe0\xa0\x80", "\xe0\xa0\x80"},
        {"\xed\xa0\x80", "\\355\\240\\200"},
        {"\xed\x9f\xbf", "\xed\x9f\xbf"},
        {"\xf0\x80\x80\x80", "\\360\\200\\200\\200"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xf4\x90\x80\x80", "\\364\\220\\200\\200"},
        {"\xf5\x80\x80\x80", "\\365\\200\\200\\200"},
        {"cut\xe2\x82", "cut\\342\\202"},
        {"cut\xc3", "cut\\303"},
        {"\xc3(", "\\303("},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_buffer buffer = {0};
        bw_escape_append(&buffer, cases[i].raw, strlen(cases[i].raw));
        assert_string_equal(bw_buffer_text(&buffer), cases[i].escaped);
        bw_buffer_free(&buffer);
    }
}

/* Numbers that lie close together share groups; those far apart and at both ends have their own. */
static void test_number_set(void **state)
{
    struct bw_number_set set = {0};
    bool is_new;
    assert_false(bw_number_set_has(&set, 0));
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 10000; i++) {
            assert_null(bw_number_set_insert(&set, i * 2, &is_new));
            assert_int_equal(is_new, !round);
            assert_null(bw_number_set_insert(&set, UINT64_MAX - i * 1000003, &is_new));
            assert_int_equal(is_new, !round);
        }
    }
    for (uint64_t i = 0; i < 20000; i++)
        assert_int_equal(bw_number_set_has(&set, i), i % 2 == 0);
    assert_true(set.groups.count < 10000 + 20000 / 64 + 2);
    bw_number_set_free(&set);
    assert_false(bw_number_set_has(&set, 2));
}

static void test_pair_set_forgets(void **state)
{
    struct bw_pair_set set = {0};
    bool is_new;
    for (uint64_t first = 5; first < 300; first++) {
        assert_null(bw_pair_set_insert(&set, first, 256, &is_new));
        assert_true(is_new);
    }
    bw_pair_set_forget(&set, 7);
    bw_pair_set_forget(&set, 4711);
    assert_null(bw_pair_set_insert(&set, 8, 256, &is_new));
    assert_true(!is_new);
    assert_null(bw_pair_set_insert(&set, 7, 256, &is_new));
    assert_true(is_new);
    assert_null(bw_pair_set_insert(&set, 7, 256, &is_new));
    assert_true(!is_new);
    bw_pair_set_free(&set);
}

static void test_escape_nul(void **state)
{
    struct bw_buffer buffer = {0};
    bw_escape_append(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 6);
    assert_memory_equal(buffer.data, "a\\000b", 6);
    bw_buffer_free(&buffer);
}

/* Numbers. */

static void test_endian(void **state)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 0xf8};
    bw_le16 le16;
    bw_le32 le32;
    bw_le64 le64;
    memcpy(&le16, bytes, sizeof le16);
    memcpy(&le32, bytes, sizeof le32);
    memcpy(&le64, bytes, sizeof le64);
    assert_int_equal(bw_get16(le16), 0x0201);
    assert_int_equal(bw_get32(le32), 0x04030201);
    assert_true(bw_get64(le64) == UINT64_C(0xf807060504030201));
    le16 = bw_put16(0x0201);
    le32 = bw_put32(0x04030201);
    le64 = bw_put64(UINT64_C(0xf807060504030201));
    assert_memory_equal(&le16, bytes, 2);
    assert_memory_equal(&le32, bytes, 4);
    assert_memory_equal(&le64, bytes, 8);
}
