/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base: directories of this machine, split files and lists of bad sectors. */
#include <errno.h>
#include <inttypes.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bad_map.h"
#include "base/cleanup.h"
#include "base/folder.h"
#include "base/parts.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP    make_files
#define GROUP_TEARDOWN remove_files

static char directory[] = "/tmp/folder-XXXXXX";

static char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_files(void **state)
{
    if (!mkdtemp(directory) || mkdir(path_of("below"), 0700) ||
        symlink("below/../file", path_of("link")))
        return -1;
    write_file("file", "0123456789");
    write_file("below/b", "");
    write_file("below/a", "");
    return 0;
}

static int remove_files(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

static void test_lists(void **state)
{
    struct bw_folder folder, missing;
    struct bw_folder_names names = {0};
    struct stat status;
    expect_success(bw_folder_open(directory, &folder));
    expect_success(bw_folder_list(&folder, "", &names));
    assert_int_equal(names.offsets.count, 3);
    expect_success(bw_folder_list(&folder, "below", &names));
    assert_int_equal(names.offsets.count, 2);
    assert_string_equal(names.text.data + names.offsets.items[0], "a");
    assert_string_equal(names.text.data + names.offsets.items[1], "b");

    /* Errors name the path; nothing follows a symbolic link. */
    char text[128];
    snprintf(text, sizeof text, "%s/file: Not a directory", directory);
    expect_error(bw_folder_list(&folder, "file", &names), BW_ERROR_SYSTEM, text);
    expect_error(bw_folder_list(&folder, "link", &names), BW_ERROR_SYSTEM, "link");
    assert_int_equal(names.offsets.count, 0);
    expect_success(bw_folder_stat(&folder, "link", &status));
    assert_true(S_ISLNK(status.st_mode));
    expect_success(bw_folder_stat(&folder, "", &status));
    assert_true(S_ISDIR(status.st_mode));
    assert_false(bw_folder_is_empty_subvolume(&folder, "", &status));
    status.st_ino = 2; /* as in a subvolume within a snapshot, but on another file system */
    assert_false(bw_folder_is_empty_subvolume(&folder, "below", &status));
    assert_false(bw_folder_is_empty_subvolume(&folder, "missing", &status));
    expect_error(bw_folder_stat(&folder, "missing", &status), BW_ERROR_SYSTEM, "/missing: No such");
    expect_error(bw_folder_open(path_of("missing"), &missing), BW_ERROR_SYSTEM,
                 "/missing: No such");
    bw_folder_close(&missing);
    expect_error(bw_folder_open(path_of("file"), &missing), BW_ERROR_SYSTEM, "Not a directory");
    status.st_mode = S_IFREG;
    assert_false(bw_folder_is_empty_subvolume(&folder, "file", &status));
    assert_int_equal(mkdir(path_of("below/empty"), 0700), 0);
    expect_success(bw_folder_list(&folder, "below/empty", &names));
    assert_int_equal(names.offsets.count, 0);
    bw_folder_names_free(&names);
    bw_folder_close(&folder);
    bw_folder_close(&folder);
}

static void test_files(void **state)
{
    struct bw_folder folder;
    BW_AUTO_BUFFER struct bw_buffer target = {0};
    char bytes[16];
    int file;
    expect_success(bw_folder_open(directory, &folder));
    expect_success(bw_folder_open_file(&folder, "file", &file));
    assert_int_equal(bw_folder_read(file, bytes, 4, 3), 4);
    assert_memory_equal(bytes, "3456", 4);
    assert_int_equal(bw_folder_read(file, bytes, sizeof bytes, 8), 2); /* up to the end */
    assert_int_equal(bw_folder_read(file, bytes, sizeof bytes, 100), 0);
    assert_int_equal(bw_folder_read(file, bytes, 1, UINT64_MAX), -1);
    assert_int_equal(errno, EINVAL);
    close(file);
    expect_error(bw_folder_open_file(&folder, "link", &file), BW_ERROR_SYSTEM, "link");
    expect_error(bw_folder_open_file(&folder, "missing", &file), BW_ERROR_SYSTEM, "No such file");
    expect_success(bw_folder_open_file(&folder, "below", &file));
    assert_int_equal(bw_folder_read(file, bytes, sizeof bytes, 0), -1);
    assert_int_equal(errno, EISDIR);
    close(file);
    expect_success(bw_folder_readlink(&folder, "link", &target));
    assert_int_equal(target.length, strlen("below/../file"));
    assert_memory_equal(target.data, "below/../file", target.length);
    expect_error(bw_folder_readlink(&folder, "file", &target), BW_ERROR_SYSTEM, "Invalid argument");
    bw_folder_close(&folder);
}

static void test_attributes(void **state)
{
    static const struct {
        const char *name;
        bool compared;
    } cases[] = {{"user.a", true},       {"trusted", true},
                 {"trusted.a", false},   {"btrfs.compression", false},
                 {"btrfs", true},        {"security.capability", true},
                 {"user.btrfs.a", true}, {"", true}};
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(bw_folder_compares_xattr(cases[i].name, strlen(cases[i].name)),
                         cases[i].compared);

    struct bw_folder folder;
    struct bw_folder_xattrs xattrs = {0};
    expect_success(bw_folder_open(directory, &folder));
    expect_success(bw_folder_xattrs_read(&folder, "below/b", &xattrs));
    const size_t others = xattrs.list.count; /* of a security module, for each file */
    if (setxattr(path_of("below/a"), "user.empty", "", 0, 0) == 0) {
        assert_int_equal(setxattr(path_of("below/a"), "user.value", "a\0b", 3, 0), 0);
        expect_success(bw_folder_xattrs_read(&folder, "below/a", &xattrs));
        assert_int_equal(xattrs.list.count, others + 2);
        size_t found = 0;
        for (size_t i = 0; i < xattrs.list.count; i++) {
            const struct bw_folder_xattr *xattr = &xattrs.list.items[i];
            const char *name = xattrs.text.data + xattr->name;
            if (strcmp(name, "user.empty") == 0)
                found += xattr->length == 0;
            if (strcmp(name, "user.value") == 0)
                found +=
                    xattr->length == 3 && memcmp(xattrs.text.data + xattr->value, "a\0b", 3) == 0;
        }
        assert_int_equal(found, 2);
    }
    expect_error(bw_folder_xattrs_read(&folder, "missing", &xattrs), BW_ERROR_SYSTEM, "No such");
    bw_folder_xattrs_free(&xattrs);
    bw_folder_close(&folder);
}

static void test_parts(void **state)
{
    static const struct {
        const char *path, *suffix;
    } cases[] = {
        {"image.001", "001"},     {"image.00", "00"},
        {"image.aa", "aa"},       {"a.b/image.000", "000"},
        {"image.split_aa", "aa"}, {"image.01", "01"},
        {"image.002", NULL},      {"image.ab", NULL},
        {"image.0", NULL},        {"image.000000001", NULL},
        {"image", NULL},          {"folder.001/image", NULL},
        {"image.", NULL},         {"image.split_", NULL},
        {"image.011", NULL},      {"image.aaaaaaaa", "aaaaaaaa"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *suffix = bw_part_suffix(cases[i].path);
        assert_int_equal(suffix != NULL, cases[i].suffix != NULL);
        if (suffix)
            assert_string_equal(suffix, cases[i].suffix);
    }
    char digits[] = "0999", letters[] = "azz", last[] = "99";
    assert_true(bw_part_count_up(digits));
    assert_string_equal(digits, "1000");
    assert_true(bw_part_count_up(letters));
    assert_string_equal(letters, "baa");
    assert_false(bw_part_count_up(last));

    write_file("image.001", "");
    assert_false(bw_part_is_first(path_of("image.001")));
    write_file("image.002", "");
    assert_true(bw_part_is_first(path_of("image.001")));
    assert_false(bw_part_is_first(path_of("image.002")));
    char *path = path_of("image.001");
    const size_t suffix = strlen(path) - 3;
    assert_true(bw_part_next(path, suffix));
    assert_false(bw_part_next(path, suffix));
    assert_string_equal(path + suffix, "003"); /* the missing one */
}

/* The ranges of a list, as text. */
static struct bw_error *add_range(void *context, uint64_t start, uint64_t length)
{
    bw_buffer_format(context, "%" PRIu64 "+%" PRIu64 " ", start, length);
    return start == 7 ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static void test_bad_maps(void **state)
{
    static const struct {
        const char *text, *ranges;
        const char *problem; /* with the number of the line */
    } cases[] = {
        /* ddrescue */
        {"# c\n\n0x0 ? 1\n0 0x1000 +\n0x1000 010 -\n", "4096+8 ", NULL},
        {"0x0 +\n1 2 *\n3 0 /\n", "1+2 ", NULL},
        {"0 ? # comment\n1 1 ?", "1+1 ", NULL},
        {"0 ?\n1 1 -\n2 -\n", "1+1 ", ":3:"},
        {"0 ?\n1\n", "", ":2:"},
        {"0 ?\n1 1 - 1\n", "", ":2:"},
        {"0 ?\n1 1 - 1 1\n", "", ":2:"},
        {"0 ?\n1 -1 -\n", "", ":2:"},
        {"0 ?\n1 1x -\n", "", ":2:"},
        {"0 ?\n1 1 F\n", "", ":2:"},
        {"0 ?\n1 1 --\n", "", ":2:"},
        {"0 ?\n0xffffffffffffffff 1 -\n", "", ":2:"},
        {"0 ?\n0xfffffffffffffffe 1 -\n", "18446744073709551614+1 ", NULL},
        {"0 ?\n0x10000000000000000 1 -\n", "", ":2:"},
        {"0 X\n", "", ":1:"},
        {"x ?\n", "", ":1:"},
        {"1 1 -\n", "", ":1:"}, /* no line with the state */
        {"0 ?\n7 1 -\n8 1 -\n", "7+1 ", "enough"},
        /* badblocks */
        {"0\n010\n3 # c\n", "0+1024 10240+1024 3072+1024 ", NULL},
        {"0x10\n", "", ":1:"},
        {"18014398509481983\n", "", ":1:"},
        {"18014398509481982\n", "18446744073709549568+1024 ", NULL},
        {"18014398509481984\n", "", ":1:"},
        {"1\n2 ?\n", "1024+1024 ", ":2:"},
        {"", "", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        BW_AUTO_BUFFER struct bw_buffer ranges = {0};
        write_file("map", cases[i].text);
        struct bw_error *error = bw_bad_map_read(path_of("map"), add_range, &ranges, NULL);
        bw_buffer_append_byte(&ranges, '\0');
        if (cases[i].problem)
            expect_error(error, error->code, cases[i].problem);
        else
            expect_success(error);
        assert_string_equal(ranges.data, cases[i].ranges);
    }
    expect_error(bw_bad_map_read(path_of("missing"), add_range, NULL, NULL), BW_ERROR_SYSTEM,
                 "/missing: ");
}
