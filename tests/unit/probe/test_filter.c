/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/filter.c: what matches, and the exact words of each refusal. */
#include "probe/probe.h"
#include "support/filter_matches.h"
#include "support/walk_helpers.h"

static struct bw_filter *filter;

/* Reads a filter for the probes that match the patterns. */
static struct bw_error *create(const char *probes, const char *text)
{
    bool selected[BW_PROBES_MAX] = {false};
    expect_success(bw_probes_select(probes, selected));
    bw_filter_destroy(filter);
    return bw_filter_create(text, selected, &filter);
}

static struct bw_probe_event event_of(unsigned number, const void *record)
{
    const struct bw_probe *probe = &bw_probe_table(NULL)[number];
    return (struct bw_probe_event){
        .probe = probe, .record = record, .members = bw_probe_members(probe)};
}

struct expectation {
    const char *text;
    bool matches;
};

/* Each text, for one probe and one record. */
static void expect_matches(unsigned number, const void *record, const struct expectation *cases,
                           size_t count)
{
    const struct bw_probe_event event = event_of(number, record);
    for (size_t i = 0; i < count; i++) {
        expect_success(create(event.probe->name, cases[i].text));
        if (filter_matches(filter, &event) != cases[i].matches)
            fail_msg("%s", cases[i].text);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    const struct bw_blockinfo record = {.error = -5,
                                        .ns = 1500000,
                                        .logical = UINT64_C(1) << 63,
                                        .level = 3,
                                        .bytes = 16384,
                                        .mirror = 0};
    static const struct expectation cases[] = {
        {"level == 3", true},
        {"level==3", true},
        {"level!=3", false},
        {"level != 4", true},
        {"level < 3", false},
        {"level <= 3", true},
        {"level > 2", true},
        {"level >= 4", false},
        {"level == 0x3", true},
        {"level == 03", true},
        {"bytes == 040000", true},
        {"bytes == 0x4000", true},
        {"bytes == 0X4000", true},
        {"bytes == 16K", true},
        {"bytes < 1M", true},
        {"bytes >= 1G", false},
        {"bytes > 0x3K", true},
        {"bytes < 1T && bytes < 1P && bytes < 1E", true},
        {"logical == 8E", true},
        {"logical == 9223372036854775808", true},
        {"logical > 9223372036854775807", true},
        {"logical < 18446744073709551615", true},
        {"logical == 0xffffffffffffffff", false},
        {"logical >= -0", true},
        {"error == -5", true},
        {"error != -5", false},
        {"error < 0", true},
        {"error > -6", true},
        {"error < -0x6", false},
        {"error >= -9223372036854775808", true},
        {"error == 9223372036854775807", false},
        {"error < 9223372036854775807", true},
        {"ns == 1500us", true},
        {"ns > 1ms", true},
        {"ns > 2ms", false},
        {"ns < 1s", true},
        {"ns < 1m", true},
        {"ns > 1h", false},
        {"ns == 1500000ns", true},
        {"ns == 1500000", true},
        {"level", true},
        {"mirror", false},
        {"error", true},
        {"!mirror", true},
    };
    expect_matches(BW_PROBE_block__read__done, &record, cases, COUNT(cases));
}

static void test_limits_of_signed_numbers(void **state)
{
    (void)state;
    const struct bw_blockinfo least = {.error = INT64_MIN}, most = {.error = INT64_MAX};
    static const struct expectation of_least[] = {
        {"error == -9223372036854775808", true},
        {"error == -8E", true},
        {"error < -9223372036854775807", true},
        {"error >= 0", false},
        {"error", true},
    };
    static const struct expectation of_most[] = {
        {"error == 9223372036854775807", true},
        {"error > 9223372036854775806", true},
        {"error < 0", false},
    };
    expect_matches(BW_PROBE_block__verify, &least, of_least, COUNT(of_least));
    expect_matches(BW_PROBE_block__read__done, &most, of_most, COUNT(of_most));
}

static void test_texts(void **state)
{
    (void)state;
    const struct bw_fopinfo record = {
        .layer = "verify", .layer_type = "features/verify", .operation = "", .request_kind = NULL};
    static const struct expectation cases[] = {
        {"layer == verify", true},
        {"layer == \"verify\"", true},
        {"layer == verif", false},
        {"layer == verify2", false},
        {"layer != verify", false},
        {"layer ~ v*y", true},
        {"layer !~ v*y", false},
        {"layer ~ [!x]*", true},
        {"layer ~[!v]*", false},
        {"layer_type ~ */verify", true},
        {"layer_type == features/verify", true},
        {"layer_type ~ \"*/\\x76erify\"", true},
        {"layer", true},
        {"operation", false},
        {"operation == \"\"", true},
        {"operation ~ *", true},
        {"request_kind", false},
        {"request_kind == \"\"", false},
        {"request_kind != \"\"", true},
        {"request_kind ~ *", false},
        {"request_kind !~ *", true},
        {"!request_kind && !(request_kind == x) && request_kind != x", true},
        {"probe == fop-unwind", true},
        {"probe ~ fop-*", true},
        {"probe !~ fop-*", false},
        {"probe != \"fop-wind\"", true},
        {"probe", true},
    };
    expect_matches(BW_PROBE_fop__unwind, &record, cases, COUNT(cases));
}

static void test_bytes(void **state)
{
    (void)state;
    const struct bw_direntinfo record = {
        .name = {"a\0\"\\\n\xff*.tmp", 10}, .type = "file", .parent_inode = 256};
    static const struct expectation cases[] = {
        {"name == \"a\\x00\\\"\\\\\\n\\xff*.tm\"", true},
        {"name == \"a\\x00\\\"\\\\\\n\\xFF*.tmp\"", false},
        {"name == a", false},
        {"name ~ a*.tm", true},
        {"name ~ *.tmp", false},
        {"name ~ *\\**", true},
        {"name ~ \"*\\\\**\"", true},
        {"name ~ \"a\\x00*\"", true},
        {"name ~ a?????*", true},
        {"name ~ \"*[\\xf0-\\xff]*\"", true},
        {"name ~ \"*\\n*\" && type == file", true},
        {"name", true},
        {"parent_inode > 255 && name ~ a*", true},
    };
    expect_matches(BW_PROBE_dirent, &record, cases, COUNT(cases));
    const struct bw_direntinfo other = {.name = {"it's-5%", 7}};
    static const struct expectation more[] = {
        {"name == it's-5%", true}, {"name==it's-5%&&name", true}, {"name ~ \"\\t\\r\"", false},
        {"name ~ *", true},        {"name == 5x", false},         {"name ~ [0-9]*", false},
    };
    expect_matches(BW_PROBE_dirent, &other, more, COUNT(more));
    const struct bw_direntinfo none = {.name = {"", 0}};
    static const struct expectation empty[] = {
        {"name", false}, {"name == \"\"", true}, {"name ~ ?*", false}};
    expect_matches(BW_PROBE_dirent, &none, empty, COUNT(empty));
}

static void test_uuids(void **state)
{
    (void)state;
    static const char id[] = "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
    struct bw_superinfo record = {.fsid = {id, 16}};
    static const struct expectation cases[] = {
        {"fsid == \"01234567-89ab-cdef-0123-456789abcdef\"", true},
        {"fsid == 01234567-89ab-cdef-0123-456789abcdef", true},
        {"fsid ~ 0123*-*-cdef-*", true},
        {"fsid ~ \"\\x01*\"", false},
    };
    expect_matches(BW_PROBE_super__read, &record, cases, COUNT(cases));
    record.fsid.data = NULL;
    expect_matches(BW_PROBE_super__read, &record,
                   (struct expectation[]){{"fsid", false}, {"fsid ~ *", false}}, 2);
}

/* A translator may give less than the probe's own: a superblock that is none. */
static void test_absent_members(void **state)
{
    (void)state;
    static const struct expectation cases[] = {
        {"generation == 0", false}, {"generation != 0", true}, {"generation < 1", false},
        {"generation", false},      {"label == x", false},     {"label !~ x*", true},
        {"copy == 1", true},
    };
    const struct bw_superinfo record = {.copy = 1};
    struct bw_probe_event event = event_of(BW_PROBE_super__read, &record);
    event.members = bw_super_bad_xlate.members;
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_success(create("super-read", cases[i].text));
        if (filter_matches(filter, &event) != cases[i].matches)
            fail_msg("%s", cases[i].text);
    }
}

