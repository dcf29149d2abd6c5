/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether extents and tree blocks are shared, by what the extent tree says of them. Addresses are
 * requested first, then the extent tree is read where they are. When they have become many, all of
 * it is read, once.
 */
#ifndef BW_OWNERS_SHARING_H
#define BW_OWNERS_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

struct bw_fs;
struct bw_sharing;

/** If so many addresses are asked for, all of the extent tree is read. */
enum { BW_SHARING_MOST = 1 << 18 };

/** What is known of an extent or a tree block; of several blocks on a way, the greatest counts. */
enum bw_sharing_kind {
    BW_NOT_SHARED,
    BW_SPLIT,           /**< one reference, from several items of the same file */
    BW_UNKNOWN_SHARING, /**< it would be in a lost part of the extent tree */
    BW_SHARED,          /**< several references */
};

/** Starts, with nothing asked for. */
struct bw_error *bw_sharing_create(struct bw_fs *fs, struct bw_sharing **result);

/** Asks for an address; that of a tree block in memory is left out. */
struct bw_error *bw_sharing_ask(struct bw_sharing *sharing, uint64_t bytenr);

/** Whether that was so much that nothing more needs to be asked for: all will be known. */
bool bw_sharing_is_full(const struct bw_sharing *sharing);

/** Makes it so. */
void bw_sharing_ask_all(struct bw_sharing *sharing);

/** Reads the extent tree; blocks that are lost are reported. To be called again when more was asked
 * for. BW_ERROR_CORRUPT if there is none. */
struct bw_error *bw_sharing_read(struct bw_sharing *sharing);

/** Reports how many blocks of the extent tree were lost. */
void bw_sharing_report(const struct bw_sharing *sharing);

/** What it says of an address that was asked for. */
enum bw_sharing_kind bw_sharing_of(const struct bw_sharing *sharing, uint64_t bytenr);

/** Frees it; NULL is allowed. */
void bw_sharing_destroy(struct bw_sharing *sharing);

#endif
