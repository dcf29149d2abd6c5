/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes: selecting them, guards, what a consumer gets, and the lines of the printer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "probe/probe.h"

/* The n-th look at the clock is n microseconds after a day. */
static uint64_t ticks;

static uint64_t fake_clock(void)
{
    return UINT64_C(86400000000000) + 1000 * ticks++;
}

static unsigned selected_count(const bool selected[BW_PROBES_MAX])
{
    unsigned count = 0;
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        count += selected[i];
    return count;
}

static void test_selecting(void **state)
{
    bool selected[BW_PROBES_MAX] = {false};
    assert_null(bw_probes_select("block-read-*", selected));
    assert_int_equal(selected_count(selected), 2);
    assert_true(selected[BW_PROBE_block__read__done]);
    assert_null(bw_probes_select("cache-hit,!block-read-start", selected));
    assert_int_equal(selected_count(selected), 2);
    assert_true(selected[BW_PROBE_cache__hit]);
    assert_false(selected[BW_PROBE_block__read__start]);

    bool others[BW_PROBES_MAX] = {false};
    assert_null(bw_probes_select("!fop-*", others));
    assert_int_equal(selected_count(others), BW_PROBE_COUNT - 2);
    assert_false(others[BW_PROBE_fop__wind]);
}

static void test_nothing_matched(void **state)
{
    static const char *const patterns[] = {"blocks", "", "cache-hit,", "!nothing",
                                           "block-read-done,x*"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        bool selected[BW_PROBES_MAX] = {false};
        struct bw_error *error = bw_probes_select(patterns[i], selected);
        assert_non_null(error);
        assert_int_equal(error->code, BW_ERROR_USAGE);
        bw_error_free(error);
    }
}

static int evaluated;

static const struct bw_cache_event *evaluate(const struct bw_cache_event *event)
{
    evaluated++;
    return event;
}

struct counter {
    struct bw_probe_consumer consumer;
    unsigned events;
    uint64_t members, time;
    struct bw_cacheinfo last;
};

static void count(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct counter *counter = (struct counter *)consumer;
    counter->events++;
    counter->members = event->members;
    counter->time = event->time;
    if (event->probe->record == &bw_cacheinfo_record)
        counter->last = *(const struct bw_cacheinfo *)event->record;
}

static void test_guard(void **state)
{
    struct bw_probes *probes;
    struct counter counter = {.consumer = {.visit = count}};
    const struct bw_cache_event event = {{.call = 7}, 4096, 2, 16384, 5};
    assert_null(bw_probes_create(&probes));
    bw_probes_set_clock(probes, fake_clock);
    evaluated = 0;
    ticks = 0;
    BW_PROBE(probes, cache__hit, cache, evaluate(&event));
    assert_int_equal(evaluated, 0);
    assert_int_equal(BW_PROBE_START(probes, cache__hit), 0);
    assert_int_equal(ticks, 0);

    assert_null(bw_probes_select("cache-hit", counter.consumer.selected));
    bw_probes_add(probes, &counter.consumer);
    BW_PROBE(probes, cache__hit, cache, evaluate(&event));
    BW_PROBE(probes, cache__miss, cache, evaluate(&event));
    assert_int_equal(evaluated, 1);
    assert_int_equal(counter.events, 1);
    assert_int_equal(counter.last.call, 7);
    assert_int_equal(counter.last.logical, 4096);
    assert_int_equal(counter.last.tree, 5);
    assert_int_equal(counter.time, UINT64_C(86400000000000));
    /* Members without a translation are absent. */
    assert_false(counter.members >> BW_cacheinfo_ns & 1);
    assert_true(counter.members >> BW_cacheinfo_level & 1);
    bw_probes_destroy(probes);
}

static void test_evicted_block_has_no_tree(void **state)
{
    struct bw_probes *probes;
    struct counter counter = {.consumer = {.visit = count}};
    const struct bw_cache_event event = {{.call = 7}, 4096, 2, 16384, 5};
    assert_null(bw_probes_create(&probes));
    assert_null(bw_probes_select("cache-evict", counter.consumer.selected));
    bw_probes_add(probes, &counter.consumer);
    BW_PROBE(probes, cache__evict, cache_evict, &event);
    assert_int_equal(counter.last.tree, 0);
    assert_false(counter.members >> BW_cacheinfo_tree & 1);
    bw_probes_destroy(probes);
}

