/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks. The best one of each device is the one with which the file system was opened, or one
 * made from tree blocks; every copy that differs from it is replaced. Fields that contradict
 * verified trees are changed in all copies of all devices at once.
 *
 * A kernel reads copy 0 only; the others have the same contents but for their own address, the
 * checksum, and the log tree, which fsync(2) writes to copy 0.
 */
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btree/block.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/inode.h"
#include "ondisk/bit_flip.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "repair/repair.h"

/* Fields. */

static void set_totals(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    super->total_bytes = bw_put64(repair->current.total_bytes);
    super->device_count = bw_put64(repair->current.devices.count);
}

void bw_repair_set_used(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    super->bytes_used = bw_put64(repair->current.bytes_used);
}

void bw_repair_invalidate_free_space(const struct bw_repair *repair,
                                     struct bw_disk_superblock *super)
{
    (void)repair;
    super->compat_ro_flags =
        bw_put64(bw_get64(super->compat_ro_flags) & ~BW_COMPAT_RO_FREE_SPACE_TREE_VALID);
}

void bw_repair_invalidate_space_cache(const struct bw_repair *repair,
                                      struct bw_disk_superblock *super)
{
    (void)repair;
    if (bw_get64(super->cache_generation) == bw_get64(super->generation))
        super->cache_generation = bw_put64(bw_get64(super->generation) - 1);
}

void bw_repair_rescan_uuids(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    (void)repair;
    super->uuid_tree_generation = bw_put64(0);
}

static void clear_log(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    (void)repair;
    super->log_root = bw_put64(0);
    super->log_root_level = 0;
}

static void set_device(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    const struct bw_disk_device_item *item =
        bw_repair_device_item(repair, bw_get64(super->device.devid));
    if (item && bw_bits_different(item->uuid, super->device.uuid, BW_UUID_SIZE) <= 1)
        super->device = *item;
}

void bw_repair_set_sizes(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    set_device(repair, super);
    set_totals(repair, super);
}

static void set_system_chunks(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    super->system_chunk_array_size = bw_put32(repair->current.system_chunks_size);
    memcpy(super->system_chunk_array, repair->current.system_chunks,
           sizeof super->system_chunk_array);
}

enum { ERROR_FLAG = 1 << 2 }; /* BTRFS_SUPER_FLAG_ERROR */

static void clear_error(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    (void)repair;
    super->flags = bw_put64(bw_get64(super->flags) & ~(uint64_t)ERROR_FLAG);
}

/* The backup root of the current generation; NULL: none. With a newer one, the generation of the
 * superblock is wrong, not the address. */
static const struct bw_backup_root *current_backup(const struct bw_repair *repair)
{
    const struct bw_superblock *superblock = &repair->fs->superblock;
    const struct bw_backup_root *found = NULL;
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &superblock->backup_roots[i];
        if (backup->tree_root.generation > superblock->generation)
            return NULL;
        if (backup->tree_root.generation == superblock->generation)
            found = backup;
    }
    return found;
}

static void set_root(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    const struct bw_root_pointer *root = &current_backup(repair)->tree_root;
    super->root = bw_put64(root->bytenr);
    super->root_level = root->level;
}

static void set_chunk_root(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    const struct bw_root_pointer *root = &current_backup(repair)->chunk_root;
    super->chunk_root = bw_put64(root->bytenr);
    super->chunk_root_generation = bw_put64(root->generation);
    super->chunk_root_level = root->level;
}

struct bw_error *bw_repair_plan_roots(struct bw_repair *repair)
{
    const struct bw_backup_root *backup = current_backup(repair);
    BW_AUTO_FREE uint8_t *block = malloc(repair->fs->superblock.nodesize);
    if (!block)
        return bw_error_no_memory();
    for (size_t i = 0; i < repair->findings.count && backup && !repair->is_made; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_chunk_root = finding->tree == BW_CHUNK_TREE;
        const struct bw_tree tree = {
            .id = finding->tree, .root = is_chunk_root ? backup->chunk_root : backup->tree_root};
        if (!bw_repair_is(finding, "root-lost") || tree.root.bytenr == finding->logical)
            continue;
        const struct bw_block_pointer pointer = bw_tree_root_pointer(&tree, false);
        struct bw_error *error = bw_block_read(&repair->fs->reader, &pointer, block);
        const bool is_good = !error;
        BW_TRY(bw_error_tolerate(error));
        if (!is_good)
            continue;
        finding->planned = true;
        finding->edit = is_chunk_root ? set_chunk_root : set_root;
        BW_TRY(bw_repair_add(
            repair,
            (struct bw_repair_change){
                .class_number = BW_REPAIR_DERIVED,
                .what = is_chunk_root ? "root of the chunk tree in all superblocks"
                                      : "root of the root tree in all superblocks",
                .why = bw_repair_text("they name the lost tree block %" PRIu64, finding->logical),
                .proof = strdup("the backup root of the same generation, and its tree block"),
                .edit = finding->edit,
                .reveals = true}));
    }
    return NULL;
}

