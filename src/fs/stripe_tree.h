/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The raid stripe tree: file systems with that feature say range by range, and not by chunk alone,
 * where file data lie on the devices. cluster/chunk-map asks here, for just what it is to read.
 */
#ifndef BW_FS_STRIPE_TREE_H
#define BW_FS_STRIPE_TREE_H

#include "fs/fs.h"

/** Lets the chunk map of the graph ask, if the file system has the feature; after the root tree was
 * read. */
struct bw_error *bw_stripe_tree_attach(struct bw_fs *fs);

/** Frees it; NULL allowed. Nobody may read any more. */
void bw_stripe_tree_destroy(struct bw_stripe_tree *stripes);

#endif
