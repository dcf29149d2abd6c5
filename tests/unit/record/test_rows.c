/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/record/rows.c: lists of columns, every format as text and JSON, absent values, bytes that are
 * not text, and what surrounds the rows. */
#include "support/time_of.h"
#include "support/walk_helpers.h"

#include "base/json.h"
#include "record/rows.h"

static struct bw_buffer text;

static struct bw_rows *make(const char *record, const struct bw_rows_options *options)
{
    struct bw_rows *rows;
    bw_buffer_free(&text);
    expect_success(bw_rows_create(record, options, &rows));
    return rows;
}

static void expect_text(const char *expected)
{
    assert_false(text.failed);
    assert_int_equal(text.length, strlen(expected));
    assert_string_equal(bw_buffer_text(&text), expected);
    bw_buffer_free(&text);
}

static const struct bw_inode sample_inode = {
    .generation = 7,
    .transid = 9,
    .size = 1572864,
    .bytes = 4096,
    .flags = 0x801,
    .sequence = 3,
    .atime = TIME_OF(1),
    .ctime = TIME_OF(-1),
    .mtime = TIME_OF(INT64_C(1795230678123456789)),
    .otime = TIME_OF(INT64_MIN),
    .link_count = 2,
    .uid = 1000,
    .gid = UINT32_MAX,
    .mode = 0100644,
};

static struct bw_walked_file file_of(const char *path, const struct bw_inode *inode)
{
    return (struct bw_walked_file){.path = path,
                                   .path_length = strlen(path),
                                   .subvolume = 5,
                                   .number = 257,
                                   .type = BW_FILE_REGULAR,
                                   .inode = inode};
}

/* The row of a file, of which it makes no difference which rows are before it: the text of a value
 * is kept when it is written a second time, and copied from then on. */
static void check(const struct bw_rows_options *options, const struct bw_walked_file *file,
                  const char *expected)
{
    struct bw_rows *rows = make("fileinfo", options);
    struct bw_repeated repeated = {0};
    struct bw_inode other = {.size = 1, .mode = 0100644, .uid = 1001, .flags = UINT64_MAX};
    const struct bw_inode *const inodes[] = {file->inode, file->inode, file->inode, NULL,
                                             file->inode, &other,      file->inode};
    for (size_t i = 0; i < sizeof inodes / sizeof *inodes; i++) {
        struct bw_walked_file one = *file;
        const size_t start = text.length;
        one.inode = inodes[i];
        bw_rows_append_file(rows, &one, &repeated, &text);
        if (inodes[i] == file->inode)
            assert_true(text.length - start == strlen(expected) &&
                        memcmp(text.data + start, expected, strlen(expected)) == 0);
    }
    bw_rows_destroy(rows);
    text.length = strlen(expected);
    expect_text(expected);
}

static void check_columns(const char *columns, const struct bw_walked_file *file,
                          const char *expected)
{
    check(&(struct bw_rows_options){.struct_size = sizeof(struct bw_rows_options),
                                    .members = columns,
                                    .terminator = '\n'},
          file, expected);
}

static void check_json(const char *columns, const struct bw_walked_file *file, const char *expected)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .members = columns,
                                            .style = BW_ROWS_JSON_LINES,
                                            .terminator = '\n'};
    check(&options, file, expected);
}

static void test_columns(void **state)
{
    struct bw_walked_file file = file_of("/a b", &sample_inode);
    check_columns("path", &file, "/a b\n");
    check_columns("size,path", &file, "1572864\t/a b\n");
    check_columns("path_bytes,type,subvolume,inode", &file, "L2EgYg==\tfile\t5\t257\n");
    check_columns("mode,uid,gid,flags", &file, "100644\t1000\t4294967295\tNODATASUM|COMPRESS\n");
    check_columns("atime,ctime,mtime,otime", &file,
                  "1\t-1\t1795230678123456789\t-9223372036854775808\n");
    check_columns(
        NULL, &file,
        "/a b\tL2EgYg==\t5\t257\tfile\t100644\t1000\t4294967295\t1572864\t4096\t2\t1\t"
        "1795230678123456789\t-1\t-9223372036854775808\t7\t9\t3\tNODATASUM|COMPRESS\t-\n");
    file.compression = "zstd";
    file.compression_length = 4;
    check_columns("compression", &file, "zstd\n");
    file.extent_count = 3;
    file.disk = 8192;
    check_columns("extent_count,disk", &file, "3\t8192\n");
}