/* Findings of one of these kinds are put right by an edit of all superblocks. */
static const struct {
    const char *codes[7];
    bw_superblock_edit *edit;
    const char *what, *why, *proof, *loss;
} fields[] = {
    {{"super-devices", "super-size"},
     set_totals,
     "total_bytes and num_devices of all superblocks",
     "they contradict the device items",
     "sums of the device items in the chunk tree",
     NULL},
    {{"device-differs"},
     set_device,
     "the device item in all superblocks",
     "it contradicts the chunk tree",
     "the device item in the chunk tree",
     NULL},
    {{"system-chunk"},
     set_system_chunks,
     "the system chunks in all superblocks",
     "they contradict the chunk tree",
     "the system chunks in the chunk tree",
     NULL},
    {{"super-flags"},
     clear_error,
     "the flag of an error in all superblocks",
     "with it, a mount refuses to write",
     "the check of the repaired file system",
     NULL},
    {{"super-used"},
     bw_repair_set_used,
     "bytes_used of all superblocks",
     "it differs from the sum of the block groups",
     "the sum of the block groups in the verified extent tree",
     NULL},
    {{"free-space-missing", "free-space-differs", "free-space-count", "free-space-stray",
      "free-space-ahead", "free-space-item"},
     bw_repair_invalidate_free_space,
     "the free space tree is marked as invalid in all superblocks",
     "it differs from the extent tree",
     "the next mount empties it and builds it from the extent tree",
     NULL},
    {{"space-cache-differs"},
     bw_repair_invalidate_space_cache,
     "the space caches are marked as invalid in all superblocks",
     "one of them differs from the extent tree",
     "the next mount reads the extent tree instead, and writes them again",
     NULL},
    {{"uuid-missing"},
     bw_repair_rescan_uuids,
     "uuid_tree_generation of all superblocks",
     "uuids of subvolumes are missing from the uuid tree",
     "the next mount reads all subvolumes and adds them",
     NULL},
    {{"log-refused", "log-checksum", "log-overlap"},
     clear_log,
     "the log tree is taken out of all superblocks",
     "no mount can replay it",
     "the last commit is complete without it",
     "files that fsync(2) wrote after the last commit; their names are unknown"},
};

/* Lists the loss if the log tree is cleared: the inodes that it changes, and the paths of the first
 * ones, as far as it can be read. NULL if that is unknown, or memory runs out. */
static char *list_log(struct bw_repair *repair)
{
    enum { MOST_PATHS = 20 };
    struct bw_fs_options how = bw_repair_how(repair);
    struct bw_fs *fs = NULL;
    uint64_t count = 0;
    BW_AUTO_BUFFER struct bw_buffer paths = {0};
    how.log = BW_LOG_REPLAY;
    BW_AUTO_ERROR struct bw_error *error = repair->given->reopen(&how, &fs);
    for (const struct bw_log_inode *inode = NULL; !error && (inode = bw_log_inode_next(fs, inode));
         count++) {
        const struct bw_place place = {.subvolume = bw_subvolume_by_id(fs, inode->subvolume),
                                       .inode = inode->inode};
        BW_AUTO_FREE char *path = NULL;
        size_t length;
        if (count >= MOST_PATHS || !place.subvolume)
            continue;
        BW_AUTO_ERROR struct bw_error *nameless = bw_inode_path(fs, &place, &path, &length);
        if (nameless)
            continue;
        bw_buffer_format(&paths, "%s", paths.length ? ", " : ": ");
        bw_escape_append(&paths, path, length);
    }
    bw_fs_close(fs);
    bw_buffer_format(&paths, "%s", count > MOST_PATHS ? ", ..." : "");
    if (!count || paths.failed)
        return NULL;
    return bw_repair_text("what fsync(2) wrote to %" PRIu64 " inode%s after the last commit%.*s",
                          count, bw_plural(count), (int)paths.length, paths.data ? paths.data : "");
}

