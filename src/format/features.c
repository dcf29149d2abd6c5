/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of incompatible features. A bit without an entry, or one marked unreadable, stops the
 * opening. */
#include "format/features.h"

#include <inttypes.h>

#include "base/buffer.h"

static const struct {
    const char *name;
    bool readable;
} features[64] = {
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
    /* Parts extent, checksum and free space trees into several; subvolumes are found as ever. */
    [13] = {"extent-tree-v2", true},
    [14] = {"raid-stripe-tree", true},
    [15] = {"encrypt", false},
    [16] = {"simple-quota", true},
    [17] = {"remap-tree", true},
};

struct bw_error *bw_features_check(uint64_t incompat_flags)
{
    struct bw_buffer names = {0};
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(incompat_flags >> bit & 1) || features[bit].readable)
            continue;
        bw_buffer_format(&names, "%s%u", names.length ? ", " : "", bit);
        if (features[bit].name)
            bw_buffer_format(&names, " (%s)", features[bit].name);
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
