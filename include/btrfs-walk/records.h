/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All records as structures. Records only grow at their end; any other change raises their version.
 */
#ifndef BTRFS_WALK_RECORDS_H
#define BTRFS_WALK_RECORDS_H

#include "btrfs-walk/probe_records.h"
#include "btrfs-walk/row_records.h"

#endif
