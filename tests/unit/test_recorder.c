/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/recorder: what the ring keeps of which event, its rounds, and threads. */
#include "support/recorder_bench.h"

#include <pthread.h>
#include <unistd.h>

/* Text of the last event, behind the number of the thread. */
static const char *last_line(struct recorder_bench *bench)
{
    struct bw_recorded event;
    assert_true(bw_recorder_get(bench->recorder, bw_recorder_count(bench->recorder), &event));
    bench->text.length = 0;
    bw_recorded_append_text(&event, &bench->text);
    bw_buffer_append_byte(&bench->text, '\0');
    char thread[32];
    snprintf(thread, sizeof thread, " %d ", (int)gettid());
    char *found = strstr(bench->text.data, thread);
    assert_non_null(found);
    return found + strlen(thread);
}

static const char *last_json(struct recorder_bench *bench)
{
    struct bw_recorded event;
    assert_true(bw_recorder_get(bench->recorder, bw_recorder_count(bench->recorder), &event));
    bench->text.length = 0;
    bw_recorded_append_json(&event, &bench->text);
    bw_buffer_append_byte(&bench->text, '\0');
    return bench->text.data;
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
    (void)state;
    struct recorder_bench bench = recorder_bench_create("fop-*,cache-hit", 16);
    record_image(&bench, "/tmp/a b.img");
    assert_string_equal(last_line(&bench), "image-open size=1048576 index=2 path=\"/tmp/a b.img\"");
    say_error(&bench, "it is bad");
    assert_string_equal(last_line(&bench),
                        "error error=-117 address=77 code=6 message=\"it is bad\"");
    struct bw_fop_event fop = {.event = {.call = 9, .ns = 50},
                               .xlator = "device-1",
                               .type = "storage/file",
                               .operation = "read",
                               .kind = "tree-block",
                               .count = 1,
                               .address = UINT64_MAX};
    BW_PROBE(bench.probes, fop__wind, wind, &fop);
    assert_string_equal(
        last_line(&bench),
        "fop-wind call=9 address=18446744073709551615 kind=tree-block xlator=device-1");
    BW_PROBE(bench.probes, fop__unwind, unwind, &fop);
    assert_string_equal(last_line(&bench),
                        "fop-unwind call=9 error=0 ns=50 address=18446744073709551615 "
                        "kind=tree-block xlator=device-1");
    fop.kind = fop.xlator = NULL; /* a call that has none: the address is enough */
    BW_PROBE(bench.probes, fop__wind, wind, &fop);
    assert_string_equal(last_line(&bench), "fop-wind call=9 address=18446744073709551615");
    BW_PROBE(bench.probes, cache__hit, cache, &(struct bw_cache_event){{.call = 1}, 5, 1, 4096, 5});
    assert_string_equal(last_line(&bench), "cache-hit call=1 logical=5 level=1");
    assert_int_equal(bw_recorder_count(bench.recorder), 6);
    recorder_bench_free(&bench);
}

static void test_selection(void **state)
{
    (void)state;
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    BW_PROBE(bench.probes, cache__hit, cache, &(struct bw_cache_event){.logical = 5});
    assert_int_equal(bw_recorder_count(bench.recorder), 0); /* no coarse probe, and not selected */
    record_image(&bench, "x");
    assert_int_equal(bw_recorder_count(bench.recorder), 1);
    recorder_bench_free(&bench);
}

static void test_times(void **state)
{
    (void)state;
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
        recorder_bench_time = bench.recorder->view.begin + (uint64_t)cases[i].since;
        record_image(&bench, "x");
        last_line(&bench);
        assert_memory_equal(bench.text.data, cases[i].expected, strlen(cases[i].expected));
    }
    recorder_bench_free(&bench);
}

