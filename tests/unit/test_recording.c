/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/recording: the file of a flight recorder, while it is written, after its process is
 * dead, and when it says anything at all. */
#include "support/recorder_bench.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "format/checksum.h"

static int temporary(char path[32])
{
    strcpy(path, "/tmp/test_recorder_XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    return descriptor;
}

/* What is in the file by now. */
static struct bw_buffer contents(const char *path, struct bw_recording *recording)
{
    struct bw_buffer bytes = {0};
    int descriptor = open(path, O_RDONLY);
    char piece[4096];
    for (ssize_t got; (got = read(descriptor, piece, sizeof piece)) > 0;)
        bw_buffer_append(&bytes, piece, (size_t)got);
    close(descriptor);
    expect_success(bw_recording_open(bytes.data, bytes.length, recording));
    return bytes;
}

static void test_file(void **state)
{
    (void)state;
    char path[32];
    struct recorder_bench bench = {0};
    struct bw_recorder *second;
    struct bw_recording recording;
    struct bw_recorded event;
    int descriptor = temporary(path);
    expect_success(bw_recorder_create_file(descriptor, path, NULL, 16, &bench.recorder));
    recorder_bench_watch(&bench);
    record_image(&bench, "x");
    expect_error(bw_recorder_create_file(open(path, O_RDWR), path, NULL, 8, &second),
                 BW_ERROR_USAGE, "is the black box of a process that runs");
    struct bw_buffer bytes = contents(path, &recording);
    struct bw_recording_facts facts = bw_recording_facts(&recording);
    assert_int_equal(facts.process, getpid());
    assert_false(facts.ended);
    assert_int_equal(facts.signal, 0);
    assert_memory_equal(facts.program, "btrfs-walk ", 11);
    assert_int_equal(bw_recording_slot(&recording, 0, &event), BW_SLOT_GOOD);
    assert_int_equal(bw_recording_slot(&recording, 1, &event), BW_SLOT_EMPTY);
    bw_buffer_free(&bytes);
    bw_recorder_note_signal(bench.recorder, SIGSEGV);
    bytes = contents(path, &recording);
    assert_int_equal(bw_recording_facts(&recording).signal, SIGSEGV);
    bw_buffer_free(&bytes);
    recorder_bench_free(&bench);
    bytes = contents(path, &recording);
    assert_true(bw_recording_facts(&recording).ended);
    bw_buffer_free(&bytes);
    /* The next run has it anew. */
    expect_success(bw_recorder_create_file(open(path, O_RDWR), path, NULL, 8, &second));
    bytes = contents(path, &recording);
    assert_int_equal(recording.slot_count, 8);
    assert_int_equal(bw_recording_slot(&recording, 0, &event), BW_SLOT_EMPTY);
    bw_buffer_free(&bytes);
    /* Cut short while it is in use: no event may come, but everything else is said instead of done.
     */
    assert_int_equal(truncate(path, 100), 0);
    assert_false(bw_recorder_is_whole(second));
    bw_recorder_note_signal(second, SIGBUS);
    bw_recorder_destroy(second);
    unlink(path);
}

static void test_bad_files(void **state)
{
    (void)state;
    char path[32];
    struct bw_recorder *recorder;
    int descriptor = temporary(path);
    assert_int_equal(write(descriptor, "my diary", 8), 8);
    expect_error(bw_recorder_create_file(descriptor, path, NULL, 16, &recorder), BW_ERROR_USAGE,
                 "is not empty and no black box");
    expect_error(
        bw_recorder_create_file(open("/dev/null", O_RDWR), "/dev/null", NULL, 16, &recorder),
        BW_ERROR_USAGE, "no regular file");
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

/* A process that is killed between two events: all of them are there. */
static void test_killed(void **state)
{
    (void)state;
    char path[32];
    int descriptor = temporary(path), status;
    pid_t child = fork();
    if (child == 0) {
        struct recorder_bench bench = {0};
        expect_success(bw_recorder_create_file(descriptor, path, NULL, 64, &bench.recorder));
        recorder_bench_watch(&bench);
        for (int i = 0; i < 100; i++)
            record_image(&bench, i == 99 ? "the last" : "another");
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    close(descriptor);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct bw_recording recording;
    struct bw_recording_list list;
    struct bw_recorded event;
    struct bw_buffer bytes = contents(path, &recording);
    expect_success(bw_recording_sort(&recording, &list));
    assert_int_equal(list.count, 64);
    assert_int_equal(list.overwritten, 36);
    assert_int_equal(bw_recording_facts(&recording).process, child);
    assert_int_equal(bw_recording_slot(&recording, list.slots[63], &event), BW_SLOT_GOOD);
    assert_int_equal(event.number, 100);
    assert_memory_equal(event.slot.text, "the last", 8);
    bw_recording_list_free(&list);
    bw_buffer_free(&bytes);
    unlink(path);
}

/* A box with a few events, as bytes of the test's own. */
static uint8_t *some_box(size_t *size)
{
    struct recorder_bench bench = recorder_bench_create(NULL, 8);
    for (int i = 0; i < 11; i++)
        record_image(&bench, "/some/image.img");
    *size = bench.recorder->size;
    uint8_t *bytes = malloc(*size);
    memcpy(bytes, bench.recorder->bytes, *size);
    recorder_bench_free(&bench);
    return bytes;
}

/* Opens bytes that end where the memory ends. */
static struct bw_error *open_copy(const uint8_t *bytes, size_t size)
{
    struct bw_recording recording;
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    struct bw_error *error = bw_recording_open(copy, size, &recording);
    free(copy);
    return error;
}

static void test_lengths(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = some_box(&size);
    for (size_t length = 0; length < size; length += length < 200 ? 1 : 97)
        expect_error(open_copy(bytes, length), BW_ERROR_CORRUPT,
                     length < 8     ? "this is no black box"
                     : length < 128 ? "ends within its header"
                                    : "is cut short: it has");
    bytes = realloc(bytes, size + 1);
    bytes[size] = 0;
    expect_error(open_copy(bytes, size + 1), BW_ERROR_CORRUPT, "is damaged: it has");
    free(bytes);
}

/* Each byte before the slots is held by the checksum, or says how the run ended. */
static void test_header_bytes(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = some_box(&size);
    size_t header_size = size - 8 * sizeof(struct bw_box_slot);
    size_t ending = header_size - sizeof(struct bw_box_ending);
    for (size_t i = 0; i < header_size; i++) {
        bytes[i] ^= 1;
        struct bw_error *error = open_copy(bytes, size);
        if (i < ending + 4)
            assert_non_null(error);
        else
            assert_null(error);
        bw_error_free(error);
        bytes[i] ^= 1;
    }
    bytes[8] = 2;
    expect_error(open_copy(bytes, size), BW_ERROR_UNSUPPORTED, "of version 2, only 1 is known");
    free(bytes);
}

/* Makes the checksum what it should be. */
static void forge(uint8_t *bytes, size_t header_size)
{
    size_t ending = header_size - sizeof(struct bw_box_ending);
    uint8_t sum[32];
    bw_checksum_compute(BW_CHECKSUM_CRC32C, bytes, ending, sum);
    memcpy(bytes + ending, sum, 4);
}

/* Shows all of a box, whatever is in it. */
static void show_all(const struct bw_recording *recording)
{
    struct bw_recording_list list;
    struct bw_recorded event;
    struct bw_buffer text = {0};
    uint64_t before = 0;
    expect_success(bw_recording_sort(recording, &list));
    assert_true((uint64_t)list.count + list.torn + list.damaged <= recording->slot_count);
    for (uint32_t i = 0; i < list.count; i++) {
        assert_int_equal(bw_recording_slot(recording, list.slots[i], &event), BW_SLOT_GOOD);
        assert_true(event.number > before);
        before = event.number;
        text.length = 0;
        bw_recorded_append_text(&event, &text);
        assert_true(text.length < BW_RECORDED_ROOM);
        for (size_t j = 0; j < text.length; j++)
            assert_true((uint8_t)text.data[j] >= ' ');
        text.length = 0;
        bw_recorded_append_json(&event, &text);
        assert_true(bw_utf8_is_valid(text.data, text.length));
    }
    bw_recording_facts(recording);
    bw_recording_list_free(&list);
    bw_buffer_free(&text);
}

static uint32_t dice(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Few bytes of a good box changed at random: mostly such that the change is believed. */
static void test_random_changes(void **state)
{
    (void)state;
    size_t size;
    uint8_t *good = some_box(&size), *bytes = malloc(size);
    const size_t header_size = size - 8 * sizeof(struct bw_box_slot);
    uint32_t seed = 1, opened = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(bytes, good, size);
        for (uint32_t i = 0, changes = 1 + dice(&seed) % 16; i < changes; i++) {
            uint32_t place = dice(&seed);
            size_t at =
                place % 8 == 0   ? dice(&seed) % header_size
                : place % 8 == 1 ? sizeof(struct bw_box_header) + dice(&seed) % 3000
                : place % 8 < 5
                    ? header_size + dice(&seed) % 8 * sizeof(struct bw_box_slot) + dice(&seed) % 64
                    : header_size + dice(&seed) % (size - header_size);
            bytes[at] = dice(&seed) % 3 ? (uint8_t)dice(&seed) : (uint8_t)(dice(&seed) % 4);
        }
        forge(bytes, header_size);
        struct bw_recording recording;
        struct bw_error *error = bw_recording_open(bytes, size, &recording);
        if (!error) {
            show_all(&recording);
            opened++;
        }
        bw_error_free(error);
    }
    assert_true(opened > 5000);
    free(bytes);
    free(good);
}

static void test_random_slots(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = some_box(&size);
    const size_t header_size = size - 8 * sizeof(struct bw_box_slot);
    uint32_t seed = 2;
    for (int round = 0; round < 2000; round++) {
        struct bw_recording recording;
        for (size_t i = header_size; i < size; i++)
            bytes[i] = (uint8_t)dice(&seed);
        for (size_t i = 0; i < 8; i++) { /* of a number that could be there, and a probe that is */
            uint8_t *slot = bytes + header_size + i * sizeof(struct bw_box_slot);
            slot[0] = (uint8_t)(slot[0] / 8 * 8 + i + 1);
            slot[7] &= 0x8f;
            slot[56] %= 32;
            slot[57] = 0;
            slot[59] %= 64;
            slot[60] %= 64;
            slot[61] %= 64;
        }
        expect_success(bw_recording_open(bytes, size, &recording));
        show_all(&recording);
    }
    free(bytes);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "Upper",
                                        "sp ace",
                                        "\x1b[31m",
                                        "\xff",
                                        "no-end-of-thirty-two-characters.",
                                        "no-end-of-thirty-two-characters-"};
    size_t size;
    uint8_t *bytes = some_box(&size);
    const size_t header_size = size - 8 * sizeof(struct bw_box_slot);
    for (size_t i = 0; i < COUNT(names); i++) {
        strncpy((char *)bytes + sizeof(struct bw_box_header), names[i], BW_BOX_PROBE_NAME);
        forge(bytes, header_size);
        expect_error(open_copy(bytes, size), BW_ERROR_CORRUPT, "has a name that is none");
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),         cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_killed),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_header_bytes), cmocka_unit_test(test_random_changes),
        cmocka_unit_test(test_random_slots), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
