/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening the images, including metadumps of btrfs-image, and selecting the best superblock copy of
 * each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/block_device.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "fs/disk.h"
#include "fs/image.h"
#include "fs/opening.h"
#include "graph/identify.h"
#include "ondisk/bit_flip.h"
#include "ondisk/foreign.h"
#include "ondisk/superblock.h"

#define METADUMP_TYPE "layout/metadump"

/* Whether an image is a metadump that is already presented as a device. */
static bool image_is_dump(const struct bw_xlator *storage)
{
    while (strcmp(bw_xlator_type(storage), METADUMP_TYPE) != 0 && bw_xlator_child_count(storage))
        storage = bw_xlator_child(storage, 0);
    return bw_xlator_child_count(storage);
}

/* Selecting superblock copies. */

void bw_images_free(struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        bw_error_free(set->images[i].bad);
        free(set->images[i].path);
        free(set->images[i].name);
        free(set->images[i].container);
        bw_disk_free(set->images[i].disk);
    }
    free(set->images);
    *set = (struct bw_image_set){0};
}

char *bw_image_path(const struct bw_xlator *layer)
{
    return strdup(bw_xlator_image(layer));
}

/* The superblock copies of an image. */
struct copies {
    uint64_t offsets[BW_SUPERBLOCK_COPIES];
    bool exist[BW_SUPERBLOCK_COPIES];
    bool logs;                                /* they are logs of a zoned device */
    uint64_t newer_bad[BW_SUPERBLOCK_COPIES]; /* offset of a newer, invalid entry of the log; 0:
                                               * none */
    struct bw_error *rejected[BW_SUPERBLOCK_COPIES]; /* why it is not used */
};

static struct bw_error *read_bytes(const struct bw_frame *frame, const struct bw_image *image,
                                   uint64_t offset, uint8_t bytes[BW_SUPERBLOCK_SIZE])
{
    struct bw_request request = {
        .kind = BW_REQUEST_SUPER, .length = BW_SUPERBLOCK_SIZE, .address = offset, .buffer = bytes};
    bw_wind(frame, image->storage, &request, 1);
    return request.error;
}

static struct bw_error *read_copy_in(const struct bw_frame *frame, const struct bw_image *image,
                                     unsigned copy, uint64_t offset,
                                     struct bw_superblock *superblock)
{
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    BW_TRY(read_bytes(frame, image, offset, bytes));
    return bw_superblock_decode(bytes, bw_superblock_offset(copy), superblock);
}

static struct bw_error *read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                  unsigned copy, uint64_t offset, struct bw_superblock *superblock)
{
    struct bw_probes *probes = fs->graph->probes;
    const struct bw_frame frame = bw_frame_above(NULL, probes);
    uint64_t start = BW_PROBE_START(probes, super__read);
    struct bw_error *error = read_copy_in(&frame, image, copy, offset, superblock);
    if (!BW_PROBE_ON(probes, super__read))
        return error;
    const struct bw_super_event event = {
        .event = {frame.call, start ? bw_probes_now(probes) - start : 0, error},
        .superblock = superblock,
        .path = image->path,
        .offset = offset,
        .copy = copy,
        .index = image->index};
    if (error)
        BW_PROBE(probes, super__read, super_bad, &event);
    else
        BW_PROBE(probes, super__read, super, &event);
    return error;
}

/* Reports rejected copies: as a warning if there is a better copy, otherwise in the image's
 * error. */
static void report_rejected(struct bw_fs *fs, const struct bw_image *image, struct copies *copies)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        struct bw_error *rejected = copies->rejected[copy];
        if (!rejected)
            continue;
        rejected->code = BW_ERROR_CORRUPT;
        bw_fs_report(fs, BW_WARNING,
                     bw_error_prefix(rejected, "%s: superblock copy %u at %" PRIu64 " rejected",
                                     image->name, copy, copies->offsets[copy]));
    }
}

static struct bw_error *join_rejected(struct copies *copies, int wanted)
{
    struct bw_buffer text = {0};
    /* a requested copy suggests that the image has a file system */
    enum bw_error_code code = wanted > 0 ? BW_ERROR_CORRUPT : BW_ERROR_NOT_BTRFS;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        const struct bw_error *reason = copies->rejected[copy];
        if (!reason)
            continue;
        bw_buffer_format(&text, "%ssuperblock copy %u at %" PRIu64 ": %s", text.length ? "; " : "",
                         copy, copies->offsets[copy], reason->message);
        /* an error about damage is more specific than a missing magic number */
        code = reason->code == BW_ERROR_NOT_BTRFS ? code : reason->code;
    }
    const char *nothing = copies->logs ? "a zoned device without a log of" : "too small for";
    struct bw_error *error = text.length
                                 ? bw_error_create(code, "%.*s", (int)text.length, text.data)
                                 : bw_error_create(code, "%s a superblock%s", nothing,
                                                   wanted > 0 ? " copy of that number" : "");
    bw_buffer_free(&text);
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_error_add_cause(error, copies->rejected[copy]);
    return error;
}

