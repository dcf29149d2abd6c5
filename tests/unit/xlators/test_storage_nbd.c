/* SPDX-License-Identifier: GPL-2.0-or-later */
/* storage/nbd: each request gets its own bytes, whatever the limits of the server; and servers that
 * disconnect, hang or lie. */
#include "base/json.h"
#include "base/thread.h"

#include <stdlib.h>
#include <unistd.h>

#include "servers/helper.h"
#include "servers/servers.h"
#include "support/fake_layer.h"
#include "support/nbd_server.h"
#include "xlators/classes.h"

enum { SIZE = 1 << 20 };

static uint8_t content[SIZE];

/* A server and a layer that reads from it. */
struct setup {
    struct nbd_server server;
    struct bw_servers *servers;
    struct bw_graph *graph;
    struct bw_xlator *layer;
    struct report_log log;
};

static struct bw_error *try_set_up(struct setup *setup, const char *timeout)
{
    const struct option_value options[] = {
        {"path", setup->server.uri}, {"timeout", timeout}, {"attempts", "1"}, {0}};
    const struct layer layer = {.type = "storage/nbd", .name = "nbd", .options = options};
    setup->server.bytes = content;
    setup->server.size = SIZE;
    nbd_serve(&setup->server);
    expect_success(bw_servers_create(BW_HELPERS_OFF, &setup->servers));
    setup->graph = fake_graph(&setup->log);
    setup->graph->inputs.servers = setup->servers;
    return graph_add(setup->graph, &layer, &setup->layer);
}

static void set_up(struct setup *setup)
{
    expect_success(try_set_up(setup, "30s"));
    assert_int_equal(bw_xlator_size(setup->layer), SIZE);
}

static void tear_down(struct setup *setup)
{
    bw_graph_destroy(setup->graph);
    bw_servers_destroy(setup->servers);
    nbd_end(&setup->server);
}

static struct bw_error *read_at(struct setup *setup, uint64_t offset)
{
    uint8_t bytes[4096];
    struct bw_error *error = read_range(setup->layer, offset, bytes, sizeof bytes);
    if (!error)
        assert_memory_equal(bytes, content + offset, sizeof bytes);
    return error;
}

/* Requests of a batch; their buffers follow each other in memory only if `tight`. */
static void check_batch(struct setup *setup, uint64_t seed, size_t count, bool tight)
{
    struct bw_request *requests = calloc(count, sizeof *requests);
    uint8_t *memory = malloc(count * 10000), *next = memory;
    uint64_t address = 0;
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t length = 1 + (uint32_t)(seed >> 33) % 9000;
        address =
            seed >> 60 < 8 && address + length <= SIZE ? address : (seed >> 20) % (SIZE - 9000);
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .address = address, .length = length, .buffer = next};
        address += length;
        next += length + !tight;
    }
    bw_wind(NULL, setup->layer, requests, count);
    for (size_t i = 0; i < count; i++) {
        expect_success(requests[i].error);
        assert_memory_equal(requests[i].buffer, content + requests[i].address, requests[i].length);
    }
    free(memory);
    free(requests);
}

static void test_batches(void **state)
{
    static const uint32_t limits[][2] = {
        {0, 0}, {1, 512}, {512, 1024}, {4096, 8192}, {1 << 16, 1 << 25}};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct setup setup = {.server = {.minimum = limits[i][0], .maximum = limits[i][1]}};
        set_up(&setup);
        for (uint64_t seed = 0; seed < 10; seed++)
            check_batch(&setup, seed, 1 + 13 * (size_t)seed, seed & 1);
        assert_int_equal(setup.server.misfits, 0);
        assert_int_equal(setup.server.connections, 1);
        tear_down(&setup);
    }
}

static void test_neighbours(void **state)
{
    struct setup setup = {.server = {.maximum = 64 << 10, .minimum = 1}};
    uint8_t bytes[40][4096];
    struct bw_request requests[40];
    set_up(&setup);
    for (size_t i = 0; i < 40; i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .address = i * 4096, .length = 4096, .buffer = bytes[39 - i]};
    bw_wind(NULL, setup.layer, requests, 40);
    for (size_t i = 0; i < 40; i++) {
        expect_success(requests[i].error);
        assert_memory_equal(bytes[39 - i], content + i * 4096, 4096);
    }
    assert_int_equal(setup.server.reads, 3); /* 160 KiB, 64 at a time */
    tear_down(&setup);
}

