/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `superblocks`: checks every copy in every image, compares it with the other copies of
 * its device and with the other devices; then checks the state of the file system in the superblock
 * that is used, and its backup roots.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btree/memory.h"
#include "check/check.h"
#include "fs/image.h"
#include "graph/wind.h"
#include "ondisk/bit_flip.h"
#include "ondisk/disk.h"
#include "ondisk/disk_items.h"

/*
 * The backup roots of the superblock, with which a mount can try older transactions: each must have
 * the generation and level of the block at its address, as long as no later transaction has written
 * another block there.
 *
 * The kernel fills them in while the next transaction may have begun already, whose roots are then
 * among them (backup_super_roots() in fs/btrfs/disk-io.c): those may never have been written.
 */

#define ROOTS 6 /* of each backup */

/* A distinct root of the backups, and the block at its address. Several backups have the same root
 * if transactions did not change it. */
struct root {
    uint64_t tree, bytenr;
    bool exists;
    uint64_t generation;
    uint8_t level;
};

/* The roots of all backups, which are read in one batch. */
struct reading {
    struct bw_check *check;
    size_t count;
    struct root roots[ROOTS * BW_BACKUP_ROOTS];
};

static unsigned copies_of(const struct reading *reading, const struct root *root)
{
    const struct bw_checked_chunk *chunk = bw_check_chunk(reading->check, root->bytenr);
    return chunk ? chunk->copies : 0;
}

/* Reads all copies of all roots. Fails only if memory runs out. */
static struct bw_error *read_roots(struct reading *reading)
{
    const struct bw_fs *fs = reading->check->fs;
    const struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(fs->reader.top));
    unsigned count = 0;
    for (size_t i = 0; i < reading->count; i++)
        count += copies_of(reading, &reading->roots[i]);
    BW_AUTO_FREE uint8_t *blocks = bw_block_buffer(&fs->reader, count + 1);
    BW_AUTO_FREE struct bw_request *requests = calloc(count + (size_t)1, sizeof *requests);
    if (!blocks || !requests)
        return bw_error_no_memory();
    struct bw_request *next = requests;
    for (size_t i = 0; i < reading->count; i++)
        for (unsigned copy = 1; copy <= copies_of(reading, &reading->roots[i]); copy++, next++)
            *next = (struct bw_request){.kind = BW_REQUEST_RAW,
                                        .mirror = (uint8_t)copy,
                                        .length = fs->reader.nodesize,
                                        .address = reading->roots[i].bytenr,
                                        .buffer = blocks +
                                                  (size_t)(next - requests) * fs->reader.nodesize};
    bw_wind(&frame, fs->reader.top, requests, count);
    next = requests;
    for (size_t i = 0; i < reading->count; i++)
        for (unsigned copy = copies_of(reading, &reading->roots[i]); copy; copy--, next++) {
            struct root *root = &reading->roots[i];
            const struct bw_disk_header *header = next->buffer;
            BW_AUTO_ERROR struct bw_error *error = next->error;
            if (error ||
                !bw_checksum_matches_block(fs->superblock.checksum_type, next->buffer,
                                           fs->reader.nodesize) ||
                memcmp(header->fsid, fs->superblock.metadata_uuid, BW_UUID_SIZE) != 0 ||
                bw_get64(header->bytenr) != root->bytenr || bw_get64(header->owner) != root->tree)
                continue;
            /* A copy that missed a write is older than another copy. */
            if (root->exists && root->generation >= bw_get64(header->generation))
                continue;
            root->exists = true;
            root->generation = bw_get64(header->generation);
            root->level = header->level;
        }
    return NULL;
}

/* Whether the address belongs to the current root of a tree. Neither the previous transaction nor
 * the next one can have another root there. */
static bool is_in_use(const struct bw_check *check, const struct root *root)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, root->tree);
    return root->bytenr == superblock->root.bytenr ||
           root->bytenr == superblock->chunk_root.bytenr ||
           (tree && root->bytenr == tree->tree.root.bytenr);
}