static void test_json(void **state)
{
    (void)state;
    struct recorder_bench bench = recorder_bench_create("fop-wind", 4);
    char expected[256];
    record_image(&bench, "/a\xff");
    snprintf(expected, sizeof expected,
             "{\"number\":1,\"probe\":\"image-open\",\"time\":%llu,\"thread\":%d,\"size\":1048576,"
             "\"index\":2,"
             "\"path_bytes\":\"L2H/\"}",
             (unsigned long long)recorder_bench_time, (int)gettid());
    assert_string_equal(last_json(&bench), expected);
    say_error(&bench, "no");
    assert_non_null(
        strstr(last_json(&bench), "\"error\":-117,\"address\":77,\"code\":6,\"message\":\"no\"}"));
    BW_PROBE(bench.probes, fop__wind, wind, &(struct bw_fop_event){.kind = "raw", .xlator = "x"});
    assert_non_null(
        strstr(last_json(&bench), "\"call\":0,\"address\":0,\"kind\":\"raw\",\"xlator\":\"x\"}"));
    recorder_bench_free(&bench);
}

/* Paths keep their end, messages their beginning, and no character is cut in two. */
static void test_cut(void **state)
{
    (void)state;
    char text[600], expected[700];
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (size_t i = 0; i < 100; i++)
            memcpy(text + shift + 3 * i, "\xe2\x82\xac", 3);
        text[shift + 300] = '\0';
        size_t kept = (BW_BOX_TEXT - shift) / 3;
        snprintf(expected, sizeof expected, "message=%.*s...", (int)(shift + 3 * kept), text);
        say_error(&bench, text);
        assert_non_null(strstr(last_line(&bench), expected));
        assert_non_null(strstr(last_json(&bench), "\"cut\":true}"));
        memset(text + shift + 300, 'z', shift);
        text[300 + 2 * shift] = '\0';
        snprintf(expected, sizeof expected, " path=...%s",
                 text + 300 + 2 * shift - 3 * kept - shift);
        record_image(&bench, text);
        assert_non_null(strstr(last_line(&bench), expected));
    }
    memset(text, 'b', sizeof text);
    text[BW_BOX_TEXT] = '\0';
    record_image(&bench, text); /* as long as there is room */
    assert_null(strstr(last_line(&bench), "..."));
    assert_null(strstr(last_json(&bench), "cut"));
    memset(text, '\x80', sizeof text - 1); /* no characters at all */
    text[sizeof text - 1] = '\0';
    say_error(&bench, text);
    record_image(&bench, text);
    assert_non_null(strstr(last_line(&bench), "path=...\\200\\200"));
    recorder_bench_free(&bench);
}

static void test_longest_line(void **state)
{
    (void)state;
    char room[BW_RECORDED_ROOM];
    struct recorder_bench bench = recorder_bench_create("*", 4);
    struct bw_recorded event;
    record_image(&bench, "x");
    assert_true(bw_recorder_get(bench.recorder, 1, &event));
    struct bw_box_probe probe;
    memset(&probe, 'n', sizeof probe);
    probe.primary.type = probe.secondary.type = BW_BOX_NUMBER;
    memset((uint8_t *)&event.slot, 0xff, sizeof event.slot);
    memset(event.slot.text, 1, sizeof event.slot.text);
    event.slot.text[0] = ' ';
    event.slot.word_length[0] = event.slot.word_length[1] = 0;
    event.slot.text_length = BW_BOX_TEXT;
    event.probe = &probe;
    struct bw_buffer text = {.data = room, .capacity = sizeof room};
    bw_recorded_append_text(&event, &text);
    assert_ptr_equal(text.data, room);
    assert_in_range(text.length, 4 * BW_BOX_TEXT, sizeof room - 1);
    recorder_bench_free(&bench);
}

/* What every probe keeps, and that its name and those of its members are there in full. */
static void test_probes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "image-open path",
        "super-read path",
        "chunk-add profile",
        "dev-read-start path",
        "dev-read-done path",
        "fop-wind xlator",
        "fop-unwind xlator",
        "dirent name",
        "path-emit path",
        "decompress-start algorithm",
        "decompress-done algorithm",
        "error message",
    };
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    unsigned count;
    size_t with_text = 0;
    const struct bw_probe *table = bw_probe_table(&count);
    assert_int_equal(bench.recorder->view.probe_count, count);
    for (unsigned i = 0; i < count; i++) {
        const struct bw_box_probe *probe = bw_recording_probe(&bench.recorder->view, i);
        const struct bw_member *members = table[i].record->members;
        assert_string_equal((const char *)probe->name, table[i].name);
        assert_string_equal((const char *)probe->primary.name, members[table[i].primary].name);
        assert_string_equal((const char *)probe->secondary.name, members[table[i].secondary].name);
        if (!*probe->text.name)
            continue;
        char pair[80];
        snprintf(pair, sizeof pair, "%s %s", table[i].name, (const char *)probe->text.name);
        assert_in_range(with_text, 0, COUNT(texts) - 1);
        assert_string_equal(pair, texts[with_text++]);
    }
    assert_int_equal(with_text, COUNT(texts));
    recorder_bench_free(&bench);
}