static struct bw_error *not_chosen(const struct bw_superblock *loser,
                                   const struct bw_superblock *winner)
{
    if (memcmp(loser->fsid, winner->fsid, BW_UUID_SIZE) != 0)
        return bw_error_create(BW_ERROR_CORRUPT, "it belongs to another file system");
    return bw_error_create(BW_ERROR_CORRUPT,
                           "it has generation %" PRIu64 ", another copy has %" PRIu64,
                           loser->generation, winner->generation);
}

/* Compares a valid copy with the best one so far; rejects the worse one if they differ. */
static void compare_copy(struct bw_image *image, const struct bw_superblock *candidate,
                         unsigned copy, int *best, struct copies *copies)
{
    bool same = *best >= 0 && memcmp(candidate->fsid, image->superblock.fsid, BW_UUID_SIZE) == 0;
    if (*best < 0 || (same && candidate->generation > image->superblock.generation)) {
        if (*best >= 0)
            copies->rejected[*best] = not_chosen(&image->superblock, candidate);
        image->superblock = *candidate;
        image->copy = copy;
        *best = (int)copy;
    } else if (!same || candidate->generation < image->superblock.generation) {
        copies->rejected[copy] = not_chosen(candidate, &image->superblock);
    }
}

static struct copies find_copies(const struct bw_image *image, int wanted)
{
    struct copies copies = {.exist = {false}};
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        copies.offsets[copy] = bw_superblock_offset(copy);
        copies.exist[copy] =
            (wanted < 0 || copy == (unsigned)wanted) && !(copy && image->is_dump) &&
            copies.offsets[copy] + BW_SUPERBLOCK_SIZE <= bw_xlator_size(image->storage);
    }
    return copies;
}

/* Finds the superblock logs of a zoned device, where the usual offsets may contain an old entry of
 * a log. False if none exist. */
static bool find_logs(const struct bw_fs *fs, const struct bw_image *image, int wanted,
                      const struct bw_superblock *known, struct copies *copies)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    *copies = (struct copies){.exist = {false}};
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        const struct bw_superblock_log log = {image->storage, copy, known};
        struct bw_superblock_entry entry;
        bool exists = bw_superblock_log_find(&frame, &log, &entry);
        copies->offsets[copy] = entry.offset;
        copies->newer_bad[copy] = entry.newer_bad;
        copies->exist[copy] = exists && (wanted < 0 || copy == (unsigned)wanted);
        copies->logs |= exists;
    }
    return copies->logs;
}

/* btrfs-image -r writes only copy 0; the offsets of the other copies keep their old contents. */
static bool is_unrestored(const struct bw_image *image, int best, const struct bw_error *rejected,
                          const struct bw_superblock *candidate)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    if (best != 0 || !(image->superblock.flags & restored))
        return false;
    return rejected ? rejected->code == BW_ERROR_NOT_BTRFS : !(candidate->flags & restored);
}

/* Why a superblock is not used if --fsid selects another file system. */
static struct bw_error *other_file_system(const struct bw_superblock *superblock)
{
    char fsid[37];
    bw_uuid_text(superblock->fsid, fsid);
    return bw_error_create(BW_ERROR_NOT_BTRFS, "it belongs to the file system %s", fsid);
}

/* Selects the best copy for the image and returns its number; -1 if none is valid. */
static int choose_among(struct bw_fs *fs, struct bw_image *image, struct copies *copies)
{
    int best = -1;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        struct bw_superblock candidate;
        /* a copy beyond the end of the device remains from a larger file system */
        if (!copies->exist[copy] || (best >= 0 && copies->offsets[copy] + BW_SUPERBLOCK_SIZE >
                                                      image->superblock.device.total_bytes))
            continue;
        copies->rejected[copy] = read_copy(fs, image, copy, copies->offsets[copy], &candidate);
        if (!copies->rejected[copy] && !bw_is_wanted(fs, &candidate) && !bw_is_seed(&candidate))
            copies->rejected[copy] = other_file_system(&candidate);
        if (is_unrestored(image, best, copies->rejected[copy], &candidate))
            bw_error_free(BW_TAKE(copies->rejected[copy]));
        else if (!copies->rejected[copy])
            compare_copy(image, &candidate, copy, &best, copies);
    }
    return best;
}

