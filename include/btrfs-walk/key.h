/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The key of a btrfs item, in host byte order. Every tree is sorted by (objectid, type, offset);
 * what each member means depends on the type. Source: struct btrfs_key in the kernel's
 * uapi/linux/btrfs_tree.h.
 */
#ifndef BTRFS_WALK_KEY_H
#define BTRFS_WALK_KEY_H

#include <stdint.h>

/** A key. All values are valid; an image may hold any of them. */
struct bw_key {
    uint64_t objectid;
    uint8_t type;
    uint64_t offset;
};

/** The greatest key there is. */
#define BW_KEY_MAX ((struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX})

/** Order of two keys: negative, zero or positive, as for memcmp(). */
static inline int bw_key_compare(const struct bw_key *a, const struct bw_key *b)
{
    if (a->objectid != b->objectid)
        return a->objectid < b->objectid ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return 0;
}

#endif
