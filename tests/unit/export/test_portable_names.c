/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that Windows accepts, and the numbers of names that become the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/portable_names.h"

/* Collects what is reported as changed: "OLD-LENGTH NEW;". */
static struct bw_error *collect(void *context, size_t length, const char *path, size_t path_length)
{
    bw_buffer_format(context, "%zu %.*s;", length, (int)path_length, path);
    return NULL;
}

static void assert_becomes(struct bw_portable_names *names, const char *path, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer result = {0};
    assert_null(bw_portable_names_find(names, path, strlen(path), &result));
    assert_string_equal(result.data, wanted);
    assert_int_equal(result.length, strlen(wanted));
}

static void test_names(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"plain.txt", "plain.txt"},
        {"a\"*:<>?\\|b", "a________b"},
        {"\x01\x1f\x7f", "__\x7f"},
        {"\xff\xc3", "__"},
        {"\xc3\xa4\xf0\x9f\x92\xbe", "\xc3\xa4\xf0\x9f\x92\xbe"},
        {"dot.", "dot_"},
        {"space ", "space_"},
        {". .", ". _"},
        {" leading", " leading"},
        {".hidden", ".hidden"},
        {"nul", "nul_"},
        {"Con.tar.gz", "Con_.tar.gz"},
        {"PRN .x", "PRN_ .x"},
        {"com9", "com9_"},
        {"com10", "com10"},
        {"LPT\xc2\xb3", "LPT\xc2\xb3_"},
        {"conin$", "conin$_"},
        {"console", "console"},
        {"d:/aux/e?", "d_/aux_/e_"},
    };
    BW_AUTO_BUFFER struct bw_buffer changed = {0};
    struct bw_portable_names names = {.changed = collect, .context = &changed};
    bw_portable_names_open(&names);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_becomes(&names, cases[i][0], cases[i][1]);
    bw_portable_names_close(&names);
}

static void test_numbers(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer changed = {0};
    struct bw_portable_names names = {.changed = collect, .context = &changed};
    bw_portable_names_open(&names);
    for (unsigned i = 0; i < 2; i++) { /* the second time, nothing changes */
        assert_becomes(&names, "a/File.txt", "a/File.txt");
        assert_becomes(&names, "a/file.TXT", "a/file_2.TXT");
        assert_becomes(&names, "b/file.TXT", "b/file.TXT");
        assert_becomes(&names, "A/x", "A_2/x");
        assert_becomes(&names, "a/x", "a/x");
        assert_becomes(&names, "A/file.txt", "A_2/file.txt");
        assert_becomes(&names, ".x", ".x");
        assert_becomes(&names, ".X", ".X_2");
        assert_becomes(&names, "\xc3\x84", "\xc3\x84");
        assert_becomes(&names, "\xc3\xa4", "\xc3\xa4_2");
    }
    assert_string_equal(changed.data ? changed.data : "",
                        "10 a/file_2.TXT;1 A_2;2 .X_2;2 \xc3\xa4_2;");
    assert_int_equal(changed.data[changed.length], 0);
    bw_portable_names_close(&names);
}

/* Without a locale, only the case of ASCII is ignored. */
static void test_ascii(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer changed = {0};
    struct bw_portable_names names = {.changed = collect, .context = &changed};
    assert_becomes(&names, "\xc3\x84", "\xc3\x84");
    assert_becomes(&names, "\xc3\xa4", "\xc3\xa4");
    assert_becomes(&names, "x", "x");
    assert_becomes(&names, "X", "X_2");
    bw_portable_names_close(&names);
}

static void test_long_names(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer changed = {0};
    struct bw_portable_names names = {.changed = collect, .context = &changed};
    BW_AUTO_BUFFER struct bw_buffer result = {0};
    char path[256] = {0};

    /* characters of two bytes are not cut in the middle */
    for (size_t i = 0; i < 254; i += 2)
        memcpy(path + i, "\xc3\xa4", 2);
    path[254] = 'x';
    assert_null(bw_portable_names_find(&names, path, 255, &result));
    assert_int_equal(result.length, 255);
    path[254] = 'X';
    assert_null(bw_portable_names_find(&names, path, 255, &result));
    assert_int_equal(result.length, 254);
    assert_string_equal(result.data + 250, "\xc3\xa4_2");

    /* a reserved word with a long suffix */
    memset(path, 'y', 255);
    memcpy(path, "con.", 4);
    assert_null(bw_portable_names_find(&names, path, 255, &result));
    assert_int_equal(result.length, 255);
    assert_memory_equal(result.data, "con_.y", 6);
    bw_portable_names_close(&names);
}

/* Thousands of names that become the same take no quadratic time, and all are different. */
static void test_many(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer changed = {0};
    struct bw_portable_names names = {.changed = collect, .context = &changed};
    BW_AUTO_BUFFER struct bw_buffer result = {0};
    BW_SCOPED(bw_key_set) struct bw_key_set all = {0};
    for (unsigned i = 0; i < 1 << 14; i++) {
        char path[15];
        bool is_new;
        path[14] = '\0';
        for (unsigned bit = 0; bit < 14; bit++)
            path[bit] = i >> bit & 1 ? '?' : ':';
        assert_null(bw_portable_names_find(&names, path, 14, &result));
        assert_null(bw_key_set_add(&all, bw_hash_path(result.data, result.length), &is_new));
        assert_true(is_new);
        changed.length = 0;
    }
    bw_portable_names_close(&names);
}