/* Selects the best copy after its only flipped bit is corrected; used if no copy is good. Returns
 * its number; -1 if more is wrong than one bit of each. */
static int choose_corrected(struct bw_fs *fs, struct bw_image *image, struct copies *copies)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    struct bw_bit_flip flip = {0};
    int best = -1;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        uint8_t bytes[BW_SUPERBLOCK_SIZE];
        struct bw_superblock candidate;
        struct bw_bit_flip found;
        if (!copies->exist[copy] || !copies->rejected[copy])
            continue;
        BW_AUTO_ERROR struct bw_error *unread =
            read_bytes(&frame, image, copies->offsets[copy], bytes);
        if (unread || !bw_superblock_correct(bytes, bw_superblock_offset(copy), &candidate, &found))
            continue;
        if (!bw_is_wanted(fs, &candidate) && !bw_is_seed(&candidate))
            continue;
        if (best >= 0 && candidate.generation <= image->superblock.generation)
            continue;
        image->superblock = candidate;
        image->copy = copy;
        best = (int)copy;
        flip = found;
    }
    if (best < 0)
        return -1;
    struct bw_error *reason = BW_TAKE(copies->rejected[best]);
    struct bw_error *note = bw_error_create(
        BW_ERROR_CORRUPT,
        "%s: superblock copy %d at %" PRIu64 ": corrected bit %u of byte %" PRIu32 " (%s)",
        image->name, best, copies->offsets[best], flip.bit, flip.byte, reason->message);
    bw_error_add_cause(note, reason);
    bw_fs_report(fs, BW_WARNING, note);
    return best;
}

static void report_newer(struct bw_fs *fs, const struct bw_image *image,
                         const struct copies *copies)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        if (copies->exist[copy] && copies->newer_bad[copy])
            bw_fs_report(
                fs, BW_WARNING,
                bw_error_create(BW_ERROR_CORRUPT,
                                "%s: superblock copy %u: the newest entry of its log, at %" PRIu64
                                ", is bad: an older one is used",
                                image->name, copy, copies->newer_bad[copy]));
}

/* Identifies contents other than a btrfs. */
static enum bw_identity identify_image(const struct bw_fs *fs, const struct bw_image *image,
                                       struct bw_buffer *name)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    return bw_identify(&frame, image->storage, 0, bw_xlator_size(image->storage), name);
}

/* Adds the identified contents to the error of an image without a superblock. */
static void name_foreign(const struct bw_fs *fs, struct bw_image *image)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    enum bw_identity identity = BW_UNIDENTIFIED;
    if (image->bad->code == BW_ERROR_NOT_BTRFS)
        identity = identify_image(fs, image, &name);
    image->is_foreign = identity == BW_FOREIGN;
    if (!identity)
        return;
    struct bw_error *error =
        bw_error_create(BW_ERROR_NOT_BTRFS, "it is %.*s", (int)name.length, name.data);
    bw_error_add_cause(error, image->bad);
    image->bad = error;
}

/* Reads the partition table of an image that does not begin with a btrfs; of any image if a
 * partition was selected. */
static struct bw_error *look_for_disk(const struct bw_fs *fs, struct bw_image *image,
                                      bool is_wanted)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    struct bw_disk_superblock block;
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof block,
                                 .address = bw_superblock_offset(0),
                                 .buffer = &block};
    if (image->partition)
        return NULL;
    if (!is_wanted)
        bw_wind(&frame, image->storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    bool is_btrfs = !is_wanted && !error && bw_get64(block.magic) == BW_SUPERBLOCK_MAGIC;
    return is_btrfs ? NULL : bw_disk_open(&frame, image, &image->disk);
}

/* Sets the error of an image without a valid superblock. */
static void set_image_error(const struct bw_fs *fs, struct bw_image *image, struct copies *copies,
                            int wanted)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    image->bad = join_rejected(copies, wanted);
    if (!image->disk || image->partition) {
        name_foreign(fs, image);
        return;
    }
    bw_disk_identify(&frame, image->disk);
    image->is_foreign = true;
    bw_error_free(image->bad);
    image->bad = bw_disk_refuse(image->disk);
}

static void free_rejected(struct copies *copies)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_error_free(copies->rejected[copy]);
}

