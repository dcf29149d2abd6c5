/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Features and the other flags of a superblock: their names, and which of them can be read. Source:
 * BTRFS_FEATURE_* in the kernel's uapi/linux/btrfs.h, BTRFS_SUPER_FLAG_* in btrfs_tree.h.
 */
#include "ondisk/tables.h"

#include <inttypes.h>

#include "base/buffer.h"

/* NUMBER, name in text for people, name in the kernel, whether it can be read. A bit without an
 * entry, or whose entry is not readable, ends the opening. */
#define INCOMPAT(BIT)                                              \
    BIT(0, "mixed-backref", MIXED_BACKREF, true)                   \
    BIT(1, "default-subvol", DEFAULT_SUBVOL, true)                 \
    BIT(2, "mixed-groups", MIXED_GROUPS, true)                     \
    BIT(3, "compress-lzo", COMPRESS_LZO, true)                     \
    BIT(4, "compress-zstd", COMPRESS_ZSTD, true)                   \
    BIT(5, "big-metadata", BIG_METADATA, true)                     \
    BIT(6, "extended-iref", EXTENDED_IREF, true)                   \
    BIT(7, "raid56", RAID56, true)                                 \
    BIT(8, "skinny-metadata", SKINNY_METADATA, true)               \
    BIT(9, "no-holes", NO_HOLES, true)                             \
    BIT(10, "metadata-uuid", METADATA_UUID, true)                  \
    BIT(11, "raid1c34", RAID1C34, true)                            \
    BIT(12, "zoned", ZONED, true)                                  \
    /* Parts extent, checksum and free space trees into several */ \
    BIT(13, "extent-tree-v2", EXTENT_TREE_V2, true)                \
    BIT(14, "raid-stripe-tree", RAID_STRIPE_TREE, true)            \
    BIT(15, "encrypt", ENCRYPT, false)                             \
    BIT(16, "simple-quota", SIMPLE_QUOTA, true)                    \
    BIT(17, "remap-tree", REMAP_TREE, true)

#define COMPAT_RO(BIT)                                           \
    BIT(0, "free-space-tree", FREE_SPACE_TREE, true)             \
    BIT(1, "free-space-tree-valid", FREE_SPACE_TREE_VALID, true) \
    BIT(2, "verity", VERITY, true)                               \
    BIT(3, "block-group-tree", BLOCK_GROUP_TREE, true)           \
    BIT(59, "synology-locker", SYNOLOGY_LOCKER, true)

/* Only kernels of Synology use these: caches of block groups, and directories that ignore the case
 * of names. Source: fs/btrfs in Synology's published kernel 4.4. */
#define COMPAT(BIT)                                                              \
    BIT(61, "synology-block-groups-auto", SYNOLOGY_BLOCK_GROUP_CACHE_AUTO, true) \
    BIT(62, "synology-block-groups", SYNOLOGY_BLOCK_GROUP_CACHE, true)           \
    BIT(63, "synology-caseless", SYNOLOGY_CASELESS, true)

/* Tree blocks use the first three bits, too. */
#define SUPER_FLAGS(BIT)                                    \
    BIT(0, "written", WRITTEN, true)                        \
    BIT(1, "reloc", RELOC, true)                            \
    BIT(2, "error", ERROR, true)                            \
    BIT(32, "seeding", SEEDING, true)                       \
    BIT(33, "metadump", METADUMP, true)                     \
    BIT(34, "metadump-v2", METADUMP_V2, true)               \
    BIT(35, "changing-fsid", CHANGING_FSID, true)           \
    BIT(36, "changing-fsid-v2", CHANGING_FSID_V2, true)     \
    BIT(38, "changing-bg-tree", CHANGING_BG_TREE, true)     \
    BIT(39, "changing-data-csum", CHANGING_DATA_CSUM, true) \
    BIT(40, "changing-meta-csum", CHANGING_META_CSUM, true)

#define AS_ENTRY(bit, name, NAME, readable) [bit] = {name, readable},
static const struct {
    const char *name;
    bool readable;
} incompat[64] = {INCOMPAT(AS_ENTRY)}, compat_ro[64] = {COMPAT_RO(AS_ENTRY)},
  super_flags[64] = {SUPER_FLAGS(AS_ENTRY)};

#define AS_VALUE(bit, name, NAME, readable) {UINT64_C(1) << (bit), #NAME, false},
/* clang-format off */
#define NAMES(words) {(const struct bw_value_name[]){words {0, NULL, false}}, NULL, ""}
/* clang-format on */
const struct bw_value_names bw_incompat_flags = NAMES(INCOMPAT(AS_VALUE));
const struct bw_value_names bw_compat_ro_flags = NAMES(COMPAT_RO(AS_VALUE));
const struct bw_value_names bw_super_flags = NAMES(SUPER_FLAGS(AS_VALUE));
const struct bw_value_names bw_compat_flags = NAMES(COMPAT(AS_VALUE));

const char *bw_incompat_name(unsigned bit)
{
    return bit < 64 ? incompat[bit].name : NULL;
}

const char *bw_compat_ro_name(unsigned bit)
{
    return bit < 64 ? compat_ro[bit].name : NULL;
}

const char *bw_super_flag_name(unsigned bit)
{
    return bit < 64 ? super_flags[bit].name : NULL;
}

struct bw_error *bw_features_check(uint64_t incompat_flags)
{
    struct bw_buffer names = {0};
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(incompat_flags >> bit & 1) || incompat[bit].readable)
            continue;
        bw_buffer_format(&names, "%s%u", names.length ? ", " : "", bit);
        if (incompat[bit].name)
            bw_buffer_format(&names, " (%s)", incompat[bit].name);
    }
    struct bw_error *error = bw_buffer_error(&names);
    if (!error && names.length)
        error =
            bw_error_create(BW_ERROR_UNSUPPORTED,
                            "unsupported incompat feature bits %.*s (incompat_flags 0x%" PRIx64 ")",
                            (int)names.length, names.data, incompat_flags);
    bw_buffer_free(&names);
    return error;
}
