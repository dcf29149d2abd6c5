/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statistics of probes: their numbers, and the forms they come in. */
#include "probe/probe.h"
#include "probe/stats.h"
#include "support/debug_bench.h"
#include "support/stats_bench.h"

static void expect_text(struct bw_buffer *text, const char *wanted)
{
    assert_string_equal(bw_buffer_text(text), wanted);
    bw_buffer_free(text);
}

static void expect_report(const struct bw_probe_stats *stats, bool as_json, const char *wanted)
{
    struct bw_buffer text = {0};
    expect_success(bw_probe_stats_report(stats, as_json, stats_collect, &text));
    expect_text(&text, wanted);
}

static void test_selection(void **state)
{
    struct bw_probe_stats *stats = stats_make(false, "cache-*,fop-unwind");
    const struct bw_probe_consumer *consumer = bw_probe_stats_consumer(stats);
    assert_true(consumer->selected[BW_PROBE_cache__hit]);
    assert_false(consumer->selected[BW_PROBE_fop__wind]);
    assert_int_equal(consumer->lazy[BW_PROBE_fop__unwind], UINT64_C(1) << BW_fopinfo_bytes);
    bw_probe_stats_destroy(stats);
    stats = stats_make(false, NULL);
    consumer = bw_probe_stats_consumer(stats);
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        assert_int_equal(consumer->selected[i], i < BW_PROBE_COUNT);
    bw_probe_stats_destroy(stats);
    stats = stats_make(true, "cache-hit");
    consumer = bw_probe_stats_consumer(stats);
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        assert_int_equal(consumer->selected[i], i == BW_PROBE_fop__unwind);
    assert_int_equal(consumer->lazy[BW_PROBE_fop__unwind],
                     UINT64_C(1) << BW_fopinfo_bytes | UINT64_C(1) << BW_fopinfo_errors);
    bw_probe_stats_destroy(stats);
    bw_probe_stats_destroy(NULL);
}

static void test_nothing(void **state)
{
    struct bw_probe_stats *stats = stats_make(false, NULL);
    expect_report(stats, false, "no probe has fired\n");
    expect_report(stats, true, "{\"mode\":\"probe\",\"probes\":[]}\n");
    bw_probe_stats_destroy(stats);
    stats = stats_make(true, NULL);
    expect_report(stats, false, "no layer was called\n");
    expect_report(stats, true, "{\"mode\":\"xlator\",\"layers\":[],\"uncounted\":0}\n");
    bw_probe_stats_destroy(stats);
}

static struct bw_probe_stats *stats_of_probes(void)
{
    struct bw_probe_stats *stats = stats_make(false, NULL);
    stats_fire(stats, BW_PROBE_dev__read__done, &(struct bw_ioinfo){.ns = 3, .bytes = 4096});
    stats_fire(stats, BW_PROBE_dev__read__done,
               &(struct bw_ioinfo){.ns = 9, .bytes = 8192, .error = -5});
    stats_fire(stats, BW_PROBE_decompress__done,
               &(struct bw_codecinfo){.ns = 4, .bytes_in = 7, .bytes_out = 90});
    stats_fire(stats, BW_PROBE_cache__hit, &(struct bw_cacheinfo){.bytes = 16384});
    stats_fire(stats, BW_PROBE_cache__hit, &(struct bw_cacheinfo){.bytes = 16384});
    /* Members without a translation do not count, whatever they contain. */
    stats_fire(stats, BW_PROBE_path__emit, &(struct bw_pathinfo){.ns = 99, .error = -1});
    stats_fire(stats, BW_PROBE_error, &(struct bw_errinfo){.error = -5});
    return stats;
}

