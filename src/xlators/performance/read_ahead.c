/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * performance/read-ahead: turns the walker's read-ahead ranges into few large ones, in ascending
 * order. With the option `gap`, blocks that lie closer together than that become one range: a disk
 * that must seek reads the gap faster than it skips it; a solid one does not, so the default is 0.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "xlators/classes.h"

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    const uint64_t gap = bw_xlator_option_number(xlator, "gap");
    struct bw_range *sorted = count ? malloc(count * sizeof *sorted) : NULL;
    if (!sorted)
        return;
    memcpy(sorted, ranges, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, bw_compare_first);
    size_t last = 0; /* of the merged ranges, which are at the beginning */
    for (size_t i = 1; i < count; i++) {
        const uint64_t end = sorted[last].address + sorted[last].length;
        if (sorted[i].address > end && sorted[i].address - end > gap) {
            sorted[++last] = sorted[i];
            continue;
        }
        const uint64_t new_end = sorted[i].address + sorted[i].length;
        if (new_end > end)
            sorted[last].length = new_end - sorted[last].address;
    }
    bw_wind_advise(frame, bw_xlator_child(xlator, 0), sorted, last + 1, copy);
    free(sorted);
}

static const struct bw_option options[] = {
    {"gap", BW_OPTION_SIZE, "0", 0, UINT64_C(1) << 30,
     "ranges closer together than this are joined", NULL},
    {0},
};

const struct bw_xlator_class bw_performance_read_ahead_class = {
    .type = "performance/read-ahead",
    .description = "merges read-ahead ranges",
    .page =
        "A walk announces the tree blocks that it will read next. This layer sorts the "
        "announced ranges by address and joins adjacent ones, so that the layers below, and "
        "finally the kernel, receive a few long ranges. Reads themselves pass unchanged.\n\n"
        "A hard disk reads a small gap faster than it skips it. For a hard disk, set a gap; for "
        "an SSD, leave it at 0:\n\n"
        "    btrfs-walk --xlator-option read-ahead.gap=128K /dev/sdb1\n",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .options = options,
    .operations = {.advise = advise},
};