/* Whether an edit can be right. A mount cannot rebuild the free space tree of a file system with a
 * block group tree; and if the extent tree lacks an extent, a mount that rebuilds it would use the
 * space again. The flag of an error is one of several that make findings of one kind. The sum of
 * the block groups is unknown as long as one of them is wrong. If a bit of a device item or a
 * chunk is flipped, or a stripe names another device, the superblocks are right. */
static bool is_possible(const struct bw_repair *repair, bw_superblock_edit *edit)
{
    const struct bw_superblock *superblock = &repair->fs->superblock;
    const bool repeats = edit == set_device || edit == set_totals || edit == set_system_chunks;
    for (size_t i = 0; repeats && i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        if (finding->tree == BW_CHUNK_TREE &&
            (finding->flipped_block != BW_ABSENT || bw_repair_is(finding, "stripe-device")))
            return false;
    }
    if (edit == clear_error)
        return !(superblock->flags & ~(uint64_t)(1 | 1 << 1 | ERROR_FLAG));
    if (edit == bw_repair_invalidate_free_space)
        return !(superblock->compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE) &&
               !bw_repair_doubts_extents(repair);
    if (edit == bw_repair_invalidate_space_cache)
        return !bw_repair_doubts_extents(repair);
    for (size_t i = 0; edit == bw_repair_set_used && i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        if (!finding->planned && bw_repair_is(finding, "group-used"))
            return false;
    }
    return true;
}

void bw_repair_roll_back(const struct bw_repair *repair,
                         const struct bw_repair_generation *generation,
                         struct bw_disk_superblock *super)
{
    super->generation = bw_put64(generation->root.generation);
    super->root = bw_put64(generation->root.bytenr);
    super->root_level = generation->root.level;
    super->chunk_root = bw_put64(generation->chunk_root.bytenr);
    super->chunk_root_level = generation->chunk_root.level;
    super->chunk_root_generation = bw_put64(generation->chunk_root.generation);
    super->bytes_used = bw_put64(generation->bytes_used);
    super->total_bytes = bw_put64(generation->total_bytes);
    super->device_count = bw_put64(generation->devices.count);
    super->system_chunk_array_size = bw_put32(generation->system_chunks_size);
    memcpy(super->system_chunk_array, generation->system_chunks, sizeof super->system_chunk_array);
    clear_log(repair, super);
    for (size_t i = 0; i < generation->devices.count; i++)
        if (bw_get64(generation->devices.items[i].devid) == bw_get64(super->device.devid))
            super->device = generation->devices.items[i];
    if (repair->is_made) {
        super->incompat_flags =
            bw_put64(bw_get64(super->incompat_flags) | generation->incompat_flags);
        super->compat_ro_flags =
            bw_put64(bw_get64(super->compat_ro_flags) | generation->compat_ro_flags);
    }
}

/* Copies. */

/* Whether a device lacks only transactions of a change of the whole file system, as the flags of
 * such changes show: with most of them, no kernel mounts the file system. These changes write no
 * data, so none on the device are old. A kernel may clear the flag of a change of metadata_uuid,
 * but it does not change the id. */
static bool lacks_only_changes(const struct bw_superblock *newest, const struct bw_superblock *own)
{
    const uint64_t refused = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_GROUP_TREE |
                             BW_SUPER_FLAG_CHANGING_DATA_CSUM | BW_SUPER_FLAG_CHANGING_META_CSUM;
    const uint64_t set = newest->flags & ~own->flags, cleared = own->flags & ~newest->flags;
    if (own->generation >= newest->generation)
        return false;
    if (own->flags & newest->flags & refused)
        return true;
    if (own->generation + 1 != newest->generation)
        return false;
    return ((set | cleared) & refused) || (set & BW_SUPER_FLAG_CHANGING_FSID_V2) ||
           ((cleared & BW_SUPER_FLAG_CHANGING_FSID_V2) &&
            memcmp(own->fsid, newest->fsid, BW_UUID_SIZE) != 0);
}

/* Whether two copies are the same, except for the fields that differ between copies. */
static bool is_same(const struct bw_disk_superblock *best, const struct bw_disk_superblock *found,
                    unsigned copy)
{
    struct bw_disk_superblock a = *best, b = *found;
    memset(a.csum, 0, sizeof a.csum);
    memset(b.csum, 0, sizeof b.csum);
    a.bytenr = b.bytenr;
    if (copy) {
        a.log_root = b.log_root;
        a.log_root_level = b.log_root_level;
    }
    return memcmp(&a, &b, sizeof a) == 0;
}

