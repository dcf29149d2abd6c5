/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matches the images: selects the file system, and reports the images that are not part of it. The
 * first image with a superblock decides, or the file system that sprouted from it. Each image gets
 * its role by the ids in its superblock; then the newest superblock of a device is the one of the
 * file system, unless devices have diverged (sides.c). Of several images of one device, only the
 * newest is read, or, with --alternatives, all in the order of their age.
 *
 * An image whose superblock does not show that it belongs to the file system may still be a device
 * of it, because it lost its superblock or was formatted again. It stays unclaimed: rescue/ looks
 * at its tree blocks, and bw_images_refuse() reports it if they do not help.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "fs/image.h"

static bool same_uuid(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, BW_UUID_SIZE) == 0;
}

/* If a change of the fsid was interrupted, some devices have the old fsid and some the new one. */
bool bw_same_file_system(const struct bw_superblock *a, const struct bw_superblock *b)
{
    const uint64_t changing = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2;
    if (!bw_superblock_has_block_id(a, b->metadata_uuid) &&
        !bw_superblock_has_block_id(b, a->metadata_uuid))
        return false;
    return same_uuid(a->fsid, b->fsid) || ((a->flags | b->flags) & changing);
}

bool bw_is_wanted(const struct bw_fs *fs, const struct bw_superblock *superblock)
{
    return !fs->has_wanted_fsid || same_uuid(superblock->fsid, fs->wanted_fsid) ||
           same_uuid(superblock->metadata_uuid, fs->wanted_fsid);
}

bool bw_is_seed(const struct bw_superblock *superblock)
{
    return superblock->flags & BW_SUPER_FLAG_SEEDING;
}

static void ignore_image(struct bw_fs *fs, struct bw_image *image, struct bw_error *why)
{
    image->role = BW_IMAGE_UNUSED;
    /* a clone is not needed, so it does not affect the exit status */
    fs->status.unused_images += !image->is_clone;
    bw_fs_report(fs, BW_WARNING, bw_error_prefix(why, "%s is not used", image->name));
}

/* Whether `candidate` may have sprouted from the seed `chosen`: then it has several devices,
 * including the seed, and a higher generation. */
static bool may_sprout_from(const struct bw_superblock *candidate,
                            const struct bw_superblock *chosen)
{
    return bw_is_seed(chosen) && !bw_same_file_system(candidate, chosen) &&
           candidate->device_count > 1 &&
           (!bw_is_seed(candidate) || candidate->generation > chosen->generation);
}

/* Reports an image without a superblock. */
static void report_unusable(struct bw_fs *fs, struct bw_image *image)
{
    struct bw_error *bad = BW_TAKE(image->bad);
    bool is_disk = image->disk && !image->partition;
    image->is_unclaimed = false;
    const bool lacks_superblock = !is_disk && !image->has_failed && bad->code != BW_ERROR_USAGE;
    if (lacks_superblock)
        bad = bw_error_prefix(bad, "no superblock");
    if (lacks_superblock && !image->is_foreign && bw_is_seed(&fs->superblock) && !fs->scan &&
        fs->reopen)
        bad = bw_error_advise(bad, "if it sprouted from this seed, `scan` finds its file system");
    ignore_image(fs, image, bad);
}

void bw_images_refuse(struct bw_fs *fs)
{
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].is_unclaimed)
            report_unusable(fs, &fs->images[i]);
}

static void set_role(struct bw_fs *fs, struct bw_image *image, const struct bw_superblock *chosen)
{
    image->is_unclaimed = image->bad && fs->reopen && (!image->disk || image->partition) &&
                          !image->has_failed && chosen->device_count > 1;
    if (image->is_unclaimed) {
        image->role = BW_IMAGE_UNUSED;
    } else if (image->bad && fs->alternatives && chosen->device_count == 1) {
        image->role = BW_IMAGE_UNUSED; /* see find_alternatives() */
    } else if (image->bad) {
        report_unusable(fs, image);
    } else if (bw_same_file_system(&image->superblock, chosen)) {
        image->role = BW_IMAGE_DEVICE;
    } else if (bw_is_seed(&image->superblock)) {
        image->role = BW_IMAGE_SEED;
    } else {
        char given[37], wanted[37];
        bw_uuid_text(image->superblock.fsid, given);
        bw_uuid_text(chosen->fsid, wanted);
        struct bw_error *other = bw_error_create(
            BW_ERROR_USAGE, "it belongs to another file system (fsid %s, not %s)", given, wanted);
        /* It may be a device that was formatted again. */
        image->is_unclaimed = fs->reopen && !fs->alternatives && chosen->device_count > 1;
        if (image->is_unclaimed)
            image->bad = other;
        else
            ignore_image(fs, image, other);
    }
}