/* Whether a backup that was made in transaction `made_in` or a later one has another generation
 * than the block, and that cannot be because the block was written later, or by a transaction that
 * never ended. */
static bool has_wrong_generation(const struct bw_check *check, uint64_t made_in,
                                 uint64_t generation, const struct root *found)
{
    const uint64_t next = check->fs->superblock.generation + 1;
    if (found->generation > generation)
        return found->generation <= made_in || (is_in_use(check, found) && made_in + 2 >= next);
    return found->generation < generation && (generation != next || is_in_use(check, found));
}

static struct root *find_root(struct reading *reading, uint64_t tree, uint64_t bytenr)
{
    for (size_t i = 0; i < reading->count; i++)
        if (reading->roots[i].tree == tree && reading->roots[i].bytenr == bytenr)
            return &reading->roots[i];
    return NULL;
}

/* Whether a backup root names this generation, and a block with this generation. */
static bool is_confirmed(struct reading *reading, uint64_t tree, const struct bw_root_pointer *root,
                         uint64_t generation)
{
    const struct root *known = find_root(reading, tree, root->bytenr);
    return known && known->exists && root->generation == generation &&
           known->generation == generation;
}

/*
 * The earliest transaction that can have made a backup. Its root tree belongs to this transaction
 * or the next. Two facts determine which, even if a generation in the backup is wrong, because each
 * transaction rewrites the root tree and the extent tree:
 * - If both are the current ones, it is the current transaction.
 * - Each transaction fills the next of the four backups. If a backup's place among them fits the
 *   generation of one of its two trees, which a block confirms, then that is the transaction.
 */
static uint64_t find_transaction(struct reading *reading, unsigned number)
{
    const struct bw_check *check = reading->check;
    const struct bw_superblock *superblock = &check->fs->superblock;
    const struct bw_backup_root *backup = &superblock->backup_roots[number];
    const struct bw_listed_tree *extents = bw_tree_list_find(&check->trees, BW_EXTENT_TREE);
    if (extents && backup->tree_root.bytenr == superblock->root.bytenr &&
        backup->extent_root.bytenr == extents->tree.root.bytenr &&
        backup->extent_root.generation == extents->tree.root.generation)
        return superblock->generation;
    for (unsigned age = 1; age < BW_BACKUP_ROOTS; age++) {
        const unsigned newest = (number + age) % BW_BACKUP_ROOTS;
        const uint64_t generation = superblock->generation - age;
        if (superblock->backup_roots[newest].tree_root.bytenr == superblock->root.bytenr &&
            (is_confirmed(reading, BW_ROOT_TREE, &backup->tree_root, generation) ||
             is_confirmed(reading, BW_EXTENT_TREE, &backup->extent_root, generation)))
            return generation;
    }
    return backup->tree_root.generation ? backup->tree_root.generation - 1 : 0;
}

/* The addresses of the roots of a backup, and their trees. */
static const uint64_t backup_trees[ROOTS] = {BW_ROOT_TREE,     BW_CHUNK_TREE,  BW_EXTENT_TREE,
                                             BW_TOP_SUBVOLUME, BW_DEVICE_TREE, BW_CSUM_TREE};

static struct bw_root_pointer backup_member(const struct bw_backup_root *backup, unsigned number)
{
    const struct bw_root_pointer members[ROOTS] = {backup->tree_root,   backup->chunk_root,
                                                   backup->extent_root, backup->fs_root,
                                                   backup->device_root, backup->csum_root};
    return members[number];
}

/* Lists the distinct roots of all backups, reads them, and compares each backup with them. Fails
 * only if memory runs out. check->trees is loaded. */
