/* SPDX-License-Identifier: GPL-2.0-or-later */
/* performance/io-threads: each request gets its own result, whichever thread serves it. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "graph/graph.h"
#include "support/fake_layer.h"
#include "xlators/classes.h"

enum { LENGTH = 64, MOST = 300, CALLERS = 5, ROUNDS = 100 };

/* A layer below that any number of threads may call. Every seventh address is bad. */
struct below {
    atomic_size_t calls, requests, hints;
    pthread_barrier_t *barrier; /* where calls wait for each other; NULL: nowhere */
};

static uint8_t byte_at(uint64_t address)
{
    return (uint8_t)(address * 2654435761u >> 13);
}

static void below_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct below *below = bw_xlator_private(xlator);
    (void)frame;
    atomic_fetch_add(&below->calls, 1);
    atomic_fetch_add(&below->requests, count);
    if (below->barrier)
        pthread_barrier_wait(below->barrier);
    for (size_t i = 0; i < count; i++) {
        requests[i].error = NULL;
        if (requests[i].address % 7 == 3)
            requests[i].error =
                bw_error_create(BW_ERROR_CORRUPT, "bad address %u", (unsigned)requests[i].address);
        else
            memset(requests[i].buffer, byte_at(requests[i].address), requests[i].length);
    }
}

static void below_advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                         const struct bw_range *ranges, size_t count, unsigned copy)
{
    struct below *below = bw_xlator_private(xlator);
    (void)frame, (void)copy;
    (void)ranges;
    atomic_fetch_add(&below->hints, count);
}

static uint64_t below_size(struct bw_xlator *xlator)
{
    (void)xlator;
    return 4711;
}

static const struct bw_xlator_class below_class = {
    .type = "test/below",
    .description = "answers any number of threads",
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .operations = {.read = below_read, .advise = below_advise, .size = below_size},
};

static const struct bw_xlator_class *const classes[] = {&below_class, NULL};

struct bench {
    struct below below;
    struct bw_graph *graph;
    struct bw_xlator *top;
};

static struct bench *make_bench(const char *threads)
{
    struct bench *bench = calloc(1, sizeof *bench);
    const struct option_value options[] = {{"threads", threads}, {0}};
    bench->graph = graph_of(classes, NULL);
    struct bw_xlator *below = add_layer(bench->graph, "test/below", NULL, NULL);
    below->state = &bench->below;
    bench->top = add_layer(bench->graph, "performance/io-threads", below, options);
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    free(bench);
}

/* Reads a batch of `count` from `first` on; returns how many answers are wrong. */
static size_t count_wrong(struct bw_xlator *top, uint64_t first, size_t count)
{
    uint8_t buffers[MOST][LENGTH];
    struct bw_request requests[MOST];
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .length = LENGTH, .address = first + i, .buffer = buffers[i]};
    bw_wind(NULL, top, requests, count);
    for (size_t i = 0; i < count; i++) {
        char message[64];
        bool bad = (first + i) % 7 == 3;
        snprintf(message, sizeof message, "bad address %u", (unsigned)(first + i));
        wrong += bad != (requests[i].error != NULL);
        wrong += bad && requests[i].error && strcmp(requests[i].error->message, message) != 0;
        for (size_t at = 0; !bad && at < LENGTH; at++)
            wrong += buffers[i][at] != byte_at(first + i);
        bw_error_free(requests[i].error);
    }
    return wrong;
}

static void test_batches(void **state)
{
    (void)state;
    static const char *const threads[] = {"1", "2", "3", "4", "16", "64"};
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct bench *bench = make_bench(threads[i]);
        size_t requests = 0;
        for (size_t count = 1; count <= MOST; requests += count, count += count < 70 ? 1 : 23)
            assert_int_equal(count_wrong(bench->top, i + count, count), 0);
        assert_int_equal(bench->below.requests, requests);
        free_bench(bench);
    }
}

/* The number of parts of a batch. */
static void check_parts(const char *threads, size_t count, size_t parts)
{
    struct bench *bench = make_bench(threads);
    assert_int_equal(count_wrong(bench->top, 0, count), 0);
    assert_int_equal(bench->below.calls, parts);
    free_bench(bench);
}

