/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens the images, including metadumps of btrfs-image, and selects the best superblock copy of
 * each: the newest good one of the file system of the first good one. If none is good at its usual
 * offset, the image may be of a zoned device, whose copies are logs (superblock_log.c); or a single
 * bit of a copy may be flipped; or the image may be a disk, whose partitions replace it (disk.c).
 * Otherwise, the image is identified, so that its error names what it is.
 *
 * Copies that are not used are reported as warnings if there is a better one. Without a good one,
 * they become the error of the image, which other images of the file system may make unimportant:
 * match.c decides.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/block_device.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/zeros.h"
#include "fs/disk.h"
#include "fs/image.h"
#include "fs/opening.h"
#include "graph/identify.h"
#include "ondisk/bit_flip.h"
#include "ondisk/foreign.h"
#include "ondisk/superblock.h"

#define METADUMP_TYPE "layout/metadump"

/* Selecting superblock copies. */

static void free_image(struct bw_image *image)
{
    bw_error_free(image->bad);
    free(image->path);
    free(image->name);
    free(image->container);
    free(image->content);
    bw_disk_free(image->disk);
}

void bw_images_free(struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free_image(&set->images[i]);
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

struct bw_error *bw_read_super(const struct bw_frame *frame, struct bw_xlator *storage,
                               uint64_t offset, void *block)
{
    struct bw_request request = {
        .kind = BW_REQUEST_SUPER, .length = BW_SUPERBLOCK_SIZE, .address = offset, .buffer = block};
    bw_wind(frame, storage, &request, 1);
    return request.error;
}

bool bw_try_read_super(struct bw_xlator *storage, uint64_t offset, void *block)
{
    const uint64_t size = bw_xlator_size(storage);
    if (size < BW_SUPERBLOCK_SIZE || offset > size - BW_SUPERBLOCK_SIZE)
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_read_super(NULL, storage, offset, block);
    return !error;
}

bool bw_has_superblock(struct bw_xlator *storage, struct bw_disk_superblock *block)
{
    return bw_try_read_super(storage, bw_superblock_offset(0), block) &&
           bw_get64(block->magic) == BW_SUPERBLOCK_MAGIC;
}

uint32_t bw_image_find_shift(const struct bw_image *image, uint64_t offset)
{
    enum { MOST = 1 << 20, PIECE = 1 << 14, SECTOR = 512 };
    uint8_t bytes[PIECE];
    for (uint32_t shift = 0; shift < MOST && offset >= MOST; shift += PIECE) {
        if (!bw_try_read_raw(NULL, image->storage, offset - shift - PIECE, bytes, PIECE))
            continue;
        for (uint32_t back = SECTOR; back <= PIECE; back += SECTOR) {
            const struct bw_disk_superblock *super = (const void *)(bytes + PIECE - back);
            if (bw_get64(super->magic) == BW_SUPERBLOCK_MAGIC &&
                bw_get64(super->bytenr) == offset &&
                memcmp(super->fsid, image->superblock.fsid, BW_UUID_SIZE) == 0)
                return shift + back;
        }
    }
    return 0;
}

static struct bw_error *read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                  unsigned copy, uint64_t offset, struct bw_superblock *superblock)
{
    struct bw_probes *probes = fs->graph->probes;
    const struct bw_frame frame = bw_frame_above(NULL, probes);
    uint64_t start = BW_PROBE_START(probes, super__read);
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_error *error = bw_read_super(&frame, image->storage, offset, bytes);
    if (!error)
        error = bw_superblock_decode(bytes, bw_superblock_offset(copy), superblock);
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

static struct bw_error *not_chosen(const struct bw_superblock *loser,
                                   const struct bw_superblock *winner)
{
    if (memcmp(loser->fsid, winner->fsid, BW_UUID_SIZE) != 0)
        return bw_error_create(BW_ERROR_CORRUPT, "it belongs to another file system");
    return bw_error_create(BW_ERROR_CORRUPT,
                           "it has generation %" PRIu64 ", another copy has %" PRIu64,
                           loser->generation, winner->generation);
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
static bool find_logs(const struct bw_image *image, int wanted, const struct bw_superblock *known,
                      struct copies *copies)
{
    *copies = (struct copies){.exist = {false}};
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        const struct bw_superblock_log log = {image->storage, copy, known};
        struct bw_superblock_entry entry;
        bool exists = bw_superblock_log_find(&log, &entry);
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
        if (!copies->rejected[copy] && !bw_is_wanted(fs, &candidate) && !bw_is_seed(&candidate)) {
            char fsid[37];
            bw_uuid_text(candidate.fsid, fsid);
            copies->rejected[copy] =
                bw_error_create(BW_ERROR_NOT_BTRFS, "it belongs to the file system %s", fsid);
        }
        if (is_unrestored(image, best, copies->rejected[copy], &candidate)) {
            bw_error_free(BW_TAKE(copies->rejected[copy]));
            continue;
        }
        if (copies->rejected[copy])
            continue;

        /* If two good copies differ, the worse one is rejected. */
        const struct bw_superblock *chosen = &image->superblock;
        const bool is_same = best >= 0 && memcmp(candidate.fsid, chosen->fsid, BW_UUID_SIZE) == 0;
        if (best < 0 || (is_same && candidate.generation > chosen->generation)) {
            if (best >= 0)
                copies->rejected[best] = not_chosen(chosen, &candidate);
            image->superblock = candidate;
            image->copy = copy;
            best = (int)copy;
        } else if (!is_same || candidate.generation < chosen->generation) {
            copies->rejected[copy] = not_chosen(&candidate, chosen);
        }
    }
    return best;
}

/* Selects the best copy after its only flipped bit is corrected; used if no copy is good. Returns
 * its number; -1 if more is wrong than one bit of each. */
static int choose_corrected(struct bw_fs *fs, struct bw_image *image, struct copies *copies)
{
    struct bw_bit_flip flip = {0};
    int best = -1;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
        uint8_t bytes[BW_SUPERBLOCK_SIZE];
        struct bw_superblock candidate;
        struct bw_bit_flip found;
        if (!copies->exist[copy] || !copies->rejected[copy])
            continue;
        BW_AUTO_ERROR struct bw_error *unread =
            bw_read_super(NULL, image->storage, copies->offsets[copy], bytes);
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

/* Identifies contents other than a btrfs. */
static enum bw_identity identify_image(const struct bw_image *image, struct bw_buffer *name)
{
    return bw_identify(image->storage, 0, bw_xlator_size(image->storage), name);
}

/* Reads the partition table of an image that does not begin with a btrfs; of any image if a
 * partition was selected. */
static struct bw_error *look_for_disk(const struct bw_fs *fs, struct bw_image *image,
                                      bool is_wanted)
{
    struct bw_disk_superblock block;
    if (fs->lists_devices || image->partition ||
        (!is_wanted && bw_has_superblock(image->storage, &block)))
        return NULL;
    return bw_disk_open(image, &image->disk);
}

/* A btrfs on the whole disk may be older than the partition table in front of it, or the table may
 * be older than the btrfs. If a partition contains a btrfs, too, the user has to choose; if it
 * contains something else, that is reported. */
static struct bw_error *look_for_rivals(struct bw_fs *fs, struct bw_image *image)
{
    char whole[37];
    BW_TRY(bw_disk_open(image, &image->disk));
    const struct bw_partition_info *rival = bw_disk_find_btrfs(image->disk);
    if (rival && fs->tables) /* the partitions are only listed */
        return NULL;
    bw_uuid_text(image->superblock.fsid, whole);
    struct bw_error *error = NULL;
    if (rival && fs->lists_devices)
        bw_fs_report(
            fs, BW_WARNING,
            bw_error_advise(bw_error_create(BW_ERROR_AMBIGUOUS,
                                            "%s: partition %u contains another btrfs (fsid %s)",
                                            image->name, rival->number, rival->content_uuid),
                            "`partition %u` reads it", rival->number));
    else if (rival)
        error = bw_error_advise(
            bw_error_create(BW_ERROR_AMBIGUOUS,
                            "%s: a btrfs on the whole disk (fsid %s, generation %" PRIu64
                            ") and one in partition %u (fsid %s): one of them may be older",
                            image->name, whole, image->superblock.generation, rival->number,
                            rival->content_uuid),
            "choose one with `fsid %s` or `partition %u`", whole, rival->number);
    if (error)
        error = bw_error_about(error, image->path);
    for (size_t i = 0; !rival && image->disk && i < image->disk->table.count; i++) {
        const struct bw_partition_info *partition = &image->disk->table.partitions[i];
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        if (partition->extended || !partition->room ||
            bw_identify(image->storage, partition->offset, partition->room, &name) != BW_FOREIGN)
            continue;
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                          "%s is a disk whose partition %u is %.*s; but the btrfs on the whole "
                          "disk is read, perhaps from before",
                          image->name, partition->number, (int)name.length, name.data);
        break;
    }
    bw_disk_free(BW_TAKE(image->disk));
    return error;
}

/* Reports another file system that was written over the btrfs. */
static void report_overwritten(struct bw_fs *fs, const struct bw_image *image)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    if (identify_image(image, &name) == BW_FOREIGN)
        bw_fs_report_text(
            fs, BW_WARNING, BW_ERROR_CORRUPT,
            "%s: it is %.*s; but an older btrfs is read, whose superblock copy %u still exists",
            image->name, (int)name.length, name.data, image->copy);
}

