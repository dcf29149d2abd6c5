/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capabilities of programs, as the attribute security.capability holds them. Source: struct
 * vfs_cap_data and vfs_ns_cap_data in the kernel's uapi/linux/capability.h.
 */
#ifndef BW_ONDISK_CAPABILITY_H
#define BW_ONDISK_CAPABILITY_H

#include <stdbool.h>

#include "base/buffer.h"
#include "btrfs-walk/inode.h"

/**
 * Appends capabilities in the words of getcap(8): "cap_net_raw=ep", "=ep" for all of them, several
 * groups separated by spaces, and "[rootid=1000]" at the end for a user namespace. False, and
 * nothing appended, if the attribute is not security.capability, or its value is invalid.
 */
bool bw_capability_append_text(const struct bw_xattr *xattr, struct bw_buffer *text);

#endif