static void test_separators(void **state)
{
    struct bw_walked_file file = file_of("/x", &sample_inode);
    struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                      .members = "uid,path,nlink",
                                      .terminator = ';'};
    options.separator = ", ";
    options.separator_length = 2;
    check(&options, &file, "1000, /x, 2;");
    options.separator = "";
    options.separator_length = 0;
    check(&options, &file, "1000/x2;");
    options.separator = " | a separator longer than sixteen bytes | ";
    options.separator_length = strlen(options.separator);
    check(&options, &file,
          "1000 | a separator longer than sixteen bytes | /x | a separator longer than sixteen "
          "bytes | 2;");
    options.separator = "a\0b";
    options.separator_length = 3;
    struct bw_rows *rows = make("fileinfo", &options);
    bw_rows_append_file(rows, &file, NULL, &text);
    assert_int_equal(text.length, strlen("1000a?b/xa?b2;"));
    assert_memory_equal(text.data, "1000a\0b/xa\0b2;", text.length);
    bw_rows_destroy(rows);
    bw_buffer_free(&text);
}

static void test_absent(void **state)
{
    struct bw_walked_file file = file_of("/x", NULL);
    check_columns("path,size,compression,mtime,type", &file, "/x\t-\t-\t-\tfile\n");
    check_columns("size", &file, "-\n");
    check_json(NULL, &file, "{\"path\":\"/x\",\"subvolume\":5,\"inode\":257,\"type\":\"file\"}\n");
    check_json("size,path", &file, "{\"path\":\"/x\"}\n");
    check_json("size", &file, "{}\n");
    file.inode = &sample_inode;
    check_json("compression,size", &file, "{\"size\":1572864}\n");
    check_json("compression", &file, "{}\n");
    file.compression = "";
    check_json("compression,size", &file, "{\"compression\":\"\",\"size\":1572864}\n");
    check_columns("compression,size", &file, "\t1572864\n");
}

static void test_json(void **state)
{
    struct bw_walked_file file = file_of("/a b", &sample_inode);
    file.compression = "zstd";
    file.compression_length = 4;
    check_json(NULL, &file,
               "{\"path\":\"/a "
               "b\",\"subvolume\":5,\"inode\":257,\"type\":\"file\",\"mode\":33188,\"uid\":1000,"
               "\"gid\":4294967295,\"size\":1572864,\"allocated\":4096,\"nlink\":2,\"atime\":1,"
               "\"mtime\":1795230678123456789,\"ctime\":-1,\"otime\":-9223372036854775808,"
               "\"generation\":7,"
               "\"transid\":9,\"sequence\":3,\"flags\":[\"NODATASUM\",\"COMPRESS\"],"
               "\"compression\":\"zstd\"}\n");
    check_json("size,path", &file, "{\"size\":1572864,\"path\":\"/a b\"}\n");
    check(&(struct bw_rows_options){.struct_size = sizeof(struct bw_rows_options),
                                    .members = "uid,gid",
                                    .style = BW_ROWS_JSON_ARRAY},
          &file, ",\n{\"uid\":1000,\"gid\":4294967295}");
    const struct bw_rows_options units = {.struct_size = sizeof(struct bw_rows_options),
                                          .members = "size,mtime,mode",
                                          .style = BW_ROWS_JSON_LINES,
                                          .units = BW_ROWS_IEC};
    struct bw_rows *rows = make("fileinfo", &units);
    bw_rows_append_file(rows, &file, NULL, &text);
    bw_rows_destroy(rows);
    assert_int_equal(text.data[--text.length], '\0'); /* the terminator */
    expect_text("{\"size\":1572864,\"mtime\":1795230678123456789,\"mode\":33188}");
}

/* A number is the first member of one object, and has others before it in the next. */
static void test_json_repeated(void **state)
{
    const struct bw_rows_options options = {.struct_size = sizeof options,
                                            .members = "compression,size,mode",
                                            .style = BW_ROWS_JSON_LINES,
                                            .terminator = '\n'};
    struct bw_walked_file file = file_of("/x", &sample_inode);
    struct bw_repeated repeated = {0};
    struct bw_rows *rows = make("fileinfo", &options);
    for (unsigned i = 0; i < 4; i++) {
        file.compression = i % 2 ? "" : NULL;
        bw_rows_append_file(rows, &file, &repeated, &text);
    }
    bw_rows_destroy(rows);
    expect_text("{\"size\":1572864,\"mode\":33188}\n"
                "{\"compression\":\"\",\"size\":1572864,\"mode\":33188}\n"
                "{\"size\":1572864,\"mode\":33188}\n"
                "{\"compression\":\"\",\"size\":1572864,\"mode\":33188}\n");
}