static void test_past_the_end(void **state)
{
    struct setup setup = {.server = {.fault = NBD_RIGHT}};
    set_up(&setup);
    expect_success(read_at(&setup, SIZE - 4096));
    expect_error(read_at(&setup, SIZE - 4095), BW_ERROR_CORRUPT, "ends at 1048576, before offset");
    expect_error(read_at(&setup, UINT64_MAX - 1), BW_ERROR_CORRUPT, "ends at 1048576");
    tear_down(&setup);
}

/* Neighbours are read again, one by one. */
static void test_bad_blocks(void **state)
{
    struct setup setup = {.server = {.bad_offset = 8192}};
    uint8_t bytes[4][4096];
    struct bw_request requests[4];
    set_up(&setup);
    for (size_t i = 0; i < 4; i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .address = i * 4096, .length = 4096, .buffer = bytes[i]};
    bw_wind(NULL, setup.layer, requests, 4);
    for (size_t i = 0; i < 2; i++)
        expect_success(requests[i].error);
    for (size_t i = 2; i < 4; i++)
        expect_error(requests[i].error, BW_ERROR_SYSTEM, "cannot read nbd+unix");
    assert_int_equal(setup.server.connections, 1);
    tear_down(&setup);
}

static void announce(struct setup *setup, uint64_t offset, uint64_t length)
{
    bw_wind_advise(NULL, setup->layer, &(struct bw_range){offset, length}, 1, 0);
}

/* Announced ranges are requested once, for reads of any size. */
static void test_announced(void **state)
{
    static const uint32_t limits[][2] = {{0, 0}, {512, 1024}, {4096, 65536}};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct setup setup = {.server = {.minimum = limits[i][0], .maximum = limits[i][1]}};
        set_up(&setup);
        announce(&setup, 8192, 16384);
        announce(&setup, 4096, 65536);
        announce(&setup, SIZE - 4096, UINT64_MAX - SIZE);
        announce(&setup, UINT64_MAX, 1);
        expect_success(read_at(&setup, 4096 + 65536 - 4096));
        expect_success(read_at(&setup, SIZE - 4096));
        unsigned reads = setup.server.reads;
        assert_int_equal(setup.server.misfits, 0);
        for (uint64_t offset = 4096; offset < 4096 + 65536 - 4096; offset += 4096)
            expect_success(read_at(&setup, offset));
        assert_int_equal(setup.server.reads, reads);
        /* the range was kept only until all of it had been read */
        expect_success(read_at(&setup, 4096));
        assert_true(setup.server.reads > reads);
        announce(&setup, 0, SIZE / 2);
        for (uint64_t seed = 0; seed < 10; seed++)
            check_batch(&setup, seed, 1 + 13 * (size_t)seed, seed & 1);
        tear_down(&setup);
    }
}

static void read_block(struct setup *setup, enum bw_request_kind kind, bool metadata)
{
    uint8_t bytes[4096];
    const struct bw_frame frame = {.metadata = metadata};
    struct bw_request request = {
        .kind = kind, .address = 8192, .length = sizeof bytes, .buffer = bytes};
    bw_wind(&frame, setup->layer, &request, 1);
    expect_success(request.error);
    assert_memory_equal(bytes, content + 8192, sizeof bytes);
}

/* The server gets one request for a tree block, but a request for each read of data. */
static void test_kept(void **state)
{
    struct setup setup = {.server = {.fault = NBD_RIGHT}};
    set_up(&setup);
    for (unsigned i = 0; i < 3; i++)
        read_block(&setup, BW_REQUEST_DATA, false);
    assert_int_equal(setup.server.reads, 3);
    for (unsigned i = 0; i < 3; i++)
        read_block(&setup, BW_REQUEST_TREE_BLOCK, true);
    read_block(&setup, BW_REQUEST_RAW, true);
    assert_int_equal(setup.server.reads, 4);
    tear_down(&setup);
}

