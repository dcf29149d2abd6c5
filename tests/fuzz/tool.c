/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running the targets without a fuzzer, and packed images:
 *   fuzz-smoke TARGET FILE...                          runs a target with these inputs
 *   fuzz-smoke pack OUT PAGES IMAGE... [-- PATH...]    packs images, at most PAGES pages of data
 *   fuzz-smoke unpack IN PREFIX                        writes the images PREFIX1.img, ...
 *   fuzz-smoke mutate ROUNDS FILE...                   the target "program", with mutations of
 * these
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/packed.h"
#include "fuzz/targets.h"
#include "fuzz/tool.h"

enum { INPUT_ROOM = 1 << 20 };

static uint8_t input[INPUT_ROOM];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t read_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    return size;
}

static int write_output(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(bytes, 1, length, file) == length;
    if (file && fclose(file))
        written = false;
    if (!written)
        perror(path);
    return !written;
}

static int pack(int count, char **arguments)
{
    struct packed_image *image = packed_image();
    int images = 2;
    while (images < count && strcmp(arguments[images], "--") != 0)
        images++;
    if (!packed_read(image, (const char *const *)arguments + 2, (unsigned)(images - 2),
                     strtoul(arguments[1], NULL, 10)))
        return 1;
    for (int i = images + 1; i < count && image->operand_count < PACKED_OPERANDS; i++)
        snprintf(image->operands[image->operand_count++], sizeof image->operands[0], "%s",
                 arguments[i]);
    for (const char *letter = arguments[0]; *letter; letter++)
        image->command = (uint8_t)(image->command * 31 + *letter);
    size_t size = packed_pack(image, input, PACKED_ROOM);
    if (!size)
        fprintf(stderr, "%s: the images do not fit into an input\n", arguments[0]);
    return size ? write_output(arguments[0], input, size) : 1;
}

static int unpack(char **arguments)
{
    struct packed_image *image = packed_image();
    int status = !packed_unpack(image, input, read_input(arguments[0]));
    char path[4096];
    packed_mend(image, false);
    for (unsigned i = 0; !status && i < image->device_count; i++) {
        const struct packed_device *device = &image->devices[i];
        snprintf(path, sizeof path, "%s%u.img", arguments[1], i + 1);
        status = write_output(path, device->bytes, (size_t)device->size);
    }
    return status;
}

/* Each round starts from one of the inputs and changes it up to four times. */
static int mutate(unsigned long rounds, int count, char **paths)
{
    for (unsigned long round = 0; round < rounds; round++) {
        size_t size = read_input(paths[round % (unsigned long)count]);
        for (unsigned long left = round % 4 + 1; left > 0 && size; left--)
            size = packed_mutate(input, size, PACKED_ROOM, (unsigned)(round * 4 + left));
        double start = seconds();
        if (size)
            input[0] = (uint8_t)round; /* all command lines, one after the other */
        if (getenv("KEEP"))
            write_output(getenv("KEEP"), input, size);
        fuzz_program(input, size);
        if (seconds() - start > 10)
            fuzz_fail("round %lu takes %.1f seconds", round, seconds() - start);
    }
    printf("%lu rounds\n", rounds);
    return 0;
}

/* Each target by its name. */
static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {{"image", fuzz_image},     {"log", fuzz_log},        {"formats", fuzz_formats},
               {"volfile", fuzz_volfile}, {"list", fuzz_list},      {"codec", fuzz_codec},
               {"program", fuzz_program}, {"overlay", fuzz_overlay}};

static int replay(const char *name, char **paths)
{
    size_t target = 0;
    while (target < sizeof targets / sizeof *targets && strcmp(targets[target].name, name) != 0)
        target++;
    if (target == sizeof targets / sizeof *targets) {
        fprintf(stderr, "there is no target %s\n", name);
        return 1;
    }
    for (; *paths; paths++) {
        size_t size = read_input(*paths);
        double start = seconds();
        targets[target].run(input, size);
        printf("%s: %.3f s\n", *paths, seconds() - start);
    }
    fuzz_image_cleanup();
    fuzz_log_cleanup();
    return 0;
}

int tool(int count, char **arguments)
{
    if (strcmp(arguments[0], "pack") == 0 && count > 3)
        return pack(count - 1, arguments + 1);
    if (strcmp(arguments[0], "unpack") == 0 && count == 3)
        return unpack(arguments + 1);
    if (strcmp(arguments[0], "mutate") == 0 && count > 2)
        return mutate(strtoul(arguments[1], NULL, 10), count - 2, arguments + 2);
    return replay(arguments[0], arguments + 1);
}
