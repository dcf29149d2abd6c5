/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of the contents of a file is recoverable: adds up the parts that were read. */
#include "btrfs-walk/history.h"

const char *bw_recoverable_name(enum bw_recoverable_kind kind)
{
    static const char *const names[] = {"verified", "unverified", "partly", "lost", "corrected"};
    return names[kind];
}

void bw_recoverable_add(struct bw_recoverable *left, const struct bw_data_part *part)
{
    if (part->kind != BW_DATA_BAD) {
        *(part->kind == BW_DATA_HOLE ? &left->zeros : &left->good) += part->length;
        left->in_tree += part->in_tree ? part->length : 0;
        left->unverified += part->unverified ? part->length : 0;
        left->corrected += part->corrected ? part->length : 0;
        return;
    }
    const size_t last = left->count - 1;
    left->bad += part->length;
    left->unchecked += part->error && part->error->code == BW_ERROR_NO_CHECKSUM ? part->length : 0;
    if (left->count && left->count <= BW_RECOVERABLE_RANGES &&
        left->ranges[last].offset + left->ranges[last].length == part->offset) {
        left->ranges[last].length += part->length;
        return;
    }
    if (left->count < BW_RECOVERABLE_RANGES) {
        left->ranges[left->count].offset = part->offset;
        left->ranges[left->count].length = part->length;
    }
    left->count++;
}

enum bw_recoverable_kind bw_recoverable_kind(const struct bw_recoverable *left, bool unchecked)
{
    if (left->bad)
        return left->good ? BW_RECOVERABLE_PARTLY : BW_RECOVERABLE_LOST;
    if (left->unverified || (unchecked && left->good > left->in_tree))
        return BW_RECOVERABLE_UNVERIFIED;
    return left->corrected ? BW_RECOVERABLE_CORRECTED : BW_RECOVERABLE_VERIFIED;
}
