/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/export/manifest.c: lists of files in both formats, and invalid lists. */
#include <inttypes.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "export/manifest.h"
#include "support/walk_helpers.h"

#define SHA "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define MD5 "0123456789abcdef0123456789abcdef"

/* Writes a list to a file and reads it. */
static struct bw_error *read_bytes(const char *bytes, size_t length, struct bw_manifest *manifest)
{
    char path[] = "/tmp/btrfs-walk-list-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    struct bw_error *error = bw_manifest_read(path, manifest);
    unlink(path);
    return error;
}

static void describe_numbers(const struct bw_manifest_entry *entry, struct bw_buffer *text)
{
    const struct {
        unsigned bit;
        const char *name;
        uint64_t value;
    } numbers[] = {{BW_MANIFEST_UID, "uid", entry->uid},
                   {BW_MANIFEST_GID, "gid", entry->gid},
                   {BW_MANIFEST_LINKS, "nlink", entry->links},
                   {BW_MANIFEST_SIZE, "size", entry->size}};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (entry->given & numbers[i].bit)
            bw_buffer_format(text, " %s=%" PRIu64, numbers[i].name, numbers[i].value);
}

/* "LINE PATH KEYWORD=VALUE..." */
static void describe(const struct bw_manifest_entry *entry, struct bw_buffer *text)
{
    bw_buffer_format(text, "%u %s", entry->line, entry->path);
    if (entry->given & BW_MANIFEST_TYPE)
        bw_buffer_format(text, " %s", bw_manifest_type_name(entry->type));
    if (entry->given & BW_MANIFEST_MODE)
        bw_buffer_format(text, " mode=%" PRIo64, entry->mode);
    describe_numbers(entry, text);
    if (entry->given & BW_MANIFEST_TIME)
        bw_buffer_format(text, " time=%" PRId64 "+%" PRIu64, entry->seconds, entry->nanoseconds);
    if (entry->given & BW_MANIFEST_LINK)
        bw_buffer_format(text, " link=%s", entry->link);
    if (entry->given & BW_MANIFEST_DEVICE)
        bw_buffer_format(text, " device=%" PRIu64 ",%" PRIu64, entry->major, entry->minor);
    if (entry->given & BW_MANIFEST_HASH)
        bw_buffer_format(text, " %u:%.4s", (unsigned)entry->algorithm, entry->hash);
    bw_buffer_format(text, "%s\n", entry->given & BW_MANIFEST_OPTIONAL ? " optional" : "");
}

static void expect_entries(const char *bytes, size_t length, const char *expected,
                           const char *ignored)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_manifest manifest;
    expect_success(read_bytes(bytes, length, &manifest));
    for (size_t i = 0; i < manifest.count; i++)
        describe(&manifest.entries[i], &text);
    bw_buffer_append_byte(&text, 0);
    assert_string_equal(text.data, expected);
    assert_string_equal(manifest.ignored.data, ignored);
    bw_manifest_free(&manifest);
}

static const struct {
    const char *list, *entries, *ignored;
} lists[] = {
    {"", "", ""},
    {"#mtree\n\n   \n# x type=file\n", "", ""},
    /* Whole paths, in any order; all keywords. */
    {"./b type=file mode=0644 uid=1 gid=2 nlink=3 size=18446744073709551615\n"
     "/a type=link link=to\\040there time=-5.25 optional\n"
     "c/d type=char device=native,8,17 time=7\n",
     "2 a link time=-5+25 link=to there optional\n"
     "1 b file mode=644 uid=1 gid=2 nlink=3 size=18446744073709551615\n"
     "3 c/d char time=7+0 device=8,17\n",
     ""},
    /* Indented names are in the present directory; ".." goes up; "." is the top. */
    {". type=dir\n  a type=dir\n    b type=dir\n      c\n    ..\n    d\n  ..\n  e\n..\n..\nf\n",
     "1  dir\n2 a dir\n3 a/b dir\n4 a/b/c\n6 a/d\n8 e\n11 f\n", ""},
    {"a type=dir\nx/y type=dir\nb\n", "1 a dir\n3 a/b\n2 x/y dir\n", ""},
    /* /set applies until /unset, and entries override it. */
    {"/set type=file uid=7 mode=0600\na\nb uid=8\n/unset uid mode colour\nc\n/unset all\nd\n",
     "2 a file mode=600 uid=7\n3 b file mode=600 uid=8\n5 c file\n7 d\n", ""},
    /* Lines are joined, escapes decoded, and of two entries the last counts. */
    {"a\\040b \\\n   size=1\n\\156\\134\\n\\sx size=2\na\\040b size=3\n",
     "4 a b size=3\n3 n\\\n x size=2\n", ""},
    {"a\\qb\\\n", "1 aqb\n", ""},
    {"a\\qb\\", "1 aqb\\\n", ""},
    {"a\v", "1 a\n", ""},
    /* Keywords that are not compared are reported once. */
    {"a flags=none rmd160=x uname=root\nb flags=x\n", "1 a\n2 b\n", "flags,rmd160,uname"},
    /* Of several hashes the strongest of the whole list is kept. */
    {"a md5=" MD5 "\nb sha256=" SHA " md5digest=" MD5 "\nc md5=" MD5 " sha256digest=" SHA "\n",
     "1 a\n2 b 0:0123\n3 c 0:0123\n", ""},
    {"a md5=" MD5 "\n", "1 a 5:0123\n", ""},
    {"a sha384digest=" MD5 MD5 MD5 "\n/unset sha384\nb", "1 a 2:0123\n3 b\n", ""},
    /* Lines of hashes; a leading backslash means that the name is escaped. */
    {SHA "  ./a b\n" SHA " *c\n\n\\" SHA "  d\\n\\\\e\\r\\x\n",
     "1 a b 0:0123\n2 c 0:0123\n4 d\n\\e\r\\x 0:0123\n", ""},
    /* Lines with tags. Only they tell hashes of one length apart. */
    {"SHA512 (/a) = b) = " SHA SHA "\n\\SHA512 (c\\n) = " SHA SHA "\n",
     "1 a) = b 1:0123\n2 c\n 1:0123\n", ""},
    {SHA SHA "  a\n", "1 a 3:0123\n", ""},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++)
        expect_entries(lists[i].list, strlen(lists[i].list), lists[i].entries, lists[i].ignored);
}

