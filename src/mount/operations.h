/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of operations, by which requests are answered. */
#ifndef BW_MOUNT_OPERATIONS_H
#define BW_MOUNT_OPERATIONS_H

#include "mount/internal.h"

/** All operations. The user data of the session is the struct bw_mount. */
struct fuse_lowlevel_ops bw_mount_operations(void);

#endif