/* Times that equal others of their row, of the rows before, or none. */
static void test_repeated_times(void **state)
{
    struct bw_rows_options options = {.struct_size = sizeof options,
                                      .members = "mtime,atime,size,ctime,otime",
                                      .terminator = '\n'};
    const struct timespec times[] = {{1795230678, 123456789}, {0, 1}, {-1, 0}};
    for (unsigned i = 0; i < 4; i++) {
        options.style = i % 2 ? BW_ROWS_JSON_LINES : BW_ROWS_TEXT;
        options.times = i / 2 ? BW_ROWS_ISO : BW_ROWS_NANOSECONDS;
        struct bw_rows *rows = make("fileinfo", &options);
        struct bw_repeated repeated = {0};
        for (unsigned row = 0; row < 2000; row++) {
            const unsigned choice = row * row / 3;
            const struct bw_inode inode = {.mtime = times[choice % 3],
                                           .atime = times[choice / 2 % 3],
                                           .ctime = times[choice / 5 % 3],
                                           .otime = times[choice / 7 % 3]};
            const struct bw_walked_file file = file_of("/x", &inode);
            bw_rows_append_file(rows, &file, NULL, &text);
            const size_t length = text.length;
            bw_rows_append_file(rows, &file, &repeated, &text);
            assert_int_equal(text.length, 2 * length);
            assert_memory_equal(text.data, text.data + length, length);
            text.length = 0;
        }
        bw_rows_destroy(rows);
    }
}

/* A path that is not UTF-8 appears once, in base64. */
static void test_json_bytes(void **state)
{
    struct bw_walked_file good = file_of("/\xc3\xa4", NULL), bad = file_of("/\xff", NULL);
    check_json("path,path_bytes,inode", &good, "{\"path\":\"/\xc3\xa4\",\"inode\":257}\n");
    check_json("path_bytes,inode,path", &good, "{\"inode\":257,\"path\":\"/\xc3\xa4\"}\n");
    check_json("path,path_bytes,inode", &bad, "{\"path_bytes\":\"L/8=\",\"inode\":257}\n");
    check_json("inode,path", &bad, "{\"inode\":257,\"path_bytes\":\"L/8=\"}\n");
    check_json("path_bytes", &good, "{\"path_bytes\":\"L8Ok\"}\n");
    check_json("path_bytes", &bad, "{\"path_bytes\":\"L/8=\"}\n");
    check_columns("path,path_bytes", &bad, "/\xff\tL/8=\n");
    bad.inode = &sample_inode;
    bad.compression = "z\x80";
    bad.compression_length = 2;
    check_json("compression", &bad, "{\"compression_bytes\":\"eoA=\"}\n");
}

/* Strings are what src/base/json.c makes of the same bytes. */
static void check_same_json(const char *bytes, size_t length)
{
    struct bw_buffer expected = {0};
    struct bw_json json = bw_json_start(&expected, false);
    bw_json_begin_object(&json, NULL);
    bw_json_bytes(&json, "path", bytes, length);
    bw_json_end(&json);
    bw_buffer_append(&expected, "\n", 2);
    struct bw_walked_file file = {.path = bytes, .path_length = length};
    check_json("path", &file, expected.data);
    bw_buffer_free(&expected);
}