static void test_parts(void **state)
{
    (void)state;
    check_parts("1", 100, 1);
    check_parts("4", 1, 1);
    check_parts("4", 2, 2);
    check_parts("4", 4, 4);
    check_parts("4", 5, 3);
    check_parts("4", 100, 4);
    check_parts("64", 64, 64);
    check_parts("64", 65, 33);
    check_parts("64", 20, 20);
}

/* Each part waits for the others to be served as well. */
static void test_at_the_same_time(void **state)
{
    (void)state;
    static const struct {
        const char *threads;
        unsigned number;
    } pools[] = {{"2", 2}, {"4", 4}, {"16", 16}};
    for (size_t i = 0; i < COUNT(pools); i++) {
        struct bench *bench = make_bench(pools[i].threads);
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, NULL, pools[i].number);
        bench->below.barrier = &barrier;
        for (unsigned round = 0; round < ROUNDS; round++)
            assert_int_equal(count_wrong(bench->top, round, pools[i].number), 0);
        free_bench(bench);
        pthread_barrier_destroy(&barrier);
    }
}

static void *count_wrong_often(void *top)
{
    size_t wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++)
        wrong += count_wrong(top, round * 1000, 1 + round % 80);
    return (void *)wrong;
}

static void check_callers(struct bench *bench)
{
    pthread_t callers[CALLERS];
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, count_wrong_often, bench->top), 0);
    for (size_t i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
}

static void test_several_callers(void **state)
{
    (void)state;
    static const char *const threads[] = {"1", "2", "4", "16"};
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct bench *bench = make_bench(threads[i]);
        check_callers(bench);
        free_bench(bench);
    }
}

static void test_no_threads(void **state)
{
    (void)state;
    struct bench *bench = make_bench("8");
    pthread_attr_t before, huge;
    pthread_getattr_default_np(&before);
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, SIZE_MAX / 4 * 3);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    size_t wrong = count_wrong(bench->top, 0, 100);
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&before);
    assert_int_equal(wrong, 0);
    assert_int_equal(bench->below.calls, 1);
    check_callers(bench);
    free_bench(bench);
}

static void test_made_and_not_used(void **state)
{
    (void)state;
    free_bench(make_bench("4"));
    struct bench *bench = make_bench("4");
    assert_int_equal(count_wrong(bench->top, 0, 1), 0);
    free_bench(bench);
}

static void test_what_passes(void **state)
{
    (void)state;
    static const struct bw_range ranges[] = {{0, 10}, {20, 10}};
    struct bench *bench = make_bench("4");
    assert_int_equal(bw_xlator_size(bench->top), 4711);
    bw_wind_advise(NULL, bench->top, ranges, COUNT(ranges), 0);
    assert_int_equal(bench->below.hints, 2);
    bw_wind(NULL, bench->top, NULL, 0);
    assert_int_equal(bench->below.calls, 0);
    free_bench(bench);
}

static void test_dump(void **state)
{
    (void)state;
    struct bench *bench = make_bench("3");
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    static const char wanted[] = "{\"started\":2,\"batches\":1,\"slices\":3,\"slices_by_threads\":";
    assert_int_equal(count_wrong(bench->top, 0, 1) + count_wrong(bench->top, 0, 3), 0);
    bw_json_begin_object(&json, NULL);
    bw_performance_io_threads_class.operations.dump(bench->top, &json);
    bw_json_end(&json);
    assert_true(text.length > sizeof wanted);
    assert_memory_equal(text.data, wanted, sizeof wanted - 1);
    bw_buffer_free(&text);
    free_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),          cmocka_unit_test(test_parts),
        cmocka_unit_test(test_at_the_same_time), cmocka_unit_test(test_several_callers),
        cmocka_unit_test(test_no_threads),       cmocka_unit_test(test_made_and_not_used),
        cmocka_unit_test(test_what_passes),      cmocka_unit_test(test_dump),
    };
    return cmocka_run_group_tests(tests, limit_time, NULL);
}
