/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the fuzz targets without a fuzzer: a few hundred inputs from a generator with a fixed seed,
 * as a test. With arguments it does something else: see tool.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/kernel_streams.h"
#include "fuzz/edits.h"
#include "fuzz/targets.h"
#include "fuzz/tool.h"
#include "support/walk_helpers.h"

enum { INPUTS = 300, SECONDS_AT_MOST = 120, SECONDS_EACH = 5 };

static uint64_t random_state;

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(next_random() >> 56);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run(void (*target)(const uint8_t *data, size_t size), const uint8_t *data, size_t size)
{
    double start = seconds();
    target(data, size);
    assert_true(seconds() - start < SECONDS_EACH);
}

/* Few edits more often than many: one is enough to break most images. */
static void test_images(void **state)
{
    (void)state;
    uint8_t input[4 + 16 * EDITS_AT_MOST];
    random_state = 1;
    for (unsigned i = 0; i < INPUTS; i++) {
        size_t size = 4 + 16 * (size_t)(next_random() % (i % 3 ? 4 : EDITS_AT_MOST));
        fill(input, size);
        input[0] = (uint8_t)i;
        run(fuzz_image, input, size);
    }
    fuzz_image_cleanup();
}

static void test_logs(void **state)
{
    (void)state;
    uint8_t input[1 + 8 * sizeof(struct edit)];
    random_state = 6;
    for (unsigned i = 0; i < INPUTS / 2; i++) {
        fill(input, sizeof input);
        input[0] = (uint8_t)i;
        run(fuzz_log, input, 1 + sizeof(struct edit) * (size_t)(next_random() % (i % 4 ? 3 : 9)));
    }
    fuzz_log_cleanup();
}

/* Commands on few paths, the first of which make files; every fourth stream is noise. */
static void test_streams(void **state)
{
    (void)state;
    enum { STEP = 6, STEPS = 100 };
    uint8_t input[1 + STEP * STEPS];
    random_state = 7;
    for (unsigned i = 0; i < INPUTS; i++) {
        const size_t size = 1 + STEP * (size_t)(next_random() % STEPS);
        fill(input, sizeof input);
        for (size_t at = 1; i % 4 && at + STEP <= size; at += STEP) {
            input[at + 1] = (uint8_t)(input[at + 1] % (i % 8 ? 10 : 30));
            input[at + 2] = (uint8_t)(input[at + 2] % (i % 8 ? 10 : 30));
            input[at] = (uint8_t)(at < 60 ? 3 + input[at] % 8 : input[at]);
        }
        input[0] = (uint8_t)(i % 4 ? i % 2 : 2 + i % 2);
        run(fuzz_stream, input, size);
    }
}

static void test_formats(void **state)
{
    (void)state;
    static uint8_t input[4097];
    random_state = 2;
    for (unsigned i = 0; i < INPUTS; i++) {
        size_t size = 1 + next_random() % (sizeof input - 1);
        fill(input, size);
        for (size_t at = 1; at < size && i % 3; at++)
            input[at] = next_random() % 4 ? 0 : input[at];
        input[0] = (uint8_t)i;
        run(fuzz_formats, input, size);
    }
}

/* Streams of the kernel with a few bytes changed, some cut off, and some that are noise behind
 * their head. */
static void test_codecs(void **state)
{
    (void)state;
    static uint8_t input[2 + 4096];
    random_state = 4;
    for (unsigned i = 0; i < INPUTS; i++) {
        size_t source = i % (sizeof kernel_streams / sizeof *kernel_streams);
        size_t length = kernel_streams[source].length, size = 2 + length;
        fill(input, sizeof input);
        input[0] = (uint8_t)((input[0] & ~3u) | kernel_streams[source].compression);
        memcpy(input + 2, kernel_streams[source].bytes, i % 8 ? length : 4);
        for (size_t left = i / 8 % 5; left > 0; left--)
            input[2 + (size_t)next_random() % length] = (uint8_t)next_random();
        run(fuzz_codec, input, i % 4 ? size : 2 + (size_t)next_random() % length);
    }
}

/* Words at random, some of them in an order that makes sense, and now and then a byte that does
 * not. */
