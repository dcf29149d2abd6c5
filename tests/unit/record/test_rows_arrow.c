/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/record/arrow_arrays.c: the structures of Arrow, read and released as their consumers do;
 * dictionaries that grow and begin again. tests/command/arrow.sh is about messages. */
#include <inttypes.h>

#include "btrfs-walk/arrow.h"
#include "btrfs-walk/probe_records.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/row_records.h"
#include "support/walk_helpers.h"

enum { ROWS = 10000, MOST_BATCHES = 8 };

struct consumer {
    struct ArrowSchema schema;
    struct ArrowArray batches[MOST_BATCHES];
    size_t count;
    bool refuse;
    unsigned refuse_batches; /* the first ones */
};

/* Keeps everything, or nothing. */
static struct bw_error *keep(void *context, const char *bytes, size_t length)
{
    struct consumer *consumer = context;
    if (consumer->refuse)
        return bw_error_create(BW_ERROR_STOPPED, "refused");
    if (length == sizeof(struct ArrowSchema)) {
        memcpy(&consumer->schema, bytes, length);
        ((struct ArrowSchema *)(uintptr_t)bytes)->release = NULL;
    } else {
        assert_int_equal(length, sizeof(struct ArrowArray));
        if (consumer->refuse_batches && consumer->refuse_batches--)
            return bw_error_create(BW_ERROR_STOPPED, "refused");
        assert_true(consumer->count < MOST_BATCHES);
        memcpy(&consumer->batches[consumer->count++], bytes, length);
        ((struct ArrowArray *)(uintptr_t)bytes)->release = NULL;
    }
    return NULL;
}

static struct bw_error *collect(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* Nearly all flags are unknown, and some are as those before. */
static struct bw_chunkinfo chunk_of(uint64_t number)
{
    return (struct bw_chunkinfo){.logical = number << 20,
                                 .flags = number % 3 ? number << 32 | 1 : 5,
                                 .profile = number % 2 ? "DUP" : NULL,
                                 .error = -(int64_t)number};
}

static struct bw_error *write_rows(enum bw_rows_style style,
                                   struct bw_error *(*consume)(void *, const char *, size_t),
                                   void *context)
{
    const struct bw_rows_options options = {.struct_size = sizeof options,
                                            .members = "logical,flags,profile,error",
                                            .style = style,
                                            .terminator = '\n'};
    struct bw_rows *rows;
    expect_success(bw_rows_create("chunkinfo", &options, &rows));
    struct bw_rows_stream stream = {.rows = rows, .consume = consume, .context = context};
    struct bw_error *error = NULL;
    for (uint64_t i = 0; !error && i < ROWS; i++) {
        const struct bw_chunkinfo chunk = chunk_of(i);
        error =
            bw_rows_write(&stream, &chunk, sizeof chunk, i % 7 ? 0 : BW_MEMBER(chunkinfo, error));
    }
    struct bw_error *last = bw_rows_end(&stream);
    bw_rows_destroy(rows);
    if (error)
        bw_error_free(last);
    return error ? error : last;
}

static bool is_valid(const struct ArrowArray *array, int64_t row)
{
    const uint8_t *bits = array->buffers[0];
    return !bits || bits[row / 8] >> row % 8 & 1;
}

/* A word of a dictionary, or "-". */
static void append_word(struct bw_buffer *text, const struct ArrowArray *array, int64_t row)
{
    const int32_t number = ((const int32_t *)array->buffers[1])[row];
    if (!is_valid(array, row)) {
        bw_buffer_append(text, "-", 1);
        return;
    }
    assert_true(number >= 0 && number < array->dictionary->length);
    const int32_t *ends = array->dictionary->buffers[1];
    bw_buffer_append(text, (const char *)array->dictionary->buffers[2] + ends[number],
                     (size_t)(ends[number + 1] - ends[number]));
}

static void append_row(struct bw_buffer *text, const struct ArrowArray *batch, int64_t row)
{
    struct ArrowArray *const *columns = batch->children;
    bw_buffer_format(text, "%" PRIu64 "\t", ((const uint64_t *)columns[0]->buffers[1])[row]);
    append_word(text, columns[1], row);
    bw_buffer_append(text, "\t", 1);
    append_word(text, columns[2], row);
    if (is_valid(columns[3], row))
        bw_buffer_format(text, "\t%" PRId64 "\n", ((const int64_t *)columns[3]->buffers[1])[row]);
    else
        bw_buffer_format(text, "\t-\n");
}

static void test_values(void **state)
{
    struct consumer consumer = {0};
    struct bw_buffer expected = {0}, found = {0};
    (void)state;
    expect_success(write_rows(BW_ROWS_TEXT, collect, &expected));
    expect_success(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer));
    assert_int_equal(consumer.count, (ROWS + 4095) / 4096);
    for (size_t i = 0; i < consumer.count; i++) {
        struct ArrowArray *batch = &consumer.batches[i];
        assert_true(batch->children[1]->dictionary->length <= 2 * 4096 + 1);
        for (int64_t row = 0; row < batch->length; row++)
            append_row(&found, batch, row);
        batch->release(batch);
        assert_null(batch->release);
    }
    assert_false(expected.failed || found.failed);
    assert_int_equal(found.length, expected.length);
    assert_memory_equal(found.data, expected.data, found.length);
    consumer.schema.release(&consumer.schema);
    bw_buffer_free(&expected);
    bw_buffer_free(&found);
}