static bool is_same_device(const struct bw_image *a, const struct bw_image *b)
{
    return a->role == b->role && a->superblock.device.devid == b->superblock.device.devid &&
           same_uuid(a->superblock.device.uuid, b->superblock.device.uuid);
}

/* An fsync writes the log without a new generation. */
static bool is_newer(const struct bw_superblock *candidate, const struct bw_superblock *chosen)
{
    if (candidate->generation != chosen->generation)
        return candidate->generation > chosen->generation;
    return candidate->log_root && !chosen->log_root;
}

/* Of two images of the same device, the newer one is used, or else the first. */
static void drop_duplicates(struct bw_fs *fs, struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        for (size_t j = i + 1; j < set->count && set->images[i].role != BW_IMAGE_UNUSED; j++) {
            struct bw_image *kept = &set->images[i], *dropped = &set->images[j];
            if (!is_same_device(kept, dropped))
                continue;
            if (is_newer(&dropped->superblock, &kept->superblock)) {
                kept = &set->images[j];
                dropped = &set->images[i];
            }
            /* nothing is missing, so this does not affect the exit status */
            dropped->role = BW_IMAGE_UNUSED;
            bw_fs_report(
                fs, BW_WARNING,
                bw_error_advise(
                    bw_error_create(BW_ERROR_USAGE,
                                    "%s is not used: duplicate of device %" PRIu64 ", %s",
                                    dropped->name, dropped->superblock.device.devid, kept->name),
                    "`alternatives` reads both"));
        }
}

/* Numbers the images of a device: first those that are as new as the newest one, then those without
 * a superblock, then the older ones. Only the newest one stays a device. An image without a
 * superblock can only be another one of the only device. It may have newer files, which this walk
 * does not find. */
static void number_images(struct bw_fs *fs, struct bw_image_set *set, struct bw_image *device)
{
    const bool is_only = fs->superblock.device_count == 1;
    enum { AS_NEW, UNKNOWN, OLDER, RANKS };
    unsigned count = 1;
    struct bw_image *newest = device;
    for (size_t i = 0; i < set->count; i++)
        if (is_same_device(&set->images[i], device) &&
            is_newer(&set->images[i].superblock, &newest->superblock))
            newest = &set->images[i];
    newest->alternative = count;
    for (unsigned rank = AS_NEW; rank < RANKS; rank++) {
        for (size_t i = 0; i < set->count; i++) {
            struct bw_image *image = &set->images[i];
            if (image->alternative)
                continue;
            if (rank == UNKNOWN) {
                const bool is_disk = image->disk && !image->partition;
                if (!image->bad || !is_only || is_disk || image->has_failed)
                    continue;
                bw_fs_report(
                    fs, BW_DAMAGE,
                    bw_error_advise(
                        bw_error_create(
                            image->bad->code,
                            "%s: no superblock, so its generation is unknown: generation "
                            "%" PRIu64 " of %s is shown: %s",
                            image->name, newest->superblock.generation, newest->name,
                            image->bad->message),
                        "if the image without a superblock is newer, open it alone, with `scan`"));
                bw_error_free(BW_TAKE(image->bad));
                image->superblock = newest->superblock;
                image->is_unclaimed = false;
            } else if (image->bad || !is_same_device(image, newest) ||
                       (rank == AS_NEW && is_newer(&newest->superblock, &image->superblock))) {
                continue;
            }
            image->role = BW_IMAGE_UNUSED;
            image->alternative = ++count;
            newest->alternatives_as_new += rank != OLDER;
            if (rank == OLDER)
                bw_fs_report_text(fs, BW_WARNING, BW_ERROR_USAGE,
                                  "%s is older than %s (generation %" PRIu64 ", not %" PRIu64
                                  "): data without checksums are not read from it",
                                  image->name, newest->name, image->superblock.generation,
                                  newest->superblock.generation);
        }
    }
    newest->alternatives_as_new++;
    if (count == 1)
        newest->alternative = 0;
}

bool bw_image_is_stale(const struct bw_fs *fs, const struct bw_image *image)
{
    return image->role == BW_IMAGE_DEVICE &&
           image->superblock.generation != fs->superblock.generation;
}