static struct bw_error *plan_copy(struct bw_repair *repair, struct bw_repair_device *device,
                                  unsigned copy)
{
    const struct bw_image *image = device->image;
    struct bw_disk_superblock found;
    uint64_t offset = bw_superblock_offset(copy);
    struct bw_superblock superblock;
    const uint64_t size = bw_get64(device->best.device.total_bytes);
    if (offset + BW_SUPERBLOCK_SIZE >= size ||
        offset + BW_SUPERBLOCK_SIZE > bw_xlator_size(image->storage))
        return NULL;
    BW_AUTO_ERROR struct bw_error *bad =
        bw_image_copy_bytes(image, copy, (uint8_t *)&found, &offset);
    if (!bad)
        bad = bw_superblock_decode(&found, offset, &superblock);
    if (!bad && is_same(&device->best, &found, copy))
        return NULL;
    const uint64_t generation = bw_get64(device->best.generation);
    char *why;
    if (bad)
        why = bw_repair_text("superblock copy %u: %s", copy, bad->message);
    else if (superblock.generation != generation)
        why = bw_repair_text("superblock copy %u has generation %" PRIu64 ", the best one %" PRIu64,
                             copy, superblock.generation, generation);
    else
        why = bw_repair_text("superblock copy %u differs from the best one", copy);
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_flip =
            bw_repair_is(finding, "block-bit-flip") && finding->logical == BW_ABSENT;
        if ((is_flip || strncmp(finding->code->word, "super-", 6) == 0) &&
            finding->offset == offset &&
            (finding->devid == BW_ABSENT || finding->devid == image->superblock.device.devid))
            finding->planned = true;
    }

    /* Where the new bytes come from. */
    enum bw_repair_class class_number = BW_REPAIR_DERIVED;
    char *proof;
    if (device->is_late) {
        proof = strdup("superblock of the newest device, which only steps of an incomplete change "
                       "separate from the old one; they write no data");
    } else if (device->is_made) {
        proof = strdup("made from verified tree blocks");
    } else if (device->is_corrected) {
        class_number = BW_REPAIR_CHECKSUM;
        proof = bw_repair_text("copy %u, whose stored checksum fits it without a flipped bit",
                               image->copy);
    } else {
        class_number = BW_REPAIR_IDENTICAL;
        proof = bw_repair_text("copy %u of the same device, generation %" PRIu64, image->copy,
                               generation);
    }
    return bw_repair_add(repair, (struct bw_repair_change){
                                     .class_number = class_number,
                                     .logical = BW_ABSENT,
                                     .devid = image->superblock.device.devid,
                                     .offset = offset,
                                     .length = BW_SUPERBLOCK_SIZE,
                                     .what = "copy of the superblock",
                                     .why = why,
                                     .proof = proof,
                                     .image = device->image,
                                     .copy = copy,
                                 });
}

struct bw_error *bw_repair_find_superblocks(struct bw_repair *repair)
{
    struct bw_repair_devices *devices = &repair->devices;
    const enum bw_checksum_type type = repair->fs->superblock.checksum_type;
    repair->is_made = false;
    BW_TRY(bw_repair_read_generation(repair->fs, &repair->current));
    for (size_t i = 0; i < devices->count; i++) {
        struct bw_repair_device *device = &devices->items[i];
        const struct bw_image *image = device->image;
        uint8_t *bytes = (uint8_t *)&device->best;
        struct bw_bit_flip flip;
        uint64_t offset;
        device->is_late = lacks_only_changes(&repair->fs->superblock, &image->superblock);
        device->is_made = image->is_rebuilt || image->is_claimed || image->bad || device->is_late;
        repair->is_made |= image->is_rebuilt;
        if (image->is_rebuilt)
            bw_superblock_encode(&image->superblock, &device->best);
        if (device->is_made)
            continue;

        /* If no copy is good, the file system was opened with one that has a flipped bit. */
        BW_TRY(bw_image_copy_bytes(image, image->copy, bytes, &offset));
        device->is_corrected = !bw_checksum_matches_block(type, bytes, BW_SUPERBLOCK_SIZE) &&
                               bw_bit_flip_find_in_block(type, bytes, BW_SUPERBLOCK_SIZE, &flip);
        if (device->is_corrected)
            bytes[flip.byte] ^= (uint8_t)(1u << flip.bit);
    }

