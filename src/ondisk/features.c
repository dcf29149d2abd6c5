/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Features and the other flags of a superblock: their names, and which of them can be read. Source:
 * BTRFS_FEATURE_* in the kernel's uapi/linux/btrfs.h, BTRFS_SUPER_FLAG_* in btrfs_tree.h.
 */
#include <inttypes.h>

#include "base/buffer.h"
#include "ondisk/superblock.h"

/* A bit without an entry, or whose entry is not readable, ends the opening. */
static const struct {
    const char *name;
    bool readable;
} incompat[64] = {
    [0] = {"mixed-backref", true},
    [1] = {"default-subvol", true},
    [2] = {"mixed-groups", true},
    [3] = {"compress-lzo", true},
    [4] = {"compress-zstd", true},
    [5] = {"big-metadata", true},
    [6] = {"extended-iref", true},
    [7] = {"raid56", true},
    [8] = {"skinny-metadata", true},
    [9] = {"no-holes", true},
    [10] = {"metadata-uuid", true},
    [11] = {"raid1c34", true},
    [12] = {"zoned", true},
    /* Parts extent, checksum and free space trees into several; subvolumes are found as before. */
    [13] = {"extent-tree-v2", true},
    [14] = {"raid-stripe-tree", true},
    [15] = {"encrypt", false},
    [16] = {"simple-quota", true},
    [17] = {"remap-tree", true},
};

static const char *const compat_ro[64] = {
    [0] = "free-space-tree",
    [1] = "free-space-tree-valid",
    [2] = "verity",
    [3] = "block-group-tree",
};

/* The first three are those of a tree block. */
static const char *const super_flags[64] = {
    [0] = "written",
    [1] = "reloc",
    [2] = "error",
    [32] = "seeding",
    [33] = "metadump",
    [34] = "metadump-v2",
    [35] = "changing-fsid",
    [36] = "changing-fsid-v2",
    [38] = "changing-bg-tree",
    [39] = "changing-data-csum",
    [40] = "changing-meta-csum",
};

const char *bw_incompat_name(unsigned bit)
{
    return bit < 64 ? incompat[bit].name : NULL;
}

const char *bw_compat_ro_name(unsigned bit)
{
    return bit < 64 ? compat_ro[bit] : NULL;
}

const char *bw_super_flag_name(unsigned bit)
{
    return bit < 64 ? super_flags[bit] : NULL;
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
    struct bw_error *error = names.failed ? bw_error_no_memory() : NULL;
    if (!error && names.length)
        error =
            bw_error_create(BW_ERROR_UNSUPPORTED,
                            "unsupported incompat feature bits %.*s (incompat_flags 0x%" PRIx64 ")",
                            (int)names.length, names.data, incompat_flags);
    bw_buffer_free(&names);
    return error;
}