static void test_rounds(void **state)
{
    (void)state;
    struct recorder_bench bench = recorder_bench_create(NULL, 7);
    struct bw_recorded event;
    for (uint32_t i = 1; i <= 40; i++) {
        record_image(&bench, "x");
        struct bw_recording_list list = recorder_bench_list(&bench);
        assert_int_equal(list.count, i < 7 ? i : 7);
        assert_int_equal(list.overwritten, i < 7 ? 0 : i - 7);
        assert_int_equal(list.torn + list.damaged + list.missing, 0);
        for (uint32_t j = 0; j < list.count; j++) {
            assert_int_equal(bw_recording_slot(&bench.recorder->view, list.slots[j], &event),
                             BW_SLOT_GOOD);
            assert_int_equal(event.number, list.overwritten + j + 1);
        }
        bw_recording_list_free(&list);
        assert_false(bw_recorder_get(bench.recorder, 0, &event));
        assert_false(bw_recorder_get(bench.recorder, i + 1, &event));
        assert_int_equal(bw_recorder_get(bench.recorder, 1, &event), i <= 7);
    }
    recorder_bench_free(&bench);
}

/* A writer that was stopped in its slot, or comes back to one that is a round further. */
static void test_slot_in_use(void **state)
{
    (void)state;
    struct recorder_bench bench = recorder_bench_create(NULL, 4);
    struct bw_recorded event;
    for (int i = 0; i < 6; i++)
        record_image(&bench, "x");
    atomic_store(&bench.recorder->slots[2].sequence, htole64(3 | BW_BOX_BUSY));
    record_image(&bench, "y"); /* number 7 would go there */
    struct bw_recording_list list = recorder_bench_list(&bench);
    assert_int_equal(list.count, 3); /* 4, 5, 6 */
    assert_int_equal(list.torn, 1);
    bw_recording_list_free(&list);
    assert_false(bw_recorder_get(bench.recorder, 7, &event));
    atomic_store(&bench.recorder->slots[3].sequence, htole64(12));
    record_image(&bench, "z"); /* number 8: the slot has a later one */
    list = recorder_bench_list(&bench);
    assert_int_equal(list.count, 3); /* 5, 6, 12 */
    assert_int_equal(list.last, 12);
    assert_int_equal(list.torn, 1);
    assert_int_equal(list.missing, 2);     /* of 9 to 12: 9, 10; 11 has the slot of the torn one */
    assert_int_equal(list.overwritten, 6); /* of 1 to 8, 5 and 6 are there */
    bw_recording_list_free(&list);
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
    (void)state;
    struct recorder_bench bench = recorder_bench_create("path-emit", 16);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fire_many, &bench), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct bw_recording_list list = recorder_bench_list(&bench);
    assert_int_equal(list.torn + list.damaged, 0);
    assert_in_range(list.last, THREADS * EVENTS - 64, THREADS * EVENTS);
    assert_int_equal(list.count + list.missing + list.overwritten, list.last);
    for (uint32_t i = 0; i < list.count; i++) {
        struct bw_recorded event;
        char path[128];
        assert_int_equal(bw_recording_slot(&bench.recorder->view, list.slots[i], &event),
                         BW_SLOT_GOOD);
        uint64_t value = bw_get64(event.slot.primary);
        snprintf(path, sizeof path, "%0100llu", (unsigned long long)value);
        assert_int_equal(bw_get64(event.slot.secondary), value);
        assert_int_equal(event.slot.text_length, 100);
        assert_memory_equal(event.slot.text, path, 100);
    }
    bw_recording_list_free(&list);
    recorder_bench_free(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),     cmocka_unit_test(test_selection),
        cmocka_unit_test(test_times),       cmocka_unit_test(test_json),
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_longest_line),
        cmocka_unit_test(test_probes),      cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_slot_in_use), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
