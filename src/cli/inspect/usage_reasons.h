/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a file system is full: sentences about its chunks, snapshots and quotas. */
#ifndef BW_CLI_INSPECT_USAGE_REASONS_H
#define BW_CLI_INSPECT_USAGE_REASONS_H

#include "base/buffer.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"

enum { USAGE_REASONS = 4 };

/** The reasons of a file system. */
struct usage_reasons {
    struct {
        const char *word;                     /**< "metadata-full" */
        struct bw_buffer description, advice; /**< end with NUL */
    } items[USAGE_REASONS];
    size_t count;
};

/** Finds them. Only if data chunks are full, reads all trees for the space of snapshots. */
struct bw_error *usage_reasons_find(struct bw_fs *fs, const struct bw_usage *usage,
                                    struct usage_reasons *reasons);

/** For usageinfo.reasons. */
struct bw_error *usage_reasons_list(void *reasons, struct bw_record_sink *sink);

void usage_reasons_free(struct usage_reasons *reasons);

#endif
