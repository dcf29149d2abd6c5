/* SPDX-License-Identifier: GPL-2.0-or-later */
/* storage/file with io=mmap: a mapped file that is cut off costs an error, in any thread; and a
 * SIGBUS that has nothing to do with it goes where it would go without the layer. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fake_layer.h"

enum { SIZE = 1 << 20, NEW_SIZE = 300 * 1000, THREADS = 4, ROUNDS = 200, BLOCK = 4096 };

/* A file of 0xa5, and a layer that has it mapped. */
struct bench {
    int descriptor;
    struct bw_graph *graph;
    struct bw_xlator *layer;
};

static struct bw_xlator *add_mapping(struct bw_graph *graph, int descriptor)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const struct bw_option_value options[] = {{"path", path}, {"io", "mmap"}, {0}};
    return add_layer(graph, "storage/file", NULL, options);
}

static struct bench make_bench(void)
{
    struct bench bench = {.descriptor = memfd_create("file", MFD_CLOEXEC),
                          .graph = fake_graph(NULL)};
    uint8_t *bytes = malloc(SIZE);
    memset(bytes, 0xa5, SIZE);
    assert_int_equal(write(bench.descriptor, bytes, SIZE), SIZE);
    free(bytes);
    bench.layer = add_mapping(bench.graph, bench.descriptor);
    return bench;
}

static void free_bench(const struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    close(bench->descriptor);
}

/* A page of a file that has none: reading it is a SIGBUS of somebody else. */
static volatile uint8_t *make_trap(void)
{
    int descriptor = memfd_create("trap", MFD_CLOEXEC);
    void *mapped = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_true(mapped != MAP_FAILED);
    close(descriptor);
    return mapped;
}

static void free_trap(volatile uint8_t *trap)
{
    munmap((void *)(uintptr_t)trap, BLOCK);
}

/* Somebody else's handler. */
static sigjmp_buf back;
static void *volatile fault_address;
static volatile sig_atomic_t calls, was_blocked;
static struct sigaction next; /* the handler below it, which it passes everything else on to */
static volatile uint8_t *volatile expected;

static void note_fault(int number, siginfo_t *info, void *context)
{
    sigset_t mask;
    if (expected && info->si_addr != (void *)(uintptr_t)expected) {
        next.sa_sigaction(number, info, context);
        return;
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    was_blocked = sigismember(&mask, SIGUSR2) && sigismember(&mask, SIGBUS);
    fault_address = info->si_addr;
    calls++;
    if (info->si_code > 0)
        siglongjmp(back, 1);
}

static void note_signal(int number)
{
    assert_int_equal(number, SIGBUS);
    calls++;
}

static struct sigaction set_handler(void)
{
    struct sigaction handler = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO}, before;
    sigemptyset(&handler.sa_mask);
    sigaddset(&handler.sa_mask, SIGUSR2);
    assert_int_equal(sigaction(SIGBUS, &handler, &before), 0);
    calls = 0;
    expected = NULL;
    return before;
}

static bool handler_is(void (*wanted)(int, siginfo_t *, void *))
{
    struct sigaction handler;
    sigaction(SIGBUS, NULL, &handler);
    return (handler.sa_flags & SA_SIGINFO) && handler.sa_sigaction == wanted;
}

/* Whether a fault of somebody else reaches note_fault. */
static void check_foreign_fault(volatile uint8_t *trap)
{
    int before = calls;
    was_blocked = 0;
    if (!sigsetjmp(back, 1)) {
        (void)trap[5];
        fail_msg("the trap could be read");
    }
    assert_int_equal(calls, before + 1);
    assert_ptr_equal(fault_address, (void *)(uintptr_t)(trap + 5));
    assert_true(was_blocked);
}

/* Reads some of the file that was cut to NEW_SIZE, in one batch; returns how many answers are
 * wrong. */
static size_t count_wrong(struct bw_xlator *layer)
{
    static const uint64_t addresses[] = {0,      NEW_SIZE, NEW_SIZE - BLOCK, SIZE - BLOCK,
                                         4096,   500000,   NEW_SIZE - 10000, NEW_SIZE - 1,
                                         100000, 296000};
    uint8_t buffers[COUNT(addresses)][BLOCK];
    struct bw_request requests[COUNT(addresses)];
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(addresses); i++)
        requests[i] = (struct bw_request){
            .kind = BW_REQUEST_RAW, .length = BLOCK, .address = addresses[i], .buffer = buffers[i]};
    bw_wind(NULL, layer, requests, COUNT(addresses));
    for (size_t i = 0; i < COUNT(addresses); i++) {
        bool inside = addresses[i] + BLOCK <= NEW_SIZE;
        wrong += inside != !requests[i].error;
        for (size_t at = 0; inside && at < BLOCK; at++)
            wrong += buffers[i][at] != 0xa5;
        bw_error_free(requests[i].error);
    }
    return wrong;
}

static void *count_wrong_often(void *layer)
{
    size_t wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++)
        wrong += count_wrong(layer);
    return (void *)wrong;
}

static void test_cut_off(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    pthread_t threads[THREADS];
    assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
    assert_int_equal(count_wrong(bench.layer), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_wrong_often, bench.layer), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    free_bench(&bench);
}