static void test_schema(void **state)
{
    static const char *const expected[][2] = {
        {"logical", "L"}, {"flags", "i"}, {"profile", "i"}, {"error", "l"}};
    struct consumer consumer = {0};
    const struct ArrowSchema *schema = &consumer.schema;
    (void)state;
    expect_success(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer));
    assert_string_equal(schema->format, "+s");
    assert_int_equal(schema->n_children, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_string_equal(schema->children[i]->name, expected[i][0]);
        assert_string_equal(schema->children[i]->format, expected[i][1]);
        assert_int_equal(schema->children[i]->flags, ARROW_FLAG_NULLABLE);
        if (*expected[i][1] == 'i')
            assert_string_equal(schema->children[i]->dictionary->format, "u");
    }
    int32_t pairs;
    memcpy(&pairs, schema->metadata, sizeof pairs);
    assert_int_equal(pairs, 2);
    for (size_t i = 0; i < consumer.count; i++)
        consumer.batches[i].release(&consumer.batches[i]);
    consumer.schema.release(&consumer.schema);
}

/* A column that was moved out of a batch stays when the batch is released. */
static void test_moved_column(void **state)
{
    struct consumer consumer = {0};
    struct bw_buffer word = {0};
    (void)state;
    expect_success(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer));
    struct ArrowArray column = *consumer.batches[0].children[2];
    struct ArrowSchema type = *consumer.schema.children[2];
    consumer.batches[0].children[2]->release = NULL;
    consumer.schema.children[2]->release = NULL;
    for (size_t i = 0; i < consumer.count; i++)
        consumer.batches[i].release(&consumer.batches[i]);
    consumer.schema.release(&consumer.schema);
    append_word(&word, &column, 1);
    assert_memory_equal(word.data, "DUP", 3);
    assert_string_equal(type.name, "profile");
    column.release(&column);
    type.release(&type);
    bw_buffer_free(&word);
}

/* Structures that nobody keeps are released: a leak would be found. */
static void test_refused(void **state)
{
    struct consumer consumer = {.refuse = true};
    (void)state;
    expect_error(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer), BW_ERROR_STOPPED,
                 "refused");
}

/* The rows of a batch that was refused do not come again: their buffers were in it. */
static void test_refused_once(void **state)
{
    struct consumer consumer = {.refuse_batches = 1};
    (void)state;
    expect_error(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer), BW_ERROR_STOPPED,
                 "refused");
    assert_int_equal(consumer.count, 0);
    consumer.schema.release(&consumer.schema);
}

/* Structures have the byte order of the machine, but the columns that they point to do not. */
static void test_big_endian(void **state)
{
    struct consumer consumer = {0};
    (void)state;
    expect_error(write_rows(BW_ROWS_ARROW_STRUCTURES, keep, &consumer), BW_ERROR_UNSUPPORTED,
                 "big-endian");
    assert_int_equal(consumer.count, 0);
}

int main(void)
{
    const struct CMUnitTest big_endian[] = {cmocka_unit_test(test_big_endian)};
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        return cmocka_run_group_tests(big_endian, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_schema),
        cmocka_unit_test(test_moved_column), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
