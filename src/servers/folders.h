/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folders that are given in place of an image: the send streams in them. */
#ifndef BW_SERVERS_FOLDERS_H
#define BW_SERVERS_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/unpack.h"
#include "base/vector.h"
#include "btrfs-walk/error.h"

/** Copies the paths of images; a folder is replaced by the send streams in it, in the order of
 * their names. BW_ERROR_USAGE if it has none. */
struct bw_error *bw_stream_folders_expand(const char *const *given, size_t count,
                                          struct bw_strings *list);

bool bw_is_folder(const char *path);

/** Whether a file begins as a send stream, perhaps after decompression. Reads from the current
 * position. */
bool bw_begins_as_stream(int descriptor);

/** Decompresses the beginning of a file, to at most `wanted` bytes. Returns how many there are. */
size_t bw_unpack_beginning(const struct bw_packing *packing, const uint8_t *bytes, size_t length,
                           uint8_t *output, size_t wanted);

#endif