static struct bw_error *choose_copy(struct bw_fs *fs, struct bw_image *image, int wanted)
{
    struct copies copies = find_copies(image, wanted), logs;
    int best = choose_among(fs, image, &copies);
    const struct bw_superblock known = image->superblock;
    bool zoned = best < 0 || known.incompat_flags & BW_INCOMPAT_ZONED;
    if (zoned && find_logs(fs, image, wanted, best < 0 ? NULL : &known, &logs)) {
        free_rejected(&copies);
        copies = logs;
        report_newer(fs, image, &copies);
        best = choose_among(fs, image, &copies);
    }
    if (best < 0)
        best = choose_corrected(fs, image, &copies);
    struct bw_error *error = NULL;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        if (copies.rejected[copy] && copies.rejected[copy]->code == BW_ERROR_NO_MEMORY)
            error = bw_error_no_memory(); /* the copy may be good */
    if (!error && best != 0)
        error = look_for_disk(fs, image, false);
    if (image->disk && !image->partition && fs->has_wanted_fsid &&
        !bw_disk_has_wanted(fs, image->disk))
        bw_disk_free(BW_TAKE(image->disk)); /* it may have been there before the partitions */
    if (error || (image->disk && image->disk->has_btrfs && !image->partition))
        free_rejected(&copies);
    else if (best >= 0)
        report_rejected(fs, image, &copies);
    else
        set_image_error(fs, image, &copies, wanted);
    return error;
}

/* A truncated image may still contain everything in use. But it may also be in another format whose
 * data happens to contain the superblock at the right offset. */
static void check_size(struct bw_fs *fs, const struct bw_image *image)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    uint64_t size = bw_xlator_size(image->storage), wanted = image->superblock.device.total_bytes;
    if (image->bad || image->is_dump || size >= wanted)
        return;
    bool foreign = identify_image(fs, image, &name);
    bw_fs_report(fs, BW_WARNING,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "%s is cut off: it has %" PRIu64 " of %" PRIu64 " bytes%s%.*s",
                                 image->name, size, wanted, foreign ? "; perhaps it is " : "",
                                 (int)name.length, name.data ? name.data : ""));
}

/* Blocks of a mounted file system may change while they are read. */
static void check_mounted(struct bw_fs *fs, const struct bw_image *image, uint64_t offset)
{
    BW_AUTO_FREE char *point = image->bad ? NULL : bw_mount_point(image->path, offset);
    if (point)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_create(BW_ERROR_USAGE,
                                     "%s is mounted at %s: it may change while it is read",
                                     image->name, point));
}

static struct bw_error *name_image(struct bw_image *image)
{
    char place[300] = "";
    free(BW_TAKE(image->name));
    free(BW_TAKE(image->container));
    if (!image->path)
        image->path = bw_image_path(image->storage);
    BW_TRY(bw_stack_title(image->storage, &image->container));
    if (image->partition)
        snprintf(place, sizeof place, " partition %u", image->partition);
    else if (image->container)
        snprintf(place, sizeof place, " (%s)", image->container);
    if (!image->path || asprintf(&image->name, "%s%s", image->path, place) < 0)
        image->name = NULL;
    return image->name ? NULL : bw_error_no_memory();
}

/* The number of the requested copy; -1: the best one. */
static int wanted_copy(const struct bw_fs_options *options)
{
    switch (options->superblock_copy) {
    case BW_SUPERBLOCK_COPY_1:
    case BW_SUPERBLOCK_COPY_2:
        return options->superblock_copy;
    case BW_SUPERBLOCK_COPY_0:
        return 0;
    default:
        return -1;
    }
}

/* Whether an image is a send stream. These bytes decide before all others, because the data in a
 * stream may resemble a superblock or a partition table. */
static bool is_stream(const struct bw_fs *fs, const struct bw_image *image)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    char bytes[sizeof BW_STREAM_MAGIC];
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = sizeof bytes, .address = 0, .buffer = bytes};
    if (bw_xlator_size(image->storage) < sizeof bytes)
        return false;
    bw_wind(&frame, image->storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error && memcmp(bytes, BW_STREAM_MAGIC, sizeof bytes) == 0;
}

