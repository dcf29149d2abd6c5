/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last part of graph/check_plan.c: an image is never written to. */
#ifndef BW_GRAPH_CHECK_OUTPUT_H
#define BW_GRAPH_CHECK_OUTPUT_H

#include "base/file_set.h"
#include "graph/plan.h"
#include "graph/registry.h"

/**
 * Adds the files that options of type BW_OPTION_PATH name to `inputs`, and refuses (BW_ERROR_USAGE)
 * an option of type BW_OPTION_OUTPUT that leads to one of those, whatever the names. All types and
 * options of the plan are known to be good.
 */
struct bw_error *bw_check_outputs(const struct bw_plan *plan, struct bw_registry *registry,
                                  struct bw_file_set *inputs);

#endif
