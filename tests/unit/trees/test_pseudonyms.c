/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/trees/pseudonyms.c: the same length and hash, one to one, and dependent on the key. */
#include "trees/metadump.h"

#include <stdio.h>

#include "base/crc32c.h"
#include "ondisk/checksum.h"
#include "support/walk_helpers.h"

static const struct bw_pseudonyms names = {"a key"}, others = {"another key"};

static bool is_printable(const uint8_t *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~' || name[i] == '/')
            return false;
    return true;
}

/* Replaces a name; asserts that the result is valid and differs from it. */
static void replace(const char *name, size_t length, uint8_t result[256])
{
    memcpy(result, name, length);
    assert_true(bw_pseudonym(&names, BW_NAME_SEED, result, length));
    assert_memory_not_equal(result, name, length);
    assert_int_equal(bw_name_hash(result, length), bw_name_hash(name, length));
    assert_null(memchr(result, '/', length));
    assert_null(memchr(result, '\0', length));
}

static void test_replaced(void **state)
{
    uint8_t result[256], again[256];
    char name[256];
    memset(name, 'n', sizeof name);
    for (size_t length = 6; length <= 255; length++) {
        replace(name, length, result);
        assert_true(is_printable(result, length));
        replace(name, length, again);
        assert_memory_equal(result, again, length);
        memcpy(again, name, length);
        assert_true(bw_pseudonym(&others, BW_NAME_SEED, again, length));
        if (length > 8)
            assert_memory_not_equal(result, again, length);
    }
    replace("\xc3\xbcml\xc3\xa4ut", 8, result);
    assert_false(is_printable(result, 8));
}

static void test_kept(void **state)
{
    uint8_t name[300] = "abcd";
    for (size_t length = 0; length <= BW_PSEUDONYM_NONE; length++)
        assert_false(bw_pseudonym(&names, BW_NAME_SEED, name, length));
    assert_false(bw_pseudonym(&names, BW_NAME_SEED, name, 256));
    assert_string_equal((char *)name, "abcd");
}

/* The end of a name whose beginning is kept. */
static void test_end(void **state)
{
    uint8_t name[] = "user.comment";
    const uint32_t seed = bw_crc32c(BW_NAME_SEED, "user.", 5);
    assert_true(bw_pseudonym(&names, seed, name + 5, 7));
    assert_memory_equal(name, "user.", 5);
    assert_int_equal(bw_name_hash(name, 12), bw_name_hash("user.comment", 12));
}

/* All names of five bytes with the same hash, each of which has its own first byte, are permuted.
 */
static void check_class(const char *name)
{
    bool met[256] = {false};
    const uint32_t hash = bw_name_hash(name, 5);
    unsigned count = 0, expected = 0;
    for (unsigned first = 1; first < 256; first++) {
        uint8_t member[5] = {(uint8_t)first};
        uint32_t state = hash; /* run backwards over the end */
        for (unsigned bit = 0; bit < 32; bit++)
            state = state >> 31 ? (state ^ UINT32_C(0x82f63b78)) << 1 | 1 : state << 1;
        state ^= bw_crc32c(BW_NAME_SEED, member, 1);
        for (unsigned i = 0; i < 4; i++)
            member[1 + i] = (uint8_t)(state >> 8 * i);
        if (memchr(member, '/', 5) || memchr(member, '\0', 5))
            continue;
        assert_int_equal(bw_name_hash(member, 5), hash);
        expected++;
        bw_pseudonym(&names, BW_NAME_SEED, member, 5);
        assert_int_equal(bw_name_hash(member, 5), hash);
        count += !met[member[0]];
        met[member[0]] = true;
    }
    assert_true(expected > 200);
    assert_int_equal(count, expected);
}

static void test_one_to_one(void **state)
{
    char name[8];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "f%04u", i);
        check_class(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_one_to_one),
    };
    bw_error_free(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
