/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for overlays: the input is a qcow2 file. Where it is accepted, the changed ranges
 * ascend, they and nothing else are covered, and they read the same again.
 *
 * The input: one byte (which members of the header become valid), then the file.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/targets.h"
#include "xlators/storage/overlay.h"

enum { SIZE_AT_MOST = 1 << 20, STEPS_AT_MOST = 200, PART = 700 };

/* Writes what a reader requires over the beginning of the file. */
static void make_valid(int file, uint8_t choice)
{
    static const uint8_t zeros[8];
    const uint8_t version[] = {'Q', 'F', 'I', 0xfb, 0, 0, 0, choice & 2 ? 3 : 2};
    const uint8_t bits[] = {0, 0, 0, (uint8_t)(9 + (choice >> 2) % 13)};
    if (!(choice & 1))
        return;
    if (pwrite(file, version, sizeof version, 0) < 0 || pwrite(file, bits, sizeof bits, 20) < 0 ||
        pwrite(file, zeros, 4, 32) < 0 || pwrite(file, zeros, 4, 60) < 0 ||
        pwrite(file, zeros, 8, 72) < 0)
        fuzz_fail("cannot write");
}

/* Reads a part twice. */
static void expect_same(const struct bw_overlay *overlay, uint64_t offset)
{
    uint8_t first[PART], second[PART];
    memset(first, 1, sizeof first);
    memset(second, 1, sizeof second);
    struct bw_error *a = bw_overlay_apply(overlay, offset, first, sizeof first);
    struct bw_error *b = bw_overlay_apply(overlay, offset, second, sizeof second);
    if (!a != !b || (!a && memcmp(first, second, sizeof first) != 0))
        fuzz_fail("bytes at %llu differ", (unsigned long long)offset);
    bw_error_free(a);
    bw_error_free(b);
}

static void read_overlay(const struct bw_overlay *overlay)
{
    uint64_t offset = 0;
    if (bw_overlay_backing(overlay) && strlen(bw_overlay_backing(overlay)) > 2000)
        fuzz_fail("a long name");
    for (unsigned i = 0; i < STEPS_AT_MOST; i++) {
        const uint64_t next = bw_overlay_next(overlay, offset);
        if (next < offset || (next > offset && bw_overlay_covers(overlay, offset, 1)))
            fuzz_fail("after %llu comes %llu", (unsigned long long)offset,
                      (unsigned long long)next);
        if (next == UINT64_MAX)
            return;
        if (next >= bw_overlay_size(overlay) || !bw_overlay_covers(overlay, next, 1))
            fuzz_fail("%llu is not covered", (unsigned long long)next);
        expect_same(overlay, next);
        offset = next + 512;
    }
}

void fuzz_overlay(const uint8_t *data, size_t size)
{
    char path[64];
    struct bw_overlay *overlay;
    if (!size || size > SIZE_AT_MOST)
        return;
    const int file = memfd_create("overlay", MFD_CLOEXEC);
    if (file < 0 || pwrite(file, data + 1, size - 1, 0) != (ssize_t)size - 1)
        fuzz_fail("cannot make the file");
    make_valid(file, data[0]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct bw_error *error = bw_overlay_open(path, &overlay);
    if (!error)
        read_overlay(overlay);
    else if (overlay)
        fuzz_fail("an overlay and an error");
    bw_error_free(error);
    bw_overlay_close(overlay);
    close(file);
}
