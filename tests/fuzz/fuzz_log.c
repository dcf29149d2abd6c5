/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for the log: recorded images whose log blocks are edited as the input says, with
 * checksums that fit. They are opened, so that the log is replayed, and listed with their inodes.
 * Whatever the log is like, the file system opens, the listing ends and is the same again.
 *
 * The input: one byte (the image), then edits, of which these members count: operation, block,
 * slot, field, value_kind, width, offset and value. It runs in the top directory of the sources.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "btrfs-walk/fs.h"
#include "btrfs-walk/tree.h"
#include "btrfs-walk/walk.h"
#include "fuzz/edits.h"
#include "fuzz/targets.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"

enum { BLOCKS_AT_MOST = 64, COPIES_AT_MOST = 2, OUTPUT_AT_MOST = 16 << 20 };

/* A block of the log. */
struct log_block {
    uint64_t bytenr, offsets[COPIES_AT_MOST];
    unsigned copies;
    uint8_t *pristine, *work;
};

struct log_image {
    const char *file;
    char path[32]; /* of its copy in memory */
    int fd;
    enum bw_checksum_type checksum;
    uint32_t nodesize;
    struct log_block blocks[BLOCKS_AT_MOST];
    size_t count; /* 0: not unpacked yet */
};

static struct log_image images[] = {{.file = "fixtures/log-cuts/9001-0.img.zst"},
                                    {.file = "fixtures/log-cuts/9014-0.img.zst"},
                                    {.file = "fixtures/log-tree/dev1.img.zst"}};

/* Unpacking. */

static void must(bool holds, const char *what)
{
    if (!holds)
        fuzz_fail("%s", what);
}

/* Writes all pages that are not zeros. */
static void write_piece(int fd, const uint8_t *bytes, size_t length, off_t offset)
{
    if (length && (bytes[0] || memcmp(bytes, bytes + 1, length - 1) != 0))
        must(pwrite(fd, bytes, length, offset) == (ssize_t)length, "an image cannot be unpacked");
}

/* The whole is mapped once, not allocated: the fuzzer limits what may be. */
static void unpack(struct log_image *image)
{
    enum { PIECE = 1 << 16 };
    static uint8_t packed[1 << 20];
    FILE *file = fopen(image->file, "rb");
    must(file, "a fixture is missing, or this is not the top directory of the sources");
    const size_t length = fread(packed, 1, sizeof packed, file);
    const size_t size = (size_t)ZSTD_getFrameContentSize(packed, length);
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fclose(file);
    must(bytes != MAP_FAILED && ZSTD_decompress(bytes, size, packed, length) == size,
         "a fixture cannot be unpacked");
    image->fd = memfd_create("log", MFD_CLOEXEC);
    snprintf(image->path, sizeof image->path, "/proc/self/fd/%d", image->fd);
    for (size_t at = 0; at < size; at += PIECE)
        write_piece(image->fd, bytes + at, size - at < PIECE ? size - at : PIECE, (off_t)at);
    must(ftruncate(image->fd, (off_t)size) == 0, "an image cannot be unpacked");
    munmap(bytes, size);
}

/* The blocks of the log. */

static void add_block(struct log_image *image, struct bw_fs *fs, uint64_t bytenr)
{
    struct bw_mapping mapping = {.copies = 1};
    must(image->count < BLOCKS_AT_MOST, "a log has too many blocks");
    struct log_block *block = &image->blocks[image->count++];
    block->bytenr = bytenr;
    for (unsigned copy = 0; copy < mapping.copies && copy < COPIES_AT_MOST; copy++) {
        must(!bw_fs_map(fs, bytenr, image->nodesize, copy + 1, &mapping), "a block has no place");
        block->offsets[block->copies++] = mapping.offset;
    }
    block->pristine = malloc(image->nodesize);
    block->work = malloc(image->nodesize);
    must(block->pristine && block->work &&
             pread(image->fd, block->pristine, image->nodesize, (off_t)block->offsets[0]) ==
                 (ssize_t)image->nodesize,
         "a block cannot be read");
}

static void collect(struct log_image *image, struct bw_fs *fs, uint64_t bytenr)
{
    struct bw_tree_block *block;
    struct bw_block_key_pointer pointer;
    struct bw_item item;
    must(!bw_tree_block_read(fs, bytenr, &block), "a block of a log cannot be read");
    add_block(image, fs, bytenr);
    const uint32_t count = bw_tree_block_header(block).item_count;
    for (uint32_t slot = 0; slot < count; slot++)
        if (bw_tree_block_pointer(block, slot, &pointer))
            collect(image, fs, pointer.bytenr);
        else if (bw_tree_block_item(block, slot, &item) && item.key.type == BW_ROOT_ITEM)
            collect(image, fs, bw_get64(((const struct bw_disk_root_item *)item.data)->bytenr));
    bw_tree_block_free(block);
}

static struct bw_error *open_image(struct log_image *image, enum bw_log_mode mode,
                                   struct bw_fs **fs)
{
    const char *path = image->path;
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = &path,
                                          .path_count = 1,
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
                                          .log = mode};
    return bw_fs_open(&options, fs);
}

static struct log_image *image_of(unsigned number)
{
    struct log_image *image = &images[number % (sizeof images / sizeof *images)];
    struct bw_superblock_info super;
    struct bw_fs *fs;
    if (image->count)
        return image;
    unpack(image);
    must(!open_image(image, BW_LOG_IGNORE, &fs), "a fixture cannot be opened");
    bw_fs_superblock(fs, &super);
    image->nodesize = super.nodesize;
    image->checksum = super.checksum_type;
    collect(image, fs, super.log_root);
    bw_fs_close(fs);
    return image;
}

/* Editing. */

