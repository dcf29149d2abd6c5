/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening the images and choosing the best of each image's superblock copies. */
#include "fs/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "xlators/storage/file.h"

void bw_uuid_text(const uint8_t uuid[BW_UUID_SIZE], char text[37])
{
    uuid_unparse(uuid, text);
}

void bw_images_free(struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        bw_error_free(set->images[i].bad);
    free(set->images);
    *set = (struct bw_image_set){0};
}

static struct bw_error *add_storage(struct bw_fs *fs, struct bw_image *image, size_t index)
{
    char name[32];
    snprintf(name, sizeof name, "device-%zu", index + 1);
    const struct bw_option_value options[] = {{"path", image->path}, {0}};
    const struct bw_layer layer = {.type = "storage/file", .name = name, .options = options};
    return bw_graph_add(fs->graph, &layer, &image->storage);
}

static struct bw_error *read_copy(const struct bw_image *image, unsigned copy,
                                  struct bw_superblock *superblock)
{
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof bytes,
                                 .address = bw_superblock_offset(copy),
                                 .buffer = bytes};
    bw_wind(NULL, image->storage, &request, 1);
    return request.error ? request.error : bw_superblock_decode(bytes, request.address, superblock);
}

static bool copy_exists(const struct bw_image *image, unsigned copy)
{
    return bw_superblock_offset(copy) + BW_SUPERBLOCK_SIZE <= bw_storage_file_size(image->storage);
}

/* Remembers why an image has no superblock: damage says more than the absence of any magic. */
static void keep_reason(struct bw_image *image, struct bw_error *reason)
{
    if (image->bad && image->bad->code != BW_ERROR_NOT_BTRFS) {
        bw_error_free(reason);
        return;
    }
    bw_error_free(image->bad);
    image->bad = reason;
}

/* A copy that is no good is worth a message if there is a better one: without any, the image is the message.
 */
struct rejected {
    struct bw_error *reasons[BW_SUPERBLOCK_COPIES];
};

static void report_rejected(struct bw_fs *fs, const struct bw_image *image, struct rejected *rejected,
                            bool found)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        struct bw_error *reason = BW_TAKE(rejected->reasons[copy]);
        if (reason && found)
            bw_fs_report(fs, BW_WARNING,
                         bw_error_prefix(reason, "%s: superblock copy %u at %" PRIu64 " rejected",
                                         image->path, copy, bw_superblock_offset(copy)));
        else
            bw_error_free(reason);
    }
}

static void choose_copy(struct bw_fs *fs, struct bw_image *image, int wanted)
{
    struct rejected rejected = {0};
    bool found = false;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        struct bw_superblock candidate;
        if ((wanted >= 0 && copy != (unsigned)wanted) || !copy_exists(image, copy))
            continue;
        /* A copy behind the end of the device is a leftover of something larger. */
        if (found && bw_superblock_offset(copy) + BW_SUPERBLOCK_SIZE > image->superblock.device.total_bytes)
            continue;
        struct bw_error *reason = read_copy(image, copy, &candidate);
        if (!reason && found && memcmp(candidate.fsid, image->superblock.fsid, BW_UUID_SIZE) != 0)
            reason = bw_error_create(BW_ERROR_CORRUPT, "it is of another file system");
        if (reason) {
            keep_reason(image, bw_error_create(reason->code, "%s", reason->message));
            rejected.reasons[copy] = reason;
        } else if (!found || candidate.generation > image->superblock.generation) {
            image->superblock = candidate;
            found = true;
        }
    }
    report_rejected(fs, image, &rejected, found);
    if (found) {
        bw_error_free(image->bad);
        image->bad = NULL;
    } else if (!image->bad) {
        image->bad = bw_error_create(BW_ERROR_NOT_BTRFS, "too small for a superblock%s",
                                     wanted > 0 ? " copy of that number" : "");
    }
}

/* An image that was cut off may still hold all that is needed. */
static void check_size(struct bw_fs *fs, const struct bw_image *image)
{
    uint64_t size = bw_storage_file_size(image->storage), wanted = image->superblock.device.total_bytes;
    if (!image->bad && size < wanted)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%s is cut off: it has %" PRIu64 " of %" PRIu64 " bytes", image->path,
                                     size, wanted));
}

struct bw_error *bw_images_open(struct bw_fs *fs, const struct bw_fs_options *options,
                                struct bw_image_set *set)
{
    set->images = calloc(options->path_count, sizeof *set->images);
    if (!set->images)
        return bw_error_no_memory();
    set->count = options->path_count;
    for (size_t i = 0; i < set->count; i++) {
        set->images[i].path = options->paths[i];
        BW_TRY(add_storage(fs, &set->images[i], i));
        choose_copy(fs, &set->images[i], options->superblock_copy);
        check_size(fs, &set->images[i]);
    }
    return NULL;
}