struct bw_error *bw_images_report_overwritten(struct bw_fs *fs, const struct bw_image_set *set)
{
    BW_AUTO_FREE uint8_t *head = malloc(BW_STRIPE_LENGTH);
    if (!head)
        return bw_error_no_memory();
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        struct bw_disk *disk = NULL;
        if (image->bad || image->copy != 0 || !image->storage)
            continue;
        /* The bytes in front of the superblock, in which btrfs writes nothing. */
        if (!bw_try_read_raw(NULL, image->storage, 0, head, BW_STRIPE_LENGTH) ||
            bw_is_zeros(head, BW_STRIPE_LENGTH))
            continue;
        /* A boot loader is no file system. */
        BW_TRY(bw_disk_open(image, &disk));
        if (!disk)
            report_overwritten(fs, image);
        bw_disk_free(disk);
    }
    return NULL;
}

static void free_rejected(struct copies *copies)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_error_free(copies->rejected[copy]);
}

/* Sets the error of an image without a valid superblock: what it is, and why each copy was
 * rejected. Consumes the rejections. */
static void set_error(struct bw_image *image, struct copies *copies, int wanted)
{
    if (image->disk && !image->partition) {
        free_rejected(copies);
        bw_disk_identify(image->disk);
        image->is_foreign = true;
        image->bad = bw_disk_refuse(image->disk);
        return;
    }

    BW_AUTO_BUFFER struct bw_buffer text = {0};
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
    const char *which = wanted > 0 ? " copy of that number" : "";
    if (text.length)
        image->bad = bw_error_create(code, "%.*s", (int)text.length, text.data);
    else if (copies->logs)
        image->bad = bw_error_create(code, "a zoned device without a log of a superblock%s", which);
    else
        image->bad = bw_error_create(code, "too small for a superblock%s", which);
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_error_add_cause(image->bad, copies->rejected[copy]);

    const uint64_t room = bw_xlator_size(image->storage);
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    enum bw_identity identity = BW_UNIDENTIFIED;
    if (image->bad->code == BW_ERROR_NOT_BTRFS)
        identity = identify_image(image, &name);
    image->is_foreign = identity == BW_FOREIGN || identity == BW_ZEROS;
    image->is_empty = identity == BW_EMPTY || identity == BW_ZEROS || !room;
    if (!identity)
        return;
    image->content = strndup(name.data, name.length);
    struct bw_error *error =
        bw_error_create(BW_ERROR_NOT_BTRFS, "it is %.*s", (int)name.length, name.data);
    bw_error_add_cause(error, image->bad);
    image->bad = error;
}