    /* A device without any good superblock gets the superblock of a device of the newest
     * generation, or one that was made from tree blocks, with its own device item. */
    for (size_t i = 0; i < devices->count; i++) {
        struct bw_repair_device *device = &devices->items[i];
        if (!device->is_made)
            continue;
        const uint64_t generation = repair->fs->superblock.generation;
        bool has_best = device->image->is_rebuilt;
        for (size_t k = 0; k < devices->count && !has_best; k++) {
            const struct bw_repair_device *other = &devices->items[k];
            has_best = !other->is_made && bw_get64(other->best.generation) == generation;
            if (has_best)
                device->best = other->best;
        }
        if (!has_best)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "no device has a good superblock of generation %" PRIu64,
                                   generation);
        const struct bw_disk_device_item *item =
            bw_repair_device_item(repair, device->image->superblock.device.devid);
        if (item)
            device->best.device = *item;
    }
    return NULL;
}

struct bw_error *bw_repair_plan_superblocks(struct bw_repair *repair)
{
    struct bw_repair_devices *devices = &repair->devices;
    if (repair->is_made && !repair->is_complete)
        return NULL; /* without roots, superblocks are of no use */
    for (size_t i = 0; i < devices->count; i++)
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++)
            BW_TRY(plan_copy(repair, &devices->items[i], copy));

    /* The fields with findings of their kinds. */
    for (size_t i = 0; i < sizeof fields / sizeof *fields && !repair->is_made; i++) {
        bw_superblock_edit *const edit = fields[i].edit;
        bool found = false;
        for (size_t j = 0; j < repair->findings.count; j++) {
            struct bw_repair_finding *finding = &repair->findings.items[j];

            /* If a block of a log tree is lost, no mount can replay the log, either. */
            bool fits = edit == clear_log && finding->tree == BW_TREE_LOG &&
                        bw_repair_is_about_lost(finding) && finding->flipped_block == BW_ABSENT;
            fits |= bw_repair_is_any(finding, fields[i].codes);
            if ((edit == bw_repair_rescan_uuids || edit == bw_repair_invalidate_free_space) &&
                finding->flipped_block != BW_ABSENT)
                continue; /* the bit is corrected instead */
            if (finding->planned || !fits || !is_possible(repair, edit))
                continue;
            found = finding->planned = true;
            finding->edit = edit;
        }
        if (!found)
            continue;
        char *loss = edit == clear_log ? list_log(repair) : NULL;
        if (!loss && fields[i].loss)
            loss = strdup(fields[i].loss);
        BW_TRY(bw_repair_add(
            repair, (struct bw_repair_change){
                        .class_number = fields[i].loss ? BW_REPAIR_LOSS : BW_REPAIR_DERIVED,
                        .what = fields[i].what,
                        .why = strdup(fields[i].why),
                        .proof = strdup(fields[i].proof),
                        .loss = loss,
                        .edit = edit,
                    }));
    }
    return NULL;
}

struct bw_error *bw_repair_write_superblocks(struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->devices.count; i++) {
        const struct bw_repair_device *device = &repair->devices.items[i];
        const uint64_t size = bw_xlator_size(device->image->storage);
        struct bw_disk_superblock super = device->best;
        const struct bw_repair_generation *generation = repair->trying;
        bool is_edited = false, is_chosen[BW_SUPERBLOCK_COPIES] = {false};
        for (size_t j = repair->first; j < repair->changes.count && !repair->trying; j++) {
            const struct bw_repair_change *change = &repair->changes.items[j];
            if (!change->chosen)
                continue;
            if (change->edit)
                change->edit(repair, &super);
            if (change->generation)
                generation = change->generation;
            is_edited |= change->edit != NULL;
            is_chosen[change->copy] |= change->image == device->image;
        }
        if (generation) { /* edits are about the current one */
            super = device->best;
            bw_repair_roll_back(repair, generation, &super);
            is_edited = true;
        }
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES; copy++) {
            const uint64_t offset = bw_superblock_offset(copy);
            if (offset + BW_SUPERBLOCK_SIZE > size ||
                offset + BW_SUPERBLOCK_SIZE >= bw_get64(super.device.total_bytes) ||
                !(is_edited || is_chosen[copy]))
                continue;
            super.bytenr = bw_put64(offset);
            memset(super.csum, 0, sizeof super.csum);
            bw_checksum_compute((enum bw_checksum_type)bw_get16(super.csum_type),
                                (uint8_t *)&super + BW_CSUM_SIZE, BW_SUPERBLOCK_SIZE - BW_CSUM_SIZE,
                                super.csum);
            BW_TRY(bw_repair_write(repair, device->image->superblock.device.devid, offset, &super,
                                   sizeof super));
        }
    }
    return NULL;
}
