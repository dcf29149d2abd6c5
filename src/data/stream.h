/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the stream (btrfs-walk/stream.h) that its planner and its workers share. */
#ifndef BW_DATA_STREAM_H
#define BW_DATA_STREAM_H

#include "data/reader.h"

struct bw_fs;

#endif