/* The error if no image is usable. If an image has the magic number, its error explains more. */
static struct bw_error *nothing_usable(const struct bw_fs *fs, struct bw_image_set *set)
{
    struct bw_image *image = &set->images[0];
    for (size_t i = 1;
         i < set->count && !image->has_failed && image->bad->code == BW_ERROR_NOT_BTRFS; i++)
        if (set->images[i].has_failed || set->images[i].bad->code != BW_ERROR_NOT_BTRFS)
            image = &set->images[i];
    if (image->has_failed)
        return bw_error_about(bw_error_prefix(BW_TAKE(image->bad), "%s", image->name), image->path);
    if (fs->has_wanted_fsid) {
        char wanted[37];
        bw_uuid_text(fs->wanted_fsid, wanted);
        struct bw_error *none = bw_error_create(
            BW_ERROR_NOT_BTRFS, "%s: no superblock and no chunk of the file system %s was found",
            image->name, wanted);
        none = bw_error_advise(none, "without `fsid`, `scan` lists those whose blocks are there");
        bw_error_add_cause(none, BW_TAKE(image->bad));
        return none;
    }
    bool no_magic = image->bad->code == BW_ERROR_NOT_BTRFS;
    struct bw_error *error = bw_error_prefix(
        BW_TAKE(image->bad), no_magic ? "%s is not a btrfs file system" : "%s: no good superblock",
        image->name);
    if (error->code != BW_ERROR_UNSUPPORTED && error->code != BW_ERROR_NO_MEMORY)
        error->code = BW_ERROR_NOT_BTRFS;
    error = bw_error_about(error, image->path);
    if (!fs->reopen || fs->scan || image->is_foreign || error->code != BW_ERROR_NOT_BTRFS ||
        bw_xlator_size(image->storage) <= bw_superblock_offset(0) + BW_SUPERBLOCK_SIZE)
        return error;
    /* Perhaps only superblocks are lost. */
    return bw_error_advise(error, "try `scan`, which searches for file systems");
}

struct bw_error *bw_images_match(struct bw_fs *fs, struct bw_image_set *set)
{
    /* The first image of the wanted file system, unless it is a seed and a later one may have
     * sprouted from it. */
    const struct bw_superblock *chosen = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_superblock *candidate = &set->images[i].superblock;
        if (set->images[i].bad || !bw_is_wanted(fs, candidate))
            continue;
        if (!chosen || may_sprout_from(candidate, chosen))
            chosen = candidate;
    }
    if (!chosen)
        return nothing_usable(fs, set);

    /* The roles, and the newest superblock of a device. */
    fs->superblock = *chosen;
    for (size_t i = 0; i < set->count; i++)
        set_role(fs, &set->images[i], chosen);
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].role == BW_IMAGE_DEVICE &&
            is_newer(&set->images[i].superblock, &fs->superblock))
            fs->superblock = set->images[i].superblock;

    /* One image for each device, and one history for all devices. */
    for (size_t i = 0; fs->alternatives && i < set->count; i++)
        if (set->images[i].role != BW_IMAGE_UNUSED && !set->images[i].alternative)
            number_images(fs, set, &set->images[i]);
    /* images of no device: they could not be opened, or are disks without a btrfs */
    for (size_t i = 0; fs->alternatives && i < set->count; i++)
        if (set->images[i].bad && !set->images[i].is_unclaimed)
            report_unusable(fs, &set->images[i]);
    if (!fs->alternatives)
        drop_duplicates(fs, set);
    BW_TRY(bw_sides_choose(fs, set));

    /* Devices that missed writes. */
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        if (!bw_image_is_stale(fs, image))
            continue;
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_CORRUPT,
                          "%s is stale: device %" PRIu64 " has generation %" PRIu64
                          ", the newest is %" PRIu64,
                          image->name, image->superblock.device.devid, image->superblock.generation,
                          fs->superblock.generation);
    }

    /* A backup root that is much newer than the superblock. A commit writes the generation and a
     * backup root together; the backup may be of the next transaction, if that is running already.
     * A backup that is even newer is from a later superblock. */
    const struct bw_superblock *super = &fs->superblock;
    uint64_t newest = 0;
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++)
        if (super->backup_roots[i].tree_root.bytenr &&
            super->backup_roots[i].tree_root.generation > newest)
            newest = super->backup_roots[i].tree_root.generation;
    if (newest > super->generation && newest - super->generation > 1 && !fs->choice.generation &&
        !fs->choice.tree_root)
        bw_fs_report(fs, BW_WARNING,
                     bw_error_advise(bw_error_create(BW_ERROR_CORRUPT,
                                                     "the superblock has generation %" PRIu64
                                                     ", but a backup root is newer",
                                                     super->generation),
                                     "`generation %" PRIu64 "` reads it", newest));
    return NULL;
}