static struct bw_error *choose_copy(struct bw_fs *fs, struct bw_image *image, int wanted)
{
    struct copies copies = find_copies(image, wanted), logs;
    int best = choose_among(fs, image, &copies);
    const struct bw_superblock known = image->superblock;
    bool zoned = best < 0 || known.incompat_flags & BW_INCOMPAT_ZONED;
    if (zoned && find_logs(image, wanted, best < 0 ? NULL : &known, &logs)) {
        free_rejected(&copies);
        copies = logs;
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
            if (copies.exist[copy] && copies.newer_bad[copy])
                bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                                  "%s: superblock copy %u: the newest entry of its log, at %" PRIu64
                                  ", is bad: an older one is used",
                                  image->name, copy, copies.newer_bad[copy]);
        best = choose_among(fs, image, &copies);
    }
    if (best < 0)
        best = choose_corrected(fs, image, &copies);

    /* The image may be a disk. */
    struct bw_error *error = NULL;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
        if (copies.rejected[copy] && copies.rejected[copy]->code == BW_ERROR_NO_MEMORY)
            error = bw_error_no_memory(); /* the copy may be good */
    if (!error && best != 0)
        error = look_for_disk(fs, image, false);
    else if (!error && image->has_mbr && !image->partition && !fs->has_wanted_fsid)
        error = look_for_rivals(fs, image);
    if (image->disk && !image->partition && fs->has_wanted_fsid &&
        !bw_disk_has_wanted(fs, image->disk))
        bw_disk_free(BW_TAKE(image->disk)); /* it may have been there before the partitions */

    /* The rejected copies: warnings if there is a better copy, otherwise the image's error. */
    if (error || (image->disk && image->disk->has_btrfs && !image->partition)) {
        free_rejected(&copies);
    } else if (best < 0) {
        set_error(image, &copies, wanted);
    } else {
        if (best > 0)
            report_overwritten(fs, image);
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
            struct bw_error *rejected = copies.rejected[copy];
            if (!rejected)
                continue;
            const uint32_t shift = rejected->code == BW_ERROR_NOT_BTRFS
                                       ? bw_image_find_shift(image, copies.offsets[copy])
                                       : 0;
            if (shift)
                rejected = bw_error_create(BW_ERROR_CORRUPT, "%s" BW_IMAGE_SHIFTED,
                                           copies.rejected[copy]->message, shift);
            rejected->code = BW_ERROR_CORRUPT;
            bw_error_free(shift ? copies.rejected[copy] : NULL);
            bw_fs_report(fs, BW_WARNING,
                         bw_error_prefix(rejected, "%s: superblock copy %u at %" PRIu64 " rejected",
                                         image->name, copy, copies.offsets[copy]));
        }
    }
    return error;
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

