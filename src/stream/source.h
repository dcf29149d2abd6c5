/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images that are send streams. */
#ifndef BW_STREAM_SOURCE_H
#define BW_STREAM_SOURCE_H

#include "fs/image.h"
#include "stream/stream_reader.h"

/** The bytes of an image as a stream. */
struct bw_stream_source bw_image_stream(const struct bw_image *image);

/** Whether all images are send streams. */
bool bw_images_are_streams(const struct bw_image_set *set);

#endif
