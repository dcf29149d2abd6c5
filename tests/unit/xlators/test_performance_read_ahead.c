/* SPDX-License-Identifier: GPL-2.0-or-later */
/* performance/read-ahead: what becomes of the hints that it is given, and that reads pass. */
#include "support/fake_layer.h"

static void check_hints(const char *gap, const struct bw_range *given, size_t given_count,
                        const struct bw_range *wanted, size_t wanted_count)
{
    struct fake_layer fake = {0};
    struct bw_graph *graph = fake_graph(NULL);
    const struct option_value options[] = {{"gap", gap}, {0}};
    struct bw_xlator *top =
        add_layer(graph, "performance/read-ahead", add_fake(graph, &fake), options);
    bw_wind_advise(NULL, top, given, given_count, 0);
    assert_int_equal(fake.hint_calls, wanted_count != 0);
    assert_int_equal(fake.hint_count, wanted_count);
    for (size_t i = 0; i < wanted_count; i++) {
        assert_int_equal(fake.hints[i].address, wanted[i].address);
        assert_int_equal(fake.hints[i].length, wanted[i].length);
    }
    bw_graph_destroy(graph);
}

static void test_hints(void **state)
{
    static const struct bw_range given[] = {{90000, 1000}, {0, 4096}, {4096, 4096},
                                            {20000, 100},  {100, 50}, {20000, 200}};
    static const struct bw_range none[] = {{0, 8192}, {20000, 200}, {90000, 1000}};
    static const struct bw_range some[] = {{0, 20200}, {90000, 1000}};
    static const struct bw_range all[] = {{0, 91000}};
    check_hints("0", given, COUNT(given), none, COUNT(none));
    check_hints("11807", given, COUNT(given), none, COUNT(none));
    check_hints("11808", given, COUNT(given), some, COUNT(some));
    check_hints("128K", given, COUNT(given), all, COUNT(all));
    check_hints("128K", given, 1, given, 1);
    check_hints("128K", given, 0, NULL, 0);
}

static void test_passes_reads(void **state)
{
    static const uint8_t bytes[16] = "as they are";
    uint8_t buffer[16];
    struct fake_layer fake = {.copies = {bytes}, .size = sizeof bytes};
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *top =
        add_layer(graph, "performance/read-ahead", add_fake(graph, &fake), NULL);
    expect_success(read_range(top, 0, buffer, sizeof buffer));
    assert_memory_equal(buffer, bytes, sizeof bytes);
    bw_graph_destroy(graph);
}
