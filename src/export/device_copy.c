/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of devices without their free space.
 *
 * A map of the space in use, to which that of older generations can be added, gives the ranges of
 * each device. They are widened to whole sectors and joined to extents. The ranges of a device are
 * passed through twice: first to count the bytes of the extents, then to copy them. While a piece
 * of an extent is written, the next one is read ahead. Where reading fails, it is tried again in
 * smaller pieces, down to a sector, so that a bad sector costs only itself.
 */
#include "export/device_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/history.h"
#include "export/qcow2.h"

enum {
    PIECE = 4 << 20,
    RETRY = 64 << 10, /* pieces to read after an error, and pieces of these after another one */
    SECTOR = 4096,
};

struct bw_device_copy {
    struct bw_fs *fs;
    void (*copied)(uint64_t bytes);
    struct bw_used_map *used;
    uint8_t *buffer; /* of PIECE bytes */

    /* The current device. */
    struct bw_device_info device;
    struct bw_device_reader *reader;
    struct bw_device_ranges bad;
    const struct bw_device_image *image; /* NULL: the bytes are counted */
    struct bw_qcow2 *qcow2;              /* NULL: the image is raw */
    uint64_t start, end; /* the extent that waits until it is known where it ends; empty: none */
    uint64_t bytes;      /* in use */
};

/* The space to copy. */

struct bw_error *bw_device_copy_open(struct bw_fs *fs, void (*copied)(uint64_t bytes),
                                     struct bw_device_copy **result)
{
    const struct bw_used_options how = {.struct_size = sizeof how, .files = true};
    struct bw_device_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return bw_error_no_memory();
    *copy = (struct bw_device_copy){.fs = fs, .copied = copied, .buffer = malloc(PIECE)};
    struct bw_error *error =
        copy->buffer ? bw_used_map_open(fs, &how, &copy->used) : bw_error_no_memory();
    if (error)
        bw_device_copy_close(copy);
    else
        *result = copy;
    return error;
}

static struct bw_error *add_logical(void *used, uint64_t logical, uint64_t length)
{
    return bw_used_map_add(used, logical, length);
}

static struct bw_error *add_device_range(void *used, const struct bw_used_range *range)
{
    if (!range->in_use)
        return NULL;
    return bw_used_map_add_device(used, range->devid, range->offset, range->length);
}

/* Adds what all generations have in the chunks of this one, which differ from the present ones. */
static struct bw_error *add_older_chunks(struct bw_used_map *used, const struct bw_history *history,
                                         size_t number, const struct bw_fs_options *how)
{
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    struct bw_used_map *older = NULL;
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_history_open_state(history, number, how, &fs);
    if (!error)
        error = bw_used_map_open(fs, NULL, &older);
    if (!error)
        error = bw_history_ranges(history, add_logical, older);
    if (!error)
        error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++)
        if (devices.items[i].path)
            error = bw_used_map_device(older, devices.items[i].devid, add_device_range, used);
    bw_used_map_close(older);
    bw_fs_close(fs);
    return error;
}

struct bw_error *
bw_device_copy_add_history(struct bw_device_copy *copy, const struct bw_fs_options *how,
                           bool (*searched)(void *context, uint64_t done, uint64_t total))
{
    const struct bw_history_options options = {.struct_size = sizeof options,
                                               .scanning = BW_HISTORY_SCAN_ALWAYS,
                                               .progress = searched,
                                               .only_list = true};
    struct bw_history *history;
    struct bw_superblock_info superblock;
    BW_TRY(bw_history_open(copy->fs, &options, &history));
    struct bw_error *error = bw_history_ranges(history, add_logical, copy->used);
    bw_fs_superblock(copy->fs, &superblock);
    uint64_t known = superblock.chunk_root;
    for (size_t i = 0; !error && i < bw_history_count(history); i++) {
        const uint64_t root = bw_history_entry(history, i)->chunk_root;
        if (root && root != known && root != superblock.chunk_root)
            error = add_older_chunks(copy->used, history, i, how);
        /* A chunk tree that cannot be read is of no use for the copy, either. */
        if (error && error->code != BW_ERROR_NO_MEMORY)
            bw_error_free(BW_TAKE(error));
        if (root)
            known = root;
    }
    bw_history_close(history);
    return error;
}

/* The devices. */