static const char probes_text_wanted[] =
    "% time     total ns    count  errors        bytes    min ns    avg ns    m"
    "ax ns probe\n"
    "------ ------------ -------- ------- ------------ --------- --------- ----"
    "----- --------------------\n"
    "  75.0           12        2       1        12288         3         6     "
    "    9 dev-read-done\n"
    "  25.0            4        1       0           90         4         4     "
    "    4 decompress-done\n"
    "     -            -        2       -        32768         -         -     "
    "    - cache-hit\n"
    "     -            -        1       1            -         -         -     "
    "    - error\n"
    "     -            -        1       -            -         -         -     "
    "    - path-emit\n"
    "------ ------------ -------- ------- ------------ --------- --------- ----"
    "----- --------------------\n"
    " 100.0           16 time of all probes\n";

static void test_probes_text(void **state)
{
    struct bw_probe_stats *stats = stats_of_probes();
    expect_report(stats, false, probes_text_wanted);
    bw_probe_stats_destroy(stats);
}

static const char probes_json_wanted[] =
    "{\"mode\":\"probe\",\"probes\":[{\"probe\":\"dev-read-done\",\"share_permille\":750,"
    "\"total_ns\":12,\"count\":2,\"errors\":1,\"bytes\":12288,\"min_ns\":3,\"avg_ns\":6,"
    "\"max_ns\":9},{\"probe\":\"decompress-done\",\"share_permille\":250,"
    "\"total_ns\":4,\"count\":1,\"errors\":0,\"bytes\":90,\"min_ns\":4,\"avg_ns\":4,"
    "\"max_ns\":4},{\"probe\":\"cache-hit\",\"count\":2,"
    "\"bytes\":32768},{\"probe\":\"error\",\"count\":1,\"errors\":1},{\"probe\":\"path-emit\","
    "\"count\":1}]}\n";

static void test_probes_json(void **state)
{
    struct bw_probe_stats *stats = stats_of_probes();
    expect_report(stats, true, probes_json_wanted);
    bw_probe_stats_destroy(stats);
}

/* A call of a layer: three requests of which one fails. */
static void call_layer(struct bw_probe_stats *stats, const char *xlator, const char *type,
                       const char *operation, uint64_t ns, uint64_t own_ns)
{
    const struct bw_fopinfo call = {.layer = xlator,
                                    .layer_type = type,
                                    .operation = operation,
                                    .ns = ns,
                                    .own_ns = own_ns,
                                    .requests = 3,
                                    .bytes = 12288,
                                    .errors = 1,
                                    .error = -5};
    stats_fire(stats, BW_PROBE_fop__unwind, &call);
}

/* Three layers, one with a terminal escape in its name. Requests and bytes of mappings and hints do
 * not count. */
static struct bw_probe_stats *stats_of_layers(void)
{
    struct bw_probe_stats *stats = stats_make(true, NULL);
    call_layer(stats, "map \033[1m", "cluster/chunk-map", "map", 300, 50);
    call_layer(stats, "file-1", "storage/file", "read", 600, 600);
    call_layer(stats, "map \033[1m", "cluster/chunk-map", "read", 700, 100);
    call_layer(stats, "verify", "features/verify", "read", 900, 200);
    call_layer(stats, "file-1", "storage/file", "advise", 300, 300);
    return stats;
}

static const char layers_text_wanted[] =
    " % own       own ns     total ns    calls requests  errors        bytes   "
    " min ns    avg ns    max ns layer\n"
    "------ ------------ ------------ -------- -------- ------- ------------ --"
    "------- --------- --------- --------------------\n"
    "  72.0          900          900        2        3       2        12288   "
    "    300       450       600 file-1 (storage/file)\n"
    "  16.0          200          900        1        3       1        12288   "
    "    900       900       900 verify (features/verify)\n"
    "  12.0          150         1000        2        3       2        12288   "
    "    300       500       700 map \\033[1m (cluster/chunk-map)\n"
    "------ ------------ ------------ -------- -------- ------- ------------ --"
    "------- --------- --------- --------------------\n"
    " 100.0         1250 own time of all layers\n";

static void test_layers_text(void **state)
{
    struct bw_probe_stats *stats = stats_of_layers();
    expect_report(stats, false, layers_text_wanted);
    bw_probe_stats_destroy(stats);
}

