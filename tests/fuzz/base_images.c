/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making the images that fuzz_image starts from, and putting them back after a run. */
#include "fuzz/base_images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"

enum {
    TOP = BW_SUBVOLUME_ROOT_INODE,
    FS = BW_TOP_SUBVOLUME,
    PAGE = 4096,
    SCANNED = 48 << 20, /* behind this no image has anything but holes and a superblock copy */
};

/* Content. */

static void add_files(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                      unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %u", i);
        iw_file(image, subvolume, directory, name);
    }
}

/* Links of all kinds, a directory below a younger one, odd entries. */
static void fill_tree(struct iw_image *image)
{
    uint64_t low = iw_directory(image, FS, TOP, "low");
    add_files(image, FS, low, 4);
    uint64_t inner = iw_directory(image, FS, low, "inner");
    add_files(image, FS, inner, 4);
    uint64_t linked = iw_file(image, FS, TOP, "linked");
    iw_link(image, FS, linked, inner, "hard");
    iw_link(image, FS, linked, TOP, "second");
    iw_link_extended(image, FS, linked, low, "extended");
    iw_symlink(image, FS, TOP, "symlink", "linked");
    iw_make(image, FS, TOP, "fifo", BW_FILE_FIFO);
    uint64_t high = iw_directory(image, FS, TOP, "high");
    add_files(image, FS, high, 3);
    iw_move(image, FS, low, TOP, "low", high, "moved");
    const struct iw_entry odd = {.directory = high,
                                 .name = "\xff \\\n\x01",
                                 .type = BW_FILE_REGULAR,
                                 .location = {999, BW_INODE_ITEM, 0}};
    iw_entry(image, FS, &odd);
}

static void fill_subvolumes(struct iw_image *image)
{
    uint64_t directory = iw_directory(image, FS, TOP, "subvolumes");
    iw_subvolume(image, 256, FS, directory, "nest", 0);
    add_files(image, 256, iw_directory(image, 256, TOP, "directory"), 5);
    iw_subvolume(image, 257, 256, TOP, "inner", 0);
    add_files(image, 257, TOP, 3);
    iw_snapshot(image, 300, 256, FS, TOP, "snapshot", BW_ROOT_READ_ONLY);
    add_files(image, 256, TOP, 2);
    iw_snapshot(image, 303, 300, 257, TOP, "again", 0);
    iw_alias(image, 301, 300, 257, TOP, "alias");
    iw_subvolume(image, 302, FS, TOP, "doomed", 0);
    add_files(image, 302, TOP, 2);
    iw_delete_subvolume(image, 302);
}

/* Names of the greatest length, one directory inside the other. */
static void fill_long_names(struct iw_image *image)
{
    char name[BW_NAME_MAX + 1];
    uint64_t directory = TOP;
    for (unsigned i = 0; i < 12; i++) {
        memset(name, 'a' + (int)i, BW_NAME_MAX);
        name[BW_NAME_MAX] = '\0';
        directory = iw_directory(image, FS, directory, name);
        iw_file(image, FS, directory, "leaf");
    }
}

/* The images. */

static const struct iw_options kinds[] = {
    {.nodesize = 4096},
    {.nodesize = 4096, .profile = BW_GROUP_DUP},
    {.nodesize = 4096, .profile = BW_GROUP_RAID1, .items_per_leaf = 8},
    {.nodesize = 4096, .profile = BW_GROUP_RAID5, .device_count = 3, .block_step = 5},
    {.nodesize = 4096, .profile = BW_GROUP_RAID6, .device_count = 4, .block_step = 5},
    {.nodesize = 4096, .profile = BW_GROUP_RAID10, .device_count = 4, .block_step = 5},
    {.nodesize = 4096, .items_per_leaf = 4, .pointers_per_node = 3},
    {.nodesize = 4096, .items_per_leaf = 12, .pointers_per_node = 4},
    {.nodesize = 16384},
    {.nodesize = 4096,
     .checksum_type = BW_CHECKSUM_XXHASH64,
     .separate_metadata_uuid = true,
     .device_size = UINT64_C(65) << 20},
    {.nodesize = 4096,
     .profile = BW_GROUP_RAID0,
     .device_count = 2,
     .block_step = 3,
     .items_per_leaf = 6},
    {.nodesize = 4096, .items_per_leaf = 10},
};

enum { KINDS = sizeof kinds / sizeof *kinds, DEEP = 11 };

static struct base_image images[KINDS];