static void put_value(const struct edit *edit, uint8_t *at, size_t width)
{
    const uint64_t value = get_number(edit->value, sizeof edit->value), old = get_number(at, width);
    const uint64_t values[] = {
        value,           value % 1024, old + (uint64_t)(int8_t)edit->value[0],
        255 + value % 8, UINT64_MAX,   old ^ UINT64_C(1) << value % 64};
    put_number(at, width, values[edit->value_kind % (sizeof values / sizeof *values)]);
}

static void edit_item(const struct log_image *image, const struct edit *edit, uint8_t *block,
                      struct bw_disk_item *slot)
{
    const uint64_t start = sizeof(struct bw_disk_header) + (uint64_t)bw_get32(slot->offset);
    const uint32_t size = bw_get32(slot->size);
    if (!size || start + size > image->nodesize)
        return;
    if (edit->operation % 2) {
        block[start + get_number(edit->offset, 2) % size] = edit->value[0];
        return;
    }
    const struct field field = pick_field(fields_of_type(slot->key.type), edit->field);
    if (field.offset + field.size <= size)
        put_value(edit, block + start + field.offset, field.size);
}

static void edit_block(const struct log_image *image, const struct edit *edit, uint8_t *block)
{
    struct bw_disk_header *header = (void *)block;
    const size_t room = (image->nodesize - sizeof *header) / sizeof(struct bw_disk_key_pointer);
    const uint32_t count = bw_get32(header->item_count);
    const size_t slot = count && count <= room ? edit->slot % count : 0;
    if (edit->operation % 8 == 0) {
        const struct field field = pick_field(header_fields, edit->field);
        put_value(edit, block + field.offset, field.size);
    } else if (header->level) {
        const struct field field = pick_field(pointer_fields, edit->field);
        put_value(edit,
                  block + sizeof *header + slot * sizeof(struct bw_disk_key_pointer) + field.offset,
                  field.size);
    } else {
        struct bw_disk_item *item = (struct bw_disk_item *)(block + sizeof *header) + slot;
        const struct field field = pick_field(slot_fields, edit->field);
        if (edit->operation % 8 < 3)
            put_value(edit, (uint8_t *)item + field.offset, field.size);
        else
            edit_item(image, edit, block, item);
    }
}

static void write_block(const struct log_image *image, const struct log_block *block,
                        const uint8_t *bytes)
{
    for (unsigned copy = 0; copy < block->copies; copy++)
        must(pwrite(image->fd, bytes, image->nodesize, (off_t)block->offsets[copy]) ==
                 (ssize_t)image->nodesize,
             "a block cannot be written");
}

static void apply(struct log_image *image, const struct edit *edits, size_t count)
{
    for (size_t i = 0; i < image->count; i++)
        memcpy(image->blocks[i].work, image->blocks[i].pristine, image->nodesize);
    for (size_t i = 0; i < count; i++)
        edit_block(image, &edits[i], image->blocks[edits[i].block % image->count].work);
    for (size_t i = 0; i < image->count; i++) {
        struct log_block *block = &image->blocks[i];
        bw_checksum_compute(image->checksum, block->work + BW_CSUM_SIZE,
                            image->nodesize - BW_CSUM_SIZE, block->work);
        write_block(image, block, block->work);
    }
}

/* Looking at it. */

struct outcome {
    uint64_t length, sum;
};

static struct bw_error *consume(void *context, const char *text, size_t length)
{
    struct outcome *outcome = context;
    outcome->length += length;
    for (size_t i = 0; i < length; i++)
        outcome->sum = (outcome->sum ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return outcome->length > OUTPUT_AT_MOST ? bw_error_create(BW_ERROR_STOPPED, "enough") : NULL;
}

static struct outcome look(struct log_image *image)
{
    struct outcome outcome = {0}, dump = {0};
    struct bw_fs *fs;
    const struct bw_rows_options lines = {
        .struct_size = sizeof lines, .members = "path,size,mtime", .terminator = '\n'};
    struct bw_rows *rows = NULL;
    bw_error_free(bw_rows_create("fileinfo", &lines, &rows));
    const struct bw_walk_options walk = {.struct_size = sizeof walk,
                                         .types = BW_WALK_ALL,
                                         .rows = rows,
                                         .threads = 1,
                                         .consume = consume,
                                         .context = &outcome};
    const struct bw_dump_options options = {.struct_size = sizeof options, .replayed = true};
    struct bw_error *error = open_image(image, BW_LOG_REPLAY, &fs);
    if (error)
        fuzz_fail("a bad log takes the file system away: %s", error->message);
    bw_error_free(bw_walk(fs, &walk, NULL));
    bw_error_free(bw_dump_trees(fs, NULL, 0, &options, consume, &dump));
    bw_fs_close(fs);
    bw_rows_destroy(rows);
    return outcome;
}

void fuzz_log(const uint8_t *data, size_t size)
{
    if (!size)
        return;
    struct log_image *image = image_of(data[0]);
    const size_t count = (size - 1) / sizeof(struct edit);
    apply(image, (const struct edit *)(data + 1), count < EDITS_AT_MOST ? count : EDITS_AT_MOST);
    const struct outcome first = look(image), again = look(image);
    if (first.length != again.length || first.sum != again.sum)
        fuzz_fail("listing again gives something else");
    for (size_t i = 0; i < image->count; i++)
        write_block(image, &image->blocks[i], image->blocks[i].pristine);
}

void fuzz_log_cleanup(void)
{
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        for (size_t block = 0; block < images[i].count; block++) {
            free(images[i].blocks[block].pristine);
            free(images[i].blocks[block].work);
        }
        if (images[i].count)
            close(images[i].fd);
        images[i] = (struct log_image){.file = images[i].file};
    }
}
