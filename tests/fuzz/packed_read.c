/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packed images from image files, for the first inputs of a fuzzer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/packed.h"

static bool read_range(struct packed_image *image, unsigned number, int file, off_t at, off_t end)
{
    struct packed_device *device = &image->devices[number];
    for (; at < end && image->page_count < PACKED_IN_USE; at += PACKED_PAGE) {
        if (pread(file, device->bytes + at, PACKED_PAGE, at) < 0)
            return false;
        packed_add_page(image, number, (uint64_t)at);
    }
    return true;
}

static bool read_ranges(struct packed_image *image, unsigned number, int file)
{
    const off_t size = (off_t)image->devices[number].size;
    for (off_t at = 0, end; at < size; at = end) {
        at = lseek(file, at, SEEK_DATA);
        if (at < 0)
            return errno == ENXIO;
        end = lseek(file, at, SEEK_HOLE);
        end = end < size ? end : size;
        if (!read_range(image, number, file, at - at % PACKED_PAGE, end))
            return false;
    }
    return true;
}

static bool read_device(struct packed_image *image, unsigned number, const char *path)
{
    struct packed_device *device = &image->devices[number];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool done = file >= 0 && fstat(file, &status) == 0;
    if (done) {
        device->size = ((uint64_t)status.st_size + PACKED_PAGE - 1) / PACKED_PAGE * PACKED_PAGE;
        done = device->size <= (uint64_t)PACKED_PAGES * PACKED_PAGE &&
               ftruncate(device->file, 0) == 0 &&
               ftruncate(device->file, (off_t)device->size) == 0 &&
               read_ranges(image, number, file);
    }
    if (!done)
        perror(path);
    if (file >= 0)
        close(file);
    return done;
}

/* Whether a page belongs to a tree block that begins at most a block before it. */
static bool is_metadata(const struct packed_image *image, const struct packed_place *page)
{
    uint32_t nodesize = packed_nodesize(image);
    for (uint32_t back = 0; back < nodesize && back <= page->offset; back += PACKED_PAGE)
        if (packed_block(image, &(struct packed_place){page->device, page->offset - back}))
            return true;
    return packed_superblock(image, page);
}

bool packed_read(struct packed_image *image, const char *const *paths, unsigned count,
                 size_t data_pages)
{
    image->page_count = image->operand_count = 0;
    image->device_count = count < PACKED_DEVICES ? count : PACKED_DEVICES;
    for (unsigned i = 0; i < image->device_count; i++)
        if (!read_device(image, i, paths[i]))
            return false;
    packed_sort(image);
    size_t kept = 0;
    for (size_t i = 0; i < image->page_count; i++) {
        bool data = !is_metadata(image, &image->pages[i]);
        if (data && !data_pages)
            continue;
        data_pages -= data;
        image->pages[kept++] = image->pages[i];
    }
    image->page_count = kept;
    return true;
}