/* Lines that end with NUL, as sha256sum -z prints them, may have newlines in their paths. */
static void test_zero_lines(void **state)
{
    (void)state;
    static const char list[] = SHA "  a\nb\0" SHA "  c";
    expect_entries(list, sizeof list - 1, "1 a\nb 0:0123\n2 c 0:0123\n", "");
    expect_entries(list, sizeof list, "1 a\nb 0:0123\n2 c 0:0123\n", "");
}

static const struct {
    const char *list, *message;
} refusals[] = {
    {"a\nb colour=red\n", "line 2: unknown keyword: colour"},
    {"a type=folder\n", "line 1: a value that the keyword does not have: type=folder"},
    {"a mode=10000\n", "mode=10000"},
    {"a mode=9\n", "mode=9"},
    {"a mode\n", "does not have: mode"},
    {"a uid=-1\n", "uid=-1"},
    {"a size=18446744073709551616\n", "size=18446744073709551616"},
    {"a time=9223372036854775808\n", "time=9223372036854775808"},
    {"a time=1.\n", "time=1."},
    {"a time=1,5\n", "time=1,5"},
    {"a device=8\n", "device=8"},
    {"a device=native,8\n", "device=native,8"},
    {"a device=native,8,1x\n", "device=native,8,1x"},
    {"a sha256=abc\n", "sha256=abc"},
    {"a md5=" SHA "\n", "md5="},
    {"a optional=yes\n", "optional=yes"},
    {"/set type=folder\n", "line 1: a value"},
    {SHA "  a\n" SHA " b\n", "line 2: neither a hash and a path"},
    {SHA "  a\nSHA1 (a) = " SHA "\n", "line 2: neither a hash and a path"},
    {SHA "  a\nSHA256 () = " SHA "\n", "line 2: neither a hash and a path"},
    {SHA "  a\nSHA256 (a) = " SHA "x\n", "line 2: neither a hash and a path"},
    {SHA "  a\n" MD5 MD5 "  \n", "line 2: neither"},
    {SHA "  a\n" SHA "0  b\n", "line 2: neither"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct bw_manifest manifest;
        expect_error(read_bytes(refusals[i].list, strlen(refusals[i].list), &manifest),
                     BW_ERROR_USAGE, refusals[i].message);
        bw_manifest_free(&manifest);
    }
    struct bw_manifest manifest;
    expect_error(bw_manifest_read("/nowhere/at/all", &manifest), BW_ERROR_SYSTEM, "/nowhere");
    bw_manifest_free(&manifest);
}

static void test_find(void **state)
{
    (void)state;
    static const char list[] = "b\na\n. type=dir\nc/d\n";
    struct bw_manifest manifest;
    expect_success(read_bytes(list, sizeof list - 1, &manifest));
    assert_false(manifest.only_files);
    assert_int_equal(bw_manifest_find(&manifest, "a")->line, 2);
    assert_int_equal(bw_manifest_find(&manifest, "")->line, 3);
    assert_int_equal(bw_manifest_find(&manifest, "c/d")->line, 4);
    assert_null(bw_manifest_find(&manifest, "c"));
    bw_manifest_free(&manifest);
    expect_success(read_bytes("", 0, &manifest));
    assert_null(bw_manifest_find(&manifest, "a"));
    bw_manifest_free(&manifest);
    expect_success(read_bytes(SHA "  a", sizeof(SHA "  a") - 1, &manifest));
    assert_true(manifest.only_files);
    assert_int_equal(manifest.algorithm, BW_HASH_SHA256);
    bw_manifest_free(&manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_zero_lines),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
