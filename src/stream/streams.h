/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file system in memory with the subvolumes of send streams. src/open.c calls it. */
#ifndef BW_STREAM_STREAMS_H
#define BW_STREAM_STREAMS_H

#include "fs/image.h"
#include "fs/opening.h"
#include "stream/stream_reader.h"

/** Makes a file system of the streams in all images: each subvolume in them becomes one in its
 * top-level subvolume. Applies the streams in an order in which each finds its parent. Streams that
 * cannot be applied, or only in part, are reported as damage; fails if no subvolume is left. */
struct bw_error *bw_streams_apply(struct bw_fs *fs, struct bw_image_set *set);

/* Images that are send streams. */

/** The bytes of an image as a stream. */
struct bw_stream_source bw_image_stream(const struct bw_image *image);

/** Whether all images are send streams. */
bool bw_images_are_streams(const struct bw_image_set *set);

#endif
