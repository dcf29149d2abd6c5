/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number of a device node as the format has it: the kernel's own (kernel header kdev_t.h), 20
 * bits of it for the minor number. */
#ifndef BW_FORMAT_DEVICE_H
#define BW_FORMAT_DEVICE_H

#include "format/items.h"

static inline unsigned bw_inode_device_major(const struct bw_inode *inode)
{
    return (unsigned)(inode->device >> 20);
}

static inline unsigned bw_inode_device_minor(const struct bw_inode *inode)
{
    return (unsigned)(inode->device & 0xfffff);
}

#endif