/* Opens an image: reads its superblock, or its partition table if it is a disk with a btrfs. */
static struct bw_error *open_image(struct bw_fs *fs, struct bw_xlator *map,
                                   const struct bw_fs_options *options, size_t index,
                                   struct bw_image *image)
{
    image->storage = bw_xlator_child(map, index);
    image->index = index;
    /* Perhaps a metadump, which its layer already presents as a device. */
    const struct bw_xlator *layer = image->storage;
    while (strcmp(bw_xlator_type(layer), METADUMP_TYPE) != 0 && bw_xlator_child_count(layer))
        layer = bw_xlator_child(layer, 0);
    image->is_dump = bw_xlator_child_count(layer);
    BW_TRY(name_image(image));
    if (image->has_failed)
        return NULL;
    BW_PROBE(fs->graph->probes, image__open, image,
             &(struct bw_image_event){image->path, bw_xlator_size(image->storage), index});

    /* The magic bytes of a send stream decide before all others, because the data in a stream may
     * resemble a superblock or a partition table. */
    enum { SECTOR = 512 };
    uint8_t bytes[SECTOR] = {0};
    const uint64_t room = bw_xlator_size(image->storage);
    const bool is_read =
        bw_try_read_raw(NULL, image->storage, 0, bytes, room < SECTOR ? (uint32_t)room : SECTOR);
    image->is_stream = is_read && memcmp(bytes, BW_STREAM_MAGIC, sizeof BW_STREAM_MAGIC) == 0;
    image->has_mbr = is_read && bytes[SECTOR - 2] == 0x55 && bytes[SECTOR - 1] == 0xaa;
    if (image->is_stream) {
        image->is_foreign = true;
        image->bad = bw_error_create(BW_ERROR_NOT_BTRFS, "it is a send stream");
        image->content = strdup("a send stream, which can be listed and extracted");
        return image->content ? NULL : bw_error_no_memory();
    }

    int wanted = -1; /* the number of the requested copy; -1: the best one */
    if (options->superblock_copy == BW_SUPERBLOCK_COPY_0)
        wanted = 0;
    else if (options->superblock_copy > 0)
        wanted = options->superblock_copy;

    /* So may a chunk in the changes of a dm-snapshot. */
    static const char snapshot[] = {'S', 'n', 'A', 'p'};
    if (wanted < 0 && is_read && memcmp(bytes, snapshot, sizeof snapshot) == 0) {
        const struct bw_foreign *changes = bw_foreign_by_type("DM_snapshot_cow");
        image->is_foreign = true;
        if (asprintf(&image->content, "%s: %s", changes->name, changes->advice) < 0) {
            image->content = NULL;
            return bw_error_no_memory();
        }
        image->bad = bw_error_create(BW_ERROR_NOT_BTRFS, "it is %s", image->content);
        return NULL;
    }
    if (options->partition)
        BW_TRY(look_for_disk(fs, image, true));
    if (!image->disk || image->partition)
        BW_TRY(choose_copy(fs, image, wanted));
    if (image->bad || (image->disk && !image->partition))
        return NULL;