/* A lazy member is computed if one consumer wants it, and is then present for all. */
static void test_lazy_members(void **state)
{
    struct bw_probes *probes;
    struct counter first = {.consumer = {.visit = count}}, second = first;
    const struct bw_key_event event = {
        {.call = 1}, 5, {256, BW_DIR_ITEM, 9}, {256, BW_DIR_ITEM, 9}};
    assert_null(bw_probes_create(&probes));
    assert_null(bw_probes_select("key-*", first.consumer.selected));
    bw_probes_add(probes, &first.consumer);
    BW_PROBE(probes, key__search__start, key_start, &event);
    assert_false(first.members >> BW_keyinfo_key_type_name & 1);
    assert_null(bw_probes_select("key-search-start", second.consumer.selected));
    second.consumer.lazy[BW_PROBE_key__search__start] = UINT64_C(1) << BW_keyinfo_key_type_name;
    bw_probes_add(probes, &second.consumer);
    BW_PROBE(probes, key__search__start, key_start, &event);
    assert_int_equal(first.events, 2);
    assert_int_equal(second.events, 1);
    assert_true(second.members >> BW_keyinfo_key_type_name & 1);
    BW_PROBE(probes, key__search__done, key_done, &event);
    assert_false(first.members >> BW_keyinfo_key_type_name & 1);
    bw_probes_destroy(probes);
}

static void test_call_numbers(void **state)
{
    struct bw_probes probes;
    bw_probes_init(&probes);
    assert_int_equal(bw_probes_call(&probes), 1);
    assert_int_equal(bw_probes_call(&probes), 2);
}

/* Printing. */

struct paper {
    char text[4096];
    size_t length;
    unsigned writes;
};

static struct bw_error *write_down(void *context, const char *lines, size_t length)
{
    struct paper *paper = context;
    paper->writes++;
    if (length >= sizeof paper->text - paper->length)
        return bw_error_create(BW_ERROR_SYSTEM, "the paper is full");
    memcpy(paper->text + paper->length, lines, length);
    paper->length += length;
    return NULL;
}

/* The number of the thread, which differs, becomes THREAD. */
static void hide_thread(struct paper *paper, const char *front, const char *end)
{
    char result[sizeof paper->text] = "";
    const char *next = paper->text;
    for (const char *found; (found = strstr(next, front));) {
        found += strlen(front);
        const char *stop = found + strcspn(found, end);
        strncat(result, next, (size_t)(found - next));
        strcat(result, "THREAD");
        next = stop;
    }
    strcat(result, next);
    strcpy(paper->text, result);
}

static void fire_some(struct bw_probes *probes)
{
    static const char name[] = "two words \xff\x1b[31m";
    const struct bw_dir_entry entry = {
        {300, BW_INODE_ITEM, 0}, (const uint8_t *)name, sizeof name - 1, BW_FILE_REGULAR};
    struct bw_error *lost = bw_error_create(BW_ERROR_CORRUPT, "tree block 4096: it is \"bad\"");
    BW_PROBE(probes, image__open, image, &(struct bw_image_event){"disk.img", 1 << 20, 0});
    BW_PROBE(probes, dirent, dirent, &(struct bw_dirent_event){5, 256, &entry});
    BW_PROBE(probes, error, report,
             &(struct bw_report_event){.error = lost, .severity = BW_DAMAGE});
    bw_error_free(lost);
}

static void print_some(struct bw_probe_printer_options *options, struct paper *paper)
{
    struct bw_probes *probes;
    struct bw_probe_printer *printer;
    bool selected[BW_PROBES_MAX] = {false};
    ticks = 0;
    assert_null(bw_probes_create(&probes));
    bw_probes_set_clock(probes, fake_clock);
    options->consume = write_down;
    options->context = paper;
    assert_null(bw_probes_select("*", selected));
    assert_null(bw_probe_printer_create(options, selected, &printer));
    bw_probes_add(probes, bw_probe_printer_consumer(printer));
    fire_some(probes);
    assert_null(bw_probe_printer_destroy(printer));
    bw_probes_destroy(probes);
    paper->text[paper->length] = '\0';
}