/* Above the limit, old blocks make room for new ones. */
static void test_more_than_is_kept(void **state)
{
    enum { BLOCK = 64 << 10, BLOCKS = 2500 };
    struct bw_range_cache cache = {0};
    for (uint64_t i = 0; i < BLOCKS; i++) {
        uint64_t begin = i * BLOCK;
        struct bw_cached_range *range =
            bw_range_cache_add(&cache, &begin, begin + BLOCK, BLOCK, false);
        assert_non_null(range);
        assert_int_equal(begin, (i + 1) * BLOCK);
        range->read.done = true;
        assert_true(cache.bytes <= 128 << 20);
    }
    assert_true(bw_range_cache_has(&cache, (BLOCKS - 1) * (uint64_t)BLOCK, BLOCK));
    assert_false(bw_range_cache_has(&cache, 0, BLOCK));
    /* ranges on the way stay */
    uint64_t begin = 0;
    for (size_t i = 0; i < cache.ranges.count; i++)
        cache.ranges.items[i]->read.done = false;
    assert_null(bw_range_cache_add(&cache, &begin, BLOCK, BLOCK, false));
    bw_range_cache_free(&cache);
}

/* Ranges that were requested ahead and are never read do not fill the cache for ever. */
static void test_unread(void **state)
{
    enum { BLOCK = 1 << 20, BLOCKS = 128, MOST = 400 };
    struct bw_range_cache cache = {0};
    uint64_t refused = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        uint64_t begin = i * BLOCK;
        struct bw_cached_range *range =
            bw_range_cache_add(&cache, &begin, begin + BLOCK, BLOCK, false);
        range->left = BLOCK;
        range->read.done = true;
    }
    for (uint64_t begin = BLOCKS * (uint64_t)BLOCK;
         refused < MOST && !bw_range_cache_add(&cache, &begin, begin + BLOCK, BLOCK, false);)
        refused++;
    assert_in_range(refused, 100, 256);
    bw_range_cache_free(&cache);
}

/* A range that is to stay remains when it was read, also if it was requested without that before.
 */
static void test_staying(void **state)
{
    enum { BLOCK = 4096 };
    struct bw_range_cache cache = {0};
    uint64_t begin = BLOCK;
    struct bw_cached_range *range = bw_range_cache_add(&cache, &begin, 2 * BLOCK, BLOCK, false);
    assert_false(range->stays);
    begin = 2 * BLOCK;
    assert_non_null(bw_range_cache_add(&cache, &begin, 3 * BLOCK, BLOCK, false));
    begin = 0;
    assert_true(bw_range_cache_add(&cache, &begin, 2 * BLOCK, BLOCK, true)->stays);
    assert_null(bw_range_cache_add(&cache, &begin, 2 * BLOCK, BLOCK, true));
    assert_true(range->stays);
    assert_false(bw_range_cache_find(&cache, 2 * BLOCK)->stays);
    bw_range_cache_free(&cache);
}

/* A range that did not arrive is read again. */
static void test_announced_and_lost(void **state)
{
    struct setup lost = {.server = {.fault = NBD_GOES, .patience = 5, .maximum = 4096}};
    set_up(&lost);
    announce(&lost, 0, 8 * 4096);
    for (uint64_t i = 0; i < 8; i++)
        expect_success(read_at(&lost, i * 4096));
    tear_down(&lost);
    report_log_free(&lost.log);
    struct setup bad = {.server = {.bad_offset = 8192}};
    set_up(&bad);
    announce(&bad, 0, 4 * 4096);
    expect_success(read_at(&bad, 0));
    expect_error(read_at(&bad, 8192), BW_ERROR_SYSTEM, "cannot read nbd+unix");
    expect_success(read_at(&bad, 4096));
    announce(&bad, 0, 4096); /* still on the way at the end */
    tear_down(&bad);
}

static void *read_much(void *context)
{
    for (uint64_t seed = 0; seed < 30; seed++)
        check_batch(context, seed + (uintptr_t)&seed, 20, false);
    return NULL;
}