    /* A truncated image may still contain everything in use. But it may also be in another format
     * whose data happens to contain the superblock at the right offset. */
    const uint64_t size = bw_xlator_size(image->storage);
    const uint64_t total = image->superblock.device.total_bytes;
    if (!image->is_dump && size < total) {
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        const char *perhaps = identify_image(image, &name) ? "; perhaps it is " : "";
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                          "%s is cut off: it has %" PRIu64 " of %" PRIu64 " bytes%s%.*s",
                          image->name, size, total, perhaps, (int)name.length,
                          name.data ? name.data : "");
    }
    /* Blocks of a mounted file system may change while they are read. */
    BW_AUTO_FREE char *point = bw_mount_point(image->path, image->offset + options->offset);
    if (point)
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_USAGE,
                          "%s is mounted at %s: it may change while it is read", image->name,
                          point);
    return NULL;
}

/* Keeps only the images that bw_fs_options.devices names. */
static struct bw_error *keep_devices(struct bw_fs *fs, struct bw_xlator *map,
                                     const struct bw_fs_options *options, struct bw_image_set *set)
{
    for (size_t i = 0; i < options->device_count; i++) {
        size_t found = 0;
        while (found < set->count && strcmp(set->images[found].name, options->devices[i]) != 0)
            found++;
        if (found == set->count)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %s",
                                   options->devices[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image image = set->images[i];
        bool is_named = false;
        for (size_t k = 0; k < options->device_count; k++)
            is_named |= strcmp(image.name, options->devices[k]) == 0;
        if (is_named) {
            set->images[kept++] = image;
            continue;
        }
        bw_layer_remove_child(map, bw_child_number(map, image.storage));
        free_image(&image);
    }
    set->count = kept;
    bw_graph_prune(fs->graph);
    return NULL;
}

struct bw_error *bw_images_open(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_image_set *set)
{
    /* The devices in containers. A partition that selects one is no partition of a btrfs. */
    BW_SCOPED(bw_stack) struct bw_stack stack = {0};
    struct bw_fs_options inner = *options;
    if (!fs->tables)
        BW_TRY(bw_stack_build(fs, map, options, &stack));
    if (stack.used_partition)
        inner.partition = NULL;
    BW_TRY(bw_place_patches(fs->graph, map));

    /* The images, which may be disks. */
    bool has_disks = inner.partition;
    const size_t count = bw_xlator_child_count(map);
    set->images = calloc(count, sizeof *set->images);
    if (!set->images)
        return bw_error_no_memory();
    set->count = count;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        image->bad = bw_stack_take_failure(&stack, bw_xlator_child(map, i));
        image->has_failed = image->is_foreign = image->bad;
        BW_TRY(open_image(fs, map, &inner, i, image));
        has_disks |= image->disk != NULL;
    }
    if (fs->lists_devices)
        return options->device_count ? keep_devices(fs, map, options, set) : NULL;
    if (fs->tables) {
        for (size_t i = 0; i < set->count; i++) {
            struct bw_disk *disk = set->images[i].disk;
            if (!disk)
                continue;
            bw_disk_identify(disk);
            BW_TRY(fs->tables->visit(fs->tables->context, &disk->table));
        }
        return NULL;
    }
    if (!has_disks)
        return NULL;

    /* The partitions that replace the disks. */
    BW_TRY(bw_disks_use(fs, map, set, inner.partition));
    BW_TRY(bw_place_patches(fs->graph, map));
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].partition)
            BW_TRY(open_image(fs, map, &inner, i, &set->images[i]));
    return NULL;
}

/* Finds the offset of a superblock copy. */
static struct bw_error *find_copy(const struct bw_image *image, unsigned copy, uint64_t *offset)
{
    struct copies copies;
    if (!image->storage)
        return bw_error_create(BW_ERROR_NOT_FOUND, "%s is not part of the file system",
                               image->name);
    bool zoned = !image->bad && (image->superblock.incompat_flags & BW_INCOMPAT_ZONED);
    if (!zoned || !find_logs(image, (int)copy, &image->superblock, &copies))
        copies = find_copies(image, (int)copy);
    *offset = copies.offsets[copy];
    if (copies.exist[copy])
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "%s is too small for superblock copy %u",
                           image->name, copy);
}

struct bw_error *bw_image_read_copy(const struct bw_fs *fs, const struct bw_image *image,
                                    unsigned copy, struct bw_superblock *superblock,
                                    uint64_t *offset)
{
    BW_TRY(find_copy(image, copy, offset));
    return read_copy(fs, image, copy, *offset, superblock);
}

struct bw_error *bw_image_copy_bytes(const struct bw_image *image, unsigned copy,
                                     uint8_t bytes[BW_SUPERBLOCK_SIZE], uint64_t *offset)
{
    BW_TRY(find_copy(image, copy, offset));
    return bw_read_super(NULL, image->storage, *offset, bytes);
}
