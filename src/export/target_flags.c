/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flags of files. File systems know different ones and refuse all of a set of which they lack one,
 * so each is set by itself. Few files have any, and then one or two.
 */
#include "export/target.h"

#include <errno.h>
#include <linux/fs.h>
#include <stddef.h>
#include <sys/ioctl.h>

/* In the image; there, for FS_IOC_SETFLAGS. */
static const struct flag {
    uint64_t mask; /* of the inode */
    enum bw_flag_time when;
    int flag;
} flags[] = {
    {BW_INODE_NODATACOW, BW_FLAGS_EMPTY, FS_NOCOW_FL},
    {BW_INODE_NOCOMPRESS, BW_FLAGS_EMPTY, FS_NOCOMP_FL},
    {BW_INODE_COMPRESS, BW_FLAGS_EMPTY, FS_COMPR_FL},
    {BW_INODE_SYNC, BW_FLAGS_ANY, FS_SYNC_FL},
    {BW_INODE_NODUMP, BW_FLAGS_ANY, FS_NODUMP_FL},
    {BW_INODE_NOATIME, BW_FLAGS_ANY, FS_NOATIME_FL},
    {BW_INODE_DIRSYNC, BW_FLAGS_ANY, FS_DIRSYNC_FL},
    {BW_INODE_APPEND, BW_FLAGS_PROTECT, FS_APPEND_FL},
    {BW_INODE_IMMUTABLE, BW_FLAGS_PROTECT, FS_IMMUTABLE_FL},
};

/* Those of a kind that an inode has. */
static int wanted_flags(const struct bw_inode *inode, enum bw_flag_time when)
{
    int wanted = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].when == when && inode->flags & flags[i].mask)
            wanted |= flags[i].flag;
    return wanted;
}

bool bw_target_has_flags(const struct bw_inode *inode, enum bw_flag_time when)
{
    return wanted_flags(inode, when);
}

bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when)
{
    /* The calls are declared with a long, but take an int. */
    int wanted = wanted_flags(inode, when), has[2] = {0}, problem = 0;
    if (!wanted)
        return true;
    if (ioctl(descriptor, FS_IOC_GETFLAGS, has))
        return false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int more[2] = {has[0] | (flags[i].flag & wanted)};
        if (more[0] == has[0])
            continue;
        if (ioctl(descriptor, FS_IOC_SETFLAGS, more))
            problem = errno;
        else
            has[0] = more[0];
    }
    errno = problem;
    return !problem;
}