static void test_text(void **state)
{
    /* Zeros: all events, as text. */
    struct bw_probe_printer_options options = {.struct_size =
                                                   sizeof(struct bw_probe_printer_options)};
    struct paper paper = {.length = 0};
    print_some(&options, &paper);
    assert_int_equal(paper.writes, 3);
    hide_thread(&paper, "   0.000000000 ", " ");
    hide_thread(&paper, "   0.000001000 ", " ");
    hide_thread(&paper, "   0.000002000 ", " ");
    assert_string_equal(
        paper.text,
        "   0.000000000 THREAD image-open call=- error=- ns=- device=disk.img size=1048576 "
        "index=0\n"
        "   0.000001000 THREAD dirent call=- error=- ns=- parent_inode=256 inode=300 subvolume=5 "
        "type=file "
        "name=\"two words \\377\\033[31m\" child_subvolume=0\n"
        "   0.000002000 THREAD error call=- error=-117 ns=- address=0 error_code=6 severity=damage "
        "layer_type=- "
        "layer=- "
        "message=\"tree block 4096: it is \\\"bad\\\"\"\n");
}

static void test_json(void **state)
{
    struct bw_probe_printer_options options = {.struct_size =
                                                   sizeof(struct bw_probe_printer_options),
                                               .json = true,
                                               .gather = true,
                                               .maximum = UINT64_MAX};
    struct paper paper = {.length = 0};
    print_some(&options, &paper);
    assert_int_equal(paper.writes, 1);
    hide_thread(&paper, "\"thread\":", ",");
    assert_string_equal(
        paper.text,
        "{\"probe\":\"image-open\",\"time\":86400000000000,\"thread\":THREAD,\"device\":\"disk."
        "img\","
        "\"size\":1048576,\"index\":0}\n"
        "{\"probe\":\"dirent\",\"time\":86400000001000,\"thread\":THREAD,\"parent_inode\":256,"
        "\"inode\":"
        "300,"
        "\"subvolume\":5,\"type\":\"file\",\"name_bytes\":\"dHdvIHdvcmRzIP8bWzMxbQ==\",\"child_"
        "subvolume\":0}\n"
        "{\"probe\":\"error\",\"time\":86400000002000,\"thread\":THREAD,\"error\":-117,\"address\":"
        "0,"
        "\"error_code\":6,\"severity\":\"damage\",\"message\":\"tree block 4096: it is "
        "\\\"bad\\\"\"}\n");
}

static void test_maximum(void **state)
{
    struct bw_probe_printer_options options = {
        .struct_size = sizeof(struct bw_probe_printer_options), .maximum = 1};
    struct paper paper = {.length = 0};
    print_some(&options, &paper);
    assert_int_equal(paper.writes, 1);
    assert_non_null(strstr(paper.text, "image-open"));
    assert_null(strstr(paper.text, "dirent"));
}

static struct bw_error *fail_to_write(void *context, const char *lines, size_t length)
{
    ++*(unsigned *)context;
    return bw_error_from_errno(ENOSPC, "cannot write");
}

static void test_failed_output(void **state)
{
    unsigned writes = 0;
    struct bw_probes *probes;
    struct bw_probe_printer *printer;
    const struct bw_probe_printer_options options = {.struct_size =
                                                         sizeof(struct bw_probe_printer_options),
                                                     .maximum = UINT64_MAX,
                                                     .consume = fail_to_write,
                                                     .context = &writes};
    bool selected[BW_PROBES_MAX] = {false};
    assert_null(bw_probes_create(&probes));
    assert_null(bw_probes_select("*", selected));
    assert_null(bw_probe_printer_create(&options, selected, &printer));
    bw_probes_add(probes, bw_probe_printer_consumer(printer));
    fire_some(probes);
    struct bw_error *error = bw_probe_printer_destroy(printer);
    assert_non_null(error);
    assert_int_equal(error->system, ENOSPC);
    assert_int_equal(writes, 1);
    bw_error_free(error);
    bw_probes_destroy(probes);
}