static const char layers_json_wanted[] =
    "{\"mode\":\"xlator\",\"layers\":[{\"layer\":\"file-1\",\"layer_type\":\"storage/file\","
    "\"share_permille\":720,\"own_ns\":900,\"total_ns\":900,\"calls\":2,\"requests\":3,"
    "\"errors\":2,\"bytes\":12288,\"min_ns\":300,\"avg_ns\":450,\"max_ns\":600},{\"layer\":"
    "\"verify\",\"layer_type\":\"features/verify\",\"share_permille\":160,\"own_ns\":200,"
    "\"total_ns\":900,\"calls\":1,\"requests\":3,\"errors\":1,\"bytes\":12288,\"min_ns\":900,"
    "\"avg_ns\":900,\"max_ns\":900},{\"layer\":\"map \\u001b[1m\","
    "\"layer_type\":\"cluster/chunk-map\",\"share_permille\":120,\"own_ns\":150,\"total_ns\":1000,"
    "\"calls\":2,\"requests\":3,\"errors\":2,\"bytes\":12288,\"min_ns\":300,\"avg_ns\":500,"
    "\"max_ns\":700}],\"uncounted\":0}\n";

static void test_layers_json(void **state)
{
    struct bw_probe_stats *stats = stats_of_layers();
    expect_report(stats, true, layers_json_wanted);
    bw_probe_stats_destroy(stats);
}

/* Shares of own time are all there is, but for rounding. */
static void test_shares_add_up(void **state)
{
    enum { NAMES = 37 };
    struct bw_probe_stats *stats = stats_make(true, NULL);
    uint64_t time = 1;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer-%u", i);
        time = time * 31 % 10007;
        stats_fire(stats, BW_PROBE_fop__unwind,
                   &(struct bw_fopinfo){
                       .layer = name, .layer_type = "a/b", .ns = 2 * time, .own_ns = time});
    }
    char *text = stats_json(stats);
    assert_in_range(stats_sum_of(text, "share_permille"), 1000 - NAMES / 2, 1000 + NAMES / 2);
    free(text);
    struct bw_stats_table table;
    assert_null(bw_probe_stats_sum(stats, &table));
    assert_int_equal(table.rows.count, NAMES);
    for (size_t i = 1; i < table.rows.count; i++)
        assert_true(table.rows.items[i - 1].totals.own_ns >= table.rows.items[i].totals.own_ns);
    bw_stats_table_free(&table);
    bw_probe_stats_destroy(stats);
}

/* Times whose sum does not fit still have shares. */
static void test_large_times(void **state)
{
    struct bw_probe_stats *stats = stats_make(false, NULL);
    stats_fire(stats, BW_PROBE_dev__read__done,
               &(struct bw_ioinfo){.ns = UINT64_MAX, .bytes = UINT64_MAX});
    stats_fire(stats, BW_PROBE_dev__read__done, &(struct bw_ioinfo){.ns = 2, .bytes = 2});
    stats_fire(stats, BW_PROBE_key__search__done, &(struct bw_keyinfo){.ns = UINT64_MAX});
    char *text = stats_json(stats);
    assert_non_null(strstr(text,
                           "\"share_permille\":500,\"total_ns\":18446744073709551615,\"count\":2,"
                           "\"errors\":0,\"bytes\":18446744073709551615,"));
    assert_int_equal(stats_sum_of(text, "share_permille"), 1000);
    free(text);
    bw_probe_stats_destroy(stats);
}