static void test_volfiles(void **state)
{
    (void)state;
    static const char *const words[] = {
        "volume a type storage/file option path /x end-volume\n",
        "volume b type storage/file option path \"y\\x20\" end-volume\n",
        "volume m type cluster/chunk-map subvolumes a b end-volume\n",
        "volume v type features/verify subvolumes m end-volume\n",
        "volume ",
        "type ",
        "option ",
        "subvolumes ",
        "end-volume\n",
        "storage/file ",
        "features/verify ",
        "a ",
        "v ",
        "\"\\",
        "# ",
        "\n",
    };
    char input[1024];
    random_state = 3;
    for (unsigned i = 0; i < 10 * INPUTS; i++) {
        size_t size = 0;
        for (size_t left = i % 4 ? 4 : next_random() % 16, word = 0; left > 0; left--) {
            word = i % 3 ? next_random() % (sizeof words / sizeof *words) : word;
            size += (size_t)snprintf(input + size, sizeof input - size, "%s", words[word++ % 16]);
        }
        if (size && i % 5 == 0)
            input[next_random() % size] = (char)next_random();
        run(fuzz_volfile, (const uint8_t *)input, size);
    }
}

/* Lines of both formats in any order, and now and then a byte that does not fit. */
static void test_lists(void **state)
{
    (void)state;
#define MD5 "0123456789abcdef0123456789abcdef"
    static const char *const lines[] = {
        "#mtree\n",
        ". type=dir\n",
        "a type=dir mode=0755\n",
        "b\\040c type=link link=../x\\\\\n",
        "..\n",
        "./a/./b//c type=file size=1 time=-1.5 \\\n md5=" MD5 "\n",
        "d type=char device=native,8,1 optional\n",
        "/set type=file uid=1 nlink=2\n",
        "/unset all\n",
        MD5 "  a/b\n",
        "\\" MD5 " *c\\nd\n",
        "MD5 (e) f) = " MD5 "\n",
        "a/../b\n",
    };
    enum { LINES = sizeof lines / sizeof *lines };
    char input[1024];
    random_state = 8;
    for (unsigned i = 0; i < 10 * INPUTS; i++) {
        const size_t first = i % 3 ? 0 : 9, count = i % 3 ? 9 : 3; /* of one format, mostly */
        size_t size = 0;
        for (size_t left = 1 + next_random() % 12; left > 0; left--) {
            const size_t line = i % 7 ? first + next_random() % count : next_random() % LINES;
            size += (size_t)snprintf(input + size, sizeof input - size, "%s", lines[line]);
        }
        if (i % 2)
            input[next_random() % size] = (char)next_random();
        run(fuzz_list, (const uint8_t *)input, size);
    }
}

/* The inputs of the fuzzer with a few bytes changed. */
static void test_containers(void **state)
{
    (void)state;
    static const char *const names[] = {"lvm-linear", "lvm-striped", "lvm-raid0",  "lvm-raid1",
                                        "lvm-mirror", "thin",        "luks1",      "luks2",
                                        "md0",        "md1-1",       "md1-6",      "bcache",
                                        "partclone1", "partclone2",  "zstd",       "gzip",
                                        "verity",     "md1-bad",     "md1-journal"};
    enum { NAMES = sizeof names / sizeof *names };
    static uint8_t input[33000];
    random_state = 7;
    for (unsigned i = 0; i < INPUTS / 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/fuzz/containers/%s", names[i % NAMES]);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(input, 1, sizeof input, file);
        fclose(file);
        for (size_t left = i / NAMES % 6; left > 0; left--)
            input[1 + (size_t)next_random() % (size - 1)] = (uint8_t)next_random();
        run(fuzz_containers, input, size);
    }
}

/* The same of overlays. */
static void test_overlays(void **state)
{
    (void)state;
    static uint8_t input[8192];
    random_state = 9;
    for (unsigned i = 0; i < INPUTS; i++) {
        FILE *file =
            fopen(i % 2 ? "tests/fuzz/overlays/version-2" : "tests/fuzz/overlays/version-3", "rb");
        assert_non_null(file);
        const size_t size = fread(input, 1, sizeof input, file);
        fclose(file);
        for (size_t left = i / 2 % 5; left > 0; left--)
            input[1 + (size_t)next_random() % (i % 3 ? size - 1 : 72)] = (uint8_t)next_random();
        input[0] = (uint8_t)(i / 4);
        run(fuzz_overlay, input, size);
    }
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images),     cmocka_unit_test(test_logs),
        cmocka_unit_test(test_formats),    cmocka_unit_test(test_volfiles),
        cmocka_unit_test(test_codecs),     cmocka_unit_test(test_streams),
        cmocka_unit_test(test_containers), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_overlays),
    };
    if (argument_count > 2)
        return tool(argument_count - 1, arguments + 1);
    limit_seconds(SECONDS_AT_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
