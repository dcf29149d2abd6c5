/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph that is used unless the user says otherwise. */
#ifndef BW_FS_DEFAULT_PLAN_H
#define BW_FS_DEFAULT_PLAN_H

#include "graph/plan.h"

#define BW_CHUNK_MAP_TYPE "cluster/chunk-map"
#define BW_REMAP_TYPE     "cluster/remap"
#define BW_VERIFY_TYPE    "features/verify"

/** Fills an empty plan: a storage/file for each path, the chunk map above them, then one layer on
 * the other.
 */
struct bw_error *bw_default_plan(struct bw_plan *plan, const char *const *paths, size_t count);

#endif