static struct bw_error *check_backup_roots(struct bw_check *check)
{
    const struct bw_fs *fs = check->fs;
    const struct bw_backup_root *backups = fs->superblock.backup_roots;
    /* btrfs-image writes its own chunk tree, and none of its tools adapts the backups. */
    if (fs->is_past || fs->is_dump || fs->root_tree.root.bytenr != fs->superblock.root.bytenr ||
        fs->superblock.flags & (BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2))
        return NULL;
    struct reading reading = {.check = check};
    for (unsigned i = 0; i < BW_BACKUP_ROOTS * ROOTS; i++) {
        const uint64_t tree = backup_trees[i % ROOTS];
        const uint64_t bytenr = backup_member(&backups[i / ROOTS], i % ROOTS).bytenr;
        if (bytenr && !find_root(&reading, tree, bytenr))
            reading.roots[reading.count++] = (struct root){.tree = tree, .bytenr = bytenr};
    }
    BW_TRY(read_roots(&reading));
    for (unsigned i = 0; i < BW_BACKUP_ROOTS * ROOTS; i++) {
        const struct bw_root_pointer root = backup_member(&backups[i / ROOTS], i % ROOTS);
        const uint64_t made_in = find_transaction(&reading, i / ROOTS);
        const struct root *found = find_root(&reading, backup_trees[i % ROOTS], root.bytenr);
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_NOTHING, .tree = backup_trees[i % ROOTS], .logical = root.bytenr,
                       .length = fs->superblock.nodesize);
        if (!found || !found->exists)
            continue;
        if (has_wrong_generation(check, made_in, root.generation, found))
            bw_check_find(check, BW_CODE_backup_root, &location,
                          "generation %" PRIu64 " in backup root %u, the root has %" PRIu64,
                          root.generation, i / ROOTS, found->generation);
        else if (found->generation == root.generation && found->level != root.level)
            bw_check_find(check, BW_CODE_backup_root, &location,
                          "level %u in backup root %u, the root has %u", root.level, i / ROOTS,
                          found->level);
    }
    return NULL;
}

/*
 * The state of the file system: missing or stale devices, lost roots, unfinished operations, and
 * unknown features.
 */

static const uint64_t known_compat_ro = 0xf | BW_COMPAT_RO_SYNOLOGY;

/* A flag, and what it means that it is set. Source: BTRFS_SUPER_FLAG_* in the kernel's
 * uapi/linux/btrfs_tree.h; those of changes are set by btrfstune. */
static const struct {
    unsigned bit;
    enum bw_code_number code;
    const char *message;
} flags[] = {
    {2, BW_CODE_super_flags, "the file system was marked as one with errors"},
    {33, BW_CODE_metadump, "made by btrfs-image: there are no data"},
    {34, BW_CODE_metadump, "made by btrfs-image: there are no data"},
    {35, BW_CODE_half_done, "a change of the file system's id has not come to its end"},
    {36, BW_CODE_half_done, "a change of the file system's id has not come to its end"},
    {38, BW_CODE_half_done, "the conversion to or from a block group tree has not come to its end"},
    {39, BW_CODE_half_done, "a change of the checksums of data has not come to its end"},
    {40, BW_CODE_half_done, "a change of the checksums of tree blocks has not come to its end"},
};

/* Unknown flags and features, and features that need others. */
static void check_flags(struct bw_check *check)
{
    uint64_t left = check->fs->superblock.flags & ~UINT64_C(3) & ~BW_SUPER_FLAG_SEEDING;
    if (check->fs->is_dump)
        bw_check_find(check, BW_CODE_metadump, NULL, "a metadump of btrfs-image, without data");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (left >> flags[i].bit & 1)
            bw_check_find(check, flags[i].code, NULL, "%s", flags[i].message);
        left &= ~(UINT64_C(1) << flags[i].bit);
    }
    if (left)
        bw_check_find(check, BW_CODE_super_flags, NULL, "unknown flags 0x%" PRIx64, left);
    const uint64_t features = check->fs->superblock.compat_ro_flags & ~known_compat_ro;
    if (features)
        bw_check_find(check, BW_CODE_feature_unknown, NULL,
                      "unknown features that matter to writers, compat_ro_flags 0x%" PRIx64,
                      features);

    /* A mount refuses a block group tree without its needs. */
    const struct bw_superblock *superblock = &check->fs->superblock;
    const uint64_t bits = superblock->compat_ro_flags;
    if ((bits & BW_COMPAT_RO_FREE_SPACE_TREE_VALID) && !(bits & BW_COMPAT_RO_FREE_SPACE_TREE))
        bw_check_find(check, BW_CODE_feature_bits, NULL,
                      "compat_ro_flags has FREE_SPACE_TREE_VALID, but not FREE_SPACE_TREE");
    if ((bits & BW_COMPAT_RO_BLOCK_GROUP_TREE) &&
        !((bits & BW_COMPAT_RO_FREE_SPACE_TREE_VALID) &&
          superblock->incompat_flags & BW_INCOMPAT_NO_HOLES))
        bw_check_find(check, BW_CODE_super_values, NULL,
                      "the feature block-group-tree without a valid free space tree or no-holes: "
                      "a mount refuses that");
}

