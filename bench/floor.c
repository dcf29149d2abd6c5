/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The floor: the least work with which all blocks of a list can be read and trusted. Reads the
 * blocks of an image in the order of their offsets, which it is told, and checks their crc32c. No
 * discovery, no parsing, no output; one thread. What btrfs-walk takes is compared with this.
 *
 * usage: floor [-b BYTES] [-a BYTES] LIST IMAGE
 *
 * LIST is what block-list wrote. Blocks that touch are read with one call of at most -b bytes. With
 * -a the kernel is told that many bytes ahead what comes next, which is of use if the image is not
 * in the page cache.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHECKSUM_FIELD = 32 };

struct floor {
    uint64_t *numbers; /* what the list file holds */
    uint64_t *offsets;
    size_t count;
    size_t block; /* bytes of one */
    size_t batch; /* bytes read with one call, at most */
    size_t ahead; /* bytes the kernel is told in advance; 0: none */
    size_t told;  /* blocks the kernel has been told of */
    unsigned char *buffer;
    int image;
};

static bool load_list(struct floor *floor, const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) || status.st_size < 16)
        return false;
    size_t size = (size_t)status.st_size, done = 0;
    floor->numbers = malloc(size);
    while (floor->numbers && done < size) {
        ssize_t got = read(file, (char *)floor->numbers + done, size - done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    close(file);
    floor->block = floor->numbers ? (size_t)floor->numbers[0] : 0;
    floor->offsets = floor->numbers + 1;
    floor->count = size / sizeof(uint64_t) - 1;
    return floor->block > CHECKSUM_FIELD;
}

static bool is_good(const struct floor *floor, unsigned char *block)
{
    uint32_t stored;
    memcpy(&stored, block, sizeof stored);
    return stored ==
           ~crc32_iscsi(block + CHECKSUM_FIELD, (int)(floor->block - CHECKSUM_FIELD), UINT32_MAX);
}

/* The end of the run of touching blocks that begins at `first`. */
static size_t run_end(const struct floor *floor, size_t first, size_t most)
{
    size_t next = first + 1;
    while (next < floor->count && next - first < most &&
           floor->offsets[next] == floor->offsets[next - 1] + floor->block)
        next++;
    return next;
}

static void tell_kernel(struct floor *floor, size_t position)
{
    while (floor->told < floor->count && (floor->told - position) * floor->block < floor->ahead) {
        size_t next = run_end(floor, floor->told, floor->ahead / floor->block);
        posix_fadvise(floor->image, (off_t)floor->offsets[floor->told],
                      (off_t)((next - floor->told) * floor->block), POSIX_FADV_WILLNEED);
        floor->told = next;
    }
}

static size_t read_all(struct floor *floor)
{
    size_t bad = 0, most = floor->batch / floor->block;
    for (size_t first = 0, next; first < floor->count; first = next) {
        if (floor->ahead)
            tell_kernel(floor, first);
        next = run_end(floor, first, most);
        size_t length = (next - first) * floor->block;
        if (pread(floor->image, floor->buffer, length, (off_t)floor->offsets[first]) !=
            (ssize_t)length) {
            bad += next - first;
            continue;
        }
        for (size_t at = 0; at < length; at += floor->block)
            bad += !is_good(floor, floor->buffer + at);
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct floor floor = {.batch = 2 << 20};
    int letter;
    while ((letter = getopt(argc, argv, "a:b:")) != -1) {
        if (letter == 'a')
            floor.ahead = strtoul(optarg, NULL, 10);
        else if (letter == 'b')
            floor.batch = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc - optind != 2) {
        fputs("usage: floor [-b BYTES] [-a BYTES] LIST IMAGE\n", stderr);
        return 2;
    }
    if (!load_list(&floor, argv[optind]) || floor.batch < floor.block) {
        fputs("floor: no usable list, or too small a batch\n", stderr);
        return 2;
    }
    floor.image = open(argv[optind + 1], O_RDONLY | O_CLOEXEC);
    floor.buffer = aligned_alloc(4096, floor.batch / 4096 * 4096);
    size_t bad = floor.image < 0 || !floor.buffer ? floor.count : read_all(&floor);
    if (bad)
        fprintf(stderr, "floor: %zu of %zu blocks cannot be read, or are bad\n", bad, floor.count);
    free(floor.buffer);
    free(floor.numbers);
    return bad ? 1 : 0;
}
