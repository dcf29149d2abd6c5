/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small images that are as much work as they can be: `worst-images DIRECTORY [PART]` makes them,
 * each as DIRECTORY/NAME/dev1.img. tests/command/bounds.sh runs all commands on them. An image has
 * up to 12 MiB of tree blocks, or a PART of that (6: a sixth), all of them well-formed; what they
 * say is meant to multiply.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "btrfs-walk/file.h"
#include "support/image_writer.h"
#include "support/image_writer_internal.h"

enum { FS = 5, TOP = 256, FIRST_SUBVOLUME = 300 };
static const uint64_t MIB = 1 << 20;
static unsigned part = 1;

static struct iw_image *begin(unsigned data_chunks)
{
    const struct iw_options options = {
        .incompat_flags = UINT64_C(1) << 9, /* no holes */
        .device_extent_length = 12 * MIB,
        .data_chunks = data_chunks,
    };
    return iw_create(&options);
}

/* A name of a number, `length` bytes long. */
static const char *name_of(unsigned number, size_t length)
{
    static char name[256];
    snprintf(name, sizeof name, "%0*x", (int)length, number);
    return name;
}

/* Directories in directories, with a file in each. */
static struct iw_image *make_deep(size_t name_length, unsigned count)
{
    struct iw_image *image = begin(0);
    uint64_t directory = TOP;
    for (unsigned i = 0; i < count; i++) {
        iw_file(image, FS, directory, "f");
        directory = iw_directory(image, FS, directory, name_of(i % 16, name_length));
    }
    return image;
}

/* The longest path there is, and as many directories and files with two names as fit at its end,
 * in turns. */
static struct iw_image *deep_wide(void)
{
    struct iw_image *image = begin(0);
    uint64_t directory = TOP;
    for (unsigned i = 0; i < 250; i++)
        directory = iw_directory(image, FS, directory, name_of(i, 255));
    for (unsigned i = 0; i < 5000 / part; i++) {
        uint64_t below = iw_directory(image, FS, directory, name_of(i, 4));
        uint64_t file = iw_file(image, FS, below, "f");
        iw_link(image, FS, file, below, "g");
    }
    return image;
}

static struct iw_image *deep(void)
{
    return make_deep(1, 12000 / part);
}

static struct iw_image *deep_long(void)
{
    return make_deep(255, 6000 / part);
}

static void enter(struct iw_image *image, uint64_t subvolume, uint64_t directory, const char *name,
                  uint64_t child)
{
    const struct iw_entry entry = {.directory = directory,
                                   .name = name,
                                   .type = BW_FILE_DIRECTORY,
                                   .location = {child, BW_INODE_ITEM, 0}};
    iw_entry(image, subvolume, &entry);
}

/* Each directory is twice in the one before: 2^60 paths. The last one has the first one in it. */
static struct iw_image *crossed(void)
{
    struct iw_image *image = begin(0);
    uint64_t directory = TOP;
    for (unsigned i = 0; i < 60; i++) {
        uint64_t child = iw_directory(image, FS, directory, "a");
        enter(image, FS, directory, "b", child);
        iw_file(image, FS, child, "file");
        directory = child;
    }
    enter(image, FS, directory, "again", TOP + 1);
    return image;
}

static void refer(struct iw_image *image, uint64_t parent, uint64_t child, const char *name)
{
    char item[sizeof(struct bw_disk_root_ref) + 8];
    const struct bw_disk_root_ref reference = {.directory = bw_put64(TOP),
                                               .sequence = bw_put64(2),
                                               .name_length = bw_put16((uint16_t)strlen(name))};
    const struct iw_entry entry = {.directory = TOP,
                                   .name = name,
                                   .type = BW_FILE_DIRECTORY,
                                   .location = {child, BW_ROOT_ITEM, UINT64_MAX}};
    memcpy(item, &reference, sizeof reference);
    memcpy(item + sizeof reference, name, strlen(name));
    iw_item(image, BW_ROOT_TREE, (struct bw_key){parent, BW_ROOT_REF, child}, item,
            sizeof reference + strlen(name));
    iw_item(image, BW_ROOT_TREE, (struct bw_key){child, BW_ROOT_BACKREF, parent}, item,
            sizeof reference + strlen(name));
    iw_entry(image, parent, &entry);
}

/* Two subvolumes on each of 40 levels, and both are in both of the level before; the last one has
 * the first one in it. */
static struct iw_image *crossed_subvolumes(void)
{
    struct iw_image *image = begin(0);
    unsigned last = FIRST_SUBVOLUME + 80;
    for (unsigned id = FIRST_SUBVOLUME; id < last; id++) {
        unsigned above = id < FIRST_SUBVOLUME + 2 ? FS : id - 2 - (id - FIRST_SUBVOLUME) % 2;
        iw_subvolume(image, id, above, TOP, id % 2 ? "a" : "b", 0);
        iw_file(image, id, TOP, "file");
        if (above != FS)
            refer(image, above + 1, id, id % 2 ? "a" : "b");
    }
    refer(image, last - 1, FIRST_SUBVOLUME, "again");
    return image;
}

/* The image writer keeps all references to a block in one item, which must fit a leaf. */
static struct iw_image *snapshots(void)
{
    enum { SOURCES = 3, EACH = 1000, FILES = 500 };
    struct iw_image *image = begin(0);
    for (unsigned source = FIRST_SUBVOLUME; source < FIRST_SUBVOLUME + SOURCES; source++) {
        iw_subvolume(image, source, FS, TOP, name_of(source, 8), 0);
        for (unsigned i = 0; i < FILES; i++)
            iw_file(image, source, TOP, name_of(i, 8));
        for (unsigned i = 1; i < EACH / part; i++)
            iw_alias(image, source + SOURCES * i, source, FS, TOP,
                     name_of(source + SOURCES * i, 8));
    }
    return image;
}

