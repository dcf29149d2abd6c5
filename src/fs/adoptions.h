/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leaves below lost nodes, for all who read trees of files or the checksums of their data: which
 * nodes of a tree are lost, and which leaves stand in for them, is found out once, when a reader
 * first meets one.
 */
#ifndef BW_FS_ADOPTIONS_H
#define BW_FS_ADOPTIONS_H

#include "btree/adopted.h"

struct bw_fs;

/** What was found out so far, of all trees. Belongs to a struct bw_fs. */
struct bw_adoptions;

/** Makes an empty one, for the readers of `fs`; NULL if memory runs out. */
struct bw_adoptions *bw_adoptions_create(struct bw_fs *fs);

/** Frees it; NULL is allowed. */
void bw_adoptions_destroy(struct bw_adoptions *adoptions);

/** Whom readers ask, as long as it lives. */
const struct bw_adopter *bw_adoptions_adopter(const struct bw_adoptions *adoptions);

#endif
