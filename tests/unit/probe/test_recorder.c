/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/recorder: what the ring keeps of which event, its rounds, and threads. */
#include "support/recorder_bench.h"

#include <pthread.h>
#include <unistd.h>

#include "base/utf8.h"

/* Text of the last event, after the number of the thread. */
static const char *last_line(struct recorder_bench *bench)
{
    char thread[32];
    size_t length =
        bw_recorder_line(bench->recorder, bw_recorder_count(bench->recorder), bench->line);
    assert_in_range(length, 1, BW_RECORDER_LINE);
    bench->line[length] = '\0';
    snprintf(thread, sizeof thread, " %d ", (int)gettid());
    char *found = strstr(bench->line, thread);
    assert_non_null(found);
    return found + strlen(thread);
}

static const char *last_json(struct recorder_bench *bench)
{
    struct bw_recording *recording = recorder_bench_recording(bench);
    const struct bw_recorded event =
        bw_recording_event(recording, bw_recording_facts(recording)->count - 1);
    memcpy(bench->line, event.json.data, event.json.length);
    bench->line[event.json.length] = '\0';
    bw_recording_close(recording);
    return bench->line;
}

static void say_error(struct recorder_bench *bench, const char *message)
{
    struct bw_error *error = bw_error_create(BW_ERROR_CORRUPT, "%s", message);
    const uint64_t address = 77;
    bw_error_add_hop(error, "features/verify", "verify", &address);
    BW_PROBE(bench->probes, error, report,
             &(struct bw_report_event){.error = error, .severity = BW_DAMAGE});
    bw_error_free(error);
}

static void test_members(void **state)
{
    struct recorder_bench bench = recorder_bench_create("fop-*,cache-hit", 16);
    record_image(bench.probes, "/tmp/a b.img");
    assert_string_equal(last_line(&bench), "image-open call=- error=- ns=- device=\"/tmp/a b.img\" "
                                           "size=1048576 index=2");
    say_error(&bench, "it is bad");
    assert_string_equal(last_line(&bench),
                        "error call=- error=-117 ns=- address=77 error_code=6 severity=damage "
                        "layer_type=features/verify layer=verify message=\"it is bad\"");
    struct bw_fop_event fop = {.event = {.call = 9, .ns = 50},
                               .xlator = "device-1",
                               .type = "storage/file",
                               .operation = "read",
                               .kind = "tree-block",
                               .count = 1,
                               .address = UINT64_MAX};
    BW_PROBE(bench.probes, fop__unwind, unwind, &fop);
    assert_string_equal(
        last_line(&bench),
        "fop-unwind call=9 error=0 ns=50 layer=device-1 layer_type=storage/file "
        "operation=read request_kind=tree-block address=18446744073709551615 requests=1 "
        "depth=0 parent_call=0 own_ns=0");
    fop.kind = NULL;
    BW_PROBE(bench.probes, fop__wind, wind, &fop);
    assert_non_null(strstr(last_line(&bench), " request_kind=- "));
    assert_int_equal(bw_recorder_count(bench.recorder), 4);
    recorder_bench_free(&bench);
}

static void test_selection(void **state)
{
    struct bw_recorder *recorder;
    char line[BW_RECORDER_LINE];
    expect_success(bw_recorder_create(NULL, 4, &recorder)); /* in memory */
    struct bw_probes *probes = recorder_bench_watch(recorder, 0);
    BW_PROBE(probes, cache__hit, cache, &(struct bw_cache_event){.logical = 5});
    assert_int_equal(bw_recorder_count(recorder), 0); /* no coarse probe, and not selected */
    record_image(probes, "x");
    assert_int_equal(bw_recorder_count(recorder), 1);
    assert_true(bw_recorder_line(recorder, 1, line) > 0);
    assert_true(bw_recorder_is_whole(recorder));
    bw_recorder_destroy(recorder);
    bw_probes_destroy(probes);
}

