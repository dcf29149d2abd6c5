/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bw_rows_write(): records that a program fills, by the public headers alone. */
#include "btrfs-walk/record.h"
#include "btrfs-walk/records.h"
#include "support/walk_helpers.h"

static struct bw_error *collect(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* Writes two rows. */
static void check(const char *record, const struct bw_rows_options *options, const void *first,
                  const void *second, size_t size, const char *expected)
{
    struct bw_buffer sent = {0};
    struct bw_rows *rows;
    expect_success(bw_rows_create(record, options, &rows));
    struct bw_rows_stream stream = {.rows = rows, .consume = collect, .context = &sent};
    expect_success(bw_rows_write(&stream, first, size));
    expect_success(bw_rows_write(&stream, second, size));
    expect_success(bw_rows_end(&stream));
    bw_rows_destroy(rows);
    assert_false(sent.failed);
    assert_string_equal(bw_buffer_text(&sent), expected);
    bw_buffer_free(&sent);
}

static const struct bw_chunkinfo chunk = {
    .logical = 1 << 20, .length = 8 << 20, .profile = "DUP", .error = -5};

static void test_styles(void **state)
{
    struct bw_chunkinfo other = chunk, none;
    other.length = BW_ABSENT;
    other.error = BW_ABSENT_SIGNED;
    bw_record_clear(bw_record_find("chunkinfo"), &none);
    struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                      .members = "logical,length,error,profile",
                                      .terminator = '\n',
                                      .header = true,
                                      .units = BW_ROWS_IEC};
    check("chunkinfo", &options, &chunk, &other, sizeof chunk,
          "logical\tlength\terror\tprofile\n1048576\t8.00MiB\t-5\tDUP\n1048576\t-\t-\tDUP\n");
    options.header = false;
    options.style = BW_ROWS_JSON_LINES;
    check("chunkinfo", &options, &chunk, &other, sizeof chunk,
          "{\"logical\":1048576,\"length\":8388608,\"error\":-5,\"profile\":\"DUP\"}\n"
          "{\"logical\":1048576,\"profile\":\"DUP\"}\n");
    options.style = BW_ROWS_JSON_ARRAY;
    check("chunkinfo", &options, &chunk, &none, sizeof chunk,
          "[\n{\"logical\":1048576,\"length\":8388608,\"error\":-5,\"profile\":\"DUP\"},\n{}\n]\n");
}

/* A structure of an older version ends earlier; texts and bytes that are NULL are absent. */
static void test_short_records(void **state)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .members = "logical,length,profile",
                                            .style = BW_ROWS_JSON_LINES};
    struct bw_chunkinfo none = chunk;
    none.profile = NULL;
    struct bw_chunkinfo neither = none;
    neither.length = BW_ABSENT;
    check("chunkinfo", &options, &none, &neither, sizeof none,
          "{\"logical\":1048576,\"length\":8388608}");
    check("chunkinfo", &options, &chunk, &chunk, offsetof(struct bw_chunkinfo, length),
          "{\"logical\":1048576}");
    check("chunkinfo", &options, &chunk, &chunk, offsetof(struct bw_chunkinfo, length) + 7,
          "{\"logical\":1048576}");
}

static void test_names(void **state)
{
    const struct bw_bytes path = {"/a\xff", 3};
    const struct bw_fileinfo file = {.path = path, .path_bytes = path, .size = 7};
    struct bw_fileinfo no_size = file, no_path = file;
    no_size.size = BW_ABSENT;
    no_path.path.data = NULL;
    struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                      .members = "path,path_bytes,size,compression",
                                      .style = BW_ROWS_JSON_LINES,
                                      .terminator = '\n'};
    check("fileinfo", &options, &file, &no_size, sizeof file,
          "{\"path_bytes\":\"L2H/\",\"size\":7}\n{\"path_bytes\":\"L2H/\"}\n");
    options.style = BW_ROWS_TEXT;
    options.escape = true;
    check("fileinfo", &options, &file, &no_path, sizeof file,
          "/a\\377\tL2H/\t7\t-\n-\tL2H/\t7\t-\n");
}
