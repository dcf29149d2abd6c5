/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of files. There are two.
 *
 * The kernel refers to a file by a number that only it and this program see. That number holds the
 * inode number and the place of the subvolume in the list of all:
 *
 *     63        62 ... 40            39 ... 0
 *     is empty  number of subvolume  inode number, or, if empty, that of the directory around it
 *
 * The other one is what programs see as st_ino. The kernel gives each subvolume of its own mount a
 * device number, which FUSE cannot: inodes with the same number in two subvolumes would look like
 * hard links of one file. So only the subvolume at the top keeps its numbers. In all others, the
 * id of the subvolume stands above them; it is the same at the next mount.
 */
#include "base/search.h"
#include "mount/internal.h"

enum { INODE_BITS = 40, SUBVOLUME_BITS = 23 };

#define EMPTY           (UINT64_C(1) << 63)
#define INODE_MASK      ((UINT64_C(1) << INODE_BITS) - 1)
#define MOST_SUBVOLUMES (UINT64_C(1) << SUBVOLUME_BITS)

bool bw_mount_place(const struct bw_mount *mount, fuse_ino_t node, struct bw_place *place)
{
    const uint64_t inode = node & INODE_MASK, subvolume = (node & ~EMPTY) >> INODE_BITS;
    if (node == FUSE_ROOT_ID)
        *place = bw_place_top(mount->options.top);
    else if (subvolume >= mount->subvolume_count)
        return false;
    else if (node & EMPTY)
        *place = (struct bw_place){mount->subvolumes[subvolume], BW_EMPTY_DIRECTORY,
                                   BW_FILE_DIRECTORY, inode};
    else
        *place = (struct bw_place){mount->subvolumes[subvolume], inode, BW_FILE_UNKNOWN, 0};
    return true;
}

static bool is_top(const struct bw_mount *mount, const struct bw_place *place)
{
    const struct bw_place top = bw_place_top(mount->options.top);
    return place->subvolume == top.subvolume && place->inode == top.inode;
}

fuse_ino_t bw_mount_node(const struct bw_mount *mount, const struct bw_place *place)
{
    const uint64_t id = bw_subvolume_id(place->subvolume);
    const uint64_t empty = place->inode == BW_EMPTY_DIRECTORY ? EMPTY : 0;
    const uint64_t inode = empty ? place->directory : place->inode;
    const uint64_t subvolume =
        BW_FIRST_INDEX(i, mount->subvolume_count, bw_subvolume_id(mount->subvolumes[i]) >= id);
    if (is_top(mount, place))
        return FUSE_ROOT_ID;
    if (inode > INODE_MASK || subvolume >= MOST_SUBVOLUMES)
        return 0;
    return empty | subvolume << INODE_BITS | inode;
}

/* A number with its highest bit set, which no other way of numbering gives: chance keeps them
 * apart. Only for what does not occur in practice. */
static uint64_t mix(uint64_t id, uint64_t inode)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t mixed = (id * odd ^ inode) * odd;
    return (mixed ^ mixed >> 32) | EMPTY;
}

uint64_t bw_mount_number(const struct bw_mount *mount, const struct bw_place *place)
{
    const uint64_t id = bw_subvolume_id(place->subvolume);
    if (place->subvolume == mount->options.top)
        return place->inode;
    if (id < MOST_SUBVOLUMES && place->inode <= INODE_MASK)
        return id << INODE_BITS | place->inode;
    return mix(id, place->inode);
}