/* A root that the superblock promises, and another one that was found in its place. */
static void check_used_root(struct bw_check *check, const struct bw_tree *used,
                            const struct bw_root_pointer *promised)
{
    const struct bw_finding location =
        BW_FINDING(BW_TOUCHES_NOTHING, .tree = used->id, .logical = promised->bytenr,
                   .length = check->fs->superblock.nodesize);
    const bool is_same = used->root.bytenr == promised->bytenr;
    if (used->root.generation == promised->generation && !is_same)
        bw_check_find(check, BW_CODE_root_lost, &location,
                      "the root cannot be read; a tree made of the readable blocks of generation "
                      "%" PRIu64 " and older ones was checked instead",
                      promised->generation);
    else if (used->root.bytenr >= BW_MEMORY_START)
        bw_check_find(check, BW_CODE_root_lost, &location,
                      "the root of generation %" PRIu64
                      " is lost; a rebuilt tree was checked instead",
                      promised->generation);
    else if (!is_same || used->root.generation != promised->generation)
        bw_check_find(check, BW_CODE_root_lost, &location,
                      "the root of generation %" PRIu64 " is lost; generation %" PRIu64
                      " was checked instead",
                      promised->generation, used->root.generation);
    else if (used->root.level != promised->level)
        bw_check_find(check, BW_CODE_super_values, &location,
                      "level %u of the root, which has level %u", promised->level,
                      used->root.level);
}

static struct bw_error *check_operations(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    const struct bw_key balance = {BW_BALANCE, BW_TEMPORARY_ITEM, 0},
                        replace = {0, BW_DEVICE_REPLACE, 0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items balances;
    bw_fs_items_begin(&balances, fs, &fs->root_tree, balance, balance);
    while (bw_fs_items_next(&balances))
        bw_check_find(check, BW_CODE_operation_open, NULL, "the next mount continues a balance");
    BW_TRY(bw_fs_items_error(&balances));

    /* States: 1 is started, 4 is suspended. Source: BTRFS_IOCTL_DEV_REPLACE_STATE_* in the kernel's
     * uapi/linux/btrfs.h. */
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    const struct bw_listed_tree *devices = bw_tree_list_find(&check->trees, BW_DEVICE_TREE);
    if (!devices)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items replacements;
    bw_fs_items_begin(&replacements, fs, &devices->tree, replace, replace);
    for (const struct bw_item *item; (item = bw_fs_items_next(&replacements));) {
        const struct bw_disk_device_replace *disk = (const void *)item->data;
        if (item->size < sizeof *disk)
            continue;
        const uint64_t status = bw_get64(disk->state);
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_NOTHING, .devid = bw_get64(disk->source_devid));
        if (status == 1 || status == 4)
            bw_check_find(check, BW_CODE_operation_open, &location,
                          "the next mount continues the replacement of the device; without its "
                          "target, it needs -o degraded");
    }
    return bw_fs_items_error(&replacements);
}