/* The size changes while others read: whatever they get, they live. */
static void test_cut_off_meanwhile(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_wrong_often, bench.layer), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_int_equal(ftruncate(bench.descriptor, round % 2 ? SIZE : round * 1000), 0);
        sched_yield();
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    free_bench(&bench);
}

/* A thread that blocks SIGBUS would be killed by it; afterwards it blocks it as before. */
static void test_blocked(void **state)
{
    (void)state;
    struct bench bench = make_bench();
    sigset_t bus, before, after;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &bus, &before);
    assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
    assert_int_equal(count_wrong(bench.layer), 0);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGBUS));
    assert_int_equal(count_wrong(bench.layer), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_false(sigismember(&after, SIGBUS));
    free_bench(&bench);
}

static void test_foreign_faults(void **state)
{
    (void)state;
    struct sigaction original = set_handler();
    volatile uint8_t *trap = make_trap();
    check_foreign_fault(trap);
    struct bench bench = make_bench();
    assert_false(handler_is(note_fault));
    for (unsigned round = 0; round < 3; round++) {
        check_foreign_fault(trap);
        assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
        assert_int_equal(count_wrong(bench.layer), 0);
    }
    int before = calls;
    raise(SIGBUS);
    assert_int_equal(calls, before + 1);
    free_bench(&bench);
    assert_true(handler_is(note_fault));
    check_foreign_fault(trap);
    free_trap(trap);
    sigaction(SIGBUS, &original, NULL);
}

/* There is one handler for all mappings, until the last is gone. */
static void test_several_layers(void **state)
{
    (void)state;
    struct sigaction original = set_handler();
    struct bench bench = make_bench(), other = make_bench();
    struct bw_xlator *third = add_mapping(bench.graph, bench.descriptor);
    assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
    assert_int_equal(ftruncate(other.descriptor, NEW_SIZE), 0);
    assert_int_equal(count_wrong(third), 0);
    bw_graph_remove(bench.graph, third);
    assert_int_equal(count_wrong(bench.layer), 0);
    free_bench(&bench);
    assert_false(handler_is(note_fault));
    assert_int_equal(count_wrong(other.layer), 0);
    free_bench(&other);
    assert_true(handler_is(note_fault));
    struct sigaction handler;
    sigaction(SIGBUS, NULL, &handler);
    assert_false(handler.sa_flags & SA_NODEFER);
    assert_true(sigismember(&handler.sa_mask, SIGUSR2));
    assert_false(sigismember(&handler.sa_mask, SIGBUS));
    sigaction(SIGBUS, &original, NULL);
}

/* A layer that cannot be made leaves nothing behind. */
static void test_failed_layer(void **state)
{
    (void)state;
    struct sigaction original = set_handler();
    struct bw_graph *graph = fake_graph(NULL);
    struct bw_xlator *layer = NULL;
    const struct bw_option_value options[] = {{"path", "/nonexistent"}, {"io", "mmap"}, {0}};
    const struct bw_layer description = {
        .type = "storage/file", .name = "file", .options = options};
    bw_error_free(bw_graph_add(graph, &description, &layer));
    assert_true(handler_is(note_fault));
    bw_graph_destroy(graph);
    sigaction(SIGBUS, &original, NULL);
}

/* Somebody puts his handler above ours while we are there, and passes on what is not his. */
static void test_handler_above(void **state)
{
    (void)state;
    volatile uint8_t *trap = make_trap();
    struct bench bench = make_bench();
    next = set_handler();
    expected = trap + 5;
    assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
    assert_int_equal(count_wrong(bench.layer), 0);
    check_foreign_fault(trap);
    free_bench(&bench);
    assert_true(handler_is(note_fault)); /* his stays */
    bench = make_bench();
    assert_true(handler_is(note_fault)); /* and stays above */
    assert_int_equal(ftruncate(bench.descriptor, NEW_SIZE), 0);
    assert_int_equal(count_wrong(bench.layer), 0);
    check_foreign_fault(trap);
    sigaction(SIGBUS, &next, NULL);
    assert_int_equal(count_wrong(bench.layer), 0);
    free_bench(&bench);
    assert_false(handler_is(next.sa_sigaction));
    free_trap(trap);
}

/* What a child does to itself with a mapping open: how it ends. */
static int run_child(void (*before)(int), bool fault)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGBUS, before);
        volatile uint8_t *trap = make_trap();
        make_bench();
        if (fault)
            (void)trap[5];
        else
            raise(SIGBUS);
        _exit(calls == 1 ? 8 : 7);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* With no handler before ours all is as if there was none. */
static void test_no_handler(void **state)
{
    (void)state;
    calls = 0;
    int status = run_child(SIG_DFL, true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = run_child(SIG_DFL, false);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = run_child(SIG_IGN, true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = run_child(SIG_IGN, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    status = run_child(note_signal, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_off),        cmocka_unit_test(test_cut_off_meanwhile),
        cmocka_unit_test(test_blocked),        cmocka_unit_test(test_foreign_faults),
        cmocka_unit_test(test_several_layers), cmocka_unit_test(test_failed_layer),
        cmocka_unit_test(test_handler_above),  cmocka_unit_test(test_no_handler),
    };
    return cmocka_run_group_tests(tests, limit_time, NULL);
}
