/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/diff/list_side.c: lists of files in both formats, and invalid lists. */
#include <inttypes.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "diff/entries.h"
#include "support/walk_helpers.h"

#define SHA "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define MD5 "0123456789abcdef0123456789abcdef"

/* "LINE PATH KEYWORD=VALUE..." */
static void describe(const struct bw_side_entry *entry, struct bw_buffer *text)
{
    const struct bw_diff_entry *facts = &entry->facts;
    const struct {
        unsigned bit;
        const char *name;
        uint64_t value;
    } numbers[] = {{BW_KNOWS_UID, "uid", facts->uid},
                   {BW_KNOWS_GID, "gid", facts->gid},
                   {BW_KNOWS_LINKS, "nlink", facts->links},
                   {BW_KNOWS_SIZE, "size", facts->size}};
    assert_int_equal(entry->path_length, strlen(entry->path));
    assert_true(!entry->path_length || (*entry->path == '/' && entry->path_length > 1));
    bw_buffer_format(text, "%u %s", facts->line, entry->path + (entry->path_length > 0));
    if (facts->known & BW_KNOWS_TYPE && !(facts->known & BW_KNOWS_HASH))
        bw_buffer_format(text, " %s", bw_file_type_name(facts->type));
    if (facts->known & BW_KNOWS_MODE)
        bw_buffer_format(text, " mode=%" PRIo32, facts->mode);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (facts->known & numbers[i].bit)
            bw_buffer_format(text, " %s=%" PRIu64, numbers[i].name, numbers[i].value);
    if (facts->known & BW_KNOWS_TIME)
        bw_buffer_format(text, " time=%" PRId64 "+%ld", (int64_t)facts->mtime.tv_sec,
                         facts->mtime.tv_nsec);
    if (facts->known & BW_KNOWS_TARGET)
        bw_buffer_format(text, " link=%s", facts->target);
    if (facts->known & BW_KNOWS_DEVICE)
        bw_buffer_format(text, " device=%" PRIu64 ",%" PRIu64, facts->major, facts->minor);
    if (facts->known & BW_KNOWS_HASH)
        bw_buffer_format(text, " %x:%.4s", entry->algorithms, facts->hash);
    bw_buffer_format(text, "%s\n", entry->is_optional ? " optional" : "");
}

/* Without the top, if the list does not contain it. */
static void expect_entries(const char *bytes, size_t length, const char *expected,
                           const char *ignored)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_list *list;
    struct bw_entries *side;
    expect_success(bw_list_open(bytes, length, &list));
    expect_success(bw_entries_open_list(list, &side));
    expect_success(side->class->next(side));
    assert_string_equal(side->entry.path, "");
    while (!side->ended) {
        if (side->entry.facts.line)
            describe(&side->entry, &text);
        expect_success(side->class->next(side));
    }
    assert_string_equal(bw_buffer_text(&text), expected);
    assert_string_equal(bw_list_ignored(list), ignored);
    side->class->close(side);
    bw_list_close(list);
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
     "2 a symlink time=-5+25 link=to there optional\n"
     "1 b file mode=644 uid=1 gid=2 nlink=3 size=18446744073709551615\n"
     "3 c/d character-device time=7+0 device=8,17\n",
     ""},
    /* Indented names are in the present directory; ".." goes up; "." is the top. */
    {". type=dir\n  a type=dir\n    b type=dir\n      c\n    ..\n    d\n  ..\n  e\n..\n..\nf\n",
     "1  directory\n2 a directory\n3 a/b directory\n4 a/b/c\n6 a/d\n8 e\n11 f\n", ""},
    {"a type=dir\nx/y type=dir\nb\n", "1 a directory\n3 a/b\n2 x/y directory\n", ""},
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
    /* Of several hashes of a file the strongest is kept. */
    {"a md5=" MD5 "\nb sha256=" SHA " md5digest=" MD5 "\nc md5=" MD5 " sha256digest=" SHA "\n",
     "1 a 20:0123\n2 b 1:0123\n3 c 1:0123\n", ""},
    {"a md5=" MD5 "\n", "1 a 20:0123\n", ""},
    {"a sha384digest=" MD5 MD5 MD5 "\n/unset sha384\nb", "1 a 4:0123\n3 b\n", ""},
    /* Lines of hashes; a leading backslash means that the name is escaped. */
    {SHA "  ./a b\n" SHA " *c\n\n\\" SHA "  d\\n\\\\e\\r\\x\n",
     "1 a b 1:0123\n2 c 1:0123\n4 d\n\\e\r\\x 1:0123\n", ""},
    /* Lines with tags. Only they tell hashes of one length apart. */
    {"SHA512 (/a) = b) = " SHA SHA "\n\\SHA512 (c\\n) = " SHA SHA "\n",
     "1 a) = b 2:0123\n2 c\n 2:0123\n", ""},
    {SHA SHA "  a\n", "1 a a:0123\n", ""},
    /* Names are ordered one by one: a directory, then everything in it. */
    {"./a-b\n./a//./c\n/a\n.\na/\n", "4 \n5 a\n2 a/c\n1 a-b\n", ""},
};

static void test_lists(void **state)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        expect_entries(lists[i].list, strlen(lists[i].list), lists[i].entries, lists[i].ignored);
}

/* Lines that end with NUL, as sha256sum -z prints them, may have newlines in their paths. */
static void test_zero_lines(void **state)
{
    static const char list[] = SHA "  a\nb\0" SHA "  c";
    expect_entries(list, sizeof list - 1, "1 a\nb 1:0123\n2 c 1:0123\n", "");
    expect_entries(list, sizeof list, "1 a\nb 1:0123\n2 c 1:0123\n", "");
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
    {"a/../b\n", "line 1: a path that leads up"},
    {SHA "  ../b\n", "line 1: a path that leads up"},
    {"a time=1.1000000000\n", "time=1.1000000000"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct bw_list *list;
        expect_error(bw_list_open(refusals[i].list, strlen(refusals[i].list), &list),
                     BW_ERROR_USAGE, refusals[i].message);
    }
}

/* Names below nested directories could need the square of the list. */
static void test_deep_list(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_list *list;
    for (int i = 0; i < 10000; i++)
        bw_buffer_format(&text, "d type=dir\n");
    assert_false(text.failed);
    expect_error(bw_list_open(text.data, text.length, &list), BW_ERROR_USAGE,
                 "the paths are too long");
}

static void test_detection(void **state)
{
    static const char zeros[8192];
    static const char *const good[] =
        {"#mtree\n",  "/set type=file\n",  ". type=dir\n",          "./a type=file\n",
         SHA "  a\n", "\\" SHA "  a\\n\n", "SHA256 (a) = " SHA "\n"},
                             *const bad[] = {"", "btrfs-stream", "{\"a\":1}\n", SHA "\n"};
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(bw_list_detect(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(bw_list_detect(bad[i], strlen(bad[i])));
    assert_false(bw_list_detect(zeros, sizeof zeros));
    assert_false(bw_list_detect("#\0x", 3));
}