static void test_json_strings(void **state)
{
    check_same_json("", 0);
    /* Each byte, alone and at each place of words of plain bytes. */
    for (unsigned byte = 0; byte < 256; byte++) {
        for (size_t length = 1; length <= 20; length++) {
            for (size_t place = 0; place < length; place++) {
                char bytes[20];
                memset(bytes, 'a', sizeof bytes);
                bytes[place] = (char)byte;
                check_same_json(bytes, length);
            }
        }
    }
    static const char *const cases[] = {
        "/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
        "/\xe2\x82",
        "/plain and then \xe2\x82\xac\n",
        "/plain and then \xe2\x82\n",
        "/\xed\xa0\x80",
        "/\xc0\x80",
        "/\xf4\x90\x80\x80 and plain bytes",
        "/\xc2\x9b[31m",
        "\"\\\x1f\x7f ~!#[]^`{",
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_same_json(cases[i], strlen(cases[i]));
    char longer[5000];
    memset(longer, '\x01', sizeof longer);
    check_same_json(longer, sizeof longer);
    longer[sizeof longer - 1] = '\xff';
    check_same_json(longer, sizeof longer);
    memset(longer, 'x', sizeof longer);
    check_same_json(longer, sizeof longer);
}

static void test_terminal(void **state)
{
    struct bw_walked_file file = file_of("/a b\n\xc2\x9b\xc3\xa4", &sample_inode);
    file.compression = "\x1b";
    file.compression_length = 1;
    const struct bw_rows_options columns = {.struct_size = sizeof(struct bw_rows_options),
                                            .members = "path,compression,type",
                                            .terminator = '\n',
                                            .escape = true};
    check(&columns, &file, "/a\\ b\\n\\302\\233\xc3\xa4\t\\033\tfile\n");
    check_columns("path,compression", &file, "/a b\n\xc2\x9b\xc3\xa4\t\x1b\n");
    check_json("path", &file, "{\"path\":\"/a b\\u000a\\u009b\xc3\xa4\"}\n");
}

static void test_numbers(void **state)
{
    struct bw_inode inode = {0};
    struct bw_walked_file file = file_of("/x", &inode);
    uint64_t value = 1;
    for (unsigned digits = 0; digits <= 20; digits++, value *= 10) {
        const uint64_t numbers[] = {value - 1, value, value + 1, value * 7, ~value};
        for (size_t i = 0; i < COUNT(numbers); i++) {
            char expected[200];
            inode.size = numbers[i];
            inode.mtime = (struct timespec)TIME_OF((int64_t)numbers[i]);
            snprintf(expected, sizeof expected, "%llu\t%lld\n", (unsigned long long)numbers[i],
                     (long long)numbers[i]);
            check_columns("size,mtime", &file, expected);
            snprintf(expected, sizeof expected, "{\"size\":%llu,\"mtime\":%lld}\n",
                     (unsigned long long)numbers[i], (long long)numbers[i]);
            check_json("size,mtime", &file, expected);
            snprintf(expected, sizeof expected, "%o\n", (unsigned)numbers[i]);
            inode.mode = (uint32_t)numbers[i];
            check_columns("mode", &file, expected);
        }
    }
    inode.flags = UINT64_C(1) << 63 | 1; /* a bit without a name is not lost */
    check_columns("flags", &file, "NODATASUM|0x8000000000000000\n");
    check_json("flags", &file, "{\"flags\":[\"NODATASUM\",\"0x8000000000000000\"]}\n");
    inode.flags = UINT64_C(1) << 63;
    check_columns("flags", &file, "0x8000000000000000\n");
    inode.flags = 0;
    check_columns("flags", &file, "none\n");
    check_json("flags", &file, "{\"flags\":[]}\n");
    inode.size = UINT64_C(1) << 63;
    inode.mtime = (struct timespec)TIME_OF(INT64_MIN);
    check_columns("size,mtime", &file, "9223372036854775808\t-9223372036854775808\n");
    inode.size = UINT64_MAX;
    inode.mtime = (struct timespec)TIME_OF(INT64_MAX);
    check_columns("size,mtime", &file, "18446744073709551615\t9223372036854775807\n");
}

static void test_sizes(void **state)
{
    static const struct {
        uint64_t size;
        const char *iec, *si;
    } cases[] = {
        {0, "0B", "0B"},
        {999, "999B", "999B"},
        {1000, "1000B", "1.00kB"},
        {1023, "1023B", "1.02kB"},
        {1024, "1.00KiB", "1.02kB"},
        {1152, "1.12KiB", "1.15kB"}, /* half of a hundredth: to the even one, as printf does */
        {1536, "1.50KiB", "1.54kB"},
        {999999, "976.56KiB", "1000.00kB"},
        {1000000, "976.56KiB", "1.00MB"},
        {1048575, "1024.00KiB", "1.05MB"},
        {1048576, "1.00MiB", "1.05MB"},
        {1572864, "1.50MiB", "1.57MB"},
        {UINT64_C(1) << 40, "1.00TiB", "1.10TB"},
        {UINT64_C(1) << 63, "8.00EiB", "9.22EB"},
        {UINT64_MAX, "16.00EiB", "18.45EB"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_inode inode = {.size = cases[i].size};
        const struct bw_walked_file file = file_of("/x", &inode);
        struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                          .members = "size,nlink",
                                          .separator = "",
                                          .units = BW_ROWS_IEC};
        char expected[40];
        options.terminator = '\n';
        snprintf(expected, sizeof expected, "%s0\n", cases[i].iec);
        check(&options, &file, expected);
        options.units = BW_ROWS_SI;
        snprintf(expected, sizeof expected, "%s0\n", cases[i].si);
        check(&options, &file, expected);
    }
}

static void test_times(void **state)
{
    static const struct {
        int64_t time;
        const char *expected;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000000Z\n"},
        {-1, "1969-12-31T23:59:59.999999999Z\n"},
        {INT64_C(-86400000000000), "1969-12-31T00:00:00.000000000Z\n"},
        {INT64_C(1795247878123456789), "2026-11-21T07:57:58.123456789Z\n"},
        {INT64_C(951782400000000000), "2000-02-29T00:00:00.000000000Z\n"},
        {INT64_C(4107542399999999999), "2100-02-28T23:59:59.999999999Z\n"},
        {INT64_C(4107542400000000000), "2100-03-01T00:00:00.000000000Z\n"},
        {INT64_C(-2203891200000000001), "1900-02-28T23:59:59.999999999Z\n"},
        {INT64_C(-2203891200000000000), "1900-03-01T00:00:00.000000000Z\n"},
        {INT64_C(1735689599000000000), "2024-12-31T23:59:59.000000000Z\n"},
        {INT64_MAX, "2262-04-11T23:47:16.854775807Z\n"},
        {INT64_MIN, "1677-09-21T00:12:43.145224192Z\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_inode inode = {.mtime = TIME_OF(cases[i].time)};
        const struct bw_walked_file file = file_of("/x", &inode);
        const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                                .members = "mtime",
                                                .terminator = '\n',
                                                .times = BW_ROWS_ISO};
        check(&options, &file, cases[i].expected);
    }
}

/* Members of other records: UUIDs, texts, durations, errors; and what no translator fills. */
static void test_other_records(void **state)
{
    static const struct bw_superblock superblock = {
        .fsid = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 0xff},
        .label = "a \"label\"",
    };
    const struct bw_super_event event = {.superblock = &superblock, .path = "/dev/x"};
    struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                      .members = "device,fsid,label,error,ns",
                                      .terminator = '\n'};
    struct bw_rows *rows = make("superinfo", &options);
    bw_rows_append(rows, &bw_super_xlate, &event, &text);
    bw_rows_destroy(rows);
    expect_text("/dev/x\t01234567-89ab-cdef-0001-0203040506ff\ta \"label\"\t0\t0\n");
    options.style = BW_ROWS_JSON_LINES;
    rows = make("superinfo", &options);
    bw_rows_append(rows, &bw_super_xlate, &event, &text);
    bw_rows_destroy(rows);
    expect_text("{\"device\":\"/dev/x\",\"fsid\":\"01234567-89ab-cdef-0001-0203040506ff\","
                "\"label\":\"a \\\"label\\\"\",\"error\":0,\"ns\":0}\n");
}