/* A copy of a superblock. */
struct copy {
    const struct bw_image *image;
    unsigned number; /* from 0 on */
    uint64_t offset; /* on the device */
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_superblock superblock;
    struct bw_error *bad; /* owned */
};

/* Reports a fault in a copy. Superblocks are counted from 0, as in the kernel. */
__attribute__((format(printf, 5, 6))) static void find(struct bw_check *check,
                                                       enum bw_code_number code,
                                                       const struct copy *copy, bool repairable,
                                                       const char *format, ...)
{
    const struct bw_superblock *superblock = &copy->image->superblock;
    const bool is_known = superblock->generation;
    struct bw_finding location =
        BW_FINDING(BW_TOUCHES_NOTHING, .offset = copy->offset, .repairable = repairable);
    if (is_known)
        location.row.devid = superblock->device.devid;
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (is_known)
        bw_check_find(check, code, &location, "superblock copy %u: %s", copy->number, message);
    else
        bw_check_find(check, code, &location, "%s: superblock copy %u: %s", copy->image->name,
                      copy->number, message);
}

/* Reads a copy; false if the device has none of that number. The kernel writes those that end
 * before the last byte of the device. Source: write_dev_supers() in fs/btrfs/disk-io.c. */
static bool read_copy(const struct bw_image *image, unsigned number, struct copy *copy)
{
    const uint64_t end = bw_superblock_offset(number) + BW_SUPERBLOCK_SIZE;
    *copy = (struct copy){.image = image, .number = number};
    if (number && image->superblock.generation && end >= image->superblock.device.total_bytes)
        return false;
    copy->bad = bw_image_copy_bytes(image, number, copy->bytes, &copy->offset);
    if (!copy->bad)
        copy->bad =
            bw_superblock_decode(copy->bytes, bw_superblock_offset(number), &copy->superblock);
    const bool exists = !copy->bad || copy->bad->code != BW_ERROR_NOT_FOUND;
    if (!exists)
        bw_error_free(BW_TAKE(copy->bad));
    return exists;
}

/* Members that differ between copies, or between devices, of one transaction. The log is written
 * to the first copy alone. */
static const struct {
    size_t start, end;
} skipped[] = {
    {0, BW_CSUM_SIZE},
    {offsetof(struct bw_disk_superblock, bytenr), offsetof(struct bw_disk_superblock, flags)},
    {offsetof(struct bw_disk_superblock, log_root),
     offsetof(struct bw_disk_superblock, total_bytes)},
    {offsetof(struct bw_disk_superblock, log_root_level),
     offsetof(struct bw_disk_superblock, device)},
};

/* Compares a good mirror with another one: of the same device, or of another one. A commit writes
 * the copies of a device one after the other, so a power cut can leave some of them one generation
 * behind. */
static void compare_copies(struct bw_check *check, const struct copy *copy, const uint8_t *other,
                           const struct bw_superblock *superblock, bool same_device)
{
    const size_t device = offsetof(struct bw_disk_superblock, device),
                 device_end = offsetof(struct bw_disk_superblock, label);
    size_t place = 0; /* the first byte in which they contradict each other */
    for (size_t i = 0, k = 0; i < BW_SUPERBLOCK_SIZE && !place; i++) {
        if (k < sizeof skipped / sizeof *skipped && i == skipped[k].start)
            i = skipped[k++].end;
        if (i == device && !same_device)
            i = device_end;
        if (copy->bytes[i] != other[i])
            place = i;
    }
    const bool is_next = copy->superblock.generation + 1 == superblock->generation;
    if (copy->superblock.generation != superblock->generation)
        find(check, same_device && is_next ? BW_CODE_super_behind : BW_CODE_super_stale, copy, true,
             "generation %" PRIu64 ", another copy has %" PRIu64, copy->superblock.generation,
             superblock->generation);
    else if (place)
        find(check, BW_CODE_super_differs, copy, true, "byte %zu differs in %s", place,
             same_device ? "another copy" : "the superblock of another device");
    /* A commit leaves no log in any copy, and tools that write all copies put the same one into
     * each. */
    else if (same_device && copy->superblock.log_root &&
             copy->superblock.log_root != superblock->log_root)
        find(check, BW_CODE_super_differs, copy, true, "another copy has another log tree");
}