static void test_threads(void **state)
{
    struct setup setup = {.server = {.fault = NBD_RIGHT}};
    pthread_t threads[6];
    set_up(&setup);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, read_much, &setup);
    for (uint64_t i = 0; i < 100; i++)
        announce(&setup, i * 37 % 100 * 10000, 9000);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    tear_down(&setup);
}

static void *read_bad(void *context)
{
    for (unsigned i = 0; i < 50; i++)
        expect_error(read_at(context, 8192), BW_ERROR_SYSTEM, "cannot read nbd+unix");
    return NULL;
}

/* Threads that have not been woken yet keep a bad range in the cache; the others must not look for
 * it there until their stacks overflow. */
static void test_bad_blocks_in_threads(void **state)
{
    struct setup setup = {.server = {.bad_offset = 8192}};
    pthread_attr_t attributes;
    pthread_t threads[32];
    set_up(&setup);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, BW_STACK_NEEDED);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], &attributes, read_bad, &setup);
    for (unsigned i = 0; i < 20000; i++)
        announce(&setup, 8192, 4096);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
    tear_down(&setup);
}

static void test_server_comes_back(void **state)
{
    struct setup setup = {.server = {.fault = NBD_GOES, .patience = 20}};
    set_up(&setup);
    for (uint64_t i = 0; i < 100; i++)
        expect_success(read_at(&setup, i * 4096));
    assert_int_equal(setup.server.connections, 5);
    assert_int_equal(report_log_count(&setup.log, "reconnected after the connection was lost"), 4);
    tear_down(&setup);
    report_log_free(&setup.log);
}

