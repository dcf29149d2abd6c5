/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/record/rows.c: the text before, between and after rows; failing consumers; unknown columns.
 */
#include "support/walk_helpers.h"

#include "record/rows.h"

static struct bw_rows *make(const struct bw_rows_options *options)
{
    struct bw_rows *rows;
    expect_success(bw_rows_create("fileinfo", options, &rows));
    return rows;
}

static struct bw_error *collect(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* Sends `count` rows in two pieces. */
static void send(const struct bw_rows_options *options, unsigned count, const char *expected)
{
    struct bw_rows *rows = make(options);
    struct bw_buffer pieces[2] = {0}, sent = {0};
    struct bw_rows_stream stream = {.rows = rows, .consume = collect, .context = &sent};
    const struct bw_walked_file file = {.path = "/x", .path_length = 2, .number = 257};
    for (unsigned i = 0; i < count; i++)
        bw_rows_append_file(rows, &file, NULL, &pieces[i > 0]);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        if (pieces[i].length)
            expect_success(bw_rows_take(&stream, pieces[i].data, pieces[i].length));
        bw_buffer_free(&pieces[i]);
    }
    expect_success(bw_rows_end(&stream));
    bw_rows_destroy(rows);
    assert_false(sent.failed);
    assert_string_equal(bw_buffer_text(&sent), expected);
    bw_buffer_free(&sent);
}

#define HEADER                                                                 \
    "{\"record\":\"header\",\"tool\":\"btrfs-walk\",\"version\":\"" BW_VERSION \
    "\",\"schema\":2,\"of\":\"fileinfo\",\"of_version\":2}"

static void test_stream(void **state)
{
    struct bw_rows_options options = {
        .struct_size = sizeof(struct bw_rows_options), .members = "path,inode", .terminator = '\n'};
    send(&options, 0, "");
    send(&options, 2, "/x\t257\n/x\t257\n");
    options.header = true;
    send(&options, 0, "path\tinode\n");
    send(&options, 2, "path\tinode\n/x\t257\n/x\t257\n");
    options.style = BW_ROWS_JSON_LINES;
    send(&options, 0, HEADER "\n");
    send(&options, 1, HEADER "\n{\"path\":\"/x\",\"inode\":257}\n");
    options.style = BW_ROWS_JSON_ARRAY;
    send(&options, 0, "[\n" HEADER "\n]\n");
    send(&options, 1, "[\n" HEADER ",\n{\"path\":\"/x\",\"inode\":257}\n]\n");
    options.header = false;
    send(&options, 0, "[\n]\n");
    send(&options, 1, "[\n{\"path\":\"/x\",\"inode\":257}\n]\n");
    send(&options, 3,
         "[\n{\"path\":\"/x\",\"inode\":257},\n{\"path\":\"/x\",\"inode\":257},\n{\"path\":\"/"
         "x\",\"inode\":257}\n]\n");
}

static struct bw_error *refuse(void *context, const char *bytes, size_t length)
{
    ++*(unsigned *)context;
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

static void test_stream_errors(void **state)
{
    unsigned calls = 0;
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .style = BW_ROWS_JSON_ARRAY};
    struct bw_rows *rows = make(&options);
    struct bw_rows_stream stream = {.rows = rows, .consume = refuse, .context = &calls};
    expect_error(bw_rows_take(&stream, ",\n{}", 4), BW_ERROR_STOPPED, NULL);
    assert_int_equal(calls, 1); /* the row that was to follow is not sent any more */
    expect_error(bw_rows_end(&stream), BW_ERROR_STOPPED, NULL);
    bw_rows_destroy(rows);
}

static void test_bad_columns(void **state)
{
    static const struct {
        const char *columns, *message;
    } cases[] = {
        {"", "name of a column is empty"},
        {"path,", "name of a column is empty"},
        {",path", "name of a column is empty"},
        {"path,,size", "name of a column is empty"},
        {"pathx", "unknown column pathx (did you mean path?)"},
        {"size,pat,path", "unknown column pat"},
        {"path, size", "unknown column  size"},
        {"Path", "unknown column Path"},
        {"path,size,path", "column path is named twice"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                                .members = cases[i].columns};
        struct bw_rows *rows = NULL;
        expect_error(bw_rows_create("fileinfo", &options, &rows), BW_ERROR_USAGE, cases[i].message);
        assert_null(rows);
    }
    struct bw_rows *rows;
    expect_error(
        bw_rows_create("nosuchinfo",
                       &(struct bw_rows_options){.struct_size = sizeof(struct bw_rows_options)},
                       &rows),
        BW_ERROR_USAGE, "unknown record nosuchinfo");
    bw_rows_destroy(NULL);
}
