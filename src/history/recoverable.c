/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is left of a file, added up from the parts that reading it has given. */
#include "btrfs-walk/deleted.h"

const char *bw_left_name(enum bw_left_kind kind)
{
    static const char *const names[] = {"proven", "unproven", "partly", "lost"};
    return names[kind];
}

void bw_left_take(struct bw_left *left, const struct bw_data_part *part)
{
    if (part->kind != BW_DATA_BAD) {
        *(part->kind == BW_DATA_HOLE ? &left->zeros : &left->good) += part->length;
        left->in_tree += part->in_tree ? part->length : 0;
        return;
    }
    const size_t last = left->count - 1;
    left->bad += part->length;
    if (left->count && left->count <= BW_LEFT_RANGES &&
        left->ranges[last].offset + left->ranges[last].length == part->offset) {
        left->ranges[last].length += part->length;
        return;
    }
    if (left->count < BW_LEFT_RANGES) {
        left->ranges[left->count].offset = part->offset;
        left->ranges[left->count].length = part->length;
    }
    left->count++;
}

enum bw_left_kind bw_left_kind(const struct bw_left *left, bool unchecked)
{
    if (left->bad)
        return left->good ? BW_LEFT_PARTLY : BW_LEFT_LOST;
    return unchecked && left->good > left->in_tree ? BW_LEFT_UNPROVEN : BW_LEFT_PROVEN;
}
