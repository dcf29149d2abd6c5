/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole library. Each of these headers can also be included alone: it includes what it needs.
 */
#ifndef BTRFS_WALK_BTRFS_WALK_H
#define BTRFS_WALK_BTRFS_WALK_H

#include "btrfs-walk/batches.h"
#include "btrfs-walk/check.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/image.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/repair.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/system.h"
#include "btrfs-walk/tree.h"
#include "btrfs-walk/walk.h"

#endif