static void test_times(void **state)
{
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    static const struct {
        int64_t since;
        const char *expected;
    } cases[] = {
        {0, "   0.000000000 "},
        {1, "   0.000000001 "},
        {123456789, "   0.123456789 "},
        {1000000000, "   1.000000000 "},
        {12345000000000, "12345.000000000 "},
        {-1500000000, "   -1.500000000 "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        recorder_bench_time = bw_get64(bench.header->begin) + (uint64_t)cases[i].since;
        record_image(bench.probes, "x");
        last_line(&bench);
        assert_memory_equal(bench.line, cases[i].expected, strlen(cases[i].expected));
    }
    recorder_bench_free(&bench);
}

static void test_json(void **state)
{
    struct recorder_bench bench = recorder_bench_create("fop-wind", 4);
    char expected[256];
    record_image(bench.probes, "/a\xff");
    snprintf(expected, sizeof expected,
             "{\"number\":1,\"probe\":\"image-open\",\"time\":%llu,\"thread\":%d,"
             "\"device_bytes\":\"L2H/\",\"size\":1048576,\"index\":2}",
             (unsigned long long)recorder_bench_time, (int)gettid());
    assert_string_equal(last_json(&bench), expected);
    say_error(&bench, "no\x7f\xc2\x9b");
    assert_non_null(strstr(last_json(&bench), "\"message\":\"no\\u007f\\u009b\"}"));
    recorder_bench_free(&bench);
}

/* Paths keep their end, messages their beginning, and no character is cut in two. */
static void test_cut(void **state)
{
    char text[3100], expected[600];
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (size_t i = 0; i < 1000; i++)
            memcpy(text + shift + 3 * i, "\xe2\x82\xac", 3);
        text[shift + 3000] = '\0';
        size_t kept = (256 - shift) / 3;
        snprintf(expected, sizeof expected, "message=%.*s...", (int)(shift + 3 * kept), text);
        say_error(&bench, text);
        assert_non_null(strstr(last_line(&bench), expected));
        assert_non_null(strstr(last_json(&bench), "...\",\"cut\":true}")); /* is UTF-8 */
        memset(text + shift + 3000, 'z', shift);
        text[3000 + 2 * shift] = '\0';
        snprintf(expected, sizeof expected, " device=...%s ",
                 text + 3000 + 2 * shift - 3 * kept - shift);
        record_image(bench.probes, text);
        assert_non_null(strstr(last_line(&bench), expected));
        assert_non_null(strstr(last_json(&bench), "\"device\":\"...\xe2\x82\xac"));
    }
    memset(text, 'b', sizeof text);
    text[800] = '\0';
    record_image(bench.probes, text); /* as long as there is room */
    assert_null(strstr(last_line(&bench), "..."));
    assert_null(strstr(last_json(&bench), "cut"));
    memset(text, '\x80', sizeof text - 1); /* no characters at all */
    text[sizeof text - 1] = '\0';
    say_error(&bench, text);
    assert_non_null(strstr(last_line(&bench), "\\200..."));
    record_image(bench.probes, text);
    assert_non_null(strstr(last_line(&bench), "device=...\\200\\200"));
    recorder_bench_free(&bench);
}

/* A record as long as it can be, of each probe. */
static void test_longest(void **state)
{
    struct recorder_bench bench = recorder_bench_create("*", 32);
    struct bw_probe_consumer *consumer = bw_recorder_consumer(bench.recorder);
    static char text[70000];
    unsigned count;
    const struct bw_probe *table = bw_probe_table(&count);
    memset(text, 1, sizeof text - 1);
    for (unsigned i = 0; i < count; i++) {
        union {
            char bytes[BW_RECORD_MEMBERS * sizeof(struct bw_bytes)];
            uint64_t aligned;
        } record;
        memset(&record, 0xff, sizeof record);
        for (unsigned j = 0; j < table[i].record->member_count; j++) {
            const struct bw_member *member = &table[i].record->members[j];
            const struct bw_bytes bytes = {text, sizeof text - 1};
            if (member->type == BW_TYPE_BYTES)
                memcpy(record.bytes + member->offset, &bytes, sizeof bytes);
            else if (member->type == BW_TYPE_TEXT)
                memcpy(record.bytes + member->offset, &bytes.data, sizeof bytes.data);
        }
        const struct bw_probe_event event = {
            .probe = &table[i], .record = &record, .members = UINT64_MAX, .time = UINT64_MAX};
        consumer->visit(consumer, &event);
        assert_non_null(strstr(last_line(&bench), table[i].name));
        assert_true(bw_utf8_is_valid(bench.line, strlen(bench.line)));
        last_json(&bench);
    }
    recorder_bench_free(&bench);
}