/* btrfs-image restores only the first copy: the places of the others keep their old contents. The
 * first writing mount creates all copies, and keeps the flag. */
static bool is_unrestored(const struct copy *copy, const struct copy *first)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    const struct bw_disk_superblock *disk = (const void *)copy->bytes,
                                    *of_first = (const void *)first->bytes;
    if (copy == first || first->number || first->bad || !(bw_get64(of_first->flags) & restored))
        return false;
    return bw_get64(disk->magic) != bw_get64(of_first->magic) ||
           memcmp(disk->fsid, of_first->fsid, BW_UUID_SIZE) != 0 ||
           !(bw_get64(disk->flags) & restored);
}

/* Corrects the copies of an image without a good one, as opening the image does. Returns the copy
 * that is used; NULL if none exists. */
static struct copy *correct_copies(struct bw_check *check, struct copy *copies, unsigned count)
{
    struct copy *best = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct copy *copy = &copies[i];
        struct bw_bit_flip flip;
        if (!copy->bad || !bw_superblock_correct(copy->bytes, bw_superblock_offset(copy->number),
                                                 &copy->superblock, &flip))
            continue;
        find(check, BW_CODE_block_bit_flip, copy, true,
             "%s: bit %u of byte %" PRIu32 " is flipped, and no mirror is good", copy->bad->message,
             flip.bit, flip.byte);
        bw_error_free(BW_TAKE(copy->bad));
        if (!best || copy->superblock.generation > best->superblock.generation)
            best = copy;
    }
    return best;
}

/* A copy that cannot be used. */
static void report_bad_copy(struct bw_check *check, const struct bw_image *image,
                            const struct copy *copy, bool repairable)
{
    const uint32_t shift = bw_image_find_shift(image, copy->offset);
    if (shift)
        find(check, BW_CODE_super_bad, copy, false, "%s" BW_IMAGE_SHIFTED, copy->bad->message,
             shift);
    else
        find(check, BW_CODE_super_bad, copy, repairable, "%s", copy->bad->message);
}

/* All copies of an image. `first`, of the file system, is set by the first good one of a device
 * that is up to date. */
static void check_image(struct bw_check *check, const struct bw_image *image, struct copy *first)
{
    struct copy copies[BW_SUPERBLOCK_COPIES], *best = NULL;
    unsigned count = 0;
    for (unsigned number = 0; number < BW_SUPERBLOCK_COPIES; number++) {
        struct copy *copy = &copies[count];
        if (!read_copy(image, number, copy))
            continue;
        count++;
        if (!copy->bad && !is_unrestored(copy, copies) &&
            (!best || copy->superblock.generation > best->superblock.generation))
            best = copy;
    }
    if (!best)
        best = correct_copies(check, copies, count);
    for (unsigned i = 0; i < count; i++) {
        if (is_unrestored(&copies[i], copies))
            find(check, BW_CODE_metadump, &copies[i], false, "btrfs-image does not restore it");
        else if (copies[i].bad)
            report_bad_copy(check, image, &copies[i], best);
        else if (best && &copies[i] != best)
            compare_copies(check, &copies[i], best->bytes, &best->superblock, true);
    }
    for (unsigned i = 0; i < count; i++)
        bw_error_free(BW_TAKE(copies[i].bad));
    if (!best)
        return;

    /* Its entry for its own device, and a log that only this superblock may know. */
    if (best->superblock.log_root_level >= BW_MAX_LEVEL)
        find(check, BW_CODE_super_values, best, false, "log_root_level %u",
             best->superblock.log_root_level);
    if (!bw_superblock_has_block_id(&best->superblock, best->superblock.device.fsid))
        find(check, BW_CODE_super_device, best, false, "its device belongs to another file system");
    if (image->role != BW_IMAGE_DEVICE || bw_image_is_stale(check->fs, image))
        return;
    if (first->image) {
        compare_copies(check, best, first->bytes, &first->superblock, false);
        return;
    }
    *first = *best;

    /* Values that btrfs_validate_super() in the kernel's fs/btrfs/disk-io.c rejects or warns about,
     * except those with which no image can be opened. */
    const struct bw_disk_superblock *disk = (const void *)best->bytes;
    const uint64_t generation = bw_get64(disk->generation),
                   cache_generation = bw_get64(disk->cache_generation);
    if (bw_get32(disk->leafsize) != bw_get32(disk->nodesize))
        find(check, BW_CODE_super_values, best, false,
             "leafsize %" PRIu32 " is not nodesize, %" PRIu32, bw_get32(disk->leafsize),
             bw_get32(disk->nodesize));
    if (bw_get64(disk->root_dir_objectid) != BW_ROOT_TREE_DIR)
        find(check, BW_CODE_super_values, best, false,
             "root_dir_objectid %" PRIu64 " is not %" PRIu64, bw_get64(disk->root_dir_objectid),
             BW_ROOT_TREE_DIR);
    if (cache_generation > generation && cache_generation != UINT64_MAX)
        find(check, BW_CODE_super_values, best, false,
             "cache_generation %" PRIu64 " is later than generation, %" PRIu64, cache_generation,
             generation);
}