/* Opens an image: reads its superblock, or its partition table if it is a disk with a btrfs. */
static struct bw_error *open_image(struct bw_fs *fs, struct bw_xlator *map,
                                   const struct bw_fs_options *options, size_t index,
                                   struct bw_image *image)
{
    image->storage = bw_xlator_child(map, index);
    image->index = index;
    image->is_dump = image_is_dump(image->storage);
    BW_TRY(name_image(image));
    if (image->has_failed)
        return NULL;
    BW_PROBE(fs->graph->probes, image__open, image,
             &(struct bw_image_event){image->path, bw_xlator_size(image->storage), index});
    image->is_stream = is_stream(fs, image);
    if (image->is_stream) {
        image->is_foreign = true;
        image->bad = bw_error_create(BW_ERROR_NOT_BTRFS, "it is a send stream");
        return NULL;
    }
    if (options->partition)
        BW_TRY(look_for_disk(fs, image, true));
    if (!image->disk || image->partition)
        BW_TRY(choose_copy(fs, image, wanted_copy(options)));
    if (image->disk && !image->partition)
        return NULL;
    check_size(fs, image);
    check_mounted(fs, image, image->offset + options->offset);
    return NULL;
}

static struct bw_error *visit_partition_tables(const struct bw_fs *fs,
                                               const struct bw_image_set *set)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    for (size_t i = 0; i < set->count; i++) {
        struct bw_disk *disk = set->images[i].disk;
        if (!disk)
            continue;
        bw_disk_identify(&frame, disk);
        BW_TRY(fs->tables->visit(fs->tables->context, &disk->table));
    }
    return NULL;
}

static struct bw_error *open_images(struct bw_fs *fs, struct bw_xlator *map,
                                    const struct bw_fs_options *options, struct bw_stack *stack,
                                    struct bw_image_set *set)
{
    bool has_disks = options->partition;
    const size_t count = bw_xlator_child_count(map);
    set->images = calloc(count, sizeof *set->images);
    if (!set->images)
        return bw_error_no_memory();
    set->count = count;
    for (size_t i = 0; i < set->count; i++) {
        set->images[i].bad = bw_stack_take_failure(stack, bw_xlator_child(map, i));
        set->images[i].has_failed = set->images[i].is_foreign = set->images[i].bad;
        BW_TRY(open_image(fs, map, options, i, &set->images[i]));
        has_disks |= set->images[i].disk != NULL;
    }
    if (fs->tables)
        return visit_partition_tables(fs, set);
    if (!has_disks)
        return NULL;
    BW_TRY(bw_disks_use(fs, map, set, options->partition));
    BW_TRY(bw_place_patches(fs->graph, map));
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].partition)
            BW_TRY(open_image(fs, map, options, i, &set->images[i]));
    return NULL;
}

struct bw_error *bw_images_open(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_image_set *set)
{
    struct bw_stack stack = {0};
    struct bw_fs_options inner = *options;
    struct bw_error *error = fs->tables ? NULL : bw_stack_build(fs, map, options, &stack);
    if (stack.used_partition)
        inner.partition = NULL;
    if (!error)
        error = bw_place_patches(fs->graph, map);
    if (!error)
        error = open_images(fs, map, &inner, &stack, set);
    bw_stack_free(&stack);
    return error;
}

/* Finds the offset of a superblock copy. */
static struct bw_error *find_copy(const struct bw_fs *fs, const struct bw_image *image,
                                  unsigned copy, uint64_t *offset)
{
    struct copies copies;
    if (!image->storage)
        return bw_error_create(BW_ERROR_NOT_FOUND, "%s is not part of the file system",
                               image->name);
    bool zoned = !image->bad && (image->superblock.incompat_flags & BW_INCOMPAT_ZONED);
    if (!zoned || !find_logs(fs, image, (int)copy, &image->superblock, &copies))
        copies = find_copies(image, (int)copy);
    *offset = copies.offsets[copy];
    return copies.exist[copy]
               ? NULL
               : bw_error_create(BW_ERROR_NOT_FOUND, "%s is too small for superblock copy %u",
                                 image->name, copy);
}

struct bw_error *bw_image_read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                    unsigned copy, struct bw_superblock *superblock,
                                    uint64_t *offset)
{
    BW_TRY(find_copy(fs, image, copy, offset));
    return read_copy(fs, image, copy, *offset, superblock);
}

struct bw_error *bw_image_copy_bytes(const struct bw_fs *fs, const struct bw_image *image,
                                     unsigned copy, uint8_t bytes[BW_SUPERBLOCK_SIZE],
                                     uint64_t *offset)
{
    const struct bw_frame frame = bw_frame_above(NULL, fs->graph->probes);
    BW_TRY(find_copy(fs, image, copy, offset));
    return read_bytes(&frame, image, *offset, bytes);
}
