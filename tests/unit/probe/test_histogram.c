/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms: buckets, totals, percentiles, drawing. */
#include "probe/histogram.h"

#include "support/walk_helpers.h"

static void test_buckets(void **state)
{
    (void)state;
    assert_int_equal(bw_histogram_bucket(0), 0);
    assert_int_equal(bw_histogram_bucket(1), 1);
    assert_int_equal(bw_histogram_bucket(UINT64_MAX), 64);
    assert_int_equal(bw_histogram_start(0), 0);
    assert_int_equal(bw_histogram_end(0), 0);
    assert_int_equal(bw_histogram_end(64), UINT64_MAX);
    for (unsigned power = 1; power < 64; power++) {
        uint64_t value = UINT64_C(1) << power;
        assert_int_equal(bw_histogram_bucket(value - 1), power);
        assert_int_equal(bw_histogram_bucket(value), power + 1);
        assert_int_equal(bw_histogram_bucket(value + 1), power + 1);
        assert_int_equal(bw_histogram_end(power), value - 1);
        assert_int_equal(bw_histogram_start(power + 1), value);
    }
}

static struct bw_histogram_totals totals_of(const uint64_t *values, size_t count)
{
    struct bw_histogram histogram = {0};
    struct bw_histogram_totals totals = {0};
    for (size_t i = 0; i < count; i++)
        bw_histogram_count(&histogram, values[i]);
    bw_histogram_add_up(&histogram, &totals);
    return totals;
}

static void test_totals(void **state)
{
    (void)state;
    const uint64_t values[] = {7, 3, 4, 0};
    struct bw_histogram_totals totals = totals_of(values, 3);
    assert_int_equal(totals.count, 3);
    assert_int_equal(totals.sum, 14);
    assert_int_equal(totals.least, 3);
    assert_int_equal(totals.most, 7);
    assert_int_equal(totals.counts[2], 1);
    assert_int_equal(totals.counts[3], 2);
    /* More of them: an empty one changes nothing, a zero is the new least. */
    struct bw_histogram more = {0};
    bw_histogram_add_up(&more, &totals);
    assert_int_equal(totals.least, 3);
    bw_histogram_count(&more, 0);
    bw_histogram_add_up(&more, &totals);
    assert_int_equal(totals.least, 0);
    assert_int_equal(totals.count, 4);
    assert_int_equal(totals.counts[0], 1);
}

/* Sums do not wrap around. */
static void test_sums_that_do_not_fit(void **state)
{
    (void)state;
    const uint64_t values[] = {UINT64_MAX, 1, UINT64_MAX};
    struct bw_histogram_totals totals = totals_of(values, 1);
    assert_int_equal(totals.sum, UINT64_MAX);
    assert_int_equal(totals.least, UINT64_MAX);
    totals = totals_of(values, COUNT(values));
    assert_int_equal(totals.sum, UINT64_MAX);
    assert_int_equal(totals.least, 1);
    assert_int_equal(totals.most, UINT64_MAX);
    assert_int_equal(totals.counts[64], 2);
    assert_int_equal(bw_histogram_percentile(&totals, 99), UINT64_MAX);
    assert_int_equal(bw_sum(UINT64_MAX - 1, 1), UINT64_MAX);
    assert_int_equal(bw_sum(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

static void test_percentiles(void **state)
{
    (void)state;
    uint64_t values[1000];
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = i + 1;
    /* Evenly spread values are found exactly. */
    struct bw_histogram_totals totals = totals_of(values, COUNT(values));
    assert_int_equal(bw_histogram_percentile(&totals, 0), 1);
    assert_int_equal(bw_histogram_percentile(&totals, 50), 500);
    assert_int_equal(bw_histogram_percentile(&totals, 99), 990);
    assert_int_equal(bw_histogram_percentile(&totals, 100), 1000);
    /* Equal values have no other percentile. */
    const uint64_t equal[] = {100, 100, 100, 100};
    totals = totals_of(equal, COUNT(equal));
    assert_int_equal(bw_histogram_percentile(&totals, 50), 100);
    assert_int_equal(bw_histogram_percentile(&totals, 99), 100);
    /* One alone in its bucket is taken to be in its middle, unless it is the first or the last. */
    const uint64_t few[] = {5, 40, 3000};
    totals = totals_of(few, COUNT(few));
    assert_int_equal(bw_histogram_percentile(&totals, 33), 5);
    assert_int_equal(bw_histogram_percentile(&totals, 50), 47);
    assert_int_equal(bw_histogram_percentile(&totals, 99), 3000);
}

static void test_percentiles_at_the_ends(void **state)
{
    (void)state;
    struct bw_histogram_totals totals = {0};
    assert_int_equal(bw_histogram_percentile(&totals, 50), 0);
    const uint64_t zeros[] = {0, 0, 0};
    totals = totals_of(zeros, COUNT(zeros));
    assert_int_equal(bw_histogram_percentile(&totals, 50), 0);
    const uint64_t large[] = {UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX};
    totals = totals_of(large, COUNT(large));
    assert_in_range(bw_histogram_percentile(&totals, 50), UINT64_MAX - 2, UINT64_MAX);
    /* Counts so large that a product with the percents would not fit. */
    totals = (struct bw_histogram_totals){.count = UINT64_MAX / 2, .least = 4, .most = 7};
    totals.counts[3] = totals.count;
    assert_int_equal(bw_histogram_percentile(&totals, 50), 5);
    /* One that others are just changing. */
    totals = (struct bw_histogram_totals){.count = 3, .counts = {[3] = 3}, .least = 9, .most = 2};
    assert_int_equal(bw_histogram_percentile(&totals, 50), 9);
}

static void expect_text(struct bw_buffer *text, const char *wanted)
{
    bw_buffer_append_byte(text, '\0');
    assert_false(text->failed);
    assert_string_equal(text->data, wanted);
    bw_buffer_free(text);
}

static void test_drawing(void **state)
{
    (void)state;
    const uint64_t values[] = {1, 5, 5, 6};
    struct bw_histogram_totals totals = totals_of(values, COUNT(values));
    struct bw_buffer text = {0};
    bw_histogram_draw(&text, &totals);
    expect_text(&text, "               value  ------------- Distribution ------------- count\n"
                       "                   1 |@@@@@@@@@@                               1\n"
                       "                   2 |                                         0\n"
                       "                   4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3\n");
    struct bw_json json = bw_json_start(&text, false);
    bw_histogram_json(&json, NULL, &totals);
    expect_text(&text, "[{\"min\":1,\"max\":1,\"count\":1},{\"min\":2,\"max\":3,\"count\":0},"
                       "{\"min\":4,\"max\":7,\"count\":3}]");
    totals = (struct bw_histogram_totals){.counts = {[0] = 1}};
    json = bw_json_start(&text, false);
    bw_histogram_json(&json, NULL, &totals);
    bw_histogram_json(&json, NULL, &(struct bw_histogram_totals){.count = 0});
    expect_text(&text, "[{\"min\":0,\"max\":0,\"count\":1}][]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_sums_that_do_not_fit),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_percentiles_at_the_ends),
        cmocka_unit_test(test_drawing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
