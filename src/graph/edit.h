/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of a plan that fit in an argument of the command line. What they make of the plan is
 * checked with the whole plan, afterwards.
 */
#ifndef BW_GRAPH_EDIT_H
#define BW_GRAPH_EDIT_H

#include "graph/plan.h"

/**
 * "NAME.KEY=VALUE": sets an option. NAME is a volume, a type ("storage/file": all of that type), or
 * a pattern for names as the shell has them (all that fit). BW_ERROR_USAGE if the text is none of
 * that form or fits no volume.
 */
struct bw_error *bw_plan_edit_option(struct bw_plan *plan, const char *text);

/**
 * "TYPE@VOLUME[,KEY=VALUE...]": puts a layer above a volume, a type or a pattern (above each); it
 * takes the volume's place with all its parents, and is called TAIL@VOLUME ("trace@verify", then
 * "trace@verify-2"). A backslash takes the meaning from the comma or backslash behind it.
 * BW_ERROR_USAGE as above.
 */
struct bw_error *bw_plan_edit_insert(struct bw_plan *plan, const char *text);

/** Puts a layer without options above volume `index`, in the same way. */
struct bw_error *bw_plan_insert_above(struct bw_plan *plan, size_t index, const char *type,
                                      struct bw_text_place at, struct bw_volume **inserted);

#endif
