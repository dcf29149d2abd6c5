/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/recording: the file of a flight recorder, while it is written, after its process is
 * dead, and when it says anything at all. */
#include "support/recorder_bench.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"

static int temporary(char path[32])
{
    strcpy(path, "/tmp/test_recorder_XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    return descriptor;
}

static struct bw_recording *read_file(const char *path)
{
    struct bw_recording *recording;
    int descriptor = open(path, O_RDONLY);
    expect_success(recorder_bench_read(descriptor, &recording));
    close(descriptor);
    return recording;
}

/* The current contents of the file. */
static struct bw_recording_facts facts_of(const char *path)
{
    struct bw_recording *recording = read_file(path);
    const struct bw_recording_facts facts = *bw_recording_facts(recording);
    bw_recording_close(recording);
    return facts;
}

static void test_file(void **state)
{
    char path[32];
    struct bw_recorder *first, *second;
    expect_success(bw_recorder_create_file(temporary(path), path, NULL, 16, &first));
    struct bw_probes *probes = recorder_bench_watch(first, 0);
    record_image(probes, "x");
    expect_error(bw_recorder_create_file(open(path, O_RDWR), path, NULL, 8, &second),
                 BW_ERROR_USAGE, "is the black box of a running process");
    struct bw_recording_facts facts = facts_of(path);
    assert_int_equal(facts.process, getpid());
    assert_false(facts.ended);
    assert_int_equal(facts.signal, 0);
    assert_int_equal(facts.count, 1);
    assert_string_equal(facts.program, "btrfs-walk " BW_VERSION);
    bw_recorder_note_signal(first, SIGSEGV);
    assert_int_equal(facts_of(path).signal, SIGSEGV);
    bw_recorder_destroy(first);
    bw_probes_destroy(probes);
    assert_true(facts_of(path).ended);
    /* The next run starts again. */
    expect_success(bw_recorder_create_file(open(path, O_RDWR), path, NULL, 8, &second));
    assert_int_equal(facts_of(path).count, 0);
    /* The file is truncated while it is in use: events may be missing, but everything else is
     * reported. */
    assert_int_equal(truncate(path, 100), 0);
    assert_false(bw_recorder_is_whole(second));
    bw_recorder_note_signal(second, SIGBUS);
    bw_recorder_destroy(second);
    unlink(path);
}

static void test_bad_files(void **state)
{
    char path[32];
    struct bw_recorder *recorder;
    int descriptor = temporary(path);
    assert_int_equal(write(descriptor, "my diary", 8), 8);
    expect_error(bw_recorder_create_file(descriptor, path, NULL, 16, &recorder), BW_ERROR_USAGE,
                 "is neither empty nor a black box");
    expect_error(
        bw_recorder_create_file(open("/dev/null", O_RDWR), "/dev/null", NULL, 16, &recorder),
        BW_ERROR_USAGE, "is not a regular file");
    assert_int_equal(truncate(path, 0), 0);
    struct rlimit before, low;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    low = before;
    low.rlim_cur = 64 << 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    struct bw_error *error =
        bw_recorder_create_file(open(path, O_RDWR), path, NULL, BW_RECORDER_SLOTS, &recorder);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    expect_error(error, BW_ERROR_SYSTEM, "cannot make room");
    unlink(path);
}

/* A process that is killed between two events: all earlier events are in the file. */
static void test_killed(void **state)
{
    char path[32];
    int descriptor = temporary(path), status;
    pid_t child = fork();
    if (child == 0) {
        struct bw_recorder *recorder;
        expect_success(bw_recorder_create_file(descriptor, path, NULL, 64, &recorder));
        struct bw_probes *probes = recorder_bench_watch(recorder, 0);
        for (int i = 0; i < 100; i++)
            record_image(probes, i == 99 ? "the-last" : "another");
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    close(descriptor);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct bw_recording *recording = read_file(path);
    assert_int_equal(bw_recording_facts(recording)->count, 64);
    assert_int_equal(bw_recording_facts(recording)->overwritten, 36);
    assert_int_equal(bw_recording_facts(recording)->process, child);
    const struct bw_recorded last = bw_recording_event(recording, 63);
    assert_int_equal(last.number, 100);
    assert_non_null(memmem(last.text.data, last.text.length, "device=the-last ", 16));
    assert_non_null(memmem(last.json.data, last.json.length, "{\"number\":100,", 14));
    bw_recording_close(recording);
    unlink(path);
}

/* A box with a few events. */
static struct recorder_bench some_box(void)
{
    struct recorder_bench bench = recorder_bench_create(NULL, 8);
    for (int i = 0; i < 11; i++)
        record_image(bench.probes, "/some/image.img");
    return bench;
}

/* Reads bytes as a box. */
static struct bw_error *read_bytes(const void *bytes, size_t size)
{
    struct bw_recording *recording = NULL;
    int descriptor = memfd_create("copy", 0);
    assert_int_equal(write(descriptor, bytes, size), size);
    struct bw_error *error = recorder_bench_read(descriptor, &recording);
    bw_recording_close(recording);
    close(descriptor);
    return error;
}

static void test_lengths(void **state)
{
    struct recorder_bench bench = some_box();
    char *bytes = malloc(bench.size + 1);
    memcpy(bytes, bench.header, bench.size);
    bytes[bench.size] = 0;
    for (size_t length = 0; length < bench.size; length += length < 200 ? 1 : 97)
        expect_error(read_bytes(bytes, length), BW_ERROR_CORRUPT,
                     length < 8     ? "not a black box"
                     : length < 128 ? "ends within its header"
                                    : "is cut short: it has");
    expect_error(read_bytes(bytes, bench.size + 1), BW_ERROR_CORRUPT, "is damaged: it has");
    free(bytes);
    recorder_bench_free(&bench);
}

/* Each byte of the header is covered by the checksum, or describes how the run ended. */
static void test_header_bytes(void **state)
{
    struct recorder_bench bench = some_box();
    uint8_t *bytes = (uint8_t *)bench.header;
    for (size_t i = 0; i < sizeof *bench.header; i++) {
        struct bw_recording *recording = NULL;
        bytes[i] ^= 1;
        struct bw_error *error = recorder_bench_read(bench.descriptor, &recording);
        bytes[i] ^= 1;
        assert_int_equal(error != NULL,
                         i < offsetof(struct bw_box_header, checksum) + sizeof(bw_le32));
        bw_error_free(error);
        bw_recording_close(recording);
    }
    struct bw_recording *recording = NULL;
    bench.header->version = bw_put32(1);
    expect_error(recorder_bench_read(bench.descriptor, &recording), BW_ERROR_UNSUPPORTED,
                 "has version 1, but only 2 is supported");
    recorder_bench_free(&bench);
}

static void test_names(void **state)
{
    static const char *const names[] = {"\x1b[31m", "\xff", "\xc2\x9b",
                                        "there-is-no-end-to-these-forty-eight-characters."};
    struct recorder_bench bench = some_box();
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bw_recording *recording;
        memcpy(bench.header->program, names[i], strlen(names[i]) < 48 ? strlen(names[i]) + 1 : 48);
        bench.header->checksum = bw_put32(bw_box_checksum(bench.header));
        expect_error(recorder_bench_read(bench.descriptor, &recording), BW_ERROR_CORRUPT,
                     "the name of the program makes no sense");
    }
    recorder_bench_free(&bench);
}

/* Whatever is shown of a box can be shown on a terminal. */
static uint32_t show_all(const struct recorder_bench *bench)
{
    struct bw_recording *recording = recorder_bench_recording(bench);
    const struct bw_recording_facts *facts = bw_recording_facts(recording);
    uint64_t before = 0;
    assert_true((uint64_t)facts->count + facts->torn + facts->damaged <= 8);
    for (uint32_t i = 0; i < facts->count; i++) {
        const struct bw_recorded event = bw_recording_event(recording, i);
        const struct bw_bytes lines[] = {event.text, event.json};
        assert_true(event.number > before);
        before = event.number;
        for (size_t k = 0; k < 2; k++) {
            assert_true(bw_utf8_is_valid(lines[k].data, lines[k].length));
            for (size_t j = 0; j < lines[k].length; j++)
                assert_true((uint8_t)lines[k].data[j] >= ' ' && lines[k].data[j] != 0x7f);
        }
    }
    uint32_t count = facts->count;
    bw_recording_close(recording);
    return count;
}

static uint32_t dice(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Few bytes of good slots changed at random. */
static void test_random_changes(void **state)
{
    struct recorder_bench bench = some_box();
    const size_t size = bench.size - BW_BOX_SLOTS;
    uint8_t *good = malloc(size), *bytes = (uint8_t *)bench.slots;
    uint32_t seed = 1, shown = 0;
    memcpy(good, bytes, size);
    for (int round = 0; round < 5000; round++) {
        memcpy(bytes, good, size);
        for (uint32_t i = 0, changes = 1 + dice(&seed) % 8; i < changes; i++) {
            size_t within = dice(&seed) % (dice(&seed) % 2 ? 16 : 300);
            uint8_t *at = bytes + dice(&seed) % 8 * sizeof(struct bw_box_slot) + within;
            *at = dice(&seed) % 3 ? (uint8_t)dice(&seed) : (uint8_t)(dice(&seed) % 4);
        }
        shown += show_all(&bench);
    }
    assert_in_range(shown, 5000, 5000 * 8 - 5000);
    free(good);
    recorder_bench_free(&bench);
}

/* Lines that would do harm are not shown. */
static void test_bad_lines(void **state)
{
    static const char *const lines[] = {"\x1b[31m", "a\nb", "\x7f", "\xff", "\xc2\x9b", "\xc2"};
    struct recorder_bench bench = some_box();
    assert_int_equal(show_all(&bench), 8);
    for (size_t i = 0; i < COUNT(lines); i++) {
        memcpy(bench.slots[0].lines + 20, lines[i], strlen(lines[i]));
        assert_int_equal(show_all(&bench), 7);
        memset(bench.slots[0].lines + 20, ' ', 8);
        assert_int_equal(show_all(&bench), 8);
    }
    bench.slots[0].text_length = bw_put16(0);
    assert_int_equal(show_all(&bench), 7);
    bench.slots[0].text_length = bw_put16(BW_RECORDER_LINE);
    assert_int_equal(show_all(&bench), 7);
    recorder_bench_free(&bench);
}