static void set_size(struct iw_image *image, uint64_t inode, uint64_t size)
{
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, FS, (struct bw_key){inode, BW_INODE_ITEM, 0}, NULL);
    item->size = bw_put64(size);
}

static void put_extent(struct iw_image *image, uint64_t inode, uint64_t offset,
                       const struct bw_disk_file_extent *extent)
{
    iw_item(image, FS, (struct bw_key){inode, BW_EXTENT_DATA, offset}, extent, sizeof *extent);
}

/* Files of the largest size there is, without anything in them. */
static struct iw_image *sparse(void)
{
    struct iw_image *image = begin(0);
    for (unsigned i = 0; i < 2000 / part; i++)
        set_size(image, iw_file(image, FS, TOP, name_of(i, 8)), INT64_MAX & ~UINT64_C(0xfff));
    return image;
}

static uint64_t data_chunk(const struct iw_image *image)
{
    for (size_t i = 0; i < iw_chunk_count(image); i++)
        if (iw_chunk(image, i)->type & BW_GROUP_DATA)
            return iw_chunk(image, i)->logical;
    return 0;
}

static uint64_t find_data_chunk(void)
{
    struct iw_image *image = begin(1);
    iw_write_memory(image);
    uint64_t logical = data_chunk(image);
    iw_destroy(image);
    return logical;
}

/* Many files, all of one compressed extent: 128 KiB of zeros, in one sector, many times over. */
static struct iw_image *compressed(void)
{
    enum { RAM = 128 << 10, SECTOR = 4096, FILES = 20, EXTENTS = 4000 };
    const struct bw_disk_file_extent extent = {.generation = bw_put64(7),
                                               .ram_bytes = bw_put64(RAM),
                                               .compression = BW_COMPRESS_ZSTD,
                                               .type = BW_FILE_EXTENT_REGULAR,
                                               .disk_bytenr = bw_put64(find_data_chunk()),
                                               .disk_num_bytes = bw_put64(SECTOR),
                                               .num_bytes = bw_put64(RAM)};
    struct iw_image *image = begin(1);
    for (unsigned i = 0; i < FILES; i++) {
        uint64_t inode = iw_file(image, FS, TOP, name_of(i, 8));
        struct bw_disk_inode_item *item =
            iw_item_bytes(image, FS, (struct bw_key){inode, BW_INODE_ITEM, 0}, NULL);
        item->size = bw_put64((uint64_t)EXTENTS / part * RAM);
        item->flags = bw_put64(1); /* without checksums */
        for (uint64_t k = 0; k < EXTENTS / part; k++)
            put_extent(image, inode, k * RAM, &extent);
    }
    return image;
}

static void store_compressed(struct iw_image *image)
{
    static const char zeros[128 << 10];
    char sector[4096] = {0};
    ZSTD_compress(sector, sizeof sector, zeros, sizeof zeros, 3);
    iw_store(image, data_chunk(image), NULL, (uint8_t *)sector, sizeof sector);
}

/* One file with many names, and many attributes. */
static struct iw_image *links(void)
{
    struct iw_image *image = begin(0);
    char name[32];
    uint64_t inode = iw_file(image, FS, TOP, "file");
    for (unsigned i = 0; i < 6000 / part; i++)
        iw_link_extended(image, FS, inode, TOP, name_of(i, 200));
    for (unsigned i = 0; i < 2000 / part; i++) {
        snprintf(name, sizeof name, "user.%u", i);
        iw_property(image, FS, inode, name, name_of(i, 255));
    }
    return image;
}

static void add_directories(struct iw_image *image, uint64_t directory, unsigned levels)
{
    for (unsigned i = 0; i < 8; i++) {
        uint64_t below = iw_directory(image, FS, directory, name_of(i, levels > 1 ? 3 : 250));
        if (levels > 1)
            add_directories(image, below, levels - 1);
    }
}

/* 37,448 directories, most of them with long names and nothing in them. The part is ignored. */
static struct iw_image *directories(void)
{
    struct iw_image *image = begin(0);
    add_directories(image, TOP, 5);
    return image;
}

/* As many chunks as fit, none of them with anything in it. */
static struct iw_image *chunks(void)
{
    const struct iw_options options = {.data_chunks = 20000 / part,
                                       .device_extent_length = 2 * MIB};
    return iw_create(&options);
}

static const struct {
    const char *name;
    struct iw_image *(*make)(void);
    void (*finish)(struct iw_image *image);
} images[] = {
    {"deep", deep, NULL},
    {"deep-long", deep_long, NULL},
    {"deep-wide", deep_wide, NULL},
    {"crossed", crossed, NULL},
    {"crossed-subvolumes", crossed_subvolumes, NULL},
    {"snapshots", snapshots, NULL},
    {"sparse", sparse, NULL},
    {"compressed", compressed, store_compressed},
    {"links", links, NULL},
    {"chunks", chunks, NULL},
    {"directories", directories, NULL},
};

int main(int count, char **arguments)
{
    bool right = count == 2 || (count == 3 && atoi(arguments[2]) > 0);
    part = count == 3 && right ? (unsigned)atoi(arguments[2]) : 1;
    for (size_t i = 0; right && i < sizeof images / sizeof *images; i++) {
        char directory[4096];
        snprintf(directory, sizeof directory, "%s/%s", arguments[1], images[i].name);
        if (mkdir(directory, 0777) && errno != EEXIST) {
            perror(directory);
            return EXIT_FAILURE;
        }
        struct iw_image *image = images[i].make();
        iw_write_files(image, directory);
        if (images[i].finish)
            images[i].finish(image);
        iw_destroy(image);
    }
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
