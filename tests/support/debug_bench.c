/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Help for the tests of debug layers. */
#include "support/debug_bench.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "graph/graph.h"
#include "xlators/classes.h"

struct memory_output output_create(void)
{
    struct memory_output output = {.descriptor = memfd_create("output", MFD_CLOEXEC)};
    snprintf(output.path, sizeof output.path, "/proc/self/fd/%d", output.descriptor);
    return output;
}

void output_free(struct memory_output *output)
{
    close(output->descriptor);
}

char *output_text(const struct memory_output *output)
{
    struct stat status;
    assert_int_equal(fstat(output->descriptor, &status), 0);
    size_t size = (size_t)status.st_size;
    char *text = calloc(1, size + 1);
    assert_int_equal(pread(output->descriptor, text, size, 0), size);
    return text;
}

void expect_output(const struct memory_output *output, const char *wanted)
{
    char *text = output_text(output);
    assert_string_equal(text, wanted);
    free(text);
}

struct bw_error *try_option(struct bw_graph *graph, const char *type, struct bw_xlator *child,
                            const char *key, const char *value)
{
    struct bw_xlator *made;
    const struct option_value options[] = {{key, value}, {0}};
    return graph_add_above(graph, child, type, "refused", options, &made);
}

static void read_in_threads(const struct bw_frame *frame, struct bw_xlator *xlator,
                            struct bw_request *requests, size_t count)
{
    (void)frame;
    (void)xlator;
    for (size_t i = 0; i < count; i++) {
        requests[i].error = NULL;
        if (requests[i].mirror == 9)
            requests[i].error = bw_error_create(BW_ERROR_CORRUPT, "no \x1b[31mred\n copy");
        else
            memset(requests[i].buffer, 1, requests[i].length);
    }
}

/* Copy 7 is on a missing device, copy 8 is computed. */
static struct bw_error *map_in_threads(const struct bw_frame *frame, struct bw_xlator *xlator,
                                       uint64_t address, uint32_t length, unsigned copy,
                                       struct bw_map_reply *reply)
{
    (void)frame;
    (void)xlator;
    *reply = (struct bw_map_reply){
        .copies = 9,
        .location = {.devid = copy, .offset = address, .present = copy != 7, .rebuilt = copy == 8},
        .length = length};
    return NULL;
}

static const struct bw_xlator_class threads_class = {
    .type = "test/threads",
    .description = "may be read by several threads",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_NONE,
    .operations = {.read = read_in_threads, .map = map_in_threads},
};

struct bw_graph *threads_graph(struct report_log *log)
{
    static const struct bw_xlator_class *const classes[] = {&threads_class, NULL};
    struct bw_graph *graph = graph_of(classes, log);
    add_layer(graph, "test/threads", NULL, NULL);
    return graph;
}

struct job {
    pthread_barrier_t *start; /* so that they are all there before the first is done */
    void (*function)(struct bw_xlator *xlator, unsigned thread);
    struct bw_xlator *xlator;
    unsigned thread;
};

static void *run_job(void *argument)
{
    const struct job *job = argument;
    pthread_barrier_wait(job->start);
    job->function(job->xlator, job->thread);
    return NULL;
}

void run_threads(void (*function)(struct bw_xlator *xlator, unsigned thread),
                 struct bw_xlator *xlator)
{
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){&start, function, xlator, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

char *dump_text(const struct bw_xlator_class *type, struct bw_xlator *xlator)
{
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    bw_json_begin_object(&json, NULL);
    type->operations.dump(xlator, &json);
    bw_json_end(&json);
    bw_buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    return text.data;
}

uint64_t dump_number(const struct bw_xlator_class *type, struct bw_xlator *xlator, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    char *text = dump_text(type, xlator);
    const char *found = strstr(text, quoted);
    assert_non_null(found);
    uint64_t number = strtoull(found + strlen(quoted), NULL, 10);
    free(text);
    return number;
}

void expect_passes(struct bw_xlator *top, const struct fake_layer *fake)
{
    const struct bw_range range = {4096, 100};
    struct bw_map_reply reply = {0};
    size_t calls = fake->hint_calls;
    expect_success(bw_wind_map(NULL, top, 8192, 512, 3, &reply));
    assert_int_equal(reply.location.devid, 3);
    assert_int_equal(reply.location.offset, 8192);
    assert_int_equal(reply.length, 512);
    bw_wind_advise(NULL, top, &range, 1, 0);
    assert_int_equal(fake->hint_calls, calls + 1);
    assert_int_equal(fake->hints[fake->hint_count - 1].address, 4096);
    assert_int_equal(fake->hints[fake->hint_count - 1].length, 100);
}