static void test_rounds(void **state)
{
    struct recorder_bench bench = recorder_bench_create(NULL, 7);
    for (uint32_t i = 1; i <= 40; i++) {
        record_image(bench.probes, "x");
        struct bw_recording *recording = recorder_bench_recording(&bench);
        const struct bw_recording_facts *facts = bw_recording_facts(recording);
        assert_int_equal(facts->count, i < 7 ? i : 7);
        assert_int_equal(facts->overwritten, i < 7 ? 0 : i - 7);
        assert_int_equal(facts->torn + facts->damaged + facts->missing, 0);
        for (uint32_t j = 0; j < facts->count; j++)
            assert_int_equal(bw_recording_event(recording, j).number, facts->overwritten + j + 1);
        bw_recording_close(recording);
        assert_int_equal(bw_recorder_line(bench.recorder, 0, bench.line), 0);
        assert_int_equal(bw_recorder_line(bench.recorder, i + 1, bench.line), 0);
        assert_int_equal(bw_recorder_line(bench.recorder, 1, bench.line) > 0, i <= 7);
    }
    recorder_bench_free(&bench);
}

/* A writer that was stopped in its slot, or comes back to one that is a round further. */
static void test_slot_in_use(void **state)
{
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    for (int i = 0; i < 6; i++)
        record_image(bench.probes, "x");
    atomic_store(&bench.slots[2].sequence, htole64(3 | BW_BOX_BUSY));
    record_image(bench.probes, "y"); /* number 7 would go there */
    struct bw_recording *recording = recorder_bench_recording(&bench);
    assert_int_equal(bw_recording_facts(recording)->count, 3); /* 4, 5, 6 */
    assert_int_equal(bw_recording_facts(recording)->torn, 1);
    bw_recording_close(recording);
    assert_int_equal(bw_recorder_line(bench.recorder, 7, bench.line), 0);
    atomic_store(&bench.slots[3].sequence, htole64(12));
    record_image(bench.probes, "z"); /* number 8: the slot has a later one */
    recording = recorder_bench_recording(&bench);
    const struct bw_recording_facts *facts = bw_recording_facts(recording);
    assert_int_equal(facts->count, 3); /* 5, 6, 12 */
    assert_int_equal(bw_recording_event(recording, 2).number, 12);
    assert_int_equal(facts->torn, 1);
    assert_int_equal(facts->missing, 2); /* of 9 to 12: 9, 10; 11 has the slot of the torn one */
    assert_int_equal(facts->overwritten, 6); /* of 1 to 8, only 5 and 6 remain */
    bw_recording_close(recording);
    recorder_bench_free(&bench);
}

enum { THREADS = 4, EVENTS = 20000 };

static void *fire_many(void *context)
{
    struct recorder_bench *bench = context;
    for (uint64_t i = 1; i <= EVENTS; i++) {
        char path[128];
        uint64_t value = i * 1000003;
        int length = snprintf(path, sizeof path, "%0100llu", (unsigned long long)value);
        BW_PROBE(bench->probes, path__emit, path,
                 &(struct bw_path_event){value, value, path, (size_t)length});
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct recorder_bench bench = recorder_bench_create("path-emit", 16);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fire_many, &bench), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct bw_recording *recording = recorder_bench_recording(&bench);
    const struct bw_recording_facts *facts = bw_recording_facts(recording);
    assert_int_equal(facts->torn + facts->damaged, 0);
    assert_int_equal(bw_recorder_count(bench.recorder), THREADS * EVENTS);
    assert_in_range(facts->count + facts->missing + facts->overwritten, THREADS * EVENTS - 64,
                    THREADS * EVENTS);
    for (uint32_t i = 0; i < facts->count; i++) {
        unsigned long long inode = 0, tree = 1;
        char path[128], expected[128];
        const struct bw_recorded event = bw_recording_event(recording, i);
        memcpy(bench.line, event.text.data, event.text.length);
        bench.line[event.text.length] = '\0';
        assert_int_equal(sscanf(strstr(bench.line, "inode="),
                                "inode=%llu subvolume=%llu path=%100s", &inode, &tree, path),
                         3);
        assert_int_equal(inode, tree);
        snprintf(expected, sizeof expected, "%0100llu", inode);
        assert_string_equal(path, expected);
    }
    bw_recording_close(recording);
    recorder_bench_free(&bench);
}