static void test_servers_that_fail(void **state)
{
    static const struct {
        enum nbd_fault fault;
        unsigned patience;
        const char *message;
    } cases[] = {
        {NBD_STAYS_AWAY, 1, "and could not reconnect: cannot connect to nbd+unix"},
        {NBD_SHRINKS, 1, "the image has another size now"},
        {NBD_GOES, 0, "lost the connection"}, /* for every request */
        {NBD_WRONG_REPLY, 0, "lost the connection"},
        {NBD_WRONG_COOKIE, 0, "lost the connection"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setup setup = {.server = {.fault = cases[i].fault, .patience = cases[i].patience}};
        /* All are faster than this on any machine. */
        expect_success(try_set_up(&setup, "10s"));
        if (cases[i].patience)
            expect_success(read_at(&setup, 0));
        expect_error(read_at(&setup, 4096), BW_ERROR_SYSTEM, "the server of nbd+unix");
        unsigned connections = setup.server.connections;
        expect_error(read_at(&setup, 4096), BW_ERROR_SYSTEM, "has ended");
        assert_int_equal(setup.server.connections, connections); /* it is not tried for ever */
        assert_int_equal(report_log_count(&setup.log, cases[i].message), 1);
        tear_down(&setup);
        report_log_free(&setup.log);
    }
}

/* A server that never replies on a connection is given up after one timeout. One that has replied
 * before gets another connection and one more timeout. */
static void test_silent_servers(void **state)
{
    for (unsigned patience = 0; patience < 2; patience++) {
        struct setup setup = {.server = {.fault = NBD_SILENT, .patience = patience}};
        expect_success(try_set_up(&setup, "1s"));
        bw_connection_limit(bw_servers_connection(setup.servers, setup.server.uri), 0, 5);
        for (unsigned i = 0; i < patience; i++)
            expect_success(read_at(&setup, 0));
        expect_error(read_at(&setup, 4096), BW_ERROR_SYSTEM, "has ended");
        assert_int_equal(setup.server.connections, 1 + patience);
        assert_int_equal(report_log_count(&setup.log, "has not answered for 1 s"), 1);
        tear_down(&setup);
        report_log_free(&setup.log);
    }
}

/* A longer timeout may have helped, also if the silent server cannot be found again. */
static void test_silent_and_gone(void **state)
{
    struct setup setup = {.server = {.fault = NBD_SILENT, .patience = 1}};
    char path[sizeof setup.server.folder + 4];
    expect_success(try_set_up(&setup, "200ms"));
    expect_success(read_at(&setup, 0));
    snprintf(path, sizeof path, "%s/nbd", setup.server.folder);
    assert_int_equal(unlink(path), 0);
    bw_error_free(read_at(&setup, 4096));
    struct bw_error *error =
        bw_connection_lost(bw_servers_connection(setup.servers, setup.server.uri));
    assert_non_null(strstr(error->message, "for 200 ms), and could not reconnect"));
    assert_string_equal(error->advice ? error->advice : "", "`timeout` allows more");
    bw_error_free(error);
    tear_down(&setup);
    report_log_free(&setup.log);
}

/* The first timeout is the only one, however often the image is opened. */
static void test_silent_from_the_start(void **state)
{
    struct nbd_server server = {.fault = NBD_SILENT_GREETING};
    struct bw_servers *servers;
    bool served;
    nbd_serve(&server);
    expect_success(bw_servers_create(BW_HELPERS_OFF, &servers));
    bw_servers_set_timeout(servers, 200);
    for (unsigned i = 0; i < 3; i++) {
        expect_error(bw_servers_open(servers, server.uri, &served), BW_ERROR_SYSTEM,
                     "the server has not answered for 200 ms");
        assert_false(served);
        assert_false(bw_servers_hold(servers, server.uri));
    }
    while (!server.connections) /* its thread accepts it when it gets a processor */
        usleep(1000);
    assert_int_equal(server.connections, 1);
    assert_int_equal(bw_servers_need(servers), BW_SERVERS_NOTHING);
    bw_servers_destroy(servers);
    nbd_end(&server);
}

static void test_servers_without_the_image(void **state)
{
    static const struct {
        enum nbd_fault fault;
        const char *message;
    } cases[] = {
        {NBD_NO_GREETING, "cannot connect to nbd+unix"},
        {NBD_NO_EXPORT, "cannot connect to nbd+unix"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setup setup = {.server = {.fault = cases[i].fault}};
        expect_error(try_set_up(&setup, "1s"), BW_ERROR_SYSTEM, cases[i].message);
        tear_down(&setup);
    }
}

static void test_no_server(void **state)
{
    struct bw_servers *servers;
    bool served;
    expect_success(bw_servers_create(BW_HELPERS_OFF, &servers));
    expect_error(bw_servers_open(servers, "nbd+unix:///?socket=/nonexistent", &served),
                 BW_ERROR_SYSTEM, "No such file");
    expect_error(bw_servers_open(servers, "nbd://[", &served), BW_ERROR_SYSTEM, "cannot connect");
    expect_error(bw_servers_open(servers, "https://example.org/x", &served), BW_ERROR_USAGE,
                 "needs nbdkit, but helpers are switched off");
    expect_success(bw_servers_open(servers, "/nonexistent", &served));
    assert_false(served);
    assert_int_equal(bw_servers_need(servers), BW_SERVERS_NOTHING);
    bw_servers_destroy(servers);
}

static void test_dump(void **state)
{
    struct setup setup = {.server = {.minimum = 512, .maximum = 65536}};
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    set_up(&setup);
    assert_int_equal(bw_servers_need(setup.servers), BW_SERVERS_CONNECT_UNIX);
    bw_json_begin_object(&json, NULL);
    bw_storage_nbd_class.operations.dump(setup.layer, &json);
    bw_json_end(&json);
    const char *wanted = "{\"size\":1048576,\"block_size\":512,\"largest_read\":65536}";
    assert_int_equal(text.length, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.length);
    bw_buffer_free(&text);
    tear_down(&setup);
}

static int fill(void **state)
{
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 13);
    return limit_time(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_bad_blocks),
        cmocka_unit_test(test_announced),
        cmocka_unit_test(test_announced_and_lost),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_staying),
        cmocka_unit_test(test_more_than_is_kept),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bad_blocks_in_threads),
        cmocka_unit_test(test_server_comes_back),
        cmocka_unit_test(test_servers_that_fail),
        cmocka_unit_test(test_silent_servers),
        cmocka_unit_test(test_silent_from_the_start),
        cmocka_unit_test(test_silent_and_gone),
        cmocka_unit_test(test_servers_without_the_image),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_dump),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