static void add_extent(struct base_image *base, unsigned device, uint64_t offset)
{
    struct base_extent *last = base->extent_count ? &base->extents[base->extent_count - 1] : NULL;
    if (last && last->device == device && last->offset + last->length == offset) {
        last->length += PAGE;
        return;
    }
    base->extents = realloc(base->extents, (base->extent_count + 1) * sizeof *base->extents);
    if (!base->extents)
        fuzz_fail("out of memory");
    base->extents[base->extent_count++] = (struct base_extent){device, offset, PAGE, NULL};
}

static void find_extents(struct base_image *base, unsigned device)
{
    static const uint8_t zeros[PAGE];
    uint8_t page[PAGE];
    uint64_t size = iw_device_size(base->image, device), second = iw_superblock_offset(2);
    for (uint64_t at = 0; at < size; at += PAGE) {
        if (at >= SCANNED && at < second)
            at = second < size ? second : size - PAGE;
        iw_device_read(base->image, device, at, page, sizeof page);
        if (memcmp(page, zeros, sizeof page) != 0)
            add_extent(base, device, at);
    }
}

static void remember(struct base_image *base)
{
    base->block_count = iw_block_count(base->image);
    base->pristine = malloc(base->block_count * base->nodesize);
    base->work = malloc(base->block_count * base->nodesize);
    base->changed = calloc(base->block_count, sizeof *base->changed);
    if (!base->pristine || !base->work || !base->changed)
        fuzz_fail("out of memory");
    for (size_t i = 0; i < base->block_count; i++)
        iw_block_bytes(base->image, iw_block(base->image, i)->logical,
                       base->pristine + i * base->nodesize);
    memcpy(base->work, base->pristine, base->block_count * base->nodesize);
    for (unsigned device = 0; device < iw_device_count(base->image); device++)
        find_extents(base, device);
    for (size_t i = 0; i < base->extent_count; i++) {
        struct base_extent *extent = &base->extents[i];
        extent->bytes = malloc(extent->length);
        if (!extent->bytes)
            fuzz_fail("out of memory");
        iw_device_read(base->image, extent->device, extent->offset, extent->bytes, extent->length);
    }
}

struct base_image *base_image(unsigned number)
{
    const unsigned kind = number % KINDS;
    struct base_image *base = &images[kind];
    if (base->image)
        return base;
    base->image = iw_create(&kinds[kind]);
    base->nodesize = kinds[kind].nodesize;
    if (kind % 3 != 2)
        fill_tree(base->image);
    if (kind % 2 == 1)
        fill_subvolumes(base->image);
    if (kind % 3 == 2)
        fill_long_names(base->image);
    if (kind == DEEP)
        iw_shape(base->image, FS, 4, 0, 7);
    iw_write_memory(base->image);
    remember(base);
    return base;
}

uint8_t *base_block(const struct base_image *base, size_t index)
{
    return base->work + index * base->nodesize;
}

/* Putting things back. */

static void copy_over(uint8_t *block, uint32_t nodesize, void *closure)
{
    memcpy(block, closure, nodesize);
}

void base_restore(struct base_image *base)
{
    for (size_t i = 0; i < base->block_count; i++) {
        uint8_t *pristine = base->pristine + i * base->nodesize;
        if (!base->changed[i])
            continue;
        memcpy(base_block(base, i), pristine, base->nodesize);
        iw_rewrite_block(base->image, iw_block(base->image, i)->logical, copy_over, pristine,
                         false);
        base->changed[i] = false;
    }
    for (size_t i = 0; i < base->extent_count; i++) {
        const struct base_extent *extent = &base->extents[i];
        iw_device_write(base->image, extent->device, extent->offset, extent->bytes, extent->length);
    }
}

uint64_t base_sum(const struct base_image *base)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < base->extent_count; i++) {
        const struct base_extent *extent = &base->extents[i];
        uint8_t result[32], *bytes = malloc(extent->length);
        uint64_t part;
        if (!bytes)
            fuzz_fail("out of memory");
        iw_device_read(base->image, extent->device, extent->offset, bytes, extent->length);
        bw_checksum_compute(BW_CHECKSUM_XXHASH64, bytes, extent->length, result);
        memcpy(&part, result, sizeof part);
        sum = sum * 31 + part;
        free(bytes);
    }
    return sum;
}

void base_images_free(void)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct base_image *base = &images[kind];
        for (size_t i = 0; i < base->extent_count; i++)
            free(base->extents[i].bytes);
        free(base->extents);
        free(base->pristine);
        free(base->work);
        free(base->changed);
        iw_destroy(base->image);
        *base = (struct base_image){0};
    }
}
