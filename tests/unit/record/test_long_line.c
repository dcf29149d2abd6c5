/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long lines: columns, times, unknown values. */
#include "record/long_line.h"
#include "support/time_of.h"
#include "support/walk_helpers.h"

static void expect_line(const struct bw_walked_file *file, const char *text)
{
    struct bw_buffer line = {0};
    bw_buffer_append_byte(&line, '>');
    bw_long_line_append(file, NULL, &line);
    bw_buffer_append(&line, "name", 5);
    assert_string_equal(line.data, text);
    bw_buffer_free(&line);
}

static void test_lines(void **state)
{
    (void)state;
    struct bw_inode inode = {.mode = 0100640,
                             .link_count = 2,
                             .uid = 1000,
                             .gid = 7,
                             .size = 20000,
                             .mtime = TIME_OF(-1)};
    const struct bw_walked_file file = {.type = BW_FILE_REGULAR, .inode = &inode};
    expect_line(&file,
                ">-rw-r-----   2  1000     7        20000 1969-12-31 23:59:59.999999999 name");
    inode = (struct bw_inode){.mode = 0060600, .link_count = 1, .device = 7 << 20 | 1048575};
    expect_line(&file,
                ">brw-------   1     0     0   7, 1048575 1970-01-01 00:00:00.000000000 name");
    inode = (struct bw_inode){.mode = 0100777,
                              .link_count = UINT32_MAX,
                              .uid = UINT32_MAX,
                              .gid = UINT32_MAX,
                              .size = UINT64_MAX,
                              .mtime = TIME_OF(INT64_MAX)};
    expect_line(&file, ">-rwxrwxrwx 4294967295 4294967295 4294967295 18446744073709551615 "
                       "2262-04-11 23:47:16.854775807 name");
    inode = (struct bw_inode){.mode = 0020600, .device = UINT64_MAX, .mtime = TIME_OF(INT64_MIN)};
    expect_line(&file,
                ">crw-------   0     0     0 4095, 1048575 1677-09-21 00:12:43.145224192 name");
}

static void test_unknown(void **state)
{
    (void)state;
    expect_line(&(struct bw_walked_file){.type = BW_FILE_SYMLINK},
                ">l?????????   ?     ?     ?            ? ?                             name");
    expect_line(&(struct bw_walked_file){.type = 200},
                ">??????????   ?     ?     ?            ? ?                             name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