/* Reads a piece; unreadable sectors become zeros. */
static struct bw_error *read_piece(struct bw_device_copy *copy, uint64_t offset, uint8_t *bytes,
                                   uint32_t length)
{
    struct bw_error *error = bw_device_reader_read(copy->reader, offset, bytes, length);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    if (length <= SECTOR) {
        memset(bytes, 0, length);
        struct bw_device_ranges *bad = &copy->bad;
        struct bw_address_range *last = bad->count ? &bad->items[bad->count - 1] : NULL;
        if (!last || last->logical + last->length != offset)
            return bw_device_ranges_push(bad, (struct bw_address_range){offset, length});
        last->length += length;
        return NULL;
    }
    const uint32_t step = length > RETRY ? RETRY : SECTOR;
    for (uint32_t at = 0; at < length; at += step)
        BW_TRY(read_piece(copy, offset + at, bytes + at, length - at < step ? length - at : step));
    return NULL;
}

/* Copies the waiting extent, or counts its bytes. */
static struct bw_error *end_extent(struct bw_device_copy *copy)
{
    const struct bw_device_image *image = copy->image;
    const uint64_t end = copy->end;
    uint64_t at = copy->start;
    copy->start = copy->end = 0;
    if (!image) {
        copy->bytes += end - at;
        return NULL;
    }
    for (uint64_t length; at < end; at += length) {
        length = end - at < PIECE ? end - at : PIECE;
        BW_TRY(read_piece(copy, at, copy->buffer, (uint32_t)length));
        const uint64_t rest = end - at - length;
        if (rest)
            bw_device_reader_advise(copy->reader, at + length, rest < PIECE ? rest : PIECE);
        if (copy->qcow2)
            BW_TRY(bw_qcow2_add(copy->qcow2, at, copy->buffer, (size_t)length));
        else if (at + length > image->kept)
            BW_TRY(image->write(image->context, at, copy->buffer, (size_t)length));
        copy->copied(length);
    }
    return NULL;
}

static struct bw_error *add_range(void *context, const struct bw_used_range *range)
{
    struct bw_device_copy *copy = context;
    const uint64_t size = copy->device.image_bytes;
    uint64_t start = range->offset / SECTOR * SECTOR,
             end = (range->offset + range->length + SECTOR - 1) / SECTOR * SECTOR;
    if (!range->in_use)
        return NULL;
    end = end < size ? end : size;
    if (start > copy->end || copy->start == copy->end) {
        BW_TRY(end_extent(copy));
        copy->start = start;
    }
    copy->end = end;
    return NULL;
}

/* Copies all extents of the device to `image`; NULL: counts their bytes. */
static struct bw_error *list_extents(struct bw_device_copy *copy,
                                     const struct bw_device_image *image)
{
    copy->image = image;
    copy->start = copy->end = 0;
    BW_TRY(bw_used_map_device(copy->used, copy->device.devid, add_range, copy));
    return end_extent(copy);
}

struct bw_error *bw_device_copy_begin(struct bw_device_copy *copy,
                                      const struct bw_device_info *device, uint64_t *bytes)
{
    copy->device = *device;
    copy->bad.count = 0;
    copy->bytes = 0;
    bw_device_reader_close(BW_TAKE(copy->reader));
    BW_TRY(list_extents(copy, NULL));
    *bytes = copy->bytes;
    return bw_device_reader_open(copy->fs, device->devid, &copy->reader);
}

struct bw_error *bw_device_copy_write(struct bw_device_copy *copy,
                                      const struct bw_device_image *image)
{
    if (!image->is_qcow2)
        return list_extents(copy, image);
    BW_TRY(bw_qcow2_create(copy->device.image_bytes, image->compressed, image->write,
                           image->context, &copy->qcow2));
    struct bw_error *error = list_extents(copy, image);
    if (!error)
        error = bw_qcow2_end(copy->qcow2);
    bw_qcow2_destroy(BW_TAKE(copy->qcow2));
    return error;
}

const struct bw_device_ranges *bw_device_copy_bad(const struct bw_device_copy *copy)
{
    return &copy->bad;
}

void bw_device_copy_close(struct bw_device_copy *copy)
{
    if (!copy)
        return;
    bw_device_reader_close(copy->reader);
    bw_used_map_close(copy->used);
    bw_device_ranges_free(&copy->bad);
    free(copy->buffer);
    free(copy);
}