struct bw_error *bw_pass_superblocks(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    const struct bw_error *why = check->why;
    struct copy first = {0};
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        const bool is_target = image->superblock.generation && !image->superblock.device.devid;
        if (why || image->role != BW_IMAGE_UNUSED || image->alternative)
            check_image(check, image, &first);
        else if (!image->is_other_side && !is_target)
            bw_check_find(check, BW_CODE_image_unused, NULL,
                          "%s is no device of the file system, or one that was given twice",
                          image->name);
    }
    if (why && (why->code == BW_ERROR_UNSUPPORTED || why->code == BW_ERROR_SYSTEM ||
                why->code == BW_ERROR_NO_MEMORY))
        bw_check_unable(check, bw_error_create(why->code, "%s", why->message));
    else if (why && why->code == BW_ERROR_DIVERGED)
        bw_check_find(check, BW_CODE_devices_diverged, NULL, "%s", why->message);
    else if (why)
        bw_check_find(check, BW_CODE_not_opened, NULL, "%s", why->message);
    if (why)
        return NULL;

    /* The state of the file system in the superblock that is used. */
    check_flags(check);
    if (!fs->is_past) {
        check_used_root(check, &fs->root_tree, &fs->superblock.root);
        check_used_root(check, &fs->chunk_tree, &fs->superblock.chunk_root);
    }
    if (fs->superblock.log_root && !fs->is_past)
        bw_check_find(check, BW_CODE_log_present, NULL,
                      "there is a log tree, which the next mount replays");
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        const struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .devid = device->devid);
        if (device->state == BW_DEVICE_MISSING)
            bw_check_find(check, BW_CODE_device_missing, &location, "the device was not given");
        else if (device->state == BW_DEVICE_STALE)
            bw_check_find(check, BW_CODE_device_stale, &location,
                          "generation %" PRIu64 ", other devices have %" PRIu64, device->generation,
                          fs->superblock.generation);
    }
    BW_TRY(check_operations(check));

    /* Source: check_root_item() in the tree-checker of the kernel since 5.4, "invalid root flags".
     */
    uint64_t count = 0;
    struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_ROOT_TREE);
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i];
        if (tree->flags & BW_ROOT_SYNOLOGY && !count++)
            location.row.key = tree->root_key;
    }
    if (count)
        bw_check_find(check, BW_CODE_synology_roots, &location,
                      "from here on, subvolumes with flags of Synology's kernels: %" PRIu64
                      "; other kernels refuse to mount (invalid root flags)",
                      count);
    return check_backup_roots(check);
}