/* Members with the same name have different positions and types. */
static void test_several_probes(void **state)
{
    (void)state;
    const struct bw_blockinfo block = {.logical = 7, .bytes = 4096};
    const struct bw_cacheinfo cache = {.logical = 7, .bytes = 4096};
    const struct bw_ioinfo io = {.device = "/x", .bytes = 1};
    const struct bw_imageinfo image = {.device = "/x"};
    struct bw_probe_event events[] = {
        event_of(BW_PROBE_block__verify, &block), event_of(BW_PROBE_cache__hit, &cache),
        event_of(BW_PROBE_dev__read__done, &io), event_of(BW_PROBE_image__open, &image)};
    expect_success(create("block-verify,cache-hit", "logical == 7 && bytes == 4K"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(filter_matches(filter, &events[i]), i < 2);
    expect_success(create("dev-read-done,image-open", "device ~ /?"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(filter_matches(filter, &events[i]), i >= 2);
    expect_success(create("*", "probe ~ *-hit || probe == image-open"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(filter_matches(filter, &events[i]), i == 1 || i == 3);
    bool none[BW_PROBES_MAX] = {false};
    bw_filter_destroy(filter);
    expect_success(bw_filter_create("anything", none, &filter));
    assert_false(filter_matches(filter, &events[0]));
}

static void test_precedence(void **state)
{
    (void)state;
    const struct bw_mapinfo record = {.mirror = 1, .mirrors = 2, .rebuilt = 1, .missing = 0};
    static const struct expectation cases[] = {
        {"mirror || mirror && missing", true},
        {"(mirror || mirror) && missing", false},
        {"missing && mirror || mirror", true},
        {"missing && (mirror || mirror)", false},
        {"!missing && mirror", true},
        {"!missing || mirror == 7", true},
        {"!(missing || mirror)", false},
        {"!mirror && missing || rebuilt", true},
        {"!mirrors == 1", true}, /* of the whole comparison */
        {"!mirrors == 2", false},
        {"!!mirror", true},
        {"!!!mirror", false},
        {"!(!(mirror))", true},
        {" \t\n\v\f\r( mirror\n)\t", true},
        {"mirror&&rebuilt&&!missing", true},
        {"(((((mirror)))))&&(missing||!missing)", true},
    };
    expect_matches(BW_PROBE_chunk__map, &record, cases, COUNT(cases));
}

/* Filters at random from four members, written while they are evaluated, for all sixteen records.
 */
static unsigned random_state = 1;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % limit;
}

/* Binding: 0 anything, 1 no `||`, 2 neither. Returns the set of records that match, a bit each. */
static unsigned write_random(struct bw_buffer *text, unsigned depth, unsigned binding)
{
    static const char *const names[] = {"mirror", "mirrors", "rebuilt", "missing"};
    static const unsigned sets[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    unsigned kind = depth ? random_below(5) : 4, left;
    if (kind == 4) {
        unsigned member = random_below(4);
        bw_buffer_format(text, "%s%s", names[member], random_below(2) ? " == 1" : "");
        return sets[member];
    }
    if (kind == 3) {
        bw_buffer_format(text, "!");
        return 0xffff & ~write_random(text, depth - 1, 2);
    }
    unsigned own = kind == 0 ? 0 : 1;
    bool parentheses = own < binding || kind == 2;
    bw_buffer_format(text, parentheses ? "(" : "");
    left = write_random(text, depth - 1, own);
    bw_buffer_format(text, own ? " && " : "||");
    unsigned right = write_random(text, depth - 1, own);
    bw_buffer_format(text, parentheses ? ")" : "");
    return own ? left & right : left | right;
}

static void test_random_filters(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        struct bw_buffer text = {0};
        unsigned expected = write_random(&text, i % 7, 0);
        bw_buffer_append_byte(&text, '\0');
        expect_success(create("chunk-map", text.data));
        for (unsigned k = 0; k < 16; k++) {
            const struct bw_mapinfo record = {
                .mirror = k & 1, .mirrors = k >> 1 & 1, .rebuilt = k >> 2 & 1, .missing = k >> 3};
            const struct bw_probe_event event = event_of(BW_PROBE_chunk__map, &record);
            if (filter_matches(filter, &event) != (expected >> k & 1))
                fail_msg("record %u: %s", k, text.data);
        }
        bw_buffer_free(&text);
    }
}

static void test_members_and_attributes(void **state)
{
    (void)state;
    expect_success(
        create("block-read-done,block-verify", "probe ~ block-* && (level == 0 || !error)"));
    uint64_t members = UINT64_C(1) << BW_blockinfo_level | UINT64_C(1) << BW_blockinfo_error;
    assert_int_equal(filter_members(filter, BW_PROBE_block__read__done), members);
    assert_int_equal(filter_members(filter, BW_PROBE_block__verify), members);
    assert_int_equal(filter_members(filter, BW_PROBE_block__retry), 0);
    struct bw_attributes attributes = bw_filter_attributes(filter);
    assert_int_equal(attributes.name, BW_STABILITY_EVOLVING);
    assert_int_equal(attributes.data, BW_STABILITY_EVOLVING);
    assert_int_equal(attributes.depends, BW_CLASS_COMMON);
    /* The record's data are less stable than the member, then the member than the record. */
    expect_success(create("fop-*", "layer == verify"));
    assert_int_equal(bw_filter_attributes(filter).name, BW_STABILITY_EVOLVING);
    assert_int_equal(bw_filter_attributes(filter).data, BW_STABILITY_UNSTABLE);
    expect_success(create("error", "address && message ~ *sum*"));
    assert_int_equal(bw_filter_attributes(filter).name, BW_STABILITY_UNSTABLE);
}

struct counter {
    struct bw_probe_consumer consumer;
    unsigned count;
};

static void count_event(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    ((struct counter *)consumer)->count += event->probe->number == BW_PROBE_block__read__done;
}

static void test_filtered_consumer(void **state)
{
    (void)state;
    struct counter counter = {.consumer = {.visit = count_event}};
    expect_success(bw_probes_select("block-read-done", counter.consumer.selected));
    counter.consumer.lazy[BW_PROBE_block__read__done] = UINT64_C(1) << BW_blockinfo_bytes;
    expect_success(create("block-read-done", "items > 100"));
    struct bw_probe_consumer *filtered = bw_filter_before(filter, &counter.consumer);
    assert_memory_equal(filtered->selected, counter.consumer.selected, sizeof filtered->selected);
    assert_int_equal(filtered->lazy[BW_PROBE_block__read__done],
                     UINT64_C(1) << BW_blockinfo_bytes | UINT64_C(1) << BW_blockinfo_items);
    assert_int_equal(filtered->lazy[BW_PROBE_block__verify], 0);
    for (unsigned items = 0; items < 200; items++) {
        const struct bw_blockinfo record = {.items = items};
        const struct bw_probe_event event = event_of(BW_PROBE_block__read__done, &record);
        filtered->visit(filtered, &event);
    }
    assert_int_equal(counter.count, 99);
}

static int forget_filter(void **state)
{
    (void)state;
    bw_filter_destroy(filter);
    filter = NULL;
    bw_filter_destroy(filter);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_limits_of_signed_numbers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_uuids),
        cmocka_unit_test(test_absent_members),
        cmocka_unit_test(test_several_probes),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_random_filters),
        cmocka_unit_test(test_members_and_attributes),
        cmocka_unit_test(test_filtered_consumer),
    };
    return cmocka_run_group_tests(tests, NULL, forget_filter);
}