static void test_needs(void **state)
{
    static const struct {
        const char *columns;
        enum bw_rows_style style;
        unsigned needs;
    } cases[] = {
        {"path", BW_ROWS_TEXT, 0},
        {"path,path_bytes,subvolume,inode,type", BW_ROWS_JSON_LINES, 0},
        {"path,size", BW_ROWS_TEXT, BW_FILE_NEEDS_INODE},
        {"mtime", BW_ROWS_JSON_ARRAY, BW_FILE_NEEDS_INODE},
        {"compression", BW_ROWS_TEXT, BW_FILE_NEEDS_INODE | BW_FILE_NEEDS_COMPRESSION},
        {NULL, BW_ROWS_JSON_LINES, BW_FILE_NEEDS_INODE | BW_FILE_NEEDS_COMPRESSION},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                                .members = cases[i].columns,
                                                .style = cases[i].style};
        struct bw_rows *rows = make("fileinfo", &options);
        assert_int_equal(bw_rows_needs(rows), cases[i].needs);
        bw_rows_destroy(rows);
    }
}

static struct bw_error *collect(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* Every record can be written with all its members. */
static void test_all_records(void **state)
{
    for (const struct bw_record *const *record = bw_records(); *record; record++) {
        for (enum bw_rows_style style = BW_ROWS_TEXT; style <= BW_ROWS_JSON_ARRAY; style++) {
            const struct bw_rows_options options = {
                .struct_size = sizeof(struct bw_rows_options), .style = style, .header = true};
            struct bw_rows *rows = make((*record)->name, &options);
            struct bw_rows_stream stream = {.rows = rows, .consume = collect, .context = &text};
            expect_success(bw_rows_end(&stream));
            assert_true(text.length > 0 && !text.failed);
            bw_rows_destroy(rows);
        }
    }
    bw_buffer_free(&text);
}

/* Records within records. */

enum { MANY = 3000, LARGEST_PIECE = 80 << 10 };

static struct bw_error *list_allocations(void *context, struct bw_record_sink *sink)
{
    for (uint64_t i = 1; i <= 2; i++) {
        const struct bw_allocationinfo row = {.devid = i, .size = *(const uint64_t *)context};
        struct bw_error *error = sink->visit(sink, &row, sizeof row);
        if (error)
            return error;
    }
    return NULL;
}

static struct bw_error *list_groups(void *context, struct bw_record_sink *sink)
{
    for (uint64_t i = 0; i < *(const unsigned *)context; i++) {
        struct bw_usagegroupinfo row;
        bw_record_clear(bw_record_find("usagegroupinfo"), &row);
        row.devices = (struct bw_records){list_allocations, &i};
        struct bw_error *error = sink->visit(sink, &row, sizeof row);
        if (error)
            return error;
    }
    return *(const unsigned *)context ? NULL : bw_error_create(BW_ERROR_CORRUPT, "no groups");
}

static struct bw_error *list_device(void *context, struct bw_record_sink *sink)
{
    struct bw_usagedeviceinfo row;
    bw_record_clear(bw_record_find("usagedeviceinfo"), &row);
    row.device = (struct bw_bytes){context, strlen(context)};
    return sink->visit(sink, &row, sizeof row);
}

static struct bw_error *append_piece(void *context, const char *bytes, size_t length)
{
    assert_true(length <= LARGEST_PIECE);
    ++*(unsigned *)context;
    bw_buffer_append(&text, bytes, length);
    return NULL;
}

/* `count` groups and a device, in `pieces`. */
static struct bw_error *write_usage(enum bw_rows_style style, unsigned count, unsigned *pieces)
{
    const struct bw_rows_options options = {.struct_size = sizeof options,
                                            .members = "groups,devices",
                                            .style = style,
                                            .terminator = '\n'};
    struct bw_rows *rows = make("usageinfo", &options);
    struct bw_rows_stream stream = {.rows = rows, .consume = append_piece, .context = pieces};
    const struct bw_usageinfo row = {.groups = {list_groups, &count},
                                     .devices = {list_device, (void *)(uintptr_t) "/a\xff"}};
    struct bw_error *error = bw_rows_write(&stream, &row, sizeof row);
    if (!error)
        error = bw_rows_end(&stream);
    free(stream.row);
    bw_rows_destroy(rows);
    return error;
}

/* A long row is passed on in pieces. */
static void test_nested(void **state)
{
    static const enum bw_rows_style styles[] = {BW_ROWS_JSON_LINES, BW_ROWS_JSON_ARRAY,
                                                BW_ROWS_TEXT};
    static const char *const before[] = {"{\"groups\":[", "[\n{\"groups\":[", "["};
    static const char *const between[] = {"],\"devices\":[", "],\"devices\":[", "]\t["};
    static const char *const after[] = {"]}\n", "]}\n]\n", "]\n"};
    for (unsigned count = 1; count <= MANY; count += MANY - 1)
        for (size_t i = 0; i < 3; i++) {
            struct bw_buffer expected = {0};
            unsigned pieces = 0;
            bw_buffer_format(&expected, "%s", before[i]);
            for (unsigned k = 0; k < count; k++)
                bw_buffer_format(&expected,
                                 "%s{\"devices\":[{\"devid\":1,\"size\":%u},{\"devid\":2,"
                                 "\"size\":%u}]}",
                                 k ? "," : "", k, k);
            bw_buffer_format(&expected, "%s{\"device_bytes\":\"L2H/\"}%s%c", between[i], after[i],
                             0);
            expect_success(write_usage(styles[i], count, &pieces));
            assert_true(count == 1 || pieces >= 3);
            expect_text(expected.data);
            bw_buffer_free(&expected);
        }
}

/* If listing the inner records fails, nothing of the row is written. */
static void test_nested_error(void **state)
{
    unsigned pieces = 0;
    struct bw_error *error = write_usage(BW_ROWS_JSON_LINES, 0, &pieces);
    assert_non_null(error);
    assert_string_equal(error->message, "no groups");
    assert_int_equal(pieces, 0);
    bw_error_free(error);
}
