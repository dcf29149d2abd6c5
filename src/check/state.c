/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state that a file system was left in: devices that are missing or stale, roots that are lost,
 * what has not come to its end, and what is not known here.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "check/superblocks.h"
#include "ondisk/disk_items.h"

enum { KNOWN_COMPAT_RO = 0xf };

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

static const struct bw_subject nothing;

static void check_flags(struct bw_check *check)
{
    uint64_t left = check->fs->superblock.flags & ~UINT64_C(3) & ~BW_SUPER_FLAG_SEEDING;
    if (check->fs->is_dump)
        bw_check_find(check, BW_CODE_metadump, &nothing,
                      "a dump of btrfs-image: there are no data");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (left >> flags[i].bit & 1)
            bw_check_find(check, flags[i].code, &nothing, "%s", flags[i].message);
        left &= ~(UINT64_C(1) << flags[i].bit);
    }
    if (left)
        bw_check_find(check, BW_CODE_super_flags, &nothing, "unknown flags 0x%" PRIx64, left);
    const uint64_t features = check->fs->superblock.compat_ro_flags & ~(uint64_t)KNOWN_COMPAT_RO;
    if (features)
        bw_check_find(check, BW_CODE_feature_unknown, &nothing,
                      "unknown features that a writer has to know, compat_ro_flags 0x%" PRIx64,
                      features);
}

/* Features that need others. A mount refuses a block group tree without its needs. */
static void check_features(struct bw_check *check)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const uint64_t bits = superblock->compat_ro_flags;
    if ((bits & BW_COMPAT_RO_FREE_SPACE_TREE_VALID) && !(bits & BW_COMPAT_RO_FREE_SPACE_TREE))
        bw_check_find(check, BW_CODE_feature_bits, &nothing,
                      "compat_ro_flags has FREE_SPACE_TREE_VALID and not FREE_SPACE_TREE");
    if ((bits & BW_COMPAT_RO_BLOCK_GROUP_TREE) &&
        !((bits & BW_COMPAT_RO_FREE_SPACE_TREE_VALID) &&
          superblock->incompat_flags & BW_INCOMPAT_NO_HOLES))
        bw_check_find(check, BW_CODE_super_values, &nothing,
                      "the feature block-group-tree without a valid free space tree or no-holes: "
                      "a mount refuses that");
}

/* A root that the superblock promises, and another one that was found in its place. */
static void check_root(struct bw_check *check, const struct bw_tree *used,
                       const struct bw_root_pointer *promised)
{
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = used->id,
                    .logical = promised->bytenr,
                    .length = check->fs->superblock.nodesize}};
    if (used->root.bytenr != promised->bytenr || used->root.generation != promised->generation)
        bw_check_find(check, BW_CODE_root_lost, &subject,
                      "the root of generation %" PRIu64 " is lost; that of generation %" PRIu64
                      " is checked in its place",
                      promised->generation, used->root.generation);
    else if (used->root.level != promised->level)
        bw_check_find(check, BW_CODE_super_values, &subject,
                      "level %u of the root, which has level %u", promised->level,
                      used->root.level);
}

static struct bw_error *take_device(void *context, const struct bw_device_info *device)
{
    struct bw_check *check = context;
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_DEVICE, .devid = device->devid}};
    if (device->state == BW_DEVICE_MISSING)
        bw_check_find(check, BW_CODE_device_missing, &subject, "the device was not given");
    else if (device->state == BW_DEVICE_STALE)
        bw_check_find(check, BW_CODE_device_stale, &subject,
                      "generation %" PRIu64 ", other devices have %" PRIu64, device->generation,
                      check->fs->superblock.generation);
    return NULL;
}

static struct bw_error *take_balance(void *context, const struct bw_item *item)
{
    (void)item;
    bw_check_find(context, BW_CODE_operation_open, &nothing,
                  "a balance goes on with the next mount");
    return NULL;
}

/* States: 1 is started, 4 is suspended. Source: BTRFS_IOCTL_DEV_REPLACE_STATE_* in the kernel's
 * uapi/linux/btrfs.h. */
static struct bw_error *take_replace(void *context, const struct bw_item *item)
{
    const struct bw_disk_device_replace *disk = (const void *)item->data;
    if (item->size < sizeof *disk)
        return NULL;
    const uint64_t state = bw_get64(disk->state);
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_DEVICE, .devid = bw_get64(disk->source_devid)}};
    if (state == 1 || state == 4)
        bw_check_find(context, BW_CODE_operation_open, &subject,
                      "the replacement of the device goes on with the next mount");
    return NULL;
}

static struct bw_error *check_operations(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    const struct bw_key balance = {BW_BALANCE, BW_TEMPORARY_ITEM, 0},
                        replace = {0, BW_DEVICE_REPLACE, 0};
    BW_TRY(bw_fs_items(fs, &fs->root_tree, balance, balance, take_balance, check));
    BW_TRY(bw_tree_list_load(check->fs, &check->trees));
    const struct bw_listed_tree *devices = bw_tree_list_find(&check->trees, BW_DEVICE_TREE);
    return devices ? bw_fs_items(fs, &devices->tree, replace, replace, take_replace, check) : NULL;
}

struct bw_error *bw_check_state(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    check_flags(check);
    check_features(check);
    if (!fs->is_past) {
        check_root(check, &fs->root_tree, &fs->superblock.root);
        check_root(check, &fs->chunk_tree, &fs->superblock.chunk_root);
    }
    if (fs->superblock.log_root && !fs->is_past)
        bw_check_find(check, BW_CODE_log_present, &nothing,
                      "there is a log tree, which the next mount replays");
    BW_TRY(bw_fs_devices(fs, take_device, check));
    BW_TRY(check_operations(check));
    return bw_check_backup_roots(check);
}