/* Layers are distinguished by name and type. Overflows are reported. */
static void test_many_layers(void **state)
{
    enum { ROOM = 4096, NAMES = ROOM + 10 };
    struct bw_probe_stats *stats = stats_make(true, NULL);
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i % NAMES / 2);
        stats_fire(stats, BW_PROBE_fop__unwind,
                   &(struct bw_fopinfo){.layer = name, .layer_type = i % 2 ? "a/b" : "a/c"});
    }
    struct bw_stats_table table;
    assert_null(bw_probe_stats_sum(stats, &table));
    assert_int_equal(table.rows.count, ROOM);
    assert_int_equal(table.uncounted, 20);
    for (size_t i = 0; i < table.rows.count; i++)
        assert_int_equal(table.rows.items[i].totals.count, 2);
    /* No time has passed: sorted by name and type, and no shares. */
    assert_string_equal(table.rows.items[0].type, "a/b");
    assert_string_equal(table.rows.items[1].type, "a/c");
    bw_stats_table_free(&table);
    struct bw_buffer text = {0};
    expect_success(bw_probe_stats_report(stats, false, stats_collect, &text));
    bw_buffer_append_byte(&text, '\0');
    assert_non_null(
        strstr(text.data, "\nnot counted, as there was no room: 20 calls of other layers\n"));
    assert_null(strstr(text.data, "own time of all layers"));
    bw_buffer_free(&text);
    bw_probe_stats_destroy(stats);
}

/* Nothing gets lost between threads, which also make layers known at once, and reports meanwhile.
 */

enum { ROUNDS = 20000 };
static struct bw_probe_stats *shared;

static void call_in_thread(struct bw_xlator *xlator, unsigned thread)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[16];
        snprintf(name, sizeof name, "layer-%u", round % 50);
        stats_fire(shared, BW_PROBE_fop__unwind,
                   &(struct bw_fopinfo){.layer = name,
                                        .layer_type = "a/b",
                                        .operation = "read",
                                        .ns = round,
                                        .own_ns = round / 2,
                                        .requests = 2,
                                        .bytes = 10,
                                        .errors = round % 2});
        if (thread == 0 && round % 4000 == 0)
            free(stats_json(shared));
    }
}

static void test_layers_in_threads(void **state)
{
    shared = stats_make(true, NULL);
    run_threads(call_in_thread, NULL);
    char *text = stats_json(shared);
    const uint64_t calls = (uint64_t)THREADS * ROUNDS;
    assert_int_equal(stats_sum_of(text, "calls"), calls);
    assert_int_equal(stats_sum_of(text, "requests"), 2 * calls);
    assert_int_equal(stats_sum_of(text, "bytes"), 10 * calls);
    assert_int_equal(stats_sum_of(text, "errors"), calls / 2);
    assert_int_equal(stats_sum_of(text, "total_ns"), calls * (ROUNDS - 1) / 2);
    assert_int_equal(stats_sum_of(text, "own_ns"), calls * (ROUNDS - 2) / 4);
    free(text);
    bw_probe_stats_destroy(shared);
}

static void read_in_thread(struct bw_xlator *xlator, unsigned thread)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        stats_fire(
            shared, BW_PROBE_dev__read__done,
            &(struct bw_ioinfo){.ns = 100 + round, .bytes = 512, .error = round % 4 ? 0 : -5});
        if (thread == 0 && round % 4000 == 0)
            free(stats_json(shared));
    }
}

static void test_probes_in_threads(void **state)
{
    shared = stats_make(false, "dev-read-done");
    run_threads(read_in_thread, NULL);
    struct bw_stats_table table;
    assert_null(bw_probe_stats_sum(shared, &table));
    assert_int_equal(table.rows.count, 1);
    assert_int_equal(table.rows.items[0].totals.count, THREADS * ROUNDS);
    assert_int_equal(table.rows.items[0].totals.errors, THREADS * ROUNDS / 4);
    assert_int_equal(table.rows.items[0].totals.bytes, (uint64_t)512 * THREADS * ROUNDS);
    assert_int_equal(table.rows.items[0].totals.times.count, THREADS * ROUNDS);
    assert_int_equal(table.rows.items[0].totals.times.least, 100);
    assert_int_equal(table.rows.items[0].totals.times.most, 100 + ROUNDS - 1);
    bw_stats_table_free(&table);
    bw_probe_stats_destroy(shared);
}
